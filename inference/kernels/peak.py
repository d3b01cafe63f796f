"""8-bit multiply-accumulates as fast as they go, to measure this CPU's bound; no model uses it."""

from __future__ import annotations

from reflexarc.inference.simd import (
    LANES,
    broadcast_activations,
    dot,
    load_weights,
    peek_i64,
    store_i32,
    zero_i32,
)

_VECTOR = 4 * LANES


def peak(instruction: int, thread: int, threads: int) -> None:
    """`steps` times the twelve products of a register tile: 4 blocks of weights by 3 groups of activations.

    The words of the instruction: kernel, address of 1216 bytes or more (256 are overwritten), steps. A step
    is 12 * 4 * LANES multiply-accumulates. Its operands are loaded from the first-level cache, from another
    place than the last step's, as a real tile loads them; so no compiler can keep a product.
    """
    data, steps = peek_i64(instruction + 8), peek_i64(instruction + 16)
    a0, a1, a2, a3 = zero_i32(), zero_i32(), zero_i32(), zero_i32()
    b0, b1, b2, b3 = zero_i32(), zero_i32(), zero_i32(), zero_i32()
    c0, c1, c2, c3 = zero_i32(), zero_i32(), zero_i32(), zero_i32()
    for step in range(steps):
        at = data + (step & 15) * _VECTOR
        x, y, z = broadcast_activations(at), broadcast_activations(at + 4), broadcast_activations(at + 8)
        w = load_weights(at)
        a0, b0, c0 = dot(a0, w, x), dot(b0, w, y), dot(c0, w, z)
        w = load_weights(at + _VECTOR)
        a1, b1, c1 = dot(a1, w, x), dot(b1, w, y), dot(c1, w, z)
        w = load_weights(at + 2 * _VECTOR)
        a2, b2, c2 = dot(a2, w, x), dot(b2, w, y), dot(c2, w, z)
        w = load_weights(at + 3 * _VECTOR)
        a3, b3, c3 = dot(a3, w, x), dot(b3, w, y), dot(c3, w, z)
    store_i32(data, a0 + b0 + c0)
    store_i32(data + _VECTOR, a1 + b1 + c1)
    store_i32(data + 2 * _VECTOR, a2 + b2 + c2)
    store_i32(data + 3 * _VECTOR, a3 + b3 + c3)


KERNELS = [peak]
