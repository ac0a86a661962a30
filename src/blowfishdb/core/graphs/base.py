"""What every policy graph can do.

A policy graph G has one vertex per cell of a domain; an edge (u, v) means that an attacker must
not be able to tell whether someone's value is u or v ([B14] Def. 3.1: a *secret pair*).
Neighbouring databases differ in one record that moves along one edge.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import ByContent, IntArray, whole
from blowfishdb.core.domain.bins import LIMIT, Bins, as_bins
from blowfishdb.core.errors import EmptyDomain, InvalidGraph, InvalidValue, TooLarge
from blowfishdb.core.plain import of_kind

if TYPE_CHECKING:
    from blowfishdb.core.graphs.general import Cone


class PolicyGraph(ByContent, ABC):
    """An undirected graph over cells ``0 … size-1``, implicit unless it has to be written out.

    A new kind of graph is a frozen dataclass with the abstract members below and a ``kind`` of its own. It is
    stored by its fields; where they are no plain data it says how (``to_plain``, ``of_plain``).
    """

    kind: ClassVar[str]
    """The name of its form as plain data."""
    size: int
    factors: tuple[PolicyGraph, ...] = ()
    """The graphs of its attributes, last fastest, where it is composed of such; else none."""
    joint: bool = True
    """Whether the attributes of a record may all move at once, or one at a time."""
    _KINDS: ClassVar[dict[str, type[PolicyGraph]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "kind" in vars(cls):
            PolicyGraph._KINDS[cls.kind] = cls

    # --- facts, exact at any size -------------------------------------------------------------

    @property
    @abstractmethod
    def edge_count(self) -> int:
        """The number of edges, as an exact integer of any size."""

    @abstractmethod
    def components(self) -> Bins:
        """The connected components. How many people are in each is not hidden by this policy."""

    @property
    def reach(self) -> int | None:
        """d, if the index distances |u−v| of the edges are exactly 1, 2, …, d; None if unknown."""
        return None

    @property
    def span(self) -> int | None:
        """The largest index distance |u−v| of an edge; None if unknown."""
        return self.reach

    def right_ends(self) -> IntArray | None:
        """The last cell that each cell adjoins (itself if none), if it adjoins every cell up to there."""
        return None

    # --- structure: each kind says what it is, and everybody else asks here --------------------
    #
    # An answer is exact, and the default of each ("no", "none") is right for every graph: who gets it goes
    # the long way round. A new kind answers what it knows.

    @property
    def complete(self) -> bool:
        """Whether it is known by kind that every two cells adjoin."""
        return False

    @property
    def edgeless(self) -> bool:
        """Whether it hides nothing."""
        return self.size == 1 or self.edge_count == 0

    @property
    def axes(self) -> tuple[int, ...]:
        """How many cells there are along each axis, where cells are those of a box, row-major; else none."""
        return ()

    @property
    def line_reach(self) -> int | None:
        """d, if cells adjoin iff they are 1 … d apart; None if they do not, or if it is unknown."""
        return None

    @property
    def cliques(self) -> Bins | None:
        """The parts, if cells adjoin iff they are in the same part; None if unknown."""
        return None

    def without_last(self) -> tuple[PolicyGraph, bool] | None:
        """The graph without its last cell, and whether that adjoins all others or none; None if some."""
        return None

    @property
    def absent(self) -> bool:
        """Whether the last vertex stands for "not counted" (⊥ or *outside*), with a zero column."""
        return self.counted is not self

    @property
    def counted(self) -> PolicyGraph:
        """The graph without the vertex for "not counted", where there is one."""
        return self

    @abstractmethod
    def describe(self) -> str:
        """What the graph hides, in words."""

    # --- pairs --------------------------------------------------------------------------------

    @abstractmethod
    def adjacent(self, u: ArrayLike, v: ArrayLike) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
        """Whether each pair is an edge (vectorised, unchecked)."""

    @abstractmethod
    def steps(self, u: int, v: int) -> int | float:
        """The graph distance of two distinct vertices (unchecked)."""

    def has_edge(self, u: int, v: int) -> bool:
        """Whether the policy hides which of ``u`` and ``v`` a person has."""
        return bool(self.adjacent(self._vertex(u), self._vertex(v)))

    def distance(self, u: int, v: int) -> int | float:
        """The number of edges between two values; ``math.inf`` if nothing joins them."""
        u, v = self._vertex(u), self._vertex(v)
        return 0 if u == v else self.steps(u, v)

    def _vertex(self, vertex: int) -> int:
        index = whole(vertex, "A vertex", InvalidValue)
        if not 0 <= index < self.size:
            raise InvalidValue(f"There is no cell {index}: cells are numbered 0 to {self.size - 1:,}.")
        return index

    # --- edges --------------------------------------------------------------------------------

    @abstractmethod
    def edge_blocks(self) -> Iterator[IntArray]:
        """Every edge once, as arrays of rows (u, v) with u < v, a bounded number at a time."""

    def edges(self, limit: int = LIMIT) -> IntArray:
        """All edges as an (m, 2) array with u < v, in lexicographic order."""
        if self.edge_count > limit:
            raise TooLarge(
                f"This policy graph has {self.edge_count:,} edges, above the limit of {limit:,}.",
                fixes=("project the graph onto fewer bins first", "raise the limit"),
            )
        blocks = [np.empty((0, 2), dtype=np.int64), *self.edge_blocks()]
        edges = np.concatenate(blocks)
        return edges[np.lexsort((edges[:, 1], edges[:, 0]))]

    # --- derived graphs -----------------------------------------------------------------------

    @abstractmethod
    def project_in_closed_form(self, bins: Bins) -> PolicyGraph | None:
        """The projection where its structure is known, otherwise None."""

    def project(self, bins: Bins | ArrayLike) -> PolicyGraph:
        """The policy over bins: two bins adjoin iff some pair of their members does ([BDB] Def. 4)."""
        partition = as_bins(bins, self.size)
        closed = self.project_in_closed_form(partition)
        return self.project_edges(partition) if closed is None else closed

    def project_edges(self, bins: Bins) -> PolicyGraph:
        """The projection by its definition, edge by edge."""
        from blowfishdb.core.graphs.general import Explicit, unique_edges

        if self.edge_count > LIMIT:
            raise TooLarge(
                f"Projecting {self.edge_count:,} edges onto irregular bins is above the limit of {LIMIT:,}.",
                fixes=("use contiguous bins", "use products of bins for several columns"),
            )
        blocks = [unique_edges(bins.assign(block)) for block in self.edge_blocks()]
        return Explicit(bins.count, np.concatenate([np.empty((0, 2), dtype=np.int64), *blocks]))

    # --- plain data ---------------------------------------------------------------------------

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in self._stored()}}

    @classmethod
    def of_plain(cls, stored: Mapping[str, Any]) -> PolicyGraph:
        """A graph of this kind from its plain form."""
        return cls(**{name: stored[name] for name in cls._stored()})

    @classmethod
    def _stored(cls) -> list[str]:
        return [field.name for field in dataclasses.fields(cls) if field.init]  # type: ignore[arg-type]

    @staticmethod
    def from_plain(stored: Mapping[str, Any]) -> PolicyGraph:
        """A graph of any kind from its plain form."""
        return of_kind(PolicyGraph._KINDS, stored.get("kind"), "policy graph").of_plain(stored)

    def hide_presence(self) -> Cone:
        """This policy, hiding also whether a person is in the data at all: ⊥ joins every value."""
        from blowfishdb.core.graphs.general import Apex, Cone

        return Cone(self, Apex.PRESENCE)


def check_size(size: object) -> int:
    """A number of vertices, at least one."""
    vertices = whole(size, "The number of cells", InvalidGraph)
    if vertices < 1:
        raise EmptyDomain(f"A policy graph needs at least one cell, not {vertices}.")
    return vertices
