"""Build the images of some families for one tier: the child process that `spawn` starts.

    python -m reflexarc.inference.build TIER DIRECTORY FAMILY... [--assembly]

One JSON line a family on standard output: {"family", "tier", "file", "bytes", "seconds"}, or {"family",
"error"}.
"""

import argparse
import gc
import importlib
import json
import os
import sys
import time
from pathlib import Path

from reflexarc.inference.isa import TARGET, named


def set_target(tier: str) -> None:
    """Fix the tier before simd is imported, and numba's options, whatever the environment says."""
    for name in [name for name in os.environ if name.startswith("NUMBA_")]:
        del os.environ[name]
    os.environ["NUMBA_OPT"] = "0"  # LLVM optimizes once, for the tier
    os.environ[TARGET] = tier


def build(family: str, tier_name: str, directory: Path, assembly: bool) -> dict[str, object]:
    """Build one image and write it; with its assembly beside it if wanted."""
    from reflexarc.inference.build.compiler import compile_kernels
    from reflexarc.inference.build.elf import flatten
    from reflexarc.inference.families import digest
    from reflexarc.inference.image_file import write

    start, sources = time.perf_counter(), digest(family)
    module = importlib.import_module(f"reflexarc.inference.kernels.{family}")
    compiled = compile_kernels(module.KERNELS, named(tier_name), assembly)
    code, entries = flatten(compiled.object)
    path = write(directory, family, named(tier_name), sources, code, entries)
    if assembly:
        path.with_suffix(".s").write_text(compiled.assembly, encoding="utf-8")
    seconds = round(time.perf_counter() - start, 3)
    return {
        "family": family,
        "tier": tier_name,
        "file": str(path),
        "bytes": path.stat().st_size,
        "seconds": seconds,
    }


def main() -> int:
    """Build each family in turn; 1 if one failed."""
    parser = argparse.ArgumentParser(prog="python -m reflexarc.inference.build")
    parser.add_argument("tier")
    parser.add_argument("directory", type=Path)
    parser.add_argument("families", nargs="+")
    parser.add_argument("--assembly", action="store_true")
    arguments = parser.parse_args()
    set_target(arguments.tier)
    gc.disable()  # a seventh faster, and this process is soon gone
    failed = 0
    for family in arguments.families:
        try:
            result = build(family, arguments.tier, arguments.directory, arguments.assembly)
        except Exception as error:  # whatever numba or LLVM raises is the answer for this family
            failed = 1
            result = {"family": family, "tier": arguments.tier, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
