"""Tells systemd how the service is: the protocol of sd_notify(3), without its library.

Messages are dropped rather than waited for, and where the process was not started by systemd all of it does
nothing.
"""

import contextlib
import os
import socket
from collections.abc import MutableMapping
from typing import Final

from reflexarc.node.clock import US, now

LONGEST_STATUS: Final = 500


class Notifier:
    """The notification socket of this service; takes its variables out of the environment of children."""

    def __init__(self, environment: MutableMapping[str, str] = os.environ) -> None:
        address = environment.pop("NOTIFY_SOCKET", "")
        watchdog = environment.pop("WATCHDOG_USEC", "")
        pid = environment.pop("WATCHDOG_PID", "")
        self._socket = _connect(address) if address[:1] in ("/", "@") else None
        mine = self._socket is not None and watchdog.isdecimal() and pid in ("", str(os.getpid()))
        self.watchdog_ns: int | None = int(watchdog) * US if mine and int(watchdog) > 0 else None
        self._status = ""

    @property
    def active(self) -> bool:
        """Whether systemd listens."""
        return self._socket is not None

    def ready(self, status: str) -> None:
        """The service works (again, after `reloading`)."""
        self._send("READY=1", self._status_line(status))

    def status(self, text: str) -> None:
        """One line for `systemctl status`; sent only when it has changed."""
        if text != self._status:
            self._send(self._status_line(text))

    def watchdog(self) -> None:
        """The control loop has gone round; call it from there, at least twice within `watchdog_ns`."""
        self._send("WATCHDOG=1")

    def reloading(self) -> None:
        """A reload begins; `ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={now() // US}")

    def stopping(self, status: str) -> None:
        """The service is ending in good order."""
        self._send("STOPPING=1", self._status_line(status))

    def close(self) -> None:
        """Say no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _status_line(self, text: str) -> str:
        self._status = text
        return "STATUS=" + " ".join(text.split())[:LONGEST_STATUS]

    def _send(self, *lines: str) -> None:
        if self._socket is None:
            return
        with contextlib.suppress(OSError):  # full, or systemd is restarting: the next one counts
            self._socket.send("\n".join(lines).encode(errors="replace"))


def _connect(address: str) -> socket.socket | None:
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender.setblocking(False)
    try:
        sender.connect("\0" + address[1:] if address[0] == "@" else address)
    except OSError:
        sender.close()
        return None
    return sender
