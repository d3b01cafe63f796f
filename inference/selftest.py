"""A test of kernel images on the device itself, before they are trusted.

It runs in a child process, since code of the wrong instruction set ends a process, and takes milliseconds of
work. An image that has passed on a CPU is not tested there again: a file in the cache remembers it.
`with_fallback` gives up an instruction set whose images fail, loudly, and goes on to the next.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from reflexarc.inference import isa
from reflexarc.inference.families import ROOT
from reflexarc.inference.image import Image, ImageStore, default_cache, make_private, open_image
from reflexarc.inference.image_file import ImageError

if TYPE_CHECKING:
    from reflexarc.inference.build.spawn import Progress

_TIMEOUT_S = 60
_SOURCES = ("selftest.py", "selftest_case.py", "selftest_cases.py")

T = TypeVar("T")


class SelfTestError(RuntimeError):
    """Images whose kernels do not run on this CPU, or give wrong answers."""


def with_fallback(
    load: Callable[[ImageStore], T],
    *,
    cache: Path | None = None,
    progress: Progress | None = None,
    warn: Callable[[str], None],
) -> T:
    """What `load` makes of a store of images, those of the best instruction set that pass their test.

    `warn` hears of each instruction set given up. One forced by REFLEXARC_ISA is not; nor is the last:
    SelfTestError.
    """
    directory = cache or default_cache()
    tiers = [isa.choose()] if os.environ.get(isa.FORCE) else isa.runnable() or [isa.choose()]
    for tier, worse in zip(tiers, [*tiers[1:], None], strict=True):
        store = ImageStore(
            tier, cache=directory, progress=progress, check=lambda images: check(images, directory)
        )
        try:
            return load(store)
        except SelfTestError as error:
            if worse is None:
                raise
            warn(f"{error}; going on with {worse.name}")
    raise AssertionError("a tier is tried, or choose raises")


def check(images: Sequence[Image], cache: Path) -> None:
    """Test images that this CPU has not passed yet; SelfTestError says which kernels failed, and how."""
    new = [image for image in images if not _mark(image, cache).exists()]
    if not new:
        return
    _test([image.path for image in new])
    with contextlib.suppress(OSError, ImageError):
        make_private(cache)
        for image in new:
            _mark(image, cache).touch()


def _mark(image: Image, cache: Path) -> Path:
    """The file that remembers a passed test: named by the image, this CPU and this test."""
    total = hashlib.sha256(f"{image.sha256} {isa.identity()}".encode())
    for name in _SOURCES:
        total.update((ROOT / name).read_bytes())
    return cache / f".passed-{total.hexdigest()[:24]}"


def _test(paths: Sequence[Path]) -> None:
    command = [sys.executable, "-m", __name__, *map(str, paths)]
    what = f"self test of {', '.join(path.stem for path in paths)}"
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        raise SelfTestError(f"{what}: no end after {_TIMEOUT_S} s") from None
    if done.returncode < 0:
        raise SelfTestError(f"{what}: ended by {signal.Signals(-done.returncode).name}")
    if done.returncode:
        lines = (done.stdout.strip() or done.stderr.strip()).splitlines() or [f"status {done.returncode}"]
        raise SelfTestError(f"{what}: {lines[-1]}")


def wrong_kernels(image: Image) -> list[str]:
    """Names of an image's kernels that give a wrong answer, found by running each of them in this process."""
    from reflexarc.inference.selftest_cases import case

    tier, wrong = isa.named(image.description.tier), []
    for kernel in image.description.entries:
        problem = case(tier, kernel)
        if problem and not problem.passes(image.function(kernel, 3)):
            wrong.append(kernel)
    return wrong


def main(paths: Sequence[str]) -> int:
    """The child: test images by their paths; 1 if a kernel is wrong, its name printed."""
    images = [open_image(Path(path)) for path in paths]
    wrong = [f"{image.description.family} {kernel}" for image in images for kernel in wrong_kernels(image)]
    if wrong:
        print(f"wrong answers from {', '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
