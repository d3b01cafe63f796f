"""See the node work on a real recording.

A smartwatch recording of a person the network was not trained on is played over ZeroMQ into a node that runs
as a user would start it (configs/exosuit.toml: gate and one worker, loopback only). The screen shows which
shoulder exercise is recognised and the assist torque that the node commands, beside its limits and state; at
the end stands the account: decisions against the recording's labels, every frame, latency, memory, time to
ready.

The exit code is 0 only if the decisions meet the accuracy stated for this recording and nothing was lost.

examples:
  reflexarc demo                 five times as fast as it happened
  reflexarc demo --speed 1       as it happened, two minutes
  reflexarc demo --json          one JSON object on the last line
"""

import argparse
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from rich.console import Console

from reflexarc.configs.exosuit import STATED_ACCURACY
from reflexarc.node.clock import SECOND
from reflexarc.node.config.load import load
from reflexarc.node.config.schema import Config
from reflexarc.node.demo.score import Score, series_of
from reflexarc.node.demo.screen import Lines, Panelled, Screen
from reflexarc.node.demo.show import Outcome, Show
from reflexarc.node.log import read_log


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("--speed", type=float, default=5.0, metavar="X", help="times real time (default: 5)")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Play; 0 where everything was as it should be."""
    if not 0.1 <= args.speed <= 20:
        raise ValueError(f"--speed: {args.speed:g} is not within 0.1 to 20")
    configs = Path(str(files("reflexarc.configs")))
    path, recording = configs / "exosuit.toml", configs / "exosuit" / "exosuit.mcap"
    config = load(path)
    _build_kernels(config)
    entries, _ = read_log(recording)
    score = Score(series_of(entries), _span_ns(config))
    outcome = Show(config, path, recording, args.speed, score).run(_screen(args.json))
    good = outcome.whole and outcome.accuracy >= STATED_ACCURACY
    if args.json:
        print(json.dumps(outcome.to_map()))
    else:
        print(_summary(outcome, good))
    return 0 if good else 1


def _span_ns(config: Config) -> int:
    """From the first sample of a window to its last."""
    window = next(iter(config.pipelines.values())).window
    return round((window.length - 1) / config.streams[window.stream].rate_hz * SECOND)


def _build_kernels(config: Config) -> None:
    """Have what is missing built, with its progress shown: nothing compiles once the node runs."""
    models = [f"--model={pipeline.model}" for pipeline in config.pipelines.values()]
    line = [sys.executable, "-m", "reflexarc.node.cli", "build-kernels", *models]
    if subprocess.run(line, stdout=subprocess.DEVNULL, check=False).returncode:
        raise RuntimeError("the kernels could not be built")


def _screen(machine_readable: bool) -> Screen:
    console = Console()
    if machine_readable:
        return Lines(sys.stderr)
    return Panelled(console) if console.is_terminal else Lines(sys.stdout)


def _summary(outcome: Outcome, good: bool) -> str:
    frames, latency, memory = outcome.frames, outcome.latency_ms, outcome.rss_mb
    dropped = frames["dropped"] or "none"
    return "\n".join(
        (
            f"decisions  {outcome.decisions}; of {outcome.judged} with a label {outcome.accuracy:.3f} right "
            f"(stated: at least {STATED_ACCURACY:.3f})",
            f"frames     {outcome.sent} sent; received {frames['received']} = "
            f"processed {frames['processed']} + dropped {dropped} + queued {frames['queued']}",
            f"latency    sample to command p50 {latency['p50']:.2f} ms, p99 {latency['p99']:.2f} ms, "
            f"max {latency['max']:.2f} ms; {outcome.commands} commands",
            f"memory     gate {memory['gate']:.1f} MiB, worker {memory['worker']:.1f} MiB",
            f"ready      after {outcome.ready_s:.2f} s",
            "all is as it should be" if good else "NOT as it should be",
        )
    )
