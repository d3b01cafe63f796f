"""Operations that move elements without changing them."""

from __future__ import annotations

from math import prod

import numpy as np

from reflexarc.inference.graph.ir import ModelError
from reflexarc.inference.graph.onnx.context import Context
from reflexarc.inference.graph.onnx.registry import Handlers
from reflexarc.inference.graph.onnx.tensors import dtype_of

HANDLERS = Handlers()


@HANDLERS("Identity", "Dropout")
def _identity(context: Context) -> None:
    if context.has(2) and context.value(2).any():
        raise ModelError(f"{context.node}: training mode is not supported")
    context.give(context.name(0))


@HANDLERS("Cast")
def _cast(context: Context) -> None:
    dtype = dtype_of(context.integer("to"), str(context.node))
    if dtype != context.tensor(0).dtype:
        raise ModelError(f"{context.node}: a cast from {context.tensor(0).dtype} to {dtype} is not supported")
    context.give(context.name(0))


@HANDLERS("Shape")
def _shape(context: Context) -> None:
    shape = context.tensor(0).shape[slice(context.integer("start", 0), None)]
    if "end" in context.node.attrs:
        shape = context.tensor(0).shape[context.integer("start", 0) : context.integer("end")]
    context.give(context.constant(context.base, np.array(shape, np.int64)))


def reshaped(context: Context, shape: tuple[int, ...]) -> None:
    """Give the first input in another shape."""
    context.give(context.emit("reshape", [context.name(0)], {"shape": shape}))


@HANDLERS("Reshape")
def _reshape(context: Context) -> None:
    old = context.tensor(0)
    shape = [int(dim) for dim in context.value(1).ravel()]
    if context.value(1).dtype != np.int64 or len(shape) > 8:
        raise ModelError(f"{context.node}: its shape is not at most 8 int64")
    if not context.integer("allowzero", 0):
        for axis, dim in enumerate(shape):
            if dim == 0:
                shape[axis] = old.shape[context.axis_of(axis, len(old.shape))]
    if shape.count(-1) == 1 and min(shape) == -1:
        rest = -prod(shape)
        if rest == 0 or old.size % rest:
            raise ModelError(f"{context.node}: {old.shape} cannot take the shape {shape}")
        shape[shape.index(-1)] = old.size // rest
    reshaped(context, tuple(shape))


@HANDLERS("Flatten")
def _flatten(context: Context) -> None:
    shape = context.tensor(0).shape
    axis = context.integer("axis", 1)
    axis = axis if axis == len(shape) else context.axis_of(axis, len(shape))
    reshaped(context, (prod(shape[:axis]), prod(shape[axis:])))


@HANDLERS("Squeeze")
def _squeeze(context: Context) -> None:
    shape = context.tensor(0).shape
    axes = context.axes(len(shape))
    if axes is None:
        axes = tuple(axis for axis, dim in enumerate(shape) if dim == 1)
    if any(shape[axis] != 1 for axis in axes):
        raise ModelError(f"{context.node}: axes {axes} of {shape} are not all 1")
    reshaped(context, tuple(dim for axis, dim in enumerate(shape) if axis not in axes))


@HANDLERS("Unsqueeze")
def _unsqueeze(context: Context) -> None:
    count = len(context.integers("axes")) if "axes" in context.node.attrs else context.value(1).size
    rank = len(context.tensor(0).shape) + count
    axes = context.axes(rank) or ()
    if len(set(axes)) != count or rank > 8:
        raise ModelError(f"{context.node}: axes {axes} repeat, or make {rank} dimensions")
    rest = iter(context.tensor(0).shape)
    reshaped(context, tuple(1 if axis in axes else next(rest) for axis in range(rank)))


@HANDLERS("Transpose")
def _transpose(context: Context) -> None:
    perm = context.integers("perm", range(len(context.tensor(0).shape))[::-1])
    context.give(context.emit("transpose", [context.name(0)], {"perm": perm}))


@HANDLERS("Slice")
def _slice(context: Context) -> None:
    rank = len(context.tensor(0).shape)
    starts, ends = context.value(1).ravel().tolist(), context.value(2).ravel().tolist()
    axes = context.value(3).ravel().tolist() if context.has(3) else list(range(len(starts)))
    steps = context.value(4).ravel().tolist() if context.has(4) else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or not starts:
        raise ModelError(
            f"{context.node}: starts {starts}, ends {ends}, axes {axes}, steps {steps} do not fit"
        )
    name = context.name(0)
    for number, (start, end, axis, step) in enumerate(zip(starts, ends, axes, steps, strict=True)):
        if step != 1:
            raise ModelError(f"{context.node}: step {step} is not supported")
        axis = context.axis_of(axis, rank)
        first, stop, _ = slice(start, end).indices(context.editor.tensors[name].shape[axis])
        attrs = {"axis": axis, "start": first, "size": max(stop - first, 0)}
        name = context.emit(
            "slice", [name], attrs, part="" if number == len(starts) - 1 else f"slice{number}"
        )
    context.give(name)


@HANDLERS("Split")
def _split(context: Context) -> None:
    shape = context.tensor(0).shape
    axis = context.axis_of(context.integer("axis", 0), len(shape))
    count = len(context.node.outputs)
    if "split" in context.node.attrs:
        sizes = context.integers("split")
    elif context.has(1):
        sizes = tuple(context.value(1).ravel().tolist())
    else:
        chunk = -(-shape[axis] // count)
        sizes = tuple(min(chunk, shape[axis] - chunk * index) for index in range(count))
    if len(sizes) != count or sum(sizes) != shape[axis]:
        raise ModelError(f"{context.node}: {count} parts {sizes[:20]} of axis {axis} of {shape}")
    start = 0
    for index, size in enumerate(sizes):
        attrs = {"axis": axis, "start": start, "size": size}
        context.give(context.emit("slice", [context.name(0)], attrs, part=str(index) if index else ""), index)
        start += size
