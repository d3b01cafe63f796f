"""Arithmetic of vectors: Python's operators, and the functions that have no operator.

Operands are vectors of one type, or a vector and scalars, which are cast to its element and fill its lanes.
Integers wrap, `>>` keeps the sign, comparisons are signed (integers) or ordered (floats) and give a mask. No
product and sum is contracted unless written `fma`.
"""

import operator
from collections.abc import Callable, Iterable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global

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


def _common(arguments: Iterable[Any]) -> Any:
    """The one vector type among operands, or None."""
    vectors = {a for a in arguments if isinstance(a, Vector)}
    scalars = all(isinstance(a, Vector | types.Number | types.Boolean) for a in arguments)
    return vectors.pop() if len(vectors) == 1 and scalars else None


def _types(vector: Any, arguments: Iterable[Any]) -> list[Any]:
    return [vector if isinstance(a, Vector) else vector.scalar for a in arguments]


def _spread(builder: Any, values: Iterable[Any]) -> list[Any]:
    """Operands with each scalar in every lane."""
    values = list(values)
    vector = next(v.type for v in values if isinstance(v.type, ir.VectorType))
    return [v if isinstance(v.type, ir.VectorType) else splat(builder, v, vector) for v in values]


def _is_float(value: Any) -> bool:
    return isinstance(value.type.element, ir.FloatType)


def _binary(on_float: str | None, on_integer: str | None) -> Emit:
    """Code of an operator from the names of llvmlite's builder methods."""

    def emit(builder: Any, x: Any, y: Any) -> Any:
        x, y = _spread(builder, (x, y))
        return getattr(builder, (on_float if _is_float(x) else on_integer) or "")(x, y)

    return emit


def _comparison(symbol: str) -> Emit:
    def emit(builder: Any, x: Any, y: Any) -> Any:
        x, y = _spread(builder, (x, y))
        if _is_float(x):
            compare = builder.fcmp_unordered if symbol == "!=" else builder.fcmp_ordered
            return compare(symbol, x, y)
        return builder.icmp_signed(symbol, x, y)

    return emit


def _operator(function: Any, emit: Emit, floats: bool, integers: bool, mask: bool = False) -> None:
    """Teach numba one of Python's binary operators on vectors."""

    @infer_global(function)
    class _Template(AbstractTemplate):  # type: ignore[misc]
        def generic(self, args: Any, kws: Any) -> Any:
            vector = _common(args)
            if vector is None or not (floats if vector.is_float else integers):
                return None
            return signature(Vector("i1", vector.lanes) if mask else vector, *_types(vector, args))

    def lower(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        return emit(builder, *values)

    for left, right in ((Vector, Vector), (Vector, types.Any), (types.Any, Vector)):
        lower_builtin(function, left, right)(lower)


_operator(operator.add, _binary("fadd", "add"), floats=True, integers=True)
_operator(operator.sub, _binary("fsub", "sub"), floats=True, integers=True)
_operator(operator.mul, _binary("fmul", "mul"), floats=True, integers=True)
_operator(operator.truediv, _binary("fdiv", None), floats=True, integers=False)
_operator(operator.and_, _binary(None, "and_"), floats=False, integers=True)
_operator(operator.or_, _binary(None, "or_"), floats=False, integers=True)
_operator(operator.xor, _binary(None, "xor"), floats=False, integers=True)
_operator(operator.lshift, _binary(None, "shl"), floats=False, integers=True)
_operator(operator.rshift, _binary(None, "ashr"), floats=False, integers=True)
for _function, _symbol in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
    (operator.ne, "!="),
):
    _operator(_function, _comparison(_symbol), floats=True, integers=True, mask=True)


def _same(x: Any, y: Any) -> Any:
    """Rule: a vector and a vector or scalar give the vector."""
    vector = _common((x, y))
    return vector and signature(vector, *_types(vector, (x, y)))


def _same_integer(x: Any, y: Any) -> Any:
    vector = _common((x, y))
    return None if vector is None or vector.is_float else signature(vector, *_types(vector, (x, y)))


def _three_floats(x: Any, y: Any, z: Any) -> Any:
    if all(a == types.float32 for a in (x, y, z)):
        return signature(types.float32, x, y, z)
    vector = _common((x, y, z))
    return vector and signature(vector, *_types(vector, (x, y, z)))


def _chosen(mask: Any, x: Any, y: Any) -> Any:
    vector = _common((x, y))
    return vector and signature(vector, mask, *_types(vector, (x, y)))


def _float_only(x: Any) -> Any:
    return signature(x, x) if isinstance(x, Vector) and x.is_float else None


def _resized(element: str) -> _Rule:
    """Rule: the same number of lanes with another element."""
    return lambda x: signature(Vector(element, x.lanes), x) if isinstance(x, Vector) else None


def _extreme(symbol: str) -> Emit:
    """Code of `x if x < y else y` (or `>`): where a float is NaN it is y, on every tier."""

    def emit(builder: Any, x: Any, y: Any) -> Any:
        x, y = _spread(builder, (x, y))
        return builder.select(_comparison(symbol)(builder, x, y), x, y)

    return emit


def fused(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """Code of x * y + z, rounded once where the tier has FMA (elsewhere LLVM would call a library)."""
    if (
        isinstance(x.type, ir.VectorType)
        or isinstance(y.type, ir.VectorType)
        or isinstance(z.type, ir.VectorType)
    ):
        x, y, z = _spread(builder, (x, y, z))
    if not HAS_FMA:
        return builder.fadd(builder.fmul(x, y), z)
    suffix = f"v{x.type.count}f32" if isinstance(x.type, ir.VectorType) else "f32"
    return call(builder, f"llvm.fma.{suffix}", x.type, x, y, z)


def _select(builder: Any, mask: Any, x: Any, y: Any) -> Any:
    return builder.select(mask, *_spread(builder, (x, y)))


def _shift_logical(builder: Any, x: Any, y: Any) -> Any:
    return builder.lshr(*_spread(builder, (x, y)))


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
reduce_add = define(_scalar_of, _fold(_binary("fadd", "add")))
reduce_max = define(_scalar_of, _fold(_extreme(">")))
reduce_min = define(_scalar_of, _fold(_extreme("<")))


@lower_builtin(operator.neg, Vector)  # type: ignore[untyped-decorator]
def _negate(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    (x,) = values
    return builder.fneg(x) if _is_float(x) else builder.neg(x)


@infer_global(operator.neg)
class _Negate(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(args[0], args[0]) if isinstance(args[0], Vector) else None
