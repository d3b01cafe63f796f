"""Operations on constants, evaluated as they are read: the arithmetic of shapes that exporters leave."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import DTYPES, MAX_RANK, ModelError
from reflexarc.inference.graph.onnx.context import Context
from reflexarc.inference.graph.onnx.messages import TensorProto
from reflexarc.inference.graph.onnx.tensors import decode, dtype_of

Array = NDArray[Any]


def evaluate(context: Context) -> None:
    """Replace the current node, whose inputs are constants, by its value."""
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(EVALUATORS[context.node.op](context))
    except (ValueError, IndexError, TypeError, OverflowError, ZeroDivisionError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{context.node}: {error}") from None
    if result.ndim > MAX_RANK:
        raise ModelError(f"{context.node}: {result.ndim} dimensions, at most {MAX_RANK}")
    context.spend(result.size)
    context.give(context.constant(context.base, result))


def _inputs(context: Context) -> list[Array]:
    return [context.value(i) for i in range(len(context.node.inputs)) if context.has(i)]


def _constant(context: Context) -> Array:
    attrs = context.node.attrs
    value = attrs.get("value")
    if isinstance(value, TensorProto):
        data = decode(value, None)
        context.stored += data.size
        return data
    for key, dtype in (
        ("value_float", "f32"),
        ("value_floats", "f32"),
        ("value_int", "i64"),
        ("value_ints", "i64"),
    ):
        number = attrs.get(key)
        if isinstance(number, int | float | tuple):
            return np.array(number, DTYPES[dtype])
    raise ModelError(f"{context.node}: a value of a kind that is not supported: {', '.join(attrs)}")


def _binary(function: Callable[[Array, Array], Array]) -> Callable[[Context], Array]:
    def evaluator(context: Context) -> Array:
        a, b = context.value(0), context.value(1)
        if a.dtype != b.dtype:
            raise ModelError(f"{context.node}: dtypes {a.dtype} and {b.dtype}")
        context.afford(prod(np.broadcast_shapes(a.shape, b.shape)))
        return function(a, b)

    return evaluator


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    if not b.all():
        raise ModelError("an integer divided by zero")
    return np.asarray(np.trunc(a / b)).astype(a.dtype)


def _gather(context: Context) -> Array:
    data, index = context.value(0), context.value(1)
    axis = context.axis_of(context.integer("axis", 0), data.ndim)
    context.afford(data.size // max(data.shape[axis], 1) * index.size)
    return np.asarray(np.take(data, index.astype(np.int64), axis))


def _concat(context: Context) -> Array:
    arrays = _inputs(context)
    context.afford(sum(a.size for a in arrays))
    return np.concatenate(arrays, context.integer("axis"))


def _slice(context: Context) -> Array:
    data, starts, ends = (context.value(i).tolist() if i else context.value(0) for i in range(3))
    axes = context.value(3).tolist() if context.has(3) else range(len(starts))
    steps = context.value(4).tolist() if context.has(4) else [1] * len(starts)
    key = [slice(None)] * data.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        key[context.axis_of(axis, data.ndim)] = slice(
            start, None if step < 0 and end < -data.size else end, step
        )
    return np.asarray(data[tuple(key)])


def _cast(context: Context) -> Array:
    return context.value(0).astype(DTYPES[dtype_of(context.integer("to"), str(context.node))])


EVALUATORS: dict[str, Callable[[Context], Array]] = {
    "Add": _binary(np.add),
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "Div": _binary(_divide),
    "Gather": _gather,
    "Mul": _binary(np.multiply),
    "Neg": lambda context: np.negative(context.value(0)),
    "Slice": _slice,
    "Sqrt": lambda context: np.sqrt(context.value(0)),
    "Sub": _binary(np.subtract),
}
