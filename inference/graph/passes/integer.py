"""Dequantize, compute, quantize becomes one integer operation."""

from __future__ import annotations

from math import inf, prod

import numpy as np

from reflexarc.inference.graph.arithmetic import quantize
from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node, QuantParams, Tensor
from reflexarc.inference.graph.passes.patterns import dequantized, fixed_value

_MAX_TERMS = (1 << 31) // (255 * 128)
"""Products of an int8 activation, less its zero point, and an int8 weight that an int32 surely holds."""


def integer(graph: Graph) -> Graph:
    """Fuse where every operand is int8 and the only reader quantizes to int8, at most a clamp between."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op in ("conv", "dense"):
            _layer(editor, node)
        elif node.op in ("add", "mul", "average_pool", "global_average_pool"):
            _simple(editor, node)
    return editor.finish()


def _simple(editor: Editor, node: Node) -> None:
    operands = [_operand(editor, name) for name in node.inputs]
    if all(operands):
        _replace(editor, node, [tensor.name for tensor in operands if tensor])


def _layer(editor: Editor, node: Node) -> None:
    x, w = (dequantized(editor, name) for name in node.inputs[:2])
    bias = fixed_value(editor, node.inputs[2])
    if x is None or w is None or bias is None or _operand(editor, node.inputs[0]) is None:
        return
    if w.data is None or w.dtype != "i8" or w.quant is None or x.quant is None:
        return
    if w.quant.axis not in (None, 0) or w.quant.zero_point.any() or prod(w.shape[1:]) > _MAX_TERMS:
        return
    if node.attrs["activation"] != "none":
        return
    b = _bias(editor, node, QuantParams(*_accumulator(x.quant, w.quant)))
    if b is not None:
        _replace(editor, node, [x.name, w.name, b])


def _operand(editor: Editor, name: str) -> Tensor | None:
    """The int8 tensor, of one scale, that the operand is the dequantization of."""
    tensor = dequantized(editor, name)
    if tensor is None or tensor.dtype != "i8" or tensor.quant is None or tensor.quant.axis is not None:
        return None
    return tensor


def _accumulator(x: QuantParams, w: QuantParams) -> tuple[np.ndarray, np.ndarray, int | None]:
    scale = (x.scale * w.scale).astype(np.float32)
    return scale, np.zeros(scale.shape, np.int32), w.axis


def _bias(editor: Editor, node: Node, quant: QuantParams) -> str | None:
    """The bias at the accumulator's scale: its own integers where it has that scale already."""
    stated = dequantized(editor, node.inputs[2])
    floats = fixed_value(editor, node.inputs[2])
    if not (np.isfinite(quant.scale).all() and (quant.scale > 0).all()) or floats is None:
        return None
    if stated is not None and stated.dtype == "i32" and stated.quant is not None:
        close = np.allclose(np.broadcast_to(stated.quant.scale, floats.shape), quant.scale, rtol=1e-5, atol=0)
        if close and not stated.quant.zero_point.any() and stated.data is not None:
            return editor.constant(stated.name, stated.data, quant)
    return editor.constant(node.inputs[2], quantize(floats, quant, "i32"), quant)


def _replace(editor: Editor, node: Node, inputs: list[str]) -> None:
    """Put the integer operation in place of the node, the clamp and the quantization behind it."""
    clamp = editor.only_user(node.outputs[0])
    if clamp is not None and clamp.op in ("relu", "clip"):
        reader = editor.only_user(clamp.outputs[0])
    else:
        clamp, reader = None, clamp
    if reader is None or reader.op != "quantize" or "rounding" in reader.attrs:
        return
    output = editor.tensors[reader.outputs[0]]
    if output.dtype != "i8" or output.quant is None or output.quant.axis is not None:
        return
    attrs = {key: value for key, value in node.attrs.items() if key != "activation"}
    attrs["qmin"], attrs["qmax"] = _range(clamp, output.quant)
    for gone in (reader, clamp, node):
        if gone is not None:
            editor.remove(gone)
    editor.add(node.op, inputs, attrs, name=node.name, output=output.name, dtype="i8", quant=output.quant)


def _range(clamp: Node | None, quant: QuantParams) -> tuple[int, int]:
    """The int8 range of the clamp's; quantization is monotonic, so clamping after it is the same."""
    low, high = -inf, inf
    if clamp is not None:
        low, high = (0.0, inf) if clamp.op == "relu" else (clamp.number("low"), clamp.number("high"))
    ends = quantize(np.array([low, high], np.float32), quant, "i8")
    return int(ends[0]), int(ends[1])
