"""Aggregates from the policy to the answer: their price, their release, and what one that is out tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, final

import numpy as np

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.domain.domain import loose_columns
from blowfishdb.core.errors import Infeasible, InvalidInput, NoGuarantee
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.aggregate_problem import AggregateProblem, SumsProblem
from blowfishdb.core.questions.aggregate_projection import project_aggregates
from blowfishdb.core.questions.aggregates import AggregateQuestion, Measure
from blowfishdb.core.questions.promise import significant
from blowfishdb.core.questions.readings import Reading
from blowfishdb.language.short import question_text
from blowfishdb.mechanisms.losses import ByDistance
from blowfishdb.mechanisms.sums import SumsPlan
from blowfishdb.messages.answers import MADE_UP, Answer, Receipt
from blowfishdb.messages.questions import Request
from blowfishdb.service.standing import Standing, nearest
from blowfishdb.service.tasks import ErrorBound, Outcome, Statement, TaskAlongEdges

DEFAULT_BETA: Final = 0.05
_USUAL_SIZE: Final = 1_000
_ALSO: Final = (
    (),
    (Measure("count"),),
    ("mean",),
    ("mean", Measure("count")),
    ("variance",),
    ("variance", Measure("count")),
)


@final
@dataclass(frozen=True, eq=False)
class AggregateTask(TaskAlongEdges):
    """A question for aggregates: the sums behind them, their price and their promise."""

    request: Request
    problem: SumsProblem
    plan: SumsPlan
    epsilon: Epsilon
    cost: Epsilon
    made_for: Policy
    promise: ErrorBound

    @property
    def explanation(self) -> str:
        return " ".join(filter(None, (super().explanation, self._expected)))

    @property
    def _expected(self) -> str:
        """How far off means of some sizes of groups are going to be."""
        if self.free:
            return ""
        accuracy = Accuracy(1.0, self.promise.beta, self.promise.simultaneous)
        told: list[str] = []
        for rows in (100, 1_000, 10_000, 100_000, 1_000_000):
            off = self.problem.expected(self.promise.margin, rows, accuracy)
            if off is not None and len(told) < 2:
                told.append(f"±{significant(off, 3)} in a group of {rows:,} rows")
        return f"A mean is about {' and '.join(told)}." if told else ""

    def prepare(self, backend: Backend) -> Statement:
        nothing = np.zeros((self.problem.query.cells.count, self.problem.query.measures), dtype=np.int64)
        self._answered(self.problem.measured(nothing).astype(np.float64))  # fails now if it ever does
        json.dumps(self.request.form.to_plain())
        prepared = backend.prepare_sums(self.problem.query)
        return Statement(prepared.sql, partial(self.count, prepared))

    def count(self, prepared: Prepared, noise: Noise) -> Outcome:
        """Steps 5 and 6: one statement, and noise."""
        request = self.request
        table = prepared.count(request.cancel)
        sums = self.plan.release(table, epsilon=self.epsilon or Epsilon(1), noise=noise)
        if request.progress is not None:
            request.progress(1, 1)
        # In the order in which they are stored, so that reading them again rounds alike.
        return Outcome(self._answered(np.ascontiguousarray(sums, dtype=np.float64)))

    def _answered(self, sums: FloatArray) -> partial[Answer]:
        told = self.problem.read(sums, self.promise.margin, _often(self.promise))
        return partial(_answer, self.request, self.problem, self.promise, sums, told)


def _often(promise: ErrorBound) -> Accuracy:
    return Accuracy(1.0, promise.beta, promise.simultaneous)


def _answer(
    request: Request,
    problem: SumsProblem,
    promise: ErrorBound,
    sums: FloatArray,
    reading: Reading,
    receipt: Receipt,
) -> Answer:
    question = problem.question
    return Answer(
        labels=reading.labels,
        axes=question.columns,
        kind="aggregates",
        values=reading.values,
        raw=sums.ravel(),
        low=reading.low,
        high=reading.high,
        exact=reading.exact,
        alpha=promise.alpha,
        beta=promise.beta,
        simultaneous=promise.simultaneous,
        form=request.form.to_plain(),
        receipt=receipt,
        notes=problem.notes,
        measures=tuple(each.words for each in question.measures),
        group_size=question.group_size,
        loose=loose_columns(question.groups),
    )


def price_aggregates(problem: SumsProblem, request: Request, standing: Standing) -> AggregateTask:
    """The sums with as much noise as the accuracy that is asked for allows, or as the ε needs."""
    question, terms = problem.question, request.terms
    if terms.mechanism is not None:
        raise InvalidInput("Aggregates are measured in one way only.", fixes=("leave out the mechanism",))
    policy, steps = nearest(standing)
    if policy is not standing.policy:
        problem = project_aggregates(question, policy)
    plan = SumsPlan(problem)
    if terms.accuracy is not None:
        each = _needed(plan, request, terms.accuracy)
    else:
        assert terms.epsilon is not None
        per_row = positive(Epsilon.from_nano(terms.epsilon.nano // standing.rows_per_person))
        each = Epsilon(0) if plan.free else positive(Epsilon.from_nano(per_row.nano // steps))
    scale = 0.0
    if each:
        plan.check(each)
        scale = float(plan.scale(each))
    lost = each * standing.rows_per_person
    cost = lost if policy is standing.policy else Epsilon(ByDistance(policy, lost).worst(standing.policy))
    asked = terms.accuracy
    promise = ErrorBound(
        scale,
        None if asked is None else asked.alpha,
        DEFAULT_BETA if asked is None else asked.beta,
        asked is None or asked.simultaneous,
    )
    return AggregateTask(request, problem, plan, each, cost, policy, promise)


def _needed(plan: SumsPlan, request: Request, accuracy: Accuracy) -> Epsilon:
    """The ε for an accuracy; a refusal names questions that are answered."""
    if plan.free and plan.problem.question.promised is not None:
        return Epsilon(0)
    try:
        scale = plan.problem.scale_for(accuracy)
    except NoGuarantee as refusal:
        if plan.problem.question.promised is not None and request.form.group_size is None:
            sized = question_text(replace(request.form, group_size=_USUAL_SIZE))
            refusal.fixes = (sized, *refusal.fixes)
        raise
    if scale <= 0:
        size = plan.problem.size_for(accuracy.alpha)
        larger = () if request.form.group_size is None else (replace(request.form, group_size=size),)
        fixes = (*map(question_text, larger), "allow a larger error")
        raise Infeasible("No noise is small enough for this error.", fixes=fixes)
    return plan.epsilon_at(scale)


# --- what is out already ----------------------------------------------------------------------------------


def telling(problem: SumsProblem, policy: Policy) -> Iterator[SumsProblem]:
    """The problem itself, then others whose sums tell the same aggregates, read as this one asks."""
    if not isinstance(problem, AggregateProblem):
        yield project_aggregates(problem.question, policy)
        return
    seen = set()
    for more in _ALSO:
        question = _with(problem.question, more)
        if question is None:
            continue
        other = project_aggregates(question, policy)
        assert isinstance(other, AggregateProblem)
        if (key := (other.rows, other.all_rows)) not in seen:
            seen.add(key)
            yield replace(other, question=problem.question)


def _with(question: AggregateQuestion, more: tuple[Measure | str, ...]) -> AggregateQuestion | None:
    """The question with more aggregates of the same column; None where there are none such."""
    if question.value is None or (question.value.attribute.may_drop and Measure("count") in more):
        return question if not more else None
    summed = any(each.of != "count" for each in question.measures)
    if not summed and any(isinstance(each, str) for each in more):
        return None
    column = question.value.column
    added = (each if isinstance(each, Measure) else Measure(each, column) for each in more)
    measures = tuple(dict.fromkeys((*question.measures, *added)))
    return question if measures == question.measures else replace(question, measures=measures)


def read_again(answer: Answer, promise: ErrorBound, request: Request, problem: SumsProblem) -> Answer:
    """What a stored answer's sums tell of the aggregates that are asked for now, under their own name."""
    sums = answer.raw.reshape(problem.groups, -1)
    told = problem.read(sums, promise.margin, _often(promise))
    named = f"{MADE_UP if answer.made_up else ''}{request.question.describe()}"
    return _answer(request, problem, promise, sums, told, replace(answer.receipt, question=named))
