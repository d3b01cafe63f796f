"""8-bit convolution with one of the ways to end it: exact i32 sums, requantized as they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from numba import types

from reflexarc.inference.instructions import Instruction
from reflexarc.inference.kernels._conv import conv
from reflexarc.inference.kernels._finish import Finish
from reflexarc.inference.kernels._tile import TileOps
from reflexarc.inference.simd import I32, helper, peek_f32, peek_i32
from reflexarc.inference.tiles import Tile


def kernels(
    instruction: Instruction, tiles: Iterable[Tile], ending: Finish, *, wide: bool = False
) -> tuple[Callable[..., Any], ...]:
    """A kernel for each tile."""
    return tuple(_kernel(instruction, TileOps(I32, p, v, ending, wide=wide), ending) for p, v in tiles)


def _kernel(instruction: Instruction, tile: TileOps, ending: Finish) -> Any:
    at, finish, size = instruction.at, tile.finish, 4 if tile.wide else 1
    peek_limit = peek_f32 if ending.limit == types.float32 else peek_i32

    @helper
    def end(block: int, sums: Any, packed: int, y: int, y_col: int, first: int, n: int) -> None:
        lo, hi, zero = peek_limit(block + at.lo), peek_limit(block + at.hi), peek_i32(block + at.zero)
        finish(sums, packed, y + size * first, y_col, n, lo, hi, zero)

    kernel = conv(at, tile, ending.heads, 4, end)
    kernel.__name__ = f"{instruction.name}_{tile.p}x{tile.v}"
    return kernel
