"""The worker's loop: receive, step, send; health once a second and whenever it changes.

Each turn reads every socket to its end (a ZeroMQ descriptor is edge-triggered), but no more than a turn's
share of each. A loop that stood still longer than `stall_ms` throws away what waited and begins a new epoch:
nothing old acts.
"""

import gc
import os
import select
from collections.abc import Mapping, Sequence
from time import sleep

import zmq

from reflexarc.node import clock, wire
from reflexarc.node.clock import MS, SECOND, US
from reflexarc.node.worker.health import pipelines_map, streams_map
from reflexarc.node.worker.inputs import Input, Source
from reflexarc.node.worker.pipeline import Interruption, Outbox, Pipeline
from reflexarc.node.worker.task import Task

GATHER_NS = 150 * US  # from one wake to the next, so that messages close to each other cost one turn
SETTLE_NS = 20 * MS  # after a standstill, for what waited in the kernel to come through and be thrown away
LOOK_NS = 20 * MS  # between looks at the streams' health
TEND_NS = 200 * MS  # between looks at the connections
REPORT_NS = SECOND


class Loop:
    """Runs the pipelines of one worker for ever."""

    def __init__(
        self,
        name: str,
        session: int,
        stall_ns: int,
        gate: zmq.Socket[bytes],
        sources: Sequence[Source],
        inputs: Sequence[Input],
        tasks: Sequence[Task],
    ) -> None:
        self._session = session
        self.epoch = 0
        self.unsent = 0  # messages that the gate did not take
        self._inputs = inputs
        self._sources = sources
        self._tasks = tasks
        self._topic = wire.HEALTH + name
        self._stall_ns = stall_ns
        self._gate = gate
        self._inboxes = {each.name: each.inbox for each in inputs}
        self._fds = [source.fd for source in sources]
        self._pid = os.getpid()
        self._reports = 0
        self._next_look = self._next_tend = self._next_report = self._settled = 0

    def run(self, gate: int) -> None:
        """Turn after turn until the process `gate` is not the parent any more."""
        due = clock.now()
        while os.getppid() == gate:
            begin = clock.now()
            if begin - due > self._stall_ns:
                self._stalled(begin)
            due = self.turn(begin)
            rest = begin + GATHER_NS - clock.now()
            if rest > 0:
                sleep(rest / SECOND)
            wait = due - clock.now()
            if wait > 0:
                select.select(self._fds, (), (), wait / SECOND)

    def turn(self, now: int) -> int:
        """Take what has come and act on it; gives when the next turn is due (monotonic ns)."""
        if now < self._settled:
            self._discard()
            return now
        waiting = [source for source in self._sources if source.drain(now)]
        self._step()
        if now >= self._next_look:
            self._look(now)
        return now if waiting else self._next_look

    def _step(self) -> None:
        """Give the pipelines what has come; decisions leave at once, traces when all are done."""
        inboxes, done = self._inboxes, []
        for task in self._tasks:
            pipeline = task.pipeline
            if inboxes[pipeline.stream]:
                outbox = pipeline.step(clock.wall(), inboxes)
                if outbox.decisions:
                    self._decide(task, outbox)
                    done.append((pipeline, outbox))
        for inbox in inboxes.values():
            inbox.clear()
        for pipeline, outbox in done:
            self._trace(pipeline, outbox)

    def _look(self, now: int) -> None:
        """See to the streams' health, and report it where it is due."""
        self._next_look = now + LOOK_NS
        wall = clock.wall()
        if now >= self._next_tend:
            self._next_tend = now + TEND_NS
            for source in self._sources:
                source.connections.update()
        changed = False
        for each in self._inputs:
            alive = each.alive
            changed |= each.changed(now, wall)
            if alive and not each.alive:
                self._interrupt(
                    "dead", wall, [task for task in self._tasks if task.pipeline.stream == each.name]
                )
        if changed or now >= self._next_report:
            self._report(now, wall)
            gc.collect(0)

    def _stalled(self, now: int) -> None:
        """Throw away what waits, and tell the gate before anything else."""
        self.epoch += 1
        self._settled = now + SETTLE_NS
        self._discard()
        for each in self._inputs:
            each.abandon("stall")
        wall = clock.wall()
        self._report(now, wall)
        self._interrupt("stall", wall, self._tasks)

    def _discard(self) -> None:
        for source in self._sources:
            source.discard("stall")

    def _interrupt(self, why: Interruption, wall: int, tasks: Sequence[Task]) -> None:
        for task in tasks:
            outbox = task.pipeline.interrupt(wall, why, self.epoch)
            self._decide(task, outbox)
            self._trace(task.pipeline, outbox)

    def _decide(self, task: Task, outbox: Outbox) -> None:
        topic = wire.DECISION + task.pipeline.name
        for decision in outbox.decisions:
            self._send(topic, decision.to_map())
            if decision.available and clock.now() - decision.received > task.deadline_ns:
                task.missed += 1

    def _trace(self, pipeline: Pipeline, outbox: Outbox) -> None:
        topic = wire.TRACE + pipeline.name
        for trace in outbox.traces:
            self._send(topic, trace)

    def _report(self, now: int, wall: int) -> None:
        self._next_report = now + REPORT_NS
        plain: dict[str, object] = {
            "session": self._session,
            "seq": self._reports,
            "t": wall,
            "pid": self._pid,
            "epoch": self.epoch,
            "unsent": self.unsent,
            "stray": sum(source.stray for source in self._sources),
            **streams_map(self._inputs),
            **pipelines_map(self._tasks),
        }
        self._send(self._topic, plain)
        self._reports += 1

    def _send(self, topic: str, plain: Mapping[str, object]) -> None:
        try:
            self._gate.send_multipart(wire.encode(topic, plain), zmq.NOBLOCK)
        except zmq.Again:
            self.unsent += 1
