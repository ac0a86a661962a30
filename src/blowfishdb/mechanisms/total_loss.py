"""What several releases lost together under a policy, and where.

Releases about groups that no edge joins, or about distant parts of a line, lose on different edges: together
they cost as much as the dearest. That is found by listing the edges over the boxes that all have in common.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.axis import Axis
from blowfishdb.core.bins import Bins
from blowfishdb.core.graphs import Apex, Cone, Explicit, PolicyGraph, Product
from blowfishdb.core.policy import Policy
from blowfishdb.core.policy_parts import parts_of
from blowfishdb.core.projection import common_bins
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.losses import ByRows, Kernel, Loss, Tightest
from blowfishdb.mechanisms.strategy import WeightedRows

_MOST_BOXES = 20_000
_MOST_EDGES = 10**6
_MOST_WORK = 2 * 10**8  # rows times pairs of boxes


@final
@dataclass(frozen=True)
class Worst:
    """What a policy has lost, and where: the columns whose values are told apart best."""

    loss: Loss
    columns: tuple[str, ...]


def total_loss(kernels: Sequence[Kernel], policy: Policy) -> Worst:
    """What all releases together lost under ``policy``.

    Largest losses are added up over the moves that can happen together: of all columns at once under a joint
    policy, of one column at a time otherwise. Where edges can be listed, releases whose rows are known are
    added up edge by edge instead. So it is exact for one release, and never too small.
    """
    found = []
    for columns, moving in _moves(policy):
        apart = _added(kernel.worst(moving) for kernel in kernels)
        known = [rows for kernel in kernels if (rows := known_rows(kernel)) is not None]
        if len(known) > 1:
            others = [kernel.worst(moving) for kernel in kernels if known_rows(kernel) is None]
            together = pairwise_loss(known, moving)
            apart = apart if together is None else min(apart, _added([together, *others]))
        found.append(Worst(apart, columns))
    return max(found, key=lambda worst: worst.loss)


def _added(losses: Iterable[Loss]) -> Loss:
    listed = list(losses)
    return math.inf if any(math.isinf(loss) for loss in listed) else sum(listed, Fraction(0))


def known_rows(kernel: Kernel) -> ByRows | None:
    """The rows of a release, if they are known."""
    if isinstance(kernel, Tightest):
        return next((view for view in kernel.views if isinstance(view, ByRows)), None)
    return kernel if isinstance(kernel, ByRows) else None


def _moves(policy: Policy) -> list[tuple[tuple[str, ...], Policy]]:
    """The policy taken apart into what may move at once."""
    found = parts_of(policy)
    tied = policy.constraints is not None  # records move together, across columns
    if tied or found.joint or found.hides_presence or len(found.parts) == 1:
        return [(policy.domain.names, policy)]
    still = [Explicit(part.graph.size, ()) for part in found.parts]
    moves = []
    for place, part in enumerate(found.parts):
        factors: list[PolicyGraph] = [*still]
        factors[place] = part.graph
        moves.append((part.columns, Policy(policy.domain, Product(*factors, joint=False))))
    return moves


def pairwise_loss(kernels: Sequence[ByRows], policy: Policy) -> Loss | None:
    """The exact loss of releases whose rows are known; None where listing the edges would take too long."""
    if policy.constraints is not None:
        return None
    boxes = _common_boxes(kernels, policy)
    if boxes is None:
        return None
    names = [name for name in policy.domain.names if name in boxes]
    graph = _over(policy, boxes)
    if math.prod(bins.count for bins in boxes.values()) > _MOST_BOXES or graph.edge_count > _MOST_EDGES:
        return None
    edges = graph.edges()
    if not edges.size:
        return Fraction(0)
    unit = math.lcm(*(kernel.unit for kernel in kernels))
    total = np.zeros(len(edges), dtype=object)
    endless = np.zeros(len(edges), dtype=np.bool_)
    for kernel in kernels:
        place = _places(kernel, names, boxes, absent=graph.absent)
        pairs, which = np.unique(np.sort(place[edges], axis=1), axis=0, return_inverse=True)
        if len(pairs) * kernel.rows.count > _MOST_WORK:
            return None
        noisy, exact = _losses(kernel, pairs)
        total += kernel.people * (unit // kernel.unit) * noisy[which.ravel()]
        endless |= exact[which.ravel()]
    return math.inf if endless.any() else Fraction(int(total.max()), unit)


def _common_boxes(kernels: Sequence[ByRows], policy: Policy) -> dict[str, Bins] | None:
    """The coarsest bins of every column that refine those of all releases."""
    boxes: dict[str, Bins] = {}
    for axis in (axis for kernel in kernels for axis in kernel.axes):
        if axis.column not in policy.domain or policy.domain[axis.column] != axis.attribute:
            return None
        boxes[axis.column] = common_bins(boxes.get(axis.column), axis.bins, axis.attribute.size)
    return boxes


def _over(policy: Policy, boxes: dict[str, Bins]) -> PolicyGraph:
    graph = policy.project(boxes)
    if any(policy.domain[name].may_drop for name in boxes) and not graph.absent:
        return Cone(graph, Apex.OUTSIDE)
    return graph


def _places(kernel: ByRows, names: list[str], boxes: dict[str, Bins], *, absent: bool) -> IntArray:
    """For every common box that of the release; what is not counted is one past the last."""
    shape = tuple(boxes[name].count for name in names)
    at = dict(zip(names, np.unravel_index(np.arange(math.prod(shape)), shape), strict=True))

    def bin_of(axis: Axis) -> IntArray:
        return axis.bins.assign(boxes[axis.column].first(at[axis.column]))

    own = tuple(axis.bins.count for axis in kernel.axes)
    place = (
        np.ravel_multi_index(tuple(map(bin_of, kernel.axes)), own) if own else np.zeros(math.prod(shape), int)
    )
    return np.append(place, math.prod(own)) if absent else place


def _losses(kernel: ByRows, pairs: IntArray) -> tuple[Numbers, BoolArray]:
    """Σ_r |a_ru − a_rv|·w_r over noisy rows, and whether an exact row tells the two apart."""
    exact = kernel.weights == 0
    noisy = _changes(kernel, ~exact, kernel.weights, pairs)
    return noisy, np.asarray(_changes(kernel, exact, np.ones_like(kernel.weights), pairs) > 0, dtype=np.bool_)


def _changes(kernel: ByRows, chosen: BoolArray, weights: IntArray, pairs: IntArray) -> Numbers:
    some, size = np.flatnonzero(chosen), kernel.rows.size
    change = np.zeros(len(pairs), dtype=object)
    if some.size:
        asked = WeightedRows(kernel.rows.sparse()[some], weights[some])
        both, one = (pairs < size).all(axis=1), (pairs[:, 0] < size) & (pairs[:, 1] >= size)
        change[both] = asked.moves(pairs[both, 0], pairs[both, 1])
        change[one] = asked.norms(pairs[one, 0])
    return change
