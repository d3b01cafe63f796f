"""What a worker will take before it takes any of it: its models read and laid out, its buffers counted."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Tensor
from reflexarc.inference.isa import Tier
from reflexarc.inference.lower import lower
from reflexarc.inference.program import MemoryPlan
from reflexarc.inference.session import read
from reflexarc.node.config.schema import Config, Stream
from reflexarc.node.config.schema import Pipeline as Section
from reflexarc.node.worker.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class Outline:
    """A model's inputs, outputs and memory: enough to fit a pipeline to it, not to run it."""

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]
    memory: MemoryPlan

    def run(self, x: NDArray[np.float32]) -> Sequence[NDArray[Any]]:
        """Never: raises RuntimeError."""
        raise RuntimeError("an outline of a model cannot run")

    def raw(self, index: int) -> NDArray[Any] | None:
        """Never: raises RuntimeError."""
        raise RuntimeError("an outline of a model cannot run")


def outline(pipeline: Section, stream: Stream, tier: Tier) -> Outline:
    """A pipeline's model, fitted to its window and its labels.

    Raises OSError where it cannot be read, ValueError or RuntimeError where it cannot be used.
    """
    lowered = lower(read(pipeline.model), tier)
    shape = Outline(
        [port.tensor for port in lowered.inputs],
        [port.tensor for port in lowered.outputs],
        lowered.program.memory,
    )
    Pipeline(pipeline, stream, shape, session=0)
    return shape


def footprint(config: Config, worker: str, models: Sequence[MemoryPlan]) -> dict[str, int]:
    """Bytes of a worker beyond its runtime, by what they are for, every buffer at its fullest."""
    return {
        "weights": sum(model.weights for model in models),
        "arena": sum(model.arena + model.scratch for model in models),
        "windows": sum(_window(config, pipeline) for pipeline in config.pipelines_of(worker)),
        "queues": sum(stream.queue * stream.max_bytes for stream in config.streams_of(worker)),
    }


def _window(config: Config, pipeline: Section) -> int:
    """Samples as float32, each with its stamp, twice over so that any window is contiguous."""
    stream = config.streams[pipeline.window.stream]
    return 2 * pipeline.window.length * (4 * stream.elements + 8)
