"""Operations an element at a time, over rows of elements."""

from __future__ import annotations

from math import inf, prod
from typing import Any

import numpy as np

from reflexarc.inference.graph.ir import Attr, Node, Shape
from reflexarc.inference.instructions import (
    ADD8,
    ADD8_FIXED,
    ADD32,
    ADD_I32,
    CLAMP32,
    DIV32,
    ELU32,
    FLOOR_DIV_I32,
    MUL8,
    MUL8_FIXED,
    MUL32,
    MUL_I32,
    SIGMOID32,
    SILU32,
    SQRT32,
    SUB8_FIXED,
    SUB32,
    SUB_I32,
    TABLE8,
    TANH32,
    Instruction,
)
from reflexarc.inference.lower.context import PARALLEL_ELEMENTS, Context, lowering
from reflexarc.inference.lower.scaling import limits, scale_words
from reflexarc.inference.lower.value import Value, dense_steps
from reflexarc.inference.program import ProgramError

_PLAIN = {"sigmoid": SIGMOID32, "tanh": TANH32, "silu": SILU32, "sqrt": SQRT32}


def bounds(node: Node) -> tuple[float, float]:
    """The range that a node's activation clamps to; all numbers where it is none or another."""
    kind = node.op if node.op in ("relu", "clip") else node.attrs.get("activation", "none")
    if kind == "relu":
        return 0.0, inf
    return (node.number("low"), node.number("high")) if kind == "clip" else (-inf, inf)


def activate(context: Context, node: Node, kind: Attr, x: Value, y: Value) -> None:
    """y = the activation `kind` of x, unless a clamp that is already done; x and y may be the same."""
    if kind in ("none", "relu", "clip"):
        return
    _unary(context, node, str(kind), x, y)


@lowering("relu", "clip", "elu", "silu", "sigmoid", "tanh", "sqrt")
def unary(context: Context, node: Node) -> None:
    """A function of one float."""
    _unary(context, node, node.op, context.value(node.inputs[0]), context.output(node))


def _unary(context: Context, node: Node, kind: str, x: Value, y: Value) -> None:
    extra: dict[str, Any] = {}
    instruction = _PLAIN.get(kind, CLAMP32)
    if kind == "elu":
        instruction, extra = ELU32, {"alpha": node.number("alpha")}
    elif instruction is CLAMP32:
        lo, hi = bounds(node)
        extra = {"lo": lo, "hi": hi}
    for found in context.as_rows((node.inputs[0], node.outputs[0]), (x, y)):
        context.listing.emit(
            instruction,
            parallel=found.rows > 1 and prod(y.shape) >= PARALLEL_ELEMENTS // 16,
            x=found.refs[0],
            y=found.refs[1],
            rows=found.rows,
            count=found.count,
            x_row=found.steps[0],
            y_row=found.steps[1],
            **extra,
        )


@lowering("add", "sub", "mul", "div", "floor_div")
def binary(context: Context, node: Node) -> None:
    """A function of two elements, the operands broadcast."""
    instruction, extra = _binary(context, node)
    y = context.output(node)
    operands = [_broadcast(context, name, y.shape) for name in node.inputs]
    for found in context.as_rows((*node.inputs, *node.outputs), (*operands, y)):
        context.listing.emit(
            instruction,
            parallel=found.rows > 1 and prod(y.shape) >= PARALLEL_ELEMENTS,
            x=found.refs[0],
            other=found.refs[1],
            y=found.refs[2],
            rows=found.rows,
            count=found.count,
            x_row=found.steps[0],
            other_row=found.steps[1],
            y_row=found.steps[2],
            **extra,
        )


_ROW = 256
"""Elements of a row from which it pays to begin one."""


def _broadcast(context: Context, name: str, shape: Shape) -> Value:
    """An operand repeated to a shape; a constant is repeated in memory until its rows are long."""
    data = context.tensor(name).data
    if data is None:
        return context.value(name).broadcast(shape)
    data = context.stored(data).reshape((1,) * (len(shape) - data.ndim) + data.shape)
    axis = len(shape)
    while axis > 0 and prod(shape[axis:]) < _ROW:
        axis -= 1
    data = np.ascontiguousarray(np.broadcast_to(data, (*data.shape[:axis], *shape[axis:])))
    steps = dense_steps(data.shape, data.itemsize)
    return Value(context.listing.constant(data), data.shape, steps, data.itemsize).broadcast(shape)


_BINARY = {
    ("add", "f32", ""): ADD32,
    ("sub", "f32", ""): SUB32,
    ("mul", "f32", ""): MUL32,
    ("div", "f32", ""): DIV32,
    ("add", "i32", ""): ADD_I32,
    ("sub", "i32", ""): SUB_I32,
    ("mul", "i32", ""): MUL_I32,
    ("floor_div", "i32", ""): FLOOR_DIV_I32,
    ("add", "i8", ""): ADD8,
    ("mul", "i8", ""): MUL8,
    ("add", "i8", "fixed"): ADD8_FIXED,
    ("sub", "i8", "fixed"): SUB8_FIXED,
    ("mul", "i8", "fixed"): MUL8_FIXED,
}


def _binary(context: Context, node: Node) -> tuple[Instruction, dict[str, Any]]:
    """The instruction and its operands besides the rows."""
    dtype, rounding = context.tensor(node.inputs[0]).dtype, str(node.attrs.get("rounding", ""))
    instruction = _BINARY.get((node.op, dtype, rounding))
    if instruction is None:
        raise ProgramError(f"{node}: {node.op} of {dtype} has no kernel")
    return instruction, _scales(context, node, rounding == "fixed") if dtype == "i8" else {}


def _scales(context: Context, node: Node, fixed: bool) -> dict[str, Any]:
    """Zero points, multipliers and limits of an 8-bit sum or product."""
    (sa, za), (sb, zb) = (context.scale(name) for name in node.inputs)
    sy, _ = context.scale(node.outputs[0])
    common: dict[str, Any] = {"x_zero": za, "other_zero": zb, **limits(context, node)}
    if fixed:
        common |= scale_words(node, -1)
        if node.op != "mul":
            common |= scale_words(node, 0, "x_") | scale_words(node, 1, "other_")
            if common["x_shift_left"] or common["other_shift_left"]:
                raise ProgramError(f"{node}: the scale of an operand is above that of the sum")
        return common
    if node.op == "add":
        return common | {"x_scale": float(sa / sy), "other_scale": float(sb / sy)}
    return common | {"scale": float(sa * sb / sy)}


@lowering("lookup")
def lookup(context: Context, node: Node) -> None:
    """A table of 256 bytes."""
    table = context.value(node.inputs[1])
    y = context.output(node)
    for found in context.as_rows((node.inputs[0], node.outputs[0]), (context.value(node.inputs[0]), y)):
        context.listing.emit(
            TABLE8,
            parallel=found.rows > 1 and prod(y.shape) >= PARALLEL_ELEMENTS,
            x=found.refs[0],
            y=found.refs[1],
            rows=found.rows,
            count=found.count,
            x_row=found.steps[0],
            y_row=found.steps[1],
            table=table.ref,
        )
