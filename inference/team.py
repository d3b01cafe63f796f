"""A team of pinned threads that runs programs of compiled kernels, the GIL released throughout.

Each thread walks the whole program and does its share of every instruction; between instructions they meet at
a barrier. Idle helpers spin for a while, then sleep on a futex, and so does the barrier, so that threads that
share a core cannot hang it. With one thread a run is one call of compiled code and nothing else.
"""

import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Collection
from functools import partial

from reflexarc.inference import team_block as at
from reflexarc.inference.image import Image

_TURNS_PER_US = 25  # of a waiting loop; what a CPU's spin hint takes differs, 10 to 40 ns
_CACHE_LINE = 64


class TeamError(RuntimeError):
    """A team that cannot be as asked, or a run that cannot be now."""


class Team:
    """N threads that run programs together: the caller's and N - 1 helpers.

    image: the images' family `team`. cores: those the threads may use, by default all this thread may; with
    two threads or more each is pinned to one of them, the calling thread to the first. spin_us: about how
    long an idle thread spins before it sleeps. A team runs one program at a time; TeamError refuses a second
    one meanwhile.
    """

    def __init__(
        self, image: Image, threads: int = 1, cores: Collection[int] | None = None, spin_us: int = 50
    ) -> None:
        allowed = os.sched_getaffinity(0)
        usable = [core for core in sorted(allowed if cores is None else set(cores)) if core in allowed]
        if not 1 <= threads <= max(len(usable), 1):
            raise TeamError(
                f"threads = {threads}: it must be between 1 and the {len(usable)} cores usable here"
            )
        self.threads, self.cores = threads, usable[:threads]
        self._alone = image.function("run_alone", 2)
        self._together = image.function("run", 1)
        self._busy = threading.Lock()
        self._block = _Block(threads, spin_us)
        helpers = self._start(image) if threads > 1 else []
        self._close = weakref.finalize(self, partial(_stop, self._block, self._together, helpers, allowed))

    def _start(self, image: Image) -> list[threading.Thread]:
        os.sched_setaffinity(0, {self.cores[0]})
        serve = image.function("serve", 2)
        helpers = [
            threading.Thread(target=_help, args=(serve, self._block, i, core), name=f"team-{i}", daemon=True)
            for i, core in enumerate(self.cores[1:], start=1)
        ]
        for helper in helpers:
            helper.start()
        return helpers

    def run(self, program: int, count: int, together: bool = True) -> None:
        """Run `count` instructions at address `program`; if not `together`, the helpers are left asleep."""
        if not self._close.alive:
            raise TeamError("this team is closed")
        if self.threads == 1 or not together:
            self._alone(program, count)
            return
        if not self._busy.acquire(blocking=False):
            raise TeamError("this team is running a program for another thread")
        try:
            self._block.program(program, count)
            self._together(self._block.address)
        finally:
            self._busy.release()

    def bind(self, program: int, count: int, together: bool = True) -> Callable[[], None]:
        """A run prepared; with one thread a bare call, which the caller keeps from overlapping."""
        if self.threads == 1 or not together:
            return partial(self._alone, ctypes.c_int64(program), ctypes.c_int64(count))
        return partial(self.run, program, count)

    def close(self) -> None:
        """End the helpers and give the calling thread its cores back; again is harmless."""
        self._close()


class _Block:
    """The memory that the threads share, see `team_block`."""

    def __init__(self, threads: int, spin_us: int) -> None:
        self._memory = ctypes.create_string_buffer(at.BLOCK_BYTES + _CACHE_LINE)
        self.address = -(-ctypes.addressof(self._memory) // _CACHE_LINE) * _CACHE_LINE
        syscall = ctypes.cast(ctypes.CDLL(None).syscall, ctypes.c_void_p).value or 0
        self._set(at.THREADS, threads)
        self._set(at.SPIN, spin_us * _TURNS_PER_US)
        self._set(at.SYSCALL, syscall)

    def _set(self, word: int, value: int) -> None:
        ctypes.c_int64.from_address(self.address + word).value = value

    def program(self, address: int, count: int) -> None:
        """What the next run executes."""
        self._set(at.PROGRAM, address)
        self._set(at.COUNT, count)

    def stop(self) -> None:
        """From the next epoch on, helpers return."""
        self.program(0, 0)
        self._set(at.STOP, 1)


def _help(serve: Callable[..., None], block: _Block, thread: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    serve(block.address, thread)


def _stop(
    block: _Block, together: Callable[..., None], helpers: list[threading.Thread], allowed: set[int]
) -> None:
    if not helpers:
        return
    block.stop()
    ctypes.c_int64.from_address(block.address + at.THREADS).value = 1
    together(block.address)  # an empty program by one thread: a new epoch, which the helpers see
    for helper in helpers:
        helper.join()
    os.sched_setaffinity(0, allowed)
