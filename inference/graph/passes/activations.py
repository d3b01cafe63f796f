"""Activations: x * sigmoid(x) is recognised, and one behind a layer goes into it."""

from __future__ import annotations

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node
from reflexarc.inference.graph.ops import ACTIVATIONS


def recognise_silu(graph: Graph) -> Graph:
    """mul(x, sigmoid(x)) as silu(x)."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op == "mul" and (x := _silu_of(editor, node)) is not None:
            output = node.outputs[0]
            editor.remove(node)
            editor.add("silu", [x], name=node.name, output=output)
    return editor.finish()


def fuse_activations(graph: Graph) -> Graph:
    """The only reader of a float layer, if it is one of `ACTIVATIONS`, into the layer's `activation`."""
    editor = Editor(graph)
    for node in editor.nodes():
        layer = editor.producer(node.inputs[0])
        if node.op not in ACTIVATIONS or layer is None or editor.only_user(node.inputs[0]) is not node:
            continue
        if layer.attrs.get("activation") == "none":
            output = node.outputs[0]
            editor.remove(node)
            editor.remove(layer)
            attrs = layer.attrs | node.attrs | {"activation": node.op}
            editor.add(layer.op, layer.inputs, attrs, name=layer.name, output=output)
    return editor.finish()


def _silu_of(editor: Editor, node: Node) -> str | None:
    for x, gate in (node.inputs, node.inputs[::-1]):
        maker = editor.producer(gate)
        if maker is not None and maker.op == "sigmoid" and maker.inputs == [x]:
            return x
    return None
