"""8-bit depthwise convolution, scaled as ONNX Runtime does."""

from __future__ import annotations

from reflexarc.inference.instructions import DEPTHWISE8
from reflexarc.inference.kernels._depthwise import kernels
from reflexarc.inference.kernels._finish import REAL

KERNELS = kernels(DEPTHWISE8, REAL)
