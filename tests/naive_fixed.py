"""LiteRT's fixed-point arithmetic on single Python integers, slowly and obviously.

After gemmlowp's `fixedpoint.h` and TensorFlow Lite's `common.h`, with C's own divisions and shifts.
"""

from __future__ import annotations

from functools import cache
from math import exp as real_exp
from math import frexp


def wrap(x: int, bits: int = 32) -> int:
    return (x + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)


def saturate(x: int, bits: int) -> int:
    return max(-(1 << bits - 1), min((1 << bits - 1) - 1, x))


def divide(a: int, b: int) -> int:
    """Toward zero."""
    return -(-a // b) if (a < 0) != (b < 0) else a // b


def high(a: int, b: int, bits: int = 32) -> int:
    """SaturatingRoundingDoublingHighMul."""
    if a == b == -(1 << bits - 1):
        return (1 << bits - 1) - 1
    product = a * b
    nudge = 1 << bits - 2 if product >= 0 else 1 - (1 << bits - 2)
    return divide(product + nudge, 1 << bits - 1)


def halve(x: int, exponent: int) -> int:
    """RoundingDivideByPOT."""
    mask = (1 << exponent) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> exponent) + (1 if (x & mask) > threshold else 0)


def multiplier(real: float) -> tuple[int, int]:
    """QuantizeMultiplier."""
    fraction, shift = frexp(real)
    fixed = int(fraction * (1 << 31) + 0.5)
    if fixed == 1 << 31:
        fixed, shift = fixed // 2, shift + 1
    return (fixed, shift) if shift >= -31 else (0, 0)


@cache
def scale(x: int, m: int, shift: int) -> int:
    """MultiplyByQuantizedMultiplier, rounding twice."""
    left, right = max(shift, 0), max(-shift, 0)
    return halve(high(wrap(x << left), m), right)


def constant(value: float, bits: int) -> int:
    """A real number below 1 with all bits behind the point."""
    return halve(round(value * 2**31), 32 - bits)


def exp_on_interval(a: int, bits: int) -> int:
    x = wrap(a + (1 << bits - 4), bits)
    x2 = high(x, x, bits)
    x3 = high(x2, x, bits)
    x4 = high(x2, x2, bits)
    third = constant(1 / 3, bits)
    series = halve(wrap(high(wrap(halve(x4, 2) + x3, bits), third, bits) + x2, bits), 1)
    centre = constant(real_exp(-1 / 8), bits)
    total = centre + high(centre, wrap(x + series, bits), bits)
    return saturate(total, bits) if bits == 16 else wrap(total, bits)


def exp(a: int, integer_bits: int, bits: int) -> int:
    """exp_on_negative_values."""
    fraction = bits - 1 - integer_bits
    quarter = 1 << fraction - 2
    near = (a & (quarter - 1)) - quarter
    result = exp_on_interval(saturate(near << integer_bits, bits), bits)
    rest = wrap(near - a, bits)
    for exponent in range(-2, 5):
        if integer_bits > exponent and rest & (1 << fraction + exponent):
            result = high(result, constant(real_exp(-(2.0**exponent)), bits), bits)
    if integer_bits > 5 and a < -(32 << fraction):
        result = 0
    return (1 << bits - 1) - 1 if a == 0 else result


def newton(a: int, bits: int) -> int:
    """2 / (1 + a) with two bits before the point."""
    total = a + (1 << bits - 1) - 1
    half = divide(total + (1 if total >= 0 else -1), 2)
    x = wrap(constant(48 / 17 / 4, bits) + high(half, constant(-32 / 17 / 4, bits) * 1, bits), bits)
    for _ in range(3):
        error = wrap((1 << bits - 3) - high(half, x, bits), bits)
        x = wrap(x + saturate(high(x, error, bits) << 2, bits), bits)
    return x


@cache
def reciprocal(x: int, integer_digits: int) -> tuple[int, int]:
    """GetReciprocal: the fraction and how many bits x is above 1."""
    leading = 32 - x.bit_length()
    rest = wrap((x << leading) - (1 << 31))
    return saturate(newton(rest, 32) << 1, 32), integer_digits - leading


@cache
def logistic(a: int) -> int:
    """Of 16 bits, 3 of them before the point."""
    if a == 0:
        return 1 << 14
    size = a if a > 0 else wrap(-a, 16)
    positive = saturate(newton(exp(wrap(-size, 16), 3, 16), 16) << 1, 16)
    return positive if a > 0 else 32767 - positive


@cache
def tanh(a: int, integer_bits: int) -> int:
    """Of 16 bits."""
    if a == 0:
        return 0
    small = exp(a if a < 0 else wrap(-a, 16), integer_bits + 1, 16)
    size = saturate(wrap(newton(small, 16) - (1 << 13), 16) << 2, 16)
    return -size if a < 0 else size
