"""When a channel's next command is due."""


class Schedule:
    """Every period, sooner with news as far as the rate allows, at once in a fall; times are monotonic ns."""

    __slots__ = ("_due", "_gap_ns", "_period_ns", "_sent", "deadline")

    def __init__(self, period_ns: int, gap_ns: int, now: int) -> None:
        self._period_ns = period_ns
        self._gap_ns = gap_ns
        self._sent = self._due = now
        self.deadline = now
        """When the next command is due; a time in the past is at once."""

    def hasten(self) -> None:
        """Ask for a command as soon as the rate allows."""
        self.deadline = min(self.deadline, self._sent + self._gap_ns)

    def rush(self) -> None:
        """Ask for a command at once, whatever the rate."""
        self.deadline = self._sent

    def sent(self, now: int) -> None:
        """Take note of a command: periods count from one that came early, else from when the last was due.

        So neither the loop's own delay nor a decision between two periods shifts the rate; what was missed in
        a standstill is not made up.
        """
        due = min(now, self._due) + self._period_ns
        self._due = self.deadline = due if due > now else now + self._period_ns
        self._sent = now

    def adopt(self, old: "Schedule") -> None:
        """Go on from the last command of another schedule; the next one is due at once."""
        self._sent = old._sent
        self.rush()
