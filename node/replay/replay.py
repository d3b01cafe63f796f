"""Feeds a log's entries to pipelines."""

from collections.abc import Callable, Iterable

from reflexarc.node import wire
from reflexarc.node.config.schema import Config
from reflexarc.node.log import Entry
from reflexarc.node.replay.by_stamps import ByStamps
from reflexarc.node.replay.by_trace import LAG_NS, ByTrace
from reflexarc.node.replay.results import MakePipeline, Result, Sink
from reflexarc.node.worker.pipeline import stream_spec
from reflexarc.sensors.frame import Refused, StreamSpec, decode


class Replay:
    """Feeds a log's entries to the pipelines of a configuration."""

    def __init__(
        self,
        config: Config,
        make: MakePipeline,
        traced: Iterable[str],
        on_result: Callable[[Result], None] | None = None,
    ) -> None:
        """`traced` names the pipelines whose trace the log holds and that follow it."""
        self.sink = Sink(on_result)
        self.begin = self.end = 0
        self.refused = 0
        self._specs: dict[str, StreamSpec] = {s.topic: stream_spec(s) for s in config.streams.values()}
        self._followers: dict[str, list[ByStamps | ByTrace]] = {}
        self._traces: dict[str, ByTrace] = {}
        follow = set(traced)
        for name, pipeline in config.pipelines.items():
            stream = config.streams[pipeline.window.stream]
            one: ByStamps | ByTrace
            if name in follow:
                settle = pipeline.decide.smooth - 1 + pipeline.decide.hold
                one = self._traces[wire.TRACE + name] = ByTrace(make, name, stream, settle, self.sink)
            else:
                one = ByStamps(make, name, stream, self.sink)
            self._followers.setdefault(stream.topic, []).append(one)

    def feed(self, entry: Entry) -> None:
        """Take the next entry of the log."""
        self.begin = self.begin or entry.time
        self.end = max(self.end, entry.time)
        spec = self._specs.get(entry.topic)
        if spec is not None:
            self._frame(entry, spec)
        elif (traced := self._traces.get(entry.topic)) is not None:
            self._trace(traced, entry)

    def finish(self) -> None:
        """Follow what still waits at the end of the log."""
        for traced in self._traces.values():
            traced.advance(self.end + LAG_NS + 1)

    def _frame(self, entry: Entry, spec: StreamSpec) -> None:
        followers = self._followers.get(entry.topic, ())
        try:
            frame = decode(entry.payload, spec, entry.time)
        except Refused:
            self.refused += 1
            return
        for one in followers:
            one.frame(frame, entry.time)
            one.advance(entry.time)

    def _trace(self, traced: ByTrace, entry: Entry) -> None:
        try:
            _, plain = wire.decode([entry.topic.encode(), entry.payload])
        except wire.Refused:
            return
        traced.trace(plain, entry.time)
