"""Run every case on a tier, in this process: each operand ends at a page that may not be touched.

`python run_kernels.py CACHE` runs the tier that REFLEXARC_ISA names and prints one JSON object: how many
cases ran with one and two threads, a digest of the bytes they wrote for each kind of result, and what went
wrong.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import mmap
import re
import struct
import sys
from pathlib import Path

import numpy as np
from kernel_cases import UNTOUCHED, Case, In, Out, cases

from reflexarc.inference.image import ImageStore
from reflexarc.inference.instructions import SLACK, WORD, WORDS
from reflexarc.inference.isa import Tier

PAGE = mmap.PAGESIZE
LIBC = ctypes.CDLL(None, use_errno=True)
TILED = re.compile("conv|dense|depthwise")
"""Kernels whose cases depend on the tier's tiles."""


class Guarded:
    """Bytes that end where a page begins that may not be touched."""

    def __init__(self, data: bytes) -> None:
        size = -(-max(len(data), 1) // PAGE) * PAGE
        self._pages = mmap.mmap(-1, size + PAGE)
        whole = np.frombuffer(self._pages, np.uint8)
        base = int(whole.ctypes.data)
        assert LIBC.mprotect(ctypes.c_void_p(base + size), ctypes.c_size_t(PAGE), 0) == 0
        self.bytes = whole[size - len(data) : size]
        self.bytes[:] = np.frombuffer(data, np.uint8)
        self.address = base + size - len(data)


def words(case: Case, place: dict[str, int], block: int) -> tuple[bytes, bytes]:
    """The instruction, its kernel's address left out, and its block."""
    values = []
    for name in case.instruction.operands:
        value = place.get(name, case.operands[name])
        is_float = name in case.instruction.floats
        values.append(struct.pack("<f4x", value) if is_float else struct.pack("<q", int(value)))
    assert set(case.operands) == set(case.instruction.operands), case.name
    body = b"".join(values)
    inline = case.instruction.inline
    head = bytes(WORD) + (body if inline else struct.pack("<q", block))
    return head.ljust(WORDS * WORD, b"\0"), b"" if inline else body


def wrong(expected: Out, got: np.ndarray) -> str:
    """What differs, or nothing."""
    if expected.tolerance == 0:
        different = np.flatnonzero(got != expected.expected)
        return f"{len(different)} bytes differ, first {different[:4]}" if len(different) else ""
    untouched = expected.expected == UNTOUCHED
    right, y = expected.expected.view(np.float32), got.view(np.float32)
    gaps = untouched.reshape(-1, 4).all(1)
    if not np.array_equal(right[gaps].view(np.uint32), y[gaps].view(np.uint32)):
        return "a gap was written to"
    same = np.isclose(
        y[~gaps], right[~gaps], rtol=expected.tolerance, atol=expected.tolerance, equal_nan=True
    )
    return (
        ""
        if same.all()
        else f"{(~same).sum()} floats differ: {y[~gaps][~same][:3]} {right[~gaps][~same][:3]}"
    )


def run(case: Case, kernel: int, threads: int) -> tuple[str, bytes]:
    """What is wrong with a case on so many threads, one after the other, and the bytes it wrote."""
    memory: dict[str, Guarded] = {}
    for name, operand in case.operands.items():
        if isinstance(operand, In):
            raw = np.ascontiguousarray(operand.data).tobytes()
            memory[name] = Guarded(raw + bytes(SLACK if name in ("x", "other") else 0))
        elif isinstance(operand, Out):
            memory[name] = Guarded(bytes([UNTOUCHED]) * operand.expected.size)
    place = {name: m.address for name, m in memory.items()}
    _, body = words(case, place, 0)
    block = Guarded(body)
    head, _ = words(case, place, block.address)
    instruction = Guarded(head)
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * 3)(kernel)
    for thread in range(threads):
        function(instruction.address, thread, threads)
    out, written = case.operands["y"], memory["y"].bytes
    assert isinstance(out, Out)
    return wrong(out, written), written.tobytes()


def main(cache: Path) -> None:
    store = ImageStore(cache=cache)
    images = store.load(sorted({case.instruction.family for case in cases(store.tier)}))
    problems, digests, count, kernels = [], {"exact": hashlib.sha256(), "float": hashlib.sha256()}, 0, set()
    for case in cases(store.tier):
        address = images[case.instruction.family].address(case.kernel)
        results = [run(case, address, threads) for threads in (1, 2)]
        problems += [f"{case.name}: {problem}" for problem, _ in results if problem]
        if results[0][1] != results[1][1]:
            problems.append(f"{case.name}: two threads write other bytes than one")
        kernels.add(case.kernel)
        count += 1
        out = case.operands["y"]
        if not TILED.match(case.kernel):
            kind = "float" if isinstance(out, Out) and out.tolerance else "exact"
            digests[kind].update(canonical(case, store.tier, results[0][1]))
    missing = sorted({k for i in images.values() for k in i.description.entries} - kernels)
    report = {"tier": store.tier.name, "cases": count, "problems": problems, "untested": missing}
    print(json.dumps(report | {name: digest.hexdigest() for name, digest in digests.items()}))


def canonical(case: Case, tier: Tier, written: bytes) -> bytes:
    """Bytes that are the same on every tier: 8-bit elements without the tier's bias."""
    out = case.operands["y"]
    if isinstance(out, Out) and out.dtype is np.uint8 and case.instruction.family != "move":
        return bytes(b - tier.bias & 255 if b != UNTOUCHED else b for b in written)
    return written


if __name__ == "__main__":
    main(Path(sys.argv[1]))
