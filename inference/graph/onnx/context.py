"""What a handler sees of the node it imports, and what it may do: typed attributes, inputs, new nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Attr, ModelError, Node, QuantParams, Tensor
from reflexarc.inference.graph.moves import MOVES, move, move_quant
from reflexarc.inference.graph.onnx.messages import AttrValue, NodeProto
from reflexarc.inference.graph.ops import infer

ALLOWANCE = 1 << 22
"""Elements of constants that may be made beside a multiple of those in the file."""
PER_ELEMENT = 8


class Context:
    """The import under way: the graph so far, which tensor each ONNX name stands for, the current node."""

    def __init__(self, editor: Editor, opset: int) -> None:
        self.editor = editor
        self.opset = opset
        self.node = NodeProto()
        self.stored = 0  # elements of constants in the file
        self._made = 0  # elements of constants made from them
        self._stands_for: dict[str, str] = {}
        self._fixed: set[str] = set()  # tensors that constants alone decide

    @property
    def base(self) -> str:
        """What the current node's tensors are named after: its first output."""
        return next(filter(None, self.node.outputs), self.node.op)

    def enter(self, node: NodeProto) -> None:
        """Make a node the current one."""
        self.node = node

    def leave(self) -> None:
        """Check that the current node's handler gave all it should."""
        for name in self.node.outputs:
            if name and name not in self._stands_for:
                raise ModelError(f"{self.node}: its output {name!r} is not supported")

    # Names

    def define(self, onnx_name: str, tensor: str) -> None:
        """Let an ONNX name stand for a tensor of the graph."""
        if onnx_name in self._stands_for:
            raise ModelError(f"{onnx_name!r} is defined twice")
        self._stands_for[onnx_name] = tensor

    def output(self, onnx_name: str) -> None:
        """Make what an ONNX name stands for an output of the graph, under that name."""
        if onnx_name not in self._stands_for:
            raise ModelError(f"graph output {onnx_name!r} is not defined")
        name = self._stands_for[onnx_name]
        if onnx_name in self.editor.outputs:
            raise ModelError(f"graph output {onnx_name!r} is listed twice")
        if name != onnx_name or self.editor.producer(name) is None:
            shape = self.editor.tensors[name].shape
            quant = self.editor.tensors[name].quant
            name = self.editor.add(
                "reshape", [name], {"shape": shape}, name=onnx_name, output=onnx_name, quant=quant
            )
        self.editor.outputs.append(name)

    # Inputs

    def has(self, index: int) -> bool:
        """Whether the node states its input of this index."""
        return index < len(self.node.inputs) and self.node.inputs[index] != ""

    def name(self, index: int) -> str:
        """The tensor behind an input."""
        if not self.has(index):
            raise ModelError(f"{self.node}: input {index} is missing")
        onnx_name = self.node.inputs[index]
        if onnx_name not in self._stands_for:
            raise ModelError(f"{self.node}: input {onnx_name!r} is not defined before it")
        return self._stands_for[onnx_name]

    def tensor(self, index: int) -> Tensor:
        """The tensor behind an input."""
        return self.editor.tensors[self.name(index)]

    def value(self, index: int) -> NDArray[Any]:
        """The elements of an input that must be a constant."""
        data = self.tensor(index).data
        if data is None:
            raise ModelError(f"{self.node}: input {self.node.inputs[index]!r} is not a constant")
        return data

    def fixed(self, index: int) -> bool:
        """Whether constants alone decide an input (a dequantized weight is)."""
        return self.name(index) in self._fixed

    def all_constant(self) -> bool:
        """Whether every stated input is a constant."""
        return all(self.tensor(i).data is not None for i in range(len(self.node.inputs)) if self.has(i))

    # Attributes

    def integer(self, key: str, default: int | None = None) -> int:
        """An attribute that is an integer."""
        value = self._attr(key, default)
        if not isinstance(value, int):
            raise ModelError(f"{self.node}: attribute {key} is {value!r}, not an integer")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """An attribute that is a number."""
        value = self._attr(key, default)
        if not isinstance(value, int | float):
            raise ModelError(f"{self.node}: attribute {key} is {value!r}, not a number")
        return value

    def word(self, key: str, default: str | None = None) -> str:
        """An attribute that is a text."""
        value = self._attr(key, default)
        if not isinstance(value, str):
            raise ModelError(f"{self.node}: attribute {key} is {value!r}, not a text")
        return value

    def integers(self, key: str, default: Sequence[int] | None = None) -> tuple[int, ...]:
        """An attribute that is a list of integers."""
        value = self._attr(key, None if default is None else tuple(default))
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            raise ModelError(f"{self.node}: attribute {key} is {value!r}, not a list of integers")
        return tuple(int(v) for v in value)

    def axes(self, rank: int, index: int = 1) -> tuple[int, ...] | None:
        """`axes` as indices from 0: an attribute before operator set 13, since then an input; or None."""
        if "axes" in self.node.attrs:
            axes = self.integers("axes")
        elif self.has(index):
            axes = tuple(self.value(index).ravel().tolist())
        else:
            return None
        return tuple(self.axis_of(axis, rank) for axis in axes)

    def axis_of(self, axis: int, rank: int) -> int:
        """An axis as an index from 0."""
        if not -rank <= axis < rank:
            raise ModelError(f"{self.node}: axis {axis} of {rank} dimensions")
        return axis % rank

    def _attr(self, key: str, default: AttrValue) -> AttrValue:
        value = self.node.attrs.get(key, default)
        if value is None:
            raise ModelError(f"{self.node}: attribute {key} is missing, or of a kind that is not supported")
        return value

    # New nodes

    def afford(self, size: int) -> None:
        """Refuse to make a constant of that size when too many have been made."""
        limit = ALLOWANCE + PER_ELEMENT * self.stored
        if self._made + size > limit:
            raise ModelError(f"{self.node}: {self._made} + {size} elements of constants, at most {limit}")

    def spend(self, size: int) -> None:
        """Count a constant of that size."""
        self.afford(size)
        self._made += size

    def constant(self, hint: str, data: NDArray[Any], quant: QuantParams | None = None) -> str:
        """Add a constant."""
        name = self.editor.constant(hint, data, quant)
        self._fixed.add(name)
        return name

    def emit(
        self,
        op: str,
        inputs: Sequence[str],
        attrs: Mapping[str, Attr] | None = None,
        *,
        part: str = "",
        dtype: str | None = None,
        quant: QuantParams | None = None,
    ) -> str:
        """Add a node; `part` names its output when it is not the ONNX node's own (the last one is)."""
        base = self.base
        source = self.editor.tensors[inputs[0]]
        if op in MOVES:
            quant = source.quant and move_quant(op, attrs or {}, source.shape, source.quant)
            if source.data is not None:
                infer(Node(op, base, [], [], dict(attrs or {})), [source])
                self.spend(source.size)
                return self.constant(
                    f"{base}:{part}" if part else base, move(op, attrs or {}, source.data), quant
                )
        name = self.editor.add(
            op,
            inputs,
            attrs,
            name=self.node.name or base,
            output=f"{base}:{part}" if part else base,
            dtype=dtype,
            quant=quant,
        )
        if all(i in self._fixed for i in inputs):
            self._fixed.add(name)
        return name

    def give(self, tensor: str, index: int = 0) -> None:
        """Let an output of the ONNX node stand for a tensor."""
        if index >= len(self.node.outputs):
            raise ModelError(f"{self.node}: output {index} is missing")
        if self.node.outputs[index]:
            self.define(self.node.outputs[index], tensor)
