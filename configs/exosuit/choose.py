"""Choice of the policy's parameters: those that follow a changing session best, on people unseen."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import onnxruntime as ort

from reflexarc.configs.exosuit.evaluate import Run, Scores, accuracy, decide, score, windows
from reflexarc.configs.exosuit.settings import Policy, Settings
from reflexarc.configs.exosuit.watch import Series

GRID = [Policy(*point) for point in product((0.5, 0.6, 0.7), (2, 3), (1, 2, 3, 4, 6, 8))]
"""Points (threshold, hold, smooth) to choose from. What moves an actuator must be likelier than all else
together and last two windows; accuracy, to which undecided is as bad as wrong, would ask for neither."""


def join(series: Sequence[Series], rng: np.random.Generator) -> list[list[Series]]:
    """Order the series of each wrist of one person at random, to be joined into one session a wrist."""
    sides = sorted({s.side for s in series})
    wrists = [[s for s in series if s.side == side] for side in sides]
    return [[wrist[i] for i in rng.permutation(len(wrist))] for wrist in wrists]


def score_session(
    model: ort.InferenceSession, parts: Sequence[Series], settings: Settings
) -> tuple[Scores, Sequence[int]]:
    """Score all windows of a session without gaps; a window's truth is the exercise at its last sample."""
    counts = np.concatenate([part.counts for part in parts])
    ends = np.cumsum([len(part.counts) for part in parts])
    last = np.arange(settings.length - 1, len(counts), settings.hop)
    truth = [parts[i].label for i in np.searchsorted(ends, last, side="right")]
    return score(model, windows(counts, settings)), truth


def session_runs(
    sessions: Sequence[tuple[Scores, Sequence[int]]], labels: Sequence[str], policy: Policy
) -> list[Run]:
    """Decisions of the policy over scored sessions."""
    return [Run(np.array(truth, np.int64), decide(scores, labels, policy)) for scores, truth in sessions]


def choose(runs: Mapping[Policy, Sequence[Sequence[Run]]], people: Sequence[int]) -> Policy:
    """Return the policy with the best accuracy over the sessions of the people (indices into the lists)."""
    return max(runs, key=lambda policy: accuracy(run for i in people for run in runs[policy][i]))
