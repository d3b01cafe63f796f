"""Python's operators on vectors.

Operands are vectors of one type, or a vector and scalars, which are cast to its element and fill its lanes.
Integers wrap, `>>` keeps the sign, comparisons are signed (integers) or ordered (floats) and give a mask. A
product and a sum stay two operations.
"""

import operator
from collections.abc import Iterable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing import signature
from numba.core.typing.templates import AbstractTemplate, infer_global

from reflexarc.inference.simd.vector import Emit, Vector, splat


def common(arguments: Iterable[Any]) -> Any:
    """The one vector type among operands, or None."""
    vectors = {a for a in arguments if isinstance(a, Vector)}
    scalars = all(isinstance(a, Vector | types.Number | types.Boolean) for a in arguments)
    return vectors.pop() if len(vectors) == 1 and scalars else None


def operand_types(vector: Any, arguments: Iterable[Any]) -> list[Any]:
    """What operands are cast to: the vector, or its element."""
    return [vector if isinstance(a, Vector) else vector.scalar for a in arguments]


def spread(builder: Any, values: Iterable[Any]) -> list[Any]:
    """Operands with each scalar in every lane."""
    values = list(values)
    vector = next(v.type for v in values if isinstance(v.type, ir.VectorType))
    return [v if isinstance(v.type, ir.VectorType) else splat(builder, v, vector) for v in values]


def _is_float(value: Any) -> bool:
    return isinstance(value.type.element, ir.FloatType)


def binary(on_float: str | None, on_integer: str | None) -> Emit:
    """Code of an operator from the names of llvmlite's builder methods."""

    def emit(builder: Any, x: Any, y: Any) -> Any:
        x, y = spread(builder, (x, y))
        return getattr(builder, (on_float if _is_float(x) else on_integer) or "")(x, y)

    return emit


def comparison(symbol: str) -> Emit:
    """Code of a comparison, such as "<", that gives a mask."""

    def emit(builder: Any, x: Any, y: Any) -> Any:
        x, y = spread(builder, (x, y))
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
            vector = common(args)
            if vector is None or not (floats if vector.is_float else integers):
                return None
            return signature(Vector("i1", vector.lanes) if mask else vector, *operand_types(vector, args))

    def lower(context: Any, builder: Any, sig: Any, values: Any) -> Any:
        return emit(builder, *values)

    for left, right in ((Vector, Vector), (Vector, types.Any), (types.Any, Vector)):
        lower_builtin(function, left, right)(lower)


_operator(operator.add, binary("fadd", "add"), floats=True, integers=True)
_operator(operator.sub, binary("fsub", "sub"), floats=True, integers=True)
_operator(operator.mul, binary("fmul", "mul"), floats=True, integers=True)
_operator(operator.truediv, binary("fdiv", None), floats=True, integers=False)
_operator(operator.and_, binary(None, "and_"), floats=False, integers=True)
_operator(operator.or_, binary(None, "or_"), floats=False, integers=True)
_operator(operator.xor, binary(None, "xor"), floats=False, integers=True)
_operator(operator.lshift, binary(None, "shl"), floats=False, integers=True)
_operator(operator.rshift, binary(None, "ashr"), floats=False, integers=True)
for _function, _symbol in (
    (operator.lt, "<"),
    (operator.le, "<="),
    (operator.gt, ">"),
    (operator.ge, ">="),
    (operator.eq, "=="),
    (operator.ne, "!="),
):
    _operator(_function, comparison(_symbol), floats=True, integers=True, mask=True)


@lower_builtin(operator.neg, Vector)  # type: ignore[untyped-decorator]
def _negate(context: Any, builder: Any, sig: Any, values: Any) -> Any:
    (x,) = values
    return builder.fneg(x) if _is_float(x) else builder.neg(x)


@infer_global(operator.neg)
class _Negate(AbstractTemplate):  # type: ignore[misc]
    def generic(self, args: Any, kws: Any) -> Any:
        return signature(args[0], args[0]) if isinstance(args[0], Vector) else None
