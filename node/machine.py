"""What this machine is and what this process may do on it, as the kernel tells; `None` where it does not."""

import os
import platform
import resource
from pathlib import Path
from typing import Any

from reflexarc.node import budget, cgroup, realtime
from reflexarc.node.budget import MIB

CPU = Path("/sys/devices/system/cpu")
Facts = dict[str, Any]


def cpu_name() -> str:
    """What the CPU calls itself (for people; what it can do is asked of `inference.isa`)."""
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            return value.strip()
    return platform.machine()


def caches(core: int) -> Facts:
    """Size of each data cache of a core in KiB, and how many of the machine's cores share it."""
    found = {}
    for index in sorted((CPU / f"cpu{core}" / "cache").glob("index*")):
        if _read(index / "type") != "Instruction":
            found[f"L{_read(index / 'level')}"] = {
                "kib": int(_read(index / "size").rstrip("K") or 0),
                "shared_by": _count(_read(index / "shared_cpu_list")),
            }
    return found


def cores() -> Facts:
    """The cores there are, the ones this process may use, and its share of their time."""
    allowed = budget.allowed()
    return {
        "online": os.cpu_count(),
        "allowed": list(allowed.cores),
        "quota": allowed.quota,
        "threads": allowed.threads,
        "governor": _read(CPU / f"cpu{allowed.cores[0]}" / "cpufreq" / "scaling_governor") or None,
    }


def memory() -> Facts:
    """MiB: of the machine, free, allowed by control groups, swap, and lockable (`None`: without limit)."""
    info = {line.split(":")[0]: line.split()[1] for line in _read("/proc/meminfo").splitlines()}
    lockable = realtime.lockable()
    group = cgroup.memory_limit()
    return {
        "total_mb": int(info.get("MemTotal", 0)) // 1024,
        "available_mb": int(info.get("MemAvailable", 0)) // 1024,
        "swap_mb": int(info.get("SwapTotal", 0)) // 1024,
        "cgroup_mb": None if group is None else group // MIB,
        "lockable_mb": None if lockable is None else lockable / MIB,
        "page_kb": resource.getpagesize() // 1024,
    }


def groups() -> Facts:
    """The control groups' version for memory, and whether this process may make groups of its own."""
    found = cgroup.find("memory")
    own = cgroup.delegated()
    return {"version": found.version if found else None, "delegated": str(own) if own else None}


def scheduling() -> Facts:
    """Whether SCHED_FIFO is permitted here and now (tried, and undone), and what bounds it."""
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, *before)
        fifo = True
    except OSError:
        fifo = False
    share = _read("/proc/sys/kernel/sched_rt_runtime_us")
    period = _read("/proc/sys/kernel/sched_rt_period_us")
    return {
        "fifo": fifo,
        "rtprio_limit": resource.getrlimit(resource.RLIMIT_RTPRIO)[0],
        "share": int(share) / int(period) if share and period and int(share) >= 0 else None,
        "preemption": "rt" if _read("/sys/kernel/realtime") == "1" else platform.release(),
    }


def temperatures() -> dict[str, float]:
    """Degrees Celsius of each thermal zone, by its type."""
    found = {}
    for zone in sorted(Path("/sys/class/thermal").glob("thermal_zone*")):
        value = _read(zone / "temp")
        if value.lstrip("-").isdecimal():
            found[_read(zone / "type") or zone.name] = int(value) / 1000
    return found


def _count(ranges: str) -> int:
    """How many cores a list like 0-3,6 names."""
    total = 0
    for part in filter(None, ranges.split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def _read(path: str | Path) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
