"""Run the node that a configuration describes, until SIGTERM or Ctrl-C.

The gate is this process; it starts the workers, restarts them when they fail, and publishes commands
whatever becomes of them. All topics of the node come out at node.publish.

SIGTERM, Ctrl-C   ramp every channel to safe for at most node.shutdown_ms, then jump there and end
SIGHUP            check the configuration anew and swap to it, as a changed file does. One with a mistake
                  changes nothing: the error is on standard error, in the status and in health/gate

An emergency stop that is latched stays so over restarts: see `reflexarc estop --help`.

examples:
  reflexarc run node.toml
  kill -HUP $(pidof -s reflexarc)
"""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the node's configuration")


def run(args: argparse.Namespace) -> int:
    """Run the node; 0 once it has ended at safe."""
    from reflexarc.node.gate.main import run as run_gate

    return run_gate(args.config)
