"""Operations that only move elements, done to a constant, and what they do to its quantization."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Attr, Node, QuantParams, Shape

MOVES = ("reshape", "transpose", "slice")


def move(op: str, attrs: Mapping[str, Attr], data: NDArray[Any]) -> NDArray[Any]:
    """The elements of a constant after one of `MOVES`, whose attributes have been checked."""
    node = Node(op, op, [], [], dict(attrs))
    if op == "reshape":
        return data.reshape(node.integers("shape"))
    if op == "transpose":
        return data.transpose(node.integers("perm"))
    start = node.integer("start")
    key = [slice(None)] * data.ndim
    key[node.integer("axis")] = slice(start, start + node.integer("size"))
    return data[tuple(key)]


def move_quant(op: str, attrs: Mapping[str, Attr], old: Shape, quant: QuantParams) -> QuantParams | None:
    """The quantization after one of `MOVES`; None where its axis does not survive."""
    if quant.axis is None:
        return quant
    node = Node(op, op, [], [], dict(attrs))
    if op == "transpose":
        return QuantParams(quant.scale, quant.zero_point, node.integers("perm").index(quant.axis))
    if op == "reshape":
        return _reshaped(node.integers("shape"), old, quant, quant.axis)
    if node.integer("axis") != quant.axis:
        return quant
    kept = slice(node.integer("start"), node.integer("start") + node.integer("size"))
    return QuantParams(quant.scale[kept], quant.zero_point[kept], quant.axis)


def _reshaped(new: Shape, old: Shape, quant: QuantParams, axis: int) -> QuantParams | None:
    for index, dim in enumerate(new):
        if dim == old[axis] and prod(new[:index]) == prod(old[:axis]):
            return QuantParams(quant.scale, quant.zero_point, index)
    return None
