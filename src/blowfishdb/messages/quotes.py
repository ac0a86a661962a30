"""Prices: what a question would cost, what it would cost elsewhere, and how it would be answered.

All of it is free, and computed without reading a row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from blowfishdb.core.accuracy import LARGEST_EPSILON
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.plain import Message
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.promise import EXACT, sentence

_SAME = 1e-3  # prices within this share of each other read as the same number


@final
@dataclass(frozen=True)
class Alternative(Message):
    """A cheaper question of the same kind."""

    _nano = True

    alpha: float
    epsilon: Epsilon

    @property
    def words(self) -> str:
        """How accurate, and for how much."""
        accuracy = f"±{self.alpha:,.6g}" if self.alpha else "the exact answer"
        return f"{accuracy} for {f'ε {self.epsilon:.3g}' if self.epsilon else 'nothing'}"


@final
@dataclass(frozen=True)
class Fit(Message):
    """Something that the budget still allows, in words and, where it is a question, what to change for it."""

    words: str
    error: float | None = None
    bins: int | None = None
    epsilon: Epsilon | None = None


@final
@dataclass(frozen=True)
class UnderPromise(Message):
    """What an answer costs under an earlier policy that is still promised, and what that one has left."""

    _said = ("words",)

    version: int
    epsilon: Epsilon | None
    """None where it would tell apart exactly what that policy hides: no budget reaches."""
    remaining: Epsilon
    withdrawn: Alternative | None = None
    """What would be answered, and for how much, if this promise were withdrawn; where it was worked out."""

    @property
    def affordable(self) -> int | None:
        """How many such answers it allows; None for any number."""
        if self.epsilon is None:
            return 0
        return self.remaining // self.epsilon if self.epsilon else None

    @property
    def share(self) -> float:
        """Which part of what is left such an answer takes; more than 1 is refused."""
        return math.inf if self.epsilon is None else share_of(self.epsilon, self.remaining)

    @property
    def words(self) -> str:
        """What binds, by name, and what withdrawing it would do."""
        still = f"Version {self.version} of the policy is still promised"
        then = "" if self.withdrawn is None else f" If it were withdrawn: {self.withdrawn.words}."
        if self.epsilon is None:
            return f"{still}, and this answer would tell apart exactly what it hides: it is refused.{then}"
        costs = f"under it this answer costs ε {self.epsilon:.3g}, and ε {self.remaining:.3g} is left"
        return f"{still}: {costs}.{then}"

    @property
    def advice(self) -> str:
        """What whoever is refused because of it can do."""
        then = "" if self.withdrawn is None else f" ({self.withdrawn.words})"
        return f"ask the curator to withdraw version {self.version} of the policy{then}"


def share_of(cost: Epsilon, left: Epsilon) -> float:
    """Which part of what is left is taken."""
    if not cost:
        return 0.0
    return float(cost) / float(left) if left else math.inf


@final
@dataclass(frozen=True)
class Sharpening(Message):
    """An answer that is out already and is made more accurate, for what that costs more."""

    _nano = True

    number: int
    question: str
    alpha: float
    instead: Epsilon
    """What an answer from scratch would cost."""

    def words(self, question: str, alpha: float | None, epsilon: Epsilon) -> str:
        """What is paid for, in a sentence."""
        same = "" if self.question == question else f" for the {self.question}"
        wanted = "this" if alpha is None else f"±{alpha:,.6g}"
        return (
            f"±{self.alpha:,.6g} is already answered{same} (no. {self.number}); {wanted} costs "
            f"ε {epsilon:.3g} more, instead of ε {self.instead:.3g}."
        )


@final
@dataclass(frozen=True)
class Quote(Message):
    """What a question would cost. Free, and computed without touching the data.

    >>> quote = people["salary"].median().accurate_to(100).quote()
    >>> quote.promise
    'In 95 of 100 runs every quantile lies in its noise interval, with ranks off by at most 100 people.'
    >>> f"ε {quote.epsilon:.2g}, and ε {quote.plain_epsilon:.2g} without a policy"
    'ε 0.075, and ε 0.35 without a policy'
    """

    _said = ("promise", "dividend", "affordable", "binding", "most", "sharpening")
    _nano = True

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
    plain_epsilon: Epsilon | None
    """What plain differential privacy would cost; None where only the price was asked for."""
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
    plain_alpha: float | None = None
    """Where an ε was stated: how far off the best plain-DP plan would be at the same ε."""

    sharpens: Sharpening | None = None
    """The answer that is made more accurate, where that is cheaper than a new one."""
    group_size: int | None = None
    """Of means: how many rows a group has at least whose error is promised."""
    free_now: float | None = None
    """How accurately stored answers tell the same for nothing, where that is less than was asked."""
    granted: Epsilon | None = None
    """What is left of a grant, which pays the largest loss; None where nobody has one."""
    columns: int = 1
    """Along how many columns rows are counted: bars along one, cells along several."""

    @property
    def most(self) -> Epsilon:
        """The most that the answer costs under any promise: what ``max_cost`` limits."""
        return max((self.epsilon, *(one.epsilon for one in self.promises if one.epsilon is not None)))

    @property
    def sharpening(self) -> str:
        """What is paid for where an earlier answer is made more accurate, and what is free; else empty."""
        if self.sharpens is not None:
            return self.sharpens.words(self.question, self.alpha, self.epsilon)
        return "" if self.free_now is None else f"Free now: ±{self.free_now:,.4g}."

    @property
    def closer(self) -> str:
        """The price of a closer answer, in the words of an offer."""
        more = "Sharpen to" if self.sharpens is not None else "Ask again within"
        return f"{more} ±{self.alpha:,.4g} for ε {self.most:.3g}"

    @property
    def dividend(self) -> float | None:
        """How many times more the best plain-DP plan would cost, or be off by where an ε was stated.

        Of an answer that is sharpened the price from scratch counts: what was paid before is no dividend.
        None where this answer is free, or exact.
        """
        if self.plain_epsilon is None or not self.most:
            return None
        if self.plain_alpha is not None:
            return self.plain_alpha / self.alpha if self.alpha else None
        own = self.most if self.sharpens is None else self.sharpens.instead
        return float(self.plain_epsilon) / float(own)

    @property
    def at_least(self) -> str:
        """What is said before the price under plain differential privacy, if no ε reaches the accuracy."""
        out_of_reach = self.plain_epsilon is not None and self.plain_epsilon >= LARGEST_EPSILON
        return "more than " if out_of_reach else ""

    @property
    def affordable(self) -> int | None:
        """How many such answers budget, grant and every kept promise allow; None for any number."""
        each = [
            self.remaining // self.epsilon if self.epsilon else None,
            self.granted // self.most if self.most and self.granted is not None else None,
            *(p.affordable for p in self.promises),
        ]
        return min((times for times in each if times is not None), default=None)

    @property
    def binding(self) -> UnderPromise | None:
        """The earlier promise of which the answer takes the largest part of what is left, budget included."""
        paying = [promise for promise in self.promises if promise.share]
        largest = max(paying, key=lambda promise: promise.share, default=None)
        own = share_of(self.epsilon, self.remaining)
        return largest if largest is not None and largest.share >= own else None

    @property
    def promise(self) -> str:
        """What would be promised about the answer, in the one sentence that every door prints."""
        if self.exact:
            return EXACT
        columns = self.columns
        return sentence(self.kind, self.alpha, self.beta, self.simultaneous, self.group_size, columns=columns)

    def __str__(self) -> str:
        bound = "" if self.binding is None else f" {self.binding.words}"
        cost = "already answered, costs nothing" if self.owned else f"costs ε = {self.most:.3g}"
        more = f" {self.sharpening}" if self.sharpening else ""
        return f"{self.question} of {self.dataset}: {cost}. {self.promise}{more}{bound}"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from blowfishdb.show.exports import quote_html

        return quote_html(self)


@final
@dataclass(frozen=True)
class QuotedTogether(Message):
    """One of several questions that are settled on together: what it costs alone, and beside the others."""

    _nano = True

    dataset: str
    question: str
    promise: str
    alone: Epsilon
    epsilon: Epsilon
    """What its own release adds; nothing where it follows from those of others."""
    how: str

    @property
    def words(self) -> str:
        """What it costs, and how it is answered."""
        costs = f"ε {self.epsilon:.3g}" if self.epsilon else "nothing more"
        alone = f" (alone ε {self.alone:.3g})" if self.alone else ""
        return f"{self.question} of {self.dataset}: {costs}{alone}, {self.how}"


@final
@dataclass(frozen=True)
class Wider(Message):
    """One more question, and what all of them cost with it."""

    _said = ("words",)
    _nano = True

    question: str
    """As it can be asked."""
    alpha: float
    epsilon: Epsilon

    @property
    def words(self) -> str:
        """The advice."""
        beside = f"{self.question} within ±{self.alpha:,.4g}"
        return f"Plan {beside} with them: all of it then costs ε = {self.epsilon:.3g}."


@final
@dataclass(frozen=True)
class TogetherQuote(Message):
    """What questions cost that are settled on before any of them is answered. Free, like every quote.

    >>> curve, bars = people["salary"].cumulative(bins=10), people["salary"].histogram(bins=10)
    >>> print(ws.plan(curve.accurate_to(50), bars.accurate_to(50)).quotes())
    Together this costs ε 0.1...
    """

    _said = ("epsilon", "alone", "sentence")
    _nano = True

    parts: tuple[QuotedTogether, ...]
    most: Epsilon
    """The most that all of them cost under any promise: what ``max_cost`` limits."""
    wider: Wider | None = None
    """One more question with which all of them cost much less."""

    @property
    def epsilon(self) -> Epsilon:
        """What all of them cost together, under the policies of today."""
        return sum((part.epsilon for part in self.parts), Epsilon(0))

    @property
    def alone(self) -> Epsilon:
        """What they would cost one by one."""
        return sum((part.alone for part in self.parts), Epsilon(0))

    @property
    def sentence(self) -> str:
        """What all of them cost, and what that saves."""
        saved = f", instead of ε {self.alone:.3g} one by one" if self.epsilon < self.alone else ""
        total = f"ε {self.epsilon:.3g}" if self.epsilon else "nothing"
        beside = f" Under earlier promises that are kept it costs up to ε {self.most:.3g}."
        return f"Together this costs {total}{saved}.{beside if self.most > self.epsilon else ''}"

    def __str__(self) -> str:
        more = () if self.wider is None else (self.wider.words,)
        return "\n".join((self.sentence, *(f"  {part.words}" for part in self.parts), *more))


@final
@dataclass(frozen=True)
class Explanation(Message):
    """The projected domain, the policy graph over it, the sensitivity and where it is reached, the plan.

    >>> print(people.explain(people["salary"].cumulative(bins=20).accurate_to(50)))
    Question     cumulative of salary (20 bins): 20 answers
    Counted      20 of 'salary' (boxes that the question needs)
    Hidden       values at most 1 cell apart: 19 pairs of boxes
    Sensitivity  1, when one record moves from 0–4,999 to 5,000–9,999
    Mechanism    Laplace on the questions: ...
    Cost         ε 0.117114263
    """

    question: str
    columns: tuple[str, ...]
    cells: tuple[int, ...]
    answers: int
    graph: str
    hidden_pairs: int
    sensitivity: str | None
    witness: tuple[str, str] | None
    """Two boxes between which one record's move changes the answers the most."""
    mechanism: str
    considered: str
    epsilon: str
    known: str = ""
    """What counts that everyone knows do to noise and price; empty where none are known."""

    def __str__(self) -> str:
        boxes = " × ".join(f"{n:,} of '{c}'" for c, n in zip(self.columns, self.cells, strict=True))
        lines = [
            f"Question     {self.question}: {self.answers:,} answers",
            f"Counted      {boxes} (boxes that the question needs)",
            f"Hidden       {self.graph}: {self.hidden_pairs:,} pairs of boxes",
        ]
        if self.sensitivity is not None:
            where = f", when one record moves from {' to '.join(self.witness)}" if self.witness else ""
            lines.append(f"Sensitivity  {self.sensitivity}{where}")
        if self.known:
            lines.append(f"Known        {self.known}")
        return "\n".join([*lines, f"Mechanism    {self.considered}", f"Cost         ε {self.epsilon}"])


@final
@dataclass(frozen=True)
class Candidate:
    """A policy that a question is priced under: its name, and the distance that it stands at, if any."""

    name: str
    policy: Policy
    theta: float | None = None


@final
@dataclass(frozen=True)
class TradeoffPoint(Message):
    """One policy: the price of the accuracy that was asked for, and the error at a fixed price."""

    _nano = True

    policy: str
    epsilon: Epsilon
    alpha: float
    mechanism: str
    theta: float | None = None
    promised: Epsilon | None = None
    """The price while what is promised now stays promised beside this policy; None where nothing does."""


@final
@dataclass(frozen=True)
class Tradeoff(Message):
    """A question under several policies, in the order in which they were given.

    >>> question = people["salary"].cumulative(bins=20).accurate_to(50)
    >>> print(people.tradeoff(question, column="salary", thresholds=(100, 1_000, 10_000)).sentence)
    within 100 → within 1000 costs nothing more for this question.
    """

    _said = ("free_gain", "sentence", "unless_withdrawn")
    _nano = True

    question: str
    asked_alpha: float | None
    fixed_epsilon: Epsilon
    """The price at which the errors are compared."""
    points: tuple[TradeoffPoint, ...]
    kept: tuple[int, ...] = ()
    """The versions of the policy that stay promised beside some of these until they are withdrawn."""

    @property
    def unless_withdrawn(self) -> str:
        """What earlier promises mean for these prices; empty where none stays."""
        prices = [point.promised for point in self.points if point.promised is not None]
        if not prices:
            return ""
        *first, last = (str(version) for version in self.kept)
        versions = f"versions {', '.join(first)} and {last}" if first else f"version {last}"
        least, most = f"{min(prices):.3g}", f"{max(prices):.3g}"
        costs = f"ε {least}" if least == most else f"ε {least} to {most}"
        return (
            f"These prices are for each policy alone. Until {versions} of the policy is withdrawn, "
            f"a policy that hides anything less costs {costs}."
        )

    @property
    def free_gain(self) -> tuple[int, int] | None:
        """The last of the policies that cost no more than the first: protection for nothing.

        Given from the weakest policy to the strongest, these are the positions of the first policy and of the
        strongest one at the same price; None if the first step already costs more.
        """
        first, last = float(self.points[0].epsilon), 0
        for number, point in enumerate(self.points):
            if float(point.epsilon) > first * (1 + _SAME):
                break
            last = number
        return (0, last) if last else None

    @property
    def sentence(self) -> str:
        """What stands out, in words."""
        if self.free_gain is None:
            return "Every step towards more protection costs something here."
        weakest, strongest = (self.points[number].policy for number in self.free_gain)
        return f"{weakest} → {strongest} costs nothing more for this question."
