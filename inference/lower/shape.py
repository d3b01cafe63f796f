"""Changes of shape: views, which cost nothing; who reads one copies it if it must."""

from __future__ import annotations

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.lower.context import Context, lowering
from reflexarc.inference.lower.value import Value, dense_steps


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


@lowering("strided_slice")
def strided_slice(context: Context, node: Node) -> None:
    """Another first byte and other steps."""
    x = context.value(node.inputs[0])
    starts, sizes, by = (node.integers(key) for key in ("starts", "sizes", "steps"))
    context.values[node.outputs[0]] = Value(
        x.ref + sum(start * step for start, step in zip(starts, x.steps, strict=True)),
        sizes,
        tuple(n * step for n, step in zip(by, x.steps, strict=True)),
        x.size,
    )


@lowering("flip")
def flip(context: Context, node: Node) -> None:
    """Nothing: int8 and uint8 are stored alike."""
    context.values[node.outputs[0]] = context.value(node.inputs[0])


@lowering("concat")
def concat(context: Context, node: Node) -> None:
    """Each operand copied to its place."""
    y = context.output(node, lambda view: True)
    axis, start = node.integer("axis"), 0
    for name in node.inputs:
        x = context.value(name)
        count = x.shape[axis]
        context.copy(x, y.sliced(axis, start, count))
        start += count
