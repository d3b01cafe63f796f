"""Elements by their places."""

from __future__ import annotations

from math import prod
from typing import Any

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import GATHER_ND
from reflexarc.inference.lower.context import Context, lowering
from reflexarc.inference.program import ProgramError

MAX_DEPTH = 4


@lowering("gather_nd")
def gather_nd(context: Context, node: Node) -> None:
    """Rows of x's last axes, by an index into its first."""
    x = context.dense(node.inputs[0], context.value(node.inputs[0]))
    index = context.dense(node.inputs[1], context.value(node.inputs[1]))
    y = context.output(node, lambda view: view.is_dense)
    depth = index.shape[-1]
    if depth > MAX_DEPTH:
        raise ProgramError(f"{node}: index of {depth} axes, at most {MAX_DEPTH}")
    places: dict[str, Any] = {}
    for k in range(MAX_DEPTH):
        places |= {f"n{k}": x.shape[k] if k < depth else 1, f"s{k}": x.steps[k] if k < depth else 0}
    context.listing.emit(
        GATHER_ND,
        x=x.ref,
        other=index.ref,
        y=y.ref,
        rows=prod(index.shape[:-1]),
        depth=depth,
        count=prod(x.shape[depth:]) * x.size,
        **places,
    )
