"""Arithmetic element by element, activations, softmax and batch normalization."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from reflexarc.inference.graph.ir import ModelError
from reflexarc.inference.graph.onnx.context import Context
from reflexarc.inference.graph.onnx.registry import Handlers

HANDLERS = Handlers()


@HANDLERS("Relu", "Sigmoid", "Tanh")
def _unary(context: Context) -> None:
    context.give(context.emit(context.node.op.lower(), [context.name(0)]))


@HANDLERS("Elu")
def _elu(context: Context) -> None:
    context.give(context.emit("elu", [context.name(0)], {"alpha": context.number("alpha", 1.0)}))


@HANDLERS("Clip")
def _clip(context: Context) -> None:
    low, high = (
        float(context.value(index).reshape(()))
        if context.has(index) and context.value(index).size == 1
        else bound
        for index, bound in ((1, -inf), (2, inf))
    )
    context.give(context.emit("clip", [context.name(0)], {"low": low, "high": high}))


@HANDLERS("Add", "Mul")
def _binary(context: Context) -> None:
    context.give(context.emit(context.node.op.lower(), [context.name(0), context.name(1)]))


@HANDLERS("Sub")
def _sub(context: Context) -> None:
    """a - b as a + (-b), which is the same float."""
    negative = context.tensor(1).data
    if negative is not None and negative.dtype == np.float32:
        name = context.constant(context.name(1), -negative)
    else:
        minus = context.constant(f"{context.base}:minus", np.array(-1, np.float32))
        name = context.emit("mul", [context.name(1), minus], part="negative")
    context.give(context.emit("add", [context.name(0), name]))


@HANDLERS("Div")
def _div(context: Context) -> None:
    """a / b for a constant b as a * (1 / b)."""
    divisor = context.value(1)
    if divisor.dtype != np.float32 or not divisor.all():
        raise ModelError(f"{context.node}: the divisor is not float, or zero")
    name = context.constant(context.name(1), (1 / divisor.astype(np.float64)).astype(np.float32))
    context.give(context.emit("mul", [context.name(0), name]))


@HANDLERS("Softmax")
def _softmax(context: Context) -> None:
    shape = context.tensor(0).shape
    since13 = context.opset >= 13
    axis = context.axis_of(context.integer("axis", -1 if since13 else 1), len(shape))
    last = len(shape) - 1
    name = context.name(0)
    if axis == last:
        context.give(context.emit("softmax", [name]))
    elif since13:
        perm = tuple({axis: last, last: axis}.get(i, i) for i in range(len(shape)))
        name = context.emit("transpose", [name], {"perm": perm}, part="last")
        name = context.emit("softmax", [name], part="softmax")
        context.give(context.emit("transpose", [name], {"perm": perm}))
    else:
        flat = (*shape[:axis], prod(shape[axis:]))
        name = context.emit("reshape", [name], {"shape": flat}, part="flat")
        name = context.emit("softmax", [name], part="softmax")
        context.give(context.emit("reshape", [name], {"shape": shape}))


@HANDLERS("BatchNormalization")
def _batch_norm(context: Context) -> None:
    """(x - mean) / sqrt(var + epsilon) * scale + bias, as one product and one sum a channel."""
    if context.integer("training_mode", 0) or len([name for name in context.node.outputs if name]) > 1:
        raise ModelError(f"{context.node}: training mode is not supported")
    rank = len(context.tensor(0).shape)
    if rank < 2:
        raise ModelError(f"{context.node}: its input has no channels")
    channels = (context.tensor(0).shape[1],)
    scale, bias, mean, var = (context.value(index).astype(np.float64) for index in range(1, 5))
    if not scale.shape == bias.shape == mean.shape == var.shape == channels:
        raise ModelError(f"{context.node}: its parameters are not all of shape {channels}")
    epsilon = context.number("epsilon", 1e-5)
    if not (var + epsilon > 0).all():
        raise ModelError(f"{context.node}: variance {var.min()} + epsilon {epsilon} is not positive")
    factor = scale / np.sqrt(var + epsilon)
    out = context.base
    along = (channels[0], *[1] * (rank - 2))
    weight = context.constant(f"{out}:factor", factor.astype(np.float32).reshape(along))
    offset = context.constant(f"{out}:offset", (bias - mean * factor).astype(np.float32).reshape(along))
    name = context.emit("mul", [context.name(0), weight], part="scaled")
    context.give(context.emit("add", [name, offset]))
