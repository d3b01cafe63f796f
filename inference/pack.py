"""Weights as the kernels read them: groups of V vectors of output channels, one after the other.

A group of 8-bit weights is V vectors of biases (i32), V or more of what the sums are scaled with, then for
each four consecutive inputs V blocks of LANES rows (`Tier.weight_order`). A group of float weights is V
vectors of biases, then for each input V vectors. A group of depthwise weights is a vector of biases, those
of scaling, then a vector for each tap: 8-bit weights as i32. What no channel fills is zero.

An 8-bit layer's `heads` are its bias and what its sums are scaled with, arrays [channels]: multipliers (f32,
or f64), or multipliers, left shifts and right shifts (i32).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.isa import Tier
from reflexarc.inference.tiles import parts

Heads = tuple[NDArray[Any], ...]


def shape8(channels: int, words: int, tier: Tier, vectors: int, heads: Heads) -> tuple[int, int]:
    """The shape `pack8` gives for so many 4-byte words of inputs."""
    size = vectors * tier.lanes
    return -(-channels // size), size * (sum(head.itemsize for head in heads) + 4 * words)


def shape32(channels: int, inputs: int, tier: Tier, vectors: int) -> tuple[int, int]:
    """The shape `pack32` gives."""
    size = vectors * tier.lanes
    return -(-channels // size), size * (4 + 4 * inputs)


def pack8(w: NDArray[np.int8], heads: Heads, tier: Tier, vectors: int) -> NDArray[np.uint8]:
    """[groups, bytes] of weights [channels, segments, length], each segment filled up with zeros to whole
    words.

    The bias already holds what the zero point and `Tier.bias` add.
    """
    channels, segments, length = w.shape
    words, lanes = -(-length // 4), tier.lanes
    groups = -(-channels // (vectors * lanes))
    full = np.zeros((groups * vectors * lanes, segments, words * 4), np.int8)
    full[:channels, :, :length] = w
    quads = full.reshape(groups, vectors, lanes, segments * words, 4)
    rows, ks = np.array(tier.weight_order).T
    blocks = quads.transpose(0, 3, 1, 2, 4)[:, :, :, rows, ks]  # [groups, step, vector, byte]
    passes = blocks.reshape(groups, segments, words, vectors, parts(tier), -1).transpose(0, 1, 4, 2, 3, 5)
    return _groups(groups, vectors * lanes, heads, passes)


def pack32(w: NDArray[np.float32], bias: NDArray[np.float32], tier: Tier, vectors: int) -> NDArray[np.uint8]:
    """[groups, bytes] of weights [channels, inputs] and biases [channels]."""
    channels, inputs = w.shape
    size = vectors * tier.lanes
    groups = -(-channels // size)
    full = np.zeros((groups * size, inputs), np.float32)
    full[:channels] = w
    return _groups(groups, size, (bias,), full.reshape(groups, size, inputs).transpose(0, 2, 1))


def shape_taps(channels: int, taps: int, tier: Tier, heads: Heads) -> tuple[int, int]:
    """The shape `pack_taps` gives."""
    return shape8(channels, taps, tier, 1, heads)


def pack_taps(w: NDArray[Any], heads: Heads, tier: Tier) -> NDArray[np.uint8]:
    """[groups, bytes] of depthwise weights [channels, taps], f32 or i32 of at most 16 bits."""
    channels, taps = w.shape
    groups = -(-channels // tier.lanes)
    full = np.zeros((groups * tier.lanes, taps), w.dtype)
    full[:channels] = w
    return _groups(groups, tier.lanes, heads, full.reshape(groups, tier.lanes, taps).transpose(0, 2, 1))


def _groups(groups: int, size: int, heads: Heads, body: NDArray[Any]) -> NDArray[np.uint8]:
    """Each group's part of the per-channel `heads`, filled up with zeros, then its part of the body, as
    bytes."""
    parts = []
    for values in heads:
        full = np.zeros(groups * size, values.dtype)
        full[: len(values)] = values
        parts.append(full.view(np.uint8).reshape(groups, -1))
    parts.append(np.ascontiguousarray(body).view(np.uint8).reshape(groups, -1))
    return np.concatenate(parts, axis=1)
