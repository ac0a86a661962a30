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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar, final

from blowfishdb.adapters.backends import Backend
from blowfishdb.adapters.store.charges import debit
from blowfishdb.adapters.store.texts import written
from blowfishdb.adapters.store.values import Charge, Reservation, State
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
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.questions.readings import Release
from blowfishdb.mechanisms.best import KnownAnswers
from blowfishdb.mechanisms.reuse import Label, Offer
from blowfishdb.messages.answers import Answer, PaidUnder, Receipt
from blowfishdb.messages.arranged import arranged
from blowfishdb.messages.questions import Request
from blowfishdb.messages.quotes import TogetherQuote
from blowfishdb.service.identity import counted, identity
from blowfishdb.service.planning import project_any
from blowfishdb.service.policies import FROM_STORED, check_promises, told_apart
from blowfishdb.service.prices import Prices
from blowfishdb.service.records import DatasetEntry
from blowfishdb.service.reuse import Basket
from blowfishdb.service.stored import StoredAnswers, read_answer
from blowfishdb.service.synthesis import from_answers
from blowfishdb.service.tasks import CountTask, ErrorBound, Outcome, Problem, Task, answer_of
from blowfishdb.service.together import Group, Settled, settle_on, suggest

Result = TypeVar("Result")

_PLANS: Final = 5
"""How often a question is planned whose rows are declared anew meanwhile."""


@final
@dataclass(frozen=True, eq=False)
class Service(Prices):
    """Answers requests over the datasets of one workspace: steps 4 to 7 behind those of prices."""

    backend: Callable[[DatasetEntry], Backend]
    noise: Noise
    mark: str = ""
    """What is said before every question, if its rows are not to be taken for real."""

    def ask(self, request: Request, *, together: Basket | None = None) -> Answer:
        """All seven steps. An identical question returns its stored answer at no cost.

        ``together``: questions that were settled on together with this one, before any answer. A refresh in
        another process while it is being planned is no reason to refuse it: it is planned anew.
        """
        whole = request.whole
        return self._shown(self._persistently([whole], lambda: self._asked(whole, together)), request)

    def _persistently(self, requests: Sequence[Request], attempt: Callable[[], Result]) -> Result:
        """The result of an attempt that is made anew while others refine, or rows are declared anew."""
        names = {request.dataset for request in requests}
        for _ in range(_PLANS - 1):
            before = {name: self.datasets(name) for name in names}
            try:
                return attempt()
            except AlreadyRefined:
                continue  # by someone else, since the price was worked out: it is worked out anew
            except (PolicyConflict, SourceError) as error:
                changed = [name for name in names if before[name].version != self.datasets(name).version]
                rows = all(_only_rows_changed(before[name], self.datasets(name)) for name in changed)
                if error.charged or not changed or not rows:
                    raise
        return attempt()

    def _asked(self, request: Request, together: Basket | None) -> Answer:
        """All seven steps, over the declaration as it is now."""
        earlier = self.asked_before(request)
        if earlier is not None:
            return earlier
        dataset, request = self.datasets(request.dataset), self.resolved(request, self.ask)
        if request.form.source is not None:
            return self._synthesized(request, dataset)
        problem = project_any(request, dataset.policy)
        stored = self.stored(request, dataset, problem)
        if stored.answer is not None:
            return stored.answer
        sources = (self._known, self._read_off, partial(self._reused, together=together))
        answer = next((found for source in sources if (found := source(stored)) is not None), None)
        if answer is not None:
            return answer
        task = self._priced(request, dataset, problem, self.standing(dataset))
        losses = self._losses(dataset, task)
        _check_cost(debit(task.cost, losses), request.max_cost)
        with self._advised(task, dataset):
            return self._made(Settled.alone(task, dataset))[0]

    def ask_all(self, requests: Sequence[Request], *, max_cost: Epsilon | None = None) -> list[Answer]:
        """Questions that were settled on before any of them is answered: planned together (``together``).

        Charged as a whole or not at all: refused if that exceeds ``max_cost`` or the budget. Of rows that are
        declared anew meanwhile it is planned anew.
        """
        whole = [request.whole for request in requests]
        answers = self._persistently(whole, lambda: self._asked_together(whole, max_cost))
        return [self._shown(answer, request) for answer, request in zip(answers, requests, strict=True)]

    def _shown(self, answer: Answer, request: Request) -> Answer:
        """An answer as it was asked to be shown; what is stored of it is whole."""
        form = request.form
        return arranged(answer, form, self.datasets(request.dataset).domain) if form.arrangement else answer

    def quote_all(self, requests: Sequence[Request]) -> TogetherQuote:
        """What questions would cost that are settled on together. Free, like every quote."""
        resolved = [self.resolved(request) for request in requests]
        settled = settle_on(self, resolved)
        return replace(settled.quote, wider=suggest(self, resolved, settled))

    def _asked_together(self, requests: Sequence[Request], max_cost: Epsilon | None) -> list[Answer]:
        """What is free comes first, because one more release may be one too many to choose among.

        Only releases that these questions make are settled on together with those that follow from them: an
        answer that was out before may be why somebody asks.
        """
        answers = {
            number: answer
            for number, request in enumerate(requests)
            if (answer := self.asked_before(request)) is not None
        }
        paid = sum((answer.receipt.debit for answer in answers.values()), Epsilon(0))
        left = [number for number in range(len(requests)) if number not in answers]
        settled = settle_on(self, [self.resolved(requests[number], self.ask) for number in left])
        _check_cost(settled.most + paid, max_cost)
        self._check_together(settled, requests[0].user)
        within = max_cost and max_cost - paid - settled.most
        free = [number for number, quote in zip(left, settled.quotes, strict=True) if not quote.most]
        answered = {number: self.ask(replace(requests[number], max_cost=within)) for number in free}
        answers |= {left[number]: answer for number, answer in self._made(settled).items()}
        basket = Basket(answer.number for answer in answers.values())
        for number in left:
            if number not in answers and number not in answered:
                request = replace(requests[number], max_cost=within)
                answered[number] = self.ask(request, together=basket)
        answers |= answered
        return [answers[number] for number in range(len(requests))]

    def _check_together(self, settled: Settled, user: str) -> None:
        """Refuse what the budget, or an earlier promise, does not allow as a whole."""
        for name, needed in settled.by_dataset().items():
            left = self.ledger.left(name, user)
            if needed > left:
                raise BudgetExhausted(
                    f"The budget of '{name}' does not reach: these questions may need {needed}, {left} left.",
                    needed=needed,
                    left=left,
                    fixes=("fewer questions at once", "larger errors", "ask the curator for more"),
                )
        check_promises(settled.by_books)

    def asked_before(self, request: Request) -> Answer | None:
        """What the ledger has for the key of a request: its answer, or the refusal that it stays with."""
        if request.key is None:
            return None
        found = self.ledger.charged_under(request.user, request.key).get(request.key.part)
        return None if found is None else read_answer(found)

    # --- where an answer comes from, the first that has one ---------------------------------------

    def _known(self, stored: StoredAnswers) -> Answer | None:
        """What everyone knows already, on record like every other answer; no row is read."""
        request, dataset, problem = stored.request, stored.dataset, stored.problem
        task = self.planner.given(problem, request) if isinstance(problem, Projected) else None
        if task is None:
            return None
        plan = task.choice.plan
        assert isinstance(plan, KnownAnswers)
        outcome = Outcome(partial(task.answer, plan.told()))
        return self._record(outcome, request, dataset, problem, plan.name, task.known)

    def _read_off(self, stored: StoredAnswers) -> Answer | None:
        """What can be read off stored counts that are as close as is needed, on record like every other."""
        request, dataset, problem, closest = stored.request, stored.dataset, stored.problem, stored.closest
        if closest is None:
            return None
        assert isinstance(problem, Projected)
        release = Release(closest.answer.raw, closest.exact, closest.bound.margin, closest.bound.simultaneous)
        answer = partial(answer_of, request, problem, closest.bound, release, interval=Label.ANY.value)
        return self._record(Outcome(answer), request, dataset, problem, FROM_STORED)

    def _reused(self, stored: StoredAnswers, together: Basket | None) -> Answer | None:
        """What follows from stored answers by arithmetic, on record like every other answer."""
        request, dataset, problem = stored.request, stored.dataset, stored.problem
        offer = stored.offer(together)
        if offer is None:
            return None
        assert isinstance(problem, Projected)
        outcome, _ = _following(offer, request, problem)
        return self._record(outcome, request, dataset, problem, FROM_STORED)

    def _synthesized(self, request: Request, dataset: DatasetEntry) -> Answer:
        """A synthetic table from what is out already, on record like every other answer; no row is read."""
        found, problem = self.collected(request, dataset)
        stored = self.stored(request, dataset, problem).answer
        if stored is not None:
            return stored
        return self._record(from_answers(request, problem, found), request, dataset, problem, FROM_STORED)

    def _made(self, settled: Settled) -> dict[int, Answer]:
        """From the rows: steps 4 to 7, the same for every kind of question, for one or for several at once.

        Several are charged in one transaction, and each is marked when it is read: what fails before that is
        given back. Those that share releases are answered once all of these are out.
        """
        if not settled.tasks:
            return {}
        tasks, entries = settled.tasks, settled.entries
        statements = {number: task.prepare(self.backend(entries[number])) for number, task in tasks.items()}
        for task in tasks.values():
            if task.request.cancel is not None:
                task.request.cancel.check()
        losses = {number: self._losses(entries[number], task) for number, task in tasks.items()}
        asked = [self._reservation(task, entries[n], settled.due[n], losses[n]) for n, task in tasks.items()]
        at_once = len(asked) == 1
        charges = dict(zip(tasks, self.ledger.reserve_all(asked, reading=at_once), strict=True))
        answers: dict[int, Answer] = {}
        with self._committed(charges.values()):
            for group in settled.groups:
                outcomes: dict[int, Outcome] = {}
                for number in group.made:
                    if not at_once:
                        self.ledger.mark_reading(charges[number])
                    outcomes[number] = statements[number].run(self.noise)
                for number, (outcome, promise) in _told(group, outcomes).items():
                    task, dataset = group.tasks[number], entries[number]
                    if number not in charges:
                        bound = _bound(dataset, task.problem, promise)
                        answers[number] = self._record(
                            outcome, task.request, dataset, task.problem, FROM_STORED, bound=bound
                        )
                        continue
                    sql, name = statements[number].sql, tasks[number].mechanism
                    receipt = _receipt(
                        task.request, dataset, charges[number], name, sql, task.known, losses[number]
                    )
                    bound = _bound(dataset, task.problem, promise)
                    declared = None if dataset.copy is not None else dataset.version  # a copy cannot change
                    answers[number] = self._settle(charges[number], outcome, receipt, bound, declared)
        return answers

    def _record(
        self,
        outcome: Outcome,
        request: Request,
        dataset: DatasetEntry,
        problem: Problem,
        mechanism: str,
        known: str = "",
        bound: Mapping[str, object] | None = None,
    ) -> Answer:
        """An answer for which no row is read: on record without the mark that one is."""
        nothing = {kept.version: Epsilon(0) for kept in self.promises(dataset.name)}
        asked = _held(request, dataset, problem, {"mechanism": mechanism}, Epsilon(0), nothing)
        (charge,) = self.ledger.reserve_all([asked])
        try:
            receipt = _receipt(request, dataset, charge, mechanism, "", known)
            return self._settle(charge, outcome, receipt, bound)
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
        answer = outcome.answer(replace(receipt, question=f"{self.mark}{receipt.question}"))
        body = written(
            {
                "answer": answer.to_plain(),
                "release": outcome.kept,
                "replaces": charge.refines,
                **(bound or {}),
                **outcome.beside,
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

    def _reservation(
        self, task: Task, dataset: DatasetEntry, due: Epsilon, losses: Mapping[int, Epsilon]
    ) -> Reservation:
        """What step 4 holds for a task."""
        how = {"mechanism": task.mechanism, "alone": str(task.cost)}
        if isinstance(task, CountTask) and task.refining is not None:
            how["whole"] = str(task.choice.loss * dataset.rows_per_person)
        return _held(task.request, dataset, task.problem, how, due, losses, task.refines)

    @contextmanager
    def _advised(self, task: Task, dataset: DatasetEntry) -> Iterator[None]:
        """A refusal for want of budget says what would fit."""
        try:
            yield
        except BudgetExhausted as refusal:
            left = self.ledger.left(dataset.books, task.request.user)
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
    def _committed(self, charges: Collection[Charge]) -> Iterator[None]:
        """Steps 5 to 7: from the reading mark on charges stand, whatever happens; an error says if any do."""
        try:
            yield
        except BaseException as error:
            stands = [self._given_up(charge, type(error).__name__) for charge in charges]
            if isinstance(error, BlowfishError):
                error.charged = any(stands)
            raise

    def _given_up(self, charge: Charge, reason: str) -> bool:
        """Whether anybody has paid for a charge that is ended: given back if no row was read, else lost."""
        ended = None
        with suppress(WorkspaceError):  # unfinished charges stay spent until they are recovered as lost
            ended = self.ledger.end(charge, reason).state
        return bool(charge.debit) and ended is not State.VOID


def _held(
    request: Request,
    dataset: DatasetEntry,
    problem: Problem,
    how: Mapping[str, str],
    amount: Epsilon,
    losses: Mapping[int, Epsilon],
    refines: int | None = None,
) -> Reservation:
    """What is held for a question, under the policy and the declaration that it was planned for."""
    detail = {
        "question": request.question.describe(),
        **how,
        "policy_version": dataset.policy_version,
        "snapshot": dataset.snapshot,
        **({} if dataset.part_of is None else {"table": dataset.table_name}),
    }
    return Reservation(
        dataset.books,
        request.user,
        amount,
        identity(request, dataset, problem),
        detail,
        once=True,
        version=dataset.policy_version,
        declared=dataset.version,
        losses=losses,
        key=request.key,
        refines=refines,
    )


def _told(group: Group, outcomes: Mapping[int, Outcome]) -> dict[int, tuple[Outcome, ErrorBound | None]]:
    """What questions are answered now that the releases they share are out."""
    out = dict(outcomes) | {n: each for outcome in outcomes.values() for n, each in outcome.others.items()}
    told = {number: (outcome, group.tasks[number].promise) for number, outcome in out.items()}
    for number, offer in group.offers({n: outcome.kept for n, outcome in outcomes.items()}).items():
        task = group.tasks[number]
        assert isinstance(task, CountTask)
        outcome, promise = _following(offer, task.request, task.problem)
        kept = outcomes[number].kept if number in outcomes else None
        told[number] = replace(outcome, kept=kept), promise
    return told


def _following(offer: Offer, request: Request, problem: Projected) -> tuple[Outcome, ErrorBound]:
    """An answer that follows from releases by arithmetic, and what is promised of it."""
    assert request.terms.accuracy is not None
    needed = request.counts.kind.requirement(request.terms.accuracy, problem.axes)
    combination = offer.combination
    release = Release(combination.values(), combination.exact, offer.alpha, needed.simultaneous)
    shown = request.counts.kind.promised(offer.alpha, problem.axes)
    promise = ErrorBound(offer.alpha, shown, needed.beta, needed.simultaneous)
    return Outcome(
        partial(answer_of, request, problem, promise, release, interval=offer.label.value)
    ), promise


def _bound(dataset: DatasetEntry, problem: Problem, promise: ErrorBound | None) -> dict[str, object]:
    """What is promised of the counts behind an answer: others are read from them for nothing."""
    return {} if promise is None else {"about": counted(dataset, problem), "bound": asdict(promise)}


def _only_rows_changed(before: DatasetEntry, now: DatasetEntry) -> bool:
    """Whether there are other rows, under the same columns and the same policy."""
    same = before.domain == now.domain and before.policy_version == now.policy_version
    return same and before.version != now.version


def _check_cost(epsilon: Epsilon, max_cost: Epsilon | None) -> None:
    if max_cost is not None and epsilon > max_cost:
        raise MaxCostExceeded(
            f"This answer costs {epsilon:.3g}, more than the {max_cost} you allowed. Nothing was charged.",
            cost=epsilon,
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
        debit=charge.debit,
        known=known,
        head=charge.head,
        promised=tuple(PaidUnder(version, loss) for version, loss in losses.items()),
    )
