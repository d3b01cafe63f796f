"""Operations that make one element of many along axes, which stay as axes of 1."""

from __future__ import annotations

from collections.abc import Sequence

from reflexarc.inference.graph.ir import ModelError, Node, Shape, Tensor
from reflexarc.inference.graph.registry import op


def _axes(node: Node, shape: Shape) -> Shape:
    axes = node.integers("axes")
    if not axes or len(set(axes)) != len(axes) or not all(0 <= axis < len(shape) for axis in axes):
        raise ModelError(f"{node}: axes {axes} of x {shape}")
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape))


@op("f32 -> f32", "i8 -> i8", "#i32 -> #i32")
def reduce_sum(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The sum over `axes`; int32 wraps.

    Fixed: acc = sum of (q_x - z_x), y = requantize(acc, m, n) with `multiplier` (m,) and `shift` (n,).
    """
    return _axes(node, inputs[0].shape)


@op("f32 -> f32", "i8 -> i8")
def reduce_mean(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The mean over `axes`; fixed as `reduce_sum`, m and n with 1 / count in them."""
    return _axes(node, inputs[0].shape)


@op("f32 -> f32", "i8 -> i8", "#i32 -> #i32")
def reduce_max(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The greatest over `axes`; int8 keeps its scale."""
    return _axes(node, inputs[0].shape)


@op("f32 -> f32", "i8 -> i8", "#i32 -> #i32")
def reduce_min(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The least over `axes`; int8 keeps its scale."""
    return _axes(node, inputs[0].shape)


@op("f32 -> f32", "#i32 -> #i32")
def reduce_prod(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The product over `axes`; int32 wraps."""
    return _axes(node, inputs[0].shape)


@op("bool -> bool")
def reduce_any(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """Whether any over `axes` is true."""
    return _axes(node, inputs[0].shape)


@op("bool -> bool")
def reduce_all(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """Whether all over `axes` are true."""
    return _axes(node, inputs[0].shape)


@op("f32 -> #i32", "i8 -> #i32", "#i32 -> #i32")
def arg_max(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The first index of the greatest over `axes`, which is one axis."""
    return _one_axis(node, inputs[0].shape)


@op("f32 -> #i32", "i8 -> #i32", "#i32 -> #i32")
def arg_min(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The first index of the least over `axes`, which is one axis."""
    return _one_axis(node, inputs[0].shape)


@op("f32 -> f32")
def l2_normalize(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x / sqrt(max(sum(x^2), 1e-12)) along the last axis."""
    if not inputs[0].shape:
        raise ModelError(f"{node}: of a scalar")
    return inputs[0].shape


def _one_axis(node: Node, shape: Shape) -> Shape:
    if len(node.integers("axes")) != 1:
        raise ModelError(f"{node}: axes {node.integers('axes')}, not one")
    return _axes(node, shape)
