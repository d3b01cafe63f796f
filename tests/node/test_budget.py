"""Cores and memory come from affinity and control groups, version 1 and 2, and bind."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.node import budget, cgroup
from reflexarc.node.budget import MIB, Allowed, BudgetError, preflight, ranges


def tree(root: Path, groups: str, mounts: Mapping[str, str], files: Mapping[str, str]) -> Path:
    """A made-up /proc/self in `root`; `mounts` are lines of mountinfo from the root field on."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    lines = [line.format(root / folder) for folder, line in mounts.items()]
    (root / "mountinfo").write_text("".join(f"30 23 0:26 {line}\n" for line in lines))
    (root / "cgroup").write_text(groups)
    return root


V2 = {"cg": "/ {} rw,nosuid - cgroup2 cgroup2 rw"}
V1 = {
    "cpu": "/ {} rw - cgroup cgroup rw,cpu,cpuacct",
    "memory": "/ {} rw - cgroup cgroup rw,memory",
    "unified": "/ {} rw - cgroup2 cgroup2 rw",
}


def test_version_2_takes_the_smallest_on_the_way_up(tmp_path: Path) -> None:
    proc = tree(
        tmp_path,
        "0::/system.slice/node.service\n",
        V2,
        {
            "cg/system.slice/node.service/cpu.max": "max 100000",
            "cg/system.slice/node.service/memory.max": str(256 * MIB),
            "cg/system.slice/cpu.max": "150000 100000",
            "cg/system.slice/memory.max": str(128 * MIB),
        },
    )
    assert cgroup.cpu_quota(proc) == 1.5
    assert cgroup.memory_limit(proc) == 128 * MIB


def test_version_1_with_a_unified_hierarchy_beside_it(tmp_path: Path) -> None:
    proc = tree(
        tmp_path,
        "4:memory:/box\n1:cpu,cpuacct:/box\n0::/box\n",
        V1,
        {
            "cpu/box/cpu.cfs_quota_us": "50000",
            "cpu/box/cpu.cfs_period_us": "100000",
            "cpu/cpu.cfs_quota_us": "-1",
            "cpu/cpu.cfs_period_us": "100000",
            "memory/box/memory.limit_in_bytes": "9223372036854771712",
            "memory/memory.limit_in_bytes": str(512 * MIB),
        },
    )
    assert cgroup.cpu_quota(proc) == 0.5
    assert cgroup.memory_limit(proc) == 512 * MIB


def test_no_limits_are_none(tmp_path: Path) -> None:
    files = {"cg/a/cpu.max": "max 100000", "cg/a/memory.max": "max"}
    proc = tree(tmp_path, "0::/a\n", V2, files)
    assert cgroup.cpu_quota(proc) is None
    assert cgroup.memory_limit(proc) is None
    (tmp_path / "cgroup").write_text("")
    assert cgroup.cpu_quota(proc) is None
    assert cgroup.memory_limit(tmp_path / "nowhere") is None


def test_a_container_sees_its_group_as_the_mount(tmp_path: Path) -> None:
    mounts = {"cg": "/docker/abc {} rw - cgroup2 cgroup2 rw"}
    proc = tree(tmp_path, "0::/docker/abc\n", mounts, {"cg/memory.max": str(64 * MIB)})
    assert cgroup.memory_limit(proc) == 64 * MIB
    (tmp_path / "cgroup").write_text("0::/docker/abcdef\n")  # another's, outside the mount
    assert cgroup.memory_limit(proc) == 64 * MIB
    (tmp_path / "cgroup").write_text("0::/docker/abc/../../other\n")
    assert cgroup.memory_limit(proc) == 64 * MIB


def test_a_group_of_ones_own(tmp_path: Path) -> None:
    base = "cg/node.service"
    files = {f"{base}/cgroup.controllers": "memory pids", f"{base}/cgroup.procs": "11\n12"}
    proc = tree(tmp_path, "0::/node.service\n", V2, files)
    own = tmp_path / base
    if os.geteuid() == 0:
        assert cgroup.delegated(proc) is None  # not marked as ours
        try:
            os.setxattr(own, "user.delegate", b"1")
        except OSError:
            pytest.skip("no extended attributes here")
    assert cgroup.delegated(proc) == own
    cgroup_files(own, "worker.main")
    cgroup.confine(own, "worker.main", 13, 80 * MIB)
    assert (own / "worker.main" / "memory.max").read_text() == str(80 * MIB)
    assert (own / "worker.main" / "cgroup.procs").read_text() == "13"
    assert (own / "cgroup.subtree_control").read_text() == "+memory"
    (own / "cgroup.controllers").write_text("pids")
    assert cgroup.delegated(proc) is None


def cgroup_files(own: Path, name: str) -> None:
    """What the kernel makes with a group."""
    (own / name).mkdir()
    (own / name / "memory.swap.max").write_text("max")


def test_here() -> None:
    allowed = budget.allowed()
    assert allowed.cores == tuple(sorted(os.sched_getaffinity(0)))
    assert 1 <= allowed.threads <= len(allowed.cores)
    assert 16 * MIB < budget.memory_limit() < 1 << 50
    assert 4 * MIB < budget.resident() < 1 << 40
    assert budget.resident(os.getpid()) > 4 * MIB
    assert budget.resident(2**22 + 1) == 0


def test_affinity_counts_not_the_machine() -> None:
    core = min(os.sched_getaffinity(0))
    code = (
        f"import os; os.sched_setaffinity(0, [{core}])\n"
        "from reflexarc.node import budget; print(budget.allowed().cores, budget.allowed().threads)"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told == f"({core},) 1\n"


def test_the_sum_is_shown() -> None:
    parts = {"runtime": 26 * MIB, "weights": 60 * MIB, "arena": MIB // 2}
    preflight("worker.main.memory_mb", 87, parts)
    with pytest.raises(BudgetError) as caught:
        preflight("worker.main.memory_mb", 86, parts)
    assert str(caught.value) == (
        "worker.main.memory_mb: 86 is below the 86.5 MiB needed (26.0 runtime + 60.0 weights + 0.5 arena)"
    )
    with pytest.raises(BudgetError, match="this process may have"):
        preflight("worker.main.memory_mb", 1 << 40, {"weights": 1 << 59})


def test_memory_above_the_limit_is_refused_to_the_process() -> None:
    code = (
        "from reflexarc.node import budget\n"
        "budget.cap_growth(budget.resident() + 20 * budget.MIB)\n"
        "a = bytearray(10 * budget.MIB)\n"
        "try: b = bytearray(30 * budget.MIB)\n"
        "except MemoryError: print('refused')"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert told == "refused\n"


@given(st.sets(st.integers(0, 200)))
def test_ranges_are_the_kernels(numbers: set[int]) -> None:
    listed = [part.split("-") for part in ranges(numbers).split(",") if part]
    assert {n for part in listed for n in range(int(part[0]), int(part[-1]) + 1)} == numbers
    assert Allowed((0, 1, 2, 5)).threads == 4
    assert ranges((0, 1, 2, 5)) == "0-2,5"
