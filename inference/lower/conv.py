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
from reflexarc.inference.instructions import (
    CONV8,
    CONV8_FIXED,
    CONV32,
    DENSE8_DOUBLE,
    DENSE8_WIDE,
    Instruction,
)
from reflexarc.inference.lower.context import Context, lowering
from reflexarc.inference.lower.depthwise import depthwise
from reflexarc.inference.lower.elementwise import activate, bounds
from reflexarc.inference.lower.scaling import Scaling, constant, scaling
from reflexarc.inference.lower.value import Value
from reflexarc.inference.pack import pack8, pack32, shape8, shape32
from reflexarc.inference.program import ProgramError, Ref
from reflexarc.inference.tiles import DENSE_TILES, Tile, Work, conv8_tiles, conv32_tiles

PARALLEL_MACS = 1 << 19
"""Products from which a convolution is shared by the threads."""


@lowering("conv")
def conv(context: Context, node: Node) -> None:
    """Image by image and group by group, each a direct convolution; channels by themselves at once."""
    _check(context, node)
    top, left, bottom, right = node.integers("pads")
    name = node.inputs[0]
    x = context.padded(name, context.value(name), (top, left, bottom, right))
    y = context.output(node, lambda view: view.steps[-1] == view.size)
    w = constant(context, node, 1)  # [O, KH, KW, C / group]
    group = node.integer("group")
    sy, sx = node.integers("strides")
    dy, dx = node.integers("dilations")
    outputs, inputs = w.shape[0] // group, w.shape[3]
    start = x.ref + -(top * x.steps[1] + left * x.steps[2])
    steps = (sy * x.steps[1], sx * x.steps[2])
    window = Value(start, (*w.shape[1:3], inputs), (dy * x.steps[1], dx * x.steps[2], x.size), x.size)
    if group > 1 and outputs == inputs == 1:
        depthwise(context, node, replace(x, ref=start), window, steps, y)
        _finish(context, node, y)
        return
    for g in range(group):
        layer = _Layer(context, node, slice(g * outputs, (g + 1) * outputs), window)
        for n in range(y.shape[0]):
            at = start + g * inputs * x.size + n * x.steps[0]
            to = y.ref + g * outputs * y.size + n * y.steps[0]
            layer.emit(at, to, y.shape[1:3], steps, y.steps[1:3])
    _finish(context, node, y)


@lowering("dense")
def dense(context: Context, node: Node) -> None:
    """A convolution of windows of one element; all rows of x are the columns of one image row."""
    _check(context, node)
    x = context.dense(node.inputs[0], context.value(node.inputs[0]))
    y = context.output(node, lambda view: view.is_dense)
    outputs, inputs = context.tensor(node.inputs[1]).shape
    count = prod(x.shape[:-1])
    window = Value(x.ref, (1, 1, inputs), (0, 0, x.size), x.size)
    layer = _Layer(context, node, slice(None), window)
    layer.emit(x.ref, y.ref, (1, count), (0, inputs * x.size), (0, outputs * y.size))
    _finish(context, node, y)


def _check(context: Context, node: Node) -> None:
    x, w = (context.tensor(name).dtype for name in node.inputs[:2])
    if x != w:
        raise ProgramError(f"{node}: x {x} and weights {w}: they must be of one type")


@dataclass(frozen=True, slots=True)
class _Packed:
    """Weights of some channels: where they are, in how many groups of how many bytes."""

    ref: Ref
    groups: int
    group: int


_Plan = tuple[tuple[int, int], Callable[[], NDArray[np.uint8]]]
"""The shape of packed weights, and what makes them."""


class _Layer:
    """The packed weights of a group of a layer, and the instructions that apply them to an image.

    `window` says where in x a window's elements lie.
    """

    def __init__(self, context: Context, node: Node, part: slice, window: Value) -> None:
        self._context, self._node, self._window = context, node, window
        self._eight = context.tensor(node.inputs[0]).dtype == "i8"
        self._y_size = context.output_size(node)
        self._instruction, self._tiles = self._kind()
        _, kx, inputs = window.shape
        joined = window.steps[1] == inputs * window.size  # a window's row is one run of elements
        self._segments, self._length = (1, kx * inputs) if joined else (kx, inputs)
        self._segment = window.steps[1]
        if self._eight:
            self._scaling = scaling(context, node).part(part)
            self._w: NDArray[Any] = self._in_bytes(self._scaling)
        else:
            self._bias, w = constant(context, node, 2)[part], constant(context, node, 1)[part]
            self._w = w.reshape(len(w), -1, self._length)
        self._words = -(-self._length // 4) if self._eight else self._length
        self._packed: dict[tuple[int, int, int], _Packed] = {}

    def _kind(self) -> tuple[Instruction, tuple[Tile, ...]]:
        tier = self._context.tier
        if not self._eight:
            return CONV32, conv32_tiles(tier)
        if self._y_size == 4:
            return DENSE8_WIDE, DENSE_TILES
        rounding = self._node.attrs.get("rounding")
        if rounding == "double":
            return DENSE8_DOUBLE, DENSE_TILES
        return CONV8_FIXED if rounding == "fixed" else CONV8, conv8_tiles(tier)

    def _in_bytes(self, scaled: Scaling) -> NDArray[np.int8]:
        """The weights [outputs, rows * segments, length].

        Those that do not fit in 8 bits, less their zero point, become a sum: the run of elements is gone
        through once for each term.
        """
        rest = scaled.w.reshape(len(scaled.w), -1, self._segments, self._length)
        terms = [np.clip(rest, -128, 127)]
        while (rest := rest - terms[-1]).any():
            terms.append(np.clip(rest, -128, 127))
        if len(terms) > 1:
            if self._segments > 1:
                raise ProgramError(f"{self._node}: weights of 9 bits in a dilated convolution")
            self._segments, self._segment = len(terms), 0
        return np.concatenate(terms, axis=2).astype(np.int8).reshape(len(rest), -1, self._length)

    def emit(
        self, x: Ref, y: Ref, shape: tuple[int, ...], x_steps: tuple[int, ...], y_steps: tuple[int, ...]
    ) -> None:
        """Add the instruction for `shape` (rows, columns) of outputs, windows and outputs at these steps."""
        (rows, cols), (x_row, x_col), (y_row, y_col) = shape, x_steps, y_steps
        if x_row == cols * x_col and y_row == cols * y_col:
            rows, cols = 1, rows * cols
        steps, instruction, first = self._w.shape[1] * self._words, self._instruction, 0
        work = Work(self._context.tier, self._tiles, cols, steps, self._eight)
        for tile, channels in work.cover(len(self._w)):
            weights = self._pack(tile[1], slice(first, first + channels))
            self._context.listing.emit(
                instruction,
                kernel=f"{instruction.name}_{tile[0]}x{tile[1]}",
                parallel=rows * cols * self._w[:channels].size >= PARALLEL_MACS,
                x=x,
                w=weights.ref,
                y=y + first * self._y_size,
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
                segment=self._segment,
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
            shape, make = (self._pack8 if self._eight else self._pack32)(vectors, part)
            self._packed[key] = _Packed(self._context.listing.constant_later(prod(shape), make), *shape)
        return self._packed[key]

    def _pack8(self, vectors: int, part: slice) -> _Plan:
        """Weights, factors, and the bias less what the zero point and the stored bytes' bias add."""
        tier, w = self._context.tier, self._w[part]
        heads = self._scaling.part(part).heads(self._context.scale(self._node.inputs[0])[1] + tier.bias)
        shape = shape8(len(w), w.shape[1] * self._words, tier, vectors, heads)
        return shape, partial(pack8, w, heads, tier, vectors)

    def _pack32(self, vectors: int, part: slice) -> _Plan:
        w = self._w[part].reshape(part.stop - part.start, -1)
        tier = self._context.tier
        return shape32(*w.shape, tier, vectors), partial(pack32, w, self._bias[part], tier, vectors)

    def _limits(self) -> dict[str, Any]:
        if self._eight:
            return self._scaling.limits
        lo, hi = bounds(self._node)
        return {"lo": lo, "hi": hi}


def _finish(context: Context, node: Node, y: Value) -> None:
    """The activation of a float layer that the kernel's clamp cannot do, in place."""
    if context.tensor(node.outputs[0]).dtype == "f32":
        activate(context, node, node.attrs.get("activation", "none"), y, replace(y))
