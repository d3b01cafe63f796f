"""Between floats and integers, and between types."""

from __future__ import annotations

from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.registry import Handlers
from reflexarc.inference.graph.tflite.tables import requantize_table
from reflexarc.inference.graph.tflite.tensors import dtype_of

HANDLERS = Handlers()


@HANDLERS("QUANTIZE")
def _quantize(context: Context) -> None:
    x, y = context.tensor(0), context.result_quant()
    context.scale(y)
    if context.result_dtype() != "i8":
        raise context.unsupported(f"a result of {context.result().type}")
    if x.dtype == "f32":
        name = context.emit("quantize", [x.name], {"rounding": "away"}, dtype="i8", quant=y)
    elif x.dtype == "i8":
        table = context.constant(f"{context.result().name}:table", requantize_table(context, x.quant, y))
        name = context.emit("lookup", [x.name, table], quant=y)
    else:
        raise context.unsupported(f"{x.dtype}")
    context.give(name)


@HANDLERS("DEQUANTIZE")
def _dequantize(context: Context) -> None:
    x = context.tensor(0)
    if x.dtype == "f32":  # half floats are floats since they were read
        context.give(x.name)
    elif x.dtype in ("i8", "i32") and x.quant is not None:
        context.give(context.emit("dequantize", [x.name], dtype="f32"))
    else:
        raise context.unsupported(f"{x.dtype} or a tensor without a scale")


@HANDLERS("CAST")
def _cast(context: Context) -> None:
    dtype = dtype_of(context.result())
    if context.declared(0).type == "FLOAT16" or context.result().type in ("FLOAT16", "INT4"):
        raise context.unsupported(f"{context.declared(0).type} to {context.result().type}")
    quant = context.result_quant() if dtype == "i8" else None
    context.give(context.emit("cast", [context.stored(0)], dtype=dtype, quant=quant))
