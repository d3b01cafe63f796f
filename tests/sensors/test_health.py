"""Health and delay of a stream, with frames as a shell would stamp them."""

import numpy as np
import pytest
import stream_cases as series
from stream_cases import PERIOD, T0

from reflexarc.sensors.frame import Frame
from reflexarc.sensors.health import StreamHealth

SECOND = 1_000_000_000
MS = 1_000_000


def on_time(count: int, first: int = 0, *, lag: int = 0) -> list[Frame]:
    """Frames `first`, ... received `lag` ns after their stamp; the monotonic clock is 0 at T0."""
    frames = series.make(count, first_seq=first, t=T0 + first * PERIOD)
    return [received(f, f.t - T0 + lag) for f in frames]


def received(frame: Frame, at: int, t: int | None = None) -> Frame:
    return Frame(frame.seq, frame.t if t is None else t, frame.data, at)


def fed(frames: list[Frame]) -> tuple[StreamHealth, list[int]]:
    """The health after these frames, and the delay (ms) of each."""
    health = StreamHealth(series.stream())
    delays = []
    for frame in frames:
        health.on_frame(frame)
        delays.append(health.delay_ns(frame) // MS)
    return health, delays


def test_a_good_stream() -> None:
    health, delays = fed(on_time(200, lag=3 * MS))
    now = 199 * PERIOD + 10 * MS
    state = health.state(now, T0 + now)
    assert state.alive
    assert state.rate_hz == pytest.approx(50)
    assert state.skew_ms == pytest.approx(3)
    assert (state.gaps, state.frozen, state.refused, state.warnings) == (0, False, {}, ())
    assert set(delays) == {0}


def test_nothing_yet_is_not_alive() -> None:
    health = StreamHealth(series.stream())
    state = health.state(10**12, T0)
    assert health.delay_ns(series.make(1)[0]) == 0
    assert (state.alive, state.rate_hz, state.skew_ms, state.warnings) == (False, 0.0, None, ())


def test_rule_24_alive_follows_the_data() -> None:
    health, _ = fed(on_time(2))
    assert not health.state(PERIOD).alive
    health, _ = fed(on_time(3))
    assert health.state(2 * PERIOD + 200 * MS).alive
    assert not health.state(2 * PERIOD + 200 * MS + 1).alive
    health.on_frame(on_time(1, 100)[0])
    assert not health.state(100 * PERIOD).alive
    for frame in on_time(2, 101):
        health.on_frame(frame)
    assert health.state(102 * PERIOD).alive


def test_rule_5_one_bad_frame_in_a_good_stream_is_no_alarm() -> None:
    health, _ = fed(on_time(100))
    health.on_refused("finite")
    for frame in [*on_time(50, 101), *on_time(50, 152)]:
        health.on_frame(frame)
        state = health.state(frame.received)
        assert state.alive
        assert state.warnings == ()
    assert state.refused == {"finite": 1}
    assert state.gaps == 2


def test_many_refusals_are_an_alarm_until_the_stream_is_good_again() -> None:
    health, _ = fed(on_time(100))
    for _ in range(3):
        health.on_refused("msgpack")
    assert health.state(99 * PERIOD).warnings == ("refused",)
    for frame in on_time(15, 100):
        health.on_frame(frame)
    assert health.state(114 * PERIOD).warnings == ("refused",)
    for frame in on_time(15, 115):
        health.on_frame(frame)
    assert health.state(130 * PERIOD).warnings == ()


def test_gaps_are_counted_and_late_frames_taken_off_again() -> None:
    frames = on_time(100)
    health, _ = fed([*frames[:20], *frames[23:30], frames[21], frames[21], *frames[30:]])
    assert health.state(99 * PERIOD).gaps == 2
    assert health.state(99 * PERIOD).warnings == ()
    health, _ = fed([f for f in frames if f.seq % 3])
    assert health.state(99 * PERIOD).warnings[-1] == "gaps"


def test_a_restart_is_no_gap() -> None:
    first, again = on_time(100), on_time(100)
    health, _ = fed([*first, *(received(f, f.received + 3 * SECOND, f.t + 3 * SECOND) for f in again)])
    assert health.state(5 * SECOND).gaps == 0
    jumped = [Frame(f.seq + 10**9, f.t + 3 * SECOND, f.data, f.received + 3 * SECOND) for f in again]
    health, _ = fed([*first, *jumped])
    assert health.state(5 * SECOND).gaps == 0


@pytest.mark.parametrize(
    ("real_hz", "warns"), [(50, False), (44, False), (35, True), (70, True), (400, True)]
)
def test_the_measured_rate(real_hz: float, *, warns: bool) -> None:
    frames = series.make(2000, period=1e9 / real_hz)
    health, _ = fed([received(f, f.t - T0) for f in frames])
    state = health.state(frames[-1].t - T0)
    assert state.rate_hz == pytest.approx(real_hz, rel=0.01)
    assert state.warnings == (("rate",) if warns else ())


def test_one_stamp_from_the_future_or_the_past_is_no_wrong_rate() -> None:
    for bad in (T0 + 10**17, T0 + 5 * SECOND, 1):
        frames = on_time(500)
        frames[123] = received(frames[123], frames[123].received, bad)
        health = StreamHealth(series.stream())
        for frame in frames:
            health.on_frame(frame)
            assert health.state(frame.received).warnings == ()
        assert health.state(0).rate_hz == pytest.approx(50)


def test_identical_samples_are_frozen_after_the_configured_time() -> None:
    health = StreamHealth(series.stream(), frozen_ns=SECOND)
    never = StreamHealth(series.stream(), frozen_ns=0)
    frozen = []
    for frame in on_time(100):
        still = Frame(frame.seq, frame.t, np.ones_like(frame.data), frame.received)
        health.on_frame(still)
        never.on_frame(still)
        frozen.append(health.state(frame.received).frozen)
    assert frozen.index(True) == 50
    assert not never.state(0).frozen
    health.on_frame(on_time(1, 100)[0])
    assert not health.state(100 * PERIOD).frozen


def test_skew_is_a_warning_with_hysteresis() -> None:
    health, _ = fed(on_time(10))
    now = 9 * PERIOD
    skews = [0, 900, 1100, 900, 600, 400, 900]
    assert [bool(health.state(now, T0 + now + s * MS).warnings) for s in skews] == [
        False, False, True, True, True, False, False,
    ]  # fmt: skip
    assert health.state(now, T0 + now - 2000 * MS).alive


# The delay: what waited in buffers is as old as it waited.


def test_frames_found_in_a_buffer_after_a_stop_are_as_old_as_they_waited() -> None:
    frames = on_time(400)
    stop, go = 200 * PERIOD, 200 * PERIOD + 3 * SECOND
    _, delays = fed([received(f, go if stop <= f.received < go else f.received) for f in frames])
    assert delays[:200] == [0] * 200
    assert delays[200:350] == [(go - f.received) // MS for f in frames[200:350]]
    assert delays[350:] == [0] * 50


def test_a_stop_of_minutes_does_not_wipe_out_the_least_delay() -> None:
    frames = on_time(20_000)
    stop, go = 200 * PERIOD, 200 * PERIOD + 300 * SECOND
    _, delays = fed([received(f, go if stop <= f.received < go else f.received) for f in frames])
    assert delays[200] == 300_000
    assert delays[-1] == 0


@pytest.mark.parametrize("step", [-3600 * SECOND, -SECOND, -100 * MS, 100 * MS, SECOND, 3600 * SECOND])
def test_a_clock_step_of_the_publisher_is_no_delay(step: int) -> None:
    frames = on_time(300)
    _, delays = fed([received(f, f.received, f.t + step) if f.seq >= 150 else f for f in frames])
    assert max(delays) <= PERIOD // MS


@pytest.mark.parametrize("pause", [2 * SECOND, 5 * SECOND, 3600 * SECOND])
def test_a_sensor_started_anew_with_an_older_clock_is_no_delay(pause: int) -> None:
    frames = on_time(300)
    again = [received(f, f.received + pause, f.t - 3600 * SECOND) if f.seq >= 150 else f for f in frames]
    _, delays = fed(again)
    assert max(delays) <= PERIOD // MS


@pytest.mark.parametrize("offset", [-(10**18), -SECOND, SECOND, 10**18])
def test_rule_4_one_bad_stamp_does_not_poison_the_delay(offset: int) -> None:
    frames = on_time(300, lag=5 * MS)
    frames[150] = received(frames[150], frames[150].received, frames[150].t + offset)
    _, delays = fed(frames)
    assert max(delays) <= PERIOD // MS


def test_a_log_played_fast_has_no_delay_but_what_waits() -> None:
    fast = [received(f, f.received // 5) for f in on_time(3000)]
    _, delays = fed(fast)
    assert max(delays) == 0
    waited = [received(f, f.received + SECOND if f.seq == 1000 else f.received) for f in fast]
    _, delays = fed(waited)
    assert delays[1000] == pytest.approx(1000, abs=20)


def test_the_least_delay_is_forgotten_after_a_minute() -> None:
    """A path that has become 50 ms longer is a delay for a minute, and then the normal state."""
    frames = on_time(500) + on_time(4000, 500, lag=50 * MS)
    health, delays = fed(frames)
    assert delays[500] == delays[2500] == 50
    assert delays[-1] == 0
    assert len(health._delay._minima) <= 61


def test_a_sensor_that_repeats_its_last_frame_is_not_alive() -> None:
    frames = on_time(100)
    last = frames[-1]
    health, _ = fed([*frames, *(received(last, last.received + k * PERIOD) for k in range(1, 200))])
    assert not health.state(last.received + 200 * PERIOD).alive
