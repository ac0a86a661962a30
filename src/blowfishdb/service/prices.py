"""Prices: steps 1 to 3 of every question. Project, plan, translate; free, nothing is read or written."""

from __future__ import annotations

import math
from abc import ABC
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from blowfishdb.adapters.copies.values import SourceKind
from blowfishdb.adapters.store.catalogue import KEPT_ROWS, Catalogue
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import StoredAnswer
from blowfishdb.core.accuracy import LARGEST_EPSILON, Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.domain.predicates import Everything
from blowfishdb.core.errors import Infeasible, InvalidInput, NotAllowed, NotCounted, NotProven, TooLarge
from blowfishdb.core.graphs.inclusion import includes
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.form import AnyQuestion
from blowfishdb.core.questions.kinds import Question, Sum
from blowfishdb.core.questions.projection import Projected
from blowfishdb.core.questions.synthesis import SyntheticProblem, SyntheticQuestion, listed
from blowfishdb.language.short import question_text
from blowfishdb.mechanisms.reuse.margins import Offer
from blowfishdb.mechanisms.synthesis import Collected
from blowfishdb.mechanisms.synthesis.moves import check_proven
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.policies import EarlierPolicy
from blowfishdb.messages.questions import (
    Request,
    Terms,
    balanced,
    can_be_balanced,
    for_groups_of,
    in_groups,
    in_usual_bins,
    needs_rows,
    needs_size,
    needs_total,
    number_of_rows,
    over_rows,
)
from blowfishdb.messages.quotes import Alternative, Fit, Quote, Sharpening, UnderPromise
from blowfishdb.messages.synthesis import SynthesisQuote
from blowfishdb.service.advice import affordable, cheaper
from blowfishdb.service.aggregates import AggregateTask
from blowfishdb.service.clusters import ClusterTask
from blowfishdb.service.planning import Planner, project_any
from blowfishdb.service.policies import FROM_STORED, past_loss, times_left
from blowfishdb.service.records import DatasetEntry, may_keep
from blowfishdb.service.reuse import StoredReleases
from blowfishdb.service.standing import Standing
from blowfishdb.service.stored import Closest, StoredAnswers, read_answer
from blowfishdb.service.synthesis import SynthesisTask, quoted
from blowfishdb.service.tasks import CountTask, ErrorBound, Problem, Task

_MOST_RELEASES = 200
"""Of which a free synthetic table is made, the newest."""


@dataclass(frozen=True, eq=False)
class Prices(ABC):
    """What questions about the datasets of one workspace cost."""

    datasets: Callable[[str], DatasetEntry]
    ledger: Ledger
    owned: StoredReleases
    planner: Planner
    promises: Callable[[str], Sequence[EarlierPolicy]]
    """Earlier policies of a dataset that are still kept, oldest first."""

    def stored(self, request: Request, dataset: DatasetEntry, problem: Problem) -> StoredAnswers:
        """What is out already about a question."""
        return StoredAnswers(self.ledger, self.owned, self.standing, request, dataset, problem)

    def plan(self, request: Request) -> Task:
        """Steps 1 to 3: the small problem, the mechanism, the price."""
        return self._task(self.resolved(request), self.datasets(request.dataset))

    def _task(self, request: Request, dataset: DatasetEntry) -> Task:
        return self._priced(request, dataset, project_any(request, dataset.policy), self.standing(dataset))

    def _priced(self, request: Request, dataset: DatasetEntry, problem: Problem, standing: Standing) -> Task:
        """The cheapest way to an answer: a new release, or one that is out with less noise.

        Only a copy of our own is known to be the same rows as before, byte for byte.
        """
        task = self._within(self.planner.task(request, problem, standing), dataset, standing)
        if isinstance(problem, SyntheticProblem):
            self._check_kept(problem.keep, dataset)
        if dataset.copy is None or not isinstance(task, CountTask):
            return task
        releases = self.owned.refinable(dataset.name, dataset.snapshot, task.problem.cells.axes)
        return self.planner.refined(task, releases, standing) if releases else task

    def _check_kept(self, keep: Sequence[str], dataset: DatasetEntry) -> None:
        """Rows are kept as they are where the curator has confirmed just that, column by column."""
        if not keep:
            return
        allowed = may_keep(Catalogue(self.ledger.store).get(KEPT_ROWS, dataset.books), dataset)
        if missing := [name for name in keep if name not in allowed]:
            raise NotAllowed(
                f"Kept rows are real rows of real people, and no curator has confirmed that rows of "
                f"{listed(missing)} may be kept. Nothing was charged.",
                fixes=("draw these columns too", "ask the curator to confirm them"),
            )

    def _within(self, task: Task, dataset: DatasetEntry, standing: Standing) -> Task:
        """The task with as much noise as it needs for an ε that was stated to hold under every promise.

        Plans for several promises have it. Where something is known, a plan is made for the policy of today
        alone, and what it loses under the others is proportional to its ε.
        """
        spent = task.request.terms.epsilon
        if spent is None or not standing.kept or standing.several:
            return task
        losses = [promise.epsilon for promise in self._under_promises(dataset, task)]
        most = max((loss for loss in losses if loss is not None), default=spent)
        if None in losses or most <= spent:  # what would be told apart exactly is refused
            return task
        less = spent.nano * spent.nano // most.nano - dataset.rows_per_person - 1  # losses are rounded up
        terms = replace(task.request.terms, epsilon=Epsilon.from_nano(max(1, less)))
        smaller = self.planner.task(replace(task.request, terms=terms), task.problem, standing)
        assert isinstance(smaller, CountTask | ClusterTask | AggregateTask)
        return replace(smaller, request=task.request)

    def standing(self, dataset: DatasetEntry) -> Standing:
        """All that is promised about a dataset, and what is left of it."""
        kept = tuple(self.promises(dataset.name))
        left = self.ledger.budget(dataset.books).remaining if kept else Epsilon(0)
        return Standing(dataset.policy, dataset.rows_per_person, left, kept)

    def standing_after(self, dataset: DatasetEntry, policy: Policy) -> Standing:
        """All that would be promised if ``policy`` were published now and nothing withdrawn."""
        budget, kept = self.ledger.budget(dataset.books), tuple(self.promises(dataset.name))
        if budget.used and not includes(policy.graph, dataset.policy.graph):
            today = EarlierPolicy(dataset.policy_version, dataset.policy, budget.total, budget.remaining)
            kept = (*kept, today)
        return Standing(policy, dataset.rows_per_person, budget.remaining, kept)

    def resolved(self, request: Request, ask: Callable[[Request], Answer] | None = None) -> Request:
        """The question with what its price depends on: the bins of quantiles, how many rows a mean has."""
        request = request.whole
        if request.form.kind == "quantiles":
            return self._balanced(in_usual_bins(request, self.datasets(request.dataset).policy))
        if needs_size(request):
            return self._sized(request, ask)
        if needs_total(request):
            return self._of_all_rows(request, ask)
        return self._counted(request, ask) if needs_rows(request) else request

    def _balanced(self, request: Request) -> Request:
        """Quantiles of rows whose number is hidden: from what lies on both sides, unless a curve is out.

        A curve errs by what the number of all rows errs, too; what is known beside it is about curves alone.
        """
        dataset = self.datasets(request.dataset)
        tied = dataset.policy.constraints is not None
        if tied or request.terms.mechanism is not None or not can_be_balanced(request):
            return request
        if self.planner.under(number_of_rows(request, dataset.domain), self.standing(dataset)).free:
            return request
        out = self.stored(request, dataset, project_any(request, dataset.policy))
        if out.same is not None or out.closest is not None or out.offer() is not None:
            return request
        return balanced(request)

    def _counted(self, request: Request, ask: Callable[[Request], Answer] | None) -> Request:
        """A mean, or a sum over wide cells, with the number of its rows, if that is public.

        A hidden one is measured with the rest of it.

        If it is not on record it is asked for, which is free, or, without ``ask``, the question has no price
        yet: a quote touches nothing.
        """
        dataset, kind = self.datasets(request.dataset), request.counts.kind
        assert isinstance(kind, Sum)
        total = number_of_rows(request, dataset.domain)
        planned = self.planner.under(total, self.standing(dataset))
        if not planned.free:
            if dataset.policy.constraints is not None:
                raise self._rows_hidden(request, dataset)
            return in_groups(request, dataset.domain)
        known = self._on_record(total, dataset, planned, ask)
        if known is not None:
            return over_rows(request, dataset.domain, int(known.values[0]))
        exactly = self.owned.offer(dataset.name, dataset.snapshot, planned.problem, Accuracy(0.5, 0.05))
        if exactly is None or not exactly.combination.exact.all():
            raise kind.uncounted(question_text(total.form))
        return over_rows(request, dataset.domain, int(exactly.combination.values()[0]))

    def _of_all_rows(self, request: Request, ask: Callable[[Request], Answer] | None) -> Request:
        """A synthetic table with the number of rows, which is public: asked for, or on record already."""
        dataset = self.datasets(request.dataset)
        check_proven(dataset.policy)
        total = number_of_rows(request, dataset.domain)
        planned = self._task(total, dataset)
        if not planned.free:
            raise NotProven(
                "Every column of this dataset may leave out rows, so how many rows there are is hidden, and "
                "a synthetic table needs it.",
                fixes=("ask the curator to declare a column that leaves out none",),
            )
        known = self._on_record(total, dataset, planned, ask)
        if known is None:
            raise _not_counted("A synthetic table", total)
        return over_rows(request, dataset.domain, int(known.values[0]))

    def _sized(self, request: Request, ask: Callable[[Request], Answer] | None) -> Request:
        """Means in groups of a public size are promised for every group that has rows.

        Where sizes are hidden, whoever asks says for how large groups; else they are asked for as above.
        """
        dataset = self.datasets(request.dataset)
        total = number_of_rows(request, dataset.domain)
        planned = self._task(total, dataset)
        if not planned.free:
            return request
        known = self._on_record(total, dataset, planned, ask)
        if known is None:
            raise _not_counted("A mean", total)
        sizes = known.values[known.values > 0]
        return for_groups_of(request, dataset.domain, int(sizes.min(initial=2**62)) if sizes.size else 1)

    def _on_record(
        self,
        total: Request,
        dataset: DatasetEntry,
        planned: Task,
        ask: Callable[[Request], Answer] | None,
    ) -> Answer | None:
        """A number of rows that was asked for before, or is now; None where there is no ``ask`` either."""
        known = self.stored(total, dataset, planned.problem).answer
        return ask(total) if known is None and ask is not None else known

    def _rows_hidden(self, request: Request, dataset: DatasetEntry) -> NotProven:
        """The refusal where the number of rows is hidden, with what can be asked instead."""
        kind, everywhere = request.counts.kind, replace(request.form, where=Everything())
        why = "a mean cannot be promised from a sum alone"
        if kind.name == "sum":
            why = "how much they add inside their cells cannot be said"
        narrow = request.counts.told_by_counts
        fixes = ["ask for the sum and the count"] if narrow else ["ask for quantiles"]
        all_rows = number_of_rows(replace(request, form=everywhere), dataset.domain)
        if self.planner.under(all_rows, self.standing(dataset)).free:
            fixes.append(f"ask for the {kind.name} of all rows")
        if not narrow:
            fixes.append("ask the curator to declare steps of one")
        return NotProven(f"The number of these rows is not public, so {why}.", fixes=tuple(fixes))

    def quote(self, request: Request, *, more: bool = True) -> Quote:
        """Steps 1 to 3: what the answer would cost. Free; the data is not touched, and nothing is written.

        Without ``more`` the price alone: not what plain differential privacy would cost, nor what is cheaper
        and what fits. Given up between two steps where the request says so.
        """
        with self.ledger.store.at_one_look():
            return self._quoted(request, more)

    def _quoted(self, request: Request, more: bool) -> Quote:
        cancel = request.cancel or Cancellation()
        cancel.check()
        dataset, request = self.datasets(request.dataset), self.resolved(request)
        task = self._task(request, dataset)
        known = self.stored(request, dataset, task.problem)
        stored = known.same
        closest = None if stored is not None else known.closest
        out = stored is not None or closest is not None
        sharpens = None if out else self._sharpened(request, dataset, task)
        offer = None if out or task.given else known.offer()
        owned = out or offer is not None
        promise, left = task.promise, self.ledger.left(dataset.books, request.user)
        alpha = self._given(stored, offer, request, task) if closest is None else closest.bound.alpha
        kept = () if owned or task.given else self._under_promises(dataset, task)
        granted = self.ledger.granted(dataset.books, request.user)
        times = times_left(task.cost, left, kept, granted)
        cancel.check()
        quote = Quote(
            dataset=dataset.name,
            question=request.question.describe(),
            kind=request.form.kind,
            epsilon=Epsilon(0) if owned else task.cost,
            alpha=alpha,
            beta=promise and promise.beta,
            simultaneous=promise is not None and promise.simultaneous,
            mechanism=FROM_STORED if offer or closest else task.mechanism,
            explanation=_explained(closest, offer) or _as_of(stored, dataset) or task.explanation,
            policy=dataset.policy.describe(),
            policy_version=dataset.policy_version,
            plain_epsilon=None,
            remaining=left,
            granted=granted,
            owned=owned,
            exact=not owned and task.free and _told_by_counts(request.question),
            notes=task.problem.notes,
            promises=kept,
            sharpens=None if owned else sharpens,
            group_size=request.form.group_size if request.form.kind == "aggregates" else None,
            columns=_columns(task),
        )
        if not more:
            return quote
        quote = replace(
            quote,
            plain_epsilon=self._plain_cost(request, dataset, promise),
            plain_alpha=self._plain_error(request, dataset, promise),
        )
        cancel.check()
        if owned:
            return quote
        return replace(
            quote,
            free_now=known.free_now,
            promises=self._withdrawing(task, dataset, quote),
            alternatives=() if sharpens else cheaper(self.planner, task, self.standing(dataset)),
            fits=self._fits(task, dataset, left, kept) if times < 1 else (),
        )

    def quote_synthesis(self, request: Request) -> SynthesisQuote:
        """The same of a synthetic table, with what is going to be measured for it."""
        if request.form.source is not None:
            return self._quoted_from_answers(request)
        quote = self.quote(request)
        task = self._task(self.resolved(request), self.datasets(request.dataset))
        assert isinstance(task, SynthesisTask)
        return quoted(task, quote)

    def collected(self, request: Request, dataset: DatasetEntry) -> tuple[Collected, SyntheticProblem]:
        """The stored releases that a synthetic table can be made from, or a refusal if there are none."""
        question = request.question
        assert isinstance(question, SyntheticQuestion)
        if dataset.kind is SourceKind.LIVE:
            raise NotProven(
                "These rows may have changed since they were asked about, so stored answers do not fit "
                "together.",
                fixes=("synthesize with an epsilon",),
            )
        releases = self.owned.every(dataset.name, dataset.snapshot, _MOST_RELEASES)
        found = Collected.of(releases, dataset.domain, question.columns)
        if not found.releases:
            raise InvalidInput(
                "No answer is out yet from which a synthetic table could be made.",
                fixes=("ask for histograms of some columns", "synthesize with an epsilon"),
            )
        axes = found.layout.axes
        return found, SyntheticProblem(axes, question.target, question.rows or 0, found.numbers)

    def _quoted_from_answers(self, request: Request) -> SynthesisQuote:
        dataset, request = self.datasets(request.dataset), self.resolved(request)
        found, problem = self.collected(request, dataset)
        columns = [axis.column for axis in problem.axes]
        quote = Quote(
            dataset=dataset.name,
            question=request.question.describe(),
            kind=request.form.kind,
            epsilon=Epsilon(0),
            alpha=None,
            beta=None,
            simultaneous=False,
            mechanism=FROM_STORED,
            explanation=f"Rows of {', '.join(columns)}, from a model of what stored answers say. Columns "
            "that no answer speaks of are left out; pairs that none speaks of are independent.",
            policy=dataset.policy.describe(),
            policy_version=dataset.policy_version,
            plain_epsilon=None,
            remaining=self.ledger.left(dataset.books, request.user),
            owned=True,
            notes=problem.notes,
        )
        return SynthesisQuote(quote, problem.rows, "from answers", (), 0, 0, None, 2.0, found.numbers)

    # --- what there is already --------------------------------------------------------------------

    def _sharpened(self, request: Request, dataset: DatasetEntry, task: Task) -> Sharpening | None:
        """The answer that the task makes more accurate, if it does."""
        if task.refines is None:
            return None
        before = read_answer(self.ledger.stored((task.refines,))[task.refines])
        alone = self.planner.task(request, task.problem, self.standing(dataset)).cost
        return Sharpening(task.refines, before.receipt.question, before.alpha or 0.0, alone)

    def _given(
        self, stored: StoredAnswer | None, offer: Offer | None, request: Request, task: Task
    ) -> float | None:
        """How accurate the answer is going to be: a stored one may be better than was asked."""
        if stored is not None:
            return read_answer(stored).alpha
        if offer is not None and isinstance(task.problem, Projected):
            return request.counts.kind.promised(offer.alpha, task.problem.axes)
        return task.promise and task.promise.alpha

    # --- what it costs otherwise ------------------------------------------------------------------

    def _plain_cost(self, request: Request, dataset: DatasetEntry, promise: ErrorBound | None) -> Epsilon:
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
            problem, standing = project_any(best, plain), Standing(plain, dataset.rows_per_person)
            return max(spent, self.planner.task(best, problem, standing).cost)
        except Infeasible:
            return LARGEST_EPSILON

    def _plain_error(
        self, request: Request, dataset: DatasetEntry, promise: ErrorBound | None
    ) -> float | None:
        """How far off the best plan under plain differential privacy would be at the ε that was stated."""
        spent = request.terms.epsilon
        if spent is None or promise is None or not isinstance(request.question, Question):
            return None
        best = replace(request, terms=Terms().spending(spent))
        plain = Policy.differential_privacy(dataset.domain)
        planned = self.planner.plan(best, plain, dataset.rows_per_person).promise
        return None if planned is None else planned.alpha

    def _withdrawing(self, task: Task, dataset: DatasetEntry, quote: Quote) -> tuple[UnderPromise, ...]:
        """What an answer costs under every promise, and what withdrawing the one that binds would do."""
        binding = quote.binding
        return tuple(
            replace(one, withdrawn=self.withdrawn(task, dataset, one.version)) if one is binding else one
            for one in quote.promises
        )

    def withdrawn(self, task: Task, dataset: DatasetEntry, version: int) -> Alternative | None:
        """The same question if an earlier promise were withdrawn; None where nothing can be promised then."""
        without = self.standing(dataset).without(version)
        try:
            other = self.planner.task(task.request, project_any(task.request, dataset.policy), without)
        except (NotProven, TooLarge, Infeasible):
            return None
        alpha = None if other.promise is None else other.promise.alpha
        return None if alpha is None else Alternative(alpha, other.cost)

    def _under_promises(self, dataset: DatasetEntry, task: Task) -> tuple[UnderPromise, ...]:
        """What an answer costs under every earlier policy that is kept, and what each has left."""
        kept = self.promises(dataset.name)
        kernel = task.kernel(dataset.policy, dataset.rows_per_person) if kept else None
        return tuple(
            UnderPromise(one.version, past_loss((kernel,), one.policy).epsilon, one.remaining)
            for one in kept
            if kernel is not None
        )

    def _fits(
        self, task: Task, dataset: DatasetEntry, left: Epsilon, kept: Sequence[UnderPromise]
    ) -> tuple[Fit, ...]:
        granted = self.ledger.granted(dataset.books, task.request.user)

        def fits(other: Task) -> bool:
            return times_left(other.cost, left, self._under_promises(dataset, other), granted) >= 1

        times, spent = times_left(task.cost, left, kept, granted), task.request.terms.epsilon
        if kept and spent is not None:  # an ε that is stated holds under every promise
            least = math.floor(spent.nano * times) - dataset.rows_per_person - 1  # losses are rounded up
            left = min(left, Epsilon.from_nano(max(0, least)))
        return affordable(self.planner, task, self.standing(dataset), times, left, fits)


def _columns(task: Task) -> int:
    """Along how many columns an answer counts rows, as it says itself."""
    if not isinstance(task, CountTask):
        return 1
    return max(1, len(task.request.counts.kind.of(task.problem.axes)))


def _told_by_counts(question: AnyQuestion) -> bool:
    return not isinstance(question, Question) or question.told_by_counts


def _as_of(stored: StoredAnswer | None, dataset: DatasetEntry) -> str:
    """What a stored answer about rows that may have changed is worth; nothing to say about others."""
    if stored is None or dataset.kind is not SourceKind.LIVE:
        return ""
    return f"Answered as of {stored.charge.changed_at:%Y-%m-%d %H:%M} UTC; the rows may have changed since."


def _explained(closest: Closest | None, offer: Offer | None) -> str:
    if closest is not None:
        return f"It is read off answer {closest.stored.charge.id}."
    if offer is None:
        return ""
    used = len(offer.combination.releases)
    return f"It follows by arithmetic from {used:,} stored answer{'s' if used > 1 else ''}."


def _not_counted(what: str, total: Request) -> NotCounted:
    return NotCounted(
        f"{what} needs the number of rows. It is public, but nobody has asked for it yet.",
        fixes=(f"ask for {question_text(total.form)} first: it is exact and free",),
    )
