"""Decisions and commands as plain maps."""

import math
from typing import Any

import pytest
from control_cases import decision

from reflexarc.control.command import Command
from reflexarc.control.decision import Decision

PLAIN = {
    "session": 7,
    "seq": 1,
    "t": 5_000,
    "source_t": 4_000,
    "source_seq": 40,
    "received": 123,
    "epoch": 0,
    "label": "ABD",
    "confidence": 0.9,
    "available": True,
    "value.angle": 1.5,
}


def test_decision_to_map_and_back() -> None:
    one = decision(123, values={"angle": 1.5})
    assert one.to_map() == PLAIN
    assert Decision.from_map("exercise", one.to_map()) == one


def test_unknown_keys_are_left_alone_and_whole_numbers_are_numbers() -> None:
    plain: dict[Any, object] = {**PLAIN, "value.angle": 2, "scores": [1, 2], 5: 6, "confidence": 1}
    one = Decision.from_map("exercise", plain)
    assert one.values == {"angle": 2.0}
    assert isinstance(one.values["angle"], float)
    assert isinstance(one.confidence, float)


def test_nonfinite_numbers_pass_to_the_channel_that_counts_them() -> None:
    one = Decision.from_map("exercise", PLAIN | {"value.angle": math.inf, "confidence": math.nan})
    assert one.values["angle"] == math.inf


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("label", None, "decision: label must be a string, not None"),
        ("available", 1, "decision: available must be true or false, not 1"),
        ("seq", 1.0, r"decision: seq must be an integer, not 1\.0"),
        ("received", True, "decision: received must be an integer, not True"),
        ("epoch", None, "decision: epoch must be an integer, not None"),
        ("confidence", "0.9", "decision: confidence must be a number, not '0.9'"),
        ("value.angle", False, "decision: value.angle must be a number, not False"),
        ("value.angle", [1], r"decision: value.angle must be a number, not \[1\]"),
        ("value.angle", 10**400, "decision: value.angle is an integer too large for a float"),
    ],
)
def test_what_is_no_decision_is_refused_by_key(key: str, value: object, line: str) -> None:
    with pytest.raises(ValueError, match=f"^{line}$"):
        Decision.from_map("exercise", PLAIN | {key: value})


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ValueError, match="not '") as caught:
        Decision.from_map("exercise", PLAIN | {"seq": "9" * 5000})
    assert len(str(caught.value)) < 100


@pytest.mark.parametrize("key", [key for key in PLAIN if key != "value.angle"])
def test_every_key_is_needed(key: str) -> None:
    with pytest.raises(ValueError, match=key):
        Decision.from_map("exercise", {name: value for name, value in PLAIN.items() if name != key})


def test_command_to_map() -> None:
    one = Command("assist_torque", 9, 3, 5_000, 4_000, 40, 100, "NORMAL", "", {"torque": 1.5, "speed": 0.0})
    assert one.to_map() == {
        "session": 9,
        "seq": 3,
        "t": 5_000,
        "source_t": 4_000,
        "source_seq": 40,
        "ttl_ms": 100,
        "state": "NORMAL",
        "reason": "",
        "value.torque": 1.5,
        "value.speed": 0.0,
    }
