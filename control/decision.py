"""What a pipeline concluded from one window: a `Decision`, and its form as a plain map."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

UNDECIDED: Final = "undecided"
"""Label of an answer that is not sure yet: the model ran, no class is certain enough."""

UNAVAILABLE: Final = "unavailable"
"""Label of no answer: an incomplete window, or a model that gave none; not the same as "nothing detected"."""

VALUE_PREFIX: Final = "value."
_INTEGERS: Final = ("session", "seq", "t", "source_t", "source_seq", "received", "epoch")


@dataclass(frozen=True, slots=True)
class Decision:
    """One answer of one pipeline.

    `t` and `source_t` (stamp of the newest sample used) are UNIX ns; `received` is CLOCK_MONOTONIC ns, the
    receipt of the newest input less the time it had waited in buffers: the gate counts the age from it.
    `session` is the worker's random number, `epoch` counts its fresh starts after a standstill.
    """

    pipeline: str
    session: int
    seq: int
    t: int
    source_t: int
    source_seq: int
    received: int
    epoch: int
    label: str
    confidence: float
    available: bool
    values: Mapping[str, float]

    def to_map(self) -> dict[str, int | float | str | bool]:
        """Make the map of the topic decision/PIPELINE; the pipeline's name is in the topic alone."""
        plain: dict[str, int | float | str | bool] = {name: getattr(self, name) for name in _INTEGERS}
        plain["label"] = self.label
        plain["confidence"] = self.confidence
        plain["available"] = self.available
        for name, value in self.values.items():
            plain[VALUE_PREFIX + name] = value
        return plain

    @classmethod
    def from_map(cls, pipeline: str, plain: Mapping[str, object]) -> "Decision":
        """Read the map of the topic decision/PIPELINE; keys it does not know are left alone.

        Raises ValueError naming the key that is missing, of another type, or no float (an integer above
        1e308). NaN and infinities pass: `Channel.accept` refuses and counts them.
        """
        label, available = plain.get("label"), plain.get("available")
        if not isinstance(label, str):
            raise ValueError(f"decision: label must be a string, not {label!r:.40}")
        if not isinstance(available, bool):
            raise ValueError(f"decision: available must be true or false, not {available!r:.40}")
        integers = {name: _integer(name, plain.get(name)) for name in _INTEGERS}
        values = {
            key.removeprefix(VALUE_PREFIX): _number(key, value)
            for key, value in plain.items()
            if isinstance(key, str) and key.startswith(VALUE_PREFIX)
        }
        confidence = _number("confidence", plain.get("confidence"))
        return cls(
            pipeline=pipeline,
            label=label,
            confidence=confidence,
            available=available,
            values=values,
            **integers,
        )


def _integer(name: str, value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"decision: {name} must be an integer, not {value!r:.40}")
    return value


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"decision: {name} must be a number, not {value!r:.40}")
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"decision: {name} is an integer too large for a float") from None
