"""Windows over a stream, exact under loss, jitter, duplicates and reordering.

Positions. The samples of a run have positions 0, 1, 2, ...; a sample that was lost keeps its position. A
window of `length` samples is due at positions length, length + hop, length + 2 hop, ... and is handed out,
in order, as soon as all before its end is there or given up. With resample="linear" positions are points of
an exact grid of `rate_hz` from the run's first stamp, interpolated between the samples' stamps.

Runs. A window never spans two runs. A run ends where the stamps jump by more than `gap_ns` beyond what the
sequence explains, where the sensor restarts or its clock steps, or where a hole is as long as a window; the
window then under way is handed out incomplete, and counting begins anew at position 0. See `order` for
which frames are believed.

Holes. Frames missing from the sequence are waited for until the stream's own stamps have passed them by
`late_ns`. A hole of at most `fill_ns` is then filled linearly between its neighbours; every window that
touches a longer one is handed out with `complete=False` and data that is NaN throughout, so that "no
answer" is never taken for an answer.
"""

from collections import Counter, deque
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reflexarc.sensors.frame import Frame, StreamSpec
from reflexarc.sensors.grid import Grid
from reflexarc.sensors.order import Order, Placed
from reflexarc.sensors.ring import Ring

DEFAULT_GAP_NS = 200_000_000
DEFAULT_GAP_FRAMES = 5


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """What a pipeline wants of a stream: `length` and `hop` in samples, times in ns.

    `rate_hz` is the grid's with resample="linear" and otherwise the stream's. `gap_ns` 0 means 200 ms or 5
    frames, whichever is longer. Raises ValueError for what cannot be.
    """

    length: int
    hop: int
    rate_hz: float
    resample: Literal["none", "linear"] = "none"
    fill_ns: int = 0
    late_ns: int = 0
    gap_ns: int = 0

    def __post_init__(self) -> None:
        if self.length < 1 or self.hop < 1:
            raise ValueError(f"window: length {self.length} and hop {self.hop} must be at least 1 sample")
        if not 0 < self.rate_hz < 1e9:
            raise ValueError(f"window: rate_hz {self.rate_hz} is not between 0 and 1e9")
        if self.resample not in ("none", "linear"):
            raise ValueError(f"window: resample {self.resample!r} is neither none nor linear")
        if min(self.fill_ns, self.late_ns, self.gap_ns) < 0:
            raise ValueError(
                f"window: fill, late, gap {self.fill_ns}, {self.late_ns}, {self.gap_ns} ns: one below 0"
            )


@dataclass(slots=True)
class Window:
    """`length` samples in order, float32 `[length, *shape]`, owned by the caller.

    `t0` and `t1` are the stamps of the first and last sample (UNIX ns; of the grid when resampled).
    `source_seq`, `source_t` and `received` are those of the newest frame used; of the frame that made it
    known when incomplete. `tick` counts windows since the start from 0, over resets too; `run` counts runs;
    `filled` samples were interpolated across a hole.
    """

    data: NDArray[np.float32]
    t0: int
    t1: int
    complete: bool
    source_seq: int
    source_t: int
    received: int
    tick: int
    run: int
    filled: int


class Windower:
    """Windows of one stream for one pipeline.

    Push frames in the order of receipt, then pop until None. Deterministic: everything but
    `Window.received` depends only on the frames pushed, their order and resets. At every moment `received
    == processed + dropped.total() + queued`, in frames.
    """

    _closing: Window | None  # of the run before, to be handed out first
    _due: int  # position at which the next window ends
    _whole_from: int  # position after the last hole that was not filled
    _filled: deque[range]  # positions

    def __init__(self, window: WindowSpec, stream: StreamSpec) -> None:
        self._length, self._hop = window.length, window.hop
        self._period_ns = 1e9 / stream.rate_hz
        self._most_filled = int(window.fill_ns / self._period_ns + 1e-6)
        self._most_a_frame = stream.frame
        self._grid = Grid(window.rate_hz, self._period_ns) if window.resample == "linear" else None
        self._ring = Ring(window.length, stream.shape)
        self._no_data = np.full((window.length, *stream.shape), np.nan, np.float32)
        self._no_data.flags.writeable = False
        gap_ns = window.gap_ns or max(DEFAULT_GAP_NS, DEFAULT_GAP_FRAMES * stream.frame * self._period_ns)
        self.dropped: Counter[str] = Counter()
        """Frames by reason: duplicate, late, stamp, reset."""
        self._order = Order(self._period_ns, gap_ns, window.late_ns, self.dropped)
        self._inbox: deque[Frame] = deque()
        self._placed: deque[Placed] = deque()
        self.received = 0
        """Frames pushed."""
        self.processed = 0
        """Frames whose samples took their place in a run."""
        self.breaks: Counter[str] = Counter()
        """Runs ended, by reason: gap, restart, step, hole."""
        self._tick = 0
        self._run = -1
        self._source: Frame | None = None
        self._first_due = self._length
        self._clear()

    @property
    def lost(self) -> int:
        """Frames missing from the sequence and given up."""
        return self._order.lost

    @property
    def queued(self) -> int:
        """Frames that wait: for pop(), for a hole before them, or for a second frame that agrees."""
        return len(self._inbox) + len(self._placed) + self._order.queued

    @property
    def left(self) -> int:
        """Samples until the next window ends; -1 while frames wait, or on a resampled grid."""
        return -1 if self.queued or self._grid is not None else self._due - self._ring.position

    def resume(self, tick: int, left: int) -> int:
        """Begin, with the next frame, within another windower's run: a window ends in `left` samples.

        For reading a log that begins in a run. `tick` is that window's number. Gives how many windows cannot
        be made since they began before; what follows are the other's windows, as long as its run lasts.
        """
        self.reset()
        skipped = max(0, -(-(self._length - left) // self._hop))
        self._first_due = left + skipped * self._hop
        self._tick = tick + skipped
        return skipped

    def push(self, frame: Frame) -> None:
        """Take one frame in the order of receipt."""
        self.received += 1
        self._inbox.append(frame)

    def pop(self) -> Window | None:
        """The next window that is due, or None when all frames have been looked at."""
        while True:
            if self._closing is not None:
                window, self._closing = self._closing, None
                return window
            if self._ring.position >= self._due:
                return self._window()
            if self._placed:
                self._take(*self._placed.popleft())
            elif self._inbox:
                self._order.push(self._inbox.popleft(), self._placed)
            else:
                return None

    def reset(self) -> None:
        """Forget all samples; frames that waited are dropped as `reset`. Counters and ticks go on."""
        self._order.reset()
        waited = len(self._inbox) + len(self._placed)
        if waited:
            self.dropped["reset"] += waited
        self._inbox.clear()
        self._placed.clear()
        self._source = None
        self._first_due = self._length
        self._clear()

    def _clear(self) -> None:
        self._ring.clear()
        self._closing = None
        self._due = self._length
        self._whole_from = 0
        self._filled = deque()

    def _take(self, frame: Frame, missing: int, reason: str) -> None:
        """Give the frame's samples their positions; a hole before them first, for windows may end in it."""
        if missing:
            self._pass_hole(frame, missing)
            self._placed.appendleft((frame, 0, ""))
            self._source = frame
            return
        if reason:
            self._begin(frame, reason)
        self.processed += 1
        self._source = frame
        if self._grid is not None:
            self._grid.take(frame.t, frame.data, self._ring)
        elif len(frame.data) == 1:
            self._ring.append(frame.data, frame.t)
        else:
            self._ring.extend(frame.data, frame.t + _multiples(self._period_ns, len(frame.data)))

    def _begin(self, frame: Frame, reason: str) -> None:
        """Start a run with this frame, and hand out the window under way as incomplete."""
        closing = None
        if self._source is not None:
            self.breaks[reason] += 1
            last = self._ring.position - 1
            closing = self._incomplete(self._due - self._length, last, frame)
        self._clear()
        if reason == "start":
            self._due, self._first_due = self._first_due, self._length
        self._closing = closing
        self._run += 1
        if self._grid is not None:
            self._grid.begin(frame.t)

    def _pass_hole(self, frame: Frame, missing: int) -> None:
        """Give positions to the `missing` frames before this one, filled or not, or start a new run."""
        samples = self._samples_missing(frame, missing)
        count = samples if self._grid is None else self._grid.points_before(frame.t)
        if count >= self._length:
            self._begin(frame, "hole")
            return
        filled = samples <= self._most_filled
        position = self._ring.position
        if filled:
            self._filled.append(range(position, position + count))
        else:
            self._whole_from = position + count
        if self._grid is None:
            self._ring.bridge(count, frame.data[0], frame.t, filled=filled)
        else:
            self._grid.part(frame.t, self._ring, joined=filled)

    def _samples_missing(self, frame: Frame, missing: int) -> int:
        """Samples in the `missing` frames before this one: by the stamps, where a frame may hold several."""
        assert self._source is not None
        frames_ns = frame.t - self._source.t
        between = round(frames_ns / self._period_ns) - len(self._source.data)
        return min(max(between, missing), missing * self._most_a_frame)

    def _window(self) -> Window:
        """The window that is due now."""
        assert self._source is not None
        start, end = self._due - self._length, self._due
        if start < self._whole_from:
            window = self._incomplete(start, end - 1, self._source)
        else:
            while self._filled and self._filled[0].stop <= start:
                self._filled.popleft()
            filled = sum(len(range(max(start, hole.start), min(end, hole.stop))) for hole in self._filled)
            data = self._ring.window(end)
            window = self._make(data, start, end - 1, self._source, complete=True, filled=filled)
        self._due += self._hop
        return window

    def _incomplete(self, first: int, last: int, source: Frame) -> Window:
        """A tick without data for the positions `first` to `last`, made known by `source`."""
        return self._make(self._no_data, min(first, last), last, source, complete=False, filled=0)

    def _make(
        self, data: NDArray[np.float32], first: int, last: int, source: Frame, *, complete: bool, filled: int
    ) -> Window:
        self._tick += 1
        return Window(
            data=data,
            t0=self._ring.stamp(first),
            t1=self._ring.stamp(last),
            complete=complete,
            source_seq=source.seq,
            source_t=source.t,
            received=source.received,
            tick=self._tick - 1,
            run=self._run,
            filled=filled,
        )


@lru_cache(maxsize=256)
def _multiples(period_ns: float, count: int) -> NDArray[np.int64]:
    """0, 1, ... count - 1 periods, rounded to ns."""
    multiples: NDArray[np.int64] = np.rint(np.arange(count) * period_ns).astype(np.int64)
    return multiples
