"""Compile a test's module of kernels for a tier, in a child process as the builder does.

`compile_for(tier, path)` in the test; `python compile_for.py TIER MODULE OUTPUT` is the child.
"""

import functools
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from reflexarc.inference.isa import Tier, named


@dataclass(frozen=True)
class Code:
    """Machine code, the offsets of its kernels, and its assembly."""

    code: bytes
    entries: dict[str, int]
    assembly: str


@functools.cache
def compile_for(tier: Tier, module: Path) -> Code:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, tier.name, str(module), folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        output = Path(folder)
        entries = json.loads((output / "entries").read_text())
        return Code((output / "code").read_bytes(), entries, (output / "assembly").read_text())


def main(tier: str, module: str, output: Path) -> None:
    from reflexarc.inference.build.__main__ import set_target

    set_target(tier)
    from reflexarc.inference.build.compiler import compile_kernels
    from reflexarc.inference.build.elf import flatten

    spec = importlib.util.spec_from_file_location("kernels_under_test", module)
    assert spec
    assert spec.loader
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    compiled = compile_kernels(loaded.KERNELS, named(tier), assembly=True)
    code, entries = flatten(compiled.object)
    (output / "code").write_bytes(code)
    (output / "entries").write_text(json.dumps(entries))
    (output / "assembly").write_text(compiled.assembly)


if __name__ == "__main__":
    sys.path.remove(os.path.dirname(__file__))  # noqa: PTH120
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
