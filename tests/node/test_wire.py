"""Whatever arrives is a topic and a map, or is refused with a word; nothing else comes of it."""

import resource
import subprocess
import sys

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.control.decision import Decision
from reflexarc.node import wire

SCALARS = st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text()
REASONS = {"parts", "size", "topic", "msgpack", "map", "keys", "nested"}


def decision() -> Decision:
    return Decision(
        pipeline="gait",
        session=2**63 - 1,
        seq=7,
        t=10**18,
        source_t=10**18 - 1,
        source_seq=400,
        received=10**12,
        epoch=2,
        label="WALK",
        confidence=0.75,
        available=True,
        values={"angle": -1.5},
    )


def reason(parts: list[bytes], max_bytes: int = wire.MAX_BYTES, *, flat: bool = True) -> str:
    with pytest.raises(wire.Refused) as caught:
        wire.decode(parts, max_bytes, flat=flat)
    return caught.value.reason


@given(st.text(max_size=50), st.dictionaries(st.text(), SCALARS))
def test_what_is_encoded_is_decoded(topic: str, plain: dict[str, object]) -> None:
    assert wire.decode(wire.encode(topic, plain)) == (topic, plain)


def test_a_decision_goes_there_and_back() -> None:
    parts = wire.encode(wire.DECISION + "gait", decision().to_map())
    assert wire.decode_decision(parts) == decision()
    assert all(isinstance(value, bool | int | float | str) for value in msgpack.unpackb(parts[1]).values())


@pytest.mark.parametrize(
    ("key", "value"), [("seq", "7"), ("seq", None), ("seq", True), ("label", 3), ("value.angle", "x")]
)
def test_a_decision_with_a_wrong_key_is_refused(key: str, value: object) -> None:
    plain = {**decision().to_map(), key: value}
    with pytest.raises(wire.Refused) as caught:
        wire.decode_decision([b"decision/gait", msgpack.packb(plain)])
    assert caught.value.reason in ("keys", "nested")
    with pytest.raises(wire.Refused, match="topic"):
        wire.decode_decision([b"control/gait", msgpack.packb(decision().to_map())])


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ([], "parts"),
        ([b"a"], "parts"),
        ([b"a", b"\x80", b""], "parts"),
        ([b"a", b"\x80" * 70_000], "size"),
        ([b"\xff", b"\x80"], "topic"),
        ([b"a" * 1000, b"\x80"], "topic"),
        ([b"a", b""], "msgpack"),
        ([b"a", b"\xc1"], "msgpack"),
        ([b"a", b"\x80\x80"], "msgpack"),
        ([b"a", b"\x81\xa1k\xdf\xff\xff\xff\xff"], "msgpack"),
        ([b"a", b"\x81\xa1k\xdd\xff\xff\xff\xff"], "msgpack"),
        ([b"a", b"\x81\xa1k\xd6\xff1111"], "msgpack"),
        ([b"a", b"\x81\xa1k" + b"\x91" * 2000 + b"\x90"], "msgpack"),
        ([b"a", b"\x81\xa1\xff\x01"], "msgpack"),
        ([b"a", b"\x81\x01\x02"], "msgpack"),
        ([b"a", b"\x81\x80\x02"], "msgpack"),
        ([b"a", b"\x90"], "map"),
        ([b"a", b"\x01"], "map"),
        ([b"a", b"\x81\xc4\x01k\x01"], "keys"),
        ([b"a", b"\x81\xa1k\x90"], "nested"),
        ([b"a", b"\x81\xa1k\x80"], "nested"),
        ([b"a", b"\x81\xa1k\xc0"], "nested"),
        ([b"a", b"\x81\xa1k\xc4\x00"], "nested"),
    ],
)
def test_each_refusal_has_its_word(parts: list[bytes], word: str) -> None:
    assert reason(parts) == word


def test_sensor_frames_may_nest_a_little() -> None:
    plain = {"seq": 1, "data": {"dtype": "<i2", "shape": [2], "data": b"\1\0\2\0"}}
    assert wire.decode([b"imu", msgpack.packb(plain)], flat=False) == ("imu", plain)
    deep: object = 1
    for _ in range(20):
        deep = [deep]
    assert reason([b"imu", msgpack.packb({"data": deep})], flat=False) == "nested"


@given(st.lists(st.binary(max_size=200), max_size=4), st.booleans())
def test_any_bytes_are_a_message_or_refused(parts: list[bytes], flat: bool) -> None:
    try:
        topic, plain = wire.decode(parts, 150, flat=flat)
    except wire.Refused as error:
        word = error.reason
    else:
        word = "map" if isinstance(topic, str) and all(isinstance(key, str) for key in plain) else ""
    assert word in REASONS


JUNK = st.recursive(
    SCALARS | st.binary(max_size=8) | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
)


@given(st.dictionaries(st.sampled_from([*decision().to_map(), "x"]), JUNK), st.binary(max_size=3))
@settings(max_examples=100, deadline=None)
def test_any_map_is_a_decision_or_refused(plain: dict[str, object], tail: bytes) -> None:
    merged = {**decision().to_map(), **plain}
    try:
        found = wire.decode_decision([b"decision/gait", msgpack.packb(merged) + tail])
    except wire.Refused as error:
        assert error.reason in REASONS  # noqa: PT017
    else:
        assert found.pipeline == "gait"


def test_a_bomb_of_empty_maps_takes_little_memory() -> None:
    code = (
        "import resource, struct\nfrom reflexarc.node import wire\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "def bomb(n): return b'\\x81\\xa1k\\xdd' + struct.pack('>I', n) + b'\\x80' * n\n"
        "before = peak()\n"
        "for n in (2_000_000, 65_000):\n"
        "    for flat in (True, False):\n"
        "        try: wire.decode([b'a', bomb(n)], flat=flat)\n"
        "        except wire.Refused: pass\n"
        "print(peak() - before)"
    )
    took = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert int(took) * 1024 / resource.getpagesize() < 20 * 2**20 / resource.getpagesize()
