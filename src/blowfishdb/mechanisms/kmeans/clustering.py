"""Clustering: what a private clustering returns, and what every way to make one can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, final

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import AnyEpsilon, Epsilon
from blowfishdb.core.clusters import PointSpace, RowTotals
from blowfishdb.core.errors import NoGuarantee
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.noise import Noise

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
