"""The order of one pipeline's decisions: nothing goes back."""

from collections import deque
from typing import Final

from reflexarc.control.decision import Decision

REMEMBERED: Final = 16
"""How many sessions that were replaced are known and refused."""


class Order:
    """Where the decisions taken so far stand: their session, epoch and sequence number."""

    __slots__ = ("_epoch", "_retired", "_seq", "_session")

    def __init__(self) -> None:
        self._session: int | None = None
        self._epoch = 0
        self._seq = 0
        self._retired: deque[int] = deque(maxlen=REMEMBERED)

    def refusal(self, decision: Decision) -> str:
        """Name what goes back in a decision: session, epoch or seq; "" where nothing does."""
        if decision.session != self._session:
            return "session" if decision.session in self._retired else ""
        if decision.epoch != self._epoch:
            return "epoch" if decision.epoch < self._epoch else ""
        return "seq" if decision.seq <= self._seq else ""

    def advance(self, decision: Decision) -> None:
        """Stand at a decision that `refusal` let pass; a session that it replaces is over for good."""
        if self._session is not None and decision.session != self._session:
            self._retired.append(self._session)
        self._session = decision.session
        self._epoch = decision.epoch
        self._seq = decision.seq
