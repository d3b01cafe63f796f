"""Functions of one int8 become tables, and tables that only clamp go into the operation before them."""

from __future__ import annotations

import numpy as np

from reflexarc.inference.graph.arithmetic import UNARY, dequantize, quantize, unary
from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node
from reflexarc.inference.graph.passes.patterns import dequantized

_EVERY = np.arange(-128, 128, dtype=np.int8)
_MAX_CHAIN = 16


def lookup(graph: Graph) -> Graph:
    """Dequantize, any element-wise functions, quantize: one table of 256, or nothing if nothing changes."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op == "quantize" and editor.tensors[node.outputs[0]].dtype == "i8":
            _tabulate(editor, node)
    return editor.finish()


def fold_clamps(graph: Graph) -> Graph:
    """A table that only clamps narrows the range of the operation before it, if it alone reads that."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op == "lookup":
            _fold_clamp(editor, node)
    return editor.finish()


def _tabulate(editor: Editor, node: Node) -> None:
    chain: list[Node] = []
    name = node.inputs[0]
    while (maker := editor.producer(name)) and maker.op in UNARY and len(chain) < _MAX_CHAIN:
        chain.append(maker)
        name = maker.inputs[0]
    source, output = dequantized(editor, name), editor.tensors[node.outputs[0]]
    if source is None or source.dtype != "i8" or source.quant is None or source.quant.axis is not None:
        return
    if output.quant is None or output.quant.axis is not None:
        return
    if not chain and output.quant.same(source.quant):
        editor.replace(node, source.name)
        return
    values = dequantize(_EVERY, source.quant)
    for function in reversed(chain):
        values = unary(function, values)
    integers = quantize(values, output.quant, "i8", node.attrs.get("rounding"))
    table = editor.constant(f"{output.name}:table", integers)
    editor.remove(node)
    editor.add("lookup", [source.name, table], name=node.name, output=output.name, quant=output.quant)


def _fold_clamp(editor: Editor, node: Node) -> None:
    source, output = editor.tensors[node.inputs[0]], editor.tensors[node.outputs[0]]
    table = editor.value(node.inputs[1])
    maker = editor.producer(source.name)
    if table is None or output.quant is None or not output.quant.same(source.quant):
        return
    low, high = int(table[0]), int(table[-1])
    if low > high or not np.array_equal(table, np.clip(_EVERY, low, high)):
        return
    if (low, high) == (-128, 127):
        editor.replace(node, source.name)
        return
    if maker is None or "qmin" not in maker.attrs or editor.only_user(source.name) is not node:
        return
    bounds = np.clip([maker.integer("qmin"), maker.integer("qmax")], low, high)
    attrs = maker.attrs | {"qmin": int(bounds[0]), "qmax": int(bounds[1])}
    for gone in (node, maker):
        editor.remove(gone)
    editor.add(
        maker.op, maker.inputs, attrs, name=maker.name, output=output.name, dtype="i8", quant=output.quant
    )
