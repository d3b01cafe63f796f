"""What moves or selects elements does so on integers: dequantization comes after it, not before."""

from __future__ import annotations

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph
from reflexarc.inference.graph.moves import MOVES
from reflexarc.inference.graph.passes.patterns import dequantized


def sink_dequantize(graph: Graph) -> Graph:
    """Swap a dequantization with the movement, slice or maximum that reads it."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op not in (*MOVES, "max_pool"):
            continue
        integers = dequantized(editor, node.inputs[0])
        if (
            integers is None
            or integers.quant is None
            or integers.quant.axis is not None
            or integers.dtype != "i8"
        ):
            continue
        output = node.outputs[0]
        editor.remove(node)
        name = f"{output}:integer"
        name = editor.add(
            node.op, [integers.name], node.attrs, name=node.name, output=name, quant=integers.quant
        )
        editor.add("dequantize", [name], name=node.name, output=output, dtype="f32")
    return editor.finish()
