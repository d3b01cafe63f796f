"""Lines for the operator on standard error, which a control loop must never wait for."""

import contextlib
import os
import select

_LARGEST = 4096  # PIPE_BUF: a pipe that is ready takes as much without waiting


def say(line: str) -> None:
    """Write one line to standard error, cut to 4096 bytes; it is lost where that would have to wait."""
    raw = f"reflexarc: {line}".encode(errors="replace")[: _LARGEST - 1] + b"\n"
    with contextlib.suppress(OSError, ValueError):  # closed: there is nobody to tell
        if select.select([], [2], [], 0)[1]:
            os.write(2, raw)
