"""Declared tensors as the graph has them: their elements, types and scales."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import DTYPES, ModelError, QuantParams, check_shape
from reflexarc.inference.graph.tflite.schema import TensorDef

_DTYPES = {
    "FLOAT32": "f32",
    "FLOAT16": "f32",
    "INT32": "i32",
    "UINT8": "u8",
    "INT64": "i64",
    "BOOL": "bool",
    "INT16": "i16",
    "INT8": "i8",
    "INT4": "i8",
}
_QUANTIZED = ("i8", "u8", "i16", "i32")


def dtype_of(tensor: TensorDef) -> str:
    """The graph's dtype; `ModelError` for a type it does not have."""
    if tensor.type not in _DTYPES:
        raise ModelError(f"{tensor}: type {tensor.type} is not one of {', '.join(_DTYPES)}")
    return _DTYPES[tensor.type]


def quant_of(tensor: TensorDef) -> QuantParams | None:
    """The scales as declared; None where there are none, or where the type has no use for them."""
    dtype, count = dtype_of(tensor), len(tensor.scale)
    if not count or dtype not in _QUANTIZED:
        return None
    zeros = tensor.zero_point or (0,)
    if len(zeros) not in (1, count):
        raise ModelError(f"{tensor}: {count} scales and {len(zeros)} zero points")
    info = np.iinfo(DTYPES[dtype])
    if not all(info.min <= zero <= info.max for zero in zeros):
        raise ModelError(f"{tensor}: zero points {min(zeros)}..{max(zeros)} are outside {dtype}")
    return QuantParams(
        np.array(tensor.scale, np.float32),
        np.broadcast_to(np.array(zeros, np.int32), (count,)),
        tensor.axis if count > 1 else None,
    )


def signed(quant: QuantParams | None) -> QuantParams | None:
    """The scales of uint8 for the int8 that are 128 less."""
    if quant is None:
        return None
    return QuantParams(quant.scale, (quant.zero_point - 128).astype(np.int32), quant.axis)


def decode(tensor: TensorDef, data: memoryview) -> NDArray[Any]:
    """The elements of a constant, shaped; half floats as floats, 4-bit integers as int8."""
    dtype, size = dtype_of(tensor), prod(tensor.shape)
    check_shape(str(tensor), tensor.shape, empty=len(tensor.shape) < 2)
    if tensor.is_sparse:
        raise ModelError(f"{tensor}: sparse tensors are not supported")
    stored = np.dtype(np.float16) if tensor.type == "FLOAT16" else DTYPES[dtype]
    wanted = (size + 1) // 2 if tensor.type == "INT4" else size * stored.itemsize
    if len(data) != wanted:
        raise ModelError(f"{tensor}: {len(data)} bytes of data, its shape and type take {wanted}")
    if tensor.type == "INT4":
        flat = _nibbles(np.frombuffer(data, np.int8))[:size]
    elif dtype == "bool":
        flat = np.frombuffer(data, np.uint8).astype(np.bool_)
    else:
        flat = np.frombuffer(data, stored.newbyteorder("<")).astype(DTYPES[dtype], copy=False)
    return flat.reshape(tensor.shape)


def _nibbles(packed: NDArray[np.int8]) -> NDArray[np.int8]:
    """Two 4-bit integers a byte, the lower first."""
    low = (packed << np.int8(4)) >> np.int8(4)
    return np.stack([low, packed >> np.int8(4)], axis=-1).ravel()
