"""Where a tensor lies while a program runs: a byte to begin at and a step for each axis, so that a view costs
nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from math import prod

from reflexarc.inference.graph.ir import Shape
from reflexarc.inference.program import Ref

Halo = tuple[int, int, int, int]
"""Rows above, columns left, rows below, columns right."""
NO_HALO: Halo = (0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Value:
    """Element [i, j, ...] lies at `ref` + i * steps[0] + j * steps[1] + ...

    `halo` is how much of an image [N, H, W, C] is surrounded by elements that stand for 0.
    """

    ref: Ref
    shape: Shape
    steps: Shape
    size: int  # bytes of an element
    halo: Halo = NO_HALO

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie in order without gaps."""
        return all(
            n == 1 or step == expected
            for n, step, expected in zip(
                self.shape, self.steps, dense_steps(self.shape, self.size), strict=True
            )
        )

    def reshaped(self, shape: Shape) -> Value | None:
        """The same elements in order as another shape, None where no steps can say that."""
        dims = merged(self.shape, self.steps)
        steps: list[int] = []
        for n in reversed(shape):
            if n == 1:
                steps.append(self.size)
                continue
            if not dims or dims[-1][0] % n:
                return None
            count, step = dims.pop()
            steps.append(step)
            if count > n:
                dims.append((count // n, step * n))
        return replace(self, shape=shape, steps=tuple(reversed(steps)), halo=NO_HALO)

    def transposed(self, perm: Shape) -> Value:
        """Axis i is axis perm[i]."""
        return replace(
            self,
            shape=tuple(self.shape[axis] for axis in perm),
            steps=tuple(self.steps[axis] for axis in perm),
            halo=NO_HALO,
        )

    def sliced(self, axis: int, start: int, count: int) -> Value:
        """`count` elements of an axis from `start` on."""
        shape = tuple(count if i == axis else n for i, n in enumerate(self.shape))
        return replace(self, ref=self.ref + start * self.steps[axis], shape=shape, halo=NO_HALO)

    def broadcast(self, shape: Shape) -> Value:
        """As numpy does: an axis of one element is repeated by a step of 0."""
        missing = len(shape) - len(self.shape)
        old = (1,) * missing + self.shape
        steps = (0,) * missing + self.steps
        repeated = tuple(step if n == m else 0 for n, m, step in zip(old, shape, steps, strict=True))
        return replace(self, shape=shape, steps=repeated, halo=NO_HALO)


def dense_steps(shape: Shape, size: int) -> Shape:
    """Steps of elements in order without gaps."""
    return tuple(prod(shape[i + 1 :]) * size for i in range(len(shape)))


def layout(shape: Shape, halo: Halo, size: int) -> Value:
    """Elements in order, those of an image within its halo; where it begins is yet to be said."""
    if halo == NO_HALO:
        return Value(Ref(None), shape, dense_steps(shape, size), size)
    top, left, bottom, right = halo
    n, h, w, c = shape
    return Value(Ref(None), shape, dense_steps((n, top + h + bottom, left + w + right, c), size), size, halo)


def merged(shape: Shape, *steps: Shape) -> list[tuple[int, ...]]:
    """The fewest axes, as (count, step in each of `steps`), that go through the same elements in the same
    order."""
    dims: list[tuple[int, ...]] = []
    for n, *each in zip(shape, *steps, strict=True):
        if n == 1:
            continue
        if dims and all(outer == n * inner for outer, inner in zip(dims[-1][1:], each, strict=True)):
            dims[-1] = (dims[-1][0] * n, *each)
        else:
            dims.append((n, *each))
    return dims


@dataclass(frozen=True, slots=True)
class Rows:
    """Values of one shape as rows of consecutive elements, `count` in each.

    The i-th value begins at `refs[i]`, and `steps[i]` is the bytes between its rows.
    """

    refs: tuple[Ref, ...]
    rows: int
    count: int
    steps: tuple[int, ...]


def is_in_rows(value: Value) -> bool:
    """Whether the elements lie in runs, in order."""
    dims = merged(value.shape, value.steps)
    return not dims or dims[-1][1] == value.size


def rows(*values: Value) -> list[Rows] | None:
    """Values of one shape as sets of rows that together are all of them, None where one is not in rows."""
    dims = merged(values[0].shape, *(v.steps for v in values))
    count = 1
    if dims and all(step == v.size for step, v in zip(dims[-1][1:], values, strict=True)):
        count = dims.pop()[0]
    elif dims and not all(is_in_rows(v) for v in values):
        return None
    inner = dims.pop() if dims else (1, *(count * v.size for v in values))
    found = []
    for index in product(*(range(n) for n, *_ in dims)):
        at = [sum(i * dim[k] for i, dim in zip(index, dims, strict=True)) for k in range(1, len(values) + 1)]
        refs = tuple(v.ref + offset for v, offset in zip(values, at, strict=True))
        found.append(Rows(refs, inner[0], count, tuple(inner[1:])))
    return found
