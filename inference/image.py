"""Images of compiled kernels: where they are found, and their mapping into this process.

They come from the installed package, else from a private cache, else child processes build them into that
cache. An image is mapped from its file, readable and executable, once its hash has been checked; that is what
systemd's MemoryDenyWriteExecute= permits.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import importlib.util
import mmap
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from reflexarc.inference.families import ROOT
from reflexarc.inference.image_file import Description, ImageError, candidates, describe
from reflexarc.inference.isa import Tier, choose

if TYPE_CHECKING:
    from reflexarc.inference.build.spawn import Progress

INSTALLED = ROOT / "images"
"""Where a wheel carries its images."""


class Image:
    """A mapped image; it stays mapped for the life of the process."""

    def __init__(self, path: Path, description: Description, sha256: str, base: int) -> None:
        self.path, self.description, self.sha256, self._base = path, description, sha256, base

    def address(self, kernel: str) -> int:
        """Address of a kernel's entry point, a multiple of 64."""
        entries = self.description.entries
        if kernel not in entries:
            raise ImageError(f"no kernel {kernel!r} in {self.path.name}: it has {', '.join(entries)}")
        return self._base + entries[kernel]

    def function(self, kernel: str, parameters: int) -> Callable[..., None]:
        """A kernel as a Python callable of int64 parameters, which releases the GIL while it runs."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * parameters)(self.address(kernel))


def open_image(path: Path) -> Image:
    """Check and map an image; ImageError where it is damaged, OSError where it cannot be read."""
    with path.open("rb") as file:
        data = file.read()
        description, sha256 = describe(data), hashlib.sha256(data).hexdigest()
        return Image(path, description, sha256, _map(file.fileno(), len(data), sha256))


_mapped: dict[str, int] = {}


def _map(descriptor: int, size: int, content: str) -> int:
    """Address of a file mapped readable and executable; the same content is mapped once."""
    if content not in _mapped:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        base = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, descriptor, 0)
        if base == ctypes.c_void_p(-1).value:
            raise ImageError(f"cannot map an image: {os.strerror(ctypes.get_errno())}")
        _mapped[content] = base
    return _mapped[content]


def find(directory: Path, family: str, tier: Tier) -> Image | None:
    """The image of a family in a folder, if one is there that is whole and of today's sources."""
    for path in candidates(directory, family, tier):
        with contextlib.suppress(ImageError, OSError):
            image = open_image(path)
            if image.description.matches(family, tier):
                return image
    return None


def default_cache() -> Path:
    """The cache's folder: under systemd's CACHE_DIRECTORY, else under XDG_CACHE_HOME or ~/.cache."""
    if directory := os.environ.get("CACHE_DIRECTORY"):
        return Path(directory.split(":")[0]) / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reflexarc" / "kernels"


def make_private(directory: Path) -> None:
    """Make a folder of mode 0700 where it is missing; ImageError where others can write to it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = directory.stat()
    except OSError as error:
        raise ImageError(f"kernel cache {directory}: {error.strerror}") from None
    if state.st_uid != os.geteuid() or state.st_mode & 0o022:
        raise ImageError(
            f"kernel cache {directory} belongs to user {state.st_uid} with mode {state.st_mode & 0o777:o}: "
            f"code that others can write is not run, it must belong to {os.geteuid()} with mode 700"
        )


class ImageStore:
    """Finds, verifies, builds and maps the images of one tier.

    tier: the best this CPU runs (or REFLEXARC_ISA's) unless given. cache: `default_cache` unless given.
    progress: is told of each image built.
    """

    def __init__(
        self,
        tier: Tier | None = None,
        *,
        cache: Path | None = None,
        installed: Path = INSTALLED,
        progress: "Progress | None" = None,
        check: Callable[[list[Image]], None] | None = None,
    ) -> None:
        self.tier = tier or choose()
        self.cache = cache or default_cache()
        self._installed, self._progress, self._check = installed, progress, check
        self._images: dict[str, Image] = {}

    def load(self, families: Collection[str]) -> dict[str, Image]:
        """The images of some families; what is nowhere is built, by one process; ImageError if it fails."""
        wanted = [family for family in dict.fromkeys(families) if family not in self._images]
        missing = self._seek(wanted, self._installed)
        if missing:
            make_private(self.cache)
            missing = self._seek(missing, self.cache)
        if missing:
            with self._locked():
                self._build(self._seek(missing, self.cache))
        if self._check:
            self._check([self._images[family] for family in wanted])
        return {family: self._images[family] for family in families}

    def _seek(self, families: Iterable[str], directory: Path) -> list[str]:
        """Take what a folder has of some families; the others."""
        for family in families:
            if family not in self._images and (image := find(directory, family, self.tier)):
                self._images[family] = image
        return [family for family in families if family not in self._images]

    def _build(self, families: list[str]) -> None:
        if not families:
            return
        what = f"no kernel image of {', '.join(families)} for {self.tier.name}"
        if importlib.util.find_spec("numba") is None:
            raise ImageError(f"{what}, and no numba to build it with: pip install 'reflexarc[build]'")
        from reflexarc.inference.build.spawn import build

        built = build({self.tier: families}, self.cache, progress=self._progress)
        for failure in (b for b in built if b.error):
            raise ImageError(f"{what}: building {failure.family} failed: {failure.error}")
        if lost := self._seek(families, self.cache):
            raise ImageError(
                f"{what}: what was built just now for {', '.join(lost)} is not what was expected"
            )

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the cache against other processes that would build the same."""
        with (self.cache / f".{self.tier.name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
