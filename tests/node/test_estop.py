"""`reflexarc estop` against a running gate: latched, released only by its id, the outcome told truly."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_config import TEXT

from reflexarc.node import cli, wire
from reflexarc.node.clock import SECOND
from reflexarc.node.config.load import load
from reflexarc.node.press import Press
from reflexarc.node.sockets import Sockets, receive


@pytest.fixture
def config(tmp_path: Path) -> Path:
    text = TEXT
    for port in ("5555", "5556", "5557"):
        text = text.replace(f"tcp://127.0.0.1:{port}", f"ipc://{tmp_path}/{port}")
    path = tmp_path / "node.toml"
    path.write_text(text)
    return path


@pytest.fixture
def node(config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A gate; its worker has no model and keeps failing, which is no concern of an e-stop."""
    monkeypatch.setenv("RUNTIME_DIRECTORY", str(tmp_path))
    line = [sys.executable, "-m", "reflexarc.node.cli", "run", str(config)]
    gate = subprocess.Popen(line, stderr=subprocess.DEVNULL)
    yield config
    gate.send_signal(signal.SIGTERM)
    assert gate.wait(10) == 0


def press(capsys: pytest.CaptureFixture[str], config: Path, *arguments: str) -> tuple[int, str]:
    code = cli.main(["estop", str(config), *arguments, "--timeout", "8"])
    told = capsys.readouterr()
    return code, (told.out + told.err).strip()


def test_stop_and_release(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert press(capsys, node, "stop", "--id", "door") == (0, "leg is stopped by door")
    assert press(capsys, node, "stop") == (0, "leg is stopped by console, door")
    assert press(capsys, node, "reset", "--id", "dor") == (
        1,
        "reflexarc estop: dor is none of the stops of leg, which are console, door",
    )
    assert press(capsys, node, "reset", "--id", "door") == (
        0,
        "leg is released from door, still stopped by console",
    )
    code, told = press(capsys, node, "reset", "--json")
    assert code == 0
    outcome = json.loads(told)
    assert (outcome["ok"], outcome["sent"], outcome["action"], outcome["id"]) == (
        True,
        True,
        "reset",
        "console",
    )
    assert "estop" not in outcome["channels"]["knee"]


def test_nobody_is_there(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["estop", str(config), "stop", "--timeout", "0.2"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith("reflexarc estop: nothing answers at ipc://")


def test_a_stop_is_repeated_until_commands_show_it(config: Path) -> None:
    loaded = load(config)
    assert loaded.gate.estop is not None
    endpoint = loaded.gate.estop.endpoint
    with Sockets() as sockets:
        gate = sockets.puller(endpoint, "gate.estop.endpoint", max_bytes=wire.MAX_BYTES)
        press = Press(loaded, endpoint, stop=True, id="door", reason="")
        assert not press.send(SECOND)
        heard = [wire.decode_stop(parts) for parts in iter(lambda: receive(gate), None)]
    assert press.sent
    assert len(heard) >= 2
    assert all(plain == {"stop": True, "id": "door", "reason": ""} for plain in heard)


def test_what_cannot_be_asked(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["estop", str(config), "stop", "--id", "x" * 65]) == 2
    text = config.read_text()
    config.write_text("\n".join(line for line in text.splitlines() if not line.startswith("estop = {")))
    assert cli.main(["estop", str(config), "stop"]) == 2
    assert capsys.readouterr().err.endswith("has no gate.estop\n")
