"""One record of a trace, read without trust."""

from collections.abc import Mapping
from typing import NamedTuple

from reflexarc.node.replay.results import Result
from reflexarc.node.worker import ranges


class Record(NamedTuple):
    """What a worker noted of one decision; -1 and "" stand for what it did not."""

    session: int
    seq: int
    now: int
    epoch: int
    tick: int
    left: int
    taken: list[int]
    label: str
    scores: str
    interrupt: str
    untold: int

    @classmethod
    def read(cls, plain: Mapping[str, object], stream: str) -> "Record | None":
        """None where a key is missing or of another type."""
        numbers = [plain.get(key, -1) for key in ("session", "seq", "now", "epoch", "tick", "left")]
        texts = [plain.get(key, "") for key in (f"taken.{stream}", "label", "scores", "interrupt")]
        if not all(isinstance(n, int) for n in numbers) or not all(isinstance(t, str) for t in texts):
            return None
        try:
            taken = ranges.from_text(str(texts[0]))
        except ValueError:
            return None
        untold = plain.get(f"untold.{stream}", 0)
        if not isinstance(untold, int):
            return None
        session, seq, now, epoch, tick, left = (int(str(number)) for number in numbers)
        label, scores, interrupt = map(str, texts[1:])
        return cls(session, seq, now, epoch, tick, left, taken, label, scores, interrupt, untold)

    def agrees(self, result: Result) -> bool:
        """Whether a replayed decision is the one of that day, bit for bit."""
        scores = "" if result.scores is None else ",".join(map(str, result.scores))
        return (self.tick, self.label, self.scores) == (result.tick, result.decision.label, scores)
