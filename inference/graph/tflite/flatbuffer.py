"""FlatBuffers, read without trust.

Source: https://flatbuffers.dev/internals/. A table is a place in the buffer: a signed distance back to its
vtable, which lists where in the table each field lies. Every place and length is compared with the buffer
before it is used; nothing is copied. Tables and numbers may be shared within a file, so that reading a small
one could take for ever: all that is read is counted against the size of the file.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import ModelError

SHARING = 4
"""How often, on average, a byte of a file may be read."""
SLACK = 1 << 12


class Buffer:
    """The bytes of one FlatBuffer and how many more of them may be read."""

    def __init__(self, data: memoryview, identifier: bytes) -> None:
        """Open a buffer; `ModelError` unless it carries the identifier."""
        if bytes(data[4:8]) != identifier:
            raise ModelError(f"FlatBuffer of {len(data)} bytes without the identifier {identifier.decode()}")
        self.data = data
        self._left = SHARING * len(data) + SLACK

    def root(self) -> Table:
        """The table everything hangs on."""
        return Table(self, self.follow(0, "root"), "model")

    def number(self, at: int, code: str, what: str) -> Any:
        """One number, by its code in `struct`."""
        self.check(at, struct.calcsize(code), what)
        return struct.unpack_from("<" + code, self.data, at)[0]

    def follow(self, at: int, what: str) -> int:
        """Where the offset that lies at `at` leads."""
        return at + int(self.number(at, "I", what))

    def check(self, at: int, size: int, what: str) -> None:
        """Refuse bytes outside the buffer, and too many of them in all."""
        if at < 0 or at + size > len(self.data):
            raise ModelError(f"FlatBuffer: {what}: {size} bytes at {at} of {len(self.data)}")
        self._left -= size
        if self._left < 0:
            raise ModelError(f"FlatBuffer: {what}: its parts are shared more than {SHARING} times over")


class Table:
    """One table; fields are named by their number in the schema. `what` names it in errors."""

    def __init__(self, buffer: Buffer, at: int, what: str) -> None:
        self.what = what
        self._buffer = buffer
        self._at = at
        self._vtable = at - int(buffer.number(at, "i", what))
        self._size = int(buffer.number(self._vtable, "H", what))

    def scalar(self, field: int, code: str, default: Any = 0) -> Any:
        """A number, by its code in `struct`."""
        at = self._place(field)
        return default if at is None else self._buffer.number(at, code, f"{self.what} field {field}")

    def table(self, field: int, what: str) -> Table | None:
        """Another table."""
        at = self._place(field)
        return None if at is None else Table(self._buffer, self._buffer.follow(at, what), what)

    def tables(self, field: int, what: str) -> list[Table]:
        """A vector of tables, named `what` and their index."""
        start, count = self._vector(field, 4)
        self._buffer.check(start, 4 * count, what)
        places = (start + 4 * index for index in range(count))
        return [
            Table(self._buffer, self._buffer.follow(at, f"{what} {i}"), f"{what} {i}")
            for i, at in enumerate(places)
        ]

    def numbers(self, field: int, dtype: str) -> NDArray[Any]:
        """A vector of numbers, as a view."""
        wanted = np.dtype(dtype).newbyteorder("<")
        start, count = self._vector(field, wanted.itemsize)
        self._buffer.check(start, wanted.itemsize * count, f"{self.what} field {field}")
        return np.frombuffer(self._buffer.data, wanted, count, start)

    def integers(self, field: int) -> tuple[int, ...]:
        """A vector of int32."""
        return tuple(self.numbers(field, "i4").tolist())

    def span(self, field: int) -> memoryview:
        """A vector of bytes, however often it is shared."""
        start, count = self._vector(field, 1)
        return self._buffer.data[start : start + count]

    def text(self, field: int, limit: int = 1000) -> str:
        """A string, cut at `limit` bytes."""
        return bytes(self.span(field)[:limit]).decode(errors="replace")

    def _place(self, field: int) -> int | None:
        """Where a field lies; None if it has its default."""
        slot = 4 + 2 * field
        if slot + 2 > self._size:
            return None
        offset = int(self._buffer.number(self._vtable + slot, "H", f"{self.what} field {field}"))
        return self._at + offset if offset else None

    def _vector(self, field: int, size: int) -> tuple[int, int]:
        """Where a vector's elements begin and how many of `size` bytes there are; none if it is absent."""
        what = f"{self.what} field {field}"
        at = self._place(field)
        if at is None:
            return 0, 0
        start = self._buffer.follow(at, what)
        count = int(self._buffer.number(start, "I", what))
        start += 4
        if count * size > len(self._buffer.data) - start:
            raise ModelError(
                f"FlatBuffer: {what}: {count} elements of {size} bytes at {start} of {len(self._buffer.data)}"
            )
        return start, count
