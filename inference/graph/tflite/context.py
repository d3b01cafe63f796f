"""What a handler sees of the operator it imports, and what it may do: options, operands, new nodes.

The graph computes on int8: what the file has as uint8 is held as the int8 that are 128 less, with a zero
point 128 less, and turned (`flip`) where it comes in and goes out. `name` gives an operand in that form,
`stored` as the file has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph import constants
from reflexarc.inference.graph.edit import Editor
from reflexarc.inference.graph.ir import (
    DTYPES,
    MAX_NODES,
    Attr,
    ModelError,
    QuantParams,
    State,
    Tensor,
    check_shape,
)
from reflexarc.inference.graph.tflite.codes import OPTIONS
from reflexarc.inference.graph.tflite.schema import Model, Operator, TensorDef
from reflexarc.inference.graph.tflite.tensors import decode, dtype_of, quant_of, signed

MAX_KEPT = 1 << 24
"""Elements of all that a model keeps from run to run."""


class Context:
    """The import under way: the graph so far, which tensor each index stands for, the current operator."""

    def __init__(self, model: Model, editor: Editor) -> None:
        self.model = model
        self.graph = model.graphs[0]
        self.editor = editor
        self.operator = Operator(-1, "none", (), (), (), None)
        self.variables: dict[str, str] = {}  # what each holds now
        self.starts: dict[str, NDArray[Any]] = {}  # what each held at the first run
        self.resources: dict[int, str] = {}  # the variable a resource tensor stands for
        self._stored: dict[int, str] = {}  # tensors as in the file
        self._signed: dict[int, str] = {}  # those of uint8 as int8
        self._kept: list[tuple[str, str, NDArray[Any]]] = []  # input, variable and start of each state
        self._room = MAX_KEPT
        self._nodes = 0

    # Declarations

    def declared(self, index: int) -> TensorDef:
        """An input as it is declared."""
        return self.graph.tensors[self._input(index)]

    def result(self, index: int = 0) -> TensorDef:
        """An output as it is declared."""
        if index >= len(self.operator.outputs):
            raise ModelError(f"{self.operator}: output {index} is missing")
        return self.graph.tensors[self.operator.outputs[index]]

    def result_dtype(self, index: int = 0) -> str:
        """An output's dtype in the form computed with."""
        dtype = dtype_of(self.result(index))
        return "i8" if dtype == "u8" else dtype

    def result_quant(self, index: int = 0) -> QuantParams | None:
        """An output's scales in the form computed with."""
        tensor = self.result(index)
        return signed(quant_of(tensor)) if tensor.type == "UINT8" else quant_of(tensor)

    def scale(self, quant: QuantParams | None) -> tuple[np.float32, int]:
        """Scale and zero point of an activation."""
        if quant is None or quant.axis is not None:
            raise ModelError(f"{self.operator}: an activation without a scale, or with several")
        if not 0 < float(quant.scale[0]) < inf:
            raise ModelError(f"{self.operator}: an activation of scale {quant.scale[0]}")
        return quant.scale[0], int(quant.zero_point[0])

    def option(self, key: str) -> Any:
        """One of the operator's own options."""
        field, code, default = OPTIONS[self.operator.name][key]
        options = self.operator.options
        value = default if options is None else options.scalar(field, code, default)
        if isinstance(value, float) and not isfinite(value):
            raise ModelError(f"{self.operator}: {key} is {value}")
        return value

    # Operands

    def has(self, index: int) -> bool:
        """Whether the operator states its input of this index."""
        return index < len(self.operator.inputs) and self.operator.inputs[index] >= 0

    def name(self, index: int) -> str:
        """The tensor behind an input, in the form computed with."""
        return self._computed(self._input(index))

    def stored(self, index: int) -> str:
        """The tensor behind an input, in the form of the file."""
        return self._native(self._input(index))

    def tensor(self, index: int) -> Tensor:
        """The tensor behind an input, in the form computed with."""
        return self.editor.tensors[self.name(index)]

    def value(self, index: int) -> NDArray[Any]:
        """The elements of an input that must be a constant, as the file has them."""
        data = self.editor.tensors[self.stored(index)].data
        if data is None:
            raise ModelError(f"{self.operator}: input {index} ({self.declared(index)}) is not a constant")
        return data

    def integers(self, index: int) -> tuple[int, ...]:
        """The elements of a constant input of integers, in order."""
        data = self.value(index)
        if data.dtype.kind != "i" or data.size > 1 << 16:
            raise ModelError(f"{self.operator}: {self.declared(index)} is not a list of integers")
        return tuple(int(v) for v in data.ravel())

    def axis(self, value: int, rank: int) -> int:
        """An axis as an index from 0."""
        if not -rank <= value < rank:
            raise ModelError(f"{self.operator}: axis {value} of {rank} dimensions")
        return value % rank

    def unsupported(self, what: str) -> ModelError:
        """The error that refuses the operator for what it asks."""
        return ModelError(f"{self.operator}: {what} is not supported")

    # New nodes

    def constant(self, hint: str, data: NDArray[Any], quant: QuantParams | None = None) -> str:
        """Add a constant."""
        return self.editor.constant(hint, data, quant)

    def emit(
        self,
        op: str,
        inputs: Sequence[str],
        attrs: Mapping[str, Attr] | None = None,
        *,
        part: str = "",
        dtype: str | None = None,
        quant: QuantParams | None = None,
    ) -> str:
        """Add a node, or a constant if constants alone decide it.

        `part` names its output when it is not the operator's own. Without `quant` an 8-bit result has that of
        the first operand.
        """
        self._nodes += 1
        if self._nodes > MAX_NODES:
            raise ModelError(f"{self.operator}: more than {MAX_NODES} nodes")
        base = self.result().name if self.operator.outputs else str(self.operator)
        if not part and self.operator.outputs and self.result().type == "UINT8":
            part = "int8"
        output = f"{base or self.operator}:{part}" if part else base or str(self.operator)
        folded = constants.fold(self.editor, op, inputs, attrs or {}, output, quant, dtype)
        if folded is not None:
            return folded
        source = self.editor.tensors[inputs[0]]
        if quant is None and (dtype or source.dtype) == source.dtype:
            quant = constants.moved_quant(op, attrs or {}, source)
        name = f"{self.operator}"
        return self.editor.add(op, inputs, attrs, name=name, output=output, dtype=dtype, quant=quant)

    def give(self, tensor: str, index: int = 0) -> None:
        """Let an output of the operator stand for a tensor."""
        declared, dtype = self.result(index), self.editor.tensors[tensor].dtype
        wanted = dtype_of(declared)
        if dtype == wanted:
            self._define(self._stored, declared.index, tensor)
        elif (dtype, wanted) == ("i8", "u8"):
            self._define(self._signed, declared.index, tensor)
        else:
            raise ModelError(f"{self.operator}: gives {dtype}, {declared} is {declared.type}")

    def fresh_input(self, name: str, dtype: str, shape: tuple[int, ...], quant: QuantParams | None) -> str:
        """Add an input of the graph."""
        tensor = Tensor(self.editor.fresh(name), dtype, shape, None, quant)
        self.editor.inputs.append(self.editor.tensor(tensor))
        return tensor.name

    def keep(self, variable: str, declared: TensorDef, start: NDArray[Any]) -> str:
        """A tensor that holds, at the beginning of a run, what `variable` held at the end of the last."""
        self._reserve(declared, start.size)
        dtype, quant = dtype_of(declared), quant_of(declared)
        if dtype == "u8":
            dtype, quant, start = "i8", signed(quant), (start ^ np.uint8(0x80)).view(np.int8)
        name = self.fresh_input(f"state:{variable}", dtype, start.shape, quant)
        self._kept.append((name, variable, start))
        return name

    def kept_input(self, index: int) -> str:
        """What an input that is a variable tensor held at the end of the last run; 0 at first."""
        tensor = self.declared(index)
        if not tensor.is_variable:
            raise ModelError(f"{self.operator}: {tensor} is not a variable")
        check_shape(str(tensor), tensor.shape)
        self._reserve(tensor, prod(tensor.shape))
        quant = quant_of(tensor)
        zero = 0 if quant is None else int(quant.zero_point[0])
        start = np.full(tensor.shape, zero, DTYPES[dtype_of(tensor)])
        variable = f"{tensor.name or tensor.index}"
        self.variables[variable] = self.keep(variable, tensor, start)
        return self.variables[variable]

    def assign_input(self, index: int, name: str) -> None:
        """Let an input that is a variable tensor hold a value from now on."""
        tensor = self.declared(index)
        self.variables[f"{tensor.name or tensor.index}"] = name

    # Inputs and outputs of the graph

    def declare(self, index: int) -> None:
        """Make a tensor an input of the graph."""
        tensor = self.graph.tensors[index]
        name = tensor.name or f"input {index}"
        self._define(
            self._stored, index, self.fresh_input(name, dtype_of(tensor), tensor.shape, quant_of(tensor))
        )

    def output(self, index: int) -> None:
        """Make a tensor an output of the graph, under its name."""
        tensor = self.graph.tensors[index]
        self._output(self._native(index), tensor.name or f"output {index}")

    def finish_states(self) -> None:
        """Make what the variables hold at the end outputs of the graph."""
        for name, variable, start in self._kept:
            held = self.editor.tensors[self.variables[variable]]
            output = self._output(held.name, f"{name}:next")
            self.editor.states.append(State(name, output, start))

    def _output(self, name: str, wanted: str) -> str:
        tensor = self.editor.tensors[name]
        if self.editor.producer(name) is None or name in self.editor.outputs:
            name = self.editor.add(
                "reshape", [name], {"shape": tensor.shape}, name=wanted, output=wanted, quant=tensor.quant
            )
        self.editor.outputs.append(name)
        return name

    def _reserve(self, tensor: TensorDef, size: int) -> None:
        self._room -= size
        if self._room < 0:
            raise ModelError(
                f"{tensor}: no room for a variable of {size} elements, at most {MAX_KEPT} in all"
            )

    # Forms of a tensor

    def _input(self, index: int) -> int:
        if not self.has(index):
            raise ModelError(f"{self.operator}: input {index} is missing")
        return self.operator.inputs[index]

    def _define(self, form: dict[int, str], index: int, name: str) -> None:
        if index in self._stored or index in self._signed:
            raise ModelError(f"{self.graph.tensors[index]} is defined twice")
        form[index] = name

    def _native(self, index: int) -> str:
        if index not in self._stored:
            tensor = self.graph.tensors[index]
            if index in self._signed:
                name = tensor.name or f"tensor {index}"
                self._stored[index] = self.editor.add(
                    "flip", [self._signed[index]], name=name, output=name, dtype="u8", quant=quant_of(tensor)
                )
            else:
                data = self.content(tensor)
                self._stored[index] = self.constant(tensor.name or f"tensor {index}", data, quant_of(tensor))
        return self._stored[index]

    def _computed(self, index: int) -> str:
        tensor = self.graph.tensors[index]
        if tensor.type != "UINT8":
            return self._native(index)
        if index not in self._signed:
            name, quant = f"{tensor.name or index}:int8", signed(quant_of(tensor))
            if index in self._stored and self.editor.value(self._stored[index]) is None:
                self._signed[index] = self.editor.add(
                    "flip", [self._stored[index]], name=name, output=name, dtype="i8", quant=quant
                )
            else:
                data = self.editor.value(self._native(index))
                assert data is not None
                self._signed[index] = self.constant(name, (data ^ np.uint8(0x80)).view(np.int8), quant)
        return self._signed[index]

    def content(self, tensor: TensorDef) -> NDArray[Any]:
        """The elements of a constant; `ModelError` for a tensor that is none."""
        if not 0 < tensor.buffer < len(self.model.buffers) or not len(self.model.buffers[tensor.buffer]):
            raise ModelError(f"{self.operator}: {tensor} is used before it is defined")
        return decode(tensor, self.model.buffers[tensor.buffer])
