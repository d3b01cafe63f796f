"""TFLite models in the engine: to the last bit what LiteRT's reference kernels answer, run after run."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="LiteRT (ai-edge-litert) is not installed")

from tflite_models import Reference, assert_same

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


@pytest.mark.skipif(
    not MODELS.is_dir(), reason="no models: REFLEXARC_SHARED names no folder with data/models"
)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", NAMES)
def test_a_model_answers_as_litert_does(name: str, threads: int) -> None:
    path = MODELS / f"{name}.tflite"
    session, reference, rng = Session.load(path, threads=threads), Reference(path), np.random.default_rng(3)
    first = []
    for _ in range(4):
        inputs = reference.random(rng)
        answers = session.run(*inputs)
        for ours, theirs in zip(answers, reference.run(inputs), strict=True):
            assert_same(ours, theirs, name)
        first = first or [inputs, answers]
    session.reset()
    for again, before in zip(session.run(*first[0]), first[1], strict=True):
        np.testing.assert_array_equal(again, before)
    session.close()
