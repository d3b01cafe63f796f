"""When a channel's next command is due."""


class Schedule:
    """Every period, sooner with news as far as the rate allows, at once in a fall; times are monotonic ns.

    The gap is kept between commands that came early. One that a period brought does not hold up the news
    after it: it comes only where none came for a period, so any time T sees at most 2 + T / gap commands.
    """

    __slots__ = ("_due", "_free", "_gap_ns", "_period_ns", "_sent", "deadline")

    def __init__(self, period_ns: int, gap_ns: int, now: int) -> None:
        self._period_ns = period_ns
        self._gap_ns = gap_ns
        self._sent = self._due = self._free = now
        self.deadline = now
        """When the next command is due; a time in the past is at once."""

    def hasten(self) -> None:
        """Ask for a command as soon as the rate allows."""
        self.deadline = min(self.deadline, max(self._sent, self._free))

    def rush(self) -> None:
        """Ask for a command at once, whatever the rate."""
        self.deadline = self._sent

    def sent(self, now: int) -> None:
        """Take note of a command: periods count from one that came early, else from when the last was due.

        So neither the loop's own delay nor a decision between two periods shifts the rate; what was missed in
        a standstill is not made up.
        """
        if now < self._due:
            self._free = now + self._gap_ns
        due = min(now, self._due) + self._period_ns
        self._due = self.deadline = due if due > now else now + self._period_ns
        self._sent = now

    def adopt(self, old: "Schedule") -> None:
        """Go on from the last command of another schedule; the next one is due at once."""
        self._sent, self._free = old._sent, old._free
        self.rush()
