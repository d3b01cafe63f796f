"""Sessions: what goes in and comes out, the memory they take, and what they refuse."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from onnx_models import Net, quantized

from reflexarc.inference.graph.ir import Graph, ModelError, Node, QuantParams, Tensor
from reflexarc.inference.graph.onnx import read as read_onnx
from reflexarc.inference.graph.passes import optimize
from reflexarc.inference.image import ImageStore
from reflexarc.inference.isa import TIERS
from reflexarc.inference.memory import Region
from reflexarc.inference.program import MAX_ARENA, ProgramError
from reflexarc.inference.session import Session, SessionError, plan, read
from reflexarc.inference.team import Team

DEMO = Path(__file__).parents[2] / "configs/exosuit/exosuit.onnx"
F = np.float32


@pytest.fixture
def demo() -> Session:
    return Session.load(DEMO)


def window(session: Session, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(session.inputs[0].shape).astype(F)


def test_what_a_model_takes_and_gives(demo: Session) -> None:
    (x,), (y,) = demo.inputs, demo.outputs
    assert (x.dtype, y.dtype) == ("f32", "f32")
    assert (y.scale, y.zero_point) == (None, None)
    (scores,) = demo.run(window(demo))
    assert scores.shape == y.shape
    assert scores.sum() == pytest.approx(1, abs=1e-5)
    raw = demo.raw()
    assert raw is not None
    assert raw.dtype == np.int8
    assert raw.shape == y.shape
    assert raw.argmax() == scores.argmax()


def test_outputs_are_the_callers_own(demo: Session) -> None:
    (first,) = demo.run(window(demo, 1))
    kept = first.copy()
    (second,) = demo.run(window(demo, 2))
    np.testing.assert_array_equal(first, kept)
    assert not np.array_equal(first, second)


def test_inputs_of_any_strides_give_one_answer(demo: Session) -> None:
    x = window(demo)
    (y,) = demo.run(x)
    turned = np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
    np.testing.assert_array_equal(demo.run(turned)[0], y)
    np.testing.assert_array_equal(demo.run(np.repeat(x, 2, axis=2)[:, :, ::2])[0], y)
    read_only = x.copy()
    read_only.flags.writeable = False
    np.testing.assert_array_equal(demo.run(read_only)[0], y)


def test_inputs_that_do_not_fit_are_refused(demo: Session) -> None:
    x = window(demo)
    with pytest.raises(SessionError, match=r"is float64 \[1, 6, 200\], it must be float32 \[1, 6, 200\]"):
        demo.run(x.astype(np.float64))
    with pytest.raises(SessionError, match=r"is float32 \[6, 200\]"):
        demo.run(x[0])
    with pytest.raises(SessionError, match=r"is float32 \[1, 6, 1\]"):
        demo.run(x[:, :, :1])
    with pytest.raises(SessionError, match="2 inputs given, the model has 1"):
        demo.run(x, x)


def test_not_a_number_is_the_least_value(demo: Session) -> None:
    x = window(demo)
    least = np.where(np.arange(x.size).reshape(x.shape) % 7 == 0, -np.inf, x).astype(F)
    (y,) = demo.run(np.where(np.isinf(least), np.nan, x).astype(F))
    np.testing.assert_array_equal(y, demo.run(least)[0])
    assert np.isfinite(y).all()


def test_the_plan_is_exact_before_anything_is_loaded() -> None:
    told = plan(DEMO)
    session = Session.load(DEMO)
    assert told == session.memory
    assert session._weights.region.bytes.size == told.weights
    assert session._arena.bytes.size == told.arena
    assert session._program.bytes.size == told.scratch
    assert told.bound <= told.arena <= 1.1 * told.bound
    assert told.weights < 100_000
    kept = Session.load(DEMO, keep=True)
    assert kept.memory.arena > told.arena


def test_sessions_of_one_model_share_its_weights(demo: Session) -> None:
    other = Session.load(DEMO)
    assert other._weights is demo._weights
    x = window(demo)
    np.testing.assert_array_equal(demo.run(x)[0], other.run(x)[0])
    net = Net([1, 4])
    net.gemm(4, 3)
    small = Session(graph_of(net))
    assert small._weights is not demo._weights


def graph_of(net: Net) -> Graph:
    return optimize(read_onnx(net.model().SerializeToString()))


@pytest.mark.parametrize("part", ["_weights.region", "_program"])
def test_weights_and_program_cannot_be_written(part: str) -> None:
    code = (
        "import sys; from pathlib import Path; from reflexarc.inference.session import Session\n"
        f"session = Session.load(Path({str(DEMO)!r})); print('loaded', flush=True)\n"
        f"session.{part}.bytes[0] = 1; print('written')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "loaded\n"
    assert done.returncode == -signal.SIGSEGV


def test_a_region_is_zeroed_and_seen_as_arrays() -> None:
    region = Region(100)
    assert not region.bytes.any()
    view = region.array(8, (2, 3), (32, 4), np.dtype(F))
    view[...] = 1
    assert region.bytes.view(np.uint8).nonzero()[0].max() < 8 + 32 + 12
    region.protect()
    assert view.sum() == 6


def test_8bit_inputs_and_outputs_are_as_in_the_model() -> None:
    for dtype, zero in (("i8", -3), ("u8", 200)):
        quant = QuantParams(np.array([0.5], F), np.array([zero], np.int32))
        graph = Graph("8-bit")
        graph.tensors = {
            "q": Tensor("q", dtype, (2, 5), None, quant),
            "x": Tensor("x", "f32", (2, 5)),
            "y": Tensor("y", dtype, (2, 5), None, quant),
        }
        graph.nodes = [Node("dequantize", "d", ["q"], ["x"]), Node("quantize", "r", ["x"], ["y"])]
        graph.inputs, graph.outputs = ["q"], ["y", "x"]
        session = Session(graph)
        info = np.iinfo(np.int8 if dtype == "i8" else np.uint8)
        q = np.linspace(info.min, info.max, 10).astype(info.dtype).reshape(2, 5)
        y, x = session.run(q)
        np.testing.assert_array_equal(y, q)
        assert y.dtype == q.dtype
        np.testing.assert_array_equal(x, (q.astype(F) - zero) * F(0.5))
        np.testing.assert_array_equal(session.raw(1), q)
        assert (session.inputs[0].scale, session.inputs[0].zero_point) == (0.5, zero)


def test_several_inputs_and_outputs() -> None:
    graph = Graph("two")
    graph.tensors = {n: Tensor(n, "f32", (3,)) for n in ("a", "b", "sum", "product")}
    graph.nodes = [Node("add", "s", ["a", "b"], ["sum"]), Node("mul", "p", ["a", "b"], ["product"])]
    graph.inputs, graph.outputs = ["a", "b"], ["sum", "product", "a"]
    session = Session(graph)
    a, b = np.array([1, 2, 3], F), np.array([4, 5, 6], F)
    results = session.run(a, b)
    for ours, right in zip(results, (a + b, a * b, a), strict=True):
        np.testing.assert_array_equal(ours, right)
    assert [session.raw(i) for i in range(3)] == [None] * 3


def test_a_small_model_leaves_the_helpers_alone() -> None:
    session = Session.load(DEMO, threads=min(2, len(os.sched_getaffinity(0))))
    assert session._own_team is not None
    assert session._own_team.threads == 1
    session.close()
    session.close()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core only")
def test_sessions_can_share_a_team() -> None:
    net = Net([1, 64, 400])
    net.conv(64, 64, [5], pads=[2, 2])
    graph = graph_of(net)
    store = ImageStore()
    team = Team(store.load(["team"])["team"], 2)
    one, shared, other = Session(graph), Session(graph, team=team), Session.load(DEMO, team=team)
    x = net.inputs(1)[0]
    np.testing.assert_array_equal(one.run(x)[0], shared.run(x)[0])
    other.run(window(other))
    shared.close()
    np.testing.assert_array_equal(one.run(x)[0], shared.run(x)[0])
    team.close()


def test_another_tier_can_be_asked_for() -> None:
    for tier in ImageStore().tier, TIERS["avx2"]:
        if tier.arm:
            continue
        assert plan(DEMO, tier).arena == plan(DEMO).arena


@pytest.mark.parametrize("size", [1 << 20, 1 << 30])
def test_a_model_of_great_shapes_is_refused_without_taking_memory(size: int) -> None:
    graph = Graph("great")
    shape = (1, size, 1 << 9, 3) if size < 1 << 25 else (1, size)
    quant = QuantParams(np.array([0.5], F), np.array([0], np.int32))
    graph.tensors = {
        "x": Tensor("x", "f32", shape),
        "y": Tensor("y", "i8", shape, None, quant),
        "z": Tensor("z", "f32", shape),
    }
    graph.nodes = [Node("quantize", "q", ["x"], ["y"]), Node("dequantize", "d", ["y"], ["z"])]
    graph.inputs, graph.outputs = ["x"], ["z"]
    tracemalloc.start()
    with pytest.raises(ProgramError, match=f"at most {MAX_ARENA}"):
        Session(graph)
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.write_bytes(DEMO.read_bytes()[:-100])
    with pytest.raises(ModelError):
        Session.load(path)
    with pytest.raises(ModelError):
        plan(path)


def test_nothing_that_runs_imports_the_compiler() -> None:
    code = (
        "import sys; from pathlib import Path; from reflexarc.inference.session import Session\n"
        f"Session.load(Path({str(DEMO)!r}))\n"
        "ours = ('reflexarc.inference.simd', 'reflexarc.inference.kernels')\n"
        "others = ('numba', 'llvmlite', 'onnx', 'onnxruntime')\n"
        "print([m for m in sys.modules if m.startswith(ours) or m.split('.')[0] in others])"
    )
    read(DEMO)
    Session.load(DEMO)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_quantized_models_are_lowered_in_8_bits() -> None:
    net = Net([1, 6, 64])
    net.conv(6, 8, [5], pads=[2, 2])
    net.add("Relu")
    net.add("Flatten")
    net.gemm(512, 16)
    session = Session(optimize(read_onnx(quantized(net).SerializeToString())))
    assert session.raw() is not None
    assert session.memory.weights < 2 * (6 * 5 * 8 + 512 * 16)
