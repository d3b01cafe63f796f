"""The emergency stop: a latch that only a reset with the stop's own id opens."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Final, TypeGuard

ASSERT_NS: Final = 300_000_000
"""How long a stop counts as asserted after its last message, where no heartbeat is set."""

MAX_IDS: Final = 16
MAX_LENGTH: Final = 64

HEARTBEAT: Final = "heartbeat"
"""Id that silence latches."""
UNNAMED: Final = "unnamed"
"""Id of a stop that came without one, or with one that is no text of 1 to 64 characters."""
MORE: Final = "more"
"""Id of every stop beyond the first 16."""
CORRUPT: Final = "corrupt"
"""Id latched by a saved state that cannot be read."""


class EStop:
    """Latched stops by id; times are monotonic ns.

    Every message latches a stop at once, but what can be shown to be something else. A map {stop: false, id},
    the id a string, resets that id, provided no stop is asserted: none was sent within the last heartbeat
    (300 ms where none is set), and the line is not silent. {stop: false} without an id is a heartbeat and
    nothing more. With `heartbeat_ns` set, silence for so long latches the id `heartbeat`; the start counts as
    a sign of life, a reset does not.
    """

    __slots__ = ("_asserted", "_beat", "_heartbeat_ns", "_latched", "counts", "revision", "words")

    def __init__(self, now: int, heartbeat_ns: int = 0) -> None:
        self._heartbeat_ns = heartbeat_ns
        self._beat = now
        self._asserted: int | None = None
        self._latched: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self.revision = 0
        """Rises with every change of what is latched: time to save `to_map()`."""
        self.words = ""
        """The reason of an ESTOP, as in "estop:button,estop:heartbeat"; empty while nothing is latched."""

    @property
    def latched(self) -> Mapping[str, str]:
        """The reason of each latched id, in the order of latching."""
        return self._latched

    @property
    def deadline(self) -> int | None:
        """When silence will latch, or None where it will not."""
        if not self._heartbeat_ns or HEARTBEAT in self._latched:
            return None
        return self._beat + self._heartbeat_ns

    def message(self, plain: object, now: int) -> str:
        """Take a decoded message; gives what it was, which `counts` counts.

        The words: stop, reset, refused (a reset that may not be), heartbeat. Fails safe: whatever is none of
        the others is a stop, of its id where that is usable (bytes in UTF-8 are too), else of `unnamed`; one
        that is not a map {stop: true, id} with a string is counted under malformed as well.
        """
        word = self._take(plain if isinstance(plain, Mapping) else {}, now)
        self.counts[word] += 1
        return word

    def tick(self, now: int) -> None:
        """Latch where the line has been silent for too long; call it after the messages of `now`."""
        if self._silent(now):
            self._latch(HEARTBEAT, "")

    def to_map(self) -> dict[str, dict[str, str]]:
        """Give what must outlive a restart, as plain maps and strings."""
        return {"latched": dict(self._latched)}

    def restore(self, plain: object, now: int) -> None:
        """Take over what `to_map` gave before a restart; anything else latches the id `corrupt`."""
        latched = plain.get("latched") if isinstance(plain, Mapping) else None
        if not isinstance(latched, Mapping) or not all(map(_is_id, latched)):
            latched = {CORRUPT: ""}
        for ident, reason in latched.items():
            self._latch(ident, reason)
            self._asserted = now

    def adopt(self, old: "EStop") -> None:
        """Take over the state of the e-stop that this one replaces (a new configuration)."""
        self._latched = old._latched
        self._asserted = old._asserted
        self.counts = old.counts
        self.revision = old.revision
        self.words = old.words
        if old._heartbeat_ns:
            self._beat = old._beat

    def _take(self, plain: Mapping[object, object], now: int) -> str:
        stop, ident = plain.get("stop"), plain.get("id", "")
        if stop is False and isinstance(ident, str) and _is_text(ident):
            if ident:
                return self._reset(ident, now)
            self._beat = now
            return "heartbeat"
        self._beat = self._asserted = now
        if stop is not True or not _is_id(ident):
            self.counts["malformed"] += 1
        ident = _decoded(ident)
        self._latch(ident if _is_id(ident) else UNNAMED, plain.get("reason"))
        return "stop"

    def _reset(self, ident: str, now: int) -> str:
        """Open one latch: by its id, or by the shown form of its id where no other is shown so."""
        owners = [ident] if ident in self._latched else [one for one in self._latched if shown(one) == ident]
        if len(owners) != 1 or self._is_asserted(now):
            return "refused"
        del self._latched[owners.pop()]
        self._changed()
        return "reset"

    def _latch(self, ident: str, reason: object) -> None:
        if len(self._latched) >= MAX_IDS and ident not in self._latched:
            ident = MORE
        if ident not in self._latched:
            reason = _decoded(reason)
            self._latched[ident] = reason[:MAX_LENGTH] if isinstance(reason, str) and _is_text(reason) else ""
            self._changed()

    def _changed(self) -> None:
        self.revision += 1
        self.words = ",".join("estop:" + shown(ident) for ident in self._latched)

    def _silent(self, now: int) -> bool:
        return bool(self._heartbeat_ns) and now - self._beat >= self._heartbeat_ns

    def _is_asserted(self, now: int) -> bool:
        window = self._heartbeat_ns or ASSERT_NS
        return self._silent(now) or (self._asserted is not None and now - self._asserted < window)


def shown(ident: str) -> str:
    """Give the form of an id in the reason of a command: ASCII letters, digits and _.- alone."""
    return re.sub(r"[^A-Za-z0-9_.-]", "_", ident)


def _is_id(ident: object) -> TypeGuard[str]:
    return isinstance(ident, str) and 1 <= len(ident) <= MAX_LENGTH and _is_text(ident)


def _is_text(text: str) -> bool:
    """Whether it can be written: half of a surrogate pair stands for a byte that was no UTF-8."""
    return not re.search("[\ud800-\udfff]", text)


def _decoded(text: object) -> object:
    return text.decode(errors="surrogateescape") if isinstance(text, bytes) else text
