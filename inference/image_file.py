"""The file format of a kernel image.

Machine code at offset 0 (flat, position-independent, no data to write), so that the file can be mapped as it
is; then a JSON description and its length; then a trailer with the SHA-256 of all before it.
"""

import contextlib
import functools
import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from reflexarc.inference.families import digest
from reflexarc.inference.isa import Tier

_MAGIC = b"RFXIMG01"
_LENGTH = struct.Struct("<Q")  # bytes of the description
_TRAILER = struct.Struct("<32s8s")  # SHA-256 of all before, magic
_KEPT = 4  # images of one family and tier that stay in a folder, so that versions of the package can share it


class ImageError(RuntimeError):
    """An image that cannot be used, found or built."""


@dataclass(frozen=True, slots=True)
class Description:
    """What an image says of itself: the digest of its sources, its compiler, the offsets of its kernels."""

    family: str
    tier: str
    sources: str
    versions: Mapping[str, str]
    entries: Mapping[str, int]

    def matches(self, family: str, tier: Tier) -> bool:
        """Whether it is of today's sources, and of the compiler here where there is one to compare with."""
        here = compiler_versions()
        return (
            (self.family, self.tier) == (family, tier.name)
            and self.sources == digest(family)
            and (len(here) < 2 or self.versions == here)
        )


@functools.cache
def compiler_versions() -> dict[str, str]:
    """Versions of numba and llvmlite here, of those that are installed."""
    from importlib import metadata

    found = {}
    for name in ("numba", "llvmlite"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[name] = metadata.version(name)
    return found


def key(sources: str, tier: Tier) -> str:
    """A name for sources (their `digest`), compiler and tier: 16 hexadecimal digits."""
    state = json.dumps([sources, repr(tier), compiler_versions()], sort_keys=True)
    return hashlib.sha256(state.encode()).hexdigest()[:16]


def write(
    directory: Path, family: str, tier: Tier, sources: str, code: bytes, entries: Mapping[str, int]
) -> Path:
    """Write an image, complete or not at all, and remove the oldest of its family and tier.

    sources: the `digest` of the family when its compilation began.
    """
    description = Description(family, tier.name, sources, compiler_versions(), dict(entries))
    text = json.dumps(asdict(description)).encode()
    body = code + text + _LENGTH.pack(len(text))
    path = directory / f"{family}-{tier.name}-{key(sources, tier)}.img"
    replace(path, body + _TRAILER.pack(hashlib.sha256(body).digest(), _MAGIC))
    for old in candidates(directory, family, tier)[_KEPT:]:
        old.unlink(missing_ok=True)
    return path


def candidates(directory: Path, family: str, tier: Tier) -> list[Path]:
    """Files in a folder that may be images of a family and tier, the newest first."""
    dated = []
    for path in directory.glob(f"{family}-{tier.name}-*.img"):
        with contextlib.suppress(FileNotFoundError):  # another process removed it
            dated.append((path.stat().st_mtime_ns, path))
    return [path for _, path in sorted(dated, reverse=True)]


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
    """The description in an image's bytes; ImageError where one bit of them is not as it was written."""
    if len(data) < _TRAILER.size + _LENGTH.size:
        raise ImageError(f"{len(data)} bytes are no image")
    sha256, magic = _TRAILER.unpack_from(data, len(data) - _TRAILER.size)
    body = data[: -_TRAILER.size]
    if magic != _MAGIC or hashlib.sha256(body).digest() != sha256:
        raise ImageError("damaged image: its hash is not that of its content")
    (length,) = _LENGTH.unpack_from(body, len(body) - _LENGTH.size)
    code, text = len(body) - _LENGTH.size - length, body[-_LENGTH.size - length : -_LENGTH.size]
    description = Description(**json.loads(text))
    if not all(0 <= offset < code for offset in description.entries.values()):
        raise ImageError("image with an entry point outside its code")
    return description
