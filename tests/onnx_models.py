"""Random networks as ONNX files, and ONNX Runtime beside us: its quantizer and its answers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

Array = NDArray[Any]


class Net:
    """A chain of ONNX nodes with random weights; `x` is the tensor at its end."""

    def __init__(self, shape: Sequence[int], seed: int = 0, opset: int = 17) -> None:
        self.rng = np.random.default_rng(seed)
        self.shape, self.opset = list(shape), opset
        self.nodes: list[Any] = []
        self.initializers: list[Any] = []
        self.x = "input"

    def constant(self, data: Array) -> str:
        name = f"w{len(self.initializers)}"
        self.initializers.append(numpy_helper.from_array(np.asarray(data), name))
        return name

    def normal(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def add(self, op: str, *inputs: str, outputs: int = 1, **attrs: Any) -> str:
        """Append a node on `x` (or on these inputs) and move `x` to its output."""
        names = [f"{op.lower()}{len(self.nodes)}" + ("" if i == 0 else f"_{i}") for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs or (self.x,), names, name=names[0], **attrs))
        self.x = names[0]
        return self.x

    def conv(self, channels: int, out: int, kernel: Sequence[int], *, bias: bool = True, **attrs: Any) -> str:
        inner = channels // attrs.get("group", 1)
        scale = 1 / np.sqrt(inner * np.prod(kernel))
        inputs = [self.x, self.normal(out, inner, *kernel, scale=scale)]
        if bias:
            inputs.append(self.normal(out, scale=0.1))
        return self.add("Conv", *inputs, **attrs)

    def gemm(self, inner: int, out: int, **attrs: Any) -> str:
        shape = (out, inner) if attrs.get("transB") else (inner, out)
        return self.add(
            "Gemm", self.x, self.normal(*shape, scale=inner**-0.5), self.normal(out, scale=0.1), **attrs
        )

    def model(self, *outputs: str) -> Any:
        float32 = TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("input", float32, self.shape)],
            [helper.make_tensor_value_info(name, float32, None) for name in outputs or (self.x,)],
            self.initializers,
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)
        return onnx.shape_inference.infer_shapes(model)

    def inputs(self, count: int, seed: int = 1) -> list[Array]:
        rng = np.random.default_rng(seed)
        return [rng.standard_normal(self.shape).astype(np.float32) for _ in range(count)]


class _Reader(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, inputs: list[Array]) -> None:
        self.rows: Iterator[Array] = iter(inputs)

    def get_next(self) -> dict[str, Array] | None:
        row = next(self.rows, None)
        return None if row is None else {"input": row}


def quantized(
    net: Net, *, symmetric: bool = False, activation: str = "QInt8", per_channel: bool = True
) -> Any:
    """The network as ONNX Runtime's static quantizer writes it: QDQ, signed symmetric weights."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "q.onnx"
        quantize_static(
            net.model(),
            str(path),
            _Reader(net.inputs(20, seed=99)),
            quant_format=QuantFormat.QDQ,
            per_channel=per_channel,
            weight_type=QuantType.QInt8,
            activation_type=QuantType[activation],
            extra_options={"ActivationSymmetric": symmetric, "WeightSymmetric": True},
        )
        return onnx.load(str(path))


def reference(model: Any, x: Array, name: str = "input") -> dict[str, Array]:
    """ONNX Runtime's outputs and, from the same run, every tensor that a QuantizeLinear gives."""
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    have = {output.name for output in shown.graph.output}
    initializers = {tensor.name: tensor for tensor in shown.graph.initializer}
    for node in shown.graph.node:
        if node.op_type == "QuantizeLinear" and node.output[0] not in have:
            dtype = initializers[node.input[2]].data_type
            shown.graph.output.append(helper.make_tensor_value_info(node.output[0], dtype, None))
    session = runtime(shown.SerializeToString())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {name: x}), strict=True))


def runtime(model: bytes) -> Any:
    """A session that computes int8 exactly on every CPU."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.x64quantprecision", "1")
    return ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def random_net(seed: int) -> Net:
    """A random network: images or signals through convolutions, pools and activations into dense layers."""
    rng = np.random.default_rng(1000 + seed)
    spatial = int(rng.integers(1, 3))
    channels = int(rng.integers(1, 9))
    size = [int(n) for n in rng.integers(9, 20, spatial)]
    net = Net([1, channels, *size], seed)
    for _ in range(int(rng.integers(1, 5))):
        layer = rng.choice(["conv", "conv", "depthwise", "residual", "pool"])
        if layer == "conv":
            kernel = [int(k) for k in rng.integers(1, 4, spatial)]
            out = int(rng.integers(1, 13))
            pads = [int(p) for p in rng.integers(0, 2, 2 * spatial)]
            net.conv(channels, out, kernel, pads=pads, strides=[int(rng.integers(1, 3))] * spatial)
            channels = out
        elif layer == "depthwise":
            net.conv(channels, channels * 2, [3] * spatial, pads=[1] * 2 * spatial, group=channels)
            channels *= 2
        elif layer == "residual":
            before = net.x
            net.conv(channels, channels, [3] * spatial, pads=[1] * 2 * spatial)
            net.add("Add", before, net.x)
        else:
            kind = str(rng.choice(["MaxPool", "AveragePool"]))
            net.add(kind, kernel_shape=[2] * spatial, pads=[1] * spatial + [0] * spatial)
        _activation(net, rng)
    if rng.random() < 0.5:
        net.add("GlobalAveragePool")
    net.add("Flatten")
    inner = int(np.prod(tensor_shape(net)))
    for out in (int(rng.integers(2, 20)), 5):
        net.gemm(inner, out, transB=int(rng.integers(0, 2)))
        inner = out
        _activation(net, rng)
    return net


def tensor_shape(net: Net) -> list[int]:
    """The shape of the tensor at the net's end."""
    dims = net.model().graph.output[0].type.tensor_type.shape.dim
    return [dim.dim_value for dim in dims]


def _activation(net: Net, rng: np.random.Generator) -> None:
    kind = str(rng.choice(["Relu", "Relu", "Clip", "Sigmoid", "Tanh", "Elu", "Silu", "None"]))
    if kind == "Clip":
        net.add("Clip", net.x, net.constant(np.float32(0)), net.constant(np.float32(1.5)))
    elif kind == "Silu":
        before = net.x
        net.add("Sigmoid")
        net.add("Mul", before, net.x)
    elif kind != "None":
        net.add(kind)
