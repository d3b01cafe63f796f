"""Float to 8-bit and back."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import (
    BLOCK,
    DEQUANTIZE,
    QUANTIZE,
    QUANTIZE_AWAY,
    QUANTIZE_PLANES,
)
from reflexarc.inference.kernels._lanes import scatter8, scatter16, scatter32, scatter_pairs
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import (
    BIAS,
    LANES,
    helper,
    load_f32,
    load_first_f32,
    load_q,
    maximum,
    minimum,
    peek_f32,
    peek_i32,
    peek_i64,
    poke_i8,
    poke_i32,
    round_i32,
    select,
    splat_i32,
    store_f32,
    store_first_f32,
    store_first_q,
    store_q,
    to_f32,
)

_rows, _planes, _back = QUANTIZE.at, QUANTIZE_PLANES.at, DEQUANTIZE.at


@helper
def _quantized(x: Any, scale: float, zero: int) -> Any:
    """Values of a vector of floats; NaN gives the least."""
    return round_i32(minimum(maximum(x / scale, -128.0 - zero), 127.0 - zero)) + zero


@helper
def _quantized_away(x: Any, scale: float, zero: int) -> Any:
    """As `_quantized`, halves away from zero."""
    steps = minimum(maximum(x / scale, -128.0 - zero), 127.0 - zero)
    even = round_i32(steps)
    rest = steps - to_f32(even)
    up = select(rest >= 0.5, splat_i32(1), splat_i32(0))
    down = select(rest <= -0.5, splat_i32(1), splat_i32(0))
    return even + select(steps > 0.0, up, -down) + zero


def _quantize(name: str, quantized: Any) -> Any:
    """The kernel that rounds as `quantized` does."""

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, y, count = peek_i64(block + _rows.x), peek_i64(block + _rows.y), peek_i64(block + _rows.count)
        x_row, y_row = peek_i64(block + _rows.x_row), peek_i64(block + _rows.y_row)
        scale, zero = peek_f32(block + _rows.scale), peek_i32(block + _rows.zero)
        first, last = share(peek_i64(block + _rows.rows), thread, threads)
        for row in range(first, last):
            a, to, end = x + row * x_row, y + row * y_row, y + row * y_row + count
            while to + LANES <= end:
                store_q(to, quantized(load_f32(a), scale, zero))
                a += 4 * LANES
                to += LANES
            if to < end:
                store_first_q(to, quantized(load_first_f32(a, end - to), scale, zero), end - to)

    kernel.__name__ = name
    return kernel


def quantize_planes(instruction: int, thread: int, threads: int) -> None:
    """Channels-first floats to channels-last 8-bit."""
    block = peek_i64(instruction + BLOCK)
    x, y, plane = peek_i64(block + _planes.x), peek_i64(block + _planes.y), peek_i64(block + _planes.plane)
    x_row, y_row, step = (
        peek_i64(block + _planes.x_row),
        peek_i64(block + _planes.y_row),
        peek_i64(block + _planes.y_step),
    )
    channels, length = peek_i64(block + _planes.channels), peek_i64(block + _planes.length)
    scale, zero = peek_f32(block + _planes.scale), peek_i32(block + _planes.zero)
    first, last = share(peek_i64(block + _planes.rows), thread, threads)
    for row in range(first, last):
        for i in range(0, length, LANES):
            n = min(i, length - LANES)
            if n < 0:
                _short(x + row * x_row, y + row * y_row, channels, length, plane, step, scale, zero)
            else:
                _whole(
                    x + row * x_row + 4 * n, y + row * y_row + n * step, channels, plane, step, scale, zero
                )


@helper
def _whole(x: int, y: int, channels: int, plane: int, step: int, scale: float, zero: int) -> None:
    """LANES elements of all planes."""
    if 4 < channels <= 8 and step == channels:
        _packed(x, y, channels, plane, scale, zero)
        return
    c = 0
    while c + 4 <= channels:
        scatter32(y + c, step, _four(x, plane, scale, zero))
        x += 4 * plane
        c += 4
    if c + 2 <= channels:
        scatter16(y + c, step, _bytes(x, scale, zero) | _bytes(x + plane, scale, zero) << 8)
        x += 2 * plane
        c += 2
    if c < channels:
        scatter8(y + c, step, _bytes(x, scale, zero))


@helper
def _packed(x: int, y: int, channels: int, plane: int, scale: float, zero: int) -> None:
    """5 to 8 channels, no gaps: 8 bytes an element, the surplus overwritten by the next; the last exact."""
    high = _bytes(x + 4 * plane, scale, zero)
    for c in range(5, channels):
        high = high | _bytes(x + c * plane, scale, zero) << 8 * (c - 4)
    rest = scatter_pairs(y, channels, _four(x, plane, scale, zero), high)
    y += (LANES - 1) * channels
    poke_i32(y, rest)
    for c in range(4, channels):
        poke_i8(y + c, rest >> 8 * c)


@helper
def _short(
    x: int, y: int, channels: int, length: int, plane: int, step: int, scale: float, zero: int
) -> None:
    """Rows shorter than a vector, an element at a time."""
    for c in range(channels):
        for n in range(length):
            q = _quantized(load_first_f32(x + c * plane + 4 * n, 1), scale, zero)
            store_first_q(y + n * step + c, q, 1)


@helper
def _four(x: int, plane: int, scale: float, zero: int) -> Any:
    """The stored bytes of LANES floats of four planes, one lane for the four."""
    even = _bytes(x, scale, zero) | _bytes(x + 2 * plane, scale, zero) << 16
    odd = _bytes(x + plane, scale, zero) | _bytes(x + 3 * plane, scale, zero) << 16
    return even | odd << 8


@helper
def _bytes(x: int, scale: float, zero: int) -> Any:
    """The stored bytes of LANES floats, each in the low bits of its lane."""
    return _quantized(load_f32(x), scale, zero) + BIAS & 255


def dequantize(instruction: int, thread: int, threads: int) -> None:
    """Rows of 8-bit to rows of floats."""
    block = peek_i64(instruction + BLOCK)
    x, y, count = peek_i64(block + _back.x), peek_i64(block + _back.y), peek_i64(block + _back.count)
    x_row, y_row = peek_i64(block + _back.x_row), peek_i64(block + _back.y_row)
    scale, zero = peek_f32(block + _back.scale), peek_i32(block + _back.zero)
    first, last = share(peek_i64(block + _back.rows), thread, threads)
    for row in range(first, last):
        a, to, left = x + row * x_row, y + row * y_row, count
        while left >= LANES:
            store_f32(to, to_f32(load_q(a) - zero) * scale)
            a += LANES
            to += 4 * LANES
            left -= LANES
        if left > 0:
            store_first_f32(to, to_f32(load_q(a) - zero) * scale, left)


KERNELS = (
    _quantize(QUANTIZE.name, _quantized),
    _quantize(QUANTIZE_AWAY.name, _quantized_away),
    quantize_planes,
    dequantize,
)
