"""Operations element by element: arithmetic, comparison, choice, functions of one number, changes of type.

Binary operations broadcast as numpy does. int32 wraps. Fixed integers as `ops` says.
"""

from __future__ import annotations

from collections.abc import Sequence

from reflexarc.inference.graph import shapes
from reflexarc.inference.graph.ir import ModelError, Node, Shape, Tensor
from reflexarc.inference.graph.registry import op

ARITHMETIC = {
    "div": "a / b; int32 rounds toward zero, and x / 0 is 0",
    "floor_div": "floor(a / b); int32 x / 0 is 0",
    "floor_mod": "a - b * floor(a / b), the sign of b; int32 x mod 0 is 0",
    "squared_difference": "(a - b)^2",
    "power": "a to the power of b",
}
EXTREMES = {
    "minimum": "the lesser; NaN where either is; int8 operands and result have one scale",
    "maximum": "the greater; NaN where either is; int8 operands and result have one scale",
}
COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
LOGIC = ("logical_and", "logical_or")
FUNCTIONS = {
    "neg": "-x",
    "abs": "|x|",
    "sign": "-1, 0 or 1",
    "square": "x^2",
    "sqrt": "the square root; NaN below 0",
    "rsqrt": "1 / sqrt(x)",
    "exp": "e^x",
    "log": "the natural logarithm",
    "sin": "sine",
    "cos": "cosine",
    "floor": "the integer below",
    "ceil": "the integer above",
    "round": "the nearest integer, halves to even",
    "hard_swish": "x * min(max(x + 3, 0), 6) / 6",
    "gelu": "x * (1 + erf(x / sqrt(2))) / 2",
    "gelu_tanh": "x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3))) / 2",
    "leaky_relu": "x where x > 0, else alpha * x; attribute `alpha`",
}
"""Float functions of one number and what they are; they map int8 through `lookup`."""


@op("f32 f32 -> f32", "i8 i8 -> i8", "#i32 #i32 -> #i32")
def sub(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """a - b; fixed as `add`, the two scaled operands subtracted."""
    return shapes.broadcast(node, inputs[0].shape, inputs[1].shape)


def _binary(node: Node, inputs: Sequence[Tensor]) -> Shape:
    return shapes.broadcast(node, inputs[0].shape, inputs[1].shape)


for _name in ARITHMETIC:
    op("f32 f32 -> f32", "#i32 #i32 -> #i32", name=_name)(_binary)
for _name in EXTREMES:
    op("f32 f32 -> f32", "i8 i8 -> i8", "#i32 #i32 -> #i32", name=_name)(_binary)
for _name in COMPARISONS:
    op("T T -> bool", name=_name)(_binary)
for _name in LOGIC:
    op("bool bool -> bool", name=_name)(_binary)


@op("bool -> bool")
def logical_not(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """Whether x is false."""
    return inputs[0].shape


@op("bool T T -> T")
def select(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """a where the condition holds, else b; int8 operands and result have one scale."""
    shape = shapes.broadcast(node, inputs[0].shape, inputs[1].shape)
    return shapes.broadcast(node, shape, inputs[2].shape)


def _unary(node: Node, inputs: Sequence[Tensor]) -> Shape:
    if node.op == "leaky_relu":
        node.number("alpha")
    return inputs[0].shape


for _name in FUNCTIONS:
    op("f32 -> f32", "#i32 -> #i32", name=_name)(_unary) if _name in ("neg", "abs", "sign", "square") else op(
        "f32 -> f32", name=_name
    )(_unary)


@op("f32 f32 -> f32")
def prelu(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x where x >= 0, else alpha * x; alpha, the second operand, broadcasts to x."""
    shape = shapes.broadcast(node, inputs[0].shape, inputs[1].shape)
    if shape != inputs[0].shape:
        raise ModelError(f"{node}: alpha {inputs[1].shape} does not broadcast to x {inputs[0].shape}")
    return shape


@op("f32 -> f32")
def log_softmax(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """x - max - log(sum(exp(x - max))) along the last axis."""
    if not inputs[0].shape:
        raise ModelError(f"{node}: log_softmax of a scalar")
    return inputs[0].shape


@op("U -> U")
def cast(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The same number as another type: floats toward zero, saturated, NaN as 0; integers wrap; bool: x != 0.

    Scales do not count: an int8 or uint8 is the integer it holds.
    """
    return inputs[0].shape


@op("#u8 -> #i8", "#i8 -> #u8")
def flip(node: Node, inputs: Sequence[Tensor]) -> Shape:
    """The bits with the highest one flipped: int8 is 128 less than uint8, its zero point likewise."""
    return inputs[0].shape
