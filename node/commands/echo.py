"""Print the messages of a topic as they arrive.

TOPIC is a prefix: `control/` is every channel, an empty string everything. With --config the node's own
topics and all its sensors' are heard, with --endpoint a publisher's. The default is the default node's,
tcp://127.0.0.1:5556. Long lists and binary data are shown by their size; --json keeps them (binary as base64,
numbers that are not finite as strings), one object a line: {"topic", "t", "map"}, `t` the UNIX ns of receipt.

Messages that are not two parts with a msgpack map are counted, and named on standard error at the end.

examples:
  reflexarc echo control/
  reflexarc echo imu/wrist --config node.toml -n 1
  reflexarc echo health/ --json | jq .map
"""

import argparse
import base64
import json
import math
import select
import sys
from collections import Counter
from pathlib import Path

import zmq

from reflexarc.node import wire
from reflexarc.node.clock import SECOND, now, wall
from reflexarc.node.config.load import load
from reflexarc.node.sockets import Sockets, receive

DEFAULT = "tcp://127.0.0.1:5556"
LARGEST = 16 << 20
LISTED = 8  # numbers of a list that are shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("topic", metavar="TOPIC", help="the beginning of the topics to print")
    parser.add_argument("--config", type=Path, metavar="FILE", help="hear this node and its sensors")
    parser.add_argument(
        "--endpoint", action="append", default=[], metavar="E", help=f"a publisher; repeatable ({DEFAULT})"
    )
    parser.add_argument("-n", "--count", type=int, metavar="N", help="end after N messages")
    parser.add_argument("--timeout", type=float, metavar="S", help="end after S seconds, 1 if N are missing")
    parser.add_argument("--json", action="store_true", help="one JSON object a message")


def run(args: argparse.Namespace) -> int:
    """Print until there are enough, or for ever."""
    deadline = None if args.timeout is None else now() + round(args.timeout * SECOND)
    left = math.inf if args.count is None else args.count
    refused: Counter[str] = Counter()
    with Sockets() as sockets:
        endpoints = _endpoints(args)
        heard = [
            sockets.subscriber(endpoint, [args.topic], max_bytes=LARGEST, watched=True)
            for endpoint in endpoints
        ]
        try:
            while left > 0 and (deadline is None or now() < deadline):
                wait = 0.1 if deadline is None else min(0.1, max(0, deadline - now()) / SECOND)
                select.select([socket.FD for socket in heard], [], [], wait)
                for socket in heard:
                    sockets.watch(socket).update()
                    left -= _drain(socket, left, args.json, refused)
        finally:
            for reason, count in refused.items():
                print(f"reflexarc echo: {count} messages refused ({reason})", file=sys.stderr)
    return 1 if args.count is not None and left > 0 else 0


def _drain(socket: zmq.Socket[bytes], most: float, as_json: bool, refused: Counter[str]) -> int:
    """Print what waits in a socket, at most so many; gives how many were printed."""
    printed = 0
    while printed < most and (parts := receive(socket)) is not None:
        try:
            topic, plain = wire.decode(parts, LARGEST, flat=False)
        except wire.Refused as error:
            refused[error.reason] += 1
            continue
        print(_json(topic, plain) if as_json else _text(topic, plain), flush=True)
        printed += 1
    return printed


def _endpoints(args: argparse.Namespace) -> list[str]:
    endpoints: list[str] = list(args.endpoint)
    if args.config is not None:
        config = load(args.config)
        endpoints += [config.node.publish, *(stream.endpoint for stream in config.streams.values())]
    return list(dict.fromkeys(endpoints or [DEFAULT]))


def _json(topic: str, plain: dict[str, object]) -> str:
    return json.dumps({"topic": topic, "t": wall(), "map": _strict(plain)}, allow_nan=False)


def _strict(value: object) -> object:
    """A value as JSON has it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {str(key): _strict(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_strict(item) for item in value]
    return value


def _text(topic: str, plain: dict[str, object]) -> str:
    return f"{topic}  " + "  ".join(f"{key}={_short(value)}" for key, value in plain.items())


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bytes):
        return f"<{len(value)} bytes>"
    if isinstance(value, list):
        more = f", ... {len(value)} in all" if len(value) > LISTED else ""
        return f"[{', '.join(map(_short, value[:LISTED]))}{more}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}={_short(item)}" for key, item in value.items()) + "}"
    text = str(value)
    return text if text.isprintable() else repr(text)
