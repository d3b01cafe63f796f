"""Activations fused into an operator: a range of integers, or a node of its own behind a float one."""

from __future__ import annotations

from reflexarc.inference.graph.ir import QuantParams
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.tables import steps

BOUNDS: dict[int, tuple[float | None, float | None]] = {
    0: (None, None),
    1: (0.0, None),
    2: (-1.0, 1.0),
    3: (0.0, 6.0),
}
"""By their number in the file: NONE, RELU, RELU_N1_TO_1, RELU6."""


def bounds(context: Context) -> tuple[float | None, float | None]:
    """Lowest and highest value of the operator's fused activation."""
    kind = context.option("activation")
    if kind not in BOUNDS:
        raise context.unsupported(f"fused activation {kind}")
    return BOUNDS[kind]


def integer_range(context: Context, quant: QuantParams | None) -> dict[str, int]:
    """`qmin` and `qmax` of a result."""
    low, high = bounds(context)
    return {
        "qmin": -128 if low is None else steps(context, quant, low),
        "qmax": 127 if high is None else steps(context, quant, high),
    }


def activated(context: Context, name: str) -> str:
    """The float tensor after the operator's fused activation."""
    low, high = bounds(context)
    if low is None or high is None:
        return name if low is None else context.emit("relu", [name])
    return context.emit("clip", [name], {"low": low, "high": high})


def is_none(context: Context) -> bool:
    """Whether the operator has no fused activation."""
    return bounds(context) == (None, None)


def result_part(context: Context) -> str:
    """How the result before the activation is called: as the operator's own if there is no activation."""
    return "" if is_none(context) else "linear"
