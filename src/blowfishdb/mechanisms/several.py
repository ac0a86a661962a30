"""Several promises: the plan that takes the least share of what each of them may still lose.

A release with rows a_r and scales b_r loses ℓ(u, v) = Σ_r |a_r·(e_u − e_v)| / b_r between two values. Under a
promise with graph G_j it loses the largest ℓ over its edges, and takes that share of λ_j, what is left.
The plan whose largest share is least is taken (docs/proofs/promises.md).

A promise that hides no more than another and has no less left never takes the largest share. If one promise
remains, the best plan for it is the best plan, up to what planners miss: those for the others compete too.
Otherwise plans for each of them, for their union and for graphs between do. An exact total that an edge of
some promise changes costs everything there, so plans use totals of the union only.

What is left only chooses between plans; no weight is tuned to it, so no price drifts with every answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import final

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import Infeasible, NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.inclusion import includes, stretch
from blowfishdb.core.graphs.union import between, covers
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.best import Best, Choice
from blowfishdb.mechanisms.losses import ByRows, Loss, kernel_by_rows
from blowfishdb.mechanisms.plan import DataDependentMechanism, DataDependentPlan, Plan

_MOST_PAIRS = 300_000  # hidden pairs that are looked through one by one; a price may not take seconds
_HOPELESS = 2.0  # times the standard error: beyond this ratio no tail makes up for it


@final
@dataclass(frozen=True, eq=False)
class SeveralPromises:
    """Questions over cells about which several things are promised at once, that of today first."""

    workload: Workload
    graphs: tuple[PolicyGraph, ...]
    """What each promise hides of these cells."""
    left: tuple[Epsilon, ...]
    """What each may still lose."""
    axes: tuple[Axis, ...]
    """The boxes that the cells are."""

    def for_accuracy(self, mechanism: Best, accuracy: Accuracy) -> Choice:
        """The plan that meets ``accuracy`` at the least share; ties go by what is lost today."""
        binding = self._binding()
        if binding is not None:
            choices = list(self._for_each((binding, *self.graphs), mechanism, accuracy))
            if choices:
                return min(choices, key=self._taken)
        graphs = (*self.graphs, *covers(self.graphs), *between(self.graphs))
        plans = self._plans(mechanism, graphs)
        shares = [(plan, each) for plan in plans if (each := self._share(plan)) is not None]
        if not shares:
            return mechanism.for_accuracy(self.workload, self.graphs[0], accuracy)
        least = min(_error(plan) * float(share) for plan, share in shares)
        hopeful = [entry for entry in shares if _error(entry[0]) * float(entry[1]) <= _HOPELESS * least]
        return min(self._priced(hopeful, accuracy), key=self._taken)

    def for_epsilon(self, mechanism: Best, epsilon: Epsilon) -> Choice:
        """The plan with the least squared error under which no promise loses more than ``epsilon``."""
        around = covers(self.graphs)
        try:
            plans = self._plans(mechanism, around if around[0] in self.graphs else (*self.graphs, *around))
        except (NotProven, TooLarge):
            plans = self._plans(mechanism, self.graphs)
        finite = [(plan, most) for plan in plans if (most := self._most(plan)) is not None]
        if not finite:
            return mechanism.for_epsilon(self.workload, self.graphs[0], epsilon)
        plan, most = min(finite, key=lambda entry: _error(entry[0]) * float(entry[1]))
        spent = Epsilon(0) if not most else _within(epsilon, most)
        return self.counted(Choice(plan, spent))

    def adaptively(self, mechanism: DataDependentMechanism, epsilon: Epsilon) -> Choice:
        """A plan whose error depends on the data, made for the graph from which no promise is far."""
        graphs = dict.fromkeys((*self.graphs, *covers(self.graphs)))
        near = sorted(graphs, key=lambda graph: max(stretch(graph, other) for other in self.graphs))
        refusals: list[NotProven | TooLarge] = []
        for graph in near:
            most = max(stretch(graph, other) for other in self.graphs)
            if math.isinf(most):
                break
            try:
                plan = mechanism.plan(self.workload, graph)
            except (NotProven, TooLarge) as refusal:
                refusals.append(refusal)
                continue
            spent = Epsilon(0) if plan.free else _within(epsilon, Fraction(max(1, int(most))))
            return self.counted(Choice(plan, spent))
        raise refusals[0]

    def _for_each(
        self, graphs: Sequence[PolicyGraph], mechanism: Best, accuracy: Accuracy
    ) -> Iterator[Choice]:
        """The best plan for each of these graphs, where every promise can keep it."""
        for graph in dict.fromkeys(graphs):
            with suppress(NotProven, TooLarge):
                choice = mechanism.for_accuracy(self.workload, graph, accuracy)
                losses = lost_per_epsilon(choice.plan, self.graphs, self.axes)
                if not any(map(math.isinf, losses)):
                    yield self.counted(choice)

    # --- which promises and which plans matter ----------------------------------------------------

    def _binding(self) -> PolicyGraph | None:
        """What the one promise hides that takes the largest share of every release; None if it varies."""
        every = range(len(self.graphs))
        binding = [one for one in every if not any(self._bound_by(one, other) for other in every)]
        return self.graphs[binding[0]] if len(binding) == 1 else None

    def _bound_by(self, one: int, other: int) -> bool:
        """Whether the other one hides all that this one does and has no more left; of twins, the first."""
        if one == other or self.left[other] > self.left[one]:
            return False
        if not includes(self.graphs[other], self.graphs[one]):
            return False
        twins = self.left[other] == self.left[one] and includes(self.graphs[one], self.graphs[other])
        return other < one or not twins

    def _plans(self, mechanism: Best, graphs: Sequence[PolicyGraph]) -> list[Plan]:
        """Every plan for each of these graphs; at least one, or a refusal."""
        plans: list[Plan] = []
        refusals: list[NotProven | TooLarge] = []
        for graph in dict.fromkeys(graphs):
            try:
                plans += mechanism.plans(self.workload, graph)
            except (NotProven, TooLarge) as refusal:
                refusals.append(refusal)
        if not plans:
            raise refusals[0]
        return plans

    # --- what they lose ---------------------------------------------------------------------------

    def _share(self, plan: Plan) -> Fraction | None:
        """The largest share that it takes for each ε of its own; None where no noise is enough."""
        shares = [
            _over(loss, left)
            for loss, left in zip(lost_per_epsilon(plan, self.graphs, self.axes), self.left, strict=True)
        ]
        return max(Fraction(share) for share in shares) if not any(map(math.isinf, shares)) else None

    def _most(self, plan: Plan) -> Fraction | None:
        """The most that a promise loses for each ε of its own; None where no noise is enough."""
        losses = lost_per_epsilon(plan, self.graphs, self.axes)
        return None if any(map(math.isinf, losses)) else max(Fraction(loss) for loss in losses)

    def _priced(self, hopeful: list[tuple[Plan, Fraction]], accuracy: Accuracy) -> list[Choice]:
        """Those that may take the least share, at the ε that each needs for ``accuracy``."""
        floors = [(plan.price_floor(accuracy) * float(share), plan, share) for plan, share in hopeful]
        priced: list[Choice] = []
        least, infeasible = math.inf, None
        for floor, plan, share in sorted(floors, key=lambda entry: entry[0]):
            if floor > least:
                break
            try:
                epsilon = plan.epsilon_at(accuracy)
            except Infeasible as refusal:
                infeasible = refusal
                continue
            least = min(least, float(epsilon) * float(share))
            priced.append(self.counted(Choice(plan, epsilon)))
        if not priced:
            assert infeasible is not None
            raise infeasible
        return priced

    def counted(self, choice: Choice) -> Choice:
        """The choice with what it loses under each promise, as the ledger counts: rounded up."""
        each = lost_per_epsilon(choice.plan, self.graphs, self.axes)
        assert not any(map(math.isinf, each))
        nano = choice.epsilon.nano
        return replace(choice, losses=tuple(Epsilon.from_nano(math.ceil(loss * nano)) for loss in each))

    def _taken(self, choice: Choice) -> tuple[Fraction, Epsilon]:
        """The largest share that an answer takes of what is left, then what it loses today."""
        shares = (_over(loss.nano, left) for loss, left in zip(choice.losses, self.left, strict=True))
        return max(Fraction(share) for share in shares), choice.losses[0]


@lru_cache(maxsize=512)
def lost_per_epsilon(
    plan: Plan | DataDependentPlan, graphs: tuple[PolicyGraph, ...], axes: tuple[Axis, ...]
) -> tuple[Loss, ...]:
    """What a plan loses over the edges of each graph for every ε that it spends over those of its own.

    By its rows where they are known, which is exact, and never more than ε for every step that its own graph
    takes between two values.
    """
    rows = kernel_by_rows(plan, Epsilon(1), axes, 1)
    return tuple(_lost_over(rows, plan.graph, graph) for graph in graphs)


def _lost_over(rows: ByRows | None, own: PolicyGraph, graph: PolicyGraph) -> Loss:
    steps = stretch(own, graph)
    bound: Loss = math.inf if math.isinf(steps) else Fraction(int(steps))
    listed = graph.counted.right_ends() is None and graph.edge_count > _MOST_PAIRS
    if rows is None or (listed and not math.isinf(bound)):
        return bound
    try:
        return min(bound, rows.over(graph))
    except TooLarge:
        return bound


def _over(loss: Loss | int, left: Epsilon) -> Loss:
    """A loss as a share of what is left; where nothing is, as of the smallest amount."""
    return math.inf if math.isinf(loss) else Fraction(loss) / max(1, left.nano)


def _within(epsilon: Epsilon, most: Fraction) -> Epsilon:
    """The ε of a plan that loses ``most`` times as much somewhere, so that it loses ``epsilon`` at most."""
    return positive(Epsilon.from_nano(math.floor(epsilon.nano / most)))


def _error(plan: Plan) -> float:
    """The standard error at ε = 1, up to a factor."""
    return math.sqrt(plan.unit_error)
