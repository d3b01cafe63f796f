"""Loads and stores at int64 addresses of any alignment; nothing is checked, the planner is the guard."""

from typing import Any

from llvmlite import ir
from numba import types

from reflexarc.inference.simd.target import BIAS, HAS_FMA, LANES, WIDE
from reflexarc.inference.simd.vector import (
    F32,
    F32W,
    I8,
    I16,
    I32,
    I32W,
    Emit,
    call,
    constant,
    define,
    fixed,
    pointer,
    splat,
)

_I1, _I8, _I16, _I32, _F32 = ir.IntType(1), ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.FloatType()
ADDRESS = types.int64


def load(kind: Any) -> Emit:
    """Code of a load of an LLVM type."""

    def emit(builder: Any, address: Any) -> Any:
        value = builder.load(pointer(builder, address, kind))
        value.align = 1
        return value

    return emit


def store(builder: Any, address: Any, value: Any) -> None:
    """Code of a store of an LLVM value."""
    builder.store(value, pointer(builder, address, value.type)).align = 1


def _mask(builder: Any, count: Any, lanes: int) -> Any:
    """The mask of the first `count` lanes."""
    order = ir.Constant(ir.VectorType(_I32, lanes), list(range(lanes)))
    return builder.icmp_signed("<", order, splat(builder, builder.trunc(count, _I32), order.type))


def load_first(kind: Any) -> Emit:
    """Code of a load of the first `count` lanes, zeros beyond; not a byte after them is touched."""

    def emit(builder: Any, address: Any, count: Any) -> Any:
        name = f"llvm.masked.load.v{kind.count}{'f' if kind.element == _F32 else 'i'}{_bits(kind)}.p0"
        mask = _mask(builder, count, kind.count)
        return call(builder, name, kind, pointer(builder, address, kind), _I32(1), mask, constant(kind, 0))

    return emit


def store_first(builder: Any, address: Any, value: Any, count: Any) -> None:
    """Code of a store of the first `count` lanes; not a byte after them is touched."""
    kind = value.type
    name = f"llvm.masked.store.v{kind.count}{'f' if kind.element == _F32 else 'i'}{_bits(kind)}.p0"
    target = pointer(builder, address, kind)
    call(builder, name, ir.VoidType(), value, target, _I32(1), _mask(builder, count, kind.count))


def _bits(kind: Any) -> int:
    return 32 if kind.element == _F32 else int(kind.element.width)


def half_to_single(builder: Any, half: Any) -> Any:
    """Code of f16 to f32, exact for finite values.

    Without F16C by integer operations, as LLVM would call a library: the magnitude's bits, moved to f32's
    place, are too small by the difference of the exponents' biases, 2**112, which a product with it mends,
    subnormals too.
    """
    count = half.type.count
    single, word = ir.VectorType(_F32, count), ir.VectorType(_I32, count)
    if HAS_FMA:
        return builder.fpext(half, single)
    bits = builder.zext(builder.bitcast(half, ir.VectorType(_I16, count)), word)
    magnitude = builder.shl(builder.and_(bits, constant(word, 0x7FFF)), constant(word, 13))
    magnitude = builder.fmul(builder.bitcast(magnitude, single), constant(single, 2.0**112))
    sign = builder.shl(builder.and_(bits, constant(word, 0x8000)), constant(word, 16))
    return builder.bitcast(builder.or_(builder.bitcast(magnitude, word), sign), single)


def _load_half(lanes: int) -> Emit:
    return lambda b, address: half_to_single(b, load(ir.VectorType(ir.HalfType(), lanes))(b, address))


def _widen(vector: Any, element: Any, signed: bool) -> Emit:
    narrow = load(ir.VectorType(element, vector.lanes))
    return lambda b, address: (b.sext if signed else b.zext)(narrow(b, address), vector.llvm)


def _widen_activations(vector: Any) -> Emit:
    narrow = load(ir.VectorType(_I8, vector.lanes))

    def emit(b: Any, address: Any) -> Any:
        if not BIAS:
            return b.sext(narrow(b, address), vector.llvm)
        return b.sub(b.zext(narrow(b, address), vector.llvm), constant(vector.llvm, BIAS))

    return emit


def narrow(builder: Any, value: Any, element: Any) -> Any:
    """Code of an i32 vector cut to the low bits of each lane."""
    return builder.trunc(value, ir.VectorType(element, value.type.count))


def activation_bytes(builder: Any, value: Any) -> Any:
    """Code of an i32 vector of 8-bit values (-128..127) as the bytes this tier stores."""
    biased = builder.add(value, constant(value.type, BIAS)) if BIAS else value
    return narrow(builder, biased, _I8)


def _loader(result: Any, emit: Emit) -> Any:
    return define(fixed(result, ADDRESS), emit)


def _storer(value: Any, emit: Emit = store) -> Any:
    return define(fixed(types.void, ADDRESS, value), emit)


# Whole vectors.
load_i8, load_i16, load_i32 = (_loader(v, load(v.llvm)) for v in (I8, I16, I32))
load_f32, load_f32w, load_i32w = (_loader(v, load(v.llvm)) for v in (F32, F32W, I32W))
store_i8, store_i16, store_i32 = (_storer(v) for v in (I8, I16, I32))
store_f32, store_f32w, store_i32w = (_storer(v) for v in (F32, F32W, I32W))

# The first lanes only.
load_first_f32, load_first_f32w, load_first_i32w = (
    define(fixed(v, ADDRESS, types.int64), load_first(v.llvm)) for v in (F32, F32W, I32W)
)
store_first_f32, store_first_f32w, store_first_i32w = (
    define(fixed(types.void, ADDRESS, v, types.int64), store_first) for v in (F32, F32W, I32W)
)

# Half floats, converted.
load_f16, load_f16w = _loader(F32, _load_half(LANES)), _loader(F32W, _load_half(WIDE))

# Bytes and 16-bit integers, widened to i32 or cut from it.
load_s8_i32, load_s8_i32w = (_loader(v, _widen(v, _I8, True)) for v in (I32, I32W))
load_u8_i32, load_u8_i32w = (_loader(v, _widen(v, _I8, False)) for v in (I32, I32W))
load_s16_i32, load_s16_i32w = (_loader(v, _widen(v, _I16, True)) for v in (I32, I32W))
store_i32_8, store_i32w_8 = (_storer(v, lambda b, a, x: store(b, a, narrow(b, x, _I8))) for v in (I32, I32W))
store_i32_16, store_i32w_16 = (
    _storer(v, lambda b, a, x: store(b, a, narrow(b, x, _I16))) for v in (I32, I32W)
)
store_first_i32_8, store_first_i32w_8 = (
    define(
        fixed(types.void, ADDRESS, v, types.int64), lambda b, a, x, n: store_first(b, a, narrow(b, x, _I8), n)
    )
    for v in (I32, I32W)
)

# 8-bit activations as this tier stores them, to and from their values -128..127 in i32 lanes.
load_q, load_qw = (_loader(v, _widen_activations(v)) for v in (I32, I32W))
store_q, store_qw = (_storer(v, lambda b, a, x: store(b, a, activation_bytes(b, x))) for v in (I32, I32W))
store_first_q, store_first_qw = (
    define(
        fixed(types.void, ADDRESS, v, types.int64),
        lambda b, a, x, n: store_first(b, a, activation_bytes(b, x), n),
    )
    for v in (I32, I32W)
)

# Scalars.
peek_i8 = _loader(types.int8, load(_I8))
peek_u8 = _loader(types.uint8, load(_I8))
peek_i16 = _loader(types.int16, load(_I16))
peek_i32 = _loader(types.int32, load(_I32))
peek_i64 = _loader(types.int64, load(ir.IntType(64)))
peek_f32 = _loader(types.float32, load(_F32))
poke_i8, poke_i16, poke_i32 = (_storer(t) for t in (types.int8, types.int16, types.int32))
poke_i64, poke_f32 = _storer(types.int64), _storer(types.float32)
