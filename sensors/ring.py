"""The last samples of a run, so that any window of them is one contiguous copy."""

import numpy as np
from numpy.typing import NDArray


class Ring:
    """Samples by position, with their stamps; at least the last `length` before the newest append are kept.

    Instead of wrapping, the buffer moves its last `length` samples to the front when it is full: about one
    copy a sample in the mean.
    """

    def __init__(self, length: int, shape: tuple[int, ...]) -> None:
        self._length = length
        self._rows = np.empty((2 * length + 64, *shape), np.float32)
        self._stamps = np.empty(len(self._rows), np.int64)
        self.clear()

    def clear(self) -> None:
        """Begin at position 0."""
        self.position = 0
        """Of the next sample, which is the number of samples so far."""
        self._base = 0  # position of row 0

    def append(self, row: NDArray[np.floating], stamp: int) -> None:
        """One sample, `[*shape]` or `[1, *shape]`."""
        end = self.position - self._base
        if end == len(self._rows):
            end = self._make_room(1)
        self._rows[end] = row
        self._stamps[end] = stamp
        self.position += 1

    def extend(self, rows: NDArray[np.floating], stamps: NDArray[np.int64]) -> None:
        """Samples `[n, *shape]` and their n stamps."""
        place = self._claim(len(stamps))
        self._rows[place] = rows
        self._stamps[place] = stamps

    def skip(self, stamps: NDArray[np.int64]) -> None:
        """Positions without a sample; what a window holds there is undefined."""
        place = self._claim(len(stamps))  # may put another array in place of _stamps
        self._stamps[place] = stamps

    def bridge(self, count: int, row: NDArray[np.float32], stamp: int, *, filled: bool) -> None:
        """`count` positions, evenly spaced up to the next sample (`row`, `stamp`); linear if `filled`."""
        weight = np.arange(1, count + 1) / (count + 1)
        last = self.stamp(self.position - 1)
        stamps = last + np.rint((stamp - last) * weight).astype(np.int64)
        if not filled:
            self.skip(stamps)
            return
        weight = weight.reshape(-1, *(1,) * row.ndim)
        before, after = self._rows[self.position - 1 - self._base].astype(np.float64), row.astype(np.float64)
        self.extend(before * (1 - weight) + after * weight, stamps)

    def window(self, end: int) -> NDArray[np.float32]:
        """A copy of the `length` samples before position `end`."""
        last = end - self._base
        return self._rows[last - self._length : last].copy()

    def stamp(self, position: int) -> int:
        """The stamp of the sample at `position`."""
        return int(self._stamps[position - self._base])

    def _claim(self, count: int) -> slice:
        """Where the next `count` rows go."""
        end = self.position - self._base
        if end + count > len(self._rows):
            end = self._make_room(count)
        self.position += count
        return slice(end, end + count)

    def _make_room(self, count: int) -> int:
        """Move the last rows to the front, where `count` fit behind them; gives the first free row."""
        end = self.position - self._base
        kept = min(end, self._length)
        rows, stamps = self._rows[end - kept : end], self._stamps[end - kept : end]
        if kept + count > len(self._rows):
            size = 2 * (kept + count)
            self._rows = np.empty((size, *rows.shape[1:]), np.float32)
            self._stamps = np.empty(size, np.int64)
        self._rows[:kept] = rows
        self._stamps[:kept] = stamps
        self._base = self.position - kept
        return kept
