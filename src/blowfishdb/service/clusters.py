"""A question for clusters with its plan and its price, and what its answer looks like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.backends.base import PreparedClusters
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.clusters import ClusterProblem
from blowfishdb.core.questions.readings import tidy_counts
from blowfishdb.mechanisms.kmeans import Clustering, ClusterPlan, HistogramClusters, RoundClusters
from blowfishdb.messages.answers import Answer, Places, Receipt
from blowfishdb.messages.questions import Request
from blowfishdb.service.tasks import Outcome, Statement, TaskAlongEdges


@final
@dataclass(frozen=True, eq=False)
class ClusterTask(TaskAlongEdges):
    """A question for clusters. How far off they are depends on the data."""

    request: Request
    problem: ClusterProblem
    plan: ClusterPlan
    epsilon: Epsilon
    cost: Epsilon
    made_for: Policy
    promise: None = None

    def prepare(self, backend: Backend) -> Statement:
        prepared = backend.prepare_clusters(self.problem.query)
        return Statement(self._first_statement(prepared), partial(self.count, prepared))

    def _first_statement(self, prepared: PreparedClusters) -> str:
        """The one statement of a histogram, or that of the first round; later ones differ by centroids."""
        if isinstance(self.plan, HistogramClusters):
            return prepared.statements.counts(self.plan.bins).text
        assert isinstance(self.plan, RoundClusters)
        return prepared.sql(self.plan.start)

    def count(self, prepared: PreparedClusters, noise: Noise) -> Outcome:
        """Steps 5 and 6: a statement for each round, and noise."""
        request, port = self.request, prepared.until(self.request.cancel)
        clusters = self.plan.release(
            port, epsilon=self.epsilon or Epsilon(1), noise=noise, progress=request.progress
        )
        return Outcome(partial(clusters_of, request, self.problem, clusters), None)


def clusters_of(request: Request, problem: ClusterProblem, clusters: Clustering, receipt: Receipt) -> Answer:
    """Clusters in the units of the columns, with how many rows are nearest to each."""
    count = len(clusters.sizes)
    return Answer(
        labels=(tuple(f"cluster {number}" for number in range(1, count + 1)),),
        axes=tuple(axis.column for axis in problem.query.axes),
        kind="clusters",
        values=tidy_counts(clusters.sizes, None),
        raw=clusters.sizes,
        low=None,
        high=None,
        exact=np.full(count, clusters.exact),
        alpha=None,
        beta=None,
        simultaneous=False,
        places=Places(problem.in_units(clusters.centroids), problem.limits),
        form=request.form.to_plain(),
        receipt=receipt,
        notes=problem.notes,
    )
