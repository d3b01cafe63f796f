"""One run of a model: ours beside the engines a user would otherwise take, interleaved, 1 and 2 threads.

Times are microseconds of one call from Python, inputs copied in and outputs out. The limit is the model's
multiply-accumulates at the measured integer or float peak.
"""

import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from reflexarc.bench.contest import contest
from reflexarc.bench.machine import Machine
from reflexarc.bench.peers import peers, random_inputs
from reflexarc.bench.rows import Row, percentiles
from reflexarc.inference.graph.files import load
from reflexarc.inference.graph.ops import macs
from reflexarc.inference.graph.passes import optimize
from reflexarc.inference.session import Session

SHIPPED = ("exosuit/exosuit.onnx",)
SHARED = (
    "policy/mjp_go1_policy.onnx",
    "policy/mjp_g1_policy.onnx",
    "policy/unitree_rl_lab_g1_velocity.onnx",
    "mlperf_tiny/kws_ref_model.tflite",
    "mlperf_tiny/vww_96_int8.tflite",
    "mlperf_tiny/vww_96_float.tflite",
    "onnx/vww_96_float.onnx",
    "mlperf_tiny/pretrainedResnet_quant.tflite",
    "mlperf_tiny/pretrainedResnet.tflite",
    "mlperf_tiny/ad01_int8.tflite",
    "mlperf_tiny/ad01_fp32.tflite",
    "mlperf_tiny/str_ww_ref_model.tflite",
    "tflm/micro_speech_quantized.tflite",
    "audio/okay_nabu.tflite",
    "coral/mobilenet_v1_0.25_128_quant.tflite",
    "coral/tf2_mobilenet_v2_1.0_224_ptq.tflite",
    "coral/movenet_single_pose_lightning_ptq.tflite",
    "tflm/trained_lstm_int8.tflite",
)


def known() -> Iterator[Path]:
    """The shipped models, and those below $REFLEXARC_SHARED where that is set."""
    yield from (Path(str(files("reflexarc.configs"))) / name for name in SHIPPED)
    shared = os.environ.get("REFLEXARC_SHARED")
    if shared:
        found = (Path(shared) / "data" / "models" / name for name in SHARED)
        yield from (path for path in found if path.exists())


def run(machine: Machine, models: list[Path], with_peers: bool) -> Iterator[Row]:
    """A row for each model and thread count."""
    for path in models:
        graph = optimize(load(path))
        work = sum(macs(graph, node) for node in graph.nodes)
        for threads in (1, 2):
            if threads <= machine.cores:
                yield _row(path, threads, work, machine, with_peers)


def _row(path: Path, threads: int, work: int, machine: Machine, with_peers: bool) -> Row:
    session = Session.load(path, threads=threads)
    inputs = random_inputs([(port.shape, port.dtype) for port in session.inputs])
    others = peers(path, inputs, threads) if with_peers else {}
    taken = contest({"ours": lambda: session.run(*inputs), **others})
    session.close()
    ours = percentiles(taken.pop("ours"))
    limit_us = work / machine.macs_per_us(threads, integer=session.raw(0) is not None)
    return Row(
        path.stem,
        threads,
        ours,
        {name: percentiles(each) for name, each in taken.items()},
        limit_us / ours["p50"],
    )
