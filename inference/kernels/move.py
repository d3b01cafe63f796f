"""Bytes moved: padding, copies, transpositions."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import BLOCK, COPY, FILL, TRANSPOSE
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import (
    helper,
    load_i8,
    peek_i8,
    peek_i32,
    peek_i64,
    poke_i8,
    poke_i32,
    splat_i8,
    store_i8,
)
from reflexarc.inference.simd.target import LANES

_fill, _copy, _turn = FILL.at, COPY.at, TRANSPOSE.at
_BYTES = 4 * LANES


@helper
def _set(to: int, count: int, value: int) -> None:
    while count >= _BYTES:
        store_i8(to, splat_i8(value))
        to += _BYTES
        count -= _BYTES
    for i in range(count):
        poke_i8(to + i, value)


def fill(instruction: int, thread: int, threads: int) -> None:
    """The padding around a tensor's rows; a whole job for thread 0."""
    if thread:
        return
    y, row, gap = (
        peek_i64(instruction + _fill.y),
        peek_i64(instruction + _fill.row),
        peek_i64(instruction + _fill.gap),
    )
    head, rows = peek_i64(instruction + _fill.head), peek_i64(instruction + _fill.rows)
    value = peek_i8(instruction + _fill.value)
    _set(y, head, value)
    y += head + row
    for _ in range(rows - 1):
        _set(y, gap, value)
        y += gap + row
    _set(y, peek_i64(instruction + _fill.tail), value)


def copy(instruction: int, thread: int, threads: int) -> None:
    """Rows of bytes."""
    x, y, count = (
        peek_i64(instruction + _copy.x),
        peek_i64(instruction + _copy.y),
        peek_i64(instruction + _copy.count),
    )
    x_row, y_row = peek_i64(instruction + _copy.x_row), peek_i64(instruction + _copy.y_row)
    first, last = share(peek_i64(instruction + _copy.rows), thread, threads)
    for row in range(first, last):
        a, to, left = x + row * x_row, y + row * y_row, count
        while left >= _BYTES:
            store_i8(to, load_i8(a))
            a += _BYTES
            to += _BYTES
            left -= _BYTES
        for i in range(left):
            poke_i8(to + i, peek_i8(a + i))


def _transpose(bits: int, peek: Any, poke: Any) -> Any:
    """The kernel for elements of `bits`."""

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, y = peek_i64(block + _turn.x), peek_i64(block + _turn.y)
        n0, n1 = peek_i64(block + _turn.n0), peek_i64(block + _turn.n1)
        n2, n3 = peek_i64(block + _turn.n2), peek_i64(block + _turn.n3)
        s0, s1 = peek_i64(block + _turn.s0), peek_i64(block + _turn.s1)
        s2, s3 = peek_i64(block + _turn.s2), peek_i64(block + _turn.s3)
        t0, t1 = peek_i64(block + _turn.t0), peek_i64(block + _turn.t1)
        t2, t3 = peek_i64(block + _turn.t2), peek_i64(block + _turn.t3)
        first, last = share(n0, thread, threads)
        for i in range(first, last):
            for j in range(n1):
                for k in range(n2):
                    a, to = x + i * s0 + j * s1 + k * s2, y + i * t0 + j * t1 + k * t2
                    for m in range(n3):
                        poke(to + m * t3, peek(a + m * s3))

    kernel.__name__ = f"transpose{bits}"
    return kernel


KERNELS = (fill, copy, _transpose(8, peek_i8, poke_i8), _transpose(32, peek_i32, poke_i32))
