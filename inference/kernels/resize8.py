"""Images of 8-bit elements at another size."""

from __future__ import annotations

from reflexarc.inference.instructions import BLOCK, RESIZE8
from reflexarc.inference.kernels._share import share
from reflexarc.inference.simd import LANES, load_q, peek_i32, peek_i64, select, splat_i32, store_first_q

_at = RESIZE8.at
_ONE, _BITS = 1 << 10, 20


def resize8(instruction: int, thread: int, threads: int) -> None:
    """The mean of four elements, weighted by how near they are, rounded half away from zero."""
    block = peek_i64(instruction + BLOCK)
    x, y, channels = peek_i64(block + _at.x), peek_i64(block + _at.y), peek_i64(block + _at.channels)
    row_places, col_places = peek_i64(block + _at.row_places), peek_i64(block + _at.col_places)
    y_row, y_col, cols = peek_i64(block + _at.y_row), peek_i64(block + _at.y_col), peek_i64(block + _at.cols)
    first, last = share(peek_i64(block + _at.rows), thread, threads)
    for row in range(first, last):
        place = row_places + 12 * row
        above, below, down = x + peek_i32(place), x + peek_i32(place + 4), peek_i32(place + 8)
        for col in range(cols):
            place = col_places + 12 * col
            left, right, along = peek_i32(place), peek_i32(place + 4), peek_i32(place + 8)
            for c in range(0, channels, LANES):
                total = load_q(above + left + c) * ((_ONE - down) * (_ONE - along))
                total = total + load_q(above + right + c) * ((_ONE - down) * along)
                total = total + load_q(below + left + c) * (down * (_ONE - along))
                total = total + load_q(below + right + c) * (down * along)
                half = select(total > 0, splat_i32(1 << (_BITS - 1)), splat_i32(-(1 << (_BITS - 1))))
                total = total + half
                total = select(total < 0, total + ((1 << _BITS) - 1), total) >> _BITS
                store_first_q(y + row * y_row + col * y_col + c, total, channels - c)


KERNELS = (resize8,)
