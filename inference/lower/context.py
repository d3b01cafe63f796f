"""What a lowering is given: the graph, the tier, where each tensor lies, and the listing it writes to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import DTYPES, Graph, Node, Shape, Tensor
from reflexarc.inference.instructions import COPY, FILL, TRANSPOSE
from reflexarc.inference.isa import Tier
from reflexarc.inference.lower.value import (
    NO_HALO,
    Halo,
    Rows,
    Value,
    dense_steps,
    is_in_rows,
    layout,
    merged,
    rows,
)
from reflexarc.inference.program import Listing, ProgramError, Ref

PARALLEL_ELEMENTS = 1 << 16
"""Elements from which a step of moving or element-wise work is shared by the threads."""

Lowering = Callable[["Context", Node], None]
LOWERINGS: dict[str, Lowering] = {}


def lowering(*ops: str) -> Callable[[Lowering], Lowering]:
    """Register what writes the steps of some operations."""

    def register(function: Lowering) -> Lowering:
        LOWERINGS.update(dict.fromkeys(ops, function))
        return function

    return register


@dataclass
class Context:
    """The state of one lowering; `values` says where the tensors lie that have been computed, `tables` where
    constants do that several nodes use."""

    graph: Graph
    tier: Tier
    halos: dict[str, Halo]
    listing: Listing = field(default_factory=Listing)
    values: dict[str, Value] = field(default_factory=dict)
    tables: dict[str, Ref] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._readers: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            for name in node.inputs:
                self._readers.setdefault(name, []).append(node)

    def tensor(self, name: str) -> Tensor:
        """A tensor of the graph."""
        return self.graph.tensors[name]

    def value(self, name: str) -> Value:
        """Where a tensor lies; a constant is written to the constants at its first use."""
        if name not in self.values:
            tensor = self.tensor(name)
            if tensor.data is None:
                raise ProgramError(f"tensor {name!r} is used before it is computed")
            data = self.stored(tensor.data)
            steps = dense_steps(tensor.shape, data.itemsize)
            self.values[name] = Value(self.listing.constant(data), tensor.shape, steps, data.itemsize)
        return self.values[name]

    def stored(self, data: NDArray[Any]) -> NDArray[Any]:
        """An array as the kernels hold it (see `instructions`)."""
        if data.dtype == np.int8:
            return (data.view(np.uint8) + np.uint8(self.tier.bias)).astype(np.uint8)
        if data.dtype == np.uint8:
            return (data + np.uint8(self.tier.bias + 128 & 255)).astype(np.uint8)
        return data

    def scale(self, name: str) -> tuple[np.float32, int]:
        """Scale of a tensor, and the value (-128..127) that stands for its 0."""
        tensor = self.tensor(name)
        if tensor.quant is None or tensor.quant.axis is not None:
            raise ProgramError(f"tensor {name!r}: an activation needs one scale")
        offset = 128 if tensor.dtype == "u8" else 0
        return tensor.quant.scale[0], int(tensor.quant.zero_point[0]) - offset

    def output(self, node: Node, fits: Callable[[Value], bool] = is_in_rows) -> Value:
        """A buffer for a node's output, with the halo its readers need, which is filled here.

        Where all that reads the output is a change of shape, the buffer is that of the changed tensor, and
        what is returned is a view of it: the shape is changed as the output is written. `fits` says of a view
        whether the node can write it.
        """
        name = node.outputs[0]
        chain = self._changes(name)
        for end in range(len(chain), -1, -1):
            last = chain[end - 1].outputs[0] if end else name
            shape, halo = self.tensor(last).shape, self.halos.get(last, NO_HALO)
            views = self._undone(last, chain[:end], layout(shape, halo, self._size(last)))
            if views and fits(views[name]):
                ref = self.new(last, shape, halo).ref
                self.values |= {n: replace(view, ref=ref) for n, view in views.items()}
                return self.values[name]
        self.values[name] = self.new(name, self.tensor(name).shape)
        return self.values[name]

    def _changes(self, name: str) -> list[Node]:
        """The reshapes and transpositions that alone read a tensor, one after the other."""
        chain: list[Node] = []
        while name not in self.graph.outputs and len(self._readers.get(name, ())) == 1:
            (node,) = self._readers[name]
            if node.op not in ("reshape", "transpose"):
                break
            chain.append(node)
            name = node.outputs[0]
        return chain

    def _undone(self, last: str, chain: list[Node], value: Value) -> dict[str, Value] | None:
        """The `last` tensor of a chain of changes of shape, and views of it as those before; None where there
        is none."""
        views = {last: value}
        for change in reversed(chain):
            before = change.inputs[0]
            if change.op == "transpose":
                back = tuple(int(axis) for axis in np.argsort(change.integers("perm")))
                view: Value | None = value.transposed(back)
            else:
                view = value.reshaped(self.tensor(before).shape)
            if view is None:
                return None
            views[before] = value = view
        return views

    def new(self, name: str, shape: Shape, halo: Halo = NO_HALO) -> Value:
        """A buffer for a tensor like `name` with a shape and a halo of its own, the halo filled."""
        value = layout(shape, halo, self._size(name))
        if halo == NO_HALO:
            return replace(value, ref=self.listing.buffer(name, prod(shape) * value.size))
        top, left, bottom, right = halo
        n, h, w, _ = shape
        image, row, col, _ = value.steps
        start = self.listing.buffer(name, n * image)
        for i in range(n):
            self.listing.emit(
                FILL,
                y=start + i * image,
                head=top * row + left * col,
                rows=h,
                row=w * col,
                gap=(left + right) * col,
                tail=bottom * row + right * col,
                value=self._zero_byte(name),
            )
        return replace(value, ref=start + top * row + left * col)

    def output_size(self, node: Node) -> int:
        """Bytes of an element of a node's output."""
        return self._size(node.outputs[0])

    def _size(self, name: str) -> int:
        return DTYPES[self.tensor(name).dtype].itemsize

    def _zero_byte(self, name: str) -> int:
        return 0 if self.tensor(name).quant is None else self.scale(name)[1] + self.tier.bias

    def dense(self, name: str, value: Value, *, always: bool = False) -> Value:
        """The value itself where its elements lie in order without gaps, else (or `always`) a copy that
        does."""
        if value.is_dense and not always:
            return value
        copy = self.new(name, value.shape)
        self.copy(value, copy)
        return copy

    def padded(self, name: str, value: Value, halo: Halo) -> Value:
        """The value itself where its channels are consecutive and the halo is there, else a copy with
        both."""
        if value.steps[-1] == value.size and all(a >= b for a, b in zip(value.halo, halo, strict=True)):
            return value
        copy = self.new(name, value.shape, halo)
        self.copy(value, copy)
        return copy

    def as_rows(self, names: Sequence[str], values: Sequence[Value]) -> list[Rows]:
        """Values of one shape as rows, those read copied where they are not in order; the last is written."""
        found = rows(*values)
        if found is None:
            *read, written = values
            found = rows(*(self.dense(n, v) for n, v in zip(names, read, strict=False)), written)
        if found is None:
            raise ProgramError(f"tensor {names[-1]!r} cannot be written in rows")
        return found

    def copy(self, x: Value, y: Value) -> None:
        """Copy elements between values of one shape."""
        parallel = prod(x.shape) >= PARALLEL_ELEMENTS
        if is_in_rows(x) and is_in_rows(y):
            for found in rows(x, y) or ():
                self.listing.emit(
                    COPY,
                    parallel=parallel,
                    x=found.refs[0],
                    y=found.refs[1],
                    rows=found.rows,
                    count=found.count * x.size,
                    x_row=found.steps[0],
                    y_row=found.steps[1],
                )
            return
        dims = merged(x.shape, x.steps, y.steps)
        outer = dims[: max(0, len(dims) - 4)]
        inner = [(1, 0, 0)] * (4 - len(dims)) + list(dims[len(outer) :])
        for index in np.ndindex(*(d[0] for d in outer)):
            at = [sum(i * d[k] for i, d in zip(index, outer, strict=True)) for k in (1, 2)]
            self._transpose(x.ref + at[0], y.ref + at[1], inner, x.size, parallel)

    def _transpose(self, x: Any, y: Any, dims: list[tuple[int, ...]], size: int, parallel: bool) -> None:
        operands: dict[str, int] = {}
        for i, (n, x_step, y_step) in enumerate(dims):
            operands |= {f"n{i}": n, f"s{i}": x_step, f"t{i}": y_step}
        self.listing.emit(TRANSPOSE, kernel=f"transpose{8 * size}", parallel=parallel, x=x, y=y, **operands)
