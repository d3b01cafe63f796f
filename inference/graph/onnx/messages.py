"""The messages of an ONNX file that matter here. Field numbers: onnx/onnx.proto, IR version 3 on."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import TypeAlias

from reflexarc.inference.graph.ir import MAX_NODES, ModelError
from reflexarc.inference.graph.protobuf import Value, fields, packed_varints, signed

MAX_TEXT = 1024
MAX_LISTED = 1 << 16

AttrValue: TypeAlias = "int | float | str | tuple[int, ...] | tuple[float, ...] | TensorProto | None"


@dataclass
class TensorProto:
    """An initializer or a tensor attribute, its elements still undecoded."""

    name: str = ""
    dims: list[int] = field(default_factory=list)
    data_type: int = 0
    raw: memoryview | None = None
    typed: dict[int, list[Value]] = field(default_factory=dict)  # float_data and its kin, by field number
    external: dict[str, str] | None = None


@dataclass
class NodeProto:
    """One node. An attribute of a kind that is not read (a graph, a list of tensors) has the value None."""

    op: str = ""
    domain: str = ""
    name: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    attrs: dict[str, AttrValue] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.op} {self.name or (self.outputs or ['?'])[0]!r}"


@dataclass
class ValueProto:
    """A graph input or output; a dimension is a number, a symbol, or "" when it is not stated."""

    name: str = ""
    elem_type: int = 0
    dims: list[int | str] | None = None


@dataclass
class GraphProto:
    """The main graph."""

    name: str = ""
    nodes: list[NodeProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    inputs: list[ValueProto] = field(default_factory=list)
    outputs: list[ValueProto] = field(default_factory=list)


@dataclass
class ModelProto:
    """The whole file."""

    ir_version: int = 0
    opsets: dict[str, int] = field(default_factory=dict)
    graph: GraphProto | None = None


def model(data: memoryview) -> ModelProto:
    """Read a whole file; `ModelError` where it is not one."""
    result = ModelProto()
    for number, value in fields(data):
        if number == 1:
            result.ir_version = _int(value)
        elif number == 7:
            result.graph = _graph(_bytes(value))
        elif number == 8:
            domain, version = "", 0
            for inner, part in fields(_bytes(value)):
                if inner == 1:
                    domain = _domain(part)
                elif inner == 2:
                    version = _int(part)
            result.opsets[domain] = version
    return result


def _graph(data: memoryview) -> GraphProto:
    result = GraphProto()
    for number, value in fields(data):
        if number == 1:
            result.nodes.append(_node(_bytes(value)))
        elif number == 2:
            result.name = _text(value)
        elif number == 5:
            result.initializers.append(_tensor(_bytes(value)))
        elif number == 11:
            result.inputs.append(_value(_bytes(value)))
        elif number == 12:
            result.outputs.append(_value(_bytes(value)))
        elif number == 15:
            raise ModelError(f"graph {result.name!r}: sparse initializers are not supported")
    for kind, items, limit in (
        ("nodes", result.nodes, MAX_NODES),
        ("initializers", result.initializers, MAX_NODES),
        ("inputs", result.inputs, MAX_NODES),
        ("outputs", result.outputs, MAX_TEXT),
    ):
        if len(items) > limit:
            raise ModelError(f"graph {result.name!r}: {len(items)} {kind}, at most {limit}")
    return result


def _node(data: memoryview) -> NodeProto:
    result = NodeProto()
    for number, value in fields(data):
        if number == 1:
            result.inputs.append(_text(value))
        elif number == 2:
            result.outputs.append(_text(value))
        elif number == 3:
            result.name = _text(value)
        elif number == 4:
            result.op = _text(value)
        elif number == 5:
            name, attr = _attribute(_bytes(value))
            result.attrs[name] = attr
        elif number == 7:
            result.domain = (
                _text(value).replace("ai.onnx", "", 1) if _text(value) == "ai.onnx" else _text(value)
            )
    return result


def _attribute(data: memoryview) -> tuple[str, AttrValue]:
    name, kind = "", 0
    scalar: dict[int, AttrValue] = {}
    floats: list[float] = []
    ints: list[int] = []
    for number, value in fields(data):
        if number == 1:
            name = _text(value)
        elif number == 2:
            scalar[1] = _float(value)
        elif number == 3:
            scalar[2] = _int(value)
        elif number == 4:
            scalar[3] = _text(value)
        elif number == 5:
            scalar[4] = _tensor(_bytes(value))
        elif number == 7:
            floats.extend(_float(value) for value in _split(value, 4))
        elif number == 8:
            ints.extend(_ints(value))
        elif number == 20:
            kind = _int(value)
    if max(len(floats), len(ints)) > MAX_LISTED:
        raise ModelError(f"attribute {name!r}: {max(len(floats), len(ints))} numbers, at most {MAX_LISTED}")
    values: dict[int, AttrValue] = {1: 0.0, 2: 0, 3: "", **scalar, 6: tuple(floats), 7: tuple(ints)}
    if kind == 0:  # files older than the field: whatever is there
        kind = next(iter(scalar), 6 if floats else 7)
    return name, values.get(kind)


def _tensor(data: memoryview) -> TensorProto:
    result = TensorProto()
    location = 0
    external: dict[str, str] = {}
    for number, value in fields(data):
        if number == 1:
            result.dims.extend(_ints(value))
        elif number == 2:
            result.data_type = _int(value)
        elif number == 3:
            raise ModelError(f"tensor {result.name!r}: tensors in segments are not supported")
        elif number in (4, 5, 7):
            result.typed.setdefault(number, []).append(value)
        elif number == 8:
            result.name = _text(value)
        elif number == 9:
            result.raw = _bytes(value)
        elif number == 13:
            entry = dict.fromkeys((1, 2), "")
            entry.update((inner, _text(part)) for inner, part in fields(_bytes(value)) if inner in entry)
            external[entry[1]] = entry[2]
        elif number == 14:
            location = _int(value)
    if location not in (0, 1):
        raise ModelError(f"tensor {result.name!r}: data location {location} is not 0 or 1")
    result.external = external if location == 1 else None
    return result


def _value(data: memoryview) -> ValueProto:
    result = ValueProto()
    for number, value in fields(data):
        if number == 1:
            result.name = _text(value)
        elif number == 2:
            for kind, inner in fields(_bytes(value)):
                if kind == 1:
                    _tensor_type(_bytes(inner), result)
    return result


def _tensor_type(data: memoryview, result: ValueProto) -> None:
    for number, value in fields(data):
        if number == 1:
            result.elem_type = _int(value)
        elif number == 2:
            result.dims = [_dim(_bytes(part)) for inner, part in fields(_bytes(value)) if inner == 1]


def _dim(data: memoryview) -> int | str:
    result: int | str = ""
    for number, value in fields(data):
        if number == 1:
            result = _int(value)
        elif number == 2:
            result = _text(value)
    return result


def _bytes(value: Value) -> memoryview:
    if isinstance(value, int):
        raise ModelError("protobuf: a number stands where a message is due")
    return value


def _text(value: Value) -> str:
    data = _bytes(value)
    if len(data) > MAX_TEXT:
        raise ModelError(f"a text of {len(data)} bytes, at most {MAX_TEXT}: {bytes(data[:40])!r}...")
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(f"a text is not UTF-8: {bytes(data[:40])!r} ({error.reason})") from None


def _domain(value: Value) -> str:
    """The operator set's domain; the standard one is "" under both of its names."""
    text = _text(value)
    return "" if text == "ai.onnx" else text


def _int(value: Value) -> int:
    if not isinstance(value, int):
        raise ModelError(f"protobuf: {len(value)} bytes stand where a number is due")
    return signed(value)


def _ints(value: Value) -> list[int]:
    return [signed(value)] if isinstance(value, int) else packed_varints(value).tolist()


def _float(value: Value) -> float:
    data = _bytes(value)
    if len(data) != 4:
        raise ModelError(f"protobuf: a float of {len(data)} bytes")
    return float(struct.unpack("<f", data)[0])


def _split(value: Value, size: int) -> list[memoryview]:
    data = _bytes(value)
    if len(data) % size:
        raise ModelError(f"protobuf: a packed list of {len(data)} bytes is not a multiple of {size}")
    return [data[at : at + size] for at in range(0, len(data), size)]
