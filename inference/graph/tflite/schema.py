"""What is read of a .tflite file: `Model` mirrors `schema.fbs` of TensorFlow Lite as far as it is used.

An operator's own options stay a table, whose fields `codes.OPTIONS` names.
"""

from __future__ import annotations

from dataclasses import dataclass

from reflexarc.inference.graph.ir import ModelError
from reflexarc.inference.graph.tflite.codes import CUSTOM, IDENTIFIER, OPERATORS, OPTIONS, TYPES, VERSION
from reflexarc.inference.graph.tflite.flatbuffer import Buffer, Table

MAX_TENSORS = 1 << 18


@dataclass(frozen=True)
class TensorDef:
    """A tensor as it is declared; `scale` and `zero_point` may be empty."""

    index: int
    name: str
    type: str
    shape: tuple[int, ...]
    buffer: int
    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int
    is_variable: bool
    is_sparse: bool

    def __str__(self) -> str:
        return f"tensor {self.index} {self.name!r}"


@dataclass(frozen=True)
class Operator:
    """One operation on tensors, which are indices; -1 is an input left out."""

    index: int
    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options: Table | None

    def __str__(self) -> str:
        return f"{self.name} {self.index}"


@dataclass(frozen=True)
class SubGraph:
    """Operators in order on a list of tensors."""

    name: str
    tensors: tuple[TensorDef, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[Operator, ...]


@dataclass(frozen=True)
class Model:
    """Graphs, of which the first is the model and others serve it, and the buffers of their constants."""

    graphs: tuple[SubGraph, ...]
    buffers: tuple[memoryview, ...]


def model(data: memoryview) -> Model:
    """The file's content; `ModelError` where it is none, or unsound."""
    root = Buffer(data, IDENTIFIER).root()
    version = root.scalar(0, "I")
    if version != VERSION:
        raise ModelError(f"schema version {version}, not {VERSION}")
    names = [_operator_name(code) for code in root.tables(1, "operator code")]
    buffers = tuple(_buffer(table, data) for table in root.tables(4, "buffer"))
    graphs = tuple(_graph(table, names) for table in root.tables(2, "subgraph"))
    if not graphs:
        raise ModelError("a model without a graph")
    return Model(graphs, buffers)


def _operator_name(table: Table) -> str:
    code = max(table.scalar(0, "b"), table.scalar(3, "i"))  # the first is of old files, and small
    if code == CUSTOM:
        return f"custom {table.text(1, 80)}"
    return OPERATORS[code] if 0 <= code < len(OPERATORS) else f"operator {code}"


def _buffer(table: Table, data: memoryview) -> memoryview:
    start, size = table.scalar(1, "Q"), table.scalar(2, "Q")
    if start <= 1:
        return table.span(0)
    if start + size > len(data):
        raise ModelError(f"{table.what}: {size} bytes at {start} of {len(data)}")
    return data[start : start + size]


def _graph(table: Table, names: list[str]) -> SubGraph:
    tensors = tuple(_tensor(tensor, i) for i, tensor in enumerate(table.tables(0, "tensor")))
    operators = tuple(_operator(o, i, names) for i, o in enumerate(table.tables(3, "operator")))
    if len(tensors) > MAX_TENSORS:
        raise ModelError(f"{table.what}: {len(tensors)} tensors, at most {MAX_TENSORS}")
    graph = SubGraph(table.text(4), tensors, table.integers(1), table.integers(2), operators)
    for what, used in (("inputs", graph.inputs), ("outputs", graph.outputs)):
        _check_indices(f"{table.what}: {what}", used, len(tensors), 0)
    for operator in operators:
        _check_indices(f"{operator}: inputs", operator.inputs, len(tensors), -1)
        _check_indices(f"{operator}: outputs", operator.outputs, len(tensors), 0)
        _check_indices(f"{operator}: intermediates", operator.intermediates, len(tensors), -1)
    return graph


def _check_indices(what: str, indices: tuple[int, ...], count: int, low: int) -> None:
    for index in indices:
        if not low <= index < count:
            raise ModelError(f"{what} name tensor {index} of {count}")


def _tensor(table: Table, index: int) -> TensorDef:
    code = table.scalar(1, "b")
    quant = table.table(4, f"quantization of tensor {index}")
    scale: tuple[float, ...] = ()
    zero_point: tuple[int, ...] = ()
    if quant is not None:
        if quant.scalar(4, "B"):
            raise ModelError(f"{quant.what}: of kind {quant.scalar(4, 'B')}, not a scale and a zero point")
        scale = tuple(quant.numbers(2, "f4").tolist())
        zero_point = tuple(quant.numbers(3, "i8").tolist())
    return TensorDef(
        index,
        table.text(3),
        TYPES[code] if 0 <= code < len(TYPES) else f"type {code}",
        table.integers(0),
        table.scalar(2, "I"),
        scale,
        zero_point,
        quant.scalar(6, "i") if quant is not None else 0,
        table.scalar(5, "?", False),
        table.table(6, "sparsity") is not None,
    )


def _operator(table: Table, index: int, names: list[str]) -> Operator:
    code = table.scalar(0, "I")
    if code >= len(names):
        raise ModelError(f"operator {index} is of kind {code} of {len(names)}")
    name = names[code]
    options = table.table(4, f"options of {name} {index}") if name in OPTIONS else None
    return Operator(index, name, table.integers(1), table.integers(2), table.integers(8), options)
