"""Lines for the operator on standard error, which a control loop must never wait for."""

import os
import select

_LARGEST = 4096  # PIPE_BUF: a pipe that is ready takes as much without waiting


def say(line: str) -> bool:
    """Write one line to standard error, cut to 4096 bytes; gives False where it would have had to wait."""
    raw = f"reflexarc: {line}".encode(errors="replace")[: _LARGEST - 1] + b"\n"
    try:
        ready = select.select([], [2], [], 0)[1]
        return bool(ready) and os.write(2, raw) == len(raw)
    except (OSError, ValueError):
        return False
