"""Steps of a recurrent layer, their functions in tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph import fixed
from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import LSTM_CELL8, LSTM_HIDDEN8
from reflexarc.inference.lower.context import Context, lowering
from reflexarc.inference.lower.scaling import limits, scale_words
from reflexarc.inference.program import ProgramError, Ref


@lowering("lstm_cell")
def lstm_cell(context: Context, node: Node) -> None:
    """The next cell."""
    operands = _operands(context, node, tanh_point=3)
    clip = node.integer("clip") or 1 << 15
    context.listing.emit(LSTM_CELL8, shift=30 + node.integer("cell"), clip=clip, **operands)


@lowering("lstm_hidden")
def lstm_hidden(context: Context, node: Node) -> None:
    """The next hidden state."""
    operands = _operands(context, node, tanh_point=15 + node.integer("cell"))
    words: dict[str, Any] = dict(scale_words(node, 0))
    if words["shift_left"]:
        raise ProgramError(f"{node}: the hidden state's scale is below 2^-30")
    context.listing.emit(LSTM_HIDDEN8, **operands, **words, **limits(context, node))


def _operands(context: Context, node: Node, *, tanh_point: int) -> dict[str, Any]:
    if node.attrs.get("rounding") != "fixed":
        raise ProgramError(f"{node}: {node.op} of {context.tensor(node.inputs[0]).dtype} has no kernel")
    x, other, cell = (context.dense(name, context.value(name)) for name in node.inputs)
    y = context.output(node, lambda view: view.is_dense)
    return {
        "x": x.ref,
        "other": other.ref,
        "cell": cell.ref,
        "y": y.ref,
        "rows": cell.shape[0],
        "units": cell.shape[1],
        "logistic": _table(context, "logistic", 3),
        "tanh": _table(context, "tanh", tanh_point),
    }


def _table(context: Context, name: str, point: int) -> Ref:
    """A function of all 16-bit numbers with `point` bits before the binary point, once for the program."""
    key = f"{name} of Q{point}"
    if key not in context.tables:

        def make() -> NDArray[np.uint8]:
            function = {"logistic": fixed.logistic, "tanh": fixed.tanh}[name]
            return function(np.arange(-(1 << 15), 1 << 15), point).astype(np.int16).view(np.uint8)

        context.tables[key] = context.listing.constant_later(2 << 16, make)
    return context.tables[key]
