"""uint8 becomes int8: the same numbers, 128 lower, with a zero point 128 lower."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node, QuantParams


def signed(graph: Graph) -> Graph:
    """Relabel uint8 between a quantization and its dequantizations, and uint8 constants."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op == "quantize":
            _relabel(editor, node)
        elif node.op == "dequantize":
            _constant(editor, node)
    return editor.finish()


def _shifted(quant: QuantParams) -> QuantParams:
    return replace(quant, zero_point=(quant.zero_point - 128).astype(np.int32))


def _relabel(editor: Editor, node: Node) -> None:
    output = editor.tensors[node.outputs[0]]
    if output.dtype != "u8" or output.quant is None or output.name in editor.outputs:
        return
    if all(user.op == "dequantize" for user in editor.users(output.name)):
        editor.tensors[output.name] = replace(output, dtype="i8", quant=_shifted(output.quant))


def _constant(editor: Editor, node: Node) -> None:
    tensor = editor.tensors[node.inputs[0]]
    if tensor.dtype != "u8" or tensor.data is None or tensor.quant is None:
        return
    data = (tensor.data ^ np.uint8(0x80)).view(np.int8)
    constant = editor.constant(tensor.name, data, _shifted(tensor.quant))
    output = node.outputs[0]
    editor.remove(node)
    editor.add("dequantize", [constant], name=node.name, output=output, dtype="f32")
