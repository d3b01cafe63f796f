"""A step of an 8-bit LSTM with a 16-bit cell; the functions of its gates are tables."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import BLOCK, LSTM_CELL8, LSTM_HIDDEN8
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import BIAS, helper, peek_i16, peek_i32, peek_i64, poke_i8, poke_i16

_cell, _hidden = LSTM_CELL8.at, LSTM_HIDDEN8.at
_LEAST = -(1 << 15)


@helper
def _halve(x: int, n: int) -> int:
    """x / 2^n, halves away from zero."""
    mask = (1 << n) - 1
    threshold = (mask >> 1) + (1 if x < 0 else 0)
    return (x >> n) + (1 if x & mask > threshold else 0)


@helper
def _wrap(x: int) -> int:
    """The low 16 bits, signed."""
    return ((x - _LEAST) & 0xFFFF) + _LEAST


@helper
def _clamp(x: int) -> int:
    return min(max(x, _LEAST), -_LEAST - 1)


@helper
def _gate(x: int, other: int, i: int) -> int:
    return _clamp(peek_i32(x + 4 * i) + peek_i32(other + 4 * i))


@helper
def _look(table: int, i: int) -> Any:
    return peek_i16(table + 2 * (i - _LEAST)) + 0


def lstm_cell8(instruction: int, thread: int, threads: int) -> None:
    """The cell: what the forget gate keeps of it, and what the input gate lets in."""
    block = peek_i64(instruction + BLOCK)
    logistic, tanh = peek_i64(block + _cell.logistic), peek_i64(block + _cell.tanh)
    units, shift, clip = (
        peek_i64(block + _cell.units),
        peek_i64(block + _cell.shift),
        peek_i64(block + _cell.clip),
    )
    first, last = share(peek_i64(block + _cell.rows), thread, threads)
    for row in range(first, last):
        x, other = (
            peek_i64(block + _cell.x) + 16 * row * units,
            peek_i64(block + _cell.other) + 16 * row * units,
        )
        cell, y = peek_i64(block + _cell.cell) + 2 * row * units, peek_i64(block + _cell.y) + 2 * row * units
        for i in range(units):
            kept = _look(logistic, _gate(x, other, units + i)) * peek_i16(cell + 2 * i)
            new = _look(logistic, _gate(x, other, i)) * _look(tanh, _gate(x, other, 2 * units + i))
            total = _clamp(_wrap(_halve(kept, 15)) + _wrap(_halve(new, shift)))
            poke_i16(y + 2 * i, min(max(total, -clip), clip))


def lstm_hidden8(instruction: int, thread: int, threads: int) -> None:
    """The hidden state: what the output gate shows of the cell, scaled."""
    block = peek_i64(instruction + BLOCK)
    logistic, tanh = peek_i64(block + _hidden.logistic), peek_i64(block + _hidden.tanh)
    m, left, right = (
        peek_i64(block + _hidden.multiplier),
        peek_i64(block + _hidden.shift_left),
        peek_i64(block + _hidden.shift_right),
    )
    lo, hi, zero = peek_i64(block + _hidden.lo), peek_i64(block + _hidden.hi), peek_i64(block + _hidden.zero)
    units = peek_i64(block + _hidden.units)
    first, last = share(peek_i64(block + _hidden.rows), thread, threads)
    for row in range(first, last):
        x, other = (
            peek_i64(block + _hidden.x) + 16 * row * units,
            peek_i64(block + _hidden.other) + 16 * row * units,
        )
        cell, y = peek_i64(block + _hidden.cell) + 2 * row * units, peek_i64(block + _hidden.y) + row * units
        for i in range(units):
            gate = _look(logistic, _gate(x, other, 3 * units + i))
            total = (gate * _look(tanh, peek_i16(cell + 2 * i) + 0)) << left
            steps = _halve((total * m + (1 << 30)) >> 31, right)
            poke_i8(y + i, min(max(steps, lo), hi) + zero + BIAS)


KERNELS = (lstm_cell8, lstm_hidden8)
