"""LiteRT's fixed-point scaling of a vector, exact (`graph.fixed` has the formulas)."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from reflexarc.inference.simd import I32, LANES, TIER, define, fixed
from reflexarc.inference.simd.vector import call, constant

_I32, _I64 = ir.IntType(32), ir.IntType(64)
_WIDE = ir.VectorType(_I64, LANES // 2)


def emit_high(b: Any, x: Any, m: Any) -> Any:
    """Code of x * m / 2^31, halves up, m >= 0."""
    if TIER.arm:
        return call(b, "llvm.aarch64.neon.sqrdmulh.v4i32", x.type, x, m)

    def even(v: Any) -> Any:
        return b.ashr(b.shl(b.bitcast(v, _WIDE), constant(_WIDE, 32)), constant(_WIDE, 32))

    def odd(v: Any) -> Any:
        return b.ashr(b.bitcast(v, _WIDE), constant(_WIDE, 32))

    half = constant(_WIDE, 1 << 30)
    low = b.lshr(b.add(b.mul(even(x), even(m)), half), constant(_WIDE, 31))
    top = b.shl(b.add(b.mul(odd(x), odd(m)), half), constant(_WIDE, 1))
    order = [i if i % 2 == 0 else LANES + i for i in range(LANES)]
    mask = ir.Constant(ir.VectorType(_I32, LANES), order)
    return b.shuffle_vector(b.bitcast(low, x.type), b.bitcast(top, x.type), mask)


def emit_halve(b: Any, x: Any, n: Any) -> Any:
    """Code of x / 2^n, halves away from zero."""
    one = constant(x.type, 1)
    mask = b.sub(b.shl(one, n), one)
    threshold = b.sub(b.lshr(mask, one), b.ashr(x, constant(x.type, 31)))
    above = b.icmp_signed(">", b.and_(x, mask), threshold)
    return b.sub(b.ashr(x, n), b.sext(above, x.type))


def emit_scale(b: Any, x: Any, m: Any, left: Any, right: Any) -> Any:
    """Code of x * m / 2^31 * 2^(left - right), of which one is 0."""
    return emit_halve(b, emit_high(b, b.shl(x, left), m), right)


halve = define(fixed(I32, I32, I32), emit_halve)
"""halve(x, n)."""
scale = define(fixed(I32, I32, I32, I32, I32), emit_scale)
"""scale(x, m, left, right)."""
