"""From frames to decisions: window, scale, model, policy. The same step runs live and in replay.

    pipeline = Pipeline(config.pipelines["exercise"], config.streams["wrist"], Session.load(...), session)
    outbox = pipeline.step(now, {"wrist": frames})       # decisions, traces, scores: one of each a tick

A step reads no clock and has no other input than its arguments: what it decides depends on the frames, their
order and the calls of `interrupt` alone, `now` is only the stamp of what comes out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from reflexarc.control.decision import Decision
from reflexarc.control.policy import Classify, Verdict
from reflexarc.node.config import schema
from reflexarc.node.worker import ranges
from reflexarc.node.worker.layout import Scaler, fit
from reflexarc.sensors.frame import Frame, StreamSpec
from reflexarc.sensors.window import Window, Windower, WindowSpec

MOST_RUNS = 1024  # in one record, at most 40 bytes each: its message stays below wire.MAX_BYTES
Interruption = Literal["stall", "dead"]
Scores = tuple[int, ...] | None


class Info(Protocol):
    """An input or output of a model."""

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def shape(self) -> tuple[int, ...]: ...  # noqa: D102


class Model(Protocol):
    """What a pipeline needs of a model; `inference.session.Session` is one."""

    @property
    def inputs(self) -> Sequence[Info]: ...  # noqa: D102
    @property
    def outputs(self) -> Sequence[Info]: ...  # noqa: D102

    def run(self, x: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """The outputs for one input."""
        ...

    def raw(self, index: int) -> NDArray[Any] | None:
        """The integer tensor behind the output of the last run, None where there is none."""
        ...


@dataclass(slots=True)
class Outbox:
    """What came out of a step, one of each for every tick and interruption, in order.

    `scores` are the integer scores of the model's run, None where it did not run or has none.
    """

    decisions: list[Decision] = field(default_factory=list)
    traces: list[dict[str, int | str]] = field(default_factory=list)
    scores: list[Scores] = field(default_factory=list)


def stream_spec(stream: schema.Stream) -> StreamSpec:
    """A stream's section of the configuration as `sensors` wants it."""
    return StreamSpec(
        name=stream.name,
        topic=stream.topic,
        shape=stream.shape,
        rate_hz=stream.rate_hz,
        max_age_ns=round(1e6 * stream.max_age_ms),
        frame=stream.frame,
        late_ns=round(1e6 * stream.late_ms),
    )


class Pipeline:
    """One pipeline of the configuration with its model. Its decisions bear `session` and `epoch`."""

    def __init__(
        self, config: schema.Pipeline, stream: schema.Stream, model: Model, session: int, epoch: int = 0
    ) -> None:
        """Raises ValueError, naming the key, where the model does not fit the window or the labels."""
        self.name = config.name
        self.stream = stream.name
        self.windower = Windower(_window_spec(config.window, stream), stream_spec(stream))
        self.ticks = self.decided = self.unavailable = 0
        self._model = model
        self._input = _scaler(config, stream, model)
        self._policy = Classify(
            config.decide.labels, config.decide.threshold, config.decide.hold, config.decide.smooth
        )
        self._session = session
        self._epoch = epoch
        self._seq = 0
        self._taken: list[list[int]] = []  # runs of sequence numbers, first and last
        self._told = 0
        self._untold = 0
        self._dropped: Counter[str] = Counter()
        self._newest = (0, 0, 0)  # source_t, source_seq, received of the newest frame taken

    def step(self, now: int, inbox: Mapping[str, Sequence[Frame]]) -> Outbox:
        """Take frames in the order of receipt and decide on every window that is due; `now` in UNIX ns."""
        outbox = Outbox()
        windower = self.windower
        for frame in inbox.get(self.stream, ()):
            self._note(frame.seq)
            windower.push(frame)
        while (window := windower.pop()) is not None:
            self._tick(now, window, outbox)
        return outbox

    def _note(self, seq: int) -> None:
        """Remember a frame for the next record; what does not fit there is counted, with all that follows."""
        runs = self._taken
        if self._untold or self._told == ranges.MOST:
            self._untold += 1
            return
        if runs and seq == runs[-1][1] + 1:
            runs[-1][1] = seq
        elif len(runs) < MOST_RUNS:
            runs.append([seq, seq])
        else:
            self._untold += 1
            return
        self._told += 1

    def interrupt(self, now: int, why: Interruption, epoch: int | None = None) -> Outbox:
        """Note that the input broke off; the answer is "unavailable", traced with its reason.

        `stall`: the process stood still and threw away what waited; everything begins anew in a new epoch.
        `dead`: the stream has fallen silent; what it has sent so far stays.
        """
        if why == "stall":
            self.windower.reset()
            self._policy.reset()
            self._newest = (0, 0, 0)
        if epoch is not None:
            self._epoch = epoch
        outbox = Outbox()
        source_t, source_seq, received = self._newest
        verdict = self._policy.unavailable()
        self._put(now, verdict, source_t, source_seq, received, None, outbox)
        outbox.traces[-1] |= {"interrupt": why}
        return outbox

    def resume(self, tick: int, left: int, seq: int, epoch: int) -> int:
        """Take up another run of this pipeline in its middle; gives how many ticks cannot be made: see
        `Windower.resume`.

        `seq` is the number of the next decision. `adopt` brings the policy up to date while its memory fills.
        """
        self._policy.reset()
        self._seq, self._epoch = seq, epoch
        return self.windower.resume(tick, left)

    def adopt(self, label: str) -> None:
        """Hold the label that the other run decided."""
        self._policy.adopt(label)

    def _tick(self, now: int, window: Window, outbox: Outbox) -> None:
        self.ticks += 1
        scores: Scores = None
        if window.complete:
            output = self._model.run(self._input(window.data))[0]
            raw = self._model.raw(0)
            scores = None if raw is None else tuple(raw.ravel().tolist())
            verdict = self._policy.update(output.ravel().tolist())
        else:
            verdict = self._policy.unavailable()
        self._newest = (window.source_t, window.source_seq, window.received)
        self._put(now, verdict, *self._newest, scores, outbox)
        outbox.traces[-1]["tick"] = window.tick

    def _put(
        self,
        now: int,
        verdict: Verdict,
        source_t: int,
        source_seq: int,
        received: int,
        scores: Scores,
        outbox: Outbox,
    ) -> None:
        available = verdict.available
        self.decided += 1
        self.unavailable += not available
        outbox.decisions.append(
            Decision(
                pipeline=self.name,
                session=self._session,
                seq=self._seq,
                t=now,
                source_t=source_t,
                source_seq=source_seq,
                received=received,
                epoch=self._epoch,
                label=verdict.label,
                confidence=verdict.confidence,
                available=available,
                values={},
            )
        )
        outbox.traces.append(self._trace(now, verdict.label, scores))
        outbox.scores.append(scores)
        self._seq += 1

    def _trace(self, now: int, label: str, scores: Scores) -> dict[str, int | str]:
        """What this decision was made of: the frames taken and dropped since the last record."""
        trace: dict[str, int | str] = {
            "session": self._session,
            "seq": self._seq,
            "now": now,
            "epoch": self._epoch,
            "label": label,
            "left": self.windower.left,
            f"taken.{self.stream}": ranges.runs_to_text(self._taken),
        }
        self._taken.clear()
        self._told = 0
        if self._untold:
            trace[f"untold.{self.stream}"], self._untold = self._untold, 0
        if scores is not None:
            trace["scores"] = ",".join(map(str, scores))
        dropped = self.windower.dropped
        if dropped != self._dropped:
            for reason, count in (dropped - self._dropped).items():
                trace[f"dropped.{self.stream}.{reason}"] = count
            self._dropped = Counter(dropped)
        return trace


def _window_spec(window: schema.Window, stream: schema.Stream) -> WindowSpec:
    return WindowSpec(
        length=window.length,
        hop=window.hop,
        rate_hz=stream.rate_hz,
        resample="linear" if window.resample == "linear" else "none",
        fill_ns=round(1e6 * window.fill_ms),
        late_ns=round(1e6 * stream.late_ms),
    )


def _scaler(config: schema.Pipeline, stream: schema.Stream, model: Model) -> Scaler:
    """What brings windows into the model, after comparing the model with the configuration."""
    who = f"pipeline.{config.name}.model"
    if len(model.inputs) != 1:
        raise ValueError(f"{who}: has {len(model.inputs)} inputs, not 1")
    count = int(np.prod(model.outputs[0].shape))
    if count != len(config.decide.labels):
        raise ValueError(f"{who}: gives {count} scores for {len(config.decide.labels)} decide.labels")
    layout = fit(config.window.length, stream.shape, tuple(model.inputs[0].shape), who)
    return Scaler(layout, config.scale, config.offset)
