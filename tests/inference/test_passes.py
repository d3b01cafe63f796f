"""The passes keep a model's answers, and the integers they leave are ONNX Runtime's."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import naive_graph
import numpy as np
import onnx
import pytest
from onnx_models import Net, quantized, random_net, reference, runtime

from reflexarc.inference.graph.ir import Graph, ModelError
from reflexarc.inference.graph.onnx import load, read
from reflexarc.inference.graph.passes import optimize, steps

SHARED = Path(os.environ.get("REFLEXARC_SHARED", Path(__file__).parents[3] / "shared"))
MODELS = SHARED / "data" / "models"


def imported(model: Any) -> Graph:
    return read(memoryview(model.SerializeToString()))


def ops(graph: Graph) -> Counter[str]:
    return Counter(node.op for node in graph.nodes)


def runtimes_integers(graph: Graph, expected: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """ONNX Runtime's integers under the names, in the layout and in the sign of the graph's."""
    found = {}
    for tensor in graph.tensors.values():
        name = tensor.name.removesuffix(":last")
        if tensor.data is None and tensor.dtype == "i8" and name in expected:
            theirs = expected[name]
            if theirs.dtype == np.uint8:
                theirs = (theirs ^ 0x80).view(np.int8)
            if name != tensor.name:
                theirs = np.moveaxis(theirs, 1, -1)
            found[tensor.name] = theirs.reshape(tensor.shape)
    return found


def steps_apart(a: np.ndarray, b: np.ndarray) -> int:
    return int(np.abs(a.astype(int) - b.astype(int)).max())


def assert_integers_match(graph: Graph, model: Any, x: np.ndarray, *, whole: bool) -> None:
    """Each operation, fed ONNX Runtime's operands, gives what it gives to one step; `whole`: the graph too.

    Only an average pool of few elements errs that much (of a tie, which ONNX Runtime's float sum may round
    the other way), and what follows it multiplies that.
    """
    expected = reference(model, x)
    theirs = runtimes_integers(graph, expected)
    assert len(theirs) >= 4
    local = naive_graph.run(graph, {"input": x}, instead=theirs)
    assert max(steps_apart(local[name], theirs[name]) for name in theirs) <= 1
    if whole:
        ours = naive_graph.run(graph, {"input": x})
        assert max(steps_apart(ours[name], theirs[name]) for name in theirs) <= 1
        for node in graph.nodes:
            if node.outputs[0] in graph.outputs:
                quant = graph.tensors[
                    node.inputs[0]
                ].quant  # of an output that is a quantized tensor's floats
                step = 1.001 * float(quant.scale[0]) if quant else 0
                name = node.outputs[0]
                np.testing.assert_allclose(ours[name], expected[name], rtol=0, atol=step + 1e-5)


def network(build: Callable[[Net], None], *shape: int) -> Net:
    net = Net([1, *shape])
    build(net)
    return net


def signal(net: Net) -> None:
    """The demo's kind: a 1-D convolutional classifier."""
    for channels, out in ((6, 16), (16, 24), (24, 32)):
        net.conv(channels, out, [5], pads=[2, 2], strides=[2])
        net.add("Relu")
    net.add("MaxPool", kernel_shape=[2], strides=[2])
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.gemm(32, 7, transB=1)
    net.add("Softmax")


def image(net: Net) -> None:
    net.conv(3, 8, [3, 3], auto_pad="SAME_UPPER", strides=[2, 2])
    net.add("Relu")
    net.conv(8, 8, [3, 3], pads=[1, 1, 1, 1], group=8)
    before = net.add("Clip", net.x, net.constant(np.float32(0)), net.constant(np.float32(6)))
    net.conv(8, 8, [1, 1])
    net.add("Add", before, net.x)
    net.add("AveragePool", kernel_shape=[2, 2], strides=[2, 2])
    net.add("Flatten")
    net.gemm(8 * 4 * 4, 10)


def matmul(net: Net) -> None:
    net.add("MatMul", net.x, net.normal(20, 30, scale=0.2))
    net.add("Add", net.x, net.normal(30))
    net.add("Sigmoid")
    net.add("Mul", net.x, net.normal(1, 30))
    net.gemm(30, 4, alpha=0.5, beta=2.0)


NETWORKS = {
    "signal": network(signal, 6, 200),
    "image": network(image, 3, 16, 16),
    "matmul": network(matmul, 20),
}


@pytest.mark.parametrize("activation", ["QInt8", "QUInt8"])
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_quantized_networks_are_onnx_runtimes_to_one_step(
    name: str, symmetric: bool, activation: str
) -> None:
    net = NETWORKS[name]
    model = quantized(net, symmetric=symmetric, activation=activation)
    graph = optimize(imported(model))
    for x in net.inputs(5):
        assert_integers_match(graph, model, x, whole=name != "image")


@pytest.mark.parametrize("seed", range(8))
def test_random_quantized_networks_are_onnx_runtimes_to_one_step(seed: int) -> None:
    net = random_net(seed)
    model = quantized(net, per_channel=seed % 2 == 0)
    graph = optimize(imported(model))
    for x in net.inputs(3):
        assert_integers_match(graph, model, x, whole=False)


def test_the_demos_model_is_onnx_runtimes_to_the_bit() -> None:
    model = onnx.load(Path(__file__).parents[2] / "configs/exosuit/exosuit.onnx")
    graph = optimize(imported(model))
    (name,) = graph.inputs
    rng = np.random.default_rng(5)
    for spread in (0.1, 1.0, 3.0):
        x = (rng.standard_normal(graph.tensors[name].shape) * spread).astype(np.float32)
        expected, ours = reference(model, x, name), naive_graph.run(graph, {name: x})
        for tensor, theirs in runtimes_integers(graph, expected).items():
            np.testing.assert_array_equal(ours[tensor], theirs)
        for output in graph.outputs:
            np.testing.assert_allclose(ours[output], expected[output], rtol=0, atol=1e-5)


def test_a_quantized_classifier_has_no_float_layer() -> None:
    graph = optimize(imported(quantized(NETWORKS["signal"])))
    assert ops(graph)["conv"] == 3
    assert ops(graph)["dequantize"] == 2
    assert all("qmin" in node.attrs for node in graph.nodes if node.op in ("conv", "dense"))
    assert not any(node.op == "relu" for node in graph.nodes)


@pytest.mark.parametrize("seed", range(30))
def test_random_float_networks_keep_their_answer_through_every_pass(seed: int) -> None:
    net = random_net(seed)
    model = net.model()
    x = net.inputs(1)[0]
    expected = reference(model, x)[net.x]
    graph = imported(model)
    for name, after in [("import", graph), *steps(graph)]:
        ours = naive_graph.run(after, {"input": x})[net.x]
        np.testing.assert_allclose(ours, expected, rtol=1e-5, atol=1e-5, err_msg=name)


def test_batch_norm_and_activation_go_into_the_convolution() -> None:
    net = Net([1, 3, 12, 10])
    net.conv(3, 4, [3, 3], bias=False)
    stats = [net.constant(net.rng.uniform(0.5, 2, 4).astype(np.float32)) for _ in range(4)]
    net.add("BatchNormalization", net.x, *stats)
    net.add("Elu", alpha=0.7)
    graph = optimize(imported(net.model()))
    assert ops(graph) == {"transpose": 2, "conv": 1}
    x = net.inputs(1)[0]
    np.testing.assert_allclose(
        naive_graph.run(graph, {"input": x})[net.x], reference(net.model(), x)[net.x], rtol=1e-5, atol=1e-5
    )


def test_transposes_of_a_channels_last_model_cancel() -> None:
    net = Net([1, 50, 6])
    net.add("Transpose", perm=[0, 2, 1])
    for channels in (6, 8, 8):
        net.conv(channels, 8, [3], pads=[1, 1])
        net.add("Mul", net.x, net.normal(8, 1))
        net.add("Relu")
    net.add("Transpose", perm=[0, 2, 1])
    graph = optimize(imported(net.model()))
    assert ops(graph) == {"reshape": 2, "conv": 3}


def test_a_residual_around_the_first_convolution_costs_no_transpose() -> None:
    net = Net([1, 4, 9, 9])
    net.conv(4, 4, [3, 3], pads=[1, 1, 1, 1])
    net.add("Add", "input", net.x)
    net.conv(4, 2, [1, 1])
    net.add("GlobalAveragePool")
    assert ops(optimize(imported(net.model()))) == {
        **dict.fromkeys(("transpose", "add", "global_average_pool", "reshape"), 1),
        "conv": 2,
    }


def test_flatten_of_an_image_becomes_an_order_of_weights() -> None:
    net = Net([2, 3, 8, 8])
    net.conv(3, 4, [3, 3])
    net.add("Flatten")
    net.gemm(144, 5)
    assert ops(optimize(imported(net.model())))["transpose"] == 2  # two samples: left as they are
    net = Net([1, 3, 8, 8])
    net.conv(3, 4, [3, 3])
    net.add("Flatten")
    net.gemm(144, 5)
    graph = optimize(imported(net.model()))
    assert [node.op for node in graph.nodes] == ["transpose", "conv", "reshape", "dense"]
    x = net.inputs(1)[0]
    np.testing.assert_allclose(
        naive_graph.run(graph, {"input": x})[net.x], reference(net.model(), x)[net.x], rtol=1e-5, atol=1e-5
    )


def test_an_integer_relu_of_its_own_scale_narrows_the_convolution() -> None:
    graph = optimize(imported(quantized(NETWORKS["signal"], symmetric=True)))
    assert [node.attrs["qmin"] for node in graph.nodes if node.op == "conv"] == [0, 0, 0]


def test_split_halves_the_layer_it_reads() -> None:
    net = Net([1, 8])
    net.gemm(8, 12)
    first = net.add("Split", net.x, net.constant(np.array([5, 7])), axis=1, outputs=2)
    net.add("Tanh", first)
    graph = optimize(imported(net.model()))
    assert [graph.tensors[name].shape for name in graph.nodes[0].inputs] == [(1, 8), (5, 8), (5,)]


def test_what_has_no_kernel_is_named_at_once() -> None:
    net = Net([1, 8])
    net.add("Slice", net.x, *[net.constant(np.array([v])) for v in (2, 5, 1)])
    with pytest.raises(ModelError, match=r"operations that cannot be run: slice \(1\)"):
        optimize(imported(net.model()))


@pytest.mark.parametrize(
    "file",
    [
        "policy/mjp_go1_policy.onnx",
        "policy/mjp_g1_policy.onnx",
        "policy/unitree_rl_lab_g1_velocity.onnx",
        "onnx/ad01_fp32.onnx",
        "onnx/pretrainedResnet.onnx",
        "onnx/vww_96_float.onnx",
    ],
)
def test_real_float_models_answer_as_in_onnx_runtime(file: str) -> None:
    path = MODELS / file
    if not path.exists():
        pytest.skip(f"{path} is not there")
    graph = optimize(load(path))
    session = runtime(path.read_bytes())
    (info,) = session.get_inputs()
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal(info.shape).astype(np.float32)
        expected = session.run(None, {info.name: x})
        ours = naive_graph.run(graph, {info.name: x})
        for name, value in zip(graph.outputs, expected, strict=True):
            np.testing.assert_allclose(ours[name], value, rtol=1e-4, atol=1e-5)
    assert onnx.load(path).graph.output[0].name == graph.outputs[0]
