"""Operators that only put elements elsewhere, on whatever form their operands have; and shapes as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.arithmetic import round_away
from reflexarc.inference.graph.ir import DTYPES, Attr, ModelError, Shape
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.registry import Handlers

HANDLERS = Handlers()
MAX_FILL = 1 << 22


def emit(context: Context, op: str, inputs: Sequence[str], attrs: dict[str, Attr], part: str = "") -> str:
    """A node whose result has the scales declared for the operator's own output."""
    return context.emit(op, inputs, attrs, part=part, quant=context.result_quant())


def reshape(context: Context, name: str, shape: Shape, index: int = 0) -> None:
    """Give the elements of a tensor in another shape as an output."""
    quant = context.result_quant(index) or context.editor.tensors[name].quant
    context.give(
        context.emit("reshape", [name], {"shape": shape}, part=f"{index}" if index else "", quant=quant),
        index,
    )


@HANDLERS("RESHAPE")
def _reshape(context: Context) -> None:
    if context.has(1):
        wanted = list(context.integers(1))
    elif context.operator.options is not None:
        wanted = list(context.operator.options.integers(0))
    else:
        raise context.unsupported("no shape")
    size = context.tensor(0).size
    if wanted.count(-1) == 1:
        rest = prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = size // rest if rest > 0 else 0
    if prod(wanted) != size or min(wanted, default=1) < 0:
        raise ModelError(f"{context.operator}: {context.tensor(0).shape} cannot take the shape {wanted}")
    reshape(context, context.name(0), tuple(wanted))


@HANDLERS("SQUEEZE")
def _squeeze(context: Context) -> None:
    shape, options = context.tensor(0).shape, context.operator.options
    stated = options.integers(0) if options is not None else ()
    axes = {context.axis(axis, len(shape)) for axis in stated} or {i for i, n in enumerate(shape) if n == 1}
    reshape(context, context.name(0), tuple(n for i, n in enumerate(shape) if i not in axes))


@HANDLERS("EXPAND_DIMS")
def _expand(context: Context) -> None:
    shape = list(context.tensor(0).shape)
    (axis,) = context.integers(1) or (0,)
    shape.insert(context.axis(axis, len(shape) + 1), 1)
    reshape(context, context.name(0), tuple(shape))


@HANDLERS("TRANSPOSE")
def _transpose(context: Context) -> None:
    rank = len(context.tensor(0).shape)
    perm = tuple(context.axis(axis, rank) for axis in context.integers(1))
    context.give(emit(context, "transpose", [context.name(0)], {"perm": perm}))


@HANDLERS("PAD", "PADV2", "MIRROR_PAD")
def _pad(context: Context) -> None:
    x, stated = context.tensor(0), context.integers(1)
    rank = len(x.shape)
    if len(stated) != 2 * rank or min(stated, default=0) < 0:
        raise context.unsupported(f"padding {stated} of {x.shape}")
    attrs: dict[str, Attr] = {"before": stated[0::2], "after": stated[1::2]}
    if context.operator.name == "MIRROR_PAD":
        attrs["edge"] = int(context.option("mode") == 1)
        context.give(emit(context, "mirror_pad", [x.name], attrs))
        return
    if context.has(2):
        value = context.tensor(2)
        if value.data is None or value.size != 1 or value.dtype != x.dtype:
            raise context.unsupported(f"padding with {value}")
        attrs["value"] = value.data.item()
    else:
        attrs["value"] = (
            0.0 if x.dtype == "f32" else context.scale(context.result_quant())[1] if x.dtype == "i8" else 0
        )
    context.give(emit(context, "pad", [x.name], attrs))


def _same_scale(context: Context, names: Sequence[str]) -> list[str]:
    """The operands, those of another scale brought to the result's (uint8 only: int8 must agree)."""
    y, result = context.result_quant(), []
    for index, name in enumerate(names):
        x = context.editor.tensors[name]
        if x.dtype == "i8" and y is not None and not y.same(x.quant):
            if context.declared(index).type != "UINT8":
                raise context.unsupported("operands of several scales")
            table = context.constant(f"{context.result().name}:table{index}", _rescaled(context, index))
            name = context.emit("lookup", [name, table], part=f"scaled{index}", quant=y)
        result.append(name)
    return result


def _rescaled(context: Context, index: int) -> NDArray[np.int8]:
    """round(x * (s_x / s_y) - z_x * (s_x / s_y)) + z_y in float32, on the numbers uint8 has."""
    (sx, zx), (sy, zy) = context.scale(context.tensor(index).quant), context.scale(context.result_quant())
    scale = sx * (np.float32(1) / sy)
    steps = round_away(np.arange(256, dtype=np.float32) * scale + -np.float32(zx + 128) * scale)
    table: NDArray[np.int8] = np.clip(steps + zy, -128, 127).astype(np.int8)
    return table


@HANDLERS("CONCATENATION")
def _concat(context: Context) -> None:
    names = [context.name(i) for i in range(len(context.operator.inputs))]
    if context.option("activation"):
        raise context.unsupported("a fused activation")
    axis = context.axis(context.option("axis"), len(context.editor.tensors[names[0]].shape) if names else 0)
    context.give(emit(context, "concat", _same_scale(context, names), {"axis": axis}))


@HANDLERS("PACK")
def _pack(context: Context) -> None:
    tensors = [context.tensor(i) for i in range(len(context.operator.inputs))]
    if not tensors:
        raise context.unsupported("no operands")
    axis = context.axis(context.option("axis"), len(tensors[0].shape) + 1)
    parts = []
    for index, tensor in enumerate(tensors):
        shape = (*tensor.shape[:axis], 1, *tensor.shape[axis:])
        parts.append(emit(context, "reshape", [tensor.name], {"shape": shape}, part=f"part{index}"))
    context.give(emit(context, "concat", parts, {"axis": axis}))


@HANDLERS("TILE", "BROADCAST_TO")
def _tile(context: Context) -> None:
    x, stated = context.tensor(0), context.integers(1)
    name, shape, repeats = x.name, x.shape, stated
    if context.operator.name == "BROADCAST_TO":
        if len(stated) < len(shape):
            raise context.unsupported(f"{shape} as {stated}")
        shape = (1,) * (len(stated) - len(shape)) + shape
        repeats = tuple(n if old == 1 else n // old for n, old in zip(stated, shape, strict=True))
        if any(old not in (1, n) for n, old in zip(stated, shape, strict=True)):
            raise context.unsupported(f"{shape} as {stated}")
        if shape != x.shape:
            name = emit(context, "reshape", [name], {"shape": shape}, part="wide")
    context.give(emit(context, "tile", [name], {"repeats": repeats}))


@HANDLERS("SHAPE", "RANK")
def _shape(context: Context) -> None:
    shape = context.tensor(0).shape
    numbers = shape if context.operator.name == "SHAPE" else len(shape)
    dtype = np.int64 if context.result_dtype() == "i64" else np.int32
    context.give(context.constant(context.result().name or "shape", np.array(numbers, dtype)))


@HANDLERS("ZEROS_LIKE", "FILL")
def _fill(context: Context) -> None:
    if context.operator.name == "FILL":
        shape, value = context.integers(0), context.value(1).reshape(())
    else:
        shape, value = context.tensor(0).shape, np.zeros((), DTYPES[context.result_dtype()])
    if prod(shape) > MAX_FILL or min(shape, default=1) < 1:
        raise context.unsupported(f"a constant of {shape}")
    name = context.result().name or "fill"
    context.give(context.constant(name, np.full(shape, value), context.result_quant()))
