"""Protocol buffers' wire format, read without trust.

Source: https://protobuf.dev/programming-guides/encoding/. Only what is in the buffer is ever touched or
allocated: a length is compared with the bytes that are left before it is used, nested messages are slices
handed back to the caller (so nesting follows the caller's schema, never the file), and groups are refused.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import ModelError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_FIELDS = 1 << 20

Value = int | memoryview


def fields(message: memoryview) -> Iterator[tuple[int, Value]]:
    """Each field's number and value: an unsigned integer for a varint, else the bytes it covers."""
    at = count = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        count += 1
        if number == 0 or number > 0x1FFFFFFF or count > MAX_FIELDS:
            raise ModelError(
                f"protobuf: field number {number}, or more than {MAX_FIELDS} fields, at byte {at}"
            )
        if wire == VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if wire == BYTES:
            size, at = _varint(message, at)
        elif wire in (FIXED32, FIXED64):
            size = 4 if wire == FIXED32 else 8
        else:
            raise ModelError(f"protobuf: wire type {wire} of field {number} at byte {at}")
        if size > len(message) - at:
            raise ModelError(f"protobuf: field {number} of {size} bytes with {len(message) - at} left")
        yield number, message[at : at + size]
        at += size


def signed(value: int) -> int:
    """A varint as the int64 it stands for."""
    return value - (1 << 64) if value >> 63 else value


def packed_varints(data: memoryview) -> NDArray[np.int64]:
    """A packed repeated int64 or int32 field."""
    raw = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(raw < 0x80)
    if raw.size and (not ends.size or ends[-1] != raw.size - 1):
        raise ModelError("protobuf: a packed list ends inside a number")
    starts = np.concatenate(([0], ends[:-1] + 1)).astype(np.int64)[: ends.size]
    lengths = ends - starts + 1
    if ends.size and lengths.max() > 10:
        raise ModelError("protobuf: a number longer than 10 bytes")
    values = np.zeros(ends.size, np.uint64)
    for step in range(int(lengths.max(initial=0))):
        here = lengths > step
        bits = (raw[starts[here] + step] & 0x7F).astype(np.uint64)
        values[here] |= bits << np.uint64(7 * step)
    return values.view(np.int64)


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            raise ModelError(f"protobuf: the message ends inside a number at byte {at}")
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
    raise ModelError(f"protobuf: a number longer than 10 bytes at byte {at}")
