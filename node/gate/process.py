"""One process of a worker, and the gate's end of its socket."""

import contextlib
import os
import signal
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import zmq

from reflexarc.node import cgroup, wire
from reflexarc.node.budget import Allowed
from reflexarc.node.clock import fresh_session
from reflexarc.node.config.place import Placement
from reflexarc.node.config.schema import Config
from reflexarc.node.gate.child import Child
from reflexarc.node.sockets import Sockets
from reflexarc.node.worker.order import Order

QUEUE = 4096  # messages between a worker and the gate
_MODULE = "reflexarc.node.worker"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration and where its processes run on this machine.

    `group` is the control group that is delegated to this node, if there is one.
    """

    config: Config
    placement: Placement
    allowed: Allowed
    group: Path | None


class WorkerProcess:
    """A spawned worker, with a session number and a socket of its own: nothing of a former one mixes in."""

    def __init__(self, plan: Plan, name: str, sockets: Sockets, path: Path, now: int) -> None:
        """Binds the socket (PULL) at `path`, then spawns the process. Raises OSError, BindError."""
        self.name = name
        self.session = fresh_session()
        self.pipelines = frozenset(pipeline.name for pipeline in plan.config.pipelines_of(name))
        self.started = self.heard = now
        self.greeted = 0  # when it said hello (monotonic ns)
        self.answering: set[str] = set()  # pipelines that have given an answer
        self.epoch = 0
        self.fate = ""  # why the gate ended it, if it did
        self.health: dict[str, object] = {}  # its last word
        self.counts: Counter[str] = Counter()  # messages refused, by reason
        self._group: Path | None = None  # a control group of its own
        self._kill_at = 0  # when the gate must kill it, once told to stop; 0: not told
        self._path = path
        self._sockets = sockets
        endpoint = f"ipc://{path}"
        self.socket: zmq.Socket[bytes] = sockets.puller(
            endpoint, f"worker.{name}", max_bytes=wire.MAX_BYTES, queue=QUEUE
        )
        self.fd = int(self.socket.get(zmq.FD))
        try:
            self._process = _spawn(plan, name, endpoint, self.session)
        except OSError:
            self._unbind()
            raise

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def end_fd(self) -> int:
        """Readable once the process has ended."""
        return self._process.fd

    def ended(self) -> str:
        """How the process ended, in words; empty while it lives."""
        how = self._process.ended()
        return how and (self.fate or how)

    def resident_mb(self) -> float:
        """Resident memory in MiB; 0 once it is gone."""
        return self._process.resident_mb()

    def confine(self, own: Path, memory: int) -> None:
        """Give it a control group in `own` with at most so many bytes, once. Raises OSError."""
        if self._group is None:
            self._group = own / f"{self.name}.{self.pid}"
            cgroup.confine(own, self._group.name, self.pid, memory)

    def stop(self, now: int, grace_ns: int) -> None:
        """Ask it to end; `press` kills it when the grace is over."""
        if not self._kill_at:
            self._kill_at = now + grace_ns
            self._process.send(signal.SIGTERM)

    def press(self, now: int) -> None:
        """Kill it if it was told to stop and has not obeyed in time."""
        if self._kill_at and now >= self._kill_at:
            self._process.send(signal.SIGKILL)

    def kill(self, fate: str) -> None:
        """End it at once, for the reason given."""
        self.fate = self.fate or fate
        self._process.send(signal.SIGKILL)

    def close(self) -> None:
        """Free the socket; kill the process if it still lives."""
        self._unbind()
        self._process.close()
        if self._group is not None:
            with contextlib.suppress(OSError):
                self._group.rmdir()

    def _unbind(self) -> None:
        self._sockets.close(self.socket)
        for path in (self._path, self._path.with_name(self._path.name + ".lock")):
            path.unlink(missing_ok=True)


def _spawn(plan: Plan, name: str, endpoint: str, session: int) -> Child:
    """Start the worker with its order on standard input: a file in memory, so that writing it never waits."""
    seat = plan.placement.workers[name]
    order = Order(
        text=plan.config.text,
        base=str(plan.config.base),
        worker=name,
        endpoint=endpoint,
        session=session,
        gate=os.getpid(),
        allowed=plan.allowed.cores,
        cores=seat.cores,
        threads=seat.threads,
        priority_kind=seat.priority.kind,
        priority_level=seat.priority.level,
    )
    environment = os.environ | _ONE_THREAD
    fd = os.memfd_create("order", os.MFD_CLOEXEC)
    try:
        os.write(fd, order.to_line())
        os.lseek(fd, 0, os.SEEK_SET)
        return Child([sys.executable, "-m", _MODULE], {0: fd}, environment)
    finally:
        os.close(fd)
