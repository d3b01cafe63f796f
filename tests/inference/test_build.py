"""The builder: what it makes, what it refuses, and the command around it."""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pytest
from compile_for import compile_for

from reflexarc.inference.build import spawn
from reflexarc.inference.families import families
from reflexarc.inference.image_file import describe
from reflexarc.inference.isa import TIERS, choose
from reflexarc.node.commands import build_kernels

HEAD = "from reflexarc.inference.simd import *\n"


def compiled(tmp_path: Path, source: str, tier: str = "avx2") -> str:
    """The assembly of a module; AssertionError with the builder's words where it refuses."""
    path = tmp_path / "module.py"
    path.write_text(HEAD + source)
    return compile_for.__wrapped__(TIERS[tier], path).assembly


def test_the_same_sources_make_the_same_image(tmp_path: Path) -> None:
    images = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (built,) = spawn.build({choose(): ["team"]}, tmp_path / name)
        assert built.file
        images.append(built.file.read_bytes())
        assert built.size == len(images[-1])
    assert images[0] == images[1]
    entries = describe(images[0]).entries
    assert set(entries) == {"run_alone", "run", "serve"}
    assert all(offset % 64 == 0 for offset in entries.values())


def test_constants_are_relocated(tmp_path: Path) -> None:
    """Read-only data is reached relative to the code, on every tier (that it is right, test_simd shows)."""
    source = "def k(a, b, c):\n    store_i32w(a, load_first_i32w(b, c))\nKERNELS = (k,)\n"
    for tier in TIERS:
        assert "LCPI" in compiled(tmp_path, source, tier)


def test_loops_do_not_become_library_calls(tmp_path: Path) -> None:
    source = """
def clear(a, n, c):
    for i in range(n):
        poke_i8(a + i, 0)

def move(a, b, n):
    for i in range(n):
        poke_i32(a + 4 * i, peek_i32(b + 4 * i))

KERNELS = (clear, move)
"""
    for tier in ("avx2", "neon"):
        assembly = compiled(tmp_path, source, tier)
        assert "memset" not in assembly
        assert "memcpy" not in assembly


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import math\ndef k(a, b, c):\n    poke_f32(a, math.sin(peek_f32(b)))\n", "outside symbol sinf"),
        ("def k(a, b, c):\n    x = [a, b]\n    x.append(c)\n    poke_i64(a, x[c])\n", "NRT required"),
        (
            "def k(a, b, c):\n    if c == 0:\n        raise ValueError\n    poke_i64(a, b)\n",
            "k can raise an exception",
        ),
        ("def k(a, b, c):\n    assert c > 0\n    poke_i64(a, b)\n", "k can raise an exception"),
        ("def k(a, b, c):\n    store_f32(a, load_i32(b))\n", "TypingError"),
        ("def k(a, b, c):\n    return a.b\n", "TypingError"),
        ("def k(a, b, c):\n    store_f32(a, load_f32(b) & 1)\n", "TypingError"),
    ],
)
def test_refused(tmp_path: Path, source: str, reason: str) -> None:
    with pytest.raises(AssertionError, match=reason):
        compiled(tmp_path, source + "KERNELS = (k,)\n")


def test_division_does_not_raise(tmp_path: Path) -> None:
    compiled(tmp_path, "def k(a, b, c):\n    poke_i64(a, b // c + b % c)\nKERNELS = (k,)\n")


def test_foreign_numba_settings_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    monkeypatch.setenv("NUMBA_CPU_NAME", "nonsense")
    (built,) = spawn.build({choose(): ["team"]}, tmp_path)
    assert not built.error


def test_a_failure_is_one_line(tmp_path: Path) -> None:
    (built,) = spawn.build({choose(): ["team"]}, tmp_path / "not there")
    assert built.file is None
    assert "No such file" in built.error
    assert "\n" not in built.error
    with pytest.raises(ValueError, match="unknown kernel family 'nothing'"):
        spawn.build({TIERS["neon"]: ["nothing"]}, tmp_path)


def test_assembly_can_be_read(tmp_path: Path) -> None:
    spawn.build({TIERS["dotprod"]: ["conv8"]}, tmp_path, assembly=True)
    (text,) = (path.read_text() for path in tmp_path.glob("conv8-dotprod-*.s"))
    assert "sdot" in text


def run_command(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    build_kernels.add_arguments(parser)
    return build_kernels.run(parser.parse_args(arguments))


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("reflexarc.inference.families.families", lambda: ["team"])
    output = tmp_path / "images"
    assert run_command("--tier", "all", "--output", str(output), "--json") == 0
    said = capsys.readouterr()
    report = json.loads(said.out.splitlines()[-1])
    assert report["tiers"] == list(TIERS)
    assert {b["tier"] for b in report["built"]} == set(TIERS)
    assert {Path(b["file"]).name for b in report["built"]} == {p.name for p in output.glob("*.img")}
    assert "[7/7] " in said.err
    assert run_command("--tier", "all", "--output", str(output), "--json") == 0
    report = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (report["built"], report["present"], report["failed"]) == ([], 7, {})


def test_command_builds_into_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reflexarc.inference.families.families", lambda: ["team"])
    monkeypatch.setenv("CACHE_DIRECTORY", str(tmp_path))
    assert run_command() == 0
    assert len(list((tmp_path / "kernels").glob(f"team-{choose().name}-*.img"))) == 1


def test_command_refuses(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run_command("--tier", "mmx") == 2
    assert capsys.readouterr().err.startswith("reflexarc build-kernels: unknown instruction set 'mmx'")
    (tmp_path / "file").write_text("")
    assert run_command("--output", str(tmp_path / "file")) == 2


def test_nothing_of_the_compiler_is_imported_at_run_time() -> None:
    code = """
import sys
from reflexarc.inference import image, session, selftest, selftest_cases, team
from reflexarc.inference.build import spawn
from reflexarc.node.commands import build_kernels
not_here = ("numba", "llvmlite", "reflexarc.inference.simd", "reflexarc.inference.kernels")
print([name for name in sys.modules if name.startswith(not_here)])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_family_declares_its_kernels() -> None:
    assert {"team", "conv8", "conv32", "quantize"} <= set(families())
