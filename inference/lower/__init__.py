"""From a graph to a program: a lowering an operation, each a few lines that write a few steps."""

from __future__ import annotations

from dataclasses import dataclass

from reflexarc.inference.graph.ir import Graph, Tensor
from reflexarc.inference.isa import Tier
from reflexarc.inference.lower import (
    conv,
    elementwise,
    gather,
    pool,
    quantize,
    recurrent,
    reduce,
    resize,
    rowwise,
    shape,
)
from reflexarc.inference.lower.context import LOWERINGS, Context
from reflexarc.inference.lower.value import NO_HALO, Halo, Value
from reflexarc.inference.program import Program, ProgramError, finish

__all__ = [
    "LOWERINGS",
    "Lowered",
    "conv",
    "elementwise",
    "gather",
    "lower",
    "pool",
    "quantize",
    "recurrent",
    "reduce",
    "resize",
    "rowwise",
    "shape",
]


@dataclass(frozen=True)
class Port:
    """A tensor that is written or read from outside, and where it lies."""

    tensor: Tensor
    value: Value


@dataclass(frozen=True)
class Lowered:
    """A program and its ports; `raws[i]` is the 8-bit tensor that output i was computed from by dequantize
    and softmax.

    `tensors` are all of the graph that lie somewhere; only if lowered with `keep` does each hold its elements
    after a run.
    """

    program: Program
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    raws: tuple[Port | None, ...]
    tensors: dict[str, Port]


def lower(graph: Graph, tier: Tier, *, keep: bool = False) -> Lowered:
    """Lower an optimized graph for a tier; `ProgramError` names all operations that have no lowering.

    With `keep` no buffer is used again, so that every tensor can be looked at after a run.
    """
    if missing := sorted({node.op for node in graph.nodes} - set(LOWERINGS)):
        raise ProgramError(f"model {graph.name!r} needs operations that are missing: {', '.join(missing)}")
    context = Context(graph, tier, _halos(graph))
    for name in graph.inputs:
        context.values[name] = context.new(name, context.tensor(name).shape, context.halos.get(name, NO_HALO))
    for node in graph.nodes:
        LOWERINGS[node.op](context, node)
    _keep(context)

    def port(name: str) -> Port:
        return Port(context.tensor(name), context.value(name))

    inputs = tuple(port(name) for name in graph.inputs)
    outputs = tuple(Port(context.tensor(n), context.dense(n, context.value(n))) for n in graph.outputs)
    raws = tuple(port(raw) if raw else None for raw in (_raw(graph, name) for name in graph.outputs))
    alive = [p.value.ref for p in (*outputs, *(r for r in raws if r))]
    program = finish(context.listing, [p.value.ref for p in inputs], alive, keep=keep)
    tensors = {name: port(name) for name in context.values}
    return Lowered(program, inputs, outputs, raws, tensors)


def _keep(context: Context) -> None:
    """Copy each output that is a state to the input it will be read from."""
    graph = context.graph
    states = [(context.value(state.output), context.value(state.input)) for state in graph.states]
    buffers = {to.ref.buffer for _, to in states}
    moved = [
        (context.dense(graph.states[i].output, x, always=x.ref.buffer in buffers), to)
        for i, (x, to) in enumerate(states)
    ]
    for x, to in moved:
        context.copy(x, to)


def _halos(graph: Graph) -> dict[str, Halo]:
    """What each tensor must be surrounded by for the convolutions that read it."""
    halos: dict[str, Halo] = {}
    for node in reversed(graph.nodes):
        name = node.inputs[0]
        wanted = halos.get(node.outputs[0], NO_HALO) if node.op == "flip" else NO_HALO
        if node.op == "conv":
            top, left, bottom, right = node.integers("pads")
            wanted = top, left, bottom, right
        if any(wanted):
            a, b, c, d = (max(x, y) for x, y in zip(halos.get(name, NO_HALO), wanted, strict=True))
            halos[name] = (a, b, c, d)
    return halos


def _raw(graph: Graph, name: str) -> str | None:
    """The 8-bit tensor behind a float output, through softmax, dequantize and changes of shape."""
    makers = {node.outputs[0]: node for node in graph.nodes}
    while graph.tensors[name].dtype not in ("i8", "u8"):
        node = makers.get(name)
        if node is None or node.op not in ("softmax", "dequantize", "reshape", "transpose"):
            return None
        name = node.inputs[0]
    return name
