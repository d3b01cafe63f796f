"""Operations along the last axis."""

from __future__ import annotations

from math import prod
from typing import Any

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import SOFTMAX8, SOFTMAX32
from reflexarc.inference.lower.context import PARALLEL_ELEMENTS, Context, lowering
from reflexarc.inference.lower.scaling import constant


@lowering("softmax")
def softmax(context: Context, node: Node) -> None:
    """A row for each index of the other axes."""
    x = context.dense(node.inputs[0], context.value(node.inputs[0]))
    y = context.output(node, lambda view: view.is_dense)
    count = x.shape[-1]
    rows = prod(x.shape[:-1])
    table: dict[str, Any] = (
        {"table": context.listing.constant(constant(context, node, 1))} if x.size == 1 else {}
    )
    context.listing.emit(
        SOFTMAX8 if table else SOFTMAX32,
        parallel=rows > 1 and rows * count >= PARALLEL_ELEMENTS // 16,
        x=x.ref,
        y=y.ref,
        rows=rows,
        count=count,
        x_row=x.size * count,
        y_row=y.size * count,
        **table,
    )
