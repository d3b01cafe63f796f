"""How threads divide the work of one instruction."""

from __future__ import annotations

from reflexarc.inference.simd.vector import helper


@helper
def share(count: int, thread: int, threads: int) -> tuple[int, int]:
    """The items [first, last) of `count` that fall to a thread; no division where it is alone."""
    if threads == 1:
        return 0, count
    return count * thread // threads, count * (thread + 1) // threads
