"""The recorder keeps what is published, and its file survives what happens to it."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import msgpack
import pytest
import zmq

from reflexarc.node.log import read_log
from reflexarc.node.record import Recorder, Source
from reflexarc.node.sockets import Sockets, wait_for_subscriber


def command(tmp_path: Path, endpoint: str, *more: str) -> "subprocess.Popen[str]":
    line = [sys.executable, "-m", "reflexarc.node.cli", "record", "--endpoint", endpoint, *more]
    return subprocess.Popen([*line, "-o", str(tmp_path / "x.mcap")], stdout=subprocess.PIPE, text=True)


def publish(socket: zmq.Socket[bytes], count: int, pause: float = 0.0) -> None:
    for seq in range(count):
        socket.send_multipart([b"imu/wrist", msgpack.packb({"seq": seq, "t": seq, "data": [1, 2]})])
        socket.send_multipart([b"other", msgpack.packb({"seq": seq, "t": seq, "data": 0})])
        time.sleep(pause)


def test_sigterm_completes_the_file(tmp_path: Path) -> None:
    with Sockets() as sockets:
        endpoint = f"ipc://{tmp_path}/pub"
        out = sockets.announcing_publisher(endpoint, "test")
        recorder = command(tmp_path, endpoint, "--topic", "imu/")
        assert wait_for_subscriber(out, b"imu/wrist", 10)
        publish(out, 500)
        time.sleep(0.3)
        recorder.send_signal(signal.SIGTERM)
        assert recorder.wait(5) == 0
    entries, reader = read_log(tmp_path / "x.mcap")
    assert not reader.truncated
    assert [entry.topic for entry in entries] == ["imu/wrist"] * 500
    assert [msgpack.unpackb(entry.payload)["seq"] for entry in entries] == list(range(500))


def test_a_kill_loses_at_most_a_second(tmp_path: Path) -> None:
    with Sockets() as sockets:
        endpoint = f"ipc://{tmp_path}/pub"
        out = sockets.announcing_publisher(endpoint, "test")
        recorder = command(tmp_path, endpoint)
        assert wait_for_subscriber(out, b"imu/wrist", 10)
        publish(out, 300, pause=0.01)
        recorder.kill()
        recorder.wait()
    entries, reader = read_log(tmp_path / "x.mcap")
    assert reader.truncated
    last = max(msgpack.unpackb(entry.payload)["seq"] for entry in entries)
    assert last >= 300 - 110


def test_the_floor_of_free_space_stops_recording_with_a_whole_file(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "x.mcap", [Source(f"ipc://{tmp_path}/nobody")], [], floor=1 << 62)
    recorder.run(lambda: False)
    assert "MiB are free" in recorder.why
    assert not read_log(tmp_path / "x.mcap")[1].truncated


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_told_not_raised() -> None:
    recorder = Recorder(Path("/dev/full"), [Source("ipc:///tmp/nobody")], [], floor=0)
    recorder.run(lambda: False)
    assert "No space left" in recorder.why or "full" in recorder.why


def test_an_over_size_message_costs_itself_alone(tmp_path: Path) -> None:
    with Sockets() as sockets:
        endpoint = f"ipc://{tmp_path}/pub"
        out = sockets.announcing_publisher(endpoint, "test")
        recorder = command(tmp_path, endpoint)
        assert wait_for_subscriber(out, b"imu/wrist", 10)
        publish(out, 10)
        out.send_multipart([b"imu/wrist", bytes(2 << 20)])
        assert wait_for_subscriber(out, b"imu/wrist", 10)
        publish(out, 20)
        time.sleep(0.3)
        recorder.send_signal(signal.SIGTERM)
        assert recorder.wait(5) == 0
    entries, _ = read_log(tmp_path / "x.mcap")
    assert sum(entry.topic == "imu/wrist" for entry in entries) == 30
