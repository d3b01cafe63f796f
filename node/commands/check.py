"""Check a configuration, and show the plan that follows from it on this machine.

Every mistake is shown at once, each as the key, its value and the limit, with the nearest valid key where one
was mistyped. Models are read and fitted to their windows and labels, but not loaded. The plan says which
process runs on which cores, with how many threads and at what priority, what memory it needs and may have,
and how long decisions and commands live.

Exit code 0 if the node would start here, 2 if not. Nothing is started and nothing is changed.

examples:
  reflexarc check node.toml
  reflexarc check node.toml --json | tail -n 1 | jq .workers
"""

import argparse
import json
import sys
from pathlib import Path

from reflexarc.node import budget
from reflexarc.node.config.load import load
from reflexarc.node.config.place import place
from reflexarc.node.config.problems import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("config", type=Path, metavar="CONFIG", help="the node's configuration")
    parser.add_argument("--json", action="store_true", help="one JSON object on the last line")


def run(args: argparse.Namespace) -> int:
    """Check the file; 0 if the node would start, 2 with every problem on standard error if not."""
    try:
        config = load(args.config)
        placement = place(config, budget.allowed())
    except ConfigError as error:
        return _refuse(args, error.problems, str(error))

    from reflexarc.node.report import describe, show  # brings numpy and the importers

    plan, problems = describe(config, placement)
    if problems:
        return _refuse(args, problems, str(ConfigError(problems, str(args.config))))
    if args.json:
        print(json.dumps({"ok": True, "problems": [], **plan}))
    else:
        print(f"{args.config} is sound; the plan on this machine:\n")
        show(plan)
    return 0


def _refuse(args: argparse.Namespace, problems: list[str], text: str) -> int:
    print(f"reflexarc: {text}", file=sys.stderr)
    if args.json:
        print(json.dumps({"ok": False, "problems": problems}))
    return 2
