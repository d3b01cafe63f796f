"""The latch of the emergency stop."""

import json
import math

import pytest
from control_cases import MS, START

from reflexarc.control.estop import EStop

ASSERT_NS, MAX_IDS, MAX_LENGTH = 300 * MS, 16, 64
BEAT = 100 * MS
STOP = {"stop": True, "id": "button", "reason": "pressed"}
RESET = {"stop": False, "id": "button"}


def stopped(now: int = START, heartbeat_ns: int = 0) -> EStop:
    one = EStop(START, heartbeat_ns)
    assert one.message(STOP, now) == "stop"
    return one


def test_starts_open_and_a_stop_latches_at_once() -> None:
    one = EStop(START)
    assert one.words == ""
    assert one.latched == {}
    assert one.revision == 0
    assert one.message(STOP, START) == "stop"
    assert one.words == "estop:button"
    assert one.latched == {"button": "pressed"}
    assert one.revision == 1


def test_a_stop_said_again_changes_nothing_but_is_asserted_again() -> None:
    one = stopped()
    one.message(STOP | {"reason": "again"}, START + ASSERT_NS)
    assert one.latched == {"button": "pressed"}
    assert one.revision == 1
    assert one.message(RESET, START + 2 * ASSERT_NS - 1) == "refused"


def test_only_its_own_id_resets_a_stop() -> None:
    one = stopped()
    later = START + ASSERT_NS
    assert one.message({"stop": False, "id": "door"}, later) == "refused"
    assert one.words == "estop:button"
    assert one.message(RESET, later) == "reset"
    assert one.words == ""
    assert one.revision == 2
    assert one.message(RESET, later) == "refused"
    assert one.revision == 2


def test_no_reset_while_any_stop_is_asserted() -> None:
    one = stopped()
    one.message({"stop": True, "id": "door"}, START + 200 * MS)
    assert one.words == "estop:button,estop:door"
    assert one.message(RESET, START + 200 * MS + ASSERT_NS - 1) == "refused"
    assert one.message(RESET, START + 200 * MS + ASSERT_NS) == "reset"
    assert one.words == "estop:door"


def test_a_heartbeat_needs_no_id_and_resets_nothing() -> None:
    one = stopped()
    assert one.message({"stop": False}, START + ASSERT_NS) == "heartbeat"
    assert one.message({"stop": False, "id": ""}, START + ASSERT_NS) == "heartbeat"
    assert one.words == "estop:button"


def test_silence_is_a_stop() -> None:
    one = EStop(START, BEAT)
    assert one.deadline == START + BEAT
    one.tick(START + BEAT - 1)
    assert one.words == ""
    one.message({"stop": False}, START + BEAT - 1)
    assert one.deadline == START + 2 * BEAT - 1
    one.tick(START + 2 * BEAT - 2)
    assert one.words == ""
    one.tick(START + 2 * BEAT - 1)
    assert one.words == "estop:heartbeat"
    assert one.latched == {"heartbeat": ""}
    assert one.deadline is None


def test_without_a_heartbeat_set_silence_is_none() -> None:
    one = EStop(START)
    one.tick(START + 10**15)
    assert one.words == ""
    assert one.deadline is None


def test_a_stop_is_a_sign_of_life_and_a_reset_is_not() -> None:
    one = EStop(START, BEAT)
    one.message(STOP, START + 50 * MS)
    assert one.deadline == START + 50 * MS + BEAT
    one.message(RESET, START + 60 * MS)
    assert one.deadline == START + 50 * MS + BEAT


def test_no_reset_while_the_line_is_silent() -> None:
    one = EStop(START, BEAT)
    one.tick(START + BEAT)
    reset = {"stop": False, "id": "heartbeat"}
    assert one.message(reset, START + 2 * BEAT) == "refused"
    one.message({"stop": False}, START + 3 * BEAT)
    assert one.words == "estop:heartbeat"
    assert one.message(reset, START + 4 * BEAT) == "refused"
    one.message({"stop": False}, START + 4 * BEAT)
    assert one.message(reset, START + 5 * BEAT - 1) == "reset"
    assert one.words == ""


def test_with_a_heartbeat_set_a_stop_is_asserted_for_so_long() -> None:
    one = stopped(heartbeat_ns=BEAT)
    one.message({"stop": False}, START + 60 * MS)
    assert one.message(RESET, START + BEAT - 1) == "refused"
    assert one.message(RESET, START + BEAT) == "reset"


@pytest.mark.parametrize(
    "ident", [None, 5, b"", b"\xfc", "\ud800", ["button"], {}, "", "x" * (MAX_LENGTH + 1)]
)
def test_a_stop_with_a_malformed_id_stops_all_the_same(ident: object) -> None:
    one = EStop(START)
    assert one.message({"stop": True, "id": ident}, START) == "stop"
    assert one.words == "estop:unnamed"
    assert one.counts == {"stop": 1, "malformed": 1}
    assert one.message({"stop": False, "id": "unnamed"}, START + ASSERT_NS) == "reset"


@pytest.mark.parametrize("stop", [1, "false", [0], {"a": 1}, 0.5, math.nan, b"x"])
def test_a_stop_that_is_true_in_any_sense_stops(stop: object) -> None:
    one = EStop(START)
    assert one.message({"stop": stop, "id": "button"}, START) == "stop"
    assert one.words == "estop:button"
    assert one.counts == {"stop": 1, "malformed": 1}


def test_an_id_in_bytes_names_its_stop_and_a_reason_in_bytes_is_kept() -> None:
    one = EStop(START)
    assert one.message({"stop": True, "id": "Tür".encode(), "reason": "öffnen".encode()}, START) == "stop"
    assert one.latched == {"Tür": "öffnen"}
    assert one.counts == {"stop": 1, "malformed": 1}
    assert one.message({"stop": False, "id": "Tür".encode()}, START + ASSERT_NS) == "stop"
    assert one.message({"stop": False, "id": "Tür"}, START + 2 * ASSERT_NS) == "reset"


def test_a_sound_stop_is_not_counted_as_malformed() -> None:
    assert stopped().counts == {"stop": 1}


@pytest.mark.parametrize(
    "plain",
    [
        None,
        5,
        "stop",
        [True],
        b"\x00",
        {},
        {"stop": False, "id": 5},
        {"stop": False, "id": None},
        {"stop": False, "id": b""},
        {"stop": False, "id": "\udfff"},
    ],
)
def test_what_is_neither_heartbeat_nor_reset_is_a_stop(plain: object) -> None:
    one = EStop(START, BEAT)
    assert one.message(plain, START + 50 * MS) == "stop"
    assert one.counts == {"stop": 1, "malformed": 1}
    assert one.words == "estop:unnamed"
    assert one.deadline == START + 50 * MS + BEAT


@pytest.mark.parametrize("stop", [None, 0, "", 0.0, [], b""])
def test_what_is_false_in_another_sense_is_a_stop_of_its_id(stop: object) -> None:
    one = EStop(START)
    assert one.message({"stop": stop, "id": "button"}, START) == "stop"
    assert one.message({"id": "door"}, START) == "stop"
    assert one.words == "estop:button,estop:door"
    assert one.counts == {"stop": 2, "malformed": 2}


def test_a_reset_of_an_id_too_long_is_a_reset_of_none() -> None:
    assert stopped().message({"stop": False, "id": "x" * (MAX_LENGTH + 1)}, START + ASSERT_NS) == "refused"


def test_a_reset_by_the_form_shown_unless_two_are_shown_so() -> None:
    one, reset = EStop(START), {"stop": False, "id": "T_r_links"}
    one.message({"stop": True, "id": "Tür links"}, START)
    one.message({"stop": True, "id": "Tor links"}, START)
    assert one.words == "estop:T_r_links,estop:Tor_links"
    assert one.message(reset, START + ASSERT_NS - 1) == "refused"
    assert one.message(reset, START + ASSERT_NS) == "reset"
    assert list(one.latched) == ["Tor links"]
    one.message({"stop": True, "id": "Tür links"}, START)
    one.message({"stop": True, "id": "Tär links"}, START)
    assert one.message(reset, START + ASSERT_NS) == "refused"
    one.message({"stop": True, "id": "T_r_links"}, START)
    assert one.message(reset, START + ASSERT_NS) == "reset"  # an id of its own comes first
    assert list(one.latched) == ["Tor links", "Tür links", "Tär links"]


@pytest.mark.parametrize("length", [1, 2, MAX_LENGTH])
def test_the_shortest_and_the_longest_id_are_ids(length: int) -> None:
    one = EStop(START)
    one.message({"stop": True, "id": "x" * length}, START)
    assert one.words == "estop:" + "x" * length


@pytest.mark.parametrize(
    ("ident", "word"),
    [("a,b c", "estop:a_b_c"), ("Tür\n", "estop:T_r_"), ("door-2.left_A", "estop:door-2.left_A")],
)
def test_the_words_are_plain_and_the_id_stays_itself(ident: str, word: str) -> None:
    one = EStop(START)
    one.message({"stop": True, "id": ident}, START)
    assert one.words == word
    assert (
        one.message({"stop": False, "id": word.removeprefix("estop:") + "!"}, START + ASSERT_NS) == "refused"
    )
    assert one.message({"stop": False, "id": ident}, START + ASSERT_NS) == "reset"


def test_ids_beyond_the_bound_latch_as_one() -> None:
    one = EStop(START)
    for k in range(MAX_IDS + 5):
        one.message({"stop": True, "id": f"id{k}"}, START)
    assert list(one.latched) == [f"id{k}" for k in range(MAX_IDS)] + ["more"]
    assert one.revision == MAX_IDS + 1
    one.message({"stop": True, "id": "id3"}, START)
    assert len(one.latched) == MAX_IDS + 1
    for k in range(MAX_IDS):
        assert one.message({"stop": False, "id": f"id{k}"}, START + ASSERT_NS) == "reset"
    assert one.words == "estop:more"
    assert one.message({"stop": False, "id": "more"}, START + ASSERT_NS) == "reset"


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        (5, ""),
        (None, ""),
        ("\ud800", ""),
        (b"\xfc", ""),
        (b"x" * 65, "x" * 64),
        ("x" * 1000, "x" * MAX_LENGTH),
    ],
)
def test_the_reason_is_short_text(reason: object, kept: str) -> None:
    one = EStop(START)
    one.message({"stop": True, "id": "button", "reason": reason}, START)
    assert one.latched == {"button": kept}


def test_outlives_a_restart_through_json() -> None:
    one = EStop(START)
    one.restore(json.loads(json.dumps(stopped().to_map())), START)
    assert one.words == "estop:button"
    assert one.latched == {"button": "pressed"}
    assert one.message(RESET, START + ASSERT_NS - 1) == "refused"
    assert one.message(RESET, START + ASSERT_NS) == "reset"


def test_a_copy_to_save_is_not_the_latch_itself() -> None:
    one = stopped()
    one.to_map()["latched"].clear()
    assert one.words == "estop:button"
    assert one.latched


def test_an_open_latch_restored_is_open() -> None:
    one = EStop(START)
    one.restore(EStop(START).to_map(), START)
    assert one.words == ""
    assert one.revision == 0
    one.message(STOP, START - ASSERT_NS)
    assert one.message(RESET, START) == "reset"


@pytest.mark.parametrize(
    "saved",
    [
        None,
        5,
        "x",
        [],
        {},
        {"latched": None},
        {"latched": ["button"]},
        {"latched": {"": ""}},
        {"latched": {"\ud800": ""}},
        {"latched": {5: ""}},
    ],
)
def test_a_saved_state_that_cannot_be_read_is_a_stop(saved: object) -> None:
    one = EStop(START)
    one.restore(saved, START)
    assert one.words == "estop:corrupt"
    assert one.message({"stop": False, "id": "corrupt"}, START + ASSERT_NS - 1) == "refused"
    assert one.message({"stop": False, "id": "corrupt"}, START + ASSERT_NS) == "reset"


def test_a_saved_reason_that_is_no_text_is_none() -> None:
    one = EStop(START)
    one.restore({"latched": {"button": 5}}, START)
    assert one.latched == {"button": ""}


def test_a_new_configuration_takes_the_latch_over() -> None:
    old = stopped(START + 50 * MS, heartbeat_ns=BEAT)
    new = EStop(START + 60 * MS, 2 * BEAT)
    new.adopt(old)
    assert new.words == "estop:button"
    assert new.latched == {"button": "pressed"}
    assert new.revision == 1
    assert new.counts == {"stop": 1}
    assert new.deadline == START + 50 * MS + 2 * BEAT
    assert new.message(RESET, START + 50 * MS + 2 * BEAT - 1) == "refused"


def test_a_new_heartbeat_begins_with_the_configuration_that_sets_it() -> None:
    new = EStop(START + 60 * MS, BEAT)
    new.adopt(EStop(START))
    assert new.deadline == START + 60 * MS + BEAT


def test_long_after_the_last_stop_nothing_is_asserted() -> None:
    one = stopped()
    assert one.message(RESET, START + 10 * ASSERT_NS + 1) == "reset"


def test_the_clock_may_begin_anywhere() -> None:
    one = EStop(10, BEAT)
    one.tick(10 + BEAT + 5)
    assert one.words == "estop:heartbeat"
    one = EStop(0)
    one.message(STOP, 10)
    assert one.message(RESET, 10 + ASSERT_NS) == "reset"
