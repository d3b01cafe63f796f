"""LiteRT's integer arithmetic: numbers as integers with a binary point somewhere.

Sources: the reference kernels of TensorFlow Lite (`common.h`, `quantization_util.cc`, `softmax.h`) and the
fixed-point library of gemmlowp, on which they stand. All functions take and give int64 arrays that hold
what their int32 or int16 would; `bits` says which of the two.

    high(a, b)      a * b / 2^(bits - 1), halves up: (a * b + 2^(bits - 2)) >> (bits - 1), saturated
    halve(x, n)     x / 2^n, halves away from zero
    scale(x, m, n)  x * m / 2^31 * 2^n  as  halve(high(x * 2^max(n, 0), m), max(-n, 0))
"""

from __future__ import annotations

from math import floor, frexp

import numpy as np
from numpy.typing import ArrayLike, NDArray

from reflexarc.inference.graph.ir import ModelError

Integers = NDArray[np.int64]
Floats = NDArray[np.float32]

MAX_SHIFT = 31


def multiplier(real: float) -> tuple[int, int]:
    """(m, n) with real ~ m / 2^31 * 2^n and 2^30 <= m < 2^31; (0, 0) for what is below 2^-32."""
    if not 0 <= real < 2.0**MAX_SHIFT:
        raise ModelError(f"a ratio of scales is {real:g}, not in 0..2^{MAX_SHIFT}")
    if real == 0:
        return 0, 0
    fraction, n = frexp(real)
    m = floor(fraction * (1 << 31) + 0.5)
    if m == 1 << 31:
        m, n = m // 2, n + 1
    return (m, n) if n >= -31 else (0, 0)


def wrap(x: ArrayLike, bits: int = 32) -> Integers:
    """The integer of that many bits with the same low bits."""
    half = 1 << (bits - 1)
    wrapped: Integers = ((np.asarray(x, np.int64) + half) & (2 * half - 1)) - half
    return wrapped


def clamp(x: ArrayLike, bits: int) -> Integers:
    """The nearest integer of that many bits."""
    half = 1 << (bits - 1)
    clamped: Integers = np.clip(np.asarray(x, np.int64), -half, half - 1)
    return clamped


def high(a: ArrayLike, b: ArrayLike, bits: int = 32) -> Integers:
    """a * b / 2^(bits - 1), halves up; only the square of the lowest saturates."""
    product = np.asarray(a, np.int64) * np.asarray(b, np.int64)
    rounded: Integers = (product + (1 << (bits - 2))) >> (bits - 1)
    return np.minimum(rounded, _one(bits))


def halve(x: ArrayLike, n: int) -> Integers:
    """x / 2^n, halves away from zero."""
    x = np.asarray(x, np.int64)
    remainder = x & ((1 << n) - 1)
    threshold = (((1 << n) - 1) >> 1) + (x < 0)
    return (x >> n) + (remainder > threshold)


def double(x: ArrayLike, n: int, bits: int) -> Integers:
    """x * 2^n, saturated."""
    return clamp(np.asarray(x, np.int64) << n, bits)


def scale(x: ArrayLike, m: int, n: int) -> Integers:
    """x * m / 2^31 * 2^n of int32."""
    return halve(high(wrap(np.asarray(x, np.int64) << max(n, 0)), m), max(-n, 0))


def asymmetric(lowest: float, highest: float) -> tuple[np.float32, int]:
    """Scale and zero point of int8 for float32 values in lowest..highest (lowest <= 0 <= highest)."""
    step = (highest - lowest) / 255
    if step == 0:
        return np.float32(1), 0
    from_low, from_high = -128 - lowest / step, 127 - highest / step
    error_low, error_high = 128 + abs(lowest / step), 127 + abs(highest / step)
    zero = from_low if error_low < error_high else from_high
    return np.float32(step), int(np.clip(np.floor(abs(zero) + 0.5) * np.sign(zero), -128, 127))


# Functions of numbers with k bits before the binary point, Q_k: in units of 2^(k + 1 - bits).

_STEPS = (
    (-2, 1672461947),
    (-1, 1302514674),
    (0, 790015084),
    (1, 290630308),
    (2, 39332535),
    (3, 720401),
    (4, 242),
)
"""(i, exp(-2^i) in units of 2^-31)"""


def _constant(value: int, bits: int) -> int:
    """A constant in units of 2^-31, rounded to fewer bits."""
    return int(halve(value, 32 - bits))


def _one(bits: int) -> int:
    return (1 << (bits - 1)) - 1


def _exp_near(a: Integers, bits: int) -> Integers:
    """exp(a) in Q_0 for a in Q_0 from -1/4 up to 0, by four terms around -1/8."""
    x = wrap(a + (1 << (bits - 4)), bits)
    x2 = high(x, x, bits)
    x3, x4 = high(x2, x, bits), high(x2, x2, bits)
    inner = high(wrap(halve(x4, 2) + x3, bits), _constant(715827883, bits), bits)
    series = wrap(x + halve(wrap(inner + x2, bits), 1), bits)
    centre = _constant(1895147668, bits)
    total = centre + high(centre, series, bits)
    return clamp(total, 16) if bits == 16 else wrap(total, bits)


def exp(a: ArrayLike, point: int, bits: int) -> Integers:
    """exp(a) in Q_0 for a <= 0 in Q_point; exp(0) is the number just below 1."""
    a = np.asarray(a, np.int64)
    fraction = bits - 1 - point
    quarter = 1 << (fraction - 2)
    near = (a & (quarter - 1)) - quarter
    result = _exp_near(double(near, point, bits), bits)
    rest = wrap(near - a, bits)
    for exponent, factor in _STEPS:
        if exponent < point:
            bit = 1 << (fraction + exponent)
            result = np.where(rest & bit, high(result, _constant(factor, bits), bits), result)
    if point > 5:
        result = np.where(a < -(32 << fraction), 0, result)
    return np.where(a == 0, _one(bits), result)


def _newton(a: Integers, bits: int) -> Integers:
    """2 / (1 + a) in Q_2 for a in Q_0 from 0 to 1."""
    total = a + _one(bits)
    half = np.sign(total) * ((np.abs(total) + 1) >> 1)
    x = wrap(_constant(1515870810, bits) + high(half, _constant(-1010580540, bits), bits), bits)
    for _ in range(3):
        error = wrap((1 << (bits - 3)) - high(half, x, bits), bits)
        x = wrap(x + double(high(x, error, bits), 2, bits), bits)
    return x


def reciprocal(x: int) -> tuple[int, int]:
    """(r, k) with 1 / x = r / 2^31 / 2^k, of x > 0 in units of 2^-19."""
    leading = 32 - x.bit_length()
    rest = wrap((x << leading) - (1 << 31))
    return int(double(_newton(rest, 32), 1, 32)), 12 - leading


def logistic(a: ArrayLike, point: int = 3, bits: int = 16) -> Integers:
    """1 / (1 + exp(-a)) in Q_0 for a in Q_point."""
    a = np.asarray(a, np.int64)
    size = np.where(a > 0, a, wrap(-a, bits))
    positive = double(_newton(exp(wrap(-size, bits), point, bits), bits), 1, bits)
    result = np.where(a > 0, positive, _one(bits) - positive)
    return np.where(a == 0, 1 << (bits - 2), result)


def tanh(a: ArrayLike, point: int, bits: int = 16) -> Integers:
    """The hyperbolic tangent in Q_0 for a in Q_point."""
    a = np.asarray(a, np.int64)
    small = exp(np.where(a < 0, a, wrap(-a, bits)), point + 1, bits)
    size = double(wrap(_newton(small, bits) - (1 << (bits - 3)), bits), 2, bits)
    return np.where(a == 0, 0, np.where(a < 0, -size, size))


def exp_table(step: float) -> NDArray[np.int32]:
    """exp(-d * step) in units of 2^-31 for d = 0..255, as the integer softmax takes it."""
    point = 5
    real = min(step * (1 << (31 - point)), 2.0**31 - 1)
    if real <= 1:
        raise ModelError(f"softmax of steps of {step:g}: at least 2^-{31 - point}")
    m, n = multiplier(real)
    distance = np.arange(256)
    near = distance <= floor(((1 << point) - 1) * 2.0 ** (31 - point - n))
    values = exp(scale(-np.where(near, distance, 0), m, n), point, 32)
    return np.where(near, values, 0).astype(np.int32)
