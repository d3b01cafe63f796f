"""Kernel images: found, verified, rebuilt, mapped; and what makes one stale."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reflexarc.inference import families, image, image_file
from reflexarc.inference.image import ImageStore, find, open_image
from reflexarc.inference.image_file import ImageError, describe
from reflexarc.inference.isa import choose

FAMILY = "team"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds one image."""
    cache = tmp_path_factory.mktemp("built")
    cache.chmod(0o700)
    ImageStore(cache=cache).load([FAMILY])
    return cache


@pytest.fixture
def cache(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "cache")
    (tmp_path / "cache").chmod(0o700)
    return tmp_path / "cache"


def the_file(directory: Path) -> Path:
    (path,) = directory.glob("*.img")
    return path


def never(*_: object, **__: object) -> list[object]:
    raise AssertionError("nothing needs building")


def test_built_once_then_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    cache = tmp_path / "a" / "cache"
    first = ImageStore(cache=cache, progress=told.append).load([FAMILY])[FAMILY]
    assert [t.family for t in told] == [FAMILY]
    assert cache.stat().st_mode & 0o777 == 0o700
    monkeypatch.setattr("reflexarc.inference.build.spawn.build", never)
    again = ImageStore(cache=cache).load([FAMILY, FAMILY])[FAMILY]
    assert again.address("run") == first.address("run")
    assert not [p for p in cache.iterdir() if p.suffix not in (".img", ".lock") and p.name[0] != "."]


def test_an_installed_image_comes_first(built: Path, tmp_path: Path) -> None:
    store = ImageStore(cache=tmp_path / "unused", installed=built)
    assert store.load([FAMILY])[FAMILY].path.parent == built
    assert not (tmp_path / "unused").exists()


def test_without_numba_an_installed_image_will_do(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image_file, "compiler_versions", dict)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert ImageStore(cache=tmp_path / "none", installed=built).load([FAMILY])
    with pytest.raises(
        ImageError, match=r"no kernel image of team for \w+, and no numba to build it with: pip install"
    ):
        ImageStore(cache=tmp_path / "none").load([FAMILY])


def test_another_compiler_makes_another_image(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tier = choose()
    before = image_file.key(families.digest(FAMILY), tier)
    monkeypatch.setattr(image_file, "compiler_versions", lambda: {"numba": "99", "llvmlite": "99"})
    assert find(cache, FAMILY, tier) is None
    assert image_file.key(families.digest(FAMILY), tier) != before


def test_mapped_readable_and_executable(cache: Path) -> None:
    found = open_image(the_file(cache))
    address = found.address("run_alone")
    assert address % 64 == 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if start <= address < end:
            assert line.split()[1] == "r-xp"
            break
    else:
        pytest.fail("not mapped")
    with pytest.raises(ImageError, match=r"no kernel 'walk' in team-.*: it has .*run_alone"):
        found.address("walk")
    found.function("run_alone", 2)(0, 0)  # an empty program


def test_where_nothing_may_become_executable(cache: Path) -> None:
    """As under systemd's MemoryDenyWriteExecute=: no memory may become executable."""
    code = f"""
import ctypes, mmap
from pathlib import Path
from reflexarc.inference.image import open_image
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, REFUSE_EXEC_GAIN, 0, 0, 0):
    raise SystemExit(77)
try:
    mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
except OSError:
    open_image(Path({str(the_file(cache))!r})).function("run_alone", 2)(0, 0)
    print("ran")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode == 77:
        pytest.skip("this kernel has no PR_SET_MDWE (Linux 6.3)")
    assert done.stdout == "ran\n", done.stderr


def test_every_truncation_and_any_flipped_bit_is_seen(built: Path) -> None:
    data = the_file(built).read_bytes()
    describe(data)
    for length in [*range(0, len(data), 13), len(data) - 1]:
        with pytest.raises(ImageError):
            describe(data[:length])
    for at in [*range(0, len(data), 11), *range(len(data) - 48, len(data))]:
        wrong = bytearray(data)
        wrong[at] ^= 1 << at % 8
        with pytest.raises(ImageError):
            describe(bytes(wrong))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "directory"])
def test_a_damaged_image_is_rebuilt(cache: Path, damage: str) -> None:
    path = the_file(cache)
    data = bytearray(path.read_bytes())
    if damage == "directory":
        path.rename(cache / "elsewhere")
        path.with_name(f"{FAMILY}-{choose().name}-0.img").mkdir()
    elif damage == "flipped":
        data[100] ^= 4
        path.write_bytes(data)
    else:
        path.write_bytes(data[: 1000 if damage == "truncated" else 0])
    told = []
    ImageStore(cache=cache, progress=told.append).load([FAMILY])[FAMILY].function("run_alone", 2)(0, 0)
    assert [t.error for t in told] == [""]


def test_a_cache_others_can_write_to_is_refused(cache: Path) -> None:
    cache.chmod(0o722)
    with pytest.raises(ImageError, match=r"with mode 722: code that others can write is not run"):
        ImageStore(cache=cache).load([FAMILY])


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ImageError, match=r"kernel cache .*file/cache: Not a directory"):
        ImageStore(cache=tmp_path / "file" / "cache").load([FAMILY])


def test_default_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("CACHE_DIRECTORY", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert image.default_cache() == tmp_path / "reflexarc" / "kernels"
    monkeypatch.setenv("CACHE_DIRECTORY", f"{tmp_path}/first:{tmp_path}/second")
    assert image.default_cache() == tmp_path / "first" / "kernels"


def test_old_images_go(cache: Path) -> None:
    tier, path = choose(), the_file(cache)
    for i in range(6):
        old = cache / f"{FAMILY}-{tier.name}-{i}.img"
        old.write_bytes(b"")
        os.utime(old, (i, i))
    image_file.write(cache, FAMILY, tier, families.digest(FAMILY), b"code", {"entry": 0})
    names = [p.name for p in image_file.candidates(cache, FAMILY, tier)]
    assert len(names) == 4
    assert path.name in names


def test_two_processes_build_once(tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from reflexarc.inference.image import ImageStore
ImageStore(cache=Path(sys.argv[1]), progress=lambda b: print("built", b.family)).load(["{FAMILY}"])
print("loaded")
"""
    command = [sys.executable, "-c", code, str(tmp_path / "cache")]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = "".join(process.communicate(timeout=120)[0] for process in both)
    assert said.count("loaded") == 2
    assert said.count("built") == 1


def test_a_reader_never_sees_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "x.img"
    image_file.replace(path, b"a" * 100)
    with pytest.raises(TypeError):
        image_file.replace(path, "not bytes")  # type: ignore[arg-type]
    assert [p.name for p in tmp_path.iterdir()] == ["x.img"]
    assert path.read_bytes() == b"a" * 100


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the package's sources, which `families` looks at."""
    copy = tmp_path / "inference"
    shutil.copytree(families.ROOT, copy, ignore=shutil.ignore_patterns("__pycache__", "images"))
    monkeypatch.setattr(families, "ROOT", copy)
    families._imported.cache_clear()
    return copy


@pytest.mark.parametrize(
    "edited", ["simd/dot.py", "simd/arithmetic.py", "kernels/team.py", "build/elf.py", "team_block.py"]
)
def test_an_edit_of_what_it_is_made_from_is_a_new_image(tree: Path, edited: str) -> None:
    tier = choose()
    before = image_file.key(families.digest(FAMILY), tier)
    assert image_file.key(families.digest(FAMILY), tier) == before
    path = tree / edited
    path.write_text(path.read_text() + "\n# edited\n")
    assert image_file.key(families.digest(FAMILY), tier) != before


def test_an_edit_elsewhere_is_none(tree: Path) -> None:
    before = families.digest(FAMILY)
    (tree / "image.py").write_text("")
    (tree / "kernels" / "another.py").write_text("KERNELS = ()")
    assert families.digest(FAMILY) == before


def test_sources_are_followed_through_imports(tree: Path) -> None:
    (tree / "kernels" / "one.py").write_text(
        "from reflexarc.inference.kernels._two import (\n    a,\n    b,\n)\n"
    )
    (tree / "kernels" / "_two.py").write_text("from reflexarc.inference import words\n")
    (tree / "words.py").write_text("x = 1\n")
    names = {path.relative_to(tree).as_posix() for path in families.sources("one")}
    assert {"kernels/one.py", "kernels/_two.py", "words.py", "simd/dot.py", "isa.py"} <= names
    assert "image.py" not in names
    with pytest.raises(ValueError, match="unknown kernel family 'none': it must be one of"):
        list(families.sources("none"))


def test_it_is_quick(built: Path) -> None:
    start = time.perf_counter()
    ImageStore(cache=built).load([FAMILY])
    assert time.perf_counter() - start < 0.2
