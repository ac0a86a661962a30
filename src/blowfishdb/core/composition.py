"""Composition: what several private answers reveal together, by theorem, each with its condition checked.

A rule whose condition does not hold is refused with NotProven; adding the losses up is always right.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import IntArray, integers
from blowfishdb.core.bins import Bins
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.constraints.constraint_graph import crossing
from blowfishdb.core.constraints.known_cells import KnownCells
from blowfishdb.core.errors import InvalidInput, NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import PolicyGraph

_ADD_UP = "sequential(…): add the losses up"
_MOST_PAIRS = 20_000


def sequential(spent: Iterable[Epsilon]) -> Epsilon:
    """Answers to the same people, each chosen after the earlier ones: losses add up ([B14] Thm 4.1)."""
    return sum(spent, Epsilon(0))


def projected(spent: Iterable[tuple[Epsilon, Bins]], graph: PolicyGraph) -> Epsilon:
    """Answers about different cells of one policy ([BDB] Thm 1): the sum bounds the loss under the policy
    itself.

    Every answer must be private for the projection of ``graph`` onto its bins, and read nothing but their
    counts: then an edge of the graph is an edge of the projection, or moves nothing.
    """
    found = list(spent)
    for _, bins in found:
        if bins.size != graph.size - graph.absent:
            raise SizeMismatch(
                f"These bins divide {bins.size:,} cells, but the policy has {graph.size - graph.absent:,}."
            )
    return sequential(epsilon for epsilon, _ in found)


# --- at the price of the dearest ------------------------------------------------------------------------


def over_people(
    spent: Iterable[Epsilon], groups: Sequence[Iterable[object]], *, critical: IntArray | None = None
) -> Epsilon:
    """Answers about disjoint groups of people cost as much as the dearest ([B14] Thm 4.2, with n known).

    Who is in which group must be public and must not depend on hidden values. With known counts give their
    ``critical_pairs``: the rule holds only if there are none (Thm 4.3 for counts of values).
    """
    losses, members = list(spent), [set(group) for group in groups]
    if len(losses) != len(members):
        raise InvalidInput("There must be one loss for each group of people.")
    if sum(map(len, members)) != len(set[object]().union(*members)):
        raise NotProven(
            "Someone is in two of these groups, so both answers are about them.", fixes=(_ADD_UP,)
        )
    _refuse_critical(critical)
    return max(losses, default=Epsilon(0))


def over_regions(
    spent: Iterable[Epsilon],
    regions: Sequence[ArrayLike],
    graph: PolicyGraph,
    *,
    critical: IntArray | None = None,
) -> Epsilon:
    """Answers about disjoint sets of cells cost as much as the dearest, if no edge leads from one to another.

    Unions of connected components are such sets. With known counts also: no edge lifts or lowers any of them.
    """
    losses = list(spent)
    region = np.full(graph.size, -1, dtype=np.int64)
    cells_of = [integers(np.asarray(cells), "The cells of a region", InvalidInput) for cells in regions]
    if len(losses) != len(cells_of):
        raise InvalidInput("There must be one loss for each region.")
    for at, cells in enumerate(cells_of):
        if cells.size and (cells.min() < 0 or cells.max() >= graph.size):
            raise InvalidInput(
                f"A region names a cell that does not exist: cells are 0 to {graph.size - 1:,}."
            )
        if (region[cells] >= 0).any():
            raise NotProven("Two of these regions share a cell.", fixes=(_ADD_UP,))
        region[cells] = at
    for block in graph.edge_blocks():
        u, v = region[block[:, 0]], region[block[:, 1]]
        if ((u >= 0) & (v >= 0) & (u != v)).any():
            raise NotProven(
                "The policy hides moves from one of these regions to another, which change both answers.",
                fixes=(_ADD_UP, "regions that are unions of the policy's groups"),
            )
    _refuse_critical(critical)
    return max(losses, default=Epsilon(0))


def critical_pairs(known: KnownCells, graph: PolicyGraph) -> IntArray:
    """crit(q) of [B14] §4.1 for all known counts: the pairs of classes, joined by an edge, whose moves
    change one.
    """
    return crossing(known.with_uncounted() if graph.absent else known, graph)


def _refuse_critical(critical: IntArray | None) -> None:
    if critical is not None and len(critical):
        raise NotProven(
            "A hidden move changes a known count, so that someone in another part has to change as well.",
            fixes=("charge the whole policy with its constraints",),
        )


# --- when the policy changes --------------------------------------------------------------------------


@final
@dataclass(frozen=True)
class WorstPair:
    """The two values that an attacker can tell apart best, and what that costs; None is without limit."""

    u: int
    v: int
    loss: Fraction | None

    @property
    def words(self) -> str:
        """The loss in words."""
        if self.loss is None:
            return "without limit: an earlier policy did not hide these two values from each other at all"
        return f"{float(self.loss):.4g}"


def pair_loss(spent: Iterable[tuple[Epsilon, PolicyGraph]], u: int, v: int) -> Fraction | None:
    """What answers under different policies reveal about two values: Σ ε·distance; None if a distance is
    infinite, also at ε = 0: a free answer is an exact one.
    """
    total = Fraction(0)
    for epsilon, graph in spent:
        steps = graph.distance(u, v)
        if math.isinf(steps):
            return None
        total += epsilon.fraction * int(steps)
    return total


def worst_pair(spent: Iterable[tuple[Epsilon, PolicyGraph]], graph: PolicyGraph) -> WorstPair | None:
    """The worst edge of ``graph`` after answers under other policies; None if the graph hides nothing."""
    found = list(spent)
    if graph.edge_count > _MOST_PAIRS:
        raise TooLarge(f"Looking at {graph.edge_count:,} hidden pairs one by one is above the limit.")
    worst: WorstPair | None = None
    for u, v in graph.edges().tolist():
        loss = pair_loss(found, u, v)
        if loss is None:
            return WorstPair(u, v, None)
        if worst is None or worst.loss is None or loss > worst.loss:
            worst = WorstPair(u, v, loss)
    return worst
