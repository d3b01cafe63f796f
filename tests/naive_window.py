"""Windows the slow way: from all frames pushed so far, everything is worked out anew. Stamps are believed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reflexarc.sensors.frame import Frame, StreamSpec
from reflexarc.sensors.window import WindowSpec


@dataclass
class Sample:
    t: int
    value: NDArray[np.float64] | None  # None: lost
    filled: bool
    frame: Frame  # the one that made it known


def settle(pushed: list[Frame], late_ns: int) -> tuple[dict[int, Frame], dict[str, int]]:
    """Frames by sequence as far as they are settled, and drops by reason."""
    first = pushed[0].seq
    have: dict[int, Frame] = {}
    given_up: set[int] = set()
    dropped = {"duplicate": 0, "late": 0}
    for frame in pushed:
        if frame.seq in given_up:
            dropped["late"] += 1
        elif frame.seq in have or frame.seq < first:
            dropped["duplicate"] += 1
        else:
            have[frame.seq] = frame
        newest = have[max(have)]
        for seq in range(first, newest.seq):
            if seq not in have:
                after = have[min(later for later in have if later > seq)]
                if newest.t - after.t >= late_ns:
                    given_up.add(seq)
    settled: dict[int, Frame] = {}
    for seq in range(first, max(have) + 1):
        if seq in have:
            settled[seq] = have[seq]
        elif seq not in given_up:
            break
    return settled, dropped


def runs(settled: dict[int, Frame], window: WindowSpec, stream: StreamSpec) -> list[list[Sample]]:
    """Samples by position, in the runs that holes as long as a window part."""
    period = 1e9 / stream.rate_hz
    found: list[list[Sample]] = [[]]
    before: Frame | None = None
    for seq, frame in settled.items():
        run = found[-1]
        if before is not None and seq > before.seq + 1:
            frames = seq - before.seq - 1
            count = round((frame.t - before.t) / period) - len(before.data)
            count = min(max(count, frames), frames * stream.frame)
            lost = points_between(run, frame.t, window.rate_hz) if window.resample == "linear" else count
            if lost >= window.length:
                run = []
                found.append(run)
            else:
                run += hole(run[-1], frame, count, fill=count * period <= window.fill_ns + 1)
        for index, row in enumerate(frame.data):
            run.append(Sample(frame.t + round(index * period), row.astype(np.float64), False, frame))
        before = frame
    return found


def points_between(run: list[Sample], t: int, rate_hz: float) -> int:
    """Points of the run's grid after its newest sample and before `t`."""
    count = index = 0
    while (point := run[0].t + round(index * (1e9 / rate_hz))) < t:
        count += point > run[-1].t
        index += 1
    return count


def hole(last: Sample, frame: Frame, count: int, *, fill: bool) -> list[Sample]:
    samples = []
    for index in range(1, count + 1):
        weight = index / (count + 1)
        t = last.t + round((frame.t - last.t) * weight)
        assert last.value is not None
        value = last.value * (1 - weight) + frame.data[0].astype(np.float64) * weight if fill else None
        samples.append(Sample(t, value, fill, frame))
    return samples


def resampled(run: list[Sample], rate_hz: float) -> list[Sample]:
    """The points of the grid up to the last sample: numpy's interpolation between the run's real samples."""
    real = [sample for sample in run if sample.value is not None and not sample.filled]
    x = np.array([sample.t - real[0].t for sample in real], np.float64)
    y = np.array([sample.value for sample in real])
    points = []
    index = 0
    while (point := round(index * (1e9 / rate_hz))) <= x[-1]:
        t = real[0].t + point
        after = next(position for position, sample in enumerate(run) if sample.t >= t and not is_gap(sample))
        before = after - 1
        gap = run[max(before, 0)]
        value = (
            np.array([np.interp(point, x, column) for column in y.T])
            if y.ndim > 1
            else np.interp(point, x, y)
        )
        lost = run[after].t != t and gap.value is None
        points.append(Sample(t, None if lost else value, gap.filled and run[after].t != t, run[after].frame))
        index += 1
    return points


def is_gap(sample: Sample) -> bool:
    return sample.value is None or sample.filled


def windows(pushed: list[Frame], window: WindowSpec, stream: StreamSpec) -> list[dict]:
    """Every window that is due by now."""
    settled, _ = settle(pushed, window.late_ns)
    due = []
    all_runs = runs(settled, window, stream)
    for number, run in enumerate(all_runs):
        positions = resampled(run, window.rate_hz) if window.resample == "linear" else run
        end = window.length
        while end <= len(positions):
            part = positions[end - window.length : end]
            due.append(one(part, number, complete=all(sample.value is not None for sample in part)))
            end += window.hop
        if number + 1 < len(all_runs):
            breaker = all_runs[number + 1][0].frame
            due.append({"complete": False, "run": number, "source_seq": breaker.seq, "filled": 0})
    for tick, entry in enumerate(due):
        entry["tick"] = tick
    return due


def one(part: list[Sample], run: int, *, complete: bool) -> dict:
    entry = {"complete": complete, "run": run, "source_seq": part[-1].frame.seq, "filled": 0}
    if complete:
        entry["data"] = np.array([sample.value for sample in part])
        entry["t0"], entry["t1"] = part[0].t, part[-1].t
        entry["filled"] = sum(sample.filled for sample in part)
    return entry
