"""The engines a user would otherwise run, each with its default settings but for the number of threads."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Run = Callable[[], object]
Arrays = list[NDArray[Any]]


def peers(model: Path, inputs: Arrays, threads: int) -> dict[str, Run]:
    """A call for each installed engine that takes the model's format."""
    makers = {"onnxruntime": _onnxruntime, "openvino": _openvino} if model.suffix == ".onnx" else {}
    return {name: make(model, inputs, threads) for name, make in makers.items() if find_spec(name)}


def _onnxruntime(model: Path, inputs: Arrays, threads: int) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feed = {port.name: x for port, x in zip(session.get_inputs(), inputs, strict=True)}
    return lambda: session.run(None, feed)


def _openvino(model: Path, inputs: Arrays, threads: int) -> Run:
    import openvino

    hints = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY"}
    request = openvino.Core().compile_model(str(model), "CPU", hints).create_infer_request()
    return lambda: request.infer(inputs)


def random_inputs(shapes: list[tuple[int, ...]]) -> Arrays:
    """Standard normal inputs, the same every time."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
