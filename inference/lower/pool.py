"""Pooling: one instruction for each image."""

from __future__ import annotations

from typing import Any

import numpy as np

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.instructions import (
    AVERAGE_POOL8,
    AVERAGE_POOL8_FIXED,
    AVERAGE_POOL32,
    MAX_POOL8,
    MAX_POOL32,
    Instruction,
)
from reflexarc.inference.lower.context import PARALLEL_ELEMENTS, Context, lowering
from reflexarc.inference.lower.scaling import limits
from reflexarc.inference.lower.value import Value
from reflexarc.inference.program import ProgramError

MAX_AREA = 1 << 16
"""Elements of a window whose sum the fixed mean divides exactly."""


@lowering("max_pool", "average_pool")
def pool(context: Context, node: Node) -> None:
    """Windows as the attributes say."""
    _pool(
        context,
        node,
        node.integers("kernel"),
        node.integers("strides"),
        node.integers("pads"),
        node.integers("dilations"),
    )


@lowering("global_average_pool")
def global_average_pool(context: Context, node: Node) -> None:
    """One window, all of the image."""
    _, height, width, _ = context.tensor(node.inputs[0]).shape
    _pool(context, node, (height, width), (1, 1), (0, 0, 0, 0), (1, 1))


def _pool(
    context: Context,
    node: Node,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    pads: tuple[int, ...],
    dilations: tuple[int, ...],
) -> None:
    x = context.padded(node.inputs[0], context.value(node.inputs[0]), (0, 0, 0, 0))
    y = context.output(node, lambda view: view.steps[-1] == view.size)
    instruction, name, extra = _kind(context, node, kernel[0] * kernel[1], eight=x.size == 1)
    windows(context, instruction, name, (x, y), (kernel, strides, pads, dilations), extra)


def windows(
    context: Context,
    instruction: Instruction,
    kernel_name: str,
    values: tuple[Value, Value],
    geometry: tuple[tuple[int, ...], ...],
    extra: dict[str, Any],
) -> None:
    """An instruction for each image of x, `values` being x and y and `geometry` the kernel, strides, pads and
    dilations of its windows."""
    (x, y), (kernel, strides, pads, dilations) = values, geometry
    _, height, width, channels = x.shape
    for n in range(x.shape[0]):
        context.listing.emit(
            instruction,
            kernel=kernel_name,
            parallel=y.shape[1] > 1
            and y.shape[1] * y.shape[2] * channels * kernel[0] * kernel[1] >= PARALLEL_ELEMENTS,
            x=x.ref + n * x.steps[0],
            y=y.ref + n * y.steps[0],
            rows=y.shape[1],
            cols=y.shape[2],
            channels=channels,
            height=height,
            width=width,
            kernel_rows=kernel[0],
            kernel_cols=kernel[1],
            stride_rows=strides[0],
            stride_cols=strides[1],
            step_rows=dilations[0],
            step_cols=dilations[1],
            top=pads[0],
            left=pads[1],
            x_row=x.steps[1],
            x_col=x.steps[2],
            y_row=y.steps[1],
            y_col=y.steps[2],
            **extra,
        )


def _kind(context: Context, node: Node, area: int, *, eight: bool) -> tuple[Instruction, str, dict[str, Any]]:
    """The instruction, its kernel, and its operands besides the geometry."""
    if node.op == "max_pool":
        instruction = MAX_POOL8 if eight else MAX_POOL32
        return instruction, instruction.name, {}
    if node.attrs.get("rounding") == "fixed":
        if area > MAX_AREA:
            raise ProgramError(f"{node}: windows of {area} elements, at most {MAX_AREA}")
        lo, hi = node.integer("qmin"), node.integer("qmax")
        return AVERAGE_POOL8_FIXED, f"average_pool8_{node.word('ties')}", {"lo": lo, "hi": hi}
    instruction = AVERAGE_POOL8 if eight else AVERAGE_POOL32
    return instruction, instruction.name, _average(context, node, area, eight)


def _average(context: Context, node: Node, area: int, eight: bool) -> dict[str, Any]:
    """What a sum of n elements is multiplied with (8-bit) or divided by, for each n."""
    counts = np.arange(area + 1, dtype=np.float32)
    counts[0] = 1  # a window that lies outside altogether
    if node.attrs.get("include_pad"):
        counts[:] = area
    if not eight:
        return {"divisors": context.listing.constant(counts)}
    (sx, zx), (sy, _) = context.scale(node.inputs[0]), context.scale(node.outputs[0])
    multipliers = context.listing.constant(np.float32(sx / sy) / counts)
    return {"multipliers": multipliers, "x_zero": zx, **limits(context, node)}
