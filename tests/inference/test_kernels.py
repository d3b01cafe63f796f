"""Every kernel against its plain twin, on every instruction set that runs here or under emulation."""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compile_for import compile_for
from emulator import MEMORY, Call, execute, launcher, why_not
from kernel_cases import UNTOUCHED, Case, In, Out, cases
from run_kernels import TILED, canonical, words, wrong

from reflexarc.inference.image import ImageStore, default_cache
from reflexarc.inference.instructions import SLACK
from reflexarc.inference.isa import FORCE, TIERS, runnable
from reflexarc.inference.tiles import conv8_tiles

TESTS = Path(__file__).parent.parent
X86 = [tier.name for tier in TIERS.values() if not tier.arm]
ARM = [tier.name for tier in TIERS.values() if tier.arm]


@functools.cache
def report(name: str, emulated: bool = False) -> dict[str, Any]:
    """What `run_kernels` says of a tier, in a child process; skips where this machine cannot."""
    environment = os.environ | {FORCE: name, "PYTHONPATH": str(TESTS)}
    command = [sys.executable, str(TESTS / "run_kernels.py"), str(default_cache())]
    if emulated:
        if not shutil.which("qemu-x86_64"):
            pytest.skip("qemu-x86_64 is not installed")
        command = ["qemu-x86_64", "-cpu", "Nehalem", *command]
        environment["OPENBLAS_CORETYPE"] = (
            "Nehalem"  # it asks the CPU's family, which is not the emulated one
        )
    elif TIERS[name] not in runnable():
        pytest.skip(f"{name}: this CPU runs {', '.join(tier.name for tier in runnable())}")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


@functools.cache
def built(name: str) -> ImageStore:
    """The tier's images, built by this process so that none under emulation must."""
    store = ImageStore(TIERS[name])
    store.load(sorted({case.instruction.family for case in cases(store.tier)}))
    return store


@pytest.mark.parametrize("name", X86)
def test_kernels_equal_their_twins(name: str) -> None:
    found = report(name)
    assert found["tier"] == name
    assert found["problems"] == []
    assert found["untested"] == []
    assert found["cases"] > 150


def test_kernels_equal_their_twins_on_an_emulated_nehalem() -> None:
    built("sse42")
    found = report("sse42", emulated=True)
    assert found["tier"] == "sse42"
    assert found["problems"] == []


@pytest.mark.parametrize("name", X86)
def test_integers_are_the_same_on_every_tier_and_floats_wherever_there_is_fma(name: str) -> None:
    best = runnable()[0]
    if best.arm:
        pytest.skip("x86 tiers do not run here")
    found, first = report(name), report(best.name)
    assert found["exact"] == first["exact"]
    if TIERS[name].has_fma:
        assert found["float"] == first["float"]


def flat(case: Case, memory: bytearray) -> tuple[int, int]:
    """Lay a case out in flat memory; the instruction's address, and the offset of what it writes."""
    place, written = {}, 0
    for name, operand in case.operands.items():
        if isinstance(operand, In | Out):
            data = (
                bytes([UNTOUCHED]) * operand.expected.size
                if isinstance(operand, Out)
                else operand.data.tobytes()
            )
            if isinstance(operand, Out):
                written = len(memory)
            place[name] = MEMORY + len(memory)
            memory += data + bytes([UNTOUCHED]) * (SLACK + -len(data) % 64)
    _, body = words(case, place, 0)
    head, _ = words(case, place, MEMORY + len(memory))
    memory += body
    memory += head
    return MEMORY + len(memory) - len(head), written


@pytest.mark.parametrize("name", ARM)
def test_kernels_equal_their_twins_on_emulated_arm(name: str) -> None:
    tier = TIERS[name]
    if launcher(tier) is None:
        pytest.skip(why_not(tier))
    images = built(name).load({case.instruction.family for case in cases(tier)})
    exact = []
    for family, image in images.items():
        memory, calls, checks = bytearray(), [], []
        for case in cases(tier):
            if case.instruction.family == family:
                for threads in (1, 2):
                    instruction, written = flat(case, memory)
                    offset = image.description.entries[case.kernel]
                    calls += [Call(offset, (instruction, thread, threads)) for thread in range(threads)]
                    checks.append((case, written))
        after = execute(tier, image.path.read_bytes(), bytes(memory), calls)
        for case, written in checks:
            out = case.operands["y"]
            assert isinstance(out, Out)
            got = np.frombuffer(after, np.uint8, out.expected.size + SLACK, written)
            assert wrong(out, got[: -SLACK or None]) == "", case.name
            assert (got[-SLACK:] == UNTOUCHED).all(), f"{case.name}: bytes past the end were written"
            exact.append(canonical(case, tier, got[:-SLACK].tobytes()))
    assert exact


@pytest.mark.parametrize("name", TIERS)
def test_tiles_stay_in_registers(name: str) -> None:
    """No inner loop of a convolution keeps a vector on the stack."""
    lines = compile_for(TIERS[name], TESTS.parent / "inference/kernels/conv8.py").assembly.splitlines()
    labels: dict[str, int] = {}
    loops = 0
    for i, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = i
        jump = re.search(r"\t(?:j\w+|b\.\w+)\t(\.L\w+)", line)
        if jump and jump[1] in labels:
            body = lines[labels[jump[1]] + 1 : i]
            dots = any(re.search(r"pdpbusd|pmaddwd|sdot|sadalp", each) for each in body)
            if dots and not any(each.startswith(".L") for each in body):
                loops += 1
                assert not any(re.search(r"\(%rsp\).*mm|mm.*\(%rsp\)|\bq\d.*\[sp", each) for each in body)
    assert loops >= len(conv8_tiles(TIERS[name]))


def test_the_twins_are_those_of_all_kernels() -> None:
    import naive

    names = {
        case.instruction.name if TILED.match(case.kernel) else case.kernel for case in cases(runnable()[0])
    }
    assert names <= set(dir(naive))
