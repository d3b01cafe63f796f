"""A graph executed in plain numpy, slowly and obviously: the formulas of `inference/graph/ops.py` in code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import naive_tflite
import numpy as np
from naive_windows import one_scale, windows
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import DTYPES, Graph, Node, Tensor

Array = NDArray[Any]
F = np.float32


def run(
    graph: Graph, inputs: Mapping[str, Array], instead: Mapping[str, Array] | None = None
) -> dict[str, Array]:
    """Every tensor of the graph by name, constants included.

    A tensor in `instead` is computed and returned, but whatever reads it reads what stands there.
    """
    values = {name: t.data for name, t in graph.tensors.items() if t.data is not None} | dict(inputs)
    results = dict(values)
    for node in graph.nodes:
        tensors = [graph.tensors[name] for name in (*node.inputs, *node.outputs)]
        result = function(node, tensors)(node, tensors, *(values[name] for name in node.inputs))
        output = tensors[-1]
        assert result.shape == output.shape, (str(node), result.shape, output.shape)
        assert result.dtype == DTYPES[output.dtype], (str(node), result.dtype, output.dtype)
        results[output.name] = result
        values[output.name] = result if instead is None else instead.get(output.name, result)
    return results


def start(graph: Graph) -> dict[str, Array]:
    """What the inputs that are states hold at the first run."""
    return {state.input: state.start for state in graph.states}


def kept(graph: Graph, results: Mapping[str, Array]) -> dict[str, Array]:
    """What they hold at the next run."""
    return {state.input: results[state.output] for state in graph.states}


def function(node: Node, tensors: list[Tensor]) -> Callable[..., Array]:
    """How the node is computed: in fixed point, with float activations on int8 weights, or as ONNX has it."""
    if node.attrs.get("rounding") == "fixed":
        return naive_tflite.FIXED[node.op]
    if node.attrs.get("rounding") == "double":
        return naive_tflite.dense_double
    if node.op in naive_tflite.HYBRID and (tensors[0].dtype, tensors[1].dtype) == ("f32", "i8"):
        return activated(naive_tflite.HYBRID[node.op])
    return FUNCTIONS[node.op]


def activated(layer: Callable[..., Array]) -> Callable[..., Array]:
    def both(node: Node, tensors: list[Tensor], *operands: Array) -> Array:
        return FUNCTIONS[node.attrs["activation"]](node, tensors, layer(node, tensors, *operands))

    return both


def requantize(node: Node, acc: Array, m: Array | np.float32, output: Tensor) -> Array:
    """`acc` int64, taken modulo 2^32; `m` float32."""
    _, zero = one_scale(output.quant)
    scaled = acc.astype(np.int32).astype(F) * F(m)
    return saturate(node, np.rint(scaled).astype(np.float64) + zero)


def saturate(node: Node, real: Array) -> Array:
    return np.clip(real, node.attrs["qmin"], node.attrs["qmax"]).astype(np.int8)


def quantize(node: Node, tensors: list[Tensor], x: Array) -> Array:
    scale, zero = one_scale(tensors[-1].quant)
    low, high = (-128, 127) if tensors[-1].dtype == "i8" else (0, 255)
    nearest = naive_tflite.away if node.attrs.get("rounding") == "away" else np.rint
    steps = nearest(x / scale).astype(np.float64) + zero
    steps = np.where(np.isnan(steps), low, steps)
    return np.clip(steps, low, high).astype(np.int8 if low else np.uint8)


def dequantize(node: Node, tensors: list[Tensor], q: Array) -> Array:
    quant = tensors[0].quant
    assert quant is not None
    shape = [1] * q.ndim
    if quant.axis is not None:
        shape[quant.axis] = -1
    zero, scale = quant.zero_point.reshape(shape), quant.scale.reshape(shape)
    return ((q.astype(np.int64) - zero).astype(F) * scale).reshape(q.shape)


def correlate(node: Node, x: Array, w: Array) -> Array:
    """The sums of `conv`, in the type of x."""
    group = node.attrs["group"]
    seen = windows(node, x, w.shape[1:3], 0)
    parts = zip(np.split(seen, group, axis=-1), np.split(w, group, axis=0), strict=True)
    return np.concatenate([np.einsum("uvnijc,ouvc->nijo", s, k) for s, k in parts], axis=-1)


def layer(sums: Callable[[Node, Array, Array], Array]) -> Callable[..., Array]:
    def function(node: Node, tensors: list[Tensor], x: Array, w: Array, b: Array) -> Array:
        if x.dtype == F:
            y = (sums(node, x.astype(np.float64), w.astype(np.float64)) + b).astype(F)
            return FUNCTIONS[node.attrs["activation"]](node, tensors, y)
        (sx, zx), (sy, _) = one_scale(tensors[0].quant), one_scale(tensors[-1].quant)
        assert tensors[1].quant is not None
        assert not tensors[1].quant.zero_point.any()
        acc = sums(node, x.astype(np.int64) - zx, w.astype(np.int64)) + b
        return requantize(node, acc, (sx * tensors[1].quant.scale) / sy, tensors[-1])

    return function


def max_pool(node: Node, tensors: list[Tensor], x: Array) -> Array:
    outside = -np.inf if x.dtype == F else -128
    return windows(node, x, node.attrs["kernel"], outside).max((0, 1))


def average_pool(node: Node, tensors: list[Tensor], x: Array) -> Array:
    kernel = node.attrs["kernel"]
    inside = np.ones_like(x, np.int64)
    n = windows(node, inside, kernel, 1 if node.attrs["include_pad"] else 0).sum((0, 1))
    if x.dtype == F:
        return (windows(node, x.astype(np.float64), kernel, 0).sum((0, 1)) / n).astype(F)
    (sx, zx), (sy, _) = one_scale(tensors[0].quant), one_scale(tensors[-1].quant)
    acc = windows(node, x.astype(np.int64) - zx, kernel, 0).sum((0, 1))
    return requantize(node, acc, (sx / sy) / n.astype(F), tensors[-1])


def global_average_pool(node: Node, tensors: list[Tensor], x: Array) -> Array:
    if x.dtype == F:
        return x.astype(np.float64).mean((1, 2), keepdims=True).astype(F)
    (sx, zx), (sy, _) = one_scale(tensors[0].quant), one_scale(tensors[-1].quant)
    acc = (x.astype(np.int64) - zx).sum((1, 2), keepdims=True)
    return requantize(node, acc, (sx / sy) / F(x.shape[1] * x.shape[2]), tensors[-1])


def add(node: Node, tensors: list[Tensor], a: Array, b: Array) -> Array:
    if a.dtype != np.int8:
        return a + b
    (sa, za), (sb, zb), (sy, zy) = (one_scale(t.quant) for t in tensors)
    left = (a.astype(np.int32) - za).astype(F) * (sa / sy)
    right = (b.astype(np.int32) - zb).astype(F) * (sb / sy)
    return saturate(node, np.rint(left + right).astype(np.float64) + zy)


def mul(node: Node, tensors: list[Tensor], a: Array, b: Array) -> Array:
    if a.dtype != np.int8:
        return a * b
    (sa, za), (sb, zb), (sy, _) = (one_scale(t.quant) for t in tensors)
    acc = (a.astype(np.int64) - za) * (b.astype(np.int64) - zb)
    return requantize(node, acc, (sa * sb) / sy, tensors[-1])


def softmax(node: Node, tensors: list[Tensor], x: Array) -> Array:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(F)


def unary(function: Callable[[Node, Array], Array]) -> Callable[..., Array]:
    def wide(node: Node, tensors: list[Tensor], x: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.asarray(function(node, x.astype(np.float64))).astype(F)

    return wide


def slice_(node: Node, tensors: list[Tensor], x: Array) -> Array:
    start, size = node.attrs["start"], node.attrs["size"]
    return np.take(x, np.arange(start, start + size), node.attrs["axis"])


FUNCTIONS: dict[str, Callable[..., Array]] = {
    **naive_tflite.FUNCTIONS,
    "conv_transpose": activated(naive_tflite.FUNCTIONS["conv_transpose"]),
    "quantize": quantize,
    "dequantize": dequantize,
    "conv": layer(correlate),
    "dense": layer(lambda node, x, w: x @ w.T),
    "max_pool": max_pool,
    "average_pool": average_pool,
    "global_average_pool": global_average_pool,
    "add": add,
    "mul": mul,
    "lookup": lambda node, tensors, x, table: table[x.astype(np.int64) + 128],
    "none": lambda node, tensors, x: x,
    "relu": unary(lambda node, x: np.maximum(x, 0)),
    "clip": unary(lambda node, x: np.clip(x, node.attrs["low"], node.attrs["high"])),
    "elu": unary(lambda node, x: np.where(x > 0, x, node.attrs["alpha"] * np.expm1(x))),
    "silu": unary(lambda node, x: x / (1 + np.exp(-x))),
    "sigmoid": unary(lambda node, x: 1 / (1 + np.exp(-x))),
    "tanh": unary(lambda node, x: np.tanh(x)),
    "softmax": softmax,
    "reshape": lambda node, tensors, x: x.reshape(node.attrs["shape"]),
    "transpose": lambda node, tensors, x: x.transpose(node.attrs["perm"]),
    "slice": slice_,
}
