"""Operations along the last axis."""

from __future__ import annotations

from math import prod

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import SOFTMAX32
from reflexarc.inference.lower.context import PARALLEL_ELEMENTS, Context, lowering


@lowering("softmax")
def softmax(context: Context, node: Node) -> None:
    """A row for each index of the other axes."""
    x = context.dense(node.inputs[0], context.value(node.inputs[0]))
    y = context.output(node, lambda view: view.is_dense)
    count = x.shape[-1]
    rows = prod(x.shape[:-1])
    context.listing.emit(
        SOFTMAX32,
        parallel=rows > 1 and rows * count >= PARALLEL_ELEMENTS // 16,
        x=x.ref,
        y=y.ref,
        rows=rows,
        count=count,
        x_row=4 * count,
        y_row=4 * count,
    )
