"""What goes into the service and what a price looks like: terms, requests, quotes. Never a true value."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

from blowfishdb.adapters.store.values import Budget, RequestKey
from blowfishdb.core.accuracy import LARGEST_EPSILON, Accuracy, check_beta
from blowfishdb.core.budget import AnyEpsilon, Epsilon, positive
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.errors import InvalidInput, NoGuarantee
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.clusters import ClusterQuestion
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.kinds import Question
from blowfishdb.core.questions.readings import EXACT, sentence, usual_bins
from blowfishdb.messages.answers import Answer

Progress = Callable[[int, int], None]
"""Called with how much of a long piece of work is done, and how much there is."""


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
        said: dict[str, Any] = {}
        if self.accuracy is not None:
            confidence = float(1 - Fraction(repr(self.accuracy.beta)))
            said = {"error": self.accuracy.alpha, "confidence": confidence}
            said["each"] = not self.accuracy.simultaneous
        if self.epsilon is not None:
            said["epsilon"] = str(self.epsilon)
        if self.mechanism is not None:
            said["mechanism"] = self.mechanism
        return said

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Terms:
        """Terms from their plain form."""
        error, epsilon, terms = said.get("error"), said.get("epsilon"), cls(mechanism=said.get("mechanism"))
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
    """A question about a dataset, on terms."""

    dataset: str
    form: QuestionForm
    question: Question | ClusterQuestion
    terms: Terms
    user: str
    key: RequestKey | None = None
    """Under which it is charged once, however often it is sent; without one, as often as it is asked anew."""

    def __post_init__(self) -> None:
        if self.terms.accuracy is None and self.terms.epsilon is None:
            raise InvalidInput(
                "This question does not say how accurate the answer must be.",
                fixes=("accurate_to(50, confidence=0.95)", "spend(epsilon='0.1')"),
            )

    @property
    def counts(self) -> Question:
        """The question, if it is answered from counts; clusters are not."""
        if isinstance(self.question, ClusterQuestion):
            raise NoGuarantee(
                "How far off clusters are depends on the data, so their accuracy can be neither compared nor "
                "shown beforehand.",
                fixes=("ask for a histogram of the same columns",),
            )
        return self.question


def needs_rows(request: Request) -> bool:
    """Whether a question has a price only once the number of its rows is on record."""
    return isinstance(request.question, Question) and request.question.needs_rows


def number_of_rows(request: Request, domain: Domain) -> Request:
    """How many rows a question is about, as a question of its own."""
    form = request.form.counting(domain)
    return replace(request, form=form, question=form.question(domain), terms=Terms().spending(1), key=None)


def over_rows(request: Request, domain: Domain, rows: int) -> Request:
    """A mean, or a sum, over so many rows."""
    return replace(request, question=request.form.question(domain, rows=rows))


def in_usual_bins(request: Request, policy: Policy) -> Request:
    """Quantiles from the bins that the asker named, or from those that follow from the policy."""
    (column,), (axis,) = request.form.columns, request.counts.axes
    if column.cut:
        return request
    usual = Axis(axis.column, axis.attribute, usual_bins(policy, axis.column))
    return replace(request, question=replace(request.counts, axes=(usual,)))


@final
@dataclass(frozen=True)
class Alternative:
    """A cheaper question of the same kind."""

    alpha: float
    epsilon: Epsilon

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        return {"alpha": self.alpha, **plain_epsilon("epsilon", self.epsilon)}


@final
@dataclass(frozen=True)
class Fit:
    """Something that the budget still allows, in words and, where it is a question, what to change for it."""

    words: str
    error: float | None = None
    bins: int | None = None
    epsilon: Epsilon | None = None

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        epsilon = None if self.epsilon is None else str(self.epsilon)
        return {"words": self.words, "error": self.error, "bins": self.bins, "epsilon": epsilon}

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Fit:
        """From its plain form."""
        epsilon = said["epsilon"]
        return cls(said["words"], said["error"], said["bins"], None if epsilon is None else Epsilon(epsilon))


@final
@dataclass(frozen=True)
class UnderPromise:
    """What an answer costs under an earlier policy that is still promised, and what that one has left."""

    version: int
    epsilon: Epsilon | None
    """None where it would tell apart exactly what that policy hides: no budget reaches."""
    remaining: Epsilon

    @property
    def affordable(self) -> int | None:
        """How many such answers it allows; None for any number."""
        if self.epsilon is None:
            return 0
        return self.remaining // self.epsilon if self.epsilon else None

    @property
    def words(self) -> str:
        """What binds, by name."""
        still = f"Version {self.version} of the policy is still promised"
        if self.epsilon is None:
            return f"{still}, and this answer would tell apart exactly what it hides: it is refused."
        return (
            f"{still}: under it this answer costs ε {self.epsilon:.3g}, and ε {self.remaining:.3g} is left."
        )

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        cost = None if self.epsilon is None else str(self.epsilon)
        left = str(self.remaining)
        return {"version": self.version, "epsilon": cost, "remaining": left, "words": self.words}

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> UnderPromise:
        """From its plain form."""
        cost = None if said["epsilon"] is None else Epsilon(said["epsilon"])
        return cls(said["version"], cost, Epsilon(said["remaining"]))


@final
@dataclass(frozen=True)
class Quote:
    """What a question would cost. Free, and computed without touching the data."""

    dataset: str
    question: str
    kind: str
    epsilon: Epsilon
    alpha: float | None
    beta: float | None
    """None, like ``alpha``, where how far off the answer is depends on the data."""
    simultaneous: bool
    mechanism: str
    explanation: str
    policy: str
    policy_version: int
    plain_epsilon: Epsilon
    remaining: Epsilon
    owned: bool
    exact: bool = False
    """Whether the answer is going to be free and without noise."""
    alternatives: tuple[Alternative, ...] = ()
    fits: tuple[Fit, ...] = ()
    """What the budget still allows, where it does not allow this."""
    notes: tuple[str, ...] = ()
    """As what values count that are missing or outside the declared ones, column by column."""
    promises: tuple[UnderPromise, ...] = ()
    """What the answer costs under every earlier policy that is still promised."""

    @property
    def dividend(self) -> float | None:
        """How many times more the best plain-DP plan would cost; None where this answer is free."""
        return float(self.plain_epsilon) / float(self.epsilon) if self.epsilon else None

    @property
    def at_least(self) -> str:
        """What is said before the price under plain differential privacy, if no ε reaches the accuracy."""
        return "more than " if self.plain_epsilon >= LARGEST_EPSILON else ""

    @property
    def affordable(self) -> int | None:
        """How many such answers the budget and every kept promise allow; None for any number."""
        each = [
            self.remaining // self.epsilon if self.epsilon else None,
            *(p.affordable for p in self.promises),
        ]
        return min((times for times in each if times is not None), default=None)

    @property
    def binding(self) -> UnderPromise | None:
        """The earlier promise that allows fewest such answers, if it allows fewer than the budget does."""
        own = self.remaining // self.epsilon if self.epsilon else math.inf
        limited = [promise for promise in self.promises if promise.affordable is not None]
        least = min(limited, key=lambda promise: promise.affordable or 0, default=None)
        return least if least is not None and (least.affordable or 0) < own else None

    @property
    def promise(self) -> str:
        """What would be promised about the answer, in the one sentence that every door prints."""
        if self.exact:
            return EXACT
        return sentence(self.kind, self.alpha, self.beta, self.simultaneous)

    def __str__(self) -> str:
        bound = "" if self.binding is None else f" {self.binding.words}"
        cost = "already answered, costs nothing" if self.owned else f"costs ε = {self.epsilon:.3g}"
        return f"{self.question} of {self.dataset}: {cost}. {self.promise}{bound}"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from blowfishdb.show.exports import quote_html

        return quote_html(self)

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data: each ε as a decimal text and as a whole number of nano-ε."""
        return {
            "dataset": self.dataset,
            "question": self.question,
            "kind": self.kind,
            "promise": self.promise,
            **plain_epsilon("epsilon", self.epsilon),
            "alpha": self.alpha,
            "beta": self.beta,
            "simultaneous": self.simultaneous,
            "mechanism": self.mechanism,
            "explanation": self.explanation,
            "policy": self.policy,
            "policy_version": self.policy_version,
            **plain_epsilon("plain_epsilon", self.plain_epsilon),
            **plain_epsilon("remaining", self.remaining),
            "owned": self.owned,
            "exact": self.exact,
            "dividend": self.dividend,
            "affordable": self.affordable,
            "alternatives": [alternative.to_plain() for alternative in self.alternatives],
            "fits": [fit.to_plain() for fit in self.fits],
            "notes": list(self.notes),
            "promises": [promise.to_plain() for promise in self.promises],
            "binding": None if self.binding is None else self.binding.to_plain(),
        }

    @classmethod
    def from_plain(cls, said: Mapping[str, Any]) -> Quote:
        """A quote from its plain form."""
        return cls(
            **{name: said[name] for name in _AS_THEY_ARE},
            epsilon=Epsilon(said["epsilon"]),
            plain_epsilon=Epsilon(said["plain_epsilon"]),
            remaining=Epsilon(said["remaining"]),
            exact=said.get("exact", said["promise"] == EXACT),
            alternatives=tuple(Alternative(a["alpha"], Epsilon(a["epsilon"])) for a in said["alternatives"]),
            fits=tuple(map(Fit.from_plain, said["fits"])),
            notes=tuple(said.get("notes", ())),
            promises=tuple(map(UnderPromise.from_plain, said.get("promises", ()))),
        )


_AS_THEY_ARE = (
    "dataset",
    "question",
    "kind",
    "alpha",
    "beta",
    "simultaneous",
    "mechanism",
    "explanation",
    "policy",
    "policy_version",
    "owned",
)


def answer_summary(answer: Answer) -> dict[str, Any]:
    """One line of a list of answers, as JSON-ready data; a name that is not shown is null."""
    receipt = answer.receipt
    return {
        "id": answer.number,
        "dataset": receipt.dataset,
        "question": receipt.question,
        "kind": answer.kind,
        "axes": list(answer.axes),
        "form": answer.form,
        "size": len(answer.values),
        "alpha": answer.alpha,
        "beta": answer.beta,
        "simultaneous": answer.simultaneous,
        "promise": answer.promise,
        "brief": answer.brief,
        **plain_epsilon("epsilon", receipt.epsilon),
        "mechanism": receipt.mechanism,
        "policy_version": receipt.policy_version,
        "snapshot": receipt.snapshot,
        "settled": receipt.settled,
        "user": receipt.user or None,
    }


def budget_summary(budget: Budget, left: Epsilon) -> dict[str, Any]:
    """A dataset's budget, and what is left of it for whoever asks."""
    return {
        "dataset": budget.dataset,
        **plain_epsilon("total", budget.total),
        **plain_epsilon("spent", budget.spent),
        **plain_epsilon("held", budget.held),
        **plain_epsilon("carried", budget.carried),
        **plain_epsilon("remaining", budget.remaining),
        **plain_epsilon("left", left),
    }


def plain_epsilon(name: str, epsilon: Epsilon) -> dict[str, Any]:
    """An ε as JSON has it: exact decimal text beside a whole number of nano-ε."""
    return {name: str(epsilon), f"nano_{name}": epsilon.nano}
