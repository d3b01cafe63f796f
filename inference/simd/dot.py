"""Products of 8-bit activations and weights, summed exactly in i32: what differs by instruction set.

`dot(accumulator, w, x)` adds to each of LANES rows the sum of four products. A block of weights is LANES rows
by four consecutive k, packed in `Tier.weight_order`, always 4 * LANES bytes of signed weights. Four
activations, stored as the tier stores them (unsigned with BIAS on x86, signed on ARM), are spread to all
rows. Any byte may have any value. Nothing saturates: where there is no `vpdpbusd`, x86 widens to 16 bits for
`pmaddwd`, since `pmaddubsw` would.
"""

from typing import Any

from llvmlite import ir

from reflexarc.inference.simd.memory import ADDRESS, load
from reflexarc.inference.simd.target import LANES, TIER
from reflexarc.inference.simd.vector import (
    I8,
    I16,
    I32,
    Vector,
    call,
    constant,
    define,
    fixed,
    halves,
    splat,
)

_I16, _I32 = ir.IntType(16), ir.IntType(32)
_MADD = {512: "llvm.x86.avx512.pmaddw.d.512", 256: "llvm.x86.avx2.pmadd.wd", 128: "llvm.x86.sse2.pmadd.wd"}

WEIGHTS = Vector("i16", 4 * LANES) if TIER.dot == "madd" else I8
"""Type of a loaded block of weights."""
ACTIVATIONS = {"madd": WEIGHTS, "smull": Vector("i8", 32)}.get(TIER.dot, I8)
"""Type of four activations spread to all rows."""


def emit_load_weights(builder: Any, address: Any) -> Any:
    """Code of a load of 4 * LANES packed weights."""
    block = load(I8.llvm)(builder, address)
    return builder.sext(block, WEIGHTS.llvm) if TIER.dot == "madd" else block


def _spread(builder: Any, address: Any, element: Any, vector: Any) -> Any:
    """Code of an integer from memory in each lane, seen as another vector."""
    lanes = vector.count * vector.element.width // element.width
    wide = splat(builder, load(element)(builder, address), ir.VectorType(element, lanes))
    return builder.bitcast(wide, vector)


def _join(builder: Any, low: Any, high: Any) -> Any:
    lanes = 2 * low.type.count
    return builder.shuffle_vector(low, high, ir.Constant(ir.VectorType(_I32, lanes), list(range(lanes))))


def emit_broadcast_activations(builder: Any, address: Any) -> Any:
    """Code of four consecutive activations spread to all rows."""
    if TIER.dot == "smull":
        pairs = [builder.add(address, ir.IntType(64)(offset)) for offset in (0, 2)]
        return _join(builder, *(_spread(builder, a, _I16, I8.llvm) for a in pairs))
    if TIER.dot == "madd":
        words = _spread(builder, address, _I32, I16.llvm)
        even = builder.and_(words, constant(I16.llvm, 0xFF))
        return _join(builder, even, builder.lshr(words, constant(I16.llvm, 8)))
    return _spread(builder, address, _I32, I8.llvm)


def emit_dot_i16(builder: Any, accumulator: Any, x: Any, y: Any) -> Any:
    """Code of accumulator[i] + x[2i] * y[2i] + x[2i+1] * y[2i+1] of signed 16-bit lanes."""
    kind = accumulator.type
    if not TIER.arm:
        return builder.add(accumulator, call(builder, _MADD[TIER.bits], kind, x, y))
    products = [
        builder.mul(builder.sext(u, kind), builder.sext(v, kind))
        for u, v in zip(halves(builder, x), halves(builder, y), strict=True)
    ]
    return builder.add(accumulator, call(builder, "llvm.aarch64.neon.addp.v4i32", kind, *products))


def emit_dot(builder: Any, accumulator: Any, w: Any, x: Any) -> Any:
    """Code of accumulator[row] + the sum of four products of w's row and x."""
    kind = accumulator.type
    if TIER.dot == "dpbusd":
        return call(builder, f"llvm.x86.avx512.vpdpbusd.{TIER.bits}", kind, accumulator, x, w)
    if TIER.dot == "sdot":
        return call(builder, "llvm.aarch64.neon.sdot.v4i32.v16i8", kind, accumulator, w, x)
    if TIER.dot == "madd":
        pairs = zip(halves(builder, w), halves(builder, x), strict=True)
        low, high = (call(builder, _MADD[TIER.bits], kind, u, v) for u, v in pairs)
        return builder.add(accumulator, builder.add(low, high))
    (w_low, w_high), (x_low, x_high) = halves(builder, w), halves(builder, x)
    for u, v in ((w_low, halves(builder, x_low)[0]), (w_high, halves(builder, x_high)[1])):
        product = builder.mul(*(builder.sext(t, ir.VectorType(_I16, 8)) for t in (u, v)))
        accumulator = builder.add(
            accumulator, call(builder, "llvm.aarch64.neon.saddlp.v4i32.v8i16", kind, product)
        )
    return accumulator


load_weights = define(fixed(WEIGHTS, ADDRESS), emit_load_weights)
broadcast_activations = define(fixed(ACTIVATIONS, ADDRESS), emit_broadcast_activations)
dot = define(fixed(I32, I32, WEIGHTS, ACTIVATIONS), emit_dot)
dot_i16 = define(fixed(I32, I32, I16, I16), emit_dot_i16)
