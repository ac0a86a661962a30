"""Questions that read like sentences, wherever the data is.

q = ws["salaries"]["salary"].cumulative(bins=20).accurate_to(50, confidence=0.95)
q.quote()            # free
a = q.ask()          # charged once; asking again returns the stored answer
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

from blowfishdb.adapters.store.values import RequestKey
from blowfishdb.core.budget import AnyEpsilon, Epsilon
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.policy.codec import digest
from blowfishdb.core.questions.aggregates import Measure
from blowfishdb.core.questions.arrangement import Arrangement
from blowfishdb.core.questions.clusters import USUAL_ITERATIONS
from blowfishdb.core.questions.conditions import all_sets
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.policies import TableFacts
from blowfishdb.messages.questions import Request, Terms
from blowfishdb.messages.quotes import Quote
from blowfishdb.workspace.gateway import Gateway


@final
@dataclass(frozen=True, eq=False)
class Columns:
    """One or more columns of a dataset, about to be asked about; nothing is read or spent by that.

    >>> people["salary"].cumulative(width=5_000).spend("0.1").quote().alpha
    59
    >>> people["region", "age"].histogram(bins=4).accurate_to(40).quote().question
    'histogram of region (3 bins) and age (4 bins)'
    """

    answering: Gateway
    dataset: str
    domain: Domain
    names: tuple[str, ...]
    condition: Predicate = field(default_factory=Everything)
    tables: tuple[TableFacts, ...] = ()

    def __post_init__(self) -> None:
        for name in self.names:
            _ = self.domain[name]

    def histogram(
        self,
        bins: int | None = None,
        *,
        width: object = None,
        edges: Sequence[object] | None = None,
        groups: Mapping[str, Iterable[object]] | None = None,
        part: str | None = None,
    ) -> Asking:
        """How many rows fall into each bin."""
        return self._asking(QuestionForm("histogram", self._cut(bins, width, edges, groups, part)))

    def cumulative(
        self, bins: int | None = None, *, width: object = None, edges: Sequence[object] | None = None
    ) -> Asking:
        """How many rows fall into each bin or below it."""
        return self._asking(QuestionForm("cumulative", self._cut(bins, width, edges)))

    def marginals(self, ways: int = 2, bins: int | None = None, *, width: object = None) -> Asking:
        """The histograms of every ``ways`` of these columns, in one release."""
        columns = self._cut(bins, width)
        return self._asking(QuestionForm("marginals", columns, sets=all_sets(self.names, ways)))

    def ranges(self, bounds: Iterable[Sequence[Any]]) -> Asking:
        """How many rows have a value from ``lo`` to ``hi``, both included, for each pair.

        Of several columns each is a rectangle: a pair for every column, ``((20, 29), (0, 9_999))``.
        """
        return self._asking(QuestionForm("ranges", self._cut(), bounds=tuple(map(tuple, bounds))))

    def top(self, count: int, bins: int | None = None, *, width: object = None) -> Asking:
        """The fullest bins: none that is more than α short of its place, none missed by more than α."""
        return self._asking(QuestionForm("top", self._cut(bins, width), count=count))

    def above(self, limit: float, bins: int | None = None, *, width: object = None) -> Asking:
        """The bins with more than ``limit`` rows, give or take α."""
        return self._asking(QuestionForm("above", self._cut(bins, width), limit=limit))

    def partition(self, parts: int, bins: int | None = None, *, width: object = None) -> Asking:
        """These columns cut where the rows are (a k-d tree), into parts of about as many rows each."""
        return self._asking(QuestionForm("partition", self._cut(bins, width), count=parts))

    def quantiles(self, shares: Iterable[float], bins: int | None = None, *, width: object = None) -> Asking:
        """The values below which the given shares of the rows lie; accuracy counts people."""
        return self._asking(QuestionForm("quantiles", self._cut(bins, width), shares=tuple(shares)))

    def median(self, bins: int | None = None, *, width: object = None) -> Asking:
        """The value in the middle; accuracy counts people."""
        return self.quantiles([0.5], bins, width=width)

    def sum(self) -> Asking:
        """The sum, in the column's own units."""
        return self._asking(QuestionForm("sum", self._cut()))

    def mean(self, *, group_size: int | None = None) -> Asking:
        """The mean; where the number of rows is hidden, its error is promised of ``group_size`` or more."""
        return self._asking(QuestionForm("mean", self._cut(), group_size=group_size))

    def var(self) -> Asking:
        """The variance; goes with ``spend``."""
        return self._aggregated("variance")

    def std(self) -> Asking:
        """The standard deviation; goes with ``spend``."""
        return self._aggregated("stddev")

    def _aggregated(self, of: str) -> Asking:
        measures = tuple(Measure(of, name) for name in self.names)
        return self._asking(QuestionForm("aggregates", (), measures=measures))

    def count(self) -> Asking:
        """How many rows have a value in this column."""
        return self._asking(QuestionForm("count", self._cut()))

    def clusters(self, k: int, iterations: int = USUAL_ITERATIONS) -> Asking:
        """Around which ``k`` points the rows gather, and how many are nearest to each; goes with ``spend``.

        Found in so many noisy rounds, or from one noisy histogram if that is expected to be closer.
        """
        return self._asking(QuestionForm("clusters", self._cut(), k=k, iterations=iterations))

    def _cut(
        self,
        bins: int | None = None,
        width: object = None,
        edges: Sequence[object] | None = None,
        groups: Mapping[str, Iterable[object]] | None = None,
        part: str | None = None,
    ) -> tuple[ColumnForm, ...]:
        starts = None if edges is None else tuple(edges)
        parts = None if groups is None else {name: tuple(values) for name, values in groups.items()}
        return tuple(ColumnForm(name, bins, width, starts, parts, part) for name in self.names)

    def _asking(self, form: QuestionForm) -> Asking:
        return asking(self.answering, self.dataset, self.domain, form.only(self.condition), self.tables)


@final
@dataclass(frozen=True, eq=False)
class Groups:
    """Rows in groups, by columns or bins of them; all rows if there is none.

    Every aggregate of a question is read from one release. Each has a noise interval; where that is all of
    the declared values there are too few rows to say anything, and the value is not a number.

    >>> by_region = people.by("region")
    >>> by_region.mean("salary").spend("0.5").quote().promise
    'In 95 of 100 runs every true value lies in its noise interval.'
    >>> by_region.by("age", width=10).aggregate(("mean", "salary"), "count").spend("0.5").quote().question
    'mean of salary and number of rows by region (3 groups) and age (8 groups)'
    """

    answering: Gateway
    dataset: str
    domain: Domain
    columns: tuple[ColumnForm, ...] = ()
    condition: Predicate = field(default_factory=Everything)
    tables: tuple[TableFacts, ...] = ()

    def by(
        self,
        *columns: str,
        bins: int | None = None,
        width: object = None,
        edges: Sequence[object] | None = None,
        groups: Mapping[str, Iterable[object]] | None = None,
        part: str | None = None,
    ) -> Groups:
        """In smaller groups: by these columns too, each value alone or in bins."""
        starts = None if edges is None else tuple(edges)
        parts = None if groups is None else {name: tuple(values) for name, values in groups.items()}
        more = tuple(ColumnForm(name, bins, width, starts, parts, part) for name in columns)
        for column in more:
            column.axis(self.domain)
        return replace(self, columns=(*self.columns, *more))

    def count(self, column: str | None = None) -> Asking:
        """How many rows each group has, or how many with a value of a column."""
        if column is None and self.columns:
            return self._asking(QuestionForm("histogram", self.columns))
        if not self.columns:
            named = () if column is None else (ColumnForm(column),)
            return self._asking(QuestionForm("count", named))
        return self.aggregate(("count", column))

    def sum(self, column: str) -> Asking:
        """The sum of a column in each group, in its own units."""
        return self.aggregate(("sum", column))

    def mean(self, column: str, *, group_size: int | None = None) -> Asking:
        """The mean of a column in each group; its error is promised of groups of ``group_size`` rows."""
        return self.aggregate(("mean", column), group_size=group_size)

    def var(self, column: str) -> Asking:
        """The variance of a column in each group; goes with ``spend``."""
        return self.aggregate(("variance", column))

    def std(self, column: str) -> Asking:
        """The standard deviation of a column in each group; goes with ``spend``."""
        return self.aggregate(("stddev", column))

    def aggregate(
        self, *measures: str | tuple[str, str | None] | Measure, group_size: int | None = None
    ) -> Asking:
        """Several at once, in one release: ``aggregate(("mean", "salary"), "count")``."""
        asked = tuple(_measure(each) for each in measures)
        return self._asking(QuestionForm("aggregates", self.columns, measures=asked, group_size=group_size))

    def cumulative(
        self,
        column: str,
        bins: int | None = None,
        *,
        width: object = None,
        edges: Sequence[object] | None = None,
    ) -> Asking:
        """How many rows of each group fall into each bin of a column or below it."""
        starts = None if edges is None else tuple(edges)
        cut = ColumnForm(column, bins, width, starts)
        return self._asking(QuestionForm("cumulative", (cut,), by=self.columns))

    def ranges(self, columns: str | Sequence[str], bounds: Iterable[Sequence[Any]]) -> Asking:
        """How many rows of each group lie in each range of a column, or rectangle of several."""
        named = tuple(map(ColumnForm, (columns,) if isinstance(columns, str) else columns))
        return self._asking(QuestionForm("ranges", named, bounds=tuple(map(tuple, bounds)), by=self.columns))

    def quantiles(
        self, column: str, shares: Iterable[float], bins: int | None = None, *, width: object = None
    ) -> Asking:
        """The values of a column below which the given shares of each group lie; accuracy counts people."""
        cut = ColumnForm(column, bins, width)
        return self._asking(QuestionForm("quantiles", (cut,), shares=tuple(shares), by=self.columns))

    def median(self, column: str, bins: int | None = None, *, width: object = None) -> Asking:
        """The value in the middle of each group; accuracy counts people."""
        return self.quantiles(column, [0.5], bins, width=width)

    def counts(self, conditions: Mapping[str, Predicate]) -> Asking:
        """How many rows of each group satisfy each condition, in one release; conditions may overlap."""
        return self._asking(QuestionForm("counts", self.columns, conditions=tuple(conditions.items())))

    def _asking(self, form: QuestionForm) -> Asking:
        return asking(self.answering, self.dataset, self.domain, form.only(self.condition), self.tables)


def asking(
    answering: Gateway, dataset: str, domain: Domain, form: QuestionForm, tables: Sequence[TableFacts] = ()
) -> Asking:
    """A question about a dataset; of several tables, the one nearest to people that has its columns."""
    if not tables:
        return Asking(answering, dataset, domain, form)
    columns = set(form.mentioned)
    for name in columns:
        _ = domain[name]
    fitting = [table for table in tables if columns <= set(table.columns)]
    if not fitting:
        raise InvalidInput(
            f"No row has {' and '.join(map(repr, sorted(columns)))} together: keys lead from a row to what "
            "it belongs to, and from there to no other rows.",
            fixes=tuple(f"columns of {table.name}: {', '.join(table.columns)}" for table in tables),
        )
    table = min(fitting, key=lambda each: len(each.columns)) if columns else tables[0]
    return Asking(answering, f"{dataset}.{table.name}", domain.project(*table.columns), form)


def _measure(said: object) -> Measure:
    if isinstance(said, Measure):
        return said
    if isinstance(said, str):
        return Measure(said)
    if isinstance(said, tuple) and len(said) == 2:
        return Measure(*said)
    raise InvalidInput("An aggregate is named with its column.", fixes=("('mean', 'salary')", "'count'"))


@final
@dataclass(frozen=True, eq=False)
class Asking:
    """A question, and what it may cost.

    >>> question = people["salary"].cumulative(bins=20).accurate_to(50, confidence=0.95)
    >>> question.quote().epsilon
    Epsilon('0.117114263')
    >>> question.ask(max_cost="0.12").receipt.cost
    Epsilon('0.117114263')
    >>> question.ask().receipt.cost  # the stored answer
    Epsilon('0')
    """

    answering: Gateway
    dataset: str
    domain: Domain
    form: QuestionForm
    terms: Terms = field(default_factory=Terms)

    def __post_init__(self) -> None:
        self.form.question(self.domain)

    def accurate_to(self, alpha: float, *, confidence: float = 0.95, each: bool = False) -> Asking:
        """Within ±alpha, ``confidence`` of the time: on all answers at once, or on each by itself."""
        return replace(self, terms=self.terms.accurate_to(alpha, confidence, each))

    def spend(self, epsilon: AnyEpsilon) -> Asking:
        """As accurate as ``epsilon`` allows."""
        return replace(self, terms=self.terms.spending(epsilon))

    def using(self, mechanism: str | None) -> Asking:
        """Answered by the mechanism of that name instead of by the cheapest.

        Those whose error depends on the data ("adaptive" chooses among them) go with ``spend`` only. Clusters
        are found by "kmeans-rounds" or "kmeans-histogram".
        """
        return replace(self, terms=replace(self.terms, mechanism=mechanism))

    def order_by(self, *keys: str, descending: bool = False) -> Asking:
        """The groups of the answer in another order: ``order_by("mean(salary) desc", "region")``; free.

        An order is no part of a question: what is released, and what it costs, stays the same.
        """
        asked = self._typed(f"order by {', '.join(keys)}") if keys else self
        order = tuple(
            replace(key, descending=key.descending or descending) for key in asked.form.arrangement.order
        )
        return self._arranged(replace(self.form.arrangement, order=order if keys else ()))

    def having(self, condition: str) -> Asking:
        """Only groups whose released numbers are so: ``having("count() > 100")``; noise has its say in it."""
        return self._typed(f"having {condition}")

    def across(self, *columns: str) -> Asking:
        """Groups by these columns beside each other, so that numbers of different ones are computed together.

        ``ds.by("sex").mean("salary").across("sex").show(gap="mean(salary)['F'] - mean(salary)['M']")``
        """
        return self._arranged(replace(self.form.arrangement, across=columns))

    def show(self, **numbers: str) -> Asking:
        """Other numbers, computed from the released ones: ``show(share="100 * count() / total(count())")``.

        Sums, differences, multiples and quotients, and ``round(…, 2)``; divisions are exact. Each has the
        interval that follows from those of what it is computed from, or none: too few rows to say.
        """
        listed = ", ".join(f'{number} as "{name}"' for name, number in numbers.items())
        return self._typed(f"show {listed}")

    def _typed(self, tail: str) -> Asking:
        from blowfishdb.language.arrangement import read_tail  # what is not typed as text needs no parser

        return replace(self, form=read_tail(tail, self.form, self.domain))

    def limit(self, count: int | None, *, offset: int = 0) -> Asking:
        """The first groups of the answer, as they are ordered; what is left out is measured all the same."""
        return self._arranged(replace(self.form.arrangement, limit=count, offset=offset))

    def _arranged(self, arrangement: Arrangement) -> Asking:
        return replace(self, form=replace(self.form, arrangement=arrangement))

    def quote(self, *, more: bool = True, cancel: Cancellation | None = None) -> Quote:
        """What the answer costs; free.

        Without ``more`` the price alone, which comes first: ``plain_epsilon`` is None, and neither what is
        cheaper nor what fits is looked for.
        """
        return self.answering.quote(replace(self.request(), cancel=cancel), more=more)

    def ask(
        self,
        *,
        max_cost: AnyEpsilon | None = None,
        cancel: Cancellation | None = None,
        progress: Progress | None = None,
        key: str | RequestKey | None = None,
    ) -> Answer:
        """The answer, charged once; ``progress`` is told how many rounds are done, and how many there are.

        Under a ``key`` of your own it is charged once for ever: sent again, also after a crash, it brings the
        same answer, or the same refusal if that was lost.
        """
        limit = None if max_cost is None else Epsilon(max_cost)
        request = self.request(self.keyed(key))
        return self.answering.ask(request, max_cost=limit, cancel=cancel, progress=progress)

    def keyed(self, key: str | RequestKey | None) -> RequestKey | None:
        """A key, for this very question."""
        if not isinstance(key, str):
            return key
        return RequestKey(key, digest({"dataset": self.dataset, **self.to_plain()}))

    def request(self, key: RequestKey | None = None) -> Request:
        """The question on its terms, as the service takes it."""
        question = self.form.question(self.domain)
        return Request(self.dataset, self.form, question, self.terms, self.answering.user, key)

    def counting(self) -> Asking:
        """How many rows this question is about: what a mean needs to be on record."""
        return replace(self, form=self.form.counting(self.domain), terms=Terms().spending(1))

    def to_plain(self) -> dict[str, Any]:
        """The question and its terms as JSON-ready data."""
        return {"question": self.form.to_plain(), **self.terms.to_plain()}
