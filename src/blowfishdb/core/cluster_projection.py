"""From a question for clusters and a policy to points on a grid: what is clustered, and what is hidden.

A filter, or a column whose rows can be dropped, makes records come and go: a row that stops counting leaves
its cluster, so the policy gets a vertex for it that joins every cell, unless no hidden move crosses the
filter.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.axis import Axis
from blowfishdb.core.bins import LIMIT, Bins
from blowfishdb.core.cluster_question import cluster_axes
from blowfishdb.core.clusters import PointSpace
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.policy import Policy
from blowfishdb.core.predicates import Everything, Predicate
from blowfishdb.core.projection import CellQuery


@final
@dataclass(frozen=True, eq=False)
class ClusterQuery:
    """What the database is asked about: cells of ``axes``, of rows in those ``boxes`` that are ``inside``."""

    axes: tuple[Axis, ...]
    boxes: CellQuery
    inside: BoolArray

    @property
    def columns(self) -> tuple[Axis, ...]:
        """Every column that is read, once."""
        clustered = {axis.column for axis in self.axes}
        return (*self.axes, *(axis for axis in self.boxes.axes if axis.column not in clustered))


@final
@dataclass(frozen=True, eq=False)
class ClusterProblem:
    """The points, the policy over their cells, and the way to the database and back."""

    space: PointSpace
    graph: PolicyGraph
    query: ClusterQuery

    @property
    def notes(self) -> tuple[str, ...]:
        """What becomes of values that are not declared, for every column that the rows are read by."""
        return CellQuery(self.query.columns).notes

    @property
    def limits(self) -> tuple[tuple[float, float], ...]:
        """The lowest and the highest declared value of every column."""
        ends = [
            (axis.attribute.lower(0), axis.attribute.upper(axis.bins.size - 1)) for axis in self.query.axes
        ]
        return tuple((float(low), float(high)) for low, high in ends)  # type: ignore[arg-type]

    def in_units(self, cells: FloatArray) -> FloatArray:
        """Positions in cells as values of the columns: the middle of a cell stands for it."""
        lines = np.array([_line(axis) for axis in self.query.axes])
        return np.asarray(lines[:, 0] + cells * lines[:, 1])


def project_clusters(
    columns: tuple[str, ...], policy: Policy, where: Predicate | None = None, *, even: bool = True
) -> ClusterProblem:
    """Points of ``columns``, in the order of the domain; ``even``: all columns count alike."""
    domain, condition = policy.domain, Everything() if where is None else where
    axes = cluster_axes(columns, domain)
    if policy.constraints is not None:
        raise NotProven(
            "Clusters are not proven private where something about the data is already known.",
            fixes=("ask for a histogram",),
        )
    condition.check(domain)
    cuts = condition.cuts(domain)
    boxes = CellQuery(tuple(Axis(name, domain[name], cuts[name]) for name in domain.names if name in cuts))
    query = ClusterQuery(axes, boxes, _inside(boxes, condition, domain))
    shape = tuple(axis.bins.count for axis in axes)
    graph = policy.project({axis.column: axis.bins for axis in axes})
    if not graph.absent and (_drops(query) or _crossed(query, policy)):
        graph = Cone(graph, Apex.OUTSIDE)
    return ClusterProblem(PointSpace.even(*shape) if even else PointSpace.cells(*shape), graph, query)


def _line(axis: Axis) -> tuple[float, float]:
    """The value in the middle of the first cell, and how far it is to the next."""
    middles = [
        (Fraction(axis.attribute.lower(cell)) + Fraction(axis.attribute.upper(cell))) / 2  # type: ignore[arg-type]
        for cell in (0, min(1, axis.attribute.value_count - 1))
    ]
    return float(middles[0]), float(middles[1] - middles[0])


def _inside(boxes: CellQuery, where: Predicate, domain: Domain) -> BoolArray:
    """Which boxes of the filter count."""
    places = np.unravel_index(np.arange(boxes.count), boxes.shape) if boxes.axes else ()
    members = {axis.column: axis.bins.first(place) for axis, place in zip(boxes.axes, places, strict=True)}
    return np.array(np.broadcast_to(where.on_cells(domain, members), (boxes.count,)))


def _drops(query: ClusterQuery) -> bool:
    return any(axis.attribute.may_drop for axis in query.columns)


def _crossed(query: ClusterQuery, policy: Policy) -> bool:
    """Whether a hidden move can take a record across the filter; assumed where that is too much to list."""
    if query.inside.all() or not query.inside.any():
        return False
    cut: dict[str, Bins] = {axis.column: axis.bins for axis in query.boxes.axes}
    graph = policy.project(cut)
    if graph.edge_count > LIMIT or graph.size != query.inside.size:
        return True
    return any(
        (query.inside[block[:, 0]] != query.inside[block[:, 1]]).any() for block in graph.edge_blocks()
    )
