"""Vector operations that only some kernels need."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types

from reflexarc.inference.simd import BIAS, F32W, I32, LANES, define, fixed, load_s8_i32, load_u8_i32
from reflexarc.inference.simd.memory import ADDRESS, store

load_stored = load_u8_i32 if BIAS else load_s8_i32
"""Load of LANES 8-bit elements as they are stored: their values + BIAS."""

_INDEX = ir.Constant(F32W.llvm, [float(i) for i in range(F32W.lanes)])
index_f32w = define(fixed(F32W), lambda b: _INDEX)
"""0.0, 1.0, ... in the wide lanes."""


def _scatter(bits: int) -> Any:
    """scatter(address, step, x): the low bits of lane i of an I32 to address + i * step."""
    part = ir.IntType(bits)

    def emit(b: Any, address: Any, step: Any, x: Any) -> None:
        for i in range(LANES):
            lane = b.extract_element(x, ir.IntType(32)(i))
            to = b.add(address, b.mul(step, ir.IntType(64)(i)))
            store(b, to, b.trunc(lane, part) if bits < 32 else lane)

    return define(fixed(types.void, ADDRESS, ADDRESS, I32), emit)


scatter8, scatter16, scatter32 = _scatter(8), _scatter(16), _scatter(32)


def _scatter_pairs(b: Any, address: Any, step: Any, low: Any, high: Any) -> Any:
    """Lanes of low and high, joined to 64 bits, to address + i * step, all but the last, which is the
    result."""
    order = [i + half * LANES for i in range(LANES) for half in (0, 1)]
    mask = ir.Constant(ir.VectorType(ir.IntType(32), 2 * LANES), order)
    pairs = b.bitcast(b.shuffle_vector(low, high, mask), ir.VectorType(ir.IntType(64), LANES))
    *lanes, last = (b.extract_element(pairs, ir.IntType(32)(i)) for i in range(LANES))
    for i, lane in enumerate(lanes):
        store(b, b.add(address, b.mul(step, ir.IntType(64)(i))), lane)
    return last


scatter_pairs = define(fixed(types.int64, ADDRESS, ADDRESS, I32, I32), _scatter_pairs)
