"""Depthwise convolution by rows: channels are the lanes, neighbouring outputs of a row the tile.

A step takes one tap, or a whole row of three taps, whose columns are then loaded once for all the outputs
that see them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from llvmlite import ir
from numba import types

from reflexarc.inference.instructions import BLOCK, Instruction
from reflexarc.inference.kernels._finish import VECTOR, Finish
from reflexarc.inference.kernels._share import share
from reflexarc.inference.kernels._tile import TileOps
from reflexarc.inference.simd import BIAS, F32, I16, I32, LANES, TIER, helper, peek_f32, peek_i32, peek_i64
from reflexarc.inference.simd.arithmetic import fused
from reflexarc.inference.simd.dot import emit_dot_i16
from reflexarc.inference.simd.memory import ADDRESS, load
from reflexarc.inference.simd.vector import define, fixed
from reflexarc.inference.tiles import DEPTHWISE_STRIDES, DEPTHWISE_TAPS, depthwise_outputs

_BYTES = ir.VectorType(ir.IntType(8), LANES)


class _Taps(TileOps):
    """A tile of P outputs of LANES channels; `taps` columns a step, `stride` of them between outputs."""

    def __init__(self, sums: Any, p: int, taps: int, stride: int, ending: Finish | None) -> None:
        super().__init__(sums, p, 1, ending)
        self.taps, self._stride = taps, stride
        self.add = define(fixed(self.tile, self.tile, ADDRESS, ADDRESS, ADDRESS, ADDRESS), self._add_taps)

    def _add_taps(self, b: Any, tile: Any, x: Any, x_col: Any, tap: Any, w: Any) -> Any:
        """add(tile, x, x_col, tap, w): the products of `taps` columns, `tap` bytes apart, and their weights;
        outputs are `x_col` bytes apart."""
        i64 = x.type
        weights = [load(self.sums.llvm)(b, b.add(w, i64(VECTOR * k))) for k in range(self.taps)]
        columns: dict[int, Any] = {}
        for p in range(self.p):
            total = b.extract_value(tile, p)
            for k in range(self.taps):
                at = p * self._stride + k
                if at not in columns:
                    offset = b.mul(tap, i64(at)) if self.taps > 1 else b.mul(x_col, i64(p))
                    columns[at] = self._elements(b, b.add(x, offset))
                total = self._product(b, total, columns[at], weights[k])
            tile = b.insert_value(tile, total, p)
        return tile

    def _elements(self, b: Any, address: Any) -> Any:
        """LANES channels; 8-bit ones as stored, in i32."""
        if self.is_float:
            return load(F32.llvm)(b, address)
        narrow = load(_BYTES)(b, address)
        return (b.zext if BIAS else b.sext)(narrow, I32.llvm)

    def _product(self, b: Any, total: Any, x: Any, w: Any) -> Any:
        """total + x * w; on x86 by the product of 16-bit pairs, of which the upper ones of x are 0."""
        if self.is_float:
            return fused(b, w, x, total)
        if TIER.arm:
            return b.add(total, b.mul(x, w))
        return emit_dot_i16(b, total, b.bitcast(x, I16.llvm), b.bitcast(w, I16.llvm))


def kernels(instruction: Instruction, ending: Finish | None = None) -> tuple[Callable[..., Any], ...]:
    """A kernel for each number of outputs, and for each stride of the usual windows."""
    return tuple(_kernel(instruction, name, ops, ending) for name, ops in _tiles(ending))


def _tiles(ending: Finish | None) -> Iterator[tuple[str, _Taps]]:
    sums = I32 if ending else F32
    for p in depthwise_outputs(TIER):
        yield f"{p}", _Taps(sums, p, 1, 1, ending)
        if p > 1:
            for stride in DEPTHWISE_STRIDES:
                yield f"{p}s{stride}", _Taps(sums, p, DEPTHWISE_TAPS, stride, ending)


def _kernel(instruction: Instruction, name: str, ops: _Taps, ending: Finish | None) -> Any:
    at, start, add, outputs, taps = instruction.at, ops.start, ops.add, ops.p, ops.taps
    size = 1 if ending else 4
    first_weight, a_step = (ending.heads if ending else 1) * VECTOR, taps * VECTOR
    end = _end(instruction, ops, ending)

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, w, y = peek_i64(block + at.x), peek_i64(block + at.w), peek_i64(block + at.y)
        x_row, x_col = peek_i64(block + at.x_row), peek_i64(block + at.x_col)
        y_row, y_col = peek_i64(block + at.y_row), peek_i64(block + at.y_col)
        kernel_rows, kernel_row = peek_i64(block + at.kernel_rows), peek_i64(block + at.kernel_row)
        kernel_cols, kernel_col = peek_i64(block + at.kernel_cols), peek_i64(block + at.kernel_col)
        cols, tiles, groups = (
            peek_i64(block + at.cols),
            peek_i64(block + at.tiles),
            peek_i64(block + at.groups),
        )
        group, channels = peek_i64(block + at.group), peek_i64(block + at.channels)
        steps = kernel_cols if taps == 1 else 1

        i, last = share(peek_i64(block + at.rows) * groups, thread, threads)
        g, row = 0, 0
        if i > 0:
            g, row = i % groups, i // groups
        while i < last:
            packed, c = w + g * group, g * LANES
            for t in range(tiles):
                col = min(t * outputs, cols - outputs)
                window = x + row * x_row + col * x_col + c * size
                weights = packed + first_weight
                sums = start(packed)
                for ky in range(kernel_rows):
                    a = window + ky * kernel_row
                    for _ in range(steps):
                        sums = add(sums, a, x_col, kernel_col, weights)
                        a += kernel_col
                        weights += a_step
                end(block, sums, packed, y + row * y_row + col * y_col + c * size, y_col, channels - c)
            i += 1
            g += 1
            if g == groups:
                g = 0
                row += 1

    kernel.__name__ = f"{instruction.name}_{name}"
    return kernel


def _end(instruction: Instruction, ops: _Taps, ending: Finish | None) -> Any:
    """What stores a tile: end(block, sums, packed, y, y_col, n)."""
    at, finish = instruction.at, ops.finish
    if ending is None:

        @helper
        def end_f32(block: int, sums: Any, packed: int, y: int, y_col: int, n: int) -> None:
            finish(sums, y, y_col, n, peek_f32(block + at.lo), peek_f32(block + at.hi))

        return end_f32
    peek_limit = peek_f32 if ending.limit == types.float32 else peek_i32

    @helper
    def end_q(block: int, sums: Any, packed: int, y: int, y_col: int, n: int) -> None:
        lo, hi = peek_limit(block + at.lo), peek_limit(block + at.hi)
        finish(sums, packed, y, y_col, n, lo, hi, peek_i32(block + at.zero))

    return end_q
