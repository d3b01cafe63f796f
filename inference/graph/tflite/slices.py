"""Operators that take parts of a tensor: split, slice, reverse, gather."""

from __future__ import annotations

from reflexarc.inference.graph.ir import Attr
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.movement import emit, reshape
from reflexarc.inference.graph.tflite.registry import Handlers

HANDLERS = Handlers()


def _cut(context: Context, axis: int, start: int, size: int, index: int, drop: bool = False) -> None:
    """Give a part of the operator's data along an axis, which `drop` takes away, as an output."""
    data = _DATA.get(context.operator.name, 0)
    x, quant = context.tensor(data), context.result_quant(index)
    starts, sizes = [0] * len(x.shape), list(x.shape)
    starts[axis], sizes[axis] = start, size
    attrs: dict[str, Attr] = {"starts": tuple(starts), "sizes": tuple(sizes), "steps": (1,) * len(x.shape)}
    part = f"part{index}" if drop or index else ""
    name = context.emit("strided_slice", [x.name], attrs, part=part, quant=quant)
    if drop:
        shape = (*x.shape[:axis], *x.shape[axis + 1 :])
        name = context.emit(
            "reshape", [name], {"shape": shape}, part=f"{index}" if index else "", quant=quant
        )
    context.give(name, index)


_DATA = {"SPLIT": 1}


@HANDLERS("UNPACK")
def _unpack(context: Context) -> None:
    shape = context.tensor(0).shape
    axis = context.axis(context.option("axis"), len(shape))
    if len(context.operator.outputs) != shape[axis]:
        raise context.unsupported(f"{len(context.operator.outputs)} outputs of axis {axis} of {shape}")
    for index in range(shape[axis]):
        _cut(context, axis, index, 1, index, drop=True)


@HANDLERS("SPLIT")
def _split(context: Context) -> None:
    shape, count = context.tensor(1).shape, len(context.operator.outputs)
    (axis,) = context.integers(0) or (0,)
    axis = context.axis(axis, len(shape))
    if not count or shape[axis] % count:
        raise context.unsupported(f"{count} parts of axis {axis} of {shape}")
    size = shape[axis] // count
    for index in range(count):
        _cut(context, axis, index * size, size, index)


@HANDLERS("SPLIT_V")
def _split_v(context: Context) -> None:
    shape, sizes = context.tensor(0).shape, list(context.integers(1))
    (axis,) = context.integers(2) or (0,)
    axis = context.axis(axis, len(shape))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = shape[axis] - sum(n for n in sizes if n != -1)
    if sum(sizes) != shape[axis] or min(sizes, default=0) < 1 or len(sizes) != len(context.operator.outputs):
        raise context.unsupported(f"parts {sizes} of axis {axis} of {shape}")
    for index, size in enumerate(sizes):
        _cut(context, axis, sum(sizes[:index]), size, index)


@HANDLERS("SLICE")
def _slice(context: Context) -> None:
    x, begin, size = context.tensor(0), context.integers(1), list(context.integers(2))
    if not len(begin) == len(size) == len(x.shape):
        raise context.unsupported(f"{size} from {begin} of {x.shape}")
    sizes = tuple(n - b if s == -1 else s for n, b, s in zip(x.shape, begin, size, strict=True))
    attrs: dict[str, Attr] = {"starts": begin, "sizes": sizes, "steps": (1,) * len(begin)}
    context.give(emit(context, "strided_slice", [x.name], attrs))


@HANDLERS("STRIDED_SLICE")
def _strided(context: Context) -> None:
    x = context.tensor(0)
    begin, end, step = (context.integers(i) for i in (1, 2, 3))
    if context.option("ellipsis_mask") or context.option("new_axis_mask") or context.option("offset"):
        raise context.unsupported("an ellipsis, a new axis or an offset")
    if not len(begin) == len(end) == len(step) <= len(x.shape) or 0 in step:
        raise context.unsupported(f"{begin} to {end} by {step} of {x.shape}")
    starts, sizes, steps, shape = [], [], [], []
    for axis, full in enumerate(x.shape):
        start, size, by = 0, full, 1
        shrink = axis < len(begin) and bool(context.option("shrink_axis_mask") >> axis & 1)
        if axis < len(begin):
            by = 1 if shrink else step[axis]
            low = None if context.option("begin_mask") >> axis & 1 and not shrink else begin[axis]
            high = None if context.option("end_mask") >> axis & 1 else end[axis]
            if shrink:
                start, size = context.axis(begin[axis], full), 1
            else:
                places = range(full)[slice(low, high, by)]
                start, size = (places.start, len(places)) if places else (0, 0)
        starts.append(start)
        sizes.append(size)
        steps.append(by)
        if not shrink:
            shape.append(size)
    attrs: dict[str, Attr] = {"starts": tuple(starts), "sizes": tuple(sizes), "steps": tuple(steps)}
    whole = len(shape) == len(sizes)
    name = emit(context, "strided_slice", [x.name], attrs, part="" if whole else "cut")
    context.give(name) if whole else reshape(context, name, tuple(shape))


@HANDLERS("REVERSE_V2")
def _reverse(context: Context) -> None:
    x = context.tensor(0)
    axes = {context.axis(axis, len(x.shape)) for axis in context.integers(1)}
    starts = tuple(n - 1 if i in axes else 0 for i, n in enumerate(x.shape))
    steps = tuple(-1 if i in axes else 1 for i in range(len(x.shape)))
    context.give(
        emit(context, "strided_slice", [x.name], {"starts": starts, "sizes": x.shape, "steps": steps})
    )


@HANDLERS("GATHER", "GATHER_ND", "EMBEDDING_LOOKUP")
def _gather(context: Context) -> None:
    op = context.operator.name
    data, index = (1, 0) if op == "EMBEDDING_LOOKUP" else (0, 1)
    x, indices = context.tensor(data), context.name(index)
    if context.tensor(index).dtype == "i64":
        indices = context.emit("cast", [indices], part="index", dtype="i32")
    attrs: dict[str, Attr] = {}
    if op == "GATHER":
        if context.option("batch_dims"):
            raise context.unsupported("batch dimensions")
        attrs["axis"] = context.axis(context.option("axis"), len(x.shape))
    elif op == "EMBEDDING_LOOKUP":
        if x.dtype != "f32":
            raise context.unsupported(f"{x.dtype}")
        attrs["axis"] = context.axis(0, len(x.shape))
    context.give(emit(context, "gather_nd" if op == "GATHER_ND" else "gather", [x.name, indices], attrs))
