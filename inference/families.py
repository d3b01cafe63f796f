"""Kernel families: their files, and the digest of everything their machine code is made from.

A family is a file of inference/kernels whose name has no leading underscore, and becomes one image a tier.
numba's own cache misses an edit in an imported operation; here the sources of simd and build, the family's
file and whatever of `reflexarc.inference` it imports, however far, all count.
"""

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parent
PACKAGE = "reflexarc.inference"

_IMPORT = re.compile(
    rf"^\s*(?:from|import)\s+({re.escape(PACKAGE)}[\w.]*)(?:\s+import\s+([(][^)]*[)]|[^\n]*))?", re.M
)


def families() -> list[str]:
    """All families' names."""
    return sorted(path.stem for path in (ROOT / "kernels").glob("*.py") if not path.stem.startswith("_"))


def _file(module: str) -> Path | None:
    """The file of a module of this package, None where there is none."""
    path = ROOT.joinpath(*module.removeprefix(PACKAGE).strip(".").split("."))
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


@functools.cache
def _imported(path: Path) -> frozenset[Path]:
    """Files of this package that a file names in its imports."""
    found: set[Path | None] = set()
    for module, names in _IMPORT.findall(path.read_text(encoding="utf-8")):
        found.add(_file(module))
        found.update(_file(f"{module}.{name}") for name in re.findall(r"\w+", names))
    return frozenset(p for p in found if p is not None)


def _closure(paths: Iterable[Path]) -> set[Path]:
    seen: set[Path] = set()
    waiting = list(paths)
    while waiting:
        path = waiting.pop()
        if path not in seen:
            seen.add(path)
            waiting += _imported(path)
    return seen


def sources(family: str) -> Iterator[Path]:
    """Every file that a family's machine code is made from, in a fixed order."""
    path = ROOT / "kernels" / f"{family}.py"
    if family not in families():
        raise ValueError(f"unknown kernel family {family!r}: it must be one of {', '.join(families())}")
    yield from sorted(_closure([path, *(ROOT / "simd").glob("*.py"), *(ROOT / "build").glob("*.py")]))


def digest(family: str) -> str:
    """SHA-256 of a family's sources."""
    total = hashlib.sha256()
    for path in sources(family):
        body = path.read_bytes()
        total.update(f"{path.relative_to(ROOT).as_posix()} {len(body)}\n".encode() + body)
    return total.hexdigest()
