"""Projection: from a question and a policy to the few cells that matter.

Step 1 of a question ([BDB] §4): the workload W* over boxes, the cells x* to count, and the policy graph
G* over those boxes. Everything after this works on the small problem. A WHERE clause cuts the boxes so
that each lies inside or outside of it; boxes outside are kept, because records can move in and out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.constraints.under_policy import Refined, refine
from blowfishdb.core.domain.bins import Bins, ProductBins, common_bins
from blowfishdb.core.domain.domain import Axis, CellQuery, Domain
from blowfishdb.core.domain.predicates import Everything
from blowfishdb.core.errors import SizeMismatch, TooLarge
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.kinds import Question
from blowfishdb.core.workloads import Selected, Workload


@final
@dataclass(frozen=True, eq=False)
class Projected:
    """The small problem: W*, G*, and the cells to count."""

    workload: Workload
    graph: PolicyGraph
    cells: CellQuery
    axes: tuple[Axis, ...]
    """The axes of the answer, in the order of the domain."""
    refined: Refined | None = None
    """What is known over these cells; then the graph alone says too little about neighbours."""
    of_the_kind: tuple[str, ...] = ()
    """As what values count in a question of this kind."""

    @property
    def notes(self) -> tuple[str, ...]:
        """As what values count, and what becomes of those that are not declared."""
        return (*self.of_the_kind, *self.cells.notes)


_MOST_BOXES: Final = 2**24


def project(question: Question, policy: Policy) -> Projected:
    """Reduce ``question`` under ``policy`` to the boxes that it needs."""
    domain = policy.domain
    _check_columns(question, domain)
    axes = tuple(sorted(question.axes, key=lambda axis: domain.names.index(axis.column)))
    needed, workload = _merged(axes, question.kind.workload(axes))
    cells = CellQuery(_refined(needed, question, domain))
    if cells.count > _MOST_BOXES:
        raise TooLarge(
            f"This question needs {cells.count:,} boxes; at most {_MOST_BOXES:,} are counted.",
            fixes=("wider bins", "fewer columns", "ask the curator to declare a larger step"),
        )
    boxes = tuple((axis.column, axis.bins) for axis in cells.axes)
    refined = None if policy.constraints is None else _known_on(policy, boxes)
    graph = policy.knowing(None).project(dict(boxes))
    if any(axis.attribute.may_drop for axis in cells.axes) and not graph.absent:
        graph = Cone(graph, Apex.OUTSIDE)
    if not isinstance(question.where, Everything):
        workload = Selected(workload, _selection(needed, cells, question, domain))
    return Projected(workload, graph, cells, axes, refined, question.kind.notes(axes))


@lru_cache(maxsize=64)
def _known_on(policy: Policy, boxes: tuple[tuple[str, Bins], ...]) -> Refined:
    """Kept for the next question about the same cells: its bounds are worth more than its memory."""
    return refine(policy, dict(boxes))


def _check_columns(question: Question, domain: Domain) -> None:
    """Every axis must be about a column as it is declared."""
    for axis in question.axes:
        if domain[axis.column] != axis.attribute:
            raise SizeMismatch(f"'{axis.column}' is declared differently in the policy's domain.")
    question.where.check(domain)


def _merged(axes: tuple[Axis, ...], workload: Workload) -> tuple[tuple[Axis, ...], Workload]:
    """Bins that no question tells apart become one: two ranges on 10⁹ values need five boxes."""
    together = workload.cells()
    if together.count == workload.size:
        return axes, workload
    factors = together.factors if isinstance(together, ProductBins) else (together,)
    merged = tuple(
        Axis(axis.column, axis.attribute, _coarsened(axis.bins, factor))
        for axis, factor in zip(axes, factors, strict=True)
    )
    return merged, workload.merged()


def _coarsened(bins: Bins, groups: Bins) -> Bins:
    """The bins, put together in groups."""
    if bins.contiguous and groups.contiguous:
        return Bins.edges(bins.size, bins.first(groups.first(np.arange(groups.count))))
    return Bins.labels(groups.assign(bins.assignment()))


def _refined(axes: tuple[Axis, ...], question: Question, domain: Domain) -> tuple[Axis, ...]:
    """The boxes of the answer, cut further wherever the condition tells values apart."""
    cuts = question.where.cuts(domain)
    asked = {axis.column: axis.bins for axis in axes}
    involved = [name for name in domain.names if name in asked or name in cuts]
    return tuple(
        Axis(name, domain[name], common_bins(asked.get(name), cuts.get(name), domain[name].size))
        for name in involved
    )


def _selection(axes: tuple[Axis, ...], cells: CellQuery, question: Question, domain: Domain) -> IntArray:
    """For every box, the box of the answer that it counts in, or −1 where the condition is not true."""
    boxes = np.unravel_index(np.arange(cells.count), cells.shape)
    members = {a.column: a.bins.first(box) for a, box in zip(cells.axes, boxes, strict=True)}
    inside = question.where.on_cells(domain, members)
    shape = tuple(axis.bins.count for axis in axes)
    label = np.ravel_multi_index(tuple(axis.bins.assign(members[axis.column]) for axis in axes), shape)
    return np.where(inside, label, -1)
