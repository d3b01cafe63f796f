"""The self test of images: every kernel of every instruction set passes, and what is wrong is given up."""

import os
import platform
import shutil
import signal
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from emulator import MEMORY, Call, execute, launcher, why_not

from reflexarc.inference import isa, selftest
from reflexarc.inference.families import digest, families
from reflexarc.inference.image import Image, ImageStore, open_image
from reflexarc.inference.image_file import write
from reflexarc.inference.instructions import SLACK
from reflexarc.inference.isa import TIERS, Tier, runnable
from reflexarc.inference.selftest import SelfTestError, with_fallback
from reflexarc.inference.selftest_case import Case
from reflexarc.inference.selftest_cases import case

RETURN = b"\xc0\x03\x5f\xd6" if runnable()[0].arm else b"\xc3"
CRASH = b"\0\0\0\0" if runnable()[0].arm else b"\x0f\x0b"
NO_PROBLEM = {"team", "peak"}  # families whose kernels are no instructions


@pytest.fixture(scope="module", params=TIERS.values(), ids=TIERS.keys())
def images(request: pytest.FixtureRequest) -> tuple[Tier, dict[str, Image]]:
    """All images of a tier, from the user's cache, since they take a while to build."""
    return request.param, ImageStore(request.param).load(families())


def emulated(tier: Tier, image: Image, problems: dict[str, Case]) -> dict[str, bool]:
    """Whether each problem's kernel is right, run in a process of its own."""
    memory, calls, outputs = bytearray(), [], {}

    def put(data: bytes) -> int:
        at = len(memory)
        memory.extend(data + bytes(SLACK + -len(data) % 64))
        return MEMORY + at

    for kernel, problem in problems.items():
        words = []
        for name in problem.instruction.operands:
            value = problem.operands[name]
            if isinstance(value, np.ndarray):
                value = put(value.tobytes())
                if name == "y":
                    outputs[kernel] = value - MEMORY
            elif name in problem.instruction.floats:
                value = struct.unpack("<i", struct.pack("<f", value))[0]
            words.append(int(value))
        block = struct.pack(f"<{len(words)}q", *words)
        instruction = bytes(8) + (block if problem.instruction.inline else struct.pack("<q", put(block)))
        calls.append(Call(image.description.entries[kernel], [put(instruction), 0, 1]))
    after = execute(tier, image.path.read_bytes(), bytes(memory), calls)
    answers = {}
    for kernel, problem in problems.items():
        part = after[outputs[kernel] :][: problem.output.nbytes]
        answers[kernel] = problem.right(
            np.frombuffer(part, problem.output.dtype).reshape(problem.output.shape)
        )
    return answers


@pytest.mark.parametrize("family", [f for f in families() if f not in NO_PROBLEM])
def test_every_kernel_passes(images: tuple[Tier, dict[str, Image]], family: str) -> None:
    tier, image = images[0], images[1][family]
    problems = {kernel: case(tier, kernel) for kernel in image.description.entries}
    assert None not in problems.values(), "a kernel without a problem"
    if launcher(tier) is None:
        pytest.skip(why_not(tier))
    answers = emulated(tier, image, {kernel: p for kernel, p in problems.items() if p})
    assert all(answers.values()), answers


def test_a_whole_python_without_avx() -> None:
    """The sse42 images, found, mapped and run by this Python on an emulated Nehalem."""
    qemu = shutil.which("qemu-x86_64")
    if qemu is None or platform.machine() != "x86_64":
        pytest.skip("qemu-x86_64 not found (Debian: qemu-user), or not on x86-64")
    names = [family for family in families() if family not in NO_PROBLEM]
    ImageStore(TIERS["sse42"]).load(families())
    code = f"""
from reflexarc.inference import selftest
from reflexarc.inference.image import ImageStore
from reflexarc.inference.team import Team
store = ImageStore()
images = store.load({names!r} + ["team"])
Team(images["team"]).run(0, 0)
print(store.tier.name, [selftest.wrong_kernels(images[family]) for family in {names!r}])
"""
    command = [qemu, "-cpu", "Nehalem", sys.executable, "-c", code]
    environment = os.environ | {"OPENBLAS_CORETYPE": "Nehalem"}  # numpy's BLAS goes by the vendor
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=environment)
    assert done.stdout.strip() == f"sse42 {[[] for _ in names]}"


def fake(family: str, code: bytes, directory: Path, tier: Tier | None = None) -> Image:
    """An image whose every kernel is this code."""
    directory.mkdir(exist_ok=True, mode=0o700)
    entries = {"copy": 0, "fill": 0}
    path = write(directory, family, tier or runnable()[0], digest(family), code.ljust(64, b"\0"), entries)
    return open_image(path)


def test_wrong_answers_are_found(tmp_path: Path) -> None:
    image = fake("move", RETURN, tmp_path / "a")
    with pytest.raises(SelfTestError, match=r"self test of move-.*: wrong answers from move copy, move fill"):
        selftest.check([image], tmp_path / "cache")
    assert not (tmp_path / "cache").exists()


def test_an_illegal_instruction_ends_the_child_only(tmp_path: Path) -> None:
    image = fake("move", CRASH, tmp_path / "a")
    with pytest.raises(SelfTestError, match=rf"self test of move-.*: ended by {signal.SIGILL.name}"):
        selftest.check([image], tmp_path / "cache")


def test_a_pass_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = ImageStore().load(["move"])["move"]
    selftest.check([image], tmp_path / "cache")
    monkeypatch.setattr(selftest, "_test", lambda paths: pytest.fail("tested again"))
    selftest.check([image], tmp_path / "cache")
    monkeypatch.undo()
    tested = []
    monkeypatch.setattr(selftest, "_test", tested.append)
    monkeypatch.setattr(isa, "identity", lambda: "another CPU")
    selftest.check([image], tmp_path / "cache")
    assert len(tested) == 1


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    image = ImageStore().load(["move"])["move"]
    (tmp_path / "file").write_text("")
    selftest.check([image], tmp_path / "file" / "cache")


@pytest.fixture
def two_tiers(monkeypatch: pytest.MonkeyPatch) -> tuple[Tier, Tier]:
    """The best tier here and the next."""
    monkeypatch.delenv("REFLEXARC_ISA", raising=False)
    here = runnable()
    if len(here) < 2:
        pytest.skip("needs two instruction sets")
    return here[0], here[1]


def test_falls_back_loudly(two_tiers: tuple[Tier, Tier], tmp_path: Path) -> None:
    best, worse = two_tiers
    directory = tmp_path / "cache"
    fake("move", CRASH, directory, best)
    warnings: list[str] = []
    tier = with_fallback(
        lambda store: store.load(["move"]) and store.tier, cache=directory, warn=warnings.append
    )
    assert tier == worse
    assert len(warnings) == 1
    assert f"ended by SIGILL; going on with {worse.name}" in warnings[0]


def test_a_forced_tier_is_not_given_up(
    two_tiers: tuple[Tier, Tier], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REFLEXARC_ISA", two_tiers[0].name)
    fake("move", CRASH, tmp_path / "cache")
    with pytest.raises(SelfTestError):
        with_fallback(lambda store: store.load(["move"]), cache=tmp_path / "cache", warn=pytest.fail)
