"""A real node for tests: processes, sockets and a model, in a folder of their own on free ports."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import msgpack
import onnx
import zmq
from onnx import TensorProto, helper

HERE = Path(__file__).parent
SECOND = 1_000_000_000
STARTUP_S = 120  # kernels may have to be built first
NEARLY_S = 0.1  # what a busy test machine may add to a bound in time

CONFIG = """
[node]
name = "test"
publish = "tcp://127.0.0.1:{publish}"
shutdown_ms = {shutdown_ms}
ready_grace_ms = 60000

[gate]
priority = "fifo:50"
stall_ms = 200
estop = {{ endpoint = "tcp://127.0.0.1:{estop}", heartbeat_ms = {heartbeat_ms} }}

[worker.reflex]
memory_mb = {memory_mb}
priority = "fifo:40"
stall_ms = 200

[stream.arm]
endpoint = "tcp://127.0.0.1:{sensor}"
topic = "imu/arm"
shape = [2]
rate_hz = 100
max_age_ms = 60

[pipeline.move]
worker = "reflex"
window = {{ stream = "arm", length_s = 0.2, hop_s = 0.01 }}
model = "mean.onnx"
deadline_ms = 30
decide = {{ kind = "classify", labels = ["UP", "DOWN"], threshold = 0.6, hold = 3 }}

[channel.lift]
pipeline = "move"
rate_hz = 50
max_age_ms = {max_age_ms}
ttl_ms = 100
stale = "{stale}"
estop = "jump"

[channel.lift.values.force]
unit = "N"
min = -5
max = 5
slew = {slew}
safe = 0
from = {{ UP = {up}, DOWN = -4, otherwise = 0 }}
"""

DEFAULTS: dict[str, Any] = {
    "shutdown_ms": 500,
    "heartbeat_ms": 0,
    "memory_mb": 100,
    "max_age_ms": 100,
    "stale": "jump",
    "slew": 100,
    "up": 4,
}


class Message(NamedTuple):
    """What a subscriber received, and when (monotonic ns)."""

    at: int
    topic: str
    plain: dict[str, Any]


class Listener(threading.Thread):
    """Subscribes to everything a node publishes and keeps it."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]], endpoint: str) -> None:
        super().__init__(daemon=True)
        self.messages: list[Message] = []
        self.broken: Callable[[], str] = lambda: ""  # why nothing can be expected any more
        self._ended = threading.Event()
        self._socket = context.socket(zmq.SUB)
        self._socket.set(zmq.RCVHWM, 0)
        self._socket.set(zmq.RECONNECT_IVL, 10)
        self._socket.connect(endpoint)
        self._socket.subscribe(b"")
        self.start()

    def run(self) -> None:
        while not self._ended.is_set():
            if self._socket.poll(20):
                topic, payload = self._socket.recv_multipart()
                message = Message(time.monotonic_ns(), topic.decode(), msgpack.unpackb(payload))
                self.messages.append(message)
        self._socket.close(linger=0)

    def stop(self) -> None:
        self._ended.set()
        self.join()

    def of(self, topic: str, since: int = 0) -> list[Message]:
        """Messages of one topic received after a moment (monotonic ns)."""
        return [m for m in self.messages if m.topic == topic and m.at > since]

    def wait(
        self, topic: str, wanted: Callable[[dict[str, Any]], bool], timeout_s: float, since: int | None = None
    ) -> Message:
        """The first message of a topic from now on (or since a moment) that is as wanted."""
        begin = time.monotonic_ns() if since is None else since
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            for message in self.of(topic, begin):
                if wanted(message.plain):
                    return message
            assert not self.broken(), self.broken()
            time.sleep(0.005)
        last = self.of(topic)[-3:]
        raise AssertionError(f"no such {topic} within {timeout_s:g} s; the last were {last}")


class Node:
    """A running `reflexarc run`, and how to look at it."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder = folder
        self.runtime = Path(tempfile.mkdtemp(prefix="reflexarc-"))  # short: paths of sockets are limited
        self.ports = dict(zip(("publish", "estop", "sensor"), free_ports(3), strict=True))
        self.config = folder / "node.toml"
        self.log = folder / "node.log"
        self.context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self.publish = f"tcp://127.0.0.1:{self.ports['publish']}"
        self.sensor = f"tcp://127.0.0.1:{self.ports['sensor']}"
        self._sensors: list[subprocess.Popen[str]] = []
        write_mean_model(folder / "mean.onnx")
        self.configure(**changes)
        self.process: subprocess.Popen[bytes] | None = None
        self.listener = Listener(self.context, self.publish)
        self.listener.broken = self._broken

    def configure(self, text: str = CONFIG, **changes: Any) -> None:
        """Write the configuration, with some of its numbers changed."""
        new = self.config.with_suffix(".new")
        new.write_text(text.format(**{**DEFAULTS, **self.ports, **changes}))
        new.replace(self.config)

    def start(self, **environment: str) -> Self:
        """Start the node; do not wait."""
        environment = {**os.environ, "RUNTIME_DIRECTORY": str(self.runtime), **environment}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "reflexarc.node.cli", "run", str(self.config)],
                stdout=log,
                stderr=log,
                env=environment,
            )
        return self

    def _broken(self) -> str:
        code = None if self.process is None else self.process.poll()
        return "" if code is None else f"the node ended with code {code}: {self.log.read_text()[-2000:]}"

    def sense(self, *values: float, rate_hz: float = 100.0) -> subprocess.Popen[str]:
        """Start a publisher of the stream, (1, 0) unless told otherwise."""
        arguments = [self.sensor, "imu/arm", rate_hz, *(values or (1.0, 0.0))]
        sensor = subprocess.Popen(
            [sys.executable, str(HERE / "publisher.py"), *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._sensors.append(sensor)
        return sensor

    def wait_normal(self, timeout_s: float = STARTUP_S, since: int | None = None) -> Message:
        """The first command that follows a decision."""
        return self.commands_until(lambda plain: plain["state"] == "NORMAL", timeout_s, since)

    def commands_until(
        self, wanted: Callable[[dict[str, Any]], bool], timeout_s: float, since: int | None = None
    ) -> Message:
        """The first command that is as wanted."""
        return self.listener.wait("control/lift", wanted, timeout_s, since)

    def gate(self, timeout_s: float = 3.0) -> dict[str, Any]:
        """What the gate says of the node next."""
        return self.listener.wait("health/gate", lambda _: True, timeout_s).plain

    def worker_pid(self) -> int:
        """The process of the worker, once it runs."""
        message = self.listener.wait(
            "health/gate", lambda plain: plain["worker.reflex.state"] == "running", STARTUP_S
        )
        return int(message.plain["worker.reflex.pid"])

    def kill(self, number: int) -> None:
        """Send the gate a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait_end(self, timeout_s: float) -> int:
        """The exit code."""
        assert self.process is not None
        return self.process.wait(timeout_s)

    def estop(self, *arguments: str) -> int:
        """Run `reflexarc estop` on this node; gives its exit code."""
        command = [sys.executable, "-m", "reflexarc.node.cli", "estop", str(self.config), *arguments]
        return subprocess.run(command, timeout=20, check=False).returncode

    def close(self) -> None:
        """End everything, stopped processes too."""
        for sensor in self._sensors:
            sensor.kill()
            sensor.wait()
            assert sensor.stdout is not None
            sensor.stdout.close()
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
            self.process.wait()
        self.listener.stop()
        self.context.term()
        shutil.rmtree(self.runtime)


@contextmanager
def node(folder: Path, **changes: Any) -> Iterator[Node]:
    """A node that is configured and not started."""
    with ExitStack() as stack:
        made = Node(folder, **changes)
        stack.callback(made.close)
        yield made


@contextmanager
def running(folder: Path, **changes: Any) -> Iterator[tuple[Node, subprocess.Popen[str]]]:
    """A node that follows its sensor, and the sensor."""
    with node(folder, **changes) as made:
        sensor = made.sense()
        made.start().wait_normal()
        yield made, sensor


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on just now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports


def write_mean_model(path: Path, channels: int = 2, length: int = 20) -> None:
    """A model whose scores are the means of the channels."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [
            helper.make_node("GlobalAveragePool", ["x"], ["mean"]),
            helper.make_node("Flatten", ["mean"], ["scores"], axis=1),
        ],
        "mean",
        [value("x", TensorProto.FLOAT, [1, channels, length])],
        [value("scores", TensorProto.FLOAT, [1, channels])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def threads_of(pid: int) -> list[int]:
    """The threads of a process."""
    return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]


def lives(pid: int) -> bool:
    """Whether a process is there and not just unreaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def rss_mb(pid: int) -> float:
    """Resident MiB of a process."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    raise AssertionError(f"process {pid} has no Rss")


def fifo_permitted() -> bool:
    """Whether this process may use SCHED_FIFO."""
    code = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode == 0
