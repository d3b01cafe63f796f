"""All channels and the e-stop together."""

from typing import Any

import pytest
from control_cases import MS, START, S, channel_spec, decision

from reflexarc.control.estop import EStop
from reflexarc.control.gate import Gate

T = 1_700_000_000 * S
ASSERT_NS = 300 * MS
STOP = {"stop": True, "id": "button"}
RESET = {"stop": False, "id": "button"}


def gate(estop: EStop | None = None, now: int = START, **parts: Any) -> Gate:
    specs = [
        channel_spec(name="one", **parts),
        channel_spec(name="two", **parts),
        channel_spec(name="other", pipeline="second", period_ns=30 * MS, **parts),
    ]
    return Gate(specs, 99, now, estop)


def states(one: Gate) -> list[tuple[str, str]]:
    return [(channel.last.state, channel.last.reason) for channel in one.channels.values() if channel.last]


def running() -> Gate:
    one = gate()
    one.step(START, T)
    assert one.accept(decision(START + 1), START + 1) == ""
    assert one.accept(decision(START + 1, pipeline="second"), START + 1) == ""
    one.step(START + 20 * MS, T)
    assert states(one) == [("NORMAL", "")] * 3
    return one


def test_gives_what_is_due_in_the_order_of_the_channels() -> None:
    one = gate()
    assert one.next_deadline() == START
    assert [command.channel for command in one.step(START, T)] == ["one", "two", "other"]
    assert one.next_deadline() == START + 20 * MS
    assert one.step(START + 20 * MS - 1, T) == []
    assert [command.channel for command in one.step(START + 20 * MS, T + 5)] == ["one", "two"]
    assert one.next_deadline() == START + 30 * MS
    assert [command.channel for command in one.step(START + 30 * MS, T)] == ["other"]


def test_a_decision_goes_to_the_channels_of_its_pipeline() -> None:
    one = gate()
    one.step(START, T)
    assert one.accept(decision(START + 1, pipeline=str(b"exercise", "ascii")), START + 1) == ""
    commands = one.step(START + 5 * MS, T + 7)
    assert [(command.channel, command.state, command.t) for command in commands] == [
        ("one", "NORMAL", T + 7),
        ("two", "NORMAL", T + 7),
    ]
    assert one.accept(decision(START + 1), START + 1) == "seq"
    assert one.accept(decision(START + 1, pipeline="third"), START + 1) == "pipeline"
    assert one.channels["one"].counts == {"taken": 1, "seq": 1}


def test_taken_by_one_channel_is_taken() -> None:
    one = Gate([channel_spec(name="a", max_age_ns=1), channel_spec(name="b")], 99, START)
    assert one.accept(decision(START + 1), START + 10) == ""
    assert one.channels["a"].counts == {"stale": 1}


def test_rule_2_a_stop_reaches_every_channel_and_a_release_leaves_nothing_old() -> None:
    one = running()
    now = START + 21 * MS
    assert one.message(STOP, now) == "stop"
    deadline = one.next_deadline()
    assert deadline is not None
    assert deadline <= now
    assert len(one.step(now, T)) == 3
    assert states(one) == [("ESTOP", "estop:button")] * 3
    now += ASSERT_NS
    one.accept(decision(now, seq=2), now)
    assert one.message(RESET, now) == "reset"
    assert len(one.step(now, T)) == 3
    assert states(one) == [("SAFE", "waiting")] * 3
    assert one.accept(decision(now, seq=3), now + 1) == "old"
    assert one.accept(decision(now + 1, seq=4), now + 1) == ""


def test_a_second_stop_is_told_at_once_and_one_release_of_two_moves_no_barrier() -> None:
    one = running()
    now = START + 21 * MS
    one.message(STOP, now)
    one.step(now, T)
    one.message({"stop": True, "id": "door"}, now)
    one.step(now, T)
    assert states(one) == [("ESTOP", "estop:button,estop:door")] * 3
    now += ASSERT_NS
    one.message(RESET, now)
    one.step(now, T)
    assert states(one) == [("ESTOP", "estop:door")] * 3


def test_a_stop_and_a_release_between_two_steps_still_moves_the_barrier() -> None:
    one = running()
    one.message(STOP, START + 21 * MS)
    one.message(RESET, START + 21 * MS + ASSERT_NS)
    one.step(START + 21 * MS + ASSERT_NS, T)
    assert states(one) == [("SAFE", "waiting")] * 3


def test_silence_of_the_line_stops_on_time() -> None:
    one = gate(EStop(START, 15 * MS))
    one.step(START, T)
    assert one.next_deadline() == START + 15 * MS
    one.message({"stop": False}, START + 10 * MS)
    assert one.next_deadline() == START + 20 * MS
    one.step(START + 20 * MS, T)
    assert one.next_deadline() == START + 25 * MS
    assert len(one.step(START + 25 * MS, T)) == 3
    assert states(one) == [("ESTOP", "estop:heartbeat")] * 3


def test_a_stop_from_before_the_start_is_in_the_first_command() -> None:
    saved = EStop(START)
    saved.restore({"latched": {"button": ""}}, START)
    one = gate(saved)
    one.step(START, T)
    assert states(one) == [("ESTOP", "estop:button")] * 3


def test_a_barrier_for_some_pipelines_leaves_the_others() -> None:
    one = running()
    one.discard_before(START + 21 * MS, ["second"])
    assert [command.channel for command in one.step(START + 21 * MS, T)] == ["other"]
    assert states(one) == [("NORMAL", "")] * 2 + [("SAFE", "waiting")]
    one.discard_before(START + 22 * MS)
    one.step(START + 22 * MS, T)
    assert states(one) == [("SAFE", "waiting")] * 3


def test_nothing_from_before_the_start_acts() -> None:
    assert gate().accept(decision(START), START + 1) == "old"


def test_shutdown_is_done_when_every_channel_is() -> None:
    one = running()
    one.shutdown(START + 21 * MS, 500 * MS)
    assert not one.done
    one.step(START + 21 * MS, T)
    assert states(one) == [("SAFE", "shutdown")] * 3
    now = START + 21 * MS
    while not one.done:
        deadline = one.next_deadline()
        assert deadline is not None
        now = max(now, deadline)
        one.step(now, T)
    assert now <= START + 60 * MS
    assert all(channel.last and channel.last.values == {"torque": 0.0} for channel in one.channels.values())


def test_shutdown_takes_no_longer_than_it_may() -> None:
    one = running()
    one.shutdown(START + 21 * MS, 2 * MS)
    one.step(START + 21 * MS, T)
    assert one.next_deadline() == START + 23 * MS
    one.step(START + 23 * MS, T)
    assert one.done


def test_a_new_configuration_goes_on_where_the_old_one_stood() -> None:
    old = running()
    specs = [channel_spec(name="two"), channel_spec(name="new")]
    new = Gate(specs, 99, START + 25 * MS, EStop(START + 25 * MS))
    new.adopt(old)
    commands = new.step(START + 25 * MS, T)
    assert [command.channel for command in commands] == ["two", "new", "one", "other"]
    assert [(command.state, command.reason) for command in commands[2:]] == [("SAFE", "retired")] * 2
    assert states(new) == [("NORMAL", ""), ("SAFE", "waiting")]
    last = new.channels["two"].last
    assert last is not None
    assert last.seq == 2


def alone(old: Gate, now: int = START + 25 * MS, **parts: Any) -> Gate:
    """The gate after, whose only channel is new: the others are retired."""
    new = Gate([channel_spec(name="new", pipeline="none", period_ns=S)], 99, now)
    new.adopt(old)
    return new


def test_a_channel_that_is_no_more_is_told_of_until_it_is_at_safe() -> None:
    new, values = alone(running()), []
    now = START + 21 * MS
    for _ in range(12):
        deadline = new.next_deadline()
        assert deadline is not None
        now = max(now + MS, deadline)
        values += [c.values["torque"] for c in new.step(now, T) if c.channel == "one"]
    assert values[0] > 0.0
    assert values == sorted(values, reverse=True)
    assert values[-1] == 0.0
    assert values.count(0.0) == 1
    assert now > START + 900 * MS
    assert new.accept(decision(now, seq=9), now) == "pipeline"


def test_a_retired_channel_is_stopped_and_ended_with_the_others() -> None:
    new = alone(running())
    new.message(STOP, START + 25 * MS)
    commands = new.step(START + 25 * MS, T)
    assert [c.reason for c in commands] == ["estop:button"] + ["estop:button,retired"] * 3
    new = alone(running())
    new.shutdown(START + 25 * MS, 500 * MS)
    commands = new.step(START + 25 * MS, T)
    assert [c.reason for c in commands] == ["shutdown"] * 4
    assert not new.done
    new.step(START + 525 * MS, T)
    assert new.done


def test_a_retired_channel_stays_retired_or_comes_back_where_it_stood() -> None:
    old = alone(running())
    at = old.step(START + 25 * MS, T)[1]
    assert (at.channel, at.seq) == ("one", 2)
    old.discard_before(START + 26 * MS)
    new = gate(now=START + 30 * MS)
    new.adopt(alone(old, START + 28 * MS))
    commands = new.step(START + 30 * MS, T)
    assert [c.channel for c in commands] == ["one", "two", "other", "new"]
    assert (commands[0].state, commands[0].reason, commands[0].seq) == ("SAFE", "waiting", 3)
    assert 0.0 < commands[0].values["torque"] < at.values["torque"]


def test_a_new_configuration_stays_stopped_and_can_be_released() -> None:
    old = running()
    old.message(STOP, START + 21 * MS)
    new = gate(now=START + 25 * MS)
    new.adopt(old)
    new.step(START + 25 * MS, T)
    assert states(new) == [("ESTOP", "estop:button")] * 3
    now = START + 21 * MS + ASSERT_NS
    assert new.message(RESET, now) == "reset"
    new.step(now, T)
    assert states(new) == [("SAFE", "waiting")] * 3


def test_a_new_channel_of_a_stopped_gate_is_stopped() -> None:
    old = running()
    old.message(STOP, START + 21 * MS)
    new = Gate([channel_spec(name="new")], 99, START + 25 * MS)
    new.adopt(old)
    assert len(new.step(START + 25 * MS, T)) == 4
    assert states(new) == [("ESTOP", "estop:button")]


@pytest.mark.parametrize(("heartbeat", "deadline"), [(0, None), (15 * MS, START + 15 * MS)])
def test_a_gate_without_channels_waits_for_the_line_alone(heartbeat: int, deadline: int | None) -> None:
    one = Gate([], 99, START, EStop(START, heartbeat))
    assert one.next_deadline() == deadline
    assert one.step(START, T) == []
    assert one.done
