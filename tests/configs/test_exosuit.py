"""The shipped model and recording of the exosuit demo are what their README says."""

from collections import Counter

import msgpack
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from mcap.reader import make_reader

from reflexarc.configs.exosuit import STATED_ACCURACY, evaluate, settings
from reflexarc.configs.exosuit.recording import LABEL_TOPIC, Section, read_sections

CONFIG = settings.load()
STANDARD_OPS = {
    "QuantizeLinear",
    "DequantizeLinear",
    "Conv",
    "Relu",
    "GlobalAveragePool",
    "Flatten",
    "Gemm",
    "Softmax",
}


@pytest.fixture(scope="module")
def model() -> onnx.ModelProto:
    return onnx.load(settings.MODEL)


@pytest.fixture(scope="module")
def sections() -> list[Section]:
    return list(read_sections(settings.RECORDING, CONFIG.topic, CONFIG.rate_hz))


def test_model_is_a_small_static_standard_graph(model: onnx.ModelProto) -> None:
    onnx.checker.check_model(model, full_check=True)
    assert settings.MODEL.stat().st_size < 100_000
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]
    assert {node.op_type for node in model.graph.node} <= STANDARD_OPS
    assert shape(model.graph.input[0]) == [1, 6, CONFIG.length]
    assert shape(model.graph.output[0]) == [1, len(CONFIG.labels)]


def test_every_layer_of_the_model_is_signed_int8(model: onnx.ModelProto) -> None:
    initializers = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    made_by = {name: node for node in model.graph.node for name in node.output}
    quantizers = [node for node in model.graph.node if node.op_type == "QuantizeLinear"]
    assert all(initializers[node.input[2]].dtype == np.int8 for node in quantizers)
    layers = [node for node in model.graph.node if node.op_type in {"Conv", "Gemm"}]
    for layer in layers:
        dequantizers = [made_by[name] for name in layer.input]
        assert {node.op_type for node in dequantizers} == {"DequantizeLinear"}
        weight, scale, zero = (initializers[name] for name in dequantizers[1].input)
        assert weight.dtype == np.int8
        assert scale.shape == (weight.shape[0],)
        assert not zero.any()
        assert initializers[dequantizers[2].input[0]].dtype == np.int32


def test_model_starts_with_the_input_step_and_ends_in_integer_scores(model: onnx.ModelProto) -> None:
    made_by = {name: node for node in model.graph.node for name in node.output}
    softmax = made_by[model.graph.output[0].name]
    dequantizer = made_by[softmax.input[0]]
    readers = [node.op_type for node in model.graph.node if model.graph.input[0].name in node.input]
    assert (softmax.op_type, dequantizer.op_type) == ("Softmax", "DequantizeLinear")
    assert readers == ["QuantizeLinear"]


def test_model_names_its_labels_and_the_person_left_out(model: onnx.ModelProto) -> None:
    properties = {p.key: p.value for p in model.metadata_props}
    assert tuple(properties["labels"].split(",")) == CONFIG.labels
    assert 1 <= int(properties["held_out_person"]) <= 10


def test_recording_is_of_the_person_left_out(model: onnx.ModelProto) -> None:
    properties = {p.key: p.value for p in model.metadata_props}
    with settings.RECORDING.open("rb") as file:
        (source,) = [m for m in make_reader(file).iter_metadata() if m.name == "source"]
    assert source.metadata["person"] == properties["held_out_person"]
    assert "David M. Burns" in source.metadata["notice"]


def test_recording_is_small_and_covers_every_exercise_in_two_minutes(sections: list[Section]) -> None:
    assert settings.RECORDING.stat().st_size <= 400_000
    assert Counter(section.label for section in sections) == Counter(CONFIG.labels)
    assert 110 <= (sections[-1].t[-1] - sections[0].t[0]) / 1e9 <= 130


def test_recording_holds_one_plain_map_a_sample() -> None:
    seq = 0
    topics: Counter[str] = Counter()
    with settings.RECORDING.open("rb") as file:
        for _, channel, message in make_reader(file).iter_messages():
            body = msgpack.unpackb(message.data)
            topics[channel.topic] += 1
            assert channel.message_encoding == "msgpack"
            assert message.log_time == message.publish_time == body["t"]
            if channel.topic == CONFIG.topic:
                assert set(body) == {"seq", "t", "data"}
                assert body["seq"] == seq
                assert len(body["data"]) == 6
                assert all(isinstance(v, int) and -32768 <= v < 32768 for v in body["data"])
                seq += 1
    assert topics == {CONFIG.topic: seq, LABEL_TOPIC: 2 * len(CONFIG.labels)}


def test_recording_runs_at_its_rate_within_a_series(sections: list[Section]) -> None:
    for section in sections:
        assert set(np.diff(section.t)) == {round(1e9 / CONFIG.rate_hz)}
        assert (section.t[0] - sections[0].t[0]) % (CONFIG.hop * 1e9 / CONFIG.rate_hz) == 0


def test_accuracy_on_the_recording_is_the_stated_one(sections: list[Section]) -> None:
    session = ort.InferenceSession(settings.MODEL, providers=["CPUExecutionProvider"])
    runs = []
    for section in sections:
        scores = evaluate.score(session, evaluate.windows(section.counts, CONFIG))
        truth = np.full(len(scores), CONFIG.labels.index(section.label))
        runs.append(evaluate.Run(truth, evaluate.decide(scores, CONFIG.labels, CONFIG.policy)))
    assert 0 <= evaluate.accuracy(runs) - STATED_ACCURACY < 0.001
    assert f"accuracy of {STATED_ACCURACY:.3f}" in settings.README.read_text(encoding="utf-8")


def shape(value: onnx.ValueInfoProto) -> list[int]:
    return [d.dim_value for d in value.type.tensor_type.shape.dim]
