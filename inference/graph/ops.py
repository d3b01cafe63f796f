"""Every operation of the graph: what it computes, the types it takes, the shape it gives, the work it is.

This is the one statement of the semantics: the importers produce these operations, the passes rewrite them,
the kernels and the plain twin of the tests compute them. Images are channels-last, [batch, height, width,
channels]; a signal is an image of height 1. Each function below infers the shape of one operation from its
inputs and states its formula.

Integer operations follow ONNX Runtime's arithmetic (`session.x64quantprecision` = 1). With s and z a tensor's
scale and zero point, and all of it float32, each operation rounded by itself (never contracted):

    requantize(acc, m) = min(max(round_half_even(float32(acc) * m) + z_y, qmin), qmax)
    m = float32(float32(s_x * s_w) / s_y)                      one for each output channel

acc is an int32 sum, exact modulo 2^32. round_half_even saturates what no int32 holds. `qmin` and `qmax` are
attributes of every integer operation that requantizes: the range of int8, or less for a folded activation.

A float `conv` or `dense` ends in its attribute `activation`: "none", or one of `ACTIVATIONS` with that
operation's own attributes beside it (`low`, `high`, `alpha`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from reflexarc.inference.graph import shapes
from reflexarc.inference.graph.ir import Graph, ModelError, Node, Shape, Tensor, check

ACTIVATIONS = ("relu", "clip", "elu", "silu")
"""What a float `conv` or `dense` can end in."""

Infer = Callable[[Node, Sequence[Tensor]], Shape]


@dataclass(frozen=True)
class Op:
    """An operation: the dtypes it takes and gives, and its shape and formula (`infer`)."""

    infer: Infer
    signatures: tuple[str, ...]  # "f32 f32 -> f32"; T is any dtype, the same one throughout
    lowered: bool  # whether kernels exist for it, or it must be gone before lowering


OPS: dict[str, Op] = {}


def _op(*signatures: str, lowered: bool = True) -> Callable[[Infer], Infer]:
    def register(infer: Infer) -> Infer:
        OPS[infer.__name__.strip("_")] = Op(infer, signatures, lowered)
        return infer

    return register


@_op("f32 -> i8", "f32 -> u8")
def quantize(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """q = min(max(round_half_even(x / s) + z, low), high) over the range of the integer; NaN gives low.

    The scale is the output tensor's; float32 division.
    """
    return inputs[0].shape


@_op("i8 -> f32", "u8 -> f32", "i32 -> f32")
def dequantize(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x = float32(q - z) * s, by the input tensor's scale."""
    return inputs[0].shape


@_op("f32 f32 f32 -> f32", "i8 i8 i32 -> i8")
def conv(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[n,i,j,o] = b[o] + sum over u,v,c of x[n, i*sy + u*dy - top, j*sx + v*dx - left, c'] * w[o,u,v,c].

    x [N,H,W,C], w [O,KH,KW,C/group], b [O], y [N,HO,WO,O]; c' = c + (o // (O/group)) * (C/group). Attributes
    `strides` (sy, sx), `pads` (top, left, bottom, right), `dilations` (dy, dx), `group`. Outside x is zero.
    Integer: acc = b[o] + sum of (q_x - z_x) * q_w (z_w = 0; b at scale s_x * s_w), y = requantize(acc, m[o]).
    """
    x, w, b = inputs
    return shapes.conv(node, x.shape, w.shape, b.shape)


@_op("f32 f32 f32 -> f32", "i8 i8 i32 -> i8")
def dense(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """y[..., o] = b[o] + sum over c of x[..., c] * w[o, c]; integer as `conv`."""
    x, w, b = inputs
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
    """
    return shapes.pool(node, inputs[0].shape)


@_op("f32 -> f32", "i8 -> i8")
def global_average_pool(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """`average_pool` with the window all of x: [N,H,W,C] gives [N,1,1,C]."""
    n, _, _, c = shapes.image(node, inputs[0].shape)
    return (n, 1, 1, c)


@_op("f32 f32 -> f32", "i8 i8 -> i8")
def add(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """a + b, broadcast as numpy does.

    Integer, r_a = float32(s_a / s_y), r_b alike:
    y = min(max(round_half_even(float32(q_a - z_a) * r_a + float32(q_b - z_b) * r_b) + z_y, qmin), qmax).
    """
    return shapes.broadcast(node, inputs[0].shape, inputs[1].shape)


@_op("f32 f32 -> f32", "i8 i8 -> i8")
def mul(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """a * b, broadcast as numpy does.

    Integer: y = requantize((q_a - z_a) * (q_b - z_b), float32(float32(s_a * s_b) / s_y)).
    """
    return shapes.broadcast(node, inputs[0].shape, inputs[1].shape)


@_op("i8 i8 -> i8")
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


@_op("f32 -> f32")
def softmax(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """exp(x - max) / sum(exp(x - max)) along the last axis."""
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


def infer(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The shape of the node's output; `ModelError` where inputs or attributes do not fit the operation."""
    op = OPS.get(node.op)
    if op is None:
        raise ModelError(f"{node}: no operation {node.op!r}")
    arity = len(op.signatures[0].split(" -> ")[0].split())
    if len(inputs) != arity:
        raise ModelError(f"{node}: {len(inputs)} inputs, not {arity}")
    return op.infer(node, inputs)


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
        _check_types(node, inputs, output)


def macs(graph: Graph, node: Node) -> int:
    """Multiply-accumulates of one node."""
    if node.op not in ("conv", "dense"):
        return 0
    return graph.tensors[node.outputs[0]].size * prod(graph.tensors[node.inputs[1]].shape[1:])


def _check_types(node: Node, inputs: Sequence[Tensor], output: Tensor) -> None:
    dtypes = [t.dtype for t in inputs]
    found = f"{' '.join(dtypes)} -> {output.dtype}"
    if found not in (s.replace("T", dtypes[0]) for s in OPS[node.op].signatures):
        raise ModelError(f"{node}: {found} is not one of {', '.join(OPS[node.op].signatures)}")
    if OPS[node.op].signatures != ("T -> T",):
        for tensor in (*inputs, output):
            scaled = tensor.quant is not None or (node.op == "lookup" and tensor is inputs[1])
            if tensor.dtype != "f32" and not scaled:
                raise ModelError(f"{node}: {tensor.name!r} is {tensor.dtype} without a scale")
