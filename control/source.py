"""Where a channel's value comes from: the `from` of its configuration."""

import math
from collections.abc import Mapping
from typing import Final, Protocol

from reflexarc.control.decision import VALUE_PREFIX, Decision

OTHERWISE: Final = "otherwise"


class Unusable(Exception):  # noqa: N818 - a finding about a decision, not a fault of the program
    """A decision that holds nothing for this value; `word` is the reason."""

    def __init__(self, word: str) -> None:
        super().__init__(word)
        self.word = word


class Source(Protocol):
    """Reads one value out of a decision; the result may be non-finite, the channel refuses that."""

    def __call__(self, decision: Decision) -> float:
        """Give the value; raises `Unusable` where the decision does not hold it."""
        ...


class LabelTable:
    """A value a label; one that is not in the table takes `otherwise`, or is refused where there is none."""

    __slots__ = ("_otherwise", "_table")

    def __init__(self, table: Mapping[str, float], scale: float = 1.0, offset: float = 0.0) -> None:
        scaled = {label: float(value) * scale + offset for label, value in table.items()}
        for label, value in scaled.items():
            if not math.isfinite(value):
                raise ValueError(f"from: the value of {label} is {value}, not finite")
        self._otherwise = scaled.pop(OTHERWISE, None)
        self._table = scaled

    def __call__(self, decision: Decision) -> float:
        """Look the decision's label up; raises `Unusable("label")`."""
        value = self._table.get(decision.label, self._otherwise)
        if value is None:
            raise Unusable("label")
        return value


class NamedValue:
    """One of the decision's own values, times `scale`, plus `offset`."""

    __slots__ = ("_name", "_offset", "_scale")

    def __init__(self, name: str, scale: float = 1.0, offset: float = 0.0) -> None:
        if not (math.isfinite(scale) and math.isfinite(offset)):
            raise ValueError(f"from: scale {scale} and offset {offset} must be finite")
        self._name = name
        self._scale = scale
        self._offset = offset

    def __call__(self, decision: Decision) -> float:
        """Read the value; raises `Unusable("value")` where the decision has none of that name."""
        value = decision.values.get(self._name)
        if value is None:
            raise Unusable("value")
        return value * self._scale + self._offset


def make_source(spec: Mapping[str, float] | str, scale: float = 1.0, offset: float = 0.0) -> Source:
    """Make the source of a `from`: a table of labels, or "value.NAME"; raises ValueError for others."""
    if not isinstance(spec, str):
        return LabelTable(spec, scale, offset)
    name = spec.removeprefix(VALUE_PREFIX)
    if name == spec or not name:
        raise ValueError(f'from: {spec!r} is neither a table of labels nor "value.NAME"')
    return NamedValue(name, scale, offset)
