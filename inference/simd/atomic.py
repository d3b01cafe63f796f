"""What the team's loop needs beside arithmetic: atomics, a spin hint, calls of kernels and of futex."""

from typing import Any

from llvmlite import ir
from numba import types

from reflexarc.inference.simd.target import TIER
from reflexarc.inference.simd.vector import call, define, fixed, pointer

_I64, _I32 = ir.IntType(64), ir.IntType(32)
_FUTEX = 98 if TIER.arm else 202  # number of the system call; Linux, asm-generic/unistd.h and syscall_64.tbl
_WORD = types.int64


def _atomic_load(b: Any, address: Any) -> Any:
    return b.load_atomic(pointer(b, address, _I32), "seq_cst", 4)


def _atomic_store(b: Any, address: Any, value: Any) -> None:
    b.store_atomic(value, pointer(b, address, _I32), "seq_cst", 4)


def _atomic_add(b: Any, address: Any, value: Any) -> Any:
    return b.atomic_rmw("add", pointer(b, address, _I32), value, "seq_cst")


def _pause(b: Any) -> None:
    if TIER.arm:
        call(b, "llvm.aarch64.isb", ir.VoidType(), _I32(15))  # unlike YIELD it takes a while
    else:
        call(b, "llvm.x86.sse2.pause", ir.VoidType())


def _invoke(b: Any, kernel: Any, instruction: Any, thread: Any, threads: Any) -> None:
    kind = ir.FunctionType(ir.VoidType(), [_I64] * 3)
    b.call(pointer(b, kernel, kind), [instruction, thread, threads])


def _futex(b: Any, syscall: Any, address: Any, operation: Any, value: Any) -> Any:
    kind = ir.FunctionType(_I64, [_I64] * 7)
    zero = _I64(0)
    return b.call(pointer(b, syscall, kind), [_I64(_FUTEX), address, operation, value, zero, zero, zero])


atomic_load = define(fixed(types.int32, _WORD), _atomic_load)
"""atomic_load(address) -> int32."""
atomic_store = define(fixed(types.void, _WORD, types.int32), _atomic_store)
"""atomic_store(address, value)."""
atomic_add = define(fixed(types.int32, _WORD, types.int32), _atomic_add)
"""atomic_add(address, value) -> the int32 before."""
pause = define(fixed(types.void), _pause)
"""pause(): tell the core that this is a spinning loop."""
invoke = define(fixed(types.void, _WORD, _WORD, _WORD, _WORD), _invoke)
"""invoke(kernel, instruction, thread, threads): call a kernel by its address."""
futex = define(fixed(types.int64, _WORD, _WORD, _WORD, _WORD), _futex)
"""futex(syscall, address, operation, value): the system call, through the address of libc's `syscall`."""
