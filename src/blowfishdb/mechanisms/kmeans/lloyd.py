"""Lloyd's iteration on points that are public or already private, and where it starts without data."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.clusters import PointSpace

_SAMPLE = 4096
_STEPS = 40
_STILL = 1e-3
"""Centroids that move less than this rest; cells are about one long."""
_STARTS = 5


@lru_cache(maxsize=64)
def spread_out(space: PointSpace, clusters: int) -> FloatArray:
    """Starting centroids that see no data, in cells: those of points spread evenly over the box."""
    points = _halton(_SAMPLE, space.axes) * space.last
    lengths = space.lengths
    placed = lloyd(points * lengths, np.ones(_SAMPLE), points[:clusters] * lengths)
    found = np.asarray(placed / lengths)
    found.flags.writeable = False
    return found


def weighted_clusters(points: FloatArray, weights: FloatArray, starts: FloatArray) -> FloatArray:
    """The best of several runs on weighted points: from ``starts``, and from points drawn by weight.

    The draws are the same for the same points and weights, which are no secret here.
    """
    some = weights > 0
    if not some.any():
        return starts
    points, weights = points[some], weights[some]
    stream = np.random.Generator(np.random.Philox(key=2014))
    begun = [starts, *(_drawn(points, weights, len(starts), stream) for _ in range(_STARTS))]
    runs = [lloyd(points, weights, start) for start in begun]
    return min(runs, key=lambda centroids: objective(points, weights, centroids))


def lloyd(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> FloatArray:
    """Centroids moved to the means of what is nearest to them, until they rest."""
    for _ in range(_STEPS):
        labels = nearest(points, centroids)
        held = np.bincount(labels, weights, minlength=len(centroids))
        moved = centroids.copy()
        for axis in range(points.shape[1]):
            sums = np.bincount(labels, weights * points[:, axis], minlength=len(centroids))
            moved[:, axis] = np.where(held > 0, sums / np.maximum(held, 1e-300), centroids[:, axis])
        rests = np.allclose(moved, centroids, rtol=0, atol=_STILL)
        centroids = moved
        if rests:
            break
    return centroids


def nearest(points: FloatArray, centroids: FloatArray) -> IntArray:
    """The nearest centroid of every point."""
    scores = (centroids**2).sum(axis=1) - 2 * points @ centroids.T
    return np.asarray(np.argmin(scores, axis=1), dtype=np.int64)


def objective(points: FloatArray, weights: FloatArray, centroids: FloatArray) -> float:
    """Σ weight·(squared distance to the nearest centroid)."""
    least = ((points - centroids[nearest(points, centroids)]) ** 2).sum(axis=1)
    return float((weights * least).sum())


def _drawn(points: FloatArray, weights: FloatArray, count: int, stream: np.random.Generator) -> FloatArray:
    """Points drawn one after the other, by weight and squared distance to those before (k-means++)."""
    chosen = [points[stream.choice(len(points), p=weights / weights.sum())]]
    for _ in range(count - 1):
        apart = np.min([((points - centre) ** 2).sum(axis=1) for centre in chosen], axis=0) * weights
        total = apart.sum()
        likely = apart / total if total > 0 else weights / weights.sum()
        chosen.append(points[stream.choice(len(points), p=likely)])
    return np.array(chosen)


def _halton(count: int, axes: int) -> FloatArray:
    """Points spread evenly over the unit cube: the digits of 1, 2, 3, … in prime bases, mirrored."""
    columns = []
    for base in _primes(axes):
        left, value, scale = np.arange(1, count + 1), np.zeros(count), 1.0
        while left.any():
            scale /= base
            value += scale * (left % base)
            left = left // base
        columns.append(value)
    return np.column_stack(columns)


def _primes(count: int) -> list[int]:
    found: list[int] = []
    number = 2
    while len(found) < count:
        if all(number % prime for prime in found):
            found.append(number)
        number += 1
    return found
