"""A model file of either format, told apart by what it holds; only its own reader is imported."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from reflexarc.inference.graph.ir import Graph, ModelError

TFLITE = b"TFL3"  # the FlatBuffer's file identifier


def load(path: Path | str, dims: Mapping[str, int] | None = None) -> Graph:
    """The graph of an .onnx or .tflite file; `ModelError` naming what is wrong with it.

    `dims` sizes the symbolic dimensions of an ONNX model.
    """
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:  # noqa: PTH123
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ModelError(f"{path}: is not a regular file")
            head = file.read(8)
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from None
    if head[4:] == TFLITE:
        from reflexarc.inference.graph import tflite

        return tflite.load(path)
    from reflexarc.inference.graph import onnx

    return onnx.load(path, dims)
