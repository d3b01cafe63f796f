"""Pooling and resizing of images."""

from __future__ import annotations

import numpy as np

from reflexarc.inference.graph.ir import Attr
from reflexarc.inference.graph.tflite.activation import activated, bounds, integer_range, is_none, result_part
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.layers import window
from reflexarc.inference.graph.tflite.registry import Handlers
from reflexarc.inference.graph.tflite.tables import relu_table

HANDLERS = Handlers()
MAX_SIDE = 1 << 16


@HANDLERS("AVERAGE_POOL_2D", "MAX_POOL_2D")
def _pool(context: Context) -> None:
    x = context.tensor(0)
    if len(x.shape) != 4:
        raise context.unsupported(f"x {x.shape}")
    kernel = context.option("filter_h"), context.option("filter_w")
    attrs = window(context, x.shape[1:3], kernel, dilated=False) | {"kernel": kernel}
    average = context.operator.name == "AVERAGE_POOL_2D"
    if average:
        attrs["include_pad"] = 0
    if x.dtype == "f32":
        op = "average_pool" if average else "max_pool"
        whole = average and kernel == x.shape[1:3] and not any(attrs["pads"])
        if whole:
            op, attrs = "global_average_pool", {}
        context.give(activated(context, context.emit(op, [x.name], attrs, part=result_part(context))))
        return
    y = context.result_quant()
    if x.dtype != "i8" or x.quant is None or not x.quant.same(y):
        raise context.unsupported(f"pooling {x} to another scale or type")
    if average:
        ties = "up" if context.declared(0).type == "UINT8" else "away"
        attrs |= {"rounding": "fixed", "ties": ties} | integer_range(context, y)
        context.give(context.emit("average_pool", [x.name], attrs, quant=y))
        return
    name = context.emit("max_pool", [x.name], attrs, part=result_part(context))
    if not is_none(context):
        low, high = bounds(context)
        table = context.constant(
            f"{context.result().name}:table", relu_table(context, y, y, low or 0.0, high)
        )
        name = context.emit("lookup", [name, table], quant=y)
    context.give(name)


def _size(context: Context) -> tuple[int, int]:
    size, shape = context.integers(1), context.tensor(0).shape
    if len(shape) != 4 or len(size) != 2 or not all(1 <= n <= MAX_SIDE for n in size):
        raise context.unsupported(f"resizing {shape} to {size}")
    return size[0], size[1]


@HANDLERS("RESIZE_BILINEAR")
def _bilinear(context: Context) -> None:
    attrs: dict[str, Attr] = {"size": _size(context)}
    attrs |= {key: int(context.option(key)) for key in ("align_corners", "half_pixel")}
    if context.tensor(0).dtype == "i8":
        if context.declared(0).type == "UINT8":
            raise context.unsupported("resizing uint8")
        attrs["rounding"] = "fixed"
    context.give(context.emit("resize_bilinear", [context.name(0)], attrs, quant=context.result_quant()))


@HANDLERS("RESIZE_NEAREST_NEIGHBOR")
def _nearest(context: Context) -> None:
    """Rows and columns by index."""
    corners, half = context.option("align_corners"), context.option("half_pixel")
    name, shape, size = context.name(0), context.tensor(0).shape, _size(context)
    for axis in (1, 2):
        n, m = shape[axis], size[axis - 1]
        ratio = np.float32(n - 1) / np.float32(m - 1) if corners and m > 1 else np.float32(n) / np.float32(m)
        at = (np.arange(m, dtype=np.float32) + np.float32(0.5 if half else 0)) * ratio
        index = np.floor(at + np.float32(0.5)) if corners else np.floor(at)
        rows = np.clip(index, 0, n - 1).astype(np.int32)
        indices = context.constant(f"{context.result().name}:index{axis}", rows)
        part = "rows" if axis == 1 else ""
        name = context.emit("gather", [name, indices], {"axis": axis}, part=part)
    context.give(name)
