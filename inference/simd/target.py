"""The tier this process builds kernels for, fixed when simd is imported (see `isa.target`)."""

from reflexarc.inference.isa import target

TIER = target()
LANES = TIER.lanes
"""32-bit lanes of a vector register."""
WIDE = 16
"""Virtual lanes of every float reduction, whatever the register width."""
BIAS = TIER.bias
"""Stored byte of an 8-bit activation minus its value."""
HAS_FMA = TIER.has_fma
