"""How a layer's 8-bit sums become outputs: what is packed beside its weights, and the range they end in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Node
from reflexarc.inference.lower.context import Context
from reflexarc.inference.pack import Heads
from reflexarc.inference.program import ProgramError

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Scaling:
    """For each output channel: the weights less their zero point, the bias, what the sums are scaled with.

    `limits` are the operands `lo`, `hi` and `zero` of the instruction.
    """

    w: Integers  # [channels, ...]
    bias: Integers
    factors: Heads
    limits: dict[str, Any]

    def part(self, channels: slice) -> Scaling:
        """That of some channels."""
        factors = tuple(f[channels] for f in self.factors)
        return Scaling(self.w[channels], self.bias[channels], factors, self.limits)

    def heads(self, offset: int) -> Heads:
        """What is packed before the weights, for elements stored `offset` above those that are summed.

        The bias is taken modulo 2^32, as the sums are.
        """
        bias = self.bias - offset * self.w.reshape(len(self.w), -1).sum(axis=1)
        return bias.astype(np.int32), *self.factors


def scaling(context: Context, node: Node) -> Scaling:
    """The scaling of a `conv` or `dense` of 8-bit integers."""
    w, bias = constant(context, node, 1), constant(context, node, 2)
    quant = context.tensor(node.inputs[1]).quant
    kind = node.attrs.get("rounding", "")
    if quant is None or quant.axis not in (0, None) or len(set(quant.zero_point.tolist())) != 1:
        raise ProgramError(
            f"{node}: 8-bit weights need a scale, per output channel or one, and one zero point"
        )
    if not kind and quant.zero_point[0]:
        raise ProgramError(f"{node}: the weights' zero point is {quant.zero_point[0]}, it must be 0")
    centred = w.astype(np.int64) - int(quant.zero_point[0])
    return Scaling(centred, bias.astype(np.int64), _factors(context, node, kind), limits(context, node))


def _factors(context: Context, node: Node, kind: Any) -> Heads:
    """As `graph.ops` has them: multipliers and shifts from the model, or multipliers from the scales."""
    if kind == "fixed":
        return shifts(constant(context, node, 3).T)
    channels = context.tensor(node.inputs[2]).size
    real: Any = np.float64 if kind == "double" else np.float32
    (sx, _), (sy, _) = context.scale(node.inputs[0]), context.scale(node.outputs[0])
    quant = context.tensor(node.inputs[1]).quant
    scales = np.broadcast_to(quant.scale, channels) if quant else np.ones(channels)
    return ((real(sx) * scales.astype(real) / real(sy)).astype(real),)


def shifts(scales: NDArray[Any]) -> Heads:
    """Multipliers m and exponents n, [2, ...], as multipliers, left and right shifts."""
    m, n = scales.astype(np.int32)
    return m, np.maximum(n, 0), np.maximum(-n, 0)


def scale_words(node: Node, i: int, prefix: str = "") -> dict[str, int]:
    """The operands that scale by the i-th of a node's multipliers and shifts."""
    m, n = node.integers("multiplier")[i], node.integers("shift")[i]
    return {
        f"{prefix}multiplier": m,
        f"{prefix}shift_left": max(n, 0),
        f"{prefix}shift_right": max(-n, 0),
    }


def limits(context: Context, node: Node) -> dict[str, Any]:
    """The operands `lo`, `hi` and `zero` of what writes a node's output."""
    name = node.outputs[0]
    zero = 0 if context.tensor(name).dtype == "i32" else context.scale(name)[1]
    return {"lo": node.integer("qmin") - zero, "hi": node.integer("qmax") - zero, "zero": zero}


def constant(context: Context, node: Node, i: int) -> NDArray[Any]:
    """Input i of a node, which must be constant."""
    data = context.tensor(node.inputs[i]).data
    if data is None:
        raise ProgramError(f"{node}: input {node.inputs[i]!r} must be a constant")
    return data
