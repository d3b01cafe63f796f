"""On PYTHONPATH, this makes any Python process misbehave when it is sent a signal.

SIGUSR1: spin for ever. SIGUSR2: take 300 MiB that count as shared, so that no limit on allocations stops it.
"""

import mmap
import signal

_CHUNK = 1 << 20


def spin(*_: object) -> None:
    while True:
        pass


def take(*_: object) -> None:
    memory = mmap.mmap(-1, 300 * _CHUNK)
    for _ in range(300):
        memory.write(b"\1" * _CHUNK)
    spin()


signal.signal(signal.SIGUSR1, spin)
signal.signal(signal.SIGUSR2, take)
