"""8-bit depthwise convolution, scaled as LiteRT does."""

from __future__ import annotations

from reflexarc.inference.instructions import DEPTHWISE8_FIXED
from reflexarc.inference.kernels._depthwise import kernels
from reflexarc.inference.kernels._finish import FIXED

KERNELS = kernels(DEPTHWISE8_FIXED, FIXED)
