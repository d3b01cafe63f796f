"""How a sum of 8-bit products becomes an output: the three ways to scale it.

A packed group of channels begins, for each of its V vectors, with the biases and what the sums are scaled
with: `HEADS` of a way is its vectors a vector of channels, the biases among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba import types

from reflexarc.inference.kernels._fixed import emit_scale
from reflexarc.inference.simd import F32, I32, LANES
from reflexarc.inference.simd.arithmetic import round_to_i32
from reflexarc.inference.simd.memory import load
from reflexarc.inference.simd.vector import constant, splat

VECTOR = 4 * LANES
"""Bytes of a vector register, and of a block of packed weights."""
_F64 = ir.VectorType(ir.DoubleType(), LANES)
_I64 = ir.IntType(64)


def at(b: Any, address: Any, vectors: int) -> Any:
    """Code of an address so many vectors on."""
    return b.add(address, _I64(vectors * VECTOR))


def clamp(b: Any, x: Any, lo: Any, hi: Any) -> Any:
    """Not less than lo, not more than hi; NaN stays NaN."""
    compare = b.icmp_signed if isinstance(x.type.element, ir.IntType) else b.fcmp_ordered
    x = b.select(compare("<", x, lo), lo, x)
    return b.select(compare(">", x, hi), hi, x)


@dataclass(frozen=True)
class Real:
    """round(sum * multiplier) in float32, halves to even."""

    heads = 2
    limit = types.float32

    def factors(self, b: Any, packed: Any, v: int, vectors: int) -> list[Any]:
        """Code of the loads of vector v's factors."""
        return [load(F32.llvm)(b, at(b, packed, vectors + v))]

    def steps(self, b: Any, total: Any, factors: list[Any], lo: Any, hi: Any) -> Any:
        """Code of a vector of sums as i32 steps of y in lo..hi."""
        lo, hi = (splat(b, value, F32.llvm) for value in (lo, hi))
        real = b.fmul(b.sitofp(total, F32.llvm), factors[0])
        return round_to_i32(b, clamp(b, real, lo, hi))


@dataclass(frozen=True)
class Fixed:
    """`graph.fixed.scale` by a multiplier and a shift, all integers."""

    heads = 4
    limit = types.int32

    def factors(self, b: Any, packed: Any, v: int, vectors: int) -> list[Any]:
        """Code of the loads of vector v's multipliers, left and right shifts."""
        return [load(I32.llvm)(b, at(b, packed, k * vectors + v)) for k in (1, 2, 3)]

    def steps(self, b: Any, total: Any, factors: list[Any], lo: Any, hi: Any) -> Any:
        """Code of a vector of sums as i32 steps of y in lo..hi."""
        lo, hi = (splat(b, value, I32.llvm) for value in (lo, hi))
        return clamp(b, emit_scale(b, total, *factors), lo, hi)


@dataclass(frozen=True)
class Double:
    """round(sum * multiplier) in float64, halves away from zero."""

    heads = 3
    limit = types.float32

    def factors(self, b: Any, packed: Any, v: int, vectors: int) -> list[Any]:
        """Code of the load of vector v's multipliers."""
        return [load(_F64)(b, at(b, packed, vectors + 2 * v))]

    def steps(self, b: Any, total: Any, factors: list[Any], lo: Any, hi: Any) -> Any:
        """Code of a vector of sums as i32 steps of y in lo..hi."""
        lo, hi = (splat(b, b.fpext(value, ir.DoubleType()), _F64) for value in (lo, hi))
        real = clamp(b, b.fmul(b.sitofp(total, _F64), factors[0]), lo, hi)
        whole = b.fptosi(real, I32.llvm)
        rest = b.fsub(real, b.sitofp(whole, _F64))
        up = b.zext(b.fcmp_ordered(">=", rest, constant(_F64, 0.5)), I32.llvm)
        down = b.zext(b.fcmp_ordered("<=", rest, constant(_F64, -0.5)), I32.llvm)
        return b.sub(b.add(whole, up), down)


Finish = Real | Fixed | Double
REAL, FIXED, DOUBLE = Real(), Fixed(), Double()
