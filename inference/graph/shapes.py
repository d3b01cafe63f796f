"""Shapes of windows and of broadcast operands."""

from __future__ import annotations

import numpy as np

from reflexarc.inference.graph.ir import MAX_ELEMENTS, ModelError, Node, Shape


def image(node: Node, shape: Shape) -> tuple[int, int, int, int]:
    """The shape as [N,H,W,C]; `ModelError` for another rank."""
    if len(shape) != 4:
        raise ModelError(f"{node}: x {shape} is not [batch, height, width, channels]")
    n, h, w, c = shape
    return n, h, w, c


def conv(node: Node, x: Shape, w: Shape, b: Shape) -> Shape:
    """Output shape of a channels-last convolution, w [O,KH,KW,C/group]."""
    n, height, width, channels = image(node, x)
    group = node.integer("group")
    if len(w) != 4:
        raise ModelError(f"{node}: weights {w} are not [out, height, width, in / group]")
    if not 1 <= group <= channels or w[3] * group != channels or w[0] % group or b != w[:1]:
        raise ModelError(f"{node}: x {x}, weights {w}, bias {b} and group {group} do not fit")
    return (n, *_windows(node, (height, width), (w[1], w[2])), w[0])


def pool(node: Node, x: Shape) -> Shape:
    """Output shape of a channels-last pooling; every window touches x."""
    n, height, width, channels = image(node, x)
    kernel = node.integers("kernel")
    if len(kernel) != 2:
        raise ModelError(f"{node}: kernel {kernel} is not (height, width)")
    out = _windows(node, (height, width), (kernel[0], kernel[1]))
    pads, strides, dilations = node.integers("pads"), node.integers("strides"), node.integers("dilations")
    for axis, size in enumerate((height, width)):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        if pads[axis] >= reach or (out[axis] - 1) * strides[axis] - pads[axis] >= size:
            raise ModelError(f"{node}: pads {pads} leave a window of kernel {kernel} outside x {x}")
        if dilations[axis] > 1 and size < reach and (pads[axis] or pads[axis + 2]):
            raise ModelError(f"{node}: dilations {dilations} may step over x {x}")
    return (n, *out, channels)


def broadcast(node: Node, a: Shape, b: Shape) -> Shape:
    """The common shape of two operands."""
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        raise ModelError(f"{node}: shapes {a} and {b} do not broadcast") from None


def _windows(node: Node, size: tuple[int, int], kernel: tuple[int, int]) -> tuple[int, int]:
    strides, pads, dilations = node.integers("strides"), node.integers("pads"), node.integers("dilations")
    if (len(strides), len(pads), len(dilations)) != (2, 4, 2):
        raise ModelError(
            f"{node}: strides {strides}, pads {pads}, dilations {dilations} are not 2, 4 and 2 long"
        )
    if (
        min(*strides, *dilations, *kernel) < 1
        or min(pads) < 0
        or max(*strides, *dilations, *pads) > MAX_ELEMENTS
    ):
        raise ModelError(
            f"{node}: kernel {kernel}, strides {strides}, pads {pads}, dilations {dilations} out of range"
        )
    out = []
    for axis in range(2):
        reach = (kernel[axis] - 1) * dilations[axis] + 1
        room = size[axis] + pads[axis] + pads[axis + 2] - reach
        if room < 0:
            raise ModelError(f"{node}: a window of {reach} is larger than {size[axis]} and pads {pads}")
        out.append(room // strides[axis] + 1)
    return out[0], out[1]
