"""SIMD vectors as numba values (build time only)."""
