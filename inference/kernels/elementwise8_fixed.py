"""8-bit sums, differences and products, scaled as LiteRT does."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import ADD8_FIXED, BLOCK, SUB8_FIXED
from reflexarc.inference.kernels._fixed import halve, scale
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import (
    LANES,
    helper,
    load_q,
    maximum,
    minimum,
    peek_i32,
    peek_i64,
    splat_i32,
    store_first_q,
    store_q,
)

_at = ADD8_FIXED.at


@helper
def _operand(q: Any, m: Any, n: Any) -> Any:
    """q * 2^20 scaled by m and n bits to the right, |q| < 2^9: exact without a product of 64 bits, since what
    the upper half of m adds to the product is a multiple of 2^11."""
    upper, lower = m >> 16, m & 0xFFFF
    return halve(((q * upper) << 5) + ((q * lower + (1 << 10)) >> 11), n)


@helper
def _store(to: int, left: int, q: Any) -> None:
    if left >= LANES:
        store_q(to, q)
    else:
        store_first_q(to, q, left)


def _sum(name: str, sign: int) -> Any:
    """The kernel of x + sign * other."""

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, other, y = peek_i64(block + _at.x), peek_i64(block + _at.other), peek_i64(block + _at.y)
        x_row, other_row, y_row = (
            peek_i64(block + _at.x_row),
            peek_i64(block + _at.other_row),
            peek_i64(block + _at.y_row),
        )
        count, zero = peek_i64(block + _at.count), peek_i32(block + _at.zero)
        x_zero, other_zero = peek_i32(block + _at.x_zero), peek_i32(block + _at.other_zero)
        lo, hi = peek_i32(block + _at.lo), peek_i32(block + _at.hi)
        x_m, other_m, m = (
            splat_i32(peek_i32(block + _at.x_multiplier)),
            splat_i32(peek_i32(block + _at.other_multiplier)),
            splat_i32(peek_i32(block + _at.multiplier)),
        )
        x_n, other_n, left, right = (
            splat_i32(peek_i32(block + _at.x_shift_right)),
            splat_i32(peek_i32(block + _at.other_shift_right)),
            splat_i32(peek_i32(block + _at.shift_left)),
            splat_i32(peek_i32(block + _at.shift_right)),
        )
        first, last = share(peek_i64(block + _at.rows), thread, threads)
        for row in range(first, last):
            a, b, to = x + row * x_row, other + row * other_row, y + row * y_row
            for i in range(0, count, LANES):
                total = _operand(load_q(a + i) - x_zero, x_m, x_n)
                total = total + _operand(load_q(b + i) - other_zero, other_m, other_n) * sign
                steps = scale(total, m, left, right)
                _store(to + i, count - i, minimum(maximum(steps, lo), hi) + zero)

    kernel.__name__ = name
    return kernel


def mul8_fixed(instruction: int, thread: int, threads: int) -> None:
    """x * other."""
    block = peek_i64(instruction + BLOCK)
    x, other, y = peek_i64(block + _at.x), peek_i64(block + _at.other), peek_i64(block + _at.y)
    x_row, other_row, y_row = (
        peek_i64(block + _at.x_row),
        peek_i64(block + _at.other_row),
        peek_i64(block + _at.y_row),
    )
    count, zero = peek_i64(block + _at.count), peek_i32(block + _at.zero)
    x_zero, other_zero = peek_i32(block + _at.x_zero), peek_i32(block + _at.other_zero)
    lo, hi = peek_i32(block + _at.lo), peek_i32(block + _at.hi)
    m, left, right = (
        splat_i32(peek_i32(block + _at.multiplier)),
        splat_i32(peek_i32(block + _at.shift_left)),
        splat_i32(peek_i32(block + _at.shift_right)),
    )
    first, last = share(peek_i64(block + _at.rows), thread, threads)
    for row in range(first, last):
        a, b, to = x + row * x_row, other + row * other_row, y + row * y_row
        for i in range(0, count, LANES):
            exact = (load_q(a + i) - x_zero) * (load_q(b + i) - other_zero)
            _store(to + i, count - i, minimum(maximum(scale(exact, m, left, right), lo), hi) + zero)


KERNELS = (_sum(ADD8_FIXED.name, 1), _sum(SUB8_FIXED.name, -1), mul8_fixed)
