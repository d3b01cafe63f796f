"""One pipeline of a log that holds its trace."""

from collections import deque
from collections.abc import Mapping
from typing import Final

from reflexarc.node.clock import SECOND
from reflexarc.node.config.schema import Stream
from reflexarc.node.replay.record import Record
from reflexarc.node.replay.results import Account, Interval, MakePipeline, Result, Sink, results_of
from reflexarc.node.worker.pipeline import Outbox, Pipeline
from reflexarc.sensors.frame import Frame

LAG_NS: Final = 2 * SECOND  # a frame may stand this much later in the log than the trace that names it
KEPT_NS: Final = 60 * SECOND  # frames that no trace has named are forgotten after this


class ByTrace:
    """One pipeline that follows its trace.

    The state of the pipeline is known from a worker's first record on. After a gap in the trace or in the
    frames it is taken up again at a record that says where the next window ends (`left`); results count again
    once the windows and the policy hold nothing from before.
    """

    def __init__(self, make: MakePipeline, name: str, stream: Stream, settle: int, sink: Sink) -> None:
        self._make, self._name, self._settle = make, name, settle
        self._stream = stream.name
        self._sink = sink
        self._account = sink.accounts.setdefault(name, Account())
        self._frames: dict[int, deque[tuple[int, Frame]]] = {}
        self._order: deque[tuple[int, int]] = deque()  # time, seq: what to forget when
        self._waiting: deque[tuple[int, Mapping[str, object]]] = deque()
        self._pipeline: Pipeline | None = None
        self._session = self._expected = -1
        self._unsettled = self._skipped = 0
        self._outputs: deque[Result] = deque()

    def frame(self, frame: Frame, time: int) -> None:
        """Keep a frame until the trace names it."""
        self._account.frames += 1
        self._frames.setdefault(frame.seq, deque()).append((time, frame))
        self._order.append((time, frame.seq))

    def trace(self, plain: Mapping[str, object], time: int) -> None:
        """Keep a record until the frames it names are sure to have come."""
        self._waiting.append((time, plain))

    def advance(self, time: int) -> None:
        """Follow the records that are due at the log's time."""
        while self._waiting and self._waiting[0][0] + LAG_NS < time:
            at, plain = self._waiting.popleft()
            self._follow(plain, at)
        while self._order and self._order[0][0] + KEPT_NS < time:
            at, seq = self._order.popleft()
            queue = self._frames.get(seq)
            if queue and queue[0][0] == at:
                self._take(seq)

    def _take(self, seq: int) -> Frame | None:
        queue = self._frames.get(seq)
        if not queue:
            return None
        frame = queue.popleft()[1]
        if not queue:
            del self._frames[seq]
        return frame

    def _follow(self, plain: Mapping[str, object], time: int) -> None:
        record = Record.read(plain, self._stream)
        if record is None:
            self._lose()
            return
        taken = [self._take(seq) for seq in record.taken]
        frames = [frame for frame in taken if frame is not None]
        self._account.missing += len(taken) - len(frames)
        if record.seq == 0:
            self._begin(record, time)
        elif record.session != self._session or record.seq != self._expected:
            self._lose()
        if len(frames) < len(taken) or record.untold:
            self._lose()
        self._session, self._expected = record.session, record.seq + 1
        if self._pipeline is None:
            self._resume(record, time)
            return
        self._step(self._pipeline, record, frames, time)

    def _step(self, pipeline: Pipeline, record: Record, frames: list[Frame], time: int) -> None:
        if frames:
            self._outputs.extend(results_of(pipeline.step(record.now, {self._stream: frames})))
        if record.interrupt:
            self._outputs.extend(results_of(self._interrupt(pipeline, record)))
        if not self._outputs and record.tick >= 0 and self._skipped:
            self._skipped -= 1  # the live worker had a window here that began before this log
        elif not self._outputs or (self._unsettled and self._outputs[0].tick != record.tick):
            self._lose()
        else:
            self._compare(pipeline, self._outputs.popleft(), record, time)

    def _interrupt(self, pipeline: Pipeline, record: Record) -> Outbox:
        return pipeline.interrupt(
            record.now, "stall" if record.interrupt == "stall" else "dead", record.epoch
        )

    def _compare(self, pipeline: Pipeline, result: Result, record: Record, time: int) -> None:
        if self._unsettled:
            self._unsettled -= 1
            pipeline.adopt(record.label)
            if not self._unsettled:
                self._open(time)
            return
        interval = self._account.intervals[-1]
        interval.end = time
        interval.decisions += 1
        interval.different += not record.agrees(result)
        self._sink.put(self._account, result)

    def _begin(self, record: Record, time: int) -> None:
        self._lose()
        self._pipeline = self._make(self._name)
        self._unsettled = self._skipped = 0
        self._open(time)

    def _resume(self, record: Record, time: int) -> None:
        """Take up a pipeline in the middle, where the record says how far the next window is."""
        if record.left <= 0 or record.tick < 0:
            return
        self._pipeline = self._make(self._name)
        self._skipped = self._pipeline.resume(record.tick + 1, record.left, record.seq + 1, record.epoch)
        self._unsettled = self._settle

    def _open(self, time: int) -> None:
        self._account.intervals.append(Interval(time, time))

    def _lose(self) -> None:
        """The state is not known from here on."""
        self._pipeline = None
        self._outputs.clear()
