"""What goes into the service and what a price looks like: terms, requests, quotes. Never a true value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

from blowfishdb.adapters.store.values import RequestKey
from blowfishdb.core.accuracy import Accuracy, check_beta
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.cancellation import Cancellation, Progress
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.errors import InvalidInput, NoGuarantee
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.aggregates import AggregateQuestion
from blowfishdb.core.questions.clusters import ClusterQuestion
from blowfishdb.core.questions.form import SYNTHETIC, AnyQuestion, QuestionForm
from blowfishdb.core.questions.kinds import Quantiles, Question
from blowfishdb.core.questions.readings import usual_bins


@final
@dataclass(frozen=True)
class Terms:
    """What an answer must be like: an accuracy to reach or an ε to spend, and perhaps a mechanism to use."""

    accuracy: Accuracy | None = None
    epsilon: Epsilon | None = None
    mechanism: str | None = None

    def __post_init__(self) -> None:
        if self.accuracy is not None and self.epsilon is not None:
            raise InvalidInput("A question states an accuracy or an ε, not both.")

    def accurate_to(self, alpha: float, confidence: float = 0.95, each: bool = False) -> Terms:
        """Within ±alpha, ``confidence`` of the time: on all answers at once, or on each by itself."""
        return replace(self, accuracy=Accuracy(alpha, _beta(confidence), not each), epsilon=None)

    def spending(self, epsilon: AnyEpsilon) -> Terms:
        """As accurate as ``epsilon`` allows."""
        return replace(self, accuracy=None, epsilon=positive(epsilon))

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data, without what was not said."""
        written: dict[str, Any] = {}
        if self.accuracy is not None:
            confidence = float(1 - Fraction(repr(self.accuracy.beta)))
            written = {"error": self.accuracy.alpha, "confidence": confidence}
            written["each"] = not self.accuracy.simultaneous
        if self.epsilon is not None:
            written["epsilon"] = str(self.epsilon)
        if self.mechanism is not None:
            written["mechanism"] = self.mechanism
        return written

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Terms:
        """Terms from their plain form."""
        error, epsilon, terms = (
            said.get("error"),
            said.get("epsilon"),
            cls(mechanism=said.get("mechanism")),
        )
        if error is not None and epsilon is not None:
            raise InvalidInput("A question states an error or an epsilon, not both.")
        if epsilon is not None:
            return terms.spending(epsilon)
        if error is None:
            return terms
        return terms.accurate_to(error, said.get("confidence", 0.95), bool(said.get("each", False)))


def _beta(confidence: object) -> float:
    number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
    if not number or not 0 <= confidence <= 1:  # type: ignore[operator]
        raise InvalidInput("A confidence is a number between 0 and 1.", fixes=("confidence 0.95",))
    return check_beta(float(1 - Fraction(repr(confidence))))


@final
@dataclass(frozen=True, eq=False)
class Request:
    """A question about a dataset, on terms, and how its answering is limited, given up and watched."""

    dataset: str
    form: QuestionForm
    question: AnyQuestion
    terms: Terms
    user: str
    key: RequestKey | None = None
    """Under which it is charged once, however often it is sent; without one, as often as it is asked anew."""
    max_cost: Epsilon | None = None
    """What the answer may cost at most."""
    cancel: Cancellation | None = None
    """Gives the question up: before the charge is made nothing is charged, afterwards it stays."""
    progress: Progress | None = None
    """Is told how many of the statements, or of the policies, are done, and how many there are."""

    def __post_init__(self) -> None:
        if self.terms.accuracy is None and self.terms.epsilon is None:
            raise InvalidInput(
                "This question does not say how accurate the answer must be.",
                fixes=("accurate_to(50, confidence=0.95)", "spend(epsilon='0.1')"),
            )
        arrangement, accuracy = self.form.arrangement, self.terms.accuracy
        if arrangement.show and self.terms.mechanism is not None:
            raise NoGuarantee(
                "Numbers are computed from noise intervals, and this mechanism may promise none.",
                fixes=("leave out the mechanism",),
            )
        alone = accuracy is not None and not accuracy.simultaneous
        if alone and (arrangement.by_numbers or arrangement.show):
            raise NoGuarantee(
                "What is chosen by noisy numbers, or computed from several, needs an error that all of them "
                "keep at once.",
                fixes=("leave out EACH",),
            )

    @property
    def whole(self) -> Request:
        """The question, whatever is shown of its answer."""
        return replace(self, form=self.form.whole)

    @property
    def counts(self) -> Question:
        """The question, if it is answered from counts; clusters and aggregates are not."""
        if isinstance(self.question, AggregateQuestion):
            raise NoGuarantee(
                "Aggregates have noise intervals instead of one error, so they are neither compared "
                "nor shown beforehand under several policies.",
                fixes=("ask for a quote under each policy",),
            )
        if isinstance(self.question, ClusterQuestion):
            raise NoGuarantee(
                "How far off clusters are depends on the data, so their accuracy can be neither compared nor "
                "shown beforehand.",
                fixes=("ask for a histogram of the same columns",),
            )
        if not isinstance(self.question, Question):
            raise NoGuarantee(
                "A synthetic table has no error of its own that could be compared or shown beforehand.",
                fixes=("ask for a histogram of the same columns",),
            )
        return self.question


def needs_rows(request: Request) -> bool:
    """Whether a question has a price only once the number of its rows is on record."""
    return isinstance(request.question, Question) and request.question.needs_rows


def number_of_rows(request: Request, domain: Domain) -> Request:
    """How many rows a question is about, as a question of its own."""
    form = request.form.counting(domain)
    return Request(request.dataset, form, form.question(domain), Terms().spending(1), request.user)


def over_rows(request: Request, domain: Domain, rows: int) -> Request:
    """A mean, or a sum, over so many rows."""
    return replace(request, question=request.form.question(domain, rows=rows))


def needs_total(request: Request) -> bool:
    """Whether a synthetic table is asked for whose number of rows is not on record yet."""
    return request.form.kind == SYNTHETIC and getattr(request.question, "rows", None) is None


def needs_size(request: Request) -> bool:
    """Whether an error is asked for the mean of groups, and not for how large ones."""
    question = request.question
    if not isinstance(question, AggregateQuestion) or request.terms.accuracy is None:
        return False
    return question.group_size is None and question.promised is not None and question.promised.of == "mean"


def for_groups_of(request: Request, domain: Domain, size: int) -> Request:
    """Means of groups of so many rows and more."""
    form = replace(request.form, group_size=size)
    return replace(request, form=form, question=form.question(domain))


def in_groups(request: Request, domain: Domain) -> Request:
    """A mean, or a sum, of rows whose number is hidden: an aggregate of its own."""
    form = request.form.in_groups
    return replace(request, form=form, question=form.question(domain))


def in_usual_bins(request: Request, policy: Policy) -> Request:
    """Quantiles from the bins that the asker named, or from those that follow from the policy."""
    (column,), (axis, *groups) = request.form.columns, request.counts.axes
    if column.cut:
        return request
    among = math.prod(group.bins.count for group in groups)
    usual = Axis(axis.column, axis.attribute, usual_bins(policy, axis.column, among))
    return replace(request, question=replace(request.counts, axes=(usual, *groups)))


def can_be_balanced(request: Request) -> bool:
    """Whether quantiles can be told by what lies on both sides of them."""
    question = request.counts
    return isinstance(question.kind, Quantiles) and question.kind.can_be_balanced(question.axes)


def balanced(request: Request) -> Request:
    """Quantiles told by what lies on both sides of them, which serves where the number of rows is hidden."""
    kind = request.counts.kind
    assert isinstance(kind, Quantiles)
    return replace(request, question=replace(request.counts, kind=replace(kind, balanced=True)))
