"""Faults of a real node: processes killed and stopped, a worker that hogs its core, hostile input.

The bound everywhere: SAFE within max_age + one period. Nothing decided before a fault acts after.
"""

import itertools
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import pytest
from harness import HERE, NEARLY_S, SECOND, STARTUP_S, Node, fifo_permitted, lives, node, running

MAX_AGE_S = 0.1
PERIOD_S = 0.02
WINDOW_S = 0.2
HOLD = 3
HOP_S = 0.01
SAFE_WITHIN_S = MAX_AGE_S + PERIOD_S


def is_not(worker: int, plain: dict) -> bool:
    return plain["pid"] != worker


def is_safe(plain: dict) -> bool:
    return plain["state"] == "SAFE" and plain["value.force"] == 0


def assert_nothing_old(made: Node, since: int = 0) -> None:
    """No command follows input that is older than a decision may be."""
    for message in made.listener.of("control/lift", since):
        plain = message.plain
        if plain["state"] in ("NORMAL", "DEGRADED"):
            age_s = (plain["t"] - plain["source_t"]) / SECOND
            assert age_s <= MAX_AGE_S + PERIOD_S + NEARLY_S, plain


def assert_on_time(made: Node, since: int, most_s: float) -> None:
    """No two commands since then were further apart than that, by their own stamps."""
    stamps = [message.plain["t"] for message in made.listener.of("control/lift", since)]
    assert len(stamps) > (time.monotonic_ns() - since) / SECOND / PERIOD_S * 0.9
    assert max(b - a for a, b in itertools.pairwise(stamps)) / SECOND <= most_s


def test_worker_killed(tmp_path):
    with running(tmp_path) as (made, _):
        worker = made.worker_pid()
        killed = time.monotonic_ns()
        os.kill(worker, signal.SIGKILL)
        safe = made.commands_until(is_safe, 2, since=killed)
        assert (safe.at - killed) / SECOND <= SAFE_WITHIN_S + NEARLY_S
        consuming = made.listener.wait(
            "health/reflex", lambda p: p["pid"] != worker and p["stream.arm.received"] > 0, 5, since=killed
        )
        assert (consuming.at - killed) / SECOND <= 1 + NEARLY_S
        normal = made.wait_normal(5, since=safe.at)
        assert (normal.at - consuming.at) / SECOND <= WINDOW_S + HOLD * HOP_S + NEARLY_S
        gate = made.gate()
        assert gate["worker.reflex.restarts"] == 1
        assert gate["worker.reflex.last_end"] == "killed by SIGKILL"
        assert_on_time(made, killed, PERIOD_S + NEARLY_S)
        assert_nothing_old(made)


def test_worker_stopped(tmp_path):
    with running(tmp_path) as (made, _):
        worker = made.worker_pid()
        stopped = time.monotonic_ns()
        os.kill(worker, signal.SIGSTOP)
        safe = made.commands_until(is_safe, 2, since=stopped)
        assert (safe.at - stopped) / SECOND <= SAFE_WITHIN_S + NEARLY_S
        time.sleep(3 - (time.monotonic_ns() - stopped) / SECOND)
        resumed = time.monotonic_ns()
        assert all(is_safe(m.plain) for m in made.listener.of("control/lift", safe.at))
        os.kill(worker, signal.SIGCONT)
        normal = made.wait_normal(3, since=resumed)
        assert normal.plain["source_t"] > time.time_ns() - (time.monotonic_ns() - resumed)
        health = made.listener.wait(
            "health/reflex", lambda p: p.get("stream.arm.dropped.stall", 0) > 0, 3, since=resumed
        ).plain
        assert (health["pid"], health["epoch"]) == (worker, 1)
        assert_account(made.listener.wait("health/reflex", lambda p: True, 3).plain)
        assert_nothing_old(made)


def test_gate_stopped(tmp_path):
    with running(tmp_path) as (made, _):
        made.kill(signal.SIGSTOP)
        time.sleep(3)
        resumed = time.monotonic_ns()
        made.kill(signal.SIGCONT)
        normal = made.wait_normal(3, since=resumed)
        assert normal.plain["source_t"] > time.time_ns() - (time.monotonic_ns() - resumed)
        assert made.gate()["stalls"] == 1
        first = made.listener.of("control/lift", resumed)[0].plain
        assert first["state"] == "SAFE", first
        assert_nothing_old(made)


def test_publisher_stopped(tmp_path):
    with running(tmp_path) as (made, sensor):
        stopped = time.monotonic_ns()
        sensor.send_signal(signal.SIGSTOP)
        degraded = made.commands_until(lambda p: p["state"] != "NORMAL", 2, since=stopped)
        safe = made.commands_until(is_safe, 2, since=stopped)
        assert degraded.at <= safe.at
        assert (safe.at - stopped) / SECOND <= SAFE_WITHIN_S + NEARLY_S
        dead = made.listener.wait("health/reflex", lambda p: not p["stream.arm.alive"], 2, since=stopped)
        assert (dead.at - stopped) / SECOND <= 0.06 + 0.02 + NEARLY_S
        time.sleep(3 - (time.monotonic_ns() - stopped) / SECOND)
        resumed = time.monotonic_ns()
        sensor.send_signal(signal.SIGCONT)
        made.wait_normal(3, since=resumed)
        assert_nothing_old(made)
        assert_account(made.listener.wait("health/reflex", lambda p: True, 3).plain)


def test_publisher_restarted_counts_anew(tmp_path):
    with running(tmp_path) as (made, sensor):
        time.sleep(0.3)
        sensor.kill()
        sensor.wait()
        made.commands_until(is_safe, 2)
        begun = time.monotonic_ns()
        made.sense(0.0, 1.0)
        normal = made.commands_until(lambda p: p["state"] == "NORMAL" and p["value.force"] < 0, 5)
        assert normal.plain["source_seq"] < 100
        assert (normal.at - begun) / SECOND < 3
        assert_nothing_old(made)


@pytest.mark.skipif(not fifo_permitted(), reason="SCHED_FIFO is not permitted here")
def test_worker_hogs_its_core(tmp_path):
    with node(tmp_path) as made:
        made.sense()
        made.start(PYTHONPATH=str(HERE / "hog")).wait_normal()
        worker = made.worker_pid()
        assert os.sched_getscheduler(worker) == os.SCHED_FIFO
        begin = time.monotonic_ns()
        os.kill(worker, signal.SIGUSR1)
        safe = made.commands_until(is_safe, 2, since=begin)
        assert (safe.at - begin) / SECOND <= SAFE_WITHIN_S + NEARLY_S
        before = cpu_s(worker)
        time.sleep(3)
        assert cpu_s(worker) - before > 2
        assert_on_time(made, begin, PERIOD_S + 0.01)


MONITOR = """
import sys, time
from pathlib import Path
while True:
    try:
        pid = Path(sys.argv[1]).read_text()
        for thread in Path(f"/proc/{pid}/task").iterdir():
            (thread / "stat").read_text()
            (thread / "status").read_text()
    except OSError:
        time.sleep(0.0005)
"""


def test_workers_end_under_the_eyes_of_monitors(tmp_path):
    """A gate at SCHED_FIFO that waited for its worker would spin in the kernel here, for ever."""
    with node(tmp_path) as made, ExitStack() as stack:
        seen = tmp_path / "pid"
        for _ in range(2):
            monitor = subprocess.Popen([sys.executable, "-c", MONITOR, str(seen)])
            stack.callback(monitor.wait)
            stack.callback(monitor.kill)
        made.sense()
        made.start().wait_normal()
        worker = 0
        for _ in range(3):
            begin = time.monotonic_ns()
            other = partial(is_not, worker)
            worker = made.listener.wait("health/reflex", other, 15, since=begin).plain["pid"]
            seen.write_text(str(worker))
            time.sleep(0.1)
            killed = time.monotonic_ns()
            os.kill(worker, signal.SIGKILL)
            time.sleep(0.3)
            assert_on_time(made, killed, PERIOD_S + NEARLY_S)


def cpu_s(pid: int) -> float:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_gate_killed(tmp_path):
    with running(tmp_path) as (made, _):
        worker = made.worker_pid()
        assert made.estop("stop", "--id", "button", "--reason", "test") == 0
        made.commands_until(lambda p: p["state"] == "ESTOP" and "button" in p["reason"], 2)
        killed = time.monotonic()
        made.kill(signal.SIGKILL)
        made.wait_end(2)
        while lives(worker):
            assert time.monotonic() < killed + 1, "the worker outlives its gate"
            time.sleep(0.005)
        begin = time.monotonic_ns()
        made.start()
        first = made.commands_until(lambda p: True, STARTUP_S, since=begin).plain
        assert (first["state"], first["value.force"]) == ("ESTOP", 0)
        made.listener.wait("decision/move", lambda p: p["available"] and p["label"] == "UP", 10, since=begin)
        time.sleep(0.1)
        assert all(m.plain["state"] == "ESTOP" for m in made.listener.of("control/lift", begin))
        assert made.estop("reset", "--id", "other", "--timeout", "0.3") == 1
        assert made.commands_until(lambda p: True, 2).plain["state"] == "ESTOP"
        released = time.monotonic_ns()
        assert made.estop("reset", "--id", "button") == 0
        made.wait_normal(5, since=released)
        assert_nothing_old(made)


def test_second_start_is_refused(tmp_path):
    with running(tmp_path) as (made, _):
        second = subprocess.run(
            [sys.executable, "-m", "reflexarc.node.cli", "run", str(made.config)],
            env={**os.environ, "RUNTIME_DIRECTORY": str(made.runtime)},
            capture_output=True,
            text=True,
            timeout=10,
        )
        assert second.returncode == 1
        assert second.stderr.count("\n") == 1
        assert "node.name: test runs already" in second.stderr
        assert made.wait_normal(2).plain["state"] == "NORMAL"


def test_wrong_configuration_ends_at_once(tmp_path):
    with node(tmp_path) as made:
        made.configure(max_age_ms=5)
        begin = time.monotonic()
        made.start()
        assert made.wait_end(10) == 2
        assert time.monotonic() - begin < 2
        log = made.log.read_text()
        assert "channel.lift.max_age_ms: 5 is below 50" in log
        assert "Traceback" not in log


def assert_account(plain: dict) -> None:
    """Every message of the stream is accounted for."""
    at = "stream.arm."
    dropped = sum(value for key, value in plain.items() if key.startswith(at + "dropped."))
    assert plain[at + "received"] == plain[at + "processed"] + dropped + plain[at + "queued"]
