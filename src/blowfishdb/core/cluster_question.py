"""A question for clusters: which columns, how many clusters, and in how many rounds at most."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import final

from blowfishdb.core.arrays import whole
from blowfishdb.core.axis import Axis
from blowfishdb.core.bins import single_cells
from blowfishdb.core.clusters import MOST_CLUSTERS, MOST_ITERATIONS
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.predicates import Everything, Predicate

USUAL_ITERATIONS = 5
"""How many rounds there are where nobody says; chosen on synthetic points (docs/proofs/kmeans.md)."""


@final
@dataclass(frozen=True, eq=False)
class ClusterQuestion:
    """Around which ``count`` points the rows gather, and how many are nearest to each.

    No linear question: it is answered from sums as well, in rounds that depend on the rounds before.
    """

    axes: tuple[Axis, ...]
    count: int
    iterations: int = USUAL_ITERATIONS
    where: Predicate = field(default_factory=Everything)

    def __post_init__(self) -> None:
        if not 1 <= whole(self.count, "The number of clusters", InvalidWorkload) <= MOST_CLUSTERS:
            raise InvalidWorkload(f"Between 1 and {MOST_CLUSTERS} clusters can be asked for.")
        if not 1 <= whole(self.iterations, "The number of rounds", InvalidWorkload) <= MOST_ITERATIONS:
            raise InvalidWorkload(f"Between 1 and {MOST_ITERATIONS} rounds can be asked for.")

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(axis.column for axis in self.axes)

    def describe(self) -> str:
        """The question in words."""
        where = "" if isinstance(self.where, Everything) else f" where {self.where}"
        several = "clusters" if self.count > 1 else "cluster"
        return f"{self.count:,} {several} of {' and '.join(self.columns)}{where}"


def cluster_axes(columns: tuple[str, ...], domain: Domain) -> tuple[Axis, ...]:
    """The columns cell by cell, in the order of the domain; whatever is not a number is refused."""
    if not columns or len(set(columns)) != len(columns):
        raise InvalidWorkload("Clusters are about one or more different columns.")
    named = {name: _axis(name, domain) for name in columns}
    return tuple(named[name] for name in domain.names if name in named)


def _axis(name: str, domain: Domain) -> Axis:
    attribute = domain[name]
    if not attribute.ordered or not isinstance(attribute.lower(0), int | Fraction):
        raise InvalidWorkload(
            f"Clusters are about columns of numbers, and '{name}' is none.", fixes=("ask for a histogram",)
        )
    if attribute.has_missing_cell:
        raise InvalidWorkload(
            f"A missing value of '{name}' is nowhere, so it belongs to no cluster.",
            fixes=("declare missing='drop'",),
        )
    return Axis(name, attribute, single_cells(attribute.size))
