"""Whole models: every integer tensor is the plain twin's, and the same on every instruction set and thread
count."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import naive_graph
import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray
from onnx_models import Net, quantized, random_net, reference, runtime
from run_session import windows

from reflexarc.inference import lower
from reflexarc.inference.graph.ir import Graph
from reflexarc.inference.image import ImageStore, default_cache
from reflexarc.inference.isa import FORCE, TIERS, runnable
from reflexarc.inference.session import Session, read

TESTS = Path(__file__).parent.parent
DEMO = TESTS.parent / "configs/exosuit/exosuit.onnx"
SHARED = Path(os.environ.get("REFLEXARC_SHARED", TESTS.parent.parent / "shared"))
POLICIES = ("mjp_go1_policy", "mjp_g1_policy", "unitree_rl_lab_g1_velocity")
X86 = [tier.name for tier in TIERS.values() if not tier.arm]


def graph_of(model: Any, folder: Path) -> Graph:
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return read(path)


def signal_net() -> Net:
    """A larger network of the demo's kind, which two threads share."""
    net = Net([1, 6, 256], seed=3)
    for channels, out in ((6, 48), (48, 64), (64, 72)):
        net.conv(channels, out, [7], pads=[3, 3])
        net.add("Relu")
    net.add("MaxPool", kernel_shape=[2], strides=[2])
    net.add("GlobalAveragePool")
    net.add("Flatten")
    net.gemm(72, 7, transB=1)
    net.add("Softmax")
    return net


def assert_equals_twin(session: Session, graph: Graph, x: NDArray[np.float32]) -> int:
    """Compare every tensor of a run with the twin's; how many there were."""
    outputs = session.run(x)
    twin = naive_graph.run(graph, {graph.inputs[0]: x})
    for name in session.tensors:
        ours, right = session.tensor(name), twin[name]
        if right.dtype == np.float32:
            np.testing.assert_allclose(ours, right, rtol=1e-4, atol=1e-5, err_msg=name)
        else:
            np.testing.assert_array_equal(ours, right, err_msg=name)
    for name, y in zip(graph.outputs, outputs, strict=True):
        np.testing.assert_array_equal(y, session.tensor(name))
    return len(session.tensors)


def test_the_demos_model_is_its_twins_on_200_windows() -> None:
    graph = read(DEMO)
    session, plain = Session(graph, keep=True), Session(graph)
    theirs = runtime(DEMO.read_bytes())
    for x in windows(session.inputs[0].shape, 200):
        assert assert_equals_twin(session, graph, x) >= 8
        (y,) = plain.run(x)
        np.testing.assert_array_equal(y, session.run(x)[0])
        np.testing.assert_allclose(y, theirs.run(None, {graph.inputs[0]: x})[0], rtol=0, atol=1e-5)
        raw = plain.raw()
        assert raw is not None
        np.testing.assert_array_equal(raw, session.raw())


def test_the_demos_quantized_tensors_are_onnx_runtimes_to_one_step() -> None:
    graph, model = read(DEMO), onnx.load(DEMO)
    session = Session(graph, keep=True)
    for x in windows(session.inputs[0].shape, 200):
        theirs = reference(model, x, graph.inputs[0])
        session.run(x)
        compared = 0
        for name in session.tensors:
            found = theirs.get(name.split(":")[0])
            ours = session.tensor(name)
            if found is None or found.dtype != np.int8 or found.size != ours.size:
                continue
            if found.ndim == 3 and found.shape != ours.shape:  # channels-last here
                found = found.transpose(0, 2, 1)
            steps = np.abs(ours.reshape(-1).astype(int) - found.reshape(-1))
            assert steps.max() <= 1, name
            compared += 1
        assert compared >= 6


@pytest.mark.parametrize("threads", [1, 2])
def test_a_larger_quantized_model_is_its_twins(tmp_path: Path, threads: int) -> None:
    if threads > len(os.sched_getaffinity(0)):
        pytest.skip("one core only")
    net = signal_net()
    graph = graph_of(quantized(net), tmp_path)
    session = Session(graph, threads=threads, keep=True)
    for x in net.inputs(10):
        assert_equals_twin(session, graph, x)
    session.close()


@pytest.mark.parametrize("seed", range(20))
def test_random_networks_are_their_twins(seed: int, tmp_path: Path) -> None:
    net = random_net(seed)
    activation = "QInt8" if seed % 2 else "QUInt8"
    for model in (net.model(), quantized(net, activation=activation, symmetric=seed % 3 == 0)):
        graph = graph_of(model, tmp_path)
        session, plain = Session(graph, keep=True), Session(graph)
        for x in net.inputs(3):
            assert_equals_twin(session, graph, x)
            for ours, kept in zip(plain.run(x), session.run(x), strict=True):
                np.testing.assert_array_equal(ours, kept)


@pytest.mark.parametrize("seed", range(6))
def test_two_threads_write_the_same_bits(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one core only")
    net = random_net(seed)
    graphs = [graph_of(model, tmp_path) for model in (net.model(), quantized(net))]
    alone = [Session(graph) for graph in graphs]
    for module in (lower.conv, lower.elementwise, lower.pool, lower.quantize, lower.rowwise, lower.context):
        for name in ("PARALLEL_MACS", "PARALLEL_ELEMENTS"):
            monkeypatch.setattr(module, name, 0, raising=False)
    for graph, one in zip(graphs, alone, strict=True):
        two = Session(graph, threads=2)
        for x in net.inputs(20):
            for a, b in zip(one.run(x), two.run(x), strict=True):
                np.testing.assert_array_equal(a.view(np.uint32), b.view(np.uint32))
        two.close()


@functools.cache
def report(model: Path, name: str, threads: int, emulated: bool = False) -> dict[str, str]:
    """What `run_session` gives on a tier in a child process; skips where this machine cannot run it."""
    environment = os.environ | {FORCE: name, "PYTHONPATH": str(TESTS)}
    command = [
        sys.executable,
        str(TESTS / "run_session.py"),
        str(model),
        str(default_cache()),
        str(threads),
        "40",
    ]
    if emulated:
        if not shutil.which("qemu-x86_64"):
            pytest.skip("qemu-x86_64 is not installed")
        ImageStore(TIERS[name]).load(["team", *lower.lower(read(model), TIERS[name]).program.families])
        command = ["qemu-x86_64", "-cpu", "Nehalem", *command]
        environment["OPENBLAS_CORETYPE"] = "Nehalem"
    elif TIERS[name] not in runnable():
        pytest.skip(f"{name}: this CPU runs {', '.join(tier.name for tier in runnable())}")
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = dict(json.loads(done.stdout.splitlines()[-1]))
    assert found["tier"] == name
    return found


@pytest.fixture(scope="session")
def larger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exact") / "larger.onnx"
    path.write_bytes(quantized(signal_net()).SerializeToString())
    return path


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", X86)
def test_one_answer_on_every_instruction_set(name: str, threads: int, larger: Path) -> None:
    if threads > len(os.sched_getaffinity(0)):
        pytest.skip("one core only")
    best = runnable()[0]
    if best.arm:
        pytest.skip("x86 tiers do not run here")
    for model in (DEMO, larger):
        found, first = report(model, name, threads), report(model, best.name, 1)
        assert found["integers"] == first["integers"]
        if TIERS[name].has_fma == best.has_fma:
            assert found["floats"] == first["floats"]


def test_one_answer_on_an_emulated_nehalem(larger: Path) -> None:
    for model in (DEMO, larger):
        found = report(model, "sse42", 1, emulated=True)
        assert found == report(model, "sse42", 1)


@pytest.mark.parametrize("policy", POLICIES)
def test_policies_answer_as_in_onnx_runtime(policy: str) -> None:
    path = SHARED / "data/models/policy" / f"{policy}.onnx"
    if not path.exists():
        pytest.skip(f"{path} is not there: set REFLEXARC_SHARED")
    session = Session.load(path)
    theirs = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(1)
    for _ in range(50):
        x = rng.standard_normal(session.inputs[0].shape).astype(np.float32)
        (y,), (right, *_) = session.run(x), theirs.run([session.outputs[0].name], {session.inputs[0].name: x})
        np.testing.assert_allclose(y, right, rtol=1e-5, atol=1e-5)
