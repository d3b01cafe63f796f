"""Each kernel's twin in plain numpy, of the same name: slow and obviously right.

8-bit elements are values -128..127. Images are [height, width, channels]; `pads` are (top, left, bottom,
right).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from naive_fixed import halve, high, reciprocal, wrap
from naive_tflite import away, scale
from numpy.typing import NDArray

Array = NDArray[Any]
F = np.float32


def _requantized(real: Array, lo: float, hi: float, zero: int) -> Array:
    """Steps of y, rounded half to even, clamped, moved by the zero."""
    return (np.clip(np.rint(real), lo, hi) + zero).astype(np.int8)


def _windows(
    x: Array, kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int]
) -> Array:
    """[rows, cols, KH, KW, C] of an image that is padded already."""
    (kh, kw), (sy, sx), (dy, dx) = kernel, strides, dilations
    rows = (x.shape[0] - (kh - 1) * dy - 1) // sy + 1
    cols = (x.shape[1] - (kw - 1) * dx - 1) // sx + 1
    y = np.zeros((rows, cols, kh, kw, x.shape[2]), x.dtype)
    for i, j, u, v in product(range(rows), range(cols), range(kh), range(kw)):
        y[i, j, u, v] = x[i * sy + u * dy, j * sx + v * dx]
    return y


def quantize(x: Array, scale: np.float32, zero: int) -> Array:
    steps = np.rint(x / F(scale))
    return np.where(np.isnan(steps), -128, np.clip(steps, -128 - zero, 127 - zero) + zero).astype(np.int8)


def quantize_away(x: Array, scale: np.float32, zero: int) -> Array:
    """Halves away from zero."""
    with np.errstate(invalid="ignore"):
        steps = away(x / F(scale))
    return np.where(np.isnan(steps), -128, np.clip(steps, -128 - zero, 127 - zero) + zero).astype(np.int8)


def quantize_planes(x: Array, scale: np.float32, zero: int) -> Array:
    """x [channels, rows, length], y [rows, length, channels]."""
    return quantize(x, scale, zero).transpose(1, 2, 0)


def dequantize(x: Array, scale: np.float32, zero: int) -> Array:
    return (x.astype(np.int32) - zero).astype(F) * F(scale)


def conv8(
    x: Array, w: Array, bias: Array, multiplier: Array, strides: Any, dilations: Any, **limits: Any
) -> Array:
    """x values with their zero already subtracted, padded; w [O, KH, KW, C]."""
    return _requantized(_sums(x, w, bias, strides, dilations).astype(F) * multiplier, **limits)


def _sums(x: Array, w: Array, bias: Array, strides: Any, dilations: Any) -> Array:
    windows = _windows(x.astype(np.int64), w.shape[1:3], strides, dilations)
    return (np.einsum("ijuvc,ouvc->ijo", windows, w.astype(np.int64)) + bias).astype(np.int32)


def conv8_fixed(
    x: Array, w: Array, bias: Array, shifts: Array, strides: Any, dilations: Any, **limits: Any
) -> Array:
    """shifts [2, O]: multipliers and exponents."""
    return _scaled(_sums(x, w, bias, strides, dilations), shifts, **limits).astype(np.int8)


def _scaled(acc: Array, shifts: Array, lo: int, hi: int, zero: int) -> Array:
    """Scaled by LiteRT's integers, clamped, moved by the zero."""
    return np.clip(scale(acc, *shifts), lo, hi) + zero


def dense8_wide(
    x: Array, w: Array, bias: Array, shifts: Array, strides: Any, dilations: Any, **limits: Any
) -> Array:
    return _scaled(_sums(x, w, bias, strides, dilations), shifts, **limits).astype(np.int32)


def dense8_double(
    x: Array, w: Array, bias: Array, multiplier: Array, strides: Any, dilations: Any, **limits: Any
) -> Array:
    real = away(_sums(x, w, bias, strides, dilations) * multiplier.astype(np.float64))
    return _requantized(real, **limits)


def _each(w: Array) -> Array:
    """Depthwise weights [KH, KW, C] as those of a convolution whose other weights are 0."""
    full = np.zeros((w.shape[2], *w.shape), w.dtype)
    for c in range(w.shape[2]):
        full[c, :, :, c] = w[:, :, c]
    return full


def depthwise8(x: Array, w: Array, *rest: Any, **limits: Any) -> Array:
    """w [KH, KW, C]."""
    return conv8(x, _each(w), *rest, **limits)


def depthwise8_fixed(x: Array, w: Array, *rest: Any, **limits: Any) -> Array:
    return conv8_fixed(x, _each(w), *rest, **limits)


def depthwise32(x: Array, w: Array, *rest: Any, **limits: Any) -> Array:
    return conv32(x, _each(w), *rest, **limits)


def conv32(x: Array, w: Array, bias: Array, strides: Any, dilations: Any, lo: float, hi: float) -> Array:
    """x padded; summed in the order of the weights."""
    windows = _windows(x.astype(np.float64), w.shape[1:3], strides, dilations)
    flat, weights = windows.reshape(*windows.shape[:2], -1), w.reshape(len(w), -1).astype(np.float64)
    sums = np.broadcast_to(bias, (*flat.shape[:2], len(w)))
    for k in range(flat.shape[-1]):
        sums = (flat[..., k, None] * weights[:, k] + sums).astype(F)
    return np.clip(sums, F(lo), F(hi))


def _pooled(x: Array, kernel: Any, strides: Any, dilations: Any, pads: Any) -> Array:
    """[rows, cols, KH * KW, C] with NaN outside x."""
    (top, left, bottom, right), (h, w, c) = pads, x.shape
    padded = np.full((top + h + bottom, left + w + right, c), np.nan)
    padded[top : top + h, left : left + w] = x
    windows = _windows(padded, kernel, strides, dilations)
    return windows.reshape(*windows.shape[:2], -1, c)


def max_pool8(x: Array, kernel: Any, strides: Any, dilations: Any, pads: Any) -> Array:
    return np.nanmax(_pooled(x, kernel, strides, dilations, pads), axis=2).astype(np.int8)


def average_pool8(
    x: Array,
    kernel: Any,
    strides: Any,
    dilations: Any,
    pads: Any,
    multipliers: Array,
    x_zero: int,
    **limits: Any,
) -> Array:
    windows = _pooled(x.astype(np.int64) - x_zero, kernel, strides, dilations, pads)
    n = (~np.isnan(windows)).sum(axis=2)
    return _requantized(np.nansum(windows, axis=2).astype(F) * multipliers[n], **limits)


def average_pool8_away(
    x: Array, kernel: Any, strides: Any, dilations: Any, pads: Any, lo: int, hi: int
) -> Array:
    """Sums over counts, halves away from zero."""
    windows = _pooled(x, kernel, strides, dilations, pads)
    n = (~np.isnan(windows)).sum(axis=2)
    return np.clip(away(np.nansum(windows, axis=2) / n), lo, hi).astype(np.int8)


def average_pool8_up(
    x: Array, kernel: Any, strides: Any, dilations: Any, pads: Any, lo: int, hi: int
) -> Array:
    """Sums over counts, halves up."""
    windows = _pooled(x, kernel, strides, dilations, pads)
    n = (~np.isnan(windows)).sum(axis=2)
    total = np.nansum(windows, axis=2).astype(np.int64)
    return np.clip((2 * total + n) // (2 * n), lo, hi).astype(np.int8)


def sum_pool8(
    x: Array, kernel: Any, strides: Any, dilations: Any, pads: Any, shifts: Array, x_zero: int, **limits: int
) -> Array:
    windows = _pooled(x.astype(np.int64) - x_zero, kernel, strides, dilations, pads)
    return _scaled(np.nansum(windows, axis=2).astype(np.int32), shifts, **limits).astype(np.int8)


def max_pool32(x: Array, kernel: Any, strides: Any, dilations: Any, pads: Any) -> Array:
    return np.nanmax(_pooled(x, kernel, strides, dilations, pads), axis=2).astype(F)


def average_pool32(x: Array, kernel: Any, strides: Any, dilations: Any, pads: Any, divisors: Array) -> Array:
    windows = _pooled(x, kernel, strides, dilations, pads)
    n = (~np.isnan(windows)).sum(axis=2)
    return (np.nansum(windows, axis=2) / divisors[n]).astype(F)


def add8(
    x: Array, other: Array, x_zero: int, other_zero: int, x_scale: Any, other_scale: Any, **limits: Any
) -> Array:
    a = (x.astype(np.int32) - x_zero).astype(F) * F(x_scale)
    b = (other.astype(np.int32) - other_zero).astype(F) * F(other_scale)
    return _requantized(a + b, **limits)


def mul8(x: Array, other: Array, x_zero: int, other_zero: int, scale: Any, **limits: Any) -> Array:
    exact = (x.astype(np.int32) - x_zero) * (other.astype(np.int32) - other_zero)
    return _requantized(exact.astype(F) * F(scale), **limits)


def _parts(x: Array, other: Array, zeros: Any, scales: Any) -> tuple[Array, Array]:
    """The operands of a sum in units of it."""
    a, b = (
        scale((v.astype(np.int64) - zero) << 20, *each)
        for v, zero, each in zip((x, other), zeros, scales, strict=True)
    )
    return a, b


def add8_fixed(x: Array, other: Array, zeros: Any, scales: Any, shifts: Any, **limits: int) -> Array:
    """zeros of x and the other, their multipliers and exponents, and those of the sum."""
    a, b = _parts(x, other, zeros, scales)
    return _scaled(a + b, shifts, **limits).astype(np.int8)


def sub8_fixed(x: Array, other: Array, zeros: Any, scales: Any, shifts: Any, **limits: int) -> Array:
    a, b = _parts(x, other, zeros, scales)
    return _scaled(a - b, shifts, **limits).astype(np.int8)


def mul8_fixed(x: Array, other: Array, zeros: Any, scales: Any, shifts: Any, **limits: int) -> Array:
    exact = (x.astype(np.int64) - zeros[0]) * (other.astype(np.int64) - zeros[1])
    return _scaled(exact, shifts, **limits).astype(np.int8)


def softmax8(x: Array, table: Array) -> Array:
    y = np.empty(x.shape, np.int8)
    for i, row in enumerate(x.astype(int)):
        powers = [int(table[row.max() - q]) for q in row]
        r, k = reciprocal(sum(halve(e, 12) for e in powers), 12)
        y[i] = [min(halve(high(r, e), k + 23) - 128, 127) for e in powers]
    return y


def table8(x: Array, table: Array) -> Array:
    return table[x.astype(np.int64) + 128]


def sigmoid32(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return (1 / (1 + np.exp(-x.astype(np.float64)))).astype(F)


def tanh32(x: Array) -> Array:
    return np.tanh(x.astype(np.float64)).astype(F)


def silu32(x: Array) -> Array:
    with np.errstate(over="ignore"):
        return (x / (1 + np.exp(-x.astype(np.float64)))).astype(F)


def elu32(x: Array, alpha: float) -> Array:
    wide = x.astype(np.float64)
    return np.where(wide > 0, wide, alpha * np.expm1(np.minimum(wide, 0))).astype(F)


def clamp32(x: Array, lo: float, hi: float) -> Array:
    return np.clip(x, F(lo), F(hi))


def add32(x: Array, other: Array) -> Array:
    return x + other


def mul32(x: Array, other: Array) -> Array:
    return x * other


def sub32(x: Array, other: Array) -> Array:
    return x - other


def div32(x: Array, other: Array) -> Array:
    return x / other


def sqrt32(x: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


def add_i32(x: Array, other: Array) -> Array:
    return x + other


def sub_i32(x: Array, other: Array) -> Array:
    return x - other


def mul_i32(x: Array, other: Array) -> Array:
    return x * other


def floor_div_i32(x: Array, other: Array) -> Array:
    safe = np.where(other == 0, 1, other).astype(np.int64)
    return np.where(other == 0, 0, x.astype(np.int64) // safe).astype(np.int32)


def to_f32(x: Array) -> Array:
    return x.astype(F)


def arg_max8(x: Array) -> Array:
    """Along the middle of [outer, count, inner]."""
    return x.argmax(axis=1).astype(np.int32)


def gather_nd(x: Array, index: Array) -> Array:
    """index [rows, depth]."""
    ends = np.array(x.shape[: index.shape[1]]) - 1
    return np.stack([x[tuple(np.clip(row, 0, ends))] for row in index])


def resize8(x: Array, row_places: Array, col_places: Array) -> Array:
    """Places [n, 3]: the element below, that above, 1024ths between them."""
    y = np.empty((len(row_places), len(col_places), x.shape[2]), np.int8)
    for i, (a, b, down) in enumerate(row_places):
        for j, (c, d, along) in enumerate(col_places):
            q = x.astype(np.int64)
            near = q[a, c] * (1024 - along) + q[a, d] * along
            far = q[b, c] * (1024 - along) + q[b, d] * along
            y[i, j] = away((near * (1024 - down) + far * down) / 2.0**20)
    return y


def lstm_cell8(
    x: Array, other: Array, cell: Array, logistic: Array, tanh: Array, shift: int, clip: int
) -> Array:
    """Tables by number + 32768."""
    i, f, g, _ = np.split(np.clip(x + other, -32768, 32767) + 32768, 4, axis=1)
    y = np.empty(cell.shape, np.int16)
    for at in np.ndindex(cell.shape):
        kept = wrap(halve(int(logistic[f[at]]) * int(cell[at]), 15), 16)
        new = wrap(halve(int(logistic[i[at]]) * int(tanh[g[at]]), shift), 16)
        y[at] = max(-clip, min(clip, max(-32768, min(32767, kept + new))))
    return y


def lstm_hidden8(
    x: Array, other: Array, cell: Array, logistic: Array, tanh: Array, shifts: Array, **limits: int
) -> Array:
    gate = np.split(np.clip(x + other, -32768, 32767) + 32768, 4, axis=1)[3]
    shown = logistic[gate].astype(np.int64) * tanh[cell.astype(np.int64) + 32768]
    return _scaled(shown, shifts, **limits).astype(np.int8)


def softmax32(x: Array) -> Array:
    power = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return (power / power.sum(-1, keepdims=True)).astype(F)


def fill(rows: int, row: int, head: int, gap: int, tail: int, value: int, inside: int) -> Array:
    """Bytes of a padded tensor whose elements are all `inside`."""
    y = np.full(head + rows * row + (rows - 1) * gap + tail, value, np.uint8)
    for i in range(rows):
        start = head + i * (row + gap)
        y[start : start + row] = inside
    return y


def copy(x: Array) -> Array:
    return x.copy()


def transpose8(x: Array, perm: Any) -> Array:
    return np.ascontiguousarray(x.transpose(perm))


transpose32 = transpose8
