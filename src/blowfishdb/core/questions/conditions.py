"""Many counts as one question: of rows that satisfy each of several conditions, or of several tables.

Conditions may overlap and be about several columns. Together they cut the columns into cells, and each is a
sum of some of them: one linear question over those cells, planned and paid as a whole. So are the histograms
of several sets of columns, each summed over the other columns: all two-way tables of five columns, or a table
with its subtotals and its total.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np

from blowfishdb.core.arrays import whole
from blowfishdb.core.domain.bins import Bins, common_bins, whole_bin
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.domain.predicates import Predicate
from blowfishdb.core.errors import InvalidWorkload, TooLarge
from blowfishdb.core.policy.codec import plain, plain_condition
from blowfishdb.core.questions.kinds import Kind
from blowfishdb.core.questions.readings import Reading, Release, counted_reading
from blowfishdb.core.workloads import Marginals as MarginalRows
from blowfishdb.core.workloads import Matrix, Workload

Conditions = tuple[tuple[str, Predicate], ...]
"""Conditions by their names."""

_MOST_ENTRIES: Final = 4_000_000


@final
@dataclass(frozen=True)
class Counts(Kind):
    """How many rows satisfy each condition, in each of the ``groups``."""

    conditions: Conditions
    groups: tuple[Axis, ...] = ()
    name: str = field(default="counts", init=False)
    binned: bool = field(default=False, init=False)

    @property
    def title(self) -> str:
        groups = " and ".join(f"{axis.column} ({axis.bins.count:,} groups)" for axis in self.groups)
        return f"rows with {', '.join(self.told)}{f' by {groups}' if groups else ''}"

    @property
    def told(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.conditions)

    @property
    def _listed(self) -> bool:
        return len(self.conditions) > 1 or not self.groups

    def of(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        return (*(axis.column for axis in self.groups), *(("condition",) if self._listed else ()))

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        """A row for each condition in each group, over the boxes that all of them cut."""
        shape = tuple(axis.bins.count for axis in axes)
        grouped = tuple(axis.bins.count for axis in self.groups)
        rows = math.prod(grouped) * len(self.conditions)
        if math.prod(shape) * rows > _MOST_ENTRIES:
            raise TooLarge(
                f"{rows:,} conditions on {math.prod(shape):,} cells are too many for one question.",
                fixes=("fewer conditions, or wider groups",),
            )
        domain = Domain.of({axis.column: axis.attribute for axis in axes})
        boxes = np.unravel_index(np.arange(math.prod(shape)), shape)
        members = {axis.column: axis.bins.first(box) for axis, box in zip(axes, boxes, strict=True)}
        true = np.stack([condition.on_cells(domain, members) for _, condition in self.conditions])
        group = np.zeros(math.prod(shape), dtype=np.int64)
        if self.groups:
            labels = tuple(axis.bins.assign(members[axis.column]) for axis in self.groups)
            group = np.asarray(np.ravel_multi_index(labels, grouped))
        inside = np.arange(math.prod(grouped))[:, None] == group
        return Matrix((inside[:, None, :] & true[None, :, :]).reshape(rows, -1).astype(np.int64))

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        labels = tuple(axis.labels() for axis in self.groups)
        return counted_reading(release, (*labels, *((self.told,) if self._listed else ())))

    def identity(self) -> list[object]:
        conditions = [[name, plain_condition(condition)] for name, condition in self.conditions]
        return [self.name, conditions, [[axis.column, plain(axis.bins)] for axis in self.groups]]


def condition_axes(conditions: Conditions, groups: tuple[Axis, ...], domain: Domain) -> tuple[Axis, ...]:
    """Every column that is spoken of, cut wherever a condition or a group tells values apart.

    Rows that the declaration of one of them leaves out are in no cell, and count nowhere; answers say so.
    """
    if not conditions or len({name for name, _ in conditions}) < len(conditions):
        raise InvalidWorkload("Conditions are listed, each with a name of its own.")
    cut: dict[str, Bins] = {axis.column: axis.bins for axis in groups}
    for _, condition in conditions:
        for name, bins in condition.cuts(domain).items():
            cut[name] = common_bins(cut.get(name), bins, domain[name].size)
    if not cut:
        keeping = (name for name, attribute in domain.columns if not attribute.may_drop)
        name = next(keeping, domain.names[0])
        cut[name] = whole_bin(domain[name].size)
    return tuple(Axis(name, domain[name], bins) for name, bins in cut.items())


# --- several tables ---------------------------------------------------------------------------------------

Sets = tuple[tuple[str, ...], ...]
"""Sets of columns, each with a histogram of its own; one without a column counts all rows."""

_MOST_SETS: Final = 1_000
_MOST_NUMBERS: Final = 1_000_000


def all_sets(columns: tuple[str, ...], ways: int) -> Sets:
    """Every set of so many of the columns."""
    if not 0 <= whole(ways, "The number of columns in each table", InvalidWorkload) <= len(columns):
        raise InvalidWorkload(f"A table of {ways} columns is not made of {len(columns)}.")
    return tuple(itertools.combinations(columns, ways))


@final
@dataclass(frozen=True)
class Marginals(Kind):
    """How many rows are in each bin of each set of columns."""

    sets: Sets
    name: str = field(default="marginals", init=False)

    def __post_init__(self) -> None:
        distinct = {frozenset(each) for each in self.sets}
        if not self.sets or len(distinct) < len(self.sets):
            raise InvalidWorkload("Marginals are of one or more different sets of columns.")
        if len(self.sets) > _MOST_SETS:
            raise TooLarge(f"At most {_MOST_SETS:,} sets of columns are one question.")

    @property
    def title(self) -> str:
        ways = {len(each) for each in self.sets}
        same = f"{ways.pop()}-way " if len(ways) == 1 else ""
        return f"{len(self.sets):,} {same}marginal{'' if len(self.sets) == 1 else 's'}"

    def of(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        return ("group",)

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        places = {axis.column: at for at, axis in enumerate(axes)}
        stray = [name for each in self.sets for name in each if name not in places]
        if stray:
            raise InvalidWorkload(f"'{stray[0]}' is not one of the columns of these marginals.")
        rows = MarginalRows(
            tuple(axis.bins.count for axis in axes), [[places[name] for name in each] for each in self.sets]
        )
        if rows.count > _MOST_NUMBERS:
            raise TooLarge(
                f"These marginals are {rows.count:,} numbers; at most {_MOST_NUMBERS:,} are one question.",
                fixes=("wider bins, or fewer columns",),
            )
        return rows

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        return counted_reading(release, (tuple(name for name, _ in cells_of_sets(self.sets, axes)),))

    def identity(self) -> list[object]:
        return [self.name, [sorted(each) for each in self.sets]]


def cells_of_sets(sets: Sets, axes: tuple[Axis, ...]) -> list[tuple[str, dict[str, int]]]:
    """Every group of each set of columns in words, with the bin of each column that it is of."""
    told = []
    for columns in sets:
        named = [(axis.column, axis.labels()) for axis in axes if axis.column in columns]
        for bins in itertools.product(*(range(len(labels)) for _, labels in named)):
            words = (f"{name} {labels[bin_]}" for (name, labels), bin_ in zip(named, bins, strict=True))
            cells = dict(zip((name for name, _ in named), bins, strict=True))
            told.append((", ".join(words) or "all rows", cells))
    return told
