"""Cores, priority and locked memory of this process; what is not permitted is a warning, not an error.

All of it holds for the calling thread and is inherited by threads made later: call before there are any.
"""

import ctypes
import os
import resource
from collections.abc import Collection
from pathlib import Path
from typing import Final

from reflexarc.node.budget import ranges
from reflexarc.node.config.priority import Priority

FALLBACK_NICE: Final = 5  # of a worker that is not given SCHED_FIFO, so that the gate still goes first
PR_SET_PDEATHSIG: Final = 1
PR_SET_TIMERSLACK: Final = 29
MCL_CURRENT, MCL_FUTURE, MCL_ONFAULT = 1, 2, 4
CAP_IPC_LOCK: Final = 14

_libc = ctypes.CDLL(None, use_errno=True)


def pin(cores: Collection[int], key: str) -> list[str]:
    """Run on these cores only."""
    try:
        os.sched_setaffinity(0, cores)
    except (OSError, ValueError) as error:
        return [f"{key}: cannot run on cores {ranges(cores)}: {_why(error)}"]
    return []


def prioritize(
    wanted: Priority, key: str, *, fallback_nice: int = 0, reset_on_fork: bool = False
) -> tuple[Priority, list[str]]:
    """Run at a priority, or at the nearest that is permitted; gives that and the warnings.

    `fallback_nice` is added for a process that must stay below another when neither gets SCHED_FIFO.
    `reset_on_fork` keeps children and threads made later from inheriting it (the gate's workers must not
    start at its priority).
    """
    try:
        if wanted.realtime:
            policy = os.SCHED_FIFO | (os.SCHED_RESET_ON_FORK if reset_on_fork else 0)
            os.sched_setscheduler(0, policy, os.sched_param(wanted.level))
        else:
            os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        if wanted.kind == "nice":
            os.setpriority(os.PRIO_PROCESS, 0, wanted.level)
    except OSError as error:
        instead = Priority("nice", os.nice(fallback_nice if wanted.realtime else 0))
        rights = f"RLIMIT_RTPRIO {resource.getrlimit(resource.RLIMIT_RTPRIO)[0]}; " if wanted.realtime else ""
        return instead, [f"{key}: {wanted} is not permitted ({rights}{_why(error)}), so {instead}"]
    return wanted, []


def lock_memory(key: str) -> list[str]:
    """Keep every page in memory once it has been touched (nothing is touched for it, so Rss stays as it is).

    Only with the right to lock without limit: under a limit later allocations would fail.
    """
    limit = lockable()
    if limit is not None:
        return [f"{key}: memory is not locked (RLIMIT_MEMLOCK {limit} bytes, must be unlimited)"]
    if _libc.mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT):
        return [f"{key}: memory is not locked ({os.strerror(ctypes.get_errno())})"]
    return []


def lockable() -> int | None:
    """Bytes this process may lock in memory; `None` for no limit."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    return None if limit == resource.RLIM_INFINITY or _capable(CAP_IPC_LOCK) else limit


def die_with_parent(parent: int, signal: int = 9) -> bool:
    """Be sent `signal` when the parent process ends; False where it has ended already, or is not `parent`."""
    _libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal), 0, 0, 0)
    return os.getppid() == parent


def sharpen_timers() -> None:
    """Let timeouts of this thread end when due, not up to 50 us later (SCHED_FIFO needs none of it)."""
    _libc.prctl(PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)


def _capable(capability: int) -> bool:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            return bool(int(line.split()[1], 16) >> capability & 1)
    return False


def _why(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
