"""Decoding: every encoding of a frame, every way to be refused, and what hostile bytes may cost."""

import random
import struct
import time
import tracemalloc
from collections import Counter
from typing import Any

import msgpack
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reflexarc.sensors.frame import LIST_NUMBERS, Refused, StreamSpec, decode, max_frame_bytes
from reflexarc.sensors.unpack import SMALL_BYTES, unpack_large

WRIST = StreamSpec("wrist", "imu/wrist", (6,), 50.0, 200_000_000)
SCALAR = StreamSpec("t", "t", (), 1.0, 10**9, 4)
SOUND = StreamSpec("mic", "audio", (), 16000.0, 10**8, 320)
CAMERA = StreamSpec("camera", "camera", (224, 224, 3), 30.0, 10**8)
DEPTH = StreamSpec("depth", "depth", (40, 50), 30.0, 10**8, 3)
SPECS = (WRIST, SCALAR, SOUND, CAMERA, DEPTH)
GOOD = [1.5, -2, 3.25, 0, 5, 6]


def pack(data: Any, seq: Any = 7, t: Any = 10**18, **more: Any) -> bytes:
    return msgpack.packb({"seq": seq, "t": t, "data": data, **more})


def binary(array: np.ndarray, dtype: str | None = None, shape: list | None = None) -> dict:
    return {"dtype": dtype or array.dtype.str, "shape": shape or list(array.shape), "data": array.tobytes()}


def nd(array: np.ndarray) -> dict:
    """What msgpack-numpy makes."""
    return {
        b"nd": True,
        b"type": array.dtype.str,
        b"kind": b"",
        b"shape": array.shape,
        b"data": array.tobytes(),
    }


def reason(payload: bytes, spec: StreamSpec = WRIST) -> str:
    with pytest.raises(Refused) as refused:
        decode(payload, spec, 0)
    return refused.value.reason


def test_a_list_a_number_and_nested_lists() -> None:
    frame = decode(pack(GOOD), WRIST, 99)
    assert (frame.seq, frame.t, frame.received) == (7, 10**18, 99)
    assert frame.data.dtype == np.float32
    np.testing.assert_array_equal(frame.data, [GOOD])
    assert decode(pack([GOOD]), WRIST, 0).data.shape == (1, 6)
    assert decode(pack(2.5), SCALAR, 0).data.tolist() == [2.5]
    assert decode(pack([1, 2, 3]), SCALAR, 0).data.tolist() == [1, 2, 3]
    image = np.arange(2000, dtype=np.float32).reshape(40, 50)
    np.testing.assert_array_equal(decode(pack(image.tolist()), DEPTH, 0).data, [image])
    np.testing.assert_array_equal(decode(pack([image.tolist()] * 3), DEPTH, 0).data, [image] * 3)


@pytest.mark.parametrize("make", [binary, nd])
@pytest.mark.parametrize(
    "dtype", ["i1", "u1", *("<" + k + s for k in "iu" for s in "248"), "<f2", "<f4", "<f8"]
)
def test_binary_samples_of_every_dtype(make: Any, dtype: str) -> None:
    values = np.arange(40).reshape(40).astype(dtype)
    np.testing.assert_array_equal(decode(pack(make(values)), SOUND, 0).data, values.astype(np.float32))
    images = np.arange(6000).reshape(3, 40, 50).astype(dtype)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(decode(pack(make(images)), DEPTH, 0).data, images.astype(np.float32))
        np.testing.assert_array_equal(
            decode(pack(make(images[1])), DEPTH, 0).data[0], images[1].astype(np.float32)
        )


def test_other_keys_are_ignored_large_or_small() -> None:
    assert decode(pack(GOOD, unit="m/s^2", nested={"a": [1]}), WRIST, 0).seq == 7
    assert decode(pack(np.zeros((40, 50)).tolist(), note="x" * 400, nested=[[[]]]), DEPTH, 0).seq == 7


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (b"", "msgpack"),
        (b"\xc1", "msgpack"),
        (pack(GOOD)[:-1], "msgpack"),
        (pack(GOOD) + b"\x00", "msgpack"),
        (b"x" * 5000, "size"),
        (msgpack.packb([1, 2, 3]), "keys"),
        (msgpack.packb({"seq": 1, "t": 1}), "keys"),
        (b"\x81\xc1", "msgpack"),
        (msgpack.packb({1: 2}), "msgpack"),
        (pack(GOOD, seq=-1), "seq"),
        (pack(GOOD, seq=True), "seq"),
        (pack(GOOD, seq=1.0), "seq"),
        (pack(GOOD, seq=1 << 63), "seq"),
        (pack(GOOD, t=-1), "t"),
        (pack(GOOD, t=1 << 62), "t"),
        (pack(GOOD, t=None), "t"),
        (pack(1.0), "shape"),
        (pack([]), "shape"),
        (pack(GOOD[:5]), "shape"),
        (pack([GOOD, GOOD]), "shape"),
        (pack([*GOOD[:5], GOOD]), "data"),
        (pack([*GOOD[:5], True]), "data"),
        (pack([*GOOD[:5], None]), "data"),
        (pack([*GOOD[:5], "6"]), "data"),
        (pack("text"), "data"),
        (pack(None), "data"),
        (pack(b"bytes"), "data"),
        (pack([*GOOD[:5], float("nan")]), "finite"),
        (pack([*GOOD[:5], float("-inf")]), "finite"),
        (pack([*GOOD[:5], 3.5e38]), "finite"),
        (pack(binary(np.array([1, 2, 3, 4, 5, np.nan]))), "finite"),
        (pack(binary(np.array([1, 2, 3, 4, 5, 1e39]))), "finite"),
        (pack({}), "dtype"),
        (pack(binary(np.zeros(6), dtype="|O")), "dtype"),
        (pack(binary(np.zeros(6), dtype=">f8")), "dtype"),
        (pack(binary(np.zeros(6, bool))), "dtype"),
        (pack(binary(np.zeros(6, complex))), "dtype"),
        (pack({"dtype": ["<f4"], "shape": [6], "data": b""}), "dtype"),
        (pack(nd(np.zeros(6)) | {b"kind": b"O"}), "dtype"),
        (pack(binary(np.zeros(6), shape=[7])), "shape"),
        (pack(binary(np.zeros(6), shape=[2, 6])), "shape"),
        (pack(binary(np.zeros(6), shape=[6.0])), "shape"),
        (pack(binary(np.zeros(6), shape=[True, 6])), "shape"),
        (pack({"dtype": "<f8", "shape": [6], "data": b"short"}), "bytes"),
        (pack({"dtype": "<f8", "shape": [6], "data": "x" * 48}), "bytes"),
        (pack({"dtype": "<f8", "shape": [6]}), "bytes"),
    ],
)
def test_refusals(payload: bytes, expected: str) -> None:
    assert reason(payload) == expected


def test_rule_14_a_shape_larger_than_its_payload_is_refused() -> None:
    samples = np.zeros(100, "<i2")
    for shape in ([101], [320], [1 << 40], [-1], [0]):
        assert reason(pack(binary(samples, shape=shape)), SOUND) in ("shape", "bytes")
    assert reason(pack(binary(np.zeros(99, "<i2"), shape=[100])), SOUND) == "bytes"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_every_valid_encoding_fits_the_largest_message_and_decodes(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 6), max_size=3)))
    spec = StreamSpec("s", "s", shape, 1.0, 10**9, data.draw(st.integers(1, 40)))
    count = data.draw(st.integers(1, spec.frame))
    values = np.full((count, *shape), -1.0 / 3)
    for encoding in (values.tolist(), binary(values), nd(values)):
        payload = pack(encoding, seq=(1 << 63) - 1, t=(1 << 62) - 1)
        assert len(payload) <= max_frame_bytes(spec) == spec.max_bytes
        np.testing.assert_array_equal(decode(payload, spec, 0).data, values.astype(np.float32))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_the_walk_and_unpackb_agree(data: st.DataObject) -> None:
    """Small payloads through both readers: the same frame, or refused by both."""
    spec = data.draw(st.sampled_from([WRIST, SCALAR, StreamSpec("g", "g", (2, 3), 1.0, 10**9, 2)]))
    numbers = st.one_of(
        st.integers(-(2**40), 2**40), st.floats(width=32), st.booleans(), st.none(), st.text(max_size=3)
    )
    leaf = st.one_of(
        numbers, st.binary(max_size=4), st.dictionaries(st.text(max_size=2), numbers, max_size=2)
    )
    tree = st.recursive(leaf, lambda inner: st.lists(inner, max_size=6), max_leaves=12)
    good = st.sampled_from(
        [GOOD, [GOOD], 3, [1, 2], [[1, 2, 3], [4, 5, 6.5]], binary(np.ones(6)), nd(np.ones((2, 3)))]
    )
    payload = bytearray(pack(data.draw(st.one_of(tree, good))))
    if data.draw(st.booleans()):
        payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))

    def attempt(unpack: Any) -> Any:
        try:
            message = unpack(bytes(payload))
            frame = decode(msgpack.packb({key: message[key] for key in ("seq", "t", "data")}), spec, 0)
        except Exception:
            return None
        return frame.seq, frame.t, frame.data.tobytes()

    assert attempt(msgpack.unpackb) == attempt(lambda raw: unpack_large(raw, spec.shape, spec.list_frame))


def test_ragged_lists_are_refused_large_or_small() -> None:
    grid = StreamSpec("g", "g", (2, 3), 1.0, 10**9)
    assert reason(pack([[1, 2, 3], [4, 5]]), grid) == "shape"
    assert reason(pack([[1, 2, 3], 4]), grid) == "shape"
    rows = np.ones((40, 50)).tolist()
    assert reason(pack([*rows[:-1], [1.0] * 49]), DEPTH) == "shape"
    assert reason(pack([*rows[:-1], 1.0]), DEPTH) in ("shape", "data")


def test_lists_of_many_numbers_must_be_binary() -> None:
    big = StreamSpec("big", "big", (100,), 1.0, 10**9, 10_000)
    most = LIST_NUMBERS // 100
    assert decode(pack(np.ones((most, 100)).tolist()), big, 0).data.shape == (most, 100)
    assert reason(pack(np.ones((most + 1, 100)).tolist()), big) == "size"
    assert reason(pack(np.ones((224, 224, 3)).tolist()), CAMERA) in ("size", "shape")
    assert decode(pack(binary(np.ones((224, 224, 3), np.uint8))), CAMERA, 0).data.shape == (1, 224, 224, 3)


# DESIGN section 8, rule 12: what msgpack raises, and what it builds before it is asked.


def hostile(size: int) -> dict[str, bytes]:
    """Payloads of about `size` bytes, most of which would build much, nest deeply or claim too much."""
    head = msgpack.packb({"seq": 1, "t": 1})[1:]
    start = b"\x83" + head + b"\xa4data"
    room = size - len(start) - 5
    array, count = b"\xdd", struct.pack(">I", room)
    return {
        "maps": start + array + count + b"\x80" * room,
        "lists": start + array + count + b"\x90" * room,
        "texts": start + array + struct.pack(">I", room // 3) + b"\xa2ab" * (room // 3),
        "floats": start
        + array
        + struct.pack(">I", room // 9)
        + (b"\xcb" + struct.pack(">d", 1e300)) * (room // 9),
        "deep": start + b"\x91" * room,
        "deep maps": start + b"\x81\xa0" * (room // 2),
        "claims": start + (array + b"\x00\x01\x00\x00") * (room // 5),
        "claims all": start + array + b"\xff\xff\xff\xff" + b"\x80" * room,
        "keys": b"\xdf" + struct.pack(">I", room // 3) + b"\xa1a\xc0" * (room // 3),
        "map keys": b"\xdf\xff\xff\xff\xff" + b"\x00" * room,
        "in scalar": b"\x83\xa3seq" + array + count + b"\x80" * room,
        "in dtype": start + b"\x83\xa5dtype" + array + count + b"\x80" * room,
        "extension": start + b"\xc9" + struct.pack(">I", room) + b"\x05" + b"x" * room,
        "zeros": b"\x00" * size,
        "rows": start + array + struct.pack(">I", room // 7) + (b"\x96" + b"\x80" * 6) * (room // 7),
    }


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
@pytest.mark.parametrize("name", hostile(1000))
def test_rule_12_a_hostile_payload_costs_little(spec: StreamSpec, name: str) -> None:
    for size in (SMALL_BYTES, spec.max_bytes, min(spec.max_bytes, 1_000_000), 2_000_000):
        payload = hostile(size)[name][:size]
        tracemalloc.start()
        reason(payload, spec)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4_000_000
        assert min(elapsed(payload, spec) for _ in range(5)) < 0.02


def elapsed(payload: bytes, spec: StreamSpec) -> float:
    start = time.perf_counter()
    reason(payload, spec)
    return time.perf_counter() - start


@pytest.mark.parametrize("payload", [b"\xd6\xff\xff\xff\xff\xff", b"\x91" * 900, b"\x81" * 900, b"\xa1\xff"])
def test_rule_12_whatever_msgpack_raises_is_a_refusal(payload: bytes) -> None:
    assert reason(payload, SOUND) in ("msgpack", "keys")


def test_rule_12_a_hundred_thousand_hostile_frames_are_each_counted() -> None:
    rng = random.Random(1)
    good = [
        (WRIST, pack(GOOD)),
        (SCALAR, pack([1, 2.5], seq=1 << 62)),
        (SOUND, pack(binary(np.arange(320, dtype="<i2")))),
        (SOUND, pack(nd(np.arange(320, dtype="<f4")))),
        (DEPTH, pack(np.ones((40, 50), int).tolist())),
    ]
    counts: Counter[str] = Counter()
    start = time.perf_counter()
    for _ in range(100_000):
        spec, payload = rng.choice(good)
        counts[verdict(mutated(payload, rng), spec)] += 1
    took = time.perf_counter() - start
    assert counts.total() == 100_000
    assert {"decoded", "msgpack", "keys", "seq", "shape", "dtype", "data", "bytes", "size"} <= counts.keys()
    assert took < 60


def mutated(payload: bytes, rng: random.Random) -> bytes:
    kind = rng.randrange(4)
    if kind == 0:
        return rng.randbytes(rng.randrange(200))
    if kind == 1:
        return payload[: rng.randrange(len(payload))]
    changed = bytearray(payload)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(min(len(changed), 80) if rng.random() < 0.7 else len(changed))
        if kind == 2:
            changed[at] ^= 1 << rng.randrange(8)
        else:
            changed[at:at] = rng.randbytes(rng.randrange(9))
    return bytes(changed)


def verdict(payload: bytes, spec: StreamSpec) -> str:
    """The only outcomes there are."""
    try:
        frame = decode(payload, spec, 0)
    except Refused as refused:
        return refused.reason
    assert frame.data.dtype == np.float32
    assert frame.data.shape[1:] == spec.shape
    assert 1 <= len(frame.data) <= spec.frame
    assert np.isfinite(frame.data).all()
    return "decoded"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"shape": (3, 0)}, "size below 1"),
        ({"frame": 0}, "frame 0"),
        ({"shape": (1 << 12, 1 << 12)}, "16777216 values"),
        ({"rate_hz": 0.0}, "rate_hz 0.0"),
        ({"rate_hz": float("nan")}, "rate_hz nan"),
    ],
)
def test_impossible_streams_are_refused(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StreamSpec(**({"name": "s", "topic": "s", "shape": (1,), "rate_hz": 1.0, "max_age_ns": 1} | change))
