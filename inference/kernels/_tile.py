"""A register tile: the sums of P outputs by V vectors of channels, as one numba value.

LLVM keeps the array of vectors in registers while P * V and the operands of a step fit. A packed group of
channels (`pack.py`) begins with its V vectors of biases; 8-bit ones go on with what their sums are scaled
with (`_finish.py`); then, step by step, V vectors of weights.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import models, register_model

from reflexarc.inference.kernels._finish import VECTOR, Finish, clamp
from reflexarc.inference.kernels._parts import PART_BYTES, PARTS, broadcast_part, dot_part, load_weights_part
from reflexarc.inference.simd.arithmetic import fused
from reflexarc.inference.simd.memory import ADDRESS, activation_bytes, load, store, store_first
from reflexarc.inference.simd.target import LANES
from reflexarc.inference.simd.vector import F32, I32, Vector, define, fixed, splat

_I64 = ir.IntType(64)


class Tile(types.Type):  # type: ignore[misc]
    """The numba type of P by V sums."""

    def __init__(self, sums: Vector, p: int, v: int) -> None:
        self.llvm = ir.ArrayType(sums.llvm, p * v)
        super().__init__(name=f"tile of {p} by {v} {sums.name}")


@register_model(Tile)
class _TileModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, tile: Tile) -> None:
        super().__init__(manager, tile, tile.llvm)


def _offset(b: Any, address: Any, step: Any, n: int) -> Any:
    """address + n * step."""
    return b.add(address, b.mul(step, _I64(n)) if not isinstance(step, int) else _I64(n * step))


class TileOps:
    """The operations on tiles of one shape and element: `I32` sums of 8-bit products, or `F32` sums.

    `ending` says how 8-bit sums are scaled; `wide` ones are stored as i32.
    """

    def __init__(
        self, sums: Vector, p: int, v: int, ending: Finish | None = None, *, wide: bool = False
    ) -> None:
        self.sums, self.p, self.v = sums, p, v
        self._ending, self.wide = ending, wide
        self.is_float = sums is F32
        self.weights = VECTOR if self.is_float else PART_BYTES
        self.parts = 1 if self.is_float else PARTS
        self.tile = tile = Tile(sums, p, v)
        self.start = define(fixed(tile, ADDRESS), self._start)
        self.step = define(fixed(tile, tile, ADDRESS, ADDRESS, ADDRESS), self._step)
        f32, i32, i64 = types.float32, types.int32, types.int64
        if ending is None:
            self.finish = define(fixed(types.void, tile, ADDRESS, ADDRESS, i64, f32, f32), self._finish_f32)
        else:
            arguments = (tile, ADDRESS, ADDRESS, ADDRESS, i64, ending.limit, ending.limit, i32)
            self.finish = define(fixed(types.void, *arguments), self._finish_q)

    def _start(self, b: Any, bias: Any) -> Any:
        """start(bias): each output's sums begin with the V vectors of biases."""
        tile = ir.Constant(ir.ArrayType(self.sums.llvm, self.p * self.v), ir.Undefined)
        for v in range(self.v):
            value = load(self.sums.llvm)(b, _offset(b, bias, VECTOR, v))
            for p in range(self.p):
                tile = b.insert_value(tile, value, p * self.v + v)
        return tile

    def _step(self, b: Any, tile: Any, x: Any, x_step: Any, w: Any) -> Any:
        """step(tile, x, x_step, w): add the products of each output's x (four bytes, or one f32) and
        weights."""

        def value(p: int) -> Any:
            return self._broadcast(b, _offset(b, x, x_step, p))

        def weight(v: int) -> Any:
            return self._weights(b, _offset(b, w, self.weights, v))

        if self.p >= self.v:  # hold the fewer of the two in registers, and take the others as they come
            held = [weight(v) for v in range(self.v)]
            pairs = (
                (p, v, one, held[v]) for p in range(self.p) for one in (value(p),) for v in range(self.v)
            )
        else:
            held = [value(p) for p in range(self.p)]
            pairs = (
                (p, v, held[p], one) for v in range(self.v) for one in (weight(v),) for p in range(self.p)
            )
        for p, v, activations, weights in pairs:
            i = p * self.v + v
            tile = b.insert_value(tile, self._add(b, b.extract_value(tile, i), weights, activations), i)
        return tile

    def _weights(self, b: Any, address: Any) -> Any:
        return load(F32.llvm)(b, address) if self.is_float else load_weights_part(b, address)

    def _broadcast(self, b: Any, address: Any) -> Any:
        if self.is_float:
            return splat(b, load(ir.FloatType())(b, address), F32.llvm)
        return broadcast_part(b, address)

    def _add(self, b: Any, total: Any, weight: Any, value: Any) -> Any:
        return fused(b, weight, value, total) if self.is_float else dot_part(b, total, weight, value)

    def _finish_q(
        self, b: Any, tile: Any, packed: Any, y: Any, y_step: Any, n: Any, lo: Any, hi: Any, zero: Any
    ) -> Any:
        """finish(tile, packed, y, y_step, n, lo, hi, zero): requantize and store the first n channels."""
        assert self._ending is not None
        ending, zero = self._ending, splat(b, zero, I32.llvm)
        factors = [ending.factors(b, packed, v, self.v) for v in range(self.v)]

        def quantized(i: int) -> Any:
            steps = ending.steps(b, b.extract_value(tile, i), factors[i % self.v], lo, hi)
            value = b.add(steps, zero)
            return value if self.wide else activation_bytes(b, value)

        self._store(b, quantized, y, y_step, n, VECTOR if self.wide else LANES)

    def _finish_f32(self, b: Any, tile: Any, y: Any, y_step: Any, n: Any, lo: Any, hi: Any) -> Any:
        """finish(tile, y, y_step, n, lo, hi): clamp and store the first n channels; NaN stays NaN."""
        lo, hi = (splat(b, value, F32.llvm) for value in (lo, hi))
        self._store(b, lambda i: clamp(b, b.extract_value(tile, i), lo, hi), y, y_step, n, 4 * LANES)

    def _store(self, b: Any, value: Any, y: Any, y_step: Any, n: Any, size: int) -> None:
        """Store P by V vectors of `size` bytes, the last of them in part where n channels do not fill
        them."""
        whole = b.icmp_signed(">=", n, _I64(self.v * LANES))
        with b.if_else(whole) as (then, otherwise):
            with then:
                for i in range(self.p * self.v):
                    p, v = divmod(i, self.v)
                    store(b, _offset(b, _offset(b, y, y_step, p), size, v), value(i))
            with otherwise:
                for i in range(self.p * self.v):
                    p, v = divmod(i, self.v)
                    left = b.sub(n, _I64(v * LANES))
                    store_first(b, _offset(b, _offset(b, y, y_step, p), size, v), value(i), left)
