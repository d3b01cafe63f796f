"""A product or a sum a channel after a convolution or a dense layer goes into its weights and bias.

Batch normalization arrives as such a pair, and so do the bias of a MatMul and the alpha and beta of a Gemm.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node, QuantParams
from reflexarc.inference.graph.passes.patterns import channel_values, dequantized, fixed_value

Floats = NDArray[np.float32]


def fold_affine(graph: Graph) -> Graph:
    """y * a + b, with a and b constants of a channel, into the layer that gives y."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op not in ("add", "mul"):
            continue
        for layer_side, other in ((0, 1), (1, 0)):
            layer = editor.producer(node.inputs[layer_side])
            if layer is not None and _fold(editor, layer, node, node.inputs[other]):
                break
    return editor.finish()


def _fold(editor: Editor, layer: Node, node: Node, other: str) -> bool:
    if layer.op not in ("conv", "dense") or layer.attrs.get("activation") != "none":
        return False
    output = editor.tensors[layer.outputs[0]]
    if editor.only_user(output.name) is not node or editor.tensors[node.outputs[0]].shape != output.shape:
        return False
    values = channel_values(fixed_value(editor, other), output.shape[-1])
    bias = fixed_value(editor, layer.inputs[2])
    if values is None or bias is None:
        return False
    weights = layer.inputs[1]
    if node.op == "mul":
        scaled = _scaled(editor, weights, values)
        if scaled is None:
            return False
        weights, bias = scaled, (bias * values).astype(np.float32)
    else:
        bias = (bias + values).astype(np.float32)
    result = node.outputs[0]
    editor.remove(node)
    editor.remove(layer)
    inputs = [layer.inputs[0], weights, editor.constant(layer.inputs[2], bias)]
    editor.add(layer.op, inputs, layer.attrs, name=layer.name, output=result)
    return True


def _scaled(editor: Editor, name: str, factor: Floats) -> str | None:
    """Weights times a factor for each output channel; quantized ones in their scales."""
    integers = dequantized(editor, name)
    if integers is None:
        weights = editor.value(name)
        if weights is None or weights.dtype != np.float32:
            return None
        along = factor.reshape(-1, *[1] * (weights.ndim - 1))
        return editor.constant(name, (weights * along).astype(np.float32))
    quant, data = integers.quant, integers.data
    if quant is None or data is None or quant.axis not in (None, 0):
        return None
    scale = np.broadcast_to(quant.scale, factor.shape) * factor
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return None
    zero_point = np.broadcast_to(quant.zero_point, factor.shape)
    params = QuantParams(scale.astype(np.float32), zero_point, 0)
    constant = editor.constant(integers.name, data, params)
    return editor.add("dequantize", [constant], name=name, output=f"{name}:folded", dtype="f32")
