"""`reflexarc echo` prints what is published, whatever it is, and counts what is no message."""

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest
import zmq

from reflexarc.node import cli
from reflexarc.node.sockets import Sockets, wait_for_subscriber


@pytest.fixture
def publisher(tmp_path: Path) -> Iterator[tuple[zmq.Socket[bytes], str]]:
    endpoint = f"ipc://{tmp_path}/pub"
    with Sockets() as sockets:
        yield sockets.announcing_publisher(endpoint, "test"), endpoint


def echo(
    publisher: tuple[zmq.Socket[bytes], str], messages: list[list[bytes]], *arguments: str
) -> "subprocess.Popen[str]":
    socket, endpoint = publisher
    line = [sys.executable, "-m", "reflexarc.node.cli", "echo", *arguments, "--endpoint", endpoint]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert wait_for_subscriber(socket, b"imu/wrist", 20)
    for parts in messages:
        socket.send_multipart(parts)
    child.wait(20)
    return child


def read(child: "subprocess.Popen[str]") -> tuple[list[str], str]:
    assert child.stdout is not None
    assert child.stderr is not None
    return child.stdout.read().splitlines(), child.stderr.read()


FRAME = {"seq": 7, "t": 1, "data": {"dtype": "<i2", "shape": [3], "data": b"\1\0\2\0\3\0"}, "x": float("nan")}


def test_lines(publisher: tuple[zmq.Socket[bytes], str]) -> None:
    messages = [
        [b"other", msgpack.packb({})],
        [b"imu/wrist", msgpack.packb(FRAME)],
        [b"imu/wrist"],
        [b"imu/wrist", b"\xc1"],
        [b"imu/wrist2", msgpack.packb({"long": list(range(100)), "bad": "a\x1b[31m\n"})],
    ]
    child = echo(publisher, messages, "imu/", "-n", "2")
    lines, errors = read(child)
    assert child.returncode == 0
    assert lines == [
        "imu/wrist  seq=7  t=1  data={dtype=<i2, shape=[3], data=<6 bytes>}  x=nan",
        "imu/wrist2  long=[0, 1, 2, 3, 4, 5, 6, 7, ... 100 in all]  bad='a\\x1b[31m\\n'",
    ]
    assert (
        errors == "reflexarc echo: 1 messages refused (parts)\nreflexarc echo: 1 messages refused (msgpack)\n"
    )


def test_json_keeps_everything(publisher: tuple[zmq.Socket[bytes], str]) -> None:
    lines, errors = read(echo(publisher, [[b"imu/wrist", msgpack.packb(FRAME)]], "imu/", "-n", "1", "--json"))
    found = json.loads(lines[0])
    assert errors == ""
    assert found["topic"] == "imu/wrist"
    assert found["t"] > 10**18
    assert found["map"]["x"] == "nan"
    assert base64.b64decode(found["map"]["data"]["data"]) == b"\1\0\2\0\3\0"


def test_it_waits_so_long_and_no_longer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["echo", "x", "--endpoint", f"ipc://{tmp_path}/none", "--timeout", "0.2"]
    assert cli.main(line) == 0
    assert cli.main([*line, "-n", "1"]) == 1
    assert capsys.readouterr().out == ""


def test_a_node_and_its_sensors_are_heard(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (Path(__file__).parents[2] / "configs" / "exosuit.toml").read_text()
    for port in ("5555", "5556", "5557"):
        text = text.replace(f"tcp://127.0.0.1:{port}", f"ipc://{tmp_path}/{port}")
    (tmp_path / "node.toml").write_text(text)
    with Sockets() as sockets:
        node = sockets.announcing_publisher(f"ipc://{tmp_path}/5556", "node")
        sensor = sockets.announcing_publisher(f"ipc://{tmp_path}/5555", "sensor")

        def publish() -> None:
            for socket in (node, sensor):
                assert wait_for_subscriber(socket, b"", 20)
                socket.send_multipart([b"imu/wrist", msgpack.packb({"seq": 1})])

        thread = threading.Thread(target=publish)
        thread.start()
        assert (
            cli.main(["echo", "", "--config", str(tmp_path / "node.toml"), "-n", "2", "--timeout", "20"]) == 0
        )
        thread.join()
    assert capsys.readouterr().out == "imu/wrist  seq=1\n" * 2
