"""What is said of a policy, as values: what it promises to a person, and how it differs from another.

Apart from whoever works them out, so that a client can read them without loading any of that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from blowfishdb.core.arrays import whole
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput
from blowfishdb.core.plain import Message


@final
@dataclass(frozen=True)
class Limit(Message):
    """How sure an attacker can become about values farther apart than one edge."""

    apart: str
    distance: int
    certainty: float


@final
@dataclass(frozen=True)
class Clause(Message):
    """The promise about one column, or about several that are hidden by one graph.

    ``certainty`` is about a hidden pair; None if no pair is. ``limits`` is about what is farther apart.
    """

    columns: tuple[str, ...]
    promise: str
    certainty: float | None
    limits: tuple[Limit, ...]
    beyond: str

    def __str__(self) -> str:
        return f"{self.promise} {self.beyond}".strip()


@final
@dataclass(frozen=True)
class Guarantee(Message):
    """A promise in words. ``together`` is about several columns, ``presence`` about being in the data.

    ``known`` says how the promise changes because of what everyone knows already, ``past`` what answers under
    earlier policies mean for it, ``about`` which rows it is about, ``history`` what was promised when, one
    dated sentence for each step.
    """

    _said = ("paragraphs",)

    budget: Epsilon
    rows_per_person: int
    clauses: tuple[Clause, ...]
    together: str
    presence: str
    not_hidden: tuple[str, ...]
    known: str = ""
    past: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    assumed: str = ""
    """What has to be true of several tables; empty for a single one."""

    def __post_init__(self) -> None:
        if whole(self.rows_per_person, "The number of rows per person", InvalidInput) < 1:
            raise InvalidInput("A person has at least one row.")

    @property
    def exposure(self) -> str:
        """What is not hidden from anyone, in one sentence; empty if there is nothing."""
        if not self.not_hidden:
            return ""
        *first, last = self.not_hidden
        return f"Not hidden: {', '.join(first)}, or {last}." if first else f"Not hidden: {last}."

    @property
    def assumption(self) -> str:
        """What has to be true of the data."""
        if self.assumed:
            return self.assumed
        if self.rows_per_person == 1:
            return "Assumes one row per person."
        return f"Assumes at most {self.rows_per_person:,} rows per person; they are hidden together."

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The whole guarantee, to be read from top to bottom."""
        last = f"{self.exposure} {self.assumption}".strip()
        said = (
            *_sentences(self.clauses),
            self.together,
            self.presence,
            self.known,
            *self.past,
            *self.about,
            last,
        )
        return tuple(text for text in said if text)


def _sentences(clauses: Sequence[Clause]) -> Iterator[str]:
    """What is promised, once for all columns of which it is the same but for the name."""
    alike: dict[tuple[str, ...], list[Clause]] = defaultdict(list)
    for clause in clauses:
        only = clause.columns[0] if len(clause.columns) == 1 else None
        own = clause.columns if only is None else tuple(str(clause).split(f"'{only}'"))
        alike[own].append(clause)
    for first, *others in alike.values():
        names = ", ".join(f"'{clause.columns[0]}'" for clause in others)
        yield f"{first} The same holds for {names}." if others else str(first)


@final
@dataclass(frozen=True)
class ColumnChange(Message):
    """One column before and after, in words. A flag is None where it could not be told."""

    column: str
    before: str
    after: str
    tightens: bool | None
    loosens: bool | None

    @property
    def changed(self) -> bool:
        """Whether anything about the column changes, or may change."""
        return self.tightens is not False or self.loosens is not False


@final
@dataclass(frozen=True)
class PolicyDifference(Message):
    """What changes from one policy to another.

    ``tightens``: pairs become hidden that were not; ``loosens``: pairs that were hidden no longer are; both
    can hold. None means that it could not be told. ``newly_exact`` are answers that become exact and free.
    ``kept`` says what the policy so far means for prices as long as nobody withdraws it; empty where it ends.
    """

    _said = ("same",)

    columns: tuple[ColumnChange, ...]
    tightens: bool | None
    loosens: bool | None
    newly_exact: tuple[str, ...]
    no_longer_exact: tuple[str, ...]
    sentences: tuple[str, ...]
    kept: str = ""

    @property
    def same(self) -> bool | None:
        """Whether both policies hide exactly the same; None if that could not be told."""
        if self.tightens or self.loosens:
            return False
        return True if self.tightens is False and self.loosens is False else None
