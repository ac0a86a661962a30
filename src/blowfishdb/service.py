"""The service: one question in seven steps, and the only place where effects are sequenced.

    1 project    (question, policy) → W*, G*, cells      pure
    2 plan       candidates → the cheapest               pure, sees no data
    3 translate  (α, β) → ε                              pure, sees no data    ── quote() stops here
    4 reserve    ε in the ledger                         atomic and durable; may refuse
    5 count      one SQL query → Secret[x*]
    6 release    noise → answer                          the one place where a Secret is opened
    7 settle     answer and receipt stored

The charge comes before the data is read, so a refusal cannot depend on the data and no crash or
race can give a free answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, final

import numpy as np

from blowfishdb.adapters.backends.base import Backend
from blowfishdb.adapters.ledger import Charge, Ledger, StoredAnswer
from blowfishdb.adapters.sql_source import Source
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.axis import Axis
from blowfishdb.core.budget import Epsilon, positive
from blowfishdb.core.codec import digest, plain
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import BlowfishError, MaxCostExceeded, WorkspaceError
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import Projected, project
from blowfishdb.core.questions import Release
from blowfishdb.core.reuse import Offer
from blowfishdb.core.workloads import Selected
from blowfishdb.mechanisms import Best
from blowfishdb.mechanisms.best import Choice
from blowfishdb.messages import Answer, Quote, Receipt, Request
from blowfishdb.owned import Owned, stored_release

FROM_STORED = "From stored answers"
_DEFAULT_BETA = 0.05  # the interval of an answer that was bought by ε instead of by accuracy


@final
@dataclass(frozen=True, eq=False)
class DatasetRecord:
    """A dataset as the catalogue knows it: where the rows are, what they may hold, what is hidden."""

    name: str
    location: str
    source: Source | None
    domain: Domain
    policy: Policy
    policy_version: int
    snapshot: int

    @property
    def rows_per_person(self) -> int:
        """How many rows one person's secret can be in; each may move along an edge."""
        return 1 if self.source is None or self.source.unit is None else self.source.unit.rows

    def charge(self, epsilon: Epsilon) -> Epsilon:
        """What a release that loses ``epsilon`` per row can lose per person."""
        return epsilon * self.rows_per_person


@final
@dataclass(frozen=True, eq=False)
class Service:
    """Answers requests over the datasets of one workspace."""

    datasets: Callable[[str], DatasetRecord]
    backend: Callable[[DatasetRecord], Backend]
    ledger: Ledger
    owned: Owned
    noise: Noise
    mechanism: Best

    def quote(self, request: Request) -> Quote:
        """Steps 1 to 3: what the answer would cost. Free; the data is not touched."""
        dataset = self.datasets(request.dataset)
        problem = project(request.question, dataset.policy)
        choice = self._choose(problem, request, dataset)
        promise = _promise(choice, request, problem.axes)
        known = self.ledger.answer(identity(request, dataset, problem)) is not None
        offer = None if known else self._offer(request, dataset, problem)
        owned = known or offer is not None
        return Quote(
            dataset=dataset.name,
            question=request.question.describe(),
            epsilon=Epsilon(0) if owned else dataset.charge(choice.epsilon),
            alpha=promise.alpha,
            beta=promise.beta,
            simultaneous=promise.simultaneous,
            mechanism=FROM_STORED if offer else choice.plan.name,
            explanation=choice.plan.explain() if not offer else _explained(offer),
            policy=dataset.policy.graph.describe(),
            policy_version=dataset.policy_version,
            plain_epsilon=self._plain_cost(request, dataset),
            remaining=self.ledger.budget(dataset.name).remaining,
            owned=owned,
        )

    def ask(self, request: Request, *, max_cost: Epsilon | None = None) -> Answer:
        """All seven steps. An identical question returns its stored answer at no cost."""
        dataset = self.datasets(request.dataset)
        problem = project(request.question, dataset.policy)
        stored = self.ledger.answer(identity(request, dataset, problem))
        if stored is not None:
            answer = read_answer(stored)
            return replace(answer, receipt=replace(answer.receipt, cost=Epsilon(0)))
        offer = self._offer(request, dataset, problem)
        if offer is not None:
            return self._give(offer, request, dataset, problem)
        choice = self._choose(problem, request, dataset)
        cost = dataset.charge(choice.epsilon)
        _check_cost(cost, max_cost)
        backend = self.backend(dataset)
        backend.check(problem.cells)
        statement = backend.sql(problem.cells)
        charge = self._reserve(request, dataset, problem, choice.plan.name, cost)
        with self._committed(charge):
            counts = backend.count(problem.cells)
            seen = choice.plan.observe(counts, epsilon=choice.epsilon or Epsilon(1), noise=self.noise)
            promise = _promise(choice, request, problem.axes)
            release = Release(
                np.asarray(seen.answers, dtype=np.float64),
                choice.plan.exact,
                promise.margin,
                promise.simultaneous,
            )
            receipt = _receipt(request, dataset, charge, choice.plan.name, statement)
            answer = _answer(request, problem, promise, release, receipt)
            kept = stored_release(choice.plan, seen, choice.epsilon, problem.cells.axes)
            self.ledger.settle(charge, _body(answer, kept))
        return answer

    # --- steps ----------------------------------------------------------------------------------

    def _choose(self, problem: Projected, request: Request, dataset: DatasetRecord) -> Choice:
        """Steps 2 and 3; the ε of the choice is per row."""
        if request.accuracy is not None:
            needed = request.question.kind.requirement(request.accuracy, problem.axes)
            return self.mechanism.for_accuracy(problem.workload, problem.graph, needed)
        assert request.epsilon is not None
        per_row = Epsilon.from_nano(request.epsilon.nano // dataset.rows_per_person)
        return self.mechanism.for_epsilon(problem.workload, problem.graph, positive(per_row))

    def _plain_cost(self, request: Request, dataset: DatasetRecord) -> Epsilon:
        """What the best plan under plain differential privacy would cost for the same accuracy."""
        if request.accuracy is None:
            return request.epsilon or Epsilon(0)
        plain_policy = Policy.differential_privacy(dataset.domain)
        plain_choice = self._choose(project(request.question, plain_policy), request, dataset)
        return dataset.charge(plain_choice.epsilon)

    def _offer(self, request: Request, dataset: DatasetRecord, problem: Projected) -> Offer | None:
        """An answer that follows from what is out already, as accurately as was asked."""
        if request.accuracy is None:
            return None
        needed = request.question.kind.requirement(request.accuracy, problem.axes)
        return self.owned.offer(dataset.name, dataset.snapshot, problem, needed)

    def _give(self, offer: Offer, request: Request, dataset: DatasetRecord, problem: Projected) -> Answer:
        """The free answer, on record like every other."""
        assert request.accuracy is not None
        charge = self._reserve(request, dataset, problem, FROM_STORED, Epsilon(0))
        with self._committed(charge):
            needed = request.question.kind.requirement(request.accuracy, problem.axes)
            combination = offer.combination
            release = Release(combination.values(), combination.exact, offer.alpha, needed.simultaneous)
            shown = request.question.kind.promised(offer.alpha, problem.axes)
            promise = _Promise(offer.alpha, shown, needed.beta, needed.simultaneous)
            receipt = _receipt(request, dataset, charge, FROM_STORED, "")
            answer = _answer(request, problem, promise, release, receipt)
            self.ledger.settle(charge, _body(answer, None))
        return answer

    def _reserve(
        self, request: Request, dataset: DatasetRecord, problem: Projected, mechanism: str, amount: Epsilon
    ) -> Charge:
        """Step 4, up to the durable mark that the data is about to be read."""
        detail = {
            "question": request.question.describe(),
            "mechanism": mechanism,
            "policy_version": dataset.policy_version,
            "snapshot": dataset.snapshot,
        }
        name = identity(request, dataset, problem)
        charge = self.ledger.reserve(dataset.name, request.user, amount, name, detail, once=True)
        try:
            return self.ledger.mark_reading(charge)
        except BaseException:
            with suppress(WorkspaceError):  # what cannot be voided now stays held, which is safe
                self.ledger.void(charge)
            raise

    @contextmanager
    def _committed(self, charge: Charge) -> Iterator[None]:
        """Steps 5 to 7: from the reading mark on the charge stands, whatever happens."""
        try:
            yield
        except BaseException as error:
            with suppress(WorkspaceError):  # unfinished charges stay spent until they are recovered as lost
                self.ledger.lose(charge, type(error).__name__)
            if isinstance(error, BlowfishError):
                error.charged = bool(charge.amount)
            raise


def identity(request: Request, dataset: DatasetRecord, problem: Projected) -> str:
    """The name of a question: equal for two requests that must have the same answer.

    A filter is known by the cells that it selects, not by its words. The policy is not part of it: giving
    out again what is out already costs nothing under any policy.
    """
    selected = problem.workload.labels.tolist() if isinstance(problem.workload, Selected) else None
    return digest(
        {
            "dataset": dataset.name,
            "snapshot": dataset.snapshot,
            "kind": request.question.kind.identity(),
            "axes": [[a.column, plain(a.bins)] for a in problem.axes],
            "cells": [[a.column, plain(a.attribute), plain(a.bins)] for a in problem.cells.axes],
            "selected": selected,
            "accuracy": request.accuracy and _accuracy_text(request.accuracy),
            "epsilon": request.epsilon and str(request.epsilon),
        }
    )


@lru_cache(maxsize=1024)
def _accuracy_text(accuracy: Accuracy) -> str:
    return f"{accuracy.alpha!r} {accuracy.beta!r} {'all' if accuracy.simultaneous else 'each'}"


def _check_cost(epsilon: Epsilon, max_cost: Epsilon | None) -> None:
    if max_cost is not None and epsilon > max_cost:
        raise MaxCostExceeded(
            f"This answer costs {epsilon:.3g}, more than the {max_cost} you allowed. Nothing was charged.",
            fixes=(f"allow max_cost={epsilon}", "accept a larger error"),
        )


@final
@dataclass(frozen=True)
class _Promise:
    """What is known about the error: of the release that the mechanism makes, and of the answer."""

    margin: float
    alpha: float
    beta: float
    simultaneous: bool


def _promise(choice: Choice, request: Request, axes: tuple[Axis, ...]) -> _Promise:
    """The (α, β) that comes with the answer."""
    kind, asked = request.question.kind, request.accuracy
    needed = kind.requirement(asked or Accuracy(1, _DEFAULT_BETA), axes)
    if asked is not None and not needed.one_sided:
        return _Promise(needed.alpha, asked.alpha, asked.beta, needed.simultaneous)
    margin = 0.0
    if choice.epsilon:
        margin = choice.plan.alpha_for(
            epsilon=choice.epsilon, beta=needed.beta, simultaneous=needed.simultaneous
        )
    alpha = asked.alpha if asked is not None else kind.promised(margin, axes)
    return _Promise(margin, alpha, needed.beta, needed.simultaneous)


def _answer(
    request: Request, problem: Projected, promise: _Promise, release: Release, receipt: Receipt
) -> Answer:
    """The release in the shape that people read, with its noise interval."""
    reading = request.question.kind.read(release, problem.axes)
    return Answer(
        labels=reading.labels,
        axes=tuple(axis.column for axis in problem.axes),
        kind=request.question.kind.name,
        values=reading.values,
        raw=release.values,
        low=reading.low,
        high=reading.high,
        exact=reading.exact,
        alpha=promise.alpha,
        beta=promise.beta,
        simultaneous=promise.simultaneous,
        receipt=receipt,
    )


def _receipt(
    request: Request, dataset: DatasetRecord, charge: Charge, mechanism: str, statement: str
) -> Receipt:
    return Receipt(
        charge=str(charge.id),
        dataset=dataset.name,
        question=request.question.describe(),
        user=request.user,
        epsilon=charge.amount,
        mechanism=mechanism,
        policy=dataset.policy.graph.describe(),
        policy_version=dataset.policy_version,
        snapshot=dataset.snapshot,
        settled=datetime.now(UTC).isoformat(timespec="seconds"),
        sql=statement,
        cost=charge.amount,
    )


def _explained(offer: Offer) -> str:
    used = len(offer.combination.releases)
    return f"It follows by arithmetic from {used:,} stored answer{'s' if used > 1 else ''}."


def _body(answer: Answer, release: Any) -> str:
    """What the ledger keeps: the answer as it was given, and what was measured for it."""
    return json.dumps({"answer": answer.to_plain(), "release": release})


def read_answer(stored: StoredAnswer) -> Answer:
    """An answer from the ledger."""
    return Answer.from_plain(json.loads(stored.answer)["answer"])
