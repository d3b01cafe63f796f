"""Words of the memory that a team of threads shares, and of its programs; for both sides of the build.

Offsets in bytes, each word 8 bytes (the counters use the lower 4). What one thread writes while others
wait for it lies on lines of its own.
"""

PROGRAM = 0  # address of the first instruction
COUNT = 8  # instructions
THREADS = 16
SPIN = 24  # turns of a waiting loop before it sleeps
SYSCALL = 32  # address of libc's syscall
STOP = 40  # not 0: helpers return at the next run
START = 128  # counter of runs begun
ARRIVALS = 256  # counter of barriers reached, one a thread, each on lines of its own
LINES = 128  # bytes: two cache lines, since cores fetch them in pairs
SLEEPERS = 8  # beside each counter: threads asleep until it changes

INSTRUCTION_BYTES = 64
ALONE = 1  # flag in a kernel's address: only thread 0 executes the instruction
JOIN = 2  # flag: all threads wait for each other after it
FLAGS = ALONE | JOIN

FUTEX_WAIT = 128  # FUTEX_WAIT | FUTEX_PRIVATE_FLAG; Linux, include/uapi/linux/futex.h
FUTEX_WAKE = 129
EVERYONE = 0x7FFFFFFF
