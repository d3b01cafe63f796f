"""From an ONNX file to the graph: one walk over its nodes, one handler an operation (see `registry`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import Graph, ModelError, Tensor, check_shape
from reflexarc.inference.graph.onnx import elementwise, images, movement, products, quantization
from reflexarc.inference.graph.onnx.constants import EVALUATORS, evaluate
from reflexarc.inference.graph.onnx.context import Context
from reflexarc.inference.graph.onnx.messages import GraphProto, ModelProto, NodeProto, ValueProto, model
from reflexarc.inference.graph.onnx.registry import Handler
from reflexarc.inference.graph.onnx.tensors import decode, dtype_of
from reflexarc.inference.graph.ops import check_ops

MIN_OPSET = 11
MAX_OPSET = 24
MAX_FILE = 1 << 31

HANDLERS: dict[str, Handler] = {
    **elementwise.HANDLERS,
    **images.HANDLERS,
    **movement.HANDLERS,
    **products.HANDLERS,
    **quantization.HANDLERS,
}


def load(path: Path | str, dims: Mapping[str, int] | None = None) -> Graph:
    """The graph of a file; `ModelError` naming what is wrong with it. `dims` sizes symbolic dimensions.

    A symbolic first dimension is the batch, 1 unless `dims` says otherwise.
    """
    path = Path(path)
    try:
        size = path.stat().st_size
        if size > MAX_FILE:
            raise ModelError(f"{path}: {size} bytes, at most {MAX_FILE}")
        data = path.read_bytes()
    except OSError as error:
        raise ModelError(f"{path}: {error.strerror}") from None
    try:
        return read(memoryview(data), path.parent, dims)
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None


def read(data: memoryview, folder: Path | None = None, dims: Mapping[str, int] | None = None) -> Graph:
    """As `load`, of bytes; `folder` is where external data may lie (None: nowhere)."""
    proto = model(data)
    if proto.graph is None:
        raise ModelError("not an ONNX model: it holds no graph")
    opset = _check_opset(proto)
    _check_supported(proto.graph)
    context = Context(Editor(Graph(proto.graph.name), room=2 * MAX_FILE), opset)
    _declare(context, proto.graph, folder, dims or {})
    for node in proto.graph.nodes:
        _import(context, node)
    for output in proto.graph.outputs:
        context.output(output.name)
    graph = context.editor.finish()
    check_ops(graph)
    return graph


def _check_opset(proto: ModelProto) -> int:
    opset = proto.opsets.get("", 0)
    if not MIN_OPSET <= opset <= MAX_OPSET:
        raise ModelError(f"operator set {opset} is not in {MIN_OPSET}..{MAX_OPSET}")
    return opset


def _check_supported(graph: GraphProto) -> None:
    known = HANDLERS.keys() | EVALUATORS.keys()
    missing = Counter(
        f"{node.domain}.{node.op}" if node.domain else node.op
        for node in graph.nodes
        if node.domain or node.op not in known
    )
    if missing:
        listed = ", ".join(f"{op[:80]} ({count})" for op, count in sorted(missing.items())[:50])
        raise ModelError(f"operations not supported: {listed}")


def _declare(context: Context, graph: GraphProto, folder: Path | None, dims: Mapping[str, int]) -> None:
    for tensor in graph.initializers:
        data = decode(tensor, folder)
        context.stored += data.size
        context.define(tensor.name, context.constant(tensor.name, data))
    given = {tensor.name for tensor in graph.initializers}
    for value in graph.inputs:
        if value.name not in given:
            what = f"input {value.name!r}"
            shape = _shape(value, what, dims)
            check_shape(value.name, shape)
            name = context.editor.tensor(Tensor(value.name, dtype_of(value.elem_type, what), shape))
            context.editor.inputs.append(name)
            context.define(value.name, name)


def _shape(value: ValueProto, what: str, dims: Mapping[str, int]) -> tuple[int, ...]:
    if value.dims is None:
        raise ModelError(f"{what} states no shape")
    batch = value.dims[0] if value.dims and isinstance(value.dims[0], str) else None
    shape = []
    for axis, dim in enumerate(value.dims):
        if isinstance(dim, int) and dim:
            shape.append(dim)
        elif isinstance(dim, str) and dim in dims:
            shape.append(dims[dim])
        elif axis == 0 or (dim and dim == batch):
            shape.append(1)
        else:
            raise ModelError(f"{what}: dimension {axis} is {dim or 'open'!r}: its size must be given")
    return tuple(shape)


def _import(context: Context, node: NodeProto) -> None:
    context.enter(node)
    if node.op in EVALUATORS and context.all_constant():
        evaluate(context)
    elif node.op in HANDLERS:
        HANDLERS[node.op](context)
    else:
        raise ModelError(f"{node}: supported only for constants")
    context.leave()
