"""SIMD vectors for kernels, written once for every instruction set; for the builder only (it needs numba).

Types, n lanes of a register of this tier (LANES = 16, 8 or 4) or 16 virtual lanes (wide, ...w):
    F32 I32 (LANES)   I16 (2 LANES)   I8 (4 LANES)   F32W I32W (16)   masks, from comparisons

Operators: + - * / (floats) & | ^ << >> (integers, >> keeps the sign) < <= > >= == != (-> mask) and unary -,
on two vectors of one type, or a vector and a scalar that fills its lanes. So with functions of x, y, z:

    fma(x, y, z)                         x * y + z rounded once (sse42: twice); float32 scalars too
    minimum(x, y), maximum(x, y)         x if x < y else y: where a float is NaN it is y
    select(mask, x, y)                   absolute(x), sqrt(x), floor(x) floats
    shift_right_logical(x, n)            integers
    round_i32(x) -> i32                  half to even; |x| < 2**31, so clamp first
    to_f32(x) -> f32                     from i32
    bits_i32(x), bits_f32(x)             the same bits, other element
    as_i8(x), as_i16(x), as_i32(x)       the same register seen as I8, I16 or I32
    exp(x), sigmoid(x), tanh(x)          our own polynomials, NaN stays NaN
    reduce_add(x), reduce_max(x), reduce_min(x) -> scalar, as a tree of halves; floats: of wide vectors
    zero_f32() zero_i32() zero_f32w() zero_i32w()
    splat_f32(s) splat_i32(s) splat_f32w(s) splat_i32w(s) splat_i16(s) splat_i8(s)

Memory (addresses int64, any alignment):
    load_V(a), store_V(a, x)             V = i8 i16 i32 f32 i32w f32w, whole vectors
    load_first_V(a, n)                   V = f32 f32w i32w: the first n lanes, zeros beyond
    store_first_V(a, x, n)               the first n lanes, nothing beyond
    load_f16(a) -> F32, load_f16w(a) -> F32W
    load_s8_V(a) load_u8_V(a) load_s16_V(a)   V = i32 i32w: widened
    store_V_8(a, x) store_V_16(a, x)     V = i32 i32w: the low bits of each lane; store_first_V_8(a, x, n)
    load_q(a) store_q(a, x)              8-bit activations as this tier stores them <-> -128..127 in I32;
                                         load_qw store_qw wide; store_first_q(a, x, n), store_first_qw
    peek_T(a), poke_T(a, s)              scalars, T = i8 i16 i32 i64 f32 (peek_u8 too)

Products (see `dot`): load_weights(a), broadcast_activations(a), dot(acc, w, x), dot_i16(acc, x, y).
Team (see `atomic`): atomic_load atomic_store atomic_add pause invoke futex.

`helper` decorates a function that kernels call. `define(rule, emit)` and `fixed` make operations from LLVM's.
A kernel allocates and raises nothing, and calls only these, `range`, integer `min` and `max`, and helpers.
"""

from reflexarc.inference.simd.arithmetic import (
    absolute,
    as_i8,
    as_i16,
    as_i32,
    bits_f32,
    bits_i32,
    floor,
    fma,
    maximum,
    minimum,
    reduce_add,
    reduce_max,
    reduce_min,
    round_i32,
    select,
    shift_right_logical,
    splat_f32,
    splat_f32w,
    splat_i8,
    splat_i16,
    splat_i32,
    splat_i32w,
    sqrt,
    to_f32,
    zero_f32,
    zero_f32w,
    zero_i32,
    zero_i32w,
)
from reflexarc.inference.simd.atomic import atomic_add, atomic_load, atomic_store, futex, invoke, pause
from reflexarc.inference.simd.dot import broadcast_activations, dot, dot_i16, load_weights
from reflexarc.inference.simd.memory import (
    load_f16,
    load_f16w,
    load_f32,
    load_f32w,
    load_first_f32,
    load_first_f32w,
    load_first_i32w,
    load_i8,
    load_i16,
    load_i32,
    load_i32w,
    load_q,
    load_qw,
    load_s8_i32,
    load_s8_i32w,
    load_s16_i32,
    load_s16_i32w,
    load_u8_i32,
    load_u8_i32w,
    peek_f32,
    peek_i8,
    peek_i16,
    peek_i32,
    peek_i64,
    peek_u8,
    poke_f32,
    poke_i8,
    poke_i16,
    poke_i32,
    poke_i64,
    store_f32,
    store_f32w,
    store_first_f32,
    store_first_f32w,
    store_first_i32_8,
    store_first_i32w,
    store_first_i32w_8,
    store_first_q,
    store_first_qw,
    store_i8,
    store_i16,
    store_i32,
    store_i32_8,
    store_i32_16,
    store_i32w,
    store_i32w_8,
    store_i32w_16,
    store_q,
    store_qw,
)
from reflexarc.inference.simd.target import BIAS, HAS_FMA, LANES, TIER, WIDE
from reflexarc.inference.simd.transcendental import exp, sigmoid, tanh
from reflexarc.inference.simd.vector import F32, F32W, I8, I16, I32, I32W, Vector, define, fixed, helper

__all__ = [
    "BIAS",
    "F32",
    "F32W",
    "HAS_FMA",
    "I8",
    "I16",
    "I32",
    "I32W",
    "LANES",
    "TIER",
    "WIDE",
    "Vector",
    "absolute",
    "as_i8",
    "as_i16",
    "as_i32",
    "atomic_add",
    "atomic_load",
    "atomic_store",
    "bits_f32",
    "bits_i32",
    "broadcast_activations",
    "define",
    "dot",
    "dot_i16",
    "exp",
    "fixed",
    "floor",
    "fma",
    "futex",
    "helper",
    "invoke",
    "load_f16",
    "load_f16w",
    "load_f32",
    "load_f32w",
    "load_first_f32",
    "load_first_f32w",
    "load_first_i32w",
    "load_i8",
    "load_i16",
    "load_i32",
    "load_i32w",
    "load_q",
    "load_qw",
    "load_s8_i32",
    "load_s8_i32w",
    "load_s16_i32",
    "load_s16_i32w",
    "load_u8_i32",
    "load_u8_i32w",
    "load_weights",
    "maximum",
    "minimum",
    "pause",
    "peek_f32",
    "peek_i8",
    "peek_i16",
    "peek_i32",
    "peek_i64",
    "peek_u8",
    "poke_f32",
    "poke_i8",
    "poke_i16",
    "poke_i32",
    "poke_i64",
    "reduce_add",
    "reduce_max",
    "reduce_min",
    "round_i32",
    "select",
    "shift_right_logical",
    "sigmoid",
    "splat_f32",
    "splat_f32w",
    "splat_i8",
    "splat_i16",
    "splat_i32",
    "splat_i32w",
    "sqrt",
    "store_f32",
    "store_f32w",
    "store_first_f32",
    "store_first_f32w",
    "store_first_i32_8",
    "store_first_i32w",
    "store_first_i32w_8",
    "store_first_q",
    "store_first_qw",
    "store_i8",
    "store_i16",
    "store_i32",
    "store_i32_8",
    "store_i32_16",
    "store_i32w",
    "store_i32w_8",
    "store_i32w_16",
    "store_q",
    "store_qw",
    "tanh",
    "to_f32",
    "zero_f32",
    "zero_f32w",
    "zero_i32",
    "zero_i32w",
]
