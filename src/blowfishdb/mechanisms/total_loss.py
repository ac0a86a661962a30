"""What several releases lost together under a policy, and in which columns most.

What releases whose rows are known lost together, row by row of two neighbouring tables.

Releases about groups that no edge joins, or about distant parts of a line, lose on different edges: together
they cost as much as the dearest. That is found by listing the edges over the boxes that all have in common.

A row that a column's declaration drops is counted by no question about that column, and by every other one.
So two neighbouring rows are compared column by column: where both have a declared value the policy joins
these values, or they are the same; a dropped value stands for any. That is the largest relation under which
every single release is priced right: the policy over its own boxes, and one vertex for what is not counted.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.domain.bins import Bins, common_bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.graphs import Explicit, PolicyGraph, Product
from blowfishdb.core.policy.policy import Policy, parts_of
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.linear.strategy import WeightedRows
from blowfishdb.mechanisms.losses import ByRows, Kernel, Loss
from blowfishdb.mechanisms.summed import added, known_rows, summed

_MOST_BOXES = 20_000
_MOST_EDGES = 10**6
_MOST_WORK = 2 * 10**8  # rows times pairs of boxes
_MOST_DROPPING = 4  # columns; each makes three times as many kinds of neighbours


def pairwise_loss(kernels: Sequence[ByRows], policy: Policy) -> Loss | None:
    """The exact loss of releases whose rows are known; None where listing the edges would take too long."""
    boxes = _common_boxes(kernels, policy)
    if policy.constraints is not None or boxes is None:
        return None
    common = _Common(policy, boxes, tuple(kernels))
    if not common.manageable:
        return None
    worst = 0
    for first, second in common.dropped():
        loss = common.most(first, second)
        if loss is None:
            return None
        noisy, exact = loss
        if exact:
            return math.inf
        worst = max(worst, noisy)
    return Fraction(worst, common.unit)


def _common_boxes(kernels: Sequence[ByRows], policy: Policy) -> dict[str, Bins] | None:
    """The coarsest bins of every column that refine those of all releases, in the order of the domain."""
    boxes: dict[str, Bins] = {}
    for axis in (axis for kernel in kernels for axis in kernel.axes):
        if axis.column not in policy.domain or policy.domain[axis.column] != axis.attribute:
            return None
        boxes[axis.column] = common_bins(boxes.get(axis.column), axis.bins, axis.attribute.size)
    return {name: boxes[name] for name in policy.domain.names if name in boxes}


@final
@dataclass(frozen=True, eq=False)
class _Common:
    """Releases over the boxes that they have in common."""

    policy: Policy
    boxes: Mapping[str, Bins]
    kernels: tuple[ByRows, ...]

    @cached_property
    def unit(self) -> int:
        """A loss of one is this many units."""
        return math.lcm(*(kernel.unit for kernel in self.kernels))

    @cached_property
    def _dropping(self) -> tuple[str, ...]:
        return tuple(name for name in self.boxes if self.policy.domain[name].may_drop)

    @property
    def manageable(self) -> bool:
        """Whether the boxes can be listed."""
        few = len(self._dropping) <= _MOST_DROPPING
        return few and math.prod(bins.count for bins in self.boxes.values()) <= _MOST_BOXES

    def dropped(self) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
        """The columns in which the first of two rows is dropped, and those in which the second is.

        Never both in one column: the first could have any value there, which tells no less. And in no other
        order: which of the two comes first does not matter.
        """
        for sides in itertools.product((0, 1, 2), repeat=len(self._dropping)):
            if next((side for side in sides if side), 1) == 1:
                named = list(zip(self._dropping, sides, strict=True))
                yield (
                    frozenset(name for name, side in named if side == 1),
                    frozenset(name for name, side in named if side == 2),
                )

    def most(self, first: frozenset[str], second: frozenset[str]) -> tuple[int, bool] | None:
        """The largest loss between rows that are dropped in these columns, and whether one is endless."""
        found = self._between(first, second, apart=False)
        if found is None:
            return None
        both, exact, *alone = found
        noisy = both[:, 0]
        for side in alone:
            noisy += side[:, :, 0].max(axis=1)
        return int(noisy.max(initial=0)), exact

    def each(self, first: frozenset[str], second: frozenset[str]) -> FloatArray | None:
        """What every release loses, for each pair of such rows; None where one is endless, or of too many."""
        found = self._between(first, second, apart=True)
        if found is None or found[1]:
            return None
        both, _, *alone = found
        losses = both.astype(np.float64)[:, None]
        for side in alone:
            if len(losses) * losses.shape[1] * side.shape[1] > _MOST_EDGES:
                return None
            more = side.astype(np.float64)
            losses = (losses[:, :, None] + more[:, None]).reshape(len(losses), -1, len(self.kernels))
        return np.unique(losses.reshape(-1, len(self.kernels)), axis=0) / self.unit

    def _between(
        self, first: frozenset[str], second: frozenset[str], *, apart: bool
    ) -> tuple[Any, ...] | None:
        """What releases lose of pairs of neighbouring rows, each by itself (``apart``) or all together.

        Then whether an exact row tells some apart; then, for either row, what it loses by not being counted
        where the other one is, for whatever values it has where the other one is dropped.
        """
        declared = tuple(name for name in self.boxes if name not in first | second)
        pairs = self._pairs(declared, some_dropped=bool(first))
        if pairs is None:
            return None
        columns = len(self.kernels) if apart else 1
        if len(pairs) * columns > 2 * _MOST_EDGES:
            return None
        both, exact = np.zeros((len(pairs), columns), dtype=object), False
        for at, kernel in self._apart(neither=first | second):
            place = np.append(self._places(kernel, declared), kernel.rows.size)  # ⊥ comes last
            low, high = np.sort(place[pairs], axis=1).T
            names, which = np.unique(low * (kernel.rows.size + 1) + high, return_inverse=True)
            if len(names) * kernel.rows.count > _MOST_WORK:
                return None
            more, told = self._losses(kernel, np.column_stack(np.divmod(names, kernel.rows.size + 1)))
            both[:, at % columns] += more[which]
            exact |= bool(told.any())
        alone = []
        for side, own, other in ((0, first, second), (1, second, first)) if first else ():
            more, told = self._uncounted(declared, own, other, columns)
            alone.append(more[pairs[:, side]])
            exact |= bool(told[pairs[:, side]].any())
        return both, exact, *alone

    def _pairs(self, declared: Sequence[str], *, some_dropped: bool) -> IntArray | None:
        """Neighbouring boxes of the columns in which both rows are declared; None if there are too many.

        Where other columns differ by a dropped value these may be equal, and it matters which row is which.
        """
        graph = self.policy.project({name: self.boxes[name] for name in declared})
        if some_dropped:
            graph = graph.counted
        if graph.edge_count > _MOST_EDGES:
            return None
        edges = graph.edges()
        if not some_dropped:
            return edges
        same = np.repeat(np.arange(graph.size)[:, None], 2, axis=1)
        return np.concatenate((edges, edges[:, ::-1], same))

    def _apart(self, *, neither: frozenset[str]) -> list[tuple[int, ByRows]]:
        """The releases that ask about none of these columns, by their place."""
        return [(at, kernel) for at, kernel in enumerate(self.kernels) if not _columns(kernel) & neither]

    def _uncounted(
        self, declared: Sequence[str], own: frozenset[str], other: frozenset[str], columns: int
    ) -> tuple[Numbers, BoolArray]:
        """What a row in every box of ``declared`` columns loses by not being counted, in so many ``columns``.

        In releases that count it, but not the other row, which is dropped in the columns ``other``. There the
        row itself may have any value: one line for every box, one entry for each of these values.
        """
        names = tuple(name for name in self.boxes if name in other or name in declared)
        shape = tuple(self.boxes[name].count for name in names)
        noisy = np.zeros((*shape, columns), dtype=object)
        exact = np.zeros(shape, dtype=np.bool_)
        for at, kernel in self._apart(neither=own):
            if _columns(kernel) & other:
                nowhere = np.full(kernel.rows.size, kernel.rows.size)
                more, told = self._losses(kernel, np.column_stack((np.arange(kernel.rows.size), nowhere)))
                place = self._places(kernel, names)
                noisy[..., at % columns] += more[place].reshape(shape)
                exact |= told[place].reshape(shape)
        free = tuple(at for at, name in enumerate(names) if name in other)
        kept = tuple(at for at in range(len(names)) if at not in free)
        lines = math.prod(shape[at] for at in kept)
        ordered = noisy.transpose(*kept, *free, len(names)).reshape(lines, -1, columns)
        return ordered, np.asarray(exact.any(axis=free)).ravel()

    def _places(self, kernel: ByRows, names: Sequence[str]) -> IntArray:
        """For every box of the named columns, row-major, that of the release."""
        shape = tuple(self.boxes[name].count for name in names)
        count = math.prod(shape)
        at = dict(zip(names, np.unravel_index(np.arange(count), shape), strict=True)) if shape else {}

        def bin_of(axis: Axis) -> IntArray:
            return axis.bins.assign(self.boxes[axis.column].first(at[axis.column]))

        own = tuple(axis.bins.count for axis in kernel.axes)
        if not own:
            return np.zeros(count, dtype=np.int64)
        return np.asarray(np.ravel_multi_index(tuple(map(bin_of, kernel.axes)), own))

    def _losses(self, kernel: ByRows, pairs: IntArray) -> tuple[Numbers, BoolArray]:
        """Σ_r |a_ru − a_rv|·w_r over noisy rows, and whether an exact row tells the two apart."""
        exact = kernel.weights == 0
        noisy = _changes(kernel, ~exact, kernel.weights, pairs)
        told = np.asarray(_changes(kernel, exact, np.ones_like(kernel.weights), pairs) > 0, dtype=np.bool_)
        return kernel.rows_per_person * (self.unit // kernel.unit) * noisy, told


def _columns(kernel: ByRows) -> frozenset[str]:
    return frozenset(axis.column for axis in kernel.axes)


def _changes(kernel: ByRows, chosen: BoolArray, weights: IntArray, pairs: IntArray) -> Numbers:
    some, size = np.flatnonzero(chosen), kernel.rows.size
    change = np.zeros(len(pairs), dtype=object)
    if some.size:
        asked = WeightedRows(kernel.rows.sparse()[some], weights[some])
        both, one = (pairs < size).all(axis=1), (pairs[:, 0] < size) & (pairs[:, 1] >= size)
        change[both] = asked.moves(pairs[both, 0], pairs[both, 1])
        change[one] = asked.norms(pairs[one, 0])
    return change


def pairwise_losses(kernels: Sequence[ByRows], policy: Policy) -> FloatArray | None:
    """What every release loses, for the pairs of neighbouring rows that releases tell apart differently.

    Each made ε_i times as close, all of them together lose the largest Σ_i ε_i·ℓ_i over these lines. None
    where listing the pairs would take too long, or an exact row tells some apart.
    """
    boxes = _common_boxes(kernels, policy)
    if policy.constraints is not None or boxes is None:
        return None
    lines = []
    for _, moving in moves_at_once(policy):
        common = _Common(moving, boxes, tuple(kernels))
        each = [common.each(first, second) for first, second in common.dropped()] if common.manageable else []
        found = [losses for losses in each if losses is not None]
        if not each or len(found) < len(each):
            return None
        lines += found
    return np.unique(np.concatenate(lines), axis=0)


@final
@dataclass(frozen=True)
class WorstLoss:
    """What a policy has lost, and where: the columns whose values are told apart best."""

    loss: Loss
    columns: tuple[str, ...]


def total_loss(kernels: Sequence[Kernel], policy: Policy) -> WorstLoss:
    """What all releases together lost under ``policy``.

    Releases are summed up first, to one kernel for the same columns. Of these the largest losses are added up
    over the moves that can happen together: of all columns at once under a joint policy, of one column at a
    time otherwise. Where edges can be listed they are added up edge by edge instead. So it is exact for
    releases about the same columns, and never too small.
    """
    sums = summed(kernels)
    moves = [WorstLoss(_under(sums, moving), columns) for columns, moving in moves_at_once(policy)]
    return max(moves, key=lambda worst: worst.loss)


def _under(kernels: Sequence[Kernel], moving: Policy) -> Loss:
    """The least that can be shown to be enough, of kernels whose columns may all move at once."""
    known = [kernel for kernel in kernels if known_rows(kernel) is not None]
    others = added(kernel.worst(moving) for kernel in kernels if known_rows(kernel) is None)
    groups = _connected(known, moving)
    apart = added([others, *(_of_group(group, moving) for group in groups)])
    if len(groups) < 2 or _independent(moving):
        return apart
    together = pairwise_loss(_rows_of(known), moving)
    return apart if together is None else min(apart, added([together, others]))


def _of_group(kernels: Sequence[Kernel], moving: Policy) -> Loss:
    """Releases whose columns depend on each other."""
    apart = added(kernel.worst(moving) for kernel in kernels)
    together = pairwise_loss(_rows_of(kernels), moving) if len(kernels) > 1 and apart else None
    return apart if together is None else min(apart, together)


def _rows_of(kernels: Sequence[Kernel]) -> list[ByRows]:
    return [rows for kernel in kernels if (rows := known_rows(kernel)) is not None]


def _connected(kernels: Sequence[Kernel], moving: Policy) -> list[list[Kernel]]:
    """Groups that share no column, and no part of the policy: what moves in one says nothing of another."""
    parts = [frozenset(part.columns) for part in parts_of(moving).parts]
    groups: list[tuple[frozenset[str], list[Kernel]]] = []
    for kernel in kernels:
        rows = known_rows(kernel)
        assert rows is not None
        touched = _columns(rows).union(*(part for part in parts if part & _columns(rows)))
        joined, own = [kernel], touched
        apart = []
        for columns, group in groups:
            if columns & own:
                joined, own = [*group, *joined], own | columns
            else:
                apart.append((columns, group))
        groups = [*apart, (own, joined)]
    return [group for _, group in groups]


def _independent(moving: Policy) -> bool:
    """Whether what moves in one part leaves open what moves in others: then largest losses just add up."""
    parts = parts_of(moving)
    several = sum(part.graph.edge_count > 0 for part in parts.parts) > 1
    return moving.constraints is None and not parts.hides_presence and (parts.joint or not several)


def moves_at_once(policy: Policy) -> list[tuple[tuple[str, ...], Policy]]:
    """The policy taken apart into what may move at once."""
    parts = parts_of(policy)
    tied = policy.constraints is not None  # records move together, across columns
    if tied or parts.joint or parts.hides_presence or len(parts.parts) == 1:
        return [(policy.domain.names, policy)]
    still = [Explicit(part.graph.size, ()) for part in parts.parts]
    moves = []
    for moving, part in enumerate(parts.parts):
        factors: list[PolicyGraph] = [*still]
        factors[moving] = part.graph
        moves.append((part.columns, Policy(policy.domain, Product(*factors, joint=False))))
    return moves
