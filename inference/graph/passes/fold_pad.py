"""Padding with zeros before a convolution becomes the convolution's own."""

from __future__ import annotations

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node, Tensor


def fold_pad(graph: Graph) -> Graph:
    """A pad of height and width that only convolutions read, into their `pads`."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op == "pad" and _is_zero(node, editor.tensors[node.inputs[0]]):
            users = editor.users(node.outputs[0])
            padded = node.outputs[0]
            if padded in editor.outputs or not users:
                continue
            if all(user.op == "conv" and user.inputs[1:].count(padded) == 0 for user in users):
                for user in users:
                    _fold(editor, node, user)
    return editor.finish()


def _is_zero(node: Node, x: Tensor) -> bool:
    """Whether it pads an image at its sides with what stands for 0."""
    before, after = node.integers("before"), node.integers("after")
    if len(before) != 4 or any((before[0], before[3], after[0], after[3])):
        return False
    return node.number("value") == (0 if x.quant is None else int(x.quant.zero_point[0]))


def _fold(editor: Editor, pad: Node, conv: Node) -> None:
    before, after = pad.integers("before"), pad.integers("after")
    more = (before[1], before[2], after[1], after[2])
    pads = tuple(a + b for a, b in zip(conv.integers("pads"), more, strict=True))
    output = editor.tensors[conv.outputs[0]]
    editor.remove(conv)
    editor.add(
        "conv",
        [pad.inputs[0], *conv.inputs[1:]],
        conv.attrs | {"pads": pads},
        name=conv.name,
        output=output.name,
        dtype=output.dtype,
        quant=output.quant,
    )
