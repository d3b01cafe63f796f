"""The 8-bit dot product as tiles compute it: in passes, each over a part of every four inputs.

Where there is a four-way dot instruction there is one pass. Where products are widened to 16 bits there are
two, of two inputs each, so that a tile needs half the registers for weights, and none for halves that wait.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from reflexarc.inference.simd.dot import (
    emit_broadcast_activations,
    emit_dot,
    emit_dot_i16,
    emit_load_weights,
)
from reflexarc.inference.simd.memory import load
from reflexarc.inference.simd.target import LANES, TIER
from reflexarc.inference.simd.vector import I16, call, constant, splat
from reflexarc.inference.tiles import parts

_I16, _F32 = ir.IntType(16), ir.FloatType()
_HALF = ir.VectorType(ir.IntType(8), 2 * LANES)

PARTS = parts(TIER)
PART_BYTES = 4 * LANES // PARTS
"""Bytes of a vector's weights for a pass."""
PART_STEP = 2 if TIER.dot == "smull" else 1
"""Bytes between the activations of two passes."""


def load_weights_part(b: Any, address: Any) -> Any:
    """Code of a load of a vector's weights."""
    if PARTS == 1:
        return emit_load_weights(b, address)
    half = load(_HALF)(b, address)
    return b.sext(half, I16.llvm) if TIER.dot == "madd" else half


def broadcast_part(b: Any, address: Any) -> Any:
    """Code of the activations of a pass, spread to all rows: bytes 0 and 2 (madd), or 0 and 1 (smull)."""
    if PARTS == 1:
        return emit_broadcast_activations(b, address)
    if TIER.dot == "smull":
        return b.bitcast(splat(b, load(_I16)(b, address), ir.VectorType(_I16, LANES)), _HALF)
    quad = splat(
        b, load(_F32)(b, address), ir.VectorType(_F32, LANES)
    )  # LLVM masks an integer before the splat
    return b.and_(b.bitcast(quad, I16.llvm), constant(I16.llvm, 0xFF))


def dot_part(b: Any, total: Any, weights: Any, activations: Any) -> Any:
    """Code of total[row] + the sum of a pass's products."""
    if PARTS == 1:
        return emit_dot(b, total, weights, activations)
    if TIER.dot == "madd":
        return emit_dot_i16(b, total, weights, activations)
    wide = ir.VectorType(_I16, 2 * LANES)
    product = b.mul(b.sext(weights, wide), b.sext(activations, wide))
    return b.add(total, call(b, "llvm.aarch64.neon.saddlp.v4i32.v8i16", total.type, product))
