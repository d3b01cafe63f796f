"""Greatest and mean of the windows of an image."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import (
    AVERAGE_POOL8,
    AVERAGE_POOL32,
    MAX_POOL8,
    MAX_POOL32,
)
from reflexarc.inference.kernels._lanes import load_stored
from reflexarc.inference.kernels._pool import pool
from reflexarc.inference.simd import (
    BIAS,
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
    pool(MAX_POOL8.name, 1, _least_q, _max_q, _store_q),
    pool(AVERAGE_POOL8.name, 1, zero_i32, _add_stored, _average_q),
    pool(MAX_POOL32.name, 4, _least_f32, _max_f32, _store_f32),
    pool(AVERAGE_POOL32.name, 4, zero_f32, _add_f32, _average_f32),
)
