"""Tiers, their detection and their choice."""

import platform
import shutil
import subprocess
import sys

import pytest

from reflexarc.inference import isa


def test_runnable_tiers_are_best_first() -> None:
    names = [tier.name for tier in isa.runnable()]
    assert names == [name for name in isa.TIERS if name in names]
    assert names[-1] == ("neon" if platform.machine() == "aarch64" else "sse42")
    assert isa.choose().name == names[0]


def test_numpy_and_the_c_library_agree() -> None:
    if platform.machine() != "x86_64":
        pytest.skip("x86 features")
    features = isa._numpy_features()
    assert features <= isa.machine()[1]
    assert ("avx2" in features) == ("avx2" in isa.machine()[1])


def test_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    worst = isa.runnable()[-1]
    monkeypatch.setenv("REFLEXARC_ISA", worst.name)
    assert isa.choose() is worst
    assert isa.target() is worst


def test_unknown_or_impossible_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REFLEXARC_ISA", "avx3")
    with pytest.raises(
        isa.IsaError, match="unknown instruction set 'avx3': it must be one of avx512vnni, avxvnni"
    ):
        isa.choose()
    foreign = "sse42" if isa.runnable()[0].arm else "neon"
    monkeypatch.setenv("REFLEXARC_ISA", foreign)
    with pytest.raises(isa.IsaError, match=f"REFLEXARC_ISA={foreign}: this CPU runs only "):
        isa.choose()


def test_any_tier_can_be_built_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in isa.TIERS:
        monkeypatch.setenv("REFLEXARC_TARGET", name)
        assert isa.target().name == name


def test_a_machine_without_a_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert isa.runnable() == []
    with pytest.raises(isa.IsaError, match="no instruction set for this machine"):
        isa.choose()


@pytest.mark.parametrize("tier", isa.TIERS.values(), ids=isa.TIERS.keys())
def test_packing_is_a_permutation(tier: isa.Tier) -> None:
    assert sorted(tier.weight_order) == [(row, k) for row in range(tier.lanes) for k in range(4)]
    assert tier.bias == (0 if tier.arm else 128)


@pytest.mark.parametrize(("cpu", "expected"), [("Nehalem", ["sse42"]), ("Haswell", ["avx2", "sse42"])])
def test_under_emulation_the_emulated_cpu_counts(cpu: str, expected: list[str]) -> None:
    qemu = shutil.which("qemu-x86_64")
    if qemu is None or platform.machine() != "x86_64":
        pytest.skip("qemu-x86_64 not found (Debian: qemu-user), or not on x86-64")
    code = "from reflexarc.inference import isa; print(*[t.name for t in isa.runnable()])"
    done = subprocess.run(
        [qemu, "-cpu", cpu, sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == expected
