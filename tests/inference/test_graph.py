"""The graph's own rules, its editor, and movements that compose."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reflexarc.inference.graph import ops
from reflexarc.inference.graph.arithmetic import dequantize, quantize
from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, ModelError, Node, QuantParams, Tensor, check
from reflexarc.inference.graph.movement import Movement


def relus(count: int = 2) -> Graph:
    names = [f"t{i}" for i in range(count + 1)]
    return Graph(
        "chain",
        {name: Tensor(name, "f32", (2, 3)) for name in names},
        [Node("relu", f"n{i}", [names[i]], [names[i + 1]]) for i in range(count)],
        names[:1],
        names[-1:],
    )


def scale(*values: float, axis: int | None = None, zero: int = 0) -> QuantParams:
    return QuantParams(np.array(values, np.float32), np.full(len(values), zero, np.int32), axis)


def test_a_sound_graph_passes_and_reads_well() -> None:
    ops.check_ops(relus())
    assert str(relus()).splitlines() == [
        "graph chain",
        "  in  t0: f32[2,3]",
        "  t1: f32[2,3] <- relu(t0)",
        "  t2: f32[2,3] <- relu(t1)",
        "  out t2: f32[2,3]",
    ]


def test_order_and_names_are_checked() -> None:
    graph = relus()
    graph.nodes.reverse()
    with pytest.raises(ModelError, match="input 't1' is not defined before it"):
        check(graph)
    graph = relus()
    graph.nodes.append(Node("relu", "again", ["t0"], ["t1"]))
    with pytest.raises(ModelError, match="'t1' is already defined"):
        check(graph)
    graph = relus()
    graph.outputs = ["t9"]
    with pytest.raises(ModelError, match="graph output 't9' is not defined"):
        check(graph)


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (Tensor("t", "f32", (1 << 16, 1 << 16)), "4294967296 elements, at most 2147483648"),
        (Tensor("t", "f32", (1 << 31, 1 << 31, 1 << 31)), "elements, at most"),
        (Tensor("t", "f32", (2, -1)), r"dimension -1 of \[2, -1\]"),
        (Tensor("t", "f32", (2, 0)), "dimension 0"),
        (Tensor("t", "f32", (1,) * 9), "9 dimensions, at most 8"),
        (Tensor("t", "f16", (1,)), "dtype 'f16'"),
        (Tensor("t", "f32", (2,), np.zeros(3, np.float32)), "data of shape"),
        (Tensor("t", "i8", (2,), np.zeros(2, np.float32)), "data of dtype"),
        (Tensor("t", "i8", (2, 3), quant=scale(1, 2, axis=1)), "not \\(3,\\)"),
        (Tensor("t", "i8", (2, 3), quant=scale(1, 2, axis=2)), "axis 2 is not in 0..1"),
        (Tensor("t", "i8", (2,), quant=scale(np.nan)), "not finite and positive"),
        (Tensor("t", "i8", (2,), quant=scale(0.0)), "not finite and positive"),
        (Tensor("t", "i8", (2,), quant=scale(1.0, zero=128)), "zero point is outside -128..127"),
        (Tensor("t", "f32", (2,), quant=scale(1.0)), "on dtype f32"),
    ],
)
def test_unsound_tensors_are_named(tensor: Tensor, message: str) -> None:
    graph = Graph("g", {"t": tensor}, [], ["t"], ["t"])
    if tensor.data is not None:
        graph.inputs = []
    with pytest.raises(ModelError, match=message) as error:
        check(graph)
    assert "'t'" in str(error.value)


def test_types_and_shapes_of_operations_are_checked() -> None:
    graph = relus()
    graph.tensors["t2"] = replace(graph.tensors["t2"], shape=(3, 2))
    with pytest.raises(ModelError, match=r"declared \(3, 2\), inferred \(2, 3\)"):
        ops.check_ops(graph)
    graph = relus()
    graph.tensors["t2"] = replace(graph.tensors["t2"], dtype="i8", quant=scale(1.0))
    with pytest.raises(ModelError, match="f32 -> i8 is not one of f32 -> f32"):
        ops.check_ops(graph)
    graph = relus()
    graph.nodes[0].op = "frobnicate"
    with pytest.raises(ModelError, match="no operation 'frobnicate'"):
        ops.check_ops(graph)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kernel": (9, 9)}, "a window of 9 is larger"),
        ({"pads": (3, 0, 0, 0)}, "leave a window"),
        ({"strides": (0, 1)}, "out of range"),
        ({"pads": (1, 1)}, "not 2, 4 and 2 long"),
        ({"strides": "two"}, "not a list of integers"),
    ],
)
def test_windows_that_do_not_fit_are_named(change: dict[str, object], message: str) -> None:
    attrs = {"kernel": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)} | change
    node = Node("max_pool", "pool", ["x"], ["y"], attrs)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match=message):
        ops.infer(node, [Tensor("x", "f32", (1, 5, 5, 2))])


def test_a_replaced_node_leaves_the_graphs_output_its_name() -> None:
    editor = Editor(relus())
    last = editor.nodes()[-1]
    editor.replace(last, last.inputs[0])
    graph = editor.finish()
    check(graph)
    assert [(node.inputs, node.outputs) for node in graph.nodes] == [(["t0"], ["t2"])]


def test_what_nothing_reads_is_dropped_and_new_nodes_are_sorted_in() -> None:
    editor = Editor(relus())
    editor.add("tanh", ["t0"], name="dead", output="dead")
    first = editor.nodes()[0]
    editor.remove(first)
    squashed = editor.add("tanh", ["t0"], name="tanh", output="squashed")
    editor.add("relu", [squashed], name="n0", output="t1")
    graph = editor.finish()
    ops.check_ops(graph)
    assert [node.name for node in graph.nodes] == ["tanh", "n0", "n1"]


def test_a_constant_takes_over_the_name_of_the_one_it_replaces() -> None:
    graph = relus()
    graph.tensors["w"] = Tensor("w", "f32", (3,), np.ones(3, np.float32))
    graph.nodes[1] = Node("add", "n1", ["t1", "w"], ["t2"])
    editor = Editor(graph)
    node = editor.nodes()[1]
    editor.remove(node)
    editor.add("add", ["t1", editor.constant("w", np.zeros(3, np.float32))], name="n1", output="t2")
    after = editor.finish()
    check(after)
    assert after.nodes[1].inputs == ["t1", "w"]
    assert not after.tensors["w"].data.any()  # type: ignore[union-attr]


def test_a_long_chain_is_edited_in_linear_time() -> None:
    editor = Editor(relus(20_000))
    for node in editor.nodes()[::2]:
        editor.replace(node, node.inputs[0])
    assert len(editor.finish().nodes) == 10_000


@given(st.data())
def test_movements_compose_to_what_numpy_does(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3, 4]), min_size=1, max_size=5)))
    x = np.arange(prod(shape)).reshape(shape)
    y, due = x, Movement.none(shape)
    for _ in range(data.draw(st.integers(0, 6))):
        if data.draw(st.booleans()):
            perm = tuple(data.draw(st.permutations(range(y.ndim))))
            y, due = y.transpose(perm), due.transpose(perm)
        else:
            new = data.draw(shapes_of(y.size))
            y, due = y.reshape(new), due.reshape(new)
    np.testing.assert_array_equal(due.apply(x), y)
    wide = y[tuple(slice(0, 1) if data.draw(st.booleans()) else slice(None) for _ in y.shape)]
    assert due.back(due) == Movement.none(shape) or len(due.steps) > 1
    np.testing.assert_array_equal(due.back(due).apply(x), x)
    back = due.undo(wide)
    if back is not None:
        np.testing.assert_array_equal(
            due.apply(np.broadcast_to(back, due.base)), np.broadcast_to(wide, y.shape)
        )
    moved = np.array_equal(y.ravel(), x.ravel())
    assert moved or due.steps
    if direct := due.direct():
        np.testing.assert_array_equal(x.transpose(direct).reshape(due.shape), y)


@st.composite
def shapes_of(draw: st.DrawFn, size: int) -> tuple[int, ...]:
    shape: list[int] = []
    while size > 1:
        factor = draw(st.sampled_from([n for n in range(2, size + 1) if size % n == 0]))
        shape.append(factor)
        size //= factor
    for _ in range(draw(st.integers(0, 2))):
        shape.insert(draw(st.integers(0, len(shape))), 1)
    return tuple(shape)


def test_a_transpose_and_its_inverse_are_nothing() -> None:
    due = Movement.none((1, 6, 200)).transpose((0, 2, 1)).reshape((1, 1, 200, 6))
    assert due.reshape((1, 200, 6)).transpose((0, 2, 1)).still
    due = Movement.none((1, 4, 5, 6)).transpose((0, 3, 1, 2)).reshape((1, 6, 20)).transpose((0, 2, 1))
    assert due.steps == ()


def test_quantization_saturates_and_rounds_half_to_even() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5, 1e30, -1e30, np.nan, np.inf], np.float32)
    q = quantize(x, scale(1.0), "i8")
    assert q.tolist() == [0, 2, 2, 0, 127, -128, -128, 127]
    assert dequantize(q, scale(0.5, zero=2))[:3].tolist() == [-1.0, 0.0, 0.0]


def test_the_import_of_a_model_needs_numpy_only() -> None:
    code = (
        "import sys, reflexarc.inference.graph.onnx, reflexarc.inference.graph.passes\n"
        "heavy = {'numba', 'llvmlite', 'onnx', 'onnxruntime', 'google', 'zmq', 'scipy', 'asyncio'}\n"
        "sys.exit(', '.join(heavy & sys.modules.keys()) or 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
