"""Messages on the wire: two parts, a topic (UTF-8) and one msgpack map; all else is refused with a word.

Times are UNIX nanoseconds. Nothing here trusts its input: bytes, lengths and nesting are bounded before and
while anything is built, and every way msgpack can fail is one `Refused`. Sensor frames have a decoder of
their own (`sensors.frame`); this one is for the node's own topics, the e-stop, and tools.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgpack

from reflexarc.control.decision import Decision

MAX_BYTES: Final = 64 * 1024
"""The longest payload of the node's own topics; also the ZMQ_MAXMSGSIZE of the sockets that receive them."""

MAX_TOPIC: Final = 200
MAX_ITEMS: Final = 4096
MAX_DEPTH: Final = 8
MAX_STOP_ITEMS: Final = 256  # of one list or map in an e-stop message: msgpack sets room aside as claimed

DECISION: Final = "decision/"
CONTROL: Final = "control/"
TRACE: Final = "trace/"
HEALTH: Final = "health/"
HELLO: Final = "hello/"
ESTOP: Final = "estop"

Plain = bool | int | float | str
_packer = msgpack.Packer(buf_size=MAX_BYTES)


class Refused(ValueError):  # noqa: N818 - a finding about a message, not a fault of the program
    """A message that is not taken; `reason` is one word, the name of its counter.

    parts (not two), size, topic (not UTF-8, or too long), msgpack (not one whole value within the caps), map
    (no map), nested (more than a flat map), keys (one missing, or of another type).
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def encode(topic: str, plain: Mapping[str, object]) -> list[bytes]:
    """The two parts of a message. Not thread-safe. TypeError, OverflowError for what it cannot hold."""
    return [topic.encode(), _packer.pack(plain)]


def decode(
    parts: Sequence[bytes], max_bytes: int = MAX_BYTES, *, flat: bool = True
) -> tuple[str, dict[str, object]]:
    """The topic and the map of a message. Raises Refused.

    `flat` refuses lists, maps and binary as values: the node's own topics hold only numbers, strings and
    booleans. Without it they may nest to MAX_DEPTH.
    """
    if len(parts) != 2:
        raise Refused("parts")
    head, payload = parts
    if len(payload) > max_bytes:
        raise Refused("size")
    topic = decode_topic(head)
    plain = _unpack(payload, max_bytes)
    if not isinstance(plain, dict):
        raise Refused("map")
    for key, value in plain.items():
        if not isinstance(key, str):
            raise Refused("keys")
        if not isinstance(value, Plain) and (flat or not _shallow(value, MAX_DEPTH)):
            raise Refused("nested")
    return topic, plain


def decode_topic(part: bytes) -> str:
    """The topic in a message's first part. Raises Refused("topic")."""
    if len(part) > MAX_TOPIC:
        raise Refused("topic")
    try:
        return part.decode()
    except UnicodeDecodeError:
        raise Refused("topic") from None


def decode_decision(parts: Sequence[bytes], max_bytes: int = MAX_BYTES) -> Decision:
    """The Decision in a message of a topic decision/PIPELINE. Raises Refused."""
    topic, plain = decode(parts, max_bytes)
    if not topic.startswith(DECISION):
        raise Refused("topic")
    try:
        return Decision.from_map(topic.removeprefix(DECISION), plain)
    except ValueError:
        raise Refused("keys") from None


def decode_stop(parts: Sequence[bytes]) -> dict[str, object]:
    """What `control.estop` may know of a message to the e-stop, whatever its form: stop, id and reason.

    Nothing is refused, for all that is not shown to be a heartbeat or a reset is a stop. `stop` is left out
    of what is not a topic and one whole map that says both once: its id is found, but it can only stop.
    """
    found = [_first_map(part) for part in parts]
    maps = [pairs for pairs, _ in found if pairs is not None]
    pairs = next((each for each in maps if "id" in _names(each)), maps[0] if maps else _Pairs())
    names = _names(pairs)
    plain = {name: value for name, (_, value) in zip(names, pairs, strict=True) if name in ("id", "reason")}
    sound = len(parts) == 2 and found[1][0] is pairs and found[1][1]
    stops = [value for key, value in pairs if key == "stop"]
    if sound and len(stops) == 1 and names.count("stop") == 1 and names.count("id") <= 1:
        plain["stop"] = stops[0]
    return plain


class _Pairs(list[tuple[object, object]]):
    """A map as it came: keys may be anything, and come twice."""


def _names(pairs: _Pairs) -> list[str]:
    """The keys of a map as text, "" for what is none."""
    texts = [key.decode("latin-1") if isinstance(key, bytes) else key for key, _ in pairs]
    return [text if isinstance(text, str) else "" for text in texts]


def _first_map(part: bytes) -> tuple[_Pairs | None, bool]:
    """The map at the beginning of a part, and whether the part is that map and no more."""
    if len(part) > MAX_BYTES:
        return None, False
    whole = True
    try:
        value = msgpack.unpackb(
            part,
            object_pairs_hook=_Pairs,
            strict_map_key=False,
            unicode_errors="surrogateescape",
            max_str_len=MAX_BYTES,
            max_bin_len=MAX_BYTES,
            max_array_len=MAX_STOP_ITEMS,
            max_map_len=MAX_STOP_ITEMS,
            max_ext_len=MAX_BYTES,
        )
    except msgpack.ExtraData as more:
        value, whole = more.unpacked, False
    except (ValueError, OverflowError, TypeError, RecursionError, MemoryError, msgpack.UnpackException):
        return None, False
    return (value, whole) if isinstance(value, _Pairs) else (None, False)


def _unpack(payload: bytes, max_bytes: int) -> object:
    items = min(max_bytes, MAX_ITEMS)
    try:
        return msgpack.unpackb(
            payload,
            max_str_len=max_bytes,
            max_bin_len=max_bytes,
            max_array_len=max_bytes,
            max_map_len=items,
            max_ext_len=0,
        )
    except (ValueError, OverflowError, TypeError, RecursionError, MemoryError, msgpack.UnpackException):
        raise Refused("msgpack") from None


def _shallow(value: object, depth: int) -> bool:
    if depth == 0:
        return False
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(_shallow(item, depth - 1) for item in inner)
