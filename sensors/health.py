"""The health of one stream, with hysteresis: one bad frame in a good stream is no alarm."""

from dataclasses import dataclass, field

from reflexarc.sensors.frame import Frame, StreamSpec


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

    def __init__(self, spec: StreamSpec, *, frozen_ns: int = 2_000_000_000) -> None:
        """`frozen_ns` is how long identical samples (by count at the nominal rate) mean frozen; 0: never."""
        raise NotImplementedError

    def on_frame(self, frame: Frame) -> None:
        """One decoded frame."""
        raise NotImplementedError

    def on_refused(self, reason: str) -> None:
        """One payload that `decode` refused."""
        raise NotImplementedError

    def delay_ns(self, frame: Frame) -> int:
        """How much longer than the fastest of the last minute `frame`, the last one fed, was under way.

        Receipt less `t`, above its minimum: the time that it waited in buffers. A stamp step of the publisher moves the
        minimum along.
        """
        raise NotImplementedError

    def state(self, now: int, wall: int | None = None) -> Health:
        """The health at `now` (monotonic ns); `wall` is the same moment in UNIX ns, for the skew."""
        raise NotImplementedError
