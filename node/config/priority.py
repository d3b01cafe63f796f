"""Scheduling priorities as the configuration writes them, and their order."""

import re
from dataclasses import dataclass

from reflexarc.node.config.rules import show, wrong

_PATTERN = re.compile(r"other|(?P<kind>nice|fifo):(?P<level>[+-]?[0-9]{1,3})")


@dataclass(frozen=True, slots=True)
class Priority:
    """`other`, `nice:N` (-20 to 19, low goes first) or `fifo:N` (SCHED_FIFO, 1 to 99, high goes first)."""

    kind: str
    level: int = 0

    @property
    def realtime(self) -> bool:
        """Whether it is a real-time priority."""
        return self.kind == "fifo"

    @property
    def rank(self) -> tuple[int, int]:
        """Sorts by who goes first: every fifo above every nice."""
        return (1, self.level) if self.realtime else (0, -self.level)

    def __str__(self) -> str:
        return self.kind if self.kind == "other" else f"{self.kind}:{self.level}"


@dataclass(frozen=True, slots=True)
class PriorityRule:
    """Reads "other", "nice:N" or "fifo:N"."""

    def read(self, value: object) -> Priority:
        """A Priority."""
        found = _PATTERN.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            raise wrong(f'{show(value)} is not "other", "nice:N" or "fifo:N"')
        if found["kind"] is None:
            return Priority("other")
        low, high = (1, 99) if found["kind"] == "fifo" else (-20, 19)
        level = int(found["level"])
        if not low <= level <= high:
            raise wrong(f"{found['kind']}:{level} is not in {low} to {high}")
        return Priority(found["kind"], level)
