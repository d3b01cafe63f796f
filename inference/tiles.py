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


def parts(tier: Tier) -> int:
    """Passes over a segment: two where products are widened to 16 bits, each of half the inputs; else one."""
    return 2 if tier.dot in ("madd", "smull") else 1


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


def best(tier: Tier, tiles: Iterable[Tile], cols: int, channels: int, narrow: bool) -> Tile:
    """The tile that computes a row of `cols` outputs of `channels` in the fewest half cycles, as modelled.

    A step of a tile takes P * V products, or P + V loads, two a cycle, whichever are more, and no less than a
    product's latency; 8-bit products in two passes (`narrow`) take four operations each, and each operand one
    more in a pass, of which four are done in a cycle. Each tile has a start and an end besides.
    """

    def cost(tile: Tile) -> int:
        p, v = tile
        count = -(-cols // p) * -(-channels // (v * tier.lanes))
        work = 2 * p * v + p + v if narrow and parts(tier) == 2 else max(p * v, p + v)
        return count * (max(work, 8) + 2)

    return min((t for t in tiles if t[0] <= cols), key=cost)
