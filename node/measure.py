"""How fast this machine reads memory and multiplies integers: the bounds that speed is compared with."""

import threading
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.image import ImageStore

READ_BYTES = 128 << 20  # well beyond the last-level cache
PEAK_STEPS = 200_000
PEAK_BYTES = 2048  # what the kernel `peak` reads, on a boundary of 64
ROUNDS = 5


def read_gb_s(threads: int = 1, size: int = READ_BYTES) -> float:
    """GB/s that so many threads read from memory together (numpy's sum of integers)."""
    data = np.ones(size // 8, np.int64)
    parts = np.array_split(data, threads)
    return data.nbytes / 1e9 / best([_summing(part) for part in parts])


def int8_gops(images: ImageStore, threads: int = 1) -> float:
    """Billions of 8-bit multiplications and additions a second: the kernel `peak`, from the L1 cache.

    Raises ImageError where its image is not there and cannot be built.
    """
    kernel = images.load(["peak"])["peak"].function("peak", 3)
    operations = 2 * 12 * 4 * images.tier.lanes * PEAK_STEPS * threads
    return operations / 1e9 / best([_multiplying(kernel) for _ in range(threads)])


def best(jobs: list[Callable[[], object]], rounds: int = ROUNDS) -> float:
    """Seconds the jobs take side by side, each on a thread of its own: the best of some rounds."""
    return min(_side_by_side(jobs) for _ in range(rounds))


def _summing(part: NDArray[np.int64]) -> Callable[[], object]:
    return lambda: part.sum()


def _multiplying(kernel: Callable[..., None]) -> Callable[[], object]:
    data = np.ones(PEAK_BYTES + 64, np.uint8)
    words = np.zeros(8, np.int64)
    words[1:3] = -(-data.ctypes.data // 64) * 64, PEAK_STEPS

    def multiply() -> object:
        kernel(words.ctypes.data, 0, 1)
        return data  # whose address is in the words: it lives as long as this function

    return multiply


def _side_by_side(jobs: list[Callable[[], object]]) -> float:
    if len(jobs) == 1:
        start = time.perf_counter()
        jobs[0]()
        return time.perf_counter() - start
    barrier = threading.Barrier(len(jobs) + 1)

    def work(job: Callable[[], object]) -> None:
        barrier.wait()
        job()
        barrier.wait()

    team = [threading.Thread(target=work, args=(job,)) for job in jobs]
    for thread in team:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    barrier.wait()
    took = time.perf_counter() - start
    for thread in team:
        thread.join()
    return took
