"""When a channel's next command is due."""


class Schedule:
    """Every period, sooner with news as far as the rate allows, at once in a fall; times are monotonic ns."""

    __slots__ = ("_due", "_fresh", "_gap_ns", "_period_ns", "_sent", "_urgent")

    def __init__(self, period_ns: int, gap_ns: int, now: int) -> None:
        self._period_ns = period_ns
        self._gap_ns = gap_ns
        self._sent = self._due = now
        self._fresh = False
        self._urgent = True

    def hasten(self) -> None:
        """Ask for a command as soon as the rate allows."""
        self._fresh = True

    def rush(self) -> None:
        """Ask for a command at once, whatever the rate."""
        self._urgent = True

    @property
    def deadline(self) -> int:
        """When the next command is due; a time in the past is at once."""
        if self._urgent:
            return self._sent
        return min(self._due, self._sent + self._gap_ns) if self._fresh else self._due

    def sent(self, now: int) -> None:
        """Take note of a command: periods count from one that came early, else from when the last was due.

        So neither the loop's own delay nor a decision between two periods shifts the rate; what was missed in
        a standstill is not made up.
        """
        self._due = (self._due if now >= self._due else now) + self._period_ns
        if self._due <= now:
            self._due = now + self._period_ns
        self._sent = now
        self._fresh = self._urgent = False

    def adopt(self, old: "Schedule") -> None:
        """Go on from the last command of another schedule; the next one is due at once."""
        self._sent = old._sent
