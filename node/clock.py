"""The two clocks of the shell, in integer nanoseconds.

Ages, periods and timeouts use `now`; stamps that leave the machine use `wall`. A step of the wall clock
therefore changes stamps and nothing else. Everything below the shell takes time as a parameter.
"""

import os
from time import monotonic_ns as now
from time import time_ns as wall
from typing import Final

__all__ = ["MS", "SECOND", "US", "fresh_session", "now", "wall"]

US: Final = 1_000
MS: Final = 1_000_000
SECOND: Final = 1_000_000_000


def fresh_session() -> int:
    """A random 63-bit number that tells one run of a process from another on the wire."""
    return int.from_bytes(os.urandom(8)) >> 1
