"""Between cells and buckets: the row in which cells are cut, and the even spread back to them."""

from __future__ import annotations

import math

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.workloads import Marginals, Product, Rectangles, Workload
from blowfishdb.mechanisms.hilbert import hilbert_order


def row_order(workload: Workload) -> IntArray | None:
    """The cells of a grid along a curve that keeps neighbours together; None where they are in a row already.

    Two axes: the Hilbert curve. More: the bits of the coordinates in turn.
    """
    if not isinstance(workload, Marginals | Product | Rectangles):
        return None
    shape = tuple(length for length in workload.shape if length > 1)
    if len(shape) < 2:
        return None
    return hilbert_order(*shape) if len(shape) == 2 else _interleaved(shape)


def _interleaved(shape: tuple[int, ...]) -> IntArray:
    places = np.unravel_index(np.arange(math.prod(shape)), shape)
    keys = np.zeros(places[0].size, dtype=np.int64)
    for bit in range(max(length - 1 for length in shape).bit_length() - 1, -1, -1):
        for place, length in zip(places, shape, strict=True):
            if bit < (length - 1).bit_length():
                keys = keys << 1 | (place >> bit & 1)
    return np.argsort(keys, kind="stable").astype(np.int64)


def expand(buckets: IntArray, counts: FloatArray, order: IntArray | None, size: int) -> FloatArray:
    """Every bucket's count spread evenly over its cells."""
    lengths = np.diff(buckets, append=size)
    row = np.repeat(counts / lengths, lengths)
    if order is None:
        return row
    cells = np.empty(size)
    cells[order] = row
    return cells
