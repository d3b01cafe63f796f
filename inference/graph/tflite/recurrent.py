"""The unidirectional LSTM, step by step: two dense layers and the two operations of `ops_recurrent` a step.

What it keeps from run to run (the hidden and the cell state) are states of the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np

from reflexarc.inference.graph import fixed
from reflexarc.inference.graph.ir import Attr, QuantParams, Tensor
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.registry import Handlers
from reflexarc.inference.graph.tflite.tensors import dtype_of, quant_of

HANDLERS = Handlers()
_X_WEIGHTS, _H_WEIGHTS, _BIASES = range(1, 5), range(5, 9), range(12, 16)
_REFUSED = {
    9: "a peephole",
    10: "a peephole",
    11: "a peephole",
    16: "a projection",
    17: "a projection",
} | dict.fromkeys(range(20, 24), "layer normalization")
_HIDDEN, _CELL, _TANH, _MAX_STEPS = 18, 19, 4, 4096


@dataclass(frozen=True)
class _Layer:
    """Weights of the four gates together, [4 H, n], and what goes with them."""

    weights: str
    bias: str
    scaling: str | None


@HANDLERS("UNIDIRECTIONAL_SEQUENCE_LSTM")
def _lstm(context: Context) -> None:
    for index, what in _REFUSED.items():
        if context.has(index):
            raise context.unsupported(what)
    if not context.has(1) or context.option("activation") != _TANH:
        raise context.unsupported("a coupled input gate, or another activation than tanh")
    x = context.tensor(0)
    if len(x.shape) != 3 or x.dtype not in ("f32", "i8"):
        raise context.unsupported(f"x {x}")
    name = x.name
    if not context.option("time_major"):
        name = context.emit("transpose", [name], {"perm": (1, 0, 2)}, part="time")
    hidden, cell = (context.kept_input(index) for index in (_HIDDEN, _CELL))
    result, hidden, cell = _run(context, name, hidden, cell)
    context.assign_input(_HIDDEN, hidden)
    context.assign_input(_CELL, cell)
    if not context.option("time_major"):
        result = context.emit("transpose", [result], {"perm": (1, 0, 2)}, quant=context.result_quant())
    context.give(result)


def _run(context: Context, x: str, hidden: str, cell: str) -> tuple[str, str, str]:
    """All steps on x [T, N, I]: the hidden states [T, N, H], and the last hidden and cell state."""
    tensors = context.editor.tensors
    count, rows, width = tensors[x].shape
    units = tensors[cell].shape[1]
    if count > _MAX_STEPS:
        raise context.unsupported(f"a sequence of {count} steps, more than {_MAX_STEPS},")
    is_fixed = tensors[x].dtype == "i8"
    inner = _layer(context, _X_WEIGHTS, _BIASES, tensors[x].quant, "input")
    outer = _layer(context, _H_WEIGHTS, None, tensors[hidden].quant, "hidden")
    cell_attrs, hidden_attrs = _fixed_attrs(context) if is_fixed else (_clip(context, 1.0), {})
    flat = context.emit("reshape", [x], {"shape": (count * rows, width)}, part="rows", quant=tensors[x].quant)
    shares = _gates(context, flat, inner, "input", 16)
    y = context.result_quant()
    results = []
    for step in range(count):
        attrs: dict[str, Attr] = {"starts": (step * rows, 0), "sizes": (rows, 4 * units), "steps": (1, 1)}
        gx = context.emit("strided_slice", [shares], attrs, part=f"gates{step}")
        gh = _gates(context, hidden, outer, f"recurrent{step}", 32)
        quant = tensors[cell].quant
        cell = context.emit(
            "lstm_cell",
            [gx, gh, cell],
            cell_attrs,
            part=f"cell{step}",
            dtype=tensors[cell].dtype,
            quant=quant,
        )
        hidden = context.emit(
            "lstm_hidden",
            [gx, gh, cell],
            hidden_attrs,
            part=f"hidden{step}",
            dtype="i8" if is_fixed else "f32",
            quant=y,
        )
        results.append(
            context.emit("reshape", [hidden], {"shape": (1, rows, units)}, part=f"step{step}", quant=y)
        )
    part = "" if context.option("time_major") else "steps"
    return context.emit("concat", results, {"axis": 0}, part=part, quant=y), hidden, cell


def _gates(context: Context, x: str, layer: _Layer, part: str, bits: int) -> str:
    if layer.scaling is None:
        attrs: dict[str, Attr] = {"activation": "none"}
        if context.editor.tensors[layer.weights].dtype == "i8":
            attrs["asymmetric"] = 0
        return context.emit("dense", [x, layer.weights, layer.bias], attrs, part=part)
    top = (1 << (bits - 1)) - 1
    attrs = {"rounding": "fixed", "qmin": -top - 1, "qmax": top}
    return context.emit("dense", [x, layer.weights, layer.bias, layer.scaling], attrs, part=part, dtype="i32")


def _layer(
    context: Context, weights: range, biases: range | None, x: QuantParams | None, part: str
) -> _Layer:
    """The constants of four gates joined."""
    gates = [context.tensor(index) for index in weights]
    data = [gate.data for gate in gates if gate.data is not None]
    if len(data) != 4 or len({(gate.shape, gate.dtype) for gate in gates}) != 1 or len(gates[0].shape) != 2:
        raise context.unsupported("weights that are not constant, or not alike")
    units = gates[0].shape[0]
    quant = _joined(context, gates) if gates[0].dtype == "i8" else None
    base = f"{context.result().name}:{part}"
    joined = context.constant(f"{base}:weights", np.concatenate(data), quant)
    dtype = np.dtype(np.int32 if x is not None else np.float32)
    bias = np.zeros(4 * units, dtype)
    if biases is not None and any(context.has(index) for index in biases):
        parts = [context.value(index) for index in biases]
        if any(b.dtype != dtype or b.shape != (units,) for b in parts):
            raise context.unsupported("biases of another type or size")
        bias = np.concatenate(parts)
    scaling = None
    if x is not None:
        if quant is None:
            raise context.unsupported("float weights for integer activations")
        ratios = context.scale(x)[0] * quant.scale / np.float32(2.0**-12)
        pairs = np.array([fixed.multiplier(float(ratio)) for ratio in ratios], np.int32)
        scaling = context.constant(f"{base}:scaling", pairs)
    return _Layer(joined, context.constant(f"{base}:bias", bias), scaling)


def _joined(context: Context, gates: list[Tensor]) -> QuantParams:
    scales = [np.full(gate.shape[0], context.scale(gate.quant)[0], np.float32) for gate in gates]
    if any(context.scale(gate.quant)[1] for gate in gates):
        raise context.unsupported("weights with a zero point")
    scale = np.concatenate(scales)
    return QuantParams(scale, np.zeros(scale.size, np.int32), 0)


def _fixed_attrs(context: Context) -> tuple[dict[str, Attr], dict[str, Attr]]:
    """Attributes of `lstm_cell` and of `lstm_hidden`."""
    scale = float(context.scale(quant_of(context.declared(_CELL)))[0])
    power = round(log2(scale))
    if scale != 2.0**power or not -15 <= power <= -9 or dtype_of(context.declared(_CELL)) != "i16":
        raise context.unsupported(f"a cell state of scale {scale:g}, not a power of 2")
    intermediates = context.operator.intermediates
    if len(intermediates) != 5 or intermediates[4] < 0:
        raise context.unsupported("no scale of the hidden state")
    hidden = context.scale(quant_of(context.graph.tensors[intermediates[4]]))[0]
    m, n = fixed.multiplier(float(np.float32(2.0**-15) / hidden * np.float32(2.0**-15)))
    last: dict[str, Attr] = {"multiplier": (m,), "shift": (n,), "qmin": -128, "qmax": 127}
    kind: dict[str, Attr] = {"rounding": "fixed", "cell": power}
    return kind | _clip(context, scale), kind | last


def _clip(context: Context, scale: float) -> dict[str, Attr]:
    clip = float(context.option("cell_clip"))
    if clip <= 0:
        return {"clip": 0}
    return {"clip": clip if scale == 1.0 else min(int(np.float32(clip) / np.float32(scale)), 32767)}
