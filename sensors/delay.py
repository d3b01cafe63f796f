"""How long data waited in buffers: receipt less stamp, above its minimum of the last minute.

The two clocks need not agree, only to run alike: the minimum is the least delay seen, whatever the offset
between them. Where the stamps fall, the publisher's clock stepped back, and the minimum moves along: by a
frame's time, or after a pause (a sensor that was started anew) by the pause, which is no delay. A delay that
is below the minimum by more than a tolerance (a stamp from the future, or a clock that stepped forward)
counts when the next frame shows the same.
"""

from collections import deque

_SECOND = 1_000_000_000
_SECONDS_KEPT = 60


class Delay:
    """The excess delay of one stream; constant time a frame, at most one minimum kept for each second.

    Time in which nothing arrives counts as one second at most, so a long stop does not wipe the memory out.
    """

    def __init__(self, span_ns: int, tolerance_ns: int) -> None:
        """`span_ns` from a frame to the next, nominal; a fall by more than `tolerance_ns` needs proof."""
        self._span_ns = span_ns
        self._tolerance_ns = tolerance_ns
        self._t = -1  # newest stamp believed
        self._received = 0
        self._elapsed = 0  # ns in which the stream ran
        self._offset = 0  # by which the publisher's clock has stepped back
        self._suspect: int | None = None
        self._minima: deque[tuple[int, int]] = deque()  # (second, least in it), both rising

    def feed(self, t: int, received: int) -> None:
        """A frame stamped `t`, in the order of the stream."""
        if self._t < 0:
            self._received = received
        passed = received - self._received
        if t < self._t:
            self._offset += self._t + (passed if passed > _SECOND else self._span_ns) - t
        self._elapsed += passed if passed < _SECOND else _SECOND
        self._received = received
        delay = received - t - self._offset
        minima = self._minima
        if minima and delay < minima[0][1] - self._tolerance_ns:
            suspect, self._suspect = self._suspect, delay
            if suspect is None or abs(delay - suspect) > self._tolerance_ns:
                return
        self._suspect = None
        self._t = t
        second = self._elapsed // _SECOND
        if not minima or second != minima[-1][0] or delay < minima[-1][1]:
            self._keep(second, delay)

    def above_least(self, t: int, received: int) -> int:
        """The excess delay (ns) of a frame, 0 for the fastest."""
        if not self._minima:
            return 0
        return max(0, received - t - self._offset - self._minima[0][1])

    def _keep(self, second: int, delay: int) -> None:
        minima = self._minima
        while minima and minima[-1][1] >= delay:
            minima.pop()
        minima.append((second, delay))
        while minima[0][0] <= second - _SECONDS_KEPT:
            minima.popleft()
