"""How a window of samples fits the input of a model: told from the two shapes, or refused."""

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """`shape` is the model's input; `channels_first` says that samples come last there."""

    shape: Shape
    channels_first: bool


def fit(length: int, sample: Shape, model: Shape, who: str) -> Layout:
    """The layout that puts a window `[length, *sample]` into a model's input.

    The input is `[length, *sample]` or `[channels, length]`, after any number of ones (a batch of one);
    a flat input takes samples of one number. Raises ValueError, naming `who`, where none fits or two do.
    """
    last = _stripped(model, (length, *sample)) or (prod(sample) == 1 and prod(model) == length)
    first = len(sample) == 1 and _stripped(model, (sample[0], length))
    if last and first and length != 1 and sample[0] != 1:
        raise ValueError(f"{who}: input {list(model)} fits {length} samples both as rows and as columns")
    if not last and not first:
        wanted = [[length, *sample]] + ([[sample[0], length]] if len(sample) == 1 else [])
        either = " or ".join(map(str, wanted))
        raise ValueError(f"{who}: input {list(model)} does not fit a window, {either} (with a batch of 1)")
    return Layout(model, channels_first=not last)


def _stripped(model: Shape, wanted: Shape) -> bool:
    """Whether `model` is `wanted` behind ones."""
    ahead = len(model) - len(wanted)
    return ahead >= 0 and model[ahead:] == wanted and prod(model[:ahead]) == 1


class Scaler:
    """Brings windows `[length, *sample]` into a model's input: x * scale + offset in float32, laid out.

    `scale` and `offset` hold one number, or one for each position on the last axis of a sample.
    """

    def __init__(self, layout: Layout, scale: tuple[float, ...], offset: tuple[float, ...]) -> None:
        self._layout = layout
        self._scale = self._factors(scale, 1.0)
        self._offset = self._factors(offset, 0.0)
        self._input = np.zeros(layout.shape, np.float32)

    def __call__(self, window: NDArray[np.float32]) -> NDArray[np.float32]:
        """The model's input, valid until the next call."""
        view = window.T if self._layout.channels_first else window
        out = self._input.reshape(view.shape)
        if self._scale is None:
            out[...] = view
        else:
            np.multiply(view, self._scale, out=out)
        if self._offset is not None:
            np.add(out, self._offset, out=out)
        return self._input

    def _factors(self, factors: tuple[float, ...], neutral: float) -> NDArray[np.float32] | None:
        if all(factor == neutral for factor in factors):
            return None
        array = np.asarray(factors, np.float32)
        return array[:, None] if self._layout.channels_first and len(factors) > 1 else array
