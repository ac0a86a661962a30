"""The service: one question in seven steps, and the only place where effects are sequenced.

    1 project    (question, policy) → W*, G*, cells      pure
    2 plan       candidates → the cheapest               pure, sees no data
    3 translate  (α, β) → ε                              pure, sees no data    ── quote() stops here
    4 reserve    ε in the ledger                         atomic and durable; may refuse
    5 count      one SQL query → Secret[x*]              clusters: one for each round
    6 release    noise → answer                          the one place where a Secret is opened
    7 settle     answer and receipt stored

The charge comes before the data is read, so a refusal cannot depend on the data and no crash or
race can give a free answer.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Final, final

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.store.values import Charge
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import (
    AlreadyRefined,
    BlowfishError,
    BudgetExhausted,
    MaxCostExceeded,
    PolicyConflict,
    SourceError,
    WorkspaceError,
)
from blowfishdb.core.noise import Noise
from blowfishdb.core.questions.kinds import Release
from blowfishdb.core.questions.projection import Projected
from blowfishdb.mechanisms.best import KnownAnswers
from blowfishdb.mechanisms.reuse import Label
from blowfishdb.messages.answers import Answer, PaidUnder, Receipt
from blowfishdb.messages.questions import Request
from blowfishdb.service.planning import project_any
from blowfishdb.service.policies import FROM_STORED, check_promises, told_apart
from blowfishdb.service.prices import Prices, read_answer
from blowfishdb.service.records import DatasetEntry
from blowfishdb.service.reuse import Basket
from blowfishdb.service.tasks import (
    CountTask,
    ErrorBound,
    Outcome,
    Problem,
    Task,
    answer_of,
    counted,
    identity,
)

_PLANS: Final = 5
"""How often a question is planned whose rows are declared anew meanwhile."""


@final
@dataclass(frozen=True, eq=False)
class Service(Prices):
    """Answers requests over the datasets of one workspace: steps 4 to 7 behind those of prices."""

    backend: Callable[[DatasetEntry], Backend]
    noise: Noise

    def ask(self, request: Request, *, together: Basket | None = None) -> Answer:
        """All seven steps. An identical question returns its stored answer at no cost.

        ``together``: questions that were settled on together with this one, before any answer. A refresh in
        another process while it is being planned is no reason to refuse it: it is planned anew.
        """
        for _ in range(_PLANS - 1):
            before = self.datasets(request.dataset)
            try:
                return self._asked(request, together)
            except AlreadyRefined:
                continue  # by someone else, since the price was worked out: it is worked out anew
            except (PolicyConflict, SourceError) as error:
                now = self.datasets(request.dataset)
                if error.charged or not _only_rows_changed(before, now):
                    raise
        return self._asked(request, together)

    def _asked(self, request: Request, together: Basket | None) -> Answer:
        """All seven steps, over the declaration as it is now."""
        earlier = self.asked_before(request)
        if earlier is not None:
            return earlier
        dataset, request = self.datasets(request.dataset), self.resolved(request, self.ask)
        problem = project_any(request, dataset.policy)
        sources = (self._stored, self._known, self._read_off, self._reused)
        free = (source(request, dataset, problem, together) for source in sources)
        answer = next((found for found in free if found is not None), None)
        if answer is not None:
            return answer
        standing = self.standing(dataset)
        if together is not None:
            standing = together.standing(dataset.name, standing)
        return self._fresh(self._priced(request, dataset, problem, standing), dataset, together)

    def ask_all(self, requests: Sequence[Request], *, max_cost: Epsilon | None = None) -> list[Answer]:
        """Questions that were settled on before any of them is answered, the dearest first.

        What follows from the others by arithmetic is free, with the interval of a planned question; the rest
        pays for what it loses together, pair by pair. Never dearer than one by one; refused as a whole if
        that could exceed ``max_cost`` or the budget. After a refresh in between the rest is planned anew.
        """
        before = [self.asked_before(request) for request in requests]
        paid = sum((answer.receipt.epsilon for answer in before if answer is not None), Epsilon(0))
        settled = [
            self.resolved(request, self.ask) if answer is None else request
            for request, answer in zip(requests, before, strict=True)
        ]
        quotes = [
            self.quote(request, more=False) if answer is None else None
            for request, answer in zip(settled, before, strict=True)
        ]
        costs = [Epsilon(0) if quote is None else quote.epsilon for quote in quotes]
        order = sorted(range(len(requests)), key=lambda place: (-costs[place].nano, place))
        due = self._due_together([settled[place] for place in order if costs[place]])
        _check_cost(sum(due.values(), paid), max_cost)
        for name, needed in due.items():
            left = self.ledger.left(name, requests[0].user)
            if needed > left:
                raise BudgetExhausted(
                    f"The budget of '{name}' does not reach: these questions may need {needed}, {left} left.",
                    needed=needed,
                    left=left,
                    fixes=("fewer questions at once", "larger errors", "ask the curator for more"),
                )
        check_promises([quote for quote in quotes if quote is not None])
        answers, together = {}, Basket()
        for place in order:
            answer = before[place]
            if answer is None:
                room = None if max_cost is None else max_cost - min(paid, max_cost)
                answer = self.ask(replace(requests[place], max_cost=room), together=together)
                paid += answer.receipt.cost
            together.charges.add(answer.number)
            answers[place] = answer
        return [answers[place] for place in range(len(requests))]

    def _due_together(self, requests: Sequence[Request]) -> dict[str, Epsilon]:
        """What these questions cost each dataset if none of them is free."""
        together = Basket()
        due: dict[str, Epsilon] = defaultdict(lambda: Epsilon(0))
        for request in requests:
            dataset = self.datasets(request.dataset)
            task = self._task(request, dataset)
            kernel = task.kernel(dataset.policy, dataset.rows_per_person)
            due[dataset.name] += together.due(dataset, kernel, task.cost)
        return due

    def asked_before(self, request: Request) -> Answer | None:
        """What the ledger has for the key of a request: its answer, or the refusal that it stays with."""
        if request.key is None:
            return None
        found = self.ledger.charged_under(request.user, request.key).get(request.key.part)
        return None if found is None else read_answer(found)

    # --- where an answer comes from, the first that has one ---------------------------------------

    def _known(
        self, request: Request, dataset: DatasetEntry, problem: Problem, together: Basket | None
    ) -> Answer | None:
        """What everyone knows already, on record like every other answer; no row is read."""
        task = self.planner.given(problem, request) if isinstance(problem, Projected) else None
        if task is None:
            return None
        plan = task.choice.plan
        assert isinstance(plan, KnownAnswers)
        outcome = Outcome(partial(task.answer, plan.told()))
        return self._record(outcome, request, dataset, problem, plan.name, task.known)

    def _read_off(
        self, request: Request, dataset: DatasetEntry, problem: Problem, together: Basket | None
    ) -> Answer | None:
        """What can be read off stored counts that are as close as is needed, on record like every other."""
        closest = self._closest(request, dataset, problem)
        if closest is None:
            return None
        assert isinstance(problem, Projected)
        release = Release(closest.answer.raw, closest.exact, closest.bound.margin, closest.bound.simultaneous)
        answer = partial(answer_of, request, problem, closest.bound, release, interval=Label.ANY.value)
        return self._record(Outcome(answer), request, dataset, problem, FROM_STORED)

    def _reused(
        self, request: Request, dataset: DatasetEntry, problem: Problem, together: Basket | None
    ) -> Answer | None:
        """What follows from stored answers by arithmetic, on record like every other answer."""
        offer = self._offer(request, dataset, problem, together)
        if offer is None:
            return None
        assert isinstance(problem, Projected) and request.terms.accuracy is not None
        needed = request.counts.kind.requirement(request.terms.accuracy, problem.axes)
        combination = offer.combination
        release = Release(combination.values(), combination.exact, offer.alpha, needed.simultaneous)
        shown = request.counts.kind.promised(offer.alpha, problem.axes)
        promise = ErrorBound(offer.alpha, shown, needed.beta, needed.simultaneous)
        answer = partial(answer_of, request, problem, promise, release, interval=offer.label.value)
        return self._record(Outcome(answer), request, dataset, problem, FROM_STORED)

    def _fresh(self, task: Task, dataset: DatasetEntry, together: Basket | None) -> Answer:
        """From the rows: steps 4 to 7, the same for every kind of question."""
        request, cost = task.request, task.cost
        if together is not None:
            cost = together.due(dataset, task.kernel(dataset.policy, dataset.rows_per_person), cost)
        losses = self._losses(dataset, task)
        _check_cost(max(cost, *losses.values(), cost) if together is None else cost, request.max_cost)
        statement = task.prepare(self.backend(dataset))
        if request.cancel is not None:
            request.cancel.check()
        with self._advised(task, dataset):
            how = {"mechanism": task.mechanism, "alone": str(task.cost)}
            if isinstance(task, CountTask) and task.refining is not None:
                how["whole"] = str(task.choice.loss * dataset.rows_per_person)
            charge = self._reserve(request, dataset, task.problem, how, cost, losses, refines=task.refines)
        with self._committed(charge):
            outcome = statement.run(self.noise)
            receipt = _receipt(request, dataset, charge, task.mechanism, statement.sql, task.known, losses)
            declared = None if dataset.copy is not None else dataset.version  # a copy cannot change meanwhile
            return self._settle(charge, outcome, receipt, _bound(dataset, task), declared)

    def _record(
        self,
        outcome: Outcome,
        request: Request,
        dataset: DatasetEntry,
        problem: Problem,
        mechanism: str,
        known: str = "",
    ) -> Answer:
        """An answer for which no row is read: on record without the mark that one is."""
        nothing = {kept.version: Epsilon(0) for kept in self.promises(dataset.name)}
        how = {"mechanism": mechanism}
        charge = self._reserve(request, dataset, problem, how, Epsilon(0), nothing, reading=False)
        try:
            receipt = _receipt(request, dataset, charge, mechanism, "", known)
            return self._settle(charge, outcome, receipt)
        except BaseException:
            with suppress(WorkspaceError):
                self.ledger.void(charge)
            raise

    def _settle(
        self,
        charge: Charge,
        outcome: Outcome,
        receipt: Receipt,
        bound: Mapping[str, object] | None = None,
        declared: int | None = None,
    ) -> Answer:
        """Step 7: the answer as it was given is kept, with what was measured for it."""
        answer = outcome.answer(receipt)
        body = json.dumps(
            {
                "answer": answer.to_plain(),
                "release": outcome.kept,
                "replaces": charge.refines,
                **(bound or {}),
            }
        )
        self.ledger.settle(charge, body, declared=declared)
        return answer

    # --- prices and steps -----------------------------------------------------------------------

    def _losses(self, dataset: DatasetEntry, task: Task) -> dict[int, Epsilon]:
        """What the answer costs under every earlier policy that is still kept."""
        losses = {}
        for kept in self._under_promises(dataset, task):
            if kept.epsilon is None:
                raise told_apart(kept.version)
            losses[kept.version] = kept.epsilon
        return losses

    def _reserve(
        self,
        request: Request,
        dataset: DatasetEntry,
        problem: Problem,
        how: Mapping[str, str],
        amount: Epsilon,
        losses: Mapping[int, Epsilon],
        *,
        reading: bool = True,
        refines: int | None = None,
    ) -> Charge:
        """Step 4, up to the durable mark that the data is about to be read, if it is."""
        detail = {
            "question": request.question.describe(),
            **how,
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
            reading=reading,
            version=dataset.policy_version,
            declared=dataset.version,
            losses=losses,
            key=request.key,
            refines=refines,
        )

    @contextmanager
    def _advised(self, task: Task, dataset: DatasetEntry) -> Iterator[None]:
        """A refusal for want of budget says what would fit."""
        try:
            yield
        except BudgetExhausted as refusal:
            left = self.ledger.left(dataset.name, task.request.user)
            kept = self._under_promises(dataset, task)
            fits = tuple(fit.words for fit in self._fits(task, dataset, left, kept))
            binding = max(kept, key=lambda promise: promise.share, default=None)
            if binding is not None:
                then = self.withdrawn(task, dataset, binding.version)
                if task.cost <= left or (then is not None and then.epsilon <= left):
                    fits = (*fits, replace(binding, withdrawn=then).advice)
            refusal.fixes = fits
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


def _bound(dataset: DatasetEntry, task: Task) -> dict[str, object]:
    """What is promised of the counts behind an answer: others are read from them for nothing."""
    promise = task.promise
    if promise is None:
        return {}
    return {"about": counted(dataset, task.problem), "bound": asdict(promise)}


def _only_rows_changed(before: DatasetEntry, now: DatasetEntry) -> bool:
    """Whether there are other rows, under the same columns and the same policy."""
    same = before.domain == now.domain and before.policy_version == now.policy_version
    return same and before.version != now.version


def _check_cost(epsilon: Epsilon, max_cost: Epsilon | None) -> None:
    if max_cost is not None and epsilon > max_cost:
        raise MaxCostExceeded(
            f"This answer costs {epsilon:.3g}, more than the {max_cost} you allowed. Nothing was charged.",
            fixes=(f"allow max_cost={epsilon}", "accept a larger error"),
        )


def _receipt(
    request: Request,
    dataset: DatasetEntry,
    charge: Charge,
    mechanism: str,
    statement: str,
    known: str = "",
    losses: Mapping[int, Epsilon] = MappingProxyType({}),
) -> Receipt:
    return Receipt(
        charge=str(charge.id),
        dataset=dataset.name,
        question=request.question.describe(),
        user=request.user,
        epsilon=charge.amount,
        mechanism=mechanism,
        policy=dataset.policy.describe(),
        policy_version=dataset.policy_version,
        snapshot=dataset.snapshot,
        settled=datetime.now(UTC).isoformat(timespec="seconds"),
        sql=statement,
        cost=charge.amount,
        known=known,
        head=charge.head,
        promised=tuple(PaidUnder(version, loss) for version, loss in losses.items()),
    )
