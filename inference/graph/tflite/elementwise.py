"""Arithmetic, comparison, functions of one number, softmax."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reflexarc.inference.graph import fixed
from reflexarc.inference.graph.ir import Attr, Tensor
from reflexarc.inference.graph.ops_elementwise import COMPARISONS
from reflexarc.inference.graph.tflite import tables
from reflexarc.inference.graph.tflite.activation import BOUNDS, activated, integer_range, is_none, result_part
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.registry import Handlers

HANDLERS = Handlers()
F = np.float32

_PLAIN = {
    "DIV": "div",
    "FLOOR_DIV": "floor_div",
    "FLOOR_MOD": "floor_mod",
    "SQUARED_DIFFERENCE": "squared_difference",
    "POW": "power",
    "LOGICAL_AND": "logical_and",
    "LOGICAL_OR": "logical_or",
    "PRELU": "prelu",
} | {name.upper(): name for name in COMPARISONS}
_FUSED = ("ADD", "SUB", "MUL", "DIV")
_SAME_NAME = (
    "NEG",
    "ABS",
    "SIGN",
    "SQUARE",
    "SQRT",
    "RSQRT",
    "EXP",
    "LOG",
    "SIN",
    "COS",
    "FLOOR",
    "CEIL",
    "ROUND",
)
_UNARY = {name: name.lower() for name in _SAME_NAME} | {
    "LOGISTIC": "sigmoid",
    "TANH": "tanh",
    "ELU": "elu",
    "HARD_SWISH": "hard_swish",
    "LEAKY_RELU": "leaky_relu",
    "LOGICAL_NOT": "logical_not",
}
_RELUS = {"RELU": 1, "RELU_N1_TO_1": 2, "RELU6": 3}


def _logistic(x: np.ndarray) -> np.ndarray:
    return F(1) / (F(1) + np.exp(-x.astype(np.float64)).astype(F))


_FLOAT_TABLES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "LOGISTIC": _logistic,
    "TANH": lambda x: np.tanh(x.astype(np.float64)),
    "ELU": lambda x: np.where(x < 0, np.expm1(x.astype(np.float64)), x),
    "EXP": lambda x: np.exp(x.astype(np.float64)),
}


def _pair(context: Context, op: str) -> list[Tensor]:
    operands = [context.tensor(0), context.tensor(1)]
    if operands[0].dtype != operands[1].dtype:
        raise context.unsupported(f"{operands[0].dtype} with {operands[1].dtype}")
    return operands


@HANDLERS("ADD", "SUB", "MUL")
def _arithmetic(context: Context) -> None:
    op = context.operator.name.lower()
    operands = _pair(context, op)
    if operands[0].dtype != "i8":
        _plain(context)
        return
    y = context.result_quant()
    (sa, _), (sb, _), (sy, _) = (context.scale(q) for q in (operands[0].quant, operands[1].quant, y))
    if op == "mul":
        ratios = [float(sa * sb / sy)]
    else:
        twice = float(F(2) * max(sa, sb))
        ratios = [float(sa) / twice, float(sb) / twice, twice / float(F(1 << 20) * sy)]
    pairs = [fixed.multiplier(ratio) for ratio in ratios]
    attrs: dict[str, Attr] = {
        "rounding": "fixed",
        "multiplier": tuple(m for m, _ in pairs),
        "shift": tuple(n for _, n in pairs),
    }
    attrs |= integer_range(context, y)
    context.give(context.emit(op, [t.name for t in operands], attrs, quant=y))


@HANDLERS(*_PLAIN)
def _plain(context: Context) -> None:
    name = context.operator.name
    op = _PLAIN.get(name, name.lower())
    operands = _pair(context, op)
    if operands[0].dtype == "i8":
        raise context.unsupported("8-bit arithmetic of this kind")
    fused = name in _FUSED
    part = result_part(context) if fused else ""
    result = context.emit(
        op, [t.name for t in operands], part=part, dtype="bool" if op in COMPARISONS else None
    )
    if fused and not is_none(context):
        if operands[0].dtype != "f32":
            raise context.unsupported(f"a fused activation on {operands[0].dtype}")
        result = activated(context, result)
    context.give(result)


@HANDLERS("MINIMUM", "MAXIMUM")
def _extreme(context: Context) -> None:
    op = context.operator.name.lower()
    operands = _pair(context, op)
    y = context.result_quant()
    if operands[0].dtype == "i8" and not all(t.quant and t.quant.same(y) for t in operands):
        raise context.unsupported("operands of several scales")
    context.give(context.emit(op, [t.name for t in operands], quant=y))


@HANDLERS("SELECT", "SELECT_V2")
def _select(context: Context) -> None:
    condition, a, b = (context.tensor(i) for i in range(3))
    name, y = condition.name, context.result_quant()
    if a.dtype == "i8" and not (a.quant and a.quant.same(y) and b.quant and b.quant.same(y)):
        raise context.unsupported("operands of several scales")
    if context.operator.name == "SELECT" and len(condition.shape) == 1 < len(a.shape):
        shape = (*condition.shape, *[1] * (len(a.shape) - 1))
        name = context.emit("reshape", [name], {"shape": shape}, part="condition")
    context.give(context.emit("select", [name, a.name, b.name], dtype=a.dtype, quant=y))


@HANDLERS(*_UNARY, "GELU", *_RELUS)
def _unary(context: Context) -> None:
    name, x = context.operator.name, context.tensor(0)
    if x.dtype == "i8":
        table = context.constant(f"{context.result().name}:table", _table(context, x))
        context.give(context.emit("lookup", [x.name, table], quant=context.result_quant()))
        return
    attrs: dict[str, Attr] = {}
    if name in _RELUS:
        low, high = BOUNDS[_RELUS[name]]
        op = "relu" if high is None else "clip"
        if high is not None and low is not None:
            attrs = {"low": low, "high": high}
    elif name == "GELU":
        op = "gelu_tanh" if context.option("approximate") else "gelu"
    else:
        op = _UNARY[name]
    if name in ("ELU", "LEAKY_RELU"):
        attrs["alpha"] = context.option("alpha") if name == "LEAKY_RELU" else 1.0
    context.give(context.emit(op, [x.name], attrs))


def _table(context: Context, x: Tensor) -> tables.Table:
    name, y = context.operator.name, context.result_quant()
    if name in _RELUS:
        low, high = BOUNDS[_RELUS[name]]
        return tables.relu_table(context, x.quant, y, low or 0.0, high)
    if name == "LEAKY_RELU":
        return tables.leaky_relu_table(context, x.quant, y, context.option("alpha"))
    if name == "HARD_SWISH":
        return tables.hard_swish_table(context, x.quant, y)
    if name not in _FLOAT_TABLES:
        raise context.unsupported("8 bits")
    return tables.float_table(context, x.quant, y, _FLOAT_TABLES[name])


@HANDLERS("SOFTMAX")
def _softmax(context: Context) -> None:
    x, beta = context.tensor(0), context.option("beta")
    if x.dtype == "i8":
        scale, _ = context.scale(x.quant)
        y = context.result_quant()
        if beta <= 0 or context.scale(y)[1] != -128 or abs(context.scale(y)[0] * 256 - 1) > 1e-3:
            raise context.unsupported(f"beta {beta} and result {y}, not q / 256,")
        table = context.constant(f"{context.result().name}:exp", fixed.exp_table(beta * float(scale)))
        context.give(context.emit("softmax", [x.name, table], {"rounding": "fixed"}, quant=y))
        return
    name = x.name
    if beta != 1:
        factor = context.constant(f"{context.result().name}:beta", np.array(beta, F))
        name = context.emit("mul", [name, factor], part="scaled")
    context.give(context.emit("softmax", [name]))


@HANDLERS("LOG_SOFTMAX", "L2_NORMALIZATION")
def _rows(context: Context) -> None:
    op = {"LOG_SOFTMAX": "log_softmax", "L2_NORMALIZATION": "l2_normalize"}[context.operator.name]
    if context.tensor(0).dtype != "f32":
        raise context.unsupported(f"{context.tensor(0).dtype}")
    part = result_part(context) if op == "l2_normalize" else ""
    result = context.emit(op, [context.name(0)], part=part)
    context.give(activated(context, result) if part else result)
