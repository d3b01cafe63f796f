"""The loop that runs programs, on one thread or by a team, which is given the address of its block of words.

A program is instructions of 64 bytes: the address of a kernel, whose two low bits are the flags ALONE (only
thread 0 executes it) and JOIN (all threads wait for each other after it), then the kernel's operands. The
words of the team's block are declared in `reflexarc.inference.team_block`.
"""

from reflexarc.inference.simd import (
    atomic_add,
    atomic_load,
    atomic_store,
    futex,
    helper,
    invoke,
    pause,
    peek_i64,
)
from reflexarc.inference.team_block import (
    ALONE,
    ARRIVED,
    BARRIER_SLEEPERS,
    COUNT,
    EPOCH,
    EPOCH_SLEEPERS,
    FLAGS,
    FUTEX_WAIT,
    FUTEX_WAKE,
    GENERATION,
    INSTRUCTION_BYTES,
    JOIN,
    PROGRAM,
    SPIN,
    STOP,
    SYSCALL,
    THREADS,
)


@helper
def _wait(block: int, word: int, sleepers: int, old: int) -> None:
    """Until the block's word is no longer `old`: spin, then sleep on a futex."""
    turns = peek_i64(block + SPIN)
    while atomic_load(block + word) == old:
        if turns > 0:
            turns -= 1
            pause()
        else:
            atomic_add(block + sleepers, 1)
            futex(peek_i64(block + SYSCALL), block + word, FUTEX_WAIT, old)
            atomic_add(block + sleepers, -1)


@helper
def _advance(block: int, word: int, sleepers: int) -> None:
    """Change the block's word and wake who sleeps on it."""
    atomic_add(block + word, 1)
    if atomic_load(block + sleepers) > 0:
        futex(peek_i64(block + SYSCALL), block + word, FUTEX_WAKE, 0x7FFFFFFF)


@helper
def _barrier(block: int, threads: int) -> None:
    """Until all threads are here."""
    generation = atomic_load(block + GENERATION)
    if atomic_add(block + ARRIVED, 1) == threads - 1:
        atomic_store(block + ARRIVED, 0)
        _advance(block, GENERATION, BARRIER_SLEEPERS)
    else:
        _wait(block, GENERATION, BARRIER_SLEEPERS, generation)


@helper
def _execute(block: int, thread: int, threads: int) -> None:
    """A thread's part of the whole program, a barrier at its end."""
    instruction = peek_i64(block + PROGRAM)
    end = instruction + peek_i64(block + COUNT) * INSTRUCTION_BYTES
    while instruction < end:
        word = peek_i64(instruction)
        if thread == 0 or word & ALONE == 0:
            invoke(word & ~FLAGS, instruction, thread, threads)
        instruction += INSTRUCTION_BYTES
        if word & JOIN and instruction < end:
            _barrier(block, threads)
    _barrier(block, threads)


def run_alone(program: int, count: int) -> None:
    """Run `count` instructions on this thread only."""
    end = program + count * INSTRUCTION_BYTES
    while program < end:
        invoke(peek_i64(program) & ~FLAGS, program, 0, 1)
        program += INSTRUCTION_BYTES


def run(block: int) -> None:
    """Run the block's program as thread 0, the helpers with it."""
    _advance(block, EPOCH, EPOCH_SLEEPERS)
    _execute(block, 0, peek_i64(block + THREADS))


def serve(block: int, thread: int) -> None:
    """A helper's whole life: wait for a run, take part, until the team stops."""
    epoch = 0
    while True:
        _wait(block, EPOCH, EPOCH_SLEEPERS, epoch)
        epoch = atomic_load(block + EPOCH)
        if peek_i64(block + STOP):
            return
        _execute(block, thread, peek_i64(block + THREADS))


KERNELS = (run_alone, run, serve)
