"""Operations that put elements elsewhere: together, apart, padded, by index. Any dtype; scales stay."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from reflexarc.inference.graph.ir import MAX_ELEMENTS, ModelError, Node, Shape, Tensor, check_shape
from reflexarc.inference.graph.registry import op


@op("T* -> T")
def concat(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The operands one after the other along `axis`; all have the scale of the result."""
    axis, shape = _axis(node, inputs[0].shape), list(inputs[0].shape)
    for tensor in inputs[1:]:
        other = list(tensor.shape)
        if len(other) != len(shape) or other[:axis] + other[axis + 1 :] != shape[:axis] + shape[axis + 1 :]:
            raise ModelError(f"{node}: {tensor.shape} and {inputs[0].shape} do not join on axis {axis}")
    shape[axis] = sum(tensor.shape[axis] for tensor in inputs)
    return _checked(node, shape)


@op("T -> T")
def pad(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x with `before[i]` and `after[i]` elements of `value` around axis i; an integer's `value` is stored."""
    node.number("value")
    return _padded(node, inputs[0].shape)


@op("T -> T")
def mirror_pad(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """`pad` with what a mirror shows: on the edge element (`edge` = 0, "reflect") or beside it (1)."""
    edge = node.integer("edge")
    for size, before, after in zip(
        inputs[0].shape, node.integers("before"), node.integers("after"), strict=False
    ):
        if max(before, after) > size - 1 + edge:
            raise ModelError(f"{node}: {before} and {after} elements mirrored of {size}")
    return _padded(node, inputs[0].shape)


@op("T -> T")
def strided_slice(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[i, j, ...] = x[starts[0] + i * steps[0], ...], `sizes` elements an axis; a step may be negative."""
    shape = inputs[0].shape
    starts, sizes, steps = node.integers("starts"), node.integers("sizes"), node.integers("steps")
    if not len(starts) == len(sizes) == len(steps) == len(shape):
        raise ModelError(f"{node}: starts {starts}, sizes {sizes} and steps {steps} of x {shape}")
    for full, start, size, step in zip(shape, starts, sizes, steps, strict=True):
        if size < 1 or step == 0 or not 0 <= start < full or not 0 <= start + (size - 1) * step < full:
            raise ModelError(f"{node}: {size} elements from {start} by {step} of {full} in {shape}")
    return sizes


@op("T #i32 -> T")
def gather(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[a..., i..., b...] = x[a..., index[i...], b...], at `axis`; an index outside is taken to the edge."""
    x, index = inputs
    axis = _axis(node, x.shape)
    return _checked(node, [*x.shape[:axis], *index.shape, *x.shape[axis + 1 :]])


@op("T #i32 -> T")
def gather_nd(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[i..., b...] = x[index[i..., 0], index[i..., 1], ..., b...]; an index outside is taken to the edge."""
    x, index = inputs
    if not index.shape or not 1 <= index.shape[-1] <= len(x.shape):
        raise ModelError(f"{node}: index {index.shape} into x {x.shape}")
    return _checked(node, [*index.shape[:-1], *x.shape[index.shape[-1] :]])


@op("T -> T")
def tile(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x repeated `repeats[i]` times along axis i."""
    shape, repeats = inputs[0].shape, node.integers("repeats")
    if len(repeats) != len(shape) or not all(1 <= n <= MAX_ELEMENTS for n in repeats):
        raise ModelError(f"{node}: repeats {repeats} of x {shape}")
    return _checked(node, [n * times for n, times in zip(shape, repeats, strict=True)])


def _axis(node: Node, shape: Shape) -> int:
    axis = node.integer("axis")
    if not 0 <= axis < len(shape):
        raise ModelError(f"{node}: axis {axis} of {shape}")
    return axis


def _padded(node: Node, shape: Shape) -> Shape:
    before, after = node.integers("before"), node.integers("after")
    if not len(before) == len(after) == len(shape) or min((*before, *after), default=0) < 0:
        raise ModelError(f"{node}: {before} before and {after} after x {shape}")
    return _checked(node, [a + n + b for a, n, b in zip(before, shape, after, strict=True)])


def _checked(node: Node, shape: Sequence[int]) -> Shape:
    if prod(shape) > MAX_ELEMENTS:
        raise ModelError(f"{node}: {prod(shape)} elements, at most {MAX_ELEMENTS}")
    check_shape(node.name, tuple(shape))
    return tuple(shape)
