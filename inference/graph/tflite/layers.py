"""Convolutions and dense layers: float, fixed integer, and hybrid (float activations, int8 weights)."""

from __future__ import annotations

from math import prod

import numpy as np

from reflexarc.inference.graph import fixed
from reflexarc.inference.graph.ir import MAX_ELEMENTS, Attr, QuantParams
from reflexarc.inference.graph.tflite.activation import activated, integer_range, result_part
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.registry import Handlers

HANDLERS = Handlers()
MAX_CHANNELS = 1 << 20
MAX_TERMS = (1 << 31) // (255 * 255)
"""Products of two 8-bit differences that an int32 surely holds."""


def same_pads(size: int, stride: int, reach: int) -> tuple[int, int]:
    """Elements before and after an axis that make ceil(size / stride) windows."""
    total = max((-(-size // stride) - 1) * stride + reach - size, 0)
    return total // 2, total - total // 2


def window(
    context: Context, size: tuple[int, ...], kernel: tuple[int, ...], dilated: bool
) -> dict[str, Attr]:
    """`strides`, `pads` and `dilations` of a window over an image of (height, width)."""
    strides = context.option("stride_h"), context.option("stride_w")
    dilations = (context.option("dilation_h"), context.option("dilation_w")) if dilated else (1, 1)
    if not all(1 <= n <= MAX_ELEMENTS for n in (*strides, *dilations, *kernel)):
        raise context.unsupported(f"a window of {kernel}, strides {strides}, dilations {dilations}")
    pads = [0, 0, 0, 0]
    if context.option("padding") == 0:
        for axis in range(2):
            reach = (kernel[axis] - 1) * dilations[axis] + 1
            pads[axis], pads[axis + 2] = same_pads(size[axis], strides[axis], reach)
    elif context.option("padding") != 1:
        raise context.unsupported(f"padding {context.option('padding')}")
    return {"strides": strides, "pads": tuple(pads), "dilations": dilations}


def scaling(context: Context, x: QuantParams | None, w: QuantParams, channels: int, wide: bool) -> str:
    """The constant of each output channel's multiplier and shift.

    The ratio of scales is a double; unless it is `wide`, the product of the two scales was float32 before.
    """
    (sx, _), (sy, _) = context.scale(x), context.scale(context.result_quant())
    pairs = []
    for sw in w.scale:
        product = float(sx) * float(sw) if wide else float(sx * sw)
        pairs.append(fixed.multiplier(product / float(sy)))
    rows = np.array(pairs, np.int32)
    data = np.ascontiguousarray(np.broadcast_to(rows, (channels, 2)))
    return context.constant(f"{context.result().name}:scaling", data)


def float_layer(context: Context, op: str, x: str, w: str, bias: int, attrs: dict[str, Attr]) -> str:
    """A layer on float activations, with its activation; `bias` is an input's index."""
    _check_bias(context, w, bias)
    b = _bias(context, bias, context.editor.tensors[w].shape[0], "f32")
    name = context.emit(op, [x, w, b], attrs | {"activation": "none"}, part=result_part(context))
    return activated(context, name)


def integer_layer(
    context: Context, op: str, x: str, w: str, bias: int, attrs: dict[str, Attr], wide: bool | None
) -> str:
    """A layer on int8, with its activation. Fixed, `wide` as in `scaling`; "double" where it is None."""
    kind, weights = context.editor.tensors[x].dtype, context.editor.tensors[w]
    if kind != "i8" or weights.dtype != "i8" or context.result_dtype() != "i8":
        raise context.unsupported(f"{kind} with weights {weights.dtype} and result {context.result().type}")
    _check_bias(context, w, bias)
    quant, y = weights.quant, context.result_quant()
    if weights.data is None or quant is None or quant.axis not in (None, 0):
        raise context.unsupported("weights that are not constant, or scaled along another axis")
    if prod(weights.shape[1:]) > MAX_TERMS or (quant.axis is not None and quant.zero_point.any()):
        raise context.unsupported(
            f"weights {weights} of more than {MAX_TERMS} terms, or a zero point a channel"
        )
    context.scale(y)
    operands = [x, w, _bias(context, bias, weights.shape[0], "i32")]
    if wide is not None:
        operands.append(scaling(context, context.editor.tensors[x].quant, quant, weights.shape[0], wide))
    attrs = attrs | {"rounding": "double" if wide is None else "fixed"} | integer_range(context, y)
    return context.emit(op, operands, attrs, quant=y)


def _check_bias(context: Context, w: str, index: int) -> None:
    channels = context.editor.tensors[w].shape[0]
    if channels > MAX_CHANNELS:
        raise context.unsupported(f"{channels} channels, more than {MAX_CHANNELS},")
    if context.has(index) and prod(context.tensor(index).shape) != channels:
        raise context.unsupported(f"a bias of {context.tensor(index).shape} for {channels} channels")


def _bias(context: Context, index: int, channels: int, dtype: str) -> str:
    if not context.has(index):
        zeros = np.zeros(channels, np.float32 if dtype == "f32" else np.int32)
        return context.constant(f"{context.result().name}:bias", zeros)
    tensor = context.tensor(index)
    if tensor.dtype != dtype or (tensor.data is None and dtype != "f32"):
        raise context.unsupported(f"a bias of {tensor.dtype}, or one that is not constant")
    if tensor.shape != (channels,):
        return context.emit("reshape", [tensor.name], {"shape": (channels,)}, part="bias")
    return tensor.name


def _layer(context: Context, op: str, x: str, w: str, index: int, attrs: dict[str, Attr]) -> str:
    """A convolution of input `index`, whose bias is the third operand, or the fourth after a size."""
    bias = 2 if index == 0 else 3
    if context.editor.tensors[x].dtype == "f32":
        quant = context.editor.tensors[w].quant
        if quant is not None:
            attrs = attrs | {"asymmetric": int(quant.axis is not None)}
        return float_layer(context, op, x, w, bias, attrs)
    return integer_layer(context, op, x, w, bias, attrs, wide=context.declared(index).type != "UINT8")


@HANDLERS("CONV_2D")
def _conv(context: Context) -> None:
    x, w = context.tensor(0), context.tensor(1)
    _check_images(context, x.shape, w.shape)
    if w.shape[3] == 0 or x.shape[3] % w.shape[3]:
        raise context.unsupported(f"x {x.shape} with weights {w.shape}")
    attrs = window(context, x.shape[1:3], w.shape[1:3], dilated=True) | {"group": x.shape[3] // w.shape[3]}
    context.give(_layer(context, "conv", x.name, w.name, 0, attrs))


@HANDLERS("DEPTHWISE_CONV_2D")
def _depthwise(context: Context) -> None:
    x, w = context.tensor(0), context.tensor(1)
    _check_images(context, x.shape, w.shape)
    if w.shape[0] != 1 or w.shape[3] % x.shape[3]:
        raise context.unsupported(f"x {x.shape} with weights {w.shape}")
    attrs = window(context, x.shape[1:3], w.shape[1:3], dilated=True) | {"group": x.shape[3]}
    name = context.emit("transpose", [w.name], {"perm": (3, 1, 2, 0)}, part="weights")
    context.give(_layer(context, "conv", x.name, name, 0, attrs))


@HANDLERS("TRANSPOSE_CONV")
def _transposed(context: Context) -> None:
    size, w, x = context.integers(0), context.tensor(1), context.tensor(2)
    _check_images(context, x.shape, w.shape)
    strides = context.option("stride_h"), context.option("stride_w")
    if len(size) != 4 or size[0] != x.shape[0] or size[3] != w.shape[0] or min(*strides, *size) < 1:
        raise context.unsupported(f"a result of {size} with strides {strides}")
    if w.dtype != x.dtype:
        raise context.unsupported(f"x {x.dtype} with weights {w.dtype}")
    pads = [0, 0]
    if context.option("padding") == 0:
        pads = [same_pads(size[1 + i], strides[i], w.shape[1 + i])[0] for i in range(2)]
    attrs: dict[str, Attr] = {"strides": strides, "pads": tuple(pads), "size": size[1:3]}
    context.give(_layer(context, "conv_transpose", x.name, w.name, 2, attrs))


def _check_images(context: Context, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    if len(x) != 4 or len(w) != 4:
        raise context.unsupported(f"x {x} with weights {w}, not of 4 dimensions,")


@HANDLERS("FULLY_CONNECTED")
def _dense(context: Context) -> None:
    x, w = context.tensor(0), context.tensor(1)
    if context.option("format") or len(w.shape) != 2 or not w.shape[1] or x.size % w.shape[1]:
        raise context.unsupported(f"x {x.shape} with weights {w.shape} in format {context.option('format')}")
    rows, name = x.size // w.shape[1], x.name
    if x.shape != (rows, w.shape[1]):
        name = context.emit("reshape", [name], {"shape": (rows, w.shape[1])}, part="rows", quant=x.quant)
    if x.dtype == "f32":
        attrs: dict[str, Attr] = {"asymmetric": int(context.option("asymmetric"))} if w.dtype == "i8" else {}
        y = float_layer(context, "dense", name, w.name, 2, attrs)
    else:
        y = integer_layer(context, "dense", name, w.name, 2, {}, wide=None)
    if context.option("keep_dims") and len(x.shape) != 2:
        y = context.emit(
            "reshape", [y], {"shape": (*x.shape[:-1], w.shape[0])}, quant=context.editor.tensors[y].quant
        )
    context.give(y)


@HANDLERS("BATCH_MATMUL")
def _matmul(context: Context) -> None:
    names = []
    for index, key in enumerate(("adj_x", "adj_y")):
        name, rank = context.name(index), len(context.tensor(index).shape)
        if rank < 2:
            raise context.unsupported(f"an operand of {rank} dimensions")
        if context.option(key):
            perm = (*range(rank - 2), rank - 1, rank - 2)
            name = context.emit("transpose", [name], {"perm": perm}, part=f"turned{index}")
        names.append(name)
    a, b = (context.editor.tensors[name] for name in names)
    if (a.dtype, b.dtype) == ("f32", "f32"):
        context.give(context.emit("matmul", names))
        return
    if (a.dtype, b.dtype, context.result_dtype()) != ("i8", "i8", "i8"):
        raise context.unsupported(f"{a.dtype} with {b.dtype}")
    (sa, _), (sb, _), (sy, _) = (context.scale(q) for q in (a.quant, b.quant, context.result_quant()))
    m, n = fixed.multiplier(float(sa * sb) / float(sy))
    attrs: dict[str, Attr] = {"multiplier": (m,), "shift": (n,), "qmin": -128, "qmax": 127}
    attrs["rounding"] = "fixed"
    context.give(context.emit("matmul", names, attrs, quant=context.result_quant()))
