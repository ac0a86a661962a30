"""k-means: private centroids, in noisy rounds or from one noisy histogram.

KMeans: private clusters, by whichever of two ways is expected to disturb them less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

from blowfishdb.core.arrays import whole
from blowfishdb.core.budget import AnyEpsilon, positive
from blowfishdb.core.domain.bins import single_cells
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.questions.clusters import MOST_CLUSTERS, MOST_ITERATIONS, PointSpace
from blowfishdb.mechanisms.kmeans.clustering import (
    MOST_BOXES,
    Clustering,
    ClusterPlan,
    HistogramClusters,
    Progress,
    Round,
)
from blowfishdb.mechanisms.kmeans.crossing import check_policy
from blowfishdb.mechanisms.kmeans.rounds import RoundClusters

NOMINAL_ROWS = 10_000
"""How many rows are assumed where their number is not public."""


@final
@dataclass(frozen=True)
class KMeans:
    """``clusters`` centroids, in ``iterations`` noisy rounds or from one noisy histogram.

    Without a ``method`` the smaller ``expected_excess`` decides, a number that depends on the columns, the
    policy, ε and the public number of rows, and on nothing in the data.

    *Guarantee*: ε-Blowfish for every policy without constraints, hidden presence included. *Sensitivity*: of
    every round the exact maximum over the policy's edges, given the public centroids (or a bound on boxes
    with too many cells); of the histogram 2. Where no hidden move changes anything, exact. *Error*: depends
    on the data, hence no (α, β). *Theorem*: docs/proofs/kmeans.md; [B14] Lemma 6.1 is false.
    """

    clusters: int
    iterations: int = 5
    method: Literal["rounds", "histogram"] | None = None

    def __post_init__(self) -> None:
        if not 1 <= whole(self.clusters, "The number of clusters", InvalidWorkload) <= MOST_CLUSTERS:
            raise InvalidWorkload(f"Between 1 and {MOST_CLUSTERS} clusters can be asked for.")
        if not 1 <= whole(self.iterations, "The number of rounds", InvalidWorkload) <= MOST_ITERATIONS:
            raise InvalidWorkload(f"Between 1 and {MOST_ITERATIONS} rounds can be asked for.")
        if self.method not in (None, "rounds", "histogram"):
            raise InvalidWorkload("Clusters are made by rounds or from a histogram.")

    def plan(
        self, space: PointSpace, graph: PolicyGraph, *, epsilon: AnyEpsilon, rows: int | None = None
    ) -> ClusterPlan:
        """How points of ``space`` would be clustered under ``graph``; ``rows`` only if it is public."""
        check_policy(space, graph)
        row_count, spend = NOMINAL_ROWS if rows is None else max(1, rows), positive(epsilon)
        in_rounds = RoundClusters(space, graph, self.clusters, self.iterations)
        if self.method == "rounds":
            in_rounds.check(spend)
            return in_rounds
        if in_rounds.free and space.size <= MOST_BOXES:  # the exact cells, from which many starts are tried
            return HistogramClusters(space, graph, self.clusters, tuple(map(single_cells, space.shape)))
        if in_rounds.free and self.method is None:
            return in_rounds
        plans: list[ClusterPlan] = []
        if self.method is None and in_rounds.affords(spend):
            plans.append(in_rounds)
        plans += HistogramClusters.candidates(space, graph, self.clusters, epsilon=spend, rows=row_count)
        return min(plans, key=lambda plan: plan.expected_excess(epsilon=spend, rows=row_count))


__all__ = [
    "ClusterPlan",
    "Clustering",
    "HistogramClusters",
    "KMeans",
    "Progress",
    "Round",
    "RoundClusters",
]
