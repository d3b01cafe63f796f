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
import re
import select
import sys
from dataclasses import dataclass, field
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
    press = Press(config, config.gate.estop.endpoint, args.action == "stop", args.id, args.reason)
    done = press.send(round(args.timeout * SECOND))
    if args.json:
        outcome = {"ok": done, "sent": press.sent, "action": args.action, "id": args.id}
        print(json.dumps({**outcome, "channels": press.reasons}))
    else:
        print(press.outcome(), file=sys.stdout if done else sys.stderr)
    return 0 if done else 1


@dataclass(slots=True)
class Press:
    """One stop or reset, and what the node's commands say since."""

    config: Config
    endpoint: str
    stop: bool
    id: str
    reason: str
    sent: bool = False
    reasons: dict[str, str] = field(default_factory=dict)  # of each channel's latest command

    def send(self, timeout: int) -> bool:
        """Send it, a reset again and again, until every channel shows it; False after `timeout` ns."""
        parts = wire.encode(wire.ESTOP, {"stop": self.stop, "id": self.id, "reason": self.reason})
        due, deadline = now(), now() + timeout
        with Sockets() as sockets:
            publish = self.config.node.publish
            commands = sockets.subscriber(publish, [wire.CONTROL], max_bytes=wire.MAX_BYTES)
            button = sockets.pusher(self.endpoint)
            while now() < deadline and not self.done:
                if now() >= due and not (self.sent and self.stop):
                    self.sent = _push(button, parts) or self.sent
                    self.reasons.clear()
                    due = now() + (AGAIN_NS if self.sent else 10 * MS)
                select.select([commands.FD], [], [], 0.005)
                while (received := receive(commands)) is not None:
                    self.reasons |= _reason(received)
        return self.done

    @property
    def done(self) -> bool:
        """Whether the latest command of every channel shows it."""
        word = "estop:" + re.sub(r"[^A-Za-z0-9_.-]", "_", self.id)
        shown = [(word in reason.split(",")) == self.stop for reason in self.reasons.values()]
        return self.sent and len(shown) == len(self.config.channels) and all(shown)

    def outcome(self) -> str:
        """What has come of it, in one line."""
        node = self.config.node.name
        if not self.sent:
            return f"reflexarc estop: nothing answers at {self.endpoint}, the e-stop of {node}"
        if not self.reasons:
            return f"reflexarc estop: sent, but {node} publishes no commands at {self.config.node.publish}"
        words = {word for reason in self.reasons.values() for word in reason.split(",")}
        stops = ", ".join(sorted(word[6:] for word in words if word.startswith("estop:")))
        if self.done:
            return f"{node} is stopped by {stops}" if stops else f"{node} is released"
        if self.stop:
            return f"reflexarc estop: sent, but not every channel of {node} has stopped"
        return f"reflexarc estop: refused, {node} is still stopped by {stops}"


def _push(socket: zmq.Socket[bytes], parts: list[bytes]) -> bool:
    try:
        socket.send_multipart(parts, zmq.NOBLOCK)
    except zmq.Again:  # not connected yet
        return False
    return True


def _reason(parts: list[bytes]) -> dict[str, str]:
    """The channel of a command and its reason; nothing for what is no command."""
    try:
        topic, plain = wire.decode(parts)
    except wire.Refused:
        return {}
    return {topic.removeprefix(wire.CONTROL): str(plain.get("reason", ""))}
