"""What the log tells of the e-stop: every change, and of all else one line a second."""

from collections import Counter

from reflexarc.control.estop import EStop
from reflexarc.node.clock import SECOND
from reflexarc.node.say import say


class StopLog:
    """A button may send a thousand messages a second: a line for each would be the load of the gate."""

    def __init__(self, estop: EStop) -> None:
        self._revision = estop.revision
        self._told: Counter[str] = Counter()  # messages that the log has told of, by what they were
        self._quiet_until = 0

    def note(self, word: str, estop: EStop, now: int) -> None:
        """Take note of a message: say at once that it changed what is latched, or is a reset refused."""
        changed = estop.revision != self._revision
        if changed or (word == "refused" and now >= self._quiet_until):
            self._revision = estop.revision
            self._told[word] += 1
            self._quiet_until = self._quiet_until if changed else now + SECOND
            say(f"e-stop: {word}; stopped by: {estop.words or 'nobody'}")

    def summarize(self, estop: EStop, now: int) -> None:
        """Say that silence latched, and at most once a second how many messages there were not told of."""
        if estop.revision != self._revision:
            self._revision = estop.revision
            say(f"e-stop: silence; stopped by: {estop.words}")
        if now < self._quiet_until:
            return
        rest = estop.counts - self._told
        del rest["heartbeat"]
        if rest:
            self._told = estop.counts.copy()
            self._quiet_until = now + SECOND
            counts = ", ".join(f"{count} {word}" for word, count in sorted(rest.items()))
            say(f"e-stop: {counts} more; stopped by: {estop.words or 'nobody'}")
