"""The operations TFLite models need, in plain numpy: LiteRT's integers (`FIXED`), and floats."""

from __future__ import annotations

from collections.abc import Callable
from math import erf
from typing import Any

import naive_fixed as fixed
import numpy as np
from naive_windows import one_scale, windows
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Node, Tensor

Array = NDArray[Any]
Function = Callable[..., Array]
F = np.float32


def each(function: Callable[..., int], x: Array, *args: Array | int) -> Array:
    """A function of single integers on arrays of them."""
    arrays = np.broadcast_arrays(x, *args)
    flat = [function(*(int(v) for v in row)) for row in zip(*(a.ravel() for a in arrays), strict=True)]
    return np.array(flat, np.int64).reshape(arrays[0].shape)


def scale(acc: Array, m: Array | int, n: Array | int) -> Array:
    """`fixed.scale` of whole arrays: the same formulas in 64 bits."""
    acc, m, n = np.asarray(acc, np.int64), np.asarray(m, np.int64), np.asarray(n, np.int64)
    shifted = (acc << np.maximum(n, 0)).astype(np.int32).astype(np.int64)
    product = shifted * m
    nudge = np.where(product >= 0, 1 << 30, 1 - (1 << 30))
    x = np.sign(product + nudge) * (abs(product + nudge) >> 31)
    right = np.maximum(-n, 0)
    mask = (np.int64(1) << right) - 1
    threshold = (mask >> 1) + (x < 0)
    return (x >> right) + ((x & mask) > threshold)


def requantize(node: Node, acc: Array, m: Array | int, n: Array | int, output: Tensor) -> Array:
    zero = 0 if output.dtype == "i32" else one_scale(output.quant)[1]
    result = np.clip(scale(acc.astype(np.int32), m, n) + zero, node.attrs["qmin"], node.attrs["qmax"])
    return result.astype(np.int32 if output.dtype == "i32" else np.int8)


def centred(tensor: Tensor, q: Array) -> Array:
    return q.astype(np.int64) - one_scale(tensor.quant)[1]


def correlate(node: Node, x: Array, w: Array) -> Array:
    """The sums of `conv`, of integers that doubles hold."""
    group, seen = node.attrs["group"], windows(node, x.astype(float), w.shape[1:3], 0)
    if w.shape[3] == 1 and group == x.shape[3]:
        seen = np.repeat(seen, w.shape[0] // group, axis=-1)
        return np.einsum("uvnijo,ouv->nijo", seen, w[..., 0].astype(float))
    parts = zip(np.split(seen, group, axis=-1), np.split(w.astype(float), group, axis=0), strict=True)
    return np.concatenate([np.tensordot(s, k, ((0, 1, 5), (1, 2, 3))) for s, k in parts], axis=-1)


def spread(node: Node, x: Array, w: Array) -> Array:
    """The sums of `conv_transpose`."""
    (sy, sx), (top, left), (rows, columns) = (node.attrs[key] for key in ("strides", "pads", "size"))
    n, h, width, _ = x.shape
    o, kh, kw, _ = w.shape
    full = np.zeros((n, max((h - 1) * sy + kh, top + rows), max((width - 1) * sx + kw, left + columns), o))
    for i in range(h):
        for j in range(width):
            full[:, i * sy : i * sy + kh, j * sx : j * sx + kw] += np.einsum("nc,ouvc->nuvo", x[:, i, j], w)
    return full[:, top : top + rows, left : left + columns]


def rows(node: Node, x: Array, w: Array) -> Array:
    return x.astype(float) @ w.astype(float).T


def layer(sums: Callable[[Node, Array, Array], Array]) -> Function:
    def function(node: Node, tensors: list[Tensor], x: Array, w: Array, b: Array, m: Array) -> Array:
        acc = accumulated(sums, node, tensors, x, w, b)
        return requantize(node, acc.astype(np.int64), m[:, 0], m[:, 1], tensors[-1])

    return function


def accumulated(
    sums: Callable[[Node, Array, Array], Array],
    node: Node,
    tensors: list[Tensor],
    x: Array,
    w: Array,
    b: Array,
) -> Array:
    quant = tensors[1].quant
    assert quant is not None
    zero = quant.zero_point[0]
    assert (quant.zero_point == zero).all()
    return sums(node, centred(tensors[0], x), w.astype(np.int64) - zero) + b


def dense_double(node: Node, tensors: list[Tensor], x: Array, w: Array, b: Array) -> Array:
    (sx, _), (sy, zy) = one_scale(tensors[0].quant), one_scale(tensors[-1].quant)
    assert tensors[1].quant is not None
    ratio = float(sx) * tensors[1].quant.scale.astype(float) / float(sy)
    result = away(accumulated(rows, node, tensors, x, w, b) * ratio) + zy
    return np.clip(result, node.attrs["qmin"], node.attrs["qmax"]).astype(np.int8)


def hybrid(sums: Callable[[Node, Array, Array], Array]) -> Function:
    """Float activations quantized one image, or one row, at a time."""

    def function(node: Node, tensors: list[Tensor], x: Array, w: Array, b: Array) -> Array:
        quant = tensors[1].quant
        assert quant is not None
        images = []
        for i in range(len(x)):
            q, s = dynamic(node, x[i : i + 1])
            images.append(sums(node, q, w.astype(np.int64)).astype(F) * (s * quant.scale) + b)
        return np.concatenate(images).astype(F)

    return function


def dynamic(node: Node, x: Array) -> tuple[Array, np.float32]:
    """q - z and the scale."""
    low, high = min(F(0), x.min()), max(F(0), x.max())
    if low == high:
        return np.zeros(x.shape), F(1)
    if not node.attrs["asymmetric"]:
        top = max(-low, high)
        return np.clip(away(x * (F(127) / top)), -127, 127).astype(float), top / F(127)
    step = (float(high) - float(low)) / 255
    from_low, from_high = -128 - float(low) / step, 127 - float(high) / step
    closer = 128 + abs(float(low) / step) < 127 + abs(float(high) / step)
    zero = int(np.clip(away(np.array(from_low if closer else from_high)), -128, 127))
    return np.clip(away(F(zero) + x * (F(1) / F(step))), -128, 127) - zero, F(step)


def away(x: Array) -> Array:
    """To the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return whole + np.sign(x) * (abs(x - whole) >= 0.5)


def average_pool(node: Node, tensors: list[Tensor], x: Array) -> Array:
    kernel = node.attrs["kernel"]
    n = windows(node, np.ones_like(x, np.int64), kernel, 0).sum((0, 1))
    acc = windows(node, x.astype(np.int64), kernel, 0).sum((0, 1))
    if node.attrs["ties"] == "up":
        result = (acc + 128 * n + n // 2) // n - 128
    else:
        result = np.where(acc > 0, (acc + n // 2) // n, -((-acc + n // 2) // n))
    return np.clip(result, node.attrs["qmin"], node.attrs["qmax"]).astype(np.int8)


def add(sign: int) -> Function:
    def function(node: Node, tensors: list[Tensor], a: Array, b: Array) -> Array:
        (ma, mb, my), (na, nb, ny) = node.attrs["multiplier"], node.attrs["shift"]
        left = scale(centred(tensors[0], a) << 20, ma, na)
        right = scale(centred(tensors[1], b) << 20, mb, nb)
        return requantize(node, left + sign * right, my, ny, tensors[-1])

    return function


def mul(node: Node, tensors: list[Tensor], a: Array, b: Array) -> Array:
    product = centred(tensors[0], a) * centred(tensors[1], b)
    return requantize(node, product, *node.attrs["multiplier"], *node.attrs["shift"], tensors[-1])


def matmul(node: Node, tensors: list[Tensor], a: Array, b: Array) -> Array:
    acc = centred(tensors[0], a) @ centred(tensors[1], b)
    return requantize(node, acc, *node.attrs["multiplier"], *node.attrs["shift"], tensors[-1])


def reduce_sum(node: Node, tensors: list[Tensor], x: Array) -> Array:
    acc = centred(tensors[0], x).sum(node.attrs["axes"], keepdims=True)
    return requantize(node, acc, *node.attrs["multiplier"], *node.attrs["shift"], tensors[-1])


def softmax(node: Node, tensors: list[Tensor], x: Array, table: Array) -> Array:
    exps = table.astype(np.int64)[x.max(-1, keepdims=True).astype(np.int64) - x]
    result = np.empty(x.shape, np.int8)
    for place in np.ndindex(x.shape[:-1]):
        total = sum(fixed.halve(int(e), 12) for e in exps[place])
        r, k = fixed.reciprocal(total, 12)
        outputs = [fixed.halve(fixed.high(r, int(e)), k + 31 - 8) - 128 for e in exps[place]]
        result[place] = np.clip(outputs, -128, 127)
    return result


def resize_fixed(node: Node, tensors: list[Tensor], x: Array) -> Array:
    result = np.zeros((x.shape[0], *node.attrs["size"], x.shape[3]), np.int64)
    (y0, y1, fy), (x0, x1, fx) = (
        _places(node, x.shape[axis], node.attrs["size"][axis - 1]) for axis in (1, 2)
    )
    q = x.astype(np.int64)
    fy, fx = fy[:, None, None], fx[:, None]
    for ys, wy in ((y0, 1024 - fy), (y1, fy)):
        for xs, wx in ((x0, 1024 - fx), (x1, fx)):
            result += q[:, ys][:, :, xs] * wy * wx
    result += np.where(result > 0, 1 << 19, -(1 << 19))
    return (np.sign(result) * (abs(result) >> 20)).astype(np.int8)


def _places(node: Node, n: int, m: int) -> tuple[Array, Array, Array]:
    ratio = (1024 * n + m // 2) // m
    if node.attrs["align_corners"] and m > 1:
        ratio = (1024 * (n - 1) + (m - 1) // 2) // (m - 1)
    at = [i * ratio + (ratio // 2 - 512 if node.attrs["half_pixel"] else 0) for i in range(m)]
    low = [min(max(fixed.divide(t, 1024), 0), n - 1) for t in at]
    upper = [min(fixed.divide(t + 1023, 1024), n - 1) for t in at]
    return np.array(low), np.array(upper), np.array([t - 1024 * lo for t, lo in zip(at, low, strict=True)])


def resize_float(node: Node, tensors: list[Tensor], x: Array) -> Array:
    for axis in (1, 2):
        n, m = x.shape[axis], node.attrs["size"][axis - 1]
        corners = node.attrs["align_corners"] and m > 1
        ratio = F(n - 1) / F(m - 1) if corners else F(n) / F(m)
        at = np.arange(m, dtype=F)
        at = (at + F(0.5)) * ratio - F(0.5) if node.attrs["half_pixel"] else at * ratio
        low = np.maximum(np.floor(at), 0).astype(int)
        up = np.minimum(np.ceil(at), n - 1).astype(int)
        f = (at - low.astype(F)).reshape(-1, *[1] * (3 - axis))
        x = np.take(x, np.minimum(low, n - 1), axis) * (1 - f) + np.take(x, up, axis) * f
    return x.astype(F)


def gates(gx: Array, gh: Array) -> list[Array]:
    total = gx.astype(np.int64) + gh
    return np.split(np.clip(total, -32768, 32767), 4, axis=-1)


def lstm_cell(node: Node, tensors: list[Tensor], gx: Array, gh: Array, c: Array) -> Array:
    i, f, g, _ = gates(gx, gh)
    shift = 30 + node.attrs["cell"]
    kept = each(lambda a, b: fixed.wrap(fixed.halve(fixed.logistic(a) * b, 15), 16), f, c)
    new = each(lambda a, b: fixed.wrap(fixed.halve(fixed.logistic(a) * fixed.tanh(b, 3), shift), 16), i, g)
    clip = node.attrs["clip"] or 32768
    return np.clip(np.clip(kept + new, -32768, 32767), -clip, clip).astype(np.int16)


def lstm_hidden(node: Node, tensors: list[Tensor], gx: Array, gh: Array, c: Array) -> Array:
    o, point = gates(gx, gh)[3], 15 + node.attrs["cell"]
    acc = each(lambda a, b: fixed.logistic(a) * fixed.tanh(b, point), o, c)
    return requantize(node, acc, *node.attrs["multiplier"], *node.attrs["shift"], tensors[-1])


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm_cell_float(node: Node, tensors: list[Tensor], gx: Array, gh: Array, c: Array) -> Array:
    i, f, g, _ = np.split(gx.astype(float) + gh, 4, axis=-1)
    result = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    clip = node.attrs["clip"] or np.inf
    return np.clip(result, -clip, clip).astype(F)


def lstm_hidden_float(node: Node, tensors: list[Tensor], gx: Array, gh: Array, c: Array) -> Array:
    o = np.split(gx.astype(float) + gh, 4, axis=-1)[3]
    return (sigmoid(o) * np.tanh(c.astype(float))).astype(F)


def strided_slice(node: Node, tensors: list[Tensor], x: Array) -> Array:
    places = zip(*(node.attrs[key] for key in ("starts", "sizes", "steps")), strict=True)
    for axis, (start, size, step) in enumerate(places):
        x = np.take(x, [start + i * step for i in range(size)], axis)
    return x


def gather(node: Node, tensors: list[Tensor], x: Array, index: Array) -> Array:
    return np.take(x, index, node.attrs["axis"], mode="clip")


def gather_nd(node: Node, tensors: list[Tensor], x: Array, index: Array) -> Array:
    result = [
        x[tuple(np.clip(row, 0, np.array(x.shape[: len(row)]) - 1))]
        for row in index.reshape(-1, index.shape[-1])
    ]
    return np.array(result, x.dtype).reshape(*index.shape[:-1], *x.shape[index.shape[-1] :])


def mirror_pad(node: Node, tensors: list[Tensor], x: Array) -> Array:
    widths = list(zip(node.attrs["before"], node.attrs["after"], strict=True))
    return np.pad(x, widths, mode="symmetric" if node.attrs["edge"] else "reflect")


def pad(node: Node, tensors: list[Tensor], x: Array) -> Array:
    widths = list(zip(node.attrs["before"], node.attrs["after"], strict=True))
    return np.pad(x, widths, constant_values=node.attrs["value"])


def cast(node: Node, tensors: list[Tensor], x: Array) -> Array:
    dtype = {
        "f32": F,
        "i8": np.int8,
        "u8": np.uint8,
        "i16": np.int16,
        "i32": np.int32,
        "i64": np.int64,
        "bool": np.bool_,
    }[tensors[-1].dtype]
    if x.dtype == F and dtype not in (F, np.bool_):
        info = np.iinfo(dtype)
        x = np.clip(np.nan_to_num(np.trunc(x.astype(float))), info.min, info.max)
    return x.astype(dtype)


def binary(floats: Function, integers: Function | None = None) -> Function:
    def function(node: Node, tensors: list[Tensor], a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            if a.dtype == F or integers is None:
                return np.asarray(floats(a, b))
            return np.asarray(integers(a.astype(np.int64), b.astype(np.int64))).astype(a.dtype)

    return function


def unary(function: Function) -> Function:
    def wide(node: Node, tensors: list[Tensor], x: Array) -> Array:
        with np.errstate(all="ignore"):
            if x.dtype != F:
                return np.asarray(function(x)).astype(x.dtype)
            return np.asarray(function(x.astype(float))).astype(F)

    return wide


def reduction(function: Function) -> Function:
    def reduced(node: Node, tensors: list[Tensor], x: Array) -> Array:
        wide = x.astype(float) if x.dtype == F else x
        return np.asarray(function(wide, axis=node.attrs["axes"], keepdims=True)).astype(x.dtype)

    return reduced


def place(function: Function) -> Function:
    def found(node: Node, tensors: list[Tensor], x: Array) -> Array:
        return np.asarray(function(x, axis=node.attrs["axes"][0], keepdims=True)).astype(np.int32)

    return found


def zero_where(divisor: Array, result: Array) -> Array:
    return np.where(divisor == 0, 0, result)


def toward_zero(a: Array, b: Array) -> Array:
    return np.sign(a) * np.sign(b) * (abs(a) // np.maximum(abs(b), 1)) * (b != 0)


def leaky_relu(node: Node, tensors: list[Tensor], x: Array) -> Array:
    return np.where(x > 0, x, x * F(node.attrs["alpha"])).astype(F)


def log_softmax(node: Node, tensors: list[Tensor], x: Array) -> Array:
    wide = x.astype(float) - x.max(-1, keepdims=True)
    return (wide - np.log(np.exp(wide).sum(-1, keepdims=True))).astype(F)


def l2_normalize(node: Node, tensors: list[Tensor], x: Array) -> Array:
    wide = x.astype(float)
    return (wide / np.sqrt(np.maximum((wide**2).sum(-1, keepdims=True), 1e-12))).astype(F)


def transposed_float(node: Node, tensors: list[Tensor], x: Array, w: Array, b: Array) -> Array:
    return (spread(node, x.astype(float), w.astype(float)) + b).astype(F)


FIXED: dict[str, Function] = {
    "conv": layer(correlate),
    "dense": layer(rows),
    "conv_transpose": layer(spread),
    "average_pool": average_pool,
    "add": add(1),
    "sub": add(-1),
    "mul": mul,
    "matmul": matmul,
    "reduce_mean": reduce_sum,
    "reduce_sum": reduce_sum,
    "softmax": softmax,
    "resize_bilinear": resize_fixed,
    "lstm_cell": lstm_cell,
    "lstm_hidden": lstm_hidden,
}
HYBRID: dict[str, Function] = {"conv": hybrid(correlate), "dense": hybrid(rows)}
FUNCTIONS: dict[str, Function] = {
    "sub": binary(np.subtract, np.subtract),
    "div": binary(np.divide, toward_zero),
    "floor_div": binary(np.floor_divide, lambda a, b: zero_where(b, np.floor_divide(a, b))),
    "floor_mod": binary(np.mod, lambda a, b: zero_where(b, np.mod(a, b))),
    "minimum": binary(np.minimum),
    "maximum": binary(np.maximum),
    "squared_difference": binary(lambda a, b: (a - b) ** 2, lambda a, b: (a - b) ** 2),
    "power": binary(np.power, np.power),
    "equal": binary(np.equal),
    "not_equal": binary(np.not_equal),
    "less": binary(np.less),
    "less_equal": binary(np.less_equal),
    "greater": binary(np.greater),
    "greater_equal": binary(np.greater_equal),
    "logical_and": binary(np.logical_and),
    "logical_or": binary(np.logical_or),
    "logical_not": lambda node, tensors, x: ~x,
    "select": lambda node, tensors, c, a, b: np.where(c, a, b),
    "prelu": lambda node, tensors, x, alpha: np.where(x >= 0, x, x * alpha),
    "neg": unary(np.negative),
    "abs": unary(np.abs),
    "sign": unary(np.sign),
    "square": unary(np.square),
    "sqrt": unary(np.sqrt),
    "rsqrt": unary(lambda x: 1 / np.sqrt(x)),
    "exp": unary(np.exp),
    "log": unary(np.log),
    "sin": unary(np.sin),
    "cos": unary(np.cos),
    "floor": unary(np.floor),
    "ceil": unary(np.ceil),
    "round": unary(np.rint),
    "hard_swish": unary(lambda x: x * np.clip(x + 3, 0, 6) / 6),
    "gelu": unary(lambda x: x * (1 + np.vectorize(erf, [float])(x / 2**0.5)) / 2),
    "gelu_tanh": unary(lambda x: x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2),
    "leaky_relu": leaky_relu,
    "log_softmax": log_softmax,
    "l2_normalize": l2_normalize,
    "cast": cast,
    "flip": lambda node, tensors, x: (x.view(np.uint8) ^ 0x80).view(
        np.int8 if x.dtype == np.uint8 else np.uint8
    ),
    "concat": lambda node, tensors, *parts: np.concatenate(parts, node.attrs["axis"]),
    "pad": pad,
    "mirror_pad": mirror_pad,
    "strided_slice": strided_slice,
    "gather": gather,
    "gather_nd": gather_nd,
    "tile": lambda node, tensors, x: np.tile(x, node.attrs["repeats"]),
    "reduce_sum": reduction(np.sum),
    "reduce_mean": reduction(np.mean),
    "reduce_max": reduction(np.max),
    "reduce_min": reduction(np.min),
    "reduce_prod": reduction(np.prod),
    "reduce_any": reduction(np.any),
    "reduce_all": reduction(np.all),
    "arg_max": place(np.argmax),
    "arg_min": place(np.argmin),
    "conv_transpose": transposed_float,
    "resize_bilinear": resize_float,
    "matmul": lambda node, tensors, a, b: (a.astype(float) @ b).astype(F),
    "lstm_cell": lstm_cell_float,
    "lstm_hidden": lstm_hidden_float,
}
