"""Best: the cheapest of the mechanisms that are proven for the policy at hand, chosen without data.

Choosing a plan where something is known, so that one hidden move may force other records to move.

Two ways are proven (docs/proofs/constraints.md). Any mechanism that is private along every edge loses at most
a factor more (Corollary 7). Noise on the answers or on the cells can be calibrated to what neighbours really
differ by (Theorems 2 to 5), which is never more and often less. The cheaper one is taken.

Answers that follow from what everyone knows: exact and free, and no row is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final, Literal, final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import BoolArray, FloatArray, IntArray
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.constraints.under_policy import Refined
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.errors import Infeasible, NotProven, TooLarge
from blowfishdb.core.graphs import Explicit, Full, PolicyGraph
from blowfishdb.core.workloads import Selected, Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.edge_noise import EdgeNoise
from blowfishdb.mechanisms.filtered import Filtered
from blowfishdb.mechanisms.hierarchical import Hierarchical
from blowfishdb.mechanisms.laplace import Laplace, LaplaceOnCells, LaplaceOnWorkload
from blowfishdb.mechanisms.linear.strategy import UnitScales
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.optimized.line_design import LineQuestions
from blowfishdb.mechanisms.ordered import Ordered, OrderedHierarchical, OrderedPlan
from blowfishdb.mechanisms.plan import DataDependentMechanism, DataDependentPlan, Mechanism, Observation, Plan
from blowfishdb.mechanisms.transformed import Transformed

_HOPELESS = 4.0  # ε grows like the root of the squared error: beyond this ratio no tail makes up for it
_SLOW = 2_000  # numbers per draw from which pricing takes long enough to be choosy
_CLOSE = 1.5
_FEW = 512  # edges of a tree up to which least squares on them is quick
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
    losses: tuple[Epsilon, ...] = ()
    """What is lost about one row under each of several promises, that of today first; the plan may have been
    made for another one, or for all of them."""

    @property
    def loss(self) -> Epsilon:
        """What is lost about one row under the policy of today."""
        return self.losses[0] if self.losses else self.epsilon * self.factor

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
        if isinstance(own, DataDependentPlan) or own.unit_error == 0:
            return f"{own.name}: {own.explain()}"
        same = (own.name, own.unit_error)  # planned twice, it is no other
        others = [plan for plan in self.considered if (plan.name, plan.unit_error) != same]
        if not others:
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

    >>> bf.mechanisms.Best().plan(bf.workloads.Histogram(100), bf.graphs.Full(100)).name
    'Optimized line strategy'
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
            Filtered(),
            Transformed(Optimized()),
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


@lru_cache(maxsize=128)
def _plans(candidates: tuple[Mechanism, ...], workload: Workload, graph: PolicyGraph) -> tuple[Plan, ...]:
    plans: dict[Mechanism, Plan] = {}
    refusals: list[NotProven | TooLarge] = []
    for candidate in candidates:
        if plans and not _has_a_chance(candidate, workload, graph, plans):
            continue
        try:
            plan = _with_known_error(candidate.plan(workload, graph))
            plan.unit_error  # noqa: B018 - a plan whose error is out of reach is refused here
            plans[candidate] = plan
        except (NotProven, TooLarge) as refusal:
            refusals.append(refusal)
    if not plans:
        raise refusals[0] if refusals else NotProven("There is no mechanism to choose from.")
    return tuple(sorted(plans.values(), key=_rank))


def _with_known_error(plan: Plan | DataDependentPlan) -> Plan:
    """``plan``, unless how far off it is depends on the data, as for Transformed(Dawa())."""
    if isinstance(plan, DataDependentPlan):
        raise NotProven(f"{plan.name} promises no error, so no choice can be made before data is read.")
    return plan


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
    epsilon, plan = _least(list(_hopeful(plans)), accuracy)
    return Choice(plan, epsilon, plans)


def _least(plans: list[Plan], accuracy: Accuracy) -> tuple[Epsilon, Plan]:
    """The least price and its plan, the first of several; those that cannot win get no certificate."""
    floors = {id(plan): plan.price_floor(accuracy) for plan in plans}
    priced: list[tuple[Epsilon, Plan]] = []
    infeasible: Infeasible | None = None
    for plan in sorted(plans, key=lambda plan: floors[id(plan)]):
        if priced and floors[id(plan)] > float(min(epsilon for epsilon, _ in priced)):
            continue
        try:
            priced.append((plan.epsilon_at(accuracy), plan))
        except Infeasible as refusal:
            infeasible = refusal
    if not priced:
        assert infeasible is not None
        raise infeasible
    order = {id(plan): place for place, plan in enumerate(plans)}
    return min(priced, key=lambda entry: (entry[0], order[id(entry[1])]))


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
            return not optimized or (graph.absent and not isinstance(workload, LineQuestions))
        case Laplace(on="workload"):
            least = min(plan.unit_error for plan in plans.values())
            return workload.count <= LIMIT and _noise_on_answers(workload, graph) <= _HOPELESS * least
        case EdgeNoise():
            return graph.edge_count <= _SPARSE * graph.size and workload.count <= LIMIT
        case Filtered():
            return isinstance(workload, Selected)
        case Transformed():
            return workload.count <= LIMIT and _is_small_tree(graph)
        case OrderedHierarchical() | Hierarchical():  # boxes and S nodes are worse than hats and ramps
            return not optimized and isinstance(workload, LineQuestions)
        case _:
            return True


def _is_small_tree(graph: PolicyGraph) -> bool:
    """Whether it is a forest with few edges that is no line: there its edges say more than its cells.

    On a line the other candidates are as good, and where records come and go all edges lead to one vertex.
    """
    if graph.absent or not 2 <= graph.edge_count <= min(_FEW, graph.size - 1):
        return False
    return graph.right_ends() is None and graph.edge_count == graph.size - graph.components().count


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


On = Literal["workload", "cells"]

_HOPELESS_TIED = 16.0  # times the squared error: at this ratio no shape of the noise makes up for it
_DIRECT: dict[str | None, tuple[On, ...]] = {
    None: ("workload", "cells"),
    "best": ("workload", "cells"),
    "laplace": ("workload",),
    "laplace-cells": ("cells",),
}


@final
@dataclass(frozen=True, eq=False)
class ConstrainedChoice:
    """Questions over cells of which something is known, and the mechanism that was asked for, if any."""

    workload: Workload
    refined: Refined
    name: str | None = None

    def for_accuracy(self, mechanism: Best, accuracy: Accuracy) -> Choice:
        """The plan that meets ``accuracy`` at the least loss."""
        refusals: list[NotProven | TooLarge] = []
        found: list[Choice] = []
        try:
            graph, factor = self._edge_by_edge()
            if not factor:
                return self._exactly()
            found.append(replace(mechanism.for_accuracy(self.workload, graph, accuracy), factor=factor))
        except (NotProven, TooLarge) as refusal:
            refusals.append(refusal)
        for plan in self._calibrated(refusals):
            if all(plan.unit_error <= _HOPELESS_TIED * _error(choice) for choice in found):
                found.append(Choice(plan, plan.epsilon_at(accuracy), calibrated=True))
        if not found:
            raise _foremost(refusals)
        return min(found, key=lambda choice: choice.loss)

    def for_epsilon(self, mechanism: Best | DataDependentMechanism, epsilon: Epsilon) -> Choice:
        """The plan with the least squared error that loses ``epsilon``; exact answers cost nothing."""
        refusals: list[NotProven | TooLarge] = []
        found: list[Choice] = []
        try:
            graph, factor = self._edge_by_edge()
            if not factor:
                return self._exactly()
            share = positive(Epsilon.from_nano(epsilon.nano // factor))
            if isinstance(mechanism, DataDependentMechanism):
                plan = mechanism.plan(self.workload, graph)
                return Choice(plan, Epsilon(0) if plan.free else share, factor=factor)
            found.append(replace(mechanism.for_epsilon(self.workload, graph, share), factor=factor))
        except (NotProven, TooLarge) as refusal:
            refusals.append(refusal)
        found += [
            Choice(direct, Epsilon(0) if direct.free else epsilon, calibrated=True)
            for direct in self._calibrated(refusals)
        ]
        if not found:
            raise _foremost(refusals)
        return min(found, key=_error)

    def _exactly(self) -> Choice:
        """Nothing that stays hidden changes any cell."""
        return Choice(_exact(self.workload), Epsilon(0), calibrated=True)

    def _edge_by_edge(self) -> tuple[PolicyGraph, int]:
        """The graph along whose edges a mechanism has to be private, and what it loses in multiples of ε."""
        graph, factor = self.refined.coarse, self.refined.factor
        if factor and not _totals_are_public(self.refined):
            raise NotProven(
                "Known counts let records move between groups that the policy keeps apart, so how many are "
                "in each group is not exact, and mechanisms that take it to be are not proven here.",
                fixes=("leave out the mechanism", "mechanism laplace", 'reading="edge", which hides less'),
            )
        return graph, factor

    def _calibrated(self, refusals: list[NotProven | TooLarge]) -> list[Plan]:
        """Noise for what neighbours really differ by; why there is none goes to ``refusals``."""
        found: list[Plan] = []
        for on in _DIRECT.get(self.name, ()):
            if on == "cells" and self.workload.one_per_cell and found:
                continue  # the same noise under another name
            try:
                plan = _laplace(self.workload, self.refined, on)
                plan.unit_error  # noqa: B018 - a plan whose error is out of reach is refused here
                found.append(plan)
            except (NotProven, TooLarge) as refusal:
                refusals.append(refusal)
        return found


@lru_cache(maxsize=64)
def _laplace(workload: Workload, refined: Refined, on: On) -> Plan:
    coarse = refined.coarse
    graph = coarse if _totals_are_public(refined) else Full(workload.size)
    changes = refined.histogram if on == "cells" else refined.sensitivity(workload) * workload.denominator
    if not changes:
        return _exact(workload)
    plan = LaplaceOnCells if on == "cells" else LaplaceOnWorkload
    return plan(workload, graph, tied=int(changes))


def _exact(workload: Workload) -> Plan:
    """For what known counts let nobody change, as if the policy hid nothing of it.

    Edges of the policy may change it all the same, by moves that no neighbour makes: what such answers tell
    does not follow from the totals that the policy leaves public.
    """
    return LaplaceOnWorkload(workload, Explicit(workload.size, ()))


def _totals_are_public(refined: Refined) -> bool:
    """Whether the total of every component over the cells is the same for all neighbours."""
    return refined.coarse.absent or refined.coarse.components().count == 1 or refined.keeps_totals


def _error(choice: Choice) -> float:
    """The squared error at a loss of 1, in the continuous limit."""
    assert isinstance(choice.plan, Plan)
    return choice.plan.unit_error * choice.factor**2


def _foremost(refusals: list[NotProven | TooLarge]) -> NotProven | TooLarge:
    """What is not proven says more than what is too large."""
    return next((refusal for refusal in refusals if isinstance(refusal, NotProven)), refusals[0])


FROM_KNOWN: Final = "From what is known"
"""The mechanism of answers that the known counts determine, and that lose nothing."""


@final
@dataclass(frozen=True, eq=False)
class KnownAnswers(Plan):
    """The values that the known answers determine, whatever the data."""

    workload: Workload
    graph: PolicyGraph
    values: FloatArray
    name: str = FROM_KNOWN

    @cached_property
    def scales(self) -> UnitScales:
        return UnitScales.uniform(0, self.workload.count)

    @cached_property
    def exact(self) -> BoolArray:
        return np.ones(self.workload.count, dtype=np.bool_)

    @property
    def one_to_one(self) -> bool:
        return False

    def measure(self, x: IntArray) -> Numbers:
        return self.values

    def decode(self, measured: Numbers, x: IntArray) -> Numbers:
        return self.values

    def spread(self, noise: Numbers) -> Numbers:
        return np.zeros_like(noise)

    def variances(self, of_noise: FloatArray) -> FloatArray:
        return np.zeros(self.workload.count)

    def rows(self, *, epsilon: AnyEpsilon) -> tuple[csr_array, list[Fraction]]:
        return csr_array((0, self.workload.size), dtype=np.int64), []

    def told(self) -> Observation:
        """The known values; no count is looked at."""
        return Observation(self.values, np.empty(0), None)

    def explain(self) -> str:
        return "It follows from the counts that everyone knows: exact, free, and no row is read for it."
