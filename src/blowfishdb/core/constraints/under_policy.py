"""A question under a policy with constraints: bring everything to common boxes, and bound the change there.

The boxes of the question are cut further wherever something known tells records apart; on these boxes the
question, the policy and the known counts are all exact (docs/proofs/constraints.md, Lemma 5).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.bins import LIMIT, Bins
from blowfishdb.core.constraints.bound import most_change
from blowfishdb.core.constraints.constraint_graph import crossing
from blowfishdb.core.constraints.declared import Constraints, Reading
from blowfishdb.core.constraints.known_cells import KnownCells, box_cells, box_shape, known_on_boxes, refined
from blowfishdb.core.constraints.moves import AnswerMoves, PolicySteps
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidInput, TooLarge
from blowfishdb.core.graphs import Apex, Cone, Explicit, Full, PolicyGraph
from blowfishdb.core.graphs.explicit import unique_edges
from blowfishdb.core.policy import Policy
from blowfishdb.core.policy_parts import without_presence
from blowfishdb.core.workloads import Histogram, Workload
from blowfishdb.core.workloads.base import exact


@final
@dataclass(frozen=True, eq=False)
class Refined:
    """A policy with constraints over the boxes of a question, cut where known counts need it.

    ``asked`` is the question's box of every common box.
    """

    known: KnownCells
    graph: PolicyGraph
    asked: IntArray
    coarse: PolicyGraph
    by_class: OverClasses | None = None
    """What is known and the policy over fewer boxes with the same classes, where there are such."""

    @cached_property
    def edges(self) -> IntArray | None:
        """The pairs of classes that the policy joins; None if they could not be listed."""
        return (self.by_class or OverClasses(self.known, self.graph)).edges

    def sensitivity(self, workload: Workload) -> int | Fraction:
        """A proven upper bound of how much answers over the question's boxes differ between neighbours."""
        moves = AnswerMoves(workload, self.coarse, self._labels, self.graph)
        return exact(most_change(self.known, moves, self.edges), workload.denominator)

    @cached_property
    def _labels(self) -> IntArray:
        """The vertex of ``coarse`` of every vertex of ``graph``; the last one is what nobody counts."""
        uncounted = self.coarse.size - 1
        labels = np.where(self.asked < 0, uncounted, self.asked)
        return np.append(labels, uncounted) if self.graph.absent else labels

    @cached_property
    def factor(self) -> int:
        """How many times its ε any mechanism may lose that is ε-private along every edge over these boxes.

        Group privacy along the exchange; the whole budget divided by it is what such a mechanism may use.
        """
        return most_change(self.known, PolicySteps(self.coarse, self._labels, self.graph), self.edges)

    @cached_property
    def keeps_totals(self) -> bool:
        """Whether the totals of the policy's components are the same for all neighbours."""
        return self.known.reading is Reading.EDGE or (self.edges is not None and not len(self.edges))

    @cached_property
    def histogram(self) -> int | Fraction:
        """The sensitivity of all the question's boxes at once; every answer is post-processing of them."""
        return self.sensitivity(Histogram(self.coarse.size - self.coarse.absent))


def refine(policy: Policy, asked: Mapping[str, Bins]) -> Refined:
    """What is known, and the policy, over boxes that refine ``asked``."""
    domain = policy.domain
    coarse = policy.knowing(None).project(asked)
    if _droppable(domain, asked) and not coarse.absent:
        coarse = Cone(coarse, Apex.OUTSIDE)
    known, graph, boxes = on_common_boxes(policy, asked)
    return Refined(known, graph, _asked(domain, boxes, asked), coarse, _by_class(policy, boxes, known))


@final
@dataclass(frozen=True, eq=False)
class OverClasses:
    """What is known and the policy, over boxes that tell classes apart."""

    known: KnownCells
    graph: PolicyGraph
    dropping: tuple[str, ...] = ()

    @cached_property
    def edges(self) -> IntArray | None:
        """The pairs of classes that the policy joins; None if they could not be listed."""
        try:
            return crossing(self.known.with_uncounted() if self.graph.absent else self.known, self.graph)
        except TooLarge:
            return None


@lru_cache(maxsize=32)
def over_classes(policy: Policy) -> OverClasses:
    """Over the boxes that known counts alone need; kept, because every page about the policy asks for it."""
    known, graph, boxes = on_common_boxes(policy, {})
    return OverClasses(known, graph, _droppable(policy.domain, boxes))


def _by_class(policy: Policy, boxes: Mapping[str, Bins], known: KnownCells) -> OverClasses | None:
    """The boxes that known counts alone need have the same classes, in the same order, and are fewer.

    Not where another column may drop rows: such a row is joined to every class.
    """
    found = over_classes(policy)
    same = _droppable(policy.domain, boxes) == found.dropping
    return found if same and np.array_equal(found.known.class_labels, known.class_labels) else None


def on_common_boxes(
    policy: Policy, asked: Mapping[str, Bins]
) -> tuple[KnownCells, PolicyGraph, dict[str, Bins]]:
    """What is known and the policy over the coarsest common boxes, and these boxes.

    A column whose rows may be dropped has one more bin for them. Such a row is joined to every other; it is
    left out of counts and questions about that column, and of no other.
    """
    if policy.constraints is None:
        raise InvalidInput("This policy says nothing about what is known.")
    domain = policy.domain
    boxes = refined(policy.constraints, domain, asked)
    outside = _droppable(domain, boxes)
    known = known_on_boxes(policy.constraints, domain, boxes, outside)
    return known, _with_outside(policy.knowing(None).project(boxes), boxes, outside), boxes


def _droppable(domain: Domain, boxes: Mapping[str, Bins]) -> tuple[str, ...]:
    return tuple(name for name in boxes if domain[name].may_drop)


def _with_outside(graph: PolicyGraph, boxes: Mapping[str, Bins], outside: tuple[str, ...]) -> PolicyGraph:
    """The graph over boxes with those for rows outside, which are joined to everything."""
    if not outside:
        return graph
    base = without_presence(graph)
    declared = np.all([cells >= 0 for cells in box_cells(boxes, outside).values()], axis=0)
    size = declared.size
    beyond = np.flatnonzero(~declared)
    if isinstance(base, Full) or base.edge_count + beyond.size * size > LIMIT:
        wider: PolicyGraph = Full(size)  # more edges than there are: a larger bound, never a smaller one
    else:
        inner = np.flatnonzero(declared)[base.edges()]
        outer = np.column_stack((np.repeat(beyond, size), np.tile(np.arange(size), beyond.size)))
        wider = Explicit(size, unique_edges(np.concatenate((inner, outer))))
    return wider.hide_presence() if graph.absent else wider


def _asked(domain: Domain, boxes: Mapping[str, Bins], asked: Mapping[str, Bins]) -> IntArray:
    """The question's box of every common box; −1 where a row is outside of what is asked."""
    outside = _droppable(domain, boxes)
    kept = [name for name in domain.names if name in asked]
    if not kept:
        return np.zeros(math.prod(box_shape(boxes, outside)), dtype=np.int64)
    first = box_cells(boxes, outside)
    inside = np.all([first[name] >= 0 for name in kept], axis=0)
    parts = tuple(asked[name].assign(np.maximum(first[name], 0)) for name in kept)
    return np.where(inside, np.ravel_multi_index(parts, tuple(asked[name].count for name in kept)), -1)


def keeps_component_totals(policy: Policy) -> bool:
    """Whether the totals of the policy's components stay exact although something is known.

    Yes under the edge reading, and where no edge of the policy lifts or lowers a known count; otherwise a
    record of another component may have to move ([B14] Def. 4.1 literally). What cannot be computed counts
    as no.
    """
    if policy.constraints is None or policy.constraints.reading is Reading.EDGE:
        return True
    try:
        edges = over_classes(policy).edges
    except TooLarge:
        return False
    return edges is not None and not len(edges)


def check_consistent(constraints: Constraints, domain: Domain) -> None:
    """Refuses declared answers that contradict each other."""
    from blowfishdb.core.constraints.determined import Determined

    if constraints:
        Determined(known_on_boxes(constraints, domain, refined(constraints, domain, {})))
