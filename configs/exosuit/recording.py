"""Reading of the demo's recording: series of raw counts, each with its label."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgpack
import numpy as np
from mcap.reader import make_reader
from numpy.typing import NDArray

LABEL_TOPIC = "label/exercise"


@dataclass(frozen=True, slots=True)
class Section:
    """One series of the recording: stamps in ns [n], counts [n, 6], and the label that holds over it."""

    label: str
    t: NDArray[np.int64]
    counts: NDArray[np.int16]


def read_sections(path: Path, topic: str, rate_hz: float) -> Iterator[Section]:
    """Yield the series of a recording, parted where stamps are more than 1.5 periods apart."""
    samples, marks = [], []
    with path.open("rb") as file:
        for _schema, channel, message in make_reader(file).iter_messages():
            body = msgpack.unpackb(message.data)
            if channel.topic == topic:
                samples.append((body["t"], body["data"]))
            elif channel.topic == LABEL_TOPIC:
                marks.append((body["t"], body["label"]))
    t = np.array([stamp for stamp, _ in samples], np.int64)
    counts = np.array([data for _, data in samples], np.int16)
    breaks = np.flatnonzero(np.diff(t) > 1.5e9 / rate_hz) + 1
    starts = np.array([stamp for stamp, _ in marks], np.int64)
    for part_t, part in zip(np.split(t, breaks), np.split(counts, breaks), strict=True):
        label = marks[int(np.searchsorted(starts, part_t[0], side="right")) - 1][1]
        yield Section(label, part_t, part)
