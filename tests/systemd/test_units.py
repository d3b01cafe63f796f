"""The units: sound, tight, and true under a real service manager."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from harness import Node, node
from user_manager import UNITS, UserManager, adapted, why_not

EXECUTABLE = Path(sys.executable).parent / "reflexarc"
EXPOSURE_TENTHS = 15  # systemd-analyze security: 1.5 of 10
SERVICE, KERNELS = "reflexarc.service", "reflexarc-kernels.service"

needs_analyze = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze (Debian: systemd)"
)
needs_manager = pytest.mark.skipif(bool(why_not()), reason=why_not() or "-")
needs_installed = pytest.mark.skipif(
    not EXECUTABLE.exists(), reason="needs reflexarc installed: pip install ."
)


@needs_analyze
@pytest.mark.parametrize("unit", [SERVICE, KERNELS])
def test_a_unit_is_tight(unit: str) -> None:
    line = [
        "systemd-analyze",
        "security",
        "--offline=yes",
        f"--threshold={EXPOSURE_TENTHS}",
        str(UNITS / unit),
    ]
    done = subprocess.run(line, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-400:]


@needs_analyze
def test_the_units_verify_without_a_word(tmp_path: Path) -> None:
    for unit in (SERVICE, KERNELS):
        text = (UNITS / unit).read_text().replace("/opt/reflexarc/bin/reflexarc", "/bin/true")
        (tmp_path / unit).write_text(text)
    units = [str(tmp_path / unit) for unit in (SERVICE, KERNELS)]
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stdout + done.stderr == ""


def test_only_the_builder_of_kernels_may_write_and_execute() -> None:
    assert "MemoryDenyWriteExecute=yes" in (UNITS / SERVICE).read_text()
    builder = (UNITS / KERNELS).read_text()
    assert "MemoryDenyWriteExecute=yes" not in builder
    assert "PrivateNetwork=yes" in builder


@contextmanager
def managed(folder: Path) -> Iterator[tuple[UserManager, Node]]:
    """A manager that has the units, adapted, and a configuration; nothing is started."""
    with node(folder, max_age_ms=100) as made:
        manager = UserManager(folder)
        for unit in (SERVICE, KERNELS):
            (manager.units / unit).write_text(adapted(unit, EXECUTABLE, made.config))
        with manager:
            yield manager, made


@needs_manager
@needs_installed
@pytest.mark.slow
def test_a_service_from_an_empty_cache_to_a_clean_stop(tmp_path: Path) -> None:
    with managed(tmp_path) as (manager, made):
        manager.systemctl("start", "--no-block", SERVICE)
        manager.wait(lambda: manager.show(SERVICE, "ActiveState") == "activating", 90)
        manager.wait(lambda: manager.show(SERVICE, "StatusText") != "", 200)
        assert manager.show(KERNELS, "Result") == "success"
        images = list(manager.cache.rglob("*.img")) + list(manager.cache.rglob("*avx*"))
        assert images or list(manager.cache.rglob("kernels/*"))

        time.sleep(0.5)
        assert manager.show(SERVICE, "ActiveState") == "activating"  # no input yet: not ready
        assert "no input" in manager.show(SERVICE, "StatusText")
        made.sense()
        manager.wait(lambda: manager.show(SERVICE, "ActiveState") == "active", 15)
        manager.wait(lambda: "NORMAL" in manager.show(SERVICE, "StatusText"), 15)

        manager.systemctl("stop", SERVICE)
        assert manager.show(SERVICE, "Result") == "success"
        assert made.listener.of("control/lift")[-1].plain["state"] == "SAFE"


@needs_manager
@needs_installed
@pytest.mark.slow
def test_a_frozen_control_loop_is_restarted(tmp_path: Path) -> None:
    with managed(tmp_path) as (manager, made):
        made.sense()
        manager.systemctl("start", SERVICE)
        made.wait_normal()
        frozen = manager.signal(SERVICE, signal.SIGSTOP)
        stopped_at = time.monotonic_ns()
        manager.wait(lambda: manager.show(SERVICE, "NRestarts") == "1", 15)
        manager.wait(lambda: manager.show(SERVICE, "MainPID") not in ("0", str(frozen)), 15)
        made.wait_normal(15, since=stopped_at + 1_000_000_000)
        assert not Path(f"/proc/{frozen}").exists()


@needs_manager
@needs_installed
@pytest.mark.slow
def test_a_killed_gate_is_started_again_and_a_stop_outlives_it(tmp_path: Path) -> None:
    with managed(tmp_path) as (manager, made):
        made.sense()
        manager.systemctl("start", SERVICE)
        made.wait_normal()
        made.estop("stop", "--id", "button")
        made.commands_until(lambda plain: plain["state"] == "ESTOP", 3)
        killed = manager.signal(SERVICE, signal.SIGKILL)
        killed_at = time.monotonic_ns()
        manager.wait(lambda: manager.show(SERVICE, "MainPID") not in ("0", str(killed)), 15)
        first = made.commands_until(lambda plain: True, 10, since=killed_at + 100_000_000)
        assert first.plain["state"] == "ESTOP"
