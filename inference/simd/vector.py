"""SIMD vectors as numba values, and the way operations on them are defined.

A `Vector` is an LLVM vector of any length: the compiler splits what is wider than a register. An operation is
an intrinsic made by `define` from two functions: `rule(*argument types)` gives its numba signature (or None
where it does not apply) and `emit(builder, *LLVM values)` its code.
"""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, cast

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.typing import signature
from numba.extending import intrinsic, models, register_model

from reflexarc.inference.simd.target import LANES, WIDE

_ELEMENTS = {
    "i1": (ir.IntType(1), types.boolean),
    "i8": (ir.IntType(8), types.int8),
    "i16": (ir.IntType(16), types.int16),
    "i32": (ir.IntType(32), types.int32),
    "f16": (ir.HalfType(), types.float16),
    "f32": (ir.FloatType(), types.float32),
}


class Vector(types.Type):  # type: ignore[misc]
    """The numba type of `lanes` elements of "i1", "i8", "i16", "i32", "f16" or "f32"."""

    def __init__(self, element: str, lanes: int) -> None:
        self.element, self.lanes = element, lanes
        self.is_float = element[0] == "f"
        self.llvm = ir.VectorType(_ELEMENTS[element][0], lanes)
        self.scalar = _ELEMENTS[element][1]
        super().__init__(name=f"{element}x{lanes}")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, vector: Vector) -> None:
        super().__init__(manager, vector, vector.llvm)


F32, I32 = Vector("f32", LANES), Vector("i32", LANES)
I16, I8 = Vector("i16", 2 * LANES), Vector("i8", 4 * LANES)
F32W, I32W = Vector("f32", WIDE), Vector("i32", WIDE)

Emit = Callable[..., Any]
_Function = TypeVar("_Function", bound=Callable[..., Any])


def helper(function: _Function) -> _Function:
    """Decorator of a Python function that kernels call: its body takes the call's place, then is compiled."""
    return cast(_Function, njit(inline="always")(function))


def define(rule: Callable[..., Any], emit: Emit) -> Any:
    """An operation that kernels can call; `rule` names its parameters and decides its types."""
    names = list(inspect.signature(rule).parameters)

    def typed(context: Any, *arguments: Any) -> Any:
        found = rule(*arguments)
        if found is None:
            return None

        def code(lowering: Any, builder: Any, sig: Any, values: Any) -> Any:
            result = emit(builder, *values)
            return lowering.get_dummy_value() if sig.return_type == types.void else result

        return found, code

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in ("context", *names)]
    typed.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return intrinsic(typed)


def fixed(result: Any, *arguments: Any) -> Callable[..., Any]:
    """The rule of an operation with one signature; scalar arguments are cast to it."""

    def rule(*given: Any) -> Any:
        same = all(g == a for g, a in zip(given, arguments, strict=True) if isinstance(a, Vector))
        return signature(result, *arguments) if same else None

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(f"a{i}", kind) for i in range(len(arguments))]
    rule.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return rule


def pointer(builder: Any, address: Any, pointee: Any) -> Any:
    """An int64 address as a pointer."""
    return builder.inttoptr(address, pointee.as_pointer())


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A call of one of LLVM's intrinsics."""
    kind = ir.FunctionType(result, [a.type for a in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def constant(vector: Any, value: float) -> Any:
    """An LLVM vector constant with `value` in each lane."""
    return ir.Constant(vector, [value] * vector.count)


def splat(builder: Any, value: Any, vector: Any) -> Any:
    """An LLVM vector with the scalar `value` in each lane."""
    start = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    return builder.shuffle_vector(start, start, constant(ir.VectorType(ir.IntType(32), vector.count), 0))


def pick(builder: Any, vector: Any, lanes: range) -> Any:
    """The LLVM vector of some of a vector's lanes."""
    order = ir.Constant(ir.VectorType(ir.IntType(32), len(lanes)), list(lanes))
    return builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), order)


def halves(builder: Any, vector: Any) -> tuple[Any, Any]:
    """The lower and the upper half of an LLVM vector."""
    n = vector.type.count
    return pick(builder, vector, range(n // 2)), pick(builder, vector, range(n // 2, n))
