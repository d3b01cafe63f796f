"""Measure speed against the machine's bounds and against peers, as ratios in one run.

suites:
  models   one run of each model, 1 and 2 threads, in microseconds; with --peers beside ONNX Runtime and
           OpenVINO where they are installed (pip install 'reflexarc[peers]'), interleaved
  node     8 streams of 1 kHz, 8 models every 20 ms, 8 channels of 50 Hz: latency in ms, cores, losses
  replay   replay of an hour of the demo's pipeline on one core, in seconds

Models of your own: name them with --model. REFLEXARC_ISA forces an instruction set.

examples:
  reflexarc bench models --peers
  reflexarc bench node --seconds 60 --json
"""

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from reflexarc.bench.machine import Machine
from reflexarc.bench.rows import Row, summary


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("suite", choices=("models", "node", "replay"), metavar="SUITE", help="see above")
    parser.add_argument("--peers", action="store_true", help="run the other engines too")
    parser.add_argument("--model", type=Path, action="append", default=[], metavar="FILE", help="a model")
    parser.add_argument(
        "--seconds", type=float, metavar="S", help="of the node's load (60), of the log (3600)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Measure and show; 1 where the node lost something."""
    machine = Machine.measure()
    rows = []
    if not args.json:
        print(_machine(machine))
    for row in _suite(args, machine):
        rows.append(row)
        if not args.json:
            print(_line(row), flush=True)
    if args.json:
        maps = [row.to_map() for row in rows]
        print(json.dumps({"machine": machine.to_map(), "rows": maps, "summary": summary(rows)}))
    else:
        print(json.dumps(summary(rows)))
    return 1 if any(row.name == "lost" and row.ours["p50"] for row in rows) else 0


def _suite(args: argparse.Namespace, machine: Machine) -> Iterable[Row]:
    if args.suite == "models":
        from reflexarc.bench import models

        return models.run(machine, args.model or list(models.known()), args.peers)
    if args.suite == "node":
        from reflexarc.bench import node

        return node.run(60.0 if args.seconds is None else args.seconds)
    from reflexarc.bench import replay

    return replay.run(3600.0 if args.seconds is None else args.seconds)


def _machine(machine: Machine) -> str:
    reads = ", ".join(f"{rate:.1f}" for rate in machine.read_gb_s.values())
    peaks = ", ".join(f"{rate:.0f}" for rate in machine.int8_gops.values())
    return f"{machine.cpu}, {machine.isa}, {machine.cores} cores; read {reads} GB/s; 8-bit {peaks} GOPS"


def _line(row: Row) -> str:
    ours = ", ".join(f"{name} {number:.4g}" for name, number in row.ours.items())
    peers = "".join(f"; {name} p50 {numbers['p50']:.4g}" for name, numbers in row.peers.items())
    ratio = "" if row.ratio is None else f"; ratio to the best {row.ratio:.3f}"
    share = "" if row.share_of_limit is None else f"; {row.share_of_limit:.0%} of the limit"
    return f"{row.name}, {row.threads} thread{'s'[: row.threads > 1]}: {ours}{peers}{ratio}{share}"
