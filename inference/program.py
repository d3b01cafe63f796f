"""A lowered model: its steps, the buffers they touch, its constants; and the words of it once addresses are
known.

`Listing` is what the lowering writes. Its operands are numbers, or `Ref`s to bytes of a buffer or of the
constants. A buffer lives from the first step that names it to the last, so the memory a program needs is
known to the byte before any is taken.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.arena import Buffer, Placement, aligned, place
from reflexarc.inference.instructions import ALONE, JOIN, SLACK, WORD, WORDS, Instruction

MAX_ARENA = 1 << 31
"""Most bytes of a program's arena, and of its constants."""


class ProgramError(ValueError):
    """A model that cannot be lowered; says what and the limit."""


@dataclass(frozen=True, slots=True)
class Ref:
    """A byte of a buffer, or of the constants (`buffer` None)."""

    buffer: int | None
    offset: int = 0

    def __add__(self, offset: int) -> Ref:
        return replace(self, offset=self.offset + offset)


Operand = int | float | Ref


@dataclass(frozen=True, slots=True)
class Step:
    """One instruction: the kernel that runs it, its operands by name, whether it is worth more threads than
    one."""

    instruction: Instruction
    kernel: str
    operands: dict[str, Operand]
    parallel: bool

    def __str__(self) -> str:
        return f"{self.kernel}({', '.join(f'{k}={v}' for k, v in self.operands.items())})"


@dataclass(frozen=True, slots=True)
class MemoryPlan:
    """Bytes a loaded model takes: packed weights (shared), arena, and scratch (the program itself).

    `bound` is the least any arena could have.
    """

    weights: int
    arena: int
    scratch: int
    bound: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.weights + self.arena + self.scratch


@dataclass(frozen=True, slots=True)
class Constant:
    """Bytes at an offset of the constants, and what makes them."""

    offset: int
    nbytes: int
    make: Callable[[], NDArray[np.uint8]]


@dataclass
class Listing:
    """A program as it is written: `buffer` and `constant` give `Ref`s, `emit` adds a step."""

    steps: list[Step] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    constants: list[Constant] = field(default_factory=list)
    constant_bytes: int = 0

    def buffer(self, name: str, nbytes: int) -> Ref:
        """A buffer of `nbytes` and the slack that kernels may read past them."""
        if nbytes > MAX_ARENA:
            raise ProgramError(f"tensor {name!r} needs {nbytes} bytes, at most {MAX_ARENA}")
        self.names.append(name)
        self.sizes.append(nbytes + SLACK)
        return Ref(len(self.names) - 1)

    def constant(self, data: NDArray[Any]) -> Ref:
        """The bytes of an array, shared by all sessions of the model."""
        raw = np.ascontiguousarray(data).view(np.uint8).reshape(-1)
        return self.constant_later(raw.size, lambda: raw)

    def constant_later(self, nbytes: int, make: Callable[[], NDArray[np.uint8]]) -> Ref:
        """As `constant`, of `nbytes` that are made only when they are written to where they will be read."""
        constant = Constant(self.constant_bytes, nbytes, make)
        self.constants.append(constant)
        self.constant_bytes += aligned(nbytes)
        if self.constant_bytes > MAX_ARENA:
            raise ProgramError(f"the weights need {self.constant_bytes} bytes, at most {MAX_ARENA}")
        return Ref(None, constant.offset)

    def emit(
        self, instruction: Instruction, *, kernel: str = "", parallel: bool = False, **operands: Operand
    ) -> None:
        """Add a step; every operand of the instruction must be given."""
        if set(operands) != set(instruction.operands):
            wrong = set(operands) ^ set(instruction.operands)
            raise TypeError(f"{instruction.name}: operands {sorted(wrong)} are missing or unknown")
        self.steps.append(Step(instruction, kernel or instruction.name, operands, parallel))


@dataclass(frozen=True)
class Program:
    """A finished listing: where its buffers lie and how it becomes words."""

    steps: tuple[Step, ...]
    placement: Placement
    constants: tuple[Constant, ...]
    memory: MemoryPlan

    @property
    def families(self) -> list[str]:
        """The kernel families it needs."""
        return sorted({step.instruction.family for step in self.steps})

    @property
    def parallel(self) -> bool:
        """Whether any step is worth more threads than one."""
        return any(step.parallel for step in self.steps)

    def write_constants(self, target: NDArray[np.uint8]) -> None:
        """Make the constants where they will be read, `memory.weights` bytes."""
        for constant in self.constants:
            target[constant.offset : constant.offset + constant.nbytes] = constant.make().reshape(-1)

    def words(
        self, program: int, arena: int, weights: int, kernel: Callable[[str, str], int]
    ) -> NDArray[np.int64]:
        """The instructions, then their blocks, to lie at address `program`; `kernel(family, name)` gives
        addresses."""
        code = np.zeros(self.memory.scratch // WORD, np.int64)
        block = len(self.steps) * WORDS

        def word(step: Step, name: str) -> int:
            value = step.operands[name]
            if isinstance(value, Ref):
                base = weights if value.buffer is None else arena + self.placement.offsets[value.buffer]
                return base + value.offset
            if name in step.instruction.floats:
                return int.from_bytes(struct.pack("<f", value), "little")
            return int(value)

        for i, step in enumerate(self.steps):
            at = i * WORDS
            values = [word(step, name) for name in step.instruction.operands]
            code[at] = kernel(step.instruction.family, step.kernel) | self._flags(i)
            if step.instruction.inline:
                code[at + 1 : at + 1 + len(values)] = values
            else:
                code[at + 1] = program + block * WORD
                code[block : block + len(values)] = values
                block += len(values)
        return code

    def _flags(self, i: int) -> int:
        """Threads meet after a step unless it and the next run on thread 0 alone."""
        alone = not self.steps[i].parallel
        after = i + 1 < len(self.steps) and self.steps[i + 1].parallel
        return (ALONE if alone else 0) | (JOIN if not alone or after else 0)


def finish(listing: Listing, inputs: Sequence[Ref], outputs: Sequence[Ref], *, keep: bool = False) -> Program:
    """Plan the memory of a listing. Inputs are alive from the start, outputs to the end; with `keep` all
    buffers are."""
    end = len(listing.steps)
    lives: dict[int, list[int]] = {}
    for i, step in enumerate(listing.steps):
        for value in step.operands.values():
            if isinstance(value, Ref) and value.buffer is not None:
                lives.setdefault(value.buffer, []).append(i)
    for refs, when in ((inputs, 0), (outputs, end)):
        for ref in refs:
            if ref.buffer is not None:
                lives.setdefault(ref.buffer, []).append(when)
    if keep:
        lives = {i: [0, end] for i in range(len(listing.names))}
    buffers = [
        Buffer(name, size if i in lives else 0, min(lives.get(i, [0])), max(lives.get(i, [0])))
        for i, (name, size) in enumerate(zip(listing.names, listing.sizes, strict=True))
    ]
    placement = place(buffers)
    if placement.nbytes > MAX_ARENA:
        raise ProgramError(f"the arena needs {placement.nbytes} bytes, at most {MAX_ARENA}")
    blocks = sum(len(s.instruction.operands) for s in listing.steps if not s.instruction.inline)
    scratch = (len(listing.steps) * WORDS + blocks) * WORD
    memory = MemoryPlan(listing.constant_bytes, placement.nbytes, scratch, placement.bound)
    return Program(tuple(listing.steps), placement, tuple(listing.constants), memory)
