"""Which decision acts, and until when."""

import math
from typing import Any

import pytest
from control_cases import MS, START, S, channel_spec, decision, value_spec

from reflexarc.control.intake import Intake

AGE, FUTURE_NS, REMEMBERED = 700 * MS, 10 * MS, 16


def intake(**parts: Any) -> Intake:
    return Intake(channel_spec(**parts), START)


def follows(**parts: Any) -> Intake:
    """An intake whose decision was received a second after the start."""
    one = intake(**parts)
    assert one.accept(decision(START + S, seq=1, epoch=1), START + S) == ""
    return one


def test_starts_with_nothing() -> None:
    one = intake()
    assert not one.lives(START - 1)
    assert one.decision is None
    assert one.trouble == ""
    assert one.counts == {}


def test_a_decision_lives_its_age_from_its_receipt() -> None:
    one = intake()
    assert one.accept(decision(START + S), START + S + 300 * MS) == ""
    assert one.targets == [6.0]
    assert one.expires == START + S + AGE
    assert one.lives(START + S + AGE - 1)
    assert not one.lives(START + S + AGE)
    assert not one.lives(START + S + AGE + 1)
    assert one.counts == {"taken": 1}


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ({"seq": 1, "epoch": 1}, "seq"),
        ({"seq": 0, "epoch": 1}, "seq"),
        ({"seq": 2, "epoch": 0}, "epoch"),
        ({"seq": 2, "epoch": 1}, ""),
        ({"seq": 9, "epoch": 1}, ""),
        ({"seq": 0, "epoch": 2}, ""),
        ({"seq": 0, "epoch": 0, "session": 8}, ""),
    ],
)
def test_nothing_goes_back(parts: dict[str, Any], word: str) -> None:
    one = follows()
    assert one.accept(decision(START + S + MS, label="ROW", **parts), START + S + MS) == word
    assert one.targets == [6.0 if word else 3.0]
    assert one.counts[word or "taken"] == (1 if word else 2)


def test_a_session_that_was_replaced_is_over() -> None:
    one = follows()
    assert one.accept(decision(START + S + 1, session=8, seq=1), START + S + 1) == ""
    assert one.accept(decision(START + S + 2, session=7, seq=5, epoch=1), START + S + 2) == "session"
    assert one.accept(decision(START + S + 2, session=8, seq=2), START + S + 2) == ""


def test_replaced_sessions_are_remembered_up_to_a_bound() -> None:
    one = follows()
    for k in range(1, REMEMBERED + 1):
        assert one.accept(decision(START + S + k, session=7 + k), START + S + k) == ""
    assert one.accept(decision(START + S + 50, session=7), START + S + 50) == "session"
    assert one.accept(decision(START + S + 50, session=100), START + S + 50) == ""
    assert one.accept(decision(START + S + 60, session=7), START + S + 60) == ""


@pytest.mark.parametrize(
    ("received", "now", "word"),
    [
        (START, START + 1, "old"),
        (START - S, START + 1, "old"),
        (START + 1, START + 1, ""),
        (START + S, START + S - FUTURE_NS, ""),
        (START + S, START + S - FUTURE_NS - 1, "future"),
        (START + S, START + S + AGE - 1, ""),
        (START + S, START + S + AGE, "stale"),
        (START + S, START + S + AGE + 1, "stale"),
    ],
)
def test_what_comes_out_of_time_is_refused(received: int, now: int, word: str) -> None:
    one = intake()
    assert one.accept(decision(received), now) == word
    assert one.lives(now) == (not word)
    assert one.trouble == ""


def test_rule_4_one_from_the_future_poisons_nothing() -> None:
    one = intake()
    assert one.accept(decision(START + 3600 * S, seq=10**9, epoch=10**6, session=1), START + 1) == "future"
    assert one.accept(decision(START + 1, seq=1), START + 2) == ""


def test_a_little_in_the_future_lives_no_longer() -> None:
    one = intake()
    one.accept(decision(START + 9 * MS), START + 5 * MS)
    assert one.expires == START + 5 * MS + AGE


def test_rule_6_unavailable_leaves_the_last_good_one_and_is_remembered() -> None:
    one = follows()
    gone = decision(0, seq=2, epoch=1, available=False, label="unavailable")
    assert one.accept(gone, START + S + MS) == "unavailable"
    assert one.trouble == "unavailable"
    assert one.targets == [6.0]
    assert one.expires == START + S + AGE
    assert one.lives(START + S + AGE - 1)
    assert one.accept(gone, START + S + MS) == "seq"
    assert one.trouble == "unavailable"
    assert one.accept(decision(START + S + 2 * MS, seq=3, epoch=1), START + S + 2 * MS) == ""
    assert one.trouble == ""
    assert one.counts == {"taken": 2, "unavailable": 1, "seq": 1}


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_rule_1_what_is_not_finite_is_refused_whole(number: float) -> None:
    one = intake(values=(value_spec("a", "value.a"), value_spec("b", "value.b")))
    assert one.accept(decision(START + 1, values={"a": 1.0, "b": 2.0}), START + 1) == ""
    for seq, (a, b) in enumerate([(number, 5.0), (5.0, number), (number, number)], 2):
        assert one.accept(decision(START + 2, seq=seq, values={"a": a, "b": b}), START + 2) == "nonfinite"
        assert one.targets == [1.0, 2.0]
        assert one.trouble == "nonfinite"
    bad = decision(START + 2, seq=9, values={"a": 5.0, "b": 5.0}, confidence=number)
    assert one.accept(bad, START + 2) == "nonfinite"
    assert one.targets == [1.0, 2.0]
    assert one.expires == START + 1 + AGE


def test_what_does_not_hold_the_values_is_refused() -> None:
    one = intake(values=(value_spec("a", {"ABD": 1.0}), value_spec("b", "value.b")))
    assert one.accept(decision(START + 1, label="PEN", values={"b": 1.0}), START + 1) == "label"
    assert one.trouble == "label"
    assert one.accept(decision(START + 1, seq=2), START + 1) == "value"
    assert one.trouble == "value"
    assert not one.lives(START + 1)


def test_rule_2_nothing_received_before_the_barrier_acts() -> None:
    one = follows()
    one.accept(decision(0, seq=2, epoch=1, available=False), START + S)
    one.discard_before(START + 2 * S)
    assert not one.lives(START + S)
    assert one.trouble == ""
    assert one.accept(decision(START + 2 * S, seq=3, epoch=1), START + 2 * S) == "old"
    one.discard_before(START + S)  # the barrier does not come back
    assert one.accept(decision(START + 2 * S, seq=3, epoch=1), START + 2 * S) == "old"
    assert one.accept(decision(START + 2 * S + 1, seq=3, epoch=1), START + 2 * S + 1) == ""


def test_a_barrier_forgets_trouble_without_a_decision_too() -> None:
    one = intake()
    one.accept(decision(0, available=False), START + 1)
    one.discard_before(START + 2)
    assert one.trouble == ""


def test_a_decision_received_after_the_barrier_goes_on() -> None:
    one = follows()
    one.accept(decision(0, seq=2, epoch=1, available=False), START + S)
    one.discard_before(START + S - 1)
    assert one.lives(START + S)
    assert one.trouble == "unavailable"
    one.discard_before(START + S)
    assert not one.lives(START + S)


def test_adopts_order_barrier_counts_and_the_decision_read_anew() -> None:
    old = follows()
    old.discard_before(START + S - 1)
    old.accept(decision(0, seq=2, epoch=1, available=False), START + S)
    new = Intake(channel_spec(value_spec(source={"ABD": 5.0}), max_age_ns=100 * MS), START + 2 * S)
    new.adopt(old)
    assert new.targets == [5.0]
    assert new.expires == START + S + 100 * MS
    assert new.trouble == "unavailable"
    assert new.counts == {"taken": 1, "unavailable": 1}
    assert new.accept(decision(START + S, seq=2, epoch=1), START + S) == "seq"
    assert new.accept(decision(START + S - 1, seq=3, epoch=1), START + S) == "old"
    assert new.accept(decision(START + S, seq=3, epoch=1), START + S) == ""


def test_adopts_no_decision_that_it_cannot_read() -> None:
    new = Intake(channel_spec(value_spec(source={"ROW": 5.0})), START)
    new.adopt(follows())
    assert new.trouble == "label"
    assert new.decision is None


def test_adopts_from_one_that_has_none() -> None:
    new = intake()
    new.adopt(intake())
    assert new.decision is None
    assert new.trouble == ""


def test_sessions_are_numbers_in_no_order() -> None:
    one = intake()
    for k, session in enumerate([2**62, 5, 2**61], 1):
        assert one.accept(decision(START + k, session=session), START + k) == ""
    for session in (2**62, 5):
        assert one.accept(decision(START + 9, session=session, seq=9), START + 9) == "session"


def test_numbers_are_compared_by_value() -> None:
    def again(seq: int) -> str:
        return one.accept(
            decision(START + seq, session=int("9" * 18), epoch=int("8" * 18), seq=seq), START + seq
        )

    one = intake()
    assert [again(seq) for seq in (5, 6, 6, 4, 7)] == ["", "", "seq", "seq", ""]
    assert one.accept(decision(START + 50), START + 50) == ""
    assert again(8) == "session"


def test_a_long_session_forgets_none_before_it() -> None:
    one = intake()
    one.accept(decision(START + 1, session=5), START + 1)
    for seq in range(2, 2 * REMEMBERED):
        assert one.accept(decision(START + seq, session=int("9" * 18), seq=seq), START + seq) == ""
    assert one.accept(decision(START + 90, session=5, seq=99), START + 90) == "session"
