"""What this process may use: cores and memory, from affinity and control groups, not from the machine.

Memory is counted as resident bytes (Rss of smaps_rollup); a budget in the configuration is in MiB.
"""

import contextlib
import os
import resource
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from reflexarc.node import cgroup

MIB = 1 << 20


class BudgetError(RuntimeError):
    """Something that does not fit its budget; the message is one line with the sum."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The cores this process may run on, and how many cores' worth of time (`quota`, `None` for no limit)."""

    cores: tuple[int, ...]
    quota: float | None = None

    @property
    def threads(self) -> int:
        """How many threads may compute at once: no more than cores, nor than the quota lets run."""
        return len(self.cores) if self.quota is None else max(1, min(len(self.cores), int(self.quota)))


def allowed() -> Allowed:
    """What affinity and control groups allow now."""
    return Allowed(tuple(sorted(os.sched_getaffinity(0))), cgroup.cpu_quota())


def memory_limit() -> int:
    """Bytes this process may have: the machine's memory, or less where its control groups say so."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(machine, cgroup.memory_limit() or machine)


def resident(pid: int | None = None) -> int:
    """Resident bytes of a process; 0 where it is gone or not ours to see."""
    proc = Path("/proc") / ("self" if pid is None else str(pid))
    return _field(proc / "smaps_rollup", "Rss:") or _field(proc / "status", "VmRSS:")


def preflight(key: str, limit_mb: int, parts: Mapping[str, int]) -> None:
    """Refuse, with the sum shown, what cannot fit: `parts` are named bytes. Raises BudgetError."""
    need = sum(parts.values())
    if need > limit_mb * MIB:
        total = " + ".join(f"{size / MIB:.1f} {name}" for name, size in parts.items())
        raise BudgetError(f"{key}: {limit_mb} is below the {need / MIB:.1f} MiB needed ({total})")
    machine = memory_limit()
    if need > machine:
        raise BudgetError(
            f"{key}: {need / MIB:.1f} MiB are above the {machine / MIB:.0f} MiB this process may have"
        )


def cap_growth(limit: int, allowance: int = 0) -> None:
    """Make allocations fail (MemoryError) that would take this process above `limit` resident bytes.

    RLIMIT_DATA counts private writable memory, touched or not; so it is set to what there is now, plus what
    is left of the limit, plus `allowance` for what is reserved but never touched, such as stacks of threads
    (8 MiB each).
    """
    left = max(0, limit - resident())
    cap = _field(Path("/proc/self/status"), "VmData:") + left + allowance
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    if hard != resource.RLIM_INFINITY:
        cap = min(cap, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (cap, hard))


def ranges(numbers: Collection[int]) -> str:
    """Numbers as the kernel writes lists of cores: 0-3,6."""
    groups: list[list[int]] = []
    for number in sorted(numbers):
        if groups and number == groups[-1][1] + 1:
            groups[-1][1] = number
        else:
            groups.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in groups)


def _field(path: Path, name: str) -> int:
    """A "Name:   123 kB" line of a /proc file, in bytes; 0 where it cannot be read."""
    with contextlib.suppress(OSError, ValueError, IndexError), path.open() as file:
        for line in file:
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
