"""8-bit convolution and dense layers: exact i32 sums, requantized as they are stored."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import CONV8
from reflexarc.inference.kernels._conv import conv
from reflexarc.inference.kernels._tile import VECTOR, TileOps
from reflexarc.inference.simd import I32, TIER, helper, peek_f32, peek_i32
from reflexarc.inference.tiles import conv8_tiles

_at = CONV8.at


def _conv8(outputs: int, vectors: int) -> Any:
    """The kernel with a tile of `outputs` by `vectors`."""
    tile = TileOps(I32, outputs, vectors)
    finish, multipliers = tile.finish, vectors * VECTOR

    @helper
    def end(block: int, sums: Any, packed: int, y: int, y_col: int, first: int, n: int) -> None:
        lo, hi, zero = peek_f32(block + _at.lo), peek_f32(block + _at.hi), peek_i32(block + _at.zero)
        finish(sums, packed + multipliers, y + first, y_col, n, lo, hi, zero)

    kernel = conv(_at, tile, 2, 4, end)
    kernel.__name__ = f"conv8_{outputs}x{vectors}"
    return kernel


KERNELS = tuple(_conv8(p, v) for p, v in conv8_tiles(TIER))
