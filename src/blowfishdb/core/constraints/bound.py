"""By how much an answer can change between neighbours when something is known ([B14] §8, corrected).

Every rule is an upper bound over Def. 4.1, proved in docs/proofs/constraints.md, for the literal reading
and so for the edge reading too; two more rules hold for the edge reading alone. The smallest one counts.
Where none applies the answer is NotProven.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.constraints.constraint_graph import (
    ConstraintGraph,
    constraint_graph,
    crossing,
    distinct_counts,
)
from blowfishdb.core.constraints.declared import Reading
from blowfishdb.core.constraints.exact_algebra import free_direction
from blowfishdb.core.constraints.exchanges import longest_exchange, shifts
from blowfishdb.core.constraints.known_cells import KnownCells
from blowfishdb.core.constraints.moves import Moves
from blowfishdb.core.constraints.spread import Spread, spread
from blowfishdb.core.errors import NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import PolicyGraph

_MOST_UNKNOWNS = 300  # classes for which the free direction is solved in exact fractions


def most_change(known: KnownCells, moves: Moves, edges: IntArray | None = None) -> int:
    """The most that neighbours can differ by, in the units of ``moves``: a proven upper bound.

    ``edges``: the pairs of classes that the policy joins, where they were found already.
    """
    case = _Case(known.with_uncounted() if moves.graph.absent else known, moves, edges)
    if moves.graph.edge_count == 0:
        return 0
    if case.crossing is not None and not len(case.crossing):
        return case.inside  # no edge lifts or lowers anything: neighbours differ in one record
    found: list[int] = []
    endless: NotProven | None = None
    for rule in _RULES:
        try:
            value = rule(case)
        except NotProven as refusal:  # this rule has no bound here; another one may
            endless = refusal
        else:
            found += [] if value is None else [value]
    if not found:
        raise endless or _refusal(case)
    return max(case.inside, min(found))


def most_records(known: KnownCells, graph: PolicyGraph, edges: IntArray | None = None) -> int | None:
    """In how many records neighbours can differ, at most; None where no proof says so."""
    known = known.with_uncounted() if graph.absent else known
    edges = crossing(known, graph) if edges is None else edges
    if not len(edges):
        return 1
    found = [known.class_count] if known.determines_classes else []
    counts = distinct_counts(known)
    if known.reading is Reading.EDGE and (sparse := constraint_graph(known, graph, edges)) is not None:
        found.append(sparse.most_moves)
    if not found and counts is not None and (moved := shifts(counts, None)) is not None:
        longest = longest_exchange(moved)
        found += [] if longest is None else [longest]
    return min(found, default=None)


@final
@dataclass(frozen=True, eq=False)
class _Case:
    known: KnownCells
    moves: Moves
    edges: IntArray | None

    def __post_init__(self) -> None:
        if self.known.size != self.moves.graph.size:
            raise SizeMismatch(
                f"What is known is about {self.known.size:,} cells, but the policy is about "
                f"{self.moves.graph.size:,}."
            )

    @property
    def graph(self) -> PolicyGraph:
        return self.moves.graph

    @cached_property
    def crossing(self) -> IntArray | None:
        """The pairs of classes that edges join; None if they could not be listed."""
        try:
            return crossing(self.known, self.graph) if self.edges is None else self.edges
        except TooLarge:
            return None

    @cached_property
    def sparse(self) -> ConstraintGraph | None:
        """The constraint graph, where the known counts are sparse and the pairs of classes listed."""
        return None if self.crossing is None else constraint_graph(self.known, self.graph, self.crossing)

    @cached_property
    def spread(self) -> Spread:
        return spread(self.known.classes, self.moves)

    @property
    def inside(self) -> int:
        """The most that a move along an edge inside one class costs."""
        try:
            return min(self.moves.along_an_edge, self.spread.widest)
        except NotProven:  # a class that reaches over groups which no edge joins
            return self.moves.along_an_edge

    @cached_property
    def free(self) -> IntArray | None:
        """The one direction in which class counts can change together; None unless there is just one."""
        equations = self.known.equations
        if equations is None or self.known.class_count > _MOST_UNKNOWNS:
            return None
        found = free_direction(equations)
        return None if found is None else np.array(found, dtype=np.int64)


# --- rules ----------------------------------------------------------------------------------------


def _around_classes(case: _Case) -> int | None:
    """Theorem 2: each class loses one record and gains another, at most once round."""
    return case.spread.around(case.graph) if case.known.determines_classes else None


def _from_class_to_class(case: _Case) -> int | None:
    """Theorem 2, counted by moves: one along an edge, and one from each other class."""
    if not case.known.determines_classes:
        return None
    return case.moves.along_an_edge + (case.known.class_count - 1) * case.moves.anywhere


def _one_direction(case: _Case) -> int | None:
    """Theorem 3: class counts change by the one free direction, or not at all."""
    if case.known.determines_classes or case.free is None:
        return None
    if not case.spread.widest:  # the answers see classes only
        first = np.unique(case.known.classes, return_index=True)[1]
        shift = np.zeros(case.moves.asked.size, dtype=np.int64)
        np.add.at(shift, case.moves.labels[first], case.free)
        return case.moves.together(shift)
    return int(np.maximum(case.free, 0).sum()) * (case.moves.anywhere + case.spread.total)


def _any_exchange(case: _Case) -> int | None:
    """Theorem 4: one move along an edge, and as many others as the longest exchange has."""
    if case.known.determines_classes or (case.free is not None and not case.spread.widest):
        return None  # the rules above are exact there
    counts = distinct_counts(case.known)
    moved = None if counts is None else shifts(counts, None)
    longest = None if moved is None else longest_exchange(moved)
    return None if longest is None else case.moves.along_an_edge + (longest - 1) * case.moves.anywhere


def _sparse_edges(case: _Case) -> int | None:
    """[B14] Theorem 8.2, for any workload: max{α, ξ} moves, each along an edge. Edge reading only."""
    if case.known.reading is not Reading.EDGE or case.sparse is None:
        return None
    return case.sparse.most_moves * case.moves.along_an_edge


def _edge_exchange(case: _Case) -> int | None:
    """Theorem 4 with every move along an edge, where counts are not sparse. Edge reading only."""
    counts = distinct_counts(case.known)
    if case.known.reading is not Reading.EDGE or case.crossing is None or counts is None:
        return None
    if case.sparse is not None:
        return None
    moved = shifts(counts, case.crossing)
    longest = None if moved is None else longest_exchange(moved)
    return None if longest is None else longest * case.moves.along_an_edge


_RULES: tuple[Callable[[_Case], int | None], ...] = (
    _around_classes,
    _from_class_to_class,
    _one_direction,
    _any_exchange,
    _sparse_edges,
    _edge_exchange,
)


def _refusal(case: _Case) -> NotProven:
    """What would make these known counts acceptable."""
    fixes = [
        "known counts that do not overlap: one table, or ranges side by side or inside each other",
        "fewer or coarser known tables",
    ]
    if case.known.reading is Reading.LITERAL and case.sparse is not None:
        fixes.append('reading="edge", which hides less: then these counts are covered')
    return NotProven(
        "The known counts overlap, so a change to one record may force changes to many others, and no proof "
        "says to how many. Noise for this cannot be calibrated.",
        fixes=tuple(fixes),
    )
