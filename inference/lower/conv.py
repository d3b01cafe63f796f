"""Convolutions and dense layers: the weights packed for a tile, one instruction for each image and group."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import CONV8, CONV32
from reflexarc.inference.lower.context import Context, lowering
from reflexarc.inference.lower.elementwise import activate, bounds
from reflexarc.inference.lower.value import Value
from reflexarc.inference.pack import pack8, pack32, shape8, shape32
from reflexarc.inference.program import ProgramError, Ref
from reflexarc.inference.tiles import Work, conv8_tiles, conv32_tiles

PARALLEL_MACS = 1 << 19
"""Products from which a convolution is shared by the threads."""


@lowering("conv")
def conv(context: Context, node: Node) -> None:
    """Image by image and group by group, each a direct convolution."""
    top, left, bottom, right = node.integers("pads")
    name = node.inputs[0]
    x = context.padded(name, context.value(name), (top, left, bottom, right))
    y = context.output(node, lambda view: view.steps[-1] == view.size)
    w = _constant(context, node, 1)  # [O, KH, KW, C / group]
    group = node.integer("group")
    _, sy, sx, _ = (0, *node.integers("strides"), 0)
    dy, dx = node.integers("dilations")
    outputs, inputs = w.shape[0] // group, w.shape[3]
    start = x.ref + -(top * x.steps[1] + left * x.steps[2])
    for g in range(group):
        part = slice(g * outputs, (g + 1) * outputs)
        window = Value(
            start + g * inputs * x.size,
            (w.shape[1], w.shape[2], inputs),
            (dy * x.steps[1], dx * x.steps[2], x.size),
            x.size,
        )
        layer = _Layer(context, node, part, w[part], window)
        for n in range(y.shape[0]):
            at = start + g * inputs * x.size + n * x.steps[0]
            to = y.ref + g * outputs * y.size + n * y.steps[0]
            layer.emit(at, to, y.shape[1:3], (sy * x.steps[1], sx * x.steps[2]), y.steps[1:3])
    _finish(context, node, y)


@lowering("dense")
def dense(context: Context, node: Node) -> None:
    """A convolution of windows of one element; all rows of x are the columns of one image row."""
    x = context.dense(node.inputs[0], context.value(node.inputs[0]))
    y = context.output(node, lambda view: view.is_dense)
    w = _constant(context, node, 1)
    count = prod(x.shape[:-1])
    window = Value(x.ref, (1, 1, w.shape[1]), (0, 0, x.size), x.size)
    layer = _Layer(context, node, slice(None), w[:, None, None, :], window)
    x_col, y_col = w.shape[1] * x.size, w.shape[0] * y.size
    layer.emit(x.ref, y.ref, (1, count), (0, x_col), (0, y_col))
    _finish(context, node, y)


@dataclass(frozen=True, slots=True)
class _Packed:
    """Weights of some channels: where they are, in how many groups of how many bytes."""

    ref: Ref
    groups: int
    group: int


class _Layer:
    """The packed weights of a group of a layer, and the instructions that apply them to an image.

    `w` is [outputs, KH, KW, inputs], `window` says where in x a window's elements lie.
    """

    def __init__(self, context: Context, node: Node, part: slice, w: NDArray[Any], window: Value) -> None:
        self._context, self._node, self._part, self._window = context, node, part, window
        self._eight = w.dtype == np.int8
        self._outputs = w.shape[0]
        _, kx, inputs = window.shape
        joined = window.steps[1] == inputs * window.size  # a window's row is one run of elements
        self._segments, self._length = (1, kx * inputs) if joined else (kx, inputs)
        self._w = w.reshape(w.shape[0], w.shape[1] * self._segments, self._length)
        self._words = -(-self._length // 4) if self._eight else self._length
        self._packed: dict[tuple[int, int, int], _Packed] = {}

    def emit(
        self, x: Ref, y: Ref, shape: tuple[int, ...], x_steps: tuple[int, ...], y_steps: tuple[int, ...]
    ) -> None:
        """Add the instruction for `shape` (rows, columns) of outputs, windows and outputs at these steps."""
        (rows, cols), (x_row, x_col), (y_row, y_col) = shape, x_steps, y_steps
        if x_row == cols * x_col and y_row == cols * y_col:
            rows, cols = 1, rows * cols
        tier = self._context.tier
        instruction = CONV8 if self._eight else CONV32
        tiles = conv8_tiles(tier) if self._eight else conv32_tiles(tier)
        first = 0
        for tile, channels in Work(tier, tiles, cols, self._w.shape[1] * self._words, self._eight).cover(
            self._outputs
        ):
            weights = self._pack(tile[1], slice(first, first + channels))
            self._context.listing.emit(
                instruction,
                kernel=f"{instruction.name}_{tile[0]}x{tile[1]}",
                parallel=rows * cols * self._w[:channels].size >= PARALLEL_MACS,
                x=x,
                w=weights.ref,
                y=y + first * (1 if self._eight else 4),
                rows=rows,
                cols=cols,
                tiles=-(-cols // tile[0]),
                groups=weights.groups,
                group=weights.group,
                channels=channels,
                x_row=x_row,
                x_col=x_col,
                kernel_rows=self._window.shape[0],
                kernel_row=self._window.steps[0],
                segments=self._segments,
                segment=self._window.steps[1],
                words=self._words,
                y_row=y_row,
                y_col=y_col,
                **self._limits(),
            )
            first += channels

    def _pack(self, vectors: int, part: slice) -> _Packed:
        """Some channels' weights for tiles of so many vectors; they are packed when they are written."""
        key = vectors, part.start, part.stop
        if key not in self._packed:
            shape, pack = (shape8, self._pack8) if self._eight else (shape32, self._pack32)
            words = self._w.shape[1] * self._words
            groups, group = shape(part.stop - part.start, words, self._context.tier, vectors)
            ref = self._context.listing.constant_later(groups * group, pack(vectors, part))
            self._packed[key] = _Packed(ref, groups, group)
        return self._packed[key]

    def _pack8(self, vectors: int, part: slice) -> Callable[[], NDArray[np.uint8]]:
        """Weights, multipliers, and the bias less what the zero point and the stored bytes' bias add."""
        context, node, w = self._context, self._node, self._w[part]
        (sx, zx), (sy, _) = context.scale(node.inputs[0]), context.scale(node.outputs[0])
        quant = context.tensor(node.inputs[1]).quant
        if quant is None or quant.zero_point.any() or quant.axis not in (0, None):
            raise ProgramError(
                f"{node}: 8-bit weights need a scale, per output channel or one, and zero point 0"
            )
        bias = _constant(context, node, 2)
        scales = np.broadcast_to(quant.scale, len(bias))[self._part][part]
        multiplier = (sx * scales).astype(np.float32) / sy
        sums, tier, offset = bias[self._part][part].astype(np.int64), context.tier, zx + context.tier.bias

        def make() -> NDArray[np.uint8]:
            folded = sums - offset * w.sum(axis=(1, 2), dtype=np.int64)
            return pack8(
                w, folded.astype(np.int32), multiplier, tier, vectors
            )  # modulo 2**32, as the sums are

        return make

    def _pack32(self, vectors: int, part: slice) -> Callable[[], NDArray[np.uint8]]:
        bias = _constant(self._context, self._node, 2)[self._part][part]
        w = self._w[part].reshape(len(bias), -1)
        return partial(pack32, w, bias, self._context.tier, vectors)

    def _limits(self) -> dict[str, Any]:
        if not self._eight:
            lo, hi = bounds(self._node)
            return {"lo": lo, "hi": hi}
        _, zero = self._context.scale(self._node.outputs[0])
        lo, hi = self._node.integer("qmin") - zero, self._node.integer("qmax") - zero
        return {"lo": lo, "hi": hi, "zero": zero}


def _constant(context: Context, node: Node, i: int) -> NDArray[Any]:
    """Input i of a node, which must be constant."""
    data = context.tensor(node.inputs[i]).data
    if data is None:
        raise ProgramError(f"{node}: input {node.inputs[i]!r} must be a constant")
    return data


def _finish(context: Context, node: Node, y: Value) -> None:
    """The activation of a float layer that the kernel's clamp cannot do, in place."""
    if context.tensor(node.outputs[0]).dtype == "f32":
        activate(context, node, node.attrs.get("activation", "none"), y, replace(y))
