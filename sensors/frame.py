"""One message of a sensor stream: what it may hold, and its decoding from untrusted bytes.

On the wire a frame is one msgpack map: `seq` (int, counts messages), `t` (UNIX ns of the first sample) and
`data`, which is a number, a (nested) list of numbers, or binary samples `{"dtype": "<i2", "shape": [...],
"data": bin}`; the map that msgpack-numpy makes is understood too. Other keys are ignored. The shape is the
stream's, or `[n, *shape]` for n samples.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from math import isfinite, prod
from struct import Struct
from typing import Any

import numpy as np
from msgpack import unpackb
from numpy.typing import NDArray

from reflexarc.sensors.unpack import SMALL_BYTES, Refused, unpack_large

__all__ = ["LIST_NUMBERS", "MAX_NUMBERS", "Frame", "Refused", "StreamSpec", "decode", "max_frame_bytes"]

LIST_NUMBERS = 1 << 16
"""More numbers than this in a frame must come as binary samples: a list of them costs too much."""
MAX_NUMBERS = 1 << 22
"""Largest number of values in one frame."""

_OVERHEAD_BYTES = 512
_SEQ_END = 1 << 63
_T_END = 1 << 62  # in the year 2116, so that sums of stamps stay within 64 bits
_FLOAT32 = np.dtype("<f4")
_NUMBERS = frozenset((int, float))
_DTYPES = {
    prefix + kind: np.dtype("<" + kind)
    for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
    for prefix in ("<", "|" if kind[1] == "1" else "<", "")
}


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """What the configuration says of a stream; raises ValueError for what cannot be a stream.

    `shape` is that of one sample (`()` for a number), `frame` the most samples in a message.
    """

    name: str
    topic: str
    shape: tuple[int, ...]
    rate_hz: float
    max_age_ns: int
    frame: int = 1
    late_ns: int = 0
    numbers: int = field(init=False, repr=False, compare=False)
    """Values in one sample."""
    list_frame: int = field(init=False, repr=False, compare=False)
    """Most samples in a message that sends them as a list, see LIST_NUMBERS."""
    max_bytes: int = field(init=False, repr=False, compare=False)
    """Most bytes a valid message takes."""

    def __post_init__(self) -> None:
        numbers = prod(self.shape)
        if any(size < 1 for size in self.shape):
            raise ValueError(f"{self.name}: shape {list(self.shape)} has a size below 1")
        if self.frame < 1:
            raise ValueError(f"{self.name}: frame {self.frame} is below 1")
        if numbers * self.frame > MAX_NUMBERS:
            raise ValueError(f"{self.name}: {numbers * self.frame} values a frame are above {MAX_NUMBERS}")
        if not 0 < self.rate_hz < 1e9:
            raise ValueError(f"{self.name}: rate_hz {self.rate_hz} is not between 0 and 1e9")
        object.__setattr__(self, "numbers", numbers)
        object.__setattr__(self, "list_frame", min(self.frame, LIST_NUMBERS // numbers))
        object.__setattr__(self, "max_bytes", max_frame_bytes(self))


@dataclass(slots=True)
class Frame:
    """One decoded message: `data` float32 `[n, *shape]`, n samples of which `t` (UNIX ns) stamps the first.

    `received` is the receiver's monotonic ns. Integers beyond 2**24 lose their low bits in float32. `data`
    may be read-only.
    """

    seq: int
    t: int
    data: NDArray[np.float32]
    received: int


def max_frame_bytes(spec: StreamSpec) -> int:
    """Most bytes that a valid message of the stream takes in any encoding, for ZMQ_MAXMSGSIZE."""
    lists = 1 + spec.list_frame * sum(prod(spec.shape[:axis]) for axis in range(len(spec.shape)))
    as_list = 9 * spec.numbers * spec.list_frame + 5 * lists
    return max(as_list, 8 * spec.numbers * spec.frame) + _OVERHEAD_BYTES


def decode(payload: bytes, spec: StreamSpec, received: int) -> Frame:
    """The frame in `payload`, or Refused, whose `reason` is one word.

    `size`, `msgpack`, `keys` (one is missing, or not a map), `seq`, `t`, `dtype`, `shape`, `bytes` (binary
    samples that are not as long as their shape says), `data` (no numbers), `finite` (NaN, infinite or
    beyond float32).
    """
    if len(payload) > spec.max_bytes:
        raise Refused("size")
    try:
        message = (
            unpackb(payload)
            if len(payload) <= SMALL_BYTES
            else unpack_large(payload, spec.shape, spec.list_frame)
        )
    except Refused:
        raise
    except (
        Exception
    ) as error:  # msgpack's own and six more classes (ValueError, TypeError, RecursionError, ...)
        raise Refused("msgpack") from error
    if type(message) is not dict:
        raise Refused("keys")
    try:
        seq, t, data = message["seq"], message["t"], message["data"]
    except KeyError:
        raise Refused("keys") from None
    if type(seq) is not int or not 0 <= seq < _SEQ_END:
        raise Refused("seq")
    if type(t) is not int or not 0 <= t < _T_END:
        raise Refused("t")
    return Frame(seq, t, _samples(data, spec), received)


def _samples(data: Any, spec: StreamSpec) -> NDArray[np.float32]:
    """float32 `[n, *shape]` from any of the three forms of `data`."""
    kind = type(data)
    if kind is list:
        dims = _dims_of(data, spec)
        return _from_numbers(data if len(dims) == 1 else _flat(data, dims), dims, spec)
    if kind is dict:
        return _from_binary(data, spec)
    if spec.shape:
        raise Refused("shape" if kind in _NUMBERS else "data")
    return _from_numbers([data], (), spec)


def _dims_of(data: list[Any], spec: StreamSpec) -> tuple[int, ...]:
    """The shape that a nested list claims by its first elements, if the stream allows it."""
    dims: tuple[int, ...] = ()
    item: Any = data
    while type(item) is list and len(dims) <= len(spec.shape):
        dims += (len(item),)
        item = item[0] if item else None
    _count(dims, spec)
    return dims


def _count(dims: tuple[int, ...], spec: StreamSpec) -> int:
    """Samples in data of shape `dims`, which must be the stream's, or `[n, *shape]`."""
    if dims == spec.shape:
        return 1
    if dims[1:] == spec.shape and len(dims) == len(spec.shape) + 1 and 1 <= dims[0] <= spec.frame:
        return dims[0]
    raise Refused("shape")


def _flat(rows: Any, dims: tuple[int, ...]) -> list[Any]:
    """The numbers of a nested list in order; every row must be as long as `dims` says."""
    if type(rows) is not list or len(rows) != dims[0]:
        raise Refused("shape")
    if len(dims) == 1:
        return rows
    return [number for row in rows for number in _flat(row, dims[1:])]


def _from_numbers(numbers: list[Any], dims: tuple[int, ...], spec: StreamSpec) -> NDArray[np.float32]:
    if not _NUMBERS.issuperset(map(type, numbers)):
        raise Refused("data")
    try:
        packed = _struct(len(numbers)).pack(*numbers)
    except OverflowError:
        raise Refused("finite") from None
    if not isfinite(sum(numbers)):  # all are within float32, so the sum of finite ones cannot overflow
        raise Refused("finite")
    return np.ndarray((_count(dims, spec), *spec.shape), _FLOAT32, packed)


@lru_cache(maxsize=256)
def _struct(count: int) -> Struct:
    return Struct(f"<{count}f")


def _from_binary(data: Mapping[Any, Any], spec: StreamSpec) -> NDArray[np.float32]:
    if b"nd" in data:
        name, dims, raw = data.get(b"type"), data.get(b"shape", []), data.get(b"data")
        if data.get(b"kind", b"") not in (b"", ""):  # structured or pickled
            raise Refused("dtype")
    else:
        name, dims, raw = data.get("dtype"), data.get("shape"), data.get("data")
    dtype = _DTYPES.get(name) if type(name) is str else None
    if dtype is None:
        raise Refused("dtype")
    if type(dims) is not list or any(type(size) is not int for size in dims):
        raise Refused("shape")
    count = _count(tuple(dims), spec)
    if not isinstance(raw, bytes | memoryview) or len(raw) != count * spec.numbers * dtype.itemsize:
        raise Refused("bytes")
    with np.errstate(over="ignore", invalid="ignore"):
        samples = np.ndarray((count, *spec.shape), dtype, raw).astype(np.float32)
    if dtype.kind == "f" and not np.isfinite(samples).all():
        raise Refused("finite")
    return samples
