"""8-bit convolution and dense layers, scaled as ONNX Runtime does."""

from __future__ import annotations

from reflexarc.inference.instructions import CONV8
from reflexarc.inference.kernels._conv8 import kernels
from reflexarc.inference.kernels._finish import REAL
from reflexarc.inference.simd import TIER
from reflexarc.inference.tiles import conv8_tiles

KERNELS = kernels(CONV8, conv8_tiles(TIER), REAL)
