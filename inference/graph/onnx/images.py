"""Convolution and pooling: channels-first in the file, channels-last between two transposes in the graph."""

from __future__ import annotations

import numpy as np

from reflexarc.inference.graph.ir import MAX_ELEMENTS, Attr, ModelError
from reflexarc.inference.graph.onnx.context import Context
from reflexarc.inference.graph.onnx.registry import Handlers

HANDLERS = Handlers()
_LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1)}
_FIRST = {3: (0, 2, 1), 4: (0, 3, 1, 2)}


def _channels_last(context: Context, name: str, part: str) -> str:
    """[N,C,H,W] as [N,H,W,C], [N,C,W] as [N,1,W,C]."""
    rank = len(context.editor.tensors[name].shape)
    if rank not in _LAST:
        raise ModelError(f"{context.node}: {rank} dimensions; supported are 1-D and 2-D windows")
    name = context.emit("transpose", [name], {"perm": _LAST[rank]}, part=part)
    if rank == 3:
        n, w, c = context.editor.tensors[name].shape
        name = context.emit("reshape", [name], {"shape": (n, 1, w, c)}, part=part)
    return name


def _channels_first(context: Context, name: str, rank: int) -> str:
    """The way back, as the ONNX node's own output."""
    if rank == 3:
        n, _, w, c = context.editor.tensors[name].shape
        name = context.emit("reshape", [name], {"shape": (n, w, c)}, part="signal")
    return context.emit("transpose", [name], {"perm": _FIRST[rank]})


def _pair(context: Context, key: str, spatial: int) -> tuple[int, int]:
    values = context.integers(key, [1] * spatial)
    if len(values) != spatial or not all(1 <= v <= MAX_ELEMENTS for v in values):
        raise ModelError(f"{context.node}: {key} {values} are not {spatial} positive numbers")
    return (values[0], values[1]) if spatial == 2 else (1, values[0])


def _pads(context: Context, spatial: int) -> tuple[int, int, int, int]:
    """(top, left, bottom, right) as stated."""
    pads = context.integers("pads", [0] * 2 * spatial)
    if len(pads) != 2 * spatial or not all(0 <= p <= MAX_ELEMENTS for p in pads):
        raise ModelError(f"{context.node}: pads {pads} are not {2 * spatial} numbers from 0")
    return (pads[0], pads[1], pads[2], pads[3]) if spatial == 2 else (0, pads[0], 0, pads[1])


def _geometry(
    context: Context, size: tuple[int, int], kernel: tuple[int, int], spatial: int
) -> dict[str, Attr]:
    """`strides`, `pads` and `dilations`, with auto_pad and ceil_mode worked into the pads."""
    strides, dilations = _pair(context, "strides", spatial), _pair(context, "dilations", spatial)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    auto = context.word("auto_pad", "NOTSET")
    pads = list(_pads(context, spatial)) if auto == "NOTSET" else [0, 0, 0, 0]
    for axis in range(2):
        if auto in ("SAME_UPPER", "SAME_LOWER"):
            out = -(-size[axis] // strides[axis])
            total = max((out - 1) * strides[axis] + reach[axis] - size[axis], 0)
            small, large = total // 2, total - total // 2
            pads[axis], pads[axis + 2] = (small, large) if auto == "SAME_UPPER" else (large, small)
        elif auto not in ("NOTSET", "VALID"):
            raise ModelError(f"{context.node}: auto_pad {auto!r}")
        if context.node.op != "Conv" and context.integer("ceil_mode", 0):
            pads[axis + 2] += _overhang(
                context, size[axis], pads[axis], pads[axis + 2], reach[axis], strides[axis]
            )
    return {"strides": strides, "pads": tuple(pads), "dilations": dilations}


def _overhang(context: Context, size: int, before: int, after: int, reach: int, stride: int) -> int:
    """Padding that makes room for the last window of ceil_mode, if that window begins inside x."""
    room = size + before + after - reach
    extra = -room % stride
    if room < 0 or extra == 0 or room + extra >= size + before:
        return 0
    if context.integer("count_include_pad", 0):
        raise ModelError(f"{context.node}: ceil_mode with count_include_pad is not supported")
    return extra


@HANDLERS("Conv")
def _conv(context: Context) -> None:
    rank = len(context.tensor(0).shape)
    weights = context.tensor(1).shape
    if len(weights) != rank or not context.fixed(1) or (context.has(2) and not context.fixed(2)):
        raise ModelError(
            f"{context.node}: supported only with constant weights of {rank} dimensions, not {weights}"
        )
    x = _channels_last(context, context.name(0), "x")
    w = _channels_last(context, context.name(1), "weights")
    n_out, *kernel = context.editor.tensors[w].shape[:3]
    stated = context.integers("kernel_shape", weights[2:])
    if stated != weights[2:]:
        raise ModelError(f"{context.node}: kernel_shape {stated} and weights {weights} do not fit")
    if context.has(2):
        bias = context.name(2)
    else:
        bias = context.constant(f"{context.base}:bias", np.zeros(n_out, np.float32))
    size = context.editor.tensors[x].shape[1:3]
    attrs = _geometry(context, (size[0], size[1]), (kernel[0], kernel[1]), rank - 2)
    attrs |= {"group": context.integer("group", 1), "activation": "none"}
    context.give(_channels_first(context, context.emit("conv", [x, w, bias], attrs, part="last"), rank))


@HANDLERS("MaxPool", "AveragePool")
def _pool(context: Context) -> None:
    if context.integer("storage_order", 0):
        raise ModelError(f"{context.node}: storage_order 1 is not supported")
    rank = len(context.tensor(0).shape)
    x = _channels_last(context, context.name(0), "x")
    context.integers("kernel_shape")
    kernel = _pair(context, "kernel_shape", rank - 2)
    size = context.editor.tensors[x].shape[1:3]
    attrs = _geometry(context, (size[0], size[1]), kernel, rank - 2) | {"kernel": kernel}
    if context.node.op == "MaxPool":
        name = context.emit("max_pool", [x], attrs, part="last")
    elif kernel == size and not any(_pads(context, rank - 2)):
        name = context.emit("global_average_pool", [x], part="last")
    else:
        attrs["include_pad"] = context.integer("count_include_pad", 0)
        name = context.emit("average_pool", [x], attrs, part="last")
    context.give(_channels_first(context, name, rank))


@HANDLERS("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(context: Context) -> None:
    rank = len(context.tensor(0).shape)
    x = _channels_last(context, context.name(0), "x")
    if context.node.op == "GlobalAveragePool":
        name = context.emit("global_average_pool", [x], part="last")
    else:
        kernel = context.editor.tensors[x].shape[1:3]
        attrs: dict[str, Attr] = {"kernel": kernel, "strides": (1, 1), "pads": (0,) * 4, "dilations": (1, 1)}
        name = context.emit("max_pool", [x], attrs, part="last")
    context.give(_channels_first(context, name, rank))


@HANDLERS("ReduceMean")
def _reduce_mean(context: Context) -> None:
    """The mean over height and width, which is a global average pool."""
    shape = context.tensor(0).shape
    axes = context.axes(len(shape))
    if len(shape) not in _LAST or axes is None or sorted(axes) != list(range(2, len(shape))):
        raise ModelError(f"{context.node}: supported only over all spatial axes, not {axes} of {shape}")
    x = _channels_last(context, context.name(0), "x")
    name = context.emit("global_average_pool", [x], part="last")
    kept = (*shape[:2], *[1] * (len(shape) - 2)) if context.integer("keepdims", 1) else shape[:2]
    context.give(context.emit("reshape", [name], {"shape": kept}))
