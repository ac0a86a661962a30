"""Clusters in rounds: sizes and sums of the clusters with noise, new centroids, and again (SuLQ k-means)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import NANO, AnyEpsilon, Epsilon, positive
from blowfishdb.core.errors import InvalidEpsilon
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise
from blowfishdb.core.questions.clusters import Centroids, PointSpace, RowTotals
from blowfishdb.mechanisms.kmeans.clustering import (
    Clustering,
    ClusterPlan,
    Progress,
    Round,
    even_places,
    mean_cluster_spread,
    spread_out,
)
from blowfishdb.mechanisms.kmeans.crossing import RoundFacts, moves_inside, round_facts

SIZES_SHARE = Fraction(1, 4)
"""How much of a round goes to the sizes; chosen on synthetic points (docs/proofs/kmeans.md)."""
_LEAST_NANO = 4
_ONE_START = 0.03
"""How much of the variance of a cluster's share of the box is lost, on average, because rounds begin at one
place and end early: measured without noise (docs/proofs/kmeans.md)."""


@final
@dataclass(frozen=True, eq=False)
class RoundClusters(ClusterPlan):
    """``iterations`` rounds, each with an equal share of what is left of ε.

    The centroids of a round are public before it begins, and so are its anchors and its sensitivity. What
    no hidden move changes is measured exactly and leaves its share to the rest.
    """

    space: PointSpace
    graph: PolicyGraph
    clusters: int
    iterations: int
    name: str = "k-means in rounds"

    @property
    def free(self) -> bool:
        base, leaves = moves_inside(self.graph)
        return base.edge_count == 0 and not leaves

    @property
    def steps(self) -> int:
        return self.iterations

    @cached_property
    def start(self) -> Centroids:
        """The first centroids, which see no data."""
        return Centroids.nearest_to(self.space, spread_out(self.space, self.clusters))

    @cached_property
    def first(self) -> RoundFacts:
        """What is known about the first round."""
        return round_facts(self.start, self.graph)

    @cached_property
    def usual(self) -> RoundFacts:
        """What is expected of a later round, for choosing between plans.

        The first centroids divide the box evenly, and so do the parts of many a policy: no hidden move then
        crosses a border in the first round, and one does in those that follow. Centroids that lie unevenly
        stand for these.
        """
        if self.graph.components().count == 1:
            return self.first
        uneven = even_places(self.space, self.clusters)
        later = round_facts(Centroids.nearest_to(self.space, uneven), self.graph)
        return max(self.first, later, key=lambda facts: (facts.change.sums, facts.change.sizes))

    def affords(self, epsilon: AnyEpsilon) -> bool:
        """Whether ``epsilon`` can be divided among the rounds."""
        return self.free or positive(epsilon).nano >= _LEAST_NANO * self.iterations

    def check(self, epsilon: AnyEpsilon) -> None:
        """Refuse an ε that cannot be divided, before anything is charged for it."""
        if not self.affords(epsilon):
            raise InvalidEpsilon("So small an ε cannot be divided among the rounds.", fixes=("fewer rounds",))

    def release(
        self, rows: RowTotals, *, epsilon: AnyEpsilon, noise: Noise, progress: Progress | None = None
    ) -> Clustering:
        self.check(epsilon)
        left = positive(epsilon).nano
        centroids, facts, rounds = self.start, self.first, []
        cells, sizes = centroids.cells, np.zeros(self.clusters, dtype=np.int64)
        for number in range(self.iterations):
            if number:
                facts = round_facts(centroids, self.graph)
            charged = allotted(left // (self.iterations - number), facts)
            rounds.append(charged)
            left -= charged.sizes.nano + charged.sums.nano
            sizes, sums = measured(rows.totals(centroids).reveal(), facts, charged, self.space, noise)
            empty = sizes <= 2 * charged.size_scale
            cells = moved(cells, sizes, sums, facts, empty)
            if number < self.iterations - 1:
                cells = split_largest(cells, sizes, facts, empty)
            centroids = Centroids.nearest_to(self.space, cells)
            if progress is not None:
                progress(number + 1, self.iterations)
        spent = Epsilon.from_nano(sum(each.sizes.nano + each.sums.nano for each in rounds))
        return Clustering(cells, sizes.astype(np.float64), spent, tuple(rounds), exact=not spent)

    def expected_excess(self, *, epsilon: AnyEpsilon, rows: int) -> float:
        """The noise of the last sums, of the sizes times the offset from the anchor, and one start only."""
        charged = allotted(positive(epsilon).nano // self.iterations, self.usual)
        each, excess = rows / self.clusters, 0.0
        if charged.sums:
            excess += self.space.axes * 2 * (charged.sum_change / float(charged.sums)) ** 2
        if charged.sizes:
            offset = ((self.usual.high - self.usual.low) * self.space.lengths).mean() / 4
            excess += self.space.axes * 2 * (charged.size_change / float(charged.sizes) * offset) ** 2
        lost = _ONE_START * mean_cluster_spread(self.space, self.clusters) if self.clusters > 1 else 0.0
        return excess / each**2 + lost

    def explain(self) -> str:
        text = (
            f"{self.iterations} rounds: how many rows are nearest to each of {self.clusters} centroids and "
            "the sum of their values, then the centroids move to the means. "
        )
        if self.free:
            return text + "No pair of values that the policy hides is told apart, so it is exact."
        change = self.first.change
        return text + (
            f"One hidden move changes the sizes by {change.sizes} and, in the first round, the sums by "
            f"{'' if change.exact else 'at most '}{change.sums:,} in total; every round pays for its own."
        )


def allotted(nano: int, facts: RoundFacts) -> Round:
    """What a round spends of ``nano``: all of it, unless no hidden move changes anything."""
    change = facts.change
    sizes = 0 if not change.sizes else nano if not change.sums else int(nano * SIZES_SHARE)
    sums = nano - sizes if change.sums else 0
    return Round(Epsilon.from_nano(sizes), Epsilon.from_nano(sums), change.sizes, change.sums)


def measured(
    table: IntArray, facts: RoundFacts, charged: Round, space: PointSpace, noise: Noise
) -> tuple[IntArray, IntArray]:
    """Sizes, and sums from the anchors, with the noise that the round pays for.

    A sum along axis d has noise of scale S/(ε·weight_d): Σ weight_d·|Δ sum_d| ≤ S makes that cost ε.
    """
    sizes, sums = table[:, 0].copy(), table[:, 1:] - table[:, :1] * facts.anchors
    if charged.sizes:
        scale = Fraction(charged.size_change * NANO, charged.sizes.nano)
        sizes += noise.discrete_laplace(scale, sizes.size)
    if charged.sums:
        unit = Fraction(charged.sum_change * NANO, charged.sums.nano)
        for axis, weight in enumerate(space.weights):
            sums[:, axis] += noise.discrete_laplace(unit / weight, len(sums))
    return sizes, sums


def moved(
    cells: FloatArray, sizes: IntArray, sums: IntArray, facts: RoundFacts, empty: BoolArray
) -> FloatArray:
    """The means, kept inside the box of their cluster; a cluster that may be empty stays where it is."""
    means = facts.anchors + sums / np.where(empty, 1, sizes)[:, None]
    return np.where(empty[:, None], cells, np.clip(means, facts.low, facts.high))


def split_largest(cells: FloatArray, sizes: IntArray, facts: RoundFacts, empty: BoolArray) -> FloatArray:
    """Every cluster that may be empty goes beside one of the largest, a quarter of its box away."""
    placed, left = cells.copy(), np.argsort(-sizes, kind="stable")
    for lonely, full in zip(np.flatnonzero(empty), left[~empty[left]], strict=False):
        widths = facts.high[full] - facts.low[full]
        axis = int(np.argmax(widths))
        placed[lonely] = cells[full]
        ahead = cells[full, axis] + widths[axis] / 4
        placed[lonely, axis] = ahead if ahead <= facts.high[full, axis] else ahead - widths[axis] / 2
    return placed
