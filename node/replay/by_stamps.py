"""One pipeline of a log without a trace."""

from collections.abc import Mapping

from reflexarc.node.clock import MS
from reflexarc.node.config.schema import Stream
from reflexarc.node.replay.results import Account, MakePipeline, Sink, results_of
from reflexarc.node.worker.pipeline import Outbox
from reflexarc.sensors.frame import Frame


class ByStamps:
    """One pipeline without a trace: each frame is a step at its time in the log."""

    def __init__(self, make: MakePipeline, name: str, stream: Stream, sink: Sink) -> None:
        self._pipeline = make(name)
        self._stream = stream.name
        self._silence = round(stream.max_age_ms * MS)
        self._sink = sink
        self._account = sink.accounts.setdefault(name, Account())
        self._last = 0

    def frame(self, frame: Frame, time: int) -> None:
        """Take a frame; a silence before it that the live node would have noticed is noticed here too."""
        if self._last and time - self._last > self._silence:
            self._put(self._pipeline.interrupt(self._last + self._silence, "dead"))
        self._last = time
        self._account.frames += 1
        self._put(self._pipeline.step(time, {self._stream: [frame]}))

    def trace(self, plain: Mapping[str, object], time: int) -> None:
        """There is none."""

    def advance(self, time: int) -> None:
        """Nothing waits."""

    def _put(self, outbox: Outbox) -> None:
        for result in results_of(outbox):
            self._sink.put(self._account, result)
