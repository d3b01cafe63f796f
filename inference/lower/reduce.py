"""Reductions: the axes that go are the window of a pool."""

from __future__ import annotations

from math import prod

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import ARG_MAX8, SUM_POOL8
from reflexarc.inference.lower.context import Context, lowering
from reflexarc.inference.lower.pool import windows
from reflexarc.inference.lower.scaling import limits, scale_words
from reflexarc.inference.lower.value import Value, dense_steps
from reflexarc.inference.program import ProgramError


@lowering("reduce_mean", "reduce_sum")
def reduce_sum(context: Context, node: Node) -> None:
    """8-bit sums, scaled."""
    if node.attrs.get("rounding") != "fixed":
        raise ProgramError(f"{node}: {node.op} of {context.tensor(node.inputs[0]).dtype} has no kernel")
    x, y = image(context, node)
    zero = context.scale(node.inputs[0])[1]
    extra = {"x_zero": zero, **scale_words(node, 0), **limits(context, node)}
    geometry = ((x.shape[1], 1), (1, 1), (0, 0, 0, 0), (1, 1))
    windows(context, SUM_POOL8, SUM_POOL8.name, (x, y), geometry, extra)


@lowering("arg_max")
def arg_max(context: Context, node: Node) -> None:
    """Of 8-bit elements."""
    if context.tensor(node.inputs[0]).dtype != "i8":
        raise ProgramError(f"{node}: arg_max of {context.tensor(node.inputs[0]).dtype} has no kernel")
    x, y = image(context, node)
    outer, count, _, inner = x.shape
    context.listing.emit(ARG_MAX8, x=x.ref, y=y.ref, outer=outer, count=count, inner=inner)


def image(context: Context, node: Node) -> tuple[Value, Value]:
    """x as images [those that stay, those that go, 1, those that stay], in order, and y alike with 1 for
    those that go. Axes that are not neighbours are first moved together."""
    x, axes = context.value(node.inputs[0]), sorted(node.integers("axes"))
    kept = [axis for axis in range(len(x.shape)) if axis not in axes]
    before = [axis for axis in kept if axis < axes[0]]
    after = kept[len(before) :]
    x = context.dense(node.inputs[0], x.transposed((*before, *axes, *after)))
    y = context.output(node, lambda view: view.is_dense)
    outer, gone, inner = (
        prod(context.tensor(node.inputs[0]).shape[a] for a in part) for part in (before, axes, after)
    )
    shapes = (outer, gone, 1, inner), (outer, 1, 1, inner)
    return tuple(
        Value(value.ref, shape, dense_steps(shape, value.size), value.size)
        for value, shape in zip((x, y), shapes, strict=True)
    )  # type: ignore[return-value]
