"""A small problem with a known answer for one kernel, and what such problems are made of.

Numbers look random and are the same every time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.instructions import SLACK, Instruction
from reflexarc.inference.isa import Tier

F32 = np.float32
Array = NDArray[Any]
Operands = dict[str, int | float | Array]
ZERO = 3  # value that stands for 0 in 8-bit outputs
LIMITS = {"lo": -128.0 - ZERO, "hi": 127.0 - ZERO, "zero": ZERO}


@dataclass(frozen=True)
class Case:
    """An instruction, its operands (an array stands for its address), and what its operand `y` must become.

    Floats may differ from the answer by `tolerance`, relative to the larger of it and 1.
    """

    instruction: Instruction
    operands: Operands
    expected: Array
    tolerance: float = 0.0

    @property
    def output(self) -> Array:
        """The array that the kernel writes."""
        y = self.operands["y"]
        assert isinstance(y, np.ndarray)
        return y

    def passes(self, kernel: Callable[[int, int, int], None]) -> bool:
        """Run the instruction by a kernel (instruction, thread, threads): whether its output is right."""
        words = np.array([self._word(name) for name in self.instruction.operands], np.int64)
        operands = words if self.instruction.inline else np.array([words.ctypes.data], np.int64)
        instruction = np.concatenate([np.zeros(1, np.int64), operands])
        kernel(instruction.ctypes.data, 0, 1)
        return self.right(self.output)

    def right(self, output: Array) -> bool:
        """Whether this is what the kernel must write."""
        if not self.tolerance:
            return np.array_equal(output, self.expected)
        error = np.abs(output - self.expected)
        return bool((error <= self.tolerance * np.maximum(1, np.abs(self.expected))).all())

    def _word(self, name: str) -> int:
        value = self.operands[name]
        if isinstance(value, np.ndarray):
            return int(value.ctypes.data)
        return int(F32(value).view(np.uint32)) if name in self.instruction.floats else int(value)


def padded(array: Array) -> Array:
    """A copy with the slack that kernels may read past its end."""
    room = np.zeros(array.nbytes + SLACK, np.uint8)
    copy = room[: array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def some_bytes(*shape: int, seed: int = 1) -> Array:
    """Values -128..127 with both ends among them."""
    n = int(np.prod(shape))
    values = ((np.arange(n, dtype=np.uint32) + seed) * 2654435761 >> 13 & 255).astype(np.int64) - 128
    values[seed % n], values[-1] = -128, 127
    return values.reshape(shape)


def some_floats(*shape: int, seed: int = 1) -> Array:
    """Values -2..2."""
    n = int(np.prod(shape))
    values = ((np.arange(n, dtype=np.uint32) + seed) * 2654435761 >> 8 & 0xFFFF).astype(F32) / 16384 - 2
    return values.astype(F32).reshape(shape)


def stored(q: Array, tier: Tier) -> Array:
    """8-bit values as the tier's kernels hold them."""
    return padded((q + tier.bias).astype(np.uint8))


def saturated(real: Array) -> Array:
    """Real values in steps of the output, rounded and cut to what 8 bits hold."""
    return np.clip(np.rint(real), -128 - ZERO, 127 - ZERO).astype(np.int64) + ZERO
