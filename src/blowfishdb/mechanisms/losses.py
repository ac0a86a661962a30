"""Loss kernels: what a release lost between any two values, whatever policy it was made under (REUSE §0).

Rows a_r with noise of scales b_r lose ℓ(u, v) = Σ_r |a_r·(e_u − e_v)| / b_r between u and v, edge or not, and
the kernels of releases add, pair by pair. What a policy has lost is the largest sum over its own edges. An
exact row loses everything between the values that it tells apart. Where known counts force several records to
move at once, no kernel is proven, and the loss counts as infinite.

What of a release is exact: which totals its decoder used, and which of them its answers show.

A policy leaves the totals of its components public, and a plan may use them. Whoever looks back later must
tell three things apart. Noisy rows were paid for, and what they lose is known for every pair of values. An
exact total that the decoder used is in the answers: under a policy that hides it they lost everything. And
only a total that can be read off the answers is a number that anyone was shown, and may be kept.

An answer is T·(A·x + η) + U·t, t the totals. Where every noise variable has an answer of its own (T is the
identity), the answers are noisy rows themselves, and a total that was added to one is no exact number at all.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np
from scipy.sparse import csr_array, vstack

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.errors import InvalidInput, NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.graphs.inclusion import stretch
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.workloads import one_per_cell
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.laplace import LaplaceOnWorkload
from blowfishdb.mechanisms.linear.cost import component_sums, invariant_components
from blowfishdb.mechanisms.linear.strategy import Contrasts, SparseRows
from blowfishdb.mechanisms.plan import DataDependentPlan, Observation, Plan
from blowfishdb.mechanisms.reuse.stored import Intervals, Rows, StoredRelease, rows_of

_MOST_ROWS = 20_000
_MOST_PROBES = 64
_NOTHING = 1e-11
"""Below this a coefficient is rounding."""


@final
@dataclass(frozen=True, eq=False)
class ReleasedRows:
    """The rows that a release of ``plan`` at ``epsilon`` is made of, noisy and exact."""

    plan: Plan
    epsilon: Epsilon

    # --- noisy ------------------------------------------------------------------------------------------

    @cached_property
    def noisy(self) -> tuple[csr_array, list[Fraction]]:
        """The rows with noise, and the scale of each; none where every answer is exact: no noise is drawn."""
        if self.plan.free:
            return self._none, []
        rows, scales = self.plan.rows(epsilon=self.epsilon or Epsilon(1))
        return (rows if self._answers is None else self._asked(self._answers)), scales

    def noisy_values(self, seen: Observation) -> Numbers:
        """What came out of them, in whole numbers."""
        if self.plan.free:
            return np.zeros(0, dtype=np.int64)
        if self._answers is None:
            return np.asarray(np.asarray(seen.measured)[self._with_noise])
        return np.asarray(np.rint(seen.answers[self._answers]), dtype=np.int64)

    @cached_property
    def _with_noise(self) -> IntArray:
        return np.flatnonzero(self.plan.scales.floats() > 0)

    @cached_property
    def _answers(self) -> IntArray | None:
        """The answer that each noise variable has for itself; None where they are mixed."""
        if not self.plan.one_to_one or self.plan.workload.denominator != 1:
            return None
        names = np.zeros(len(self.plan.scales), dtype=np.int64)
        names[self._with_noise] = np.arange(1, self._with_noise.size + 1)
        carried = np.asarray(self.plan.spread(names))
        place = np.flatnonzero(carried)
        order = np.argsort(carried[place], kind="stable")
        alone = np.array_equal(carried[place][order], names[self._with_noise])
        return place[order] if alone else None

    def _asked(self, answers: IntArray) -> csr_array:
        """The rows of some answers, over the cells and on the grid of the workload."""
        rows = rows_of(self.plan.workload)
        if isinstance(rows, Intervals):
            return Intervals(rows.size, rows.starts[answers], rows.stops[answers]).sparse()
        return csr_array(rows.sparse()[answers])

    # --- exact ------------------------------------------------------------------------------------------

    @cached_property
    def _components(self) -> Bins | None:
        return invariant_components(self.plan.graph)

    @cached_property
    def _firsts(self) -> IntArray:
        assert self._components is not None
        return self._components.first(np.arange(self._components.count))

    @cached_property
    def used(self) -> csr_array:
        """Rows that tell two values apart wherever an exact total in the answers does, and only there.

        Components whose totals enter every answer alike are one row together; those that enter none have
        none. Where there are too many to try, each counts for itself.
        """
        if self._components is None:
            return self._none
        if self._diagonal:
            exact = self._asked(np.flatnonzero(self.plan.exact))
            return self._rows_of(_alike(csr_array(exact[:, self._firsts].T)))
        count = self._components.count
        if count <= _MOST_PROBES:
            entering = np.array([self._from_totals(at) for at in self._firsts])
            return self._rows_of(_alike(csr_array(np.where(np.abs(entering) <= _NOTHING, 0.0, entering))))
        some = np.arange(1, count + 1)
        if (np.abs(self._from_totals(self._firsts, some)) <= _NOTHING).all():
            return self._none
        return self._rows_of(some)

    @property
    def _diagonal(self) -> bool:
        """Whether each answer is one noisy row, or exact: then only exact ones depend on totals."""
        return self.plan.free or self._answers is not None or isinstance(self.plan, LaplaceOnWorkload)

    def _from_totals(self, cells: IntArray, counts: IntArray | int = 1) -> Numbers:
        """U·t: the answers if every noisy row came out as zero, and components hold ``counts``."""
        x = np.zeros(self.plan.workload.size, dtype=np.int64)
        x[cells] = counts
        measured = np.array(self.plan.measure(x))
        measured[self._with_noise] = 0
        return np.asarray(self.plan.decode(measured, x), dtype=np.float64)

    def _rows_of(self, groups: IntArray) -> csr_array:
        """One row for each group of components but 0, which counts their cells."""
        assert self._components is not None
        most = int(groups.max(initial=0))
        if most > _MOST_ROWS:
            raise TooLarge(f"{most:,} totals are not written out.")
        row = groups[self._components.assignment()] - 1
        cells = np.flatnonzero(row >= 0)
        ones = np.ones(cells.size, dtype=np.int64)
        return csr_array((ones, (row[cells], cells)), shape=(most, self.plan.workload.size))

    @property
    def _none(self) -> csr_array:
        return csr_array((0, self.plan.workload.size), dtype=np.int64)

    def shown(self, seen: Observation) -> tuple[csr_array, Numbers]:
        """Exact rows that can be read off the answers, and their values."""
        if self._components is None:
            return self._none, np.zeros(0, dtype=np.int64)
        if one_per_cell(self.plan.workload):
            assert seen.totals is not None
            groups = np.where(self._totals_shown, np.cumsum(self._totals_shown), 0)
            return self._rows_of(groups), np.asarray(seen.totals)[self._totals_shown]
        exact = np.flatnonzero(self.plan.exact)
        rows = self._asked(exact)
        rows_shown = _not_implied(csr_array(rows[:, self._firsts]))
        if rows_shown.size > _MOST_ROWS:
            raise TooLarge(f"{rows_shown.size:,} exact answers are not written out.")
        values = np.asarray(seen.answers)[exact[rows_shown]] * self.plan.workload.denominator
        return csr_array(rows[rows_shown]), np.rint(values).astype(np.int64)

    # --- both ------------------------------------------------------------------------------------------

    def stored(self, axes: tuple[Axis, ...], seen: Observation | None = None) -> StoredRelease | None:
        """What is kept of a release over ``axes``; None where it is no list of rows with noise of their own.

        Of exact numbers only those that the answers show; that others were used is noted, without their
        values. Without ``seen`` it is what is known before the release is made: every value is zero.
        """
        try:
            noisy, scales = self.noisy
            exact, totals = self.shown(seen or self._unseen)
            used = rows_of(self.used)
        except (NotProven, TooLarge):
            return None
        values = np.concatenate((self.noisy_values(seen or self._unseen), totals))
        rows = csr_array(vstack([noisy, exact]))
        if rows.shape[0] != values.size or not (values.size or used.count):
            return None
        each = [*scales, *[Fraction(0)] * len(totals)]
        distinct = {id(scale): scale for scale in each}  # thousands of rows share a few objects
        place = {key: index for index, key in enumerate(distinct)}
        which = np.fromiter((place[id(scale)] for scale in each), dtype=np.int64, count=len(each))
        return StoredRelease(axes, rows_of(rows), tuple(distinct.values()), which, values, 0, used)

    @property
    def _unseen(self) -> Observation:
        """Zeros in the place of whatever is going to be seen."""
        answers, measured = (
            np.zeros(n, dtype=np.int64) for n in (len(self.plan.workload), len(self.plan.scales))
        )
        components = self._components
        totals = None if components is None else np.zeros(components.count, dtype=np.int64)
        return Observation(answers, measured, totals)

    @cached_property
    def _totals_shown(self) -> BoolArray:
        """The components whose cells add up to their total, whatever the noise."""
        assert self._components is not None
        noise = np.zeros(len(self.plan.scales))
        noise[self._with_noise] = np.sin(np.arange(1.0, self._with_noise.size + 1))  # any numbers will do
        sums = component_sums(np.asarray(self.plan.spread(noise), dtype=np.float64), self._components)
        return np.asarray(np.abs(sums) <= 1e-9)


def measured_rows(plan: Plan, epsilon: Epsilon) -> tuple[csr_array, list[Fraction]]:
    """The rows that leave the trust boundary and their scales: noisy ones, then exact ones (scale 0)."""
    released = ReleasedRows(plan, epsilon)
    rows, scales = released.noisy
    exact = int(released.used.shape[0])
    return csr_array(vstack([rows, released.used])), [*scales, *[Fraction(0)] * exact]


def _alike(entering: csr_array) -> IntArray:
    """Groups of components that enter the answers alike (one row each), from 1; 0 if they enter none."""
    entering.sum_duplicates()
    entering.eliminate_zeros()
    numbers: dict[tuple[bytes, bytes], int] = {}
    groups = np.zeros(entering.shape[0], dtype=np.int64)
    for row, (start, stop) in enumerate(itertools.pairwise(entering.indptr.tolist())):
        if stop > start:
            data = np.round(entering.data[start:stop].astype(np.float64), 10)
            key = entering.indices[start:stop].tobytes(), data.tobytes()
            groups[row] = numbers.setdefault(key, len(numbers) + 1)
    return groups


def _not_implied(totals: csr_array) -> IntArray:
    """Rows over component totals, without those that follow from rows about a single one."""
    totals.sum_duplicates()
    totals.eliminate_zeros()
    entries = np.diff(totals.indptr)
    single = np.flatnonzero(entries == 1)
    known, first = np.unique(totals.indices[totals.indptr[single]], return_index=True)
    unknown = np.ones(totals.shape[1], dtype=np.int64)
    unknown[known] = 0
    pattern = csr_array((np.ones_like(totals.indices), totals.indices, totals.indptr), shape=totals.shape)
    others = np.flatnonzero((entries > 1) & (np.asarray(pattern @ unknown) > 0))
    return np.sort(np.concatenate((single[first], others)))


Loss = Fraction | float
"""A privacy loss: an exact fraction, or ``math.inf``."""


class Kernel(ABC):
    """What one release lost between two values."""

    @abstractmethod
    def worst(self, policy: Policy) -> Loss:
        """The largest loss over the edges of a policy, or an upper bound of it."""


@final
@dataclass(frozen=True, eq=False)
class ByRows(Kernel):
    """A release whose rows and noise are known: exact for every pair.

    ``rows_per_person``: how many rows one person can be in; each may move along an edge.
    """

    axes: tuple[Axis, ...]
    rows: Rows
    scales: tuple[Fraction, ...]
    """The distinct ones."""
    which: IntArray
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        columns = [axis.column for axis in self.axes]
        if len(set(columns)) < len(columns):
            raise InvalidInput("A release speaks of a column once.")
        boxes = math.prod(axis.bins.count for axis in self.axes)
        if self.rows.size != boxes:
            raise SizeMismatch(f"The rows speak of {self.rows.size:,} boxes, the axes of {boxes:,}.")
        if self.which.shape != (self.rows.count,):
            raise SizeMismatch(f"There must be one scale for each of the {self.rows.count:,} rows.")

    def at(self, epsilon: Epsilon) -> ByRows:
        """The kernel of a release at ε = 1, if it is made at another."""
        return replace(self, scales=tuple(scale / epsilon.fraction for scale in self.scales))

    def in_order_of(self, domain: Domain) -> ByRows:
        """The same release with its columns as ``domain`` orders them: a policy numbers boxes that way."""
        order = sorted(range(len(self.axes)), key=lambda at: domain.names.index(self.axes[at].column))
        if order == list(range(len(self.axes))):
            return self
        shape = tuple(axis.bins.count for axis in self.axes)
        boxes = np.arange(self.rows.size).reshape(shape).transpose(order).ravel()
        rows = rows_of(csr_array(self.rows.sparse()[:, boxes]))
        return replace(self, axes=tuple(self.axes[at] for at in order), rows=rows)

    def worst(self, policy: Policy) -> Loss:
        if policy.constraints is not None:
            return Fraction(0) if self._tells_nothing(policy) else math.inf
        if not self._declared_in(policy):
            return math.inf
        ordered = self.in_order_of(policy.domain)
        return ordered.over(ordered._graph(policy))

    def over(self, graph: PolicyGraph) -> Loss:
        """The largest loss over the edges of a graph over the boxes of the release, in their order."""
        exact = np.flatnonzero(self.weights == 0)
        if exact.size and self._strategy(exact, np.ones(exact.size, dtype=np.int64)).cost(graph):
            return math.inf
        noisy = np.flatnonzero(self.weights)
        if not noisy.size:
            return Fraction(0)
        cost = self._strategy(noisy, self.weights[noisy]).cost(graph)
        return self.rows_per_person * Fraction(int(cost), self.unit)

    def _tells_nothing(self, policy: Policy) -> bool:
        """Whether it only says how many rows there are, where that is the same for all neighbours."""
        if policy.hides_presence or any(axis.attribute.may_drop for axis in self.axes):
            return False
        columns = self.rows.sparse().tocsc()
        return bool((columns - columns[:, np.zeros(self.rows.size, dtype=np.int64)]).count_nonzero() == 0)

    def _declared_in(self, policy: Policy) -> bool:
        """Whether the columns are still declared as they were."""
        return all(
            axis.column in policy.domain and policy.domain[axis.column] == axis.attribute
            for axis in self.axes
        )

    def _graph(self, policy: Policy) -> PolicyGraph:
        """The policy over the boxes of the release."""
        graph = policy.project({axis.column: axis.bins for axis in self.axes})
        if any(axis.attribute.may_drop for axis in self.axes) and not graph.absent:
            return Cone(graph, Apex.OUTSIDE)
        return graph

    @cached_property
    def unit(self) -> int:
        """A loss of one is this many units: so many that every loss is a whole number, if there is room."""
        finest, common = self._finest, 1
        for scale in self.scales:
            common = math.lcm(common, scale.numerator) if scale else common
            if common > finest:
                return finest
        return common

    @property
    def _finest(self) -> int:
        """A power of two so that all weights together stay below 2⁶⁰; 1/b is rounded up to a multiple."""
        times: list[int] = np.bincount(self.which, minlength=len(self.scales)).tolist()
        each = (n / scale for n, scale in zip(times, self.scales, strict=True) if scale)
        weight = sum(each, Fraction(0))
        entry = 1 if isinstance(self.rows, Intervals) else int(np.abs(self.rows.entries).max(initial=1))
        return 1 << max(0, 59 - math.ceil(weight * entry + 1).bit_length())

    @cached_property
    def weights(self) -> IntArray:
        """1/b in units, rounded up; 0 stands for a row without noise."""
        each = [0 if not scale else math.ceil(self.unit / scale) for scale in self.scales]
        return np.array(each, dtype=np.int64)[self.which]

    def _strategy(self, rows: IntArray, weights: IntArray) -> Contrasts | SparseRows:
        if isinstance(self.rows, Intervals):
            some = self.rows.starts[rows] < self.rows.stops[rows]
            chosen = rows[some]
            return Contrasts(self.rows.size, self.rows.starts[chosen], self.rows.stops[chosen], weights[some])
        return SparseRows(self.rows.sparse()[rows], weights)


@final
@dataclass(frozen=True, eq=False)
class ByDistance(Kernel):
    """Any ε-private answers under a policy: at most ε for every step between two values.

    A row that a column's declaration drops is one step away from every value that is counted there, whatever
    the policy joins: where one may be dropped a release at ε loses no less than ε.
    """

    policy: Policy
    epsilon: Epsilon

    def worst(self, policy: Policy) -> Loss:
        if self.policy.domain != policy.domain or policy.constraints or self.policy.constraints:
            return math.inf
        steps = stretch(self.policy.graph, policy.graph)
        if any(attribute.may_drop for _, attribute in policy.domain.columns):
            steps = max(1.0, steps)
        return math.inf if math.isinf(steps) else int(steps) * self.epsilon.fraction


@final
@dataclass(frozen=True, eq=False)
class Tightest(Kernel):
    """One release seen in several ways: the least loss that one of them can show."""

    views: tuple[Kernel, ...]

    def worst(self, policy: Policy) -> Loss:
        losses: list[Loss] = []
        for view in self.views:
            with suppress(TooLarge):
                losses.append(view.worst(policy))
        return min(losses, default=math.inf)


def kernel_of(
    plan: Plan | DataDependentPlan,
    epsilon: Epsilon,
    axes: tuple[Axis, ...],
    policy: Policy,
    rows_per_person: int,
    bounds: tuple[Kernel, ...] = (),
) -> Kernel:
    """What a release of ``plan`` at ``epsilon`` per row is going to lose, before it is made.

    ``bounds``: what else is known of it, where the plan was not made for ``policy``.
    """
    views = bounds or (ByDistance(policy, epsilon * rows_per_person),)
    rows = kernel_by_rows(plan, epsilon, axes, rows_per_person)
    return Tightest(views if rows is None else (rows, *views))


def kernel_by_rows(
    plan: Plan | DataDependentPlan, epsilon: Epsilon, axes: tuple[Axis, ...], rows_per_person: int
) -> ByRows | None:
    """The kernel of the rows that a release is made of; None where they have no noise of their own."""
    if isinstance(plan, DataDependentPlan):
        return None
    try:
        rows, scales = measured_rows(plan, epsilon)
    except (NotProven, TooLarge):
        return None
    return ByRows(axes, rows_of(rows), tuple(scales), np.arange(len(scales)), rows_per_person)
