"""exp, tanh and the logistic function, the same polynomials on every tier.

exp is Cephes' expf (argument reduced by a two-part ln 2, degree 5 remainder); tanh is Cephes' tanhf. Errors
are below 3 units in the last place over the whole range, and NaN stays NaN.
"""

from typing import Any

from reflexarc.inference.simd.arithmetic import (
    absolute,
    bits_f32,
    bits_i32,
    fma,
    maximum,
    minimum,
    round_i32,
    select,
    to_f32,
)
from reflexarc.inference.simd.vector import helper

_LOG2E = 1.44269504088896341
_LN2_HIGH, _LN2_LOW = 0.693359375, -2.12194440e-4
_LOWEST, _HIGHEST = -87.33654, 88.72283  # ln of the least normal and of the largest float32


@helper
def exp(x: Any) -> Any:
    """e**x of a float vector: 0 below the least normal number, infinity above the largest."""
    inside = maximum(_LOWEST, minimum(_HIGHEST, x))
    n = round_i32(inside * _LOG2E)
    k = to_f32(n)
    r = fma(k, -_LN2_LOW, fma(k, -_LN2_HIGH, inside))
    p = fma(r, 1.9875691500e-4, 1.3981999507e-3)
    p = fma(p, r, 8.3334519073e-3)
    p = fma(p, r, 4.1665795894e-2)
    p = fma(p, r, 1.6666665459e-1)
    p = fma(p, r, 5.0000001201e-1)
    p = fma(p, r * r, r + 1.0)
    half = n >> 1  # 2**n in two factors, since n reaches 128
    y = p * bits_f32((half + 127) << 23) * bits_f32((n - half + 127) << 23)
    y = select(x < _LOWEST, 0.0, y)
    return select(x > _HIGHEST, float("inf"), y)


@helper
def sigmoid(x: Any) -> Any:
    """1 / (1 + e**-x) of a float vector."""
    return 1.0 / (exp(-x) + 1.0)


@helper
def tanh(x: Any) -> Any:
    """The hyperbolic tangent of a float vector: an odd polynomial near 0, from exp beyond 0.625."""
    size = absolute(x)
    z = x * x
    p = fma(z, -5.70498872745e-3, 2.06390887954e-2)
    p = fma(p, z, -5.37397155531e-2)
    p = fma(p, z, 1.33314422036e-1)
    p = fma(p, z, -3.33332819422e-1)
    near = fma(p * z, x, x)
    far = 1.0 - 2.0 / (exp(size + size) + 1.0)
    sign = bits_i32(x) & -0x80000000
    return select(size < 0.625, near, bits_f32(bits_i32(far) | sign))
