"""A dense layer takes its input as it lies: a transpose before it becomes an order of its columns."""

from __future__ import annotations

import numpy as np

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node
from reflexarc.inference.graph.movement import Movement


def absorb(graph: Graph) -> Graph:
    """Flatten after a channels-last image, as most classifiers end, without a transpose."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op == "dense" and editor.value(node.inputs[1]) is not None:
            _absorb(editor, node)
    return editor.finish()


def _absorb(editor: Editor, node: Node) -> None:
    x, weights = editor.tensors[node.inputs[0]], editor.tensors[node.inputs[1]]
    chain: list[Node] = []
    name = x.name
    while (maker := editor.producer(name)) and maker.op in ("reshape", "transpose"):
        chain.append(maker)
        name = maker.inputs[0]
    due = Movement.none(editor.tensors[name].shape)
    for move in reversed(chain):
        due = (
            due.reshape(move.integers("shape"))
            if move.op == "reshape"
            else due.transpose(move.integers("perm"))
        )
    if not due.steps or len(x.shape) != 2 or x.shape[0] != 1 or weights.data is None:
        return
    came_from = due.apply(np.arange(x.size).reshape(due.base)).ravel()
    data = np.empty_like(weights.data)
    data[:, came_from] = weights.data
    order = editor.constant(weights.name, data, weights.quant)
    output = editor.tensors[node.outputs[0]]
    editor.remove(node)
    flat = editor.add(
        "reshape", [name], {"shape": x.shape}, name=x.name, output=f"{x.name}:flat", quant=x.quant
    )
    inputs = [flat, order, *node.inputs[2:]]
    editor.add(
        "dense",
        inputs,
        node.attrs,
        name=node.name,
        output=output.name,
        dtype=output.dtype,
        quant=output.quant,
    )
