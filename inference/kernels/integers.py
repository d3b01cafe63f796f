"""Arithmetic of a few 32-bit integers, one at a time."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import (
    ADD_I32,
    BLOCK,
    FLOOR_DIV_I32,
    MUL_I32,
    SUB_I32,
    TO_F32,
)
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import helper, peek_i32, peek_i64, poke_f32, poke_i32

_two, _one = ADD_I32.at, TO_F32.at


def _binary(name: str, function: Any) -> Any:
    """A kernel that stores the low bits of `function(x, other)`."""

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, other, y = peek_i64(block + _two.x), peek_i64(block + _two.other), peek_i64(block + _two.y)
        x_row, other_row, y_row = (
            peek_i64(block + _two.x_row),
            peek_i64(block + _two.other_row),
            peek_i64(block + _two.y_row),
        )
        count = peek_i64(block + _two.count)
        first, last = share(peek_i64(block + _two.rows), thread, threads)
        for row in range(first, last):
            a, b, to = x + row * x_row, other + row * other_row, y + row * y_row
            for i in range(0, 4 * count, 4):
                poke_i32(to + i, function(peek_i32(a + i) + 0, peek_i32(b + i) + 0))

    kernel.__name__ = name
    return kernel


@helper
def _floor_div(x: int, other: int) -> int:
    return 0 if other == 0 else x // other


def to_f32(instruction: int, thread: int, threads: int) -> None:
    """Rows of integers as floats."""
    x, y, count = (
        peek_i64(instruction + _one.x),
        peek_i64(instruction + _one.y),
        peek_i64(instruction + _one.count),
    )
    x_row, y_row = peek_i64(instruction + _one.x_row), peek_i64(instruction + _one.y_row)
    first, last = share(peek_i64(instruction + _one.rows), thread, threads)
    for row in range(first, last):
        for i in range(0, 4 * count, 4):
            poke_f32(y + row * y_row + i, peek_i32(x + row * x_row + i))


KERNELS = (
    _binary(ADD_I32.name, helper(lambda x, other: x + other)),
    _binary(SUB_I32.name, helper(lambda x, other: x - other)),
    _binary(MUL_I32.name, helper(lambda x, other: x * other)),
    _binary(FLOOR_DIV_I32.name, _floor_div),
    to_f32,
)
