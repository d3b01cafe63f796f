"""The smartwatch recordings of PyPI's `seglearn` as labelled series of raw counts."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reflexarc.configs.exosuit.settings import COUNTS_PER_UNIT

MIRROR = np.array([-1, 1, 1, 1, -1, -1], np.int16)
"""Turns the left wrist into the right: a reflection flips one axis of the acceleration (a polar vector) and
the other two of the rate of turn (an axial vector)."""


@dataclass(frozen=True, slots=True)
class Series:
    """One set of about 20 repetitions: counts int16 [n, 6] at 50 Hz, in the frame of a right wrist."""

    person: int
    side: str
    label: int
    counts: NDArray[np.int16]


def load_series(labels: Iterable[str]) -> list[Series]:
    """Load all 140 series, left wrists mirrored; a label is its name's index in `labels`."""
    from seglearn.datasets import load_watch

    data = load_watch()
    index = {name: i for i, name in enumerate(labels)}
    series = []
    for x, y, person, side in zip(data["X"], data["y"], data["subject"], data["side"], strict=True):
        counts = to_counts(x)
        if side == 0:
            counts = counts * MIRROR
        series.append(Series(int(person), "right" if side else "left", index[data["y_labels"][y]], counts))
    return series


def to_counts(x: NDArray[np.float64]) -> NDArray[np.int16]:
    """Quantize g and rad/s [n, 6] to int16 counts, -32768 left out so that every sign can flip."""
    counts = np.rint(x * np.asarray(COUNTS_PER_UNIT, np.float64))
    return np.clip(counts, -32767, 32767).astype(np.int16)
