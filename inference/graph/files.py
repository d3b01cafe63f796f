"""A model file of either format, told apart by what it holds."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reflexarc.inference.graph import onnx, tflite
from reflexarc.inference.graph.ir import Graph, ModelError
from reflexarc.inference.graph.tflite.codes import IDENTIFIER


def load(path: Path | str, dims: Mapping[str, int] | None = None) -> Graph:
    """The graph of an .onnx or .tflite file; `ModelError` naming what is wrong with it.

    `dims` sizes the symbolic dimensions of an ONNX model.
    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from None
    return tflite.load(path) if head[4:] == IDENTIFIER else onnx.load(path, dims)
