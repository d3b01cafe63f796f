"""QuantizeLinear and DequantizeLinear: the scale moves from the node to the integer tensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from reflexarc.inference.graph.ir import DTYPES, ModelError, QuantParams, Tensor, check_tensor
from reflexarc.inference.graph.onnx.context import Context
from reflexarc.inference.graph.onnx.registry import Handlers
from reflexarc.inference.graph.onnx.tensors import dtype_of

HANDLERS = Handlers()


def _params(context: Context) -> QuantParams:
    scale = context.value(1)
    if scale.dtype != np.float32 or context.integer("block_size", 0):
        raise ModelError(f"{context.node}: scales of {scale.dtype}, or in blocks, are not supported")
    zero_point = context.value(2) if context.has(2) else np.zeros(scale.size, np.int32)
    if zero_point.size != scale.size or zero_point.dtype.kind not in "iu":
        raise ModelError(f"{context.node}: {scale.shape} scales with {zero_point.shape} zero points")
    axis = None
    if scale.size > 1:
        axis = context.axis_of(context.integer("axis", 1), len(context.tensor(0).shape))
    return QuantParams(scale.ravel(), zero_point.ravel().astype(np.int32), axis)


@HANDLERS("QuantizeLinear")
def _quantize(context: Context) -> None:
    dtype = "u8"
    if context.has(2):
        dtype = next(name for name, kind in DTYPES.items() if kind == context.value(2).dtype)
    elif context.integer("output_dtype", 0):
        dtype = dtype_of(context.integer("output_dtype"), str(context.node))
    if dtype not in ("i8", "u8"):
        raise ModelError(f"{context.node}: quantization to {dtype} is not supported")
    context.give(context.emit("quantize", [context.name(0)], dtype=dtype, quant=_params(context)))


@HANDLERS("DequantizeLinear")
def _dequantize(context: Context) -> None:
    context.give(context.emit("dequantize", [_scaled(context)], dtype="f32"))


def _scaled(context: Context) -> str:
    """The integer input with its scale set; a constant is shared by those that scale it alike."""
    tensor, params = context.tensor(0), _params(context)
    if context.has(2) and context.value(2).dtype != DTYPES[tensor.dtype]:
        raise ModelError(f"{context.node}: a zero point of {context.value(2).dtype} for {tensor.dtype}")
    if params.same(tensor.quant):
        return tensor.name
    if tensor.data is not None:
        return context.constant(tensor.name, tensor.data, params)
    if tensor.quant is not None or tensor.name not in context.editor.inputs:
        raise ModelError(f"{context.node}: {tensor.name!r} was quantized with another scale")
    scaled: Tensor = replace(tensor, quant=params)
    check_tensor(scaled)
    context.editor.tensors[tensor.name] = scaled
    return tensor.name
