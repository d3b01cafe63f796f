"""Stop a running node at once, or release the stop.

A stop latches: every channel goes to safe by its own rule (`estop = "ramp"` or `"jump"`), the commands say
ESTOP and the ids of all stops, and it stays so over restarts of the node. Only a reset with the same id ends
it, and only while nobody asserts a stop (for 300 ms after the last stop, or while the heartbeat of
gate.estop.heartbeat_ms is silent). Whatever was decided before the release never acts.

The command waits until the commands of the node show that it has taken effect.

Exit code 0 if they do, 1 if not: then use the machine's own switch.

examples:
  reflexarc estop node.toml stop
  reflexarc estop node.toml stop --id door --reason "door open"
  reflexarc estop node.toml reset --id door
"""

import argparse
import json
import select
import sys
from pathlib import Path

import zmq

from reflexarc.node import wire
from reflexarc.node.clock import MS, SECOND, now
from reflexarc.node.config.load import load
from reflexarc.node.config.schema import Config
from reflexarc.node.sockets import Sockets, receive

AGAIN_NS = 400 * MS  # a reset is refused shortly after a stop: ask again


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the configuration of the node")
    parser.add_argument("action", choices=("stop", "reset"), help="latch a stop, or release it")
    parser.add_argument("--id", default="console", help="the name of the stop, 1 to 64 characters (console)")
    parser.add_argument("--reason", default="", help="why, for the log")
    parser.add_argument("--timeout", type=float, default=2.0, metavar="S", help="wait so long for it (2)")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Send it and wait for its effect."""
    if not 1 <= len(args.id) <= 64:
        print(f"reflexarc estop: --id: {len(args.id)} characters are not 1 to 64", file=sys.stderr)
        return 2
    config = load(args.config)
    if config.gate.estop is None:
        print(f"reflexarc estop: {args.config} has no gate.estop", file=sys.stderr)
        return 2
    message = {"stop": args.action == "stop", "id": args.id, "reason": args.reason}
    sent, states = _send(config, config.gate.estop.endpoint, message, round(args.timeout * SECOND))
    done = sent and len(states) == len(config.channels) and all(_shows(message, s) for s in states.values())
    text = _outcome(config, message, sent, states, done)
    if args.json:
        outcome = {"ok": done, "sent": sent, "action": args.action, "id": args.id, "channels": states}
        print(json.dumps(outcome))
    else:
        print(text, file=sys.stdout if done else sys.stderr)
    return 0 if done else 1


def _send(
    config: Config, endpoint: str, message: dict[str, object], timeout: int
) -> tuple[bool, dict[str, str]]:
    """Send until every channel shows it or the time is over; whether it was sent, and each channel's reason."""
    states: dict[str, str] = {}
    due, sent, deadline = now(), False, now() + timeout
    parts = wire.encode(wire.ESTOP, message)
    with Sockets() as sockets:
        commands = sockets.subscriber(config.node.publish, [wire.CONTROL], max_bytes=wire.MAX_BYTES)
        button = sockets.pusher(endpoint)
        while now() < deadline:
            if now() >= due and not (sent and message["stop"]):
                sent = _push(button, parts) or sent
                states.clear()
                due = now() + (AGAIN_NS if sent else 10 * MS)
            select.select([commands.FD], [], [], 0.005)
            while (received := receive(commands)) is not None:
                states |= _state(received)
            if (
                sent
                and len(states) == len(config.channels)
                and all(_shows(message, s) for s in states.values())
            ):
                break
    return sent, states


def _push(socket: zmq.Socket[bytes], parts: list[bytes]) -> bool:
    try:
        socket.send_multipart(parts, zmq.NOBLOCK)
    except zmq.Again:  # not connected yet
        return False
    return True


def _state(parts: list[bytes]) -> dict[str, str]:
    """The channel of a command and its reason; nothing for what is no command."""
    try:
        topic, plain = wire.decode(parts)
    except wire.Refused:
        return {}
    return {topic.removeprefix(wire.CONTROL): str(plain.get("reason", ""))}


def _shows(message: dict[str, object], reason: str) -> bool:
    """Whether a command's reason is as it must be after the message."""
    return (f"estop:{message['id']}" in reason.split(",")) == message["stop"]


def _outcome(
    config: Config, message: dict[str, object], sent: bool, states: dict[str, str], done: bool
) -> str:
    node = config.node.name
    if not sent:
        return f"reflexarc estop: nothing answers at the e-stop of {node}"
    if not states:
        return f"reflexarc estop: sent, but {node} publishes no commands at {config.node.publish}"
    others = sorted(
        {word for reason in states.values() for word in reason.split(",") if word[:6] == "estop:"}
    )
    held = f", by {', '.join(word[6:] for word in others)}" if others else ""
    if done:
        return f"{node} is {'stopped' + held if others else 'released'}"
    if message["stop"]:
        return f"reflexarc estop: sent, but not every channel of {node} has stopped"
    return f"reflexarc estop: refused, {node} is still stopped{held}"
