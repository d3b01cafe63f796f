"""The graph a model is imported into, rewritten in, and lowered from.

A `Graph` is a list of `Node`s in topological order over named `Tensor`s. Every shape is static. A tensor
with `data` is a constant; one with `quant` holds integers q that stand for scale * (q - zero_point). `check`
states what holds of every graph; each pass is checked against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

MAX_ELEMENTS = 1 << 31
MAX_RANK = 8
MAX_NODES = 1 << 16

DTYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32),
    "i8": np.dtype(np.int8),
    "u8": np.dtype(np.uint8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "bool": np.dtype(np.bool_),
}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}

Shape: TypeAlias = tuple[int, ...]
Attr: TypeAlias = int | float | str | tuple[int, ...] | tuple[float, ...]


class ModelError(ValueError):
    """A model that cannot be read or run; says which tensor, node or field, its value and the limit."""


def dtype_name(dtype: np.dtype[Any]) -> str:
    """The IR's name of a numpy dtype; `ModelError` for one it does not have."""
    try:
        return _NAMES[dtype.newbyteorder("=")]
    except KeyError:
        raise ModelError(f"dtype {dtype} is not one of {', '.join(DTYPES)}") from None


@dataclass(frozen=True)
class QuantParams:
    """real = scale * (q - zero_point); a pair for the tensor (`axis` None), or for each index of `axis`."""

    scale: NDArray[np.float32]  # (n,), finite and positive
    zero_point: NDArray[np.int32]  # (n,)
    axis: int | None = None

    def same(self, other: QuantParams | None) -> bool:
        """Whether both stand for the same real numbers."""
        return (
            other is not None
            and self.axis == other.axis
            and np.array_equal(self.scale, other.scale)
            and np.array_equal(self.zero_point, other.zero_point)
        )

    def __str__(self) -> str:
        if self.axis is None:
            return f"{self.scale[0]:.6g} * (q - {self.zero_point[0]})"
        return f"{self.scale.min():.3g}..{self.scale.max():.3g} on axis {self.axis}"


@dataclass
class Tensor:
    """A value of the graph: a constant where `data` is set."""

    name: str
    dtype: str
    shape: Shape
    data: NDArray[Any] | None = None
    quant: QuantParams | None = None

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes, unpadded."""
        return self.size * DTYPES[self.dtype].itemsize

    def __str__(self) -> str:
        quant = f" = {self.quant}" if self.quant else ""
        return f"{self.name}: {self.dtype}[{','.join(map(str, self.shape))}]{quant}"


@dataclass(eq=False)
class Node:
    """One operation. `inputs` and `outputs` are names of tensors; which ops there are is in `ops.py`."""

    op: str
    name: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Attr] = field(default_factory=dict)

    def integers(self, key: str) -> tuple[int, ...]:
        """The attribute as integers; `ModelError` if it is missing or of another type."""
        value = self.attrs.get(key)
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            raise ModelError(f"{self}: attribute {key} is {value!r}, not a list of integers")
        return tuple(int(v) for v in value)

    def integer(self, key: str) -> int:
        """The attribute as an integer; `ModelError` if it is missing or of another type."""
        value = self.attrs.get(key)
        if not isinstance(value, int):
            raise ModelError(f"{self}: attribute {key} is {value!r}, not an integer")
        return value

    def number(self, key: str) -> float:
        """The attribute as a number; `ModelError` if it is missing or of another type."""
        value = self.attrs.get(key)
        if not isinstance(value, int | float):
            raise ModelError(f"{self}: attribute {key} is {value!r}, not a number")
        return value

    def word(self, key: str) -> str:
        """The attribute as a word; `ModelError` if it is missing or of another type."""
        value = self.attrs.get(key)
        if not isinstance(value, str):
            raise ModelError(f"{self}: attribute {key} is {value!r}, not a word")
        return value

    def __str__(self) -> str:
        return f"{self.op} {self.name!r}"


@dataclass(frozen=True)
class State:
    """What a model keeps from one run to the next: an output that is handed in again as an input.

    Both names are among the graph's inputs and outputs. The first run is handed `start`.
    """

    input: str
    output: str
    start: NDArray[Any]


@dataclass
class Graph:
    """Nodes in topological order, the tensors they name, and which of those are handed in and out."""

    name: str
    tensors: dict[str, Tensor] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    states: list[State] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def check_shape(name: str, shape: Shape, *, empty: bool = False) -> None:
    """Raise `ModelError` unless the shape is one a tensor may have (`empty`: a zero is allowed)."""
    if len(shape) > MAX_RANK:
        raise ModelError(f"tensor {name!r}: {len(shape)} dimensions, at most {MAX_RANK}")
    low = 0 if empty else 1
    for dim in shape:
        if not low <= dim <= MAX_ELEMENTS:
            raise ModelError(
                f"tensor {name!r}: dimension {dim} of {list(shape)} is not in {low}..{MAX_ELEMENTS}"
            )
    if prod(shape) > MAX_ELEMENTS:
        raise ModelError(
            f"tensor {name!r}: shape {list(shape)} has {prod(shape)} elements, at most {MAX_ELEMENTS}"
        )


def check_tensor(tensor: Tensor) -> None:
    """Raise `ModelError` unless shape, dtype, data and quantization agree."""
    name = tensor.name
    if tensor.dtype not in DTYPES:
        raise ModelError(f"tensor {name!r}: dtype {tensor.dtype!r} is not one of {', '.join(DTYPES)}")
    check_shape(name, tensor.shape, empty=tensor.data is not None)
    if tensor.data is not None:
        if tensor.data.shape != tensor.shape:
            raise ModelError(f"tensor {name!r}: data of shape {tensor.data.shape}, declared {tensor.shape}")
        if tensor.data.dtype != DTYPES[tensor.dtype]:
            raise ModelError(f"tensor {name!r}: data of dtype {tensor.data.dtype}, declared {tensor.dtype}")
    if tensor.quant is not None:
        _check_quant(tensor, tensor.quant)


def check(graph: Graph) -> None:
    """Raise `ModelError` unless every name is defined once and before use, and every tensor is sound."""
    if len(graph.nodes) > MAX_NODES:
        raise ModelError(f"graph {graph.name!r}: {len(graph.nodes)} nodes, at most {MAX_NODES}")
    for key, tensor in graph.tensors.items():
        if key != tensor.name:
            raise ModelError(f"tensor {tensor.name!r} is filed under {key!r}")
        check_tensor(tensor)
    defined = {name for name, tensor in graph.tensors.items() if tensor.data is not None}
    for name in graph.inputs:
        _define(graph, defined, name, "graph input")
    for node in graph.nodes:
        for name in node.inputs:
            if name not in defined:
                raise ModelError(f"{node}: input {name!r} is not defined before it")
        for name in node.outputs:
            _define(graph, defined, name, str(node))
    for name in graph.outputs:
        if name not in defined:
            raise ModelError(f"graph output {name!r} is not defined")
    for state in graph.states:
        _check_state(graph, state)


def _check_state(graph: Graph, state: State) -> None:
    if state.input not in graph.inputs or state.output not in graph.outputs:
        raise ModelError(f"state {state.input!r} -> {state.output!r} is not an input and an output")
    before, after = graph.tensors[state.input], graph.tensors[state.output]
    scales_agree = before.quant is after.quant or (
        before.quant is not None and before.quant.same(after.quant)
    )
    if (before.dtype, before.shape) != (after.dtype, after.shape) or not scales_agree:
        raise ModelError(f"state {state.input!r}: {before} is followed by {after}")
    if state.start.shape != before.shape or state.start.dtype != DTYPES[before.dtype]:
        raise ModelError(f"state {state.input!r}: starts as {state.start.dtype} {state.start.shape}")


def _define(graph: Graph, defined: set[str], name: str, where: str) -> None:
    if name in defined:
        raise ModelError(f"{where}: {name!r} is already defined")
    if name not in graph.tensors:
        raise ModelError(f"{where}: {name!r} has no tensor")
    defined.add(name)


def _check_quant(tensor: Tensor, quant: QuantParams) -> None:
    where = f"tensor {tensor.name!r}: quantization"
    count = 1
    if quant.axis is not None:
        if not 0 <= quant.axis < len(tensor.shape):
            raise ModelError(f"{where} axis {quant.axis} is not in 0..{len(tensor.shape) - 1}")
        count = tensor.shape[quant.axis]
    if tensor.dtype not in ("i8", "u8", "i16", "i32"):
        raise ModelError(f"{where} on dtype {tensor.dtype}")
    if quant.scale.shape != (count,) or quant.zero_point.shape != (count,):
        raise ModelError(
            f"{where} has {quant.scale.shape} scales and {quant.zero_point.shape} zero points, not ({count},)"
        )
    if not (np.isfinite(quant.scale).all() and (quant.scale > 0).all()):
        raise ModelError(f"{where} scale {quant.scale.min()}..{quant.scale.max()} is not finite and positive")
    info = np.iinfo(DTYPES[tensor.dtype])
    if quant.zero_point.min() < info.min or quant.zero_point.max() > info.max:
        raise ModelError(f"{where} zero point is outside {info.min}..{info.max}")


def _lines(graph: Graph) -> Iterator[str]:
    yield f"graph {graph.name}"
    for name in graph.inputs:
        yield f"  in  {graph.tensors[name]}"
    for node in graph.nodes:
        attrs = "".join(f" {key}={value}" for key, value in node.attrs.items())
        results = ", ".join(str(graph.tensors[name]) for name in node.outputs)
        yield f"  {results} <- {node.op}({', '.join(node.inputs)}){attrs}"
    for name in graph.outputs:
        yield f"  out {graph.tensors[name]}"
    for state in graph.states:
        yield f"  state {state.input} <- {state.output}"
