"""The runtime folder: the lock of a node, its latch, and the sockets of its workers."""

import os
import stat
from pathlib import Path

from reflexarc.node.config.endpoint import LONGEST_IPC
from reflexarc.node.endpoints import Lock

# What a worker's socket adds to the names of node and worker.
_ROOM = len(".9999.9999999.sock")


class FolderError(RuntimeError):
    """A runtime folder that cannot serve; the message is one line."""


def runtime_folder() -> Path:
    """$RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/reflexarc, else /tmp/reflexarc-UID; made if it is missing.

    Raises FolderError where it cannot be made, or belongs to or is open to somebody else.
    """
    folder = _place()
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise FolderError(f"{folder}: the runtime folder cannot be made: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise FolderError(f"{folder}: the runtime folder is not a directory that only this user can write")
    return folder


def take(folder: Path, name: str) -> Lock:
    """Lock the folder for a node of that name and sweep away the sockets of one that was killed.

    Raises FolderError where one runs already, or the paths of sockets would be too long.
    """
    try:
        lock = Lock(folder / f"{name}.lock")
    except BlockingIOError:
        raise FolderError(f"node.name: {name} runs already (lock {folder}/{name}.lock)") from None
    except OSError as error:
        raise FolderError(f"{folder}/{name}.lock: cannot be made: {error.strerror}") from None
    for path in (*folder.glob(f"{name}.*.sock"), *folder.glob(f"{name}.*.sock.lock")):
        path.unlink(missing_ok=True)
    return lock


def check_room(folder: Path, node: str, worker: str) -> None:
    """Raises FolderError where a worker's socket would have a path longer than the kernel takes."""
    longest = len(os.fsencode(folder)) + 1 + len(node) + 1 + len(worker) + _ROOM
    if longest > LONGEST_IPC:
        raise FolderError(
            f"{folder}: a socket of worker.{worker} here may take {longest} bytes, above {LONGEST_IPC}"
        )


def _place() -> Path:
    if given := os.environ.get("RUNTIME_DIRECTORY"):
        return Path(given.split(":")[0])
    if user := os.environ.get("XDG_RUNTIME_DIR"):
        return Path(user) / "reflexarc"
    return Path("/tmp") / f"reflexarc-{os.geteuid()}"
