"""A question for clusters: which columns, how many clusters, and in how many rounds at most.

From a question for clusters and a policy to points on a grid: what is clustered, and what is hidden.

A filter, or a column whose rows can be dropped, makes records come and go: a row that stops counting leaves
its cluster, so the policy gets a vertex for it that joins every cell, unless no hidden move crosses the
filter.

Clusters: points on a grid of cells, public centroids, and who is nearest to which.

Everything is a whole number, so that a database, numpy and the sensitivity assign every cell alike: the
centroids lie on a public lattice ``FINE`` times finer than the cells, and squared distances are compared
exactly. A cell that is equally near to several centroids belongs to the first of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import TYPE_CHECKING, Protocol, final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, ByContent, FloatArray, IntArray, integers, whole
from blowfishdb.core.domain.bins import LIMIT, Bins, single_cells
from blowfishdb.core.domain.domain import Axis, CellQuery, Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import InvalidWorkload, NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.policy.policy import Policy

if TYPE_CHECKING:
    from blowfishdb.core.secret import Secret

FINE = 16
"""Steps of the centroids' lattice in one cell."""
MOST_CLUSTERS = 64
MOST_ITERATIONS = 100
_SAFE = 2**61
_LONGEST = 2**31


@final
@dataclass(frozen=True, eq=False)
class PointSpace(ByContent):
    """A box of ``shape`` cells. One cell along axis d is ``weights[d]`` long.

    Distances are Euclidean in these lengths; weights make columns of different units comparable.
    """

    shape: tuple[int, ...]
    weights: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.shape or len(self.shape) != len(self.weights):
            raise SizeMismatch("Points need one weight per column, and at least one column.")
        for count, weight in zip(self.shape, self.weights, strict=True):
            if whole(count, "The number of cells", InvalidWorkload) < 1:
                raise InvalidWorkload("A column to cluster needs at least one cell.")
            if whole(weight, "A weight", InvalidWorkload) < 1:
                raise InvalidWorkload("The weight of a column is a whole number, at least one.")
        lengths = sum((count * weight) ** 2 for count, weight in zip(self.shape, self.weights, strict=True))
        if max(self.shape) > _LONGEST or 4 * FINE**2 * lengths >= _SAFE:
            raise TooLarge("The columns have too many cells to compare distances.", fixes=("wider cells",))

    @classmethod
    def cells(cls, *shape: int) -> PointSpace:
        """Every cell of every column is one unit long."""
        return cls(shape, (1,) * len(shape))

    @classmethod
    def even(cls, *shape: int) -> PointSpace:
        """Columns count alike: each is about as long as the longest."""
        longest = max(shape, default=1)
        return cls(shape, tuple(max(1, round(longest / count)) for count in shape))

    @property
    def axes(self) -> int:
        """The number of columns."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of cells."""
        return math.prod(self.shape)

    @property
    def last(self) -> IntArray:
        """The last cell along every axis."""
        return np.array(self.shape, dtype=np.int64) - 1

    @property
    def lengths(self) -> IntArray:
        """The weights as an array."""
        return np.array(self.weights, dtype=np.int64)

    def plane(self, slopes: Sequence[int] | IntArray, offset: int = 0) -> IntArray:
        """offset + Σ_d slopes[d]·x_d for every cell x of the box."""
        lines = [int(slope) * np.arange(count) for slope, count in zip(slopes, self.shape, strict=True)]
        return self.outer(lines) + offset

    def outer(self, lines: Sequence[IntArray]) -> IntArray:
        """Σ_d lines[d][x_d] for every cell x of the box."""
        return np.asarray(reduce(np.add.outer, lines), dtype=np.int64)


@final
@dataclass(frozen=True, eq=False)
class Centroids(ByContent):
    """Public points: row i is centroid i, in ``1/FINE`` of a cell along every axis."""

    space: PointSpace
    fine: IntArray

    def __post_init__(self) -> None:
        fine = integers(self.fine, "Centroids", InvalidWorkload)
        if fine.ndim != 2 or fine.shape[1] != self.space.axes or not 1 <= len(fine) <= MOST_CLUSTERS:
            raise InvalidWorkload(f"Between 1 and {MOST_CLUSTERS} centroids are given, as rows.")
        if (fine < 0).any() or (fine > FINE * self.space.last).any():
            raise InvalidWorkload("A centroid lies outside of the columns' bounds.")
        object.__setattr__(self, "fine", fine)

    @classmethod
    def nearest_to(cls, space: PointSpace, cells: ArrayLike) -> Centroids:
        """The lattice points that are nearest to positions in cells."""
        placed = np.rint(FINE * np.asarray(cells, dtype=np.float64))
        return cls(space, np.clip(placed, 0, FINE * space.last).astype(np.int64))

    def __len__(self) -> int:
        return len(self.fine)

    @property
    def cells(self) -> FloatArray:
        """The centroids in cells."""
        return self.fine / FINE

    @property
    def slopes(self) -> IntArray:
        """Row i: what one cell along each axis adds to the score of centroid i."""
        return np.asarray(-2 * FINE * self.space.lengths**2 * self.fine, dtype=np.int64)

    @property
    def offsets(self) -> IntArray:
        """The scores of cell zero."""
        return np.asarray((self.space.lengths**2 * self.fine**2).sum(axis=1), dtype=np.int64)

    def assign(self, points: IntArray) -> IntArray:
        """The centroid of every point (a row of cells): the least squared distance, the first of equals.

        What is common to all centroids, (FINE·w·x)², is left out of the scores.
        """
        return np.asarray(np.argmin(points @ self.slopes.T + self.offsets, axis=1), dtype=np.int64)

    def labels(self) -> IntArray:
        """The centroid of every cell of the box, in the shape of the box."""
        best = self.space.plane(self.slopes[0], int(self.offsets[0]))
        labels = np.zeros(self.space.shape, dtype=np.int64)
        for index in range(1, len(self)):
            score = self.space.plane(self.slopes[index], int(self.offsets[index]))
            nearer = score < best
            labels[nearer] = index
            np.minimum(best, score, out=best)
        return labels


class RowTotals(Protocol):
    """The port of a clustering: what it asks about the rows, one aggregate at a time."""

    def totals(self, centroids: Centroids) -> Secret[IntArray]:
        """Row i: how many rows are nearest to centroid i, and the sum of their cells along every axis."""

    def counts(self, bins: tuple[Bins, ...]) -> Secret[IntArray]:
        """How many rows are in each box of bins, row-major."""


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
