"""Planning: steps 1 to 3 of a question. Project, choose a mechanism, translate accuracy into ε.

Everything here is computed from the question and the policy alone; no row is read, so whatever comes out
(a price, a refusal, an explanation) says nothing about the data.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import final

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.constraints.under_policy import given_answers
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import InvalidInput, NoGuarantee, NotProven
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.aggregate_problem import SumsProblem
from blowfishdb.core.questions.aggregate_projection import project_aggregates
from blowfishdb.core.questions.aggregates import AggregateQuestion
from blowfishdb.core.questions.clusters import ClusterProblem, ClusterQuestion, project_clusters
from blowfishdb.core.questions.projection import Projected, project
from blowfishdb.core.questions.synthesis import SyntheticProblem, SyntheticQuestion, project_synthesis
from blowfishdb.mechanisms import CLUSTERING, DATA_DEPENDENT, NAMED, Best, DataDependentMechanism, KMeans
from blowfishdb.mechanisms.best import Choice, ConstrainedChoice, KnownAnswers
from blowfishdb.mechanisms.losses import ByDistance
from blowfishdb.mechanisms.plan import DataDependentPlan, Plan
from blowfishdb.mechanisms.refining import can_reach, earlier_release
from blowfishdb.mechanisms.reuse import StoredRelease
from blowfishdb.mechanisms.several import SeveralPromises
from blowfishdb.messages.questions import Request
from blowfishdb.service.aggregates import price_aggregates
from blowfishdb.service.clusters import ClusterTask
from blowfishdb.service.standing import Standing, nearest
from blowfishdb.service.synthesis import price_synthesis
from blowfishdb.service.tasks import CountTask, ErrorBound, Problem, Refining, Task

DEFAULT_BETA = 0.05
"""The interval of an answer that was bought by ε instead of by accuracy."""

_ANY = 2.0**52  # an error of the counts that asks for nothing; which it is does not matter


@final
@dataclass(frozen=True)
class Planner:
    """Takes the cheapest mechanism that is proven for a policy, or the one that was asked for."""

    mechanism: Best

    def plan(self, request: Request, policy: Policy, rows_per_person: int = 1) -> CountTask:
        """The whole way from a linear question to its price under ``policy`` alone."""
        return self.under(request, Standing(policy, rows_per_person))

    def under(self, request: Request, standing: Standing) -> CountTask:
        """The whole way from a linear question to its price under everything that is promised."""
        return self.price(project(request.counts, standing.policy), request, standing)

    def task(self, request: Request, problem: Problem, standing: Standing) -> Task:
        """Steps 2 and 3 for a question of any kind that is projected already."""
        if isinstance(problem, Projected):
            return self.price(problem, request, standing)
        if isinstance(problem, SumsProblem):
            return price_aggregates(problem, request, standing)
        if isinstance(problem, SyntheticProblem):
            return price_synthesis(problem, request, standing)
        return price_clusters(problem, request, standing)

    def price(self, problem: Projected, request: Request, standing: Standing) -> CountTask:
        """Steps 2 and 3 for a question that is projected already."""
        given = self.given(problem, request)
        if given is not None:
            return given
        choice = self._choose(problem, request, standing)
        promise = _promise(choice, request, problem.axes)
        cost = choice.loss * standing.rows_per_person
        return CountTask(request, problem, choice, promise, cost, standing.policies)

    def refined(self, task: CountTask, releases: Iterable[StoredRelease], standing: Standing) -> CountTask:
        """The task, or the cheapest way to make one of ``releases`` as accurate as was asked, if it is less.

        Both lose together what the plan loses alone, so what was paid for the release is taken off.
        """
        request, problem, choice = task.request, task.problem, task.choice
        asked = request.terms.accuracy
        if asked is None or choice.factor != 1 or choice.calibrated or not choice.epsilon:
            return task
        needed = request.counts.kind.requirement(asked, problem.axes)
        several = _several(problem, request, standing)
        if several is not None and not choice.losses:  # no noise is enough: it is going to be refused
            return task
        plans = dict.fromkeys((choice.plan, *choice.considered))
        best = task
        for release, plan in itertools.product(releases, plans):
            earlier = earlier_release(plan, release) if isinstance(plan, Plan) else None
            if earlier is None:
                continue
            whole = replace(choice, plan=plan, epsilon=plan.epsilon_at(needed))
            if not can_reach(plan, earlier, whole.epsilon):
                continue
            added = Choice(plan, whole.epsilon - earlier.epsilon)
            if several is not None:
                whole, added = several.counted(whole), several.counted(added)
            cost = added.loss * standing.rows_per_person
            less = all(more <= before for more, before in zip(added.losses, choice.losses, strict=True))
            if cost < best.cost and less:
                promise = _promise(whole, request, problem.axes)
                refining = Refining(release.number, earlier, added)
                best = CountTask(request, problem, whole, promise, cost, task.promised, refining)
        return best

    def check(self, request: Request, policy: Policy, rows_per_person: int = 1) -> None:
        """Refuse what has no price; which price it has takes longer to say."""
        problem = project(request.counts, policy)
        if self.given(problem, request) is None:
            self._choose(problem, request, Standing(policy, rows_per_person))

    def given(self, problem: Projected, request: Request) -> CountTask | None:
        """The answer that follows from what everyone knows, if it does."""
        values = None if problem.refined is None else given_answers(problem.refined, problem.workload)
        if values is None:
            return None
        choice = Choice(KnownAnswers(problem.workload, problem.graph, values), Epsilon(0))
        return CountTask(request, problem, choice, _promise(choice, request, problem.axes), Epsilon(0))

    def _choose(self, problem: Projected, request: Request, standing: Standing) -> Choice:
        name = request.terms.mechanism
        mechanism = self.mechanism if name is None else named(name)
        several = _several(problem, request, standing)
        if request.terms.accuracy is not None:
            if isinstance(mechanism, DataDependentMechanism):
                raise _promises_nothing(name)
            needed = request.counts.kind.requirement(request.terms.accuracy, problem.axes)
            if problem.refined is not None:
                return ConstrainedChoice(problem.workload, problem.refined, name).for_accuracy(
                    mechanism, needed
                )
            if several is not None:
                return several.for_accuracy(mechanism, needed)
            return mechanism.for_accuracy(problem.workload, problem.graph, needed)
        assert request.terms.epsilon is not None
        per_row = positive(Epsilon.from_nano(request.terms.epsilon.nano // standing.rows_per_person))
        if problem.refined is not None:
            return ConstrainedChoice(problem.workload, problem.refined, name).for_epsilon(mechanism, per_row)
        if isinstance(mechanism, DataDependentMechanism):
            return _data_dependent(mechanism, problem, several, per_row)
        if several is not None:
            return several.for_epsilon(mechanism, per_row)
        return mechanism.for_epsilon(problem.workload, problem.graph, per_row)


def _several(problem: Projected, request: Request, standing: Standing) -> SeveralPromises | None:
    """The question under everything that is promised; None where that is the policy of today alone.

    Which cells there are does not depend on a policy: every one is projected onto the same.
    """
    if not standing.several:
        return None
    earlier = (project(request.counts, policy).graph for policy in standing.policies[1:])
    graphs = (problem.graph, *earlier)
    return SeveralPromises(problem.workload, graphs, standing.remaining, problem.cells.axes)


def named(name: str) -> Best | DataDependentMechanism:
    """The mechanism of that name, as the only candidate if its error can be promised."""
    if name in DATA_DEPENDENT:
        return DATA_DEPENDENT[name]
    if name not in NAMED:
        raise InvalidInput(f"There is no mechanism '{name}'.", fixes=(*NAMED, *DATA_DEPENDENT))
    mechanism = NAMED[name]
    return mechanism if isinstance(mechanism, Best) else Best((mechanism,))


def _data_dependent(
    mechanism: DataDependentMechanism, problem: Projected, several: SeveralPromises | None, epsilon: Epsilon
) -> Choice:
    try:
        if several is not None:
            return several.adaptively(mechanism, epsilon)
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


def _promise(choice: Choice, request: Request, axes: tuple[Axis, ...]) -> ErrorBound | None:
    """The (α, β) that comes with the answer, if any does."""
    if isinstance(choice.plan, DataDependentPlan) and choice.epsilon:
        return None
    kind, asked = request.counts.kind, request.terms.accuracy
    needed = kind.requirement(asked or Accuracy(kind.promised(_ANY, axes), DEFAULT_BETA), axes)
    if asked is not None and not needed.one_sided:
        return ErrorBound(needed.alpha, asked.alpha, asked.beta, needed.simultaneous)
    margin = 0.0
    if choice.epsilon:
        margin = choice.plan.alpha_for(
            epsilon=choice.epsilon, beta=needed.beta, simultaneous=needed.simultaneous
        )
    alpha = kind.promised(margin, axes)
    best = alpha if asked is None else min(alpha, asked.alpha)  # on one side only, less noise keeps it
    return ErrorBound(margin, best, needed.beta, needed.simultaneous)


def project_any(request: Request, policy: Policy) -> Problem:
    """Step 1 for a question of any kind."""
    question = request.question
    if isinstance(question, ClusterQuestion):
        return project_clusters(question.columns, policy, question.where)
    if isinstance(question, AggregateQuestion):
        return project_aggregates(question, policy)
    if isinstance(question, SyntheticQuestion):
        spent = request.terms.epsilon
        return project_synthesis(question, policy, None if spent is None else float(spent))
    return project(question, policy)


def price_clusters(problem: ClusterProblem, request: Request, standing: Standing) -> ClusterTask:
    """A way to cluster points on a grid, and its price."""
    question = request.question
    assert isinstance(question, ClusterQuestion)
    if request.terms.epsilon is None:
        raise NoGuarantee(
            "How far off clusters are depends on the data, so no accuracy is promised.",
            fixes=("state an ε instead of an error",),
        )
    name = request.terms.mechanism
    if name is not None and name not in CLUSTERING:
        raise InvalidInput(f"There is no way to find clusters called '{name}'.", fixes=tuple(CLUSTERING))
    way = KMeans(question.count, question.iterations, None if name is None else CLUSTERING[name])
    per_row = positive(Epsilon.from_nano(request.terms.epsilon.nano // standing.rows_per_person))
    policy, steps = nearest(standing)
    if policy is not standing.policy:
        problem = replace(problem, graph=project_clusters(question.columns, policy, question.where).graph)
    each = positive(Epsilon.from_nano(per_row.nano // steps))
    plan = way.plan(problem.space, problem.graph, epsilon=each)  # how many rows there are is not declared
    spent = Epsilon(0) if plan.free else each
    lost = spent * standing.rows_per_person
    cost = lost if policy is standing.policy else Epsilon(ByDistance(policy, lost).worst(standing.policy))
    return ClusterTask(request, problem, plan, spent, cost, made_for=policy)
