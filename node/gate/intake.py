"""What workers send to the gate: who may say what, what is acted on, what is handed on to the subscribers.

A worker may speak of itself and of its own pipelines only. Traces, health and decisions are handed on as the
bytes they came in.
"""

from collections.abc import Sequence

from reflexarc.control.gate import Gate
from reflexarc.node import clock, wire
from reflexarc.node.gate.process import WorkerProcess
from reflexarc.node.sockets import receive

MOST_A_TURN = 128  # messages of one worker in one turn of the loop

Parts = Sequence[bytes]


class Intake:
    """Reads the sockets of workers: of those that act, or of those in the wings, who change nothing yet."""

    def __init__(self, core: Gate | None = None) -> None:
        """`core` takes the decisions; None for workers in the wings, of whom nothing is handed on either."""
        self._core = core
        self._passed: list[Parts] = []

    def drain(self, process: WorkerProcess) -> bool:
        """Read what a worker has sent, but no more than a turn's share; gives whether more may wait."""
        for _ in range(MOST_A_TURN):
            parts = receive(process.socket)
            if parts is None:
                return False
            try:
                self._take(process, parts)
            except wire.Refused as refused:
                process.counts[refused.reason] += 1
        return True

    def passed(self) -> list[Parts]:
        """The messages to hand on that have come since the last call."""
        passed, self._passed = self._passed, []
        return passed

    def _take(self, process: WorkerProcess, parts: Parts) -> None:
        if len(parts) != 2:
            raise wire.Refused("parts")
        kind, slash, name = wire.decode_topic(parts[0]).partition("/")
        kind += slash
        mine = name in process.pipelines if kind in (wire.DECISION, wire.TRACE) else name == process.name
        if not mine:
            raise wire.Refused("topic")
        if kind == wire.HELLO:
            self._hello(process, parts)
            return
        if kind == wire.DECISION:
            self._decision(process, parts)
        elif kind == wire.HEALTH:
            self._health(process, parts)
        elif kind != wire.TRACE:
            raise wire.Refused("topic")
        if self._core is not None:
            self._passed.append(parts)

    def _hello(self, process: WorkerProcess, parts: Parts) -> None:
        _own(process, parts)
        process.heard = process.greeted = clock.now()
        self._void(process, process.heard)

    def _health(self, process: WorkerProcess, parts: Parts) -> None:
        plain = _own(process, parts)
        process.heard, process.health = clock.now(), plain
        epoch = plain.get("epoch")
        if type(epoch) is int and epoch > process.epoch:
            process.epoch = epoch
            self._void(process, process.heard)

    def _decision(self, process: WorkerProcess, parts: Parts) -> None:
        decision = wire.decode_decision(parts)
        if decision.session != process.session or not process.greeted:
            raise wire.Refused("session")
        if decision.epoch > process.epoch:  # its announcement was lost: nothing before this decision counts
            process.epoch = decision.epoch
            self._void(process, decision.received - 1)
        if decision.available:
            process.answering.add(decision.pipeline)
        if self._core is not None:
            self._core.accept(decision, clock.now())

    def _void(self, process: WorkerProcess, until: int) -> None:
        """Let nothing of a worker act that was received up to a moment."""
        if self._core is not None:
            self._core.discard_before(until, process.pipelines)


def _own(process: WorkerProcess, parts: Parts) -> dict[str, object]:
    """A map that bears the worker's session. Raises Refused."""
    plain = wire.decode(parts)[1]
    if plain.get("session") != process.session:
        raise wire.Refused("session")
    return plain
