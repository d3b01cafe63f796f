"""Sums, means and extremes over axes; the place of an extreme."""

from __future__ import annotations

from math import prod

from reflexarc.inference.graph import fixed
from reflexarc.inference.graph.ir import Attr
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.registry import Handlers

HANDLERS = Handlers()
_OPS = {"MEAN": "reduce_mean", "SUM": "reduce_sum"} | {
    f"REDUCE_{name}": f"reduce_{name.lower()}" for name in ("PROD", "MAX", "MIN", "ANY", "ALL")
}


def mean_multiplier(ratio: float, count: int) -> tuple[int, int]:
    """The multiplier and shift of a ratio of scales divided by a count, as LiteRT divides."""
    m, n = fixed.multiplier(ratio)
    shift = min(count.bit_length() - 1, 32, 31 + n)
    return (m << shift) // count, n - shift


@HANDLERS(*_OPS)
def _reduce(context: Context) -> None:
    x, op = context.tensor(0), _OPS[context.operator.name]
    rank, y = len(x.shape), context.result_quant()
    axes = tuple(sorted({context.axis(axis, rank) for axis in context.integers(1)}))
    kept = tuple(1 if axis in axes else n for axis, n in enumerate(x.shape))
    shape = kept if context.option("keep_dims") else tuple(n for i, n in enumerate(x.shape) if i not in axes)
    attrs: dict[str, Attr] = {"axes": axes}
    if not axes:
        context.give(context.emit("reshape", [x.name], {"shape": x.shape}, quant=y))
        return
    if x.dtype == "i8" and op in ("reduce_mean", "reduce_sum"):
        (sx, _), (sy, _) = context.scale(x.quant), context.scale(y)
        ratio, count = float(sx) / float(sy), prod(x.shape[axis] for axis in axes)
        m, n = fixed.multiplier(ratio) if op == "reduce_sum" else mean_multiplier(ratio, count)
        attrs |= {"rounding": "fixed", "multiplier": (m,), "shift": (n,), "qmin": -128, "qmax": 127}
    elif x.dtype == "i8" and (x.quant is None or not x.quant.same(y)):
        raise context.unsupported("a result of another scale")
    part = "" if shape == kept else "kept"
    if op == "reduce_mean" and x.dtype == "f32" and rank == 4 and axes == (1, 2):
        op, attrs = "global_average_pool", {}
    name = context.emit(op, [x.name], attrs, part=part, quant=y)
    context.give(name if shape == kept else context.emit("reshape", [name], {"shape": shape}, quant=y))


@HANDLERS("ARG_MAX", "ARG_MIN")
def _place(context: Context) -> None:
    x, (axis,) = context.tensor(0), context.integers(1) or (0,)
    axis = context.axis(axis, len(x.shape))
    shape = tuple(n for i, n in enumerate(x.shape) if i != axis)
    name = context.emit(context.operator.name.lower(), [x.name], {"axes": (axis,)}, part="kept", dtype="i32")
    if context.result_dtype() == "i64":
        name = context.emit("cast", [name], part="long", dtype="i64")
    context.give(context.emit("reshape", [name], {"shape": shape}))
