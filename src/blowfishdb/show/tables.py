"""Tables: the values of a message as text, laid out once; terminal, notebook, file and page print the same.

A chart has the table of what it draws as its twin, for those who read rather than look.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.promise import significant
from blowfishdb.show.words import amount, decimals, headline, interval, loss, moment

if TYPE_CHECKING:
    from blowfishdb.adapters.store.values import Answered, Budget
    from blowfishdb.core.arrays import BoolArray, FloatArray
    from blowfishdb.messages.answers import Answer, Comparison, Places
    from blowfishdb.messages.quotes import Quote, TogetherQuote, Tradeoff

UNITS = ("quantiles", "sum", "mean")
"""Kinds whose values are in the units of the column, not in people."""
_INTERVAL = "noise interval"
_SHARE = 20  # of the declared range, in units of which a position is told to two digits


@final
@dataclass(frozen=True)
class Table:
    """A title, columns of words or of numbers, rows of texts, and sentences about all of it."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    numbers: tuple[int, ...] = ()
    """Which columns are numbers, and stand to the right."""

    @property
    def caption(self) -> str:
        """Title and notes as sentences."""
        return " ".join((*([f"{headline(self.title)}."] if self.title else []), *self.notes))


# --- answers --------------------------------------------------------------------------------------


def answer_table(answer: Answer, *, raw: bool = False, most: int | None = None) -> Table:
    """The bins, the tidy values, and their noise intervals where these are promised; the first ``most`` rows.

    ``raw`` adds the release as it left the mechanism, which may be negative or uneven.
    """
    notes = (priced_promise(answer), *answer.notes)
    if answer.places is not None:
        return _cluster_table(answer, answer.places, notes)
    if answer.measures:
        return _aggregate_table(answer, aggregated(answer), notes, most)
    band = None if answer.band is None else (answer.band[0][:most], answer.band[1][:most])
    values, exact = answer.values[:most], answer.exact[:most]
    digits = value_places(answer.kind, answer.grain, values, *(band or ()))
    headings = ("answer",) if answer.kind in UNITS else answer.headings
    columns = {value_title(answer): [amount(value, digits) for value in values.tolist()]}
    if band is not None or answer.exact.any():
        columns[_INTERVAL] = intervals(band, exact, digits)
    if raw and len(answer.raw) == len(answer.values):
        columns["raw release"] = [amount(value, digits) for value in answer.raw[:most].tolist()]
    bins = answer.bins[:most]
    rows = tuple((*names, *cells) for names, *cells in zip(bins, *columns.values(), strict=True))
    numbers = tuple(range(len(headings), len(headings) + len(columns)))
    return Table(answer.receipt.question, (*headings, *columns), rows, notes, numbers)


@final
@dataclass(frozen=True, eq=False)
class Aggregated:
    """One aggregate of an answer: a value and its noise interval for every group."""

    title: str
    values: FloatArray
    low: FloatArray
    high: FloatArray
    exact: BoolArray

    @property
    def digits(self) -> int:
        """How many decimal places are worth showing: none of rows, of other values as few as tell them."""
        widths = (self.high - self.low)[np.isfinite(self.values) & ~self.exact]
        if self.title.startswith("rows") or not widths.size:
            return 0 if self.title.startswith("rows") else 3
        return decimals(float(widths.min()) / 2)


def aggregated(answer: Answer) -> list[Aggregated]:
    """The aggregates of an answer, one after another."""
    low, high = answer.band or (answer.values, answer.values)
    count = len(answer.measures)
    columns = [each.reshape(-1, count).T for each in (answer.values, low, high, answer.exact)]
    named = zip(answer.measures, *columns, strict=True)
    return [
        Aggregated(f"{name}{'' if exact.all() else ' (noisy)'}", values, lows, highs, exact)
        for name, values, lows, highs, exact in named
    ]


def one_by_one(answer: Answer) -> list[Table]:
    """A table for each aggregate, where there is no room for all of them beside each other."""
    return [_aggregate_table(answer, [each], (), None) for each in aggregated(answer)]


def _aggregate_table(
    answer: Answer, told: list[Aggregated], notes: tuple[str, ...], most: int | None
) -> Table:
    """A row for each group and two columns for each aggregate; of all rows, a row for each aggregate."""
    cells = [
        (
            [amount(value, each.digits) for value in each.values.tolist()],
            intervals((each.low, each.high), each.exact, each.digits),
        )
        for each in told
    ]
    groups = answer.groups
    if groups == [()]:
        rows = tuple(
            (each.title, *(texts[0] for texts in both)) for each, both in zip(told, cells, strict=True)
        )
        return Table(answer.receipt.question, ("answer", "value", _INTERVAL), rows, notes, (1, 2))
    columns = [texts for both in cells for texts in both]
    rows = tuple((*names, *texts) for names, *texts in zip(groups, *columns, strict=True))[:most]
    headings = [heading for each in told for heading in (each.title, _INTERVAL)]
    named = answer.axes[:-1] if answer.measured_last else answer.axes
    numbers = tuple(range(len(named), len(named) + len(headings)))
    return Table(answer.receipt.question, (*named, *headings), rows, notes, numbers)


@final
@dataclass(frozen=True)
class OneNumber:
    """An answer that is one number, as it is told large: the number, how far off, and of what."""

    value: str
    off: str
    unit: str


def one_number(answer: Answer) -> OneNumber | None:
    """The one number of an answer; None where there are several, or none can be said."""
    if (
        len(answer.values) != 1
        or answer.places is not None
        or answer.listed
        or answer.kind in ("top", "above")
    ):
        return None
    value = float(answer.values[0])
    if math.isnan(value):
        return None
    if answer.measures:
        told = aggregated(answer)[0]
        digits, unit = told.digits, answer.measures[0]
    else:
        digits = value_places(answer.kind, answer.grain, answer.values, *(answer.band or ()))
        unit = answer.axes[0] if answer.kind in UNITS else "people"
    return OneNumber(amount(value, digits), _off(answer, value, digits), unit)


def _off(answer: Answer, value: float, digits: int) -> str:
    """How far off: the same on both sides, or from where to where."""
    if bool(answer.exact[0]):
        return "exact,"
    if answer.band is None:
        return "no error promised,"
    low, high = float(answer.band[0][0]), float(answer.band[1][0])
    even = abs((value - low) - (high - value)) <= 10.0**-digits
    return f"± {significant((high - low) / 2)}" if even else f"{interval(low, high, digits)},"


_MOST_IN_A_THUMBNAIL = 24


def thumbnail(answer: Answer) -> tuple[int, ...]:
    """An answer as bars for a line of a list, of heights from 0 to 100; none where there is one number."""
    values = np.nan_to_num(answer.values, nan=0.0)
    if len(values) < 2 or answer.measures:
        return ()
    stride = -(-len(values) // _MOST_IN_A_THUMBNAIL)
    sums = np.add.reduceat(values, np.arange(0, len(values), stride))
    most = float(sums.max(initial=0.0))
    return tuple(round(100 * max(0.0, value) / most) for value in sums.tolist()) if most > 0 else ()


def priced_promise(answer: Answer) -> str:
    """What the noise interval means and what it cost, in words."""
    return f"{answer.promise} ε\u00a0=\u00a0{loss(answer.receipt.epsilon)}."


def value_title(answer: Answer) -> str:
    """What the values count."""
    noisy = "" if answer.exact.all() else " (noisy)"
    return f"{answer.axes[0] if answer.kind in UNITS else 'people'}{noisy}"


def value_places(kind: str, grain: float, *values: FloatArray) -> int:
    """How many decimal places are worth showing: none of people, of other values as few as tell them."""
    most = 0 if kind not in UNITS else 3 if kind == "quantiles" else decimals(grain)
    every = [value for each in values for value in each.tolist()]
    return next((n for n in range(most) if all(round(value, n) == value for value in every)), most)


def intervals(
    band: tuple[FloatArray, FloatArray] | None, exact: BoolArray | Sequence[bool], digits: int
) -> list[str]:
    """The noise intervals in words."""
    if band is None:
        return ["exact" if known else "not promised" for known in exact]
    ends = zip(band[0].tolist(), band[1].tolist(), exact, strict=True)
    return ["exact" if known else interval(low, high, digits) for low, high, known in ends]


def _cluster_table(answer: Answer, places: Places, notes: tuple[str, ...]) -> Table:
    """A row for each cluster: where it is, and how many people are nearest to it."""
    each = zip(answer.labels[0], positions(places), answer.values.tolist(), strict=True)
    rows = tuple((label, *where, amount(size, 0)) for label, where, size in each)
    columns = ("cluster", *answer.axes, value_title(answer))
    return Table(answer.receipt.question, columns, rows, notes, tuple(range(1, len(columns))))


def positions(places: Places) -> list[tuple[str, ...]]:
    """Where each cluster is, as people read it: about a thousandth of the declared range."""
    digits = [decimals((high - low) / _SHARE) for low, high in places.limits]
    return [
        tuple(amount(value, few) for value, few in zip(row, digits, strict=True))
        for row in places.centroids.tolist()
    ]


def receipt_table(answer: Answer, *, named: bool = False) -> Table:
    """Everything that is on record about an answer; who asked only if ``named``."""
    receipt = answer.receipt
    facts = {
        "dataset": f"{receipt.dataset}, snapshot {receipt.snapshot}",
        "question": receipt.question,
        **({"asked by": receipt.user or "not shown"} if named else {}),
        "accuracy": answer.promise,
        "cost": f"ε {receipt.epsilon}" if receipt.epsilon else "nothing",
        **({"promised": "; ".join(paid.words for paid in receipt.promised)} if receipt.promised else {}),
        "mechanism": receipt.mechanism,
        "policy": f"version {receipt.policy_version}: {receipt.policy}",
        "answered": moment(receipt.settled),
    }
    return Table("", ("Receipt", f"#{receipt.charge}"), tuple(facts.items()), answer.notes)


# --- prices ---------------------------------------------------------------------------------------

_SAME = 1.05  # times as much reads as the same


def quote_table(quote: Quote) -> Table:
    """The price of an answer before it is paid, what it promises, and what else could be asked."""
    facts = [("price", _price(quote))]
    if quote.most and not quote.owned:
        facts.append(("left", f"ε {loss(quote.remaining)}, {_affordable(quote.affordable)}"))
        if quote.alpha is not None:
            facts.append(("plain DP", dividend(quote)))
        facts += [
            ("cheaper", f"±{significant(other.alpha, 6)} for ε {loss(other.epsilon)}")
            for other in quote.alternatives
        ]
    if quote.sharpening:
        facts.append(("answered", quote.sharpening))
    if quote.binding is not None:
        facts.append(("promised", quote.binding.words))
    notes = (quote.promise, *quote.notes, f"{quote.mechanism}. {quote.explanation}")
    return Table(quote.question, (), tuple(facts), notes)


def _price(quote: Quote) -> str:
    if quote.owned:
        return "nothing: already answered"
    if not quote.most:
        return "nothing: this is free"
    if quote.most == quote.epsilon:
        return f"ε {loss(quote.epsilon)}"
    return f"ε {loss(quote.most)}, and ε {loss(quote.epsilon)} under the policy of today"


def _affordable(times: int | None) -> str:
    if not times:
        return "which is not enough"
    return f"affordable {times:,} time{'' if times == 1 else 's'}"


def dividend(quote: Quote) -> str:
    """What the policy saves against the best plan without one; often something, sometimes nothing.

    ε where an accuracy was asked for, and accuracy where an ε was stated.
    """
    if quote.plain_epsilon is None:
        return "was not asked for"
    times = quote.dividend or 1.0
    if quote.plain_alpha is not None:
        if quote.plain_alpha and not quote.alpha:
            return f"would be off by ±{significant(quote.plain_alpha, 3)} at the same ε: this is exact"
        if times < _SAME:
            return "would be as far off: no policy dividend here"
        off = f"±{significant(quote.plain_alpha, 3)} instead of ±{significant(quote.alpha or 0.0, 3)}"
        return f"would be off by {off} at the same ε: a policy dividend of {significant(times, 2)}×"
    if times < _SAME:
        return "would cost the same: no policy dividend here"
    cost = f"{quote.at_least}ε {loss(quote.plain_epsilon)}"
    return f"would cost {cost}: a policy dividend of {significant(times, 2)}×"


def tradeoff_table(tradeoffs: Tradeoff | Sequence[Tradeoff]) -> Table:
    """Every policy with its cost and its error; ★ marks the strongest that costs no more than the first."""
    many = list(tradeoffs) if isinstance(tradeoffs, Sequence) else [tradeoffs]
    questions = ("question",) if len(many) > 1 else ()
    rows = tuple(
        (
            *(each.question for _ in questions),
            f"{point.policy}{star}",
            loss(point.epsilon),
            significant(point.alpha),
            point.mechanism,
        )
        for each in many
        for point, star in zip(each.points, _stars(each), strict=True)
    )
    costs = ("cost ε", f"± at ε {loss(many[0].fixed_epsilon)}")
    columns = (*questions, "hidden", *costs, "mechanism")
    numbers = (len(questions) + 1, len(questions) + 2)
    said = (words for each in many for words in (each.sentence, each.unless_withdrawn) if words)
    return Table("", columns, rows, tuple(said), numbers)


def together_table(quote: TogetherQuote) -> Table:
    """Questions that are settled on together: what each costs alone and beside the others, and how."""
    several = len({part.dataset for part in quote.parts}) > 1
    rows = tuple(
        (
            f"{part.question} of {part.dataset}" if several else part.question,
            loss(part.alone),
            loss(part.epsilon),
            part.how,
        )
        for part in quote.parts
    )
    promises = dict.fromkeys(part.promise for part in quote.parts)
    notes = (quote.sentence, *(() if quote.wider is None else (quote.wider.words,)), *promises)
    return Table("", ("question", "alone ε", "together ε", "how"), rows, notes, (1, 2))


def _stars(tradeoff: Tradeoff) -> Iterable[str]:
    best = None if tradeoff.free_gain is None else tradeoff.free_gain[1]
    return (" ★" if number == best else "" for number in range(len(tradeoff.points)))


def budget_table(budget: Budget, answers: Sequence[Answer], earlier: Answered | None = None) -> Table:
    """Every answer that cost something, and what was spent by then; ``earlier`` ones are not listed."""
    paid = [answer for answer in answers if answer.receipt.epsilon]
    before = Epsilon(0) if earlier is None else earlier.spent
    spent = itertools.accumulate((answer.receipt.epsilon for answer in paid), initial=before)
    rows = tuple(
        (
            f"#{answer.number}",
            answer.receipt.question,
            answer.receipt.settled[:10],
            loss(answer.receipt.epsilon),
            loss(total),
        )
        for answer, total in zip(paid, itertools.islice(spent, 1, None), strict=True)
    )
    columns = ("answer", "question", "on", "cost ε", "spent so far")
    words = (
        budget_words(budget),
        *([earlier_words(earlier)] if earlier is not None and earlier.paid else []),
    )
    return Table("", columns, rows, words, (3, 4))


def earlier_words(earlier: Answered) -> str:
    """What answers that are not listed have cost."""
    answers = "answer" if earlier.paid == 1 else "answers"
    return f"{earlier.paid:,} earlier {answers} for {loss(earlier.spent)} came before these."


def budget_words(budget: Budget) -> str:
    """What is gone, what is set aside, and what is left."""
    held = f", {loss(budget.held)} held for questions under way" if budget.held else ""
    return f"{loss(budget.spent)} of {loss(budget.total)} spent{held}, {loss(budget.remaining)} left."


# --- two answers ----------------------------------------------------------------------------------


def comparison_table(comparison: Comparison) -> Table:
    """Both values, their difference and its noise interval, bin by bin."""
    first, second = comparison.first, comparison.second
    numbers = (first.values, second.values, comparison.difference)
    digits = value_places(first.kind, comparison.grain, *numbers, *(comparison.band or ()))
    cells = [[amount(value, digits) for value in each.tolist()] for each in numbers]
    names = answer_names(comparison)
    columns: tuple[str, ...] = (" · ".join(first.axes), *names, " − ".join(names))
    numbered = tuple(range(1, len(columns) + 1))
    if comparison.band is not None:  # without one, nobody knows what is noise
        columns += (_INTERVAL, "more than noise")
        cells.append(intervals(comparison.band, [False] * len(comparison.difference), digits))
        cells.append(["yes" if beyond else "no" for beyond in comparison.differs])
    rows = tuple(zip(bin_names(first), *cells, strict=True))
    return Table("", columns, rows, (comparison.sentence, comparison.promise), numbered)


def bin_names(answer: Answer) -> tuple[str, ...]:
    """Each bin in words, the parts along several axes in one text."""
    return tuple(" · ".join(parts) for parts in answer.bins)


_EQUALS = re.compile(r"(?P<column>\S+) == '?(?P<value>.*?)'?")
_LONGEST_NAME = 48


def answer_names(comparison: Comparison) -> tuple[str, str]:
    """How two answers are told apart: by what they ask, or where they ask the same, by what else differs."""
    one, other = comparison.first, comparison.second
    for names in (
        _conditions(one.receipt.question, other.receipt.question),
        (one.receipt.dataset, other.receipt.dataset),
        (_within(one), _within(other)),
        tuple(f"policy version {each.receipt.policy_version}" for each in (one, other)),
        tuple(f"snapshot {each.receipt.snapshot}" for each in (one, other)),
    ):
        if names[0] != names[1] and all(names):
            first, second = (textwrap.shorten(name, _LONGEST_NAME, placeholder=" …") for name in names)
            return (first, second) if first != second else ("first", "second")
    return "first", "second"


def _conditions(one: str, other: str) -> tuple[str, str]:
    """Which rows each is about; of one column with two values, those."""
    parts = [question.partition(" where ")[2] for question in (one, other)]
    equal = [_EQUALS.fullmatch(part) for part in parts]
    if equal[0] and equal[1] and equal[0]["column"] == equal[1]["column"]:
        return equal[0]["value"], equal[1]["value"]
    return parts[0] or "all rows", parts[1] or "all rows"


def _within(answer: Answer) -> str:
    return "" if answer.alpha is None else f"±{significant(answer.alpha)}"
