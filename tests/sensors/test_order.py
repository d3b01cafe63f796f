"""What a bad stamp, a bad sequence number, a pause, a restart and a clock step do to a stream."""

import numpy as np
import pytest
import stream_cases as series
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_cases import PERIOD, RATE_HZ, T0

from reflexarc.sensors.frame import Frame
from reflexarc.sensors.window import Window, WindowSpec

WINDOW = WindowSpec(5, 2, RATE_HZ, fill_ns=PERIOD)
SECOND = 1_000_000_000
FUTURE, LONG_AGO = T0 + 10**18, 3


def with_stamp(frames: list[Frame], stamps: dict[int, int]) -> list[Frame]:
    return [Frame(f.seq, stamps.get(f.seq, f.t), f.data, f.received) for f in frames]


def essence(windows: list[Window]) -> list[tuple]:
    return [(w.tick, w.run, w.complete, w.filled, w.t0, w.t1, w.data.tobytes()) for w in windows]


def starts(windows: list[Window], run: int) -> list[int]:
    """Where the complete windows of a run begin, in periods from T0."""
    return [(w.t0 - T0) // PERIOD for w in windows if w.run == run and w.complete]


# DESIGN section 8, rule 4: one future, duplicate or backward stamp must not poison a stream.


@pytest.mark.parametrize("stamp", [FUTURE, T0 + 40 * PERIOD, LONG_AGO, T0 + 5 * PERIOD, T0 + 24 * PERIOD])
@pytest.mark.parametrize("resample", ["none", "linear"])
def test_rule_4_one_bad_stamp_costs_one_frame(stamp: int, resample: str) -> None:
    frames = series.make(60)
    window = WindowSpec(5, 2, RATE_HZ, resample, fill_ns=PERIOD)  # type: ignore[arg-type]
    got, windower = series.windows_of(with_stamp(frames, {20: stamp}), window, series.stream())
    without, _ = series.windows_of([f for f in frames if f.seq != 20], window, series.stream())
    assert essence(got) == essence(without)
    assert all(w.complete for w in got)
    assert windower.dropped == {"stamp": 1}
    assert not windower.breaks


def test_rule_4_a_stamp_off_by_little_is_jitter_and_costs_one_frame_at_most() -> None:
    for offset in range(-3 * PERIOD, 3 * PERIOD, PERIOD // 7):
        frames = with_stamp(series.make(60), {20: T0 + 20 * PERIOD + offset})
        got, windower = series.windows_of(frames, WINDOW, series.stream())
        assert windower.dropped.total() == (offset < -PERIOD or offset > PERIOD)
        assert len(got) == 28
        assert all(w.complete for w in got)


def test_rule_4_equal_stamps_order_by_sequence() -> None:
    frames = with_stamp(series.make(60), {20: T0 + 19 * PERIOD, 31: T0 + 30 * PERIOD, 32: T0 + 30 * PERIOD})
    plain, _ = series.windows_of(series.make(60), WINDOW, series.stream())
    got, windower = series.windows_of(frames, WINDOW, series.stream())
    assert [w.data.tobytes() for w in got] == [w.data.tobytes() for w in plain]
    assert not windower.dropped


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_rule_4_scattered_bad_stamps_each_cost_one_frame(data: st.DataObject) -> None:
    frames = series.make(80)
    bad = data.draw(st.lists(st.integers(1, 24), unique=True).map(lambda numbers: [3 * n for n in numbers]))
    far = st.one_of(st.integers(3 * PERIOD, 10**18), st.integers(-(10**18), -2 * PERIOD))
    stamps = {seq: max(0, T0 + seq * PERIOD + data.draw(far)) for seq in bad}
    got, windower = series.windows_of(with_stamp(frames, stamps), WINDOW, series.stream())
    without, _ = series.windows_of([f for f in frames if f.seq not in stamps], WINDOW, series.stream())
    assert essence(got) == essence(without)
    assert windower.dropped.total() == len(bad)


def test_rule_4_one_bad_sequence_number_costs_one_frame() -> None:
    for seq in (2, 500, 10**15):
        frames = series.make(60)
        frames[20] = Frame(seq, frames[20].t, frames[20].data, 20)
        got, windower = series.windows_of(frames, WINDOW, series.stream())
        assert windower.dropped.total() == 1
        assert not windower.breaks
        assert all(w.complete for w in got)


def test_rule_4_a_frame_that_is_wrong_in_all_is_held_no_longer_than_the_next() -> None:
    frames = series.make(60)
    frames[20] = Frame(10**15, FUTURE, frames[20].data, 20)
    got, windower = series.windows_of(frames, WINDOW, series.stream())
    assert (windower.dropped, windower.queued) == ({"stamp": 1}, 0)
    assert all(w.complete for w in got)


def test_a_bad_first_frame_is_left_behind() -> None:
    got, windower = series.windows_of(with_stamp(series.make(60), {0: FUTURE}), WINDOW, series.stream())
    assert windower.breaks == {"step": 1}
    assert starts(got, 1)[0] == 1
    assert windower.processed == 60


# Pauses, restarts, clock steps: a new run, of which no frame is lost.


@pytest.mark.parametrize("resample", ["none", "linear"])
def test_series_parted_by_a_gap_in_the_stamps_share_no_window(resample: str) -> None:
    first, second = series.make(21), series.make(20, first_seq=21, t=T0 + 41 * PERIOD)
    window = WindowSpec(5, 2, RATE_HZ, resample)  # type: ignore[arg-type]
    got, windower = series.windows_of([*first, *second], window, series.stream())
    assert windower.breaks == {"gap": 1}
    assert windower.processed == 41
    assert starts(got, 0) == list(range(0, 17, 2))
    assert starts(got, 1) == list(range(41, 57, 2))
    closing = [w for w in got if not w.complete]
    assert [(w.run, w.source_seq, (w.t1 - T0) // PERIOD) for w in closing] == [(0, 21, 20)]
    assert [w.tick for w in got] == list(range(len(got)))


def test_a_pause_within_the_gap_does_not_part_the_run() -> None:
    first, second = series.make(20), series.make(20, first_seq=20, t=T0 + 28 * PERIOD)
    got, windower = series.windows_of([*first, *second], WINDOW, series.stream())
    assert not windower.breaks
    assert len(got) == 18
    _, stricter = series.windows_of(
        [*first, *second], WindowSpec(5, 2, RATE_HZ, gap_ns=5 * PERIOD), series.stream()
    )
    assert stricter.breaks == {"gap": 1}


def test_a_long_loss_with_fitting_stamps_is_a_hole() -> None:
    frames = series.make(80)
    got, windower = series.windows_of(
        [f for f in frames if not 30 <= f.seq < 45], WindowSpec(20, 5, RATE_HZ), series.stream()
    )
    assert windower.lost == 15
    assert not windower.breaks
    assert [w.complete for w in got] == [True] * 3 + [False] * 6 + [True] * 4


def test_rule_9_a_sensor_whose_sequence_falls_has_restarted() -> None:
    for seq, pause in ((0, 5), (0, 200), (30, 3), (48, 40)):
        after = series.make(20, first_seq=seq, t=T0 + (50 + pause) * PERIOD)
        got, windower = series.windows_of([*series.make(50), *after], WINDOW, series.stream())
        assert windower.breaks == {"restart": 1}
        assert windower.processed == 70
        assert starts(got, 1)[0] == 50 + pause


def test_a_restart_with_a_clock_that_fell_too() -> None:
    got, windower = series.windows_of(
        [*series.make(500), *series.make(50, t=T0 // 2)], WINDOW, series.stream()
    )
    assert windower.breaks == {"restart": 1}
    assert windower.processed == 550
    assert got[-1].complete


def test_a_recording_played_again_is_a_restart() -> None:
    _, windower = series.windows_of(series.make(500) + series.make(500), WINDOW, series.stream())
    assert windower.breaks == {"restart": 1}
    assert windower.processed == 1000


@pytest.mark.parametrize("step_s", [-100_000, -3600, -1, 1, 3600, 10**9])
def test_a_clock_step_of_the_publisher_begins_a_new_run(step_s: int) -> None:
    after = series.make(50, first_seq=50, t=T0 + 50 * PERIOD + step_s * SECOND)
    got, windower = series.windows_of([*series.make(50), *after], WINDOW, series.stream())
    assert windower.breaks == {"step" if step_s < 0 else "gap": 1}
    assert windower.processed == 100
    assert sum(w.complete for w in got) == 46


def test_a_sensor_whose_clock_stands_still_goes_on() -> None:
    frames = [Frame(f.seq, T0, f.data, 0) for f in series.make(50)]
    got, windower = series.windows_of(frames, WINDOW, series.stream())
    assert len(got) == 23
    assert not windower.dropped
    _, linear = series.windows_of(frames, WindowSpec(5, 2, RATE_HZ, "linear"), series.stream())
    assert linear.processed == 50


# DESIGN section 8, rule 9: number frames, count gaps.


def test_rule_9_every_frame_is_counted_once() -> None:
    frames = series.make(60)
    pushed = [f for f in frames if f.seq not in (10, 11, 30)]
    pushed[20:20] = [frames[3], frames[19], frames[10]]
    pushed[40] = Frame(pushed[40].seq, FUTURE, pushed[40].data, 0)
    _, windower = series.windows_of(pushed, WINDOW, series.stream())
    assert windower.received == 60
    assert windower.dropped == {"duplicate": 2, "late": 1, "stamp": 1}
    assert windower.processed == 56
    assert windower.lost == 4


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_any_frames_whatever_are_counted_bounded_and_never_mixed(data: st.DataObject) -> None:
    """Sequence numbers and stamps at random, near and far; the counters are checked at every push and pop."""
    near = st.integers(0, 12)
    seqs = st.one_of(near, near, near, st.integers(0, (1 << 63) - 1))
    stamps = st.one_of(near.map(lambda n: T0 + n * PERIOD), st.integers(0, (1 << 62) - 1), near)
    sizes = st.integers(1, 3)
    frames = [
        Frame(seq, t, np.full((size, 2), seq % 1000, np.float32), 0)
        for seq, t, size in data.draw(st.lists(st.tuples(seqs, stamps, sizes), max_size=40))
    ]
    window = WindowSpec(
        data.draw(st.integers(1, 4)),
        data.draw(st.integers(1, 5)),
        RATE_HZ,
        data.draw(st.sampled_from(["none", "linear"])),
        late_ns=data.draw(st.integers(0, 3)) * PERIOD,
        fill_ns=data.draw(st.integers(0, 3)) * PERIOD,
    )
    got, windower = series.windows_of(frames, window, series.stream(3))
    assert windower.queued <= 1 + 64 + 6
    assert [w.tick for w in got] == list(range(len(got)))
    assert all(np.isfinite(w.data).all() == w.complete for w in got)


def test_a_late_frame_whose_stamp_is_not_between_its_neighbours_is_dropped() -> None:
    frames = series.make(12)
    window = WindowSpec(4, 4, RATE_HZ, late_ns=4 * PERIOD)
    for passed, dropped in ((5 * PERIOD, {}), (6 * PERIOD + 1, {"stamp": 1}), (4 * PERIOD - 1, {"stamp": 1})):
        late = Frame(5, T0 + passed, frames[5].data, 0)
        pushed = [*frames[:5], frames[6], frames[7], frames[8], late, *frames[9:]]
        _, windower = series.windows_of(pushed, window, series.stream())
        assert windower.dropped == dropped


def test_frames_behind_a_hole_are_bounded_though_the_stamps_stand_still() -> None:
    frames = [Frame(f.seq, T0, f.data, 0) for f in series.make(5000) if f.seq != 2]
    _, windower = series.windows_of(frames, WindowSpec(5, 5, RATE_HZ, late_ns=SECOND), series.stream())
    assert windower.lost == 1
    assert windower.queued <= 64 + 100
