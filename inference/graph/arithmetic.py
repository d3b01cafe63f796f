"""The scalar functions of `ops.py` on whole arrays, for constants and lookup tables."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import DTYPES, Node, QuantParams

Floats = NDArray[np.float32]

UNARY = ("relu", "clip", "elu", "silu", "sigmoid", "tanh")
"""Operations that map each element by itself, float to float."""


def per_channel(quant: QuantParams, rank: int) -> tuple[Floats, NDArray[np.int32]]:
    """Scale and zero point, shaped to broadcast against a tensor of that rank."""
    if quant.axis is None:
        return quant.scale, quant.zero_point
    shape = [1] * rank
    shape[quant.axis] = -1
    return quant.scale.reshape(shape), quant.zero_point.reshape(shape)


def quantize(x: Floats, quant: QuantParams, dtype: str, rounding: object = "even") -> NDArray[Any]:
    """Float to integer as the operation `quantize`; halves go to even numbers, or "away" from zero."""
    scale, zero = per_channel(quant, x.ndim)
    info = np.iinfo(DTYPES[dtype])
    with np.errstate(all="ignore"):
        exact = x / scale
        steps = np.rint(exact) if rounding != "away" else round_away(exact)
    steps = np.where(np.isnan(steps), -np.inf, steps).astype(np.float64)  # where +- zero point is exact
    integers: NDArray[Any] = np.clip(steps + zero, info.min, info.max).astype(DTYPES[dtype])
    return integers


def round_away(x: Floats) -> Floats:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.sign(x), whole).astype(np.float32)


def dequantize(q: NDArray[Any], quant: QuantParams) -> Floats:
    """Integer to float as the operation `dequantize`."""
    scale, zero = per_channel(quant, q.ndim)
    return ((q.astype(np.int64) - zero).astype(np.float32) * scale).astype(np.float32)


def unary(node: Node, x: Floats) -> Floats:
    """One of `UNARY`, computed in double precision and rounded once."""
    wide = x.astype(np.float64)
    with np.errstate(over="ignore"):
        if node.op == "relu":
            result = np.maximum(wide, 0)
        elif node.op == "clip":
            result = np.clip(wide, node.number("low"), node.number("high"))
        elif node.op == "elu":
            result = np.where(wide > 0, wide, node.number("alpha") * np.expm1(np.minimum(wide, 0)))
        elif node.op == "tanh":
            result = np.tanh(wide)
        else:
            result = 1 / (1 + np.exp(-wide))
            if node.op == "silu":
                result = result * wide
    return result.astype(np.float32)
