"""The command line: one program, one module of `reflexarc.node.commands` for each subcommand.

A subcommand's module has a docstring, which is its help (first line, then the rest), `add_arguments(parser)`
and `run(args) -> int`. Only the chosen one is imported, so that `run` stays as small as the gate must be.

Exit codes: 0 done, 1 it could not be done, 2 the request or an input is wrong, 130 interrupted. Errors are
lines on standard error; REFLEXARC_DEBUG=1 shows the traceback instead.
"""

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

COMMANDS = {
    "run": "run the node that a configuration describes",
    "demo": "play a real recording through a real node and watch the commands",
    "check": "check a configuration and show the plan: memory, threads, priorities, lifetimes",
    "doctor": "show what this machine offers: instruction sets, cores, bandwidth, rights, limits",
    "echo": "print the messages of a topic",
    "estop": "stop a running node, or release the stop",
    "inspect": "show what is in a model: operations, shapes, quantization, memory",
    "record": "record topics into a file",
    "replay": "run a recording through a configuration, as fast as it goes",
    "bench": "measure speed against bounds and peers",
    "build-kernels": "build the compiled kernels into the cache or a wheel",
}


class Parser(argparse.ArgumentParser):
    """Errors in one line, help with the text as it was written."""

    def __init__(self, prog: str, description: str) -> None:
        super().__init__(
            prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
        )

    def error(self, message: str) -> NoReturn:
        """Say what is wrong with the arguments, exit 2."""
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; gives its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        try:
            code = _dispatch(arguments)
        except SystemExit as end:  # argparse has said what there is to say
            code = end.code if isinstance(end.code, int) else 0
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of our output has gone: nothing is wrong, there is nobody to tell
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except Exception as error:
        if os.environ.get("REFLEXARC_DEBUG"):
            raise
        print(f"reflexarc: {_line(error)}", file=sys.stderr)
        return 2 if isinstance(error, ValueError) else 1
    return code


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        return _top(arguments)
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        from reflexarc.node.config.rules import nearest

        print(f"reflexarc: {name} is not a command{nearest(name, COMMANDS)}", file=sys.stderr)
        return 2
    module = importlib.import_module(f"reflexarc.node.commands.{name.replace('-', '_')}")
    parser = Parser(f"reflexarc {name}", module.__doc__ or COMMANDS[name])
    module.add_arguments(parser)
    code: int = module.run(parser.parse_args(rest))
    return code


def _top(arguments: list[str]) -> int:
    width = max(map(len, COMMANDS))
    listing = "\n".join(f"  {name:{width}}  {text}" for name, text in COMMANDS.items())
    parser = Parser(
        "reflexarc",
        "Runs small quantized models between sensors and actuators, under hard limits.\n\n"
        f"commands:\n{listing}\n\nreflexarc COMMAND --help tells all about one of them.",
    )
    parser.usage = "reflexarc [--help] [--version] COMMAND ..."
    parser.add_argument("--version", action="store_true", help="show the version")
    if parser.parse_args(arguments).version:
        print(f"reflexarc {_version()}")
        return 0
    parser.print_help(sys.stderr)
    return 2


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("reflexarc")
    except PackageNotFoundError:
        return "(not installed)"


def _line(error: Exception) -> str:
    """An error as its user reads it. What we did not foresee says so."""
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror or error}"
    if type(error).__module__.startswith("reflexarc."):
        return str(error)
    if isinstance(error, ModuleNotFoundError):
        return f"needs the package {error.name}, which is not installed"
    return f"unexpected {type(error).__name__}: {error} (REFLEXARC_DEBUG=1 shows where)"


if __name__ == "__main__":
    sys.exit(main())
