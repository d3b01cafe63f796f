"""A model, loaded and ready to run: a program of prebuilt kernels, its arena, its weights.

All that can be done once is done at load; a run copies the inputs in, makes one call of compiled code, copies
the outputs out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph import files
from reflexarc.inference.graph.ir import DTYPES, Graph
from reflexarc.inference.graph.passes import optimize
from reflexarc.inference.image import ImageStore
from reflexarc.inference.isa import Tier, choose
from reflexarc.inference.lower import Lowered, Port, lower
from reflexarc.inference.memory import Region
from reflexarc.inference.program import MemoryPlan, Program, ProgramError
from reflexarc.inference.team import Team

__all__ = ["MemoryPlan", "Session", "SessionError", "TensorInfo", "plan"]

_TEAM = "team"


class SessionError(ValueError):
    """An input that does not fit the model; says which, what it is and what it must be."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """An input or output; `scale` and `zero_point` are those of an 8-bit tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    scale: float | None
    zero_point: int | None


class _Weights:
    """Packed weights, read-only, one for all sessions of a graph and tier in this process."""

    _all: ClassVar[WeakValueDictionary[tuple[str, str], _Weights]] = WeakValueDictionary()

    def __init__(self, program: Program) -> None:
        self.region = Region(program.memory.weights)
        program.write_constants(self.region.bytes)
        self.region.protect()

    @classmethod
    def of(cls, graph: Graph, program: Program, tier: Tier) -> _Weights:
        """The weights of a program, those of an equal graph where there are some."""
        key = _digest(graph), tier.name
        weights = cls._all.get(key)
        if weights is None:
            weights = cls._all[key] = cls(program)
        return weights


def _digest(graph: Graph) -> str:
    """SHA-256 of a graph with all its constants and scales."""
    digest = hashlib.sha256(repr((graph.nodes, graph.inputs, graph.outputs)).encode())
    for tensor in graph.tensors.values():
        digest.update(f"{tensor.name} {tensor.dtype} {tensor.shape}".encode())
        arrays = [] if tensor.quant is None else [tensor.quant.scale, tensor.quant.zero_point]
        for array in (*arrays, *(() if tensor.data is None else (tensor.data,))):
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def read(model: Path) -> Graph:
    """A model file as an optimized graph; `ModelError` says what is wrong with it."""
    return optimize(files.load(model))


def plan(model: Path, tier: Tier | None = None) -> MemoryPlan:
    """The bytes a model will take, before any is taken."""
    return lower(read(model), tier or choose()).program.memory


def families_of(model: Path, tier: Tier) -> tuple[str, ...]:
    """The kernel families that a session of a model needs on a tier."""
    return (_TEAM, *lower(read(model), tier).program.families)


class Session:
    """A loaded model. One thread at a time may use it."""

    def __init__(
        self,
        graph: Graph,
        *,
        threads: int = 1,
        cores: Collection[int] | None = None,
        spin_us: int = 50,
        images: ImageStore | None = None,
        team: Team | None = None,
        keep: bool = False,
    ) -> None:
        """Load an optimized graph.

        `threads`, `cores` and `spin_us` are as `Team` takes them, unless a `team` is given, which several
        sessions may share. With `keep` every tensor of the graph can be looked at after a run (`tensor`), at
        the price of memory.
        """
        images = images or ImageStore()
        lowered = lower(graph, images.tier, keep=keep)
        program = lowered.program
        self.memory = program.memory
        self.tier = images.tier
        found = images.load([_TEAM, *program.families])
        self._weights = _Weights.of(graph, program, images.tier)
        self._arena = Region(program.memory.arena)
        self._program = Region(program.memory.scratch)
        weights = self._weights.region.address
        code = program.words(
            self._program.address,
            self._arena.address,
            weights,
            lambda family, name: found[family].address(name),
        )
        self._program.bytes[: code.nbytes] = code.view(np.uint8)
        self._program.protect()
        self._own_team = (
            None if team else Team(found[_TEAM], threads if program.parallel else 1, cores, spin_us)
        )
        self._execute = (team or self._own_team).bind(  # type: ignore[union-attr]
            self._program.address, len(program.steps), program.parallel
        )
        self._open(lowered, graph)
        self.reset()

    @classmethod
    def load(
        cls,
        model: Path,
        *,
        threads: int = 1,
        cores: Collection[int] | None = None,
        spin_us: int = 50,
        images: ImageStore | None = None,
        team: Team | None = None,
        keep: bool = False,
    ) -> Session:
        """Load a model file; `ModelError` or `ProgramError` says what is wrong with it."""
        return cls(
            read(model), threads=threads, cores=cores, spin_us=spin_us, images=images, team=team, keep=keep
        )

    def _open(self, lowered: Lowered, graph: Graph) -> None:
        """Make what copies tensors in and out; states are neither inputs nor outputs."""
        starts = {state.input: state.start for state in graph.states}
        kept = {state.output for state in graph.states}
        place = lowered.program.placement.offsets
        bias = self.tier.bias

        def reach(port: Port) -> tuple[Port, NDArray[Any], np.uint8]:
            value, dtype = port.value, DTYPES[port.tensor.dtype]
            if value.ref.buffer is None:
                raise ProgramError(f"tensor {port.tensor.name!r} is a constant")
            offset = place[value.ref.buffer] + value.ref.offset
            stored = np.dtype(np.uint8) if dtype.itemsize == 1 else dtype
            view = self._arena.array(offset, value.shape, value.steps, stored)
            return port, view, np.uint8(bias if dtype == np.int8 else bias ^ 128)

        inputs = [port for port in lowered.inputs if port.tensor.name not in starts]
        found = zip(lowered.outputs, lowered.raws, strict=True)
        outputs = [(port, raw) for port, raw in found if port.tensor.name not in kept]
        self.inputs = [_info(port) for port in inputs]
        self.outputs = [_info(port) for port, _ in outputs]
        self._writers = [_writer(*reach(port)) for port in inputs]
        self._starts = [
            (_writer(*reach(port)), starts[port.tensor.name])
            for port in lowered.inputs
            if port.tensor.name in starts
        ]
        self._readers = [_reader(*reach(port)) for port, _ in outputs]
        self._raw_readers = [raw and _reader(*reach(raw)) for _, raw in outputs]
        self._tensor_readers = {
            name: _reader(*reach(port))
            for name, port in lowered.tensors.items()
            if port.value.ref.buffer is not None
        }

    def run(self, *inputs: NDArray[Any]) -> list[NDArray[Any]]:
        """The outputs for these inputs, as arrays of their own; `SessionError` if an input does not fit."""
        writers = self._writers
        if len(inputs) != len(writers):
            raise SessionError(f"{len(inputs)} inputs given, the model has {len(writers)}")
        for i, x in enumerate(inputs):
            writers[i](x)
        self._execute()
        return [read() for read in self._readers]

    def reset(self) -> None:
        """Begin anew what the model keeps from one run to the next."""
        for write, start in self._starts:
            write(start)

    def raw(self, i: int = 0) -> NDArray[Any] | None:
        """The 8-bit tensor that output i of the last run was computed from, None where there is none."""
        read = self._raw_readers[i]
        return read() if read else None

    def tensor(self, name: str) -> NDArray[Any]:
        """A tensor of the last run by its name in the graph; only a session that keeps them all has it."""
        return self._tensor_readers[name]()

    @property
    def tensors(self) -> list[str]:
        """Names that `tensor` knows."""
        return list(self._tensor_readers)

    def close(self) -> None:
        """End the threads of a session that has its own."""
        if self._own_team:
            self._own_team.close()


def _info(port: Port) -> TensorInfo:
    tensor = port.tensor
    scale = zero = None
    if tensor.quant is not None:
        scale, zero = float(tensor.quant.scale[0]), int(tensor.quant.zero_point[0])
    return TensorInfo(tensor.name, tensor.shape, tensor.dtype, scale, zero)


def _writer(port: Port, view: NDArray[Any], flip: np.uint8) -> Callable[[NDArray[Any]], None]:
    """A function that copies an array into an input."""
    name, shape, dtype = port.tensor.name, port.tensor.shape, DTYPES[port.tensor.dtype]

    def check(x: NDArray[Any]) -> None:
        if x.dtype != dtype or x.shape != shape:
            raise SessionError(
                f"input {name!r} is {x.dtype} {list(x.shape)}, it must be {dtype} {list(shape)}"
            )

    def write(x: NDArray[Any]) -> None:
        check(x)
        view[...] = x

    def write_8bit(x: NDArray[Any]) -> None:
        check(x)
        np.bitwise_xor(x.view(np.uint8), flip, out=view)

    return write_8bit if dtype.itemsize == 1 else write


def _reader(port: Port, view: NDArray[Any], flip: np.uint8) -> Callable[[], NDArray[Any]]:
    """A function that gives a copy of a tensor."""
    dtype = DTYPES[port.tensor.dtype]

    def read_8bit() -> NDArray[Any]:
        copy: NDArray[Any] = np.bitwise_xor(view, flip).view(dtype)
        return copy

    return read_8bit if dtype.itemsize == 1 else view.copy
