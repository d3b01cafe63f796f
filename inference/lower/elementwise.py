"""Operations an element at a time, over rows of elements."""

from __future__ import annotations

from math import inf, prod
from typing import Any

from reflexarc.inference.graph.ir import Attr, Node
from reflexarc.inference.instructions import (
    ADD8,
    ADD32,
    CLAMP32,
    ELU32,
    MUL8,
    MUL32,
    SIGMOID32,
    SILU32,
    TABLE8,
    TANH32,
)
from reflexarc.inference.lower.context import PARALLEL_ELEMENTS, Context, lowering
from reflexarc.inference.lower.value import Value

_PLAIN = {"sigmoid": SIGMOID32, "tanh": TANH32, "silu": SILU32}


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


@lowering("relu", "clip", "elu", "silu", "sigmoid", "tanh")
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


@lowering("add", "mul")
def binary(context: Context, node: Node) -> None:
    """A function of two elements, the operands broadcast."""
    y = context.output(node)
    operands = [context.value(name).broadcast(y.shape) for name in node.inputs]
    eight = y.size == 1
    instruction = (ADD8 if eight else ADD32) if node.op == "add" else (MUL8 if eight else MUL32)
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
            **(_scales(context, node) if eight else {}),
        )


def _scales(context: Context, node: Node) -> dict[str, Any]:
    """Zero points, multipliers and limits of an 8-bit sum or product."""
    (sa, za), (sb, zb) = (context.scale(name) for name in node.inputs)
    sy, zy = context.scale(node.outputs[0])
    lo, hi = node.integer("qmin") - zy, node.integer("qmax") - zy
    common: dict[str, Any] = {"x_zero": za, "other_zero": zb, "lo": lo, "hi": hi, "zero": zy}
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
