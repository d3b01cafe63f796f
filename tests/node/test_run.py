"""The life of a real node: start, stop, memory, and what it refuses to take from others."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgpack
import zmq
from harness import HERE, NEARLY_S, SECOND, STARTUP_S, Node, lives, node, rss_mb, running, threads_of

FORBIDDEN = ("numba", "llvmlite", "reflexarc.inference.simd", "reflexarc.inference.kernels")


def slopes(made: Node, since: int) -> list[float]:
    """Change of the force a second from command to command."""
    plains = [m.plain for m in made.listener.of("control/lift", since)]
    return [
        abs(b["value.force"] - a["value.force"]) / ((b["t"] - a["t"]) / SECOND)
        for a, b in itertools.pairwise(plains)
    ]


def test_memory_and_modules(tmp_path):
    with running(tmp_path) as (made, _):
        worker = made.worker_pid()
        assert made.process is not None
        assert rss_mb(made.process.pid) <= 28
        assert rss_mb(worker) <= 60
        assert len(threads_of(made.process.pid)) <= 4  # the loop, the fan, two of ZeroMQ
        for pid, names in (
            (made.process.pid, ("numpy", "numba", "llvmlite", "_asyncio")),
            (worker, FORBIDDEN),
        ):
            mapped = Path(f"/proc/{pid}/maps").read_text()
            assert not [name for name in names if f"/{name.replace('.', '/')}" in mapped]


def test_imports():
    """The gate imports neither numpy nor asyncio; the worker no compiler."""
    wanted = {
        "reflexarc.node.gate.main": ("numpy", "asyncio", "psutil", "rich", *FORBIDDEN),
        "reflexarc.node.worker.main": ("asyncio", "psutil", "rich", *FORBIDDEN),
    }
    for module, banned in wanted.items():
        code = f"import sys, {module}; print([n for n in {banned} if n in sys.modules])"
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert shown.stdout == "[]\n", module


def test_ready_after_input_and_status_follows_it(tmp_path):
    with node(tmp_path) as made:
        made.start()
        made.listener.wait("health/gate", lambda p: p["worker.reflex.state"] == "running", STARTUP_S)
        gate = made.gate()
        assert not gate["ready"]
        assert "no input: arm" in gate["status"]
        sensor = made.sense()
        made.wait_normal(5)
        gate = made.listener.wait("health/gate", lambda p: p["ready"], 3).plain
        assert gate["status"].startswith("NORMAL; input: arm")
        sensor.send_signal(signal.SIGSTOP)
        gate = made.listener.wait("health/gate", lambda p: "no input" in p["status"], 3).plain
        assert gate["status"].startswith("SAFE (lift: stale")


def test_the_service_manager_is_told(tmp_path):
    """READY once input is healthy, the watchdog only while commands go out."""
    with node(tmp_path) as made, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(made.runtime / "notify"))
        manager.settimeout(0.5)
        made.start(NOTIFY_SOCKET=str(made.runtime / "notify"), WATCHDOG_USEC="400000")
        made.worker_pid()
        before = said(manager, 0.5)
        assert "READY=1" not in before
        assert before.count("WATCHDOG=1") >= 3
        assert any(line.startswith("STATUS=SAFE (lift: waiting); no input: arm") for line in before)
        made.sense()
        made.wait_normal(5)
        assert "READY=1" in said(manager, 1)
        made.kill(signal.SIGSTOP)
        said(manager, 0.2)
        assert said(manager, 0.5) == []
        made.kill(signal.SIGCONT)
        assert "WATCHDOG=1" in said(manager, 0.5)
        made.kill(signal.SIGTERM)
        assert made.wait_end(3) == 0
        assert "STOPPING=1" in said(manager, 0.2)


def said(manager: socket.socket, wait_s: float) -> list[str]:
    """The lines that come within a time."""
    end = time.monotonic() + wait_s
    lines: list[str] = []
    while (left := end - time.monotonic()) > 0:
        manager.settimeout(left)
        try:
            lines += manager.recv(4096).decode().splitlines()
        except TimeoutError:
            break
    return lines


def test_stop_ramps_then_jumps(tmp_path):
    with running(tmp_path, slew=5, stale="ramp", shutdown_ms=400) as (made, _):
        made.commands_until(lambda p: p["value.force"] == 4, 5)
        worker = made.worker_pid()
        begin = time.monotonic_ns()
        made.kill(signal.SIGTERM)
        assert made.wait_end(2) == 0
        assert (time.monotonic_ns() - begin) / SECOND <= 0.4 + 1
        time.sleep(0.1)
        last = made.listener.of("control/lift", begin)
        assert last[-1].plain["value.force"] == 0
        assert last[-1].plain["reason"] == "shutdown"
        assert all(slope <= 5 * 1.001 for slope in slopes(made, begin)[:-1])
        assert 1 < last[-2].plain["value.force"] < 3
        assert not lives(worker)
        assert [path.name for path in made.runtime.iterdir() if ".sock" in path.name] == []


def test_stop_at_safe_is_quick(tmp_path):
    with node(tmp_path, shutdown_ms=10_000) as made:
        made.start()
        made.worker_pid()
        begin = time.monotonic()
        made.kill(signal.SIGINT)
        assert made.wait_end(3) == 0
        assert time.monotonic() - begin < 1


def test_worker_that_takes_too_much_is_killed(tmp_path):
    with node(tmp_path) as made:
        made.sense()
        made.start(PYTHONPATH=str(HERE / "hog")).wait_normal()
        worker = made.worker_pid()
        begin = time.monotonic_ns()
        os.kill(worker, signal.SIGUSR2)
        gate = made.listener.wait("health/gate", lambda p: p["worker.reflex.restarts"] == 1, 5).plain
        assert gate["worker.reflex.last_end"].startswith("memory: ")
        assert gate["worker.reflex.last_end"].endswith("MiB is above memory_mb 100")
        made.wait_normal(5, since=begin + SECOND // 2)


def test_model_that_cannot_fit_is_refused_with_the_sum(tmp_path):
    with node(tmp_path, memory_mb=24) as made:
        made.start()
        made.listener.wait("health/gate", lambda p: p["worker.reflex.restarts"] >= 2, STARTUP_S)
        assert made.gate()["worker.reflex.last_end"] == "exit code 1"
        log = made.log.read_text()
        assert "worker.reflex.memory_mb: 24 is below" in log
        assert "Traceback" not in log


def test_flood_from_a_worker_keeps_commands_on_time(tmp_path):
    """Whatever comes in on a worker's socket at whatever rate: counted, and no command is late."""
    with running(tmp_path) as (made, _):
        (path,) = made.runtime.glob("test.reflex.*.sock")
        push = made.context.socket(zmq.PUSH)
        push.set(zmq.SNDTIMEO, 1000)
        push.connect(f"ipc://{path}")
        odd = [
            [b"decision/move", msgpack.packb({"session": 1})],
            [b"decision/other", msgpack.packb({})],
            [b"control/lift", msgpack.packb({"state": "NORMAL"})],
            [b"health/reflex", msgpack.packb({"session": 1, "epoch": 9})],
            [b"decision/move", b"\xc1"],
            [b"decision/move"],
            [b"trace/move", b"", b""],
        ]
        begin = time.monotonic_ns()
        sent = 0
        while time.monotonic_ns() - begin < 2 * SECOND:
            push.send_multipart(odd[sent % len(odd)])
            sent += 1
        push.close(linger=0)
        commands = made.listener.of("control/lift", begin)
        assert [m.plain for m in commands if m.plain["state"] != "NORMAL"] == []
        stamps = [m.plain["t"] for m in commands]
        assert max(b - a for a, b in itertools.pairwise(stamps)) / SECOND < 0.02 + NEARLY_S
        gate = made.listener.wait(
            "health/gate", lambda p: p.get("worker.reflex.refused.topic", 0) > 100, 5
        ).plain
        for reason in ("keys", "session", "msgpack", "parts"):
            assert gate[f"worker.reflex.refused.{reason}"] > 100
