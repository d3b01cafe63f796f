"""From a .tflite file to the graph: one walk over its operators, one handler each (see `registry`)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from reflexarc.inference.graph.edit import MAX_MADE, Editor
from reflexarc.inference.graph.ir import Graph, ModelError
from reflexarc.inference.graph.ops import check_ops
from reflexarc.inference.graph.tflite import (
    blocks,
    elementwise,
    images,
    layers,
    movement,
    quantization,
    recurrent,
    reductions,
    slices,
    variables,
)
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.registry import Handler
from reflexarc.inference.graph.tflite.schema import Model, model

MAX_FILE = 1 << 31

HANDLERS: dict[str, Handler] = {
    **blocks.HANDLERS,
    **elementwise.HANDLERS,
    **images.HANDLERS,
    **layers.HANDLERS,
    **movement.HANDLERS,
    **quantization.HANDLERS,
    **recurrent.HANDLERS,
    **reductions.HANDLERS,
    **slices.HANDLERS,
    **variables.HANDLERS,
}


def load(path: Path | str) -> Graph:
    """The graph of a file; `ModelError` naming what is wrong with it."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise ModelError(f"{path}: {size} bytes, at most {MAX_FILE}")
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from None
    try:
        return read(memoryview(data), path.stem)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def read(data: memoryview, name: str = "model") -> Graph:
    """As `load`, of bytes."""
    content = model(data)
    _check_supported(content)
    with np.errstate(all="ignore"):  # wild scales are found where they are used
        return _read(content, name, len(data))


def _read(content: Model, name: str, size: int) -> Graph:
    context = Context(content, Editor(Graph(name), room=MAX_MADE + 4 * size))
    for index in context.graph.inputs:
        context.declare(index)
    for operator in context.graph.operators:
        context.operator = operator
        HANDLERS[operator.name](context)
    for index in context.graph.outputs:
        context.output(index)
    context.finish_states()
    graph = context.editor.finish()
    check_ops(graph)
    return graph


def _check_supported(content: Model) -> None:
    missing = Counter(
        operator.name for operator in content.graphs[0].operators if operator.name not in HANDLERS
    )
    if missing:
        listed = ", ".join(f"{name} ({count})" for name, count in sorted(missing.items())[:50])
        raise ModelError(f"operations not supported: {listed}")
