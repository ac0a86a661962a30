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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, final

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.copies.values import SourceKind
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import Charge, StoredAnswer
from blowfishdb.core.accuracy import LARGEST_EPSILON, Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.domain.predicates import Everything
from blowfishdb.core.errors import (
    BlowfishError,
    BudgetExhausted,
    Infeasible,
    MaxCostExceeded,
    NotProven,
    PolicyConflict,
    SourceError,
    WorkspaceError,
)
from blowfishdb.core.noise import Noise
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.clusters import ClusterQuestion
from blowfishdb.core.questions.kinds import Question, Release, Sum
from blowfishdb.core.questions.projection import Projected
from blowfishdb.language.short import question_text
from blowfishdb.mechanisms.best import GivenAnswers
from blowfishdb.mechanisms.reuse import Offer
from blowfishdb.messages.answers import Answer, Receipt
from blowfishdb.messages.policies import Kept
from blowfishdb.messages.questions import Request, Terms, in_usual_bins, needs_rows, number_of_rows, over_rows
from blowfishdb.messages.quotes import Fit, Quote, UnderPromise
from blowfishdb.service.advice import affordable, cheaper
from blowfishdb.service.planning import Planner, project_any
from blowfishdb.service.policies import FROM_STORED, check_promises, past_loss, room_for, told_apart
from blowfishdb.service.records import DatasetRecord
from blowfishdb.service.reuse import Owned, Together
from blowfishdb.service.tasks import (
    ErrorBound,
    Outcome,
    Problem,
    Task,
    answer_of,
    identities,
    identity,
    named_anew,
)

_PLANS: Final = 5
"""How often a question is planned whose rows are declared anew meanwhile."""


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
    promises: Callable[[str], Sequence[Kept]]
    """Earlier policies of a dataset that are still kept, oldest first."""

    def plan(self, request: Request) -> Task:
        """Steps 1 to 3: the small problem, the mechanism, the price."""
        return self._task(self.resolved(request), self.datasets(request.dataset))

    def _task(self, request: Request, dataset: DatasetRecord) -> Task:
        problem = project_any(request, dataset.policy)
        return self.planner.task(request, problem, dataset.rows_per_person)

    def resolved(self, request: Request, *, ask: bool = False) -> Request:
        """The question with what its price depends on: the bins of quantiles, how many rows a mean has."""
        if request.form.kind == "quantiles":
            return in_usual_bins(request, self.datasets(request.dataset).policy)
        return self._counted(request, ask=ask) if needs_rows(request) else request

    def _counted(self, request: Request, *, ask: bool) -> Request:
        """A mean, or a sum over wide cells, with the number of its rows, which must be public and on record.

        If it is not on record it is asked for, which is free, or, without ``ask``, the question has no price
        yet: a quote touches nothing.
        """
        dataset, kind = self.datasets(request.dataset), request.counts.kind
        assert isinstance(kind, Sum)
        total = number_of_rows(request, dataset.domain)
        planned = self.planner.plan(total, dataset.policy, dataset.rows_per_person)
        if planned.cost:
            raise self._rows_hidden(request, dataset)
        known = self._stored(total, dataset, planned.problem)
        if known is None and ask:
            known = self.ask(total)
        if known is not None:
            return over_rows(request, dataset.domain, int(known.values[0]))
        exactly = self.owned.offer(dataset.name, dataset.snapshot, planned.problem, Accuracy(0.5, 0.05))
        if exactly is None or not exactly.combination.exact.all():
            raise kind.uncounted(question_text(total.form))
        return over_rows(request, dataset.domain, int(exactly.combination.values()[0]))

    def _rows_hidden(self, request: Request, dataset: DatasetRecord) -> NotProven:
        """The refusal where the number of rows is hidden, with what can be asked instead."""
        kind, everywhere = request.counts.kind, replace(request.form, where=Everything())
        why = "a mean cannot be promised from a sum alone"
        if kind.name == "sum":
            why = "how much they add inside their cells cannot be said"
        narrow = request.counts.told_by_counts
        fixes = ["ask for the sum and the count"] if narrow else ["ask for quantiles"]
        all_rows = number_of_rows(replace(request, form=everywhere), dataset.domain)
        if not self.planner.plan(all_rows, dataset.policy, dataset.rows_per_person).cost:
            fixes.append(f"ask for the {kind.name} of all rows")
        if not narrow:
            fixes.append("ask the curator to declare steps of one")
        return NotProven(f"The number of these rows is not public, so {why}.", fixes=tuple(fixes))

    def quote(self, request: Request) -> Quote:
        """Steps 1 to 3: what the answer would cost. Free; the data is not touched, and nothing is written."""
        dataset, request = self.datasets(request.dataset), self.resolved(request)
        task = self._task(request, dataset)
        stored = self._answered(request, dataset, task.problem)
        offer = None if stored is not None or task.given else self._offer(request, dataset, task.problem)
        owned = stored is not None or offer is not None
        promise, left = task.promise, self.ledger.left(dataset.name, request.user)
        kept = () if owned or task.given else self._under_promises(dataset, task)
        room = room_for(task.cost, left, kept)
        return Quote(
            dataset=dataset.name,
            question=request.question.describe(),
            kind=request.form.kind,
            epsilon=Epsilon(0) if owned else task.cost,
            alpha=promise and promise.alpha,
            beta=promise and promise.beta,
            simultaneous=promise is not None and promise.simultaneous,
            mechanism=FROM_STORED if offer else task.mechanism,
            explanation=_explained(offer) if offer else _as_of(stored, dataset) or task.explanation,
            policy=dataset.policy.describe(),
            policy_version=dataset.policy_version,
            plain_epsilon=self._plain_cost(request, dataset, promise),
            remaining=left,
            owned=owned,
            exact=not owned and not task.cost and _told_by_counts(request.question),
            alternatives=() if owned else cheaper(self.planner, task, dataset.rows_per_person),
            fits=() if owned or task.cost <= room else self._fits(task, dataset, room),
            notes=task.problem.notes,
            promises=kept,
        )

    def ask(
        self,
        request: Request,
        *,
        max_cost: Epsilon | None = None,
        cancel: Cancellation | None = None,
        together: Together | None = None,
        progress: Progress | None = None,
    ) -> Answer:
        """All seven steps. An identical question returns its stored answer at no cost.

        ``cancel`` gives the question up: before the charge is made nothing is charged, afterwards it stays.
        ``together``: questions that were settled on together with this one, before any answer.
        ``progress`` is told how many of the statements have been answered. A refresh in another process
        while it is being planned is no reason to refuse it: it is planned anew.
        """
        for _ in range(_PLANS - 1):
            before = self.datasets(request.dataset)
            try:
                return self._asked(request, max_cost, cancel, together, progress)
            except (PolicyConflict, SourceError) as error:
                now = self.datasets(request.dataset)
                if error.charged or not _only_rows_changed(before, now):
                    raise
        return self._asked(request, max_cost, cancel, together, progress)

    def _asked(
        self,
        request: Request,
        max_cost: Epsilon | None,
        cancel: Cancellation | None,
        together: Together | None,
        progress: Progress | None,
    ) -> Answer:
        """All seven steps, over the declaration as it is now."""
        earlier = self.asked_before(request)
        if earlier is not None:
            return earlier
        dataset, request = self.datasets(request.dataset), self.resolved(request, ask=True)
        problem = project_any(request, dataset.policy)
        sources = (self._stored, self._known, self._reused)
        free = (source(request, dataset, problem, together) for source in sources)
        answer = next((found for found in free if found is not None), None)
        if answer is not None:
            return answer
        task = self.planner.task(request, problem, dataset.rows_per_person)
        return self._fresh(task, dataset, max_cost, cancel, progress, together)

    def ask_all(self, requests: Sequence[Request], *, max_cost: Epsilon | None = None) -> list[Answer]:
        """Questions that were settled on before any of them is answered, the dearest first.

        What follows from the others by arithmetic is free, with the interval of a planned question; the rest
        pays for what it loses together, pair by pair. Never dearer than one by one; refused as a whole if
        that could exceed ``max_cost`` or the budget. After a refresh in between the rest is planned anew.
        """
        before = [self.asked_before(request) for request in requests]
        paid = sum((answer.receipt.epsilon for answer in before if answer is not None), Epsilon(0))
        settled = [
            self.resolved(request, ask=True) if answer is None else request
            for request, answer in zip(requests, before, strict=True)
        ]
        quotes = [
            self.quote(request) if answer is None else None
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
        answers, together = {}, Together()
        for place in order:
            answer = before[place]
            if answer is None:
                room = None if max_cost is None else max_cost - min(paid, max_cost)
                answer = self.ask(requests[place], max_cost=room, together=together)
                paid += answer.receipt.cost
            together.charges.add(answer.number)
            answers[place] = answer
        return [answers[place] for place in range(len(requests))]

    def _due_together(self, requests: Sequence[Request]) -> dict[str, Epsilon]:
        """What these questions cost each dataset if none of them is free."""
        together = Together()
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

    def _answered(self, request: Request, dataset: DatasetRecord, problem: Problem) -> StoredAnswer | None:
        """What the ledger has under a name of the question."""
        found = map(self.ledger.answer, identities(request, dataset, problem))
        return next((stored for stored in found if stored is not None), None)

    def _stored(
        self,
        request: Request,
        dataset: DatasetRecord,
        problem: Problem,
        together: Together | None = None,
    ) -> Answer | None:
        """The answer to the very same question, which costs nothing."""
        stored = self._answered(request, dataset, problem)
        if stored is None:
            return None
        answer = read_answer(stored)
        if isinstance(problem, Projected) and answer.kind != request.counts.kind.name:
            answer = named_anew(answer, request, problem)
        return replace(answer, receipt=replace(answer.receipt, cost=Epsilon(0)))

    def _known(
        self, request: Request, dataset: DatasetRecord, problem: Problem, together: Together | None
    ) -> Answer | None:
        """What everyone knows already, on record like every other answer; no row is read."""
        task = self.planner.given(problem, request) if isinstance(problem, Projected) else None
        if task is None:
            return None
        plan = task.choice.plan
        assert isinstance(plan, GivenAnswers)
        outcome = Outcome(partial(task.answer, plan.told()))
        return self._record(outcome, request, dataset, problem, plan.name, task.known)

    def _reused(
        self, request: Request, dataset: DatasetRecord, problem: Problem, together: Together | None
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

    def _offer(
        self, request: Request, dataset: DatasetRecord, problem: Problem, together: Together | None = None
    ) -> Offer | None:
        """An answer that follows from what is out already, as accurately as was asked."""
        if not isinstance(problem, Projected) or request.terms.accuracy is None:
            return None
        if request.terms.mechanism is not None:
            return None
        if dataset.kind is SourceKind.LIVE:  # stored answers may speak of other rows
            return None
        needed = request.counts.kind.requirement(request.terms.accuracy, problem.axes)
        basket = frozenset() if together is None else frozenset(together.charges)
        return self.owned.offer(dataset.name, dataset.snapshot, problem, needed, basket)

    def _fresh(
        self,
        task: Task,
        dataset: DatasetRecord,
        max_cost: Epsilon | None,
        cancel: Cancellation | None,
        progress: Progress | None,
        together: Together | None,
    ) -> Answer:
        """From the rows: steps 4 to 7, the same for every kind of question."""
        request, cost = task.request, task.cost
        if together is not None:
            cost = together.due(dataset, task.kernel(dataset.policy, dataset.rows_per_person), cost)
        _check_cost(cost, max_cost)
        statement = task.prepare(self.backend(dataset))
        if cancel is not None:
            cancel.check()
        with self._advised(task, dataset):
            losses = self._losses(dataset, task)
            how = {"mechanism": task.mechanism, "alone": str(task.cost)}
            charge = self._reserve(request, dataset, task.problem, how, cost, losses)
        with self._committed(charge):
            outcome = statement.run(self.noise, cancel, progress)
            receipt = _receipt(request, dataset, charge, task.mechanism, statement.sql, task.known)
            declared = None if dataset.copy is not None else dataset.version  # a copy cannot change meanwhile
            return self._settle(charge, outcome, receipt, declared)

    def _record(
        self,
        outcome: Outcome,
        request: Request,
        dataset: DatasetRecord,
        problem: Problem,
        mechanism: str,
        known: str = "",
    ) -> Answer:
        """An answer for which no row is read: on record without the mark that one is."""
        nothing = {kept.version: Epsilon(0) for kept in self.promises(dataset.name)}
        how = {"mechanism": mechanism}
        charge = self._reserve(request, dataset, problem, how, Epsilon(0), nothing, reading=False)
        try:
            return self._settle(charge, outcome, _receipt(request, dataset, charge, mechanism, "", known))
        except BaseException:
            with suppress(WorkspaceError):
                self.ledger.void(charge)
            raise

    def _settle(
        self, charge: Charge, outcome: Outcome, receipt: Receipt, declared: int | None = None
    ) -> Answer:
        """Step 7: the answer as it was given is kept, with what was measured for it."""
        answer = outcome.answer(receipt)
        body = json.dumps({"answer": answer.to_plain(), "release": outcome.kept})
        self.ledger.settle(charge, body, declared=declared)
        return answer

    # --- prices and steps -----------------------------------------------------------------------

    def _plain_cost(self, request: Request, dataset: DatasetRecord, promise: ErrorBound | None) -> Epsilon:
        """What the best plan under plain differential privacy would cost for the same accuracy.

        Never more than can be expressed, and never less than what is spent where an ε was stated.
        """
        spent, accuracy = request.terms.epsilon or Epsilon(0), request.terms.accuracy
        if accuracy is None and promise is not None and promise.alpha:
            accuracy = Accuracy(promise.alpha, promise.beta, promise.simultaneous)
        if accuracy is None:
            return spent
        best, plain = replace(request, terms=Terms(accuracy)), Policy.differential_privacy(dataset.domain)
        try:
            return max(spent, self.planner.plan(best, plain, dataset.rows_per_person).cost)
        except Infeasible:
            return LARGEST_EPSILON

    def _losses(self, dataset: DatasetRecord, task: Task) -> dict[int, Epsilon]:
        """What the answer costs under every earlier policy that is still kept."""
        losses = {}
        for kept in self._under_promises(dataset, task):
            if kept.epsilon is None:
                raise told_apart(kept.version)
            losses[kept.version] = kept.epsilon
        return losses

    def _under_promises(self, dataset: DatasetRecord, task: Task) -> tuple[UnderPromise, ...]:
        """The same, with what each of them has left; None where it would be exact."""
        kept = self.promises(dataset.name)
        kernel = task.kernel(dataset.policy, dataset.rows_per_person) if kept else None
        return tuple(
            UnderPromise(one.version, past_loss((kernel,), one.policy).epsilon, one.remaining)
            for one in kept
            if kernel is not None
        )

    def _reserve(
        self,
        request: Request,
        dataset: DatasetRecord,
        problem: Problem,
        how: Mapping[str, str],
        amount: Epsilon,
        losses: Mapping[int, Epsilon],
        *,
        reading: bool = True,
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
        )

    @contextmanager
    def _advised(self, task: Task, dataset: DatasetRecord) -> Iterator[None]:
        """A refusal for want of budget says what would fit."""
        try:
            yield
        except BudgetExhausted as refusal:
            left = self.ledger.left(dataset.name, task.request.user)
            room = room_for(task.cost, left, self._under_promises(dataset, task))
            fits = tuple(fit.words for fit in self._fits(task, dataset, room))
            refusal.fixes = fits if task.cost > left else tuple(dict.fromkeys((*fits, *refusal.fixes)))
            raise

    def _fits(self, task: Task, dataset: DatasetRecord, left: Epsilon) -> tuple[Fit, ...]:
        def fits(other: Task) -> bool:
            kept = self._under_promises(dataset, other)
            return (
                room_for(other.cost, self.ledger.left(dataset.name, other.request.user), kept) >= other.cost
            )

        return affordable(self.planner, task, dataset.policy, dataset.rows_per_person, left, fits)

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


def _only_rows_changed(before: DatasetRecord, now: DatasetRecord) -> bool:
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
    request: Request, dataset: DatasetRecord, charge: Charge, mechanism: str, statement: str, known: str = ""
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
    )


def _told_by_counts(question: Question | ClusterQuestion) -> bool:
    return isinstance(question, ClusterQuestion) or question.told_by_counts


def _as_of(stored: StoredAnswer | None, dataset: DatasetRecord) -> str:
    """What a stored answer about rows that may have changed is worth; nothing to say about others."""
    if stored is None or dataset.kind is not SourceKind.LIVE:
        return ""
    return f"Answered as of {stored.charge.changed_at:%Y-%m-%d %H:%M} UTC; the rows may have changed since."


def _explained(offer: Offer) -> str:
    used = len(offer.combination.releases)
    return f"It follows by arithmetic from {used:,} stored answer{'s' if used > 1 else ''}."


def read_answer(stored: StoredAnswer) -> Answer:
    """An answer from the ledger."""
    return Answer.from_plain(json.loads(stored.answer)["answer"])
