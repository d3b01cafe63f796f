"""Pooling of channels-last images: windows are cut to what lies inside the image, channels are the lanes."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import BLOCK, MAX_POOL8
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import LANES, peek_i64

_at = MAX_POOL8.at


def pool(name: str, size: int, start: Any, combine: Any, finish: Any) -> Any:
    """A kernel on elements of `size` bytes.

    `start()` is the vector a window begins with, `combine(sums, address)` takes in LANES channels of an
    element, and `finish(block, sums, n, y, left)` stores the result of n elements, its first `left` channels.
    """

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, y, channels = peek_i64(block + _at.x), peek_i64(block + _at.y), peek_i64(block + _at.channels)
        cols, height, width = (
            peek_i64(block + _at.cols),
            peek_i64(block + _at.height),
            peek_i64(block + _at.width),
        )
        kernel_rows, kernel_cols = peek_i64(block + _at.kernel_rows), peek_i64(block + _at.kernel_cols)
        stride_rows, stride_cols = peek_i64(block + _at.stride_rows), peek_i64(block + _at.stride_cols)
        step_rows, step_cols = peek_i64(block + _at.step_rows), peek_i64(block + _at.step_cols)
        top, left = peek_i64(block + _at.top), peek_i64(block + _at.left)
        x_row, x_col = peek_i64(block + _at.x_row), peek_i64(block + _at.x_col)
        y_row, y_col = peek_i64(block + _at.y_row), peek_i64(block + _at.y_col)
        first, last = share(peek_i64(block + _at.rows), thread, threads)
        for row in range(first, last):
            for col in range(cols):
                for c in range(0, channels, LANES):
                    sums, n = start(), 0
                    for ky in range(kernel_rows):
                        i = row * stride_rows - top + ky * step_rows
                        if i < 0 or i >= height:
                            continue
                        for kx in range(kernel_cols):
                            j = col * stride_cols - left + kx * step_cols
                            if 0 <= j < width:
                                sums = combine(sums, x + i * x_row + j * x_col + c * size)
                                n += 1
                    finish(block, sums, n, y + row * y_row + col * y_col + c * size, channels - c)

    kernel.__name__ = name
    return kernel
