"""The register tiles kernels are built with, and the choice among them for a layer.

A tile is P outputs by V vectors of channels. P * V sums, V vectors of weights and what a step needs besides
must fit in the registers: 32 of AVX-512 and NEON, 16 of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from reflexarc.inference.isa import Tier

Tile = tuple[int, int]

_MANY = (
    *((1, 1), (4, 1), (8, 1), (1, 2), (4, 2), (5, 2), (10, 2), (5, 3)),
    *((1, 4), (3, 4), (4, 4), (5, 4), (6, 4), (1, 8)),
)
_SMULL_32 = tuple(tile for tile in _MANY if tile != (6, 4))  # a pass needs more registers than it leaves
_DPBUSD_16 = ((1, 1), (4, 1), (8, 1), (1, 2), (4, 2), (5, 2), (6, 2), (1, 4), (2, 4), (1, 8))
_MADD_16 = ((1, 1), (4, 1), (1, 2), (2, 2), (4, 2), (5, 2), (1, 4), (1, 8))

DENSE_TILES: tuple[Tile, ...] = ((1, 1), (1, 2), (1, 4), (1, 8))
"""Tiles of the dense layers that are scaled in a way of their own."""


def parts(tier: Tier) -> int:
    """Passes over a segment: two where products are widened to 16 bits, each of half the inputs; else one."""
    return 2 if tier.dot in ("madd", "smull") else 1


def _registers(tier: Tier) -> int:
    return 32 if tier.bits == 512 or tier.arm else 16


def conv8_tiles(tier: Tier) -> tuple[Tile, ...]:
    """Tiles of the 8-bit convolution."""
    if _registers(tier) == 32:
        return _SMULL_32 if tier.dot == "smull" else _MANY
    return _DPBUSD_16 if tier.dot == "dpbusd" else _MADD_16


def conv32_tiles(tier: Tier) -> tuple[Tile, ...]:
    """Tiles of the float convolution."""
    return _MANY if _registers(tier) == 32 else _DPBUSD_16


def depthwise_outputs(tier: Tier) -> tuple[int, ...]:
    """Outputs of a row that the depthwise convolution computes at once: as many chains of sums as it takes to
    hide a product's latency, where there are registers for them."""
    return (1, 4, 8) if _registers(tier) == 32 else (1, 4)


DEPTHWISE_TAPS = 3
"""Columns of the windows that have kernels of their own."""
DEPTHWISE_STRIDES = (1, 2)
"""Their steps, in columns."""


@dataclass(frozen=True, slots=True)
class Work:
    """A convolution to be covered with tiles: `cols` outputs a row, `steps` of a tile an output.

    `narrow` is 8-bit, whose steps take four inputs; a float step takes one.
    """

    tier: Tier
    tiles: tuple[Tile, ...]
    cols: int
    steps: int
    narrow: bool

    def cover(self, channels: int) -> list[tuple[Tile, int]]:
        """The tiles for so many channels in the least time, as modelled, each with its number of channels.

        That is one tile, or one for as many channels as fill its vectors and another for the rest.
        """
        covers = [[self._best(channels)]]
        for _, vectors in self.tiles:
            rest = channels % (vectors * self.tier.lanes)
            if 0 < rest < channels:
                covers.append([self._best(channels - rest), self._best(rest)])
        return min(covers, key=lambda cover: sum(self._cost(tile, n) + _INSTRUCTION for tile, n in cover))

    def _best(self, channels: int) -> tuple[Tile, int]:
        fitting = (tile for tile in self.tiles if tile[0] <= self.cols)
        return min(fitting, key=lambda tile: self._cost(tile, channels)), channels

    def _cost(self, tile: Tile, channels: int) -> int:
        """Half cycles of a row.

        A step takes P * V products, or P + V loads, two a cycle, whichever are more, and no less than a
        product's latency; weights that do not stay in the nearest cache count twice. 8-bit products in two
        passes take four operations each, and each operand one more in a pass, of which four are done in a
        cycle. Each tile has a start, and each of its vectors an end.
        """
        p, v = tile
        count = -(-self.cols // p) * -(-channels // (v * self.tier.lanes))
        two_passes = self.narrow and parts(self.tier) == 2
        far = 1 + (self.steps * v * self.tier.lanes * 4 > _NEAR)
        step = 2 * p * v + p + far * v if two_passes else max(p * v, p + far * v)
        return count * (self.steps * max(step, _LATENCY) + _END * p * v + _START)


_NEAR = 24 << 10  # bytes of a group's weights that stay in the nearest cache beside all else
_LATENCY, _START, _END = 8, 20, 4  # half cycles, of the CPUs this was measured on
_INSTRUCTION = 100  # half cycles it takes to begin one
