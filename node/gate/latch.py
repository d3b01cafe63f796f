"""The e-stop's latch on disk, so that a stop outlives the gate's own death."""

import json
import os
from pathlib import Path

from reflexarc.control.estop import EStop
from reflexarc.node.clock import SECOND
from reflexarc.node.say import say

_LARGEST = 1 << 20


class LatchFile:
    """Holds `EStop.to_map()`. Written anew and renamed into place: a reader sees the old or the new one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._draft = path.with_name(path.name + ".new")

    def read(self) -> object:
        """What `write` was last given; None where there is no file.

        A file that cannot be read or is no JSON gives a string: no latch, so `EStop.restore` stops on it.
        """
        try:
            with self._path.open("rb") as file:
                plain = json.loads(file.read(_LARGEST))
                return "null" if plain is None else plain
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError) as error:
            return str(error)

    def write(self, plain: object) -> None:
        """Replace the latch; from here on it outlives a kill of the process. Raises OSError."""
        with self._draft.open("w", encoding="utf-8") as file:
            json.dump(plain, file)
        self._draft.replace(self._path)

    def sync(self) -> None:
        """Make the last `write` outlive a loss of power, where the file system can. Raises OSError."""
        for path in (self._path, self._path.parent):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


class Keeper:
    """Keeps the latch of an e-stop in its file: `write` before a command shows a change, `sync` after."""

    def __init__(self, file: LatchFile, estop: EStop) -> None:
        self._file = file
        self._estop = estop
        self._written = estop.revision
        self._unsynced = False
        self._quiet_until = 0

    def follow(self, estop: EStop) -> None:
        """Keep another e-stop from now on, whose latch is that of the one before."""
        self._estop = estop
        self._written = -1

    def write(self, now: int) -> None:
        """Replace the file if the latch has changed; where that fails it is said and tried again."""
        if self._estop.revision == self._written:
            return
        try:
            self._file.write(self._estop.to_map())
        except OSError as error:
            self._complain(error, now)
        else:
            self._written = self._estop.revision
            self._unsynced = True

    def sync(self, now: int) -> None:
        """Bring what `write` wrote to the disk."""
        if self._unsynced:
            self._unsynced = False
            try:
                self._file.sync()
            except OSError as error:
                self._complain(error, now)

    def _complain(self, error: OSError, now: int) -> None:
        if now >= self._quiet_until:
            self._quiet_until = now + SECOND
            say(f"e-stop: its latch would not outlive the gate: {error}")
