"""Convolution, direct over packed channels: no copy of the input, no border cases, finished in registers."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import BLOCK
from reflexarc.inference.kernels._finish import VECTOR
from reflexarc.inference.kernels._parts import PART_STEP
from reflexarc.inference.kernels._share import share
from reflexarc.inference.kernels._tile import TileOps
from reflexarc.inference.simd import LANES, peek_i64


def conv(at: Any, tile: TileOps, head: int, word: int, end: Any) -> Any:
    """A kernel with the tile given.

    `at` are the operands' offsets, `head` the vectors before a group's weights (per vector of channels),
    `word` the bytes of x a step takes, `end(block, sums, packed, y, y_col, first, n)` stores the group's
    channels, `n` of them, from channel `first` on.
    """
    start, step = tile.start, tile.step
    outputs, channels_a_group, parts = tile.p, tile.v * LANES, tile.parts
    first_weight, a_step = head * tile.v * VECTOR, tile.v * tile.weights

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        rows, cols, tiles = peek_i64(block + at.rows), peek_i64(block + at.cols), peek_i64(block + at.tiles)
        x, w, y = peek_i64(block + at.x), peek_i64(block + at.w), peek_i64(block + at.y)
        x_row, x_col = peek_i64(block + at.x_row), peek_i64(block + at.x_col)
        y_row, y_col = peek_i64(block + at.y_row), peek_i64(block + at.y_col)
        kernel_rows, kernel_row = peek_i64(block + at.kernel_rows), peek_i64(block + at.kernel_row)
        segments, segment = peek_i64(block + at.segments), peek_i64(block + at.segment)
        words, group, channels = (
            peek_i64(block + at.words),
            peek_i64(block + at.group),
            peek_i64(block + at.channels),
        )

        i, last = share(peek_i64(block + at.groups) * rows * tiles, thread, threads)
        t, row, g = 0, 0, 0
        if i > 0:
            t, row, g = i % tiles, i // tiles % rows, i // tiles // rows
        while i < last:
            col = min(t * outputs, cols - outputs)
            window = x + row * x_row + col * x_col
            packed = w + g * group
            weights = packed + first_weight
            sums = start(packed)
            for ky in range(kernel_rows):
                for s in range(segments):
                    for part in range(parts):
                        a = window + ky * kernel_row + s * segment + part * PART_STEP
                        for _ in range(words):
                            sums = step(sums, a, x_col, weights)
                            a += word
                            weights += a_step
            first = g * channels_a_group
            end(block, sums, packed, y + row * y_row + col * y_col, y_col, first, channels - first)
            i += 1
            t += 1
            if t == tiles:
                t = 0
                row += 1
                if row == rows:
                    row = 0
                    g += 1

    return kernel
