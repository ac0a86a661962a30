"""Questions: what an analyst can ask, as linear counting questions and a way to read their answers.

Every kind of question is answered from one private linear release. The kind says which counts it
needs, how accurate they must be for the accuracy that was asked for, and how to read the noisy
counts; reading is post-processing and costs nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Final, final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import IntArray, whole
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.bins import Bins, whole_bin
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.domain.values import Value, text
from blowfishdb.core.errors import Infeasible, InvalidInput, InvalidWorkload, NotCounted
from blowfishdb.core.questions import readings
from blowfishdb.core.questions.promise import sentence, significant
from blowfishdb.core.questions.readings import (
    Reading,
    Release,
    counted_reading,
    group_by_group,
    increasing,
    picked,
    put_together,
)
from blowfishdb.core.workloads import Balances as BalanceRows
from blowfishdb.core.workloads import Cumulative as CumulativeRows
from blowfishdb.core.workloads import Histogram as HistogramRows
from blowfishdb.core.workloads import Product, Rectangles, ValueSum, Workload
from blowfishdb.core.workloads import Ranges as RangeRows

_ONE_ROW: Final = 0.5  # less is none
_MOST_BALANCES: Final = 2_000
_FINEST_SHARE: Final = 1_000


class Kind(ABC):
    """A form of question."""

    name: str
    needs_order: bool = False
    columns: int | None = None
    binned: bool = True
    """Whether the answer is about bins that the asker chose."""
    by: tuple[str, ...] = ()
    """The columns by which rows are grouped: the same is asked of the rows of every group."""

    @property
    def title(self) -> str:
        """What is asked, as people say it."""
        return self.name

    @abstractmethod
    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        """The linear questions over the boxes of ``axes``."""

    def requirement(self, accuracy: Accuracy, axes: tuple[Axis, ...]) -> Accuracy:
        """How accurate the linear answers must be."""
        return accuracy

    def promised(self, alpha: float, axes: tuple[Axis, ...]) -> float:
        """The accuracy of the answer when the linear answers are within ±``alpha``."""
        return alpha

    def of(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        """The columns that the answer is about, as it names them."""
        return tuple(axis.column for axis in axes)

    @property
    def told(self) -> tuple[str, ...]:
        """What is told of every group, in words, where that is not one number."""
        return ()

    def needs_rows(self, axes: tuple[Axis, ...]) -> bool:
        """Whether it has a price only once the number of its rows is on record."""
        return False

    def told_by_counts(self, axes: tuple[Axis, ...]) -> bool:
        """Whether exact counts make an exact answer."""
        return True

    def notes(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        """As what values count, where that is not what they are."""
        return ()

    @final
    def promise(self, alpha: float | None, beta: float | None, simultaneous: bool) -> str:
        """What is promised about an answer of this kind, in one sentence."""
        return sentence(self.name, alpha, beta, simultaneous)

    @abstractmethod
    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        """The answer that people see."""

    def identity(self) -> list[object]:
        """What tells two questions of this kind apart, as plain data."""
        return [self.name]


@final
@dataclass(frozen=True)
class Histogram(Kind):
    """How many rows are in each bin."""

    name: str = field(default="histogram", init=False)

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        return _product([HistogramRows(axis.bins.count) for axis in axes])

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        return counted_reading(release, tuple(axis.labels() for axis in axes))


def counted_all_the_same(axis: Axis) -> str | None:
    """Of a column whose missing values are folded into a declared one: who has none has one. Else None."""
    if axis.attribute.missing != "clamp":
        return None
    return f"{axis.column}: missing values count as a declared one, so rows without a value are counted too."


@final
@dataclass(frozen=True)
class Count(Kind):
    """How many rows there are, or how many have a value in each of the ``named`` columns.

    Rows are counted along some column even if none is named: one that drops no row, where there is one. What
    has a cell for missing values counts them among the rows, but not among the values of a named column.
    """

    named: tuple[str, ...] = ()
    name: str = field(default="count", init=False)
    binned: bool = field(default=False, init=False)

    @staticmethod
    def axis(column: str, attribute: Attribute, *, named: bool) -> Axis:
        """All cells in one bin; missing values in another if the column is named."""
        if not named or not attribute.has_missing_cell:
            return Axis(column, attribute, whole_bin(attribute.size))
        return Axis(column, attribute, Bins.edges(attribute.size, [0, attribute.value_count]))

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        alone = (axis.bins.count == 1 for axis in axes)
        return _product([HistogramRows(1) if one else RangeRows(2, [0], [0]) for one in alone])

    def of(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        return self.named

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        return counted_reading(release, ((self.rows(axes),),))

    def rows(self, axes: tuple[Axis, ...]) -> str:
        """Which rows are counted, in words."""
        columns = self.named or tuple(axis.column for axis in axes if axis.attribute.may_drop)
        return f"rows with a value of {' and '.join(columns)}" if columns else "rows"

    def notes(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        return tuple(filter(None, map(counted_all_the_same, axes))) if self.named else ()

    def identity(self) -> list[object]:
        """Without a column it is the histogram with one bin; with one, its missing values do not count."""
        return ["count" if self.named else "histogram"]


@final
@dataclass(frozen=True)
class Cumulative(Kind):
    """How many rows are in each bin or below it."""

    by: tuple[str, ...] = ()
    name: str = field(default="cumulative", init=False)
    needs_order: bool = field(default=True, init=False)

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        return _product([_counted_along(axis, self.by) for axis in axes])

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        labels = tuple(axis.labels() if axis.column in self.by else axis.ends() for axis in axes)
        if len(axes) - len(self.by) > 1 or not release.one_curve:
            return counted_reading(release, labels)
        curves = [increasing(line, ()) for line in group_by_group(release, axes, self.by)]
        return put_together(curves, axes, self.by, labels)

    def identity(self) -> list[object]:
        return [self.name, *([sorted(self.by)] if self.by else [])]


@final
@dataclass(frozen=True)
class Ranges(Kind):
    """How many rows have a value from one to another, both included.

    Of several columns a range is a rectangle: a pair of ends for each of the columns ``along``, in their
    order.
    """

    bounds: tuple[tuple[Any, ...], ...]
    along: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    name: str = field(default="ranges", init=False)
    needs_order: bool = field(default=True, init=False)
    binned: bool = field(default=False, init=False)

    @property
    def title(self) -> str:
        if len(self.along) > 1:
            return f"{len(self.bounds):,} rectangles" if len(self.bounds) > 1 else "a rectangle"
        return f"{len(self.bounds):,} ranges" if len(self.bounds) > 1 else "a range"

    @property
    def _boxes(self) -> tuple[tuple[tuple[Value, Value], ...], ...]:
        """A pair of ends for each column, also where there is one."""
        return self.bounds if len(self.along) > 1 else tuple((pair,) for pair in self.bounds)

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        if not self.bounds:
            raise InvalidWorkload("Ranges need at least one pair of bounds.", fixes=("[(0, 9_999)]",))
        ends = {axis.column: self._cells(axis) for axis in axes if axis.column not in self.by}
        if len(axes) == 1:
            (cut,) = ends.values()
            return RangeRows(axes[0].bins.count, cut[:, 0], cut[:, 1])
        groups = [axis.bins.count for axis in axes if axis.column in self.by]
        group, box = np.divmod(np.arange(math.prod(groups) * len(self.bounds)), len(self.bounds))
        within = iter(np.unravel_index(group, groups) if groups else ())
        corners = []
        for axis in axes:
            if axis.column in self.by:
                at = next(within)
                corners.append((at, at))
            else:
                corners.append((ends[axis.column][box, 0], ends[axis.column][box, 1]))
        shape = tuple(axis.bins.count for axis in axes)
        lows, highs = (np.column_stack([both[side] for both in corners]) for side in (0, 1))
        return Rectangles(shape, lows, highs)

    def _cells(self, axis: Axis) -> IntArray:
        """The bins from which to which each range goes along one column."""
        place = self.along.index(axis.column) if len(self.along) > 1 else 0
        ends = np.array([axis.attribute.cells_between(*box[place]) for box in self._boxes])
        cut = axis.bins.assign(ends)
        aligned = (axis.bins.first(cut[:, 0]) == ends[:, 0]) & (axis.bins.last(cut[:, 1]) == ends[:, 1])
        if not aligned.all():
            raise InvalidWorkload("A range ends inside a bin.", fixes=("leave out the bins",))
        return cut

    def of(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        groups = (axis.column for axis in axes if axis.column in self.by)
        named = self.along or tuple(axis.column for axis in axes if axis.column not in self.by)
        return (*groups, " and ".join(named))

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        groups = (axis.labels() for axis in axes if axis.column in self.by)
        known = {axis.column: axis for axis in axes if axis.column not in self.by}
        along = [known[name] for name in self.along] if len(self.along) > 1 else list(known.values())
        told = tuple(
            ", ".join(f"{axis.show(lo)}–{axis.show(hi)}" for axis, (lo, hi) in zip(along, box, strict=True))
            for box in self._boxes
        )
        return counted_reading(release, (*groups, told))

    def identity(self) -> list[object]:
        bounds = [[[text(lo), text(hi)] for lo, hi in box] for box in self._boxes]
        if len(self.along) <= 1 and not self.by:
            return [self.name, [pair for (pair,) in bounds]]
        return [self.name, bounds, list(self.along), sorted(self.by)]


@final
@dataclass(frozen=True)
class Quantiles(Kind):
    """The values below which given shares of the rows lie; accuracy counts people (rank).

    What is promised of the values is their intervals (``core.quantiles``), and of all of them at once.
    """

    shares: tuple[float, ...]
    by: tuple[str, ...] = ()
    of_column: str = ""
    """Whose they are, where they are told of groups."""
    balanced: bool = False
    """Whether they are read from balances, how many more rows lie up to a value than their share of all,
    instead of a curve: where the number of rows is hidden these are known more closely."""
    name: str = field(default="quantiles", init=False)
    needs_order: bool = field(default=True, init=False)
    columns: int | None = field(default=1, init=False)

    def __post_init__(self) -> None:
        if not self.shares or not all(0 <= share <= 1 for share in self.shares):
            raise InvalidWorkload("Quantiles are shares between 0 and 1.", fixes=("[0.25, 0.5, 0.75]",))

    @property
    def title(self) -> str:
        named = ", ".join(f"{100 * share:g} %" for share in self.shares[:3])
        return "median" if self.shares == (0.5,) else f"quantiles {named}{' …' * (len(self.shares) > 3)}"

    @property
    def told(self) -> tuple[str, ...]:
        if not self.by:
            return ()
        words = (f"{100 * share:g} % quantile" for share in self.shares)
        return tuple(
            f"{'median' if share == 0.5 else word} of {self.of_column}"
            for share, word in zip(self.shares, words, strict=True)
        )

    def of(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        if not self.by:
            return tuple(axis.column for axis in axes)
        groups = (axis.column for axis in axes if axis.column in self.by)
        return (*groups, *(("measure",) if len(self.shares) > 1 else ()))

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        readings.in_units(self._values(axes).attribute.lower(0))  # refused before anything is paid for
        if self.balanced:
            return BalanceRows(axes[0].bins.count, self._fractions)
        return _product([_counted_along(axis, self.by) for axis in axes])

    @property
    def _fractions(self) -> tuple[Fraction, ...]:
        """The shares as they were written."""
        return tuple(Fraction(repr(float(share))) for share in self.shares)

    def can_be_balanced(self, axes: tuple[Axis, ...]) -> bool:
        """Whether balances tell the same: of the rows of one group, for shares that are no ends.

        Their rows are written out, so these may not be too many, nor their entries too long.
        """
        if self.by or self.balanced or len(axes) != 1 or axes[0].attribute.has_missing_cell:
            return False
        short = math.lcm(*(share.denominator for share in self._fractions)) <= _FINEST_SHARE
        rows = axes[0].bins.count * len(self.shares)
        return short and all(0 < share < 1 for share in self.shares) and 1 < rows <= _MOST_BALANCES

    def _values(self, axes: tuple[Axis, ...]) -> Axis:
        """The column whose quantiles they are."""
        return next(axis for axis in axes if axis.column not in self.by)

    def told_by_counts(self, axes: tuple[Axis, ...]) -> bool:
        """They leave a quantile anywhere in its bin."""
        return False

    def requirement(self, accuracy: Accuracy, axes: tuple[Axis, ...]) -> Accuracy:
        """The whole curve at once: which of its places a quantile is read from is not known beforehand."""
        return replace(accuracy, simultaneous=True)

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        """Where the tidy curve reaches the share, between the bins at which the edges of its band do.

        Where its interval is all that is declared there are too few rows to say.
        """
        if self.by:
            return self._read_groups(release, axes)
        (axis,) = axes
        labels = (tuple(f"{100 * share:g} %" for share in self.shares),)
        if self.balanced:
            return self._read_balances(release, labels, axis)
        curve = increasing(release, ((),))
        values = readings.middle(curve.values, self.shares, axis)
        if curve.low is None or curve.high is None:
            return Reading(labels, values, None, None, np.zeros(len(values), dtype=np.bool_))
        low, high = readings.ends(curve.low, curve.high, self.shares, axis)
        lowest, highest = readings.declared_ends(axis)
        few = (low <= lowest) & (high >= highest) & (lowest < highest)
        exact = (low == high) & bool(release.exact.all())
        return Reading(labels, np.where(few, np.nan, values), low, high, exact & ~few)

    def _read_balances(self, release: Release, labels: tuple[tuple[str, ...], ...], axis: Axis) -> Reading:
        """Where the tidy balance of each share reaches zero, between where the edges of its band do."""
        lines = release.values.reshape(len(self.shares), -1)
        tidy = np.stack([readings.nearest_increasing(line) for line in lines])
        values = readings.balanced(tidy, self.shares, axis)
        none = np.zeros(len(values), dtype=np.bool_)
        if release.margins is None:
            return Reading(labels, values, None, None, none)
        low, high = readings.between(tidy, release.margins.reshape(tidy.shape), axis)
        lowest, highest = readings.declared_ends(axis)
        few = (low <= lowest) & (high >= highest) & (lowest < highest)
        return Reading(labels, np.where(few, np.nan, np.clip(values, low, high)), low, high, none)

    def _read_groups(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        """The same of every group.

        Where its interval is all that is declared there are too few rows to say, and where there are none
        there is no quantile.
        """
        axis = self._values(axes)
        lines = group_by_group(replace(release, simultaneous=True), axes, self.by)
        told = [replace(self, by=()).read(line, (axis,)) for line in lines]
        most = (line.values[-1] + (0.0 if line.exact[-1] else release.alpha or 0.0) for line in lines)
        empty = [rows < _ONE_ROW for rows in most]
        values, exact = (
            np.concatenate(each) for each in zip(*((t.values, t.exact) for t in told), strict=True)
        )
        none = np.repeat(empty, len(self.shares))
        groups = tuple(each.labels() for each in axes if each.column in self.by)
        labels = (*groups, *((self.told,) if len(self.shares) > 1 else ()))
        if release.alpha is None:
            return Reading(labels, np.where(none, np.nan, values), None, None, exact & ~none)
        lowest, highest = readings.declared_ends(axis)
        low = np.where(none, lowest, np.concatenate([each.low for each in told if each.low is not None]))
        high = np.where(none, highest, np.concatenate([each.high for each in told if each.high is not None]))
        few = none | ((low <= lowest) & (high >= highest) & (lowest < highest))
        return Reading(labels, np.where(few, np.nan, values), low, high, exact & ~few)

    def identity(self) -> list[object]:
        return [
            self.name,
            list(self.shares),
            "intervals of whole bins",
            *([sorted(self.by)] if self.by else []),
        ]


@final
@dataclass(frozen=True)
class Sum(Kind):
    """The sum of a numeric column in its own units, or its ``mean`` over a public number of ``rows``.

    Cells are counted, and the lowest values of cells are what is summed and hidden by noise. Where a cell
    holds w > 1 values, its rows lie anywhere from its lowest value to w − 1 above: of so many ``rows`` each
    counts as the middle, and is at most (w − 1)/2 off. The error that is asked for and promised has this in
    it.

    What needs ``rows`` can be checked and described without them, but has no price yet.
    """

    rows: int | None = None
    mean: bool = False
    needs_order: bool = field(default=True, init=False)
    columns: int | None = field(default=1, init=False)
    binned: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.rows is not None and whole(self.rows, "The number of rows", InvalidWorkload) < self.mean:
            raise InvalidWorkload(
                "A mean of no rows does not exist.", fixes=("a condition that some rows can satisfy",)
            )

    @property
    def name(self) -> str:  # type: ignore[override]
        return "mean" if self.mean else "sum"

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        (axis,) = axes
        unit, first, stride = units_of(axis)
        lost = axis.attribute.has_missing_cell
        return ValueSum(axis.attribute.size, int(first / unit), int(stride / unit), missing=lost)

    def needs_rows(self, axes: tuple[Axis, ...]) -> bool:
        return self.mean or inside_a_cell(axes[0]) > 0

    def told_by_counts(self, axes: tuple[Axis, ...]) -> bool:
        return not inside_a_cell(axes[0])

    def notes(self, axes: tuple[Axis, ...]) -> tuple[str, ...]:
        (axis,) = axes
        off = inside_a_cell(axis)
        if not off:
            return ()
        wide, each = f"{axis.attribute.ticks_per_cell:,}", significant(float(off), 9)
        return (
            f"{axis.column}: a value counts as the middle of its cell of {wide}, so it may be {each} off; "
            f"the error of the {self.name} includes that.",
        )

    def uncounted(self, count: str = "count()") -> NotCounted:
        """The refusal of what needs rows that nobody has counted, though everyone may know their number."""
        subject = "A mean" if self.mean else "A sum over cells of several values"
        return NotCounted(
            f"{subject} needs the number of rows. It is public, but nobody has asked for it yet.",
            fixes=(f"ask for {count} first: it is exact and free",),
        )

    def _counted(self, axes: tuple[Axis, ...]) -> int:
        """The number of rows; 1 for what does without."""
        if self.rows is None and self.needs_rows(axes):
            raise self.uncounted()
        return 1 if self.rows is None else self.rows

    def _unit(self, axes: tuple[Axis, ...]) -> float:
        """What one unit of the whole-number sum is worth in the answer."""
        rows = self._counted(axes)
        return float(units_of(axes[0])[0] / (rows if self.mean else 1))

    def _off(self, axes: tuple[Axis, ...]) -> float:
        """How far the answer is off at most because values lie somewhere in their cells."""
        rows = self._counted(axes)
        return float(inside_a_cell(axes[0]) * (1 if self.mean else rows))

    def requirement(self, accuracy: Accuracy, axes: tuple[Axis, ...]) -> Accuracy:
        off = self._off(axes)
        if off and accuracy.alpha <= off:
            wide = axes[0].attribute.ticks_per_cell
            raise Infeasible(
                f"A cell of '{axes[0].column}' holds {wide:,} values, and where in it a row lies is not "
                f"counted: the {self.name} may be {significant(off, 9)} off without any noise.",
                fixes=(
                    f"allow an error of more than {significant(off, 9)}",
                    "ask the curator to declare steps of one",
                ),
            )
        return replace(accuracy, alpha=(accuracy.alpha - off) / self._unit(axes))

    def promised(self, alpha: float, axes: tuple[Axis, ...]) -> float:
        return alpha * self._unit(axes) + self._off(axes)

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        off, margins = self._off(axes), release.margins
        values, exact = release.values * self._unit(axes) + off, release.exact & (off == 0)
        if margins is None:
            return Reading(((self.name,),), values, None, None, exact)
        margins = margins * self._unit(axes) + off
        return Reading(((self.name,),), values, values - margins, values + margins, exact)

    def identity(self) -> list[object]:
        return [self.name, self.rows]


@final
@dataclass(frozen=True)
class Top(Kind):
    """The ``count`` fullest bins ([APEx] TCQ).

    With c_k the k-th largest count: with probability 1−β no bin below c_k−α is returned and none above
    c_k+α is missed. Each bin can fail on one side only: let T be the bins above c_k and as many of those
    at c_k as make them k. If no bin of T is more than α/2 too low and no other more than α/2 too high, then

    - a bin below c_k−α ends below c_k−α/2, so all k bins of T are in front of it;
    - were a bin above c_k+α missed, k bins at or below c_k or in T would be in front of it: one of them is
      not in T, and it ends at most at c_k+α/2, behind the one that was missed.
    """

    count: int
    name: str = field(default="top", init=False)
    columns: int | None = field(default=1, init=False)

    def __post_init__(self) -> None:
        if whole(self.count, "The number of bins", InvalidWorkload) < 1:
            raise InvalidWorkload(f"At least one bin must be asked for, not {self.count}.")

    @property
    def title(self) -> str:
        return f"top {self.count:,}"

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        return HistogramRows(axes[0].bins.count)

    def requirement(self, accuracy: Accuracy, axes: tuple[Axis, ...]) -> Accuracy:
        return replace(accuracy, alpha=accuracy.alpha / 2, one_sided=True, simultaneous=True)

    def promised(self, alpha: float, axes: tuple[Axis, ...]) -> float:
        return 2 * alpha

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        order = np.argsort(-release.values, kind="stable")[: self.count]
        return picked(release, axes[0], order)

    def identity(self) -> list[object]:
        return [self.name, self.count]


@final
@dataclass(frozen=True)
class Above(Kind):
    """The bins with more than ``limit`` rows ([APEx] ICQ, iceberg).

    With probability 1−β no bin below limit−α is returned and none above limit+α is missed. Each bin can
    fail on one side only.
    """

    limit: float
    name: str = field(default="above", init=False)
    columns: int | None = field(default=1, init=False)

    def __post_init__(self) -> None:
        if (
            isinstance(self.limit, bool)
            or not isinstance(self.limit, int | float)
            or not math.isfinite(self.limit)
        ):
            raise InvalidInput(f"The limit must be a number of rows, not {self.limit!r}.")

    @property
    def title(self) -> str:
        return f"more than {self.limit:,g} rows in a bin"

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        return HistogramRows(axes[0].bins.count)

    def requirement(self, accuracy: Accuracy, axes: tuple[Axis, ...]) -> Accuracy:
        return replace(accuracy, one_sided=True, simultaneous=True)

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        return picked(release, axes[0], np.flatnonzero(release.values > self.limit))

    def identity(self) -> list[object]:
        return [self.name, self.limit]


@final
@dataclass(frozen=True, eq=False)
class Question:
    """What an analyst wants to know, before accuracy and price."""

    kind: Kind
    axes: tuple[Axis, ...]
    where: Predicate = field(default_factory=Everything)

    def __post_init__(self) -> None:
        names = [axis.column for axis in self.axes]
        if not names or len(set(names)) != len(names):
            raise InvalidWorkload("A question is about one or more different columns.")
        asked = [axis for axis in self.axes if axis.column not in self.kind.by]
        if self.kind.columns not in (None, len(asked)):
            raise InvalidWorkload(f"A question for {self.kind.name} is about one column, not {len(asked)}.")
        if self.kind.needs_order and not all(axis.attribute.ordered for axis in asked):
            raise InvalidWorkload(
                f"'{self.kind.name}' is asked of columns whose values have an order.",
                fixes=("ask for a histogram", "ask the curator to declare the order of its values"),
            )

    @property
    def needs_rows(self) -> bool:
        """Whether it has a price only once the number of its rows is on record."""
        return self.kind.needs_rows(self.axes)

    @property
    def told_by_counts(self) -> bool:
        """Whether exact counts make an exact answer."""
        return self.kind.told_by_counts(self.axes)

    def describe(self) -> str:
        """The question in words."""
        where = "" if isinstance(self.where, Everything) else f" where {self.where}"
        if isinstance(self.kind, Count):
            return f"number of {self.kind.rows(self.axes)}{where}"
        by = [axis for axis in self.axes if axis.column in self.kind.by]
        groups = f" by {' and '.join(map(_groups, by))}" if by else ""
        if self.kind.told and not by:
            return f"{self.kind.title}{where}"
        asked = (axis for axis in self.axes if axis.column not in self.kind.by)
        named = (_bins(axis) if self.kind.binned else axis.column for axis in asked)
        return f"{self.kind.title} of {' and '.join(named)}{groups}{where}"


def _bins(axis: Axis) -> str:
    return f"{axis.column} ({axis.value_bins:,} bin{'' if axis.value_bins == 1 else 's'})"


def _groups(axis: Axis) -> str:
    return f"{axis.column} ({axis.bins.count:,} group{'' if axis.bins.count == 1 else 's'})"


def _product(factors: Sequence[Workload]) -> Workload:
    return factors[0] if len(factors) == 1 else Product(*factors)


def curve_rows(axis: Axis) -> Workload:
    """Missing values have a bar of their own, but no place on a line."""
    if not axis.attribute.has_missing_cell:
        return CumulativeRows(axis.bins.count)
    values = np.arange(axis.value_bins)
    return RangeRows(axis.bins.count, np.zeros_like(values), values)


def _counted_along(axis: Axis, by: tuple[str, ...]) -> Workload:
    """Every group by itself, and what lies at or below each end of the other columns."""
    return HistogramRows(axis.bins.count) if axis.column in by else curve_rows(axis)


def inside_a_cell(axis: Axis) -> Fraction:
    """How far a value may be from the middle of its cell."""
    return Fraction(min(axis.attribute.ticks_per_cell, axis.attribute.ticks) - 1, 2)


def units_of(axis: Axis) -> tuple[Fraction, Fraction, Fraction]:
    """The largest unit in which all values of a column are whole, its lowest value, and its step."""
    lowest, second = (axis.attribute.lower(min(cell, axis.attribute.value_count - 1)) for cell in (0, 1))
    readings.in_units(lowest)
    first = Fraction(lowest)  # type: ignore[arg-type]
    step = Fraction(second) - first or Fraction(1)  # type: ignore[arg-type]
    common = math.lcm(first.denominator, step.denominator)
    unit = Fraction(math.gcd(int(first * common), int(step * common)), common)
    return unit, first, step
