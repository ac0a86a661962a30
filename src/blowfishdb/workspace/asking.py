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
from blowfishdb.core.domain.values import Value
from blowfishdb.core.policy.codec import digest
from blowfishdb.core.questions.clusters import USUAL_ITERATIONS
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.messages.answers import Answer
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
    ) -> Asking:
        """How many rows fall into each bin."""
        return self._asking(QuestionForm("histogram", self._cut(bins, width, edges, groups)))

    def cumulative(
        self, bins: int | None = None, *, width: object = None, edges: Sequence[object] | None = None
    ) -> Asking:
        """How many rows fall into each bin or below it."""
        return self._asking(QuestionForm("cumulative", self._cut(bins, width, edges)))

    def ranges(self, bounds: Iterable[tuple[Value, Value]]) -> Asking:
        """How many rows have a value from ``lo`` to ``hi``, both included, for each pair."""
        pairs = tuple((lo, hi) for lo, hi in bounds)
        return self._asking(QuestionForm("ranges", self._cut(), bounds=pairs))

    def top(self, count: int, bins: int | None = None, *, width: object = None) -> Asking:
        """The fullest bins: none that is more than α short of its place, none missed by more than α."""
        return self._asking(QuestionForm("top", self._cut(bins, width), count=count))

    def above(self, limit: float, bins: int | None = None, *, width: object = None) -> Asking:
        """The bins with more than ``limit`` rows, give or take α."""
        return self._asking(QuestionForm("above", self._cut(bins, width), limit=limit))

    def quantiles(self, shares: Iterable[float], bins: int | None = None, *, width: object = None) -> Asking:
        """The values below which the given shares of the rows lie; accuracy counts people."""
        return self._asking(QuestionForm("quantiles", self._cut(bins, width), shares=tuple(shares)))

    def median(self, bins: int | None = None, *, width: object = None) -> Asking:
        """The value in the middle; accuracy counts people."""
        return self.quantiles([0.5], bins, width=width)

    def sum(self) -> Asking:
        """The sum, in the column's own units."""
        return self._asking(QuestionForm("sum", self._cut()))

    def mean(self) -> Asking:
        """The mean over all rows, whose number must be public."""
        return self._asking(QuestionForm("mean", self._cut()))

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
    ) -> tuple[ColumnForm, ...]:
        starts = None if edges is None else tuple(edges)
        parts = None if groups is None else {name: tuple(values) for name, values in groups.items()}
        return tuple(ColumnForm(name, bins, width, starts, parts) for name in self.names)

    def _asking(self, form: QuestionForm) -> Asking:
        return Asking(self.answering, self.dataset, self.domain, form.only(self.condition))


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
