"""The Hilbert curve: the cells of a grid in one row, neighbours in the row being neighbours in the grid.

Data-dependent mechanisms group cells along it: a run of the row is a compact piece of the grid.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from blowfishdb.core.arrays import IntArray

_REMEMBERED = 64


@lru_cache(maxsize=_REMEMBERED)
def hilbert_order(rows: int, columns: int) -> IntArray:
    """The row-major indices of a grid's cells, in the order in which the curve visits them (read-only).

    On a grid of 2^a × 2^b cells every step is to a side neighbour. Any other grid takes the order of the
    least such grid that holds it, and steps may then be longer.
    """
    tall, wide = _power_of_two(rows), _power_of_two(columns)
    along, across = _squares_in_a_row(max(tall, wide), min(tall, wide))
    row, column = (along, across) if tall >= wide else (across, along)
    inside = (row < rows) & (column < columns)
    order = np.asarray(row * columns + column)[inside]
    order.flags.writeable = False
    return order


def _power_of_two(length: int) -> int:
    """The least power of two that is at least ``length``."""
    return 1 << (length - 1).bit_length()


def _squares_in_a_row(length: int, side: int) -> tuple[IntArray, IntArray]:
    """The curve through length/side squares: each ends beside where the next one starts."""
    along, across = _square(side)
    first = np.repeat(np.arange(0, length, side, dtype=np.int64), side * side)
    squares = length // side
    return first + np.tile(along, squares), np.tile(across, squares)


def _square(side: int) -> tuple[IntArray, IntArray]:
    """The curve from (0, 0) to (side − 1, 0): four half-size curves, the outer two turned."""
    along, across = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    half = 1
    while half < side:
        along, across = (
            np.concatenate((across, along, along + half, 2 * half - 1 - across)),
            np.concatenate((along, across + half, across + half, half - 1 - along)),
        )
        half *= 2
    return along, across
