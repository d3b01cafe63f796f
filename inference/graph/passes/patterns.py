"""What passes look for around a node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.arithmetic import dequantize
from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Tensor


def fixed_value(editor: Editor, name: str) -> NDArray[np.float32] | None:
    """The floats of a constant, or of a constant dequantized; None for any other tensor."""
    data: NDArray[Any] | None = editor.value(name)
    if data is not None:
        return data if data.dtype == np.float32 else None
    tensor = dequantized(editor, name)
    if tensor is None or tensor.data is None or tensor.quant is None:
        return None
    return dequantize(tensor.data, tensor.quant)


def dequantized(editor: Editor, name: str) -> Tensor | None:
    """The integer tensor that a tensor is the dequantization of."""
    maker = editor.producer(name)
    return editor.tensors[maker.inputs[0]] if maker is not None and maker.op == "dequantize" else None


def channel_values(value: NDArray[np.float32] | None, count: int) -> NDArray[np.float32] | None:
    """A value of one element, or one for each of `count` channels on the last axis, as [count]; else None."""
    if value is None or value.size not in (1, count):
        return None
    if value.size > 1 and value.shape[-1] != count:
        return None
    return np.broadcast_to(value.reshape(-1), (count,))
