"""Kernels that exercise every operation of simd; compiled by test_simd for every instruction set."""

from reflexarc.inference.simd import (
    LANES,
    absolute,
    as_i8,
    as_i16,
    as_i32,
    bits_f32,
    bits_i32,
    broadcast_activations,
    dot,
    dot_i16,
    exp,
    floor,
    fma,
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
    load_s16_i32w,
    load_u8_i32,
    load_u8_i32w,
    load_weights,
    maximum,
    minimum,
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
    reduce_add,
    reduce_max,
    reduce_min,
    round_i32,
    select,
    shift_right_logical,
    sigmoid,
    splat_f32w,
    splat_i8,
    splat_i16,
    splat_i32,
    splat_i32w,
    sqrt,
    store_f32,
    store_f32w,
    store_first_f32w,
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
    tanh,
    to_f32,
    zero_f32w,
    zero_i32,
)


def floats(x, y, o):
    a, b = load_f32w(x), load_f32w(y)
    store_f32w(o, a + b)
    store_f32w(o + 64, a - b)
    store_f32w(o + 128, a * b)
    store_f32w(o + 192, a / b)
    store_f32w(o + 256, -a)
    store_f32w(o + 320, absolute(a))
    store_f32w(o + 384, sqrt(absolute(a)))
    store_f32w(o + 448, floor(a))
    store_f32w(o + 512, minimum(a, b))
    store_f32w(o + 576, maximum(a, b))
    store_f32w(o + 640, a * b + a)
    store_f32w(o + 704, 1.0 - a * 2.0)


def fused(x, y, o):
    store_f32w(o, fma(load_f32w(x), load_f32w(y), load_f32w(x)))
    poke_f32(o + 64, fma(peek_f32(x), peek_f32(y), peek_f32(x)))


def comparisons(x, y, o):
    a, b = load_f32w(x), load_f32w(y)
    one, zero = splat_i32w(1), splat_i32w(0)
    store_i32w(o, select(a < b, one, zero))
    store_i32w(o + 64, select(a <= b, one, zero))
    store_i32w(o + 128, select(a > b, one, zero))
    store_i32w(o + 192, select(a >= b, one, zero))
    store_i32w(o + 256, select(a == b, one, zero))
    store_i32w(o + 320, select(a != b, one, zero))


def integers(x, y, o):
    a, b = load_i32w(x), load_i32w(y)
    store_i32w(o, a + b)
    store_i32w(o + 64, a - b)
    store_i32w(o + 128, a * b)
    store_i32w(o + 192, a & b)
    store_i32w(o + 256, a | b)
    store_i32w(o + 320, a ^ b)
    store_i32w(o + 384, a << 3)
    store_i32w(o + 448, a >> 3)
    store_i32w(o + 512, shift_right_logical(a, 3))
    store_i32w(o + 576, minimum(a, b))
    store_i32w(o + 640, maximum(a, b))
    store_i32w(o + 704, select(a < b, a, 7))


def registers(x, y, o):
    """Register-wide types, and views of one as another: every store writes what it loaded."""
    store_i8(o, as_i8(as_i16(load_i32(x))))
    store_i16(o + 4 * LANES, load_i16(x + 4 * LANES))
    store_i32(o + 8 * LANES, as_i32(load_i8(x + 8 * LANES)))
    store_f32(o + 12 * LANES, bits_f32(bits_i32(load_f32(y))))
    store_i32(o + 16 * LANES, as_i32(splat_i16(-3)) + as_i32(splat_i8(0)) + zero_i32())


def conversions(x, y, o):
    store_i32w(o, round_i32(load_f32w(x)))
    store_f32w(o + 64, to_f32(load_i32w(y)))
    store_f32w(o + 128, bits_f32(load_i32w(y)))
    store_i32w(o + 192, bits_i32(load_f32w(x)))
    store_i32(o + 256, round_i32(load_f32(x)))


def widths(x, n, o):
    """x: 16 words of 32 bits. Widening, narrowing and partial loads and stores of n lanes."""
    store_i32w(o, load_s8_i32w(x))
    store_i32w(o + 64, load_u8_i32w(x))
    store_i32w(o + 128, load_s16_i32w(x))
    store_i32w_8(o + 192, load_i32w(x))
    store_i32w_16(o + 208, load_i32w(x))
    store_f32w(o + 256, load_first_f32w(x, n))
    store_first_f32w(o + 320, splat_f32w(2.0), n)
    store_first_i32w(o + 384, load_first_i32w(x, n), n)
    store_first_i32w_8(o + 448, load_i32w(x), n)
    store_i32_8(o + 464, load_s8_i32(x))
    store_i32_16(o + 480, load_u8_i32(x))
    store_f32(o + 512, load_first_f32(x, n))


def activations(x, n, o):
    """x: 16 bytes as this tier stores activations."""
    store_i32w(o, load_qw(x))
    store_qw(o + 64, load_qw(x))
    store_i32(o + 128, load_q(x))
    store_q(o + 192, load_q(x))
    store_first_qw(o + 256, load_qw(x), n)
    store_first_q(o + 272, load_q(x), n)
    poke_i32(o + 320, LANES)


def scalars(x, y, o):
    poke_i8(o, peek_i8(x))
    poke_i16(o + 2, peek_i16(x))
    poke_i32(o + 4, peek_i32(x))
    poke_i64(o + 8, peek_i64(x))
    poke_f32(o + 16, peek_f32(y) * peek_f32(y))
    poke_i64(o + 24, peek_u8(x))
    poke_i64(o + 32, peek_i8(x))


def halves(x, n, o):
    for i in range(0, n, 16):
        store_f32w(o + 4 * i, load_f16w(x + 2 * i))
    store_f32(o + 4 * n, load_f16(x))


def products(w, x, o):
    """64 blocks of weights by 64 x 4 activations: each block by its activations, then the sum of all."""
    total = zero_i32()
    for i in range(64):
        rows, values = load_weights(w + 4 * LANES * i), broadcast_activations(x + 4 * i)
        store_i32(o + 4 * LANES * i, dot(zero_i32(), rows, values))
        total = dot(total, rows, values)
    store_i32(o + 4 * LANES * 64, total)


def pairs(x, y, o):
    store_i32(o, dot_i16(splat_i32(5), load_i16(x), load_i16(y)))


def functions(x, n, o):
    for i in range(0, n, 16):
        v = load_f32w(x + 4 * i)
        store_f32w(o + 4 * i, exp(v))
        store_f32w(o + 4 * (n + i), tanh(v))
        store_f32w(o + 4 * (2 * n + i), sigmoid(v))


def reductions(x, n, o):
    total = zero_f32w()
    for i in range(0, n, 16):
        total = total + load_f32w(x + 4 * i)
    poke_f32(o, reduce_add(total))
    poke_f32(o + 4, reduce_max(load_f32w(x)))
    poke_f32(o + 8, reduce_min(load_f32w(x)))
    poke_i32(o + 12, reduce_add(load_i32w(x)))


KERNELS = (
    floats,
    fused,
    comparisons,
    integers,
    registers,
    conversions,
    widths,
    activations,
    scalars,
    halves,
    products,
    pairs,
    functions,
    reductions,
)
