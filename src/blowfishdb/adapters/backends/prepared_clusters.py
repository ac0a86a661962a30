"""PreparedClusters: points that were checked, so that only counting and adding up is left, round by round."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from blowfishdb.adapters.backends.cancellation import Cancellation
from blowfishdb.adapters.backends.running import Brake, counted
from blowfishdb.adapters.sql import Aggregate
from blowfishdb.adapters.sql_clusters import ClusterSql
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.bins import Bins
from blowfishdb.core.clusters import Centroids
from blowfishdb.core.secret import Secret


@final
@dataclass(frozen=True, eq=False)
class PreparedClusters:
    """The port of a clustering on a database; every call is one statement, and no row leaves."""

    statements: ClusterSql
    run: Callable[[Aggregate, Brake], IntArray]
    timeout: float
    cancel: Cancellation | None = None

    def until(self, cancel: Cancellation | None) -> PreparedClusters:
        """The same, given up when ``cancel`` says so."""
        return replace(self, cancel=cancel)

    def sql(self, centroids: Centroids) -> str:
        """What a round sends, for the log: declarations and public centroids, never data."""
        return self.statements.totals(centroids).text

    def totals(self, centroids: Centroids) -> Secret[IntArray]:
        """Row i: how many rows are nearest to centroid i, and the sum of their cells along every axis."""
        return self._of(self.statements.totals(centroids))

    def counts(self, bins: tuple[Bins, ...]) -> Secret[IntArray]:
        """How many rows are in each box of bins, row-major."""
        statement = self.statements.counts(bins)
        return self._counted(lambda brake: self.run(statement, brake)[:, 0])

    def _of(self, statement: Aggregate) -> Secret[IntArray]:
        return self._counted(lambda brake: self.run(statement, brake))

    def _counted(self, run: Callable[[Brake], IntArray]) -> Secret[IntArray]:
        return counted(run, self.timeout, Cancellation() if self.cancel is None else self.cancel)
