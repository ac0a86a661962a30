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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, final

from blowfishdb.adapters.backends import Backend, Cancellation
from blowfishdb.adapters.ledger import Charge, Ledger, StoredAnswer
from blowfishdb.advice import affordable, cheaper
from blowfishdb.answers import Answer, Receipt
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.codec import digest, plain
from blowfishdb.core.errors import (
    BlowfishError,
    BudgetExhausted,
    MaxCostExceeded,
    PolicyConflict,
    WorkspaceError,
)
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import Projected, project
from blowfishdb.core.questions import Release
from blowfishdb.core.reuse import Offer
from blowfishdb.core.workloads import Selected
from blowfishdb.history import FROM_STORED, Past
from blowfishdb.mechanisms.losses import kernel_of
from blowfishdb.messages import Fit, Quote, Request
from blowfishdb.owned import Owned, stored_release
from blowfishdb.planning import Planned, Planner, Promise
from blowfishdb.records import DatasetRecord


@final
@dataclass(frozen=True, eq=False)
class Service:
    """Answers requests over the datasets of one workspace."""

    datasets: Callable[[str], DatasetRecord]
    backend: Callable[[DatasetRecord], Backend]
    ledger: Ledger
    owned: Owned
    noise: Noise
    planner: Planner
    promises: Callable[[str], Mapping[int, Policy]]
    """Earlier policies of a dataset that are still kept, by version."""

    def plan(self, request: Request) -> Planned:
        """Steps 1 to 3: the small problem, the mechanism, the price."""
        dataset = self.datasets(request.dataset)
        return self.planner.plan(request, dataset.policy, dataset.rows_per_person)

    def quote(self, request: Request) -> Quote:
        """Steps 1 to 3: what the answer would cost. Free; the data is not touched."""
        dataset = self.datasets(request.dataset)
        planned = self.planner.plan(request, dataset.policy, dataset.rows_per_person)
        known = self.ledger.answer(identity(request, dataset, planned.problem)) is not None
        offer = None if known else self._offer(request, dataset, planned.problem)
        owned = known or offer is not None
        promise, plan = planned.promise, planned.choice.plan
        left = self.ledger.left(dataset.name, request.user)
        return Quote(
            dataset=dataset.name,
            question=request.question.describe(),
            epsilon=Epsilon(0) if owned else planned.cost,
            alpha=promise and promise.alpha,
            beta=promise and promise.beta,
            simultaneous=promise is not None and promise.simultaneous,
            mechanism=FROM_STORED if offer else plan.name,
            explanation=plan.explain() if not offer else _explained(offer),
            policy=dataset.policy.graph.describe(),
            policy_version=dataset.policy_version,
            plain_epsilon=self._plain_cost(request, dataset),
            remaining=left,
            owned=owned,
            alternatives=() if owned else cheaper(self.planner, request, planned, dataset.rows_per_person),
            fits=() if owned or planned.cost <= left else self._fits(request, dataset, planned, left),
        )

    def ask(
        self,
        request: Request,
        *,
        max_cost: Epsilon | None = None,
        cancel: Cancellation | None = None,
        basket: frozenset[int] = frozenset(),
    ) -> Answer:
        """All seven steps. An identical question returns its stored answer at no cost.

        ``cancel`` gives the question up: before the charge is made nothing is charged, afterwards it stays.
        ``basket``: the charges of questions that were settled on together with this one, before any answer.
        """
        dataset = self.datasets(request.dataset)
        problem = project(request.question, dataset.policy)
        stored = self.ledger.answer(identity(request, dataset, problem))
        if stored is not None:
            answer = read_answer(stored)
            return replace(answer, receipt=replace(answer.receipt, cost=Epsilon(0)))
        offer = self._offer(request, dataset, problem, basket)
        if offer is not None:
            return self._give(offer, request, dataset, problem)
        planned = self.planner.price(problem, request, dataset.rows_per_person)
        choice = planned.choice
        _check_cost(planned.cost, max_cost)
        prepared = self.backend(dataset).prepare(problem.cells)
        if cancel is not None:
            cancel.check()
        with self._advised(request, dataset, planned):
            losses = self._losses(dataset, planned)
            charge = self._reserve(request, dataset, problem, choice.plan.name, planned.cost, losses)
        with self._committed(charge):
            counts = prepared.count(cancel)
            seen = choice.plan.observe(counts, epsilon=choice.epsilon or Epsilon(1), noise=self.noise)
            receipt = _receipt(request, dataset, charge, choice.plan.name, prepared.sql)
            answer = answer_of(request, problem, planned.promise, planned.released(seen), receipt)
            kept = stored_release(choice.plan, seen, choice.epsilon, problem.cells.axes)
            self.ledger.settle(charge, _body(answer, kept))
        return answer

    def ask_all(self, requests: Sequence[Request], *, max_cost: Epsilon | None = None) -> list[Answer]:
        """Questions that were settled on before any of them is answered, the dearest first.

        What follows from the others by arithmetic is free, with the interval of a planned question. Never
        dearer than one by one; refused as a whole if that could exceed ``max_cost`` or the budget.
        """
        costs = [self.quote(request).epsilon for request in requests]
        most = sum(costs, Epsilon(0))
        _check_cost(most, max_cost)
        order = sorted(range(len(requests)), key=lambda place: (-costs[place].nano, place))
        for name in {request.dataset for request in requests}:
            needed = sum((c for c, r in zip(costs, requests, strict=True) if r.dataset == name), Epsilon(0))
            left = self.ledger.left(name, requests[0].user)
            if needed > left:
                raise BudgetExhausted(
                    f"The budget of '{name}' does not reach: these questions may need {needed}, {left} left.",
                    needed=needed,
                    left=left,
                    fixes=("fewer questions at once", "larger errors", "ask the curator for more"),
                )
        answers: dict[int, Answer] = {}
        for place in order:
            basket = frozenset(answer.number for answer in answers.values())
            answers[place] = self.ask(requests[place], basket=basket)
        return [answers[place] for place in range(len(requests))]

    # --- steps ----------------------------------------------------------------------------------

    def _plain_cost(self, request: Request, dataset: DatasetRecord) -> Epsilon:
        """What the best plan under plain differential privacy would cost for the same accuracy."""
        if request.terms.epsilon is not None:
            return request.terms.epsilon
        best = replace(request, terms=replace(request.terms, mechanism=None))
        plain_policy = Policy.differential_privacy(dataset.domain)
        return self.planner.plan(best, plain_policy, dataset.rows_per_person).cost

    def _offer(
        self,
        request: Request,
        dataset: DatasetRecord,
        problem: Projected,
        basket: frozenset[int] = frozenset(),
    ) -> Offer | None:
        """An answer that follows from what is out already, as accurately as was asked."""
        if request.terms.accuracy is None or request.terms.mechanism is not None:
            return None
        needed = request.question.kind.requirement(request.terms.accuracy, problem.axes)
        return self.owned.offer(dataset.name, dataset.snapshot, problem, needed, basket)

    def _give(self, offer: Offer, request: Request, dataset: DatasetRecord, problem: Projected) -> Answer:
        """The free answer, on record like every other."""
        assert request.terms.accuracy is not None
        nothing = dict.fromkeys(self.promises(dataset.name), Epsilon(0))
        charge = self._reserve(request, dataset, problem, FROM_STORED, Epsilon(0), nothing)
        with self._committed(charge):
            needed = request.question.kind.requirement(request.terms.accuracy, problem.axes)
            combination = offer.combination
            release = Release(combination.values(), combination.exact, offer.alpha, needed.simultaneous)
            shown = request.question.kind.promised(offer.alpha, problem.axes)
            promise = Promise(offer.alpha, shown, needed.beta, needed.simultaneous)
            receipt = _receipt(request, dataset, charge, FROM_STORED, "")
            answer = answer_of(request, problem, promise, release, receipt, interval=offer.label.value)
            self.ledger.settle(charge, _body(answer, None))
        return answer

    def _losses(self, dataset: DatasetRecord, planned: Planned) -> dict[int, Epsilon]:
        """What the answer costs under every earlier policy that is still kept."""
        kept = self.promises(dataset.name)
        if not kept:
            return {}
        choice, people = planned.choice, dataset.rows_per_person
        axes = planned.problem.cells.axes
        kernel = kernel_of(choice.plan, choice.epsilon, axes, dataset.policy, people)
        losses = {version: Past.of((kernel,), policy).epsilon for version, policy in kept.items()}
        for version, loss in losses.items():
            if loss is None:
                raise PolicyConflict(
                    f"This answer would tell apart exactly what version {version} of the policy hides, and "
                    "that version is still promised. Nothing was charged.",
                    fixes=("ask the curator to withdraw the earlier promise",),
                )
        return {version: loss for version, loss in losses.items() if loss is not None}

    def _reserve(
        self,
        request: Request,
        dataset: DatasetRecord,
        problem: Projected,
        mechanism: str,
        amount: Epsilon,
        losses: Mapping[int, Epsilon],
    ) -> Charge:
        """Step 4, up to the durable mark that the data is about to be read."""
        detail = {
            "question": request.question.describe(),
            "mechanism": mechanism,
            "policy_version": dataset.policy_version,
            "snapshot": dataset.snapshot,
        }
        name = identity(request, dataset, problem)
        return self.ledger.reserve(
            dataset.name,
            request.user,
            amount,
            name,
            detail,
            once=True,
            reading=True,
            version=dataset.policy_version,
            losses=losses,
        )

    @contextmanager
    def _advised(self, request: Request, dataset: DatasetRecord, planned: Planned) -> Iterator[None]:
        """A refusal for want of budget says what would fit."""
        try:
            yield
        except BudgetExhausted as refusal:
            left = self.ledger.left(dataset.name, request.user)
            if planned.cost > left:  # otherwise it is an earlier promise that does not reach
                refusal.fixes = tuple(fit.words for fit in self._fits(request, dataset, planned, left))
            raise

    def _fits(
        self, request: Request, dataset: DatasetRecord, planned: Planned, left: Epsilon
    ) -> tuple[Fit, ...]:
        return affordable(self.planner, request, planned, dataset.policy, dataset.rows_per_person, left)

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
            "accuracy": request.terms.accuracy and _accuracy_text(request.terms.accuracy),
            "epsilon": request.terms.epsilon and str(request.terms.epsilon),
            **({} if request.terms.mechanism is None else {"mechanism": request.terms.mechanism}),
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


def answer_of(
    request: Request,
    problem: Projected,
    promise: Promise | None,
    release: Release,
    receipt: Receipt,
    *,
    interval: str = "fresh",
) -> Answer:
    """The release in the shape that people read, with its noise interval if one is promised."""
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
        alpha=promise and promise.alpha,
        beta=promise and promise.beta,
        simultaneous=promise is not None and promise.simultaneous,
        interval=interval,
        form=request.form.to_plain(),
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
