"""Start children that build images, in parallel; needs no numba here.

The compiler lives in processes of its own, spawned and gone before anything runs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from reflexarc.inference.families import path
from reflexarc.inference.isa import Tier


@dataclass(frozen=True, slots=True)
class Built:
    """The outcome for one family and tier: the image's file, or why there is none."""

    family: str
    tier: str
    file: Path | None = None
    size: int = 0
    seconds: float = 0.0
    error: str = ""


Progress = Callable[[Built], None]


def build(
    wanted: Mapping[Tier, Sequence[str]],
    directory: Path,
    *,
    progress: Progress | None = None,
    assembly: bool = False,
) -> list[Built]:
    """Build each tier's families into a folder, as many children at once as there are cores.

    `progress` is called as each image is done, from threads of this call. `assembly` writes a .s file beside
    each image.
    """
    cores = len(os.sched_getaffinity(0))
    shares = [(tier, share) for tier, families in wanted.items() for share in _shares(families, cores)]
    results: list[Built] = []

    def child(job: tuple[Tier, list[str]]) -> None:
        for built in _run(*job, directory, assembly):
            results.append(built)
            if progress:
                progress(built)

    with ThreadPoolExecutor(cores) as pool:
        list(pool.map(child, shares))
    return results


def _shares(families: Sequence[str], count: int) -> list[list[str]]:
    """Families dealt into at most `count` shares, the longest files first."""
    ordered = sorted(families, key=lambda family: -path(family).stat().st_size)
    return [ordered[i::count] for i in range(min(count, len(ordered)))]


def _run(tier: Tier, families: list[str], directory: Path, assembly: bool) -> Iterator[Built]:
    command = [sys.executable, "-m", "reflexarc.inference.build", tier.name, str(directory), *families]
    if assembly:
        command.append("--assembly")
    missing = set(families)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        for line in process.stdout:
            built = _built(json.loads(line))
            missing.discard(built.family)
            yield built
        trouble = process.stderr.read().strip().splitlines()
    reason = trouble[-1] if trouble else f"the builder ended with status {process.returncode}"
    for family in sorted(missing):
        yield Built(family, tier.name, error=reason)


def _built(told: dict[str, str | int | float]) -> Built:
    file = Path(str(told["file"])) if "file" in told else None
    return Built(
        family=str(told["family"]),
        tier=str(told["tier"]),
        file=file,
        size=int(told.get("bytes", 0)),
        seconds=float(told.get("seconds", 0.0)),
        error=str(told.get("error", "")),
    )
