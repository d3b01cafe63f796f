"""From decisions to commands: states, reasons, ramps and jumps."""

from typing import Any

import pytest
from control_cases import MS, START, S, channel_spec, decision, value_spec

from reflexarc.control.channel import Channel
from reflexarc.control.command import Command

AGE = 700 * MS
PERIOD = 20 * MS
T = 1_700_000_000 * S


def channel(*values: Any, **parts: Any) -> Channel:
    return Channel(channel_spec(*values, **parts), 99, START)


def run(one: Channel, until: int) -> list[Command]:
    """Step whenever the channel asks for it."""
    commands = []
    while one.deadline <= until:
        now = max(one.deadline, START)
        commands.append(one.step(now, T + now))
    return commands


def running(**parts: Any) -> Channel:
    """A channel half a second into a ramp towards 6 at 4 a second."""
    one = channel(**parts)
    one.step(START, T)
    assert one.accept(decision(START + 1), START + 1) == ""
    run(one, START + 500 * MS)
    assert one.last is not None
    assert one.last.values["torque"] == pytest.approx(2.0, abs=0.09)
    return one


def torque(one: Channel) -> float:
    assert one.last is not None
    return one.last.values["torque"]


def told(one: Channel) -> tuple[str, str]:
    assert one.last is not None
    return one.last.state, one.last.reason


def test_starts_at_safe_and_says_so_at_once() -> None:
    one = channel(value_spec(minimum=-2.0, safe=-1.0))
    assert one.last is None
    assert not one.done
    assert one.deadline == START
    command = one.step(START + 1, T)
    assert command == Command("assist_torque", 99, 0, T, 0, -1, 100, "SAFE", "waiting", {"torque": -1.0})
    assert one.last is command
    assert one.deadline == START + PERIOD


def test_a_decision_is_followed_within_the_slew_and_named_as_the_source() -> None:
    one = channel()
    one.step(START, T)
    one.accept(decision(START + 7 * MS, source_t=444, source_seq=44), START + 7 * MS)
    assert one.deadline == START  # the command before it was a periodic one: at once
    command = one.step(START + 10 * MS, T)
    assert command.values == {"torque": pytest.approx(0.04)}
    assert (command.state, command.reason) == ("NORMAL", "")
    assert (command.source_t, command.source_seq) == (444, 44)
    assert command.seq == 1


def test_the_rate_is_bounded_and_the_period_kept() -> None:
    one = channel()
    one.step(START, T)
    for k in range(1, 1001):
        one.accept(decision(START + k * MS, seq=k), START + k * MS)
        if one.deadline <= START + k * MS:
            one.step(START + k * MS, T)
    assert one.last is not None
    assert one.last.seq == 200
    assert len(run(one, START + S + AGE - 1)) == 35


def test_a_refused_decision_is_no_news() -> None:
    one = running()
    due = one.deadline
    assert one.accept(decision(START + 2, seq=1), START + 500 * MS) == "seq"
    assert one.deadline == due
    assert one.counts == {"taken": 1, "seq": 1}


@pytest.mark.parametrize("trouble", ["unavailable", "nonfinite", "label", "value"])
def test_rule_6_no_usable_answer_is_degraded_while_the_last_one_lives_then_safe(trouble: str) -> None:
    bad: dict[str, dict[str, Any]] = {
        "unavailable": {"available": False},
        "nonfinite": {"values": {"x": float("nan")}},
        "label": {"label": "?", "values": {"x": 1.0}},
        "value": {},
    }
    one = channel(value_spec(source={"ABD": 6.0}), value_spec("x", "value.x"))
    one.step(START, T)
    one.accept(decision(START + 1, source_seq=44, values={"x": 1.0}), START + 1)
    run(one, START + 600 * MS)
    assert told(one) == ("NORMAL", "")
    assert one.accept(decision(START + 600 * MS, seq=2, **bad[trouble]), START + 600 * MS) == trouble
    assert one.deadline <= START + 605 * MS
    command = run(one, START + 605 * MS)[-1]
    assert (command.state, command.reason, command.source_seq) == ("DEGRADED", trouble, 44)
    commands = run(one, START + S)
    ends = [command for command in commands if command.state == "SAFE"]
    assert ends[0].t == T + START + 1 + AGE  # at once, not at the next period
    assert ends[0].reason == f"stale,{trouble}"
    assert (ends[0].source_t, ends[0].source_seq) == (0, -1)
    one.accept(decision(START + S, seq=3, values={"x": 1.0}), START + S)
    one.step(START + S + 5 * MS, T)
    assert told(one) == ("NORMAL", "")


def test_unavailable_from_the_start_is_safe_and_says_why() -> None:
    one = channel()
    one.accept(decision(0, available=False), START + 1)
    one.step(START + 2, T)
    assert told(one) == ("SAFE", "waiting,unavailable")


def test_rule_3_a_decision_that_dies_changes_the_state_at_once_and_ramps() -> None:
    one = running()
    commands = run(one, START + 1 + AGE)
    assert [command.state for command in commands][-2:] == ["NORMAL", "SAFE"]
    assert commands[-1].t == T + START + 1 + AGE
    assert commands[-1].reason == "stale"
    top = torque(one)
    before = commands[-2]
    assert top == pytest.approx(before.values["torque"] - 4e-9 * (commands[-1].t - before.t))
    run(one, START + 1 + AGE + PERIOD)
    assert torque(one) == pytest.approx(top - 0.08)
    run(one, START + 3 * S)
    assert torque(one) == 0.0
    assert told(one) == ("SAFE", "stale")


def test_a_decision_that_died_is_told_once_at_once_then_every_period() -> None:
    one = running()
    run(one, START + 1 + AGE)
    assert one.deadline == START + 1 + AGE + PERIOD


def test_stale_jumps_where_the_channel_says_so() -> None:
    one = running(stale="jump")
    run(one, START + AGE)
    assert torque(one) > 2.0
    run(one, START + 1 + AGE)
    assert torque(one) == 0.0
    assert told(one) == ("SAFE", "stale")


def test_jump_does_not_make_the_way_up_a_jump() -> None:
    one = running(stale="jump")
    run(one, START + S)
    assert one.last is not None
    before = one.last.t - T
    one.accept(decision(START + S, seq=2), START + S)
    one.step(START + S + 10 * MS, T)
    assert torque(one) == pytest.approx(4e-9 * (START + S + 10 * MS - before))


@pytest.mark.parametrize(("rule", "value"), [("jump", 0.0), ("ramp", None)])
def test_rule_2_a_stop_is_told_at_once_and_does_as_the_channel_says(rule: str, value: float | None) -> None:
    one = running(estop=rule)
    top = torque(one)
    assert one.deadline > START + 500 * MS
    one.stop("estop:button")
    assert one.deadline <= START + 500 * MS
    command = one.step(START + 500 * MS + 2, T)
    assert (command.state, command.reason) == ("ESTOP", "estop:button")
    assert (command.source_t, command.source_seq) == (0, -1)
    if value is None:
        assert top - 0.08 <= torque(one) < top
        run(one, START + 2 * S)
    assert torque(one) == 0.0
    one.accept(decision(START + 2 * S, seq=2), START + 2 * S)
    one.step(START + 2 * S, T)
    assert told(one) == ("ESTOP", "estop:button")
    assert torque(one) == 0.0


def test_rule_2_after_a_release_only_a_new_decision_acts() -> None:
    one = running()
    one.stop("estop:button")
    one.step(START + 500 * MS, T)
    one.accept(decision(START + 590 * MS, seq=2), START + 590 * MS)
    one.discard_before(START + 600 * MS)
    one.stop("")
    assert one.deadline <= START + 600 * MS
    one.step(START + 600 * MS, T)
    assert told(one) == ("SAFE", "waiting")
    assert torque(one) == 0.0
    assert one.accept(decision(START + 600 * MS, seq=3), START + 601 * MS) == "old"
    one.accept(decision(START + 602 * MS, seq=4), START + 602 * MS)
    one.step(START + 610 * MS, T)
    assert told(one) == ("NORMAL", "")


def test_a_barrier_falls_at_once_if_a_decision_acted() -> None:
    one = running()
    due = one.deadline
    one.discard_before(START)
    assert one.deadline == due
    one.discard_before(START + 500 * MS)
    assert one.deadline <= START + 500 * MS
    one.step(START + 500 * MS, T)
    assert told(one) == ("SAFE", "waiting")
    due = one.deadline
    one.discard_before(START + 510 * MS)
    assert one.deadline == due


def test_a_barrier_before_the_first_command_is_no_matter() -> None:
    one = channel()
    one.discard_before(START + 1)
    assert one.deadline == START


def test_shutdown_ramps_to_safe_and_is_done_there() -> None:
    one = running(stale="jump")
    top = torque(one)
    assert not one.done
    one.shutdown(START + 2 * S)
    assert one.deadline <= START + 500 * MS
    one.step(START + 500 * MS + 1, T)
    assert told(one) == ("SAFE", "shutdown")
    assert top - 0.08 <= torque(one) < top
    assert not one.done
    while not one.done:
        one.step(one.deadline, T)
    assert one.last is not None
    assert torque(one) == 0.0
    assert told(one) == ("SAFE", "shutdown")
    assert one.deadline < START + 1100 * MS


def test_shutdown_jumps_when_its_time_is_over() -> None:
    one = running()
    one.shutdown(START + 511 * MS)
    one.step(START + 500 * MS + 1, T)
    assert one.deadline == START + 511 * MS  # before the period ends
    one.step(START + 511 * MS - 1, T)
    assert torque(one) > 1.0
    assert not one.done
    one.step(START + 511 * MS, T)
    assert torque(one) == 0.0
    assert one.done
    assert one.deadline == START + 531 * MS


def test_shutdown_at_safe_needs_one_more_command() -> None:
    one = channel()
    one.step(START, T)
    one.shutdown(START + S)
    assert not one.done
    one.step(START + 1, T)
    assert one.done
    assert told(one) == ("SAFE", "shutdown")


@pytest.mark.parametrize(("rule", "ramps"), [("jump", False), ("ramp", True)])
def test_a_stop_in_a_shutdown_does_as_the_channel_says_until_its_end(rule: str, ramps: bool) -> None:
    one = running(estop=rule)
    one.shutdown(START + 600 * MS)
    one.stop("estop:a")
    one.step(START + 500 * MS + 1, T)
    assert told(one) == ("ESTOP", "estop:a,shutdown")
    assert one.done is not ramps
    one.step(START + 600 * MS + 1, T)
    assert torque(one) == 0.0
    assert one.done


def test_all_values_must_be_at_safe_for_the_end() -> None:
    one = channel(value_spec("a", {"ABD": 1.0}), value_spec("b", {"ABD": 6.0}))
    one.step(START, T)
    one.accept(decision(START + 1), START + 1)
    run(one, START + 600 * MS)
    one.shutdown(START + 3 * S)
    run(one, START + 900 * MS)
    assert one.last is not None
    assert one.last.values["a"] == 0.0
    assert not one.done
    run(one, START + 2 * S)
    assert one.done


def test_a_standstill_of_the_loop_is_no_leap() -> None:
    one = channel(max_age_ns=3600 * S, stall_ns=200 * MS)
    one.step(START, T)
    one.accept(decision(START + 1), START + 1)
    one.step(START + 3 * S, T)
    assert torque(one) == pytest.approx(4.0 * 0.22)


def test_each_value_has_limits_of_its_own() -> None:
    one = channel(
        value_spec("a", {"ABD": 6.0}, slew=1.0), value_spec("b", {"ABD": -6.0}, minimum=-1.0, slew=100.0)
    )
    one.step(START, T)
    one.accept(decision(START + 1), START + 1)
    assert one.step(START + 100 * MS, T).values == {"a": pytest.approx(0.1), "b": -1.0}


def test_a_new_configuration_is_no_step() -> None:
    old = running(stale="jump")
    at, seq = torque(old), old.last.seq if old.last else 0
    new = Channel(
        channel_spec(value_spec("extra"), value_spec("torque", {"ABD": 1.0}, slew=2.0)), 99, START + 505 * MS
    )
    new.adopt(old)
    assert new.deadline <= START + 505 * MS
    command = new.step(START + 510 * MS, T)
    assert command.seq == seq + 1
    assert (command.state, command.source_seq) == ("NORMAL", 40)
    assert command.values["torque"] == pytest.approx(at - 2.0 * (510 - 500) * 1e-3, abs=0.045)
    assert 0.0 < command.values["extra"] <= 4.0 * 0.02
    assert new.accept(decision(START + 510 * MS, seq=1), START + 510 * MS) == "seq"


def narrowed(**parts: Any) -> Channel:
    """A channel that stood near 2 when its maximum became 1."""
    new = Channel(
        channel_spec(value_spec(maximum=1.0), value_spec("extra"), max_age_ns=5 * S, **parts),
        99,
        START + 505 * MS,
    )
    new.adopt(running())
    return new


def test_a_new_configuration_ramps_into_its_bounds() -> None:
    new = narrowed()
    before, words = 2.0, []
    for k in range(1, 20):
        at = new.step(START + 500 * MS + k * 20 * MS, T).values["torque"]
        assert before - 0.0801 <= at <= before
        assert (at > 1.0) == (told(new) == ("DEGRADED", "bounds"))
        before = at
        words.append(told(new))
    assert at == 1.0
    assert words[0] == ("DEGRADED", "bounds")
    assert words[-1] == ("NORMAL", "")


def test_bounds_are_told_of_beside_every_other_reason() -> None:
    new = narrowed(estop="ramp")
    new.accept(decision(START + 505 * MS, seq=2, available=False), START + 505 * MS)
    new.step(START + 510 * MS, T)
    assert told(new) == ("DEGRADED", "unavailable,bounds")
    new.stop("estop:a")
    new.step(START + 515 * MS, T)
    assert told(new) == ("ESTOP", "estop:a,bounds")
    new.stop("")
    new.discard_before(START + 515 * MS)
    new.step(START + 520 * MS, T)
    assert told(new) == ("SAFE", "waiting,bounds")


def test_a_jump_ends_the_way_into_the_bounds() -> None:
    new = narrowed(estop="jump")
    new.stop("estop:a")
    new.step(START + 510 * MS, T)
    assert told(new) == ("ESTOP", "estop:a")
    assert torque(new) == 0.0


@pytest.mark.parametrize(("stale", "turns"), [("jump", 1), ("ramp", 26)])
def test_a_retired_channel_goes_to_safe_by_its_own_rule(stale: str, turns: int) -> None:
    one = running(stale=stale)
    begin = torque(one)
    one.retire()
    assert one.deadline <= START + 500 * MS
    now, count = START + 500 * MS, 0
    while not one.done:
        now += 20 * MS
        assert one.step(now, T).source_seq == -1
        count += 1
        assert told(one) == ("SAFE", "retired")
    assert torque(one) == 0.0
    assert begin > 1.9
    assert abs(count - turns) <= 2


def test_a_retired_channel_can_be_stopped_and_shut_down() -> None:
    one = running(estop="ramp")
    one.retire()
    one.stop("estop:a")
    one.step(START + 510 * MS, T)
    assert told(one) == ("ESTOP", "estop:a,retired")
    one.shutdown(START + S)
    one.step(START + 515 * MS, T)
    assert told(one) == ("ESTOP", "estop:a,shutdown")
    one.stop("")
    one.step(START + S, T)
    assert told(one) == ("SAFE", "shutdown")
    assert one.done


@pytest.mark.parametrize("pipeline", ["other", "another"])
def test_a_new_pipeline_needs_a_decision_of_its_own(pipeline: str) -> None:
    new = Channel(channel_spec(pipeline=pipeline), 99, START + 505 * MS)
    new.adopt(running())
    new.step(START + 510 * MS, T)
    assert told(new) == ("SAFE", "waiting")
    assert torque(new) > 1.8


@pytest.mark.parametrize("name", ["period_ns", "gap_ns", "max_age_ns", "ttl_ms", "stall_ns"])
def test_spans_of_time_are_above_zero(name: str) -> None:
    with pytest.raises(ValueError, match=f"assist_torque: {name} 0 must be above 0"):
        channel_spec(**{name: 0})
    channel_spec(**{name: 1})


@pytest.mark.parametrize("name", ["stale", "estop"])
def test_a_rule_is_ramp_or_jump(name: str) -> None:
    with pytest.raises(ValueError, match=f"assist_torque: {name} 'stop' must be"):
        channel_spec(**{name: "stop"})


@pytest.mark.parametrize("safe", [-0.1, 8.1, float("nan")])
def test_safe_is_within_the_bounds(safe: float) -> None:
    with pytest.raises(ValueError, match=f"torque: safe {safe} is not within 0.0 to 8.0"):
        value_spec(safe=safe)


@pytest.mark.parametrize("safe", [0.0, 8.0])
def test_the_end_is_at_safe_and_not_before_from_either_side(safe: float) -> None:
    one = channel(value_spec(source={"ABD": 4.0}, safe=safe))
    one.step(START, T)
    one.accept(decision(START + 1), START + 1)
    run(one, START + 600 * MS)
    one.shutdown(START + 5 * S)
    one.step(START + 610 * MS, T)
    assert not one.done
    run(one, START + 2 * S)
    assert torque(one) == safe
    assert one.done


@pytest.mark.parametrize("trouble", [{}, {"available": False}])
def test_slew_binds_while_a_decision_acts_wherever_a_jump_is_allowed(trouble: dict[str, Any]) -> None:
    one = channel(stale="jump", estop="jump")
    one.step(START, T)
    one.accept(decision(START + 1), START + 1)
    one.accept(decision(START + 1, seq=2, **trouble), START + 1)
    one.step(START + 100 * MS, T)
    assert torque(one) == pytest.approx(0.4)


def test_words_and_numbers_are_compared_by_value() -> None:
    jump, pipeline = (str(text, "ascii") for text in (b"jump", b"exercise"))
    old = channel(value_spec(safe=float("2.5")), pipeline=pipeline, stale=jump, estop=jump)
    old.accept(decision(START + 1), START + 1)
    old.step(START, T)
    new = Channel(channel_spec(value_spec(safe=float("2.5")), stale=jump, estop=jump), 99, START)
    new.adopt(old)
    new.step(START + 10 * MS, T)
    assert told(new) == ("NORMAL", "")
    new.discard_before(START + 10 * MS)
    new.step(START + 11 * MS, T)
    assert torque(new) == 2.5
    new.accept(decision(START + 11 * MS, seq=2), START + 11 * MS)
    new.step(START + 20 * MS, T)
    assert torque(new) > 2.5
    new.stop("estop:a")
    new.step(START + 21 * MS, T)
    assert torque(new) == 2.5
    again = Channel(channel_spec(value_spec(safe=float("2.5"))), 99, START)
    again.adopt(new)
    again.shutdown(START + S)
    again.step(START + 21 * MS, T)
    assert again.done
