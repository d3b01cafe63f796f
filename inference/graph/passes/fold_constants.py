"""What constants alone decide is computed now."""

from __future__ import annotations

import numpy as np

from reflexarc.inference.graph.arithmetic import dequantize, quantize
from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node
from reflexarc.inference.graph.moves import MOVES, move, move_quant
from reflexarc.inference.graph.passes.patterns import fixed_value

_ARITHMETIC = {"add": np.add, "mul": np.multiply}


def fold_constants(graph: Graph) -> Graph:
    """Fold movements, arithmetic and quantization of constants; a movement goes through a dequantization."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op in MOVES:
            _fold_move(editor, node)
        elif node.op == "quantize":
            _fold_quantize(editor, node)
        elif node.op in _ARITHMETIC:
            _fold_arithmetic(editor, node)
    return editor.finish()


def dequantize_constants(graph: Graph) -> Graph:
    """Turn into floats the integer constants that no integer operation took."""
    editor = Editor(graph)
    for node in editor.nodes():
        tensor = editor.tensors[node.inputs[0]]
        if node.op == "dequantize" and tensor.data is not None and tensor.quant is not None:
            floats = editor.constant(tensor.name, dequantize(tensor.data, tensor.quant))
            editor.replace(node, floats)
    return editor.finish()


def _fold_move(editor: Editor, node: Node) -> None:
    maker = editor.producer(node.inputs[0])
    through = maker is not None and maker.op == "dequantize"
    source = editor.tensors[maker.inputs[0] if maker and through else node.inputs[0]]
    if source.data is None:
        return
    quant = source.quant and move_quant(node.op, node.attrs, source.shape, source.quant)
    if source.quant is not None and quant is None:
        return
    moved = editor.constant(source.name, move(node.op, node.attrs, source.data), quant)
    if through:
        output = node.outputs[0]
        editor.remove(node)
        editor.add("dequantize", [moved], name=node.name, output=output, dtype="f32")
    else:
        editor.replace(node, moved)


def _fold_quantize(editor: Editor, node: Node) -> None:
    data, output = editor.value(node.inputs[0]), editor.tensors[node.outputs[0]]
    if data is not None and output.quant is not None:
        integers = quantize(data, output.quant, output.dtype, node.attrs.get("rounding"))
        editor.replace(node, editor.constant(output.name, integers, output.quant))


def _fold_arithmetic(editor: Editor, node: Node) -> None:
    a, b = (fixed_value(editor, name) for name in node.inputs)
    size = editor.tensors[node.outputs[0]].size
    if a is None or b is None or size > max(a.size, b.size):
        return
    with np.errstate(all="ignore"):
        result = _ARITHMETIC[node.op](a, b)
    editor.replace(node, editor.constant(f"{node.outputs[0]}:folded", result))
