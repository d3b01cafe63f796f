"""On PYTHONPATH, this makes any Python process spin for ever when it is sent SIGUSR1."""

import signal


def spin(*_: object) -> None:
    while True:
        pass


signal.signal(signal.SIGUSR1, spin)
