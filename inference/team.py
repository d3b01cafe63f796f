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
        stop = partial(_stop, self._block, self._together, self._busy, helpers, allowed)
        self._close = weakref.finalize(self, stop if helpers else _nothing)

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
        self.bind(program, count, together)()

    def bind(self, program: int, count: int, together: bool = True) -> Callable[[], None]:
        """A run prepared; on one thread a bare call, which the caller keeps from overlapping."""
        words = ctypes.c_int64(program), ctypes.c_int64(count)
        if self.threads == 1 or not together:
            return partial(self._alone, *words)
        return partial(
            self._exclusively, partial(self._together, ctypes.c_int64(self._block.address), *words)
        )

    def _exclusively(self, run: Callable[[], None]) -> None:
        if not self._busy.acquire(blocking=False):
            state = "running a program for another thread" if self._close.alive else "closed"
            raise TeamError(f"this team is {state}")
        try:
            run()
        finally:
            self._busy.release()

    def close(self) -> None:
        """End the helpers and give the calling thread its cores back; again is harmless."""
        self._close()


class _Block:
    """The memory that the threads share, see `team_block`."""

    def __init__(self, threads: int, spin_us: int) -> None:
        self._memory = ctypes.create_string_buffer(at.ARRIVALS + at.LINES * (threads + 1))
        self.address = -(-ctypes.addressof(self._memory) // at.LINES) * at.LINES
        self[at.THREADS] = threads
        self[at.SPIN] = spin_us * _TURNS_PER_US
        self[at.SYSCALL] = ctypes.cast(ctypes.CDLL(None).syscall, ctypes.c_void_p).value or 0

    def __setitem__(self, word: int, value: int) -> None:
        ctypes.c_int64.from_address(self.address + word).value = value


def _help(serve: Callable[..., None], block: _Block, thread: int, core: int) -> None:
    os.sched_setaffinity(0, {core})
    serve(block.address, thread)


def _stop(
    block: _Block,
    together: Callable[..., None],
    busy: threading.Lock,
    helpers: list[threading.Thread],
    allowed: set[int],
) -> None:
    busy.acquire()  # for ever: a closed team runs nothing more
    block[at.STOP] = 1
    block[at.THREADS] = 1
    together(block.address, 0, 0)  # an empty program by one thread: the start that the helpers return at
    for helper in helpers:
        helper.join()
    os.sched_setaffinity(0, allowed)


def _nothing() -> None:
    """How a team of one ends."""
