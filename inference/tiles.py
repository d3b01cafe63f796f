"""The register tiles kernels are built with, and the choice among them for a layer.

A tile is P outputs by V vectors of channels. P * V sums, V vectors of weights and what a step needs besides
must fit in the registers: 32 of AVX-512 and NEON, 16 of the others.
"""

from __future__ import annotations

from collections.abc import Iterable

from reflexarc.inference.isa import Tier

Tile = tuple[int, int]

_MANY = ((1, 1), (4, 1), (8, 1), (1, 2), (4, 2), (5, 2), (10, 2), (5, 3), (1, 4), (4, 4), (5, 4), (1, 8))
_DPBUSD_16 = ((1, 1), (4, 1), (8, 1), (1, 2), (4, 2), (5, 2), (6, 2), (1, 4), (2, 4), (1, 8))
_MADD_16 = ((1, 1), (4, 1), (1, 2), (2, 2), (4, 2), (5, 2), (1, 4), (1, 8))


def _registers(tier: Tier) -> int:
    return 32 if tier.bits == 512 or tier.arm else 16


def conv8_tiles(tier: Tier) -> tuple[Tile, ...]:
    """Tiles of the 8-bit convolution."""
    if _registers(tier) == 32:
        return _MANY
    return _DPBUSD_16 if tier.dot == "dpbusd" else _MADD_16


def conv32_tiles(tier: Tier) -> tuple[Tile, ...]:
    """Tiles of the float convolution."""
    return _MANY if _registers(tier) == 32 else _DPBUSD_16


def best(tiles: Iterable[Tile], lanes: int, cols: int, channels: int) -> Tile:
    """The tile that computes a row of `cols` outputs of `channels` with the fewest cycles, as modelled.

    A step of a tile costs P * V products, of which two a cycle are done, or P + V loads, two a cycle too,
    whichever is more; and a tile costs a fixed start and end.
    """

    def cost(tile: Tile) -> float:
        p, v = tile
        count = -(-cols // p) * -(-channels // (v * lanes))
        return count * (max(p * v, p + v, 8) + 2)

    return min((t for t in tiles if t[0] <= cols), key=cost)
