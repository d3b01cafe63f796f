"""Builders for the tests of control/: a decision and a channel with sensible parts, each part replaceable."""

import math
from collections.abc import Mapping
from typing import Any

from reflexarc.control.decision import Decision
from reflexarc.control.limiter import Limits
from reflexarc.control.source import Source, make_source
from reflexarc.control.spec import ChannelSpec, ValueSpec

MS = 1_000_000
S = 1_000_000_000
START = 100 * S
FROM = {"ABD": 6.0, "ROW": 3.0, "otherwise": 0.0}


def decision(received: int, **parts: Any) -> Decision:
    whole: dict[str, Any] = {
        "pipeline": "exercise",
        "session": 7,
        "seq": 1,
        "t": 5_000,
        "source_t": 4_000,
        "source_seq": 40,
        "epoch": 0,
        "label": "ABD",
        "confidence": 0.9,
        "available": True,
        "values": {},
    }
    return Decision(received=received, **(whole | parts))


def value_spec(
    name: str = "torque",
    source: Source | Mapping[str, float] | str | None = None,
    safe: float = 0.0,
    minimum: float = 0.0,
    maximum: float = 8.0,
    slew: float = 4.0,
    jerk: float = 0.0,
) -> ValueSpec:
    if source is None or isinstance(source, Mapping | str):
        source = make_source(FROM if source is None else source)
    return ValueSpec(name, Limits(minimum, maximum, slew, jerk), safe, source)


def channel_spec(*values: ValueSpec, **parts: Any) -> ChannelSpec:
    whole: dict[str, Any] = {
        "name": "assist_torque",
        "pipeline": "exercise",
        "period_ns": 20 * MS,
        "gap_ns": 5 * MS,
        "max_age_ns": 700 * MS,
        "ttl_ms": 100,
        "stale": "ramp",
        "estop": "jump",
        "stall_ns": 200 * MS,
        "values": values or (value_spec(),),
    }
    return ChannelSpec(**(whole | parts))


def slack(*numbers: float) -> float:
    """What rounding may add to a difference of numbers of this size."""
    return 4 * math.ulp(max(map(abs, numbers)))
