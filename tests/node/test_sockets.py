"""Sockets are bounded, binds do not steal, and a stream outlives an over-size frame."""

import os
import select
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq

from reflexarc.node.clock import SECOND, now
from reflexarc.node.connections import Connections
from reflexarc.node.endpoints import BindError, Lock
from reflexarc.node.sockets import Sockets, drain, receive, wait_for_subscriber


@pytest.fixture
def sockets() -> Iterator[Sockets]:
    with Sockets() as made:
        yield made


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(params=["ipc", "tcp"])
def endpoint(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"ipc://{tmp_path}/socket" if request.param == "ipc" else f"tcp://127.0.0.1:{free_port()}"


def wait_for(receiver: zmq.Socket[bytes], timeout_s: float = 5) -> list[bytes]:
    deadline = now() + int(timeout_s * SECOND)
    while now() < deadline:
        if (parts := receive(receiver)) is not None:
            return parts
        select.select([receiver.FD], [], [], 0.01)
    raise AssertionError("nothing came")


def settle(connections: Connections, disconnects: int, connected: int = 1) -> None:
    deadline = now() + 5 * SECOND
    while now() < deadline:
        connections.update()
        if connections.disconnects == disconnects and connections.connected == connected:
            return
        time.sleep(0.02)
    raise AssertionError(f"{connections.disconnects} disconnects, {connections.connected} connected")


def test_messages_go_through(sockets: Sockets, endpoint: str) -> None:
    out = sockets.announcing_publisher(endpoint, "node.publish")
    heard = sockets.subscriber(endpoint, ["imu/", "x"], max_bytes=100)
    assert wait_for_subscriber(out, b"imu/wrist", 5)
    out.send_multipart([b"imu/wrist", b"payload"])
    assert wait_for(heard) == [b"imu/wrist", b"payload"]
    assert receive(heard) is None


def test_nobody_listens(sockets: Sockets, endpoint: str) -> None:
    out = sockets.announcing_publisher(endpoint, "node.publish")
    sockets.subscriber(endpoint, ["other/"], max_bytes=100)
    assert not wait_for_subscriber(out, b"imu/", 0.2)


def test_a_button_press_is_not_lost_to_a_slow_joiner(sockets: Sockets, endpoint: str) -> None:
    button = sockets.pusher(endpoint)
    with pytest.raises(zmq.Again):
        button.send(b"stop", zmq.NOBLOCK)
    gate = sockets.puller(endpoint, "gate.estop.endpoint", max_bytes=100)
    deadline = now() + 5 * SECOND
    while now() < deadline:
        try:
            button.send(b"stop", zmq.NOBLOCK)
            break
        except zmq.Again:
            time.sleep(0.01)
    assert wait_for(gate) == [b"stop"]


def test_many_parts_are_cut_and_the_next_message_is_whole(sockets: Sockets, endpoint: str) -> None:
    gate = sockets.puller(endpoint, "key", max_bytes=100)
    button = sockets.pusher(endpoint)
    button.poll(5000, zmq.POLLOUT)
    button.send_multipart([b"x"] * 1000)
    button.send_multipart([b"a", b"b"])
    assert wait_for(gate) == [b"x"] * 3
    assert wait_for(gate) == [b"a", b"b"]


def test_drain_empties(sockets: Sockets, endpoint: str) -> None:
    gate = sockets.puller(endpoint, "key", max_bytes=100)
    button = sockets.pusher(endpoint)
    button.poll(5000, zmq.POLLOUT)
    for _ in range(50):
        button.send_multipart([b"a", b"b"])
    wait_for(gate)
    time.sleep(0.1)
    assert drain([gate]) == 49
    assert receive(gate) is None


def test_a_queue_is_bounded(sockets: Sockets, endpoint: str) -> None:
    sockets.puller(endpoint, "key", max_bytes=100, queue=10)
    button = sockets.pusher(endpoint, queue=10)
    button.poll(5000, zmq.POLLOUT)
    sent = 0
    with pytest.raises(zmq.Again):  # noqa: PT012
        while sent < 10**6:
            button.send(b"x" * 90, zmq.NOBLOCK)
            sent += 1
    assert 10 <= sent < 10**6


def test_an_oversize_frame_is_a_disconnect_and_the_stream_goes_on(sockets: Sockets, endpoint: str) -> None:
    out = sockets.announcing_publisher(endpoint, "node.publish")
    heard = sockets.subscriber(endpoint, ["imu"], max_bytes=100, watched=True)
    connections = sockets.watch(heard)
    for round_ in range(1, 4):
        assert wait_for_subscriber(out, b"imu", 5)
        out.send_multipart([b"imu", b"x" * 101])
        settle(connections, disconnects=round_)
    assert wait_for_subscriber(out, b"imu", 5)
    out.send_multipart([b"imu", b"x" * 100])
    assert wait_for(heard) == [b"imu", b"x" * 100]


def test_a_peer_that_speaks_no_zmtp_is_not_the_end(sockets: Sockets) -> None:
    port = free_port()
    heard = sockets.subscriber(f"tcp://127.0.0.1:{port}", ["imu"], max_bytes=100, watched=True)
    connections = sockets.watch(heard)
    with socket.create_server(("127.0.0.1", port)) as server:
        server.settimeout(5)
        peer, _ = server.accept()
        peer.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 10)
        peer.close()
        time.sleep(0.2)
    for _ in range(5):
        connections.update()
        time.sleep(0.02)
    out = sockets.announcing_publisher(f"tcp://127.0.0.1:{port}", "node.publish")
    deadline = now() + 5 * SECOND
    while not wait_for_subscriber(out, b"imu", 0.1):
        connections.update()
        assert now() < deadline


def test_a_publisher_that_comes_back_is_found(sockets: Sockets, endpoint: str) -> None:
    out = sockets.announcing_publisher(endpoint, "node.publish")
    connections = sockets.watch(sockets.subscriber(endpoint, [""], max_bytes=100, watched=True))
    settle(connections, 0)
    sockets.close(out)
    settle(connections, 1, connected=0)
    out = sockets.announcing_publisher(endpoint, "node.publish")
    settle(connections, 1)


def test_a_second_bind_is_refused(sockets: Sockets, endpoint: str) -> None:
    first = sockets.publisher(endpoint, "node.publish")
    with Sockets() as others:
        with pytest.raises(BindError, match=rf"^gate\.x: {endpoint} is in use: another process has"):
            others.publisher(endpoint, "gate.x")
        heard = others.subscriber(endpoint, [""], max_bytes=100)
        time.sleep(0.3)
        first.send(b"still here")
        assert wait_for(heard) == [b"still here"]
        sockets.close(first)
        time.sleep(0.1)
        others.publisher(endpoint, "gate.x")


def test_a_lock_left_by_a_killed_process_is_free(tmp_path: Path, sockets: Sockets) -> None:
    endpoint = f"ipc://{tmp_path}/socket"
    code = (
        "import os, signal\nfrom reflexarc.node.sockets import Sockets\n"
        f"Sockets().publisher({endpoint!r}, 'k'); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert stat.S_ISSOCK((tmp_path / "socket").stat().st_mode)
    sockets.publisher(endpoint, "node.publish")


def test_a_foreign_listener_keeps_its_path(tmp_path: Path, sockets: Sockets) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with pytest.raises(BindError, match="is in use"):
            sockets.publisher(f"ipc://{path}", "node.publish")


def test_a_file_is_not_removed_for_a_socket(tmp_path: Path, sockets: Sockets) -> None:
    (tmp_path / "precious").write_text("data")
    with pytest.raises(BindError, match="is there and is not a socket"):
        sockets.publisher(f"ipc://{tmp_path}/precious", "node.publish")
    assert (tmp_path / "precious").read_text() == "data"


def test_a_missing_folder_and_a_foreign_address_are_named(tmp_path: Path, sockets: Sockets) -> None:
    with pytest.raises(BindError, match=r"node.publish: ipc:///.*No such file or directory"):
        sockets.publisher(f"ipc://{tmp_path}/none/socket", "node.publish")
    with pytest.raises(BindError, match=r"node.publish: tcp://10\.255\.1\.2:5556 cannot be bound"):
        sockets.publisher("tcp://10.255.1.2:5556", "node.publish")


def test_an_ipc_socket_is_for_owner_and_group(tmp_path: Path, sockets: Sockets) -> None:
    before = os.umask(0)
    try:
        sockets.publisher(f"ipc://{tmp_path}/socket", "node.publish")
        assert os.umask(0) == 0
    finally:
        os.umask(before)
    assert (tmp_path / "socket").stat().st_mode & 0o777 == 0o660


def test_closing_with_unsent_messages_does_not_hang(tmp_path: Path) -> None:
    code = (
        "import contextlib, zmq\nfrom reflexarc.node.sockets import Sockets\nsockets = Sockets()\n"
        f"gate = sockets.puller('ipc://{tmp_path}/a', 'k', max_bytes=10)\n"
        f"button = sockets.pusher('ipc://{tmp_path}/a'); sockets.watch(button); button.poll(5000, 2)\n"
        "with contextlib.suppress(zmq.Again):\n    while True: button.send(b'x')\n"
        "sockets.close()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=20)


def test_the_io_thread_gets_its_priority(tmp_path: Path) -> None:
    code = (
        "import os\nfrom reflexarc.node.sockets import Sockets\n"
        "try: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(7))\n"
        "except PermissionError: print('-'); raise SystemExit\n"
        "sockets = Sockets(fifo=9)\n"
        f"sockets.publisher('ipc://{tmp_path}/a', 'k')\n"
        "threads = [int(t) for t in os.listdir('/proc/self/task') if int(t) != os.getpid()]\n"
        "print(*{os.sched_getparam(t).sched_priority for t in threads})"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    if told == "-\n":
        pytest.skip("SCHED_FIFO is not permitted here")
    assert told == "9\n"


def test_a_lock_is_exclusive(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    with pytest.raises(BlockingIOError):
        Lock(tmp_path / "lock")
    lock.release()
    lock.release()
    Lock(tmp_path / "lock").release()
