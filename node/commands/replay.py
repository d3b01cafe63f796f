"""Run a recording through a configuration's pipelines.

The same step as in the live worker, with the log's clock, as fast as it goes, no sockets. It prints a digest
of the decisions, which is the same for every run, thread count and instruction set. Where the log holds the
worker's trace/ topics, the decisions equal the live ones bit for bit in every interval the log holds whole;
it says which those are.

A log that was cut, at whatever byte, replays up to the cut and says so.

examples:
  reflexarc replay monday.mcap --config node.toml
  reflexarc replay monday.mcap --config new.toml -o new.mcap --diff old.mcap    what would have changed
  reflexarc replay monday.mcap --config node.toml --live        publish the frames at their recorded pace
"""

import argparse
import json
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from reflexarc.node import wire
from reflexarc.node.clock import SECOND
from reflexarc.node.config.load import load
from reflexarc.node.config.schema import Config
from reflexarc.node.log import Entry, LogError, LogReader, LogWriter, new_file, topics_of
from reflexarc.node.player import play
from reflexarc.node.replay.diff import Diff
from reflexarc.node.replay.models import Models
from reflexarc.node.replay.replay import Replay
from reflexarc.node.replay.results import Account, Result

SHOWN = 20  # changes and intervals that are listed


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("log", type=Path, metavar="LOG", help="the recording, MCAP")
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="the configuration")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="keep decisions and traces here")
    parser.add_argument("--force", action="store_true", help="overwrite the FILE of -o")
    parser.add_argument("--diff", type=Path, metavar="FILE", help="compare with an earlier run's -o FILE")
    parser.add_argument(
        "--threads", type=int, metavar="N", help="threads of each model, instead of the worker's"
    )
    parser.add_argument("--no-trace", action="store_true", help="go by the log's order, not by its traces")
    parser.add_argument(
        "--live", action="store_true", help="publish the sensors' topics at the recorded pace"
    )
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="with --live: times that pace")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Replay; 1 where decisions differ from the live ones or from --diff's."""
    config = load(args.config)
    reader = LogReader(args.log)
    return _play(args, config, reader) if args.live else _replay(args, config, reader)


def _play(args: argparse.Namespace, config: Config, reader: LogReader) -> int:
    stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stop.append(received))
    sent = play(reader, config, args.speed, lambda: bool(stop), wait_s=60.0)
    if args.json:
        print(json.dumps({"sent": sent, "truncated": reader.truncated}))
    else:
        print(f"{sent} messages sent{_damage(reader)}")
    return 0


def _replay(args: argparse.Namespace, config: Config, reader: LogReader) -> int:
    begin = time.perf_counter()
    if args.output is not None:
        for name, path in (("LOG", args.log), ("--diff", args.diff)):
            if path is not None and args.output.exists() and args.output.samefile(path):
                raise LogError(f"-o: {args.output} is the file of {name}")
        new_file(args.output, args.force)
    with ExitStack() as stack:
        models = stack.enter_context(Models(config, args.threads))
        keep = None if args.output is None else stack.enter_context(LogWriter(args.output))
        diff = None if args.diff is None else Diff(LogReader(args.diff))

        def on_result(result: Result) -> None:
            if keep is not None:
                _write(keep, result)
            if diff is not None:
                diff.take(result)

        traced = [] if args.no_trace else _traced(config, topics_of(args.log))
        replay = Replay(config, models.pipeline, traced, on_result)
        for entry in _with_progress(reader, quiet=args.json):
            replay.feed(entry)
        replay.finish()
    wall = time.perf_counter() - begin
    if diff is not None:
        diff.finish()
    _report(args, replay, reader, diff, wall)
    different = sum(i.different for a in replay.sink.accounts.values() for i in a.intervals)
    return 1 if different or (diff is not None and diff.changed) else 0


def _traced(config: Config, topics: Iterable[str]) -> list[str]:
    held = set(topics)
    return [name for name in config.pipelines if wire.TRACE + name in held]


def _write(log: LogWriter, result: Result) -> None:
    for topic, plain in ((wire.DECISION, result.decision.to_map()), (wire.TRACE, result.trace)):
        name, payload = wire.encode(topic + result.pipeline, plain)
        log.write(name.decode(), result.decision.t, payload)


def _with_progress(reader: LogReader, quiet: bool) -> Iterator[Entry]:
    """The entries, behind a bar on a terminal."""
    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield from reader
        return
    columns = (
        TextColumn("replay"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("", total=reader.size)
        for count, entry in enumerate(reader):
            if count % 1000 == 0:
                progress.update(task, completed=reader.position)
            yield entry


def _report(
    args: argparse.Namespace, replay: Replay, reader: LogReader, diff: Diff | None, wall_s: float
) -> None:
    log_s = (replay.end - replay.begin) / SECOND
    accounts = replay.sink.accounts
    decisions = sum(account.results for account in accounts.values())
    if args.json:
        plain: dict[str, object] = {
            "digest": replay.sink.digest(),
            "decisions": decisions,
            "log_s": round(log_s, 3),
            "wall_s": round(wall_s, 3),
            "truncated": reader.truncated,
            "refused": replay.refused,
            "live": {name: account.live() for name, account in accounts.items() if account.intervals},
        }
        if diff is not None:
            plain["changed"] = diff.changed
        print(json.dumps(plain))
        return
    say: Callable[[str], None] = print
    for name, account in accounts.items():
        say(f"{name}: {account.results} decisions of {account.frames} frames")
        _say_live(account, replay.begin, say)
    if replay.refused:
        say(f"{replay.refused} frames could not be decoded")
    if diff is not None:
        say(f"{diff.changed} of {diff.compared} decisions differ from {args.diff}")
        for line in diff.lines[:SHOWN]:
            say(f"  {line}")
    say(f"digest {replay.sink.digest()}")
    pace = log_s / max(wall_s, 1e-9)
    say(f"{log_s:.1f} s of log in {wall_s:.2f} s, {pace:.0f} times real time{_damage(reader)}")


def _say_live(account: Account, begin: int, say: Callable[[str], None]) -> None:
    """Where the log was whole, and whether the decisions there were those of that day."""
    for each in account.compared[:SHOWN]:
        span = f"{(each.begin - begin) / SECOND:.1f} to {(each.end - begin) / SECOND:.1f} s"
        same = "all as decided live" if not each.different else f"{each.different} DIFFERENT from live"
        say(f"  whole from {span}: {each.decisions} decisions, {same}")
    if account.missing:
        say(f"  {account.missing} frames that the trace names are not in the log")


def _damage(reader: LogReader) -> str:
    return f"; {reader.path} is {reader.damage}" if reader.truncated else ""
