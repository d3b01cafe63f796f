"""Operations on images besides convolution and pooling: transposed convolution, resizing; matrix products."""

from __future__ import annotations

from collections.abc import Sequence

from reflexarc.inference.graph import shapes
from reflexarc.inference.graph.ir import MAX_ELEMENTS, ModelError, Node, Shape, Tensor
from reflexarc.inference.graph.registry import op


@op("f32 f32 f32 -> f32", "i8 i8 #i32 #i32 -> i8")
def conv_transpose(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[n, i*sy + u - top, j*sx + v - left, o] += x[n,i,j,c] * w[o,u,v,c], from b[o]; outside y nothing is.

    x [N,H,W,C], w [O,KH,KW,C], b [O], y [N,HO,WO,O]. Attributes `strides` (sy, sx), `pads` (top, left),
    `size` (HO, WO), and a float's `activation`. Fixed as `conv`.
    """
    x, w, b = inputs[:3]
    n, _, _, channels = shapes.image(node, x.shape)
    strides, pads, size = node.integers("strides"), node.integers("pads"), node.integers("size")
    if len(w.shape) != 4 or w.shape[3] != channels or b.shape != w.shape[:1]:
        raise ModelError(f"{node}: x {x.shape}, w {w.shape} and b {b.shape} do not fit")
    if (len(strides), len(pads), len(size)) != (2, 2, 2) or min(*strides, *size) < 1 or min(pads) < 0:
        raise ModelError(f"{node}: strides {strides}, pads {pads} and size {size} out of range")
    if len(inputs) == 4 and inputs[3].shape != (w.shape[0], 2):
        raise ModelError(f"{node}: multipliers and shifts of shape {inputs[3].shape}")
    return (n, size[0], size[1], w.shape[0])


@op("f32 -> f32", "i8 -> i8")
def resize_bilinear(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x [N,H,W,C] at another `size` (HO, WO), by straight lines between the four elements around.

    Attributes `align_corners`, `half_pixel` (0 or 1). Along an axis of n elements made m, output i lies at
    t = i * r, or (i + 0.5) * r - 0.5 with `half_pixel`; r = n / m, or (n - 1) / (m - 1) with `align_corners`
    and m > 1; float32. It is (1 - f) * x[lo] + f * x[hi]: lo = max(floor(t), 0), hi = min(ceil(t), n - 1),
    f = t - lo.

    Fixed, all of it integers and division toward zero: r = (1024 * n + m / 2) / m, or (1024 * (n - 1) +
    (m - 1) / 2) / (m - 1); t = i * r, or i * r + r / 2 - 512; lo = min(max(t / 1024, 0), n - 1),
    hi = min((t + 1023) / 1024, n - 1), f = t - 1024 * lo. acc = sum over the four of q * (1024 - f or f of
    its row) * (1024 - f or f of its column); y = (acc + (2^19 if acc > 0 else -2^19)) / 2^20. Scales stay.
    """
    n, _, _, channels = shapes.image(node, inputs[0].shape)
    size = node.integers("size")
    if len(size) != 2 or not all(1 <= s <= MAX_ELEMENTS for s in size):
        raise ModelError(f"{node}: size {size}")
    for key in ("align_corners", "half_pixel"):
        node.integer(key)
    return (n, size[0], size[1], channels)


@op("f32 f32 -> f32", "i8 i8 -> i8")
def matmul(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[..., i, j] = sum over k of a[..., i, k] * b[..., k, j]; leading axes broadcast.

    Fixed: acc = sum of (q_a - z_a) * (q_b - z_b), y = requantize(acc, m, n) with `multiplier` (m,) and
    `shift` (n,).
    """
    a, b = inputs[0].shape, inputs[1].shape
    if len(a) < 2 or len(b) < 2 or a[-1] != b[-2]:
        raise ModelError(f"{node}: {a} and {b} do not fit")
    return (*shapes.broadcast(node, a[:-2], b[:-2]), a[-2], b[-1])
