"""Which frames of a stream are believed, and in what order they stand.

The sequence gives the order and shows the loss; stamps are judged against the stream's own progress, never
against a clock. With F the time a frame spans, a frame that is dn frames after the newest one is expected
dn F after it:

- it is believed at once if its stamp does not fall, is late by at most F and early by at most 2 F + dn F / 2,
  and the hole before it is at most `gap_ns` long;
- any other frame is held, alone, until the next one. If that agrees with the held one (its stamp does not
  fall and is off by at most `gap_ns` + dn F / 2), the two are the stream's new base: a longer hole, or the
  start of a new run (`gap`: the stamps jumped; `restart`: the sequence fell; `step`: the stamps fell). If
  not, the held frame is dropped (`stamp`). So one bad stamp, or one bad sequence number, costs one frame;
- a frame at or before the newest one that agrees with it fills a hole that still waits, or else is dropped:
  `late` if it had been given up, `duplicate` otherwise. One older than 10 `gap_ns` + `late_ns` is not told
  from a restart.

A hole waits until the newest stamp is `late_ns` past that of the frame after it. Frames come out in order
of sequence, their stamps not falling within a run; equal stamps are fine.
"""

from collections import Counter, deque
from heapq import heappop, heappush

from reflexarc.sensors.frame import Frame

Placed = tuple[Frame, int, str]
"""A frame in its place, how many before it are given up, and why it begins a new run ("": it does not)."""

_REMEMBERED_HOLES = 64
_SPARE_FRAMES = 64
_OLDEST_GAPS = 10


class Order:
    """Puts the frames of one stream in order; see the module."""

    _newest: Frame | None
    _span: float  # F of the newest frame
    _next: int  # sequence number of the next frame to come out
    _last_t: int  # stamp of the last frame that came out
    _waiting: dict[int, Frame]  # behind a hole
    _heap: list[int]  # their sequence numbers
    _held: Frame | None
    _given_up: deque[range]

    def __init__(self, period_ns: float, gap_ns: float, late_ns: int, dropped: Counter[str]) -> None:
        """`period_ns` of one sample, nominal; drops are counted in `dropped`."""
        self._period_ns = period_ns
        self._gap_ns = gap_ns
        self._late_ns = late_ns
        self._most_waiting = _SPARE_FRAMES + int(2 * late_ns / period_ns)
        self._dropped = dropped
        self.lost = 0
        self._clear()

    def _clear(self) -> None:
        self._newest = None
        self._span = 0.0
        self._next = 0
        self._last_t = 0
        self._waiting = {}
        self._heap = []
        self._held = None
        self._given_up = deque(maxlen=_REMEMBERED_HOLES)

    @property
    def queued(self) -> int:
        """Frames behind a hole, and the one that is held."""
        return len(self._waiting) + (self._held is not None)

    def reset(self) -> None:
        """Forget the stream; frames that waited are dropped as `reset`."""
        if self.queued:
            self._dropped["reset"] += self.queued
        self._clear()

    def push(self, frame: Frame, out: deque[Placed]) -> None:
        """Take the next frame received; append to `out` what is now in its place."""
        newest = self._newest
        if newest is None:
            self._begin(frame, "start", out)
            return
        if (
            frame.seq == self._next == newest.seq + 1
            and 0 <= frame.t - newest.t <= 2 * self._span
            and self._held is None
        ):
            self._advance(frame)
            self._come_out(frame, 0, out)
            return
        self._judge(frame, newest, out)

    def _judge(self, frame: Frame, newest: Frame, out: deque[Placed]) -> None:
        held = self._held
        if held is None:
            if not self._place(frame, newest, out):
                self._held = frame
        elif held.seq > newest.seq and held.t >= newest.t and self._agrees(held, frame):
            self._confirm(held, frame, newest, out)
        elif self._place(frame, newest, out):
            if self._newest is frame and not self._may_follow(frame, held):
                self._drop_held()
        elif self._agrees(held, frame):
            self._confirm(held, frame, newest, out)
        elif frame.seq == held.seq and frame.t == held.t:
            self._dropped["duplicate"] += 1
        else:
            self._drop_held()
            self._held = frame

    def _place(self, frame: Frame, newest: Frame, out: deque[Placed]) -> bool:
        """Put the frame in its place, or drop it as late; False if its stamp is not believed."""
        steps, passed = frame.seq - newest.seq, frame.t - newest.t
        expected = steps * self._span
        if steps > 0:
            earliest = max(0.0, expected / 2 - 2 * self._span)
            if not earliest <= passed <= expected + self._span or expected - self._span > self._gap_ns:
                return False
            self._append(frame, out)
            return True
        if steps == 0:
            if passed:
                return False
            self._dropped["duplicate"] += 1
            return True
        oldest = -(_OLDEST_GAPS * self._gap_ns + self._late_ns)
        if not oldest <= passed <= 0 or abs(passed - expected) > self._gap_ns - expected / 2:
            return False
        if frame.seq < self._next:
            self._dropped["late" if any(frame.seq in hole for hole in self._given_up) else "duplicate"] += 1
        elif frame.seq in self._waiting:
            self._dropped["duplicate"] += 1
        elif not self._fits(frame):
            self._dropped["stamp"] += 1
        else:
            self._wait(frame)
            self._release(out)
        return True

    def _fits(self, frame: Frame) -> bool:
        """Whether the stamp of a frame for a hole is between its neighbours'."""
        before = max((seq for seq in self._waiting if seq < frame.seq), default=None)
        after = min(seq for seq in self._waiting if seq > frame.seq)
        earliest = self._last_t if before is None else self._waiting[before].t
        return earliest <= frame.t <= self._waiting[after].t

    def _agrees(self, held: Frame, frame: Frame) -> bool:
        """Whether the frame goes on where the held one began."""
        span = self._span_of(held)
        steps, passed = frame.seq - held.seq, frame.t - held.t
        expected = steps * span
        return (
            steps > 0
            and passed >= 0
            and expected - span <= self._gap_ns
            and abs(passed - expected) <= self._gap_ns + expected / 2
        )

    def _may_follow(self, frame: Frame, held: Frame) -> bool:
        """Whether the held frame, out of order by less than `late_ns`, can still come after this one."""
        steps = held.seq - frame.seq
        return steps > 0 and held.t >= frame.t and steps * self._span <= self._late_ns

    def _confirm(self, held: Frame, frame: Frame, newest: Frame, out: deque[Placed]) -> None:
        """Believe the held frame, since this one agrees with it."""
        self._held = None
        steps, passed = held.seq - newest.seq, held.t - newest.t
        expected = steps * self._span
        if steps > 0 and passed >= 0 and abs(passed - expected) <= self._gap_ns + expected / 2:
            self._append(held, out)
        else:
            self._release(out, everything=True)
            self._begin(held, "restart" if steps <= 0 else "gap" if passed >= 0 else "step", out)
        self._append(frame, out)

    def _drop_held(self) -> None:
        self._held = None
        self._dropped["stamp"] += 1

    def _begin(self, frame: Frame, reason: str, out: deque[Placed]) -> None:
        self._given_up.clear()
        self._advance(frame)
        self._next = frame.seq + 1
        self._last_t = frame.t
        out.append((frame, 0, reason))

    def _append(self, frame: Frame, out: deque[Placed]) -> None:
        """Take a believed frame as the newest."""
        self._advance(frame)
        if frame.seq == self._next:
            self._come_out(frame, 0, out)
        else:
            self._wait(frame)
            self._release(out)

    def _advance(self, frame: Frame) -> None:
        self._newest = frame
        self._span = self._span_of(frame)

    def _span_of(self, frame: Frame) -> float:
        return len(frame.data) * self._period_ns

    def _wait(self, frame: Frame) -> None:
        self._waiting[frame.seq] = frame
        heappush(self._heap, frame.seq)

    def _release(self, out: deque[Placed], *, everything: bool = False) -> None:
        """Let out the frames whose holes are filled, or have waited long enough."""
        assert self._newest is not None
        while self._heap:
            frame = self._waiting[self._heap[0]]
            missing = frame.seq - self._next
            waited = self._newest.t - frame.t >= self._late_ns or len(self._heap) > self._most_waiting
            if missing and not waited and not everything:
                return
            del self._waiting[heappop(self._heap)]
            if missing:
                self.lost += missing
                self._given_up.append(range(self._next, frame.seq))
            self._come_out(frame, missing, out)

    def _come_out(self, frame: Frame, missing: int, out: deque[Placed]) -> None:
        self._next = frame.seq + 1
        self._last_t = frame.t
        out.append((frame, missing, ""))
