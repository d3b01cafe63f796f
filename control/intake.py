"""What a channel takes in: which decision acts, until when, and what it asks for."""

import math
from collections import Counter
from typing import Final

from reflexarc.control.decision import UNAVAILABLE, Decision
from reflexarc.control.order import Order
from reflexarc.control.source import Unusable
from reflexarc.control.spec import ChannelSpec

FUTURE_NS: Final = 10_000_000
"""How far after `now` a decision may have been received: the shell reads its clock before its sockets."""


class Intake:
    """The last good decision of a channel and its lifetime; times are monotonic ns.

    A decision that is too late, too early or out of order is refused and changes nothing. One in order that
    brings no usable answer leaves the last good one to act while it lives, and is remembered as `trouble`.
    """

    __slots__ = ("_barrier", "_order", "_spec", "counts", "decision", "expires", "targets", "trouble")

    def __init__(self, spec: ChannelSpec, now: int) -> None:
        self._spec = spec
        self._order = Order()
        self._barrier = now
        self.counts: Counter[str] = Counter()
        """How many decisions were taken ("taken"), or refused (the word of the refusal)."""
        self.decision: Decision | None = None
        self.expires = now
        self.targets: list[float] = []
        """What the decision asks for, a finite number a value, in the order of the channel's values."""
        self.trouble = ""
        """Why the newest decision brought no answer, "" where it did."""

    def accept(self, decision: Decision, now: int) -> str:
        """Take a decision; gives "", or the word of its refusal."""
        word = self._order.refusal(decision)
        if not word and decision.available:
            word = self._untimely(decision, now)
        if not word:
            self._order.advance(decision)
            word = self.trouble = self._follow(decision, now)
        self.counts[word or "taken"] += 1
        return word

    def lives(self, now: int) -> bool:
        """Whether a decision acts."""
        return self.decision is not None and now < self.expires

    def discard_before(self, now: int) -> None:
        """Let no decision received at or before `now` act, the present one included."""
        self._barrier = max(self._barrier, now)
        if self.decision is None or self.decision.received <= self._barrier:
            self.decision = None
            self.trouble = ""

    def adopt(self, old: "Intake") -> None:
        """Go on where another one of the same pipeline stood; its decision is read anew."""
        self._order = old._order
        self._barrier = old._barrier
        self.counts = old.counts
        self.trouble = old.trouble
        if old.decision is not None:
            self.trouble = self._follow(old.decision, old.decision.received) or old.trouble

    def _untimely(self, decision: Decision, now: int) -> str:
        age = now - decision.received
        if decision.received <= self._barrier:
            return "old"
        if age < -FUTURE_NS:
            return "future"
        return "stale" if age >= self._spec.max_age_ns else ""

    def _follow(self, decision: Decision, now: int) -> str:
        if not decision.available:
            return UNAVAILABLE
        try:
            targets = [value.source(decision) for value in self._spec.values]
        except Unusable as finding:
            return finding.word
        if not all(map(math.isfinite, targets)) or not math.isfinite(decision.confidence):
            return "nonfinite"
        self.decision = decision
        self.expires = min(decision.received, now) + self._spec.max_age_ns
        self.targets = targets
        return ""
