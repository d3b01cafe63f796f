"""Random training windows: what differs between people, watches and straps, drawn afresh for every batch."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reflexarc.configs.exosuit.watch import Series

Array = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Augmentation:
    """How far a training window strays from the recording."""

    tempo: float = 0.15
    """Largest change of pace, as a natural logarithm, uniform; the rate of turn scales with the pace."""
    tilt_deg: float = 8.0
    """Standard deviation of a rotation of the watch about a random axis, one for both sensors."""
    effort: float = 0.1
    """Standard deviation of the logarithm of a gain on everything that moves (not on gravity)."""
    noise: float = 0.02
    """Standard deviation of white noise on each sample."""


class Sampler:
    """Draws batches of augmented windows [n, 6, length] and labels [n] from random places of the series."""

    def __init__(
        self,
        series: Sequence[Series],
        scale: float,
        length: int,
        augmentation: Augmentation,
        rng: np.random.Generator,
    ) -> None:
        self._samples = np.concatenate([s.counts for s in series]).astype(np.float32) * np.float32(scale)
        self._sizes = np.array([len(s.counts) for s in series])
        self._starts = np.cumsum(self._sizes) - self._sizes
        self._labels = np.array([s.label for s in series])
        self._length = length
        self._augmentation = augmentation
        self._rng = rng

    def draw(self, n: int) -> tuple[Array, NDArray[np.int64]]:
        """Return n windows and their labels; every series is equally likely."""
        how, rng = self._augmentation, self._rng
        which = rng.integers(len(self._labels), size=n)
        pace = np.exp(rng.uniform(-how.tempo, how.tempo, size=n))
        windows = self._cut(which, pace)
        windows[..., 3:] *= pace[:, None, None]
        windows = np.einsum("nij,ntsj->ntsi", _rotations(rng, n, how.tilt_deg), windows.reshape(n, -1, 2, 3))
        gain = np.exp(rng.normal(0.0, how.effort, size=(n, 1, 1)))
        rest = windows.mean(axis=1, keepdims=True)
        rest[:, :, 1] = 0.0
        windows = ((windows - rest) * gain[..., None] + rest).reshape(n, -1, 6)
        windows += rng.normal(0.0, how.noise, size=windows.shape)
        return np.ascontiguousarray(windows.transpose(0, 2, 1), np.float32), self._labels[which]

    def _cut(self, which: NDArray[np.int64], pace: NDArray[np.float64]) -> NDArray[np.float64]:
        """Windows [n, length, 6] of the chosen series at the given pace, linear between samples."""
        last = self._sizes[which] - 2
        np.minimum(pace, last / self._length, out=pace)
        begin = self._rng.uniform(size=len(which)) * (last - pace * (self._length - 1))
        position = begin[:, None] + pace[:, None] * np.arange(self._length)
        whole = position.astype(np.int64)
        part = (position - whole)[..., None]
        index = whole + self._starts[which][:, None]
        between: NDArray[np.float64] = self._samples[index] * (1.0 - part) + self._samples[index + 1] * part
        return between


def _rotations(rng: np.random.Generator, n: int, sigma_deg: float) -> NDArray[np.float64]:
    """Rotation matrices [n, 3, 3] about uniformly random axes (Rodrigues' formula)."""
    axis = rng.normal(size=(n, 3))
    x, y, z = (axis / np.linalg.norm(axis, axis=1, keepdims=True)).T
    zero = np.zeros(n)
    cross = np.array([[zero, -z, y], [z, zero, -x], [-y, x, zero]]).transpose(2, 0, 1)
    angle = np.deg2rad(rng.normal(0.0, sigma_deg, size=(n, 1, 1)))
    rotation: NDArray[np.float64] = (
        np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * (cross @ cross)
    )
    return rotation
