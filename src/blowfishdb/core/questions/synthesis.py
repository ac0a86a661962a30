"""A question for a synthetic table: which columns, in which bins, and which of them matters most.

Bins that nobody named follow from declaration and policy alone: as wide as the distance that is hidden, where
that leaves enough of them, and never more than a table of two columns can bear.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

from blowfishdb.core.arrays import ceil_div
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis, CellQuery
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.policy.columns import values_graph
from blowfishdb.core.policy.policy import Policy

USUAL_BINS: Final = 20
MOST_VALUES: Final = 128
_FEWEST_BINS: Final = 8
_PER_CELL: Final = 0.015
"""Cells of a pair for every row times ε: more would hold more noise than people."""


@final
@dataclass(frozen=True, eq=False)
class SyntheticQuestion:
    """Rows that look like those of the data, of some columns."""

    axes: tuple[Axis, ...]
    cut: frozenset[str] = frozenset()
    """Columns whose bins were named; the others get theirs from the policy."""
    target: str | None = None
    from_answers: bool = False
    """Whether it is made from what is out already, and nothing is measured."""
    rows: int | None = None
    """How many rows there are, once that is on record."""
    where: Predicate = field(default_factory=Everything)
    keep: tuple[str, ...] = ()
    """Public columns whose rows stay as they are."""

    def __post_init__(self) -> None:
        names = [axis.column for axis in self.axes]
        if len(set(names)) < len(names):
            raise InvalidWorkload("A synthetic table has every column once.")
        if self.target is not None and names and self.target not in names:
            raise InvalidWorkload(f"'{self.target}' is not one of the columns.", fixes=tuple(names))
        if self.keep and self.from_answers:
            raise InvalidWorkload(
                "Rows are kept where tables are measured, and not where it is made from answers.",
                fixes=("leave out keep", "state an ε"),
            )
        for name in self.keep:
            if name not in names:
                raise InvalidWorkload(f"'{name}' is not one of the columns.", fixes=tuple(names))
        if not isinstance(self.where, Everything):
            raise InvalidWorkload(
                "A synthetic table is about all rows: how many satisfy a condition may be hidden.",
                fixes=("leave out the condition, and filter the synthetic rows",),
            )

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(axis.column for axis in self.axes)

    def describe(self) -> str:
        """The question in words."""
        names = listed(self.columns)
        about = f" of {names}" if names else ""
        kept = f", rows of {listed(self.keep)} kept" if self.keep else ""
        return f"synthetic table{about}{kept}{' from stored answers' if self.from_answers else ''}"


@final
@dataclass(frozen=True, eq=False)
class SyntheticProblem:
    """The columns in their bins."""

    axes: tuple[Axis, ...]
    target: str | None
    rows: int
    answers: tuple[int, ...] = ()
    """The releases that it is made from, by number; none where it is measured."""
    keep: tuple[str, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """What becomes of values that are not declared, for every column."""
        return CellQuery(self.axes).notes


def project_synthesis(
    question: SyntheticQuestion, policy: Policy, epsilon: float | None = None
) -> SyntheticProblem:
    """Step 1: every column in bins, in the order of the domain; fewer where n·ε tells fewer apart."""
    most = USUAL_BINS
    if epsilon is not None and question.rows:
        most = min(most, max(_FEWEST_BINS, math.isqrt(int(_PER_CELL * question.rows * epsilon))))
    axes = [
        axis
        if axis.column in question.cut
        else Axis(axis.column, axis.attribute, usual_bins(policy, axis.column, most))
        for axis in question.axes
    ]
    order = policy.domain.names.index
    return SyntheticProblem(
        tuple(sorted(axes, key=lambda axis: order(axis.column))),
        question.target,
        question.rows or 0,
        keep=question.keep,
    )


def usual_bins(policy: Policy, column: str, most: int = USUAL_BINS) -> Bins:
    """The bins of a column for which none were named, at most so many of an ordered one."""
    attribute = policy.domain[column]
    if not attribute.ordered:
        if attribute.value_count > MOST_VALUES:
            raise InvalidWorkload(
                f"'{column}' has {attribute.value_count:,} values, too many for a synthetic table.",
                fixes=(f"name groups of them: ('{column}', {{'groups': …}})", "leave the column out"),
            )
        return attribute.bins()
    graph, _ = values_graph(policy, column)
    hidden = 1 if graph.complete else graph.line_reach or 1
    width = ceil_div(attribute.value_count, most)
    if hidden * _FEWEST_BINS <= attribute.value_count:
        width = max(width, hidden)  # then one move crosses at most one border
    return attribute.equal_bins(width)


def listed(names: Sequence[str]) -> str:
    """Names in a sentence."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
