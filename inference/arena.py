"""Where each buffer of a program lies in its arena: buffers whose lives do not meet share bytes.

The lives are known before anything runs, so the plan is exact. Buffers are placed from the largest to the
smallest, each at the lowest offset that is free of all those placed before it whose life meets its own
(greedy by size; Pisarchyk and Lee, "Efficient memory management for deep neural net inference", 2020).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGN = 64


@dataclass(frozen=True, slots=True)
class Buffer:
    """Bytes that hold a tensor, slack included, from the step that first names them to the one that last
    does."""

    name: str
    nbytes: int
    first: int
    last: int

    def meets(self, other: Buffer) -> bool:
        """Whether both are alive in some step."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True, slots=True)
class Placement:
    """Offsets of the buffers in order, the bytes of them all, and the least bytes any placement could
    need."""

    offsets: tuple[int, ...]
    nbytes: int
    bound: int


def aligned(nbytes: int) -> int:
    """The next multiple of `ALIGN`."""
    return -(-nbytes // ALIGN) * ALIGN


def place(buffers: Sequence[Buffer]) -> Placement:
    """Offsets for buffers, multiples of `ALIGN`, such that no two that meet share a byte."""
    order = sorted(range(len(buffers)), key=lambda i: (-buffers[i].nbytes, buffers[i].first, i))
    offsets: dict[int, int] = {}
    for i in order:
        taken = sorted(
            (offsets[j], offsets[j] + aligned(buffers[j].nbytes))
            for j in offsets
            if buffers[j].meets(buffers[i])
        )
        offset = 0
        for start, end in taken:
            if start - offset >= aligned(buffers[i].nbytes):
                break
            offset = max(offset, end)
        offsets[i] = offset
    total = max((offsets[i] + aligned(b.nbytes) for i, b in enumerate(buffers)), default=0)
    return Placement(tuple(offsets[i] for i in range(len(buffers))), total, _bound(buffers))


def _bound(buffers: Sequence[Buffer]) -> int:
    """The most bytes alive in one step."""
    changes: dict[int, int] = {}
    for buffer in buffers:
        changes[buffer.first] = changes.get(buffer.first, 0) + aligned(buffer.nbytes)
        changes[buffer.last + 1] = changes.get(buffer.last + 1, 0) - aligned(buffer.nbytes)
    alive = most = 0
    for step in sorted(changes):
        alive += changes[step]
        most = max(most, alive)
    return most
