"""The emergency stop: a latch that only a reset with the stop's own id opens."""

from collections import Counter


class EStop:
    """Latched stops by id.

    A map {stop: true, id, reason} latches at once. {stop: false, id} resets that id, provided no stop is asserted: none
    was sent within the last heartbeat (300 ms where none is set), and the line is not silent. {stop: false} without an
    id is a heartbeat and nothing more. With `heartbeat_ns` set, a silence longer than it latches the id `heartbeat`;
    the start counts as the first sign of life.
    """

    def __init__(self, now: int, heartbeat_ns: int = 0) -> None:
        self.counts: Counter[str] = Counter()
        self.revision = 0  # rises with every change of what is latched: write `to_map()` to the file then
        raise NotImplementedError

    @property
    def words(self) -> str:
        """The reason of an ESTOP, as in "estop:button,estop:heartbeat"; empty while nothing is latched."""
        raise NotImplementedError

    @property
    def deadline(self) -> int | None:
        """When silence will latch (monotonic ns), or None."""
        raise NotImplementedError

    def message(self, plain: object, now: int) -> str:
        """Take a decoded message; gives what it was: stop, reset, refused, heartbeat, malformed (counted in `counts`).

        Fails safe: a map whose `stop` is true in any sense stops, whatever its id.
        """
        raise NotImplementedError

    def tick(self, now: int) -> None:
        """Latch `heartbeat` if the line has been silent for too long; call it after the messages of `now`."""
        raise NotImplementedError

    def to_map(self) -> dict[str, object]:
        """Give what must outlive a restart, as plain maps and strings."""
        raise NotImplementedError

    def restore(self, plain: object, now: int) -> None:
        """Take over what `to_map` gave before a restart; anything else latches the id `corrupt`."""
        raise NotImplementedError

    def adopt(self, old: "EStop") -> None:
        """Take over the latch of the e-stop this one replaces (a new configuration)."""
        raise NotImplementedError
