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
import sys
from pathlib import Path

from reflexarc.node.clock import SECOND
from reflexarc.node.config.load import load
from reflexarc.node.press import Press


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
