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

from reflexarc.inference.graph.ir import DTYPES, Graph
from reflexarc.inference.graph.onnx import load as load_onnx
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
    """Packed weights, read-only, one for all sessions of a model and tier in this process."""

    _all: ClassVar[WeakValueDictionary[tuple[str, str], _Weights]] = WeakValueDictionary()

    def __init__(self, program: Program) -> None:
        self.region = Region(program.memory.weights)
        program.write_constants(self.region.bytes)
        self.region.protect()

    @classmethod
    def of(cls, program: Program, tier: Tier) -> _Weights:
        """The weights of a program, those already there if their content is the same."""
        digest = hashlib.sha256()
        for data in program.constants:
            digest.update(data.data)
        key = (digest.hexdigest(), tier.name)
        weights = cls._all.get(key)
        if weights is None:
            weights = cls._all[key] = cls(program)
        return weights


def read(model: Path) -> Graph:
    """A model file as an optimized graph; `ModelError` says what is wrong with it."""
    return optimize(load_onnx(model))


def plan(model: Path, tier: Tier | None = None) -> MemoryPlan:
    """The bytes a model will take, before any is taken."""
    return lower(read(model), tier or choose()).program.memory


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
        self._weights = _Weights.of(program, images.tier)
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
        self._open(lowered)

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

    def _open(self, lowered: Lowered) -> None:
        program = lowered.program
        self.inputs = [_info(port) for port in lowered.inputs]
        self.outputs = [_info(port) for port in lowered.outputs]
        self._in = [_Window(port, program, self._arena, self.tier) for port in lowered.inputs]
        self._out = [_Window(port, program, self._arena, self.tier) for port in lowered.outputs]
        self._raw = [port and _Window(port, program, self._arena, self.tier) for port in lowered.raws]
        self._tensors = {
            name: _Window(port, program, self._arena, self.tier)
            for name, port in lowered.tensors.items()
            if port.value.ref.buffer is not None
        }
        self._puts: list[Callable[[NDArray[Any]], None]] = [window.put for window in self._in]
        self._gets: list[Callable[[], NDArray[Any]]] = [window.get for window in self._out]

    def run(self, *inputs: NDArray[Any]) -> list[NDArray[Any]]:
        """The outputs for these inputs, as arrays of their own; `SessionError` if an input does not fit."""
        puts = self._puts
        if len(inputs) != len(puts):
            raise SessionError(f"{len(inputs)} inputs given, the model has {len(puts)}")
        for put, x in zip(puts, inputs, strict=True):
            put(x)
        self._execute()
        return [get() for get in self._gets]

    def raw(self, i: int = 0) -> NDArray[Any] | None:
        """The 8-bit tensor that output i of the last run was computed from, None where there is none."""
        window = self._raw[i]
        return window.get() if window else None

    def tensor(self, name: str) -> NDArray[Any]:
        """A tensor of the last run by its name in the graph; only a session that keeps them all has it."""
        return self._tensors[name].get()

    @property
    def tensors(self) -> list[str]:
        """Names that `tensor` knows."""
        return list(self._tensors)

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


class _Window:
    """A tensor in the arena: `put` and `get` copy its elements in and out."""

    def __init__(self, port: Port, program: Program, arena: Region, tier: Tier) -> None:
        value = port.value
        if value.ref.buffer is None:
            raise ProgramError(f"tensor {port.tensor.name!r} is constant")
        offset = program.placement.offsets[value.ref.buffer] + value.ref.offset
        self._name, self._shape, self._dtype = port.tensor.name, value.shape, DTYPES[port.tensor.dtype]
        self._narrow = value.size == 1
        self._flip = np.uint8(0)
        if self._narrow:
            self._flip = np.uint8(tier.bias if self._dtype == np.int8 else tier.bias + 128 & 255)
        self._view = arena.array(
            offset, value.shape, value.steps, np.dtype(np.uint8) if self._narrow else self._dtype
        )

    def put(self, x: NDArray[Any]) -> None:
        """Copy an array in."""
        if x.dtype != self._dtype or x.shape != self._shape:
            raise SessionError(
                f"input {self._name!r} is {x.dtype} {list(x.shape)}, "
                f"it must be {self._dtype} {list(self._shape)}"
            )
        if self._narrow:
            np.bitwise_xor(x.view(np.uint8), self._flip, out=self._view)
        else:
            self._view[...] = x

    def get(self) -> NDArray[Any]:
        """A copy of the tensor."""
        if self._narrow:
            copy: NDArray[Any] = np.bitwise_xor(self._view, self._flip).view(self._dtype)
            return copy
        return self._view.copy()
