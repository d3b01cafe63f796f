"""Float depthwise convolution, summed in the order of the weights."""

from __future__ import annotations

from reflexarc.inference.instructions import DEPTHWISE32
from reflexarc.inference.kernels._depthwise import kernels

KERNELS = kernels(DEPTHWISE32)
