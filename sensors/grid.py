"""Linear resampling of a run on an exact grid: point g stands at round(g * 1e9 / rate_hz) ns after the
first sample.

Offsets from the run's first stamp are exact in float64 for 104 days. A point between the samples at x0 < x1
is `(1 - w) y0 + w y1` with `w = (p - x0) / (x1 - x0)`, in float64, so a point that falls on a sample is
that sample.
"""

from math import floor

import numpy as np
from numpy.typing import NDArray

from reflexarc.sensors.ring import Ring

_SMOOTHING = 1 / 16


class Grid:
    """The grid of one run.

    The samples inside a frame of several are placed at the period that the stream shows: the mean,
    exponential over about 16 frames, of the time from one frame to the next, a sample; the nominal one at
    first.
    """

    _origin: int  # stamp of the run's first sample
    _index: int  # of the next point
    _period_ns: float
    _x: float  # offset of the newest sample
    _y: NDArray[np.float64] | None  # its values; None: nothing is interpolated from it
    _frame_x: int  # offset of the newest frame
    _frame_size: int  # its samples; 0: its distance to the next says nothing of the period

    def __init__(self, rate_hz: float, nominal_ns: float) -> None:
        """`rate_hz` of the grid, `nominal_ns` from one sample of the stream to the next."""
        self._step_ns = 1e9 / rate_hz
        self._nominal_ns = nominal_ns
        self.begin(0)

    def begin(self, t: int) -> None:
        """Start a run whose first sample is stamped `t`."""
        self._origin = t
        self._index = 0
        self._period_ns = self._nominal_ns
        self._x = 0.0
        self._y = None
        self._frame_x = 0
        self._frame_size = 0

    def part(self, t: int, ring: Ring, *, joined: bool) -> None:
        """Frames are missing before the one stamped `t`: the points there are empty unless `joined`."""
        self._frame_size = 0
        if joined:
            return
        points = self._points(self.points_before(t))
        self._index += len(points)
        ring.skip(points + self._origin)
        self._y = None

    def points_before(self, t: int) -> int:
        """How many points from the newest sample to `t` exclusive."""
        return self._count_to(t - self._origin - 1)

    def take(self, t: int, rows: NDArray[np.float32], ring: Ring) -> None:
        """Append the points up to the last of the samples `rows` `[n, *shape]`; `t` stamps the first."""
        if len(rows) == 1 and self._y is not None:
            self._take_one(t - self._origin, rows[0].astype(np.float64), self._y, ring)
            return
        x = self._offsets(t - self._origin, len(rows))
        y = rows.astype(np.float64)
        x_before, y_before = (x[0], y[0]) if self._y is None else (self._x, self._y)
        self._x, self._y = float(x[-1]), y[-1]
        points = self._points(self._count_to(self._x))
        self._index += len(points)
        if len(points):
            values = _interpolate(points, np.insert(x, 0, x_before), np.insert(y, 0, y_before, axis=0))
            ring.extend(values, points + self._origin)

    def _take_one(self, x: int, y: NDArray[np.float64], y_before: NDArray[np.float64], ring: Ring) -> None:
        """The same for one sample after another."""
        x_before = self._x
        for _ in range(self._count_to(x)):
            point = round(self._index * self._step_ns)
            weight = (point - x_before) / (x - x_before)
            ring.append(y_before * (1 - weight) + y * weight, self._origin + point)
            self._index += 1
        self._x, self._y = max(x, x_before), y
        self._frame_x, self._frame_size = x, 1

    def _offsets(self, x: int, size: int) -> NDArray[np.float64]:
        """Offsets of a frame's samples, never before the newest sample."""
        if self._frame_size:
            measured = (x - self._frame_x) / self._frame_size
            within = min(max(measured, self._nominal_ns / 2), self._nominal_ns * 2)
            self._period_ns += (within - self._period_ns) * _SMOOTHING
        self._frame_x, self._frame_size = x, size
        offsets: NDArray[np.float64] = np.maximum(x + np.arange(size) * self._period_ns, self._x)
        return offsets

    def _count_to(self, x: float) -> int:
        """Points not passed yet whose offset is at most `x`."""
        last = floor(x / self._step_ns) + 1
        while round(last * self._step_ns) > x:
            last -= 1
        return max(0, last + 1 - self._index)

    def _points(self, count: int) -> NDArray[np.int64]:
        """Offsets of the next `count` points."""
        indices = np.arange(self._index, self._index + count)
        points: NDArray[np.int64] = np.rint(indices * self._step_ns).astype(np.int64)
        return points


def _interpolate(
    points: NDArray[np.int64], x: NDArray[np.float64], y: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Values at `points`, each after `x[0]` (or at it) and at most `x[-1]`."""
    after = np.maximum(np.searchsorted(x, points), 1)
    width = x[after] - x[after - 1]
    weight = np.divide(points - x[after - 1], width, out=np.ones(len(points)), where=width > 0)
    weight = weight.reshape(-1, *(1,) * (y.ndim - 1))
    values: NDArray[np.float64] = y[after - 1] * (1 - weight) + y[after] * weight
    return values
