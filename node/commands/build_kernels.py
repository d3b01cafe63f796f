"""Build the compiled kernels that the engine runs.

Without options: those of this machine's instruction set, into the private cache, where `reflexarc run` finds
them; what is there already and up to date is left as it is. With --model only what some models need; with
--tier and --output for other machines, or into a wheel. Needs the extra `build` (numba); the machine that
runs the kernels does not.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reflexarc.inference.isa import Tier


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of `reflexarc build-kernels`."""
    parser.add_argument(
        "--tier",
        metavar="NAME",
        help="avx512vnni, avxvnni, avx2, sse42, i8mm, dotprod, neon, or `all` (default: this machine's)",
    )
    parser.add_argument(
        "--model", type=Path, action="append", default=[], metavar="FILE", help="only what this model needs"
    )
    parser.add_argument(
        "--output", type=Path, metavar="DIR", help="folder of the images (default: the cache)"
    )
    parser.add_argument(
        "--json", action="store_true", help="one JSON object on the last line of standard output"
    )


def run(arguments: argparse.Namespace) -> int:
    """Build what is missing; 0 if all images are there then, 1 if one could not be built, 2 on a bad name."""
    from reflexarc.inference import image, isa
    from reflexarc.inference.build.spawn import Built, build
    from reflexarc.inference.image_file import ImageError

    start = time.perf_counter()
    directory: Path = arguments.output or image.default_cache()
    try:
        tiers = list(isa.TIERS.values()) if arguments.tier == "all" else [_tier(arguments.tier)]
        if arguments.output:
            directory.mkdir(parents=True, exist_ok=True)
        else:
            image.make_private(directory)
    except (isa.IsaError, ImageError, OSError) as error:
        print(f"reflexarc build-kernels: {error}", file=sys.stderr)
        return 2
    wanted = {tier: _families(arguments.model, tier) for tier in tiers}
    missing = {tier: [f for f in wanted[tier] if image.find(directory, f, tier) is None] for tier in tiers}
    total = sum(map(len, missing.values()))
    done: list[Built] = []

    def progress(built: Built) -> None:
        done.append(built)
        outcome = built.error or f"{built.size} bytes in {built.seconds:.1f} s"
        print(f"[{len(done)}/{total}] {built.tier} {built.family}: {outcome}", file=sys.stderr, flush=True)

    build(missing, directory, progress=progress)
    seconds = round(time.perf_counter() - start, 3)
    failed = [built for built in done if built.error]
    present = sum(map(len, wanted.values())) - total
    print(
        f"{total - len(failed)} built, {present} present, {len(failed)} failed: {directory}, {seconds:.1f} s"
    )
    if arguments.json:
        images = [
            {"family": b.family, "tier": b.tier, "file": str(b.file), "bytes": b.size, "seconds": b.seconds}
            for b in done
            if not b.error
        ]
        errors = {f"{b.tier} {b.family}": b.error for b in failed}
        report = {"directory": str(directory), "tiers": [tier.name for tier in tiers], "present": present}
        print(json.dumps({**report, "built": images, "failed": errors, "seconds": seconds}))
    return 1 if failed else 0


def _families(models: list[Path], tier: "Tier") -> list[str]:
    """What the models need on a tier; all there is without models."""
    from reflexarc.inference.families import families
    from reflexarc.inference.session import families_of

    return sorted({f for model in models for f in families_of(model, tier)}) if models else families()


def _tier(name: str | None) -> "Tier":
    from reflexarc.inference import isa

    return isa.named(name) if name else isa.choose()
