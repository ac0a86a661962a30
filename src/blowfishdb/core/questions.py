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
from typing import final

import numpy as np

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.arrays import BoolArray, FloatArray, whole
from blowfishdb.core.axis import Axis
from blowfishdb.core.errors import InvalidInput, InvalidWorkload
from blowfishdb.core.predicates import Everything, Predicate
from blowfishdb.core.tidy import tidy_counts, tidy_cumulative
from blowfishdb.core.values import Value, text
from blowfishdb.core.workloads import Cumulative as CumulativeRows
from blowfishdb.core.workloads import Histogram as HistogramRows
from blowfishdb.core.workloads import Product, ValueSum, Workload
from blowfishdb.core.workloads import Ranges as RangeRows


@final
@dataclass(frozen=True, eq=False)
class Release:
    """Noisy counts as they left the mechanism, with what is known about their error."""

    values: FloatArray
    exact: BoolArray
    alpha: float | None
    """None where the mechanism promises no error."""
    simultaneous: bool

    @property
    def margins(self) -> FloatArray | None:
        """How far the truth may be from each value; None where nothing is promised about that."""
        return None if self.alpha is None else np.where(self.exact, 0.0, self.alpha)

    @property
    def one_curve(self) -> bool:
        """Whether all values may be pulled together: no promise about a single one is lost by it."""
        return self.simultaneous or self.alpha is None


@final
@dataclass(frozen=True, eq=False)
class Reading:
    """Answers in the shape that people read: tidy values, and their noise intervals if any are promised."""

    labels: tuple[tuple[str, ...], ...]
    values: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    exact: BoolArray


class Kind(ABC):
    """A form of question."""

    name: str
    needs_order: bool = False
    columns: int | None = None
    binned: bool = True
    """Whether the answer is about bins that the asker chose."""

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
        return _counts(release, tuple(axis.labels() for axis in axes))


@final
@dataclass(frozen=True)
class Cumulative(Kind):
    """How many rows are in each bin or below it."""

    name: str = field(default="cumulative", init=False)
    needs_order: bool = field(default=True, init=False)

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        return _product([_prefixes(axis) for axis in axes])

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        labels = tuple(axis.ends() for axis in axes)
        if len(axes) > 1 or not release.one_curve:
            return _counts(release, labels)
        return _increasing(release, labels)


@final
@dataclass(frozen=True)
class Ranges(Kind):
    """How many rows have a value from one to another, both included."""

    bounds: tuple[tuple[Value, Value], ...]
    name: str = field(default="ranges", init=False)
    needs_order: bool = field(default=True, init=False)
    columns: int | None = field(default=1, init=False)
    binned: bool = field(default=False, init=False)

    @property
    def title(self) -> str:
        return f"{len(self.bounds):,} ranges" if len(self.bounds) > 1 else "a range"

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        (axis,) = axes
        if not self.bounds:
            raise InvalidWorkload("Ranges need at least one pair of bounds.", fixes=("[(0, 9_999)]",))
        ends = np.array([[axis.attribute.cell(value) for value in pair] for pair in self.bounds])
        cut = axis.bins.assign(ends)
        aligned = (axis.bins.first(cut[:, 0]) == ends[:, 0]) & (axis.bins.last(cut[:, 1]) == ends[:, 1])
        if not aligned.all():
            raise InvalidWorkload("A range ends inside a bin.", fixes=("leave out the bins",))
        return RangeRows(axis.bins.count, cut[:, 0], cut[:, 1])

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        (axis,) = axes
        return _counts(release, (tuple(f"{axis.show(lo)}–{axis.show(hi)}" for lo, hi in self.bounds),))

    def identity(self) -> list[object]:
        return [self.name, [[text(lo), text(hi)] for lo, hi in self.bounds]]


@final
@dataclass(frozen=True)
class Quantiles(Kind):
    """The values below which given shares of the rows lie; accuracy counts people (rank)."""

    shares: tuple[float, ...]
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

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        _number(axes[0].attribute.lower(0))  # refused here rather than when the counts are read and paid for
        return _prefixes(axes[0])

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        """The first bin at which the tidy curve, or the edge of its band, reaches the share."""
        (axis,) = axes
        curve = _increasing(replace(release, simultaneous=True), ((),))
        total = curve.values[-1]
        middle, low, high = (
            None if line is None else np.array([_reached(line, share * total, axis) for share in self.shares])
            for line in (curve.values, curve.high, curve.low)
        )
        assert middle is not None
        labels = (tuple(f"{100 * share:g} %" for share in self.shares),)
        return Reading(labels, middle, low, high, np.full(len(self.shares), bool(release.exact.all())))

    def identity(self) -> list[object]:
        return [self.name, list(self.shares)]


@final
@dataclass(frozen=True)
class Sum(Kind):
    """The sum of a numeric column in its own units, or its mean over a public number of ``rows``."""

    rows: int | None = None
    needs_order: bool = field(default=True, init=False)
    columns: int | None = field(default=1, init=False)
    binned: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        if self.rows is not None and whole(self.rows, "The number of rows", InvalidWorkload) < 1:
            raise InvalidWorkload("A mean of no rows does not exist.")

    @property
    def name(self) -> str:  # type: ignore[override]
        return "sum" if self.rows is None else "mean"

    def workload(self, axes: tuple[Axis, ...]) -> Workload:
        (axis,) = axes
        unit, first, stride = _units(axis)
        lost = axis.attribute.has_missing_cell
        return ValueSum(axis.attribute.size, int(first / unit), int(stride / unit), missing=lost)

    def _unit(self, axes: tuple[Axis, ...]) -> float:
        """What one unit of the whole-number sum is worth in the answer."""
        return float(_units(axes[0])[0] / (self.rows or 1))

    def requirement(self, accuracy: Accuracy, axes: tuple[Axis, ...]) -> Accuracy:
        return replace(accuracy, alpha=accuracy.alpha / self._unit(axes))

    def promised(self, alpha: float, axes: tuple[Axis, ...]) -> float:
        return alpha * self._unit(axes)

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        values, margins = release.values * self._unit(axes), release.margins
        if margins is None:
            return Reading(((self.name,),), values, None, None, release.exact)
        margins = margins * self._unit(axes)
        return Reading(((self.name,),), values, values - margins, values + margins, release.exact)

    def identity(self) -> list[object]:
        return [self.name, self.rows]


@final
@dataclass(frozen=True)
class Top(Kind):
    """The ``count`` fullest bins ([APEx] TCQ).

    With c_k the k-th largest count: with probability 1−β no bin below c_k−α is returned and none above
    c_k+α is missed. Counts within ±α/2 everywhere suffice.
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
        return replace(accuracy, alpha=accuracy.alpha / 2, simultaneous=True)

    def promised(self, alpha: float, axes: tuple[Axis, ...]) -> float:
        return 2 * alpha

    def read(self, release: Release, axes: tuple[Axis, ...]) -> Reading:
        order = np.argsort(-release.values, kind="stable")[: self.count]
        return _picked(release, axes[0], order)

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
        return _picked(release, axes[0], np.flatnonzero(release.values > self.limit))

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
        if self.kind.columns not in (None, len(names)):
            raise InvalidWorkload(f"A question for {self.kind.name} is about one column, not {len(names)}.")
        if self.kind.needs_order and not all(axis.attribute.ordered for axis in self.axes):
            raise InvalidWorkload(
                f"A question for {self.kind.name} is about columns that have an order.",
                fixes=("ask for a histogram", "declare the order of its values"),
            )

    def describe(self) -> str:
        """The question in words."""
        cut = self.kind.binned and any(axis.bins.count > 1 for axis in self.axes)
        named = (f"{a.column} ({a.value_bins:,} bins)" if cut else a.column for a in self.axes)
        of = " and ".join(named)
        where = "" if isinstance(self.where, Everything) else f" where {self.where}"
        counted = self.kind.binned and not cut
        return f"number of rows{where}" if counted else f"{self.kind.title} of {of}{where}"


# --- readings that kinds share -------------------------------------------------------------------


def _product(factors: Sequence[Workload]) -> Workload:
    return factors[0] if len(factors) == 1 else Product(*factors)


def _prefixes(axis: Axis) -> Workload:
    """Missing values have a bar of their own, but no place on a line."""
    if not axis.attribute.has_missing_cell:
        return CumulativeRows(axis.bins.count)
    values = np.arange(axis.value_bins)
    return RangeRows(axis.bins.count, np.zeros_like(values), values)


def _counts(release: Release, labels: tuple[tuple[str, ...], ...]) -> Reading:
    """Each count by itself: cutting below zero keeps the promise of that count."""
    values, margins = release.values, release.margins
    tidy = np.where(release.exact, values, tidy_counts(values, None))
    if margins is None:
        return Reading(labels, tidy, None, None, release.exact)
    low, high = tidy_counts(values - margins, None), tidy_counts(values + margins, None)
    return Reading(labels, tidy, low, high, release.exact)


def _increasing(release: Release, labels: tuple[tuple[str, ...], ...]) -> Reading:
    """A curve: pulled to the nearest increasing one, which never increases its largest error."""
    most = float(release.values[-1]) if release.exact[-1] else None
    values = np.where(release.exact, release.values, tidy_cumulative(release.values, most))
    margins = release.margins
    if margins is None:
        return Reading(labels, values, None, None, release.exact)
    low, high = (tidy_counts(values + sign * margins, most) for sign in (-1, 1))
    return Reading(labels, values, low, high, release.exact)


def _picked(release: Release, axis: Axis, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Reading:
    every = _counts(release, (axis.labels(),))
    labels = (tuple(every.labels[0][index] for index in chosen),)
    low, high = (None if line is None else line[chosen] for line in (every.low, every.high))
    return Reading(labels, every.values[chosen], low, high, every.exact[chosen])


def _reached(curve: FloatArray, rank: float, axis: Axis) -> float:
    index = min(int(np.searchsorted(curve, rank)), curve.size - 1)
    return _number(axis.attribute.upper(int(axis.bins.last(index))))


def _number(value: Value) -> float:
    if isinstance(value, int | Fraction):
        return float(value)
    raise InvalidWorkload("Quantiles and sums are for columns of numbers.", fixes=("ask for a cumulative",))


def _units(axis: Axis) -> tuple[Fraction, Fraction, Fraction]:
    """The largest unit in which all values of a column are whole, its lowest value, and its step."""
    lowest, second = (axis.attribute.lower(min(cell, axis.attribute.value_count - 1)) for cell in (0, 1))
    _number(lowest)
    first = Fraction(lowest)  # type: ignore[arg-type]
    step = Fraction(second) - first or Fraction(1)  # type: ignore[arg-type]
    common = math.lcm(first.denominator, step.denominator)
    unit = Fraction(math.gcd(int(first * common), int(step * common)), common)
    return unit, first, step
