"""Small TFLite models made here, and LiteRT's reference kernels beside us."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flatbuffers
import naive_graph
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Graph

Array = NDArray[Any]
Quant = tuple[Any, Any] | None
"""Scale or scales, zero point or zero points."""

_TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "float16": schema.TensorType.FLOAT16,
    "int32": schema.TensorType.INT32,
    "uint8": schema.TensorType.UINT8,
    "int64": schema.TensorType.INT64,
    "bool": schema.TensorType.BOOL,
    "int16": schema.TensorType.INT16,
    "int8": schema.TensorType.INT8,
    "resource": schema.TensorType.RESOURCE,
}
_OPTIONS = {
    "AVERAGE_POOL_2D": "Pool2DOptions",
    "MAX_POOL_2D": "Pool2DOptions",
    "CONV_2D": "Conv2DOptions",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2DOptions",
    "BATCH_MATMUL": "BatchMatMulOptions",
    "L2_NORMALIZATION": "L2NormOptions",
    "UNIDIRECTIONAL_SEQUENCE_LSTM": "UnidirectionalSequenceLSTMOptions",
    "RESIZE_NEAREST_NEIGHBOR": "ResizeNearestNeighborOptions",
    **dict.fromkeys(
        ("MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN", "REDUCE_ANY", "REDUCE_ALL"),
        "ReducerOptions",
    ),
}


@dataclass
class Net:
    """One graph of operators; `op` adds one and gives the indices of its outputs."""

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(0)
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.operatorCodes, self.model.buffers = [], [schema.BufferT()]
        self.model.subgraphs = [self.subgraph()]

    def subgraph(self) -> Any:
        graph = schema.SubGraphT()
        graph.name, graph.tensors, graph.operators, graph.inputs, graph.outputs = "main", [], [], [], []
        return graph

    def tensor(
        self,
        shape: Sequence[int],
        dtype: str,
        quant: Quant = None,
        data: Array | None = None,
        axis: int = 0,
        graph: int = 0,
    ) -> int:
        tensor = schema.TensorT()
        tensors = self.model.subgraphs[graph].tensors
        tensor.name, tensor.shape, tensor.type = f"t{len(tensors)}", list(shape), _TYPES[dtype]
        tensor.buffer = 0
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            tensor.buffer = len(self.model.buffers)
            self.model.buffers.append(buffer)
        tensor.quantization = schema.QuantizationParametersT()
        if quant is not None:
            scale, zero = np.atleast_1d(quant[0]), np.atleast_1d(quant[1])
            tensor.quantization.scale = scale.astype(np.float32)
            tensor.quantization.zeroPoint = np.broadcast_to(zero, scale.shape).astype(np.int64)
            tensor.quantization.quantizedDimension = axis
        tensors.append(tensor)
        return len(tensors) - 1

    def input(self, *shape: int, dtype: str = "float32", quant: Quant = None) -> int:
        index = self.tensor(shape, dtype, quant)
        self.model.subgraphs[0].inputs.append(index)
        return index

    def constant(self, data: Array, quant: Quant = None, axis: int = 0) -> int:
        data = np.asarray(data)
        return self.tensor(data.shape, data.dtype.name, quant, data, axis)

    def integers(self, *values: int) -> int:
        return self.constant(np.array(values, np.int32))

    def op(
        self,
        name: str,
        inputs: Sequence[int],
        *results: tuple[Sequence[int], str] | tuple[Sequence[int], str, Quant],
        graph: int = 0,
        **options: Any,
    ) -> list[int]:
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.version = options.pop("version", 1)
        self.model.operatorCodes.append(code)
        operator = schema.OperatorT()
        operator.opcodeIndex = len(self.model.operatorCodes) - 1
        operator.inputs = list(inputs)
        operator.outputs = [
            self.tensor(r[0], r[1], r[2] if len(r) > 2 else None, graph=graph) for r in results
        ]
        operator.intermediates = options.pop("intermediates", None)
        kind = _OPTIONS.get(name, name.title().replace("_", "") + "Options")
        if hasattr(schema, f"{kind}T"):
            operator.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            operator.builtinOptions = getattr(schema, f"{kind}T")()
            for key, value in options.items():
                assert hasattr(operator.builtinOptions, key), (kind, key)
                setattr(operator.builtinOptions, key, value)
        self.model.subgraphs[graph].operators.append(operator)
        return list(operator.outputs)

    def bytes(self, *outputs: int) -> bytes:
        self.model.subgraphs[0].outputs = list(outputs)
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


class Reference:
    """LiteRT's reference kernels on a model, every tensor kept."""

    def __init__(self, model: bytes | Path, *, default: bool = False) -> None:
        """Of a file or its bytes. `default`: the kernels of every day, for what the reference has not."""
        source = {"model_path": str(model)} if isinstance(model, Path) else {"model_content": model}
        self.interpreter = Interpreter(
            **source,
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
            if default
            else OpResolverType.BUILTIN_REF,
            experimental_preserve_all_tensors=True,
            num_threads=1,
        )
        self.interpreter.allocate_tensors()

    def random(self, rng: np.random.Generator) -> list[Array]:
        return [random_array(rng, d["shape"], d["dtype"]) for d in self.interpreter.get_input_details()]

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs."""
        for detail, x in zip(self.interpreter.get_input_details(), inputs, strict=True):
            self.interpreter.set_tensor(detail["index"], x)
        self.interpreter.invoke()
        return [self.interpreter.get_tensor(d["index"]).copy() for d in self.interpreter.get_output_details()]

    def tensors(self, names: Iterable[str]) -> dict[str, Array]:
        """What the last run left in those of the tensors that there are and that it keeps, by name."""
        wanted, found = set(names), {}
        for detail in self.interpreter.get_tensor_details():
            if detail["name"] in wanted and np.dtype(detail["dtype"]).kind in "biuf":  # no resource
                try:
                    found[detail["name"]] = self.interpreter.get_tensor(detail["index"]).copy()
                except ValueError:  # nothing was ever there
                    continue
        return found


class Ours:
    """A graph in the plain twin, with its states kept from run to run."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.states = naive_graph.start(graph)
        self.inputs = [name for name in graph.inputs if name not in self.states]
        kept = {state.output for state in graph.states}
        self.outputs = [name for name in graph.outputs if name not in kept]
        self.results: dict[str, Array] = {}

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """The outputs; `results` holds every tensor."""
        given = dict(zip(self.inputs, inputs, strict=True))
        self.results = naive_graph.run(self.graph, given | self.states)
        self.states = naive_graph.kept(self.graph, self.results)
        return [self.results[name] for name in self.outputs]


def random_array(rng: np.random.Generator, shape: Sequence[int], dtype: Any) -> Array:
    """Any integers; floats around 0."""
    kind = np.dtype(dtype)
    if kind == np.bool_:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if kind.kind == "f":
        return rng.standard_normal(shape).astype(kind)
    info = np.iinfo(kind)
    if kind.itemsize > 1:
        return rng.integers(-50, 50, shape).astype(kind)
    return rng.integers(info.min, info.max + 1, shape).astype(kind)


def assert_same(ours: Array, theirs: Array, what: str = "") -> None:
    """Integers are equal; floats to 1e-4 of the largest."""
    assert ours.dtype == theirs.dtype, (what, ours.dtype, theirs.dtype)
    assert ours.shape == theirs.shape, (what, ours.shape, theirs.shape)
    if ours.dtype != np.float32:
        np.testing.assert_array_equal(ours, theirs, what)
        return
    finite = np.abs(theirs[np.isfinite(theirs)]).max(initial=1e-30)
    np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-4 * finite, err_msg=what)
