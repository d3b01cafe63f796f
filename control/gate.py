"""The pure core of the gate: all channels and the e-stop."""

from collections.abc import Collection, Iterable

from reflexarc.control.channel import Channel
from reflexarc.control.command import Command
from reflexarc.control.decision import Decision
from reflexarc.control.estop import EStop
from reflexarc.control.spec import ChannelSpec


class Gate:
    """Everything between decisions and commands; the shell brings messages and time, and sends commands.

    Each turn of the shell's loop: read `now` (monotonic ns) and `t` (UNIX ns); hand in every e-stop message,
    then every decision; send what `step` gives; save `estop.to_map()` if `estop.revision` has changed; wait
    until `next_deadline`. It starts with nothing received before `now` allowed to act.
    """

    __slots__ = ("_retired", "_words", "channels", "estop")

    def __init__(
        self, specs: Iterable[ChannelSpec], session: int, now: int, estop: EStop | None = None
    ) -> None:
        self.estop = estop or EStop(now)
        self.channels = {spec.name: Channel(spec, session, now) for spec in specs}
        self._retired: dict[str, Channel] = {}
        self._words = ""

    def accept(self, decision: Decision, now: int) -> str:
        """Hand a decision to its pipeline's channels; gives "" if one took it, else a word of refusal.

        The word is `pipeline` where no channel follows that pipeline. Each channel counts for itself in
        `counts`.
        """
        words = {
            channel.accept(decision, now)
            for channel in self.channels.values()
            if channel.spec.pipeline == decision.pipeline
        }
        return min(words, default="pipeline")

    def message(self, plain: object, now: int) -> str:
        """Hand in a decoded e-stop message; gives what it was (see `EStop.message`)."""
        word = self.estop.message(plain, now)
        self._heed(now)
        return word

    def step(self, now: int, t: int) -> list[Command]:
        """Make every command that is due, in the order of the configuration; `t` is their stamp (UNIX ns).

        Channels that the configuration no longer has come last, until they are at safe.
        """
        self.estop.tick(now)
        self._heed(now)
        commands = [channel.step(now, t) for channel in self._all if channel.deadline <= now]
        self._retired = {name: channel for name, channel in self._retired.items() if not channel.done}
        return commands

    def next_deadline(self) -> int | None:
        """When `step` is due if nothing arrives before; a time in the past is at once, None is never."""
        dues = [channel.deadline for channel in self._all]
        silence = self.estop.deadline
        if silence is not None:
            dues.append(silence)
        return min(dues, default=None)

    def discard_before(self, now: int, pipelines: Collection[str] | None = None) -> None:
        """Let no decision received at or before `now` act: of any pipeline, or of those given.

        For a standstill of the gate itself, and for a worker's start, restart or new epoch.
        """
        for channel in self._all:
            if pipelines is None or channel.spec.pipeline in pipelines:
                channel.discard_before(now)

    def shutdown(self, now: int, limit_ns: int) -> None:
        """Begin the end: every channel ramps to safe and, `limit_ns` from now, jumps; step until `done`."""
        for channel in self._all:
            channel.shutdown(now + limit_ns)

    @property
    def done(self) -> bool:
        """Whether every channel has made its last command: at safe, with the reason `shutdown`."""
        return all(channel.done for channel in self._all)

    def adopt(self, old: "Gate") -> None:
        """Go on where the gate before stood: e-stop, outputs and velocities, sequence numbers.

        A channel that is in the old one alone goes on here, as its own rules say, until it is at safe.
        """
        self.estop.adopt(old.estop)
        for channel in old._all:
            name = channel.spec.name
            if name in self.channels:
                self.channels[name].adopt(channel)
            else:
                channel.retire()
                self._retired[name] = channel
        self._tell(old._words)

    @property
    def _all(self) -> list[Channel]:
        return [*self.channels.values(), *self._retired.values()]

    def _heed(self, now: int) -> None:
        words = self.estop.words
        if words == self._words:
            return
        if not words:
            self.discard_before(now)
        self._tell(words)

    def _tell(self, words: str) -> None:
        self._words = words
        for channel in self._all:
            channel.stop(words)
