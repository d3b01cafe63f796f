"""What workers send to the gate: who may say what, what is acted on, what is handed on to the subscribers.

A worker may speak of itself and of its own pipelines only. Traces, health and decisions are handed on as the
bytes they came in.
"""

from collections.abc import Callable, Sequence

from reflexarc.control.gate import Gate
from reflexarc.node import clock, wire
from reflexarc.node.gate.process import WorkerProcess
from reflexarc.node.sockets import receive

MOST_A_TURN = 128  # messages of one worker in one turn of the loop

Parts = Sequence[bytes]


class Intake:
    """Reads the sockets of workers on behalf of one control core."""

    def __init__(self, core: Gate, publish: Callable[[Parts], None]) -> None:
        self.core = core
        self._publish = publish

    def drain(self, process: WorkerProcess, *, current: bool = True) -> bool:
        """Read what a worker has sent, but no more than a turn's share; gives whether more may wait.

        Of a worker that is not `current`, one of a crew in the wings, only hello and health count.
        """
        for _ in range(MOST_A_TURN):
            parts = receive(process.socket)
            if parts is None:
                return False
            try:
                self._take(process, parts, current)
            except wire.Refused as refused:
                process.counts[refused.reason] += 1
        return True

    def _take(self, process: WorkerProcess, parts: Parts, current: bool) -> None:
        if len(parts) != 2:
            raise wire.Refused("parts")
        kind, slash, name = wire.decode_topic(parts[0]).partition("/")
        kind += slash
        mine = name in process.pipelines if kind in (wire.DECISION, wire.TRACE) else name == process.name
        if not mine:
            raise wire.Refused("topic")
        if kind == wire.HELLO:
            self._hello(process, parts)
        elif kind == wire.HEALTH:
            self._health(process, parts)
        elif kind == wire.DECISION and current:
            self._decision(process, parts)
        elif kind not in (wire.DECISION, wire.TRACE):
            raise wire.Refused("topic")
        if current and kind != wire.HELLO:
            self._publish(parts)

    def _decision(self, process: WorkerProcess, parts: Parts) -> None:
        decision = wire.decode_decision(parts)
        if decision.session != process.session or not process.greeted:
            raise wire.Refused("session")
        if decision.epoch > process.epoch:  # its announcement was lost: nothing before this decision counts
            process.epoch = decision.epoch
            self.core.discard_before(decision.received - 1, process.pipelines)
        self.core.accept(decision, clock.now())

    def _health(self, process: WorkerProcess, parts: Parts) -> None:
        plain = _own(process, parts)
        process.heard, process.health = clock.now(), plain
        epoch = plain.get("epoch")
        if type(epoch) is int and epoch > process.epoch:
            process.epoch = epoch
            self.core.discard_before(process.heard, process.pipelines)

    def _hello(self, process: WorkerProcess, parts: Parts) -> None:
        _own(process, parts)
        process.heard = clock.now()
        process.greeted = True
        self.core.discard_before(process.heard, process.pipelines)


def _own(process: WorkerProcess, parts: Parts) -> dict[str, object]:
    """A map that bears the worker's session. Raises Refused."""
    plain = wire.decode(parts)[1]
    if plain.get("session") != process.session:
        raise wire.Refused("session")
    return plain
