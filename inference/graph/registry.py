"""The table of operations and how their types are written down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reflexarc.inference.graph.ir import ModelError, Node, Shape, Tensor

Infer = Callable[[Node, Sequence[Tensor]], Shape]


@dataclass(frozen=True)
class Op:
    """An operation: the dtypes it takes and gives, and its shape and formula (`infer`).

    A signature such as "f32 f32 -> f32" names a dtype an operand. "T" is any dtype, the same one throughout,
    "U" any at all; "#i32" is an integer that stands for itself and needs no scale; "T*" is one or more.
    """

    infer: Infer
    signatures: tuple[str, ...]
    lowered: bool  # whether kernels exist for it, or it must be gone before lowering


OPS: dict[str, Op] = {}


def op(*signatures: str, lowered: bool = True, name: str = "") -> Callable[[Infer], Infer]:
    """Register the decorated function, under its own name or `name`."""

    def register(infer: Infer) -> Infer:
        OPS[name or infer.__name__.strip("_")] = Op(infer, signatures, lowered)
        return infer

    return register


def find(node: Node, inputs: Sequence[Tensor]) -> Op:
    """The node's operation; `ModelError` if there is none, or none with that many operands."""
    found = OPS.get(node.op)
    if found is None:
        raise ModelError(f"{node}: no operation {node.op!r}")
    arities = {_arity(signature) for signature in found.signatures}
    if len(inputs) not in arities and not (-1 in arities and inputs):
        expected = " or ".join(str(n) if n >= 0 else "some" for n in sorted(arities))
        raise ModelError(f"{node}: {len(inputs)} inputs, not {expected}")
    return found


def check_types(node: Node, inputs: Sequence[Tensor], output: Tensor) -> None:
    """Raise `ModelError` unless the dtypes fit a signature and integers have the scales it asks for."""
    tensors, unscaled = (*inputs, output), None
    for signature in OPS[node.op].signatures:
        words = _operands(signature, len(inputs))
        if words is not None and _fits(words, tensors):
            unscaled = _unscaled(words, tensors)
            if unscaled is None:
                return
    if unscaled is not None:
        raise ModelError(f"{node}: {unscaled.name!r} is {unscaled.dtype} without a scale")
    found = f"{' '.join(t.dtype for t in inputs)} -> {output.dtype}"
    raise ModelError(f"{node}: {found} is not one of {', '.join(OPS[node.op].signatures)}")


def _arity(signature: str) -> int:
    """Operands of a signature; -1 for any number of them."""
    operands = signature.split(" -> ")[0].split()
    return -1 if operands[0].endswith("*") else len(operands)


def _operands(signature: str, count: int) -> list[str] | None:
    """The words for each operand and the result; None for another number of operands."""
    left, result = signature.split(" -> ")
    words = left.split()
    if words[0].endswith("*"):
        words = [words[0][:-1]] * count
    return [*words, result] if len(words) == count else None


def _fits(words: list[str], tensors: Sequence[Tensor]) -> bool:
    same = {tensor.dtype for word, tensor in zip(words, tensors, strict=True) if word == "T"}
    plain = (word.lstrip("#") for word in words)
    return len(same) <= 1 and all(
        word in ("T", "U", tensor.dtype) for word, tensor in zip(plain, tensors, strict=True)
    )


def _unscaled(words: list[str], tensors: Sequence[Tensor]) -> Tensor | None:
    """The first tensor that lacks the scale it needs."""
    for word, tensor in zip(words, tensors, strict=True):
        if word in ("i8", "u8", "i16", "i32") and tensor.quant is None:
            return tensor
    return None
