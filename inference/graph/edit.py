"""Building and rewriting a graph: the names, shapes and order are kept right behind the caller's back."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from reflexarc.inference.graph.ir import (
    Attr,
    Graph,
    ModelError,
    Node,
    QuantParams,
    Tensor,
    check_tensor,
    dtype_name,
)
from reflexarc.inference.graph.ops import infer

MAX_MADE = 1 << 26


def constant_bytes(graph: Graph) -> int:
    """Bytes of all constants."""
    return sum(tensor.nbytes for tensor in graph.tensors.values() if tensor.data is not None)


class Editor:
    """A copy of a graph, open to changes; `finish` gives it back sorted, without what nothing reads."""

    def __init__(self, graph: Graph, room: int = MAX_MADE) -> None:
        """Open a copy of the graph; new constants may take `room` bytes beside 4 times those it has."""
        self.name = graph.name
        self.inputs = list(graph.inputs)
        self.outputs = list(graph.outputs)
        self.states = list(graph.states)
        self.tensors = dict(graph.tensors)
        self._nodes: dict[Node, None] = {}
        self._producer: dict[str, Node] = {}
        self._users: dict[str, Counter[Node]] = {}
        self._suffix: dict[str, int] = {}
        self._origin: dict[str, str] = {}
        self._room = room + 4 * constant_bytes(graph)
        for node in graph.nodes:
            self._insert(Node(node.op, node.name, list(node.inputs), list(node.outputs), dict(node.attrs)))

    def nodes(self) -> list[Node]:
        """The nodes as they now are: those of the graph in its order, then those added."""
        return list(self._nodes)

    def __contains__(self, node: Node) -> bool:
        return node in self._nodes

    def producer(self, name: str) -> Node | None:
        """The node that gives the tensor; None for a constant or a graph input."""
        return self._producer.get(name)

    def users(self, name: str) -> list[Node]:
        """The nodes that read the tensor, once for each time they do."""
        return list(self._users.get(name, Counter()).elements())

    def only_user(self, name: str) -> Node | None:
        """The node that alone reads the tensor, once; None if it is a graph output or read elsewhere too."""
        users = self._users.get(name, Counter())
        if len(users) != 1 or name in self.outputs:
            return None
        ((node, times),) = users.items()
        return node if times == 1 else None

    def value(self, name: str) -> NDArray[Any] | None:
        """The elements of a constant; None for any other tensor."""
        return self.tensors[name].data

    def fresh(self, hint: str) -> str:
        """A name no tensor has: the hint, or the hint and a number."""
        name = hint
        while name in self.tensors:
            count = self._suffix[hint] = self._suffix.get(hint, 0) + 1
            name = f"{hint}.{count}"
        return name

    def constant(self, origin: str, data: NDArray[Any], quant: QuantParams | None = None) -> str:
        """Add a constant made from the tensor `origin`, or named so; returns its name.

        It takes the name of its origin over if that is gone at the end.
        """
        self._room -= data.nbytes
        if self._room < 0:
            raise ModelError(
                f"constant {origin!r}: no room for {data.nbytes} bytes, the model makes too many"
            )
        name = self.fresh(origin)
        if name != origin:
            self._origin[name] = self._origin.get(origin, origin)
        return self.tensor(Tensor(name, dtype_name(data.dtype), data.shape, data, quant))

    def tensor(self, tensor: Tensor) -> str:
        """Add a tensor under its own name; returns that."""
        if tensor.name in self.tensors:
            raise ModelError(f"tensor {tensor.name!r} is defined twice")
        check_tensor(tensor)
        self.tensors[tensor.name] = tensor
        return tensor.name

    def add(
        self,
        op: str,
        inputs: Sequence[str],
        attrs: Mapping[str, Attr] | None = None,
        *,
        name: str,
        output: str,
        dtype: str | None = None,
        quant: QuantParams | None = None,
    ) -> str:
        """Add a node and its output, whose shape is inferred; the dtype is the first input's unless given.

        Returns the output's name: `output`, or what `fresh` makes of it.
        """
        node = Node(op, name, list(inputs), [self.fresh(output)], dict(attrs or {}))
        tensors = [self.tensors[i] for i in inputs]
        self.tensor(Tensor(node.outputs[0], dtype or tensors[0].dtype, infer(node, tensors), None, quant))
        self._insert(node)
        return node.outputs[0]

    def remove(self, node: Node) -> None:
        """Take out a node and the tensors it gives; their readers wait for `add` to give them again."""
        del self._nodes[node]
        for name in node.inputs:
            self._users[name].pop(node, None)
        for name in node.outputs:
            del self._producer[name]
            del self.tensors[name]

    def replace(self, node: Node, by: str) -> None:
        """Take out a node of one output; its readers read `by` instead. A graph output keeps its name."""
        output = node.outputs[0]
        if output in self.outputs:
            maker = self._producer.get(by)
            if maker is None or by in self.outputs:
                return
            self.remove(node)
            self._rename(maker, output)
            self._redirect(by, output)
        else:
            self.remove(node)
            self._redirect(output, by)

    def finish(self) -> Graph:
        """The graph as it now is, in topological order, without what no graph output needs."""
        live = self._live()
        used = {*self.inputs, *self.outputs}
        used.update(name for node in live for name in (*node.inputs, *node.outputs))
        order = self._sorted(live)
        names = self._restored(used)
        for node in live:
            node.inputs = [names.get(name, name) for name in node.inputs]
        tensors = {}
        for name, tensor in self.tensors.items():
            if name in used:
                new = names.get(name, name)
                tensors[new] = replace(tensor, name=new)
        return Graph(self.name, tensors, order, list(self.inputs), list(self.outputs), list(self.states))

    def _insert(self, node: Node) -> None:
        self._nodes[node] = None
        for name in node.inputs:
            self._users.setdefault(name, Counter())[node] += 1
        for name in node.outputs:
            self._producer[name] = node

    def _rename(self, maker: Node, name: str) -> None:
        old = maker.outputs[0]
        maker.outputs[0] = name
        self._producer[name] = self._producer.pop(old)
        self.tensors[name] = replace(self.tensors.pop(old), name=name)

    def _redirect(self, old: str, new: str) -> None:
        for user, times in self._users.pop(old, Counter()).items():
            self._users.setdefault(new, Counter())[user] += times
            user.inputs = [new if name == old else name for name in user.inputs]

    def _restored(self, used: set[str]) -> dict[str, str]:
        """Constants that get the names of their origins."""
        names: dict[str, str] = {}
        taken = set(used)
        for name, origin in self._origin.items():
            if name in used and origin not in taken and name not in self.outputs:
                names[name] = origin
                taken.add(origin)
        return names

    def _live(self) -> dict[Node, None]:
        live: dict[Node, None] = {}
        wanted = list(self.outputs)
        while wanted:
            node = self._producer.get(wanted.pop())
            if node is not None and node not in live:
                live[node] = None
                wanted.extend(node.inputs)
        return live

    def _sorted(self, live: dict[Node, None]) -> list[Node]:
        rank = {node: index for index, node in enumerate(self._nodes)}
        order = list(self._nodes)
        missing = {node: sum(name in self._producer for name in node.inputs) for node in live}
        ready = [rank[node] for node, count in missing.items() if count == 0]
        heapq.heapify(ready)
        result: list[Node] = []
        while ready:
            node = order[heapq.heappop(ready)]
            result.append(node)
            for name in node.outputs:
                for user in self.users(name):
                    if user in missing:
                        missing[user] -= 1
                        if missing[user] == 0:
                            heapq.heappush(ready, rank[user])
        if len(result) != len(live):
            raise ModelError(f"graph {self.name!r}: its nodes form a cycle")
        return result
