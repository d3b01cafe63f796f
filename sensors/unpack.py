"""Reading a large msgpack map from untrusted bytes, so that nothing is built that a valid frame would not
hold.

`unpackb` builds before it is asked: 1 MB of empty maps becomes 64 MB of objects, and nested arrays each
reserve the length they claim. A small payload cannot do harm by that; a large one is walked here with
`Unpacker.skip`, which finds the end of a value without building it, and only slices of a bounded size are
built.
"""

from collections.abc import Iterator
from typing import Any

from msgpack import Unpacker, unpackb

SMALL_BYTES = 1024
_MAX_KEYS = 16
_MAX_SCALAR_BYTES = 64
_MAX_NUMBER_BYTES = 9
_MAX_HEADER_BYTES = 5
_BIN_HEADER_BYTES = {0xC4: 2, 0xC5: 3, 0xC6: 5}
_NO_BYTES = {"max_str_len": 0, "max_bin_len": 0, "max_ext_len": 0}


class Refused(ValueError):  # noqa: N818 (a verdict on a payload)
    """A payload that is not a valid frame; `reason` is the one word that counters use."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def unpack_large(payload: bytes, shape: tuple[int, ...], samples: int) -> dict[Any, Any]:
    """The map in `payload` with its keys `seq`, `t` and `data` only, in time linear in the bytes.

    `shape` is that of one sample; at most `samples` may come as nested lists. Binary data stays a view of
    `payload`. Raises Refused, or whatever msgpack raises.
    """
    walk = _Walk(payload)
    message: dict[Any, Any] = {}
    for key in walk.map_keys():
        if key == "data":
            message[key] = walk.data(shape, samples)
        elif key in ("seq", "t"):
            message[key] = walk.scalar()
        else:
            walk.take()
    if walk.tell() != len(payload):
        raise Refused("msgpack")
    return message


class _Walk:
    """A cursor over one message."""

    def __init__(self, payload: bytes) -> None:
        self._view = memoryview(payload)
        self._unpacker = Unpacker(max_buffer_size=len(payload))
        self._unpacker.feed(payload)
        self.tell = self._unpacker.tell

    def take(self) -> memoryview:
        """The next value's bytes."""
        start = self.tell()
        self._unpacker.skip()
        return self._view[start : self.tell()]

    def scalar(self) -> Any:
        """The next value, of at most 64 bytes."""
        taken = self.take()
        if len(taken) > _MAX_SCALAR_BYTES:
            raise Refused("size")
        return unpackb(taken)

    def map_keys(self) -> Iterator[Any]:
        """The keys of the map that comes next; the caller reads each one's value before the next key."""
        count = self._unpacker.read_map_header()
        if count > _MAX_KEYS:
            raise Refused("keys")
        for _ in range(count):
            key = self.scalar()
            if not isinstance(key, str | bytes):
                raise Refused("keys")
            yield key

    def data(self, shape: tuple[int, ...], samples: int) -> Any:
        """A number, nested lists of exactly the shape, or the map of binary samples."""
        head = self._view[self.tell()]
        if _is_map(head):
            return {
                key: self._binary() if key in ("data", b"data") else self.scalar() for key in self.map_keys()
            }
        depth = self._depth(len(shape) + 1)
        if not depth:
            return self.scalar()
        count = 1 if depth == len(shape) else self._array_header(self.tell())[0]
        if not 1 <= count <= samples:
            raise Refused("size" if samples < count else "shape")
        if depth == len(shape):
            return self._rows(shape)
        return self._rows((count, *shape))

    def _rows(self, dims: tuple[int, ...]) -> list[Any]:
        """Nested lists of exactly these lengths, numbers in the innermost."""
        if len(dims) == 1:
            return self._numbers(dims[0])
        if not _is_array(self._view[self.tell()]) or self._unpacker.read_array_header() != dims[0]:
            raise Refused("shape")
        return [self._rows(dims[1:]) for _ in range(dims[0])]

    def _numbers(self, count: int) -> list[Any]:
        """A list of `count` values with nothing inside that could be larger than a number."""

        def check_length(row: list[Any]) -> list[Any]:
            if len(row) != count:
                raise Refused("shape")
            return row

        row = self.take()
        if len(row) > _MAX_HEADER_BYTES + _MAX_NUMBER_BYTES * count:
            raise Refused("data")
        numbers: list[Any] = unpackb(
            row, list_hook=check_length, object_hook=_refuse, ext_hook=_refuse, **_NO_BYTES
        )
        return numbers

    def _depth(self, limit: int) -> int:
        """How many arrays open one inside the other here; at most `limit` may."""
        at, depth = self.tell(), 0
        while _is_array(self._view[at]):
            depth += 1
            if depth > limit:
                raise Refused("shape")
            at += self._array_header(at)[1]
        return depth

    def _array_header(self, at: int) -> tuple[int, int]:
        """Length that the array at `at` claims, and bytes of its header."""
        head = self._view[at]
        if head < 0xDC:
            return head & 0x0F, 1
        size = 2 if head == 0xDC else 4
        return int.from_bytes(self._view[at + 1 : at + 1 + size], "big"), 1 + size

    def _binary(self) -> memoryview:
        header = _BIN_HEADER_BYTES.get(self._view[self.tell()])
        if header is None:
            raise Refused("bytes")
        return self.take()[header:]


def _refuse(*_: Any) -> Any:
    raise Refused("data")


def _is_array(head: int) -> bool:
    return head & 0xF0 == 0x90 or head in (0xDC, 0xDD)


def _is_map(head: int) -> bool:
    return head & 0xF0 == 0x80 or head in (0xDE, 0xDF)
