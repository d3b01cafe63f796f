"""Operations on constants, done while a model is imported: what shapes and indices are computed with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import DTYPES, Attr, ModelError, Node, QuantParams, Tensor
from reflexarc.inference.graph.moves import MOVES, move, move_quant
from reflexarc.inference.graph.ops import infer

Array = NDArray[Any]

ALLOWANCE = 1 << 22
"""Elements a constant may have beside a multiple of those it is made from."""
KEEPS = (
    "concat",
    "pad",
    "mirror_pad",
    "strided_slice",
    "gather",
    "gather_nd",
    "tile",
    "max_pool",
    "select",
    "minimum",
    "maximum",
    "reduce_max",
    "reduce_min",
    "resize_bilinear",
)
"""Besides `MOVES`, operations whose result has the scale of their first operand of its type."""


def moved_quant(op: str, attrs: Mapping[str, Attr], source: Tensor) -> QuantParams | None:
    """The scales of the result of an operation that only moves or selects elements; else None."""
    if source.quant is None or op not in (*MOVES, *KEEPS):
        return None
    if op in MOVES:
        return move_quant(op, attrs, source.shape, source.quant)
    return source.quant if source.quant.axis is None else None


def fold(
    editor: Editor,
    op: str,
    inputs: Sequence[str],
    attrs: Mapping[str, Attr],
    output: str,
    quant: QuantParams | None,
    dtype: str | None,
) -> str | None:
    """The constant that an operation on constants gives; None if it is not one of those done here."""
    tensors = [editor.tensors[name] for name in inputs]
    data = [tensor.data for tensor in tensors if tensor.data is not None]
    if len(data) != len(tensors) or (op not in MOVES and op not in _FUNCTIONS):
        return None
    node = Node(op, output, list(inputs), [output], dict(attrs))
    shape = infer(node, tensors)
    limit = ALLOWANCE + 4 * sum(tensor.size for tensor in tensors)
    if prod(shape) > limit:
        raise ModelError(f"{node}: a constant of {prod(shape)} elements, at most {limit}")
    result = move(op, attrs, data[0]) if op in MOVES else _FUNCTIONS[op](node, *data)
    result = result.astype(DTYPES[dtype] if dtype else data[0].dtype).reshape(shape)
    return editor.constant(output, result, quant or moved_quant(op, attrs, tensors[0]))


def _strided(node: Node, x: Array) -> Array:
    index = np.ix_(
        *(
            start + step * np.arange(size)
            for start, size, step in zip(
                node.integers("starts"), node.integers("sizes"), node.integers("steps"), strict=True
            )
        )
    )
    return x[index]


def _gather(node: Node, x: Array, index: Array) -> Array:
    axis = node.integer("axis")
    return np.take(x, np.clip(index, 0, x.shape[axis] - 1), axis)


_FUNCTIONS: dict[str, Callable[..., Array]] = {
    "concat": lambda node, *parts: np.concatenate(parts, node.integer("axis")),
    "strided_slice": _strided,
    "gather": _gather,
    "cast": lambda node, x: x,
}
