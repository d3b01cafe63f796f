"""Child processes of a real-time process: watched through pidfds, never waited for.

wait(2) makes the kernel drop the child's entries under /proc, and for that it spins until everybody else who
is at them has finished: the child's own last threads, a monitor. A parent at SCHED_FIFO can be what keeps
them from running, and then it spins for ever (seen on Linux 6.18, PREEMPT_NONE, both on one core). So here
children release themselves (SA_NOCLDWAIT): a pidfd tells when one has ended, and SIGCHLD, which stays
blocked, how. For the same reason nothing under /proc/PID is looked up by its path once the child may be
ending.
"""

import contextlib
import ctypes
import os
import signal
from collections.abc import Mapping

from reflexarc.node.budget import MIB
from reflexarc.node.clock import SECOND
from reflexarc.node.gate.waiting import wait_readable

SA_NOCLDSTOP = 1
SA_NOCLDWAIT = 2
_CLOSE_NS = SECOND
_PAGE = os.sysconf("SC_PAGE_SIZE")

_ends: dict[int, str] = {}  # how processes ended that nobody has asked for yet


class _Action(ctypes.Structure):
    """struct sigaction of the C library (glibc and musl, 64-bit)."""

    _fields_ = (
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_byte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    )


def let_children_go() -> None:
    """Never leave a zombie from now on, in the whole process; call it before there are other threads.

    A thread that does not block SIGCHLD would swallow it.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    action = _Action(flags=SA_NOCLDWAIT | SA_NOCLDSTOP)
    if ctypes.CDLL(None, use_errno=True).sigaction(signal.SIGCHLD, ctypes.byref(action), None):
        raise OSError(ctypes.get_errno(), "sigaction")


class Child:
    """A process that this one has started; `fd` is readable once it has ended."""

    def __init__(
        self, arguments: list[str], files: Mapping[int, int], environment: Mapping[str, str]
    ) -> None:
        """Start it, in a process group of its own; `files` gives its descriptors ours. Raises OSError."""
        actions = [(os.POSIX_SPAWN_DUP2, ours, its) for its, ours in files.items()]
        self.pid = os.posix_spawn(
            arguments[0], arguments, environment, file_actions=actions, setpgroup=0, setsigmask=()
        )
        _ends.pop(self.pid, None)  # of an earlier process of that number
        self.fd = self._statm = -1
        try:
            self.fd = os.pidfd_open(self.pid)
        except ProcessLookupError:  # it has ended already
            return
        except OSError:  # it could not be watched
            os.kill(self.pid, signal.SIGKILL)
            raise
        with contextlib.suppress(OSError):
            self._statm = open_statm(self.pid)

    def ended(self) -> str:
        """How it ended, in words; empty while it lives."""
        if self.fd >= 0 and not wait_readable((self.fd,), 0):
            return ""
        _collect()
        return _ends.pop(self.pid, "ended")

    def resident_mb(self) -> float:
        """Resident memory in MiB; 0 once it is gone."""
        return resident_mb(self._statm)

    def send(self, number: int) -> None:
        """Send a signal, if it still lives."""
        if self.fd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.fd, number)

    def close(self) -> None:
        """Kill it if it still lives, and forget it."""
        self.send(signal.SIGKILL)
        if self.fd >= 0:
            wait_readable((self.fd,), _CLOSE_NS)
        for fd in (self.fd, self._statm):
            if fd >= 0:
                os.close(fd)
        self.fd = self._statm = -1


def open_statm(pid: int) -> int:
    """A descriptor for `resident_mb`. Raises OSError."""
    return os.open(f"/proc/{pid}/statm", os.O_RDONLY | os.O_CLOEXEC)


def resident_mb(statm: int) -> float:
    """Resident memory of a process in MiB, 0 once it is gone; some microseconds, unlike smaps_rollup."""
    try:
        return int(os.pread(statm, 256, 0).split()[1]) * _PAGE / MIB
    except (OSError, IndexError, ValueError):
        return 0.0


def _collect() -> None:
    """Take what SIGCHLD tells. Of two ends at one moment it tells of one: the other is just "ended"."""
    while (told := signal.sigtimedwait({signal.SIGCHLD}, 0)) is not None:
        if told.si_code == os.CLD_EXITED:
            _ends[told.si_pid] = f"exit code {told.si_status}"
        elif told.si_code in (os.CLD_KILLED, os.CLD_DUMPED):
            _ends[told.si_pid] = f"killed by {signal.Signals(told.si_status).name}"
