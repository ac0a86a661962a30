"""By how much an answer can change between neighbours when something is known ([B14] §8, corrected).

Every rule is an upper bound over Def. 4.1, proved in docs/proofs/constraints.md, for the literal reading
and so for the edge reading too; two more rules hold for the edge reading alone. The smallest one counts.
Where none applies the answer is NotProven.

How far apart the cells of one class are: what a class contributes when it loses one record and gains
another.

Exchanges: sets of moves that together leave every known count as it was, and none of whose parts does.

Neighbours under constraints differ by one exchange (docs/proofs/constraints.md, Lemma 1), so the longest
one bounds in how many records they differ. Where known counts overlap, it is found by listing the minimal
non-negative whole solutions of V·x = 0 over the shifts V that moves can cause, in the order of Contejean
and Devie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.constraints.constraint_graph import (
    ConstraintGraph,
    Moves,
    constraint_graph,
    crossing,
    distinct_counts,
)
from blowfishdb.core.constraints.declared import Reading
from blowfishdb.core.constraints.known_cells import KnownCells, free_direction
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.errors import NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import PolicyGraph

_MOST_EDGES = 10**6
_AT_ONCE = 10**6


@final
@dataclass(frozen=True, eq=False)
class Spread:
    """The largest cost of a move inside each class, and from each cell to the rest of its class.

    ``farthest`` is None where only upper bounds of ``widths`` are known.
    """

    classes: IntArray
    widths: NDArray[Any]
    farthest: NDArray[Any] | None

    @property
    def widest(self) -> int:
        """The most that any move inside a class costs."""
        return int(self.widths.max())

    @property
    def total(self) -> int:
        """Once round all classes: every one of them loses a record and gains another."""
        return sum(self.widths.tolist())

    def around(self, graph: PolicyGraph) -> int:
        """The same when one of the moves from class to class is along an edge of the policy."""
        if self.farthest is None or graph.complete or graph.edge_count > _MOST_EDGES:
            return self.total
        u, v = graph.edges().T
        across = self.classes[u] != self.classes[v]
        u, v = u[across], v[across]
        if not u.size:
            return 0
        lost = self.widths[self.classes] - self.farthest
        return self.total - int((lost[u] + lost[v]).min())


def spread(classes: IntArray, moves: Moves) -> Spread:
    """Class by class; classes with the same cells of the question are looked at once.

    Where pairs are too many, widths are bounded from one cell of each class by the triangle inequality.
    """
    pairs = np.unique(classes * moves.asked.size + moves.labels)
    groups = np.split(pairs % moves.asked.size, np.flatnonzero(np.diff(pairs // moves.asked.size)) + 1)
    sets: dict[bytes, IntArray] = {}
    keys = [group.tobytes() for group in groups]
    for key, group in zip(keys, groups, strict=True):
        sets.setdefault(key, group)
    if sum(group.size**2 for group in sets.values()) > 10 * LIMIT:
        bounds = {key: _from_one(group, moves) for key, group in sets.items()}
        return Spread(classes, np.array([bounds[key] for key in keys], dtype=object), None)
    farthest = {key: _farthest(group, moves) for key, group in sets.items()}
    widths = np.array([max(farthest[key]) for key in keys], dtype=object)
    each = np.concatenate([farthest[key] for key in keys])
    place = np.searchsorted(pairs, classes * moves.asked.size + moves.labels)
    return Spread(classes, widths, each[place])


def _from_one(labels: IntArray, moves: Moves) -> int:
    if labels.size == 1:
        return 0
    costs = moves.between(np.full_like(labels, labels[0]), labels)
    return min(2 * int(costs.max()), moves.anywhere)


def _farthest(labels: IntArray, moves: Moves) -> NDArray[Any]:
    """For every label, the largest cost of a move to another."""
    if labels.size == 1:
        return np.zeros(1, dtype=object)
    rows = max(1, _AT_ONCE // labels.size)
    largest = []
    for start in range(0, labels.size, rows):
        some = labels[start : start + rows]
        here, there = np.repeat(some, labels.size), np.tile(labels, some.size)
        costs = np.asarray(moves.between(here, there))
        largest.append(costs.reshape(some.size, -1).max(axis=1).astype(object))
    return np.concatenate(largest)


MOST_SHIFTS = 40
WORK = 20_000
"""How many partial exchanges a search may look at."""


def shifts(counts: BoolArray, pairs: IntArray | None) -> IntArray | None:
    """The distinct shifts of known counts, other than zero, that moves between these pairs of classes cause.

    ``pairs`` None means any two classes. None if there are too many of them.
    """
    if pairs is None:
        every = np.arange(counts.shape[1])
        if every.size > MOST_SHIFTS:
            return None
        u, v = (part.ravel() for part in np.meshgrid(every, every))
    else:
        u, v = np.concatenate((pairs, pairs[:, ::-1])).T
    changes = np.unique((counts[:, v].astype(np.int64) - counts[:, u]).T, axis=0)
    moved = changes[(changes != 0).any(axis=1)]
    return moved if len(moved) <= MOST_SHIFTS else None


def longest_exchange(moved: IntArray, work: int = WORK) -> int | None:
    """The most moves in one exchange whose moves cause these shifts; None beyond the limit of work.

    A partial exchange x is extended by a shift v only if ⟨V·x, v⟩ < 0 (complete by Contejean–Devie 1994),
    and never to one that contains a finished exchange. A shift and its opposite are an exchange of two. Kept,
    because every question about the same known counts needs it.
    """
    return _longest(tuple(tuple(row) for row in moved.tolist()), work)


@lru_cache(maxsize=64)
def _longest(shifted: tuple[tuple[int, ...], ...], work: int) -> int | None:
    moved = np.array(shifted, dtype=np.int64).reshape(len(shifted), -1)
    vectors = [tuple(row) for row in moved.tolist()]
    index = {vector: at for at, vector in enumerate(vectors)}
    opposite = [index.get(tuple(-entry for entry in vector), -1) for vector in vectors]
    products = (moved @ moved.T).tolist()
    done: list[tuple[int, ...]] = []
    longest, looked = 1, 0
    units = [tuple(int(at == j) for at in range(len(vectors))) for j in range(len(vectors))]
    layer = {unit: products[j] for j, unit in enumerate(units)}
    length = 1
    while layer:
        length += 1
        grown: dict[tuple[int, ...], list[int]] = {}
        finished: list[tuple[int, ...]] = []
        parts = np.array(done, dtype=np.int64).reshape(len(done), len(vectors))
        for x, inner in layer.items():
            for j, product in enumerate(inner):
                if product >= 0:
                    continue
                looked += 1
                if looked > work:
                    return None
                after = (*x[:j], x[j] + 1, *x[j + 1 :])
                if opposite[j] >= 0 and x[opposite[j]]:
                    longest = max(longest, 2)
                elif after not in grown and not _contains_one(after, parts):
                    sums = [a + b for a, b in zip(inner, products[j], strict=True)]
                    if any(sums):  # V·x = 0 exactly when x is orthogonal to every shift, x's own included
                        grown[after] = sums
                    else:
                        finished.append(after)
        if finished:
            longest = max(longest, length)
            done += dict.fromkeys(finished)
        parts = np.array(finished, dtype=np.int64).reshape(len(finished), len(vectors))
        layer = {x: sums for x, sums in grown.items() if not _contains_one(x, parts)}
    return longest


def _contains_one(whole: tuple[int, ...], parts: IntArray) -> bool:
    return bool(len(parts)) and bool((parts <= np.array(whole)).all(axis=1).any())


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
    bounds: list[int] = []
    endless: NotProven | None = None
    for rule in _RULES:
        try:
            value = rule(case)
        except NotProven as refusal:  # this rule has no bound here; another one may
            endless = refusal
        else:
            bounds += [] if value is None else [value]
    if not bounds:
        raise endless or _refusal(case)
    return max(case.inside, min(bounds))


def most_records(known: KnownCells, graph: PolicyGraph, edges: IntArray | None = None) -> int | None:
    """In how many records neighbours can differ, at most; None where no proof says so."""
    known = known.with_uncounted() if graph.absent else known
    edges = crossing(known, graph) if edges is None else edges
    if not len(edges):
        return 1
    bounds = [known.class_count] if known.determines_classes else []
    counts = distinct_counts(known)
    if known.reading is Reading.EDGE and (sparse := constraint_graph(known, graph, edges)) is not None:
        bounds.append(sparse.most_moves)
    if not bounds and counts is not None and (moved := shifts(counts, None)) is not None:
        longest = longest_exchange(moved)
        bounds += [] if longest is None else [longest]
    return min(bounds, default=None)


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
        direction = free_direction(equations)
        return None if direction is None else np.array(direction, dtype=np.int64)


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
