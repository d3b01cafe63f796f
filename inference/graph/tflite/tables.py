"""Functions of one 8-bit number as tables, each as LiteRT's reference kernel computes it.

Sources: the reference kernels' `common.h` (tables of float functions), `activations.cc`, `hard_swish.h`,
`leaky_relu.h`, `requantize.h`. All on the int8 form; a table's entry i is for q = i - 128.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph import fixed
from reflexarc.inference.graph.arithmetic import round_away
from reflexarc.inference.graph.ir import QuantParams
from reflexarc.inference.graph.tflite.context import Context

Table = NDArray[np.int8]
Floats = NDArray[np.float32]
Function = Callable[[Floats], NDArray[Any]]

EVERY = np.arange(-128, 128, dtype=np.int64)
F = np.float32


def steps(context: Context, quant: QuantParams | None, value: float) -> int:
    """The int8 that stands for a float, as the bound of a fused activation."""
    scale, zero = context.scale(quant)
    return int(np.clip(round_away(np.array(F(value) / scale, F)) + zero, -128, 127))


def _int8(q: NDArray[Any]) -> Table:
    """The nearest int8."""
    table: Table = np.clip(q, -128, 127).astype(np.int8)
    return table


def float_table(context: Context, x: QuantParams | None, y: QuantParams | None, function: Function) -> Table:
    """Dequantize, a float32 function, quantize by the reciprocal of the scale."""
    (sx, zx), (sy, zy) = context.scale(x), context.scale(y)
    with np.errstate(all="ignore"):
        values = np.asarray(function(sx * (EVERY - zx).astype(F)), F)
        result = round_away(values * (F(1) / sy)) + F(zy)
    return _int8(np.where(np.isnan(result), 0, result))


def requantize_table(context: Context, x: QuantParams | None, y: QuantParams | None) -> Table:
    """The same number at another scale."""
    (sx, zx), (sy, zy) = context.scale(x), context.scale(y)
    scaled = fixed.scale(EVERY - zx, *fixed.multiplier(float(sx) / float(sy)))
    return _int8(scaled + zy)


def relu_table(
    context: Context, x: QuantParams | None, y: QuantParams | None, low: float, high: float | None
) -> Table:
    """Clamped between two values."""
    (sx, zx), (sy, zy) = context.scale(x), context.scale(y)
    scaled = fixed.scale(EVERY - zx, *fixed.multiplier(float(sx / sy))) + zy
    bound = 127 if high is None else steps(context, y, high)
    return _int8(np.clip(scaled, steps(context, y, low), bound))


def leaky_relu_table(context: Context, x: QuantParams | None, y: QuantParams | None, alpha: float) -> Table:
    """x where x >= 0, else alpha * x."""
    (sx, zx), (sy, zy) = context.scale(x), context.scale(y)
    if alpha < 0:
        raise context.unsupported(f"alpha {alpha}")
    q = EVERY - zx
    positive = fixed.scale(q, *fixed.multiplier(float(sx / sy)))
    negative = fixed.scale(q, *fixed.multiplier(float(sx * F(alpha) / sy)))
    return _int8(np.where(q >= 0, positive, negative) + zy)


def hard_swish_table(context: Context, x: QuantParams | None, y: QuantParams | None) -> Table:
    """x * min(max(x + 3, 0), 6) / 6 in 16-bit arithmetic."""
    (sx, zx), (sy, zy) = context.scale(x), context.scale(y)
    fine = F(1 / 128) * sx
    m, n = _short_multiplier(float(fine / sy))
    k, e = _short_multiplier(float(fine / F(3 / 32768)))
    if n > 0:
        raise context.unsupported(f"scale {sx:g} to {sy:g}")
    q = fixed.wrap((EVERY - zx) * 128, 16)
    gate = fixed.double(q, e - 1, 16) if e > 0 else q
    gate = fixed.high(gate, k, 16)
    if e > 0:
        gate = fixed.double(gate, 1, 16)
    elif e < 0:
        gate = fixed.halve(gate, -e)
    gate = (gate + (1 << 15)) >> 1
    product = gate * fixed.high(q, m, 16)
    result = np.sign(product) * (np.abs(product) >> 15)
    return _int8(fixed.halve(result, -n) + zy)


def _short_multiplier(real: float) -> tuple[int, int]:
    m, n = fixed.multiplier(real)
    return min((m + (1 << 15)) >> 16, (1 << 15) - 1), n
