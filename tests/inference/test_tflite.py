"""TFLite files: what is understood, what is refused and how, and that no bytes whatever do harm."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import naive_fixed
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("ai_edge_litert", reason="LiteRT (ai-edge-litert) is not installed")

from ai_edge_litert import schema_py_generated as schema
from tflite_models import Net, Ours, Reference, assert_same

from reflexarc.inference.graph import files, fixed
from reflexarc.inference.graph.ir import Graph, ModelError, State, check
from reflexarc.inference.graph.passes import optimize, steps
from reflexarc.inference.graph.tflite import load, read
from reflexarc.inference.graph.tflite.codes import OPERATORS, TYPES
from reflexarc.inference.graph.tflite.flatbuffer import Buffer

ACTIVATION = (0.05, -3)


def layered() -> bytes:
    """A convolution, a pool, a dense layer and a softmax, on int8."""
    net = Net()
    x = net.input(1, 6, 6, 3, dtype="int8", quant=ACTIVATION)
    w = net.constant(net.rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8), (np.full(4, 0.01), 0))
    b = net.constant(np.zeros(4, np.int32), (np.full(4, 0.01 * 0.05), 0))
    (y,) = net.op("CONV_2D", [x, w, b], ((1, 6, 6, 4), "int8", (0.1, 4)), strideH=1, strideW=1, version=3)
    (y,) = net.op(
        "MAX_POOL_2D",
        [y],
        ((1, 3, 3, 4), "int8", (0.1, 4)),
        strideH=2,
        strideW=2,
        filterHeight=2,
        filterWidth=2,
    )
    (y,) = net.op("RESHAPE", [y, net.integers(1, -1)], ((1, 36), "int8", (0.1, 4)))
    w = net.constant(net.rng.integers(-127, 128, (5, 36)).astype(np.int8), (0.01, 0))
    (y,) = net.op("FULLY_CONNECTED", [y, w, -1], ((1, 5), "int8", (0.2, 0)), version=5)
    return net.bytes(*net.op("SOFTMAX", [y], ((1, 5), "int8", (1 / 256, -128)), beta=1.0))


def stateful(*, name: str = "ring", start: int = 7, initialized: bool = True) -> bytes:
    """Keeps the last 3 of what it is given, 2 at a time, and gives their sum with what comes."""
    net = Net()
    x = net.input(1, 2, dtype="int8", quant=ACTIVATION)
    if initialized:
        net.model.subgraphs.append(net.subgraph())
        (handle,) = net.op("VAR_HANDLE", [], ((), "resource"), graph=1, sharedName=name)
        value = net.tensor((1, 3), "int8", ACTIVATION, np.full((1, 3), start, np.int8), graph=1)
        net.op("ASSIGN_VARIABLE", [handle, value], graph=1)
        net.op("CALL_ONCE", [], initSubgraphIndex=1)
    (handle,) = net.op("VAR_HANDLE", [], ((), "resource"), sharedName=name)
    (old,) = net.op("READ_VARIABLE", [handle], ((1, 3), "int8", ACTIVATION))
    (both,) = net.op("CONCATENATION", [old, x], ((1, 5), "int8", ACTIVATION), axis=1)
    last = [net.integers(0, 2), net.integers(-1, 3)]
    (new,) = net.op("SLICE", [both, *last], ((1, 3), "int8", ACTIVATION))
    net.op("ASSIGN_VARIABLE", [handle, new])
    (twice,) = net.op("ADD", [old, new], ((1, 3), "int8", (0.1, 0)))
    return net.bytes(twice, both)


SAMPLES = {"layered": layered(), "stateful": stateful()}


def imported(data: bytes) -> Graph:
    return read(memoryview(data))


def survive(data: bytes) -> None:
    """Read and rewrite, or refuse."""
    with suppress(ModelError):
        optimize(imported(data))


def refused(change: Callable[[Any], None], message: str, sample: bytes = SAMPLES["layered"]) -> None:
    """The sample, changed as an object of LiteRT's own schema, is refused so."""
    import flatbuffers

    model = schema.ModelT.InitFromPackedBuf(sample, 0)
    change(model)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    with pytest.raises(ModelError, match=message):
        imported(bytes(builder.Output()))


@contextmanager
def at_most(limit: int) -> Iterator[None]:
    """What runs here may have that many bytes allocated at once."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


def test_the_numbers_are_those_of_the_schema() -> None:
    for number, name in enumerate(OPERATORS):
        assert getattr(schema.BuiltinOperator, name) == number
    for number, name in enumerate(TYPES):
        assert getattr(schema.TensorType, name) == number


def test_variables_are_kept_from_run_to_run() -> None:
    reference, graph = Reference(SAMPLES["stateful"]), imported(SAMPLES["stateful"])
    assert [state.start.tolist() for state in graph.states] == [[[7, 7, 7]]]
    both = [Ours(graph), Ours(optimize(graph))]
    rng = np.random.default_rng(0)
    for _ in range(4):
        inputs = reference.random(rng)
        expected = reference.run(inputs)
        for ours in both:
            for mine, theirs in zip(ours.run(inputs), expected, strict=True):
                assert_same(mine, theirs)


def test_a_state_survives_every_pass() -> None:
    graph = imported(SAMPLES["stateful"])
    for _, after in steps(graph):
        assert after.states == graph.states
    assert "state state:ring <- " in str(graph)


def test_a_variable_that_nothing_initializes_is_refused() -> None:
    with pytest.raises(ModelError, match="variable 'ring' is read before it is assigned"):
        imported(stateful(initialized=False))


def test_states_that_do_not_fit_are_refused() -> None:
    graph = imported(SAMPLES["stateful"])
    (state,) = graph.states
    for wrong, message in (
        (State("nothing", state.output, state.start), "is not an input and an output"),
        (State(state.input, graph.outputs[1], state.start), "is followed by"),
        (State(state.input, state.output, np.zeros((1, 4), np.int8)), "starts as int8"),
    ):
        graph.states = [wrong]
        with pytest.raises(ModelError, match=message):
            check(graph)


def test_float_arithmetic_between_integers_stays_float() -> None:
    """As LiteRT computes it: what ONNX's pairs of quantizations become would answer otherwise."""
    net = Net()
    a, b = (net.input(4, 50, dtype="int8", quant=(0.1, zero)) for zero in (3, -4))
    floats = [net.op("DEQUANTIZE", [x], ((4, 50), "float32"))[0] for x in (a, b)]
    (total,) = net.op("ADD", floats, ((4, 50), "float32"))
    (y,) = net.op("QUANTIZE", [total], ((4, 50), "int8", (0.15, 0)))
    model = net.bytes(y)
    reference, ours = Reference(model), Ours(optimize(imported(model)))
    assert [node.op for node in ours.graph.nodes] == ["dequantize", "dequantize", "add", "quantize"]
    inputs = reference.random(net.rng)
    assert_same(ours.run(inputs)[0], reference.run(inputs)[0])


def test_uint8_comes_in_and_goes_out_as_it_is() -> None:
    net = Net()
    x = net.input(2, 8, dtype="uint8", quant=(0.1, 100))
    (y,) = net.op("RELU", [x], ((2, 8), "uint8", (0.1, 100)))
    graph = optimize(imported(net.bytes(y)))
    assert [graph.tensors[name].dtype for name in (*graph.inputs, *graph.outputs)] == ["u8", "u8"]
    assert [node.op for node in graph.nodes] == ["flip", "lookup", "flip"]


def test_inputs_and_outputs_may_be_the_same_tensor_or_constant() -> None:
    net = Net()
    x, c = net.input(2, 3), net.constant(np.ones((2, 2), np.float32))
    model = net.bytes(x, c, x)
    graph = optimize(imported(model))
    assert len(graph.outputs) == len(set(graph.outputs)) == 3
    inputs = Reference(model).random(net.rng)
    results = Ours(graph).run(inputs)
    np.testing.assert_array_equal(results[0], inputs[0])
    np.testing.assert_array_equal(results[1], np.ones((2, 2)))


def _tensors(model: Any) -> Any:
    return model.subgraphs[0].tensors


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: setattr(m, "version", 2), "schema version 2, not 3"),
        (lambda m: setattr(m, "subgraphs", []), "without a graph"),
        (lambda m: setattr(m.subgraphs[0].operators[0], "opcodeIndex", 99), "of kind 99 of"),
        (
            lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [0, 1, 77]),
            "CONV_2D 0: inputs name tensor 77",
        ),
        (lambda m: setattr(m.subgraphs[0], "outputs", [-1]), "outputs name tensor -1"),
        (
            lambda m: setattr(m.subgraphs[0].operators[0], "inputs", [4, 1, 2]),
            "CONV_2D 0.* before it is defined",
        ),
        (
            lambda m: setattr(_tensors(m)[1], "shape", [4, 3, 3, 4]),
            "108 bytes of data, its shape and type take 144",
        ),
        (lambda m: setattr(_tensors(m)[1], "shape", [1 << 30, 1 << 30, 3, 3]), "elements, at most"),
        (lambda m: setattr(_tensors(m)[0], "shape", [1, 6, -6, 3]), "dimension -6"),
        (lambda m: setattr(_tensors(m)[0], "type", 5), "type STRING is not one of"),
        (lambda m: setattr(_tensors(m)[0], "type", 99), "type type 99"),
        (lambda m: setattr(_tensors(m)[1].quantization, "scale", [0.1] * 3), "3 scales and 4 zero points"),
        (
            lambda m: setattr(_tensors(m)[1].quantization, "zeroPoint", [500]),
            "zero points 500..500 are outside",
        ),
        (lambda m: setattr(_tensors(m)[1].quantization, "quantizedDimension", 9), "axis 9 is not in 0..3"),
        (lambda m: setattr(_tensors(m)[3].quantization, "scale", [float("nan")]), "scale nan"),
        (lambda m: setattr(_tensors(m)[3].quantization, "scale", []), "without a scale"),
        (lambda m: setattr(_tensors(m)[3].quantization, "scale", [1e-30]), "a ratio of scales is"),
        (lambda m: setattr(m.subgraphs[0].operators[0].builtinOptions, "strideW", 0), "strides"),
        (lambda m: setattr(m.subgraphs[0].operators[0].builtinOptions, "padding", 7), "padding 7"),
        (
            lambda m: setattr(m.subgraphs[0].operators[0].builtinOptions, "fusedActivationFunction", 4),
            "activation 4",
        ),
        (lambda m: setattr(m.subgraphs[0].operators[4].builtinOptions, "beta", float("inf")), "beta is inf"),
    ],
)
def test_unsound_models_are_named(change: Callable[[Any], None], message: str) -> None:
    refused(change, message)


def test_files_that_are_no_models_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"nothing\.tflite: No such file"):
        load(tmp_path / "nothing.tflite")
    other = tmp_path / "other.tflite"
    other.write_bytes(b"\0" * 100)
    with pytest.raises(
        ModelError, match=r"other\.tflite: FlatBuffer of 100 bytes without the identifier TFL3"
    ):
        load(other)


def test_a_file_is_told_by_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(SAMPLES["layered"])
    assert [node.op for node in files.load(path).nodes] == [node.op for node in load(path).nodes]
    path.write_bytes(b"\x08\x08")
    with pytest.raises(ModelError, match="not an ONNX model"):
        files.load(path)
    with pytest.raises(ModelError, match="No such file"):
        files.load(tmp_path / "nothing")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_model_cut_anywhere_is_refused_or_whole(name: str) -> None:
    sample = SAMPLES[name]
    for end in range(len(sample)):
        survive(sample[:end])
    survive(sample)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_model_with_any_bit_flipped_needs_little_memory(name: str) -> None:
    sample = SAMPLES[name]
    with at_most(16 << 20):
        for at in range(0, 8 * len(sample), 61):
            data = bytearray(sample)
            data[at // 8] ^= 1 << at % 8
            survive(bytes(data))


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("value", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x40000000])
def test_a_model_with_a_wild_offset_is_read_or_refused(name: str, value: int) -> None:
    sample = SAMPLES[name]
    with at_most(16 << 20):
        for at in range(0, len(sample) - 3, 28):
            data = bytearray(sample)
            struct.pack_into("<I", data, at, value)
            survive(bytes(data))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(sorted(SAMPLES)),
    st.lists(st.tuples(st.integers(0, 10000), st.integers(0, 255)), min_size=1, max_size=30),
)
def test_a_model_of_flipped_bytes_is_read_or_refused(name: str, flips: list[tuple[int, int]]) -> None:
    data = bytearray(SAMPLES[name])
    for at, value in flips:
        data[at % len(data)] = value
    survive(bytes(data))


@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    survive(struct.pack("<I", 8) + b"TFL3" + data)


def test_tables_that_are_shared_without_end_are_refused() -> None:
    """A vector of 20000 places that all name one table, read again and again."""
    count, vector = 20_000, 28
    inner = vector + 4 * count
    data = bytearray(inner + 8)
    struct.pack_into("<I4sHHHxxiII", data, 0, 16, b"TFL3", 6, 8, 4, 8, 4, count)
    for at in range(vector, inner, 4):
        struct.pack_into("<I", data, at, inner - at)
    struct.pack_into("<i", data, inner, inner - 8)
    root = Buffer(memoryview(bytes(data)), b"TFL3").root()
    assert len(root.tables(0, "many")) == count
    with pytest.raises(ModelError, match="shared more than 4 times over"):
        root.tables(0, "many")


def test_a_recurrent_layer_cannot_make_nodes_without_end() -> None:
    net = Net()
    x = net.input(1, 4096, 1, dtype="float32")
    one = net.constant(np.ones((1, 1), np.float32))
    states = [net.tensor((1, 1), "float32") for _ in range(2)]
    for index in states:
        net.model.subgraphs[0].tensors[index].isVariable = True
    inputs = [x, *[one] * 8, -1, -1, -1, -1, -1, -1, -1, -1, -1, *states, -1, -1, -1, -1]
    y = 0
    for _ in range(30):
        (y,) = net.op(
            "UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, ((1, 4096, 1), "float32"), fusedActivationFunction=4
        )
    with pytest.raises(ModelError, match="more than 65536 nodes"):
        imported(net.bytes(y))


INT32 = st.integers(-(1 << 31), (1 << 31) - 1)


@given(INT32, st.floats(1e-9, 1e4), st.integers(0, 31))
def test_fixed_point_is_gemmlowps(x: int, real: float, places: int) -> None:
    m, n = fixed.multiplier(real)
    assert (m, n) == naive_fixed.multiplier(real)
    assert fixed.scale(x, m, n) == naive_fixed.scale(x, m, n)
    assert fixed.halve(x, places) == naive_fixed.halve(x, places)
    assert fixed.high(x, m) == naive_fixed.high(x, m)


@given(st.integers(-32768, 32767), st.integers(0, 6))
def test_functions_of_16_bits_are_gemmlowps(a: int, point: int) -> None:
    assert fixed.logistic(a) == naive_fixed.logistic(a)
    assert fixed.tanh(a, point) == naive_fixed.tanh(a, point)


@given(st.integers(1, (1 << 31) - 1))
def test_reciprocals_are_gemmlowps(x: int) -> None:
    r, k = fixed.reciprocal(x)
    assert (r, k) == naive_fixed.reciprocal(x, 12)
    assert r / 2**31 / 2**k * x / 2**19 == pytest.approx(1, rel=1e-6)
