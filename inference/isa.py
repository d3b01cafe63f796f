"""The instruction sets kernels are built for, and the one that runs here.

A tier is a base level with named features, never a product. Which tiers this CPU can run is asked of the C
library (active CPU features on x86, the auxiliary vector on ARM), which is right under emulation too, where
/proc/cpuinfo shows the host's. The environment variable REFLEXARC_ISA forces a tier; an unknown or impossible
one is refused.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

X86 = "x86_64-unknown-linux-gnu"
ARM = "aarch64-unknown-linux-gnu"

FORCE = "REFLEXARC_ISA"
"""Environment variable that names the tier to run."""

TARGET = "REFLEXARC_TARGET"
"""Environment variable that names the tier to build for, set by the builder for its children."""


class IsaError(RuntimeError):
    """A tier that does not exist, or that this CPU cannot run."""


@dataclass(frozen=True, slots=True)
class Tier:
    """One instruction set to build kernels for.

    `cpu` and `features` are LLVM's names, `bits` the width of a vector register, `needs` what the CPU must
    have, and `dot` the way four 8-bit products are summed, which fixes the order of packed weights.
    """

    name: str
    triple: str
    cpu: str
    features: str
    bits: int
    needs: frozenset[str]
    dot: Literal["dpbusd", "madd", "sdot", "smull"]

    @property
    def lanes(self) -> int:
        """32-bit lanes of a vector register."""
        return self.bits // 32

    @property
    def arm(self) -> bool:
        """True for 64-bit ARM, False for x86-64."""
        return self.triple == ARM

    @property
    def bias(self) -> int:
        """An 8-bit activation's stored byte minus its value: 128 where bytes are unsigned (x86), else 0."""
        return 0 if self.arm else 128

    @property
    def has_fma(self) -> bool:
        """True where multiply-add rounds once; the floats of all such tiers agree bit for bit."""
        return self.name != "sse42"

    @property
    def weight_order(self) -> tuple[tuple[int, int], ...]:
        """(row, k) of each byte of a packed block of weights: `lanes` rows by 4 consecutive k, one register.

        With w of shape [lanes, 4], the packed bytes are `[w[row, k] for row, k in weight_order]`.
        """
        rows = range(self.lanes)
        if self.dot == "madd":  # x is masked into the 16-bit pairs (k0, k2), shifted into (k1, k3)
            return tuple((row, k) for pair in ((0, 2), (1, 3)) for row in rows for k in pair)
        if self.dot == "smull":  # a half register times a pair of x, summed pairwise
            return tuple((row, k) for pair in ((0, 1), (2, 3)) for row in rows for k in pair)
        return tuple((row, k) for row in rows for k in range(4))


_LEVEL3 = frozenset({"avx2", "bmi1", "bmi2", "f16c", "fma", "lzcnt", "movbe"})
_LEVEL4 = _LEVEL3 | {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}

TIERS: dict[str, Tier] = {
    tier.name: tier
    for tier in (  # best first
        Tier("avx512vnni", X86, "x86-64-v4", "+avx512vnni", 512, _LEVEL4 | {"avx512vnni"}, "dpbusd"),
        Tier("avxvnni", X86, "x86-64-v3", "+avxvnni", 256, _LEVEL3 | {"avxvnni"}, "dpbusd"),
        Tier("avx2", X86, "x86-64-v3", "", 256, _LEVEL3, "madd"),
        Tier("sse42", X86, "x86-64-v2", "", 128, frozenset({"ssse3", "sse4.1", "sse4.2", "popcnt"}), "madd"),
        Tier("i8mm", ARM, "generic", "+neon,+dotprod,+i8mm", 128, frozenset({"dotprod", "i8mm"}), "sdot"),
        Tier("dotprod", ARM, "generic", "+neon,+dotprod", 128, frozenset({"dotprod"}), "sdot"),
        Tier("neon", ARM, "generic", "+neon", 128, frozenset(), "smull"),
    )
}

_CPUID_FEATURES = {  # name: (glibc's leaf index, register, bit); Intel SDM volume 2A, CPUID
    "ssse3": (0, "ecx", 9),
    "fma": (0, "ecx", 12),
    "sse4.1": (0, "ecx", 19),
    "sse4.2": (0, "ecx", 20),
    "movbe": (0, "ecx", 22),
    "popcnt": (0, "ecx", 23),
    "f16c": (0, "ecx", 29),
    "bmi1": (1, "ebx", 3),
    "avx2": (1, "ebx", 5),
    "bmi2": (1, "ebx", 8),
    "avx512f": (1, "ebx", 16),
    "avx512dq": (1, "ebx", 17),
    "avx512cd": (1, "ebx", 28),
    "avx512bw": (1, "ebx", 30),
    "avx512vl": (1, "ebx", 31),
    "avx512vnni": (1, "ecx", 11),
    "lzcnt": (2, "ecx", 5),
    "avxvnni": (6, "eax", 4),
}

_HWCAP, _HWCAP2 = 16, 26
_ARM_FEATURES = {"dotprod": (_HWCAP, 20), "i8mm": (_HWCAP2, 13)}  # Linux, arch/arm64/include/uapi/asm/hwcap.h


class _Cpuid(ctypes.Structure):
    """struct cpuid_feature of glibc's <sys/platform/x86.h>: registers raw, then as usable here."""

    _fields_ = (("raw", ctypes.c_uint32 * 4), ("active", ctypes.c_uint32 * 4))


def _leaves() -> Callable[[int], Any] | None:
    """glibc's pointer to a `_Cpuid` by its leaf index; None where the C library is older than 2.33."""
    leaf = getattr(ctypes.CDLL(None), "__x86_get_cpuid_feature_leaf", None)
    if leaf is not None:
        leaf.restype, leaf.argtypes = ctypes.POINTER(_Cpuid), [ctypes.c_uint]
    return leaf


def _x86_features() -> frozenset[str]:
    leaf = _leaves()
    if leaf is None:
        return _numpy_features()
    registers = ("eax", "ebx", "ecx", "edx")
    return frozenset(
        name
        for name, (index, register, bit) in _CPUID_FEATURES.items()
        if leaf(index)[0].active[registers.index(register)] >> bit & 1
    )


def _numpy_features() -> frozenset[str]:
    """What numpy's own test of the CPU tells, which is less than all: VNNI is then not used."""
    found = vars(import_module("numpy._core._multiarray_umath"))["__cpu_features__"]
    names = {"ssse3": "SSSE3", "sse4.1": "SSE41", "sse4.2": "SSE42", "popcnt": "POPCNT"}
    features = {name for name, theirs in names.items() if found.get(theirs)}
    return frozenset(features | _LEVEL3 if found.get("AVX2") and found.get("FMA3") else features)


def _arm_features() -> frozenset[str]:
    getauxval = ctypes.CDLL(None).getauxval
    getauxval.restype, getauxval.argtypes = ctypes.c_ulong, [ctypes.c_ulong]
    return frozenset(name for name, (word, bit) in _ARM_FEATURES.items() if getauxval(word) >> bit & 1)


def machine() -> tuple[str, frozenset[str]]:
    """(triple, features) of this CPU as this process may use it; ("", none) where there is no tier for it."""
    if struct.calcsize("P") == 8:
        if platform.machine() == "x86_64":
            return X86, _x86_features()
        if platform.machine() == "aarch64":
            return ARM, _arm_features()
    return "", frozenset()


def identity() -> str:
    """This CPU as far as kernels can tell: triple, features and, on x86, its family and model."""
    triple, features = machine()
    leaf = _leaves() if triple == X86 else None
    signature = leaf(0)[0].raw[0] if leaf else 0
    return f"{triple} {signature:x} {' '.join(sorted(features))}"


def runnable() -> list[Tier]:
    """The tiers this CPU can run, best first."""
    triple, features = machine()
    return [tier for tier in TIERS.values() if tier.triple == triple and tier.needs <= features]


def named(name: str) -> Tier:
    """The tier of that name; IsaError if there is none."""
    if name not in TIERS:
        raise IsaError(f"unknown instruction set {name!r}: it must be one of {', '.join(TIERS)}")
    return TIERS[name]


def choose() -> Tier:
    """The tier to run: REFLEXARC_ISA's where set, else the best this CPU runs; IsaError if there is none."""
    here = runnable()
    forced = os.environ.get(FORCE)
    if forced:
        tier = named(forced)
        if tier not in here:
            raise IsaError(
                f"{FORCE}={forced}: this CPU runs only {', '.join(t.name for t in here) or 'none of them'}"
            )
        return tier
    if not here:
        raise IsaError(f"no instruction set for this machine ({platform.machine()}): x86-64 needs SSE4.2")
    return here[0]


def target() -> Tier:
    """The tier to build for: REFLEXARC_TARGET's where set (any machine builds any), else the one to run."""
    name = os.environ.get(TARGET)
    return named(name) if name else choose()
