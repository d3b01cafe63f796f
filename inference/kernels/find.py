"""Where the greatest is, and elements by their places."""

from __future__ import annotations

from reflexarc.inference.instructions import ARG_MAX8, BLOCK, GATHER_ND
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import (
    LANES,
    bits_f32,
    load_q,
    peek_i8,
    peek_i32,
    peek_i64,
    poke_i8,
    select,
    splat_i32,
    store_first_f32,
)

_most, _gather = ARG_MAX8.at, GATHER_ND.at


def arg_max8(instruction: int, thread: int, threads: int) -> None:
    """The first index of the greatest."""
    x, y = peek_i64(instruction + _most.x), peek_i64(instruction + _most.y)
    count, inner = peek_i64(instruction + _most.count), peek_i64(instruction + _most.inner)
    first, last = share(peek_i64(instruction + _most.outer), thread, threads)
    for i in range(first, last):
        for c in range(0, inner, LANES):
            a = x + i * count * inner + c
            most, place = load_q(a), splat_i32(0)
            for k in range(1, count):
                a += inner
                value = load_q(a)
                above = value > most
                most, place = select(above, value, most), select(above, splat_i32(k), place)
            store_first_f32(y + 4 * (i * inner + c), bits_f32(place), inner - c)


def gather_nd(instruction: int, thread: int, threads: int) -> None:
    """Rows of bytes by index."""
    block = peek_i64(instruction + BLOCK)
    x, index, y = peek_i64(block + _gather.x), peek_i64(block + _gather.other), peek_i64(block + _gather.y)
    depth, count = peek_i64(block + _gather.depth), peek_i64(block + _gather.count)
    first, last = share(peek_i64(block + _gather.rows), thread, threads)
    for row in range(first, last):
        a, to = x, y + row * count
        for k in range(depth):
            size, step = peek_i64(block + _gather.n0 + 8 * k), peek_i64(block + _gather.s0 + 8 * k)
            a += min(max(peek_i32(index + 4 * (row * depth + k)), 0), size - 1) * step
        for i in range(count):
            poke_i8(to + i, peek_i8(a + i))


KERNELS = (arg_max8, gather_nd)
