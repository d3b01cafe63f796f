"""Times contestants in turns, so that what disturbs the machine disturbs all alike."""

import time
from collections.abc import Callable, Mapping

ROUNDS = 30
SLICE_S = 0.02


def contest(contestants: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Microseconds of each call, contestant by contestant in short slices, the order turning every round."""
    names = list(contestants)
    for name in names:
        _slice(contestants[name], SLICE_S)
    taken: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            taken[name] += _slice(contestants[name], SLICE_S)
    return taken


def _slice(call: Callable[[], object], seconds: float) -> list[float]:
    taken = []
    end = time.perf_counter_ns() + int(seconds * 1e9)
    call()
    while (begin := time.perf_counter_ns()) < end:
        call()
        taken.append((time.perf_counter_ns() - begin) / 1000)
    return taken or [float("inf")]
