"""Best: the cheapest of the mechanisms that are proven for the policy at hand, chosen without data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.laplace import Laplace
from blowfishdb.mechanisms.plan import Mechanism, Plan

_HOPELESS = 4.0  # ε grows like the root of the squared error: beyond this ratio no tail makes up for it


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """The plan that was taken, what it costs, and what else was considered."""

    plan: Plan
    epsilon: Epsilon
    considered: tuple[Plan, ...]


@final
@dataclass(frozen=True, init=False)
class Best(Mechanism):
    """Plans every candidate and takes the cheapest; all of this is public, so it costs no privacy."""

    candidates: tuple[Mechanism, ...]

    def __init__(self, candidates: tuple[Mechanism, ...] | None = None) -> None:
        default = (Laplace(on="workload"), Laplace(on="cells"))
        object.__setattr__(self, "candidates", default if candidates is None else tuple(candidates))

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        """The plan with the least expected squared error."""
        return self.plans(workload, graph)[0]

    def plans(self, workload: Workload, graph: PolicyGraph) -> list[Plan]:
        """Every plan that is proven here, the least expected squared error first."""
        plans: list[tuple[float, int, Plan]] = []
        refusals: list[NotProven | TooLarge] = []
        for candidate in self.candidates:
            try:
                plan = candidate.plan(workload, graph)
                plans.append((plan.squared_error(epsilon=1), len(plans), plan))
            except (NotProven, TooLarge) as refusal:
                refusals.append(refusal)
        if not plans:
            raise refusals[0] if refusals else NotProven("There is no mechanism to choose from.")
        return [plan for _, _, plan in sorted(plans, key=lambda entry: entry[:2])]

    def for_accuracy(self, workload: Workload, graph: PolicyGraph, accuracy: Accuracy) -> Choice:
        """The plan that meets ``accuracy`` at the least ε."""
        plans = self.plans(workload, graph)
        least = plans[0].squared_error(epsilon=1)
        hopeful = [p for p in plans if p.squared_error(epsilon=1) <= _HOPELESS * least]
        priced = [
            (
                plan.epsilon_for(
                    alpha=accuracy.alpha, beta=accuracy.beta, simultaneous=accuracy.simultaneous
                ),
                plan,
            )
            for plan in hopeful
        ]
        epsilon, plan = min(priced, key=lambda entry: entry[0])
        return Choice(plan, epsilon, tuple(plans))

    def for_epsilon(self, workload: Workload, graph: PolicyGraph, epsilon: Epsilon) -> Choice:
        """The plan with the least squared error at ``epsilon``; exact answers cost nothing."""
        plans = self.plans(workload, graph)
        free = plans[0].exact.all()
        return Choice(plans[0], Epsilon(0) if free else epsilon, tuple(plans))
