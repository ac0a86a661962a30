"""Synthetic tables as they are quoted and reported: what is measured for them, and how closely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, final

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.plain import Message
from blowfishdb.messages.quotes import Quote

GOOD_FOR: Final = "Good for writing code, teaching, exploring and first models."
NOT_FOR: Final = (
    "Not for rare groups, outliers, joins, nor for p-values and intervals as if its rows were "
    "people: they come out "
    "too narrow. More rows add no information."
)
INSIDE_BINS: Final = "Inside a bin values are spread evenly over the declared ones."
EMPTY: Final = "An empty value stands for a value that is not a declared one."


@final
@dataclass(frozen=True)
class MeasuredTable(Message):
    """Counts of one or more columns as they were released, and their weights in the model."""

    columns: tuple[str, ...]
    release: dict[str, Any]
    """Rows, scale of the noise and whole numbers, as every release is kept."""
    round: int = 0
    weights: tuple[float, ...] | None = None
    """None where the model has no room for it."""

    @property
    def used(self) -> bool:
        """Whether the model is fitted to it."""
        return self.weights is not None


@final
@dataclass(frozen=True)
class ReportedTable(Message):
    """A measured table beside the synthetic rows: ``off`` is half of Σ|measured − synthetic|, per row."""

    columns: tuple[str, ...]
    numbers: int
    margin: float
    """Each number is within this of the truth, 95 times in 100; zero if it is exact."""
    cumulative: bool
    used: bool
    off: float
    worst: str
    """Where measured and synthetic differ the most, in words."""


@final
@dataclass(frozen=True)
class ReportedPair(Message):
    """Two columns, and how the model knows how they go together."""

    columns: tuple[str, str]
    known: str
    """``measured``, ``kept`` as they are, ``modelled`` from other tables, or ``independent``."""
    words: str


@final
@dataclass(frozen=True)
class SynthesisReport(Message):
    """What a synthetic table is worth, told from measured tables alone: no true number is in it."""

    question: str
    rows: int
    tables: tuple[ReportedTable, ...]
    pairs: tuple[ReportedPair, ...]
    sentences: tuple[str, ...]

    def __str__(self) -> str:
        lines = list(self.sentences)
        for one in self.tables:
            near = "exact" if not one.margin else f"±{one.margin:,g}"
            left = "" if one.used else "; not in the model"
            lines.append(f"{' × '.join(one.columns)}: {near}, synthetic {100 * one.off:.2f} % off{left}")
        unknown = [pair.words for pair in self.pairs if pair.known == "independent"]
        return "\n".join((*lines, *unknown))


@final
@dataclass(frozen=True)
class QuotedTable(Message):
    """A table that is going to be measured: how far each number is off, and what share of the rows."""

    column: str
    numbers: int
    cumulative: bool
    margin: float
    off: float

    @property
    def counted(self) -> str:
        """How many numbers there are, and of what."""
        if self.numbers == 1:
            return "1 number"
        return f"{self.numbers:,} {'counts up to a bin' if self.cumulative else 'counts'}"


@final
@dataclass(frozen=True)
class SynthesisQuote(Message):
    """What a synthetic table would cost, what would be measured for it, and how closely. Free.

    >>> rows = people.count().spend(1).ask()  # public and free; a quote needs it
    >>> quote = people.synthesize(epsilon="0.5", columns=["age", "salary"]).quote()
    >>> quote.epsilon, [table.column for table in quote.tables]
    (Epsilon('0.5'), ['age', 'salary'])
    """

    _said = ("epsilon", "words")

    quote: Quote
    rows: int
    way: str
    tables: tuple[QuotedTable, ...]
    pairs: int
    """How many pairs of columns are measured, or chosen from."""
    rounds: int
    pair_margin: float | None
    """How far a number of a pair is off, 95 times in 100, at the usual step."""
    seconds: float
    answers: tuple[int, ...] = ()
    """The stored answers that a free one would be made from."""

    @property
    def epsilon(self) -> Epsilon:
        """What it costs under any promise."""
        return self.quote.most

    @property
    def words(self) -> tuple[str, ...]:
        """The price and the plan, in sentences."""
        if self.answers:
            price = f"Free: made from {len(self.answers):,} stored answers."
        elif self.quote.owned:
            price = "Already made: costs nothing."
        else:
            price = f"Costs ε = {self.epsilon:.3g}, once; drawing further rows is free."
        return (price, self.quote.explanation, *self.pair_words, GOOD_FOR, NOT_FOR)

    @property
    def pair_words(self) -> tuple[str, ...]:
        """How closely pairs of columns are measured, and how long it takes."""
        takes = f"It takes about {self.seconds:.0f} seconds."
        if not self.pair_margin:
            return (takes,)
        chosen = f", of which about {self.rounds:,} are chosen" if self.rounds else ""
        pairs = "1 pair" if self.pairs == 1 else f"{self.pairs:,} pairs"
        within = f"a number of a pair is within ±{self.pair_margin:,.0f} of the truth, 95 times in 100."
        return (f"{pairs} of columns{chosen}; {within} {takes}",)

    def __str__(self) -> str:
        lines = [
            f"{table.column}: {table.counted}, "
            + ("exact" if not table.margin else f"±{table.margin:,g} each, about {100 * table.off:.1f} % off")
            for table in self.tables
        ]
        return "\n".join((f"{self.quote.question} of {self.quote.dataset}", *self.words, *lines))
