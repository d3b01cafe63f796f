"""A node under load: 8 streams of 1 kHz, 8 models every 20 ms, 8 channels of 50 Hz, traces on.

Each pipeline runs the demo's model on the last 200 raw samples of its stream. The row `sensor_to_command` is
milliseconds from a sample that completes a window sent to the command with its source_seq received; `core` is
the share of one core that gate and worker took together. The generator is a process of its own and is not
counted.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from reflexarc.bench.rows import Row
from reflexarc.node import wire
from reflexarc.node.demo.started import StartedNode
from reflexarc.node.sockets import Sockets, receive

STREAMS = 8
RATE_HZ = 1000
PORT = 5640
READY_S = 30.0


def configuration(streams: int = STREAMS) -> str:
    """The configuration of the node under load, as TOML."""
    model = Path(str(files("reflexarc.configs"))) / "exosuit" / "exosuit.onnx"
    head = f"""
[node]
name = "bench"
publish = "tcp://127.0.0.1:{PORT}"

[gate]
priority = "fifo:50"

[worker.load]
memory_mb = 120
priority = "fifo:40"
"""
    return head + "".join(_sections(i, model) for i in range(streams))


def _sections(i: int, model: Path) -> str:
    return f"""
[stream.s{i}]
endpoint = "tcp://127.0.0.1:{PORT + 1 + i}"
topic = "load/{i}"
shape = [6]
rate_hz = {RATE_HZ}
max_age_ms = 100
queue = 4000

[pipeline.p{i}]
worker = "load"
window = {{ stream = "s{i}", length_s = 0.2, hop_s = 0.02 }}
scale = 0.000244140625
model = "{model}"
deadline_ms = 10

[pipeline.p{i}.decide]
kind = "classify"
labels = ["PEN", "ABD", "FEL", "IR", "ER", "TRAP", "ROW"]
threshold = 0.1

[channel.c{i}]
pipeline = "p{i}"
rate_hz = 50
max_age_ms = 100
ttl_ms = 40

[channel.c{i}.values.torque]
unit = "N*m"
min = 0
max = 8
slew = 40
safe = 0
from = {{ ABD = 6, otherwise = 0 }}
"""


def run(seconds: float) -> Iterator[Row]:
    """One run of the load; the rows of latency, CPU and losses."""
    with tempfile.TemporaryDirectory(prefix="reflexarc-bench-") as folder, Sockets() as sockets:
        path = Path(folder) / "node.toml"
        path.write_text(configuration())
        generator = _generator(path, seconds)
        ear = sockets.subscriber(f"tcp://127.0.0.1:{PORT}", [wire.HEALTH], max_bytes=wire.MAX_BYTES)
        node = StartedNode(path, Path(folder))
        try:
            gate, worker = _pids(node, ear)
            before = _cpu_s(gate), _cpu_s(worker), time.perf_counter()
            assert generator.stdout is not None
            account = json.loads(generator.stdout.readline())
            taken = _cpu_s(gate) - before[0], _cpu_s(worker) - before[1]
            wall = time.perf_counter() - before[2]
            health = _last_health(ear, account["sent"])
        finally:
            node.stop()
            generator.kill()
    yield Row("sensor_to_command", 1, account["latency_ms"])
    shares = {"gate": taken[0] / wall, "worker": taken[1] / wall}
    yield Row("core", 1, {"p50": sum(shares.values()), **shares})
    yield Row("lost", 1, _losses(account, health))


def _generator(config: Path, seconds: float) -> "subprocess.Popen[str]":
    line = [sys.executable, "-m", "reflexarc.bench.generator", str(config), str(seconds)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, text=True)


def _pids(node: StartedNode, ear: object) -> tuple[int, int]:
    """The processes of gate and worker, once the worker has said hello."""
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        node.listen()
        if node.ended:
            raise RuntimeError(f"the node ended: {node.log()}")
        health = _health(ear).get(wire.HEALTH + "gate", {})
        pid = health.get("worker.load.pid", 0)
        if pid and node.ready_s is not None:
            return node.pid, int(str(pid))
        time.sleep(0.05)
    raise RuntimeError(f"the node was not ready within {READY_S:g} s: {node.log()}")


def _health(ear: object) -> dict[str, dict[str, object]]:
    latest = {}
    while (parts := receive(ear)) is not None:  # type: ignore[arg-type]
        topic, plain = wire.decode(parts)
        latest[topic] = plain
    return latest


def _last_health(ear: object, sent: int) -> dict[str, object]:
    """The worker's account of all that was sent, or the last one within 3 s."""
    health: dict[str, object] = {}
    end = time.monotonic() + 3
    while time.monotonic() < end and _total(health, "received") < sent:
        health = _health(ear).get(wire.HEALTH + "load", health)
        time.sleep(0.05)
    return health


def _total(health: dict[str, object], key: str) -> int:
    return sum(int(str(health.get(f"stream.s{i}.{key}", 0))) for i in range(STREAMS))


def _losses(account: dict[str, int], health: dict[str, object]) -> dict[str, float]:
    received, processed, queued = (_total(health, key) for key in ("received", "processed", "queued"))
    sent = account["sent"]
    return {
        "p50": sent - processed - queued,
        "sent": sent,
        "received": received,
        "processed": processed,
        "queued": queued,
        "commands": account["commands"],
        "decisions": account["decisions"],
        "decisions_due": account["decisions_due"],
    }


def _cpu_s(pid: int) -> float:
    """Processor time of a process so far, all threads, in s (proc(5), stat fields 14 and 15)."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
