"""Arithmetic of vectors that has no operator: functions, conversions, reductions.

Operands are as those of `operators`: scalars fill a vector's lanes.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.typing import signature

from reflexarc.inference.simd.operators import binary, common, comparison, operand_types, spread
from reflexarc.inference.simd.target import HAS_FMA, TIER
from reflexarc.inference.simd.vector import (
    F32,
    F32W,
    I8,
    I16,
    I32,
    I32W,
    Emit,
    Vector,
    call,
    constant,
    define,
    fixed,
    halves,
    splat,
)

_Rule = Callable[..., Any]


def _same(x: Any, y: Any) -> Any:
    """Rule: a vector and a vector or scalar give the vector."""
    vector = common((x, y))
    return vector and signature(vector, *operand_types(vector, (x, y)))


def _same_integer(x: Any, y: Any) -> Any:
    vector = common((x, y))
    return None if vector is None or vector.is_float else signature(vector, *operand_types(vector, (x, y)))


def _three_floats(x: Any, y: Any, z: Any) -> Any:
    if all(a == types.float32 for a in (x, y, z)):
        return signature(types.float32, x, y, z)
    vector = common((x, y, z))
    return vector and signature(vector, *operand_types(vector, (x, y, z)))


def _chosen(mask: Any, x: Any, y: Any) -> Any:
    vector = common((x, y))
    return vector and signature(vector, mask, *operand_types(vector, (x, y)))


def _float_only(x: Any) -> Any:
    return signature(x, x) if isinstance(x, Vector) and x.is_float else None


def _resized(element: str) -> _Rule:
    """Rule: the same number of lanes with another element."""
    return lambda x: signature(Vector(element, x.lanes), x) if isinstance(x, Vector) else None


def _extreme(symbol: str) -> Emit:
    """Code of `x if x < y else y` (or `>`): where a float is NaN it is y, on every tier."""

    def emit(builder: Any, x: Any, y: Any) -> Any:
        x, y = spread(builder, (x, y))
        return builder.select(comparison(symbol)(builder, x, y), x, y)

    return emit


def fused(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Code of x * y + z, rounded once where the tier has FMA (elsewhere LLVM would call a library)."""
    if (
        isinstance(x.type, ir.VectorType)
        or isinstance(y.type, ir.VectorType)
        or isinstance(z.type, ir.VectorType)
    ):
        x, y, z = spread(builder, (x, y, z))
    if not HAS_FMA:
        return builder.fadd(builder.fmul(x, y), z)
    suffix = f"v{x.type.count}f32" if isinstance(x.type, ir.VectorType) else "f32"
    return call(builder, f"llvm.fma.{suffix}", x.type, x, y, z)


def _select(builder: Any, mask: Any, x: Any, y: Any) -> Any:
    return builder.select(mask, *spread(builder, (x, y)))


def _shift_logical(builder: Any, x: Any, y: Any) -> Any:
    return builder.lshr(*spread(builder, (x, y)))


_ROUND = {
    512: "llvm.x86.avx512.mask.cvtps2dq.512",
    256: "llvm.x86.avx.cvt.ps2dq.256",
    128: "llvm.x86.sse2.cvtps2dq",
}


def round_to_i32(builder: Any, x: Any) -> Any:
    """Code of f32 to i32, half to even, an instruction a register; |x| < 2**31, others differ by tier."""
    lanes, i32 = x.type.count, ir.IntType(32)
    if lanes > TIER.lanes:
        low, high = (round_to_i32(builder, half) for half in halves(builder, x))
        order = ir.Constant(ir.VectorType(i32, lanes), list(range(lanes)))
        return builder.shuffle_vector(low, high, order)
    kind = ir.VectorType(i32, lanes)
    if TIER.arm:
        return call(builder, "llvm.aarch64.neon.fcvtns.v4i32.v4f32", kind, x)
    if TIER.bits == 512:
        mask, current = ir.IntType(16)(0xFFFF), i32(4)
        return call(builder, _ROUND[512], kind, x, constant(kind, 0), mask, current)
    return call(builder, _ROUND[TIER.bits], kind, x)


def _fold(combine: Emit) -> Emit:
    """Code of a reduction in the fixed order of a tree: each lane with the one half the lanes above it."""

    def emit(builder: Any, x: Any) -> Any:
        while x.type.count > 1:
            x = combine(builder, *halves(builder, x))
        return builder.extract_element(x, ir.IntType(32)(0))

    return emit


def _intrinsic(name: str) -> Emit:
    return lambda b, x: call(b, f"llvm.{name}.v{x.type.count}f32", x.type, x)


def _scalar_of(x: Any) -> Any:
    return signature(x.scalar, x) if isinstance(x, Vector) else None


def _reinterpret(vector: Vector) -> Any:
    return define(lambda x: signature(vector, x), lambda b, x: b.bitcast(x, vector.llvm))


def _zero(vector: Vector) -> Any:
    return define(fixed(vector), lambda b: constant(vector.llvm, 0))


def _splat(vector: Vector) -> Any:
    return define(fixed(vector, vector.scalar), lambda b, x: splat(b, x, vector.llvm))


fma = define(_three_floats, fused)
minimum, maximum = define(_same, _extreme("<")), define(_same, _extreme(">"))
select = define(_chosen, _select)
shift_right_logical = define(_same_integer, _shift_logical)
absolute, sqrt, floor = (define(_float_only, _intrinsic(name)) for name in ("fabs", "sqrt", "floor"))

round_i32 = define(_resized("i32"), round_to_i32)
to_f32 = define(_resized("f32"), lambda b, x: b.sitofp(x, ir.VectorType(ir.FloatType(), x.type.count)))
bits_i32 = define(_resized("i32"), lambda b, x: b.bitcast(x, ir.VectorType(ir.IntType(32), x.type.count)))
bits_f32 = define(_resized("f32"), lambda b, x: b.bitcast(x, ir.VectorType(ir.FloatType(), x.type.count)))

as_i8, as_i16, as_i32 = (_reinterpret(v) for v in (I8, I16, I32))

zero_f32, zero_i32, zero_f32w, zero_i32w = (_zero(v) for v in (F32, I32, F32W, I32W))
splat_f32, splat_f32w, splat_i32, splat_i32w = (_splat(v) for v in (F32, F32W, I32, I32W))
splat_i16, splat_i8 = _splat(I16), _splat(I8)

# Reductions to a scalar; use the wide vectors for floats, so that the order is the same on every tier.
reduce_add = define(_scalar_of, _fold(binary("fadd", "add")))
reduce_max = define(_scalar_of, _fold(_extreme(">")))
reduce_min = define(_scalar_of, _fold(_extreme("<")))
