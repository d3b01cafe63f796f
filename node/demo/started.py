"""A node started the way a service manager starts it: it tells on a socket when it is ready."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from reflexarc.node.clock import SECOND, now


class StartedNode:
    """`reflexarc run CONFIG` as a child process with a runtime directory of its own."""

    def __init__(self, config: Path, runtime: Path) -> None:
        address = runtime / "notify"
        self._notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._notify.bind(str(address))
        environment = os.environ | {"NOTIFY_SOCKET": str(address), "RUNTIME_DIRECTORY": str(runtime)}
        self._log = runtime / "log"
        self._began = now()
        self.ready_s: float | None = None
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "reflexarc.node.cli", "run", str(config)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def pid(self) -> int:
        """The gate's."""
        return self._process.pid

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def fileno(self) -> int:
        """For select: readable when the node has told something."""
        return self._notify.fileno()

    def listen(self) -> None:
        """Take what the node has told; the first READY=1 sets `ready_s`."""
        while True:
            try:
                said = self._notify.recv(4096)
            except BlockingIOError:
                return
            if b"READY=1" in said and self.ready_s is None:
                self.ready_s = (now() - self._began) / SECOND

    def log(self) -> str:
        """What it wrote so far."""
        return self._log.read_text(errors="replace").strip()

    def stop(self, timeout_s: float = 5.0) -> None:
        """SIGTERM, and SIGKILL where that does not help."""
        if not self.ended:
            self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._notify.close()
