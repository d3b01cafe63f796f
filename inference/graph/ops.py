"""Every operation of the graph: what it computes, the types it takes, the shape it gives, the work it is.

This is the one statement of the semantics: the importers produce these operations, the passes rewrite them,
the kernels and the plain twin of the tests compute them. Images are channels-last, [batch, height, width,
channels]; a signal is an image of height 1. Each function below infers the shape of one operation from its
inputs and states its formula. `ops_elementwise`, `ops_movement`, `ops_reduce`, `ops_windows` and
`ops_recurrent` hold the rest.

There are two integer arithmetics. With s and z a tensor's scale and zero point:

ONNX Runtime's (`session.x64quantprecision` = 1), all of it float32, each operation rounded by itself (never
contracted):

    requantize(acc, m) = min(max(round_half_even(float32(acc) * m) + z_y, qmin), qmax)
    m = float32(float32(s_x * s_w) / s_y)                      one for each output channel

LiteRT's reference kernels', all of it integers (but for `dense`), on nodes whose attribute `rounding` is
"fixed":

    requantize(acc, m, n) = min(max(scale(acc, m, n) + z_y, qmin), qmax)
    scale(acc, m, n) ~ acc * m / 2^31 * 2^n                    exactly: see `fixed.py`

m and n are in the model: in a constant operand, or in the attributes `multiplier` and `shift`.

acc is an int32 sum, exact modulo 2^32. round_half_even saturates what no int32 holds. `qmin` and `qmax` are
attributes of every integer operation that requantizes: the range of int8, or less for a folded activation.

A float `conv` or `dense` ends in its attribute `activation`: "none", or one of `ACTIVATIONS` with that
operation's own attributes beside it (`low`, `high`, `alpha`).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from reflexarc.inference.graph import (
    ops_elementwise,
    ops_movement,
    ops_recurrent,
    ops_reduce,
    ops_windows,
    shapes,
)
from reflexarc.inference.graph.ir import Graph, ModelError, Node, Shape, Tensor, check
from reflexarc.inference.graph.registry import OPS, check_types, find
from reflexarc.inference.graph.registry import op as _op

__all__ = [
    "ACTIVATIONS",
    "OPS",
    "check_ops",
    "infer",
    "macs",
    "ops_elementwise",
    "ops_movement",
    "ops_recurrent",
    "ops_reduce",
    "ops_windows",
]

ACTIVATIONS = ("relu", "clip", "elu", "silu")
"""What a float `conv` or `dense` can end in."""


@_op("f32 -> i8", "f32 -> u8")
def quantize(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """q = min(max(round_half_even(x / s) + z, low), high) over the range of the integer; NaN gives low.

    The scale is the output tensor's; float32 division. With `rounding` = "away" halves go away from zero.
    """
    return inputs[0].shape


@_op("i8 -> f32", "u8 -> f32", "i32 -> f32")
def dequantize(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x = float32(q - z) * s, by the input tensor's scale."""
    return inputs[0].shape


@_op("f32 f32 f32 -> f32", "i8 i8 i32 -> i8", "i8 i8 #i32 #i32 -> i8", "f32 i8 f32 -> f32")
def conv(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[n,i,j,o] = b[o] + sum over u,v,c of x[n, i*sy + u*dy - top, j*sx + v*dx - left, c'] * w[o,u,v,c].

    x [N,H,W,C], w [O,KH,KW,C/group], b [O], y [N,HO,WO,O]; c' = c + (o // (O/group)) * (C/group). Attributes
    `strides` (sy, sx), `pads` (top, left, bottom, right), `dilations` (dy, dx), `group`. Outside x is zero.
    Integer: acc = b[o] + sum of (q_x - z_x) * q_w (z_w = 0; b at scale s_x * s_w), y = requantize(acc, m[o]).

    Fixed: a fourth operand, int32 [O, 2], holds m and n of each output channel; acc = b[o] + sum of
    (q_x - z_x) * (q_w - z_w), y = requantize(acc, m[o], n[o]). One z_w for all of w, 0 except in models that
    were uint8.

    Hybrid (float x, int8 w): each image x[i] is quantized as it comes, in float32, with lowest value lo <= 0
    and highest hi >= 0: without `asymmetric`, s = max(-lo, hi) / 127, z = 0, q = round_half_away(x * (127 /
    max(-lo, hi))), clamped to -127..127; with it, s = (hi - lo) / 255, z as `fixed.asymmetric` has it, q =
    round_half_away(z + x * (1 / s)), clamped to int8. Then
    y = b[o] + float32(sum of (q - z) * q_w) * (s * s_w[o]).
    An x of zeros gives b.
    """
    x, w, b = inputs[:3]
    check_scaling(node, w.shape[0], inputs[3:])
    return shapes.conv(node, x.shape, w.shape, b.shape)


@_op(
    "f32 f32 f32 -> f32",
    "i8 i8 i32 -> i8",
    "i8 i8 #i32 -> i8",
    "i8 i8 #i32 #i32 -> #i32",
    "f32 i8 f32 -> f32",
)
def dense(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[..., o] = b[o] + sum over c of x[..., c] * w[o, c]; integer as `conv`.

    With `rounding` = "double", LiteRT's own, acc = b[o] + sum of (q_x - z_x) * (q_w - z_w) and, in float64,
    y = min(max(round_half_away(acc * (s_x * s_w[o] / s_y)) + z_y, qmin), qmax).

    Fixed, in a recurrent layer: acc as in `conv`, y = requantize(acc, m[o], n[o]), int32 without zero point.

    Hybrid as `conv`, each row of x by itself.
    """
    x, w, b = inputs[:3]
    check_scaling(node, b.size, inputs[3:])
    if len(w.shape) != 2 or not x.shape or x.shape[-1] != w.shape[1] or b.shape != w.shape[:1]:
        raise ModelError(f"{node}: x {x.shape}, w {w.shape} and b {b.shape} do not fit")
    return (*x.shape[:-1], w.shape[0])


@_op("f32 -> f32", "i8 -> i8")
def max_pool(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The maximum of each window inside x. Attributes `kernel`, `strides`, `pads`, `dilations` as `conv`.

    Padding is never the maximum. Integer: scale and zero point are those of x.
    """
    return shapes.pool(node, inputs[0].shape)


@_op("f32 -> f32", "i8 -> i8")
def average_pool(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The sum of each window divided by n; attributes as `max_pool`, and `include_pad` (0 or 1).

    n is the elements of the window that lie inside x; with `include_pad` all of it (padding counts as zeros).
    Integer: acc = sum of (q_x - z_x), y = requantize(acc, m), m = float32(float32(s_x / s_y) / float32(n)).
    Fixed: the scale of y is that of x; acc = sum of q_x over the elements inside, y = acc / n with halves
    away from zero (`ties` = "away") or up (`ties` = "up"), clamped to qmin and qmax.
    """
    return shapes.pool(node, inputs[0].shape)


@_op("f32 -> f32", "i8 -> i8")
def global_average_pool(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """`average_pool` with the window all of x: [N,H,W,C] gives [N,1,1,C]."""
    n, _, _, c = shapes.image(node, inputs[0].shape)
    return (n, 1, 1, c)


@_op("f32 f32 -> f32", "i8 i8 -> i8", "#i32 #i32 -> #i32")
def add(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """a + b, broadcast as numpy does.

    Integer, r_a = float32(s_a / s_y), r_b alike:
    y = min(max(round_half_even(float32(q_a - z_a) * r_a + float32(q_b - z_b) * r_b) + z_y, qmin), qmax).
    Fixed: `multiplier` and `shift` hold those of a, of b and of the sum:
    acc = scale((q_a - z_a) * 2^20, m_a, n_a) + scale((q_b - z_b) * 2^20, m_b, n_b),
    y = requantize(acc, m, n).
    int32 wraps.
    """
    return shapes.broadcast(node, inputs[0].shape, inputs[1].shape)


@_op("f32 f32 -> f32", "i8 i8 -> i8", "#i32 #i32 -> #i32")
def mul(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """a * b, broadcast as numpy does.

    Integer: y = requantize((q_a - z_a) * (q_b - z_b), float32(float32(s_a * s_b) / s_y)).
    Fixed: y = requantize((q_a - z_a) * (q_b - z_b), m, n) with `multiplier` (m,) and `shift` (n,).
    int32 wraps.
    """
    return shapes.broadcast(node, inputs[0].shape, inputs[1].shape)


@_op("i8 #i8 -> i8")
def lookup(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y = table[q_x + 128]: any function of one int8, as the 256 entries of the second, constant, input."""
    if inputs[1].shape != (256,):
        raise ModelError(f"{node}: table of shape {inputs[1].shape}, not (256,)")
    return inputs[0].shape


@_op("f32 -> f32")
def relu(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """max(x, 0)."""
    return inputs[0].shape


@_op("f32 -> f32")
def clip(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """min(max(x, low), high); attributes `low`, `high`."""
    if not node.number("low") <= node.number("high"):
        raise ModelError(f"{node}: low {node.number('low')} is not at most high {node.number('high')}")
    return inputs[0].shape


@_op("f32 -> f32")
def elu(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x where x > 0, else alpha * (exp(x) - 1); attribute `alpha`."""
    node.number("alpha")
    return inputs[0].shape


@_op("f32 -> f32")
def silu(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x * sigmoid(x)."""
    return inputs[0].shape


@_op("f32 -> f32")
def sigmoid(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """1 / (1 + exp(-x))."""
    return inputs[0].shape


@_op("f32 -> f32")
def tanh(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The hyperbolic tangent."""
    return inputs[0].shape


@_op("f32 -> f32", "i8 #i32 -> i8")
def softmax(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """exp(x - max) / sum(exp(x - max)) along the last axis.

    Integer (fixed): the second operand, constant int32 [256], holds e[d] = exp of d steps below the maximum,
    in units of 2^-31. total = sum of halve(e[max - q], 12); (r, k) = `fixed.reciprocal`(total);
    y = min(max(halve(high(r, e[max - q]), k + 23) - 128, -128), 127).
    """
    if len(inputs) == 2 and inputs[1].shape != (256,):
        raise ModelError(f"{node}: table of shape {inputs[1].shape}, not (256,)")
    if not inputs[0].shape:
        raise ModelError(f"{node}: softmax of a scalar")
    return inputs[0].shape


@_op("T -> T")
def reshape(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The same elements in the same order; attribute `shape`."""
    shape = node.integers("shape")
    if prod(shape) != inputs[0].size:
        raise ModelError(f"{node}: {inputs[0].shape} cannot take the shape {shape}")
    return shape


@_op("T -> T")
def transpose(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """Axis i of y is axis perm[i] of x; attribute `perm`."""
    perm = node.integers("perm")
    if sorted(perm) != list(range(len(inputs[0].shape))):
        raise ModelError(f"{node}: perm {perm} does not permute the {len(inputs[0].shape)} axes of x")
    return tuple(inputs[0].shape[axis] for axis in perm)


@_op("T -> T", lowered=False)
def _slice(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x[..., start : start + size, ...] along one axis; attributes `axis`, `start`, `size`."""
    shape, axis = list(inputs[0].shape), node.integer("axis")
    start, size = node.integer("start"), node.integer("size")
    if not 0 <= axis < len(shape) or not 0 <= start <= start + size <= shape[axis]:
        raise ModelError(f"{node}: {start}..{start + size} of axis {axis} is outside {tuple(shape)}")
    shape[axis] = size
    return tuple(shape)


def check_scaling(node: Node, channels: int, scaling: Sequence[Tensor]) -> None:
    """Raise `ModelError` unless the fourth operand, if there is one, has a row for each output channel."""
    for tensor in scaling:
        if tensor.shape != (channels, 2):
            raise ModelError(f"{node}: multipliers and shifts of shape {tensor.shape}, not ({channels}, 2)")


def infer(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The shape of the node's output; `ModelError` where inputs or attributes do not fit the operation."""
    return find(node, inputs).infer(node, inputs)


def check_ops(graph: Graph) -> None:
    """`ir.check`, and every node's types, attributes and shape are those of its operation."""
    check(graph)
    for node in graph.nodes:
        inputs = [graph.tensors[name] for name in node.inputs]
        shape = infer(node, inputs)
        if len(node.outputs) != 1:
            raise ModelError(f"{node}: {len(node.outputs)} outputs, not 1")
        output = graph.tensors[node.outputs[0]]
        if output.shape != shape:
            raise ModelError(f"{node}: output {output.name!r} is declared {output.shape}, inferred {shape}")
        check_types(node, inputs, output)


def macs(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of one node."""
    output, operands = graph.tensors[node.outputs[0]], [graph.tensors[name] for name in node.inputs]
    if node.op in ("conv", "dense"):
        return output.size * prod(operands[1].shape[1:])
    if node.op == "conv_transpose":
        return operands[0].size * prod(operands[1].shape[:3])
    return output.size * operands[0].shape[-1] if node.op == "matmul" else 0
