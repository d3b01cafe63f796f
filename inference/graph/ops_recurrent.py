"""One step of a long short-term memory, after the two matrix products that are ordinary `dense` operations.

With four gates, each of H units, in the order input, forget, cell, output: g = gx + gh, where gx [N, 4 H] is
the input's share and gh [N, 4 H] that of the last hidden state.

    c' = sigmoid(g_f) * c + sigmoid(g_i) * tanh(g_c)
    h' = sigmoid(g_o) * tanh(c')

Fixed (LiteRT's 8-bit by 8-bit with 16-bit cell): gx and gh are int32 in units of 2^-12, g is their sum
clamped to int16, c is int16 with scale 2^`cell`. logistic and tanh are `fixed.logistic` and `fixed.tanh`
of 16 bits, their results in units of 2^-15; halve is `fixed.halve`.

    c' = clamp16(wrap16(halve(logistic(g_f) * c, 15))
                 + wrap16(halve(logistic(g_i) * tanh(g_c, 3), 30 + cell)))
    h' = requantize(logistic(g_o) * tanh(c', 15 + cell), m, n)
"""

from __future__ import annotations

from collections.abc import Sequence

from reflexarc.inference.graph.ir import ModelError, Node, Shape, Tensor
from reflexarc.inference.graph.registry import op


@op("f32 f32 f32 -> f32", "#i32 #i32 i16 -> i16")
def lstm_cell(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """c' of gx, gh and c [N, H]; `clip` > 0 clamps it to -clip..clip (fixed: in steps); fixed: `cell`."""
    return _step(node, inputs)


@op("f32 f32 f32 -> f32", "#i32 #i32 i16 -> i8")
def lstm_hidden(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """h' of gx, gh and c' [N, H]; fixed: `cell`, `multiplier` (m,), `shift` (n,), `qmin`, `qmax`."""
    return _step(node, inputs)


def _step(node: Node, inputs: Sequence[Tensor]) -> Shape:
    gx, gh, c = (tensor.shape for tensor in inputs)
    if len(c) != 2 or gx != gh or gx != (c[0], 4 * c[1]):
        raise ModelError(f"{node}: gates {gx} and {gh} and cell {c} do not fit")
    return c
