"""Operators that move blocks of pixels into channels or into the batch, and back."""

from __future__ import annotations

from math import prod

from reflexarc.inference.graph.ir import Attr, Shape
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.movement import emit, reshape
from reflexarc.inference.graph.tflite.registry import Handlers

HANDLERS = Handlers()


@HANDLERS("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def _blocks(context: Context) -> None:
    x, block = context.tensor(0), context.option("block_size")
    if len(x.shape) != 4 or block < 1:
        raise context.unsupported(f"blocks of {block} of {x.shape}")
    n, h, w, c = x.shape
    if context.operator.name == "SPACE_TO_DEPTH":
        if h % block or w % block:
            raise context.unsupported(f"blocks of {block} of {x.shape}")
        apart, perm = (n, h // block, block, w // block, block, c), (0, 1, 3, 2, 4, 5)
        shape = (n, h // block, w // block, block * block * c)
    else:
        if c % (block * block):
            raise context.unsupported(f"blocks of {block} of {x.shape}")
        apart, perm = (n, h, w, block, block, c // block**2), (0, 1, 3, 2, 4, 5)
        shape = (n, h * block, w * block, c // block**2)
    _moved(context, x.name, apart, perm, shape)


def _moved(context: Context, name: str, apart: Shape, perm: Shape, shape: Shape, part: str = "") -> None:
    name = emit(context, "reshape", [name], {"shape": apart}, part="apart")
    name = emit(context, "transpose", [name], {"perm": perm}, part="moved")
    reshape(context, name, shape)


def _block_lists(context: Context) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Block sizes and (before, after) pairs of the spatial axes."""
    block, edges = context.integers(1), context.integers(2)
    rank = len(context.tensor(0).shape)
    if not 1 <= len(block) <= rank - 2 + (rank == 3) or len(edges) != 2 * len(block) or min(*block, 1) < 1:
        raise context.unsupported(f"blocks of {block} with {edges}")
    if min(edges) < 0:
        raise context.unsupported(f"blocks of {block} with {edges}")
    return block, edges


@HANDLERS("SPACE_TO_BATCH_ND")
def _to_batch(context: Context) -> None:
    x, (block, edges) = context.tensor(0), _block_lists(context)
    k, rest = len(block), (0,) * (len(x.shape) - len(block) - 1)
    value = context.scale(context.result_quant())[1] if x.dtype == "i8" else 0.0 if x.dtype == "f32" else 0
    attrs: dict[str, Attr] = {
        "before": (0, *edges[0::2], *rest),
        "after": (0, *edges[1::2], *rest),
        "value": value,
    }
    name = emit(context, "pad", [x.name], attrs, part="padded")
    shape = context.editor.tensors[name].shape
    if any(n % b for n, b in zip(shape[1 : k + 1], block, strict=True)):
        raise context.unsupported(f"blocks of {block} of {shape}")
    inner = [n // b for n, b in zip(shape[1 : k + 1], block, strict=True)]
    apart = [shape[0], *(v for pair in zip(inner, block, strict=True) for v in pair), *shape[k + 1 :]]
    perm = [*range(2, 2 * k + 1, 2), 0, *range(1, 2 * k + 1, 2), *range(2 * k + 1, len(apart))]
    _moved(context, name, tuple(apart), tuple(perm), (shape[0] * prod(block), *inner, *shape[k + 1 :]))


@HANDLERS("BATCH_TO_SPACE_ND")
def _from_batch(context: Context) -> None:
    x, (block, edges) = context.tensor(0), _block_lists(context)
    k, n = len(block), x.shape[0] // prod(block)
    if x.shape[0] != n * prod(block):
        raise context.unsupported(f"blocks of {block} of {x.shape}")
    apart = (*block, n, *x.shape[1:])
    perm = [k, *(v for i in range(k) for v in (k + 1 + i, i)), *range(2 * k + 1, len(apart))]
    full = (n, *(size * b for size, b in zip(x.shape[1 : k + 1], block, strict=True)), *x.shape[k + 1 :])
    name = emit(context, "reshape", [x.name], {"shape": apart}, part="apart")
    name = emit(context, "transpose", [name], {"perm": tuple(perm)}, part="moved")
    name = emit(context, "reshape", [name], {"shape": full}, part="whole")
    starts = (0, *edges[0::2], *[0] * (len(full) - k - 1))
    ends = (0, *edges[1::2], *[0] * (len(full) - k - 1))
    sizes = tuple(size - a - b for size, a, b in zip(full, starts, ends, strict=True))
    attrs: dict[str, Attr] = {"starts": starts, "sizes": sizes, "steps": (1,) * len(full)}
    context.give(emit(context, "strided_slice", [name], attrs))
