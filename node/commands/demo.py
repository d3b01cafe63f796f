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

_WHY = {"stall": "the worker stood still, the machine was taken from it"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument(
        "--speed", type=_speed, default=5.0, metavar="X", help="times real time, 0.1 to 20 (default: 5)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Play; 0 where everything was as it should be."""
    configs = Path(str(files("reflexarc.configs")))
    path, recording = configs / "exosuit.toml", configs / "exosuit" / "exosuit.mcap"
    config = load(path)
    _build_kernels(config)
    entries, _ = read_log(recording)
    score = Score(series_of(entries), _span_ns(config))
    try:
        outcome = Show(config, path, recording, args.speed, score).run(_screen(args.json))
    except KeyboardInterrupt:
        print(f"stopped: of {score.judged} decisions with a label {score.accuracy:.3f} were right so far")
        return 130
    faults = _faults(outcome)
    print(json.dumps(outcome.to_map()) if args.json else _summary(outcome, faults))
    return 1 if faults else 0


def _speed(text: str) -> float:
    speed = float(text)
    if not 0.1 <= speed <= 20:
        raise argparse.ArgumentTypeError(f"{text} is not within 0.1 to 20")
    return speed


def _faults(outcome: Outcome) -> list[str]:
    """What was not as it should be."""
    faults = []
    if outcome.accuracy < STATED_ACCURACY:
        faults.append(f"accuracy {outcome.accuracy:.3f} is below {STATED_ACCURACY:.3f}")
    lost = outcome.sent - int(str(outcome.frames["received"]))
    if lost:
        faults.append(f"{lost} frames were not received")
    faults += [f"{count} frames dropped: {_WHY.get(why, why)}" for why, count in outcome.dropped.items()]
    return faults


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


def _summary(outcome: Outcome, faults: list[str]) -> str:
    frames, latency, memory = outcome.frames, outcome.latency_ms, outcome.rss_mb
    dropped = ", ".join(f"{count} {why}" for why, count in outcome.dropped.items()) or "none"
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
            f"NOT as it should be: {'; '.join(faults)}" if faults else "all is as it should be",
        )
    )
