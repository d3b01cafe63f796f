"""ONNX files: what is understood, what is refused and how, and that no bytes whatever do harm."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import naive_graph
import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, external_data_helper, helper, numpy_helper
from onnx_models import Net, quantized, random_net, reference

from reflexarc.inference.graph import protobuf
from reflexarc.inference.graph.ir import Graph, ModelError
from reflexarc.inference.graph.onnx import load, read
from reflexarc.inference.graph.passes import optimize


def imported(model: Any, **kwargs: Any) -> Graph:
    return read(memoryview(model.SerializeToString()), **kwargs)


def assert_same_answer(net: Net, *, seeds: int = 2) -> None:
    model = net.model()
    graph, optimized = imported(model), optimize(imported(model))
    for x in net.inputs(seeds):
        expected = reference(model, x)[net.x]
        for one in (graph, optimized):
            np.testing.assert_allclose(
                naive_graph.run(one, {"input": x})[net.x], expected, rtol=1e-5, atol=1e-5
            )


def pool(op: str, **attrs: Any) -> Callable[[Net], None]:
    return lambda net: net.add(op, **attrs) and None


def reshape_by_shape(net: Net) -> None:
    """What `x.view(x.size(0), -1)` becomes."""
    before = net.x
    shape = net.add("Shape", before)
    first = net.add("Gather", shape, net.constant(np.array(0)), axis=0)
    row = net.add("Unsqueeze", first, net.constant(np.array([0])))
    both = net.add("Concat", row, net.constant(np.array([-1])), axis=0)
    net.add("Reshape", before, both)


def sub_div(net: Net) -> None:
    net.add("Sub", net.x, net.normal(4, 1, 1))
    net.add("Div", net.x, net.constant(np.array([3.0], np.float32)))
    before = net.x
    net.add("Tanh")
    net.add("Sub", before, net.x)


def squeeze(net: Net) -> None:
    net.add("GlobalMaxPool")
    net.add("Squeeze", net.x, net.constant(np.array([-1, 2])))
    net.add("Unsqueeze", net.x, net.constant(np.array([1])))
    net.add("Flatten", axis=2)


CASES: dict[str, Callable[[Net], None]] = {
    "ceil": pool("MaxPool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
    "ceil average": pool("AveragePool", kernel_shape=[3, 2], strides=[2, 3], ceil_mode=1),
    "dilated": pool("MaxPool", kernel_shape=[2, 3], dilations=[3, 2]),
    "include pad": pool("AveragePool", kernel_shape=[3, 3], pads=[1, 0, 2, 1], count_include_pad=1),
    "exclude pad": pool("AveragePool", kernel_shape=[3, 3], pads=[1, 0, 2, 1]),
    "same lower": pool("MaxPool", kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_LOWER"),
    "whole average": pool("AveragePool", kernel_shape=[7, 9]),
    "valid": lambda net: net.conv(4, 3, [3, 2], auto_pad="VALID", dilations=[2, 1]) and None,
    "grouped": lambda net: net.conv(4, 6, [3, 3], group=2, pads=[0, 1, 1, 0]) and None,
    "softmax channels": lambda net: net.add("Softmax", axis=1) and None,
    "mean": lambda net: net.add("ReduceMean", axes=[2, -1], keepdims=0) and None,
    "reshape by shape": reshape_by_shape,
    "reshape keeps": lambda net: net.add("Reshape", net.x, net.constant(np.array([0, -1, 9]))) and None,
    "sub, div": sub_div,
    "squeeze": squeeze,
    "clip low": lambda net: net.add("Clip", net.x, net.constant(np.float32(-0.25))) and None,
    "identity": lambda net: net.add("Dropout", net.add("Identity")) and None,
}


@pytest.mark.parametrize("case", CASES)
def test_operations_answer_as_in_onnx_runtime(case: str) -> None:
    net = Net([2, 4, 7, 9])
    CASES[case](net)
    assert_same_answer(net)


@pytest.mark.parametrize("opset", [11, 12, 13, 15, 18, 20])
def test_operator_sets(opset: int) -> None:
    net = Net([2, 6, 30], opset=opset)
    net.conv(6, 4, [3])
    net.add("Relu")
    net.add("Softmax")  # flattens from axis 1 before operator set 13
    net.add("Flatten")
    net.gemm(112, 3, transB=1, alpha=0.5, beta=0.25)
    assert_same_answer(net)


def test_transposed_gemm_and_matrix_bias() -> None:
    net = Net([6, 4])
    net.add("Gemm", net.x, net.normal(6, 5), net.normal(4, 5), transA=1, beta=0.5)
    assert_same_answer(net)


def test_a_symbolic_batch_is_one_and_others_must_be_given() -> None:
    net = Net(["batch", 8])  # type: ignore[list-item]
    net.gemm(8, 3)
    assert imported(net.model()).tensors["input"].shape == (1, 8)
    assert imported(net.model(), dims={"batch": 4}).tensors["input"].shape == (4, 8)
    net = Net([1, "time", 8])  # type: ignore[list-item]
    net.add("Relu")
    with pytest.raises(ModelError, match="input 'input': dimension 1 is 'time': its size must be given"):
        imported(net.model())


def test_all_unknown_operations_are_named_together() -> None:
    net = Net([1, 8])
    for _ in range(3):
        net.add("Erf")
    model = net.model()
    model.graph.node[1].domain = "com.microsoft"
    with pytest.raises(ModelError, match=r"not supported: Erf \(2\), com.microsoft.Erf \(1\)"):
        imported(model)


def test_old_operator_sets_are_refused() -> None:
    net = Net([1, 8], opset=10)
    net.add("Relu")
    with pytest.raises(ModelError, match=r"operator set 10 is not in 11\.\."):
        imported(net.model())


def test_typed_and_raw_data_read_alike() -> None:
    for dtype, values in ((TensorProto.FLOAT, [1.5, -2.0]), (TensorProto.INT64, [-1, 1 << 40])):
        tensor = helper.make_tensor("w", dtype, [2], values)
        raw = numpy_helper.from_array(numpy_helper.to_array(tensor), "w")
        for one in (tensor, raw):
            net = Net([1, 2])
            net.add("Relu")
            net.initializers.append(one)
            model = net.model()
            model.graph.output.append(helper.make_tensor_value_info("w", dtype, [2]))
            graph = imported(model)
            (name,) = [n for n, t in graph.tensors.items() if t.data is not None]
            assert graph.tensors[name].data.tolist() == values  # type: ignore[union-attr]


def edited(change: Callable[[Any], None]) -> Any:
    net = Net([1, 2, 8])
    net.conv(2, 3, [3])
    model = net.model()
    change(model.graph)
    return model


def set_dims(*dims: int) -> Callable[[Any], None]:
    def change(graph: Any) -> None:
        del graph.initializer[0].dims[:]
        graph.initializer[0].dims.extend(dims)

    return change


HOSTILE: dict[str, tuple[Callable[[Any], None], str]] = {
    "dims that wrap": (set_dims(1 << 32, 1 << 32, 2), "tensor 'w0': dimension 4294967296"),
    "dims too many": (set_dims(*[1] * 9), "tensor 'w0': 9 dimensions"),
    "negative dims": (set_dims(3, -2, 3), "tensor 'w0': dimension -2"),
    "huge dims": (set_dims(1 << 15, 1 << 15, 1), "bytes of data, its shape and type take 4294967296"),
    "fewer dims": (set_dims(3, 6), "constant weights of 3 dimensions"),
    "short data": (lambda g: setattr(g.initializer[0], "raw_data", b"abc"), "tensor 'w0': 3 bytes of data"),
    "float16": (lambda g: setattr(g.initializer[0], "data_type", 10), "tensor 'w0': element type FLOAT16"),
    "unknown type": (lambda g: setattr(g.initializer[0], "data_type", 99), "tensor 'w0': element type 99"),
    "long name": (lambda g: setattr(g.node[0], "name", "x" * 5000), "a text of 5000 bytes, at most 1024"),
    "missing input": (lambda g: g.node[0].input.__setitem__(0, "ghost"), "'ghost' is not defined before it"),
    "output of nothing": (lambda g: setattr(g.output[0], "name", "ghost"), "'ghost' is not defined"),
    "two outputs of one name": (lambda g: g.output.append(g.output[0]), "is listed twice"),
    "defined twice": (lambda g: g.node.append(g.node[0]), "'conv0' is defined twice"),
    "no shape": (lambda g: g.input[0].type.tensor_type.ClearField("shape"), "input 'input' states no shape"),
    "huge input": (
        lambda g: setattr(g.input[0].type.tensor_type.shape.dim[2], "dim_value", 1 << 40),
        "'input'",
    ),
    "attribute of another type": (
        lambda g: g.node[0].attribute.append(helper.make_attribute("strides", "two")),
        "attribute strides is 'two', not a list of integers",
    ),
    "group of zero": (lambda g: g.node[0].attribute.append(helper.make_attribute("group", 0)), "group 0"),
    "huge pads": (
        lambda g: g.node[0].attribute.append(helper.make_attribute("pads", [1 << 62, 0])),
        "pads .* are not 2 numbers",
    ),
    "huge dilation": (
        lambda g: g.node[0].attribute.append(helper.make_attribute("dilations", [1 << 31])),
        "is larger than",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_models_are_refused_by_name(case: str) -> None:
    change, message = HOSTILE[case]
    with pytest.raises(ModelError, match=message) as error:
        optimize(imported(edited(change)))
    assert len(str(error.value)) < 400


@contextmanager
def at_most(limit: int) -> Iterator[None]:
    """What runs here may have that many bytes allocated at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def test_constants_cannot_fill_the_memory() -> None:
    net = Net([1, 2])
    both = net.constant(np.zeros(1024, np.float32))
    for _ in range(40):
        both = net.add("Concat", both, both, axis=0)
    data = memoryview(net.model().SerializeToString())
    with at_most(64 << 20), pytest.raises(ModelError, match=r"Concat .* elements of constants, at most"):
        read(data)


def test_shared_weights_cannot_fill_the_memory() -> None:
    net = Net([1, 1, 64])
    weights, x = net.normal(1, 1, 64), net.x
    for _ in range(300):
        net.x = x
        net.add("Transpose", perm=[0, 2, 1])
        net.add("Mul", net.x, net.add("Transpose", weights, perm=[0, 2, 1]))
    net.initializers[0] = numpy_helper.from_array(np.zeros((1, 1 << 16, 64), np.float32), weights)
    data = memoryview(net.model().SerializeToString())
    with at_most(60 << 20), pytest.raises(ModelError, match="elements of constants, at most"):
        read(data)


def test_external_data_stays_in_the_models_folder(tmp_path: Path) -> None:
    net = Net([1, 16])
    net.gemm(16, 64)
    model = net.model()
    x = net.inputs(1)[0]
    expected = reference(model, x)[net.x]
    home = tmp_path / "home"
    home.mkdir()
    external_data_helper.convert_model_to_external_data(model, location="weights.bin", size_threshold=0)
    onnx.save(model, home / "model.onnx")
    graph = load(home / "model.onnx")
    np.testing.assert_allclose(naive_graph.run(graph, {"input": x})[net.x], expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ModelError, match="without a folder"):
        read(memoryview((home / "model.onnx").read_bytes()))
    (home / "weights.bin").rename(tmp_path / "weights.bin")
    for location in ("../weights.bin", str(tmp_path / "weights.bin")):
        for tensor in model.graph.initializer:
            tensor.external_data[0].value = location
        (home / "model.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(ModelError, match="outside the model's folder"):
            load(home / "model.onnx")
    (home / "link.bin").symlink_to(tmp_path / "weights.bin")
    for tensor in model.graph.initializer:
        tensor.external_data[0].value = "link.bin"
    (home / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelError, match="outside the model's folder"):
        load(home / "model.onnx")


def test_a_file_that_is_not_there_or_not_a_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"ghost\.onnx: No such file"):
        load(tmp_path / "ghost.onnx")
    (tmp_path / "text.onnx").write_text("hello, this is no model")
    with pytest.raises(ModelError, match=r"text\.onnx: "):
        load(tmp_path / "text.onnx")
    (tmp_path / "empty.onnx").write_bytes(b"")
    with pytest.raises(ModelError, match="no graph"):
        load(tmp_path / "empty.onnx")


def sample() -> bytes:
    net = Net([1, 2, 12])
    net.conv(2, 3, [3])
    net.add("Relu")
    net.add("Flatten")
    net.gemm(30, 3)
    return bytes(quantized(net).SerializeToString())


SAMPLE = sample()


def survive(data: bytes) -> None:
    """Read and optimize: an answer or a `ModelError`, nothing else."""
    try:
        optimize(read(memoryview(data)))
    except ModelError as error:
        assert 0 < len(str(error)) < 2000  # noqa: PT017


def test_a_model_cut_at_any_byte_is_refused() -> None:
    for end in range(len(SAMPLE)):
        survive(SAMPLE[:end])


@settings(max_examples=250, deadline=2000, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.integers(0, len(SAMPLE) - 1), st.integers(0, 255)), min_size=1, max_size=4))
def test_a_model_of_flipped_bytes_is_read_or_refused(flips: list[tuple[int, int]]) -> None:
    data = bytearray(SAMPLE)
    for at, value in flips:
        data[at] = value
    survive(bytes(data))


def test_a_model_with_any_bit_flipped_needs_little_memory() -> None:
    with at_most(16 << 20):
        for at in range(0, len(SAMPLE), 29):
            data = bytearray(SAMPLE)
            data[at] ^= 1 << at % 8
            survive(bytes(data))


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    survive(data)


@given(st.lists(st.integers(-(1 << 63), (1 << 63) - 1)))
def test_packed_numbers_are_read_as_protobuf_writes_them(values: list[int]) -> None:
    tensor = TensorProto(int64_data=values).SerializeToString()
    got = [protobuf.packed_varints(v).tolist() for _, v in protobuf.fields(memoryview(tensor))]  # type: ignore[arg-type]
    assert got == ([values] if values else [])


@pytest.mark.parametrize("seed", range(5))
def test_random_networks_are_read_as_in_the_file(seed: int) -> None:
    net = random_net(100 + seed)
    assert_same_answer(net, seeds=1)
