"""The demo's decisions against the labels of the recording."""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

import msgpack

from reflexarc.node.log import Entry

LABELS = "label/"


class Series(NamedTuple):
    """A stretch of the recording with one label; times in UNIX ns."""

    begin: int
    end: int
    label: str


def series_of(entries: Iterable[Entry]) -> list[Series]:
    """The labelled stretches: each mark holds until the next one, and an empty label is none."""
    marks = [msgpack.unpackb(entry.payload) for entry in entries if entry.topic.startswith(LABELS)]
    return [Series(a["t"], b["t"], a["label"]) for a, b in pairwise(marks) if a["label"]]


def label_at(series: Iterable[Series], t: int) -> str:
    """The label that holds at a time, "" where there is none."""
    return next((each.label for each in series if each.begin <= t <= each.end), "")


class Score:
    """Counts the decisions whose window lies inside one series; undecided is wrong.

    `window_ns` is from a window's first sample to its last. An unavailable decision has no whole window.
    """

    def __init__(self, series: list[Series], window_ns: int) -> None:
        self.series = series
        self.decisions = self.judged = self.right = 0
        self._window_ns = window_ns

    def take(self, decision: Mapping[str, object]) -> None:
        """Judge one decision message."""
        self.decisions += 1
        if not decision["available"]:
            return
        t = decision["source_t"]
        assert isinstance(t, int)
        begin = t - self._window_ns
        for each in self.series:
            if each.begin <= begin and t <= each.end:
                self.judged += 1
                self.right += decision["label"] == each.label

    @property
    def accuracy(self) -> float:
        """The share that was right, 0 where none was judged."""
        return self.right / self.judged if self.judged else 0.0
