"""Cores, priorities and locked memory are taken where permitted; where not, it is said and life goes on."""

import os
import signal
import subprocess
import sys
import time

import pytest

PRELUDE = """
import os
from reflexarc.node import budget, realtime
from reflexarc.node.config.priority import Priority
def unprivileged():
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""


def child(code: str) -> str:
    """What a process prints that runs this code; it may change itself as it likes."""
    done = subprocess.run([sys.executable, "-c", PRELUDE + code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fifo_permitted() -> bool:
    return "True" in child("print(realtime.prioritize(Priority('fifo', 1), 'k')[1] == [])")


NICE = os.nice(0)  # of this process, and of its children at their start
needs_fifo = pytest.mark.skipif(not fifo_permitted(), reason="SCHED_FIFO is not permitted here")
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give up its rights")


def test_pin() -> None:
    core = max(os.sched_getaffinity(0))
    assert child(f"print(realtime.pin([{core}], 'k'), *os.sched_getaffinity(0))") == f"[] {core}\n"
    assert child("print(realtime.pin([4000], 'gate.cores'))").startswith(
        "['gate.cores: cannot run on cores 4000: "
    )


@needs_fifo
def test_fifo_is_taken_and_inherited_or_not() -> None:
    code = """
print(realtime.prioritize(Priority("fifo", 7), "k", reset_on_fork={}))
import subprocess, sys
print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, os.sched_getparam(0).sched_priority)
subprocess.run([sys.executable, "-c", "import os; print(os.sched_getscheduler(0))"])
"""
    kept = child(code.replace("{}", "False")).split()
    reset = child(code.replace("{}", "True")).split()
    assert kept[-3:] == [str(os.SCHED_FIFO), "7", str(os.SCHED_FIFO)]
    assert reset[-3:] == [str(os.SCHED_FIFO), "7", str(os.SCHED_OTHER)]


@needs_root
def test_without_rights_a_worker_stays_below_the_gate() -> None:
    told = child("""
unprivileged()
gate, warnings = realtime.prioritize(Priority("fifo", 50), "gate.priority")
print(gate); print(*warnings)
worker, warnings = realtime.prioritize(Priority("fifo", 40), "worker.a.priority", fallback_nice=5)
print(worker); print(*warnings)
print(os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, 0))
""").splitlines()
    assert told[0] == f"nice:{NICE}"
    assert told[1].startswith("gate.priority: fifo:50 is not permitted (RLIMIT_RTPRIO 0; ")
    assert told[2] == f"nice:{NICE + 5}"
    assert told[3].endswith(f"so nice:{NICE + 5}")
    assert told[4] == f"{os.SCHED_OTHER} {NICE + 5}"


def test_nice() -> None:
    assert child("print(realtime.prioritize(Priority('nice', 17), 'k')[0], os.nice(0))") == "nice:17 17\n"
    assert child("print(realtime.prioritize(Priority('other'), 'k')[1], os.nice(0))") == f"[] {NICE}\n"


@needs_root
def test_nice_below_zero_needs_a_right() -> None:
    told = child("unprivileged(); print(realtime.prioritize(Priority('nice', -5), 'k'))")
    assert "nice:-5 is not permitted" in told
    assert f"so nice:{NICE}" in told


@needs_root
def test_memory_is_locked_without_being_touched() -> None:
    told = child("""
import mmap
before = budget.resident()
print(realtime.lock_memory("gate"))
large = mmap.mmap(-1, 64 << 20)
print((budget.resident() - before) >> 20)
print([line.split()[1] for line in open("/proc/self/status") if line.startswith("VmLck")][0] != "0")
unprivileged()
""").splitlines()
    if told[0] != "[]":
        pytest.skip(f"memory cannot be locked here: {told[0]}")
    assert int(told[1]) < 4
    assert told[2] == "True"


@needs_root
def test_under_a_limit_memory_is_not_locked() -> None:
    told = child("""
import resource
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
unprivileged()
print(*realtime.lock_memory("gate"))
""")
    assert told == "gate: memory is not locked (RLIMIT_MEMLOCK 65536 bytes, must be unlimited)\n"


def test_a_child_dies_with_its_parent() -> None:
    code = """
import subprocess, sys, time
inner = f"from reflexarc.node import realtime; import time; print(realtime.die_with_parent({os.getpid()}), flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", inner], stdout=subprocess.PIPE, text=True)
print(child.stdout.readline().strip(), child.pid, flush=True)
time.sleep(60)
"""  # noqa: E501
    parent = subprocess.Popen([sys.executable, "-c", PRELUDE + code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    answer, pid = parent.stdout.readline().split()
    assert answer == "True"
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    deadline = time.monotonic() + 5
    while alive(int(pid)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert child("print(realtime.die_with_parent(1 << 22))") == "False\n"


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_timers_are_sharp() -> None:
    told = child("""
import time
realtime.sharpen_timers()
late = []
for _ in range(200):
    start = time.perf_counter_ns(); time.sleep(100e-6); late.append(time.perf_counter_ns() - start - 100_000)
print(sorted(late)[20])
""")
    assert int(told) < 50_000  # with the default slack the best is 50 us late
