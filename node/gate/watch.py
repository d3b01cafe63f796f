"""Notices a new configuration file and has a child process check it, while the loop goes on.

The child runs `reflexarc check`, which looks at models, cores and memory too; the loop itself only parses a
text that has passed.
"""

import os
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from reflexarc.node.clock import MS, SECOND
from reflexarc.node.config.load import parse, read
from reflexarc.node.config.problems import ConfigError
from reflexarc.node.config.schema import Config
from reflexarc.node.gate.child import Child

POLL_NS = 500 * MS
CHECK_LIMIT_NS = 30 * SECOND
_LONGEST_ANSWER = 4096
_CODE = """
import os, sys
os.sched_setaffinity(0, map(int, sys.argv[2:]))
from reflexarc.node.cli import main
os.write(3, b"%d" % main(["check", sys.argv[1]]))
"""

_Stamp = tuple[int, int, int]  # of a file: inode, modification time, size


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a check: a configuration to swap to, or why there is none."""

    config: Config | None
    error: str = ""


class Watch:
    """The configuration file of a running node. A file is checked when it has kept still for one poll."""

    def __init__(self, path: Path, now: int, cores: Collection[int]) -> None:
        """`cores` are all that the node may use, where the gate itself keeps to some of them."""
        self._path = path
        self._cores = cores
        self._seen = self._checked = _stamp(path)
        self._next_poll = now + POLL_NS
        self._asked = False
        self._check: _Check | None = None

    def request(self) -> None:
        """Check at the next poll, changed or not (SIGHUP): what the file names may have changed."""
        self._asked = True

    def poll(self, now: int) -> Verdict | None:
        """Goes on with what is to be done at `now`; a verdict once for each check."""
        if self._check is not None:
            verdict = self._check.poll(now)
            if verdict is not None:
                self._check = None
            return verdict
        if self._asked or now >= self._next_poll:
            self._next_poll = now + POLL_NS
            try:
                self._look(now)
            except OSError as error:
                return Verdict(None, f"{self._path}: the check cannot be started: {error.strerror or error}")
        return None

    def close(self) -> None:
        """Ends a check under way."""
        if self._check is not None:
            self._check.close()
            self._check = None

    def _look(self, now: int) -> None:
        before, self._seen = self._seen, _stamp(self._path)
        changed = self._seen != self._checked and self._seen == before
        if changed or self._asked:
            self._asked = False
            self._checked = self._seen
            self._check = _Check(self._path, now, self._cores)


class _Check:
    """One run of `reflexarc check` over the file as it is now."""

    def __init__(self, path: Path, now: int, cores: Collection[int]) -> None:
        self._path = path
        self._limit = now + CHECK_LIMIT_NS
        self._before = _read(path)
        self._answer = os.memfd_create("check", os.MFD_CLOEXEC)
        self._code = os.memfd_create("code", os.MFD_CLOEXEC)
        arguments = [sys.executable, "-c", _CODE, str(path), *map(str, cores)]
        with open(os.devnull, "r+b") as nothing:  # noqa: PTH123
            files = {0: nothing.fileno(), 1: nothing.fileno(), 2: self._answer, 3: self._code}
            self._child = Child(arguments, files, os.environ)

    def poll(self, now: int) -> Verdict | None:
        """The verdict, once the child has ended or its time is over."""
        how = self._child.ended()
        if not how and now < self._limit:
            return None
        answer = os.pread(self._answer, _LONGEST_ANSWER, 0).decode(errors="replace").strip()
        code = os.pread(self._code, 10, 0)
        self.close()
        if not how:
            return Verdict(None, f"{self._path}: the check took more than {CHECK_LIMIT_NS // SECOND} s")
        if code != b"0":
            return Verdict(None, answer.removeprefix("reflexarc: ") or f"{self._path}: the check: {how}")
        text = _read(self._path)
        if text is None or text != self._before:
            return Verdict(None, f"{self._path}: changed while it was checked")
        try:
            return Verdict(parse(text, self._path.parent, str(self._path)))
        except ConfigError as error:
            return Verdict(None, str(error))

    def close(self) -> None:
        """Kills the child if it still runs."""
        self._child.close()
        os.close(self._answer)
        os.close(self._code)


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except OSError:
        return (0, 0, 0)
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _read(path: Path) -> str | None:
    try:
        return read(path)
    except ConfigError:
        return None
