"""8-bit convolution and dense layers, scaled as LiteRT does."""

from __future__ import annotations

from reflexarc.inference.instructions import CONV8_FIXED
from reflexarc.inference.kernels._conv8 import kernels
from reflexarc.inference.kernels._finish import FIXED
from reflexarc.inference.simd import TIER
from reflexarc.inference.tiles import conv8_tiles

KERNELS = kernels(CONV8_FIXED, conv8_tiles(TIER), FIXED)
