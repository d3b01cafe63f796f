"""Kernel families: their files, and the digest of everything their machine code is made from.

A family is a file of inference/kernels whose name has no leading underscore, and becomes one image a tier.
numba's own cache misses an edit in an imported operation; here the sources of simd and build, the family's
file and whatever of `reflexarc.inference` it imports, however far, all count.
"""

import functools
import hashlib
import re
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).parent
PACKAGE = "reflexarc.inference"

_IMPORT = re.compile(
    rf"^\s*(?:from|import)\s+({re.escape(PACKAGE)}[\w.]*)(?:\s+import\s+([(][^)]*[)]|[^\n]*))?", re.M
)


def families() -> list[str]:
    """All families' names."""
    return sorted(file.stem for file in (ROOT / "kernels").glob("*.py") if not file.stem.startswith("_"))


def _file(module: str) -> Path | None:
    """The file of a module of this package, None where there is none."""
    stem = ROOT.joinpath(*module.removeprefix(PACKAGE).strip(".").split("."))
    return next((p for p in (stem.with_suffix(".py"), stem / "__init__.py") if p.is_file()), None)


@functools.cache
def _imported(file: Path) -> frozenset[Path]:
    """Files of this package that a file names in its imports."""
    found: set[Path | None] = set()
    for module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
        found.add(_file(module))
        found.update(_file(f"{module}.{name}") for name in re.findall(r"\w+", names))
    return frozenset(p for p in found if p is not None)


def _closure(files: Iterable[Path]) -> set[Path]:
    seen: set[Path] = set()
    waiting = list(files)
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            waiting += _imported(file)
    return seen


def path(family: str) -> Path:
    """A family's file; ValueError if there is none."""
    if family not in families():
        raise ValueError(f"unknown kernel family {family!r}: it must be one of {', '.join(families())}")
    return ROOT / "kernels" / f"{family}.py"


def sources(family: str) -> list[Path]:
    """Every file that a family's machine code is made from, in a fixed order."""
    return sorted(_closure([path(family), *(ROOT / "simd").glob("*.py"), *(ROOT / "build").glob("*.py")]))


def digest(family: str) -> str:
    """SHA-256 of a family's sources."""
    total = hashlib.sha256()
    for file in sources(family):
        body = file.read_bytes()
        total.update(f"{file.relative_to(ROOT).as_posix()} {len(body)}\n".encode() + body)
    return total.hexdigest()
