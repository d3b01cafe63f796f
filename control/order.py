"""The order of one pipeline's decisions: nothing goes back."""

from collections import deque
from typing import Final

from reflexarc.control.decision import Decision

REMEMBERED: Final = 16
"""How many sessions that were replaced are known and refused."""


class Order:
    """The last decision taken, by its session, epoch and sequence number, and the sessions before."""

    __slots__ = ("_last", "_retired")

    def __init__(self) -> None:
        self._last: Decision | None = None
        self._retired: deque[int] = deque(maxlen=REMEMBERED)

    def refusal(self, decision: Decision) -> str:
        """Name what goes back in a decision: session, epoch or seq; "" where nothing does."""
        last = self._last
        if last is None or decision.session != last.session:
            return "session" if decision.session in self._retired else ""
        if decision.epoch < last.epoch:
            return "epoch"
        return "" if decision.epoch > last.epoch or decision.seq > last.seq else "seq"

    def advance(self, decision: Decision) -> None:
        """Stand at a decision that `refusal` let pass; a session that it replaces is over for good."""
        if self._last is not None and decision.session != self._last.session:
            self._retired.append(self._last.session)
        self._last = decision
