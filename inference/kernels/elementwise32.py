"""Float sums, products and activations, an element at a time."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import (
    ADD32,
    BLOCK,
    CLAMP32,
    DIV32,
    ELU32,
    MUL32,
    SIGMOID32,
    SILU32,
    SQRT32,
    SUB32,
    TANH32,
)
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import (
    LANES,
    exp,
    helper,
    load_f32,
    load_first_f32,
    peek_f32,
    peek_i64,
    select,
    sigmoid,
    sqrt,
    store_f32,
    store_first_f32,
    tanh,
)

_elu, _clamp = ELU32.at, CLAMP32.at


def _unary(name: str, at: Any, inline: bool, function: Any) -> Any:
    """A kernel that stores `function(operands, x)`; `operands` is where its operands are."""

    def kernel(instruction: int, thread: int, threads: int) -> None:
        base = instruction if inline else peek_i64(instruction + BLOCK)
        x, y, count = peek_i64(base + at.x), peek_i64(base + at.y), peek_i64(base + at.count)
        x_row, y_row = peek_i64(base + at.x_row), peek_i64(base + at.y_row)
        first, last = share(peek_i64(base + at.rows), thread, threads)
        for row in range(first, last):
            a, to, left = x + row * x_row, y + row * y_row, count
            while left >= LANES:
                store_f32(to, function(base, load_f32(a)))
                a += 4 * LANES
                to += 4 * LANES
                left -= LANES
            if left > 0:
                store_first_f32(to, function(base, load_first_f32(a, left)), left)

    kernel.__name__ = name
    return kernel


def _binary(name: str, at: Any, function: Any) -> Any:
    """A kernel that stores `function(x, other)`."""

    def kernel(instruction: int, thread: int, threads: int) -> None:
        block = peek_i64(instruction + BLOCK)
        x, other, y = peek_i64(block + at.x), peek_i64(block + at.other), peek_i64(block + at.y)
        x_row, other_row, y_row = (
            peek_i64(block + at.x_row),
            peek_i64(block + at.other_row),
            peek_i64(block + at.y_row),
        )
        count = peek_i64(block + at.count)
        first, last = share(peek_i64(block + at.rows), thread, threads)
        for row in range(first, last):
            a, b, to, left = x + row * x_row, other + row * other_row, y + row * y_row, count
            while left >= LANES:
                store_f32(to, function(load_f32(a), load_f32(b)))
                a += 4 * LANES
                b += 4 * LANES
                to += 4 * LANES
                left -= LANES
            if left > 0:
                store_first_f32(to, function(load_first_f32(a, left), load_first_f32(b, left)), left)

    kernel.__name__ = name
    return kernel


@helper
def _sigmoid_of(operands: int, x: Any) -> Any:
    return sigmoid(x)


@helper
def _tanh_of(operands: int, x: Any) -> Any:
    return tanh(x)


@helper
def _sqrt_of(operands: int, x: Any) -> Any:
    return sqrt(x)


@helper
def _silu_of(operands: int, x: Any) -> Any:
    return x * sigmoid(x)


@helper
def _elu_of(operands: int, x: Any) -> Any:
    return select(x > 0.0, x, (exp(x) - 1.0) * peek_f32(operands + _elu.alpha))


@helper
def _clamp_of(operands: int, x: Any) -> Any:
    lo, hi = peek_f32(operands + _clamp.lo), peek_f32(operands + _clamp.hi)
    x = select(x < lo, lo, x)
    return select(x > hi, hi, x)


@helper
def _sum(x: Any, other: Any) -> Any:
    return x + other


@helper
def _product(x: Any, other: Any) -> Any:
    return x * other


@helper
def _difference(x: Any, other: Any) -> Any:
    return x - other


@helper
def _quotient(x: Any, other: Any) -> Any:
    return x / other


KERNELS = (
    *(
        _unary(i.name, i.at, i.inline, function)
        for i, function in (
            (SQRT32, _sqrt_of),
            (SIGMOID32, _sigmoid_of),
            (TANH32, _tanh_of),
            (SILU32, _silu_of),
            (ELU32, _elu_of),
            (CLAMP32, _clamp_of),
        )
    ),
    _binary(ADD32.name, ADD32.at, _sum),
    _binary(SUB32.name, SUB32.at, _difference),
    _binary(MUL32.name, MUL32.at, _product),
    _binary(DIV32.name, DIV32.at, _quotient),
)
