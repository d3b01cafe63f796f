"""What a channel is: its section of the configuration, in the units of this folder."""

from dataclasses import dataclass
from typing import Literal

from reflexarc.control.limiter import Limits
from reflexarc.control.source import Source

Rule = Literal["ramp", "jump"]


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """One value of a channel: where it comes from, its limits, and what is safe (within the bounds)."""

    name: str
    limits: Limits
    safe: float
    source: Source

    def __post_init__(self) -> None:
        low, high = self.limits.minimum, self.limits.maximum
        if not low <= self.safe <= high:
            raise ValueError(f"{self.name}: safe {self.safe} is not within {low} to {high}")


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """A channel; times in ns, but `ttl_ms`, which goes out as it is.

    A command comes every `period_ns`, and at once with a decision, but then at least `gap_ns` after the last
    one that came so. A limiter takes a time longer than `period_ns + stall_ns` for a standstill of the loop.
    """

    name: str
    pipeline: str
    period_ns: int
    gap_ns: int
    max_age_ns: int
    ttl_ms: int
    stale: Rule
    estop: Rule
    stall_ns: int
    values: tuple[ValueSpec, ...]

    def __post_init__(self) -> None:
        for name in ("period_ns", "gap_ns", "max_age_ns", "ttl_ms", "stall_ns"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{self.name}: {name} {getattr(self, name)} must be above 0")
        for name in ("stale", "estop"):
            if getattr(self, name) not in ("ramp", "jump"):
                raise ValueError(f'{self.name}: {name} {getattr(self, name)!r} must be "ramp" or "jump"')
