"""Images of compiled kernels: their file format, where they are found, and their mapping into this process.

An image file is machine code at offset 0 (flat, position-independent, no data to write), a JSON description, and a
trailer with the SHA-256 of all before it. It is mapped readable and executable as it is, which systemd's
MemoryDenyWriteExecute= permits, after its hash has been checked. Images come from the installed package, else from a
private cache, else they are built into that cache by child processes.
"""

import contextlib
import ctypes
import fcntl
import functools
import hashlib
import importlib.util
import json
import mmap
import os
import struct
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from reflexarc.inference.build.spawn import Progress, build
from reflexarc.inference.families import ROOT, digest
from reflexarc.inference.isa import Tier, choose

INSTALLED = ROOT / "images"
"""Where a wheel carries its images."""

_MAGIC = b"RFXIMG01"
_TRAILER = struct.Struct("<Q32s8s")  # bytes of the description, SHA-256 of all before the trailer, magic
_KEPT = 4  # images of one family and tier that stay in the cache, so that two versions of the package can share it


class ImageError(RuntimeError):
    """An image that cannot be used, found or built."""


@dataclass(frozen=True, slots=True)
class Description:
    """What an image file says of itself; `versions` are the compiler's, `entries` offsets of its kernels."""

    family: str
    tier: str
    sources: str
    versions: Mapping[str, str]
    entries: Mapping[str, int]
    sha256: str


@functools.cache
def compiler_versions() -> Mapping[str, str]:
    """Versions of numba and llvmlite here; empty where they are not installed."""
    found = {}
    for name in ("numba", "llvmlite"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def key(family: str, tier: Tier, versions: Mapping[str, str]) -> str:
    """The name of one state of sources, compiler and tier: 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps([digest(family), repr(tier), dict(versions)]).encode()).hexdigest()[:16]


def write(directory: Path, family: str, tier: Tier, code: bytes, entries: Mapping[str, int]) -> Path:
    """Write an image file, complete or not at all, and remove old ones of its family and tier."""
    description = {
        "family": family,
        "tier": tier.name,
        "sources": digest(family),
        "versions": dict(compiler_versions()),
        "entries": dict(entries),
    }
    text = json.dumps(description).encode()
    body = code + text
    data = body + _TRAILER.pack(len(text), hashlib.sha256(body).digest(), _MAGIC)
    path = directory / f"{family}-{tier.name}-{key(family, tier, compiler_versions())}.img"
    replace(path, data)
    others = sorted(directory.glob(f"{family}-{tier.name}-*.img"), key=lambda p: -p.stat().st_mtime_ns)
    for old in others[_KEPT:]:
        old.unlink(missing_ok=True)
    return path


def replace(path: Path, data: bytes) -> None:
    """Write a file, complete or not at all."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def describe(data: bytes) -> Description:
    """The description in an image file's bytes; ImageError where a bit of them is not as written."""
    if len(data) < _TRAILER.size:
        raise ImageError(f"{len(data)} bytes are no image")
    length, sha256, magic = _TRAILER.unpack_from(data, len(data) - _TRAILER.size)
    body = memoryview(data)[: -_TRAILER.size]
    if magic != _MAGIC or length > len(body) or hashlib.sha256(body).digest() != sha256:
        raise ImageError("damaged image: its hash is not that of its content")
    try:
        told = json.loads(bytes(body[len(body) - length :]))
        entries = {str(name): int(offset) for name, offset in told["entries"].items()}
        description = Description(
            told["family"], told["tier"], told["sources"], told["versions"], entries, sha256.hex()
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ImageError(f"image without a description: {error!r}") from None
    if not all(0 <= offset < len(body) - length for offset in entries.values()):
        raise ImageError("image with an entry point outside its code")
    return description


class Image:
    """A mapped image; it stays mapped for the life of the process."""

    def __init__(self, path: Path, description: Description, base: int) -> None:
        self.path, self.description, self._base = path, description, base

    def address(self, kernel: str) -> int:
        """Address of a kernel's entry point."""
        if kernel not in self.description.entries:
            raise ImageError(
                f"no kernel {kernel!r} in {self.path.name}: it has {', '.join(self.description.entries)}"
            )
        return self._base + self.description.entries[kernel]

    def function(self, kernel: str, parameters: int) -> Callable[..., None]:
        """A kernel as a Python callable of int64 parameters, which releases the GIL while it runs."""
        return ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * parameters)(self.address(kernel))


def open_image(path: Path) -> Image:
    """Check and map an image file; ImageError where it is damaged, OSError where it cannot be read."""
    with path.open("rb") as file:
        data = file.read()
        description = describe(data)
        return Image(path, description, _map(file.fileno(), len(data), description.sha256))


_mapped: dict[str, int] = {}


def _map(descriptor: int, size: int, sha256: str) -> int:
    """Address of a file mapped readable and executable; one mapping a content."""
    if sha256 not in _mapped:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = ctypes.c_void_p
        libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
        base = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, descriptor, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise ImageError(f"cannot map an image: {os.strerror(ctypes.get_errno())}")
        _mapped[sha256] = base
    return _mapped[sha256]


def default_cache() -> Path:
    """The cache's folder: systemd's CACHE_DIRECTORY, else under XDG_CACHE_HOME or ~/.cache."""
    if directory := os.environ.get("CACHE_DIRECTORY"):
        return Path(directory.split(":")[0]) / "kernels"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "reflexarc" / "kernels"


def private(directory: Path) -> Path:
    """A directory that only this user can write to, made where it is missing; ImageError where it is another's."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = directory.stat()
    except OSError as error:
        raise ImageError(f"kernel cache {directory}: {error.strerror}") from None
    if state.st_uid != os.geteuid() or state.st_mode & 0o022:
        raise ImageError(
            f"kernel cache {directory} is owned by user {state.st_uid} with mode {state.st_mode & 0o777:o}: "
            f"what others can write is not run; it must be owned by {os.geteuid()} with mode 700"
        )
    return directory


class ImageStore:
    """Finds, verifies, builds and maps the images of one tier.

    `tier` is the best this CPU runs (or REFLEXARC_ISA's) unless given; `progress` hears of each image built.
    """

    def __init__(
        self,
        tier: Tier | None = None,
        *,
        cache: Path | None = None,
        installed: Path = INSTALLED,
        progress: Progress | None = None,
    ) -> None:
        self.tier = tier or choose()
        self.cache = cache or default_cache()
        self._installed, self._progress = installed, progress
        self._images: dict[str, Image] = {}

    def load(self, families: Iterable[str]) -> dict[str, Image]:
        """The images of some families; those that are nowhere are built together, once among processes."""
        wanted = list(dict.fromkeys(families))
        missing = [family for family in wanted if not self._find(family)]
        if missing:
            with self._locked():
                missing = [family for family in missing if not self._find(family)]
                self._build(missing)
        return {family: self._images[family] for family in wanted}

    def _find(self, family: str) -> Image | None:
        if family not in self._images:
            for path in self._candidates(family):
                with contextlib.suppress(ImageError, OSError):
                    image = open_image(path)
                    if self._is_current(family, image.description):
                        self._images[family] = image
                        break
        return self._images.get(family)

    def _candidates(self, family: str) -> Iterator[Path]:
        for directory in (self._installed, self.cache):
            yield from sorted(directory.glob(f"{family}-{self.tier.name}-*.img"))

    def _is_current(self, family: str, description: Description) -> bool:
        """Whether an image is of these sources, and of this compiler where there is one to compare with."""
        here = compiler_versions()
        return (
            description.family == family
            and description.tier == self.tier.name
            and description.sources == digest(family)
            and (len(here) < 2 or dict(description.versions) == dict(here))
        )

    def _build(self, families: list[str]) -> None:
        if not families:
            return
        what = f"no kernel image of {', '.join(families)} for {self.tier.name}"
        if importlib.util.find_spec("numba") is None:
            raise ImageError(f"{what}, and no numba to build it with: pip install 'reflexarc[build]'")
        failures = [b for b in build(families, [self.tier], self.cache, progress=self._progress) if b.error]
        if failures:
            raise ImageError(f"{what}: building {failures[0].family} failed: {failures[0].error}")
        if lost := [family for family in families if not self._find(family)]:
            raise ImageError(f"{what}: what was just built for {', '.join(lost)} does not verify")

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the cache against other processes that would build the same."""
        with (private(self.cache) / f".{self.tier.name}.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield
