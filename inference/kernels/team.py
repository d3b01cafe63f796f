"""The loop that runs programs, on one thread or by a team, which is given the address of its block of words.

A program is instructions of 64 bytes: the address of a kernel, whose two low bits are the flags ALONE (only
thread 0 executes it) and JOIN (all threads wait for each other after it), then the kernel's operands. The
words of the team's block are declared in `reflexarc.inference.team_block`. At a barrier each thread counts up
a word of its own and waits for all others' to change, so that threads that arrive together wait for one
transfer between their caches.
"""

from reflexarc.inference.simd import (
    atomic_add,
    atomic_load,
    futex,
    helper,
    invoke,
    pause,
    peek_i64,
    poke_i64,
)
from reflexarc.inference.team_block import (
    ALONE,
    ARRIVALS,
    COUNT,
    EVERYONE,
    FLAGS,
    FUTEX_WAIT,
    FUTEX_WAKE,
    INSTRUCTION_BYTES,
    JOIN,
    LINES,
    PROGRAM,
    SLEEPERS,
    SPIN,
    START,
    STOP,
    SYSCALL,
    THREADS,
)


@helper
def _wait(block: int, counter: int, old: int) -> None:
    """Until the counter is no longer `old`: spin, then sleep on a futex."""
    turns = peek_i64(block + SPIN)
    while atomic_load(counter) == old:
        if turns > 0:
            turns -= 1
            pause()
        else:
            atomic_add(counter + SLEEPERS, 1)
            futex(peek_i64(block + SYSCALL), counter, FUTEX_WAIT, old)
            atomic_add(counter + SLEEPERS, -1)


@helper
def _advance(block: int, counter: int) -> int:
    """Count up and wake who sleeps on the counter; its value before."""
    old: int = atomic_add(counter, 1)
    if atomic_load(counter + SLEEPERS) > 0:
        futex(peek_i64(block + SYSCALL), counter, FUTEX_WAKE, EVERYONE)
    return old


@helper
def _wait_for_others(block: int, thread: int, threads: int, old: int) -> None:
    """Until all other threads' counters have left the value that this thread's had."""
    for other in range(threads):
        if other != thread:
            _wait(block, block + ARRIVALS + LINES * other, old)


@helper
def _execute(block: int, thread: int, threads: int) -> int:
    """A thread's part of the whole program, counted as arrived at its end; the count before that."""
    mine = block + ARRIVALS + LINES * thread
    instruction = peek_i64(block + PROGRAM)
    end = instruction + peek_i64(block + COUNT) * INSTRUCTION_BYTES
    while instruction < end:
        word = peek_i64(instruction)
        if word & ALONE == 0:
            invoke(word & ~FLAGS, instruction, thread, threads)
        elif thread == 0:
            invoke(word & ~FLAGS, instruction, 0, 1)
        instruction += INSTRUCTION_BYTES
        if word & JOIN and instruction < end:
            _wait_for_others(block, thread, threads, _advance(block, mine))
    return _advance(block, mine)


def run_alone(program: int, count: int) -> None:
    """Run `count` instructions on this thread only."""
    end = program + count * INSTRUCTION_BYTES
    while program < end:
        invoke(peek_i64(program) & ~FLAGS, program, 0, 1)
        program += INSTRUCTION_BYTES


def run(block: int, program: int, count: int) -> None:
    """Run `count` instructions as thread 0, the helpers with it, until all are done."""
    poke_i64(block + PROGRAM, program)
    poke_i64(block + COUNT, count)
    threads = peek_i64(block + THREADS)
    _advance(block, block + START)
    _wait_for_others(block, 0, threads, _execute(block, 0, threads))


def serve(block: int, thread: int) -> None:
    """A helper's whole life: wait for a run, take part, until the team stops."""
    started = 0
    threads = peek_i64(block + THREADS)
    while True:
        _wait(block, block + START, started)
        if peek_i64(block + STOP):
            return
        started = atomic_load(block + START)
        _execute(block, thread, threads)


KERNELS = (run_alone, run, serve)
