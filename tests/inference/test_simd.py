"""Every operation of simd against numpy, on every instruction set that runs here or under emulation."""

from pathlib import Path

import numpy as np
import pytest
from compile_for import Code, compile_for
from emulator import MEMORY, Call, execute, launcher, why_not
from numpy.typing import NDArray

from reflexarc.inference.isa import TIERS, Tier

KERNELS = Path(__file__).parent / "simd_kernels.py"
RNG = np.random.default_rng(2024)
F32 = np.float32


@pytest.fixture(params=TIERS.values(), ids=TIERS.keys())
def tier(request: pytest.FixtureRequest) -> Tier:
    if launcher(request.param) is None:
        pytest.skip(why_not(request.param))
    return request.param


def run(tier: Tier, kernel: str, *operands: NDArray | int, output: int) -> bytes:
    """The `output` bytes that a kernel of up to two operands writes, over a fill of 0xAA."""
    built: Code = compile_for(tier, KERNELS)
    memory, arguments = bytearray(), []
    for operand in operands:
        if isinstance(operand, int):
            arguments.append(operand)
            continue
        arguments.append(MEMORY + len(memory))
        memory += operand.tobytes() + bytes(-operand.nbytes % 64)
    start = len(memory)
    memory += b"\xaa" * output
    call = Call(built.entries[kernel], [*arguments, MEMORY + start])
    return execute(tier, built.code, bytes(memory), [call])[start:]


def rows(data: bytes, kind: type, count: int) -> list[NDArray]:
    """The first rows of 16 elements."""
    return list(np.frombuffer(data, kind).reshape(-1, 16)[:count])


def bits(x: NDArray) -> NDArray:
    return np.ascontiguousarray(x).view(np.uint32)


X = RNG.normal(0, 1, 16).astype(F32)
Y = RNG.normal(0, 1, 16).astype(F32)
SPECIAL = np.array(
    [0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, 0.5, -0.5, 1.5, 2.5, -2.5, 1, 2, 3], F32
)


@pytest.mark.parametrize(("x", "y"), [(X, Y), (SPECIAL, X), (Y, SPECIAL), (SPECIAL, SPECIAL[::-1].copy())])
def test_float_arithmetic(tier: Tier, x: NDArray, y: NDArray) -> None:
    with np.errstate(all="ignore"):
        expected = [
            *(x + y, x - y, x * y, x / y, -x, np.abs(x), np.sqrt(np.abs(x)), np.floor(x)),
            *(np.where(x < y, x, y), np.where(x > y, x, y), x * y + x, F32(1) - x * F32(2)),
        ]
    for got, right in zip(rows(run(tier, "floats", x, y, output=768), F32, 12), expected, strict=True):
        nan = np.isnan(right)
        assert np.array_equal(np.isnan(got), nan)
        assert np.array_equal(bits(got)[~nan], bits(right.astype(F32))[~nan])


def test_fma_rounds_once_where_there_is_fma(tier: Tier) -> None:
    x, y = (RNG.uniform(1, 2, 16).astype(F32) for _ in range(2))
    once = (x.astype(np.float64) * y + x).astype(F32)  # exact in float64: 49 bits
    expected = once if tier.has_fma else x * y + x
    assert (once != x * y + x).any()
    got = np.frombuffer(run(tier, "fused", x, y, output=128), F32)
    assert np.array_equal(got[:16], expected)
    assert got[16] == expected[0]


def test_comparisons_are_ordered(tier: Tier) -> None:
    for x, y in ((SPECIAL, SPECIAL[::-1].copy()), (SPECIAL, SPECIAL)):
        got = rows(run(tier, "comparisons", x, y, output=384), np.int32, 6)
        for one, right in zip(got, (x < y, x <= y, x > y, x >= y, x == y, x != y), strict=True):
            assert np.array_equal(one, right)


def test_integer_arithmetic_wraps(tier: Tier) -> None:
    x = RNG.integers(-(2**31), 2**31, 16).astype(np.int32)
    y = RNG.integers(-(2**31), 2**31, 16).astype(np.int32)
    x[:2], y[:2] = (-(2**31), 2**31 - 1), (-1, 2**31 - 1)
    expected = [
        *(x + y, x - y, x * y, x & y, x | y, x ^ y, x << 3, x >> 3, (x.view(np.uint32) >> 3).view(np.int32)),
        *(np.minimum(x, y), np.maximum(x, y), np.where(x < y, x, 7)),
    ]
    for got, right in zip(rows(run(tier, "integers", x, y, output=768), np.int32, 12), expected, strict=True):
        assert np.array_equal(got, right)


def test_registers_are_kept(tier: Tier) -> None:
    x, y = RNG.integers(0, 256, 256).astype(np.uint8), RNG.integers(0, 256, 64).astype(np.uint8)
    got = np.frombuffer(run(tier, "registers", x, y, output=320), np.uint8)
    width = tier.bits // 8
    assert np.array_equal(got[: 3 * width], x[: 3 * width])
    assert np.array_equal(got[3 * width : 4 * width], y[:width])
    assert (got[4 * width : 5 * width].view(np.int16) == -3).all()


def test_conversions(tier: Tier) -> None:
    x = np.array(
        [0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 2147483520, -2147483648, 1e6 + 0.5, *X[:6]], F32
    )
    y = RNG.integers(-(2**31), 2**31, 16).astype(np.int32)
    data = run(tier, "conversions", x, y, output=320)
    whole = np.rint(x).astype(np.int32)
    got = rows(data, np.int32, 5)
    assert np.array_equal(got[0], whole)
    assert np.array_equal(got[1].view(F32), y.astype(F32))
    assert np.array_equal(got[2], y)
    assert np.array_equal(got[3], x.view(np.int32))
    assert np.array_equal(got[4][: tier.lanes], whole[: tier.lanes])


@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 15, 16])
def test_widths(tier: Tier, n: int) -> None:
    x = RNG.integers(0, 256, 64).astype(np.uint8)
    data = run(tier, "widths", x, n, output=576)
    got = np.frombuffer(data, np.uint8)
    words, lanes = x.view(np.int32), tier.lanes
    assert np.array_equal(got[:64].view(np.int32), x[:16].view(np.int8))
    assert np.array_equal(got[64:128].view(np.int32), x[:16])
    assert np.array_equal(got[128:192].view(np.int32), x[:32].view(np.int16))
    assert np.array_equal(got[192:208].view(np.int8), words.astype(np.int8))
    assert np.array_equal(got[208:240].view(np.int16), words.astype(np.int16))
    first = np.where(np.arange(16) < n, words, 0)
    assert np.array_equal(got[256:320].view(np.int32), first)
    assert (got[320:384].view(F32)[:n] == 2).all()
    assert np.array_equal(got[384:448].view(np.int32)[:n], words[:n])
    assert np.array_equal(got[448:464].view(np.int8)[:n], words[:n].astype(np.int8))
    for end, last in ((384, 320 + 4 * n), (448, 384 + 4 * n), (464, 448 + n)):
        assert (got[last:end] == 0xAA).all()
    assert np.array_equal(got[464 : 464 + lanes], x[:lanes])
    assert np.array_equal(got[480 : 480 + 2 * lanes].view(np.int16), x[:lanes])
    assert np.array_equal(got[512 : 512 + 4 * lanes].view(np.int32), first[:lanes])


@pytest.mark.parametrize("n", [0, 2, 4])
def test_activations(tier: Tier, n: int) -> None:
    q = RNG.integers(-128, 128, 16)
    q[:2] = -128, 127
    stored = (q + tier.bias).astype(np.uint8)
    got = np.frombuffer(run(tier, "activations", stored, n, output=384), np.uint8)
    lanes = tier.lanes
    assert np.array_equal(got[:64].view(np.int32), q)
    assert np.array_equal(got[64:80], stored)
    assert np.array_equal(got[128 : 128 + 4 * lanes].view(np.int32), q[:lanes])
    assert np.array_equal(got[192 : 192 + lanes], stored[:lanes])
    for at in (256, 272):
        assert np.array_equal(got[at : at + n], stored[:n])
        assert (got[at + n : at + 16] == 0xAA).all()
    assert got[320:324].view(np.int32)[0] == lanes


def test_scalars(tier: Tier) -> None:
    x, y = RNG.integers(128, 256, 64).astype(np.uint8), np.full(1, 1.1, F32)
    got = np.frombuffer(run(tier, "scalars", x, y, output=64), np.uint8)
    assert got[0] == x[0]
    assert np.array_equal(got[2:4], x[:2])
    assert np.array_equal(got[4:8], x[:4])
    assert np.array_equal(got[8:16], x[:8])
    assert got[16:20].view(F32)[0] == y[0] * y[0]
    assert got[24:32].view(np.int64)[0] == x[0]
    assert got[32:40].view(np.int64)[0] == x[:1].view(np.int8)[0]


def test_every_finite_half(tier: Tier) -> None:
    x = np.arange(65536, dtype=np.uint16)
    finite = np.isfinite(x.view(np.float16))
    got = np.frombuffer(run(tier, "halves", x, 65536, output=4 * 65536 + 64), F32)[:65536]
    assert np.array_equal(bits(got)[finite], bits(x.view(np.float16).astype(F32))[finite])


def pack(tier: Tier, blocks: NDArray) -> NDArray:
    """Blocks of weights [n, lanes, 4] in the tier's order."""
    row, k = np.array(tier.weight_order).T
    return np.ascontiguousarray(blocks[:, row, k])


@pytest.mark.parametrize("extremes", [False, True])
def test_dot_is_exact(tier: Tier, extremes: bool) -> None:
    w = RNG.integers(-128, 128, (64, tier.lanes, 4)).astype(np.int8)
    q = RNG.integers(-128, 128, (64, 4)).astype(np.int8)
    if extremes:
        w = RNG.choice(np.array([-128, 127], np.int8), w.shape)
        q = RNG.choice(np.array([-128, 127], np.int8), q.shape)
        w[0], q[0], w[1], q[1], w[2], q[2] = -128, -128, -128, 127, 127, 127
    stored = q.astype(np.int64) + tier.bias
    exact = (w.astype(np.int64) * stored[:, None, :]).sum(2)
    data = run(tier, "products", pack(tier, w), stored.astype(np.uint8), output=4 * tier.lanes * 65)
    got = np.frombuffer(data, np.int32).reshape(65, tier.lanes)
    assert np.array_equal(got[:64], exact)
    assert np.array_equal(got[64], exact.sum(0))


def test_pairs_of_16_bits(tier: Tier) -> None:
    n = 2 * tier.lanes
    x, y = (RNG.integers(-(2**15) + 1, 2**15, n).astype(np.int16) for _ in range(2))
    x[:2], y[:2] = -(2**15) + 1, -(2**15) + 1
    exact = (x.astype(np.int64) * y).reshape(-1, 2).sum(1) + 5
    got = np.frombuffer(run(tier, "pairs", x, y, output=64), np.int32)[: tier.lanes]
    assert np.array_equal(got, exact)


POINTS = np.concatenate(
    [
        *(np.linspace(-a, a, 4096, dtype=F32) for a in (1, 10, 90, 200)),
        np.array(
            [np.nan, np.inf, -np.inf, 0, -0.0, 88.72283, 88.8, -87.33, -87.4, 1e-30, -1e-30, 0.625, *X[:4]],
            F32,
        ),
    ]
)


def polynomials(tier: Tier) -> NDArray:
    data = run(tier, "functions", POINTS, len(POINTS), output=12 * len(POINTS))
    return np.frombuffer(data, F32).reshape(3, -1)


def test_functions_are_near(tier: Tier) -> None:
    wide = POINTS.astype(np.float64)
    with np.errstate(all="ignore"):
        exact = np.stack([np.exp(wide), np.tanh(wide), 1 / (1 + np.exp(-wide))])
        right = exact.astype(F32)
        got = polynomials(tier)
        ordinary = np.isfinite(right) & ((np.abs(right) >= np.finfo(F32).tiny) | (right == 0))
        error = np.abs(got - exact) / np.spacing(np.abs(right))
    assert np.max(error[ordinary & (right != 0)]) < 3
    assert (got[ordinary & (right == 0)] < 1e-37).all()
    assert np.array_equal(np.isnan(got), np.isnan(right))
    assert np.array_equal(got[0][np.isinf(right[0])], right[0][np.isinf(right[0])])


def test_functions_agree_wherever_there_is_fma() -> None:
    tiers = [tier for tier in TIERS.values() if tier.has_fma and launcher(tier) is not None]
    answers = {polynomials(tier).tobytes() for tier in tiers}
    assert len(answers) == 1, [tier.name for tier in tiers]


def test_reductions_have_one_order(tier: Tier) -> None:
    x = RNG.normal(0, 1, 160).astype(F32)
    got = np.frombuffer(run(tier, "reductions", x, 160, output=64), F32)
    lanes = np.zeros(16, F32)
    for row in x.reshape(-1, 16):
        lanes = lanes + row
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    assert got[0] == lanes[0]
    assert got[1] == x[:16].max()
    assert got[2] == x[:16].min()
    assert got[3:4].view(np.int32)[0] == x[:16].view(np.int32).sum(dtype=np.int32)


INSTRUCTIONS = {
    "avx512vnni": ("vpdpbusd", "zmm", "vfmadd", "vcvtps2dq", "vcvtph2ps"),
    "avxvnni": ("vpdpbusd", "vfmadd", "vcvtps2dq", "vcvtph2ps"),
    "avx2": ("vpmaddwd", "vpmovsxbw", "vfmadd", "vcvtps2dq", "vcvtph2ps"),
    "sse42": ("pmaddwd", "pmovsxbw", "cvtps2dq"),
    "i8mm": ("sdot", "fmla", "fcvtns", "fcvtl"),
    "dotprod": ("sdot", "fmla", "fcvtns", "fcvtl"),
    "neon": ("smull", "sadalp", "fmla", "fcvtns", "fcvtl"),
}


@pytest.mark.parametrize("name", TIERS)
def test_the_instructions_meant(name: str) -> None:
    """The compiler kept to the tier: its instructions are there, those of no lower one, and no call is."""
    assembly = compile_for(TIERS[name], KERNELS).assembly
    for instruction in INSTRUCTIONS[name]:
        assert instruction in assembly, instruction
    for call in ("\tcall", "\tbl\t", "\tblr\t"):
        assert call not in assembly
    assert "maddubsw" not in assembly
    if name in ("avx2", "avxvnni"):
        assert "zmm" not in assembly
    if name == "sse42":
        assert "ymm" not in assembly
        assert "vfmadd" not in assembly
