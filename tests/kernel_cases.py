"""Calls of every kernel with random and extreme operands, and what each must write.

A case's operands are numbers, `In` bytes and `Out` buffers. What a buffer must hold afterwards is known to
the last byte: gaps and what lies around elements stay as they were (0xAA).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import naive
import numpy as np
from numpy.typing import NDArray

from reflexarc.inference import instructions as ins
from reflexarc.inference.graph.fixed import exp_table, logistic, tanh
from reflexarc.inference.instructions import Instruction
from reflexarc.inference.isa import Tier
from reflexarc.inference.pack import Heads, pack8, pack32, pack_taps
from reflexarc.inference.tiles import DENSE_TILES, conv8_tiles, conv32_tiles, depthwise_outputs

Array = NDArray[Any]
F = np.float32
UNTOUCHED = 0xAA


@dataclass(frozen=True)
class In:
    """Bytes that a kernel reads; the operand is the address of byte `offset`."""

    data: Array
    offset: int = 0


@dataclass(frozen=True)
class Out:
    """A buffer a kernel writes and what it must hold then; floats within `tolerance` (0: the same bits)."""

    expected: Array
    dtype: type = np.uint8
    tolerance: float = 0.0


@dataclass(frozen=True)
class Case:
    """One call of a kernel."""

    name: str
    instruction: Instruction
    kernel: str
    operands: dict[str, Any]


def cases(tier: Tier) -> Iterator[Case]:
    """All cases for a tier, the same random numbers on each."""
    makers = (
        _quantize,
        _dequantize,
        _conv8,
        _conv8_scaled,
        _conv32,
        _depthwise,
        _pool,
        _binary8,
        _fixed8,
        _softmax8,
        _table,
        _unary,
        _binary32,
        _softmax,
        _integers,
        _find,
        _resize,
        _lstm,
        _move,
    )
    for make in makers:
        yield from make(tier, np.random.default_rng(7))


def _stored(tier: Tier, values: Array) -> Array:
    """int8 values as the bytes this tier stores."""
    return (values.astype(np.int16) + tier.bias).astype(np.uint8)


def _rows(y: Array, row: int) -> Array:
    """Elements [rows, count] at steps of `row` bytes, the last row without its gap."""
    raw = np.ascontiguousarray(y).view(np.uint8).reshape(len(y), -1)
    out = np.full((len(y) - 1) * row + raw.shape[1], UNTOUCHED, np.uint8)
    for i, each in enumerate(raw):
        out[i * row : i * row + len(each)] = each
    return out


def _spread(x: Array, row: int) -> In:
    """Rows to read, at steps of `row` bytes."""
    return In(_rows(x, row))


def _values(rng: np.random.Generator, *shape: int) -> Array:
    return rng.integers(-128, 128, shape).astype(np.int8)


def _quantize(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    special = np.array([0, -0.0, inf, -inf, np.nan, 1e-40, 3e38, -3e38, 0.5, 1.5, 2.5, -0.5], F)
    for zero, scale in ((0, F(0.03125)), (-128, F(0.0371)), (127, F(1.7e-3)), (5, F(1e30))):
        x = (rng.normal(0, 40, (3, 37)) * scale).astype(F)
        with np.errstate(over="ignore"):
            x.flat[: len(special)] = special * scale
        with np.errstate(over="ignore"):
            y = _stored(tier, naive.quantize(x, scale, zero))
        common = {"scale": scale, "zero": zero}
        rows = {"rows": 3, "count": 37, "x_row": 160, "y_row": 41}
        yield Case(
            f"quantize zero={zero}", ins.QUANTIZE, "quantize",
            {"x": _spread(x, 160), "y": Out(_rows(y, 41)), **rows, **common},
        )  # fmt: skip
        with np.errstate(over="ignore"):
            y = _stored(tier, naive.quantize_away(x, scale, zero))
        yield Case(
            f"quantize_away zero={zero}", ins.QUANTIZE_AWAY, "quantize_away",
            {"x": _spread(x, 160), "y": Out(_rows(y, 41)), **rows, **common},
        )  # fmt: skip
        for channels, length in (
            (1, 40),
            (2, 17),
            (3, 33),
            (4, 16),
            (5, 50),
            (6, 200),
            (8, 19),
            (11, 35),
            (6, 3),
            (2, 1),
        ):
            x = (rng.normal(0, 60, (channels, 2, length)) * scale).astype(F)
            y = _stored(tier, naive.quantize_planes(x, scale, zero))
            step = channels + length % 3
            y_row = length * step + 3
            yield Case(
                f"planes {channels}x{length} zero={zero}", ins.QUANTIZE_PLANES, "quantize_planes",
                {
                    "x": In(x), "y": Out(_rows(np.stack([_rows(row, step) for row in y]), y_row)),
                    "rows": 2, "channels": channels, "length": length,
                    "x_row": 4 * length, "plane": 8 * length, "y_row": y_row, "y_step": step, **common,
                },
            )  # fmt: skip


def _dequantize(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for count, zero in ((1, 0), (7, -128), (16, 127), (37, 3)):
        x = _values(rng, 2, count)
        y = naive.dequantize(x, F(0.0123), zero)
        yield Case(
            f"dequantize {count}", ins.DEQUANTIZE, "dequantize",
            {
                "x": _spread(_stored(tier, x), count + 3), "y": Out(_rows(y, 4 * count + 4), F),
                "rows": 2, "count": count, "x_row": count + 3, "y_row": 4 * count + 4,
                "scale": F(0.0123), "zero": zero,
            },
        )  # fmt: skip


@dataclass(frozen=True)
class _Shape:
    """A convolution of an image that has its padding already."""

    height: int
    width: int
    inputs: int
    outputs: int
    kernel: tuple[int, int] = (1, 1)
    strides: tuple[int, int] = (1, 1)
    dilations: tuple[int, int] = (1, 1)

    @property
    def rows(self) -> int:
        return (self.height - (self.kernel[0] - 1) * self.dilations[0] - 1) // self.strides[0] + 1

    @property
    def cols(self) -> int:
        return (self.width - (self.kernel[1] - 1) * self.dilations[1] - 1) // self.strides[1] + 1

    @property
    def joined(self) -> bool:
        return self.dilations[1] == 1

    def operands(self, size: int) -> dict[str, int]:
        x_row, x_col = self.width * self.inputs * size, self.inputs * size
        length = self.inputs * (self.kernel[1] if self.joined else 1)
        y_col = self.outputs * size + 4
        return {
            "rows": self.rows, "cols": self.cols, "channels": self.outputs,
            "x_row": self.strides[0] * x_row, "x_col": self.strides[1] * x_col,
            "kernel_rows": self.kernel[0], "kernel_row": self.dilations[0] * x_row,
            "segments": 1 if self.joined else self.kernel[1], "segment": self.dilations[1] * x_col,
            "words": -(-length // 4) if size == 1 else length,
            "y_row": self.cols * y_col + 12, "y_col": y_col,
        }  # fmt: skip

    def out(self, y: Array) -> Array:
        """Bytes of outputs [rows, cols, channels] where these operands put them."""
        o = self.operands(y.itemsize)
        rows = np.stack([_rows(row, o["y_col"]) for row in y])
        return _rows(rows, o["y_row"])


def _shapes(tile: tuple[int, int], lanes: int) -> Iterator[_Shape]:
    p, v = tile
    full = v * lanes
    yield _Shape(1, p, 4, full)
    yield _Shape(1, 2 * p + 1, 6, full + 3, (1, 3), (1, 2) if p == 1 else (1, 1))
    yield _Shape(4, p + 4, 5, max(1, full - 1), (3, 2))
    yield _Shape(5, p + 6, 7, 2 * full + 1, (2, 3), (2, 1), (2, 3))


def _conv8(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    ends, weight_ends = np.array([-128, 127], np.int8), np.array([-128, -127, 127], np.int8)
    choices: dict[str, tuple[Array, Array]] = {
        "random": (np.arange(-128, 128).astype(np.int8),) * 2,
        "low": (ends[:1], ends[:1]),
        "high": (ends[1:], ends[1:]),
        "opposite": (ends[1:], ends[:1]),
        "mixed": (ends, weight_ends),
    }
    for tile in conv8_tiles(tier):
        for i, shape in enumerate(_shapes(tile, tier.lanes)):
            for kind in choices if i == 1 else ("random",):
                x = rng.choice(choices[kind][0], (shape.height, shape.width, shape.inputs))
                w = rng.choice(choices[kind][1], (shape.outputs, *shape.kernel, shape.inputs))
                limits = _LIMITS if kind == "random" else {"lo": -128, "hi": 127, "zero": 0}
                multiplier = (rng.uniform(0.5, 2, len(w)) * 60 / (128 * 128 * w[0].size ** 0.5)).astype(F)
                yield _conv8_case(tier, rng, ins.CONV8, tile, shape, x, w, multiplier, (multiplier,), limits)


_LIMITS = {"lo": -100, "hi": 131, "zero": -28}


def _shifts(rng: np.random.Generator, channels: int, size: float) -> Array:
    """Multipliers and exponents [2, channels] for sums of about that size, some of them extreme."""
    m = rng.integers(1 << 30, 1 << 31, channels)
    n = np.round(np.log2(60 / size) + rng.uniform(-2, 2, channels))
    extremes = [(0, 0), (1 << 30, -31), ((1 << 31) - 1, 3), (1 << 30, 0), ((1 << 31) - 1, -1)]
    for i, (a, b) in enumerate(extremes[: channels // 2]):
        m[i], n[i] = a, b
    return np.stack([m, n]).astype(np.int32)


def _parts(shifts: Array) -> Heads:
    """Multipliers, left and right shifts."""
    m, n = shifts
    return m, np.maximum(n, 0).astype(np.int32), np.maximum(-n, 0).astype(np.int32)


def _conv8_scaled(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    """The ways LiteRT scales sums."""
    for instruction, tiles in (
        (ins.CONV8_FIXED, conv8_tiles(tier)),
        (ins.DENSE8_DOUBLE, DENSE_TILES),
        (ins.DENSE8_WIDE, DENSE_TILES),
    ):
        for tile in tiles:
            for shape in _shapes(tile, tier.lanes):
                x = _values(rng, shape.height, shape.width, shape.inputs)
                w = _values(rng, shape.outputs, *shape.kernel, shape.inputs)
                size, limits = 128 * 74 * w[0].size ** 0.5, _LIMITS
                if instruction is ins.DENSE8_DOUBLE:
                    multiplier = rng.uniform(0.5, 2, len(w)) * 60 / size
                    multiplier[::3] = 2.0 ** np.round(np.log2(multiplier[::3]))  # so that there are halves
                    yield _conv8_case(
                        tier, rng, instruction, tile, shape, x, w, multiplier, (multiplier,), limits
                    )
                    continue
                if instruction is ins.DENSE8_WIDE:
                    limits = {"lo": -32768, "hi": 32767, "zero": 0}
                shifts = _shifts(rng, len(w), size)
                yield _conv8_case(tier, rng, instruction, tile, shape, x, w, shifts, _parts(shifts), limits)


def _conv8_case(
    tier: Tier,
    rng: np.random.Generator,
    instruction: Instruction,
    tile: tuple[int, int],
    shape: _Shape,
    x: Array,
    w: Array,
    scaling: Array,
    factors: Heads,
    limits: dict[str, int],
) -> Case:
    bias, x_zero = rng.integers(-5000, 5000, len(w)).astype(np.int32), int(rng.integers(-128, 128))
    twin = getattr(naive, instruction.name)
    y = twin(x.astype(np.int64) - x_zero, w, bias, scaling, shape.strides, shape.dilations, **limits)
    length = shape.inputs * (shape.kernel[1] if shape.joined else 1)
    folded = bias - (x_zero + tier.bias) * w.sum(axis=(1, 2, 3), dtype=np.int64)
    packed = pack8(w.reshape(len(w), -1, length), (folded.astype(np.int32), *factors), tier, tile[1])
    kernel = f"{instruction.name}_{tile[0]}x{tile[1]}"
    operands = shape.operands(1)
    if y.itemsize == 4:
        operands |= {key: shape.operands(4)[key] for key in ("y_row", "y_col")}
    return Case(
        f"{kernel} {shape.inputs}->{shape.outputs}", instruction, kernel,
        {
            "x": In(_stored(tier, x)), "w": In(packed),
            "y": Out(shape.out(y if y.itemsize == 4 else _stored(tier, y))),
            "tiles": -(-shape.cols // tile[0]), "groups": len(packed), "group": packed.shape[1],
            **operands, **limits,
        },
    )  # fmt: skip


def _depthwise(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for p in depthwise_outputs(tier):
        for stride in (0, 1, 2) if p > 1 else (0,):
            kernel, strides = ((3, 3), (1, stride)) if stride else ((2, 2), (2, 1))
            for channels in (1, tier.lanes, 2 * tier.lanes + 5):
                width = (2 * p + 1) * strides[1] + kernel[1]
                shape = _Shape(5, width, channels, channels, kernel, strides, (1, 1 if stride else 2))
                for instruction in (ins.DEPTHWISE8, ins.DEPTHWISE8_FIXED, ins.DEPTHWISE32):
                    name = f"{instruction.name}_{p}" + (f"s{stride}" if stride else "")
                    yield _depthwise_case(tier, rng, instruction, name, shape, p)


def _depthwise_case(
    tier: Tier, rng: np.random.Generator, instruction: Instruction, kernel: str, shape: _Shape, p: int
) -> Case:
    c, size = shape.inputs, 128 * 74 * 3.0
    geometry, taps = (shape.strides, shape.dilations), (*shape.kernel, c)
    twin = getattr(naive, instruction.name)
    if instruction is ins.DEPTHWISE32:
        x, w, bias = (rng.normal(0, 1, n).astype(F) for n in ((shape.height, shape.width, c), taps, (c,)))
        limits: dict[str, Any] = {"lo": -2.0, "hi": 3.0}
        y, heads, stored = twin(x, w, bias, *geometry, **limits), (bias,), x
    else:
        x, w = _values(rng, shape.height, shape.width, c), rng.integers(-255, 256, taps).astype(np.int32)
        bias, x_zero, limits = rng.integers(-5000, 5000, c), int(rng.integers(-128, 128)), _LIMITS
        scaling = (rng.uniform(0.5, 2, c) * 60 / size).astype(F)
        factors: Heads = (scaling,)
        if instruction is ins.DEPTHWISE8_FIXED:
            scaling = _shifts(rng, c, size)
            factors = _parts(scaling)
        y = _stored(tier, twin(x.astype(np.int64) - x_zero, w, bias, scaling, *geometry, **limits))
        folded = bias - (x_zero + tier.bias) * w.sum(axis=(0, 1), dtype=np.int64)
        heads, stored = (folded.astype(np.int32), *factors), _stored(tier, x)
    packed = pack_taps(w.reshape(-1, c).T, heads, tier)
    operands = shape.operands(y.itemsize)
    for key in ("segments", "segment", "words"):
        del operands[key]
    return Case(
        f"{kernel} {c}", instruction, kernel,
        {
            "x": In(stored), "w": In(packed),
            "y": Out(shape.out(y), F, 2e-5) if y.itemsize == 4 else Out(shape.out(y)),
            "tiles": -(-shape.cols // p), "groups": len(packed), "group": packed.shape[1],
            "kernel_cols": shape.kernel[1], "kernel_col": shape.dilations[1] * c * y.itemsize,
            **operands, **limits,
        },
    )  # fmt: skip


def _conv32(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for tile in conv32_tiles(tier):
        for shape in _shapes(tile, tier.lanes):
            x = rng.normal(0, 1, (shape.height, shape.width, shape.inputs)).astype(F)
            w = rng.normal(0, 0.3, (shape.outputs, *shape.kernel, shape.inputs)).astype(F)
            bias = rng.normal(0, 1, shape.outputs).astype(F)
            lo, hi = (0.0, inf) if shape.inputs == 6 else (-inf, inf)
            y = naive.conv32(x, w, bias, shape.strides, shape.dilations, lo, hi)
            packed = pack32(w.reshape(len(w), -1), bias, tier, tile[1])
            yield Case(
                f"conv32 {tile} {shape.inputs}->{shape.outputs}", ins.CONV32, f"conv32_{tile[0]}x{tile[1]}",
                {
                    "x": In(x), "w": In(packed), "y": Out(shape.out(y), F, 2e-5),
                    "tiles": -(-shape.cols // tile[0]), "groups": len(packed), "group": packed.shape[1],
                    **shape.operands(4), "lo": lo, "hi": hi,
                },
            )  # fmt: skip


def _pool(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for c, h, w, kernel, strides, dilations, pads in (
        (3, 1, 9, (1, 3), (1, 2), (1, 1), (0, 1, 0, 1)),
        (16, 1, 25, (1, 25), (1, 1), (1, 1), (0, 0, 0, 0)),
        (35, 6, 7, (3, 2), (2, 1), (1, 2), (1, 1, 1, 0)),
    ):
        geometry = {"kernel": kernel, "strides": strides, "dilations": dilations, "pads": pads}
        area = kernel[0] * kernel[1]
        q, f = _values(rng, h, w, c), rng.normal(0, 3, (h, w, c)).astype(F)
        counts = np.maximum(np.arange(area + 1), 1).astype(F)
        limits = {"lo": -128 - 9, "hi": 127 - 9, "zero": 9}
        shifts, ends = np.array([1 << 30, -4], np.int32), {"lo": -120, "hi": 101}
        words = {"multiplier": 1 << 30, "shift_left": 0, "shift_right": 4, "x_zero": -7, **limits}
        for instruction, kernel_name, x, given, extra in (
            (ins.MAX_POOL8, "max_pool8", q, {}, {}),
            (ins.AVERAGE_POOL8, "average_pool8", q, means := {
                "multipliers": F(1.37) / counts, "x_zero": -7, **limits
            }, means),
            (ins.AVERAGE_POOL8_FIXED, "average_pool8_away", q, ends, ends),
            (ins.AVERAGE_POOL8_FIXED, "average_pool8_up", q, ends, ends),
            (ins.SUM_POOL8, "sum_pool8", q, {"shifts": shifts, "x_zero": -7, **limits}, words),
            (ins.MAX_POOL32, "max_pool32", f, {}, {}),
            (ins.AVERAGE_POOL32, "average_pool32", f, {"divisors": counts}, {"divisors": counts}),
        ):  # fmt: skip
            y = getattr(naive, kernel_name)(x, **geometry, **given)
            eight = x.dtype == np.int8
            stored = _stored(tier, y) if eight else y
            y_col = y.shape[2] * y.itemsize + 4
            y_row = y.shape[1] * y_col + 8
            place = np.stack([_rows(row, y_col) for row in stored])
            operands = {k: In(v) if isinstance(v, np.ndarray) else v for k, v in extra.items()}
            yield Case(
                f"{kernel_name} {h}x{w}x{c}", instruction, kernel_name,
                {
                    "x": In(_stored(tier, x) if eight else x),
                    "y": Out(_rows(place, y_row), np.uint8 if eight else F, 0 if eight else 1e-6),
                    "rows": y.shape[0], "cols": y.shape[1], "channels": c, "height": h, "width": w,
                    "kernel_rows": kernel[0], "kernel_cols": kernel[1],
                    "stride_rows": strides[0], "stride_cols": strides[1],
                    "step_rows": dilations[0], "step_cols": dilations[1], "top": pads[0], "left": pads[1],
                    "x_row": w * c * x.itemsize, "x_col": c * x.itemsize, "y_row": y_row,
                    "y_col": y_col, **operands,
                },
            )  # fmt: skip


def _binary8(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for count in (1, 15, 64, 83):
        x, other = _values(rng, 3, count), _values(rng, 1, count)
        zeros = {"x_zero": -3, "other_zero": 100, "lo": -30, "hi": 200, "zero": -98}
        for instruction, extra in (
            (ins.ADD8, {"x_scale": F(0.731), "other_scale": F(1.13)}),
            (ins.MUL8, {"scale": F(0.0097)}),
        ):
            y = getattr(naive, instruction.name)(x, other, **zeros, **extra)
            yield Case(
                f"{instruction.name} {count}", instruction, instruction.name,
                {
                    "x": _spread(_stored(tier, x), count + 2), "other": In(_stored(tier, other)),
                    "y": Out(_rows(_stored(tier, y), count + 9)), "rows": 3, "count": count,
                    "x_row": count + 2, "other_row": 0, "y_row": count + 9, **zeros, **extra,
                },
            )  # fmt: skip


def _words(shifts: Array, prefix: str = "") -> dict[str, int]:
    """The operands of a scale."""
    m, n = (int(v) for v in shifts)
    return {
        f"{prefix}multiplier": m,
        f"{prefix}shift_left": max(n, 0),
        f"{prefix}shift_right": max(-n, 0),
    }


def _fixed8(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for count in (1, 15, 64, 83):
        for total in ((1 << 30, -18), ((1 << 31) - 1, -17), (1340000001, -15)):
            x, other = _values(rng, 3, count), _values(rng, 1, count)
            zeros, limits = (-3, 100), {"lo": -30, "hi": 200, "zero": -98}
            scales = np.array([[1 << 30, 0], [1778000000, -2]], np.int32)
            for instruction in (ins.ADD8_FIXED, ins.SUB8_FIXED, ins.MUL8_FIXED):
                shifts = np.array(total, np.int32)
                extra = _words(scales[0], "x_") | _words(scales[1], "other_")
                if instruction is ins.MUL8_FIXED:
                    shifts[1], extra = shifts[1] + 10, {}
                y = getattr(naive, instruction.name)(x, other, zeros, scales, shifts, **limits)
                yield Case(
                    f"{instruction.name} {count} {total}", instruction, instruction.name,
                    {
                        "x": _spread(_stored(tier, x), count + 2), "other": In(_stored(tier, other)),
                        "y": Out(_rows(_stored(tier, y), count + 9)), "rows": 3, "count": count,
                        "x_row": count + 2, "other_row": 0, "y_row": count + 9, **limits,
                        "x_zero": zeros[0], "other_zero": zeros[1], **_words(shifts), **extra,
                    },
                )  # fmt: skip


def _softmax8(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for count, step in ((1, 0.1), (12, 0.05), (300, 0.02), (40, 3.0)):
        x, table = _values(rng, 3, count), exp_table(step)
        x[0] = 7
        y = _stored(tier, naive.softmax8(x, table))
        yield Case(
            f"softmax8 {count}", ins.SOFTMAX8, "softmax8",
            {
                "x": In(_stored(tier, x)), "y": Out(_rows(y, count + 3)),
                "rows": 3, "count": count, "x_row": count, "y_row": count + 3, "table": In(table),
            },
        )  # fmt: skip


def _table(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    table = _values(rng, 256)
    x = np.arange(-128, 128).astype(np.int8).reshape(2, 128)
    y = _stored(tier, naive.table8(x, table))
    yield Case(
        "table8", ins.TABLE8, "table8",
        {
            "x": In(_stored(tier, x)), "y": Out(_rows(y, 130)), "rows": 2, "count": 128, "x_row": 128,
            "y_row": 130,
            "table": In(_stored(tier, table)),
        },
    )  # fmt: skip


def _unary(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    special = np.array([0, -0.0, inf, -inf, 1e-30, 0.6249999, 0.625, 90, -90, 104, 3e38, -3e38], F)
    for count in (1, 12, 16, 45):
        x = rng.normal(0, 3, (2, count)).astype(F)
        x.flat[: len(special)] = special[: x.size]
        for instruction, extra in (
            (ins.SQRT32, {}),
            (ins.SIGMOID32, {}),
            (ins.TANH32, {}),
            (ins.SILU32, {}),
            (ins.ELU32, {"alpha": F(0.7)}),
            (ins.CLAMP32, {"lo": F(-1), "hi": F(2.5)}),
        ):
            finite = np.where(np.isfinite(x), x, F(2)) if instruction is ins.SILU32 else x
            y = getattr(naive, instruction.name)(finite, **extra)
            yield Case(
                f"{instruction.name} {count}", instruction, instruction.name,
                {
                    "x": _spread(finite, 4 * count + 4), "y": Out(_rows(y, 4 * count + 8), F, 1e-6),
                    "rows": 2,
                    "count": count, "x_row": 4 * count + 4, "y_row": 4 * count + 8, **extra,
                },
            )  # fmt: skip


def _binary32(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for count in (1, 16, 45):
        x, other = (rng.normal(0, 3, (n, count)).astype(F) for n in (3, 1))
        for instruction in (ins.ADD32, ins.SUB32, ins.MUL32, ins.DIV32):
            y = getattr(naive, instruction.name)(x, other)
            yield Case(
                f"{instruction.name} {count}", instruction, instruction.name,
                {
                    "x": _spread(x, 4 * count + 4), "other": In(other),
                    "y": Out(_rows(y, 4 * count + 8), F), "rows": 3,
                    "count": count, "x_row": 4 * count + 4, "other_row": 0, "y_row": 4 * count + 8,
                },
            )  # fmt: skip


def _softmax(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for count in (1, 7, 16, 40):
        x = rng.normal(0, 20, (3, count)).astype(F)
        x[0] = 1e4
        x[1, 0] = -inf if count > 1 else 3
        yield Case(
            f"softmax32 {count}", ins.SOFTMAX32, "softmax32",
            {
                "x": In(x), "y": Out(_rows(naive.softmax32(x), 4 * count + 4), F, 1e-6), "rows": 3,
                "count": count,
                "x_row": 4 * count, "y_row": 4 * count + 4,
            },
        )  # fmt: skip


def _integers(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    ends = np.array([0, 1, -1, 2**31 - 1, -(2**31), 7], np.int32)
    for count in (1, 19):
        x, other = (rng.integers(-(2**31), 2**31, (3, count)).astype(np.int32) for _ in range(2))
        other[1] = rng.integers(-9, 9, count)
        x.flat[-6:], other.flat[-4:] = np.resize(ends, x.size)[-6:], np.resize(ends, x.size)[:4][-x.size :]
        rows = {"rows": 3, "count": count, "x_row": 4 * count, "y_row": 4 * count + 8}
        for instruction in (ins.ADD_I32, ins.SUB_I32, ins.MUL_I32, ins.FLOOR_DIV_I32):
            y = getattr(naive, instruction.name)(x, other)
            yield Case(
                f"{instruction.name} {count}", instruction, instruction.name,
                {
                    "x": In(x), "other": In(other), "y": Out(_rows(y, 4 * count + 8), np.int32),
                    "other_row": 4 * count, **rows,
                },
            )  # fmt: skip
        y = _rows(naive.to_f32(x), 4 * count + 8)
        yield Case("to_f32", ins.TO_F32, "to_f32", {"x": In(x), "y": Out(y, F), **rows})


def _raw(y: Array) -> Out:
    """Results that no tier stores in a way of its own."""
    return Out(np.ascontiguousarray(y).view(np.uint8).reshape(-1), np.int32)


def _find(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for outer, count, inner in ((1, 300, 1), (3, 20, 17), (2, 1, 33)):
        x = _values(rng, outer, count, inner)
        yield Case(
            f"arg_max8 {count}", ins.ARG_MAX8, "arg_max8",
            {
                "x": In(_stored(tier, x)), "y": _raw(naive.arg_max8(x)),
                "outer": outer, "count": count, "inner": inner,
            },
        )  # fmt: skip
    x = rng.integers(0, 256, (4, 5, 6, 7)).astype(np.uint8)
    for depth in (1, 3, 4):
        index = rng.integers(-2, 8, (9, depth)).astype(np.int32)
        places = {f"n{k}": x.shape[k] for k in range(4)} | {f"s{k}": x.strides[k] for k in range(4)}
        yield Case(
            f"gather_nd {depth}", ins.GATHER_ND, "gather_nd",
            {
                "x": In(x), "other": In(index), "y": _raw(naive.gather_nd(x, index)), "rows": 9,
                "depth": depth, "count": x[(0,) * depth].size, **places,
            },
        )  # fmt: skip


def _resize(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for channels in (1, 16, 37):
        x = _values(rng, 3, 4, channels)
        x[0] = 127
        places = []
        for n, m in ((3, 5), (4, 7)):
            low = np.minimum(np.arange(m) * n // m, n - 1)
            part = rng.choice([0, 256, 512, 1023], m)
            places.append(np.stack([low, np.minimum(low + 1, n - 1), part], axis=1).astype(np.int32))
        y = naive.resize8(x, *places)
        row_places, col_places = (
            (p * np.array([step, step, 1])).astype(np.int32)
            for p, step in zip(places, (4 * channels, channels), strict=True)
        )
        y_col, y_row = channels + 3, 7 * (channels + 3) + 5
        place = np.stack([_rows(row, y_col) for row in _stored(tier, y)])
        yield Case(
            f"resize8 {channels}", ins.RESIZE8, "resize8",
            {
                "x": In(_stored(tier, x)), "y": Out(_rows(place, y_row)), "rows": 5, "cols": 7,
                "channels": channels, "row_places": In(row_places), "col_places": In(col_places),
                "y_row": y_row, "y_col": y_col,
            },
        )  # fmt: skip


def _lstm(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    numbers = np.arange(-(1 << 15), 1 << 15)
    functions = logistic(numbers, 3).astype(np.int16), tanh(numbers, 3).astype(np.int16)
    tables = dict(zip(("logistic", "tanh"), (In(f) for f in functions), strict=True))
    for units, clip in ((1, 1 << 15), (20, 9000)):
        x, other = (rng.integers(-30000, 30000, (2, 4 * units)).astype(np.int32) for _ in range(2))
        cell = rng.integers(-(1 << 15), 1 << 15, (2, units)).astype(np.int16)
        common = {"x": In(x), "other": In(other), "cell": In(cell), "rows": 2, "units": units, **tables}
        y = naive.lstm_cell8(x, other, cell, *functions, 18, clip)
        operands = {"y": _raw(y), "shift": 18, "clip": clip}
        yield Case(f"lstm_cell8 {units}", ins.LSTM_CELL8, "lstm_cell8", common | operands)
        shifts = np.array([1700000000, -22], np.int32)
        y = _stored(tier, naive.lstm_hidden8(x, other, cell, *functions, shifts, **_LIMITS))
        operands = {"y": Out(y.reshape(-1)), **_words(shifts), **_LIMITS}
        yield Case(f"lstm_hidden8 {units}", ins.LSTM_HIDDEN8, "lstm_hidden8", common | operands)


def _move(tier: Tier, rng: np.random.Generator) -> Iterator[Case]:
    for rows, row, head, gap, tail in ((1, 40, 18, 99, 0), (4, 5, 130, 7, 201)):
        geometry = {"rows": rows, "row": row, "head": head, "gap": gap, "tail": tail, "value": 77}
        y = naive.fill(**geometry, inside=UNTOUCHED)
        yield Case(f"fill {rows}", ins.FILL, "fill", {"y": Out(y), **geometry})
    for count in (1, 63, 64, 200):
        x = rng.integers(0, 256, (3, count)).astype(np.uint8)
        yield Case(
            f"copy {count}", ins.COPY, "copy",
            {
                "x": _spread(x, count + 5), "y": Out(_rows(naive.copy(x), count + 1)), "rows": 3,
                "count": count,
                "x_row": count + 5, "y_row": count + 1,
            },
        )  # fmt: skip
    for bits, dtype in ((8, np.uint8), (32, np.uint32)):
        x = rng.integers(0, 200, (3, 4, 5, 6)).astype(dtype)
        perm = (2, 0, 3, 1)
        y = getattr(naive, f"transpose{bits}")(x, perm)
        operands = {
            name: value
            for i, axis in enumerate(perm)
            for name, value in ((f"n{i}", y.shape[i]), (f"s{i}", x.strides[axis]), (f"t{i}", y.strides[i]))
        }
        raw = np.ascontiguousarray(y).view(np.uint8).reshape(-1)
        yield Case(
            f"transpose{bits}", ins.TRANSPOSE, f"transpose{bits}", {"x": In(x), "y": Out(raw), **operands}
        )


__all__ = ["Case", "In", "Out", "cases"]
