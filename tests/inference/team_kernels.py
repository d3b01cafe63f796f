"""Kernels that show who ran when; compiled by test_team."""

from reflexarc.inference.simd import peek_i64, poke_i64


def mark(instruction, thread, threads):
    """slots[thread] = value; operands: slots, value."""
    poke_i64(peek_i64(instruction + 8) + 64 * thread, peek_i64(instruction + 16))


def total(instruction, thread, threads):
    """Thread 0: sums[0] += the slots of all threads; operands: slots, sums, threads."""
    if thread == 0:
        value = peek_i64(peek_i64(instruction + 16))
        for i in range(peek_i64(instruction + 24)):
            value += peek_i64(peek_i64(instruction + 8) + 64 * i)
        poke_i64(peek_i64(instruction + 16), value)


def count(instruction, thread, threads):
    """counters[thread] += 1, and threads beside it."""
    at = peek_i64(instruction + 8) + 64 * thread
    poke_i64(at, peek_i64(at) + 1)
    poke_i64(at + 8, threads)


def linger(instruction, thread, threads):
    """Pass time: operand, how much."""
    at = instruction + 16
    for _ in range(peek_i64(instruction + 8)):
        poke_i64(at, peek_i64(at) * 6364136223846793005 + 1)


KERNELS = (mark, total, count, linger)
