"""Tasks: a question with its plan and its price, and steps 5 and 6, reading and releasing.

The service sequences the last four steps in one way for all kinds; what differs between them is in their
tasks: counts here, ``clusters`` and ``aggregates`` beside it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, final

import numpy as np

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.constraints.under_policy import better_cells
from blowfishdb.core.domain.domain import loose_columns
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.aggregate_problem import SumsProblem
from blowfishdb.core.questions.clusters import ClusterProblem
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.questions.readings import Release
from blowfishdb.core.questions.synthesis import SyntheticProblem
from blowfishdb.core.workloads import one_per_cell
from blowfishdb.mechanisms.best import Choice, KnownAnswers
from blowfishdb.mechanisms.laplace import LaplaceOnWorkload
from blowfishdb.mechanisms.losses import ByDistance, Kernel, kernel_of
from blowfishdb.mechanisms.plan import EarlierRelease, Observation, Plan
from blowfishdb.messages.answers import Answer, Receipt
from blowfishdb.messages.questions import Request
from blowfishdb.service.reuse import stored_release

Problem = Projected | ClusterProblem | SumsProblem | SyntheticProblem


@final
@dataclass(frozen=True)
class ErrorBound:
    """What is known about the error: of the release that the mechanism makes, and of the answer."""

    margin: float
    """How far each count may be off; of aggregates, the scale of the noise of every sum."""
    alpha: float | None
    """None where every value has an interval of its own."""
    beta: float
    simultaneous: bool

    def meets(self, needed: Accuracy) -> bool:
        """Whether counts within this margin are as close as is needed."""
        everywhere = self.simultaneous or not needed.simultaneous
        return self.margin <= needed.alpha and self.beta <= needed.beta and everywhere


@final
@dataclass(frozen=True, eq=False)
class Outcome:
    """What left the mechanism: the answer once it has its receipt, and what others can be computed from."""

    answer: Callable[[Receipt], Answer]
    kept: Any = None
    """Plain data; None where it is no list of rows with noise of their own."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What else is stored with the answer, as plain data."""
    others: Mapping[int, Outcome] = field(default_factory=dict)
    """What other questions are told by the same release, where several were asked as one."""


@final
@dataclass(frozen=True, eq=False)
class Statement:
    """A question whose SQL is checked and written; no row is read until it is run."""

    sql: str
    """What is sent, for the record: declarations and public centroids, never data."""
    run: Callable[[Noise], Outcome]


class Task(ABC):
    """A question with its plan and its price: what steps 4 to 7 see of it."""

    request: Request
    problem: Problem
    cost: Epsilon
    """What one person loses."""
    promise: ErrorBound | None
    """None where how far off the answer is depends on the data."""

    @property
    @abstractmethod
    def mechanism(self) -> str:
        """How it is answered, by name."""

    @property
    @abstractmethod
    def explanation(self) -> str:
        """How it is answered, and why that is private."""

    @property
    @abstractmethod
    def free(self) -> bool:
        """Whether the answer is exact and loses nothing, under any promise that is kept."""

    @property
    def given(self) -> bool:
        """Whether the answer follows from what everyone knows, so that no row is read for it."""
        return False

    @property
    def refines(self) -> int | None:
        """The charge whose release is made more accurate, where that is cheaper than a new one."""
        return None

    @property
    def known(self) -> str:
        """What known counts do to this answer, in words; empty where nothing is known."""
        return ""

    @abstractmethod
    def kernel(self, policy: Policy, rows_per_person: int) -> Kernel:
        """What the answer is going to lose between any two values, made under ``policy``."""

    @abstractmethod
    def prepare(self, backend: Backend) -> Statement:
        """Everything that can fail without looking at a row fails here."""


class NamedPlan(Protocol):
    """A plan for what is no list of counts."""

    @property
    def name(self) -> str:
        """What the mechanism is called."""

    def explain(self) -> str:
        """How it answers, and why that is private."""


class PlannedTask(Task):
    """A question that one plan answers."""

    plan: NamedPlan

    @property
    def mechanism(self) -> str:
        return self.plan.name

    @property
    def explanation(self) -> str:
        return self.plan.explain()


class TaskAlongEdges(PlannedTask):
    """A question whose plan loses ε for each row along the edges of one policy."""

    epsilon: Epsilon
    """What is spent for each row; nothing where the policy hides nothing of what is measured."""
    made_for: Policy
    """The policy along whose edges the ε is lost."""

    @property
    def free(self) -> bool:
        return not self.epsilon

    def kernel(self, policy: Policy, rows_per_person: int) -> Kernel:
        return ByDistance(self.made_for, self.epsilon * rows_per_person)


@final
@dataclass(frozen=True, eq=False)
class Refining:
    """A stored release that is made more accurate, instead of a new one."""

    number: int
    """Its charge."""
    release: EarlierRelease
    added: Choice
    """The plan at what is lost beyond what is lost already."""


@final
@dataclass(frozen=True, eq=False)
class CountTask(Task):
    """A linear question: the small problem, the plan, its price and its promise."""

    request: Request
    problem: Projected
    choice: Choice
    promise: ErrorBound | None
    """None where how far off the answer is depends on the data."""
    cost: Epsilon
    """What one person loses: the loss of the choice is per row."""
    promised: tuple[Policy, ...] = ()
    """Every policy that it was planned under, that of today first."""
    refining: Refining | None = None

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
        return self.choice.plan.name

    @property
    def explanation(self) -> str:
        return " ".join(filter(None, (self.choice.plan.explain(), self.choice.because, self.beside)))

    @property
    def beside(self) -> str:
        """For what the plan was made where that is not the policy of today alone; else empty."""
        graph = self.choice.plan.graph
        if not self.choice.losses or graph == self.problem.graph:
            return ""
        return f"Planned to hide {graph.describe()}, because of earlier promises that are kept."

    @property
    def free(self) -> bool:
        return not self.choice.epsilon

    @property
    def refines(self) -> int | None:
        return None if self.refining is None else self.refining.number

    @property
    def given(self) -> bool:
        return isinstance(self.choice.plan, KnownAnswers)

    @property
    def known(self) -> str:
        if self.problem.refined is None:
            return ""
        return self.choice.because or self.choice.plan.explain()

    def kernel(self, policy: Policy, rows_per_person: int) -> Kernel:
        choice = self.choice if self.refining is None else self.refining.added
        several = zip(self.promised, choice.losses, strict=True) if choice.losses else ()
        bounds = tuple(ByDistance(one, loss * rows_per_person) for one, loss in several)
        axes, along = self.problem.cells.axes, self.along(policy)
        return kernel_of(choice.plan, choice.epsilon, axes, along, rows_per_person, bounds)

    def prepare(self, backend: Backend) -> Statement:
        self.rehearse()
        prepared = backend.prepare(self.problem.cells)
        return Statement(prepared.sql, partial(self.count, prepared))

    def rehearse(self) -> None:
        """Whatever would fail once the counts are read, fails now: labels, readings, the plain form.

        Zeros take the way that the noisy counts are going to take.
        """
        zeros, promise = np.zeros(len(self.problem.workload)), self.promise
        margin = None if promise is None else promise.margin
        release = Release(zeros, zeros > 0, margin, promise is not None and promise.simultaneous)
        self.request.counts.kind.read(release, self.problem.axes)
        json.dumps(self.request.form.to_plain())

    def count(self, prepared: Prepared, noise: Noise) -> Outcome:
        """Steps 5 and 6: one statement, and noise."""
        choice, progress = self.choice, self.request.progress
        counts = prepared.count(self.request.cancel)
        epsilon, plan = choice.epsilon or Epsilon(1), choice.plan
        if self.refining is None:
            seen = plan.observe(counts, epsilon=epsilon, noise=noise)
        else:
            assert isinstance(plan, Plan)
            seen = plan.refine(counts, self.refining.release, epsilon=epsilon, noise=noise)
        if progress is not None:
            progress(1, 1)
        kept = stored_release(choice.plan, seen, choice.epsilon, self.problem.cells.axes)
        return Outcome(partial(self.answer, seen), kept)

    def answer(self, seen: Observation, receipt: Receipt) -> Answer:
        """What left the mechanism, as people read it."""
        release, better = self.released(seen), self.better(seen)
        return answer_of(self.request, self.problem, self.promise, release, receipt, better=better)


def answer_of(
    request: Request,
    problem: Projected,
    promise: ErrorBound | None,
    release: Release,
    receipt: Receipt,
    *,
    interval: str = "fresh",
    better: FloatArray | None = None,
) -> Answer:
    """The release in the shape that people read, with its noise interval if one is promised.

    ``better`` values, closer to what is known, replace the tidy ones as far as the interval allows. Which
    bins are picked is told by the noisy values alone: the promise is about those.
    """
    kind = request.counts.kind
    reading = kind.read(release, problem.axes)
    closer = None if better is None else kind.read(replace(release, values=better), problem.axes)
    if closer is not None and closer.labels == reading.labels:
        values = closer.values
        if reading.low is not None and reading.high is not None:
            values = np.clip(values, reading.low, reading.high)
        reading = replace(reading, values=values)
    return Answer(
        labels=reading.labels,
        axes=request.counts.kind.of(problem.axes),
        kind=request.counts.kind.name,
        values=reading.values,
        raw=release.values,
        low=reading.low,
        high=reading.high,
        exact=reading.exact,
        alpha=promise and promise.alpha,
        beta=promise and promise.beta,
        simultaneous=promise is not None and promise.simultaneous,
        interval=interval,
        form=request.form.to_plain(),
        receipt=receipt,
        notes=problem.notes,
        measures=kind.told,
        loose=loose_columns(problem.axes),
    )


def named_anew(answer: Answer, request: Request, problem: Projected) -> Answer:
    """A stored answer under the names of the question now asked, which is the same in other words.

    A histogram with one bin and the number of rows are one question.
    """
    kind = request.counts.kind
    labels = kind.read(Release(answer.raw, answer.exact, None, simultaneous=False), problem.axes).labels
    axes, form = kind.of(problem.axes), request.form.to_plain()
    loose = loose_columns(problem.axes)
    return replace(answer, kind=kind.name, axes=axes, labels=labels, form=form, loose=loose)
