"""Aggregates: how many rows, their sum, mean, variance and standard deviation, over all rows or in groups.

Every aggregate of a statement is read from one release: a few whole-number sums for every group, each a
polynomial of the place of a value between the lowest and the highest that counts (docs/proofs/aggregates.md).
Which sums follows from three public facts about the policy: whether a hidden move takes a row from one group
to another, whether one takes it in or out, and how far one goes inside a group.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, final

from blowfishdb.core.arrays import whole
from blowfishdb.core.domain.bins import Bins, whole_bin
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import Infeasible, InvalidInput, InvalidWorkload, NoGuarantee, TooLarge
from blowfishdb.core.questions.promise import significant

MEASURES: Final = ("count", "sum", "mean", "variance", "stddev")
"""What can be aggregated, in the order in which it is offered."""
SPREADS: Final = ("variance", "stddev")
_WORDS: Final = {"stddev": "standard deviation"}
_MOST_CELLS: Final = 2**31
_MOST_GROUPS: Final = 100_000
_MOST_COLUMNS: Final = 8


@final
@dataclass(frozen=True)
class Measure:
    """One aggregate: ``Measure("mean", "salary")``; the number of rows is of no column."""

    of: str
    column: str | None = None

    def __post_init__(self) -> None:
        if self.of not in MEASURES:
            raise InvalidInput(f"There is no aggregate {self.of!r}.", fixes=MEASURES)
        if self.column is not None and not isinstance(self.column, str):
            raise InvalidInput("A column is named by a text.")
        if self.column is None and self.of != "count":
            raise InvalidInput(f"A {self.of} is of a column.", fixes=(f"('{self.of}', 'salary')",))

    @property
    def words(self) -> str:
        """What is told, as people say it."""
        if self.of == "count":
            return "rows" if self.column is None else f"rows with a value of {self.column}"
        return f"{_WORDS.get(self.of, self.of)} of {self.column}"

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data, without what was not said."""
        return {"of": self.of, **({} if self.column is None else {"column": self.column})}

    @classmethod
    def from_plain(cls, stored: object) -> Measure:
        """An aggregate from its plain form; a text is the number of rows."""
        if isinstance(stored, str):
            return cls(stored)
        if not isinstance(stored, Mapping) or not {"of"} <= set(stored) <= {"of", "column"}:
            raise InvalidInput("An aggregate is an object with of and column.", fixes=('{"of": "count"}',))
        return cls(stored["of"], stored.get("column"))


@final
@dataclass(frozen=True, eq=False)
class AggregateQuestion:
    """Aggregates of some columns, of the rows of each group."""

    measures: tuple[Measure, ...]
    groups: tuple[Axis, ...]
    value: Axis | None
    """The column that is aggregated, the first of several; None where rows are only counted."""
    where: Predicate = field(default_factory=Everything)
    group_size: int | None = None
    """How many rows a group has at least for which an error is promised."""
    others: tuple[Axis, ...] = ()
    """More columns that are aggregated beside the first."""

    @classmethod
    def of(
        cls,
        measures: tuple[Measure, ...],
        groups: tuple[Axis, ...],
        domain: Domain,
        where: Predicate,
        group_size: int | None,
    ) -> AggregateQuestion:
        """Whatever cannot be asked of these columns is refused."""
        names = list(dict.fromkeys(each.column for each in measures if each.column is not None))
        if not measures or len(set(measures)) < len(measures):
            raise InvalidWorkload("One or more different aggregates are asked for.")
        if len(names) > _MOST_COLUMNS:
            raise TooLarge(
                f"The aggregates of one question are of at most {_MOST_COLUMNS} columns.",
                fixes=("ask for some of them at a time",),
            )
        columns = [axis.column for axis in groups]
        if len(set(columns)) < len(columns):
            raise InvalidWorkload("Groups are of one or more different columns.")
        if math.prod(axis.bins.count for axis in groups) > _MOST_GROUPS:
            raise TooLarge(f"At most {_MOST_GROUPS:,} groups are told apart.", fixes=("wider bins",))
        if group_size is not None and whole(group_size, "The size of a group", InvalidWorkload) < 1:
            raise InvalidWorkload("A group has at least one row.", fixes=("group_size=1000",))
        values = [_value_axis(n, domain, [each for each in measures if each.column == n]) for n in names]
        question = cls(measures, groups, values[0] if values else None, where, group_size, tuple(values[1:]))
        question._check_rows()
        return question

    @property
    def values(self) -> tuple[Axis, ...]:
        """Every column that is aggregated."""
        return () if self.value is None else (self.value, *self.others)

    def about(self, column: str) -> AggregateQuestion:
        """What is asked about one of the columns; rows are counted with the first."""
        first = self.value is not None and column == self.value.column
        kept = tuple(m for m in self.measures if m.column == column or (first and m.column is None))
        value = next(axis for axis in self.values if axis.column == column)
        return AggregateQuestion(kept, self.groups, value, self.where, self.group_size)

    def _check_rows(self) -> None:
        """Neither all rows nor other columns are told beside a column that leaves rows out."""
        leaving = next((axis.column for axis in self.values if axis.attribute.may_drop), None)
        if leaving is not None and self.others:
            raise InvalidWorkload(
                f"Rows without a value of '{leaving}' are left out, so other columns are not told with it.",
                fixes=("ask for each column by itself",),
            )
        if self.value is not None and self.counts_rows and self.value.attribute.may_drop:
            name = self.value.column
            raise InvalidWorkload(
                f"Rows without a value of '{name}' are left out, so all rows are not counted with it.",
                fixes=(f"count the rows with a value of '{name}'",),
            )

    @property
    def counts_rows(self) -> bool:
        """Whether rows are counted, those without a value included."""
        return any(each.of == "count" and each.column is None for each in self.measures)

    @property
    def columns(self) -> tuple[str, ...]:
        """What the answer is about, in the words of its head."""
        return (*(axis.column for axis in self.groups), *(("measure",) if self.listed else ()))

    @property
    def listed(self) -> bool:
        """Whether the aggregates are a dimension of the answer: there are several, or there is nothing
        else."""
        return len(self.measures) > 1 or not self.groups

    @property
    def labels(self) -> tuple[tuple[str, ...], ...]:
        """Groups, and aggregates, in words."""
        told = tuple(each.words for each in self.measures)
        return (*(axis.labels() for axis in self.groups), *((told,) if self.listed else ()))

    @property
    def promised(self) -> Measure | None:
        """The one aggregate whose error can be promised; None if there is none, or are several."""
        told = [each for each in self.measures if each.of != "count"]
        alone = len(told) == 1 and told[0].of not in SPREADS
        return told[0] if alone else (self.measures[0] if not told and len(self.measures) == 1 else None)

    def describe(self) -> str:
        """The question in words."""
        told = " and ".join(
            each.words if each != Measure("count") else "number of rows" for each in self.measures
        )
        groups = " and ".join(
            f"{axis.column} ({axis.bins.count:,} group{'' if axis.bins.count == 1 else 's'})"
            for axis in self.groups
        )
        where = "" if isinstance(self.where, Everything) else f" where {self.where}"
        return f"{told}{f' by {groups}' if groups else ''}{where}"


def _value_axis(name: str, domain: Domain, measures: Iterable[Measure]) -> Axis:
    attribute = domain[name]
    cut = Bins.edges(attribute.size, [0, attribute.value_count]) if attribute.has_missing_cell else None
    axis = Axis(name, attribute, cut or whole_bin(attribute.size))
    if any(each.of != "count" for each in measures):
        if not attribute.ordered or not isinstance(attribute.lower(0), int | Fraction):
            raise InvalidWorkload(
                f"Sums and means are of columns of numbers, and '{name}' is none.",
                fixes=(f"count the rows with a value of '{name}'", "ask for a histogram"),
            )
        if attribute.value_count > _MOST_CELLS:
            raise TooLarge(f"'{name}' has more cells than can be added up.", fixes=("declare a larger step",))
    return axis


def several_promised(question: AggregateQuestion) -> NoGuarantee:
    if any(each.of in SPREADS for each in question.measures):
        return NoGuarantee(
            "How far off a variance is depends on the data, so no error is promised for it beforehand.",
            fixes=("state an ε instead of an error: the answer has noise intervals",),
        )
    return NoGuarantee(
        "An error is stated for one mean or one sum; these are in different units.",
        fixes=("state an ε instead of an error: every answer has a noise interval",),
    )


def size_unsaid() -> NoGuarantee:
    return NoGuarantee(
        "How far off a mean is depends on how many rows it is of, and that is hidden.",
        fixes=(
            "say for how large groups the error holds: group_size=1000, or FOR GROUPS OF 1000",
            "state an ε instead of an error: the answer has noise intervals",
        ),
    )


def inside_cells(question: AggregateQuestion, off: float) -> Infeasible:
    """The refusal of an error that is smaller than what is not known about the values in a cell."""
    assert question.value is not None
    wide, name = question.value.attribute.ticks_per_cell, question.value.column
    return Infeasible(
        f"A cell of '{name}' holds {wide:,} values, and where in it a row lies is not counted: the mean may "
        f"be {significant(off, 9)} off without any noise.",
        fixes=(
            f"allow an error of more than {significant(off, 9)}",
            "ask the curator to declare steps of one",
        ),
    )
