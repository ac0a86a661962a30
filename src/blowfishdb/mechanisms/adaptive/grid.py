"""The public tree of a grid: boxes within boxes, each one's children in the order of a Hilbert curve.

Written down in that order, every box and every group of consecutive boxes is one run of cells, so that a grid
is measured exactly as a line is.
"""

from __future__ import annotations

import math

import numpy as np

from blowfishdb.core.arrays import IntArray, ceil_div
from blowfishdb.mechanisms.adaptive.tree import STOP, PublicTree, enumerated
from blowfishdb.mechanisms.hilbert import hilbert_order

_LAST_STOP = 6  # units of noise, on the last level but one of a deep tree: what is below costs little more
_FANOUT = 64


def grid_tree(rows: int, columns: int) -> PublicTree:
    """Boxes of at most about 64 children, down to single cells."""
    levels = max(1, round(math.log(rows * columns, _FANOUT)))
    stops = [STOP] * levels
    if levels >= 3:
        stops[-2] = _LAST_STOP
    corners = np.array([[0], [0], [rows], [columns]], dtype=np.int64)
    cuts = [np.array([0, rows * columns], dtype=np.int64)]
    for fanouts in zip(_fanouts(rows, levels), _fanouts(columns, levels), strict=True):
        corners = _children(corners, *fanouts)
        areas = (corners[2] - corners[0]) * (corners[3] - corners[1])
        cuts.append(np.concatenate((np.zeros(1, dtype=np.int64), np.cumsum(areas))))
    return PublicTree(tuple(cuts), (1,) * levels, tuple(stops), corners[0] * columns + corners[1])


def _fanouts(length: int, levels: int) -> list[int]:
    """Powers of two that share out the length; what is left for the last level."""
    found = []
    for level in range(1, levels):
        bits = ceil_div((length - 1).bit_length(), levels - level + 1)
        found.append(min(length, 1 << bits))
        length = ceil_div(length, found[-1])
    return [*found, length]


def _children(corners: IntArray, down: int, right: int) -> IntArray:
    """The children of all boxes (top, left, bottom, right; one column each), box by box."""
    top, left, bottom, end = corners
    tall, wide = np.minimum(bottom - top, down), np.minimum(end - left, right)
    box, place = enumerated(tall * wide)
    across = np.empty_like(place)
    for height, width in np.unique(np.stack((tall, wide)), axis=1).T:
        own = ((tall == height) & (wide == width))[box]
        across[own] = hilbert_order(int(height), int(width))[place[own]]
    row, column = np.divmod(across, wide[box])
    return np.stack(
        (
            _cut(top, bottom, tall, box, row),
            _cut(left, end, wide, box, column),
            _cut(top, bottom, tall, box, row + 1),
            _cut(left, end, wide, box, column + 1),
        )
    )


def _cut(low: IntArray, high: IntArray, parts: IntArray, box: IntArray, place: IntArray) -> IntArray:
    return low[box] + (high - low)[box] * place // parts[box]
