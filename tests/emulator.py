"""Run kernel images of any instruction set in a process of their own: on this CPU if it can, else under qemu.

Neither Python nor a C library is needed on the other side: an image and the memory it works on become one
static executable whose few instructions of start code call the kernels and write the memory to standard
output.
"""

import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from reflexarc.inference.isa import Tier, runnable

CODE = 0x4000_0000
START = 0x5000_0000
MEMORY = 0x6000_0000
"""Address of the memory that kernels work on."""

_QEMU = {  # tier: (program, CPU); a CPU that has what the tier needs and as little more as there is
    "avx2": ("qemu-x86_64", "Haswell"),
    "sse42": ("qemu-x86_64", "Nehalem"),
    "i8mm": ("qemu-aarch64", "max"),
    "dotprod": ("qemu-aarch64", "cortex-a76"),
    "neon": ("qemu-aarch64", "cortex-a72"),
}


@dataclass(frozen=True)
class Call:
    """A call of the kernel at an offset of the image."""

    offset: int
    arguments: Sequence[int]


def launcher(tier: Tier) -> list[str] | None:
    """The command before an executable of a tier: empty for this CPU, None if there is no way to run it."""
    if tier in runnable():
        return []
    program, cpu = _QEMU.get(tier.name, ("", ""))
    return [program, "-cpu", cpu] if program and shutil.which(program) else None


def why_not(tier: Tier) -> str:
    """The reason to skip where `launcher` is None."""
    needed = _QEMU[tier.name][0] if tier.name in _QEMU else "no emulator has it"
    return (
        f"{tier.name}: not this CPU, and {needed} not found"
        if tier.name in _QEMU
        else f"{tier.name}: {needed}"
    )


def execute(tier: Tier, code: bytes, memory: bytes, calls: Sequence[Call]) -> bytes:
    """What `memory`, placed at MEMORY, holds after calls of up to three int64; AssertionError on a crash."""
    start = (_start_arm if tier.arm else _start_x86)(calls, len(memory))
    command = launcher(tier)
    assert command is not None, why_not(tier)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernels"
        path.write_bytes(_executable(tier.arm, [(CODE, 5, code), (START, 5, start), (MEMORY, 6, memory)]))
        path.chmod(0o700)
        done = subprocess.run([*command, str(path)], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, f"{tier.name}: status {done.returncode} {done.stderr.decode()[-300:]}"
    return done.stdout


def _executable(arm: bool, segments: Sequence[tuple[int, int, bytes]]) -> bytes:
    """A static ELF64 executable of (address, flags, content); source: System V gABI."""
    machine, page = (183 if arm else 62), 0x10000
    offsets, at = [], page
    for _, _, content in segments:
        offsets.append(at)
        at += -(-len(content) // page) * page
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, machine, 1, START, 64, 0, 0, 64, 56, len(segments), 0, 0, 0
    )
    for (address, flags, content), offset in zip(segments, offsets, strict=True):
        size = len(content)
        header += struct.pack("<IIQQQQQQ", 1, flags, offset, address, address, size, size, page)
    file = bytearray(at)
    file[: len(header)] = header
    for (_, _, content), offset in zip(segments, offsets, strict=True):
        file[offset : offset + len(content)] = content
    return bytes(file)


def _start_x86(calls: Sequence[Call], size: int) -> bytes:
    def move(opcode: bytes, value: int) -> bytes:
        return opcode + struct.pack("<q", value)

    rax, rdi, rsi, rdx = b"\x48\xb8", b"\x48\xbf", b"\x48\xbe", b"\x48\xba"
    code = b""
    for call in calls:
        for register, value in zip((rdi, rsi, rdx), call.arguments, strict=False):
            code += move(register, value)
        code += move(rax, CODE + call.offset) + b"\xff\xd0"  # call rax
    # write(1, MEMORY, size) until all is written: rbx the address, rbp what is left
    code += move(b"\x48\xbb", MEMORY) + move(b"\x48\xbd", size)
    loop = b"\xb8\x01\0\0\0\xbf\x01\0\0\0\x48\x89\xde\x48\x89\xea\x0f\x05\x48\x01\xc3\x48\x29\xc5"
    code += loop + b"\x75" + struct.pack("<b", -len(loop) - 2)  # jnz loop
    return code + b"\xb8\x3c\0\0\0\x31\xff\x0f\x05"  # exit(0)


def _start_arm(calls: Sequence[Call], size: int) -> bytes:
    def move(register: int, value: int) -> list[int]:
        value &= (1 << 64) - 1
        return [
            (0xF2800000 if i else 0xD2800000) | i << 21 | (value >> 16 * i & 0xFFFF) << 5 | register
            for i in range(4)
        ]

    words: list[int] = []
    for call in calls:
        for register, value in enumerate(call.arguments):
            words += move(register, value)
        words += [*move(16, CODE + call.offset), 0xD63F0200]  # blr x16
    words += [*move(19, MEMORY), *move(20, size)]
    loop = [*move(8, 64), *move(0, 1), 0xAA1303E1, 0xAA1403E2, 0xD4000001]  # write(1, x19, x20)
    loop += [0x8B000273, 0xEB000294]  # add x19, x19, x0; subs x20, x20, x0
    words += loop
    words.append(0x54000001 | (-len(loop) & 0x7FFFF) << 5)  # b.ne loop
    words += [*move(8, 93), *move(0, 0), 0xD4000001]  # exit(0)
    return struct.pack(f"<{len(words)}I", *words)
