"""Chains of reshapes and transposes as one value: composed, cancelled, undone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import Any

from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Shape

Perm = tuple[int, ...]
Step = tuple[Shape, Perm]
"""Reshape to these dimensions, then transpose by this permutation."""


@dataclass(frozen=True)
class Movement:
    """How a tensor of shape `base` becomes one of `shape`: the steps, then a reshape.

    A step has no dimension of 1 and no two axes that move as one; steps that cancel are gone. So equal
    movements compare equal, and one without steps is a mere reshape.
    """

    base: Shape
    steps: tuple[Step, ...]
    shape: Shape

    @classmethod
    def none(cls, shape: Shape) -> Movement:
        """The movement that leaves a tensor of that shape as it is."""
        return cls(shape, (), shape)

    @property
    def still(self) -> bool:
        """Whether nothing moves and the shape stays."""
        return not self.steps and self.base == self.shape

    def reshape(self, shape: Shape) -> Movement:
        """This movement, then a reshape."""
        return replace(self, shape=shape)

    def transpose(self, perm: Perm) -> Movement:
        """This movement, then a transpose."""
        shape = tuple(self.shape[axis] for axis in perm)
        steps, new = self.steps, _canonical(self.shape, perm)
        if steps and new:
            joined = _join(steps[-1], new[0])
            steps, new = (steps, new) if joined is None else (steps[:-1], joined)
        return Movement(self.base, (*steps, *new), shape)

    def back(self, due: Movement) -> Movement:
        """This movement, then `due` taken back."""
        result = self
        for dims, perm in reversed(due.steps):
            result = result.reshape(tuple(dims[axis] for axis in perm)).transpose(_inverse(perm))
        return result.reshape(due.base)

    def apply(self, data: NDArray[Any]) -> NDArray[Any]:
        """Do it to an array of shape `base`."""
        for dims, perm in self.steps:
            data = data.reshape(dims).transpose(perm)
        return data.reshape(self.shape)

    def undo(self, data: NDArray[Any]) -> NDArray[Any] | None:
        """An array that broadcasts to `shape` as one that broadcasts to `base`; None if it cannot be."""
        perm = tuple(range(len(self.base))) if not self.steps else self.direct()
        if perm is None or data.ndim > len(self.shape):
            return None
        moved = tuple(self.base[axis] for axis in perm)
        if _real(moved) != _real(self.shape):
            return None
        dims = (1,) * (len(self.shape) - data.ndim) + data.shape
        own = iter([dim for dim, full in zip(dims, self.shape, strict=True) if full != 1])
        return data.reshape([1 if dim == 1 else next(own) for dim in moved]).transpose(_inverse(perm))

    def direct(self) -> Perm | None:
        """The permutation of `base` that, with a reshape after it, is all of this; None if there is none."""
        if len(self.steps) != 1:
            return None
        dims, perm = self.steps[0]
        groups = _groups(self.base, dims)
        if groups is None:
            return None
        order = iter([axis for group in perm for axis in groups[group]])
        units = iter([axis for axis, dim in enumerate(self.base) if dim == 1])
        count = self.base.count(1)
        if len(self.base) == len(self.shape) and self.shape.count(1) == count:
            return tuple(next(units) if dim == 1 else next(order) for dim in self.shape)
        return (*units, *order)


def _real(dims: Shape) -> Shape:
    return tuple(dim for dim in dims if dim != 1)


def _inverse(perm: Perm) -> Perm:
    result = [0] * len(perm)
    for index, axis in enumerate(perm):
        result[axis] = index
    return tuple(result)


def _canonical(dims: Shape, perm: Perm) -> tuple[Step, ...]:
    """The step without dimensions of 1, axes that stay neighbours merged; none if nothing moves."""
    runs: list[list[int]] = []
    real = [axis for axis in range(len(dims)) if dims[axis] != 1]
    order = {axis: index for index, axis in enumerate(real)}
    for axis in (order[axis] for axis in perm if dims[axis] != 1):
        if runs and axis == runs[-1][-1] + 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    if len(runs) < 2:
        return ()
    by_input = sorted(range(len(runs)), key=lambda index: runs[index][0])
    sizes = tuple(prod(dims[real[axis]] for axis in runs[index]) for index in by_input)
    return ((sizes, _inverse(tuple(by_input))),)


def _join(first: Step, second: Step) -> tuple[Step, ...] | None:
    """Two steps as one, or as none if they cancel; None where their dimensions have no common refinement."""
    dims, perm = first
    middle = tuple(dims[axis] for axis in perm)
    parts = _refine(middle, second[0])
    if parts is None:
        return None
    of_middle, of_second, sizes = parts
    labels: dict[int, list[int]] = {}  # axis of `dims` -> indices into `sizes`
    for position, axis in enumerate(perm):
        labels[axis] = of_middle[position]
    flat = [index for axis in range(len(dims)) for index in labels[axis]]  # the order of the input
    rank = {index: position for position, index in enumerate(flat)}
    moved = tuple(rank[index] for axis in second[1] for index in of_second[axis])
    return _canonical(tuple(sizes[index] for index in flat), moved)


def _refine(a: Shape, b: Shape) -> tuple[list[list[int]], list[list[int]], list[int]] | None:
    """Split the axes of a and of b until both are the same list of sizes; which parts each axis has."""
    ends_a, ends_b = _ends(a), _ends(b)
    ends = sorted(set(ends_a) | set(ends_b))
    sizes = []
    for before, end in zip([1, *ends], ends, strict=False):
        if end % before:
            return None
        sizes.append(end // before)
    return _parts(ends_a, ends), _parts(ends_b, ends), sizes


def _ends(dims: Shape) -> list[int]:
    return [prod(dims[: index + 1]) for index in range(len(dims))]


def _parts(own: list[int], ends: list[int]) -> list[list[int]]:
    result: list[list[int]] = []
    at = 0
    for end in own:
        stop = ends.index(end) + 1
        result.append(list(range(at, stop)))
        at = stop
    return result


def _groups(base: Shape, dims: Shape) -> list[list[int]] | None:
    """Which axes of `base`, dimensions of 1 left out, make up each of `dims`."""
    result: list[list[int]] = []
    axes = iter([axis for axis, dim in enumerate(base) if dim != 1])
    for dim in dims:
        group, size = [], 1
        while size < dim:
            axis = next(axes, None)
            if axis is None:
                return None
            group.append(axis)
            size *= base[axis]
        if size != dim:
            return None
        result.append(group)
    return result
