"""Float convolution and dense layers: each output summed in the order of its weights, whatever the tile or
the tier."""

from __future__ import annotations

from typing import Any

from reflexarc.inference.instructions import CONV32
from reflexarc.inference.kernels._conv import conv
from reflexarc.inference.kernels._tile import TileOps
from reflexarc.inference.simd import F32, TIER, helper, peek_f32
from reflexarc.inference.tiles import conv32_tiles

_at = CONV32.at


def _conv32(outputs: int, vectors: int) -> Any:
    """The kernel with a tile of `outputs` by `vectors`."""
    tile = TileOps(F32, outputs, vectors)
    finish = tile.finish

    @helper
    def end(block: int, sums: Any, packed: int, y: int, y_col: int, first: int, n: int) -> None:
        finish(sums, y + 4 * first, y_col, n, peek_f32(block + _at.lo), peek_f32(block + _at.hi))

    kernel = conv(_at, tile, 1, 4, end)
    kernel.__name__ = f"conv32_{outputs}x{vectors}"
    return kernel


KERNELS = tuple(_conv32(p, v) for p, v in conv32_tiles(TIER))
