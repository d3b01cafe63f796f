"""Softmax of float rows, over 16 virtual lanes in a fixed order."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import SOFTMAX32
from reflexarc.inference.kernels._lanes import index_f32w
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import (
    WIDE,
    exp,
    helper,
    load_first_f32w,
    maximum,
    peek_i64,
    reduce_add,
    reduce_max,
    select,
    splat_f32w,
    store_first_f32w,
    zero_f32w,
)

_at = SOFTMAX32.at


@helper
def _part(row: int, i: int, count: int) -> Any:
    """Elements i to i + WIDE of a row; minus infinity past its end."""
    return select(index_f32w() < float(count - i), load_first_f32w(row + 4 * i, count - i), -float("inf"))


def softmax32(instruction: int, thread: int, threads: int) -> None:
    """exp(x - max) / sum(exp(x - max))."""
    x, y, count = (
        peek_i64(instruction + _at.x),
        peek_i64(instruction + _at.y),
        peek_i64(instruction + _at.count),
    )
    x_row, y_row = peek_i64(instruction + _at.x_row), peek_i64(instruction + _at.y_row)
    first, last = share(peek_i64(instruction + _at.rows), thread, threads)
    for row in range(first, last):
        a, to = x + row * x_row, y + row * y_row
        most = splat_f32w(-float("inf"))
        for i in range(0, count, WIDE):
            most = maximum(most, _part(a, i, count))
        top = reduce_max(most)
        total = zero_f32w()
        for i in range(0, count, WIDE):
            power = exp(_part(a, i, count) - top)
            store_first_f32w(to + 4 * i, power, count - i)
            total = total + power
        divisor = reduce_add(total)
        for i in range(0, count, WIDE):
            store_first_f32w(to + 4 * i, load_first_f32w(to + 4 * i, count - i) / divisor, count - i)


KERNELS = (softmax32,)
