"""Means of windows as LiteRT rounds them, and sums scaled by its integers."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import AVERAGE_POOL8_FIXED, SUM_POOL8
from reflexarc.inference.kernels._fixed import scale
from reflexarc.inference.kernels._lanes import load_stored
from reflexarc.inference.kernels._pool import pool
from reflexarc.inference.simd import (
    BIAS,
    floor,
    helper,
    maximum,
    minimum,
    peek_i32,
    round_i32,
    select,
    splat_i32,
    store_first_q,
    to_f32,
    zero_i32,
)

_mean, _sum = AVERAGE_POOL8_FIXED.at, SUM_POOL8.at


@helper
def _add(sums: Any, address: int) -> Any:
    return sums + load_stored(address)


@helper
def _quotient(x: Any, n: int) -> Any:
    """x / n rounded down, 0 <= x < 2^24: the float quotient never rounds up to a whole number."""
    return round_i32(floor(to_f32(x) / (n * 1.0)))


@helper
def _store_mean(block: int, q: Any, y: int, left: int) -> None:
    store_first_q(y, minimum(maximum(q, peek_i32(block + _mean.lo)), peek_i32(block + _mean.hi)), left)


@helper
def _away(block: int, sums: Any, n: int, y: int, left: int) -> None:
    total = sums - n * BIAS
    size = _quotient(maximum(total, -total) + n // 2, n)
    _store_mean(block, select(total < 0, -size, size), y, left)


@helper
def _up(block: int, sums: Any, n: int, y: int, left: int) -> None:
    _store_mean(block, _quotient(sums + (n * (128 - BIAS) + n // 2), n) - 128, y, left)


@helper
def _scaled(block: int, sums: Any, n: int, y: int, left: int) -> None:
    total = sums - n * (peek_i32(block + _sum.x_zero) + BIAS)
    steps = scale(
        total,
        splat_i32(peek_i32(block + _sum.multiplier)),
        splat_i32(peek_i32(block + _sum.shift_left)),
        splat_i32(peek_i32(block + _sum.shift_right)),
    )
    steps = minimum(maximum(steps, peek_i32(block + _sum.lo)), peek_i32(block + _sum.hi))
    store_first_q(y, steps + peek_i32(block + _sum.zero), left)


KERNELS = (
    pool("average_pool8_away", 1, zero_i32, _add, _away),
    pool("average_pool8_up", 1, zero_i32, _add, _up),
    pool(SUM_POOL8.name, 1, zero_i32, _add, _scaled),
)
