"""What is installed is what is in the tree."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = {
    "node": "node",
    "inference": "inference",
    "sensors": "sensors",
    "control": "control",
    "configs": "configs",
    "bench": "tests/bench",
}


def setuptools() -> dict[str, object]:
    tool: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    return tool


def packages() -> set[str]:
    found = set()
    for package, folder in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inner = init.parent.relative_to(ROOT / folder).parts
            found.add(".".join(["reflexarc", package, *inner]))
    return found


def test_each_package_in_the_tree_is_listed() -> None:
    assert set(setuptools()["packages"]) == packages()  # type: ignore[call-overload]


def test_each_module_is_in_a_package() -> None:
    for folder in FOLDERS.values():
        for module in (ROOT / folder).rglob("*.py"):
            assert (module.parent / "__init__.py").exists(), module


def test_the_top_level_holds_what_it_should() -> None:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if tracked.returncode:
        pytest.skip("not a git checkout")
    top = {line.split("/")[0] for line in tracked.stdout.splitlines()}
    known = {
        *FOLDERS,
        "tests",
        "systemd",
        "README.md",
        "LICENSE",
        "NOTICE",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
    }
    assert {name for name in top if not name.startswith(".")} <= (known - {"bench"}) | {"pyproject.toml"}


def modules_after(code: str) -> set[str]:
    line = [sys.executable, "-c", f"{code}; import sys; print(*sys.modules)"]
    return set(subprocess.run(line, capture_output=True, text=True, check=True).stdout.split())


def test_the_gate_imports_neither_numpy_nor_asyncio() -> None:
    loaded = modules_after(
        "import reflexarc.node.gate.process, reflexarc.node.commands.run, reflexarc.node.cli"
    )
    assert not loaded & {"numpy", "asyncio", "numba", "llvmlite", "rich", "psutil", "mcap"}


def test_the_worker_imports_no_compiler() -> None:
    loaded = modules_after("import reflexarc.node.worker.main")
    assert "numpy" in loaded
    assert not loaded & {"numba", "llvmlite", "rich", "psutil", "mcap", "onnx", "asyncio"}
    assert not any(
        name.startswith(("reflexarc.inference.simd", "reflexarc.inference.kernels")) for name in loaded
    )
