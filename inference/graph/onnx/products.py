"""Matrix products with fixed weights."""

from __future__ import annotations

import numpy as np

from reflexarc.inference.graph.ir import ModelError
from reflexarc.inference.graph.onnx.context import Context
from reflexarc.inference.graph.onnx.registry import Handlers

HANDLERS = Handlers()


def _transposed(context: Context, index: int, part: str) -> str:
    return context.emit("transpose", [context.name(index)], {"perm": (1, 0)}, part=part)


def _zeros(context: Context, count: int) -> str:
    return context.constant(f"{context.base}:bias", np.zeros(count, np.float32))


@HANDLERS("MatMul")
def _matmul(context: Context) -> None:
    if not context.fixed(1) or len(context.tensor(1).shape) != 2:
        raise ModelError(f"{context.node}: supported only with a constant matrix on the right")
    weights = _transposed(context, 1, "weights")
    inputs = [context.name(0), weights, _zeros(context, context.tensor(1).shape[1])]
    context.give(context.emit("dense", inputs, {"activation": "none"}))


@HANDLERS("Gemm")
def _gemm(context: Context) -> None:
    """alpha * A' * B' + beta * C; an alpha or beta that is not 1 becomes a product, which a pass folds."""
    if len(context.tensor(0).shape) != 2 or not context.fixed(1) or len(context.tensor(1).shape) != 2:
        raise ModelError(f"{context.node}: supported only for a matrix and a constant matrix")
    x = _transposed(context, 0, "x") if context.integer("transA", 0) else context.name(0)
    weights = context.name(1) if context.integer("transB", 0) else _transposed(context, 1, "weights")
    count = context.editor.tensors[weights].shape[0]
    alpha, beta = context.number("alpha", 1.0), context.number("beta", 1.0)
    bias = _scaled(context, context.name(2), beta, "bias") if context.has(2) else None
    simple = alpha == 1.0 and (bias is None or _is_row(context, bias, count))
    if simple and bias is not None:
        bias = context.emit("reshape", [bias], {"shape": (count,)}, part="row")
    inputs = [x, weights, bias if simple and bias is not None else _zeros(context, count)]
    part = "" if simple else "product"
    name = context.emit("dense", inputs, {"activation": "none"}, part=part)
    if not simple:
        name = _scaled(context, name, alpha, "scaled" if bias is not None else "")
        name = name if bias is None else context.emit("add", [name, bias])
    context.give(name)


def _is_row(context: Context, name: str, count: int) -> bool:
    """Whether the tensor is fixed and has one element a column."""
    shape = context.editor.tensors[name].shape
    fixed = name == context.name(2) and context.fixed(2)
    return fixed and shape in ((count,), (1, count))


def _scaled(context: Context, name: str, factor: float, part: str) -> str:
    if factor == 1.0:
        return name
    value = context.constant(f"{context.base}:factor", np.array(factor, np.float32))
    return context.emit("mul", [name, value], part=part)
