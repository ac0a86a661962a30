"""What the world already knows about the data, as a curator declares it ([B14] §3.2).

Counts of conditions, whole tables of counts (marginals) and counts of ranges. How often they are true of the
data may be given; the noise does not depend on it, only on which counts are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, final

import numpy as np

from blowfishdb.core.arrays import whole
from blowfishdb.core.domain.bins import Bins, single_cells
from blowfishdb.core.domain.conditions import Between
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import And, Predicate
from blowfishdb.core.errors import InvalidInput, SizeMismatch

Name = str | int
"""A column by its name; over bare cells, an axis by its number."""


class Reading(Enum):
    """Which databases are neighbours when changing one record forces others to change.

    LITERAL is [B14] Def. 4.1 word by word: the others may change in any way. EDGE, which the paper's proofs
    use, lets every record move only along an edge of the policy; it hides less.
    """

    LITERAL = "literal"
    EDGE = "edge"


@final
@dataclass(frozen=True)
class Count:
    """How many rows satisfy a condition. Over bare cells: how many are in the listed ones."""

    where: Predicate | tuple[int, ...]
    answer: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.where, Predicate):
            cells = tuple(sorted({whole(cell, "A cell", InvalidInput) for cell in self.where}))
            if not cells or cells[0] < 0:
                raise InvalidInput("A known count is about a condition, or about cells numbered from 0.")
            object.__setattr__(self, "where", cells)
        _check_answer(self.answer)


@final
@dataclass(frozen=True)
class Marginal:
    """How many rows there are for every combination of some columns: SELECT …, COUNT(*) … GROUP BY ….

    ``bins`` groups the cells of a column; without them every value (and the missing ones) is a row of the
    table. ``answers`` is row-major, the last column fastest.
    """

    columns: tuple[Name, ...]
    bins: tuple[Bins | None, ...] = ()
    answers: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        names: object = self.columns
        columns = (names,) if isinstance(names, str | int) else tuple(self.columns)
        object.__setattr__(self, "columns", columns)
        if not columns or len(set(columns)) < len(columns):
            raise InvalidInput("A known table is about one or more different columns.")
        object.__setattr__(self, "bins", tuple(self.bins) or (None,) * len(columns))
        if len(self.bins) != len(columns):
            raise InvalidInput("A known table needs bins for each of its columns, or for none.")
        if self.answers is not None:
            object.__setattr__(self, "answers", tuple(self.answers))
            for answer in self.answers:
                _check_answer(answer)


@final
@dataclass(frozen=True)
class Range:
    """How many rows lie in a box: for each side a column, its lowest and its highest value, both included."""

    sides: tuple[tuple[Name, Any, Any], ...]
    answer: int | None = None

    def __post_init__(self) -> None:
        sides = tuple((name, low, high) for name, low, high in self.sides)
        object.__setattr__(self, "sides", sides)
        names = [name for name, _, _ in sides]
        if not sides or len(set(names)) < len(names):
            raise InvalidInput("A known range has one or more sides, each about another column.")
        for name, low, high in sides:
            if isinstance(name, int) and not 0 <= low <= high:
                raise InvalidInput("A range of cells goes from a cell to one that is not before it.")
        _check_answer(self.answer)

    @property
    def where(self) -> Predicate:
        """The box as a condition on columns."""
        parts = tuple(Between(str(name), low, high) for name, low, high in self.sides)
        return parts[0] if len(parts) == 1 else And(parts)


def _check_answer(answer: object) -> None:
    if answer is not None and whole(answer, "A known count", InvalidInput) < 0:
        raise InvalidInput("A known count cannot be negative.")


@final
@dataclass(frozen=True, init=False)
class Constraints:
    """Everything that is publicly known: ``Constraints(counts=[(col("sex") == "f", 512)],
    marginals=["region"])``.

    ``counts``: conditions, alone or with their answer. ``marginals``: columns, alone or as ``Marginal``.
    ``ranges``: ``{"age": (30, 39)}``, alone, with an answer, or as ``Range``. ``reading``: "literal" is
    safe.

    >>> census = bf.Constraints(counts=[(bf.col("age") >= 65, 120)])
    >>> census.describe()
    '1 known count'
    """

    counts: tuple[Count, ...]
    marginals: tuple[Marginal, ...]
    ranges: tuple[Range, ...]
    reading: Reading

    def __init__(
        self,
        counts: Iterable[Any] = (),
        marginals: Iterable[Any] = (),
        ranges: Iterable[Any] = (),
        reading: str | Reading = Reading.LITERAL,
    ) -> None:
        object.__setattr__(self, "counts", tuple(map(_count, _several(counts, "counts"))))
        object.__setattr__(self, "marginals", tuple(map(_marginal, _several(marginals, "marginals"))))
        object.__setattr__(self, "ranges", tuple(map(_range, _several(ranges, "ranges"))))
        try:
            object.__setattr__(self, "reading", Reading(reading))
        except ValueError:
            raise InvalidInput(
                "Neighbours are read in one of two ways: literal or edge.", fixes=('reading="literal"',)
            ) from None

    def __bool__(self) -> bool:
        return bool(self.counts or self.marginals or self.ranges)

    def plus(self, more: Constraints) -> Constraints:
        """These and others, read as these."""
        return Constraints(
            (*self.counts, *more.counts),
            (*self.marginals, *more.marginals),
            (*self.ranges, *more.ranges),
            self.reading,
        )

    def without(self, place: int) -> Constraints:
        """All but one, counted from 0 through tables, then counts, then ranges."""
        things = (*self.marginals, *self.counts, *self.ranges)
        if not 0 <= place < len(things):
            raise InvalidInput(f"There is no known thing number {place + 1}: there are {len(things)}.")
        rest = things[:place] + things[place + 1 :]
        return Constraints(
            [thing for thing in rest if isinstance(thing, Count)],
            [thing for thing in rest if isinstance(thing, Marginal)],
            [thing for thing in rest if isinstance(thing, Range)],
            self.reading,
        )

    def read_as(self, reading: str | Reading) -> Constraints:
        """The same with the other reading of neighbours."""
        return Constraints(self.counts, self.marginals, self.ranges, reading)

    @property
    def columns(self) -> frozenset[Name]:
        """Every column that something is known about."""
        names: set[Name] = set()
        for count in self.counts:
            names |= count.where.columns() if isinstance(count.where, Predicate) else set()
        for marginal in self.marginals:
            names |= set(marginal.columns)
        for box in self.ranges:
            names |= {name for name, _, _ in box.sides}
        return frozenset(names)

    def describe(self) -> str:
        """How much is known, in short."""
        counts, tables = len(self.counts) + len(self.ranges), len(self.marginals)
        parts = [
            f"{number:,} known {what}{'' if number == 1 else 's'}"
            for number, what in ((tables, "table"), (counts, "count"))
            if number
        ]
        return " and ".join(parts)

    def check(self, domain: Domain) -> None:
        """Everything fits the columns as they are declared."""
        for count in self.counts:
            if not isinstance(count.where, Predicate):
                raise InvalidInput(
                    "In a policy a known count is a condition on columns, not a list of cells."
                )
            count.where.check(domain)
        for marginal in self.marginals:
            _table_shape(marginal, domain)
        for box in self.ranges:
            box.where.check(domain)


def table_bins(marginal: Marginal, domain: Domain) -> dict[str, Bins]:
    """The rows of a known table: for each of its columns, the groups of cells."""
    sizes = {str(name): domain[str(name)].size for name in marginal.columns}
    return {
        name: single_cells(size) if bins is None else bins
        for (name, size), bins in zip(sizes.items(), marginal.bins, strict=True)
    }


def _table_shape(marginal: Marginal, domain: Domain) -> None:
    table = table_bins(marginal, domain)
    for name, bins in table.items():
        if bins.size != domain[name].size:
            raise SizeMismatch(
                f"The bins of the known table divide {bins.size:,} cells, but '{name}' has "
                f"{domain[name].size:,}."
            )
    rows = int(np.prod([bins.count for bins in table.values()], dtype=object))
    if marginal.answers is not None and len(marginal.answers) != rows:
        raise SizeMismatch(
            f"The known table has {rows:,} rows, but {len(marginal.answers):,} counts are given."
        )


# --- what may be written for short ------------------------------------------------------------------


def _several(values: object, what: str) -> Iterable[Any]:
    if isinstance(values, str | Predicate) or not isinstance(values, Iterable):
        raise InvalidInput(f"{what} is a list; write one thing in brackets too.")
    return values


def _count(value: Any) -> Count:
    if isinstance(value, Count):
        return value
    if isinstance(value, Predicate):
        return Count(value)
    if isinstance(value, Sequence) and len(value) == 2 and isinstance(value[0], Predicate | set | frozenset):
        return Count(value[0] if isinstance(value[0], Predicate) else tuple(value[0]), value[1])
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        return Count(tuple(value))
    raise InvalidInput(
        "A known count is a condition, or a condition and how many rows satisfy it.",
        fixes=('(col("sex") == "f", 512)',),
    )


def _marginal(value: Any) -> Marginal:
    if isinstance(value, Marginal):
        return value
    if isinstance(value, str | int):
        return Marginal((value,))
    if isinstance(value, Sequence) and value and all(isinstance(name, str | int) for name in value):
        return Marginal(tuple(value))
    raise InvalidInput("A known table is a column, or a tuple of columns.", fixes=('("sex", "region")',))


def _range(value: Any) -> Range:
    if isinstance(value, Range):
        return value
    if isinstance(value, Sequence) and len(value) == 2 and isinstance(value[0], Mapping):
        return Range(tuple((name, *ends) for name, ends in value[0].items()), value[1])
    if isinstance(value, Mapping):
        return Range(tuple((name, *ends) for name, ends in value.items()))
    if isinstance(value, Sequence) and len(value) == 2 and all(isinstance(end, int) for end in value):
        return Range(((0, *value),))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return Range(tuple((axis, *ends) for axis, ends in enumerate(value)))
    raise InvalidInput("A known range names columns and their ends.", fixes=('{"age": (30, 39)}',))
