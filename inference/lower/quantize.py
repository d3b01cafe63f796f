"""Float to 8-bit and back."""

from __future__ import annotations

from math import prod
from typing import Any

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import DEQUANTIZE, QUANTIZE, QUANTIZE_PLANES
from reflexarc.inference.lower.context import PARALLEL_ELEMENTS, Context, lowering
from reflexarc.inference.lower.value import Value, merged
from reflexarc.inference.program import ProgramError


@lowering("quantize")
def quantize(context: Context, node: Node) -> None:
    """By rows; channels-first input to channels-last output in one pass."""
    x, y = context.value(node.inputs[0]), context.output(node)
    scale, zero = context.scale(node.outputs[0])
    if planes := _planes(x, y):
        context.listing.emit(QUANTIZE_PLANES, x=x.ref, y=y.ref, scale=float(scale), zero=zero, **planes)
        return
    found, (x, y) = context.as_rows((node.inputs[0], node.outputs[0]), (x, y))
    context.listing.emit(
        QUANTIZE,
        parallel=found.rows > 1 and prod(y.shape) >= PARALLEL_ELEMENTS,
        x=x.ref,
        y=y.ref,
        rows=found.rows,
        count=found.count,
        x_row=found.steps[0],
        y_row=found.steps[1],
        scale=float(scale),
        zero=zero,
    )


def _planes(x: Value, y: Value) -> dict[str, Any] | None:
    """The extents of `QUANTIZE_PLANES` where x is [channels, length] and y is [length, channels]; else
    None."""
    dims = sorted(merged(x.shape, x.steps, y.steps), key=lambda dim: dim[2])
    if len(dims) != 2:
        return None
    (channels, plane, one), (length, x_step, y_step) = dims
    if (x_step, plane, one) != (x.size, length * x.size, 1) or y_step < channels:
        return None
    return {"channels": channels, "length": length, "y_step": y_step}


@lowering("dequantize")
def dequantize(context: Context, node: Node) -> None:
    """By rows."""
    if context.tensor(node.inputs[0]).dtype == "i32":
        raise ProgramError(f"{node}: dequantize of 32-bit integers that are not constant")
    x, y = context.value(node.inputs[0]), context.output(node)
    scale, zero = context.scale(node.inputs[0])
    found, (x, y) = context.as_rows((node.inputs[0], node.outputs[0]), (x, y))
    context.listing.emit(
        DEQUANTIZE,
        parallel=found.rows > 1 and prod(y.shape) >= PARALLEL_ELEMENTS,
        x=x.ref,
        y=y.ref,
        rows=found.rows,
        count=found.count,
        x_row=found.steps[0],
        y_row=found.steps[1],
        scale=float(scale),
        zero=zero,
    )
