"""Memory that compiled code runs on: zeroed pages at a known address, which can be made read-only."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reflexarc.inference.graph.ir import Shape


class Region:
    """`nbytes` zeroed bytes on pages of their own, freed with the last array that looks into them."""

    def __init__(self, nbytes: int) -> None:
        self._pages = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._pages, np.uint8)
        self.address = int(self.bytes.ctypes.data)

    def array(self, offset: int, shape: Shape, steps: Shape, dtype: np.dtype[Any]) -> NDArray[Any]:
        """The elements of a tensor at an offset, `steps` bytes apart."""
        return np.ndarray(shape, dtype, buffer=self._pages, offset=offset, strides=steps)

    def protect(self) -> None:
        """Make the pages read-only: a write is a fault from now on."""
        mprotect = ctypes.CDLL(None, use_errno=True).mprotect
        size = -(-len(self.bytes) // mmap.PAGESIZE) * mmap.PAGESIZE
        if mprotect(ctypes.c_void_p(self.address), ctypes.c_size_t(size), mmap.PROT_READ):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
