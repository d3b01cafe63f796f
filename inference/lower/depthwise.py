"""Convolutions of each channel by itself: an instruction for each image."""

from __future__ import annotations

from functools import partial
from math import prod
from typing import Any

import numpy as np

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import DEPTHWISE8, DEPTHWISE8_FIXED, DEPTHWISE32
from reflexarc.inference.lower.context import Context
from reflexarc.inference.lower.elementwise import bounds
from reflexarc.inference.lower.scaling import constant, scaling
from reflexarc.inference.lower.value import Value
from reflexarc.inference.pack import Heads, pack_taps, shape_taps
from reflexarc.inference.tiles import DEPTHWISE_STRIDES, DEPTHWISE_TAPS, depthwise_outputs

PARALLEL_TAPS = 1 << 17
"""Products from which a depthwise convolution is shared by the threads."""


def depthwise(
    context: Context, node: Node, x: Value, window: Value, steps: tuple[int, int], y: Value
) -> None:
    """`x` begins at the first window, `window` says where its elements lie, `steps` are the bytes between
    the windows of two rows, and of two columns."""
    w, heads, limits = _weights(context, node)
    images = ((0, 1), (1, 0))  # columns may be taken for rows
    axes = min(images, key=lambda axes: _cost(context, y.shape[1 + axes[0]], y.shape[1 + axes[1]])[0])
    taps = w.transpose(0, *(1 + axis for axis in axes))
    (rows, cols), (x_row, x_col), (y_row, y_col), (kernel_row, kernel_col) = (
        tuple(each[axis] for axis in axes) for each in (y.shape[1:3], steps, y.steps[1:3], window.steps[:2])
    )
    channels, kernel_rows, kernel_cols = taps.shape
    flat = taps.reshape(channels, -1)
    shape = shape_taps(channels, kernel_rows * kernel_cols, context.tier, heads)
    packed = context.listing.constant_later(prod(shape), partial(pack_taps, flat, heads, context.tier))
    instruction = {"f32": DEPTHWISE32, "i8": DEPTHWISE8}[context.tensor(node.inputs[0]).dtype]
    if node.attrs.get("rounding") == "fixed":
        instruction = DEPTHWISE8_FIXED
    _, outputs = _cost(context, rows, cols)
    for n in range(y.shape[0]):
        context.listing.emit(
            instruction,
            kernel=f"{instruction.name}_{outputs}{_stride(outputs, kernel_cols, x_col, kernel_col)}",
            parallel=rows * cols * flat.size >= PARALLEL_TAPS,
            x=x.ref + n * x.steps[0],
            w=packed,
            y=y.ref + n * y.steps[0],
            rows=rows,
            cols=cols,
            tiles=-(-cols // outputs),
            groups=shape[0],
            channels=channels,
            group=shape[1],
            x_row=x_row,
            x_col=x_col,
            kernel_rows=kernel_rows,
            kernel_row=kernel_row,
            kernel_cols=kernel_cols,
            kernel_col=kernel_col,
            y_row=y_row,
            y_col=y_col,
            **limits,
        )


def _weights(context: Context, node: Node) -> tuple[Any, Heads, dict[str, Any]]:
    """Weights [channels, rows, columns], what is packed before them, and the limits of the outputs."""
    if context.tensor(node.inputs[0]).dtype == "f32":
        lo, hi = bounds(node)
        return constant(context, node, 1)[..., 0], (constant(context, node, 2),), {"lo": lo, "hi": hi}
    scaled = scaling(context, node)
    heads = scaled.heads(context.scale(node.inputs[0])[1] + context.tier.bias)
    return scaled.w[..., 0].astype(np.int32), heads, scaled.limits


def _cost(context: Context, rows: int, cols: int) -> tuple[int, int]:
    """The least time and the tile that takes it: a step has a product an output, no fewer than fill a
    product's latency, and some loads."""
    fitting = (p for p in depthwise_outputs(context.tier) if p <= cols)
    return min((rows * -(-cols // p) * (max(p, 5) + 2), p) for p in fitting)


def _stride(outputs: int, taps: int, x_col: int, kernel_col: int) -> str:
    """The kernel for the windows' stride, nothing for the one that takes any."""
    for stride in DEPTHWISE_STRIDES:
        if outputs > 1 and taps == DEPTHWISE_TAPS and x_col == stride * kernel_col:
            return f"s{stride}"
    return ""
