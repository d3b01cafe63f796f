"""Reshapes and transposes wait until something needs them done; by then most have cancelled.

The importers wrap each image operation in the transposes to channels-last and back. Here the graph is rebuilt
in one walk in which every tensor is another one plus a `Movement` still due. Element-wise operations work on
the tensor as it lies and pass the movement on; all others have it done first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reflexarc.inference.graph.arithmetic import UNARY
from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, Node, QuantParams
from reflexarc.inference.graph.movement import Movement
from reflexarc.inference.graph.moves import move_quant

_ELEMENTWISE = (*UNARY, "quantize", "dequantize", "lookup")
_BINARY = ("add", "mul")


@dataclass(frozen=True)
class _View:
    """A tensor of the old graph as a tensor of the new one with a movement still due."""

    source: str
    due: Movement


def channels_last(graph: Graph) -> Graph:
    """Cancel, merge and put off reshapes and transposes."""
    return _Walk(graph).run()


class _Walk:
    def __init__(self, graph: Graph) -> None:
        self.old = graph
        self.new = Editor(Graph(graph.name))
        self.views: dict[str, _View] = {}
        self.done: dict[_View, str] = {}
        self.unmoved: dict[tuple[str, Movement], str] = {}

    def run(self) -> Graph:
        for name, tensor in self.old.tensors.items():
            if tensor.data is not None or name in self.old.inputs:
                self.new.tensor(tensor)
                self.views[name] = _View(name, Movement.none(tensor.shape))
        self.new.inputs.extend(self.old.inputs)
        self.new.states.extend(self.old.states)
        for node in self.old.nodes:
            self._visit(node)
        for name in self.old.outputs:
            self._give(name)
        return self.new.finish()

    def _visit(self, node: Node) -> None:
        views = [self.views[name] for name in node.inputs]
        if node.op in ("reshape", "transpose"):
            due = views[0].due
            due = (
                due.reshape(node.integers("shape"))
                if node.op == "reshape"
                else due.transpose(node.integers("perm"))
            )
            self.views[node.outputs[0]] = _View(views[0].source, due)
        elif node.op in _ELEMENTWISE and not self._per_channel(node):
            self._add(node, [views[0].source, *node.inputs[1:]], views[0].due)
        elif node.op in _BINARY and (together := self._together(views)):
            self._add(node, *together)
        else:
            shape = self.old.tensors[node.outputs[0]].shape
            self._add(node, [self._settle(view) for view in views], Movement.none(shape))

    def _add(self, node: Node, inputs: list[str], due: Movement) -> None:
        """The node on these inputs; `due` is what is left to do to its output."""
        output = self.old.tensors[node.outputs[0]]
        name = output.name if due.still else f"{output.name}:last"
        name = self.new.add(
            node.op, inputs, node.attrs, name=node.name, output=name, dtype=output.dtype, quant=output.quant
        )
        self.views[output.name] = _View(name, due)

    def _per_channel(self, node: Node) -> bool:
        def split(quant: QuantParams | None) -> bool:
            return quant is not None and quant.axis is not None

        return any(split(self.old.tensors[name].quant) for name in (*node.inputs, *node.outputs))

    def _together(self, views: list[_View]) -> tuple[list[str], Movement] | None:
        """The two operands, so taken that one movement is due to both, and that movement."""
        first, second = views
        if first.due == second.due:
            return [first.source, second.source], first.due
        for moved, other in ((first, second), (second, first)):
            if (constant := self._unmoved(other, moved.due)) is not None:
                return [constant if view is other else view.source for view in views], moved.due
        if all(view.due.still or view in self.done for view in views):
            return None  # neither takes another transpose
        moved, other = (second, first) if first.due.still else (first, second)
        if moved.due.shape != other.due.shape:
            return None
        taken_back = self._settle(_View(other.source, other.due.back(moved.due)))
        return [taken_back if view is other else view.source for view in views], moved.due

    def _unmoved(self, view: _View, due: Movement) -> str | None:
        """A constant as it must be for the movement to bring it where it is; a broadcast axis stays one."""
        tensor = self.new.tensors[view.source]
        if tensor.data is None or not view.due.still:
            return None
        if np.broadcast_shapes(tensor.shape, due.shape) != due.shape:
            return None
        data = due.undo(tensor.data)
        if data is not None and (view.source, due) not in self.unmoved:
            self.unmoved[view.source, due] = self.new.constant(tensor.name, data, tensor.quant)
        return self.unmoved.get((view.source, due))

    def _settle(self, view: _View) -> str:
        """The tensor with its movement done."""
        if view.due.still:
            return view.source
        if view not in self.done:
            self.done[view] = self._move(view)
        return self.done[view]

    def _move(self, view: _View) -> str:
        due, result = view.due, view.source
        direct = due.direct()
        steps = [(due.base, direct)] if direct else due.steps
        for dims, perm in steps:
            result = self._reshape(result, dims)
            result = self._emit("transpose", result, perm)
        return self._reshape(result, due.shape)

    def _reshape(self, source: str, shape: tuple[int, ...]) -> str:
        if self.new.tensors[source].shape == shape:
            return source
        return self._emit("reshape", source, shape)

    def _emit(self, op: str, source: str, value: tuple[int, ...]) -> str:
        tensor = self.new.tensors[source]
        attrs = {"shape" if op == "reshape" else "perm": value}
        quant = tensor.quant and move_quant(op, attrs, tensor.shape, tensor.quant)
        return self.new.add(op, [source], attrs, name=source, output=f"{source}:{op}", quant=quant)

    def _give(self, name: str) -> None:
        """Make the tensor an output under its own name."""
        settled = self._settle(self.views[name])
        self.new.outputs.append(name)
        if settled != name:
            shape, quant = self.new.tensors[settled].shape, self.new.tensors[settled].quant
            self.new.add("reshape", [settled], {"shape": shape}, name=name, output=name, quant=quant)
            node = self.new.producer(name)
            assert node is not None
            self.new.replace(node, settled)
