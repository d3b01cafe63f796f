"""Small problems with known answers, one for each kernel; the answers come from plain numpy.

They show that an image's machine code runs on this CPU and is right here, not that a kernel is right in every
corner, which the project's tests do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reflexarc.inference import instructions as ops
from reflexarc.inference.graph.fixed import halve, scale
from reflexarc.inference.instructions import Instruction
from reflexarc.inference.isa import Tier
from reflexarc.inference.pack import pack8, pack32, pack_taps
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


def _quantize_away(tier: Tier, kernel: str) -> Case:
    x, y = padded(some_floats(3, 37) * F32(5)), np.zeros((3, 37), np.uint8)
    x[0, :4] = F32(0.0625) * np.array([0.5, 1.5, 2.5, -0.5], F32)
    sizes = {"rows": 3, "count": 37, "x_row": 4 * 37, "y_row": 37}
    steps = x / F32(0.0625)
    away = np.trunc(steps) + np.sign(steps) * (np.abs(steps - np.trunc(steps)) >= 0.5)
    operands: Operands = {"x": x, "y": y, **sizes, "scale": 0.0625, "zero": ZERO}
    return Case(ops.QUANTIZE_AWAY, operands, stored(saturated(away), tier))


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
    sums = np.einsum("ijkn,ckn->ijc", _windows(q + tier.bias, sizes["cols"]), w.astype(np.int64)) + bias
    instruction, factors, steps = _scaled(kernel, sums)
    packed = pack8(w, (bias, *factors), tier, v)
    expected: Array = steps.astype(np.int32)
    if instruction is ops.DENSE8_WIDE:
        sizes |= {"y_row": 4 * sizes["y_row"], "y_col": 4 * sizes["y_col"]}
    else:
        expected = stored(expected, tier)
    words = {"groups": packed.shape[0], "group": packed.shape[1], "words": -(-_KERNEL_COLS * _INPUTS // 4)}
    operands: Operands = {"x": stored(q, tier), "w": padded(packed), "y": np.zeros_like(expected)}
    operands |= {**sizes, **words, **LIMITS}
    return Case(instruction, operands, expected)


_M = 1500000000


def _fixed(total: Array, m: int, n: int) -> Array:
    """Sums scaled in fixed point, in steps of the output."""
    return np.clip(scale(total, m, n), -128 - ZERO, 127 - ZERO) + ZERO


def _scaled(kernel: str, sums: Array) -> tuple[Instruction, tuple[Array, ...], Array]:
    """A kernel's instruction, factors for each channel, and what they make of sums."""
    channels = sums.shape[-1]
    if "fixed" in kernel or "wide" in kernel:
        one = np.ones(channels, np.int32)
        return _INSTRUCTIONS[kernel.rpartition("_")[0]], (_M * one, 0 * one, 10 * one), _fixed(sums, _M, -10)
    multiplier = (0.0005 + some_floats(channels) * F32(0.0001)).astype(F32)
    if "double" in kernel:
        return ops.DENSE8_DOUBLE, (multiplier.astype(np.float64),), saturated(sums * multiplier.astype(float))
    return _INSTRUCTIONS[kernel.rpartition("_")[0]], (multiplier,), saturated(sums.astype(F32) * multiplier)


_INSTRUCTIONS = {
    one.name: one
    for one in (ops.CONV8, ops.CONV8_FIXED, ops.DENSE8_WIDE, ops.DEPTHWISE8, ops.DEPTHWISE8_FIXED)
}


def _depthwise(tier: Tier, kernel: str) -> Case:
    """Windows of 2 x 3, side by side or two apart, of two tiles and a bit each way."""
    tile = kernel.rpartition("_")[2]
    p, stride = int(tile.split("s")[0]), int(tile.partition("s")[2] or 1)
    eight, channels, cols = not kernel.startswith("depthwise32"), 2 * tier.lanes + 3, 2 * p + 1
    size, width = 1 if eight else 4, (cols - 1) * stride + _KERNEL_COLS
    make = some_bytes if eight else some_floats
    q, w = make(_ROWS + 1, width, channels), make(channels, _KERNEL_ROWS * _KERNEL_COLS, seed=7)
    bias = (some_bytes(channels, seed=3) * 100).astype(np.int32) if eight else some_floats(channels, seed=3)
    sums = np.array([
        [
            (q[i : i + 2, j : j + 3] + tier.bias * eight).reshape(-1, channels).T * w
            for j in range(0, cols * stride, stride)
        ]
        for i in range(_ROWS)
    ]).sum(-1) + bias  # fmt: skip
    operands: Operands = {
        "rows": _ROWS, "cols": cols, "tiles": 3, "channels": channels, "groups": 3,
        "x_row": size * width * channels, "x_col": size * stride * channels,
        "kernel_rows": _KERNEL_ROWS, "kernel_row": size * width * channels,
        "kernel_cols": _KERNEL_COLS, "kernel_col": size * channels,
        "y_row": size * cols * channels, "y_col": size * channels,
    }  # fmt: skip
    if not eight:
        packed = pack_taps(w, (bias,), tier)
        operands |= {"x": padded(q), "w": padded(packed), "group": packed.shape[1], "lo": -6.0, "hi": 6.0}
        operands |= {"y": np.zeros(sums.shape, F32)}
        return Case(ops.DEPTHWISE32, operands, np.clip(sums, -6, 6), 1e-4)
    instruction, factors, steps = _scaled(kernel, sums)
    packed = pack_taps(w.astype(np.int32), (bias, *factors), tier)
    operands |= {"x": stored(q, tier), "w": padded(packed), "group": packed.shape[1], **LIMITS}
    return Case(instruction, operands | {"y": np.zeros(steps.shape, np.uint8)}, stored(steps, tier))


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
    channels = tier.lanes + 3
    eight = "pool8" in kernel
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
    if kernel in ("average_pool8_away", "average_pool8_up", "sum_pool8"):
        return _fixed_pool(tier, kernel, operands, windows)
    counts = np.maximum(np.arange(7), 1).astype(F32)
    if not eight:
        mean = np.array([[part.mean(0) for part in row] for row in windows])
        return Case(ops.AVERAGE_POOL32, operands | {"divisors": counts}, mean, 1e-6)
    multipliers = F32(1.5) / counts
    real = [[F32((part - 9).sum(0)) * multipliers[len(part)] for part in row] for row in windows]
    operands |= {"multipliers": multipliers, "x_zero": 9, **LIMITS}
    return Case(ops.AVERAGE_POOL8, operands, stored(saturated(np.array(real)), tier))


def _fixed_pool(tier: Tier, kernel: str, operands: Operands, windows: list[list[Array]]) -> Case:
    """Means rounded as LiteRT does, or scaled sums."""
    total = np.array([[part.sum(0) for part in row] for row in windows])
    n = np.array([[[len(part)] for part in row] for row in windows])
    if kernel == "sum_pool8":
        words = {"x_zero": 0, "multiplier": _M, "shift_left": 0, "shift_right": 2}
        operands |= {**words, **LIMITS}
        return Case(ops.SUM_POOL8, operands, stored(_fixed(total, _M, -2), tier))
    mean = (2 * total + n) // (2 * n)
    if kernel == "average_pool8_away":
        mean = np.sign(total) * ((2 * np.abs(total) + n) // (2 * n))
    operands |= {"lo": -100, "hi": 90}
    return Case(ops.AVERAGE_POOL8_FIXED, operands, stored(np.clip(mean, -100, 90), tier))


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


def _fixed8(tier: Tier, kernel: str) -> Case:
    """Scaled sum, difference or product."""
    a, b = some_bytes(3, 37), some_bytes(3, 37, seed=5)
    operands: Operands = {"x": stored(a, tier), "other": stored(b, tier), "y": np.zeros((3, 37), np.uint8)}
    operands |= {**_rows(1, "x", "other", "y"), "x_zero": 9, "other_zero": -4, **LIMITS}
    operands |= {"multiplier": _M, "shift_left": 0, "shift_right": 6 if kernel == "mul8_fixed" else 18}
    x, other, exact = a - 9, b + 4, (a - 9) * (b + 4)
    if kernel != "mul8_fixed":
        for name, right in (("x", 0), ("other", 1)):
            operands |= {f"{name}_multiplier": _M, f"{name}_shift_left": 0, f"{name}_shift_right": right}
        x, other = scale(x << 20, _M, 0), scale(other << 20, _M, -1)
        exact = x + other if kernel == "add8_fixed" else x - other
    return Case(_FIXED8[kernel], operands, stored(_fixed(exact, _M, -int(operands["shift_right"])), tier))


_FIXED8 = {one.name: one for one in (ops.ADD8_FIXED, ops.SUB8_FIXED, ops.MUL8_FIXED)}


def _softmax8(tier: Tier, kernel: str) -> Case:
    """Rows of equal elements: a 256th of 255, rounded, each of 20."""
    table = np.full(256, (1 << 31) - 1, np.int32)
    operands: Operands = {"x": stored(np.full((3, 20), 5), tier), "y": np.zeros((3, 20), np.uint8)}
    operands |= {"rows": 3, "count": 20, "x_row": 20, "y_row": 20, "table": table}
    return Case(ops.SOFTMAX8, operands, stored(np.full((3, 20), 13 - 128), tier))


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


def _sqrt32(tier: Tier, kernel: str) -> Case:
    x = padded(np.abs(some_floats(3, 37)))
    return Case(ops.SQRT32, {"x": x, "y": np.zeros((3, 37), F32), **_rows(4, "x", "y")}, np.sqrt(x))


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


def _integers(instruction: Instruction, function: Callable[[Array, Array], Array]) -> Callable[..., Case]:
    def case(tier: Tier, kernel: str) -> Case:
        x, other = (
            padded((some_bytes(3, 37) * 77777).astype(np.int32)),
            padded((some_bytes(3, 37, seed=5) | 1).astype(np.int32)),
        )
        operands: Operands = {"x": x, "other": other, "y": np.zeros((3, 37), np.int32)}
        return Case(instruction, operands | _rows(4, "x", "other", "y"), function(x, other).astype(np.int32))

    return case


def _to_f32(tier: Tier, kernel: str) -> Case:
    x = padded((some_bytes(3, 37) * 77777).astype(np.int32))
    operands: Operands = {"x": x, "y": np.zeros((3, 37), F32)}
    return Case(ops.TO_F32, operands | _rows(4, "x", "y"), x.astype(F32))


def _arg_max8(tier: Tier, kernel: str) -> Case:
    q = some_bytes(2, 9, 21)
    operands: Operands = {"x": stored(q, tier), "y": np.zeros((2, 21), np.int32)}
    operands |= {"outer": 2, "count": 9, "inner": 21}
    return Case(ops.ARG_MAX8, operands, q.argmax(axis=1).astype(np.int32))


def _gather_nd(tier: Tier, kernel: str) -> Case:
    x, index = padded(some_bytes(4, 5, 6).astype(np.uint8)), np.array([[0, 4], [3, -1], [9, 2]], np.int32)
    operands: Operands = {"x": x, "other": index, "y": np.zeros((3, 6), np.uint8)}
    operands |= {"rows": 3, "depth": 2, "count": 6, "n0": 4, "n1": 5, "n2": 1, "n3": 1}
    operands |= {"s0": 30, "s1": 6, "s2": 0, "s3": 0}
    return Case(ops.GATHER_ND, operands, x[[0, 3, 3], [4, 0, 2]])


def _resize8(tier: Tier, kernel: str) -> Case:
    """Three rows between two, of one column."""
    q = some_bytes(2, 1, 21)
    rows, cols = np.array([[0, 21, 0], [0, 21, 256], [21, 21, 0]], np.int32), np.zeros((1, 3), np.int32)
    operands: Operands = {"x": stored(q, tier), "y": np.zeros((3, 1, 21), np.uint8)}
    operands |= {"rows": 3, "cols": 1, "channels": 21, "row_places": rows, "col_places": cols}
    operands |= {"y_row": 21, "y_col": 21}
    total = 3 * q[:1] + q[1:]
    mean = np.sign(total) * ((np.abs(total) + 2) >> 2)
    return Case(ops.RESIZE8, operands, stored(np.concatenate([q[:1], mean, q[1:]]), tier))


def _lstm8(tier: Tier, kernel: str) -> Case:
    """One row of 9 units, with straight lines for the functions of the gates."""
    units, line = 9, np.arange(-(1 << 15), 1 << 15, dtype=np.int16)
    x, other = (some_bytes(4 * units, seed=seed).astype(np.int32) * 100 for seed in (1, 5))
    cell = (some_bytes(units, seed=3) * 200).astype(np.int16)
    gates = (x + other).astype(np.int64).reshape(4, units)
    operands: Operands = {"x": x, "other": other, "cell": cell, "rows": 1, "units": units}
    operands |= {"logistic": line, "tanh": line}
    if kernel == "lstm_cell8":
        kept, new = halve(gates[1] * cell, 15), halve(gates[0] * gates[2], 18)
        operands |= {"y": np.zeros(units, np.int16), "shift": 18, "clip": 20000}
        return Case(ops.LSTM_CELL8, operands, np.clip(kept + new, -20000, 20000).astype(np.int16))
    operands |= {
        "y": np.zeros(units, np.uint8),
        "multiplier": _M,
        "shift_left": 0,
        "shift_right": 20,
        **LIMITS,
    }
    return Case(ops.LSTM_HIDDEN8, operands, stored(_fixed(gates[3] * cell, _M, -20), tier))


_CASES: dict[str, Callable[[Tier, str], Case]] = {
    "quantize": _quantize,
    "quantize_away": _quantize_away,
    "quantize_planes": _quantize_planes,
    "dequantize": _dequantize,
    "conv8": _conv8,
    "conv8_fixed": _conv8,
    "dense8_double": _conv8,
    "dense8_wide": _conv8,
    "depthwise8": _depthwise,
    "depthwise8_fixed": _depthwise,
    "depthwise32": _depthwise,
    "conv32": _conv32,
    "max_pool8": _pool,
    "average_pool8": _pool,
    "average_pool8_away": _pool,
    "average_pool8_up": _pool,
    "sum_pool8": _pool,
    "max_pool32": _pool,
    "average_pool32": _pool,
    "add8": _binary8,
    "mul8": _binary8,
    "add8_fixed": _fixed8,
    "sub8_fixed": _fixed8,
    "mul8_fixed": _fixed8,
    "softmax8": _softmax8,
    "table8": _table8,
    "add_i32": _integers(ops.ADD_I32, lambda x, y: x + y),
    "sub_i32": _integers(ops.SUB_I32, lambda x, y: x - y),
    "mul_i32": _integers(ops.MUL_I32, lambda x, y: x * y),
    "floor_div_i32": _integers(ops.FLOOR_DIV_I32, lambda x, y: x // y),
    "to_f32": _to_f32,
    "arg_max8": _arg_max8,
    "gather_nd": _gather_nd,
    "resize8": _resize8,
    "lstm_cell8": _lstm8,
    "lstm_hidden8": _lstm8,
    "fill": _fill,
    "copy": _copy,
    "transpose8": _transpose,
    "transpose32": _transpose,
    "sqrt32": _sqrt32,
    "sigmoid32": _unary(ops.SIGMOID32, _logistic),
    "tanh32": _unary(ops.TANH32, np.tanh),
    "silu32": _unary(ops.SILU32, lambda x: x * _logistic(x)),
    "elu32": _unary(ops.ELU32, lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), alpha=0.5),
    "clamp32": _unary(ops.CLAMP32, lambda x: np.clip(x, -1.5, 2.5), lo=-1.5, hi=2.5),
    "add32": _binary32(ops.ADD32, lambda x, y: x + y),
    "sub32": _binary32(ops.SUB32, lambda x, y: x - y),
    "div32": _binary32(ops.DIV32, lambda x, y: x / y),
    "mul32": _binary32(ops.MUL32, lambda x, y: x * y),
    "softmax32": _unary(ops.SOFTMAX32, _softmax),
}


def case(tier: Tier, kernel: str) -> Case | None:
    """The problem for a kernel, by its name or the part of it before a tile; None where there is none."""
    make = _CASES.get(kernel) or _CASES.get(kernel.rpartition("_")[0])
    return make(tier, kernel) if make else None
