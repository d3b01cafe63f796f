"""What systemd is told, word by word, over a real socket; without systemd it is silent."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from reflexarc.node.clock import US, now
from reflexarc.node.systemd import Notifier


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[socket.socket, str]]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@reflexarc-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(address.replace("@", "\0") if address[0] == "@" else address)
        listener.settimeout(2)
        yield listener, address


def test_the_life_of_a_service(manager: tuple[socket.socket, str]) -> None:
    listener, address = manager
    environment = {
        "NOTIFY_SOCKET": address,
        "WATCHDOG_USEC": "2000000",
        "WATCHDOG_PID": str(os.getpid()),
        "X": "1",
    }
    notifier = Notifier(environment)
    assert environment == {"X": "1"}
    assert notifier.active
    assert notifier.watchdog_ns == 2_000_000_000
    notifier.ready("NORMAL\n50 Hz")
    assert listener.recv(1000) == b"READY=1\nSTATUS=NORMAL 50 Hz"
    notifier.status("NORMAL\n50 Hz")
    notifier.status("SAFE: no input")
    assert listener.recv(1000) == b"STATUS=SAFE: no input"
    notifier.watchdog()
    assert listener.recv(1000) == b"WATCHDOG=1"
    before = now() // US
    notifier.reloading()
    word, stamp = listener.recv(1000).decode().split("\n")
    assert word == "RELOADING=1"
    assert before <= int(stamp.removeprefix("MONOTONIC_USEC=")) <= now() // US
    notifier.stopping("x" * 5000)
    assert listener.recv(8000) == b"STOPPING=1\nSTATUS=" + b"x" * 500
    notifier.close()
    notifier.watchdog()


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"NOTIFY_SOCKET": ""},
        {"NOTIFY_SOCKET": "relative"},
        {"NOTIFY_SOCKET": "/nonexistent/socket", "WATCHDOG_USEC": "1000"},
    ],
)
def test_without_systemd_nothing_happens(environment: dict[str, str]) -> None:
    notifier = Notifier(environment)
    assert not notifier.active
    assert notifier.watchdog_ns is None
    notifier.ready("NORMAL")
    notifier.watchdog()
    notifier.stopping("")
    notifier.close()


@pytest.mark.parametrize(
    ("usec", "pid", "expected"),
    [("1000", "", 1_000_000), ("1000", "1", None), ("0", "", None), ("soon", "", None)],
)
def test_whose_watchdog_it_is(
    manager: tuple[socket.socket, str], usec: str, pid: str, expected: int | None
) -> None:
    environment = {"NOTIFY_SOCKET": manager[1], "WATCHDOG_USEC": usec, "WATCHDOG_PID": pid}
    assert Notifier(environment).watchdog_ns == expected


def test_a_manager_that_does_not_read_is_not_waited_for(manager: tuple[socket.socket, str]) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": manager[1]})
    start = now()
    for i in range(2000):
        notifier.status(f"status {i}")
    assert now() - start < 2_000_000_000
