"""Each TFLite operator by itself, in random shapes and scales, against LiteRT's reference kernels."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("ai_edge_litert", reason="LiteRT (ai-edge-litert) is not installed")

from tflite_models import Net, Ours, Quant, Reference, assert_same

from reflexarc.inference.graph.ir import ModelError
from reflexarc.inference.graph.passes import optimize
from reflexarc.inference.graph.tflite import read

Array = np.ndarray[Any, Any]
SEEDS = range(4)


def compare(net: Net, *outputs: int, runs: int = 3, default: bool = False, steps: int = 0) -> None:
    """Ours against LiteRT's; `default` and not its reference kernels, within so many steps of integers."""
    model = net.bytes(*outputs)
    reference = Reference(model, default=default)
    graph = read(memoryview(model))
    ours = [Ours(graph), Ours(optimize(graph))]
    for _ in range(runs):
        inputs = reference.random(net.rng)
        expected = reference.run(inputs)
        for one in ours:
            for index, (mine, theirs) in enumerate(zip(one.run(inputs), expected, strict=True)):
                if steps:
                    assert np.abs(mine.astype(int) - theirs.astype(int)).max() <= steps
                    continue
                assert_same(mine, theirs, f"output {index}")


def new(seed: int) -> Net:
    net = Net()
    net.rng = np.random.default_rng(seed)
    return net


def quant(net: Net, dtype: str, size: float = 1.0) -> Quant:
    low, high = (-128, 128) if dtype == "int8" else (0, 256)
    return float(net.rng.uniform(0.5, 2) * size / 128), int(net.rng.integers(low, high))


def weights(net: Net, shape: tuple[int, ...], dtype: str, axis: int) -> int:
    """int8 per channel along an axis, or uint8 with one scale and a zero point."""
    if dtype == "uint8":
        return net.constant(net.rng.integers(0, 256, shape).astype(np.uint8), quant(net, dtype))
    scales = net.rng.uniform(0.001, 0.01, shape[axis])
    return net.constant(net.rng.integers(-127, 128, shape).astype(np.int8), (scales, 0), axis)


def bias(net: Net, count: int, w: int, x: Quant) -> int:
    """At the scale LiteRT asks for: that of the products."""
    assert x is not None
    scale = net.model.subgraphs[0].tensors[w].quantization.scale * np.float32(x[0])
    return net.constant(net.rng.integers(-9999, 9999, count).astype(np.int32), (scale, 0))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("op", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_convolutions(op: str, dtype: str, seed: int) -> None:
    net = new(seed)
    rng = net.rng
    h, w, c, kh, kw = (int(n) for n in rng.integers([5, 5, 1, 1, 1], [11, 12, 6, 4, 4]))
    padding, (sy, sx) = int(rng.integers(0, 2)), (int(n) for n in rng.integers(1, 4, 2))
    dilation = int(rng.integers(1, 3)) if sy == sx == 1 and max(h, w) > 2 * max(kh, kw) else 1
    depthwise = op == "DEPTHWISE_CONV_2D"
    multiplier = int(rng.integers(1, 4))
    out = c * multiplier if depthwise else int(rng.integers(1, 9))
    shape = (1, kh, kw, out) if depthwise else (out, kh, kw, c)
    x_quant, y_quant = (None, None) if dtype == "float32" else (quant(net, dtype), quant(net, dtype, 8))
    x = net.input(1, h, w, c, dtype=dtype, quant=x_quant)
    if dtype == "float32":
        kernel = net.constant(rng.standard_normal(shape).astype(np.float32))
        b = net.constant(rng.standard_normal(out).astype(np.float32))
    else:
        kernel = weights(net, shape, dtype, 3 if depthwise else 0)
        b = bias(net, out, kernel, x_quant)
    reach = [(n - 1) * dilation + 1 for n in (kh, kw)]
    size = [
        -(-n // s) if padding == 0 else (n - r) // s + 1
        for n, s, r in zip((h, w), (sy, sx), reach, strict=True)
    ]
    options: dict[str, Any] = {"depthMultiplier": multiplier} if depthwise else {}
    (y,) = net.op(
        op,
        [x, kernel, b],
        ((1, *size, out), dtype, y_quant),
        padding=padding,
        strideH=sy,
        strideW=sx,
        dilationHFactor=dilation,
        dilationWFactor=dilation,
        fusedActivationFunction=int(rng.integers(0, 4)),
        version=3,
        **options,
    )
    compare(net, y)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
def test_transposed_convolution(dtype: str, seed: int) -> None:
    net = new(seed)
    rng = net.rng
    h, w, c, kh, kw, out, sy, sx = (
        int(n) for n in rng.integers([2, 2, 1, 1, 1, 1, 1, 1], [6, 6, 5, 4, 4, 5, 4, 4])
    )
    padding = int(rng.integers(0, 2))
    size = (h * sy, w * sx) if padding == 0 else ((h - 1) * sy + kh, (w - 1) * sx + kw)
    x_quant, y_quant = (None, None) if dtype == "float32" else (quant(net, dtype), quant(net, dtype, 8))
    shape = net.integers(1, *size, out)
    if dtype == "float32":
        kernel = net.constant(rng.standard_normal((out, kh, kw, c)).astype(np.float32))
    else:
        kernel = weights(net, (out, kh, kw, c), dtype, 0)
    x = net.input(1, h, w, c, dtype=dtype, quant=x_quant)
    operands = [shape, kernel, x]
    if seed % 2 and dtype == "int8":
        operands.append(bias(net, out, kernel, x_quant))
    (y,) = net.op(
        "TRANSPOSE_CONV",
        operands,
        ((1, *size, out), dtype, y_quant),
        padding=padding,
        strideH=sy,
        strideW=sx,
        version=3,
    )
    compare(net, y)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
def test_dense(dtype: str, seed: int) -> None:
    net = new(seed)
    rows, inner, out = (int(n) for n in net.rng.integers([1, 1, 1], [4, 40, 20]))
    x_quant, y_quant = (None, None) if dtype == "float32" else (quant(net, dtype), quant(net, dtype, 16))
    x = net.input(rows, 2, inner, dtype=dtype, quant=x_quant)
    if dtype == "float32":
        w = net.constant(net.rng.standard_normal((out, inner)).astype(np.float32))
        b = net.constant(net.rng.standard_normal(out).astype(np.float32))
    else:
        low, high = (-127, 128) if dtype == "int8" else (0, 256)
        data = net.rng.integers(low, high, (out, inner)).astype(dtype)
        if dtype == "int8" and seed % 2:
            w = weights(net, (out, inner), dtype, 0)
        else:
            w = net.constant(data, (0.01, 0 if dtype == "int8" else 121))
        b = bias(net, out, w, x_quant) if seed % 3 else -1
    keep = bool(seed % 2)
    shape = (rows, 2, out) if keep else (rows * 2, out)
    (y,) = net.op(
        "FULLY_CONNECTED",
        [x, w, b],
        (shape, dtype, y_quant),
        fusedActivationFunction=seed % 4,
        keepNumDims=keep,
        version=5,
    )
    compare(net, y)


def test_a_sum_on_a_tie_is_rounded_as_litert_does() -> None:
    """Scales that are powers of two, so that many results lie half way."""
    net = new(0)
    x = net.input(4, 16, dtype="int8", quant=(0.5, 3))
    w = net.constant(net.rng.integers(-2, 3, (8, 16)).astype(np.int8), (0.25, 0))
    (y,) = net.op("FULLY_CONNECTED", [x, w, -1], ((4, 8), "int8", (8.0, -5)), version=5)
    compare(net, y, runs=10)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("op", ["CONV_2D", "FULLY_CONNECTED"])
def test_hybrid_layers(op: str, seed: int) -> None:
    net = new(seed)
    if op == "CONV_2D":
        x = net.input(2, 6, 7, 3)
        w = net.constant(
            net.rng.integers(-127, 128, (5, 3, 3, 3)).astype(np.int8), (np.linspace(0.01, 0.02, 5), 0)
        )
        b = net.constant(net.rng.standard_normal(5).astype(np.float32))
        (y,) = net.op(op, [x, w, b], ((2, 6, 7, 5), "float32"), strideH=1, strideW=1, version=5)
    else:
        x = net.input(3, 32)
        scale = np.linspace(0.01, 0.02, 6) if seed % 2 else 0.01
        w = net.constant(net.rng.integers(-127, 128, (6, 32)).astype(np.int8), (scale, 0))
        b = net.constant(net.rng.standard_normal(6).astype(np.float32))
        (y,) = net.op(
            op,
            [x, w, b],
            ((3, 6), "float32"),
            asymmetricQuantizeInputs=seed > 1,
            fusedActivationFunction=1,
            version=9,
        )
    compare(net, y)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
@pytest.mark.parametrize("op", ["AVERAGE_POOL_2D", "MAX_POOL_2D"])
def test_pools(op: str, dtype: str, seed: int) -> None:
    net = new(seed)
    h, w, kh, kw, sy, sx = (int(n) for n in net.rng.integers([4, 4, 1, 1, 1, 1], [9, 9, 5, 5, 4, 4]))
    padding = int(net.rng.integers(0, 2))
    size = [-(-n // s) if padding == 0 else (n - r) // s + 1 for n, s, r in ((h, sy, kh), (w, sx, kw))]
    q = None if dtype == "float32" else quant(net, dtype)
    x = net.input(1, h, w, 3, dtype=dtype, quant=q)
    (y,) = net.op(
        op,
        [x],
        ((1, *size, 3), dtype, q),
        padding=padding,
        strideH=sy,
        strideW=sx,
        filterHeight=kh,
        filterWidth=kw,
        fusedActivationFunction=int(net.rng.integers(0, 4)),
    )
    compare(net, y)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "int32"])
@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
def test_arithmetic(op: str, dtype: str, seed: int) -> None:
    net = new(seed)
    scaled = dtype in ("int8", "uint8")
    quants = [quant(net, dtype, size) if scaled else None for size in (1, 3, 2)]
    a = net.input(2, 3, 4, 5, dtype=dtype, quant=quants[0])
    shape = [(2, 3, 4, 5), (5,), (1, 3, 1, 5), (1,)][seed]
    b = net.input(*shape, dtype=dtype, quant=quants[1])
    activation = 0 if dtype == "int32" else seed
    (y,) = net.op(op, [a, b], ((2, 3, 4, 5), dtype, quants[2]), fusedActivationFunction=activation)
    compare(net, y)


_BINARY = {
    "DIV": "float32 int32",
    "FLOOR_DIV": "float32 int32",
    "FLOOR_MOD": "float32 int32",
    "SQUARED_DIFFERENCE": "float32 int32",
    "MINIMUM": "float32 int32 int8 uint8",
    "MAXIMUM": "float32 int32 int8 uint8",
    "EQUAL": "float32 int32 bool",
    "NOT_EQUAL": "float32 int32",
    "LESS": "float32 int32",
    "LESS_EQUAL": "float32 int32",
    "GREATER": "float32 int32",
    "GREATER_EQUAL": "float32 int32",
    "LOGICAL_AND": "bool",
    "LOGICAL_OR": "bool",
    "PRELU": "float32",
}
_TESTS = ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL")


@pytest.mark.parametrize(("op", "dtype"), [(op, d) for op, ds in _BINARY.items() for d in ds.split()])
def test_other_binary_operators(op: str, dtype: str) -> None:
    net = new(1)
    q = quant(net, dtype) if dtype in ("int8", "uint8") else None
    a = net.input(1, 3, 4, 5, dtype=dtype, quant=q)
    if "DIV" in op or "MOD" in op:
        odd = net.rng.integers(1, 9, (1, 5)) * 2 - 9
        b = net.constant(odd.astype(dtype))
    else:
        b = net.input(1, 1, 5, dtype=dtype, quant=q)
    (y,) = net.op(op, [a, b], ((1, 3, 4, 5), "bool" if op in _TESTS else dtype, q), version=1)
    compare(net, y)


_FUNCTIONS = {
    "NEG": "float32",
    "ABS": "float32",
    "SIGN": "float32",
    "SQUARE": "float32",
    "EXP": "float32 int8",
    "SIN": "float32",
    "COS": "float32",
    "FLOOR": "float32",
    "CEIL": "float32",
    "ROUND": "float32",
    "SQRT": "float32",
    "RSQRT": "float32",
    "LOG": "float32",
    "LOGICAL_NOT": "bool",
    "RELU": "float32 int8 uint8",
    "RELU6": "float32 int8 uint8",
    "RELU_N1_TO_1": "float32 int8 uint8",
    "TANH": "float32 int8 uint8",
    "LOGISTIC": "float32 int8 uint8",
    "ELU": "float32 int8",
    "HARD_SWISH": "float32 int8 uint8",
    "LEAKY_RELU": "float32 int8 uint8",
    "GELU": "float32",
}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("op", "dtype"), [(op, d) for op, ds in _FUNCTIONS.items() for d in ds.split()])
def test_functions(op: str, dtype: str, seed: int) -> None:
    net = new(seed)
    q = y_quant = None
    if dtype in ("int8", "uint8"):
        q, y_quant = quant(net, dtype, 6), quant(net, dtype, 6 if op != "TANH" else 1)
        if op == "LOGISTIC":
            y_quant = (1 / 256, -128 if dtype == "int8" else 0)
    x = net.input(1, 7, 11, 13, dtype=dtype, quant=q)
    if op in ("SQRT", "RSQRT", "LOG"):
        (x,) = net.op("ABS", [x], ((1, 7, 11, 13), dtype))
    options: dict[str, Any] = {"alpha": 0.3} if op == "LEAKY_RELU" else {}
    if op == "GELU":
        options = {"approximate": bool(seed % 2)}
    (y,) = net.op(op, [x], ((1, 7, 11, 13), dtype, y_quant), **options)
    compare(net, y, default=op in ("ELU", "CEIL", "ROUND"))  # which the reference does not have


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
def test_softmax(dtype: str, seed: int) -> None:
    net = new(seed)
    size = [0.5, 4, 30, 300][seed]
    q = quant(net, dtype, size) if dtype != "float32" else None
    y_quant = None if q is None else (1 / 256, -128 if dtype == "int8" else 0)
    x = net.input(3, 5, [2, 3, 40, 1000][seed], dtype=dtype, quant=q)
    shape = (3, 5, [2, 3, 40, 1000][seed])
    (y,) = net.op("SOFTMAX", [x], (shape, dtype, y_quant), beta=[1.0, 0.5, 1.0, 2.0][seed])
    compare(net, y)


@pytest.mark.parametrize("op", ["LOG_SOFTMAX", "L2_NORMALIZATION"])
def test_rows_of_floats(op: str) -> None:
    net = new(0)
    x = net.input(2, 3, 4, 6)
    compare(net, *net.op(op, [x], ((2, 3, 4, 6), "float32")))


_KINDS = ("float32", "int8", "uint8")


@pytest.mark.parametrize(("source", "target"), [p for p in product(_KINDS, _KINDS) if p != ("float32",) * 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_between_floats_and_integers(source: str, target: str, seed: int) -> None:
    net = new(seed)
    q, y_quant = (quant(net, d, 3) if d != "float32" else None for d in (source, target))
    if seed == 0:  # many values half way
        q, y_quant = (None if v is None else (0.5, v[1]) for v in (q, y_quant))
    x = net.input(5, 64, dtype=source, quant=q)
    op = "DEQUANTIZE" if target == "float32" else "QUANTIZE"
    compare(net, *net.op(op, [x], ((5, 64), target, y_quant)))


_TYPES = ("float32", "int32", "int64", "int8", "uint8", "bool")
_UNDEFINED = ("float32", "uint8")
"""C leaves open what a negative float becomes."""


@pytest.mark.parametrize(("source", "target"), [p for p in product(_TYPES, _TYPES) if p != _UNDEFINED])
def test_cast(source: str, target: str) -> None:
    net = new(0)
    x = net.input(5, 7, dtype=source)
    compare(net, *net.op("CAST", [x], ((5, 7), target)))


_REDUCTIONS = {
    "MEAN": "float32 int8 uint8",
    "SUM": "float32 int8 uint8 int32",
    "REDUCE_MAX": "float32 int8 uint8 int32",
    "REDUCE_MIN": "float32 int8 uint8 int32",
    "REDUCE_PROD": "float32 int32",
}


@pytest.mark.parametrize(("op", "dtype"), [(op, d) for op, ds in _REDUCTIONS.items() for d in ds.split()])
@pytest.mark.parametrize("axes", [(1, 2), (-1,), (0, 3), (0, 1, 2, 3)])
def test_reductions(op: str, dtype: str, axes: tuple[int, ...]) -> None:
    net = new(len(axes))
    q = quant(net, dtype) if dtype in ("int8", "uint8") else None
    y_quant = q if q is None or "REDUCE" in op else quant(net, dtype, 2 if op == "MEAN" else 20)
    x = net.input(2, 5, 6, 7, dtype=dtype, quant=q)
    keep = len(axes) % 2 == 0
    dropped = {axis % 4 for axis in axes}
    shape = [1 if i in dropped else n for i, n in enumerate((2, 5, 6, 7)) if keep or i not in dropped]
    (y,) = net.op(op, [x, net.integers(*axes)], (shape, dtype, y_quant), keepDims=keep)
    wrong = (op, dtype) == ("SUM", "int8")  # the reference reads uint8, and the other kernel sums floats
    compare(net, y, default=wrong, steps=int(wrong))


@pytest.mark.parametrize("op", ["REDUCE_ANY", "REDUCE_ALL"])
def test_reductions_of_truth(op: str) -> None:
    net = new(0)
    x = net.input(2, 3, 4, dtype="bool")
    compare(net, *net.op(op, [x, net.integers(1)], ((2, 4), "bool")))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "int32"])
@pytest.mark.parametrize("op", ["ARG_MAX", "ARG_MIN"])
def test_places(op: str, dtype: str) -> None:
    net = new(0)
    q = quant(net, dtype) if dtype in ("int8", "uint8") else None
    x = net.input(2, 300, 3, dtype=dtype, quant=q)
    outputs = net.op(op, [x, net.integers(1)], ((2, 3), "int32"), outputType=2)
    outputs += net.op(op, [x, net.integers(-1)], ((2, 300), "int64"), outputType=4)
    compare(net, *outputs)


@pytest.mark.parametrize(("half", "corners"), [(False, False), (False, True), (True, False)])
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("size", [(9, 10), (3, 7), (1, 1), (5, 8)])
@pytest.mark.parametrize("op", ["RESIZE_BILINEAR", "RESIZE_NEAREST_NEIGHBOR"])
def test_resize(op: str, size: tuple[int, int], dtype: str, half: bool, corners: bool) -> None:
    net = new(0)
    q = quant(net, dtype) if dtype == "int8" else None
    x = net.input(1, 5, 4, 3, dtype=dtype, quant=q)
    (y,) = net.op(
        op,
        [x, net.integers(*size)],
        ((1, *size, 3), dtype, q),
        alignCorners=corners,
        halfPixelCenters=half,
        version=3,
    )
    compare(net, y)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("adj", [(False, False), (True, False), (False, True)])
def test_matrix_products(dtype: str, adj: tuple[bool, bool]) -> None:
    net = new(3)
    quants = [quant(net, dtype, size) if dtype == "int8" else None for size in (1, 1, 8)]
    shapes = [(2, 4, 3, 6)[:2] + ((6, 3) if adj[0] else (3, 6)), (1, 4) + ((5, 6) if adj[1] else (6, 5))]
    a, b = (net.input(*s, dtype=dtype, quant=q) for s, q in zip(shapes, quants, strict=False))
    compare(net, *net.op("BATCH_MATMUL", [a, b], ((2, 4, 3, 5), dtype, quants[2]), adjX=adj[0], adjY=adj[1]))


def _strided(net: Net, x: int, shape: list[int], q: Quant, dtype: str) -> int:
    begin, end, step = net.integers(0, -3, 3, 1), net.integers(2, 5, 0, 2), net.integers(1, 2, -1, 1)
    return net.op(
        "STRIDED_SLICE",
        [x, begin, end, step],
        ((2, 1, 4), dtype, q),
        beginMask=1,
        endMask=4,
        shrinkAxisMask=8,
    )[0]


def _mirrored(mode: int) -> Callable[[Net, int, list[int], Quant, str], int]:
    def build(net: Net, x: int, shape: list[int], q: Quant, dtype: str) -> int:
        pads = net.constant(np.array([[0, 0], [1, 2], [2, 1], [0, 1]], np.int32))
        return net.op("MIRROR_PAD", [x, pads], ((2, 8, 7, 4), dtype, q), mode=mode)[0]

    return build


def _simple(op: str, result: tuple[int, ...], *constants: Any, **options: Any) -> Callable[..., int]:
    def build(net: Net, x: int, shape: list[int], q: Quant, dtype: str) -> int:
        operands = [x, *(net.constant(np.array(c, np.int32)) for c in constants)]
        return net.op(op, operands, (result, dtype, q), **options)[0]

    return build


def _both(op: str, result: tuple[int, ...], **options: Any) -> Callable[..., int]:
    def build(net: Net, x: int, shape: list[int], q: Quant, dtype: str) -> int:
        other = net.input(*shape, dtype=dtype, quant=q)
        return net.op(op, [x, other], (result, dtype, q), **options)[0]

    return build


MOVES: dict[str, Callable[..., int]] = {
    "reshape": _simple("RESHAPE", (6, 20), [6, -1]),
    "expand": _simple("EXPAND_DIMS", (2, 5, 1, 4, 3), 2),
    "transpose": _simple("TRANSPOSE", (4, 2, 3, 5), [2, 0, 3, 1]),
    "pad": _simple("PAD", (3, 6, 4, 6), [[1, 0], [0, 1], [0, 0], [1, 2]]),
    "reflect": _mirrored(0),
    "symmetric": _mirrored(1),
    "concat": _both("CONCATENATION", (2, 5, 8, 3), axis=-2),
    "pack": _both("PACK", (2, 5, 2, 4, 3), valuesCount=2, axis=2),
    "slice": _simple("SLICE", (1, 3, 4, 2), [1, 2, 0, 1], [-1, 3, 4, 2]),
    "strided": _strided,
    "reverse": _simple("REVERSE_V2", (2, 5, 4, 3), [1]),
    "gather": _simple("GATHER", (2, 2, 3, 4, 3), [[4, 0, 1], [2, 2, 3]], axis=1),
    "gather nd": _simple("GATHER_ND", (3, 4, 3), [[1, 4], [0, 0], [1, 2]]),
    "tile": _simple("TILE", (2, 10, 4, 9), [1, 2, 1, 3]),
    "to batch": _simple("SPACE_TO_BATCH_ND", (12, 3, 2, 3), [2, 3], [[0, 1], [1, 1]]),
    "squeeze": lambda net, x, shape, q, dtype: net.op(
        "SQUEEZE",
        net.op("RESHAPE", [x, net.integers(2, 1, 20, 1, 3)], ((2, 1, 20, 1, 3), dtype, q)),
        ((2, 20, 1, 3), dtype, q),
        squeezeDims=[1],
    )[0],
}


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "int32"])
@pytest.mark.parametrize("case", MOVES)
def test_moves(case: str, dtype: str) -> None:
    net = new(0)
    q = quant(net, dtype) if dtype in ("int8", "uint8") else None
    x = net.input(2, 5, 4, 3, dtype=dtype, quant=q)
    compare(net, MOVES[case](net, x, [2, 5, 4, 3], q, dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
def test_blocks(dtype: str) -> None:
    net = new(0)
    q = quant(net, dtype) if dtype != "float32" else None
    x = net.input(4, 4, 6, 8, dtype=dtype, quant=q)
    crops = net.constant(np.array([[0, 1], [1, 0]], np.int32))
    outputs = [
        *net.op("SPACE_TO_DEPTH", [x], ((4, 2, 3, 32), dtype, q), blockSize=2),
        *net.op("DEPTH_TO_SPACE", [x], ((4, 8, 12, 2), dtype, q), blockSize=2),
        *net.op("BATCH_TO_SPACE_ND", [x, net.integers(2, 2), crops], ((1, 7, 11, 8), dtype, q)),
    ]
    compare(net, *outputs)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32", "int32"])
def test_parts(dtype: str) -> None:
    net = new(0)
    q = quant(net, dtype) if dtype in ("int8", "uint8") else None
    x = net.input(2, 6, 4, dtype=dtype, quant=q)
    outputs = net.op("SPLIT", [net.integers(1), x], *[((2, 2, 4), dtype, q)] * 3, numSplits=3)
    sizes = [((2, n, 4), dtype, q) for n in (1, 3, 2)]
    outputs += net.op("SPLIT_V", [x, net.integers(1, -1, 2), net.integers(-2)], *sizes, numSplits=3)
    if dtype != "uint8":
        outputs += net.op("UNPACK", [x], *[((2, 6), dtype, q)] * 4, num=4, axis=-1)
    compare(net, *outputs)


@pytest.mark.parametrize("dtype", ["int8", "float32", "int32"])
def test_select(dtype: str) -> None:
    net = new(0)
    q = quant(net, dtype) if dtype == "int8" else None
    c = net.input(2, 1, 4, dtype="bool")
    a, b = net.input(2, 3, 4, dtype=dtype, quant=q), net.input(3, 1, dtype=dtype, quant=q)
    compare(net, *net.op("SELECT_V2", [c, a, b], ((2, 3, 4), dtype, q)))


def test_uint8_is_joined_at_the_results_scale() -> None:
    net = new(0)
    quants = [quant(net, "uint8", size) for size in (1, 2, 3)]
    a, b = (net.input(2, 40, dtype="uint8", quant=q) for q in quants[:2])
    compare(net, *net.op("CONCATENATION", [a, b], ((2, 80), "uint8", quants[2]), axis=1))


def test_shapes_are_computed_when_the_model_is_read() -> None:
    """What a reshape to (batch, -1) is converted to."""
    net = new(0)
    x = net.input(2, 3, 4)
    (shape,) = net.op("SHAPE", [x], ((3,), "int32"), outType=2)
    first, last = net.integers(0), net.integers(1)
    (batch,) = net.op("STRIDED_SLICE", [shape, first, last, net.integers(1)], ((), "int32"), shrinkAxisMask=1)
    (wanted,) = net.op("PACK", [batch, net.constant(np.array(-1, np.int32))], ((2,), "int32"), valuesCount=2)
    (y,) = net.op("RESHAPE", [x, wanted], ((2, 12), "float32"))
    graph = read(memoryview(net.bytes(y)))
    assert [node.op for node in graph.nodes] == ["reshape"]
    compare(net, y)


def test_half_floats_are_floats() -> None:
    net = new(0)
    x = net.input(2, 8)
    half = net.constant(net.rng.standard_normal((5, 8)).astype(np.float16))
    (w,) = net.op("DEQUANTIZE", [half], ((5, 8), "float32"), version=3)
    compare(net, *net.op("FULLY_CONNECTED", [x, w, -1], ((2, 5), "float32")))


def lstm(net: Net, kind: str, time_major: bool, clip: float) -> int:
    """A recurrent layer of 5 units on 4 numbers, 6 steps; hybrid: floats on int8 weights."""
    rows, steps, width, units = 2, 6, 4, 5
    shape = (steps, rows, width) if time_major else (rows, steps, width)
    dtype, cell_dtype = ("int8", "int16") if kind == "int8" else ("float32", "float32")
    hidden_quant, cell_quant = ((1 / 128, 5), (2.0**-11, 0)) if kind == "int8" else (None, None)
    x_quant = (0.02, -7) if kind == "int8" else None

    def matrix(columns: int) -> int:
        if kind == "float32":
            return net.constant(net.rng.standard_normal((units, columns)).astype(np.float32))
        data = net.rng.integers(-127, 128, (units, columns)).astype(np.int8)
        return net.constant(data, (float(net.rng.uniform(0.005, 0.02)), 0))

    def gate_bias(w: int) -> int:
        if kind == "int8":
            return bias(net, units, w, x_quant)
        return net.constant(net.rng.standard_normal(units).astype(np.float32))

    def variable(dtype: str, q: Quant) -> int:
        index = net.tensor((rows, units), dtype, q)
        net.model.subgraphs[0].tensors[index].isVariable = True
        return index

    x = net.input(*shape, dtype=dtype, quant=x_quant)
    inner, outer = ([matrix(n) for _ in range(4)] for n in (width, units))
    biases = [gate_bias(w) for w in inner]
    states = [variable(dtype, hidden_quant), variable(cell_dtype, cell_quant)]
    inputs = [x, *inner, *outer, -1, -1, -1, *biases, -1, -1, *states, -1, -1, -1, -1]
    options: dict[str, Any] = {}
    if kind == "int8":
        options["intermediates"] = [net.tensor((0,), "int16", (0.001, 0)) for _ in range(4)]
        options["intermediates"].append(net.tensor((0,), "int8", hidden_quant))
    (y,) = net.op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        ((*shape[:2], units), dtype, hidden_quant),
        fusedActivationFunction=4,
        timeMajor=time_major,
        cellClip=clip,
        version=3,
        **options,
    )
    return y


@pytest.mark.parametrize("clip", [0.0, 0.5])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("kind", ["int8", "float32", "hybrid"])
def test_lstm_keeps_its_state(kind: str, time_major: bool, clip: float) -> None:
    net = new(0)
    compare(net, lstm(net, kind, time_major, clip), runs=4)


def test_operators_that_are_missing_are_named_at_once() -> None:
    net = new(0)
    x = net.input(2, 8)
    (a,) = net.op("CUMSUM", [x, net.integers(1)], ((2, 8), "float32"))
    (b,) = net.op("CUMSUM", [a, net.integers(1)], ((2, 8), "float32"))
    (c,) = net.op("TOPK_V2", [b, net.integers(1)], ((2, 1), "float32"))
    with pytest.raises(ModelError, match=r"not supported: CUMSUM \(2\), TOPK_V2 \(1\)"):
        read(memoryview(net.bytes(c)))


@pytest.mark.parametrize("op", ["ADD", "SUB", "MUL"])
@pytest.mark.parametrize("first", [False, True])
def test_arithmetic_with_one_number_is_a_table(op: str, first: bool) -> None:
    net = new(0)
    number = net.constant(np.array([[57]], np.int8), (0.02, 5))
    x = net.input(3, 256, dtype="int8", quant=(0.03, -8))
    pair = [number, x] if first else [x, number]
    (y,) = net.op(op, pair, ((3, 256), "int8", (0.05, 3)), fusedActivationFunction=1)
    assert [node.op for node in optimize(read(memoryview(net.bytes(y)))).nodes] == ["lookup"]
    compare(net, y)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_padding_goes_into_the_convolution(dtype: str) -> None:
    net = new(0)
    q = quant(net, dtype) if dtype == "int8" else None
    x = net.input(1, 5, 6, 2, dtype=dtype, quant=q)
    pads = net.constant(np.array([[0, 0], [1, 2], [0, 1], [0, 0]], np.int32))
    (x,) = net.op("PAD", [x, pads], ((1, 8, 7, 2), dtype, q))
    if dtype == "int8":
        w = weights(net, (3, 3, 3, 2), dtype, 0)
        b = bias(net, 3, w, q)
    else:
        w = net.constant(net.rng.standard_normal((3, 3, 3, 2)).astype(np.float32))
        b = net.constant(np.ones(3, np.float32))
    y_quant = quant(net, dtype, 8) if dtype == "int8" else None
    ys = [
        net.op("CONV_2D", [x, w, b], ((1, h, v, 3), dtype, y_quant), padding=p, strideH=1, strideW=1)[0]
        for p, h, v in ((0, 8, 7), (1, 6, 5))
    ]
    graph = optimize(read(memoryview(net.bytes(*ys))))
    assert [node.op for node in graph.nodes] == ["conv", "conv"]
    compare(net, *ys)
