"""Clusters of a histogram: one private histogram with all of ε, and k-means on what left it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, ceil_div
from blowfishdb.core.bins import Bins, EqualBins, ProductBins
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.clusters import PointSpace, RowTotals
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import Histogram, Product, Workload
from blowfishdb.mechanisms.adaptive_tree import AdaptiveTree
from blowfishdb.mechanisms.data_dependent import DataDependentPlan
from blowfishdb.mechanisms.kmeans.clustering import Clustering, ClusterPlan, Progress, Round
from blowfishdb.mechanisms.kmeans.lloyd import nearest, spread_out, weighted_clusters
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.plan import Plan

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
        found = weighted_clusters(points, weights, start)
        held = np.bincount(nearest(points, found), weights, minlength=self.clusters)
        if progress is not None:
            progress(1, 1)
        change = 0 if self.free else scaled_sensitivity(self._workload, self.inner.graph)
        once = Round(paid, Epsilon(0), change, 0)
        return Clustering(
            found / lengths,
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
        counts = self.shape
        if not self.free and isinstance(self.inner, DataDependentPlan):  # a tree is as good as the best bins
            fitting = _fitting_count(self.space, self.clusters, float(positive(epsilon)) * rows)
            counts = tuple(min(count, fitting) for count in counts)
        lengths = np.array([n * w for n, w in zip(self.space.shape, self.space.weights, strict=True)], float)
        blur = _BLUR * ((lengths / counts) ** 2 / 12).sum()
        if self.free:
            return float(blur)
        reach = (lengths / self.clusters ** (1 / self.space.axes)) ** 2 / 12
        noisy = 2 * (2 / float(positive(epsilon))) ** 2 * math.prod(counts) / self.clusters
        return float(blur + noisy * reach.sum() / (rows / self.clusters) ** 2)

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
    return factors if fits and all(isinstance(each, EqualBins) for each in factors) else None
