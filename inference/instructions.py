"""The instructions of a program, declared once for both sides: the lowering that writes them, the kernels
that read them.

An instruction is `WORDS` 64-bit words: the address of a kernel with two flags in its low bits, then its
operands. Up to seven operands stand in the instruction itself; a kernel with more finds them in a block whose
address is the first operand. An operand is an address, a size in the unit its description names, or the bits
of a 32-bit float in the low half of its word. Sizes are in bytes where they are steps between addresses.

The value of an 8-bit element is -128..127: an int8 as it is, a uint8 less 128. It is stored as the byte value
+ `Tier.bias`: unsigned on x86, signed on ARM. `zero` is the value that stands for 0. "Rows" of an operand are
`count` consecutive elements each; `x_row` is the step from one to the next. Kernels may read up to `SLACK`
bytes past the end of an operand they only read, and write nothing but the elements named.
"""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass
from functools import cached_property
from typing import Any

WORDS = 8
WORD = 8
INLINE = WORDS - 1
BLOCK = WORD
"""Offset in an instruction of the address of its block, where it has one."""

ALONE = 1
"""Flag: thread 0 alone runs the instruction."""
JOIN = 2
"""Flag: all threads meet after the instruction."""
FLAGS = ALONE | JOIN

SLACK = 64


@dataclass(frozen=True)
class Instruction:
    """A kernel's name, its family (a module of `kernels`) and its operands: a line each, `name[/f32]
    meaning`."""

    name: str
    family: str
    text: str

    @cached_property
    def operands(self) -> tuple[str, ...]:
        """Names in the order of their words."""
        return tuple(name.removesuffix("/f32") for name in self._declared)

    @cached_property
    def floats(self) -> frozenset[str]:
        """The operands that are the bits of a float."""
        return frozenset(name.removesuffix("/f32") for name in self._declared if name.endswith("/f32"))

    @property
    def inline(self) -> bool:
        """Whether the operands stand in the instruction itself."""
        return len(self.operands) <= INLINE

    @cached_property
    def at(self) -> Any:
        """Byte offset of each operand, by name: from the instruction if inline, else from its block."""
        first = WORD if self.inline else 0
        offsets = (first + WORD * i for i in range(len(self.operands)))
        make: Any = namedtuple  # whose fields numba reads as constants
        return make(f"{self.name}_at", self.operands)(*offsets)

    @property
    def _declared(self) -> list[str]:
        return [line.split()[0] for line in self.text.splitlines() if line.strip()]


QUANTIZE = Instruction(
    "quantize",
    "quantize",
    """
    x            f32 rows
    y            8-bit rows = saturate(round(x / scale) + zero)
    rows
    count        elements a row
    x_row        bytes
    y_row        bytes
    scale/f32    real units a step
    zero         value that stands for 0
    """,
)

QUANTIZE_AWAY = Instruction("quantize_away", "quantize", QUANTIZE.text)
"""`QUANTIZE`, halves away from zero."""

QUANTIZE_PLANES = Instruction(
    "quantize_planes",
    "quantize",
    """
    x            f32 [channels, rows, length]
    y            8-bit [rows, length, channels]
    rows
    channels
    length
    x_row        bytes between rows of a channel
    plane        bytes between channels
    y_row        bytes between rows
    y_step       bytes between elements of a row
    scale/f32    real units a step
    zero         value that stands for 0
    """,
)
"""`QUANTIZE` of channels-first input, to channels-last."""

DEQUANTIZE = Instruction(
    "dequantize",
    "quantize",
    """
    x            8-bit rows
    y            f32 rows = (x - zero) * scale
    rows
    count        elements a row
    x_row        bytes
    y_row        bytes
    scale/f32    real units a step
    zero         value that stands for 0
    """,
)

_CONV8 = """
    x            8-bit; first byte of the first window
    w            packed groups of output channels (`pack.pack8`)
    y            8-bit; first output
    rows         of outputs
    cols         outputs a row, at least a tile's
    tiles        tiles of outputs a row; the last may overlap the one before
    groups       of output channels
    channels     output channels
    group        bytes of a packed group
    x_row        bytes between the windows of two rows
    x_col        bytes between the windows of two columns
    kernel_rows  rows of a window
    kernel_row   bytes between them
    segments     runs of consecutive bytes in a window's row
    segment      bytes between them
    words        4-byte words in a segment, the last filled up with zero weights
    y_row        bytes between two rows of outputs
    y_col        bytes between two outputs
"""
_REAL_LIMITS = """
    lo/f32       least output, less zero
    hi/f32       greatest output, less zero
    zero         value that stands for 0
"""
_INTEGER_LIMITS = _REAL_LIMITS.replace("/f32", "")

CONV8 = Instruction("conv8", "conv8", _CONV8 + _REAL_LIMITS)
"""y = clamp(round(sum(x * w) * multiplier), lo, hi) + zero; kernels `conv8_PxV`: P outputs by V vectors of
channels."""

CONV8_FIXED = Instruction("conv8_fixed", "conv8_fixed", _CONV8 + _INTEGER_LIMITS)
"""As `CONV8`, scaled by a multiplier and a shift for each channel: `graph.fixed.scale`."""

DENSE8_DOUBLE = Instruction("dense8_double", "dense8_double", _CONV8 + _REAL_LIMITS)
"""As `CONV8`, multiplied in float64, halves away from zero."""

DENSE8_WIDE = Instruction("dense8_wide", "dense8_wide", _CONV8 + _INTEGER_LIMITS)
"""As `CONV8_FIXED`, the result an i32."""

_DEPTHWISE = """
    x            first element of the first window
    w            packed groups of channels (`pack.pack_taps`)
    y            first output
    rows         of outputs
    cols         outputs a row, at least a tile's
    tiles        tiles of outputs a row; the last may overlap the one before
    groups       of channels
    channels
    group        bytes of a packed group
    x_row        bytes between the windows of two rows
    x_col        bytes between the windows of two columns
    kernel_rows  rows of a window
    kernel_row   bytes between them
    kernel_cols  columns of a window
    kernel_col   bytes between them
    y_row        bytes between two rows of outputs
    y_col        bytes between two outputs
"""

DEPTHWISE8 = Instruction("depthwise8", "depthwise8", _DEPTHWISE + _REAL_LIMITS)
"""`CONV8` of each channel by itself; kernels `depthwise8_P`, and `depthwise8_PsS` for windows three columns
wide, S columns apart."""

DEPTHWISE8_FIXED = Instruction("depthwise8_fixed", "depthwise8_fixed", _DEPTHWISE + _INTEGER_LIMITS)
"""`CONV8_FIXED` of each channel by itself."""

DEPTHWISE32 = Instruction(
    "depthwise32",
    "depthwise32",
    _DEPTHWISE
    + """
    lo/f32       least output
    hi/f32       greatest output
    """,
)
"""`CONV32` of each channel by itself."""

_POOL = """
    x            first element, unpadded
    y            first output
    rows         of outputs
    cols         outputs a row
    channels
    height       rows of x
    width        columns of x
    kernel_rows  rows of a window
    kernel_cols  columns of a window
    stride_rows
    stride_cols
    step_rows    rows of x between two of a window
    step_cols    columns of x between two of a window
    top          rows of padding before x
    left         columns of padding before x
    x_row        bytes between rows of x
    x_col        bytes between columns of x
    y_row        bytes between rows of y
    y_col        bytes between columns of y
"""

MAX_POOL8 = Instruction("max_pool8", "pool", _POOL)
"""Greatest value of a window's part inside x."""

AVERAGE_POOL8 = Instruction(
    "average_pool8",
    "pool",
    _POOL
    + """
    multipliers  f32 [kernel_rows * kernel_cols + 1], by the number of elements summed
    x_zero       value of x that stands for 0
    lo/f32       least output, less zero
    hi/f32       greatest output, less zero
    zero         value of y that stands for 0
    """,
)
"""y = clamp(round(sum(x - x_zero) * multipliers[n]), lo, hi) + zero over the n elements of a window inside
x."""

AVERAGE_POOL8_FIXED = Instruction(
    "average_pool8_fixed",
    "pool_fixed",
    _POOL
    + """
    lo           least output
    hi           greatest output
    """,
)
"""y = clamp(sum(x) / n, lo, hi) over the n elements of a window inside x, halves rounded as the kernel's name
says: `average_pool8_away` from zero, `average_pool8_up` up."""

_SCALE = """
    multiplier
    shift_left
    shift_right
"""

SUM_POOL8 = Instruction(
    "sum_pool8",
    "pool_fixed",
    _POOL
    + """
    x_zero       value of x that stands for 0
"""
    + _SCALE
    + _INTEGER_LIMITS,
)
"""y = clamp(scale(sum(x - x_zero), multiplier, shift_left - shift_right), lo, hi) + zero, `scale` as in
`graph.fixed`."""

MAX_POOL32 = Instruction("max_pool32", "pool", _POOL)
"""Greatest f32 of a window's part inside x; NaN where one is."""

AVERAGE_POOL32 = Instruction(
    "average_pool32",
    "pool",
    _POOL
    + """
    divisors     f32 [kernel_rows * kernel_cols + 1], by the number of elements summed
    """,
)
"""f32 sum over the elements of a window inside x, over divisors[n]."""

_BINARY = """
    x            rows of elements
    other        rows of elements
    y            rows of elements
    rows
    count        elements a row
    x_row        bytes
    other_row    bytes
    y_row        bytes
"""

ADD8 = Instruction(
    "add8",
    "elementwise8",
    _BINARY
    + """
    x_zero       value of x that stands for 0
    other_zero   value of the other that stands for 0
    x_scale/f32  scale of x over y's
    other_scale/f32  scale of the other over y's
    lo/f32       least output, less zero
    hi/f32       greatest output, less zero
    zero         value of y that stands for 0
    """,
)
"""y = clamp(round((x - x_zero) * x_scale + (other - other_zero) * other_scale), lo, hi) + zero."""

MUL8 = Instruction(
    "mul8",
    "elementwise8",
    _BINARY
    + """
    x_zero       value of x that stands for 0
    other_zero   value of the other that stands for 0
    scale/f32    scales of x and the other over y's
    lo/f32       least output, less zero
    hi/f32       greatest output, less zero
    zero         value of y that stands for 0
    """,
)
"""y = clamp(round((x - x_zero) * (other - other_zero) * scale), lo, hi) + zero."""

_FIXED_BINARY = (
    _BINARY
    + """
    x_zero       value of x that stands for 0
    other_zero   value of the other that stands for 0
"""
    + _SCALE
    + _INTEGER_LIMITS
)
_OPERAND_SCALES = """
    x_multiplier
    x_shift_left
    x_shift_right
    other_multiplier
    other_shift_left
    other_shift_right
"""

ADD8_FIXED = Instruction("add8_fixed", "elementwise8_fixed", _FIXED_BINARY + _OPERAND_SCALES)
"""y = clamp(scale(a + b, multiplier, shift_left - shift_right), lo, hi) + zero, with a = scale((x - x_zero) *
2^20, ...) and b alike of the other."""

SUB8_FIXED = Instruction("sub8_fixed", "elementwise8_fixed", _FIXED_BINARY + _OPERAND_SCALES)
"""As `ADD8_FIXED`, with a - b."""

MUL8_FIXED = Instruction("mul8_fixed", "elementwise8_fixed", _FIXED_BINARY)
"""y = clamp(scale((x - x_zero) * (other - other_zero), multiplier, shift_left - shift_right), lo, hi) +
zero."""

TABLE8 = Instruction(
    "table8",
    "elementwise8",
    """
    x            8-bit rows
    y            8-bit rows
    rows
    count        elements a row
    x_row        bytes
    y_row        bytes
    table        256 stored bytes, of y by value of x + 128
    """,
)
"""Any function of one 8-bit value."""

FILL = Instruction(
    "fill",
    "move",
    """
    y            start of a padded tensor
    head         bytes before its first row's elements
    rows
    row          bytes of elements a row
    gap          bytes between two rows' elements
    tail         bytes after the last row's elements
    value        byte to fill head, gaps and tail with
    """,
)
"""Padding around a tensor."""

COPY = Instruction(
    "copy",
    "move",
    """
    x            rows of bytes
    y            rows of bytes
    rows
    count        bytes a row
    x_row        bytes
    y_row        bytes
    """,
)
"""Rows of bytes from one place to another."""

TRANSPOSE = Instruction(
    "transpose",
    "move",
    """
    x            elements
    y            elements
    n0           outermost extent
    n1           extent
    n2           extent
    n3           innermost extent
    s0           bytes in x to the next along n0
    s1           bytes in x to the next along n1
    s2           bytes in x to the next along n2
    s3           bytes in x to the next along n3
    t0           bytes in y to the next along n0
    t1           bytes in y to the next along n1
    t2           bytes in y to the next along n2
    t3           bytes in y to the next along n3
    """,
)
"""Kernels `transpose8` and `transpose32`, by the bits of an element."""

CONV32 = Instruction(
    "conv32",
    "conv32",
    """
    x            f32; first element of the first window
    w            packed groups of output channels (`pack.pack32`)
    y            f32; first output
    rows         of outputs
    cols         outputs a row, at least a tile's
    tiles        tiles of outputs a row; the last may overlap the one before
    groups       of output channels
    channels     output channels
    group        bytes of a packed group
    x_row        bytes between the windows of two rows
    x_col        bytes between the windows of two columns
    kernel_rows  rows of a window
    kernel_row   bytes between them
    segments     runs of consecutive elements in a window's row
    segment      bytes between them
    words        elements in a segment
    y_row        bytes between two rows of outputs
    y_col        bytes between two outputs
    lo/f32       least output
    hi/f32       greatest output
    """,
)
"""y = clamp(b + sum(x * w), lo, hi), summed in the order of the weights; kernels `conv32_PxV`."""

_UNARY = """
    x            f32 rows
    y            f32 rows
    rows
    count        elements a row
    x_row        bytes
    y_row        bytes
"""

SQRT32 = Instruction("sqrt32", "elementwise32", _UNARY)
SIGMOID32 = Instruction("sigmoid32", "elementwise32", _UNARY)
TANH32 = Instruction("tanh32", "elementwise32", _UNARY)
SILU32 = Instruction("silu32", "elementwise32", _UNARY)
ELU32 = Instruction(
    "elu32",
    "elementwise32",
    _UNARY
    + """
    alpha/f32
    """,
)
CLAMP32 = Instruction(
    "clamp32",
    "elementwise32",
    _UNARY
    + """
    lo/f32
    hi/f32
    """,
)
"""NaN stays NaN."""

ADD32 = Instruction("add32", "elementwise32", _BINARY)
SUB32 = Instruction("sub32", "elementwise32", _BINARY)
DIV32 = Instruction("div32", "elementwise32", _BINARY)
MUL32 = Instruction("mul32", "elementwise32", _BINARY)

SOFTMAX32 = Instruction("softmax32", "softmax", _UNARY)
"""exp(x - max) over its sum, a row at a time."""

SOFTMAX8 = Instruction(
    "softmax8",
    "softmax8",
    """
    x            8-bit rows
    y            8-bit rows
    rows
    count        elements a row
    x_row        bytes
    y_row        bytes
    table        i32 [256]: exp of so many steps below the greatest, in units of 2^-31
    """,
)
"""The integer softmax of `graph.ops`."""

ADD_I32 = Instruction("add_i32", "integers", _BINARY)
SUB_I32 = Instruction("sub_i32", "integers", _BINARY)
MUL_I32 = Instruction("mul_i32", "integers", _BINARY)
FLOOR_DIV_I32 = Instruction("floor_div_i32", "integers", _BINARY)
"""floor(x / other), 0 where the other is 0."""
TO_F32 = Instruction("to_f32", "integers", _UNARY)
"""i32 rows to f32 rows."""

ARG_MAX8 = Instruction(
    "arg_max8",
    "find",
    """
    x            8-bit [outer, count, inner]
    y            i32 [outer, inner]: the first index of the greatest
    outer
    count
    inner
    """,
)

GATHER_ND = Instruction(
    "gather_nd",
    "find",
    """
    x            elements
    other        i32 [rows, depth]: places in x along its first axes
    y            rows of bytes
    rows
    depth        1 to 4
    count        bytes a row
    n0           extent of x along an axis; an index outside is taken to the edge
    n1
    n2
    n3
    s0           bytes between two places along it
    s1
    s2
    s3
    """,
)

RESIZE8 = Instruction(
    "resize8",
    "resize8",
    """
    x            8-bit image
    y            8-bit image
    rows         of y
    cols         of y
    channels
    row_places   i32 [rows, 3]: bytes from x to the row above and to that below, 1024ths of the way between
    col_places   i32 [cols, 3]: alike of columns
    y_row        bytes between rows of y
    y_col        bytes between columns of y
    """,
)
"""By straight lines between the four elements around, as `graph.ops_windows` has it in fixed point."""

_LSTM = """
    x            i32 rows of 4 * units: the gates' share of the input
    other        i32 rows alike: of the last hidden state
    cell         i16 rows of units
    y            rows of units
    rows
    units
    logistic     i16 [65536] by gate + 32768
    tanh         i16 [65536] by gate, or cell, + 32768
"""

LSTM_CELL8 = Instruction(
    "lstm_cell8",
    "lstm8",
    _LSTM
    + """
    shift        bits that a product of two gates has more than the cell
    clip         greatest cell, and least less its sign
    """,
)
"""The next cell (i16) of `graph.ops_recurrent`."""

LSTM_HIDDEN8 = Instruction("lstm_hidden8", "lstm8", _LSTM + _SCALE + _INTEGER_LIMITS)
"""The next hidden state (8-bit) of `graph.ops_recurrent`."""
