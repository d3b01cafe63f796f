"""8-bit sums, products and tables, an element at a time."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import ADD8, BLOCK, MUL8, TABLE8
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import (
    BIAS,
    LANES,
    helper,
    load_q,
    maximum,
    minimum,
    peek_f32,
    peek_i8,
    peek_i32,
    peek_i64,
    peek_u8,
    poke_i8,
    round_i32,
    store_first_q,
    store_q,
    to_f32,
)

_add, _mul, _table = ADD8.at, MUL8.at, TABLE8.at


def _binary(name: str, at: Any, real: Any) -> Any:
    """A kernel whose output is `real(block, x, other)`, a vector of floats in steps of y, rounded and
    clamped."""

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, other, y = peek_i64(block + at.x), peek_i64(block + at.other), peek_i64(block + at.y)
        x_row, other_row, y_row = (
            peek_i64(block + at.x_row),
            peek_i64(block + at.other_row),
            peek_i64(block + at.y_row),
        )
        count, zero = peek_i64(block + at.count), peek_i32(block + at.zero)
        lo, hi = peek_f32(block + at.lo), peek_f32(block + at.hi)
        first, last = share(peek_i64(block + at.rows), thread, threads)
        for row in range(first, last):
            a, b, to = x + row * x_row, other + row * other_row, y + row * y_row
            for i in range(0, count, LANES):
                q = round_i32(minimum(maximum(real(block, load_q(a + i), load_q(b + i)), lo), hi)) + zero
                if i + LANES <= count:
                    store_q(to + i, q)
                else:
                    store_first_q(to + i, q, count - i)

    kernel.__name__ = name
    return kernel


@helper
def _sum(block: int, x: Any, other: Any) -> Any:
    a = to_f32(x - peek_i32(block + _add.x_zero)) * peek_f32(block + _add.x_scale)
    return a + to_f32(other - peek_i32(block + _add.other_zero)) * peek_f32(block + _add.other_scale)


@helper
def _product(block: int, x: Any, other: Any) -> Any:
    exact = (x - peek_i32(block + _mul.x_zero)) * (other - peek_i32(block + _mul.other_zero))
    return to_f32(exact) * peek_f32(block + _mul.scale)


def table8(instruction: int, thread: int, threads: int) -> None:
    """y = table[x + 128]."""
    x, y, table = (
        peek_i64(instruction + _table.x),
        peek_i64(instruction + _table.y),
        peek_i64(instruction + _table.table),
    )
    x_row, y_row = peek_i64(instruction + _table.x_row), peek_i64(instruction + _table.y_row)
    count = peek_i64(instruction + _table.count)
    first, last = share(peek_i64(instruction + _table.rows), thread, threads)
    for row in range(first, last):
        a, to = x + row * x_row, y + row * y_row
        for i in range(count):
            index = peek_u8(a + i) if BIAS else peek_i8(a + i) + 128
            poke_i8(to + i, peek_i8(table + index))


KERNELS = (_binary(ADD8.name, _add, _sum), _binary(MUL8.name, _mul, _product), table8)
