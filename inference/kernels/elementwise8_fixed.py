"""8-bit sums, differences and products, scaled as LiteRT does."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import ADD8_FIXED, BLOCK, MUL8_FIXED, SUB8_FIXED
from reflexarc.inference.kernels._fixed import scale
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
_FINER = 20
"""Bits that LiteRT adds to the operands of a sum."""


@helper
def _operand(x: Any, zero: int, at: int) -> Any:
    """One operand of a sum in units of the sum; its scale's three words are at `at`."""
    m, left, right = peek_i32(at), peek_i32(at + 8), peek_i32(at + 16)
    return scale((x - zero) << _FINER, splat_i32(m), splat_i32(left), splat_i32(right))


@helper
def _sum(block: int, x: Any, other: Any) -> Any:
    a = _operand(x, peek_i32(block + _at.x_zero), block + _at.x_multiplier)
    return a + _operand(other, peek_i32(block + _at.other_zero), block + _at.other_multiplier)


@helper
def _difference(block: int, x: Any, other: Any) -> Any:
    a = _operand(x, peek_i32(block + _at.x_zero), block + _at.x_multiplier)
    return a - _operand(other, peek_i32(block + _at.other_zero), block + _at.other_multiplier)


@helper
def _product(block: int, x: Any, other: Any) -> Any:
    return (x - peek_i32(block + _at.x_zero)) * (other - peek_i32(block + _at.other_zero))


def _binary(name: str, exact: Any) -> Any:
    """A kernel whose output is `exact(block, x, other)`, a vector of i32, scaled and clamped."""

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, other, y = peek_i64(block + _at.x), peek_i64(block + _at.other), peek_i64(block + _at.y)
        x_row, other_row, y_row = (
            peek_i64(block + _at.x_row),
            peek_i64(block + _at.other_row),
            peek_i64(block + _at.y_row),
        )
        count, zero = peek_i64(block + _at.count), peek_i32(block + _at.zero)
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
                steps = scale(exact(block, load_q(a + i), load_q(b + i)), m, left, right)
                q = minimum(maximum(steps, lo), hi) + zero
                if i + LANES <= count:
                    store_q(to + i, q)
                else:
                    store_first_q(to + i, q, count - i)

    kernel.__name__ = name
    return kernel


KERNELS = (
    _binary(ADD8_FIXED.name, _sum),
    _binary(SUB8_FIXED.name, _difference),
    _binary(MUL8_FIXED.name, _product),
)
