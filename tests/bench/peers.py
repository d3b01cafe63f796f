"""The engines a user would otherwise run, each with its default settings but for the number of threads."""

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import DTYPES

Run = Callable[[], object]
Arrays = list[NDArray[Any]]


def peers(model: Path, inputs: Arrays, threads: int) -> dict[str, Run]:
    """A call for each installed engine that takes the model's format."""
    makers = {"onnxruntime": _onnxruntime, "openvino": _openvino}
    if model.suffix == ".tflite":
        makers = {"ai_edge_litert": _litert}
    return {name: make(model, inputs, threads) for name, make in makers.items() if find_spec(name)}


def _litert(model: Path, inputs: Arrays, threads: int) -> Run:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(model), num_threads=threads)
    interpreter.allocate_tensors()
    places = [detail["index"] for detail in interpreter.get_input_details()]
    results = [detail["index"] for detail in interpreter.get_output_details()]

    def run() -> object:
        for place, x in zip(places, inputs, strict=True):
            interpreter.set_tensor(place, x)
        interpreter.invoke()
        return [interpreter.get_tensor(place) for place in results]

    return run


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


def random_inputs(ports: list[tuple[tuple[int, ...], str]]) -> Arrays:
    """Inputs of these shapes and types, the same every time: standard normal, or any integers."""
    rng = np.random.default_rng(1)
    return [_random(rng, shape, DTYPES[dtype]) for shape, dtype in ports]


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)
