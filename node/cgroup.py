"""What control groups allow this process, version 1 and 2 alike, and groups of its own where delegated.

Limits bind at every level of the hierarchy, so each is the smallest on the way from the process's own group
up to the mount. Formats: Documentation/admin-guide/cgroup-v1 and cgroup-v2.rst of the kernel.
"""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

UNLIMITED_V1 = 1 << 60  # version 1 writes "no limit" as the largest multiple of the page size
OWN_PROCESSES = "gate"  # a group that has controllers for its children may hold no process itself


@dataclass(frozen=True, slots=True)
class Group:
    """The directory of this process's group in one hierarchy, and the mount it lies in."""

    path: Path
    mount: Path
    version: int

    def values(self, name: str) -> list[str]:
        """The content of a file at each level, the own group first; levels without it are left out."""
        found = []
        for level in (self.path, *self.path.parents):
            with contextlib.suppress(OSError):
                found.append((level / name).read_text().strip())
            if level == self.mount:
                break
        return found


def cpu_quota(proc: Path = Path("/proc/self")) -> float | None:
    """How many cores' worth of time the groups allow; `None` where they do not limit it."""
    quotas: list[float] = []
    group = find("cpu", proc)
    if group is None:
        return None
    if group.version == 2:
        for text in group.values("cpu.max"):
            quota, _, period = text.partition(" ")
            if quota != "max":
                quotas.append(int(quota) / int(period or 100_000))
    else:
        for quota, period in zip(
            group.values("cpu.cfs_quota_us"), group.values("cpu.cfs_period_us"), strict=False
        ):
            if int(quota) > 0:
                quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def memory_limit(proc: Path = Path("/proc/self")) -> int | None:
    """Bytes of memory the groups allow; `None` where they do not limit it."""
    group = find("memory", proc)
    if group is None:
        return None
    texts = group.values("memory.max" if group.version == 2 else "memory.limit_in_bytes")
    limits = [int(text) for text in texts if text != "max"]
    return min((limit for limit in limits if limit < UNLIMITED_V1), default=None)


def find(controller: str, proc: Path = Path("/proc/self")) -> Group | None:
    """The group of this process that has a controller: its version 1 hierarchy, else the unified one."""
    unified = None
    for line in _lines(proc / "cgroup"):
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        if controller in controllers.split(","):
            return _locate(path, controller, proc)
        if not controllers:
            unified = _locate(path, None, proc)
    return unified


def delegated(proc: Path = Path("/proc/self")) -> Path | None:
    """The directory of this process's unified group where it may make groups with memory limits, else `None`.

    That is `Delegate=memory` in systemd: for a user the directory is theirs, for root it carries a mark.
    """
    paths = [line[3:] for line in _lines(proc / "cgroup") if line.startswith("0::")]
    group = _locate(paths[0], None, proc) if paths else None
    if group is None or "memory" not in " ".join(_lines(group.path / "cgroup.controllers")).split():
        return None
    ours = _marked(group.path) if os.geteuid() == 0 else os.access(group.path, os.W_OK)
    return group.path if ours else None


def confine(own: Path, name: str, pid: int, memory: int) -> None:
    """Put process `pid` into the group `own/name` with at most `memory` bytes (no swap). Raises OSError.

    `own` is what `delegated` gave; its own processes move into a group beside the new one first.
    """
    (own / OWN_PROCESSES).mkdir(exist_ok=True)
    for member in _lines(own / "cgroup.procs"):
        (own / OWN_PROCESSES / "cgroup.procs").write_text(member)
    (own / "cgroup.subtree_control").write_text("+memory")
    group = own / name
    group.mkdir(exist_ok=True)
    (group / "memory.max").write_text(str(memory))
    swap = group / "memory.swap.max"
    if swap.exists():
        swap.write_text("0")
    (group / "cgroup.procs").write_text(str(pid))


def _marked(path: Path) -> bool:
    """Whether systemd says that this group is delegated (cgroup delegation, systemd.io/CGROUP_DELEGATION)."""
    for name in ("user.delegate", "trusted.delegate"):
        with contextlib.suppress(OSError):
            return os.getxattr(path, name) == b"1"
    return False


def _locate(path: str, controller: str | None, proc: Path) -> Group | None:
    """Where a group's path, as /proc/PID/cgroup tells it, lies under the mounts that this process sees."""
    for line in _lines(proc / "mountinfo"):
        left, _, right = line.partition(" - ")
        root, mount = left.split()[3:5]
        kind, _, options = (*right.split(), "", "", "")[:3]
        if controller is None and kind == "cgroup2":
            return Group(_inside(path, root, Path(mount)), Path(mount), 2)
        if controller is not None and kind == "cgroup" and controller in options.split(","):
            return Group(_inside(path, root, Path(mount)), Path(mount), 1)
    return None


def _inside(path: str, root: str, mount: Path) -> Path:
    """Where group `path` lies under a mount that shows the hierarchy from `root`; the mount if outside."""
    prefix = root.rstrip("/")
    if not f"{path}/".startswith(f"{prefix}/"):
        return mount
    place = mount / path.removeprefix(prefix).lstrip("/")
    return place if ".." not in place.parts and place.is_dir() else mount


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
