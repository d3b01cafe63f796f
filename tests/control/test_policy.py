"""Smoothing, threshold and hold."""

import math

import pytest

from reflexarc.control.policy import Classify

LABELS = ("A", "B", "C")
A, B, C = (0.8, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.1, 0.8)
UNSURE = (0.4, 0.3, 0.3)


def labels(policy: Classify, *scores: tuple[float, ...] | None) -> list[str]:
    return [(policy.unavailable() if each is None else policy.update(each)).label for each in scores]


def test_a_label_needs_hold_updates_in_a_row() -> None:
    policy = Classify(LABELS, threshold=0.6, hold=3)
    assert labels(policy, A, A, B, A, A, A) == ["undecided"] * 5 + ["A"]


def test_a_label_is_held_until_another_is_sure() -> None:
    policy = Classify(LABELS, threshold=0.6, hold=2)
    assert labels(policy, A, A, B, A, B, B) == ["undecided", "A", "A", "A", "A", "B"]


def test_a_label_that_nothing_backs_is_given_up() -> None:
    policy = Classify(LABELS, threshold=0.6, hold=3)
    assert labels(policy, A, A, A, UNSURE, B, C, B)[2:] == ["A", "A", "A", "undecided", "undecided"]


def test_undecided_needs_hold_updates_too() -> None:
    policy = Classify(LABELS, threshold=0.6, hold=2)
    assert labels(policy, A, A, UNSURE, A, UNSURE, UNSURE) == ["undecided", "A", "A", "A", "A", "undecided"]


def test_the_threshold_itself_is_enough() -> None:
    assert Classify(LABELS, threshold=0.8).update(A) == ("A", 0.8)
    assert Classify(LABELS, threshold=0.81).update(A) == ("undecided", 0.8)


def test_the_mean_of_the_last_scores_counts() -> None:
    policy = Classify(("A", "B"), threshold=0.6, smooth=2)
    assert policy.update((1.0, 0.0)) == ("A", 1.0)
    assert policy.update((0.0, 1.0)) == ("undecided", 0.5)
    assert policy.update((0.25, 0.75)) == ("B", 0.875)


def test_the_confidence_is_of_the_label_that_is_held() -> None:
    policy = Classify(LABELS, threshold=0.6, hold=2)
    labels(policy, A, A)
    assert policy.update(B) == ("A", 0.1)


def test_the_first_of_equals_is_best() -> None:
    assert Classify(("A", "B"), threshold=0.5).update((0.5, 0.5)) == ("A", 0.5)


def test_rule_6_unavailable_is_an_answer_of_its_own() -> None:
    policy = Classify(LABELS, threshold=0.6, hold=2)
    nothing = policy.unavailable()
    assert nothing == ("unavailable", 0.0)
    assert not nothing.available
    assert policy.update(UNSURE).available
    assert labels(policy, None, None, None) == ["unavailable"] * 3


def test_one_window_without_an_answer_does_not_lose_the_label() -> None:
    policy = Classify(LABELS, threshold=0.6, hold=2)
    assert labels(policy, A, A, None, A) == ["undecided", "A", "unavailable", "A"]
    assert labels(policy, None, None, A, A) == ["unavailable", "unavailable", "undecided", "A"]


def test_smoothing_begins_anew_after_a_gap() -> None:
    policy = Classify(("A", "B"), threshold=0.6, smooth=4)
    labels(policy, (1.0, 0.0), (1.0, 0.0), None)
    assert policy.update((0.0, 1.0)) == ("B", 1.0)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_rule_1_scores_that_are_not_finite_are_no_answer(bad: float) -> None:
    policy = Classify(LABELS, threshold=0.6)
    assert policy.update((bad, 0.1, 0.2)) == ("unavailable", 0.0)
    assert policy.update(B) == ("B", 0.8)


def test_reset_forgets_everything() -> None:
    policy = Classify(("A", "B"), threshold=0.6, hold=2, smooth=2)
    labels(policy, (1.0, 0.0), (1.0, 0.0))
    policy.reset()
    assert policy.update((0.0, 1.0)) == ("undecided", 1.0)
    assert policy.update((0.0, 1.0)) == ("B", 1.0)


def test_the_number_of_scores_is_that_of_the_labels() -> None:
    with pytest.raises(ValueError, match="2 scores for 3 labels"):
        Classify(LABELS, threshold=0.6).update((0.5, 0.5))


@pytest.mark.parametrize(
    ("parts", "line"),
    [
        ({"labels": ()}, "labels"),
        ({"labels": ("A", "A")}, "labels"),
        ({"labels": ("A", "undecided")}, "labels"),
        ({"labels": ("unavailable",)}, "labels"),
        ({"threshold": math.nan}, "threshold must be finite, not nan"),
        ({"hold": 0}, "hold must be at least 1, not 0"),
        ({"smooth": 0}, "smooth must be at least 1, not 0"),
    ],
)
def test_settings_that_make_no_sense(parts: dict[str, object], line: str) -> None:
    with pytest.raises(ValueError, match=line):
        Classify(**({"labels": LABELS, "threshold": 0.6} | parts))  # type: ignore[arg-type]


def test_a_label_found_elsewhere_is_held() -> None:
    policy = Classify(LABELS, threshold=0.6, hold=2)
    policy.adopt("B")
    assert labels(policy, A, B, A, A) == ["B", "B", "B", "A"]
    policy.adopt("D")
    assert policy.update(A) == ("A", 0.8)
    policy.adopt("undecided")
    assert policy.update(UNSURE) == ("undecided", 0.4)
