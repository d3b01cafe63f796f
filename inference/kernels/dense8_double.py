"""8-bit dense layers, scaled as LiteRT does those."""

from __future__ import annotations

from reflexarc.inference.instructions import DENSE8_DOUBLE
from reflexarc.inference.kernels._conv8 import kernels
from reflexarc.inference.kernels._finish import DOUBLE
from reflexarc.inference.tiles import DENSE_TILES

KERNELS = kernels(DENSE8_DOUBLE, DENSE_TILES, DOUBLE)
