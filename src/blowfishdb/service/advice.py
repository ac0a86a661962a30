"""Advice: what would be cheaper, and what still fits. Computed like a price, without data.

Suggestions: a refusal names only questions that would not be refused as well.

What is suggested is read and priced like any other question, from declarations and policy alone; no row is
read, and nothing is asked of anyone.

What it costs to keep secret whose values are missing, for the curator who has to choose.

One usual question is priced under a usual policy of the column, with missing values public and with missing
values secret. Nothing is read: prices follow from the declaration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, final

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.graphs import Full, Threshold
from blowfishdb.core.policy.columns import shown_distance
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.kinds import Cumulative, Histogram, Question
from blowfishdb.core.questions.projection import Projected, project
from blowfishdb.mechanisms import Best
from blowfishdb.messages.questions import (
    Request,
    Terms,
    in_groups,
    in_usual_bins,
    needs_rows,
    number_of_rows,
    over_rows,
)
from blowfishdb.messages.quotes import Alternative, Fit
from blowfishdb.service.planning import Planner, project_any
from blowfishdb.service.standing import Standing
from blowfishdb.service.tasks import CountTask, Task

_COARSER = (2, 5, 10, 20)
_ANYWAY = (Fit("an answer that is already stored"), Fit("ask the curator for more"))


def cheaper(planner: Planner, task: Task, standing: Standing) -> tuple[Alternative, ...]:
    """The same question with twice the error."""
    request, problem = task.request, task.problem
    asked = request.terms.accuracy
    if asked is None or task.free or not isinstance(problem, Projected):
        return ()
    doubled = replace(request, terms=replace(request.terms, accuracy=replace(asked, alpha=2 * asked.alpha)))
    return (Alternative(2 * asked.alpha, planner.price(problem, doubled, standing).cost),)


def affordable(
    planner: Planner,
    task: Task,
    standing: Standing,
    times: Fraction | float,
    left: Epsilon,
    fitting: Callable[[Task], bool],
) -> tuple[Fit, ...]:
    """What fits into what is left: a larger error, wider bins, or another decision.

    ``times``: for how many answers of this kind there is room; ``left``: the ε that may be stated;
    ``fitting``: whether there is room for another one.
    """
    wider = _wider_bins(planner, task.request, standing, fitting)
    if not isinstance(task, CountTask) or task.request.terms.accuracy is None:
        return what_is_left(left, *wider)
    return (*_larger_error(task, task.request.terms.accuracy, times), *wider, *_ANYWAY)


def what_is_left(left: Epsilon, *more: Fit) -> tuple[Fit, ...]:
    """What fits where an ε was stated: a smaller one."""
    smaller = (Fit(f"epsilon {left}", epsilon=left),) if left else ()
    return (*smaller, *more, *_ANYWAY)


def _larger_error(task: CountTask, asked: Accuracy, times: Fraction | float) -> Iterator[Fit]:
    rounded = 1 if task.choice.losses else 0  # losses under several promises are rounded up
    paid, more = Epsilon(0), task.choice.epsilon
    if task.refining is not None:  # what a release has already lost is not asked for again
        paid, more = task.refining.release.epsilon, task.refining.added.epsilon
    per_row = paid + Epsilon.from_nano(max(0, math.floor(more.nano * times) - rounded))
    if not per_row:
        return
    kind, axes = task.request.counts.kind, task.problem.axes
    needed = kind.requirement(asked, axes)
    margin = task.choice.plan.alpha_for(epsilon=per_row, beta=needed.beta, simultaneous=needed.simultaneous)
    error = _rounded_up(kind.promised(margin, axes))
    yield Fit(f"±{error:,g}", error=error)


def _rounded_up(alpha: float) -> float:
    """Two digits are enough to type, and rounding up keeps it affordable."""
    unit = 10 ** max(0, math.floor(math.log10(alpha)) - 1) if alpha > 0 else 1
    return math.ceil(alpha / unit) * unit


def _wider_bins(
    planner: Planner, request: Request, standing: Standing, fitting: Callable[[Task], bool]
) -> Iterator[Fit]:
    """The finest of a few coarser cuts that fits."""
    for times in _COARSER:
        coarser = _coarsened(request, standing.policy.domain, times)
        if coarser is None:
            return
        try:
            fits = fitting(planner.under(coarser, standing))
        except BlowfishError:
            return
        if fits:
            bins = coarser.form.columns[0].bins
            yield Fit(f"{bins:,} bins", bins=bins)
            return


def _coarsened(request: Request, domain: Domain, times: int) -> Request | None:
    """The question on one ordered column with fewer bins; None where there are few already."""
    form = request.form
    if (
        form.kind in ("aggregates", "synthetic")
        or len(form.columns) != 1
        or not form.cut_into_bins
        or not domain[form.columns[0].name].ordered
    ):
        return None
    bins = request.counts.axes[0].value_bins // times
    if bins < 2:
        return None
    column = replace(form.columns[0], bins=bins, width=None, edges=None, groups=None, part=None)
    coarser = replace(form, columns=(column,))
    return replace(request, form=coarser, question=coarser.question(domain))


@final
@dataclass(frozen=True, eq=False)
class Suggestions:
    """Reads what a refusal suggests, on one dataset under its policy."""

    dataset: str
    policy: Policy
    rows_per_person: int
    read: Callable[[str], QuestionForm]
    """The reader that refused."""

    @contextmanager
    def checked(self, *otherwise: str) -> Iterator[None]:
        """A refusal leaves with what can be priced of its suggestions; if nothing can, with ``otherwise``."""
        try:
            yield
        except BlowfishError as refusal:
            kept = tuple(fix for fix in refusal.fixes if self._stands(fix))
            if refusal.fixes and not kept:
                kept = tuple(fix for fix in otherwise if self._stands(fix))
            refusal.fixes = kept
            raise

    def _stands(self, fix: str) -> bool:
        """Whether it is advice in words, or a question that has a price."""
        if not _asks(fix):
            return True
        try:
            return self._priced(self.read(fix))
        except BlowfishError:
            return False

    def _priced(self, form: QuestionForm) -> bool:
        domain = self.policy.domain
        request = Request(self.dataset, form, form.question(domain), Terms().spending(1), "")
        planner = Planner(Best())
        if needs_rows(request):
            total = planner.plan(number_of_rows(request, domain), self.policy, self.rows_per_person)
            request = in_groups(request, domain) if total.cost else over_rows(request, domain, 1)
        if not isinstance(request.question, Question):
            standing = Standing(self.policy, self.rows_per_person)
            planner.task(request, project_any(request, self.policy), standing)
            return True
        if form.kind == "quantiles":
            request = in_usual_bins(request, self.policy)
        planner.check(request, self.policy, self.rows_per_person)
        return True


def _asks(fix: str) -> bool:
    """A SELECT, or a question in its short form: a name and what stands in parentheses."""
    name, opened, _ = fix.partition("(")
    return fix.startswith("SELECT ") or (bool(opened) and name.isidentifier() and ")" in fix)


_BINS = 20
_ERROR = Accuracy(50, 0.05)
_PARTS = 200


@final
@dataclass(frozen=True)
class MissingPrices:
    """A question in words, and its ε if it is public who has no value, and if it is secret."""

    question: str
    public: Epsilon
    secret: Epsilon

    def __str__(self) -> str:
        return f"{self.question}: ε {self.public:.3g} if it is public, ε {self.secret:.3g} if it is secret."


@lru_cache(maxsize=256)
def missing_prices(attribute: Attribute) -> MissingPrices:
    """Both prices of a usual question about a column."""
    public, secret = (_price(replace(attribute, missing=rule)) for rule in ("public", "value"))  # type: ignore[type-var]
    return MissingPrices(_words(attribute), public, secret)


def _reach(attribute: Attribute) -> int:
    return max(1, attribute.value_count // _PARTS)


def _words(attribute: Attribute) -> str:
    if not attribute.ordered:
        return "Counts of every value within ±50, where every two values are hidden"
    far = shown_distance(attribute, _reach(attribute))
    return f"A cumulative histogram of {_BINS} bins within ±50, where values within {far} are hidden"


def _price(attribute: Any) -> Epsilon:
    values: int = attribute.value_count
    line = attribute.ordered and values > 1
    kind = Cumulative() if attribute.ordered else Histogram()
    bins = attribute.bins(count=_BINS) if attribute.ordered else attribute.bins()
    graph = Threshold(values, _reach(attribute)) if line else Full(values)
    policy = Policy.by_column(Domain(column=attribute), {"column": graph})
    problem = project(Question(kind, (Axis("column", attribute, bins),)), policy)
    return Best().for_accuracy(problem.workload, problem.graph, _ERROR).epsilon
