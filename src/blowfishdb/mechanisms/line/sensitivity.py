"""The exact sensitivity of hats and ramps under a θ-line.

A record that moves from cell u to cell v > u changes the rows of one stride s by, with u = sB + r, v = sB' +
r',

    2|r − r'|                       if B' = B,
    (s − r) + |s − r − r'| + r'     if B' = B + 1,
    2s                              otherwise,

because only the triangles B, B+1 meet u, with heights s − r and r; and it changes the ramps by the number of
ramp cuts in u+1 … v, because a ramp is monotone. The maximum over u is taken for one distance at a time,
from min(θ, k−1) down. A distance D cannot cost more than Σ_s w_s·min(2s, 2D) + w_ramp·(most ramp cuts among
D), which does not decrease in D, so the search stops as soon as this bound is reached: nearly always after
one distance.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import IntArray
from blowfishdb.mechanisms.line.shape import Ramp, Shape

_SAFE = 2**62


def sensitivity(shape: Shape, theta: int, weights: tuple[int, ...], reach: IntArray | None = None) -> int:
    """K = max over moves of at most θ cells of Σ_r w_r·|a_r·(e_u − e_v)|, exactly.

    ``reach``: how far cell u really moves to the right, if less than θ, as under a banded policy.
    """
    farthest = min(theta, shape.cuts)
    best = 0
    # int64 holds every sum whenever it holds the bound; Python integers take over beyond that.
    kind = np.int64 if _bound(shape, max(farthest, 1), weights) < _SAFE else object
    for distance in range(farthest, 0, -1):
        if _bound(shape, distance, weights) <= best:
            break
        u = np.arange(shape.cells - distance)
        if reach is not None:
            u = u[reach[: len(u)] >= distance]
        best = max(best, int(np.max(_costs(shape, u, distance, weights, kind), initial=0)))
    return best


def peaks(shape: Shape, theta: int) -> tuple[int, ...]:
    """The most that the unweighted rows of each group alone can change along an edge."""
    groups = range(shape.groups)
    return tuple(sensitivity(shape, theta, tuple(int(g == h) for h in groups)) for g in groups)


def _bound(shape: Shape, distance: int, weights: tuple[int, ...]) -> int:
    total = sum(w * min(2 * s, 2 * distance) for s, w in zip(shape.hats, weights, strict=False))
    if shape.ramp is not None:
        total += weights[-1] * _most_ramp_cuts(shape.ramp, distance)
    return total


def _most_ramp_cuts(ramp: Ramp, distance: int) -> int:
    whole, rest = divmod(distance, ramp.stride)
    return whole * ramp.window + min(rest, ramp.window)


def _costs(shape: Shape, u: IntArray, distance: int, weights: tuple[int, ...], kind: type) -> NDArray[Any]:
    """The cost of the moves u → u + distance."""
    v = u + distance
    total: NDArray[Any] = np.zeros(len(u), dtype=kind)
    for stride, weight in zip(shape.hats, weights, strict=False):
        total += _hat_changes(stride, u, v).astype(kind) * weight
    if shape.ramp is not None:
        total += (_ramp_cuts(shape.ramp, v) - _ramp_cuts(shape.ramp, u)).astype(kind) * weights[-1]
    return total


def _hat_changes(stride: int, u: IntArray, v: IntArray) -> IntArray:
    (block_u, r), (block_v, t) = np.divmod(u, stride), np.divmod(v, stride)
    next_block = (stride - r) + np.abs(stride - r - t) + t
    same, adjacent = block_v == block_u, block_v == block_u + 1
    return np.where(same, 2 * np.abs(r - t), np.where(adjacent, next_block, 2 * stride))


def _ramp_cuts(ramp: Ramp, cell: IntArray) -> IntArray:
    """How many ramp cuts lie among the cuts 1 … cell."""
    block, rest = np.divmod(cell, ramp.stride)
    return block * ramp.window + np.minimum(rest, ramp.window)
