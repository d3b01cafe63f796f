"""No sequence of inputs whatever yields a command out of its limits.

The machine drives a whole gate with decisions good and bad, e-stop messages, barriers, new configurations,
restarts, shutdowns and any course of time, and judges every command from the outside, by the one before it.
"""

import json
import math
from dataclasses import dataclass, replace
from typing import Any

from control_cases import MS, START, S, channel_spec, decision, slack, value_spec
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from reflexarc.control.command import Command
from reflexarc.control.estop import EStop
from reflexarc.control.gate import Gate
from reflexarc.control.limiter import Limiter, Limits
from reflexarc.control.policy import Classify
from reflexarc.control.spec import ChannelSpec

STALL = 200 * MS
T = 1_700_000_000 * S

anything = st.floats() | st.floats(-10, 10) | st.sampled_from([math.nan, math.inf, -math.inf, 1e308, -1e308])
spans = st.integers(0, 50 * MS) | st.integers(0, 2 * S) | st.sampled_from([1, MS, 20 * MS, 3600 * S])
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
messages = junk | st.fixed_dictionaries(
    {"stop": st.sampled_from([False, None, 0, ""]) | junk},
    optional={"id": st.sampled_from(["a", "b", "heartbeat", "unnamed", ""]) | junk, "reason": junk},
)


@st.composite
def limits(draw: st.DrawFn, largest: float = 1e6) -> Limits:
    low, high = sorted((draw(st.floats(-largest, largest)), draw(st.floats(-largest, largest))))
    slew = draw(st.floats(1e-3, 1e3) | st.just(math.inf))
    return Limits(low, high, slew, draw(st.just(0.0) | st.floats(1e-2, 1e4)))


@dataclass
class Observer:
    """Judges the moves of one value as a subscriber can, who knows the limits and the stamps."""

    limits: Limits
    stall: int
    value: float
    now: int
    velocity: float | None = 0.0
    blur: float = 0.0  # what rounding may have added to the velocity

    def move(self, value: float, now: int) -> None:
        elapsed = (now - self.now) * 1e-9
        if elapsed <= 0:
            assert value == self.value
            return
        limits, dt = self.limits, min(elapsed, self.stall * 1e-9)
        way, noise = value - self.value, slack(limits.minimum, limits.maximum, self.value)
        assert min(limits.minimum, self.value) <= value <= max(limits.maximum, self.value)
        assert abs(way) <= limits.slew * dt * (1 + 1e-9) + noise
        velocity, blur = way / elapsed, noise / elapsed
        if limits.jerk and now - self.now > self.stall:
            assert abs(way) <= limits.jerk * dt * dt * (1 + 1e-9) + noise
        elif limits.jerk and self.velocity is not None:
            close = (limits.jerk * dt + abs(velocity)) * 1e-9 + blur + self.blur
            assert abs(velocity - self.velocity) <= limits.jerk * dt + close
        self.value, self.now, self.velocity, self.blur = value, now, velocity, blur

    def jump(self, value: float, now: int) -> None:
        assert self.limits.minimum <= value <= self.limits.maximum
        self.value, self.now, self.velocity, self.blur = value, max(now, self.now), 0.0, 0.0


course = st.lists(st.tuples(st.floats(-2e6, 2e6), st.integers(-MS, 300 * MS)), max_size=40)


@settings(max_examples=300, deadline=None)
@given(limits(), st.floats(-1e6, 1e6), course)
def test_a_limiter_keeps_its_limits(bounds: Limits, start: float, steps: list[tuple[float, int]]) -> None:
    one = Limiter(bounds, start, START, STALL)
    observer, now = Observer(bounds, STALL, one.value, START), START
    for target, span in steps:
        now += span
        observer.move(one.step(target, now), now)


@settings(max_examples=300, deadline=None)
@given(
    limits(10.0),
    st.floats(0, 1),
    st.floats(0, 1),
    st.lists(st.integers(1, 20 * MS) | st.integers(1, STALL), min_size=1, max_size=9),
)
def test_a_target_that_stays_is_never_passed(
    bounds: Limits, start: float, goal: float, times: list[int]
) -> None:
    span = bounds.maximum - bounds.minimum
    start, goal = bounds.minimum + start * span, bounds.minimum + goal * span
    one, now = Limiter(bounds, start, START, STALL), START
    for elapsed in times * 20:
        now += elapsed
        before = one.value
        after = one.step(goal, now)
        noise = slack(bounds.minimum, bounds.maximum)
        assert min(before, goal) - noise <= after <= max(before, goal) + noise


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 4),
    st.integers(1, 4),
    st.lists(st.none() | st.lists(anything, min_size=3, max_size=3), max_size=30),
)
def test_a_label_has_been_seen_hold_times(hold: int, smooth: int, course: list[list[float] | None]) -> None:
    policy, label = Classify("ABC", 0.5, hold, smooth), "undecided"
    for k, scores in enumerate(course, 1):
        verdict = policy.unavailable() if scores is None else policy.update(scores)
        sound = scores is not None and all(map(math.isfinite, scores))
        assert verdict.available == sound
        if sound and verdict.label not in ("undecided", label):
            assert k >= hold
            assert verdict.confidence >= 0.5
        if sound:
            label = verdict.label


@st.composite
def value_specs(draw: st.DrawFn, name: str) -> Any:
    bounds = draw(limits(100.0))
    safe = bounds.minimum + draw(st.floats(0, 1)) * (bounds.maximum - bounds.minimum)
    table = {"A": draw(st.floats(-200, 200)), "B": draw(st.floats(-200, 200))}
    tables: list[dict[str, float] | str] = ["value.x", table, {**table, "otherwise": 1.0}]
    source = draw(st.sampled_from(tables))
    return replace(value_spec(name, source), limits=bounds, safe=min(safe, bounds.maximum))


@st.composite
def channel_specs(draw: st.DrawFn) -> list[ChannelSpec]:
    return [
        channel_spec(
            *(draw(value_specs(f"v{k}")) for k in range(draw(st.integers(1, 2)))),
            name=name,
            pipeline=draw(st.sampled_from(["first", "second"])),
            period_ns=draw(st.sampled_from([2 * MS, 20 * MS, 300 * MS])),
            gap_ns=draw(st.sampled_from([1, 5 * MS])),
            max_age_ns=draw(st.sampled_from([5 * MS, 100 * MS, 5 * S])),
            stale=draw(st.sampled_from(["ramp", "jump"])),
            estop=draw(st.sampled_from(["ramp", "jump"])),
            stall_ns=STALL,
        )
        for name in ("one", "two")
    ]


class GateMachine(RuleBasedStateMachine):
    """`taken` holds the receipts of the decisions that may act, by pipeline: those since the last barrier."""

    @initialize(specs=channel_specs(), heartbeat=st.sampled_from([0, 0, 0, 5 * S]))
    def start(self, specs: list[ChannelSpec], heartbeat: int) -> None:
        self.now, self.heartbeat = START, heartbeat
        self.session = self.epoch = self.seq = 0
        self.begin(specs, EStop(self.now, heartbeat))

    def begin(self, specs: list[ChannelSpec], estop: EStop) -> None:
        self.gate = Gate(specs, 99, self.now, estop)
        self.ends: int | None = None
        self.barrier = dict.fromkeys(["first", "second"], self.now)
        self.taken: dict[str, list[int]] = {"first": [], "second": []}
        self.next_seq = {spec.name: 0 for spec in specs}
        self.specs = {spec.name: spec for spec in specs}
        self.observers = {spec.name: self.observe(spec) for spec in specs}

    def observe(self, spec: ChannelSpec) -> list[Observer]:
        stall = spec.period_ns + spec.stall_ns
        return [Observer(value.limits, stall, value.safe, self.now) for value in spec.values]

    @rule(span=spans, turns=st.integers(0, 60))
    def pass_time(self, span: int, turns: int) -> None:
        """Turn the loop on time for some turns, then once more when the span is over."""
        end = self.now + span
        for _ in range(turns):
            deadline = self.gate.next_deadline()
            if deadline is None or deadline >= end:
                break
            self.now = max(self.now, deadline)
            self.turn()
        self.now = max(self.now, end)
        self.turn()

    def turn(self) -> None:
        commands = self.gate.step(self.now, T + self.now)
        self.note_release()
        for command in commands:
            self.judge(command)
        deadline = self.gate.next_deadline()
        assert deadline is not None
        assert deadline > self.now

    @rule(
        pipeline=st.sampled_from(["first", "second"]),
        label=st.sampled_from(["A", "B", "?", "undecided"]),
        x=anything,
        confidence=st.just(0.9) | anything,
        age=st.integers(-20 * MS, 100 * MS) | st.sampled_from([0, 50 * MS, 3600 * S]),
        available=st.sampled_from([True, True, True, False]),
        back=st.sampled_from([1, 1, 1, 1, 0, -3]),
        session=st.sampled_from([0] * 9 + [-1, 1]),
        epoch=st.sampled_from([0] * 9 + [-1, 1]),
    )
    def decide(
        self, pipeline: str, x: float, age: int, back: int = 1, session: int = 0, epoch: int = 0, **parts: Any
    ) -> None:
        self.seq += back
        self.session, self.epoch = self.session + max(session, 0), self.epoch + max(epoch, 0)
        one = decision(
            self.now - age,
            pipeline=pipeline,
            session=self.session + min(session, 0),
            epoch=self.epoch + min(epoch, 0),
            seq=self.seq,
            values={"x": x},
            **parts,
        )
        word = self.gate.accept(one, self.now)
        if word == "":
            assert one.available
            assert one.received > self.barrier[pipeline]
            assert math.isfinite(one.confidence)
            self.taken[pipeline].append(one.received)

    @rule(plain=messages)
    def message(self, plain: object) -> None:
        words = self.gate.estop.words
        self.gate.message(plain, self.now)
        sound = (
            isinstance(plain, dict) and plain.get("stop") is False and isinstance(plain.get("id", ""), str)
        )
        assert sound or self.gate.estop.latched
        if self.gate.estop.words != words:
            assert all(channel.deadline <= self.now for channel in self.gate.channels.values())
        self.note_release()

    @rule(
        pipelines=st.sampled_from([["first"], ["second"], ["first", "second"]]),
        answers=st.lists(
            st.tuples(st.sampled_from("ABABAB?-"), st.floats(-300, 300)), min_size=1, max_size=10
        ),
        every=st.sampled_from([MS, 20 * MS, 150 * MS]),
        age=st.sampled_from([0, 4 * MS, 90 * MS]),
    )
    def follow(self, pipelines: list[str], answers: list[tuple[str, float]], every: int, age: int) -> None:
        """A stretch of ordinary work: decisions mostly sound, the loop on time."""
        for label, x in answers:
            for pipeline in pipelines:
                self.decide(pipeline=pipeline, label=label, x=x, age=age, available=label != "-")
            self.pass_time(every, 20)

    @rule(ident=st.sampled_from("abc"))
    def press(self, ident: str) -> None:
        self.message({"stop": True, "id": ident})

    @precondition(lambda self: self.gate.estop.latched)
    @rule(wait=st.sampled_from([0, 300 * MS, 5 * S]))
    def release(self, wait: int) -> None:
        self.now += wait
        self.message({"stop": False})
        for ident in list(self.gate.estop.latched):
            self.message({"stop": False, "id": ident})

    was_stopped = False

    def note_release(self) -> None:
        stopped = bool(self.gate.estop.latched)
        if self.was_stopped and not stopped:
            self.put_barrier(["first", "second"])
        self.was_stopped = stopped

    def put_barrier(self, pipelines: list[str]) -> None:
        for name in pipelines:
            self.barrier[name] = self.now
            self.taken[name] = [received for received in self.taken[name] if received > self.now]

    @rule(pipelines=st.sampled_from([None, ["first"], ["second"]]))
    def discard(self, pipelines: list[str] | None) -> None:
        self.gate.discard_before(self.now, pipelines)
        self.put_barrier(pipelines or ["first", "second"])

    @precondition(lambda self: self.ends is None)
    @rule(span=st.sampled_from([0, MS, S]), seldom=st.integers(0, 4))
    def shutdown(self, span: int, seldom: int) -> None:
        if seldom:
            return
        self.ends = self.now + span
        self.gate.shutdown(self.now, span)

    @precondition(lambda self: self.ends is None)
    @rule(specs=channel_specs(), kept=st.sampled_from([["one"], ["two"], ["one", "two"], ["one", "two"]]))
    def reload(self, specs: list[ChannelSpec], kept: list[str]) -> None:
        specs = [spec for spec in specs if spec.name in kept]
        new = Gate(specs, 99, self.now, EStop(self.now, self.heartbeat))
        new.adopt(self.gate)
        self.gate = new
        for spec in specs:
            old = {f"v{k}": observer for k, observer in enumerate(self.observers.get(spec.name, []))}
            self.specs[spec.name] = spec
            self.next_seq.setdefault(spec.name, 0)
            self.observers[spec.name] = self.observe(spec)
            for value, observer in zip(spec.values, self.observers[spec.name], strict=True):
                if value.name in old:
                    before = old[value.name]
                    observer.value, observer.now, observer.velocity = before.value, before.now, None

    @rule()
    def restart(self) -> None:
        """Kill the gate and start it again from what it saved."""
        saved = json.dumps(self.gate.estop.to_map())
        estop = EStop(self.now, self.heartbeat)
        estop.restore(json.loads(saved), self.now)
        assert estop.words == self.gate.estop.words
        self.begin([channel.spec for channel in self.gate.channels.values()], estop)

    def judge(self, command: Command) -> None:
        spec = self.specs[command.channel]
        assert command.seq == self.next_seq[command.channel]
        self.next_seq[command.channel] += 1
        assert (command.t, command.ttl_ms, command.session) == (T + self.now, spec.ttl_ms, 99)
        assert all(map(math.isfinite, command.values.values()))
        self.judge_state(command, spec)
        ended = self.ends is not None and self.now >= self.ends
        jumps = (
            ended
            or (command.state == "ESTOP" and spec.estop == "jump")
            or (command.state == "SAFE" and spec.stale == "jump" and self.ends is None)
        )
        for value, observer in zip(spec.values, self.observers[spec.name], strict=True):
            if jumps:
                assert command.values[value.name] == value.safe
                observer.jump(value.safe, self.now)
            else:
                observer.move(command.values[value.name], self.now)
        outside = [
            not value.limits.minimum <= command.values[value.name] <= value.limits.maximum
            for value in spec.values
        ]
        assert any(outside) == ("bounds" in command.reason.split(","))
        if spec.name not in self.gate.channels:
            assert command.state in ("SAFE", "ESTOP")
            if all(command.values[value.name] == value.safe for value in spec.values):
                del self.specs[spec.name], self.observers[spec.name], self.next_seq[spec.name]

    def judge_state(self, command: Command, spec: ChannelSpec) -> None:
        acting = command.state in ("NORMAL", "DEGRADED")
        assert (command.state == "ESTOP") == bool(self.gate.estop.latched)
        assert (command.reason == "") == (command.state == "NORMAL")
        assert acting or command.source_seq == -1
        if acting:
            assert self.ends is None
            newest = max(self.taken[spec.pipeline])
            assert self.now < newest + spec.max_age_ns
        assert ("shutdown" in command.reason) == (self.ends is not None)


TestGate = GateMachine.TestCase
TestGate.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
