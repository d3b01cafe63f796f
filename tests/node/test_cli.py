"""The command line: small, quick, one line an error, no traceback."""

import importlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reflexarc.node import cli

Done = "subprocess.CompletedProcess[str]"


def reflexarc(*arguments: str, **environment: str) -> Done:
    return subprocess.run(
        [sys.executable, "-m", "reflexarc.node.cli", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_a_page(name: str) -> None:
    module = importlib.import_module(f"reflexarc.node.commands.{name.replace('-', '_')}")
    assert module.__doc__
    first, blank, *rest = module.__doc__.splitlines()
    assert first.endswith(".")
    assert blank == ""
    assert rest
    parser = cli.Parser(f"reflexarc {name}", module.__doc__)
    module.add_arguments(parser)
    assert first in parser.format_help()


def test_help_and_version() -> None:
    done = reflexarc("--help")
    assert done.returncode == 0
    assert all(f"  {name}" in done.stdout for name in cli.COMMANDS)
    assert reflexarc("--version").stdout.startswith("reflexarc ")
    nothing = reflexarc()
    assert nothing.returncode == 2
    assert "commands:" in nothing.stderr
    page = reflexarc("check", "--help")
    assert page.returncode == 0
    assert "examples:\n  reflexarc check node.toml" in page.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        (["chek"], 2, "reflexarc: chek is not a command (did you mean check?)"),
        (["--bogus"], 2, "reflexarc: unrecognized arguments: --bogus (see reflexarc --help)"),
        (["check"], 2, "reflexarc check: the following arguments are required: CONFIG (see "),
        (["run", "/none.toml"], 2, "reflexarc: /none.toml: cannot be read: No such file or directory"),
        (["replay", "/none.mcap", "--config", "/none.toml"], None, "reflexarc: /none."),
    ],
)  # fmt: skip
def test_errors_are_one_line(arguments: list[str], code: int | None, line: str) -> None:
    done = reflexarc(*arguments)
    assert done.returncode == code or (code is None and done.returncode in (1, 2))
    assert done.stderr.startswith(line)
    assert done.stderr.count("\n") == 1


def test_what_nobody_foresaw_is_a_line_too_and_a_traceback_for_us(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(arguments: list[str]) -> int:
        raise KeyError("x")

    monkeypatch.setattr(cli, "_dispatch", fail)
    monkeypatch.delenv("REFLEXARC_DEBUG", raising=False)
    assert cli.main([]) == 1
    assert capsys.readouterr().err == "reflexarc: unexpected KeyError: 'x' (REFLEXARC_DEBUG=1 shows where)\n"
    monkeypatch.setenv("REFLEXARC_DEBUG", "1")
    with pytest.raises(KeyError):
        cli.main([])


def test_only_the_chosen_command_is_imported() -> None:
    code = (
        "import sys\nfrom reflexarc.node import cli\ncli.main(['run', '/none.toml'])\n"
        "print(sorted({'numpy', 'asyncio', 'rich', 'mcap', 'importlib.metadata'} & set(sys.modules)))\n"
        "print([m for m in sys.modules if m.startswith('reflexarc.node.commands.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n['reflexarc.node.commands.run']\n"


def test_a_closed_pipe_is_no_error() -> None:
    shipped = Path(__file__).parents[2] / "configs" / "exosuit.toml"
    for arguments in (f"check '{shipped}'", "--help", "run --help"):
        script = f"'{sys.executable}' -m reflexarc.node.cli {arguments} | true; echo ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
        assert done.stdout.strip() in ("141", "0")
        assert done.stderr == ""


def test_control_c_is_quiet() -> None:
    line = [sys.executable, "-m", "reflexarc.node.cli", "echo", "x", "--endpoint", "tcp://127.0.0.1:1"]
    child = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    child.send_signal(signal.SIGINT)
    assert child.wait(5) == 130
    assert child.stderr is not None
    assert child.stderr.read() == ""
