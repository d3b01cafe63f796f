"""A dense layer computes only what is read of it: slices of its output become slices of its weights."""

from __future__ import annotations

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node
from reflexarc.inference.graph.moves import move, move_quant


def narrow(graph: Graph) -> Graph:
    """Where all readers of a dense layer slice its last axis, one smaller layer for each of them."""
    editor = Editor(graph)
    for layer in editor.nodes():
        output = layer.outputs[0]
        slices = editor.users(output)
        last = len(editor.tensors[output].shape) - 1
        if layer.op != "dense" or output in editor.outputs or not slices:
            continue
        if all(user.op == "slice" and user.integer("axis") == last for user in slices):
            for user in slices:
                _split(editor, layer, user)
    return editor.finish()


def _split(editor: Editor, layer: Node, user: Node) -> None:
    attrs = {"axis": 0, "start": user.integer("start"), "size": user.integer("size")}
    inputs = [layer.inputs[0]]
    for name in layer.inputs[1:]:
        tensor = editor.tensors[name]
        if tensor.data is None:
            return
        quant = tensor.quant and move_quant("slice", attrs, tensor.shape, tensor.quant)
        inputs.append(editor.constant(name, move("slice", attrs, tensor.data), quant))
    output = editor.tensors[user.outputs[0]]
    editor.remove(user)
    editor.add(
        "dense",
        inputs,
        layer.attrs,
        name=layer.name,
        output=output.name,
        dtype=output.dtype,
        quant=output.quant,
    )
