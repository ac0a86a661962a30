"""Planning: steps 1 to 3 of a question. Project, choose a mechanism, translate accuracy into ε.

Everything here is computed from the question and the policy alone; no row is read, so whatever comes out
(a price, a refusal, an explanation) says nothing about the data.

Clustering: steps 1 to 3 of a question for clusters. Points on a grid, a way to cluster them, its price.

Like planning, it sees the question and the policy and no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.constraints.under_policy import better_cells, given_answers
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import InvalidInput, NoGuarantee, NotProven
from blowfishdb.core.policy.codec import plain
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.clusters import ClusterProblem, ClusterQuestion, project_clusters
from blowfishdb.core.questions.kinds import Release
from blowfishdb.core.questions.projection import Projected, project
from blowfishdb.core.workloads import one_per_cell
from blowfishdb.mechanisms import CLUSTERING, DATA_DEPENDENT, NAMED, Best, DataDependentMechanism, KMeans
from blowfishdb.mechanisms.best import Choice, GivenAnswers, Tied
from blowfishdb.mechanisms.kmeans import ClusterPlan
from blowfishdb.mechanisms.laplace import LaplaceOnWorkload
from blowfishdb.mechanisms.plan import DataDependentPlan, Observation
from blowfishdb.messages.questions import Request

DEFAULT_BETA = 0.05
"""The interval of an answer that was bought by ε instead of by accuracy."""

_ANY = 2.0**52  # an error of the counts that asks for nothing; which it is does not matter


@final
@dataclass(frozen=True)
class Promise:
    """What is known about the error: of the release that the mechanism makes, and of the answer."""

    margin: float
    alpha: float
    beta: float
    simultaneous: bool


@final
@dataclass(frozen=True, eq=False)
class Planned:
    """A question that is ready to be asked: the small problem, the plan, its price and its promise."""

    problem: Projected
    choice: Choice
    promise: Promise | None
    """None where how far off the answer is depends on the data."""
    cost: Epsilon
    """What one person loses: the loss of the choice is per row."""

    def released(self, seen: Observation) -> Release:
        """What left the mechanism, with what is known about its error."""
        values, exact = np.asarray(seen.answers, dtype=np.float64), self.choice.plan.exact
        if self.promise is None:
            return Release(values, exact, None, simultaneous=False)
        return Release(values, exact, self.promise.margin, self.promise.simultaneous)

    def better(self, seen: Observation) -> FloatArray | None:
        """Noisy cells moved onto the counts that everyone knows; None where these say nothing of them."""
        refined, plan = self.problem.refined, self.choice.plan
        cells = isinstance(plan, LaplaceOnWorkload) and one_per_cell(plan.workload)
        if refined is None or not cells or plan.free:
            return None
        return better_cells(refined, np.asarray(seen.answers, dtype=np.float64), plan.exact)

    def along(self, policy: Policy) -> Policy:
        """The policy along whose edges the ε of the plan holds.

        Noise that is calibrated to what is known need not be private along single edges.
        """
        return policy if self.choice.calibrated else policy.knowing(None)

    @property
    def mechanism(self) -> str:
        """How it is answered, by name."""
        return self.choice.plan.name

    @property
    def explanation(self) -> str:
        """How it is answered, and why that is private."""
        return f"{self.choice.plan.explain()} {self.choice.because}".strip()

    @property
    def given(self) -> bool:
        """Whether the answer follows from what everyone knows, so that no row is read for it."""
        return isinstance(self.choice.plan, GivenAnswers)

    @property
    def known(self) -> str:
        """What known counts do to this answer, in words; empty where nothing is known."""
        if self.problem.refined is None:
            return ""
        return self.choice.because or self.choice.plan.explain()


@final
@dataclass(frozen=True)
class Planner:
    """Takes the cheapest mechanism that is proven for a policy, or the one that was asked for."""

    mechanism: Best

    def plan(self, request: Request, policy: Policy, rows_per_person: int = 1) -> Planned:
        """The whole way from a question to its price under ``policy``."""
        return self.price(project(request.counts, policy), request, rows_per_person)

    def price(self, problem: Projected, request: Request, rows_per_person: int = 1) -> Planned:
        """Steps 2 and 3 for a question that is projected already."""
        given = self.given(problem, request)
        if given is not None:
            return given
        choice = self._choose(problem, request, rows_per_person)
        promise = _promise(choice, request, problem.axes)
        return Planned(problem, choice, promise, choice.loss * rows_per_person)

    def given(self, problem: Projected, request: Request) -> Planned | None:
        """The answer that follows from what everyone knows, if it does."""
        values = None if problem.refined is None else given_answers(problem.refined, problem.workload)
        if values is None:
            return None
        choice = Choice(GivenAnswers(problem.workload, problem.graph, values), Epsilon(0))
        return Planned(problem, choice, _promise(choice, request, problem.axes), Epsilon(0))

    def _choose(self, problem: Projected, request: Request, rows_per_person: int) -> Choice:
        name = request.terms.mechanism
        mechanism = self.mechanism if name is None else named(name)
        if request.terms.accuracy is not None:
            if isinstance(mechanism, DataDependentMechanism):
                raise _promises_nothing(name)
            needed = request.counts.kind.requirement(request.terms.accuracy, problem.axes)
            if problem.refined is not None:
                return Tied(problem.workload, problem.refined, name).for_accuracy(mechanism, needed)
            return mechanism.for_accuracy(problem.workload, problem.graph, needed)
        assert request.terms.epsilon is not None
        per_row = positive(Epsilon.from_nano(request.terms.epsilon.nano // rows_per_person))
        if problem.refined is not None:
            return Tied(problem.workload, problem.refined, name).for_epsilon(mechanism, per_row)
        if isinstance(mechanism, DataDependentMechanism):
            return _data_dependent(mechanism, problem, per_row)
        return mechanism.for_epsilon(problem.workload, problem.graph, per_row)


def named(name: str) -> Best | DataDependentMechanism:
    """The mechanism of that name, as the only candidate if its error can be promised."""
    if name in DATA_DEPENDENT:
        return DATA_DEPENDENT[name]
    if name not in NAMED:
        raise InvalidInput(f"There is no mechanism '{name}'.", fixes=(*NAMED, *DATA_DEPENDENT))
    mechanism = NAMED[name]
    return mechanism if isinstance(mechanism, Best) else Best((mechanism,))


def _data_dependent(mechanism: DataDependentMechanism, problem: Projected, epsilon: Epsilon) -> Choice:
    try:
        plan = mechanism.plan(problem.workload, problem.graph)
    except NotProven as refusal:
        refusal.fixes = ("mechanism adaptive, which takes one that is proven here", *refusal.fixes)
        raise
    return Choice(plan, Epsilon(0) if plan.free else epsilon)


def _promises_nothing(name: str | None) -> NoGuarantee:
    return NoGuarantee(
        f"How far off '{name}' is depends on the data, so no accuracy can be promised for it.",
        fixes=("state an ε instead of an error", "leave out the mechanism: best keeps its promise"),
    )


def _promise(choice: Choice, request: Request, axes: tuple[Axis, ...]) -> Promise | None:
    """The (α, β) that comes with the answer, if any does."""
    if isinstance(choice.plan, DataDependentPlan) and choice.epsilon:
        return None
    kind, asked = request.counts.kind, request.terms.accuracy
    needed = kind.requirement(asked or Accuracy(kind.promised(_ANY, axes), DEFAULT_BETA), axes)
    if asked is not None and not needed.one_sided:
        return Promise(needed.alpha, asked.alpha, asked.beta, needed.simultaneous)
    margin = 0.0
    if choice.epsilon:
        margin = choice.plan.alpha_for(
            epsilon=choice.epsilon, beta=needed.beta, simultaneous=needed.simultaneous
        )
    alpha = asked.alpha if asked is not None else kind.promised(margin, axes)
    return Promise(margin, alpha, needed.beta, needed.simultaneous)


@final
@dataclass(frozen=True, eq=False)
class PlannedClusters:
    """A question for clusters that is ready to be asked. How far off they are depends on the data."""

    problem: ClusterProblem
    plan: ClusterPlan
    epsilon: Epsilon
    """What is spent for each row; nothing where the policy hides nothing of what is measured."""
    cost: Epsilon
    """What one person loses."""

    promise: None = None
    known: str = ""

    @property
    def mechanism(self) -> str:
        """How it is answered, by name."""
        return self.plan.name

    @property
    def explanation(self) -> str:
        """How it is answered, and why that is private."""
        return self.plan.explain()


def plan_clusters(
    question: ClusterQuestion, request: Request, policy: Policy, people: int
) -> PlannedClusters:
    """The whole way from a question to its price; ``people``: the rows that one person can be in."""
    problem = project_clusters(question.columns, policy, question.where)
    if request.terms.epsilon is None:
        raise NoGuarantee(
            "How far off clusters are depends on the data, so no accuracy is promised.",
            fixes=("state an ε instead of an error",),
        )
    name = request.terms.mechanism
    if name is not None and name not in CLUSTERING:
        raise InvalidInput(f"There is no way to find clusters called '{name}'.", fixes=tuple(CLUSTERING))
    way = KMeans(question.count, question.iterations, None if name is None else CLUSTERING[name])
    per_row = positive(Epsilon.from_nano(request.terms.epsilon.nano // people))
    plan = way.plan(problem.space, problem.graph, epsilon=per_row)  # how many rows there are is not declared
    spent = Epsilon(0) if plan.free else per_row
    return PlannedClusters(problem, plan, spent, spent * people)


def told_apart(question: ClusterQuestion, problem: ClusterProblem) -> dict[str, Any]:
    """What tells two questions for clusters apart; a filter is known by the boxes that it selects."""
    filtered = problem.query.boxes.axes
    return {
        "kind": ["clusters", question.count, question.iterations, list(problem.space.weights)],
        "axes": [[axis.column, plain(axis.attribute)] for axis in problem.query.axes],
        "cells": [[axis.column, plain(axis.attribute), plain(axis.bins)] for axis in filtered],
        "selected": problem.query.inside.astype(int).tolist(),
    }
