"""The pure core of the gate: all channels and the e-stop."""

from collections.abc import Collection, Iterable

from reflexarc.control.channel import Channel, ChannelSpec
from reflexarc.control.command import Command
from reflexarc.control.decision import Decision
from reflexarc.control.estop import EStop


class Gate:
    """Everything between decisions and commands; the shell brings messages and time, and sends what `step` gives.

    Each turn of the shell's loop: read `now` (monotonic ns) and `t` (UNIX ns), hand in every e-stop message, then every
    decision, then publish what `step` gives and wait until `next_deadline`. It writes `estop.to_map()` to its file
    whenever `estop.revision` has changed.
    """

    def __init__(
        self, specs: Iterable[ChannelSpec], session: int, now: int, estop: EStop | None = None
    ) -> None:
        self.estop = estop or EStop(now)
        self.channels: dict[str, Channel] = {spec.name: Channel(spec, session, now) for spec in specs}

    def accept(self, decision: Decision, now: int) -> str:
        """Hand a decision to the channels of its pipeline; gives "" if one took it, else the word of a refusal.

        The word is `pipeline` where no channel follows that pipeline. Each channel counts for itself in `counts`.
        """
        raise NotImplementedError

    def message(self, plain: object, now: int) -> str:
        """Hand in a decoded e-stop message; gives what it was (see `EStop.message`)."""
        raise NotImplementedError

    def step(self, now: int, t: int) -> list[Command]:
        """Make every command that is due, in the order of the configuration; `t` is their stamp (UNIX ns)."""
        raise NotImplementedError

    def next_deadline(self) -> int:
        """When `step` must be called next, if nothing arrives before (monotonic ns; may be in the past: at once)."""
        raise NotImplementedError

    def discard_before(self, now: int, pipelines: Collection[str] | None = None) -> None:
        """Let no decision received at or before `now` act: all of them, or those of the pipelines given.

        For the gate's own standstill, and for a worker's start, restart or new epoch.
        """
        raise NotImplementedError

    def shutdown(self, now: int, limit_ns: int) -> None:
        """Begin the end: every channel ramps to safe, and jumps there when `limit_ns` have passed. Step until `done`."""
        raise NotImplementedError

    @property
    def done(self) -> bool:
        """Whether every channel has made its last command: at safe, reason `shutdown`."""
        raise NotImplementedError

    def adopt(self, old: "Gate") -> None:
        """Go on where the gate of the old configuration stood: e-stop, outputs and velocities, sequence numbers."""
        raise NotImplementedError
