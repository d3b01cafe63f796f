import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from reflexarc.node import wire
from reflexarc.node.config.schema import Classify, Pipeline, Stream, Window
from reflexarc.node.worker import pipeline as step
from reflexarc.node.worker import ranges
from reflexarc.node.worker.layout import Scaler, fit
from reflexarc.sensors.frame import Frame

RATE = 100.0
PERIOD = 10_000_000
T0 = 1_700_000_000_000_000_000


class Info:
    def __init__(self, name: str, shape: tuple[int, ...]) -> None:
        self.name, self.shape, self.dtype = name, shape, "f32"


class Mean:
    """A model: the mean of each channel over the window, as scores and, rounded, as integers."""

    def __init__(self, shape: tuple[int, ...], channels: int = 2, axis: int = 1) -> None:
        self.inputs = [Info("x", shape)]
        self.outputs = [Info("y", (1, channels))]
        self._axis = axis
        self._y = np.zeros((1, channels), np.float32)

    def run(self, x: NDArray[np.float32]) -> list[NDArray[np.float32]]:
        assert x.shape == self.inputs[0].shape
        assert x.dtype == np.float32
        self._y = x.mean(axis=self._axis)
        return [self._y]

    def raw(self, index: int) -> NDArray[np.int8]:
        assert index == 0
        return (self._y * 100).round().astype(np.int8)


def stream(**more: object) -> Stream:
    keys = {
        "name": "arm",
        "endpoint": "tcp://127.0.0.1:1",
        "topic": "imu/arm",
        "shape": (2,),
        "rate_hz": RATE,
    }
    return Stream(**{**keys, "max_age_ms": 100.0, **more})  # type: ignore[arg-type]


def config(length: int = 10, hop: int = 5, labels: tuple[str, ...] = ("A", "B"), **more: object):  # type: ignore[no-untyped-def]
    keys = {
        "name": "move",
        "worker": "w",
        "model": None,
        "window": Window(stream="arm", length_s=length / RATE, hop_s=hop / RATE, length=length, hop=hop),
        "decide": Classify(kind="classify", labels=labels, threshold=0.5),
        "deadline_ms": 5.0,
    }
    return Pipeline(**{**keys, **more})  # type: ignore[arg-type]


def frames(first: int, count: int, value: tuple[float, float] = (1.0, 0.0)) -> list[Frame]:
    data = np.array([value], np.float32)
    return [Frame(i, T0 + i * PERIOD, data, 1000 + i) for i in range(first, first + count)]


def made(**more: object) -> step.Pipeline:
    return step.Pipeline(config(**more), stream(), Mean((1, 10, 2)), session=7)  # type: ignore[arg-type]


def test_a_full_window_is_a_decision_and_a_trace():
    pipeline = made()
    assert pipeline.step(1, {"arm": frames(0, 9)}).decisions == []
    box = pipeline.step(2, {"arm": frames(9, 1)})
    (decision,) = box.decisions
    assert (decision.label, decision.confidence, decision.available) == ("A", 1.0, True)
    assert (decision.source_seq, decision.source_t, decision.received) == (9, T0 + 9 * PERIOD, 1009)
    assert (decision.session, decision.seq, decision.t, decision.epoch) == (7, 0, 2, 0)
    assert box.traces == [
        {
            "session": 7,
            "seq": 0,
            "now": 2,
            "epoch": 0,
            "label": "A",
            "left": 5,
            "tick": 0,
            "taken.arm": "0-9",
            "scores": "100,0",
        }
    ]
    assert box.scores == [(100, 0)]


def test_batches_do_not_matter():
    whole = made().step(1, {"arm": frames(0, 40)})
    pipeline = made()
    parts = [pipeline.step(1, {"arm": [frame]}) for frame in frames(0, 40)]
    assert [d for box in parts for d in box.decisions] == whole.decisions
    assert len(whole.decisions) == 7


def test_a_hole_is_unavailable_and_never_a_class():
    pipeline = made()
    box = pipeline.step(1, {"arm": frames(0, 12) + frames(14, 30)})
    states = [(d.label, d.available, s) for d, s in zip(box.decisions, box.scores, strict=True)]
    assert states[0] == ("A", True, (100, 0))
    assert ("unavailable", False, None) in states
    assert states[-1] == ("A", True, (100, 0))
    assert all(available == (scores is not None) for _, available, scores in states)
    assert pipeline.unavailable == sum(not available for _, available, _ in states)


def test_duplicates_are_traced_as_dropped():
    pipeline = made()
    box = pipeline.step(1, {"arm": [*frames(0, 5), *frames(4, 1), *frames(5, 5)]})
    assert box.traces[0]["taken.arm"] == "0-4,4-9"
    assert box.traces[0]["dropped.arm.duplicate"] == 1
    assert "dropped.arm.duplicate" not in pipeline.step(2, {"arm": frames(10, 5)}).traces[0]


def test_a_stall_begins_anew():
    pipeline = made()
    pipeline.step(1, {"arm": frames(0, 10)})
    pipeline.step(1, {"arm": frames(10, 4)})
    box = pipeline.interrupt(2, "stall", epoch=1)
    (decision,) = box.decisions
    assert (decision.available, decision.epoch, decision.received) == (False, 1, 0)
    assert box.traces[0]["interrupt"] == "stall"
    assert box.traces[0]["taken.arm"] == "10-13"
    assert pipeline.step(3, {"arm": frames(14, 9)}).decisions == []
    (decision,) = pipeline.step(4, {"arm": frames(23, 1)}).decisions
    assert (decision.available, decision.epoch, decision.seq) == (True, 1, 2)


def test_a_silent_stream_is_unavailable_and_goes_on():
    pipeline = made()
    pipeline.step(1, {"arm": frames(0, 10)})
    box = pipeline.interrupt(2, "dead")
    assert not box.decisions[0].available
    assert "tick" not in box.traces[0]
    assert pipeline.step(3, {"arm": frames(10, 5)}).decisions[0].available


def test_replaying_the_trace_gives_the_same_bits():
    rng = np.random.default_rng(1)
    order = [i for i in range(200) if rng.random() > 0.02]
    for i in range(0, len(order) - 1, 7):
        order[i], order[i + 1] = order[i + 1], order[i]
    sent = [
        Frame(i, T0 + i * PERIOD, rng.normal(size=(1, 2)).astype(np.float32), 1000 + i) for i in range(200)
    ]

    def fresh() -> step.Pipeline:
        return step.Pipeline(config(), stream(late_ms=30.0), Mean((1, 10, 2)), session=7)

    live, lived = fresh(), step.Outbox()
    for i, seq in enumerate(order):
        box = live.interrupt(i, "stall", 1) if i == 90 else live.step(i, {"arm": [sent[seq]]})
        lived.decisions += box.decisions
        lived.traces += box.traces
        lived.scores += box.scores
    replay = fresh()
    decisions, scores = [], []
    for trace in lived.traces:
        taken = [sent[i] for i in ranges.from_text(str(trace["taken.arm"]))]
        box = replay.step(int(trace["now"]), {"arm": taken})
        if "interrupt" in trace:
            box = replay.interrupt(int(trace["now"]), "stall", int(trace["epoch"]))
        decisions += box.decisions
        scores += box.scores
    assert decisions == lived.decisions
    assert scores == lived.scores


def test_scale_and_offset_are_per_channel_in_both_layouts():
    for shape, axis in (((1, 10, 2), 1), ((1, 2, 10), 2)):
        pipeline = step.Pipeline(
            config(scale=(0.5, 4.0), offset=(0.0, -1.0)), stream(), Mean(shape, axis=axis), session=7
        )
        (scores,) = pipeline.step(1, {"arm": frames(0, 10, (1.0, 0.5))}).scores
        assert scores == (50, 100)


@pytest.mark.parametrize(
    ("length", "sample", "model", "channels_first"),
    [
        (200, (6,), (1, 200, 6), False),
        (200, (6,), (1, 6, 200), True),
        (200, (6,), (1, 1, 6, 200), True),
        (200, (6,), (200, 6), False),
        (200, (1,), (1, 1, 200), True),
        (200, (1,), (1, 200), False),
        (200, (), (1, 200), False),
        (1, (96, 96, 3), (1, 96, 96, 3), False),
        (6, (1,), (1, 6, 1), False),
    ],
)
def test_layouts(length, sample, model, channels_first):
    layout = fit(length, sample, model, "m")
    assert layout.channels_first == channels_first or 1 in (length, *sample)
    window = np.arange(length * int(np.prod(sample)), dtype=np.float32).reshape(length, *sample)
    out = Scaler(layout, (2.0,), (1.0,))(window)
    assert out.shape == model
    view = out.reshape(window.T.shape).T if channels_first else out.reshape(window.shape)
    assert np.array_equal(view, window * 2 + 1)


@pytest.mark.parametrize(
    ("length", "sample", "model", "words"),
    [
        (6, (6,), (1, 6, 6), "both as rows and as columns"),
        (200, (6,), (1, 100, 6), "does not fit a window, [200, 6] or [6, 200]"),
        (200, (6,), (2, 200, 6), "does not fit"),
        (200, (6,), (1, 1200), "does not fit"),
        (1, (96, 96, 3), (1, 3, 96, 96), "does not fit a window, [1, 96, 96, 3]"),
    ],
)
def test_layouts_refused(length, sample, model, words):
    with pytest.raises(ValueError, match=r"^pipeline\.move\.model: ") as caught:
        fit(length, sample, model, "pipeline.move.model")
    assert words in str(caught.value)


def test_a_model_that_does_not_fit_is_refused_by_name():
    with pytest.raises(ValueError, match=r"pipeline.move.model: gives 2 scores for 3 decide.labels"):
        made(labels=("A", "B", "C"))


@given(st.lists(st.integers(0, 40)))
def test_ranges_keep_the_order(numbers):
    assert ranges.from_text(ranges.to_text(numbers)) == numbers


def test_ranges_in_words():
    assert ranges.to_text([120, 121, 122, 131, 130]) == "120-122,131,130"
    for bad in ("5-3", "x", "1-", "0-99999999999", "1,,2"):
        with pytest.raises(ValueError, match=r"."):
            ranges.from_text(bad)


def test_frames_without_a_tick_do_not_grow_the_trace():
    pipeline = made()
    first = frames(0, 1)
    for _ in range(3):
        pipeline.step(0, {"arm": first * step.MOST_RUNS})
    trace = pipeline.interrupt(0, "dead").traces[0]
    assert trace["untold.arm"] == 2 * step.MOST_RUNS
    assert "untold.arm" not in pipeline.interrupt(0, "dead").traces[0]


def test_a_run_without_loss_is_one_range_however_long():
    trace = made(hop=6000).step(0, {"arm": frames(0, 5000)}).traces[0]
    assert trace["taken.arm"] == "0-4999"
    assert "untold.arm" not in trace


def test_the_longest_record_fits_a_message():
    pipeline = made()
    for i in range(3000):
        pipeline._note((1 << 63) - 6001 + 2 * i)
    trace = pipeline.interrupt(0, "dead").traces[0]
    assert trace["untold.arm"] == 3000 - step.MOST_RUNS
    assert len(wire.encode("trace/move", trace)[1]) < wire.MAX_BYTES
