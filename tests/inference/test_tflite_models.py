"""Real .tflite models: every tensor as LiteRT's reference kernels have it, right answers on real inputs."""

from __future__ import annotations

import csv
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="LiteRT (ai-edge-litert) is not installed")

from tflite_models import Array, Ours, Reference, assert_same

from reflexarc.inference.graph.ir import Graph, ModelError
from reflexarc.inference.graph.passes import optimize
from reflexarc.inference.graph.tflite import load

DATA = Path(os.environ.get("REFLEXARC_SHARED", Path(__file__).parents[3] / "shared")) / "data"
MODELS, RECORDINGS = DATA / "models", DATA / "recordings"
pytestmark = pytest.mark.skipif(
    not MODELS.is_dir(), reason="no models: REFLEXARC_SHARED names no folder with data/models"
)

NAMES = {
    "audio/okay_nabu": 43,
    "coral/mobilenet_v1_0.25_128_quant": 33,
    "coral/movenet_single_pose_lightning_ptq": 157,
    "coral/tf2_mobilenet_v2_1.0_224_ptq": 70,
    "mlperf_tiny/ad01_fp32": 10,
    "mlperf_tiny/ad01_int8": 10,
    "mlperf_tiny/kws_ref_model": 13,
    "mlperf_tiny/kws_ref_model_float32": 13,
    "mlperf_tiny/pretrainedResnet": 16,
    "mlperf_tiny/pretrainedResnet_quant": 16,
    "mlperf_tiny/str_ww_ref_model": 11,
    "mlperf_tiny/vww_96_float": 31,
    "mlperf_tiny/vww_96_int8": 31,
    "tflm/micro_speech_quantized": 4,
    "tflm/trained_lstm_int8": 4,
}
"""Models, and how many of a graph's tensors LiteRT shows under the same name."""


def path(name: str) -> Path:
    return MODELS / f"{name}.tflite"


def unsigned(name: str, data: Array) -> Array:
    """What the graph holds as int8 of a file's uint8."""
    return (data.view(np.uint8) ^ np.uint8(0x80)) if name.endswith(":int8") else data


def assert_tensors_match(ours: Ours, theirs: dict[str, Array]) -> int:
    """Every tensor of both that has one name in both; how many those are."""
    count = 0
    for name in computed(ours.graph):
        reference = theirs.get(name.removesuffix(":int8"))
        if reference is not None:
            mine = unsigned(name, ours.results[name])
            assert_same(mine.reshape(reference.shape), reference, name)
            count += 1
    return count


def computed(graph: Graph) -> list[str]:
    """The tensors that operations give."""
    return [name for node in graph.nodes for name in node.outputs]


@pytest.mark.parametrize("name", NAMES)
def test_every_tensor_is_that_of_litert(name: str) -> None:
    """On random inputs, run after run: what is kept between runs is compared as well."""
    reference, graph = Reference(path(name)), load(path(name))
    ours, optimized = Ours(graph), Ours(optimize(graph))
    rng = np.random.default_rng(1)
    for _ in range(3):
        inputs = reference.random(rng)
        expected = reference.run(inputs)
        for one in (ours, optimized):
            for mine, theirs in zip(one.run(inputs), expected, strict=True):
                assert_same(mine, theirs, name)
        kept = reference.tensors(name.removesuffix(":int8") for name in computed(graph))
        assert assert_tensors_match(ours, kept) == NAMES[name]
        assert assert_tensors_match(optimized, kept) > NAMES[name] // 3


def test_the_custom_operators_of_the_audio_front_end_are_named_at_once() -> None:
    with pytest.raises(
        ModelError, match=r"custom SignalEnergy \(1\), custom SignalFftAutoScale .*SignalWindow"
    ):
        load(path("tflm/audio_preprocessor_int8"))


def picture(name: str) -> Array:
    """[height, width, 3] of an uncompressed BMP."""
    data = (RECORDINGS / "images" / f"{name}.bmp").read_bytes()
    start, _, width, height, _, bits = struct.unpack_from("<IIiiHH", data, 10)
    row = (width * bits // 8 + 3) // 4 * 4
    pixels = np.frombuffer(data, np.uint8, row * abs(height), start).reshape(abs(height), row)
    pixels = pixels[:, : width * bits // 8].reshape(abs(height), width, bits // 8)
    pixels = pixels[::-1] if height > 0 else pixels
    return np.repeat(pixels, 3, axis=2) if bits == 8 else pixels[..., ::-1][..., -3:]


def scaled(pixels: Array, size: int) -> Array:
    """The nearest pixels of a square of that size, [1, size, size, 3]."""
    rows, columns = ((np.arange(size) + 0.5) * n / size for n in pixels.shape[:2])
    return np.ascontiguousarray(pixels[rows.astype(int)][:, columns.astype(int)][None])


def answer(name: str, *inputs: Array) -> list[Array]:
    """What we and LiteRT say, which is the same."""
    reference, ours = Reference(path(name)), Ours(optimize(load(path(name))))
    result = ours.run(inputs)
    for mine, theirs in zip(result, reference.run(inputs), strict=True):
        assert_same(mine, theirs, name)
    return result


def quantized(name: str, x: Array) -> Array:
    """Floats as the model's int8 input."""
    detail: Any = Reference(path(name)).interpreter.get_input_details()[0]
    scale, zero = detail["quantization"]
    return np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8)


@pytest.mark.parametrize("kind", ["int8", "float"])
def test_people_are_seen(kind: str) -> None:
    name = f"mlperf_tiny/vww_96_{kind}"
    for label, file in enumerate(("cat", "squat")):
        x = (scaled(picture(file), 96) / 255).astype(np.float32)
        (scores,) = answer(name, quantized(name, x) if kind == "int8" else x)
        assert scores[0].argmax() == label


@pytest.mark.parametrize("model", ["mobilenet_v1_0.25_128_quant", "tf2_mobilenet_v2_1.0_224_ptq"])
def test_pictures_are_named(model: str) -> None:
    labels = (MODELS / "coral" / "imagenet_labels.txt").read_text().splitlines()
    size = 128 if "128" in model else 224
    (scores,) = answer(f"coral/{model}", scaled(picture("cat"), size))
    assert "cat" in labels[int(scores[0].argmax())]


def test_a_pose_is_found() -> None:
    with (MODELS / "coral/movenet_single_pose_lightning_ptq_reference.csv").open() as file:
        expected = [(float(r["keypoint_y"]), float(r["keypoint_x"])) for r in csv.DictReader(file)]
    (pose,) = answer("coral/movenet_single_pose_lightning_ptq", scaled(picture("squat"), 192))
    found = pose[0, 0, :, :2]
    assert found.shape == (17, 2)
    distance = np.minimum(abs(found - expected).max(1), abs(found[:, ::-1] - expected).max(1))
    assert np.median(distance) < 0.02


@pytest.mark.parametrize(("model", "error"), [("ad01_int8", 10.267), ("ad01_fp32", 9.709)])
def test_a_machine_sounds_sound(model: str, error: float) -> None:
    name = f"mlperf_tiny/{model}"
    windows = np.fromfile(RECORDINGS / "machine/normal_id_01_00000000_hist_librosa.bin", np.float32).reshape(
        -1, 640
    )
    reference, ours = Reference(path(name)), Ours(optimize(load(path(name))))
    is_integer = model == "ad01_int8"
    scale, zero = reference.interpreter.get_output_details()[0]["quantization"]
    errors = []
    for window in windows:
        x = window[None]
        y = ours.run([quantized(name, x) if is_integer else x])[0]
        if is_integer:
            y = (y.astype(np.float32) - zero) * np.float32(scale)
        errors.append(np.square(y - x).mean())
    assert np.mean(errors) == pytest.approx(error, rel=1e-3)


def test_windows_of_speech_are_told_apart() -> None:
    name = "mlperf_tiny/str_ww_ref_model"
    samples = np.load(MODELS / "mlperf_tiny/str_ww_calibration_samples.npz")
    reference, ours = Reference(path(name)), Ours(optimize(load(path(name))))
    right = 0
    for window, label in zip(samples["specs"], samples["labels"], strict=True):
        x = [quantized(name, window[None])]
        (scores,) = ours.run(x)
        assert_same(scores, reference.run(x)[0], name)
        right += int(scores[0].argmax() == int(label))
    assert right >= 40
