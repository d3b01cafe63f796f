"""Record topics into an MCAP file.

With a configuration, everything the node hears and says is kept: the sensors' topics as they came,
and the node's decision/, control/, trace/ and health/. Without one, give --endpoint. The recorder is
a subscriber like any other; it cannot disturb the node. Payloads are kept as they came (msgpack).

SIGTERM, Ctrl-C and --duration complete the file. A kill -9 loses at most the last second: what is
there replays up to the cut. Recording stops, and says so, when the disk has less than --floor-mb left.

examples:
  reflexarc record node.toml -o monday.mcap
  reflexarc record --endpoint tcp://127.0.0.1:5556 --topic control/ -o commands.mcap --duration 60
"""

import argparse
import json
import signal
import sys
from pathlib import Path

from reflexarc.node.clock import SECOND, now
from reflexarc.node.config.load import load
from reflexarc.node.log import new_file
from reflexarc.node.record import Recorder, Source, sources


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("config", nargs="?", type=Path, metavar="CONFIG", help="the node's configuration")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="the MCAP file")
    parser.add_argument("--force", action="store_true", help="overwrite FILE")
    parser.add_argument(
        "--endpoint", action="append", default=[], metavar="E", help="a publisher; may be repeated"
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="PREFIX", help="only topics that begin so; repeatable"
    )
    parser.add_argument("--duration", type=float, metavar="S", help="stop after this many seconds")
    parser.add_argument(
        "--floor-mb", type=int, default=200, metavar="N", help="MiB of disk to leave free (default: 200)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Record; 1 where the disk ended it."""
    wanted = [Source(endpoint) for endpoint in args.endpoint]
    if args.config is not None:
        wanted = [*sources(load(args.config)), *wanted]
    if not wanted:
        raise ValueError("record: give a configuration or an --endpoint")
    stop: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda received, _: stop.append(received))
    end = None if args.duration is None else now() + int(args.duration * SECOND)
    recorder = Recorder(new_file(args.output, args.force), wanted, args.topic, args.floor_mb << 20)
    recorder.run(lambda: bool(stop) or (end is not None and now() >= end))
    _report(recorder, args)
    if recorder.why:
        print(f"reflexarc: recording stopped: {recorder.why}", file=sys.stderr)
    return 1 if recorder.why else 0


def _report(recorder: Recorder, args: argparse.Namespace) -> None:
    total = recorder.counts.total()
    size = args.output.stat().st_size
    if args.json:
        counts = dict(sorted(recorder.counts.items()))
        print(json.dumps({"messages": total, "bytes": size, "topics": counts, "refused": recorder.refused}))
        return
    for topic, count in sorted(recorder.counts.items()):
        print(f"{count:9d}  {topic}")
    print(f"{total:9d}  messages, {size / 1e6:.1f} MB in {args.output}")
