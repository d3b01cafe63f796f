"""From an imported graph to one that can be lowered, in small steps: one idea a file, each graph to graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from reflexarc.inference.graph.edit import MAX_MADE, constant_bytes
from reflexarc.inference.graph.ir import Graph, ModelError
from reflexarc.inference.graph.ops import OPS, check_ops
from reflexarc.inference.graph.passes.absorb import absorb
from reflexarc.inference.graph.passes.activations import fuse_activations, recognise_silu
from reflexarc.inference.graph.passes.channels_last import channels_last
from reflexarc.inference.graph.passes.fold_affine import fold_affine
from reflexarc.inference.graph.passes.fold_constants import dequantize_constants, fold_constants
from reflexarc.inference.graph.passes.fold_pad import fold_pad
from reflexarc.inference.graph.passes.integer import integer
from reflexarc.inference.graph.passes.lookup import fold_clamps, lookup
from reflexarc.inference.graph.passes.narrow import narrow
from reflexarc.inference.graph.passes.signed import signed
from reflexarc.inference.graph.passes.sink_dequantize import sink_dequantize
from reflexarc.inference.graph.passes.tabulate import tabulate

PASSES: tuple[Callable[[Graph], Graph], ...] = (
    signed,
    fold_constants,
    tabulate,
    fold_pad,
    channels_last,
    fold_affine,
    recognise_silu,
    sink_dequantize,
    integer,
    lookup,
    fold_clamps,
    dequantize_constants,
    fold_affine,
    fuse_activations,
    narrow,
    channels_last,
    absorb,
)


def steps(graph: Graph) -> Iterator[tuple[str, Graph]]:
    """Each pass's name and the graph after it, which is checked."""
    limit = MAX_MADE + 4 * constant_bytes(graph)
    for step in PASSES:
        graph = step(graph)
        check_ops(graph)
        if constant_bytes(graph) > limit:
            raise ModelError(
                f"{constant_bytes(graph)} bytes of constants after {step.__name__}, at most {limit}"
            )
        yield step.__name__, graph


def optimize(graph: Graph) -> Graph:
    """The graph in operations that have kernels; `ModelError` naming all that have none."""
    for _, after in steps(graph):
        graph = after
    missing = Counter(node.op for node in graph.nodes if not OPS[node.op].lowered)
    if missing:
        listed = ", ".join(f"{op} ({count})" for op, count in sorted(missing.items()))
        raise ModelError(f"operations that cannot be run: {listed}")
    return graph
