"""Pooling of channels-last images: windows are cut to what lies inside the image, channels are the lanes."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import (
    AVERAGE_POOL8,
    AVERAGE_POOL32,
    BLOCK,
    MAX_POOL8,
    MAX_POOL32,
)
from reflexarc.inference.kernels._lanes import load_stored
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import (
    BIAS,
    LANES,
    helper,
    load_f32,
    load_q,
    maximum,
    minimum,
    peek_f32,
    peek_i32,
    peek_i64,
    round_i32,
    select,
    splat_f32,
    splat_i32,
    store_first_f32,
    store_first_q,
    to_f32,
    zero_f32,
    zero_i32,
)

_at = AVERAGE_POOL8.at
_divisors = AVERAGE_POOL32.at.divisors


def _pool(name: str, size: int, start: Any, combine: Any, finish: Any) -> Any:
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


@helper
def _least_q() -> Any:
    return splat_i32(-128)


@helper
def _max_q(sums: Any, address: int) -> Any:
    return maximum(sums, load_q(address))


@helper
def _store_q(block: int, sums: Any, n: int, y: int, left: int) -> None:
    store_first_q(y, sums, left)


@helper
def _add_stored(sums: Any, address: int) -> Any:
    return sums + load_stored(address)


@helper
def _average_q(block: int, sums: Any, n: int, y: int, left: int) -> None:
    multiplier = peek_f32(peek_i64(block + _at.multipliers) + 4 * n)
    mean = to_f32(sums - n * (peek_i32(block + _at.x_zero) + BIAS)) * multiplier
    q = round_i32(minimum(maximum(mean, peek_f32(block + _at.lo)), peek_f32(block + _at.hi)))
    store_first_q(y, q + peek_i32(block + _at.zero), left)


@helper
def _least_f32() -> Any:
    return splat_f32(-float("inf"))


@helper
def _max_f32(sums: Any, address: int) -> Any:
    x = load_f32(address)
    return select(sums > x, sums, select(sums == sums, x, sums))  # a NaN once met stays


@helper
def _store_f32(block: int, sums: Any, n: int, y: int, left: int) -> None:
    store_first_f32(y, sums, left)


@helper
def _add_f32(sums: Any, address: int) -> Any:
    return sums + load_f32(address)


@helper
def _average_f32(block: int, sums: Any, n: int, y: int, left: int) -> None:
    store_first_f32(y, sums / peek_f32(peek_i64(block + _divisors) + 4 * n), left)


KERNELS = (
    _pool(MAX_POOL8.name, 1, _least_q, _max_q, _store_q),
    _pool(AVERAGE_POOL8.name, 1, zero_i32, _add_stored, _average_q),
    _pool(MAX_POOL32.name, 4, _least_f32, _max_f32, _store_f32),
    _pool(AVERAGE_POOL32.name, 4, zero_f32, _add_f32, _average_f32),
)
