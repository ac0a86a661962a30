"""A question under a policy with constraints: bring everything to common boxes, and bound the change there.

The boxes of the question are cut further wherever something known tells records apart; on these boxes the
question, the policy and the known counts are all exact (docs/proofs/constraints.md, Lemma 5).

Sensitivity under constraints for a workload and a graph over the same cells, without a question around
them.

What known answers give a question: its whole answer, or cells that fit what is known better.

Known counts make noisy cells better: the nearest cells that satisfy them, by least squares.

Post-processing, so it costs no privacy. The truth satisfies the known counts, and projecting onto a set
that holds the truth never moves away from it: with equal variances the squared error is never larger,
whatever the noise was; with others, that holds weighted by precision, and the variance of every linear
answer is never larger (Gauss–Markov).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import final

import numpy as np
import scipy
from numpy.typing import ArrayLike

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.constraints.bound import most_change
from blowfishdb.core.constraints.constraint_graph import AnswerMoves, PolicySteps, crossing
from blowfishdb.core.constraints.declared import Constraints, Reading
from blowfishdb.core.constraints.determined import Determined
from blowfishdb.core.constraints.known_cells import (
    KnownCells,
    box_cells,
    box_shape,
    known_on_boxes,
    known_on_cells,
    refined,
)
from blowfishdb.core.domain.bins import LIMIT, Bins, ProductBins, single_cells
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, NotFinite, SizeMismatch, TooLarge
from blowfishdb.core.graphs import Apex, Cone, Explicit, Full, PolicyGraph
from blowfishdb.core.graphs.general import unique_edges
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.sensitivity import scaled_sensitivity
from blowfishdb.core.workloads import Histogram, Predicates, Selected, Workload
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
        return self.sensitivity(Histogram(self.coarse.counted.size))


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
    classes = over_classes(policy)
    same = _droppable(policy.domain, boxes) == classes.dropping
    return classes if same and np.array_equal(classes.known.class_labels, known.class_labels) else None


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
    base = graph.counted
    declared = np.all([cells >= 0 for cells in box_cells(boxes, outside).values()], axis=0)
    size = declared.size
    beyond = np.flatnonzero(~declared)
    if base.complete or base.edge_count + beyond.size * size > LIMIT:
        wider: PolicyGraph = Full(size)  # more edges than there are: a larger bound, never a smaller one
    else:
        inner = np.flatnonzero(declared)[base.edges()]
        outer = np.column_stack((np.repeat(beyond, size), np.tile(np.arange(size), beyond.size)))
        wider = Explicit(size, unique_edges(np.concatenate((inner, outer))))
    return wider.hide_presence() if graph.absent else wider


def _asked(domain: Domain, boxes: Mapping[str, Bins], asked: Mapping[str, Bins]) -> IntArray:
    """The question's box of every common box; −1 where a row is outside of what is asked."""
    outside = _droppable(domain, boxes)
    names = [name for name in domain.names if name in asked]
    if not names:
        return np.zeros(math.prod(box_shape(boxes, outside)), dtype=np.int64)
    first = box_cells(boxes, outside)
    inside = np.all([first[name] >= 0 for name in names], axis=0)
    parts = tuple(asked[name].assign(np.maximum(first[name], 0)) for name in names)
    return np.where(inside, np.ravel_multi_index(parts, tuple(asked[name].count for name in names)), -1)


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
    if constraints:
        Determined(known_on_boxes(constraints, domain, refined(constraints, domain, {})))


def sensitivity(
    workload: Workload,
    graph: PolicyGraph,
    constraints: Constraints | None = None,
    *,
    domain: Domain | None = None,
) -> int | Fraction:
    """The exact policy-specific sensitivity of ``workload`` under ``graph``.

    A vertex that stands for "not counted" (⊥, *outside*) may be left out of the workload; its
    column is zero. With ``constraints`` it is a proven upper bound, or NotProven; they speak of the columns
    of ``domain``, and without one of bare cells and axes.

    >>> bf.sensitivity(bf.workloads.Cumulative(100), bf.graphs.Full(100))
    99
    >>> bf.sensitivity(bf.workloads.Cumulative(100), bf.graphs.Threshold(100, 5))
    5
    """
    if not constraints:
        return exact(scaled_sensitivity(workload, graph), workload.denominator)
    return _constrained(workload, graph, constraints, domain)


def _constrained(
    workload: Workload, graph: PolicyGraph, constraints: Constraints, domain: Domain | None
) -> int | Fraction:
    """A proven upper bound of the change of the answers between neighbours under ``constraints``."""
    if isinstance(workload, Predicates):
        domain = domain or workload.domain
        if domain.size > LIMIT:
            return _conditions(workload, Policy(domain, graph, constraints))
    known = known_cells(constraints, graph, domain)
    if workload.size != known.size:
        raise SizeMismatch(
            f"The questions are about {workload.size:,} cells, but what is known is about {known.size:,}."
        )
    moves = AnswerMoves(workload, graph, np.arange(graph.size), graph)
    return exact(most_change(known, moves), workload.denominator)


def known_cells(constraints: Constraints, graph: PolicyGraph, domain: Domain | None = None) -> KnownCells:
    """What is known, over the cells of a graph: the records of ``domain``, or bare cells."""
    if domain is not None:
        constraints.check(domain)
        return known_on_boxes(constraints, domain, {name: single_cells(domain[name].size) for name in domain})
    inner = graph.counted
    return known_on_cells(constraints, inner.axes or (inner.size,))


def _conditions(workload: Predicates, policy: Policy) -> int | Fraction:
    """Conditions on a domain that is too large to write out: over the boxes that they cut."""
    cells = workload.cells()
    assert isinstance(cells, ProductBins)  # the cuts of conditions, column by column
    boxes = dict(zip(policy.domain.names, cells.factors, strict=True))
    return refine(policy, boxes).sensitivity(workload.merged())


_MOST_ROWS = 3_000


def improved_cells(noisy: ArrayLike, variance: ArrayLike, determined: Determined) -> FloatArray:
    """``noisy`` cells moved onto the known answers, each in proportion to its variance (one, or one per
    cell).
    """
    cells = np.asarray(noisy, dtype=np.float64)
    known = determined.known
    if cells.shape != (known.size,):
        raise SizeMismatch(f"Expected {known.size:,} cells, got an array of shape {cells.shape}.")
    variances = np.broadcast_to(np.asarray(variance, dtype=np.float64), cells.shape)
    if not np.isfinite(variances).all() or not np.isfinite(cells).all():
        raise NotFinite("Cells and variances must be finite numbers.")
    if (variances < 0).any():
        raise InvalidInput("A variance cannot be negative.")
    rows = determined.rows
    if not rows:
        return cells.copy()
    apart = known.disjoint and determined.total is None
    if len(rows) > _MOST_ROWS and not apart:
        raise TooLarge(f"Least squares with {len(rows):,} overlapping known counts is above the limit.")
    counts = _matrix(determined)
    missing = np.array([answer for _, answer in rows], dtype=np.float64) - counts @ cells
    weighted = scipy.sparse.csr_array(counts.multiply(variances[None, :]))
    if apart:  # each moves its own cells
        each = counts @ variances
        shares = np.divide(missing, each, out=np.zeros_like(missing), where=each > 0)
    else:
        shares = scipy.linalg.lstsq((counts @ weighted.T).toarray(), missing)[0]
    return np.asarray(cells + weighted.T @ shares)


def _matrix(determined: Determined) -> scipy.sparse.csr_array:
    """Known counts over cells, one sparse row each."""
    classes = determined.known.classes
    order = np.argsort(classes, kind="stable")
    ends = np.cumsum(np.bincount(classes))
    members = [
        np.concatenate([order[ends[c - 1] if c else 0 : ends[c]] for c in counted.tolist()] or [order[:0]])
        for counted, _ in determined.rows
    ]
    pointers = np.concatenate(([0], np.cumsum([len(cells) for cells in members])))
    columns = np.concatenate(members)
    return scipy.sparse.csr_array(
        (np.ones(columns.size), columns, pointers), shape=(len(members), classes.size)
    )


_MOST_WORK = 10**6  # questions × classes


@lru_cache(maxsize=64)
def given_answers(refined: Refined, workload: Workload) -> FloatArray | None:
    """The answers to all questions, where the known answers determine every one of them."""
    known = refined.known
    if not _answered(known) or workload.count * known.class_count > _MOST_WORK:
        return None
    if not (refined.asked >= 0).any():
        return None
    try:
        answers = Determined(known).all_answers(Selected(workload, refined.asked))
    except TooLarge:
        return None
    return None if answers is None else np.array([float(answer) for answer in answers])


def better_cells(refined: Refined, noisy: FloatArray, exact: BoolArray) -> FloatArray | None:
    """Cells with independent noise, moved onto what is known about them; None if that says nothing of them.

    Post-processing: the known answers are public, and the noise stays what it is.
    """
    known = _of_cells(refined, noisy.size)
    if known is None:
        return None
    try:
        return improved_cells(noisy, (~exact).astype(np.float64), Determined(known))
    except TooLarge:
        return None


def _answered(known: KnownCells) -> bool:
    return any(answer is not None for answers in known.answers for answer in answers)


def _of_cells(refined: Refined, size: int) -> KnownCells | None:
    """The known counts that count whole cells of the question, and nothing beside them."""
    known, asked = refined.known, refined.asked
    tables: list[tuple[IntArray, int, tuple[int | None, ...]]] = []
    inside = asked >= 0
    for labels, rows, answers in zip(known.labels, known.rows, known.answers, strict=True):
        per_cell = np.full(size, -1, dtype=np.int64)
        per_cell[asked[inside]] = labels[inside]
        whole_cells = (per_cell[asked[inside]] == labels[inside]).all()
        if whole_cells and (labels[~inside] < 0).all() and any(answer is not None for answer in answers):
            tables.append((per_cell, rows, answers))
    if not tables:
        return None
    return KnownCells(
        np.stack([labels for labels, _, _ in tables]),
        tuple(rows for _, rows, _ in tables),
        tuple(answers for _, _, answers in tables),
        known.reading,
    )
