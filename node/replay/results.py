"""What a replay gives: results, the account of each pipeline, and a digest of it all."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from reflexarc.control.decision import Decision
from reflexarc.node.clock import SECOND
from reflexarc.node.worker.pipeline import Outbox, Pipeline, Scores

MakePipeline = Callable[[str], Pipeline]
"""A fresh pipeline of that name."""


class Result(NamedTuple):
    """One decision of the replay; `tick` is -1 for an interruption, `live` says what was decided that day."""

    pipeline: str
    tick: int
    decision: Decision
    scores: Scores
    trace: Mapping[str, object]

    def line(self) -> str:
        """What the digest covers: no times, no sessions."""
        scores = "" if self.scores is None else ",".join(map(str, self.scores))
        return f"{self.pipeline} {self.tick} {self.decision.source_seq} {self.decision.label} {scores}\n"


@dataclass(slots=True)
class Interval:
    """A stretch of the log that is whole: its decisions must equal the live ones."""

    begin: int
    end: int
    decisions: int = 0
    different: int = 0


@dataclass(slots=True)
class Account:
    """What became of one pipeline's part of the log."""

    results: int = 0
    frames: int = 0
    refused: int = 0
    intervals: list[Interval] = field(default_factory=list)
    missing: int = 0  # frames that a trace names and the log lacks
    hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    @property
    def compared(self) -> list[Interval]:
        """The intervals that hold a decision."""
        return [each for each in self.intervals if each.decisions]

    def live(self) -> dict[str, int]:
        """The comparison with the live decisions in numbers."""
        return {
            "intervals": len(self.compared),
            "whole_s": round(sum(each.end - each.begin for each in self.compared) / SECOND),
            "compared": sum(each.decisions for each in self.compared),
            "different": sum(each.different for each in self.compared),
            "missing_frames": self.missing,
        }


class Sink:
    """Takes results: counts them, feeds the digest, hands them on."""

    def __init__(self, on_result: Callable[[Result], None] | None) -> None:
        self.accounts: dict[str, Account] = {}
        self._on_result = on_result

    def put(self, account: Account, result: Result) -> None:
        """One decision, in order."""
        account.results += 1
        account.hash.update(result.line().encode())
        if self._on_result is not None:
            self._on_result(result)

    def digest(self) -> str:
        """SHA-256 over all pipelines, in the order of their names."""
        whole = hashlib.sha256()
        for name in sorted(self.accounts):
            whole.update(f"{name} {self.accounts[name].hash.hexdigest()}\n".encode())
        return whole.hexdigest()


def results_of(outbox: Outbox) -> Iterator[Result]:
    """The decisions of a step, each with its trace and scores."""
    for decision, trace, scores in zip(outbox.decisions, outbox.traces, outbox.scores, strict=True):
        tick = trace.get("tick", -1)
        yield Result(decision.pipeline, int(tick), decision, scores, trace)
