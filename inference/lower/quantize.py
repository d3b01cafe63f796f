"""Float to 8-bit and back."""

from __future__ import annotations

from math import prod
from typing import Any

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import (
    DEQUANTIZE,
    QUANTIZE,
    QUANTIZE_AWAY,
    QUANTIZE_PLANES,
    TO_F32,
    Instruction,
)
from reflexarc.inference.lower.context import PARALLEL_ELEMENTS, Context, lowering
from reflexarc.inference.lower.value import Value, is_in_rows, merged
from reflexarc.inference.program import ProgramError


@lowering("quantize")
def quantize(context: Context, node: Node) -> None:
    """By rows; channels-first input to channels-last output in one pass."""
    x = context.value(node.inputs[0])
    y = context.output(node, lambda view: is_in_rows(view) or _planes(x, view) is not None)
    scale, zero = context.scale(node.outputs[0])
    planes = _planes(x, y)
    away = node.attrs.get("rounding") == "away"
    if planes is None or away:
        _by_rows(context, node, QUANTIZE_AWAY if away else QUANTIZE, x, y, float(scale), zero)
        return
    context.listing.emit(
        QUANTIZE_PLANES,
        parallel=planes["rows"] > 1 and prod(y.shape) >= PARALLEL_ELEMENTS,
        x=x.ref,
        y=y.ref,
        scale=float(scale),
        zero=zero,
        **planes,
    )


def _planes(x: Value, y: Value) -> dict[str, Any] | None:
    """The extents of `QUANTIZE_PLANES`, where x is channels-first and y channels-last; else None."""
    dims = sorted(merged(x.shape, x.steps, y.steps), key=lambda dim: dim[2])
    if len(dims) == 2:
        dims.append((1, 0, 0))
    if len(dims) != 3:
        return None
    (channels, plane, one), (length, x_step, y_step), (rows, x_row, y_row) = dims
    if (x_step, one) != (x.size, 1) or y_step < channels:
        return None
    return {
        "rows": rows,
        "channels": channels,
        "length": length,
        "x_row": x_row,
        "plane": plane,
        "y_row": y_row,
        "y_step": y_step,
    }


@lowering("dequantize")
def dequantize(context: Context, node: Node) -> None:
    """By rows."""
    if context.tensor(node.inputs[0]).dtype == "i32":
        raise ProgramError(f"{node}: dequantize of 32-bit integers that are not constant")
    x, y = context.value(node.inputs[0]), context.output(node)
    scale, zero = context.scale(node.inputs[0])
    _by_rows(context, node, DEQUANTIZE, x, y, float(scale), zero)


@lowering("cast")
def cast(context: Context, node: Node) -> None:
    """Integers to float: 8-bit ones as if their scale were 1."""
    dtype, target = (context.tensor(name).dtype for name in (node.inputs[0], node.outputs[0]))
    if target != "f32" or dtype not in ("i8", "u8", "i32"):
        raise ProgramError(f"{node}: cast of {dtype} to {target} has no kernel")
    x, y = context.value(node.inputs[0]), context.output(node)
    if dtype != "i32":
        _by_rows(context, node, DEQUANTIZE, x, y, 1.0, -128 if dtype == "u8" else 0)
        return
    for found in context.as_rows((node.inputs[0], node.outputs[0]), (x, y)):
        context.listing.emit(
            TO_F32,
            x=found.refs[0],
            y=found.refs[1],
            rows=found.rows,
            count=found.count,
            x_row=found.steps[0],
            y_row=found.steps[1],
        )


def _by_rows(
    context: Context, node: Node, instruction: Instruction, x: Value, y: Value, scale: float, zero: int
) -> None:
    for found in context.as_rows((node.inputs[0], node.outputs[0]), (x, y)):
        context.listing.emit(
            instruction,
            parallel=found.rows > 1 and prod(y.shape) >= PARALLEL_ELEMENTS,
            x=found.refs[0],
            y=found.refs[1],
            rows=found.rows,
            count=found.count,
            x_row=found.steps[0],
            y_row=found.steps[1],
            scale=scale,
            zero=zero,
        )
