"""Show what is in a model: operations, shapes, quantization, work, memory.

The table lists the operations that would run, after the model has been rewritten for this engine: each with
its result's type, shape and quantization, the bytes of its weights and its multiply-accumulates (MACs).
Quantization is scale and zero point; "per channel" is that of the weights. Below stand the bytes the model
takes once loaded, on this machine's instruction set: weights as packed for it, arena (all results, sharing
room; and the least any arrangement of them takes), scratch (the program).

With --passes the graph is printed as it was read and after each pass that rewrote it.

Exit code 0, or 2 with one line that says why the model cannot be read or run.

examples:
  reflexarc inspect model.onnx
  reflexarc inspect model.onnx --passes | less
  reflexarc inspect model.onnx --json | tail -n 1 | jq .memory
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reflexarc.inference.graph.ir import Graph, Node, Tensor


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("model", type=Path, metavar="MODEL", help="the model, an .onnx or .tflite file")
    parser.add_argument("--passes", action="store_true", help="the graph after each pass")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Read, rewrite and plan the model, and show it; errors are the caller's to show."""
    from reflexarc.inference.graph import files, passes
    from reflexarc.inference.isa import choose
    from reflexarc.inference.lower import lower

    imported = files.load(args.model)
    if args.passes:
        _show_passes(imported)
    graph = passes.optimize(imported)
    tier = choose()
    memory = lower(graph, tier).program.memory
    report = describe(graph) | {
        "model": str(args.model),
        "file_bytes": args.model.stat().st_size,
        "isa": tier.name,
        "memory": {
            "weights": memory.weights,
            "arena": memory.arena,
            "arena_bound": memory.bound,
            "scratch": memory.scratch,
        },
    }
    if args.json:
        print(json.dumps(report))
    else:
        show(report)
    return 0


def describe(graph: Graph) -> dict[str, Any]:
    """The graph as plain data: inputs, outputs, operations, and their sums."""
    operations = [_operation(graph, node) for node in graph.nodes]
    return {
        "name": graph.name,
        "inputs": [_tensor(graph.tensors[name]) for name in graph.inputs],
        "outputs": [_tensor(graph.tensors[name]) for name in graph.outputs],
        "operations": operations,
        "weights": sum(operation["weights"] for operation in operations),
        "macs": sum(operation["macs"] for operation in operations),
    }


def show(report: dict[str, Any]) -> None:
    """Print a table of the operations, the inputs and outputs above it, the sums below."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    console.print(f"{report['model']}: {report['name']}, {report['file_bytes']:,} bytes", markup=False)
    for kind in ("inputs", "outputs"):
        for tensor in report[kind]:
            line = f"  {kind[:-1]:6} {tensor['name']}: {_type(tensor)} {_quant(tensor)}"
            console.print(line.rstrip(), markup=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in ("operation", "result", "quantization", "weights", "bytes", "MACs"):
        table.add_column(title, justify="right" if title in ("bytes", "MACs") else "left")
    for row in report["operations"]:
        cells = (row["op"], _type(row), _quant(row), row["weights_type"])
        table.add_row(
            *cells, f"{row['weights']:,}" if row["weights"] else "", f"{row['macs']:,}" if row["macs"] else ""
        )
    table.add_section()
    table.add_row("total", "", "", "", f"{report['weights']:,}", f"{report['macs']:,}")
    console.print()
    console.print(table)
    memory = report["memory"]
    parts = "weights {weights:,}, arena {arena:,} (at least {arena_bound:,}), scratch {scratch:,} bytes"
    console.print(f"\nmemory ({report['isa']}): {parts.format(**memory)}", markup=False)


def _show_passes(graph: Graph) -> None:
    from reflexarc.inference.graph.passes import steps

    print(f"as read: {len(graph.nodes)} operations\n{graph}\n")
    before = str(graph)
    for name, after in steps(graph):
        text = str(after)
        print(f"{name}: {'no change' if text == before else f'{len(after.nodes)} operations'}")
        print("" if text == before else f"{text}\n", end="")
        before = text


def _operation(graph: Graph, node: Node) -> dict[str, Any]:
    from reflexarc.inference.graph.ops import macs

    constants = [graph.tensors[name] for name in node.inputs if graph.tensors[name].data is not None]
    weights = constants[0] if constants else None
    return _tensor(graph.tensors[node.outputs[0]]) | {
        "op": node.op,
        "layer": node.name,
        "attributes": dict(node.attrs),
        "weights": sum(tensor.nbytes for tensor in constants),
        "weights_type": "" if weights is None else f"{_type(_tensor(weights))}{_channels(weights)}",
        "macs": macs(graph, node),
    }


def _tensor(tensor: Tensor) -> dict[str, Any]:
    quant = tensor.quant
    one = quant is not None and quant.axis is None
    return {
        "name": tensor.name,
        "dtype": tensor.dtype,
        "shape": list(tensor.shape),
        "scale": float(quant.scale[0]) if quant and one else None,
        "zero_point": int(quant.zero_point[0]) if quant and one else None,
    }


def _channels(tensor: Tensor) -> str:
    return " per channel" if tensor.quant is not None and tensor.quant.axis is not None else ""


def _type(tensor: dict[str, Any]) -> str:
    return f"{tensor['dtype']} {'x'.join(map(str, tensor['shape'])) or 'scalar'}"


def _quant(tensor: dict[str, Any]) -> str:
    return "" if tensor["scale"] is None else f"{tensor['scale']:.5g} from {tensor['zero_point']}"
