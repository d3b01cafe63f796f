"""Windows against their slow twin, under loss, jitter, duplicates and reordering."""

import naive_window
import numpy as np
import pytest
import stream_cases as series
from hypothesis import given, settings
from hypothesis import strategies as st
from stream_cases import PERIOD, RATE_HZ, T0

from reflexarc.sensors.frame import Frame
from reflexarc.sensors.grid import Grid
from reflexarc.sensors.ring import Ring
from reflexarc.sensors.window import Window, Windower, WindowSpec


@st.composite
def cases(draw: st.DrawFn, resample: str, sizes: tuple[int, int]) -> tuple[list[Frame], WindowSpec, int]:
    size = draw(st.integers(*sizes))
    window = WindowSpec(
        length=draw(st.integers(1, 12)),
        hop=draw(st.integers(1, 14)),
        rate_hz=draw(st.sampled_from([RATE_HZ, 30.0, 71.3])) if resample == "linear" else RATE_HZ,
        resample=resample,
        fill_ns=draw(st.integers(0, 4)) * PERIOD,
        late_ns=draw(st.integers(0, 4)) * PERIOD * size,
        gap_ns=12 * size * PERIOD,
    )
    frames = series.make(draw(st.integers(1, 50)), size, first_seq=draw(st.integers(0, 5)))
    if draw(st.booleans()) and size == 1:
        frames = draw(series.jittered(frames))
    return draw(series.transported(frames)), window, size


def assert_same(got: list[Window], expected: list[dict], *, exact: bool) -> None:
    assert len(got) == len(expected)
    for window, entry in zip(got, expected, strict=True):
        for name in entry.keys() - {"data"}:
            assert getattr(window, name) == entry[name], name
        if window.complete and exact:
            np.testing.assert_array_equal(window.data, entry["data"].astype(np.float32))
        elif window.complete:
            np.testing.assert_allclose(window.data, entry["data"], rtol=1e-6, atol=1e-6)
        else:
            assert np.isnan(window.data).all()


@settings(max_examples=300, deadline=None)
@given(cases("none", (1, 4)))
def test_windows_equal_the_naive_ones_after_every_frame(case: tuple) -> None:
    frames, window, size = case
    spec = series.stream(size)
    windower = Windower(window, spec)
    got: list[Window] = []
    for count, frame in enumerate(frames, 1):
        got += series.feed(windower, [frame])
        expected = naive_window.windows(frames[:count], window, spec)
        assert [w.source_seq for w in got] == [entry["source_seq"] for entry in expected]
    assert_same(got, expected, exact=True)
    _, dropped = naive_window.settle(frames, window.late_ns)
    assert {reason: windower.dropped[reason] for reason in dropped} == dropped


@settings(max_examples=300, deadline=None)
@given(cases("linear", (1, 4)))
def test_resampled_windows_equal_numpys_interpolation(case: tuple) -> None:
    frames, window, size = case
    got, _ = series.windows_of(frames, window, series.stream(size))
    assert_same(got, naive_window.windows(frames, window, series.stream(size)), exact=False)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_a_complete_window_is_an_exact_slice_of_the_series(data: st.DataObject) -> None:
    frames = series.make(60)
    window = WindowSpec(7, 3, RATE_HZ, late_ns=data.draw(st.integers(0, 3)) * PERIOD)
    got, _ = series.windows_of(data.draw(series.transported(frames)), window, series.stream())
    for w in got:
        if w.complete:
            start = (w.t0 - T0) // PERIOD
            np.testing.assert_array_equal(w.data, [series.value(start + i) for i in range(7)])
            assert (w.t1 - w.t0, w.source_seq, w.source_t) == (6 * PERIOD, start + 6, w.t1)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_reordering_within_late_and_duplicates_change_nothing(data: st.DataObject) -> None:
    frames = series.make(60)
    arrived = data.draw(series.transported(frames[1:], losses=0))
    window = WindowSpec(8, 3, RATE_HZ, late_ns=4 * PERIOD)
    straight, _ = series.windows_of(frames, window, series.stream())
    got, windower = series.windows_of([frames[0], *arrived], window, series.stream())
    assert [(w.t0, w.data.tobytes()) for w in got] == [(w.t0, w.data.tobytes()) for w in straight]
    assert windower.processed == 60
    assert set(windower.dropped) <= {"duplicate"}


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_splitting_into_messages_of_several_samples_changes_nothing(data: st.DataObject) -> None:
    singles = series.make(80)
    frames, start = [], 0
    while start < 80:
        size = min(data.draw(st.integers(1, 16)), 80 - start)
        rows = np.concatenate([f.data for f in singles[start : start + size]])
        frames.append(Frame(len(frames), singles[start].t, rows, 0))
        start += size
    for resample in ("none", "linear"):
        window = WindowSpec(10, 3, RATE_HZ, resample)  # type: ignore[arg-type]
        expected, _ = series.windows_of(singles, window, series.stream())
        got, _ = series.windows_of(frames, window, series.stream(16))
        assert [(w.t0, w.t1) for w in got] == [(w.t0, w.t1) for w in expected]
        for one, other in zip(got, expected, strict=True):
            np.testing.assert_allclose(one.data, other.data, rtol=1e-6)


def test_popping_late_gives_the_same_windows() -> None:
    frames = series.make(100, 3)
    window = WindowSpec(10, 4, RATE_HZ)
    expected, _ = series.windows_of(frames, window, series.stream(3))
    windower = Windower(window, series.stream(3))
    for frame in frames:
        windower.push(frame)
    assert windower.queued == 100
    got = list(iter(windower.pop, None))
    assert [w.data.tobytes() for w in got] == [w.data.tobytes() for w in expected]
    assert [w.tick for w in got] == list(range(len(got)))


def test_a_window_is_handed_out_with_the_sample_that_completes_it() -> None:
    windower = Windower(WindowSpec(4, 2, RATE_HZ), series.stream())
    counts = [len(series.feed(windower, [frame])) for frame in series.make(8)]
    assert counts == [0, 0, 0, 1, 0, 1, 0, 1]


def test_a_hole_up_to_fill_is_filled_and_a_longer_one_makes_windows_incomplete() -> None:
    frames = series.make(30)
    window = WindowSpec(5, 5, RATE_HZ, fill_ns=2 * PERIOD)
    got, windower = series.windows_of(
        [f for f in frames if f.seq not in (6, 7, 16, 17, 18)], window, series.stream()
    )
    assert [(w.complete, w.filled) for w in got] == [
        (True, 0),
        (True, 2),
        (True, 0),
        (False, 0),
        (True, 0),
        (True, 0),
    ]
    np.testing.assert_allclose(got[1].data[1], series.value(5) * 2 / 3 + series.value(8) / 3, rtol=1e-6)
    assert windower.lost == 5
    assert not windower.breaks


def test_a_hole_as_long_as_a_window_begins_a_new_run() -> None:
    frames = series.make(30)
    got, windower = series.windows_of(
        [f for f in frames if not 8 <= f.seq < 13], WindowSpec(5, 5, RATE_HZ), series.stream()
    )
    assert [(w.complete, w.run, (w.t1 - T0) // PERIOD) for w in got] == [
        (True, 0, 4), (False, 0, 7), (True, 1, 17), (True, 1, 22), (True, 1, 27),
    ]  # fmt: skip
    assert windower.breaks == {"hole": 1}


def test_a_hole_waits_until_the_streams_progress_has_passed_it_by_late() -> None:
    frames = series.make(12)
    windower = Windower(WindowSpec(4, 4, RATE_HZ, fill_ns=PERIOD, late_ns=3 * PERIOD), series.stream())
    counts = [len(series.feed(windower, [f])) for f in frames if f.seq != 2]
    assert counts == [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1]


@pytest.mark.parametrize("real_hz", [47.0, 50.0, 52.5])
@pytest.mark.parametrize("size", [1, 5])
def test_resampling_when_the_real_rate_is_not_the_nominal_one(real_hz: float, size: int) -> None:
    """A slow sine sampled at the real rate comes out as the sine on the exact grid."""
    frames = series.make(800 // size, size, period=1e9 / real_hz, shape=())
    for frame in frames:
        x = (frame.t - T0) / 1e9 + np.arange(size) / real_hz
        frame.data = np.sin(x).astype(np.float32)
    got, windower = series.windows_of(frames, WindowSpec(50, 25, 50.0, "linear"), series.stream(size, ()))
    assert windower.processed == len(frames)
    assert len(got) == (int(800 / real_hz * 50) - 50) // 25 + 1
    for w in got[-5:]:
        assert w.t1 - w.t0 == 49 * PERIOD
        np.testing.assert_allclose(w.data, np.sin((w.t0 - T0) / 1e9 + np.arange(50) / 50), atol=1e-3)


def test_the_grid_keeps_its_precision_over_weeks() -> None:
    """Forty days into a run, a point between stamps 10 ns apart is still interpolated by the nanosecond."""
    far = 40 * 86400 * 10**9
    ring, grid = Ring(2, ()), Grid(0.01, 1e11)
    grid.begin(T0)
    grid.take(T0, np.array([1], np.float32), ring)
    grid.part(T0 + far - 3, ring, joined=False)
    grid.take(T0 + far - 3, np.array([-3], np.float32), ring)
    grid.take(T0 + far + 7, np.array([7], np.float32), ring)
    assert ring.position == far // 10**11 + 1
    assert ring.stamp(ring.position - 1) == T0 + far
    assert abs(ring.window(ring.position)[-1]) < 1e-15


def test_only_received_depends_on_the_receipt() -> None:
    frames = series.make(40)
    moved = [Frame(f.seq, f.t, f.data, 10**9 - f.received * 7) for f in frames]
    window = WindowSpec(8, 3, RATE_HZ, "linear")
    one, _ = series.windows_of(frames, window, series.stream())
    other, _ = series.windows_of(moved, window, series.stream())
    for a, b in zip(one, other, strict=True):
        assert (a.data.tobytes(), a.t0, a.tick, a.source_seq) == (
            b.data.tobytes(),
            b.t0,
            b.tick,
            b.source_seq,
        )
        assert (a.received, b.received) == (a.source_seq, 10**9 - a.source_seq * 7)


@pytest.mark.parametrize("joined_at", range(30, 45))
@pytest.mark.parametrize("hop", [1, 3, 12])
def test_resuming_within_a_run_gives_the_windows_of_that_run(joined_at: int, hop: int) -> None:
    frames = series.make(80)
    first = Windower(WindowSpec(8, hop, RATE_HZ), series.stream())
    before = series.feed(first, frames[:joined_at])
    second = Windower(WindowSpec(8, hop, RATE_HZ), series.stream())
    skipped = second.resume(len(before), first.left)
    rest = series.feed(first, frames[joined_at:])
    joined = series.feed(second, frames[joined_at:])
    assert [(w.tick, w.t0, w.data.tobytes()) for w in joined] == [
        (w.tick, w.t0, w.data.tobytes()) for w in rest[skipped:]
    ]


def test_reset_drops_what_waits_and_begins_anew() -> None:
    frames = series.make(40)
    windower = Windower(WindowSpec(5, 5, RATE_HZ, late_ns=5 * PERIOD), series.stream())
    before = series.feed(windower, [f for f in frames[:14] if f.seq != 12])
    windower.push(frames[14])
    windower.reset()
    series.check_counters(windower)
    assert (windower.dropped, windower.queued) == ({"reset": 2}, 0)
    after = series.feed(windower, frames[20:])
    assert [w.tick for w in before + after] == list(range(6))
    assert [(w.t0 - T0) // PERIOD for w in after] == [20, 25, 30, 35]
    assert not windower.breaks


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"length": 0}, "length 0"),
        ({"hop": 0}, "hop 0"),
        ({"rate_hz": 0.0}, "rate_hz 0.0"),
        ({"resample": "cubic"}, "cubic"),
        ({"fill_ns": -1}, "-1"),
    ],
)
def test_impossible_windows_are_refused(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WindowSpec(**({"length": 5, "hop": 5, "rate_hz": 50.0} | change))
