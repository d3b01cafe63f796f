"""One channel: decisions in, commands out, under limits and two lifetimes."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from reflexarc.control.command import Command
from reflexarc.control.decision import Decision
from reflexarc.control.limiter import Limits
from reflexarc.control.source import Source

Rule = Literal["ramp", "jump"]


@dataclass(frozen=True, slots=True)
class ValueSpec:
    """One value of a channel: where it comes from, its limits and the value that is safe."""

    name: str
    limits: Limits
    safe: float
    source: Source


@dataclass(frozen=True, slots=True)
class ChannelSpec:
    """A channel's section of the configuration, times in ns (but `ttl_ms`, which goes on the wire as it is)."""

    name: str
    pipeline: str
    period_ns: int
    gap_ns: int  # the shortest time between two commands: 1 / max_rate_hz
    max_age_ns: int
    ttl_ms: int
    stale: Rule
    estop: Rule
    stall_ns: int
    values: tuple[ValueSpec, ...]


class Channel:
    """See CONTROL.md; the public names are those of this skeleton."""

    def __init__(self, spec: ChannelSpec, session: int, now: int) -> None:
        self.spec = spec
        self.counts: Counter[str] = Counter()
        self.last: Command | None = None

    @property
    def deadline(self) -> int:
        """When the next command is due (monotonic ns)."""
        raise NotImplementedError

    def accept(self, decision: Decision, now: int) -> str:
        """Take a decision; gives "" or the word of its refusal."""
        raise NotImplementedError

    def step(self, now: int, t: int) -> Command:
        """Make the next command."""
        raise NotImplementedError

    def stop(self, words: str) -> None:
        """Be stopped for the reason given; "" ends it (call `discard_before` too)."""
        raise NotImplementedError

    def discard_before(self, now: int) -> None:
        """Let no decision received at or before `now` act, the one that acts now included."""
        raise NotImplementedError

    def shutdown(self, deadline: int) -> None:
        """Ramp to safe from now on, and jump there at the deadline."""
        raise NotImplementedError

    @property
    def done(self) -> bool:
        """Whether the last command of a shutdown, at safe, has been made."""
        raise NotImplementedError

    def adopt(self, old: "Channel") -> None:
        """Go on where the channel that this one replaces stood."""
        raise NotImplementedError
