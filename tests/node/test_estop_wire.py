"""Nothing that was sent to the e-stop's socket is ignored: what is no heartbeat and no reset is a stop."""

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.control.estop import EStop
from reflexarc.node import wire
from reflexarc.node.clock import MS, SECOND
from reflexarc.node.gate import stop_log
from reflexarc.node.gate.stop_log import StopLog

STOP = {"stop": True, "id": "door", "reason": "open"}
BEAT = msgpack.packb({"stop": False})
RESET = msgpack.packb({"stop": False, "id": "door"})


def taken(*parts: bytes) -> tuple[str, str]:
    one = EStop(0)
    return one.message(wire.decode_stop(parts), 1), one.words


@pytest.mark.parametrize(
    "plain",
    [
        STOP,
        STOP | {"reason": None},
        STOP | {"reason": b"open"},
        STOP | {"id": b"door"},
        STOP | {"more": [1, [2]]},
        STOP | {"more": {"a": {}}},
        STOP | {"more": msgpack.ExtType(5, b"x")},
        STOP | {7: 1},
        STOP | {(1, 2): 1},
        STOP | {"stop": [1]},
        STOP | {"stop": None},
        {"id": "door"},
        {b"stop": True, b"id": b"door"},
        {b"stop": False, b"id": b"door"},
        {"stop": False, "id": b"door"},
    ],
)
def test_a_stop_that_is_well_meant_stops_by_its_id(plain: object) -> None:
    assert taken(b"estop", msgpack.packb(plain)) == ("stop", "estop:door")


SOUND = msgpack.packb(STOP)


@pytest.mark.parametrize(
    "parts",
    [
        [b"estop", SOUND + b"\x00"],
        [b"estop", SOUND + SOUND],
        [SOUND],
        [b"estop", SOUND, b""],
        [b"estop", b"", SOUND],
        [b"\xff", SOUND],
        [b"estop", RESET + b"\x00"],
        [b"estop", RESET, b""],
        [RESET],
        [b"estop", b"\x84" + SOUND[1:] + BEAT[1:]],
        [b"estop", b"\x81" + RESET[7:]],
        [b"estop", msgpack.packb(STOP | {"reason": "\udcfc"}, unicode_errors="surrogateescape")],
    ],
)
def test_whatever_is_wrong_around_it(parts: list[bytes]) -> None:
    assert taken(*parts) == ("stop", "estop:door")


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [b""],
        [b"estop"],
        [b"estop", b""],
        [b"estop", b"\xc1"],
        [b"estop", b"\x05"],
        [b"estop", SOUND[:-1]],
        [b"estop", BEAT, b""],
        [b"estop", BEAT + b"\x00"],
        [BEAT],
        [b"estop", b"\x82" + BEAT[1:] + BEAT[1:]],
        [b"estop", msgpack.packb({"stop": True, "id": "\udcfc"}, unicode_errors="surrogateescape")],
        [b"estop", b"\x91" * 60_000],
        [b"estop", b"\xdd\x00\x00\x00\xff" * 3000],
        [b"estop", b"\xdf\xff\xff\xff\xff"],
        [b"estop", msgpack.packb(STOP | {"reason": "x" * wire.MAX_BYTES})],
    ],
)
def test_without_an_id_that_can_be_read_it_is_unnamed(parts: list[bytes]) -> None:
    assert taken(*parts) == ("stop", "estop:unnamed")


@pytest.mark.parametrize("payload", [BEAT, msgpack.packb({"stop": False, "t": [1], 5: None})])
def test_a_heartbeat_is_one(payload: bytes) -> None:
    assert taken(b"estop", payload) == ("heartbeat", "")


def test_a_reset_is_one() -> None:
    assert taken(b"estop", RESET) == ("refused", "")


@given(st.lists(st.binary(max_size=40) | st.just(RESET) | st.just(BEAT), max_size=3))
def test_any_bytes_stop_or_are_shown_not_to(parts: list[bytes]) -> None:
    word, _ = taken(*parts)
    assert word == "stop" or wire.decode_stop(parts)["stop"] is False


def test_the_log_tells_of_changes_and_once_a_second_of_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(stop_log, "say", told.append)
    one = EStop(0, 2 * SECOND)
    log = StopLog(one)
    for now in range(SECOND, 5 * SECOND, 10 * MS):
        log.summarize(one, now)
        log.note(one.message({"stop": False}, now), one, now)
        log.note(one.message(STOP, now), one, now)
    assert told[0] == "e-stop: stop; stopped by: estop:door"
    assert told[2] == "e-stop: 100 stop more; stopped by: estop:door"
    assert len(told) == 5
    told.clear()
    for now in range(5 * SECOND, 6 * SECOND, MS):
        log.note(one.message({"stop": False, "id": "gate"}, now), one, now)
    assert told == ["e-stop: refused; stopped by: estop:door"]
    one.tick(7 * SECOND)
    log.summarize(one, 7 * SECOND)
    assert told[1] == "e-stop: silence; stopped by: estop:door,estop:heartbeat"
