"""Lowering: values as views, and each operation in every shape it takes, against the plain twin."""

from __future__ import annotations

from typing import Any

import naive_graph
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import DTYPES, Graph, Node, QuantParams, Tensor
from reflexarc.inference.graph.ops import check_ops, infer
from reflexarc.inference.isa import TIERS
from reflexarc.inference.lower import lower
from reflexarc.inference.lower.value import Value, dense_steps, rows
from reflexarc.inference.program import ProgramError, Ref
from reflexarc.inference.session import Session
from reflexarc.inference.tiles import Work, conv8_tiles, conv32_tiles

RNG = np.random.default_rng(3)
F = np.float32


class Builder:
    """A graph by hand; shapes follow from the operations."""

    def __init__(self) -> None:
        self.graph = Graph("by hand")

    def input(self, *shape: int, quant: tuple[float, int] | None = None) -> str:
        name = self._add(f"x{len(self.graph.inputs)}", "f32" if quant is None else "i8", shape, None, quant)
        self.graph.inputs.append(name)
        return name

    def constant(self, data: NDArray[Any], scale: Any = None, axis: int | None = None) -> str:
        dtype = {"float32": "f32", "int8": "i8", "int32": "i32"}[data.dtype.name]
        name = self._add(f"c{len(self.graph.tensors)}", dtype, data.shape, data, None)
        if scale is not None:
            scales = np.atleast_1d(np.asarray(scale, F))
            self.graph.tensors[name].quant = QuantParams(scales, np.zeros(len(scales), np.int32), axis)
        return name

    def node(
        self, op: str, *inputs: str, quant: tuple[float, int] | None = None, dtype: str = "", **attrs: Any
    ) -> str:
        tensors = [self.graph.tensors[name] for name in inputs]
        name = f"{op}{len(self.graph.nodes)}"
        node = Node(op, name, list(inputs), [name], attrs)
        kind = dtype or ("i8" if quant else tensors[0].dtype)
        keep = tensors[0].quant if op in ("reshape", "transpose", "max_pool") else None
        self._add(name, kind, infer(node, tensors), None, quant)
        if keep:
            self.graph.tensors[name].quant = keep
        self.graph.nodes.append(node)
        return name

    def _add(self, name: str, dtype: str, shape: Any, data: Any, quant: tuple[float, int] | None) -> str:
        params = quant and QuantParams(np.array([quant[0]], F), np.array([quant[1]], np.int32))
        self.graph.tensors[name] = Tensor(name, dtype, tuple(shape), data, params or None)
        return name

    def check(self, *outputs: str, runs: int = 3) -> Session:
        """Run beside the twin, with buffers kept and with buffers shared."""
        self.graph.outputs = list(outputs)
        check_ops(self.graph)
        kept, plain = Session(self.graph, keep=True), Session(self.graph)
        for _ in range(runs):
            feeds = {n: random(self.graph.tensors[n]) for n in self.graph.inputs}
            twin = naive_graph.run(self.graph, feeds)
            ys, others = kept.run(*feeds.values()), plain.run(*feeds.values())
            for name in kept.tensors:
                compare(name, kept.tensor(name), twin[name])
            for name, y, other in zip(outputs, ys, others, strict=True):
                compare(name, y, twin[name])
                np.testing.assert_array_equal(y, other)
        return plain


def random(tensor: Tensor) -> NDArray[Any]:
    if tensor.dtype == "f32":
        return (RNG.standard_normal(tensor.shape) * 3).astype(F)
    info = np.iinfo(DTYPES[tensor.dtype])
    return RNG.integers(info.min, info.max + 1, tensor.shape).astype(DTYPES[tensor.dtype])


def compare(name: str, ours: NDArray[Any], right: NDArray[Any]) -> None:
    assert ours.shape == right.shape
    if right.dtype == F:
        np.testing.assert_allclose(ours, right, rtol=2e-5, atol=2e-5, err_msg=name)
    else:
        np.testing.assert_array_equal(ours, right, err_msg=name)


GEOMETRY = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1), "group": 1}
CONVOLUTIONS = {
    "pointwise": ((1, 4, 5, 7), (9, 1, 1, 7), {}),
    "signal": ((1, 1, 40, 6), (16, 1, 7, 6), {"strides": (1, 2), "pads": (0, 3, 0, 3)}),
    "image": ((1, 9, 8, 3), (20, 3, 3, 3), {"strides": (2, 2), "pads": (0, 1, 1, 0)}),
    "dilated": ((1, 11, 12, 4), (5, 3, 2, 4), {"dilations": (2, 3), "pads": (2, 2, 2, 2)}),
    "batch": ((3, 5, 6, 4), (8, 3, 3, 4), {"pads": (1, 1, 1, 1)}),
    "groups": ((1, 6, 6, 12), (8, 3, 3, 3), {"pads": (1, 1, 1, 1), "group": 4}),
    "depthwise": ((2, 6, 7, 5), (10, 3, 3, 1), {"pads": (1, 1, 1, 1), "group": 5}),
    "one output": ((1, 3, 3, 40), (70, 3, 3, 40), {}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_float_convolution(name: str) -> None:
    x_shape, w_shape, attrs = CONVOLUTIONS[name]
    b = Builder()
    w, bias = b.constant((RNG.standard_normal(w_shape) * 0.2).astype(F)), b.constant(np.ones(w_shape[0], F))
    for activation in ({"activation": "none"}, {"activation": "relu"}, {"activation": "elu", "alpha": 0.5}):
        x = b.node("tanh", b.input(*x_shape))
        y = b.node("conv", x, w, bias, **GEOMETRY | attrs | activation)
        b.graph.outputs.append(y)
    b.check(*b.graph.outputs)


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_8bit_convolution(name: str) -> None:
    x_shape, w_shape, attrs = CONVOLUTIONS[name]
    b = Builder()
    scales = RNG.uniform(0.001, 0.02, w_shape[0]).astype(F)
    w = b.constant(RNG.integers(-128, 128, w_shape).astype(np.int8), scales, 0)
    bias = b.constant(RNG.integers(-3000, 3000, w_shape[0]).astype(np.int32), scales * F(0.05), 0)
    x = b.node("quantize", b.input(*x_shape), quant=(0.05, 17), dtype="i8")
    y = b.node("conv", x, w, bias, quant=(0.3, -100), qmin=-100, qmax=120, **GEOMETRY | attrs)
    b.check(b.node("dequantize", y, dtype="f32"), y)


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_dense(rows: int) -> None:
    b = Builder()
    w8 = b.constant(RNG.integers(-128, 128, (33, 30)).astype(np.int8), 0.01)
    bias8 = b.constant(RNG.integers(-3000, 3000, 33).astype(np.int32), 0.01 * 0.1)
    y8 = b.node("dense", b.input(rows, 30, quant=(0.1, -5)), w8, bias8, quant=(0.5, 3), qmin=-128, qmax=127)
    w, bias = (
        b.constant(RNG.standard_normal((33, 30)).astype(F)),
        b.constant(RNG.standard_normal(33).astype(F)),
    )
    y = b.node("dense", b.input(rows, 30), w, bias, activation="silu")
    b.check(y8, y, b.node("softmax", y))


POOLS = (
    ((1, 1, 30, 5), {"kernel": (1, 3), "strides": (1, 2), "pads": (0, 1, 0, 1), "dilations": (1, 1)}),
    ((2, 7, 8, 19), {"kernel": (3, 2), "strides": (2, 2), "pads": (1, 0, 1, 1), "dilations": (1, 1)}),
    ((1, 9, 9, 4), {"kernel": (2, 3), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (2, 3)}),
)


@pytest.mark.parametrize(("shape", "attrs"), POOLS)
def test_pools(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    b = Builder()
    f, q = b.input(*shape), b.input(*shape, quant=(0.1, -20))
    limits = {"quant": (0.07, 30), "qmin": -100, "qmax": 127}
    outputs = [b.node("max_pool", f, **attrs), b.node("max_pool", q, **attrs)]
    for include_pad in (0, 1):
        outputs.append(b.node("average_pool", f, include_pad=include_pad, **attrs))
        outputs.append(b.node("average_pool", q, include_pad=include_pad, **attrs, **limits))
    outputs += [b.node("global_average_pool", f), b.node("global_average_pool", q, **limits)]
    b.check(*outputs)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((2, 3, 4, 5), (2, 3, 4, 5)),
        ((2, 3, 4, 5), (5,)),
        ((2, 3, 4, 5), (2, 1, 1, 5)),
        ((4, 1), (1, 70)),
        ((3, 4), (1,)),
    ],
)
def test_binary_operations_broadcast(one: tuple[int, ...], other: tuple[int, ...]) -> None:
    b = Builder()
    limits = {"quant": (0.13, 11), "qmin": -128, "qmax": 127}
    f, g = b.input(*one), b.input(*other)
    q, r = b.input(*one, quant=(0.1, 3)), b.input(*other, quant=(0.08, -100))
    k = b.constant(RNG.integers(-128, 128, other).astype(np.int8), 0.05)
    outputs = [b.node(op, f, g) for op in ("add", "mul")]
    outputs += [b.node(op, q, s, **limits) for op in ("add", "mul") for s in (r, k)]
    b.check(*outputs)


def test_unary_operations() -> None:
    b = Builder()
    x = b.input(3, 21)
    outputs = [b.node(op, x) for op in ("relu", "silu", "sigmoid", "tanh", "softmax")]
    outputs += [b.node("elu", x, alpha=0.3), b.node("clip", x, low=-1.0, high=2.0)]
    table = b.constant(RNG.integers(-128, 128, 256).astype(np.int8))
    outputs.append(b.node("lookup", b.input(7, 9, quant=(0.1, 0)), table, quant=(0.2, 1)))
    b.check(*outputs)


def test_changes_of_shape_are_views_or_copies() -> None:
    b = Builder()
    x = b.input(2, 3, 4, 5)
    moved = b.node("transpose", x, perm=(0, 2, 3, 1))
    flat = b.node("reshape", moved, shape=(2, 60))
    back = b.node("reshape", b.node("transpose", moved, perm=(3, 0, 2, 1)), shape=(3, 40))
    five = b.node("transpose", b.node("reshape", x, shape=(2, 3, 2, 2, 5)), perm=(4, 2, 0, 3, 1))
    b.check(flat, back, five, b.node("tanh", flat), b.node("relu", five), x)


def test_an_output_is_written_in_the_shape_its_reader_wants() -> None:
    b = Builder()
    q = b.node("quantize", b.input(1, 6, 9, 50), quant=(0.1, 4), dtype="i8")
    image = b.node("transpose", q, perm=(0, 2, 3, 1))
    w = b.constant(RNG.integers(-128, 128, (8, 3, 3, 6)).astype(np.int8), 0.01)
    bias = b.constant(np.zeros(8, np.int32), 0.001)
    attrs = GEOMETRY | {"pads": (1, 1, 1, 1)}
    y = b.node("conv", image, w, bias, quant=(0.3, 0), qmin=-128, qmax=127, **attrs)
    b.check(y)
    kernels = [step.kernel for step in lower(b.graph, TIERS["avx2"]).program.steps]
    assert kernels[:2] == ["fill", "quantize_planes"]
    assert len(kernels) == 3  # no copy


def test_a_layer_whose_reader_wants_padding_but_whose_rows_cannot_have_it() -> None:
    b = Builder()
    w, bias = b.constant(RNG.standard_normal((6, 4)).astype(F)), b.constant(np.zeros(6, F))
    x = b.node("dense", b.input(1, 5, 7, 4), w, bias, activation="none")
    k, c = b.constant(RNG.standard_normal((3, 3, 3, 6)).astype(F)), b.constant(np.zeros(3, F))
    b.check(b.node("conv", x, k, c, **GEOMETRY | {"pads": (1, 1, 1, 1)}, activation="none"))


def test_two_readers_share_the_larger_padding() -> None:
    b = Builder()
    x = b.node("tanh", b.input(1, 6, 6, 3))
    outputs = []
    for size in (1, 3, 5):
        w, bias = b.constant(RNG.standard_normal((4, size, size, 3)).astype(F)), b.constant(np.zeros(4, F))
        attrs = GEOMETRY | {"pads": (size // 2,) * 4}
        outputs.append(b.node("conv", x, w, bias, activation="none", **attrs))
    b.check(*outputs, b.node("global_average_pool", x), x)


def test_missing_operations_are_named_together() -> None:
    b = Builder()
    x = b.input(4)
    b.graph.nodes = [Node(op, op, [x], [x], {}) for op in ("relu", "wavelet", "gather")]
    with pytest.raises(ProgramError, match="missing: gather, wavelet"):
        lower(b.graph, TIERS["avx2"])


def test_weights_must_be_constant_and_scaled() -> None:
    b = Builder()
    x, w, bias = b.input(1, 4), b.input(3, 4), b.constant(np.zeros(3, F))
    b.graph.outputs = [b.node("dense", x, w, bias, activation="none")]
    with pytest.raises(ProgramError, match="'x1' must be a constant"):
        lower(b.graph, TIERS["avx2"])


def test_the_plan_is_the_same_on_every_tier_but_for_the_padding_of_weights() -> None:
    b = Builder()
    w, bias = b.constant(RNG.standard_normal((6, 4)).astype(F)), b.constant(np.zeros(6, F))
    b.graph.outputs = [b.node("dense", b.input(1, 4), w, bias, activation="none")]
    plans = [lower(b.graph, tier).program.memory for tier in TIERS.values()]
    assert len({plan.arena for plan in plans}) == 1
    assert all(plan.weights >= 4 * 6 * 5 for plan in plans)


shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)


@given(shapes, st.randoms(use_true_random=False))
def test_views_name_the_elements_numpy_names(shape: tuple[int, ...], choose: Any) -> None:
    data = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    value = Value(Ref(0), shape, dense_steps(shape, 4), 4)
    for _ in range(3):
        perm = list(range(data.ndim))
        choose.shuffle(perm)
        data, value = data.transpose(perm), value.transposed(tuple(perm))
        axis = choose.randrange(data.ndim)
        start = choose.randrange(data.shape[axis])
        data = data.take(range(start, data.shape[axis]), axis)
        value = value.sliced(axis, start, data.shape[axis])
        assert named(value) == data.reshape(-1).tolist()
        flat = value.reshaped((data.size,))
        assert flat is None or named(flat) == data.reshape(-1).tolist()
        assert not value.is_dense or flat is not None
        wide = value.broadcast((2, *data.shape))
        assert named(wide) == np.broadcast_to(data, (2, *data.shape)).reshape(-1).tolist()
        for found in rows(value) or ():
            assert found.count * found.rows <= data.size
        if (parts := rows(value)) is not None:
            assert sum(found.count * found.rows for found in parts) == data.size


def named(value: Value) -> list[int]:
    """Elements of an arange that lies in order from offset 0."""
    at = np.zeros(value.shape, np.int64) + value.ref.offset
    for axis, step in enumerate(value.steps):
        index = np.arange(value.shape[axis]) * step
        at += index.reshape([-1 if i == axis else 1 for i in range(len(value.shape))])
    return (at.reshape(-1) // 4).tolist()


@pytest.mark.parametrize("name", TIERS)
@given(
    cols=st.integers(1, 300), channels=st.integers(1, 400), steps=st.integers(1, 500), narrow=st.booleans()
)
def test_tiles_cover_all_channels(name: str, cols: int, channels: int, steps: int, narrow: bool) -> None:
    tier = TIERS[name]
    tiles = conv8_tiles(tier) if narrow else conv32_tiles(tier)
    cover = Work(tier, tiles, cols, steps, narrow).cover(channels)
    assert sum(n for _, n in cover) == channels
    assert all(n > 0 and tile in tiles and tile[0] <= cols for tile, n in cover)


def test_seventy_two_channels_are_no_six_vectors() -> None:
    tier = TIERS["avx512vnni"]
    cover = Work(tier, conv8_tiles(tier), 256, 112, True).cover(72)
    vectors = sum(-(-n // (tile[1] * tier.lanes)) * tile[1] for tile, n in cover)
    assert vectors == 5
