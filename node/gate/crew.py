"""All workers of one configuration: started together, watched, restarted with backoff, ended together."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reflexarc.node.budget import MIB
from reflexarc.node.clock import MS, SECOND
from reflexarc.node.config.schema import Worker
from reflexarc.node.endpoints import BindError
from reflexarc.node.gate.process import Plan, WorkerProcess
from reflexarc.node.say import say
from reflexarc.node.sockets import Sockets

FIRST_BACKOFF_NS = 100 * MS
LONGEST_BACKOFF_NS = 5 * SECOND
STEADY_NS = 5 * SECOND  # healthy for so long: the backoff begins anew
SILENCE_NS = 10 * SECOND  # a worker that says nothing for so long is ended
START_NS = 120 * SECOND  # it may have to wait for kernels to be built
GRACE_NS = 500 * MS  # from SIGTERM to SIGKILL
WATCH_NS = 200 * MS


class Ended(NamedTuple):
    """A worker's process has ended: how, and when the next one starts."""

    worker: str
    pid: int
    how: str
    wait_ns: int


@dataclass(slots=True)
class Post:
    """A worker's place in the crew, whoever holds it."""

    worker: Worker
    process: WorkerProcess | None = None
    restarts: int = 0
    backoff_ns: int = FIRST_BACKOFF_NS
    due: int = 0  # when the next process starts, while there is none
    last_end: str = ""
    resident_mb: float = 0.0


class Crew:
    """The workers of one configuration. `poll` never waits."""

    def __init__(self, plan: Plan, sockets: Sockets, folder: Path, serial: int) -> None:
        self.config = config = plan.config
        self._plan = plan
        self._group = plan.group
        self.posts = {
            name: Post(worker) for name, worker in config.workers.items() if config.pipelines_of(name)
        }
        self.stopping = False
        self.failure = ""  # why it cannot take over: a process that ended before its first hello
        self._sockets = sockets
        self._folder = folder
        self._serial = serial
        self._next_watch = 0
        firsts = (
            each.window.length_s + each.window.hop_s * each.decide.hold for each in config.pipelines.values()
        )
        self._patience = SECOND + round(SECOND * max(firsts))

    def start(self, now: int) -> None:
        """Spawn every worker."""
        for post in self.posts.values():
            self._spawn(post, now)

    def ready(self, now: int) -> bool:
        """Whether it can take over: every worker has said hello, and every pipeline gives answers.

        Without input there are no answers: a pipeline is waited for as long as its first would take.
        """
        processes = [post.process for post in self.posts.values()]
        return all(process is not None and self._answers(process, now) for process in processes)

    def _answers(self, process: WorkerProcess, now: int) -> bool:
        waited = now - process.greeted > self._patience
        return process.greeted > 0 and (waited or process.answering == process.pipelines)

    @property
    def gone(self) -> bool:
        """Whether a stopped crew has ended whole."""
        return self.stopping and not any(True for _ in self.processes())

    def processes(self) -> Iterator[WorkerProcess]:
        """The processes there are now."""
        for post in self.posts.values():
            if post.process is not None:
                yield post.process

    def poll(self, now: int) -> list[Ended]:
        """Reap, watch and restart; what has ended since the last call."""
        ended = []
        watch = now >= self._next_watch
        if watch:
            self._next_watch = now + WATCH_NS
        for post in self.posts.values():
            process = post.process
            if process is None:
                if not self.stopping and now >= post.due:
                    post.restarts += 1
                    self._spawn(post, now)
                continue
            process.press(now)
            if how := process.ended():
                ended.append(self._reap(post, process, how, now))
            elif watch:
                _watch(post, process, now)
                self._confine(post, process)
        return ended

    def stop(self, now: int, grace_ns: int = GRACE_NS) -> None:
        """Ask every worker to end; go on polling until `gone`."""
        self.stopping = True
        for process in self.processes():
            process.stop(now, grace_ns)

    def forgive(self, now: int) -> None:
        """Take no worker's silence amiss that fell into a standstill of the gate itself."""
        for process in self.processes():
            process.heard = now

    def close(self) -> None:
        """End everything at once."""
        self.stopping = True
        for post in self.posts.values():
            if post.process is not None:
                post.process.close()
                post.process = None

    def _spawn(self, post: Post, now: int) -> None:
        name = post.worker.name
        path = self._folder / f"{self.config.node.name}.{name}.{self._serial}.{post.restarts}.sock"
        post.resident_mb = 0.0
        try:
            post.process = WorkerProcess(self._plan, name, self._sockets, path, now)
        except (OSError, BindError) as error:
            self._vacate(post, f"cannot start: {error}", now)
            self.failure = f"worker.{name}: {post.last_end}"

    def _confine(self, post: Post, process: WorkerProcess) -> None:
        """Have the kernel hold the limit too, where control groups are delegated."""
        if self._group is None or not process.greeted:
            return
        try:
            process.confine(self._group, post.worker.memory_mb * MIB)
        except OSError as error:
            say(f"warning: no control groups for workers: {error}")
            self._group = None

    def _reap(self, post: Post, process: WorkerProcess, how: str, now: int) -> Ended:
        process.close()
        post.process = None
        if process.greeted and now - process.started >= STEADY_NS:
            post.backoff_ns = FIRST_BACKOFF_NS
        if not process.greeted and not self.stopping:
            self.failure = f"worker.{process.name}: {how}"
        return Ended(process.name, process.pid, how, self._vacate(post, how, now))

    def _vacate(self, post: Post, how: str, now: int) -> int:
        """Leave a post empty for the time of its backoff; gives that time."""
        post.last_end = how
        wait = post.backoff_ns
        post.due = now + wait
        post.backoff_ns = min(2 * wait, LONGEST_BACKOFF_NS)
        return wait


def _watch(post: Post, process: WorkerProcess, now: int) -> None:
    """Hold a worker to its memory and to speaking; while it starts, its own check says more than a kill."""
    post.resident_mb = process.resident_mb()
    limit_mb = post.worker.memory_mb if process.greeted else 2 * post.worker.memory_mb
    if post.resident_mb > limit_mb:
        process.kill(f"memory: {post.resident_mb:.1f} MiB is above memory_mb {post.worker.memory_mb}")
    elif now - process.heard > (SILENCE_NS if process.greeted else START_NS):
        process.kill(f"silent for {(now - process.heard) / 1e9:.0f} s")
