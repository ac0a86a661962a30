"""Loss kernels: what a release lost between any two values, whatever policy it was made under (REUSE §0).

Rows a_r with noise of scales b_r lose ℓ(u, v) = Σ_r |a_r·(e_u − e_v)| / b_r between u and v, edge or not, and
the kernels of releases add, pair by pair. What a policy has lost is the largest sum over its own edges. An
exact row loses everything between the values that it tells apart. Where known counts force several records to
move at once, no kernel is proven, and the loss counts as infinite.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.axis import Axis
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import Apex, Cone, PolicyGraph
from blowfishdb.core.policy import Policy
from blowfishdb.core.reuse.rows import Intervals, Rows, rows_of
from blowfishdb.core.stretch import stretch
from blowfishdb.mechanisms.data_dependent import DataDependentPlan
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.mechanisms.released_rows import measured_rows
from blowfishdb.mechanisms.strategy import Contrasts, SparseRows

Loss = Fraction | float
"""A privacy loss: an exact fraction, or ``math.inf``."""

_FINE = 2**40
"""Where inverse scales have no smaller common unit they are rounded up to multiples of 1/2⁴⁰, so that a loss
is never understated."""


class Kernel(ABC):
    """What one release lost between two values."""

    @abstractmethod
    def worst(self, policy: Policy) -> Loss:
        """The largest loss over the edges of a policy, or an upper bound of it."""


@final
@dataclass(frozen=True, eq=False)
class ByRows(Kernel):
    """A release whose rows and noise are known: exact for every pair.

    ``people``: how many rows one person can be in; each may move along an edge.
    """

    axes: tuple[Axis, ...]
    rows: Rows
    scales: tuple[Fraction, ...]
    """The distinct ones."""
    which: IntArray
    people: int = 1

    def worst(self, policy: Policy) -> Loss:
        if policy.constraints is not None:
            return Fraction(0) if self._tells_nothing(policy) else math.inf
        graph = self._graph(policy)
        if graph is None:
            return math.inf
        exact = np.flatnonzero(self.weights == 0)
        if exact.size and self._strategy(exact, np.ones(exact.size, dtype=np.int64)).cost(graph):
            return math.inf
        noisy = np.flatnonzero(self.weights)
        if not noisy.size:
            return Fraction(0)
        cost = self._strategy(noisy, self.weights[noisy]).cost(graph)
        return self.people * Fraction(int(cost), self.unit)

    def _tells_nothing(self, policy: Policy) -> bool:
        """Whether it only says how many rows there are, where that is the same for all neighbours."""
        if policy.hides_presence or any(axis.attribute.may_drop for axis in self.axes):
            return False
        columns = self.rows.sparse().tocsc()
        return bool((columns - columns[:, np.zeros(self.rows.size, dtype=np.int64)]).count_nonzero() == 0)

    def _graph(self, policy: Policy) -> PolicyGraph | None:
        """The policy over the boxes of the release; None where the columns are declared otherwise by now."""
        for axis in self.axes:
            if axis.column not in policy.domain or policy.domain[axis.column] != axis.attribute:
                return None
        graph = policy.project({axis.column: axis.bins for axis in self.axes})
        if any(axis.attribute.may_drop for axis in self.axes) and not graph.absent:
            return Cone(graph, Apex.OUTSIDE)
        return graph

    @cached_property
    def unit(self) -> int:
        """A loss of one is this many units."""
        common = 1
        for scale in self.scales:
            common = math.lcm(common, scale.numerator) if scale else common
            if common > _FINE:
                return _FINE
        return common

    @cached_property
    def weights(self) -> IntArray:
        """1/b in units, rounded up; 0 stands for a row without noise."""
        each = [0 if not scale else math.ceil(self.unit / scale) for scale in self.scales]
        return np.array(each, dtype=np.int64)[self.which]

    def _strategy(self, rows: IntArray, weights: IntArray) -> Contrasts | SparseRows:
        if isinstance(self.rows, Intervals):
            some = self.rows.starts[rows] < self.rows.stops[rows]
            kept = rows[some]
            return Contrasts(self.rows.size, self.rows.starts[kept], self.rows.stops[kept], weights[some])
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
        found: list[Loss] = []
        for view in self.views:
            with suppress(TooLarge):
                found.append(view.worst(policy))
        return min(found, default=math.inf)


def kernel_of(
    plan: Plan | DataDependentPlan, epsilon: Epsilon, axes: tuple[Axis, ...], policy: Policy, people: int
) -> Kernel:
    """What a release of ``plan`` at ``epsilon`` per row is going to lose, before it is made."""
    bound = ByDistance(policy, epsilon * people)
    if isinstance(plan, DataDependentPlan):
        return bound
    try:
        rows, scales = measured_rows(plan, epsilon)
    except (NotProven, TooLarge):
        return bound
    which = np.arange(len(scales))
    return Tightest((ByRows(axes, rows_of(rows), tuple(scales), which, people), bound))
