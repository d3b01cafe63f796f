"""Waiting for descriptors, to the microsecond where that is possible, and for however many there are."""

import select
from collections.abc import Sequence

from reflexarc.node.clock import MS, SECOND

LIMIT = 1024  # FD_SETSIZE: select(2) takes no descriptor from here on


def wait_readable(fds: Sequence[int], ns: int) -> list[int]:
    """The readable ones, once there are some or `ns` have passed.

    With a descriptor that select(2) cannot take, times are rounded up to ms.
    """
    if max(fds, default=0) < LIMIT:
        return select.select(fds, (), (), ns / SECOND)[0]
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return [fd for fd, _ in poll.poll(-(-ns // MS))]
