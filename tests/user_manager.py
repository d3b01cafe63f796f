"""A real `systemd --user` in a mount namespace of its own, so that it also runs where PID 1 is something
else.

It sees an empty /run and keeps its units, runtime files and caches below one folder.
"""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

SYSTEMD = Path("/lib/systemd/systemd")
UNITS = Path(__file__).parent.parent / "systemd"
# What only the system's manager can do: other users, a view of the file system, cgroups, OOM scores.
# What a process may do (MemoryDenyWriteExecute, system calls, capabilities, limits) stays.
SYSTEM_ONLY = (
    *("User=", "Group=", "PrivateUsers=", "Delegate=", "MemoryMax=", "TasksMax=", "OOMScoreAdjust=-"),
    *("ProtectSystem=", "ProtectHome=", "ProtectProc=", "ProcSubset=", "PrivateTmp=", "PrivateDevices="),
    *("PrivateMounts=", "PrivateNetwork=", "ProtectHostname=", "ProtectKernel", "ProtectControlGroups="),
)

_START = """
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/u
exec /lib/systemd/systemd --user
"""


def why_not() -> str:
    """Why no manager can run here, "" where it can."""
    if os.geteuid() != 0:
        return "needs root for a mount namespace"
    if not SYSTEMD.exists() or shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return "needs systemd and util-linux"
    probe = subprocess.run(["unshare", "-m", "--propagation", "private", "true"], capture_output=True)
    return "" if probe.returncode == 0 else "may not make a mount namespace"


def adapted(unit: str, executable: Path, config: Path) -> str:
    """The text of a shipped unit for this manager: its program, its configuration, no users."""
    lines = (UNITS / unit).read_text().splitlines()
    kept = [line for line in lines if not line.startswith(SYSTEM_ONLY)]
    text = "\n".join(kept) + "\n"
    return text.replace("/opt/reflexarc/bin/reflexarc", str(executable)).replace(
        "/etc/reflexarc/node.toml", str(config)
    )


class UserManager:
    """Starts with `with`; `systemctl` talks to it."""

    def __init__(self, folder: Path) -> None:
        self.units = folder / "config" / "systemd" / "user"
        self.cache = folder / "cache"
        self.units.mkdir(parents=True)
        self.cache.mkdir()
        self._log = folder / "systemd.log"
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": "/run/u",
            "XDG_CONFIG_HOME": str(folder / "config"),
            "XDG_CACHE_HOME": str(self.cache),
        }

    def __enter__(self) -> "UserManager":
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                ["unshare", "-m", "--propagation", "private", "sh", "-ec", _START],
                env=self.environment,
                stdout=log,
                stderr=log,
            )
        self.wait(lambda: "running" in self.systemctl("is-system-running", check=False), 15)
        return self

    def __exit__(self, *_: object) -> None:
        self.systemctl("exit", check=False)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def systemctl(self, *arguments: str, check: bool = True) -> str:
        """What `systemctl --user` answers."""
        line = ["nsenter", "-t", str(self._process.pid), "-m", "systemctl", "--user", *arguments]
        done = subprocess.run(line, env=self.environment, capture_output=True, text=True, timeout=120)
        if check and done.returncode:
            raise AssertionError(f"{' '.join(arguments)}: {done.stdout}{done.stderr}{self.log()}")
        return done.stdout.strip()

    def show(self, unit: str, name: str) -> str:
        """One property of a unit."""
        return self.systemctl("show", unit, f"--property={name}", "--value")

    def wait(self, true: Callable[[], bool], seconds: float) -> None:
        """Until something holds; AssertionError after `seconds`."""
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end:
                raise AssertionError(f"still not so after {seconds} s: {self.log()}")
            time.sleep(0.05)

    def signal(self, unit: str, number: signal.Signals) -> int:
        """Send the unit's main process a signal; gives its PID."""
        pid = int(self.show(unit, "MainPID"))
        os.kill(pid, number)
        return pid

    def log(self) -> str:
        """What the manager and its units wrote."""
        return self._log.read_text(errors="replace")
