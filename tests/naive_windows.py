"""What the plain twins share: a tensor's one scale, and what each place of a window sees."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Node, QuantParams

Array = NDArray[Any]
F = np.float32


def one_scale(quant: QuantParams | None) -> tuple[np.float32, int]:
    assert quant is not None
    assert quant.axis is None
    return F(quant.scale[0]), int(quant.zero_point[0])


def windows(node: Node, x: Array, kernel: tuple[int, int], outside: float) -> Array:
    """[KH,KW,N,HO,WO,C]: what each place of the window sees."""
    (top, left, bottom, right), (sy, sx) = node.attrs["pads"], node.attrs["strides"]
    dy, dx = node.attrs["dilations"]
    x = np.pad(x, ((0, 0), (top, bottom), (left, right), (0, 0)), constant_values=outside)
    rows = (x.shape[1] - (kernel[0] - 1) * dy - 1) // sy + 1
    columns = (x.shape[2] - (kernel[1] - 1) * dx - 1) // sx + 1
    seen = [
        x[:, u * dy : u * dy + (rows - 1) * sy + 1 : sy, v * dx : v * dx + (columns - 1) * sx + 1 : sx]
        for u, v in product(range(kernel[0]), range(kernel[1]))
    ]
    return np.stack(seen).reshape(*kernel, x.shape[0], rows, columns, x.shape[3])
