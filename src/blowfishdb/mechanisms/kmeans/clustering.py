"""Clustering: what a private clustering returns, and what every way to make one can do.

Clusters of a histogram: one private histogram with all of ε, and k-means on what left it.

Lloyd's iteration on points that are public or already private, and where it starts without data.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NoReturn, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray, ceil_div
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.domain.bins import Bins, ProductBins
from blowfishdb.core.errors import NoGuarantee, NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.questions.clusters import PointSpace, RowTotals
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import Histogram, Product, Workload
from blowfishdb.mechanisms.adaptive.tree import AdaptiveTree
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.plan import DataDependentPlan, Plan

Progress = Callable[[int, int], None]
"""Called after every round with how many are done, and how many there are."""


@final
@dataclass(frozen=True)
class Round:
    """One measurement: what it cost, and what noise it had; an exact part has no cost and no noise."""

    sizes: Epsilon
    sums: Epsilon
    size_change: int
    sum_change: int

    @property
    def size_scale(self) -> float:
        """The scale of the noise of the sizes."""
        return self.size_change / float(self.sizes) if self.sizes else 0.0


@final
@dataclass(frozen=True, eq=False)
class Clustering:
    """Private centroids, in cells, with the noisy number of rows nearest to each."""

    centroids: FloatArray
    sizes: FloatArray
    spent: Epsilon
    rounds: tuple[Round, ...]
    exact: bool


class ClusterPlan(ABC):
    """One way to cluster under one policy. Everything about its cost is known before the data is read."""

    name: str
    space: PointSpace
    graph: PolicyGraph
    clusters: int

    @property
    @abstractmethod
    def free(self) -> bool:
        """Whether no hidden move changes anything that is measured: then it is exact and costs nothing."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """How often the data is asked."""

    @abstractmethod
    def release(
        self, rows: RowTotals, *, epsilon: AnyEpsilon, noise: Noise, progress: Progress | None = None
    ) -> Clustering:
        """A private clustering at ``epsilon``, which covers everything that is measured."""

    @abstractmethod
    def expected_excess(self, *, epsilon: AnyEpsilon, rows: int) -> float:
        """A public guess of by how much noise and bins raise the mean squared distance of a row.

        For choosing between plans only: how far off a clustering is depends on the data.
        """

    @abstractmethod
    def explain(self) -> str:
        """What the plan does and why it is private, in a sentence or two."""

    @final
    def epsilon_for(self, *, alpha: float, beta: float, simultaneous: bool = True) -> NoReturn:
        """No ε is known to reach an accuracy on all data."""
        raise NoGuarantee(
            "How far off clusters are depends on the data, so no accuracy is promised.",
            fixes=("state an ε instead",),
        )


_SAMPLE = 4096
_STEPS = 40
_STILL = 1e-3
"""Centroids that move less than this rest; cells are about one long."""
_STARTS = 5


@lru_cache(maxsize=64)
def spread_out(space: PointSpace, clusters: int) -> FloatArray:
    """Starting centroids that see no data, in cells: those of points spread evenly over the box."""
    points, lengths = even_places(space, _SAMPLE), space.lengths
    placed = lloyd(points * lengths, np.ones(_SAMPLE), points[:clusters] * lengths)
    places = np.asarray(placed / lengths)
    places.flags.writeable = False
    return places


def even_places(space: PointSpace, count: int) -> FloatArray:
    """Points spread evenly over the box, in cells: the more there are, the more evenly."""
    return np.asarray(_halton(count, space.axes) * space.last)


def mean_cluster_spread(space: PointSpace, clusters: int) -> float:
    """The variance of a row within its cluster if rows were spread evenly and the box shared out in cubes."""
    return float((_side_lengths(space) ** 2).sum() / clusters ** (2 / space.axes) / 12)


def _side_lengths(space: PointSpace) -> FloatArray:
    return np.array([n * w for n, w in zip(space.shape, space.weights, strict=True)], dtype=np.float64)


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
    primes: list[int] = []
    number = 2
    while len(primes) < count:
        if all(number % prime for prime in primes):
            primes.append(number)
        number += 1
    return primes


MOST_BOXES = 2**16
_TREE_SIDE = 256
"""Bins along each of two axes, where a tree decides how closely to look."""
_TREE_LINE = 4096
_BLUR = 0.05
"""How much of the variance inside a box shows in the mean squared distance: a guess. It is less where
clusters lie apart and more where they overlap (docs/proofs/kmeans.md)."""


@final
@dataclass(frozen=True, eq=False)
class HistogramClusters(ClusterPlan):
    """Counts of boxes of ``bins`` by a proven mechanism; the rest is post-processing and costs nothing."""

    space: PointSpace
    graph: PolicyGraph
    clusters: int
    bins: tuple[Bins, ...]
    name: str = "k-means on a histogram"

    @classmethod
    def candidates(
        cls, space: PointSpace, graph: PolicyGraph, clusters: int, *, epsilon: Epsilon, rows: int
    ) -> Iterator[HistogramClusters]:
        """A public choice of bins for about ``rows`` rows, and the parts of the policy where it has some."""
        yield cls(space, graph, clusters, _fitting_bins(space, graph, clusters, float(epsilon) * rows))
        parts = _parts(space, graph)
        if parts is not None and clusters < math.prod(each.count for each in parts) <= MOST_BOXES:
            yield cls(space, graph, clusters, parts)

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The number of bins along each axis."""
        return tuple(each.count for each in self.bins)

    @cached_property
    def inner(self) -> Plan | DataDependentPlan:
        """How the histogram is made: a tree that looks closer where it pays, or noise on every box."""
        graph = self.graph.project(self.bins[0] if len(self.bins) == 1 else ProductBins(self.bins))
        if graph.edge_count and len(self.bins) <= 2:
            with suppress(NotProven):
                return AdaptiveTree().plan(self._workload, graph)
        whole = not graph.absent and graph.components().count == 1
        return Laplace(on="cells" if whole else "workload").plan(self._workload, graph)

    @property
    def _workload(self) -> Workload:
        lines = [Histogram(count) for count in self.shape]
        return lines[0] if len(lines) == 1 else Product(*lines)

    @property
    def free(self) -> bool:
        return isinstance(self.inner, Plan) and self.inner.free

    @property
    def steps(self) -> int:
        return 1

    def release(
        self, rows: RowTotals, *, epsilon: AnyEpsilon, noise: Noise, progress: Progress | None = None
    ) -> Clustering:
        paid = Epsilon(0) if self.free else positive(epsilon)
        counts = rows.counts(self.bins)
        answers = self.inner.release(counts, epsilon=paid or Epsilon(1), noise=noise)
        weights = not_negative(np.asarray(answers, dtype=np.float64))
        points, lengths = self._middles * self.space.lengths, self.space.lengths
        start = spread_out(self.space, self.clusters) * lengths
        centres = weighted_clusters(points, weights, start)
        held = np.bincount(nearest(points, centres), weights, minlength=self.clusters)
        if progress is not None:
            progress(1, 1)
        change = 0 if self.free else scaled_sensitivity(self._workload, self.inner.graph)
        once = Round(paid, Epsilon(0), change, 0)
        return Clustering(
            centres / lengths,
            held.astype(np.float64),
            paid,
            (once,),
            exact=self.free and self.shape == self.space.shape,
        )

    @cached_property
    def _middles(self) -> FloatArray:
        """The middle of every box, in cells."""
        every = [np.arange(each.count) for each in self.bins]
        lines = [(b.first(at) + b.last(at)) / 2 for b, at in zip(self.bins, every, strict=True)]
        return np.stack([grid.ravel() for grid in np.meshgrid(*lines, indexing="ij")], axis=1)

    def expected_excess(self, *, epsilon: AnyEpsilon, rows: int) -> float:
        """The noise of the boxes of a cluster on its mean, and what is lost inside the boxes, per row."""
        if self.free:
            return _BLUR * self._spread_inside
        counts = self.shape
        if isinstance(self.inner, DataDependentPlan):  # a tree is as good as the best bins
            fitting = _fitting_count(self.space, self.clusters, float(positive(epsilon)) * rows)
            counts = tuple(min(count, fitting) for count in counts)
        blur = _BLUR * float(((_side_lengths(self.space) / counts) ** 2 / 12).sum())
        noisy = 2 * (2 / float(positive(epsilon))) ** 2 * math.prod(counts) / self.clusters
        spread = mean_cluster_spread(self.space, self.clusters)
        return blur + noisy * spread / (rows / self.clusters) ** 2

    @property
    def _spread_inside(self) -> float:
        """The variance of a row within its box if rows were spread evenly; boxes may differ in length."""
        spread = 0.0
        for bins, weight in zip(self.bins, self.space.weights, strict=True):
            every = np.arange(bins.count)
            widths = (bins.last(every) - bins.first(every) + 1).astype(np.float64)
            spread += weight**2 * float((widths**3).sum() / widths.sum()) / 12
        return spread

    def explain(self) -> str:
        boxes = "×".join(f"{count:,}" for count in self.shape)
        return (
            f"One private histogram of {boxes} boxes with all of ε; the {self.clusters} clusters are computed"
            f" from it, which costs nothing. {self.inner.explain()}"
        )


def not_negative(answers: FloatArray) -> FloatArray:
    """The nearest counts that are not negative and have the same total (zeros if that is not positive)."""
    total = float(answers.sum())
    if total <= 0:
        return np.zeros_like(answers)
    ordered = np.sort(answers)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, ordered.size + 1)
    last = int(np.flatnonzero(ordered > excess)[-1])
    return np.asarray(np.maximum(answers - excess[last], 0.0))


def _fitting_bins(space: PointSpace, graph: PolicyGraph, clusters: int, signal: float) -> tuple[Bins, ...]:
    if space.axes == 1 and not graph.absent:
        return (Bins.width(space.size, ceil_div(space.size, _TREE_LINE)),)
    if space.axes == 2 and not graph.absent:
        return tuple(Bins.width(n, ceil_div(n, _TREE_SIDE)) for n in space.shape)
    side = _fitting_count(space, clusters, signal)
    return tuple(Bins.width(n, ceil_div(n, side)) for n in space.shape)


def _fitting_count(space: PointSpace, clusters: int, signal: float) -> int:
    """Bins along every axis at which noise and blur are balanced: with m of them noise grows as m^axes and
    blur falls as 1/m². ``signal`` is ε times the number of rows."""
    crowd = clusters ** (1 - 2 / space.axes)
    best = (2 * _BLUR * signal**2 / (8 * space.axes * crowd)) ** (1 / (space.axes + 2))
    most = math.floor(MOST_BOXES ** (1 / space.axes) + 1e-9)
    return int(min(max(round(best), 2), most))


def _parts(space: PointSpace, graph: PolicyGraph) -> tuple[Bins, ...] | None:
    """The parts that a policy does not hide, where they are boxes: their counts are exact."""
    if graph.absent:
        return None
    parts = graph.components()
    factors = parts.factors if isinstance(parts, ProductBins) else (parts,)
    fits = tuple(each.size for each in factors) == space.shape
    return factors if fits and all(each.contiguous for each in factors) else None
