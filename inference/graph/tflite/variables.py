"""Variables: what a model keeps from run to run. An initializing graph says what they hold at first."""

from __future__ import annotations

from reflexarc.inference.graph.ir import ModelError
from reflexarc.inference.graph.tflite.context import Context
from reflexarc.inference.graph.tflite.registry import Handlers
from reflexarc.inference.graph.tflite.schema import Operator

HANDLERS = Handlers()


def _variable(operator: Operator) -> str:
    """The name that joins the handles of one variable."""
    options = operator.options
    container, name = (options.text(0), options.text(1)) if options is not None else ("", "")
    return f"{container}/{name}" if container else name


@HANDLERS("VAR_HANDLE")
def _handle(context: Context) -> None:
    context.resources[context.result().index] = _variable(context.operator)


@HANDLERS("CALL_ONCE")
def _call_once(context: Context) -> None:
    """Read the graph that initializes: constants assigned to variables, nothing else."""
    index = context.option("subgraph")
    if not 0 < index < len(context.model.graphs):
        raise ModelError(f"{context.operator}: graph {index} of {len(context.model.graphs)}")
    graph, handles = context.model.graphs[index], {}
    for operator in graph.operators:
        if operator.name == "VAR_HANDLE" and operator.outputs:
            handles[operator.outputs[0]] = _variable(operator)
        elif operator.name == "ASSIGN_VARIABLE" and len(operator.inputs) == 2:
            handle, value = operator.inputs
            if handle not in handles or value < 0:
                raise ModelError(f"{operator} of graph {graph.name!r}: assigns to no variable")
            context.starts[handles[handle]] = context.content(graph.tensors[value])
        else:
            raise ModelError(f"{operator} of graph {graph.name!r}: initializing takes constants only")


def _named(context: Context) -> str:
    variable = context.resources.get(context.operator.inputs[0] if context.operator.inputs else -1)
    if variable is None:
        raise ModelError(f"{context.operator}: its first input is no variable")
    return variable


@HANDLERS("READ_VARIABLE")
def _read(context: Context) -> None:
    variable = _named(context)
    if variable not in context.variables:
        if variable not in context.starts:
            raise ModelError(f"{context.operator}: variable {variable!r} is read before it is assigned")
        context.variables[variable] = context.keep(variable, context.result(), context.starts[variable])
    context.give(context.variables[variable])


@HANDLERS("ASSIGN_VARIABLE")
def _assign(context: Context) -> None:
    context.variables[_named(context)] = context.name(1)
