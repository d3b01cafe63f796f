"""What an actuator is told: a `Command`, its states and the words of its reason."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from reflexarc.control.decision import VALUE_PREFIX

State = Literal["NORMAL", "DEGRADED", "SAFE", "ESTOP"]

NORMAL: Final = "NORMAL"
"""The values follow a living decision."""
DEGRADED: Final = "DEGRADED"
"""A good decision lives, but a newer one brought no usable answer, or `bounds`; the reason says which."""
SAFE: Final = "SAFE"
"""No living decision: the values are safe, or ramp there."""
ESTOP: Final = "ESTOP"
"""A stop is latched: the values are safe, or ramp there; the reason names every stop."""

NO_SOURCE: Final = -1
"""`source_seq` of a command that follows no decision (its `source_t` is 0)."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command of one channel; the values are always finite and within their bounds, save while the reason
    says `bounds`: then a new configuration has narrowed them, and the values are on their way in.

    `t` is UNIX ns; `source_t` and `source_seq` are those of the newest sample behind it. The actuator obeys
    it for `ttl_ms` from its receipt. `reason` is comma-joined words, empty in NORMAL. `seq` rises by one
    within a session.
    """

    channel: str
    session: int
    seq: int
    t: int
    source_t: int
    source_seq: int
    ttl_ms: int
    state: State
    reason: str
    values: Mapping[str, float]

    def to_map(self) -> dict[str, int | float | str]:
        """Make the map of the topic control/CHANNEL; the channel's name is in the topic alone."""
        plain: dict[str, int | float | str] = {
            "session": self.session,
            "seq": self.seq,
            "t": self.t,
            "source_t": self.source_t,
            "source_seq": self.source_seq,
            "ttl_ms": self.ttl_ms,
            "state": self.state,
            "reason": self.reason,
        }
        for name, value in self.values.items():
            plain[VALUE_PREFIX + name] = value
        return plain
