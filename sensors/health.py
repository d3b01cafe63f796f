"""The health of one stream, with hysteresis: one bad frame in a good stream is no alarm."""

from collections import Counter
from dataclasses import dataclass, field

from reflexarc.sensors.delay import Delay
from reflexarc.sensors.frame import Frame, StreamSpec

_SECOND = 1_000_000_000
_ALIVE_FRAMES = 3
_RATE_FRAMES = 10
_RATE_RAISE, _RATE_CLEAR = 0.25, 0.15
_RATE_LONGEST = 20
_SKEW_RAISE_MS, _SKEW_CLEAR_MS = 1000.0, 500.0
_HISTORY = 64
_ALL_CAME = (1 << _HISTORY) - 1
_STRAYS = 3


class _Level:
    """Bad events against good frames: raised by 3 close together, cleared by 20 good ones or so."""

    __slots__ = ("level", "raised")

    def __init__(self) -> None:
        self.level = 0.0
        self.raised = False

    def bad(self, count: int) -> None:
        self.level = min(self.level + count, 5.0)
        self.raised = self.raised or self.level >= 3.0

    def good(self) -> None:
        self.level = max(self.level - 0.1, 0.0)
        self.raised = self.raised and self.level >= 1.0


@dataclass(frozen=True, slots=True)
class Health:
    """A stream at one moment. `warnings` are words: rate, gaps, refused, frozen, skew."""

    alive: bool
    """Good frames come: the third in a row makes it so, none within max_age ends it."""
    rate_hz: float
    """Samples per second of the stream's own stamps over the last second or so; 0 before it is known."""
    gaps: int
    """Frames missing from the sequence so far."""
    frozen: bool
    """The samples have been identical for the configured time."""
    skew_ms: float | None
    """The wall clock less the newest stamp at its receipt; None without a wall clock. Warning only."""
    refused: dict[str, int] = field(default_factory=dict)
    """Refused frames by reason."""
    warnings: tuple[str, ...] = ()


class StreamHealth:
    """Fed with every frame of a stream in order of receipt; about 1 us a frame."""

    def __init__(self, spec: StreamSpec, *, frozen_ns: int = 2 * _SECOND) -> None:
        """`frozen_ns` is how long identical samples (by count at the nominal rate) mean frozen; 0: never."""
        self._spec = spec
        self._span_ns = round(spec.frame * _SECOND / spec.rate_hz)
        self._jump_ns = max(_SECOND // 5, 5 * self._span_ns)
        self._frozen_samples = max(2, int(frozen_ns * spec.rate_hz / _SECOND)) if frozen_ns else 0
        self._delay = Delay(self._span_ns, self._jump_ns)
        self._refused: Counter[str] = Counter()
        self._refusals, self._losses = _Level(), _Level()
        self._gaps = 0
        self._seq = self._t = self._received = -1
        self._came = _ALL_CAME  # bit i: frame seq - i came
        self._streak = 0  # good frames none of which came later than max_age after the one before
        self._strays = 0  # frames in a row before the newest
        self._same = 0  # samples identical to the one before
        self._bytes = b""
        self._rate_ns = max(_SECOND, _RATE_FRAMES * self._span_ns)  # over which the rate is measured
        self._rate_hz = 0.0
        self._rates_off = 0  # measurements in a row
        self._rate_raised = self._skew_raised = False
        self._mark(0)

    def on_frame(self, frame: Frame) -> None:
        """One decoded frame."""
        received, steps = frame.received, frame.seq - self._seq
        if steps or frame.t != self._t:  # a copy of the last frame is no sign of life
            self._streak = self._streak + 1 if received - self._received <= self._spec.max_age_ns else 1
            self._received = received
        if steps == 1:
            self._came = self._came << 1 & _ALL_CAME | 1
        elif not self._follow_jump(frame, steps):
            return
        self._strays = 0
        if self._refusals.level:
            self._refusals.good()
        if self._losses.level and steps == 1:
            self._losses.good()
        self._seq, self._t = frame.seq, frame.t
        self._delay.feed(frame.t, received)
        self._watch_values(frame)
        self._samples += len(frame.data)
        if frame.t - self._mark_t >= self._rate_ns or frame.t < self._mark_t:
            self._measure_rate()

    def on_refused(self, reason: str) -> None:
        """One payload that `decode` refused."""
        self._refused[reason] += 1
        self._refusals.bad(1)

    def delay_ns(self, frame: Frame) -> int:
        """How much longer than the fastest of the last minute `frame`, the last one fed, was under way.

        Receipt less `t`, above its minimum: the time that it waited in buffers. A clock step of the publisher
        moves the minimum along.
        """
        return self._delay.above_least(frame.t, frame.received)

    def state(self, now: int, wall: int | None = None) -> Health:
        """The health at `now` (monotonic ns); `wall` is the same moment in UNIX ns, for the skew."""
        seen = self._streak > 0
        fresh = seen and now - self._received <= self._spec.max_age_ns
        skew_ms = (wall - (now - self._received) - self._t) / 1e6 if seen and wall is not None else None
        if skew_ms is not None:
            limit = _SKEW_CLEAR_MS if self._skew_raised else _SKEW_RAISE_MS
            self._skew_raised = abs(skew_ms) > limit
        frozen = 0 < self._frozen_samples <= self._same
        raised = {
            "rate": self._rate_raised,
            "gaps": self._losses.raised,
            "refused": self._refusals.raised,
            "frozen": frozen,
            "skew": self._skew_raised,
        }
        return Health(
            alive=fresh and self._streak >= _ALIVE_FRAMES,
            rate_hz=self._rate_hz,
            gaps=self._gaps,
            frozen=frozen,
            skew_ms=skew_ms,
            refused=dict(self._refused),
            warnings=tuple(word for word, is_raised in raised.items() if is_raised),
        )

    def _follow_jump(self, frame: Frame, steps: int) -> bool:
        """Take a frame that is not the next one; False if it belongs to the past."""
        if self._seq < 0:
            self._mark(frame.t)
            return True
        if steps > 0:
            missing = steps - 1
            if missing * self._span_ns > 2 * (frame.t - self._t) + self._jump_ns:
                return self._restart(frame)
            self._gaps += missing
            self._losses.bad(missing)
            self._came = (self._came << min(steps, _HISTORY)) & _ALL_CAME | 1
            return True
        self._strays += 1
        if frame.t > self._t or -steps >= _HISTORY or self._strays >= _STRAYS:
            return self._restart(frame)
        bit = 1 << -steps
        if not self._came & bit:
            self._came |= bit
            self._gaps -= 1
        return False

    def _restart(self, frame: Frame) -> bool:
        """The sensor counts anew."""
        self._came = _ALL_CAME
        self._mark(frame.t)
        return True

    def _watch_values(self, frame: Frame) -> None:
        values = frame.data.tobytes()
        if values == self._bytes:
            self._same += len(frame.data)
        else:
            self._bytes, self._same = values, 0

    def _mark(self, t: int) -> None:
        """Begin to measure the rate at `t`."""
        self._mark_t = t
        self._samples = 0

    def _measure_rate(self) -> None:
        """Samples since the mark by the time of their stamps, where that is believable; then a new mark."""
        passed = self._t - self._mark_t
        if 0 < passed <= self._rate_ns * _RATE_LONGEST:
            self._rate_hz = self._samples * _SECOND / passed
            off = abs(self._rate_hz / self._spec.rate_hz - 1)
            self._rates_off = self._rates_off + 1 if off > _RATE_RAISE else 0
            self._rate_raised = self._rates_off > 1 or (self._rate_raised and off > _RATE_CLEAR)
        self._mark(self._t)
