"""8-bit dense layers with i32 results, scaled as LiteRT does in recurrent layers."""

from __future__ import annotations

from reflexarc.inference.instructions import DENSE8_WIDE
from reflexarc.inference.kernels._conv8 import kernels
from reflexarc.inference.kernels._finish import FIXED
from reflexarc.inference.tiles import DENSE_TILES

KERNELS = kernels(DENSE8_WIDE, DENSE_TILES, FIXED, wide=True)
