"""A pipeline at work, and how long its model takes: measured around it, since a pipeline reads no clock."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.node.clock import now
from reflexarc.node.worker.pipeline import Info, Model, Pipeline

KEPT = 400  # the latest runs, of which the percentiles are


class Timed:
    """A model that remembers the durations of its latest runs."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._runs: deque[int] = deque(maxlen=KEPT)

    @property
    def inputs(self) -> Sequence[Info]:
        """As the model's."""
        return self._model.inputs

    @property
    def outputs(self) -> Sequence[Info]:
        """As the model's."""
        return self._model.outputs

    def run(self, x: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """As the model's, measured."""
        begin = now()
        outputs = self._model.run(x)
        self._runs.append(now() - begin)
        return outputs

    def raw(self, index: int) -> NDArray[Any] | None:
        """As the model's."""
        return self._model.raw(index)

    def percentiles_ns(self) -> tuple[int, int]:
        """The 50th and 99th percentile of the latest runs; zeros before the first."""
        runs = sorted(self._runs)
        return (runs[len(runs) // 2], runs[len(runs) * 99 // 100]) if runs else (0, 0)


@dataclass(slots=True)
class Task:
    """A pipeline with what the shell knows and counts of it."""

    pipeline: Pipeline
    model: Timed
    deadline_ns: int
    missed: int = 0  # decisions that came later than the deadline after their newest input
