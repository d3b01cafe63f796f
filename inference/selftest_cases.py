"""Small problems with known answers, one for each kernel; the answers come from plain numpy.

They show that an image's machine code runs on this CPU and is right here, not that a kernel is right in every
corner, which the project's tests do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reflexarc.inference import instructions as ops
from reflexarc.inference.instructions import Instruction
from reflexarc.inference.isa import Tier
from reflexarc.inference.pack import pack8, pack32
from reflexarc.inference.selftest_case import (
    F32,
    LIMITS,
    ZERO,
    Array,
    Case,
    Operands,
    padded,
    saturated,
    some_bytes,
    some_floats,
    stored,
)


def _quantize(tier: Tier, kernel: str) -> Case:
    x, y = padded(some_floats(3, 37) * F32(5)), np.zeros((3, 37), np.uint8)
    sizes = {"rows": 3, "count": 37, "x_row": 4 * 37, "y_row": 37}
    expected = stored(saturated(x / F32(0.0625)), tier)
    return Case(ops.QUANTIZE, {"x": x, "y": y, **sizes, "scale": 0.0625, "zero": ZERO}, expected)


def _quantize_planes(tier: Tier, kernel: str) -> Case:
    x, y = padded(some_floats(6, 2, 37) * F32(5)), np.zeros((2, 37, 6), np.uint8)
    sizes = {"rows": 2, "channels": 6, "length": 37, "x_row": x.strides[1], "plane": x.strides[0]}
    sizes |= {"y_row": y.strides[0], "y_step": 6}
    expected = stored(saturated(x / F32(0.0625)).transpose(1, 2, 0), tier)
    return Case(ops.QUANTIZE_PLANES, {"x": x, "y": y, **sizes, "scale": 0.0625, "zero": ZERO}, expected)


def _dequantize(tier: Tier, kernel: str) -> Case:
    q, y = some_bytes(3, 37), np.zeros((3, 37), F32)
    sizes = {"rows": 3, "count": 37, "x_row": 37, "y_row": 4 * 37}
    operands: Operands = {"x": stored(q, tier), "y": y, **sizes, "scale": 0.1, "zero": ZERO}
    return Case(ops.DEQUANTIZE, operands, (q - ZERO).astype(F32) * F32(0.1))


_KERNEL_ROWS, _KERNEL_COLS, _INPUTS, _ROWS = 2, 3, 5, 2


def _conv(size: int, tier: Tier, kernel: str) -> tuple[dict[str, int], int, tuple[int, int], int]:
    """Operands of a convolution of two tiles and a bit each way, its channels, x's rows and columns, V."""
    p, v = (int(n) for n in kernel.rpartition("_")[2].split("x"))
    cols, channels = 2 * p + 1, v * tier.lanes + 3
    width = cols + _KERNEL_COLS - 1
    operands = {
        "rows": _ROWS,
        "cols": cols,
        "tiles": 3,
        "channels": channels,
        "x_row": size * width * _INPUTS,
        "x_col": size * _INPUTS,
        "kernel_rows": _KERNEL_ROWS,
        "kernel_row": size * width * _INPUTS,
        "segments": 1,
        "segment": 0,
        "y_row": size * cols * channels,
        "y_col": size * channels,
    }
    return operands, channels, (_ROWS + _KERNEL_ROWS - 1, width), v


def _windows(x: Array, cols: int) -> Array:
    """[rows, cols, kernel rows, kernel cols * inputs] of x [height, width, inputs]."""
    rows = [
        [x[i : i + _KERNEL_ROWS, j : j + _KERNEL_COLS].reshape(_KERNEL_ROWS, -1) for j in range(cols)]
        for i in range(_ROWS)
    ]
    return np.array(rows)


def _conv8(tier: Tier, kernel: str) -> Case:
    sizes, channels, shape, v = _conv(1, tier, kernel)
    q = some_bytes(*shape, _INPUTS)
    w = some_bytes(channels, _KERNEL_ROWS, _KERNEL_COLS * _INPUTS, seed=7).astype(np.int8)
    bias = (some_bytes(channels, seed=3) * 100).astype(np.int32)
    multiplier = (0.0005 + some_floats(channels) * F32(0.0001)).astype(F32)
    packed = pack8(w, bias, multiplier, tier, v)
    sums = np.einsum("ijkn,ckn->ijc", _windows(q + tier.bias, sizes["cols"]), w.astype(np.int64)) + bias
    y = np.zeros(sums.shape, np.uint8)
    words = {"groups": packed.shape[0], "group": packed.shape[1], "words": -(-_KERNEL_COLS * _INPUTS // 4)}
    operands: Operands = {"x": stored(q, tier), "w": padded(packed), "y": y, **sizes, **words, **LIMITS}
    return Case(ops.CONV8, operands, stored(saturated(sums.astype(F32) * multiplier), tier))


def _conv32(tier: Tier, kernel: str) -> Case:
    sizes, channels, shape, v = _conv(4, tier, kernel)
    x, inputs = padded(some_floats(*shape, _INPUTS)), _KERNEL_COLS * _INPUTS
    w, bias = some_floats(channels, _KERNEL_ROWS * inputs, seed=7), some_floats(channels, seed=3)
    packed = pack32(w, bias, tier, v)
    windows = _windows(x, sizes["cols"]).reshape(_ROWS, sizes["cols"], -1)
    y = np.zeros((_ROWS, sizes["cols"], channels), F32)
    words = {"groups": packed.shape[0], "group": packed.shape[1], "words": inputs}
    operands: Operands = {"x": x, "w": padded(packed), "y": y, **sizes, **words, "lo": -6.0, "hi": 6.0}
    return Case(ops.CONV32, operands, np.clip(np.einsum("ijn,cn->ijc", windows, w) + bias, -6, 6), 1e-4)


def _pool(tier: Tier, kernel: str) -> Case:
    """Windows of 2 x 3 with steps of 2 and 1, over 5 x 6 with one row and one column of padding before it."""
    eight, channels = kernel.endswith("8"), tier.lanes + 3
    q = some_bytes(5, 6, channels) if eight else some_floats(5, 6, channels)
    size = 1 if eight else 4
    sizes = {
        "rows": 3,
        "cols": 6,
        "channels": channels,
        "height": 5,
        "width": 6,
        "kernel_rows": 2,
        "kernel_cols": 3,
    }
    sizes |= {"stride_rows": 2, "stride_cols": 1, "step_rows": 1, "step_cols": 1, "top": 1, "left": 1}
    steps = {f"{name}_row": size * 6 * channels for name in "xy"} | {
        f"{name}_col": size * channels for name in "xy"
    }
    windows = [
        [q[max(2 * i - 1, 0) : 2 * i + 1, max(j - 1, 0) : j + 2].reshape(-1, channels) for j in range(6)]
        for i in range(3)
    ]
    x = stored(q, tier) if eight else padded(q)
    operands: Operands = {
        "x": x,
        "y": np.zeros((3, 6, channels), np.uint8 if eight else F32),
        **sizes,
        **steps,
    }
    if kernel.startswith("max"):
        most = np.array([[part.max(0) for part in row] for row in windows])
        instruction = ops.MAX_POOL8 if eight else ops.MAX_POOL32
        return Case(instruction, operands, stored(most, tier) if eight else most)
    counts = np.maximum(np.arange(7), 1).astype(F32)
    if not eight:
        mean = np.array([[part.mean(0) for part in row] for row in windows])
        return Case(ops.AVERAGE_POOL32, operands | {"divisors": counts}, mean, 1e-6)
    multipliers = F32(1.5) / counts
    real = [[F32((part - 9).sum(0)) * multipliers[len(part)] for part in row] for row in windows]
    operands |= {"multipliers": multipliers, "x_zero": 9, **LIMITS}
    return Case(ops.AVERAGE_POOL8, operands, stored(saturated(np.array(real)), tier))


def _rows(size: int, *names: str) -> dict[str, int]:
    """Sizes of three rows of 37 elements."""
    return {"rows": 3, "count": 37} | {f"{name}_row": size * 37 for name in names}


def _binary8(tier: Tier, kernel: str) -> Case:
    a, b = some_bytes(3, 37), some_bytes(3, 37, seed=5)
    x, other = (a - 9).astype(F32), (b + 4).astype(F32)
    operands: Operands = {"x": stored(a, tier), "other": stored(b, tier), "y": np.zeros((3, 37), np.uint8)}
    operands |= {**_rows(1, "x", "other", "y"), "x_zero": 9, "other_zero": -4, **LIMITS}
    if kernel == "add8":
        real = x * F32(0.75) + other * F32(0.6)
        return Case(ops.ADD8, operands | {"x_scale": 0.75, "other_scale": 0.6}, stored(saturated(real), tier))
    return Case(ops.MUL8, operands | {"scale": 0.01}, stored(saturated(x * other * F32(0.01)), tier))


def _table8(tier: Tier, kernel: str) -> Case:
    q, table = some_bytes(3, 37), some_bytes(256, seed=11).astype(np.uint8)
    operands: Operands = {
        "x": stored(q, tier),
        "y": np.zeros((3, 37), np.uint8),
        "table": table,
        **_rows(1, "x", "y"),
    }
    return Case(ops.TABLE8, operands, table[q + 128])


def _fill(tier: Tier, kernel: str) -> Case:
    head, rows, row, gap, tail = 70, 3, 5, 90, 11
    y = np.full(head + rows * row + (rows - 1) * gap + tail, 0x55, np.uint8)
    expected = np.full_like(y, 0xF7)
    for i in range(rows):
        expected[head + i * (row + gap) :][:row] = 0x55
    sizes = {"head": head, "rows": rows, "row": row, "gap": gap, "tail": tail, "value": 0xF7}
    return Case(ops.FILL, {"y": y, **sizes}, expected)


def _copy(tier: Tier, kernel: str) -> Case:
    x, y = padded(some_bytes(3, 80).astype(np.uint8)), np.zeros((3, 90), np.uint8)
    expected = np.pad(x[:, :77], ((0, 0), (0, 13)))
    return Case(ops.COPY, {"x": x, "y": y, "rows": 3, "count": 77, "x_row": 80, "y_row": 90}, expected)


def _transpose(tier: Tier, kernel: str) -> Case:
    x = padded(some_bytes(2, 3, 4, 5).astype(np.uint8 if kernel.endswith("8") else np.int32))
    expected = np.ascontiguousarray(x.transpose(3, 1, 0, 2))
    y = np.zeros_like(expected)
    targets = (y.strides[2], y.strides[1], y.strides[3], y.strides[0])
    operands: Operands = {"x": x, "y": y}
    for i in range(4):
        operands |= {f"n{i}": x.shape[i], f"s{i}": x.strides[i], f"t{i}": targets[i]}
    return Case(ops.TRANSPOSE, operands, expected)


def _unary(
    instruction: Instruction, function: Callable[[Array], Array], **more: float
) -> Callable[..., Case]:
    def case(tier: Tier, kernel: str) -> Case:
        x = padded(some_floats(3, 37) * F32(4))
        operands: Operands = {"x": x, "y": np.zeros((3, 37), F32), **_rows(4, "x", "y"), **more}
        return Case(instruction, operands, function(x.astype(np.float64)), 2e-6)

    return case


def _binary32(instruction: Instruction, function: Callable[[Array, Array], Array]) -> Callable[..., Case]:
    def case(tier: Tier, kernel: str) -> Case:
        x, other = padded(some_floats(3, 37)), padded(some_floats(3, 37, seed=5))
        operands: Operands = {
            "x": x,
            "other": other,
            "y": np.zeros((3, 37), F32),
            **_rows(4, "x", "other", "y"),
        }
        return Case(instruction, operands, function(x, other))

    return case


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Array) -> Array:
    powers: Array = np.exp(x - x.max(1, keepdims=True))
    powers /= powers.sum(1, keepdims=True)
    return powers


_CASES: dict[str, Callable[[Tier, str], Case]] = {
    "quantize": _quantize,
    "quantize_planes": _quantize_planes,
    "dequantize": _dequantize,
    "conv8": _conv8,
    "conv32": _conv32,
    "max_pool8": _pool,
    "average_pool8": _pool,
    "max_pool32": _pool,
    "average_pool32": _pool,
    "add8": _binary8,
    "mul8": _binary8,
    "table8": _table8,
    "fill": _fill,
    "copy": _copy,
    "transpose8": _transpose,
    "transpose32": _transpose,
    "sigmoid32": _unary(ops.SIGMOID32, _logistic),
    "tanh32": _unary(ops.TANH32, np.tanh),
    "silu32": _unary(ops.SILU32, lambda x: x * _logistic(x)),
    "elu32": _unary(ops.ELU32, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), alpha=0.5),
    "clamp32": _unary(ops.CLAMP32, lambda x: np.clip(x, -1.5, 2.5), lo=-1.5, hi=2.5),
    "add32": _binary32(ops.ADD32, lambda x, y: x + y),
    "mul32": _binary32(ops.MUL32, lambda x, y: x * y),
    "softmax32": _unary(ops.SOFTMAX32, _softmax),
}


def case(tier: Tier, kernel: str) -> Case | None:
    """The problem for a kernel, by its name or the part of it before a tile; None where there is none."""
    make = _CASES.get(kernel) or _CASES.get(kernel.rpartition("_")[0])
    return make(tier, kernel) if make else None
