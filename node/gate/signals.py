"""Signals as bytes on a pipe, so that the loop meets them where it waits for everything else."""

import os
import signal

STOP = frozenset({signal.SIGTERM, signal.SIGINT})
RELOAD = frozenset({signal.SIGHUP})
_CAUGHT = (*STOP, *RELOAD)


class Signals:
    """Catches SIGTERM, SIGINT and SIGHUP for the life of the process."""

    def __init__(self) -> None:
        """To be made in the main thread; nothing restores the former handlers."""
        self.fd, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in _CAUGHT:
            signal.signal(number, lambda *_: None)  # only the byte on the pipe counts

    def take(self) -> frozenset[int]:
        """The signals that arrived since the last call."""
        try:
            return frozenset(os.read(self.fd, 4096))
        except BlockingIOError:
            return frozenset()
