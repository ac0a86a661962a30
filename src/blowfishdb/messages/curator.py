"""CURATOR VIEW, TRUE DATA: what the curator is shown of the rows, and nobody else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from blowfishdb.core.plain import Message
from blowfishdb.core.questions.readings import Reading
from blowfishdb.core.questions.synthesis import listed
from blowfishdb.messages.answers import Answer


@final
@dataclass(frozen=True, eq=False)
class Preview(Message):
    """CURATOR VIEW, TRUE DATA: what the answer is, and what an analyst could be told."""

    _said = ("watermark",)

    truth: Reading
    noisy: Answer
    stand_in: bool

    def __repr__(self) -> str:
        return f"<Preview of {self.noisy.receipt.question}>"

    @property
    def watermark(self) -> str:
        """What stands across every picture of it."""
        return "made-up data" if self.stand_in else "CURATOR VIEW, TRUE DATA"


@final
@dataclass(frozen=True)
class GivenAway(Message):
    """CURATOR VIEW, TRUE DATA: how well a public column tells a hidden one."""

    public: str
    hidden: str
    certain: float
    """The share of rows whose public value almost always comes with one hidden value."""
    right: float
    """How often the hidden value is guessed right from the public one."""
    before: float
    """How often it is guessed right without it."""

    @property
    def words(self) -> str:
        """The same in a sentence."""
        return (
            f"'{self.public}' gives '{self.hidden}' away, whatever ε is: {100 * self.certain:.0f} % of the "
            f"rows have a value of '{self.public}' that comes with one value of '{self.hidden}' at least 95 "
            f"times in 100. A guess of '{self.hidden}' from it is right for {100 * self.right:.0f} % of the "
            f"rows, one without it for {100 * self.before:.0f} %."
        )


@final
@dataclass(frozen=True)
class KeptColumns(Message):
    """CURATOR VIEW, TRUE DATA: what it means to keep rows of public columns, before it is confirmed."""

    _said = ("sentences",)

    columns: tuple[str, ...]
    confirmed: bool
    alone: int = 0
    """How many rows have values of these columns that no other row has."""
    rows: int = 0
    given_away: tuple[GivenAway, ...] = ()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is confirmed, and what should be known before."""
        warnings = tuple(each.words for each in self.given_away)
        if not self.columns:
            return ("No rows are kept: synthetic tables draw all columns.",)
        what = (
            f"Whoever may read answers can get {listed(self.columns)} of every row, together and as they "
            "are. These are real rows of real people. What was given cannot be taken back."
        )
        unlike = (
            f"{self.alone:,} of {self.rows:,} rows have values of them that no other row has: whoever knows "
            "these of a person finds that row."
        )
        alone = (unlike,) if self.alone else ()
        return (what, *alone, *warnings, "Confirmed." if self.confirmed else "Not confirmed yet.")


@final
@dataclass(frozen=True)
class TrueAgainst(Message):
    """CURATOR VIEW, TRUE DATA: one or two columns, true counts beside synthetic ones."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    """Of single columns; none of pairs, of which only the distance is told."""
    true: tuple[int, ...]
    synthetic: tuple[int, ...]
    off: float
    """Half of Σ|true − synthetic|, per row."""
    known: str
    """How the model knows them: ``measured``, ``kept``, ``modelled`` or ``independent``."""


@final
@dataclass(frozen=True)
class SyntheticComparison(Message):
    """CURATOR VIEW, TRUE DATA: how far synthetic rows are from the data. Never for anyone else."""

    _said = ("watermark", "sentences")

    number: int
    dataset: str
    columns: tuple[TrueAgainst, ...]
    pairs: tuple[TrueAgainst, ...]

    @property
    def watermark(self) -> str:
        """What stands across every picture of it."""
        return "CURATOR VIEW, TRUE DATA"

    @property
    def sentences(self) -> tuple[str, ...]:
        """How far off it is, in words."""
        parts = [("single columns", self.columns), ("pairs of columns", self.pairs)]
        told = tuple(
            f"Of {what} {100 * sum(one.off for one in some) / len(some):.2f} % of the rows are out of place "
            f"on average, of {' and '.join(worst.columns)} most: {100 * worst.off:.2f} %."
            for what, some in parts
            if some
            for worst in [max(some, key=lambda one: one.off)]
        )
        return (*told, "These are true numbers: to publish even their average would be a release of its own.")


@final
@dataclass(frozen=True)
class Unsatisfied(Message):
    """A declared count that the data does not satisfy."""

    what: str
    declared: int
    true: int


@final
@dataclass(frozen=True)
class KnownCheck(Message):
    """CURATOR VIEW, TRUE DATA: how many declared counts were looked at, and which are wrong."""

    _said = ("sentences",)

    checked: int
    wrong: tuple[Unsatisfied, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in words."""
        if not self.checked:
            return ("Nothing is declared with an answer, so there is nothing to check.",)
        if not self.wrong:
            return (f"The data satisfies all {self.checked:,} declared counts.",)
        first = f"The data does not satisfy {len(self.wrong):,} of {self.checked:,} declared counts."
        return (first, *(f"{w.what}: declared {w.declared:,}, counted {w.true:,}." for w in self.wrong))
