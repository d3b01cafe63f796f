"""Images at another size: where each output lies between its neighbours is known ahead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import RESIZE8
from reflexarc.inference.lower.context import PARALLEL_ELEMENTS, Context, lowering
from reflexarc.inference.program import ProgramError


@lowering("resize_bilinear")
def resize_bilinear(context: Context, node: Node) -> None:
    """Of 8-bit elements, image by image."""
    if node.attrs.get("rounding") != "fixed":
        raise ProgramError(f"{node}: resize_bilinear of {context.tensor(node.inputs[0]).dtype} has no kernel")
    x = context.padded(node.inputs[0], context.value(node.inputs[0]), (0, 0, 0, 0))
    y = context.output(node, lambda view: view.steps[-1] == view.size)
    row_places, col_places = (
        context.listing.constant(places(node, x.shape[axis], y.shape[axis], x.steps[axis])) for axis in (1, 2)
    )
    _, rows, cols, channels = y.shape
    for n in range(y.shape[0]):
        context.listing.emit(
            RESIZE8,
            parallel=rows > 1 and rows * cols * channels >= PARALLEL_ELEMENTS // 4,
            x=x.ref + n * x.steps[0],
            y=y.ref + n * y.steps[0],
            rows=rows,
            cols=cols,
            channels=channels,
            row_places=row_places,
            col_places=col_places,
            y_row=y.steps[1],
            y_col=y.steps[2],
        )


def places(node: Node, n: int, m: int, step: int) -> NDArray[np.int32]:
    """[m, 3]: bytes to the elements below and above each output's place among n, and 1024ths between them."""
    ratio = (1024 * n + m // 2) // m
    if node.integer("align_corners") and m > 1:
        ratio = (1024 * (n - 1) + (m - 1) // 2) // (m - 1)
    t = np.arange(m, dtype=np.int64) * ratio
    if node.integer("half_pixel"):
        t += ratio // 2 - 512
    low = np.clip(_divided(t), 0, n - 1)
    high = np.minimum(_divided(t + 1023), n - 1)
    return np.stack([low * step, high * step, t - 1024 * low], axis=1).astype(np.int32)


def _divided(t: NDArray[np.int64]) -> NDArray[np.int64]:
    """t / 1024 toward zero."""
    quotient: NDArray[np.int64] = np.sign(t) * (np.abs(t) >> 10)
    return quotient
