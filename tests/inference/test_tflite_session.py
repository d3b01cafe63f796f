"""TFLite models in the engine: to the last bit what LiteRT's reference kernels answer, run after run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="LiteRT (ai-edge-litert) is not installed")

from tflite_models import Net, Reference, assert_same

from reflexarc.inference.graph.passes import optimize
from reflexarc.inference.graph.tflite import read
from reflexarc.inference.image import ImageStore
from reflexarc.inference.isa import TIERS, Tier, runnable
from reflexarc.inference.session import Session

MODELS = Path(os.environ.get("REFLEXARC_SHARED", Path(__file__).parents[3] / "shared")) / "data/models"
NAMES = (
    "audio/okay_nabu",
    "coral/mobilenet_v1_0.25_128_quant",
    "coral/movenet_single_pose_lightning_ptq",
    "coral/tf2_mobilenet_v2_1.0_224_ptq",
    "mlperf_tiny/ad01_fp32",
    "mlperf_tiny/ad01_int8",
    "mlperf_tiny/kws_ref_model",
    "mlperf_tiny/pretrainedResnet",
    "mlperf_tiny/pretrainedResnet_quant",
    "mlperf_tiny/str_ww_ref_model",
    "mlperf_tiny/vww_96_float",
    "mlperf_tiny/vww_96_int8",
    "tflm/micro_speech_quantized",
    "tflm/trained_lstm_int8",
)
X86 = [tier for tier in TIERS.values() if not tier.arm]
needs_models = pytest.mark.skipif(
    not MODELS.is_dir(), reason="no models: REFLEXARC_SHARED names no folder with data/models"
)


def assert_answers(session: Session, reference: Reference, runs: int = 4) -> None:
    """The same answers to random inputs, and again after a reset."""
    rng = np.random.default_rng(3)
    first = []
    for _ in range(runs):
        inputs = reference.random(rng)
        answers = session.run(*inputs)
        for ours, theirs in zip(answers, reference.run(inputs), strict=True):
            assert_same(ours, theirs)
        first = first or [inputs, answers]
    session.reset()
    for again, before in zip(session.run(*first[0]), first[1], strict=True):
        np.testing.assert_array_equal(again, before)
    session.close()


@needs_models
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_a_model_answers_as_litert_does(name: str, threads: int) -> None:
    path = MODELS / f"{name}.tflite"
    assert_answers(Session.load(path, threads=threads), Reference(path))


@needs_models
@pytest.mark.parametrize(
    "tier", [tier for tier in TIERS.values() if not tier.arm], ids=lambda tier: tier.name
)
@pytest.mark.parametrize("name", ["coral/mobilenet_v1_0.25_128_quant", "mlperf_tiny/kws_ref_model"])
def test_on_every_instruction_set(name: str, tier: Tier) -> None:
    if tier not in runnable():
        pytest.skip(f"{tier.name}: this CPU runs {', '.join(each.name for each in runnable())}")
    path = MODELS / f"{name}.tflite"
    assert_answers(Session.load(path, images=ImageStore(tier)), Reference(path))


def network(seed: int) -> bytes:
    """Convolution, depthwise convolution, sum, mean, dense layer, softmax of an odd-sized image."""
    net, (h, w, c) = Net(), (9, 11, [5, 16, 19, 40][seed])
    net.rng = np.random.default_rng(seed)

    def constants(shape: tuple[int, ...], axis: int, x_scale: float) -> list[int]:
        count = shape[axis]
        scales = net.rng.uniform(0.002, 0.02, count).astype(np.float32)
        kernel = net.constant(net.rng.integers(-127, 128, shape).astype(np.int8), (scales, 0), axis)
        b = net.rng.integers(-3000, 3000, count).astype(np.int32)
        return [kernel, net.constant(b, (scales * np.float32(x_scale), 0))]

    same = {
        "padding": 0,
        "strideH": 1,
        "strideW": 1,
        "dilationHFactor": 1,
        "dilationWFactor": 1,
        "version": 3,
    }
    shape = (1, h, w, c)
    x = net.input(1, h, w, 3, dtype="int8", quant=(0.05, -4))
    (a,) = net.op("CONV_2D", [x, *constants((c, 3, 3, 3), 0, 0.05)], (shape, "int8", (0.04, 7)), **same)
    deep = {**same, "depthMultiplier": 1, "fusedActivationFunction": 1}
    operands = [a, *constants((1, 3, 3, c), 3, 0.04)]
    (b,) = net.op("DEPTHWISE_CONV_2D", operands, (shape, "int8", (0.03, -128)), **deep)
    deep |= {"strideH": 2, "strideW": 2}
    (d,) = net.op("ADD", [a, b], (shape, "int8", (0.05, -20)))
    half = (1, 5, 6, c)
    operands = [d, *constants((1, 3, 3, c), 3, 0.05)]
    (e,) = net.op("DEPTHWISE_CONV_2D", operands, (half, "int8", (0.03, -128)), **deep)
    pool = {"padding": 1, "strideH": 5, "strideW": 6, "filterHeight": 5, "filterWidth": 6, "version": 2}
    (f,) = net.op("AVERAGE_POOL_2D", [e], ((1, 1, 1, c), "int8", (0.03, -128)), **pool)
    (g,) = net.op("RESHAPE", [f, net.integers(1, c)], ((1, c), "int8", (0.03, -128)))
    w_ = net.constant(net.rng.integers(-127, 128, (7, c)).astype(np.int8), (0.02, 0))
    (logits,) = net.op("FULLY_CONNECTED", [g, w_, -1], ((1, 7), "int8", (0.2, 3)), version=5)
    (y,) = net.op("SOFTMAX", [logits], ((1, 7), "int8", (1 / 256, -128)), beta=1.0)
    return net.bytes(y)


@pytest.mark.parametrize("seed", range(4))
def test_a_small_network_answers_as_litert_does(seed: int) -> None:
    model = network(seed)
    assert_answers(Session(optimize(read(memoryview(model)))), Reference(model), runs=10)
