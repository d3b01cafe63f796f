"""What a model's scores are worth: decisions of the node's own policy against the labels, and their delay.

Accuracy counts the decisions whose window lies inside one series; undecided is wrong. A series follows a gap
in the stamps, so the policy starts it anew. A *session* joins series without a gap: there the policy must let
go of the old label first, which is what its parameters are chosen for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from reflexarc.configs.exosuit.settings import Policy, Settings
from reflexarc.control.policy import Classify

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Run:
    """Decisions over one series or session: truth and decided label index [n] (-1: undecided)."""

    truth: NDArray[np.int64]
    decided: NDArray[np.int64]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which decisions are right [n]."""
        return np.equal(self.truth, self.decided)


def windows(counts: NDArray[np.int16], settings: Settings) -> NDArray[np.float32]:
    """All whole windows [n, 6, length] of a series, a hop apart, scaled as the pipeline does."""
    starts = range(0, len(counts) - settings.length + 1, settings.hop)
    cut = np.stack([counts[start : start + settings.length].T for start in starts])
    return cut.astype(np.float32) * np.float32(settings.scale)


def score(model: ort.InferenceSession, batch: NDArray[np.float32]) -> Scores:
    """Run the model (batch 1) on each window of [n, 6, length]; return probabilities [n, classes]."""
    name = model.get_inputs()[0].name
    return np.concatenate([model.run(None, {name: window[None]})[0] for window in batch])


def decide(scores: Scores, labels: Sequence[str], policy: Policy) -> NDArray[np.int64]:
    """Label index [n] that the node's policy holds after each window, -1 while undecided."""
    classify = Classify(labels, policy.threshold, policy.hold, policy.smooth)
    index = {name: i for i, name in enumerate(labels)}
    return np.array([index.get(classify.update(row)[0], -1) for row in scores.tolist()], np.int64)


def accuracy(runs: Iterable[Run]) -> float:
    """Share of right decisions over all runs."""
    return float(np.concatenate([run.right for run in runs]).mean())


def delay(run: Run, begin: int = 0) -> int | None:
    """Windows from `begin` until the truth there is first decided, before it changes; None if it never is."""
    same = run.truth[begin:] == run.truth[begin]
    length = len(same) if same.all() else int(same.argmin())
    right = run.right[begin : begin + length]
    return int(right.argmax()) if right.any() else None


def confusion(runs: Iterable[Run], classes: int) -> NDArray[np.int64]:
    """Counts [truth, decided]; the last column is undecided."""
    table = np.zeros((classes, classes + 1), np.int64)
    for run in runs:
        np.add.at(table, (run.truth, run.decided), 1)
    return table
