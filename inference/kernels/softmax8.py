"""The integer softmax of 8-bit rows, as LiteRT's reference kernel computes it."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import SOFTMAX8
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import BIAS, helper, peek_i8, peek_i32, peek_i64, peek_u8, poke_i8

_at = SOFTMAX8.at
_HALF, _LEAST, _MOST = 1 << 30, -(1 << 31), (1 << 31) - 1


@helper
def _stored(address: int) -> Any:
    return peek_u8(address) + 0 if BIAS else peek_i8(address) + 0


@helper
def _wrap(x: int) -> int:
    return ((x + (1 << 31)) & ((1 << 32) - 1)) - (1 << 31)


@helper
def _high(a: int, b: int) -> int:
    return min((a * b + _HALF) >> 31, _MOST)


@helper
def _clamp(x: int) -> int:
    return min(max(x, _LEAST), _MOST)


@helper
def _reciprocal(x: int) -> tuple[int, int]:
    """(r, k) with 1 / x = r / 2^31 / 2^k, of x > 0 in units of 2^-19: three steps of Newton's."""
    leading = 0
    while (x << leading) < (1 << 31):
        leading += 1
    half = ((x << leading) - (1 << 31) + _MOST + 1) >> 1
    r = _wrap(1515870810 + _high(half, -1010580540))
    for _ in range(3):
        error = _wrap((1 << 29) - _high(half, r))
        r = _wrap(r + _clamp(_high(r, error) << 2))
    return _clamp(r << 1), 12 - leading


def softmax8(instruction: int, thread: int, threads: int) -> None:
    """exp(x - max) / sum(exp(x - max)), the exponentials from a table."""
    x, y, count = (
        peek_i64(instruction + _at.x),
        peek_i64(instruction + _at.y),
        peek_i64(instruction + _at.count),
    )
    x_row, y_row = peek_i64(instruction + _at.x_row), peek_i64(instruction + _at.y_row)
    table = peek_i64(instruction + _at.table)
    first, last = share(peek_i64(instruction + _at.rows), thread, threads)
    for row in range(first, last):
        a, to = x + row * x_row, y + row * y_row
        most = _stored(a)
        for i in range(1, count):
            most = max(most, _stored(a + i))
        total = 0
        for i in range(count):
            total += (peek_i32(table + 4 * (most - _stored(a + i))) + (1 << 11)) >> 12
        r, k = _reciprocal(total)
        shift = k + 23
        for i in range(count):
            share_of = (r * peek_i32(table + 4 * (most - _stored(a + i))) + _HALF) >> 31
            q = min((share_of + (1 << (shift - 1))) >> shift, 255) - 128
            poke_i8(to + i, q + BIAS)


KERNELS = (softmax8,)
