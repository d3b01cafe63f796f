"""One channel: decisions in, commands out, under limits and two lifetimes."""

from collections import Counter

from reflexarc.control.command import DEGRADED, ESTOP, NO_SOURCE, NORMAL, SAFE, Command, State
from reflexarc.control.decision import Decision
from reflexarc.control.intake import Intake
from reflexarc.control.limiter import Limiter
from reflexarc.control.schedule import Schedule
from reflexarc.control.spec import ChannelSpec


class Channel:
    """Follows its pipeline's decisions while they live, and is safe otherwise; times are monotonic ns.

    It starts at safe. A decision lives from its `received` for `max_age_ns`. With none alive the state is
    SAFE and the values ramp or jump to safe, as `stale` says; a latched stop is ESTOP and does as `estop`
    says; a shutdown ramps. NORMAL, DEGRADED and every ramp are within slew and jerk. Values that a new
    configuration finds outside its bounds ramp into them: the reason says `bounds`, and NORMAL is
    DEGRADED.
    """

    __slots__ = (
        "_ends",
        "_intake",
        "_retired",
        "_schedule",
        "_seq",
        "_session",
        "_stop",
        "_values",
        "done",
        "last",
        "spec",
    )

    def __init__(self, spec: ChannelSpec, session: int, now: int) -> None:
        self.spec = spec
        self.last: Command | None = None
        """The last command made."""
        self.done = False
        """Whether the last command was one of a shutdown or of `retire` with all values at safe: the end."""
        self._session = session
        self._seq = 0
        stall_ns = spec.period_ns + spec.stall_ns
        self._values = [(value, Limiter(value.limits, value.safe, now, stall_ns)) for value in spec.values]
        self._intake = Intake(spec, now)
        self._schedule = Schedule(spec.period_ns, spec.gap_ns, now)
        self._stop = ""
        self._ends: int | None = None
        self._retired = False

    @property
    def counts(self) -> Counter[str]:
        """How many decisions were taken ("taken"), or refused (the word of the refusal)."""
        return self._intake.counts

    @property
    def deadline(self) -> int:
        """When the next command is due; a time in the past is at once.

        Every period; with a decision as soon as the rate allows; at once, whatever the rate, when a stop
        comes or goes, when the decision that acts dies, and when a shutdown begins or runs out.
        """
        due = self._schedule.deadline
        if self._acts:
            due = min(due, self._intake.expires)
        if self._ends is not None and not self.done:
            due = min(due, self._ends)
        return due

    def accept(self, decision: Decision, now: int) -> str:
        """Take a decision of its pipeline; gives "", or the word of its refusal.

        Out of order: session, epoch, seq. Out of time: old (not after the barrier), future, stale. Without a
        usable answer: unavailable, nonfinite, label, value; then the state is DEGRADED while the last good
        decision lives.
        """
        word = self._intake.accept(decision, now)
        if word in ("", self._intake.trouble):
            self._schedule.hasten()
        return word

    def stop(self, words: str) -> None:
        """Be stopped for the reasons given, until told ""; then call `discard_before`."""
        self._stop = words
        self._schedule.rush()

    def discard_before(self, now: int) -> None:
        """Let no decision received at or before `now` act, the present one included."""
        self._intake.discard_before(now)
        if self._acts and self._intake.decision is None:
            self._schedule.rush()

    def shutdown(self, deadline: int) -> None:
        """Ramp to safe from now on, and jump there at the deadline; step until `done`."""
        self._ends = deadline
        self._schedule.rush()

    def retire(self) -> None:
        """Go to safe as if no decision lived: no new configuration has this channel; step until `done`."""
        self._retired = True
        self._schedule.rush()

    def adopt(self, old: "Channel") -> None:
        """Go on where the channel that this one replaces stood, so that a new configuration is no step.

        Outputs and velocities by the names of the values (one of a new name starts at its safe); the sequence
        number; the decision that acts, read anew, where the pipeline is the same.
        """
        before = {value.name: limiter for value, limiter in old._values}
        for value, limiter in self._values:
            if value.name in before:
                limiter.adopt(before[value.name])
        if old.spec.pipeline == self.spec.pipeline:
            self._intake.adopt(old._intake)
        self._schedule.adopt(old._schedule)
        self._seq = old._seq

    def step(self, now: int, t: int) -> Command:
        """Make the next command, stamped `t` (UNIX ns)."""
        state, reason = self._judge(now)
        self._move(state, now)
        if any(limiter.outside for _, limiter in self._values):
            state = DEGRADED if state == NORMAL else state
            reason = f"{reason},bounds" if reason else "bounds"
        decision = self._intake.decision if state in (NORMAL, DEGRADED) else None
        command = Command(
            channel=self.spec.name,
            session=self._session,
            seq=self._seq,
            t=t,
            source_t=decision.source_t if decision else 0,
            source_seq=decision.source_seq if decision else NO_SOURCE,
            ttl_ms=self.spec.ttl_ms,
            state=state,
            reason=reason,
            values={value.name: limiter.value for value, limiter in self._values},
        )
        self._seq += 1
        self._schedule.sent(now)
        self.last = command
        return command

    @property
    def _acts(self) -> bool:
        return self.last is not None and self.last.state in (NORMAL, DEGRADED)

    def _judge(self, now: int) -> tuple[State, str]:
        end = "shutdown" if self._ends is not None else "retired" if self._retired else ""
        if self._stop:
            return ESTOP, f"{self._stop},{end}" if end else self._stop
        if end:
            return SAFE, end
        intake = self._intake
        if intake.lives(now):
            return (DEGRADED, intake.trouble) if intake.trouble else (NORMAL, "")
        word = "stale" if intake.decision else "waiting"
        return SAFE, f"{word},{intake.trouble}" if intake.trouble else word

    def _move(self, state: State, now: int) -> None:
        if state in (NORMAL, DEGRADED):
            for (_, limiter), target in zip(self._values, self._intake.targets, strict=True):
                limiter.step(target, now)
            return
        jumps = self._jumps(state, now)
        for value, limiter in self._values:
            if jumps:
                limiter.jump(value.safe, now)
            else:
                limiter.step(value.safe, now)
        self.done = (self._retired or self._ends is not None) and all(
            limiter.value == value.safe for value, limiter in self._values
        )

    def _jumps(self, state: State, now: int) -> bool:
        if self._ends is not None and now >= self._ends:
            return True
        if state == ESTOP:
            return self.spec.estop == "jump"
        return self.spec.stale == "jump" and self._ends is None
