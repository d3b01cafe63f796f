"""The elements of an ONNX tensor, from the file itself or from a file beside it."""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import DTYPES, ModelError, check_shape
from reflexarc.inference.graph.onnx.messages import TensorProto
from reflexarc.inference.graph.protobuf import packed_varints, signed

ELEMENT_TYPES = {1: "f32", 2: "u8", 3: "i8", 6: "i32", 7: "i64", 9: "bool"}
_OTHER_TYPES = {4: "UINT16", 5: "INT16", 8: "STRING", 10: "FLOAT16", 11: "DOUBLE", 12: "UINT32", 13: "UINT64"}
_TYPED_FIELD = {"f32": 4, "u8": 5, "i8": 5, "i32": 5, "bool": 5, "i64": 7}


def dtype_of(code: int, what: str) -> str:
    """The IR's dtype for an ONNX element type; `ModelError` for one it does not have."""
    if code not in ELEMENT_TYPES:
        raise ModelError(
            f"{what}: element type {_OTHER_TYPES.get(code, code)} is not one of {', '.join(DTYPES)}"
        )
    return ELEMENT_TYPES[code]


def decode(tensor: TensorProto, folder: Path | None) -> NDArray[Any]:
    """The elements, shaped. `folder` is the model's own: external data may lie nowhere else."""
    what = f"tensor {tensor.name!r}"
    dtype = dtype_of(tensor.data_type, what)
    shape = tuple(tensor.dims)
    check_shape(tensor.name, shape, empty=True)
    size = prod(shape)
    if tensor.external is not None:
        flat = _external(tensor.external, what, dtype, size, folder)
    elif tensor.raw is not None:
        flat = _raw(tensor.raw, what, dtype, size)
    else:
        flat = _typed(tensor, what, dtype, size)
    if dtype == "bool":
        flat = flat.astype(np.bool_)
    return flat.reshape(shape)


def _little(dtype: str) -> np.dtype[Any]:
    return (np.dtype(np.uint8) if dtype == "bool" else DTYPES[dtype]).newbyteorder("<")


def _raw(raw: memoryview, what: str, dtype: str, size: int) -> NDArray[Any]:
    wanted = size * DTYPES[dtype].itemsize
    if len(raw) != wanted:
        raise ModelError(f"{what}: {len(raw)} bytes of data, its shape and type take {wanted}")
    return np.frombuffer(raw, _little(dtype)).astype(_little(dtype).newbyteorder("="), copy=False)


def _typed(tensor: TensorProto, what: str, dtype: str, size: int) -> NDArray[Any]:
    values = tensor.typed.get(_TYPED_FIELD[dtype], [])
    if dtype == "f32":
        data = b"".join(value for value in values if not isinstance(value, int))
        return _raw(memoryview(data), what, dtype, size)
    parts = [np.array([signed(v)]) if isinstance(v, int) else packed_varints(v) for v in values]
    flat = np.concatenate(parts) if parts else np.zeros(0, np.int64)
    if flat.size != size:
        raise ModelError(f"{what}: {flat.size} elements of data, its shape takes {size}")
    limits = np.iinfo(_little(dtype))
    if flat.size and not (limits.min <= flat.min() and flat.max() <= limits.max):
        raise ModelError(f"{what}: elements {flat.min()}..{flat.max()} are outside {dtype}")
    return flat.astype(_little(dtype).newbyteorder("="))


def _external(entries: dict[str, str], what: str, dtype: str, size: int, folder: Path | None) -> NDArray[Any]:
    location = entries.get("location", "")
    if folder is None or not location or "\0" in location:
        raise ModelError(f"{what}: external data at {location!r} without a folder to look in")
    try:
        home = folder.resolve()
        path = (home / location).resolve()
        if not path.is_relative_to(home):
            raise ModelError(f"{what}: external data at {location!r} is outside the model's folder")
        if not path.is_file():
            raise ModelError(f"{what}: external data at {location!r} is not a file")
        room = path.stat().st_size
    except (OSError, RuntimeError) as error:
        raise ModelError(f"{what}: external data at {location!r}: {error}") from None
    wanted = size * DTYPES[dtype].itemsize
    offset = _entry(entries, "offset", 0, what)
    length = _entry(entries, "length", wanted, what)
    if length != wanted or offset + length > room:
        raise ModelError(
            f"{what}: bytes {offset}+{length} of {room} in {location!r}, its shape and type take {wanted}"
        )
    with path.open("rb") as file:
        file.seek(offset)
        return _raw(memoryview(file.read(length)), what, dtype, size)


def _entry(entries: dict[str, str], key: str, default: int, what: str) -> int:
    text = entries.get(key, str(default))
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise ModelError(f"{what}: external data {key} is {text!r}, not a number of bytes")
    return int(text)
