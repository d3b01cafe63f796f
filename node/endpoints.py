"""Who holds an ipc path: a lock beside it, since a second bind would steal it without a word."""

import fcntl
import os
import socket
import stat
from pathlib import Path

from reflexarc.node.config.endpoint import ipc_path


class BindError(RuntimeError):
    """An endpoint that cannot be bound; the message is one line with its key and itself."""


class Lock:
    """An exclusive lock on a file, held until `release` or the end of the process. The file stays."""

    def __init__(self, path: Path) -> None:
        """Raises BlockingIOError where another process holds it, OSError where the file cannot be made."""
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._fd)
            raise

    def release(self) -> None:
        """Let another process have it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def lock_ipc(endpoint: str, key: str) -> Lock | None:
    """Lock the path of an ipc endpoint before it is bound; `None` for others, which the kernel guards.

    Raises BindError where a process of ours holds it, any process listens there, or something else stands
    there (libzmq would remove it).
    """
    path = ipc_path(endpoint)
    if path is None:
        return None
    try:
        lock = Lock(Path(path + ".lock"))
    except BlockingIOError:
        raise BindError(f"{key}: {endpoint} is in use: another process has bound it") from None
    except OSError as error:
        raise BindError(f"{key}: {endpoint} cannot be bound: {path}.lock: {error.strerror}") from None
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return lock
    if not stat.S_ISSOCK(mode):
        lock.release()
        raise BindError(f"{key}: {endpoint} cannot be bound: {path} is there and is not a socket")
    if _answers(path):
        lock.release()
        raise BindError(f"{key}: {endpoint} is in use: another process has bound it")
    return lock


def _answers(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0.2)
        try:
            probe.connect(path)
        except OSError:
            return False
        return True
