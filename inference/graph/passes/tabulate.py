"""Fixed-point arithmetic with one number is a function of one int8: a table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph import fixed
from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node, QuantParams, Tensor

_EVERY = np.arange(-128, 128, dtype=np.int64)


def tabulate(graph: Graph) -> Graph:
    """add, sub and mul of int8 with a constant of one element, as a lookup."""
    editor = Editor(graph)
    for node in editor.nodes():
        if node.op in ("add", "sub", "mul") and node.attrs.get("rounding") == "fixed":
            _tabulate(editor, node)
    return editor.finish()


def _tabulate(editor: Editor, node: Node) -> None:
    operands = [editor.tensors[name] for name in node.inputs]
    output = editor.tensors[node.outputs[0]]
    for index, (number, x) in enumerate((operands, operands[::-1])):
        if number.data is None or number.size != 1 or x.data is not None or x.shape != output.shape:
            continue
        one = np.full(256, int(number.data.reshape(())), np.int64)
        a, b = (one, _EVERY) if index == 0 else (_EVERY, one)
        table = editor.constant(f"{output.name}:table", _values(node, operands, a, b, output.quant))
        editor.remove(node)
        editor.add("lookup", [x.name, table], name=node.name, output=output.name, quant=output.quant)
        return


def _values(
    node: Node, operands: list[Tensor], a: fixed.Integers, b: fixed.Integers, y: QuantParams | None
) -> NDArray[np.int8]:
    """The operation as `ops` has it, on 256 pairs."""
    zeros = [0 if q is None else int(q.zero_point[0]) for q in (operands[0].quant, operands[1].quant, y)]
    m, n = node.integers("multiplier"), node.integers("shift")
    a, b = a - zeros[0], b - zeros[1]
    if node.op == "mul":
        acc = a * b
    else:
        left, right = fixed.scale(a << 20, m[0], n[0]), fixed.scale(b << 20, m[1], n[1])
        acc = left + right if node.op == "add" else left - right
    steps = fixed.scale(acc, m[-1], n[-1]) + zeros[2]
    table: NDArray[np.int8] = np.clip(steps, node.integer("qmin"), node.integer("qmax")).astype(np.int8)
    return table
