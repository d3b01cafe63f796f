"""From scores to a label: smoothing, threshold and hold."""

import math
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from reflexarc.control.decision import UNAVAILABLE, UNDECIDED


class Verdict(NamedTuple):
    """A label, and the mean score behind it (of the best class while undecided, 0 while unavailable)."""

    label: str
    confidence: float

    @property
    def available(self) -> bool:
        """Whether there was an answer at all."""
        return self.label != UNAVAILABLE


class Classify:
    """Hold a label until another one is sure.

    Each update names a candidate: the class with the highest mean over the last `smooth` score vectors, or
    `undecided` where that mean is below `threshold`. A candidate seen `hold` times in a row becomes the
    label. A label that was not the candidate for `hold` updates in a row, unavailable ones included, is given
    up for `undecided`.
    """

    __slots__ = ("_candidate", "_hold", "_label", "_labels", "_misses", "_recent", "_run", "_threshold")

    def __init__(self, labels: Sequence[str], threshold: float, hold: int = 1, smooth: int = 1) -> None:
        if not labels or len(set(labels)) < len(labels) or not {UNDECIDED, UNAVAILABLE}.isdisjoint(labels):
            raise ValueError(
                f"classify: labels {list(labels)} must be some, distinct and other than undecided"
            )
        for count, name in ((hold, "hold"), (smooth, "smooth")):
            if count < 1:
                raise ValueError(f"classify: {name} must be at least 1, not {count}")
        if not math.isfinite(threshold):
            raise ValueError(f"classify: threshold must be finite, not {threshold}")
        self._labels = tuple(labels)
        self._threshold = threshold
        self._hold = hold
        self._recent: deque[Sequence[float]] = deque(maxlen=smooth)
        self.reset()

    def reset(self) -> None:
        """Forget everything: a new stream begins."""
        self._recent.clear()
        self._label = UNDECIDED
        self._candidate = UNDECIDED
        self._run = 0
        self._misses = 0

    def update(self, scores: Sequence[float]) -> Verdict:
        """Take the scores of one window, one a label, higher is likelier; non-finite scores are no answer.

        Raises ValueError where there are more or fewer scores than labels.
        """
        if len(scores) != len(self._labels):
            raise ValueError(f"classify: {len(scores)} scores for {len(self._labels)} labels")
        if not all(map(math.isfinite, scores)):
            return self.unavailable()
        self._recent.append(scores)
        means = [sum(column) / len(self._recent) for column in zip(*self._recent, strict=True)]
        best = max(range(len(means)), key=means.__getitem__)
        self._vote(self._labels[best] if means[best] >= self._threshold else UNDECIDED)
        shown = best if self._label == UNDECIDED else self._labels.index(self._label)
        return Verdict(self._label, means[shown])

    def unavailable(self) -> Verdict:
        """Take note of a window without an answer: it backs no label, and smoothing begins anew after it."""
        self._recent.clear()
        self._vote(UNAVAILABLE)
        return Verdict(UNAVAILABLE, 0.0)

    def adopt(self, label: str) -> None:
        """Hold a label found elsewhere: replay takes up a log in its middle. Unknown ones are left alone."""
        if label == UNDECIDED or label in self._labels:
            self._label = label
            self._misses = 0 if label == self._candidate else self._misses

    def _vote(self, candidate: str) -> None:
        self._run = self._run + 1 if candidate == self._candidate else 1
        self._misses = 0 if candidate == self._label else self._misses + 1
        self._candidate = candidate
        if self._run >= self._hold and candidate != UNAVAILABLE:
            self._label, self._misses = candidate, 0
        elif self._misses >= self._hold:
            self._label, self._misses = UNDECIDED, 0
