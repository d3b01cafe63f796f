"""Changes of shape: views, which cost nothing; who reads one copies it if it must."""

from __future__ import annotations

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.lower.context import Context, lowering
from reflexarc.inference.lower.value import dense_steps


@lowering("reshape")
def reshape(context: Context, node: Node) -> None:
    """The same bytes where steps can say it, else a copy in order."""
    if node.outputs[0] in context.values:
        return  # its input was written in this shape
    x, shape = context.value(node.inputs[0]), context.tensor(node.outputs[0]).shape
    view = x.reshaped(shape)
    if view is None:
        x = context.dense(node.inputs[0], x)
        view = type(x)(x.ref, shape, dense_steps(shape, x.size), x.size)
    context.values[node.outputs[0]] = view


@lowering("transpose")
def transpose(context: Context, node: Node) -> None:
    """The steps in another order."""
    if node.outputs[0] in context.values:
        return  # its input was written in this order
    context.values[node.outputs[0]] = context.value(node.inputs[0]).transposed(node.integers("perm"))


@lowering("slice")
def slice_(context: Context, node: Node) -> None:
    """Another first byte."""
    x = context.value(node.inputs[0])
    axis, start, size = (node.integer(key) for key in ("axis", "start", "size"))
    context.values[node.outputs[0]] = x.sliced(axis, start, size)
