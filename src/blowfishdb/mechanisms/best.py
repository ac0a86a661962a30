"""Best: the cheapest of the mechanisms that are proven for the policy at hand, chosen without data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import final

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.bins import LIMIT
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotProven, TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms.data_dependent import DataDependentPlan
from blowfishdb.mechanisms.edge_noise import EdgeNoise
from blowfishdb.mechanisms.hierarchical import Hierarchical
from blowfishdb.mechanisms.laplace import Laplace, LaplaceOnWorkload
from blowfishdb.mechanisms.line.pieces import LineQuestions
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.ordered import Ordered, OrderedPlan
from blowfishdb.mechanisms.ordered_hierarchical import OrderedHierarchical
from blowfishdb.mechanisms.plan import Mechanism, Plan

_HOPELESS = 4.0  # ε grows like the root of the squared error: beyond this ratio no tail makes up for it
_SLOW = 2_000  # numbers per draw from which pricing takes long enough to be choosy
_CLOSE = 1.5
_SPARSE = 16  # hidden pairs per cell up to which edge noise has a chance
_AS_GOOD = 1 + 1e-6


@final
@dataclass(frozen=True, eq=False)
class Choice:
    """The plan that was taken, what it costs, and what else was considered."""

    plan: Plan | DataDependentPlan
    epsilon: Epsilon
    considered: tuple[Plan, ...] = ()
    """What can be compared before the data is seen; a data-dependent plan cannot."""
    factor: int = 1
    """How many times its ε the plan loses, where known counts tie records together."""
    calibrated: bool = False
    """Whether the noise is for what neighbours differ by; then ε need not hold along single edges."""

    @property
    def loss(self) -> Epsilon:
        """What is lost about one row."""
        return self.epsilon * self.factor

    def explain(self) -> str:
        """Why this plan, and how much larger the standard error of the others is."""
        return f"{self._compared()} {self.because}".strip()

    @property
    def because(self) -> str:
        """Why it costs more than the plan alone; empty where it does not."""
        if self.factor == 1 or not self.epsilon:
            return ""
        return (
            f"Known counts tie records together: one hidden move may take up to {self.factor:,} steps of the "
            f"policy with those of others, so the answer costs {self.factor:,} times the ε of its noise."
        )

    def _compared(self) -> str:
        own = self.plan
        others = [plan for plan in self.considered if plan is not own]
        if isinstance(own, DataDependentPlan) or not others or own.unit_error == 0:
            return f"{own.name}: {own.explain()}"
        errors = ((plan.unit_error / own.unit_error) ** 0.5 for plan in others)
        listed = ", ".join(f"{plan.name} {ratio:.3g}×" for plan, ratio in zip(others, errors, strict=True))
        return f"{own.name}: {own.explain()} Standard error of the others: {listed}."


@final
@dataclass(frozen=True, init=False)
class Best(Mechanism):
    """Plans every candidate that has a chance and takes the cheapest.

    *Guarantee*: that of the plan it takes. Policy and questions are public, and so is everything that the
    choice looks at, so choosing costs no privacy. *Error*: the least of the candidates'.
    """

    candidates: tuple[Mechanism, ...]

    def __init__(self, candidates: tuple[Mechanism, ...] | None = None) -> None:
        default = (
            Optimized(),
            Ordered(),
            Laplace(on="cells"),
            Laplace(on="workload"),
            EdgeNoise(),
            OrderedHierarchical(),
            Hierarchical(),
        )
        object.__setattr__(self, "candidates", default if candidates is None else tuple(candidates))

    def plan(self, workload: Workload, graph: PolicyGraph) -> Plan:
        """The plan with the least expected squared error."""
        return self.plans(workload, graph)[0]

    def plans(self, workload: Workload, graph: PolicyGraph) -> tuple[Plan, ...]:
        """Every plan that was considered, the least expected squared error first."""
        return _plans(self.candidates, workload, graph)

    def for_accuracy(self, workload: Workload, graph: PolicyGraph, accuracy: Accuracy) -> Choice:
        """The plan that meets ``accuracy`` at the least ε."""
        return _cheapest(self.candidates, workload, graph, accuracy)

    def for_epsilon(self, workload: Workload, graph: PolicyGraph, epsilon: Epsilon) -> Choice:
        """The plan with the least squared error; exact answers cost nothing."""
        plans = self.plans(workload, graph)
        return Choice(plans[0], Epsilon(0) if plans[0].free else epsilon, plans)


@lru_cache(maxsize=32)
def _plans(candidates: tuple[Mechanism, ...], workload: Workload, graph: PolicyGraph) -> tuple[Plan, ...]:
    plans: dict[Mechanism, Plan] = {}
    refusals: list[NotProven | TooLarge] = []
    for candidate in candidates:
        if plans and not _has_a_chance(candidate, workload, graph, plans):
            continue
        try:
            plan = candidate.plan(workload, graph)
            plan.unit_error  # noqa: B018 - a plan whose error is out of reach is refused here
            plans[candidate] = plan
        except (NotProven, TooLarge) as refusal:
            refusals.append(refusal)
    if not plans:
        raise refusals[0] if refusals else NotProven("There is no mechanism to choose from.")
    return tuple(sorted(plans.values(), key=_rank))


def _rank(plan: Plan) -> float:
    """The squared error; the simplest plans, which answer in whole numbers, win ties."""
    if isinstance(plan, LaplaceOnWorkload):
        return plan.unit_error
    return plan.unit_error * (_AS_GOOD if isinstance(plan, OrderedPlan) else _AS_GOOD**2)


@lru_cache(maxsize=64)
def _cheapest(
    candidates: tuple[Mechanism, ...], workload: Workload, graph: PolicyGraph, accuracy: Accuracy
) -> Choice:
    plans = _plans(candidates, workload, graph)
    priced = [(plan.epsilon_at(accuracy), plan) for plan in _hopeful(plans)]
    epsilon, plan = min(priced, key=lambda entry: entry[0])
    return Choice(plan, epsilon, plans)


def _hopeful(plans: tuple[Plan, ...]) -> Iterator[Plan]:
    """The best plan, and those of larger squared error that may still meet an accuracy at a smaller ε.

    Plans with the same error are the same noise under two names: one price is enough.
    """
    last = 0.0
    for plan in plans:
        quick = plan.one_to_one or plan.width <= _SLOW
        limit = _HOPELESS if quick else _CLOSE
        if plan is plans[0] or last * _AS_GOOD**4 < plan.unit_error <= limit * plans[0].unit_error:
            yield plan
            last = plan.unit_error


def _has_a_chance(
    candidate: Mechanism, workload: Workload, graph: PolicyGraph, plans: dict[Mechanism, Plan]
) -> bool:
    """What cheap public facts say about a candidate before it is planned."""
    optimized = Optimized() in plans
    match candidate:
        case Laplace(on="cells"):  # the cells with corrected totals are among the optimized shapes
            return not optimized
        case Laplace(on="workload"):
            least = min(plan.unit_error for plan in plans.values())
            return workload.count <= LIMIT and _noise_on_answers(workload, graph) <= _HOPELESS * least
        case EdgeNoise():
            return graph.edge_count <= _SPARSE * graph.size and workload.count <= LIMIT
        case OrderedHierarchical() | Hierarchical():  # boxes and S nodes are worse than hats and ramps
            return not optimized and isinstance(workload, LineQuestions)
        case _:
            return True


def _noise_on_answers(workload: Workload, graph: PolicyGraph) -> float:
    """At most the squared error of noise on every answer: two edges show how much that must be."""
    if not graph.reach or graph.absent:
        return 0.0
    changed = 0.0
    for distance in (graph.reach, (graph.reach + 1) // 2):
        u = (graph.size - distance) // 2
        if graph.has_edge(u, u + distance):
            changed = max(changed, float(workload.moves(u, u + distance)) / workload.denominator)
    return 2.0 * changed**3 if workload.binary else 2.0 * changed**2
