"""Streams for the tests: a series, and what a transport does to it."""

import numpy as np
from hypothesis import strategies as st

from reflexarc.sensors.frame import Frame, StreamSpec
from reflexarc.sensors.window import Window, Windower, WindowSpec

RATE_HZ = 50.0
PERIOD = 20_000_000
T0 = 1_700_000_000_000_000_000


def stream(frame: int = 1, shape: tuple[int, ...] = (2,), rate_hz: float = RATE_HZ) -> StreamSpec:
    return StreamSpec("s", "s", shape, rate_hz, 200_000_000, frame)


def value(index: int, shape: tuple[int, ...] = (2,)) -> np.ndarray:
    """The sample of that index: irregular, and no two alike."""
    return (np.arange(np.prod(shape, dtype=int)).reshape(shape) * 0.25 + index**2 % 101 + index).astype(
        np.float32
    )


def make(
    count: int,
    size: int = 1,
    *,
    first_seq: int = 0,
    t: int = T0,
    period: float = PERIOD,
    shape: tuple[int, ...] = (2,),
) -> list[Frame]:
    """`count` frames of `size` samples, evenly stamped from `t` on."""
    frames = []
    for number in range(count):
        data = np.array([value(first_seq * size + number * size + index, shape) for index in range(size)])
        seq = first_seq + number
        frames.append(Frame(seq, t + round(number * size * period), data, seq))
    return frames


@st.composite
def transported(draw: st.DrawFn, frames: list[Frame], *, delays: int = 3, losses: int = 8) -> list[Frame]:
    """The frames with loss (in bursts below 8), duplicates, jitter of the stamps and reordering."""
    arrivals: list[tuple[int, int, Frame]] = []
    burst = 0
    lossy = draw(st.integers(0, losses))
    for number, frame in enumerate(frames):
        if number and burst < 8 and draw(st.integers(0, 19)) < lossy:
            burst += 1
            continue
        burst = 0
        arrivals.append((number + draw(st.integers(0, delays)), number, frame))
        if draw(st.integers(0, 19)) == 0:
            arrivals.append((number + draw(st.integers(0, 2 * delays)), number, frame))
    arrivals.sort(key=lambda arrival: arrival[:2])
    return [frame for _, _, frame in arrivals]


@st.composite
def jittered(draw: st.DrawFn, frames: list[Frame], most: int = PERIOD) -> list[Frame]:
    """The frames with their stamps late by up to `most`, still in order."""
    return [Frame(f.seq, f.t + draw(st.integers(0, most)), f.data, f.received) for f in frames]


def feed(windower: Windower, frames: list[Frame]) -> list[Window]:
    """Push and pop frame by frame; the counters hold at every moment."""
    out = []
    for frame in frames:
        windower.push(frame)
        check_counters(windower)
        while (window := windower.pop()) is not None:
            check_counters(windower)
            out.append(window)
        check_counters(windower)
    return out


def check_counters(windower: Windower) -> None:
    assert windower.received == windower.processed + windower.dropped.total() + windower.queued


def windows_of(frames: list[Frame], window: WindowSpec, spec: StreamSpec) -> tuple[list[Window], Windower]:
    windower = Windower(window, spec)
    return feed(windower, frames), windower
