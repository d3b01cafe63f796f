"""The configuration as the program sees it, and the rule of every key, side by side.

Names of fields are the keys of the file (but `from`, a Python keyword, is `source`). Times carry their unit
in the name. A field declared with `key(rule)` is required, with `key(rule, default)` optional; a
field without a rule is filled by the loader: names, derived numbers and what has a table of its own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reflexarc.node.config.endpoint import Endpoint
from reflexarc.node.config.priority import Priority, PriorityRule
from reflexarc.node.config.rules import (
    LABEL,
    NAME,
    TOPIC,
    UNIT,
    Bool,
    Choice,
    Many,
    Number,
    OneOrMany,
    Rule,
    Text,
    integer,
)

_REQUIRED: Any = object()
_NAME = Text(NAME, "a name like upper_arm (a-z, 0-9, _, a letter first)", 63)
_REAL = Number(-1e12, 1e12)
_FACTORS = OneOrMany(Many(_REAL, 1, 65536))
_CORES = Many(integer(0, 4095), 1, 1024, unique=True)
_FIFO_50, _OTHER = Priority("fifo", 50), Priority("other")
_RETURN = Choice(("ramp", "jump"))


def key(rule: Rule, default: Any = _REQUIRED, name: str = "") -> Any:
    """A key of the file: its rule, its default, and its name where the field is called otherwise."""
    metadata = {"rule": rule, "name": name}
    return field(metadata=metadata) if default is _REQUIRED else field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """[node]: the node as a whole; `publish` is where every topic of the node comes out."""

    name: str = key(_NAME)
    publish: str = key(Endpoint())
    insecure: bool = key(Bool(), False)  # allow endpoints beyond loopback and ipc
    shutdown_ms: int = key(integer(0, 60_000), 1000)  # SIGTERM: ramp for at most this, then jump
    ready_grace_ms: int = key(integer(0, 600_000), 10_000)  # ready without input after this


@dataclass(frozen=True, slots=True, kw_only=True)
class Estop:
    """gate.estop: the socket the gate binds for stops; silence for `heartbeat_ms` is a stop (0: never)."""

    endpoint: str = key(Endpoint())
    heartbeat_ms: int = key(integer(0, 60_000), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """[gate]: the main process. `cores` None: all allowed. `memory_mb` in MiB of resident memory."""

    cores: tuple[int, ...] | None = key(_CORES, None)
    priority: Priority = key(PriorityRule(), _FIFO_50)  # noqa: RUF009 (frozen)
    stall_ms: int = key(integer(10, 60_000), 200)  # a loop that stood still longer begins a new epoch
    memory_mb: int = key(integer(16, 65_536), 28)
    estop: Estop | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """[worker.NAME]: one process. `cores` None: placed by the node. `memory_mb` in MiB, a hard limit."""

    name: str
    cores: tuple[int, ...] | None = key(_CORES, None)
    threads: int = key(integer(1, 256), 1)
    memory_mb: int = key(integer(16, 1_048_576))
    priority: Priority = key(PriorityRule(), _OTHER)  # noqa: RUF009 (frozen)
    stall_ms: int = key(integer(10, 60_000), 500)
    spin_us: int = key(integer(0, 100_000), 50)  # helper threads spin this long before they sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """[stream.NAME]: one sensor topic. `shape` is one sample's; a message holds 1 to `frame` samples."""

    name: str
    endpoint: str = key(Endpoint())
    topic: str = key(Text(TOPIC, "a topic like imu/wrist", 128))
    shape: tuple[int, ...] = key(Many(integer(1, 65_536), 0, 4))
    rate_hz: float = key(Number(0, 1e6, above=True))  # samples a second
    max_age_ms: float = key(Number(0, 3.6e6, above=True))  # silent longer: not alive
    frame: int = key(integer(1, 1_000_000), 1)
    late_ms: float = key(Number(0, 60_000), 0.0)  # a window waits this long for reordered frames
    queue: int = key(integer(1, 1_000_000), 1000)  # messages, ZeroMQ's high-water mark

    @property
    def elements(self) -> int:
        """Numbers in one sample."""
        return math.prod(self.shape)

    @property
    def period_ms(self) -> float:
        """Time that one full message covers, in ms."""
        return 1000 * self.frame / self.rate_hz

    @property
    def max_bytes(self) -> int:
        """The largest payload of a message: numbers at their longest (9 in msgpack), list headers, keys."""
        rows = self.frame * math.prod(self.shape[:-1])
        return 512 + 9 * self.frame * self.elements + 5 * rows * max(1, len(self.shape))


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """pipeline.NAME.window: the last `length_s` of a stream every `hop_s`; in samples `length` and `hop`.

    Gaps up to `fill_ms` are filled; a window with a longer one is unavailable.
    """

    stream: str = key(_NAME)
    length_s: float = key(Number(0, 86_400, above=True))
    hop_s: float = key(Number(0, 86_400, above=True))
    resample: str = key(Choice(("none", "linear")), "none")
    fill_ms: float = key(Number(0, 60_000), 0.0)
    length: int = 0
    hop: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Classify:
    """pipeline.NAME.decide, kind "classify": scores to a label. `hold` and `smooth` count windows."""

    kind: str = key(Choice(("classify",)))
    labels: tuple[str, ...] = key(
        Many(Text(LABEL, "a label (letters, digits, _ . + -)", 64), 1, 65_536, unique=True)
    )
    threshold: float = key(Number(0, 1), 0.5)
    hold: int = key(integer(1, 10_000), 1)
    smooth: int = key(integer(1, 10_000), 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """[pipeline.NAME]: window, x * scale + offset (one, or one each on the last axis), model, decision."""

    name: str
    worker: str = key(_NAME)
    model: Path
    window: Window
    decide: Classify
    scale: tuple[float, ...] = key(_FACTORS, (1.0,))
    offset: tuple[float, ...] = key(_FACTORS, (0.0,))
    deadline_ms: float = key(Number(0, 3.6e6, above=True))  # from the newest sample's receipt to the decision


@dataclass(frozen=True, slots=True)
class FromLabels:
    """`from = { ABD = 6, otherwise = 0 }`: a value for each label, `otherwise` for the rest and undecided."""

    values: Mapping[str, float]
    otherwise: float


@dataclass(frozen=True, slots=True)
class FromValue:
    """`from = "value.NAME"`: the decision's own value of that name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """channel.NAME.values.VALUE: one number of a command, `value.VALUE` on the wire. Rates are per second."""

    name: str
    unit: str = key(Text(UNIT, "a unit", 32))
    min: float = key(_REAL)
    max: float = key(_REAL)
    slew: float = key(Number(0, 1e12, above=True))
    jerk: float = key(Number(0, 1e12), 0.0)  # 0: no limit
    safe: float = key(_REAL)
    scale: float = key(_REAL, 1.0)  # target = scale * what `from` gives + offset
    offset: float = key(_REAL, 0.0)
    source: FromLabels | FromValue


MAX_RATE_HZ = 1000.0
"""Default of a channel's max_rate_hz, or its rate_hz where that is more.

The gap it leaves is also the longest that a decision waits behind a periodic command.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """[channel.NAME]: topic control/NAME. A decision lives `max_age_ms`, a command `ttl_ms` there."""

    name: str
    pipeline: str = key(_NAME)
    rate_hz: float = key(Number(0, 10_000, above=True))
    max_rate_hz: float = key(Number(0, 100_000, above=True), 0.0)  # default: see MAX_RATE_HZ
    max_age_ms: float = key(Number(0, 3.6e6, above=True))
    ttl_ms: float = key(Number(0, 3.6e6, above=True))
    stale: str = key(_RETURN, "ramp")
    estop: str = key(_RETURN, "jump")
    values: Mapping[str, Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The whole file. `text` and `base` are what it was read from: parse(text, base) gives it again."""

    node: Node
    gate: Gate
    workers: Mapping[str, Worker]
    streams: Mapping[str, Stream]
    pipelines: Mapping[str, Pipeline]
    channels: Mapping[str, Channel]
    text: str
    base: Path

    def pipelines_of(self, worker: str) -> list[Pipeline]:
        """The pipelines that run in a worker, in the file's order."""
        return [p for p in self.pipelines.values() if p.worker == worker]

    def streams_of(self, worker: str) -> list[Stream]:
        """The streams that a worker reads, each once, in the order of its pipelines."""
        return [
            self.streams[name] for name in dict.fromkeys(p.window.stream for p in self.pipelines_of(worker))
        ]
