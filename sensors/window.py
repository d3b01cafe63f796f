"""Windows over a stream, exact under loss, jitter, duplicates and reordering.

Positions. The samples of a run have positions 0, 1, 2, ...; a sample that was lost keeps its position. A window of
`length` samples is due at positions length, length + hop, length + 2 hop, ... and is handed out, in order, as soon as all
before its end is there or given up. With resample="linear" positions are points of an exact grid of `rate_hz` from the
run's first stamp, interpolated between the samples' stamps.

Runs. A window never spans two runs. A run ends where the stamps jump by more than `gap_ns` beyond what the sequence
explains, where the sensor restarts or its clock steps, or where a hole is as long as a window; the window then under way
is handed out incomplete, and counting begins anew at position 0. See `order` for which frames are believed.

Holes. Frames missing from the sequence are waited for until the stream's own stamps have passed them by `late_ns`. A hole
of at most `fill_ns` is then filled linearly between its neighbours; every window that touches a longer one is handed out
with `complete=False` and data that is NaN throughout, so that "no answer" is never taken for an answer.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from reflexarc.sensors.frame import Frame, StreamSpec


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """What a pipeline wants of a stream: `length` and `hop` in samples, times in ns.

    `rate_hz` is the grid's with resample="linear" and otherwise the stream's. `gap_ns` 0 means 200 ms or 5 frames,
    whichever is longer. Raises ValueError for what cannot be.
    """

    length: int
    hop: int
    rate_hz: float
    resample: Literal["none", "linear"] = "none"
    fill_ns: int = 0
    late_ns: int = 0
    gap_ns: int = 0


@dataclass(slots=True)
class Window:
    """`length` samples in order, float32 `[length, *shape]`, owned by the caller.

    `t0` and `t1` are the stamps of the first and last sample (UNIX ns; of the grid when resampled). `source_seq`,
    `source_t` and `received` are those of the newest frame used; of the frame that made it known when incomplete.
    `tick` counts windows since the start from 0, over resets too; `run` counts runs; `filled` samples were interpolated
    across a hole.
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

    Push frames in the order of receipt, then pop until None. Deterministic: everything but `Window.received` depends only
    on the frames pushed, their order and resets. At every moment `received == processed + dropped.total() + queued`, in
    frames.
    """

    received: int
    """Frames pushed."""
    processed: int
    """Frames whose samples took their place in a run."""
    dropped: Counter[str]
    """Frames by reason: duplicate, late, stamp, reset."""
    breaks: Counter[str]
    """Runs ended by reason: gap, restart, step, hole."""
    lost: int
    """Frames missing from the sequence and given up."""

    def __init__(self, window: WindowSpec, stream: StreamSpec) -> None:
        raise NotImplementedError

    @property
    def queued(self) -> int:
        """Frames that wait: for pop(), for a hole before them, or for a second frame that agrees with their stamp."""
        raise NotImplementedError

    def push(self, frame: Frame) -> None:
        """Take one frame in the order of receipt."""
        raise NotImplementedError

    def pop(self) -> Window | None:
        """The next window that is due, or None when all frames have been looked at."""
        raise NotImplementedError

    def reset(self) -> None:
        """Forget all samples; frames that waited are dropped as `reset`. Counters and ticks go on."""
        raise NotImplementedError
