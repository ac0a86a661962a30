"""Readings: from noisy counts to what people read, with intervals that hold.

All of it is post-processing, and costs nothing. Tidy answers are what people see instead of negative counts;
the unbiased release stays available. They keep the promise that was made for it: pulling a cumulative answer
to the nearest increasing one never increases its largest error, and neither does cutting off what is
certainly impossible (below zero, or above the public number of rows).

Quantiles are read off a curve with its band. The q-quantile of N rows is the smallest value v with
F(v) ≥ q·N, where F(v) counts the rows up to v; for q = 0 that is the smallest value that occurs. Let t be its
bin, and let the band low ≤ F ≤ high hold at every end of a bin, and with it N between the band's last ends.

- high(t) ≥ F(t) ≥ q·N ≥ q·low(last), so the first bin at which the upper edge reaches q·low(last) is t or one
  before it;
- for every i before t, low(i) ≤ F(i) < q·N ≤ q·high(last), so the first bin at which the lower edge reaches
  q·high(last) is t or one after it.

Balances tell the same without the number of rows: B(i) = F(i) − q·N increases with i, and t is the first bin
at which it is not negative. Within a band low ≤ B ≤ high of every end of a bin the first bin at which high is
not negative is t or one before it, and the first at which low is not negative is t or one after it.

Inside its bin the quantile can lie anywhere, so the interval runs from the lowest value of the one bin to the
highest of the other. One promise about the whole band keeps all quantiles at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
import scipy

from blowfishdb.core.arrays import BoolArray, FloatArray
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.domain.values import Value
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.plain import Message
from blowfishdb.core.policy.columns import values_graph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.workloads.base import Numbers

_FEWEST_BINS = 20  # a distance of half the column would otherwise leave two values to choose from
_MOST_IN_ALL = 1_000  # bins of all groups: more are no closer to the truth, and take long to plan
_FIRST = 0.5  # below every whole rank: the smallest value is that of the first row, whatever the share of it


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
class Reading(Message):
    """Answers in the shape that people read: tidy values, and their noise intervals if any are promised."""

    labels: tuple[tuple[str, ...], ...]
    values: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    exact: BoolArray


def usual_bins(policy: Policy, column: str, groups: int = 1) -> Bins:
    """The bins of a question for quantiles that names none: as wide as the distance that is hidden.

    Finer bins cost more, wider ones say less. A rule of declaration and policy alone; each value by itself
    where no distance is hidden, but over several ``groups`` not more than so many bins in all.
    """
    attribute = policy.domain[column]
    graph, _ = values_graph(policy, column)
    cells = 1 if graph.complete else graph.line_reach or 1
    if groups > 1:
        cells = max(cells, -(-attribute.value_count * groups // _MOST_IN_ALL))
    return attribute.equal_bins(min(cells, max(1, attribute.value_count // _FEWEST_BINS)))


def middle(curve: FloatArray, shares: tuple[float, ...], axis: Axis) -> FloatArray:
    """Where the curve reaches each share of its end; inside a bin rows are taken to lie evenly."""
    return np.array([_inside(curve, _rank(share, curve[-1]), axis) for share in shares])


def ends(
    low: FloatArray, high: FloatArray, shares: tuple[float, ...], axis: Axis
) -> tuple[FloatArray, FloatArray]:
    """The interval of each quantile: whole bins, from where the upper edge is there to where the lower is."""
    firsts = [_reached(high, _rank(share, low[-1])) for share in shares]
    lasts = [_reached(low, _rank(share, high[-1])) for share in shares]
    return _bins_between(firsts, lasts, axis)


def _bins_between(firsts: Sequence[int], lasts: Sequence[int], axis: Axis) -> tuple[FloatArray, FloatArray]:
    """The lowest value of each first bin, and the highest of each last one."""
    attribute, bins = axis.attribute, axis.bins
    lowest = [in_units(attribute.lower(int(bins.first(index)))) for index in firsts]
    highest = [in_units(attribute.upper(int(bins.last(index)))) for index in lasts]
    return np.array(lowest), np.array(highest)


def balanced(balances: FloatArray, shares: tuple[float, ...], axis: Axis) -> FloatArray:
    """Where each line of balances reaches zero: the curve that it belongs to ends at (1 − q)·N above."""
    rows = [max(float(line[-1]) / (1 - share), 0.0) for line, share in zip(balances, shares, strict=True)]
    lines = zip(balances, shares, rows, strict=True)
    return np.array([_inside(line + share * many, share * many, axis) for line, share, many in lines])


def between(balances: FloatArray, margins: FloatArray, axis: Axis) -> tuple[FloatArray, FloatArray]:
    """The interval of each quantile from its balances: whole bins, as ``ends``."""
    firsts = [_reached(line, 0.0) for line in balances + margins]
    lasts = [_reached(line, 0.0) for line in balances - margins]
    return _bins_between(firsts, lasts, axis)


def declared_ends(axis: Axis) -> tuple[float, float]:
    """The lowest and the highest value that is declared of a column of numbers."""
    attribute = axis.attribute
    return in_units(attribute.lower(0)), in_units(attribute.upper(attribute.value_count - 1))


def in_units(value: Value) -> float:
    """A value of a column of numbers; other columns have neither quantiles nor sums."""
    if isinstance(value, int | Fraction):
        return float(value)
    raise InvalidWorkload("Quantiles and sums are for columns of numbers.", fixes=("ask for a cumulative",))


def _rank(share: float, total: float) -> float:
    return max(share * total, _FIRST)


def _reached(curve: FloatArray, rank: float) -> int:
    return min(int(np.searchsorted(curve, rank)), curve.size - 1)


def _inside(curve: FloatArray, rank: float, axis: Axis) -> float:
    index, attribute = _reached(curve, rank), axis.attribute
    first = int(axis.bins.first(index)) * attribute.ticks_per_cell
    stop = min((int(axis.bins.last(index)) + 1) * attribute.ticks_per_cell, attribute.ticks)
    below = curve[index - 1] if index else 0.0
    rows = curve[index] - below
    share = float(np.clip((rank - below) / rows, 0, 1)) if rows > 0 else 0.5
    return in_units(attribute.at(min(first + int(share * (stop - first)), stop - 1)))


def tidy_counts(raw: Numbers, most: float | None) -> FloatArray:
    """Counts, each cut to what is possible."""
    return np.clip(np.asarray(raw, dtype=np.float64), 0.0, most)


def tidy_cumulative(raw: Numbers, most: float | None) -> FloatArray:
    """The nearest increasing answer, cut to what is possible."""
    return tidy_counts(nearest_increasing(raw), most)


def nearest_increasing(raw: Numbers) -> FloatArray:
    """The nearest increasing line, which is nowhere further from any increasing one than ``raw`` is."""
    return np.asarray(scipy.optimize.isotonic_regression(np.asarray(raw, dtype=np.float64)).x)


def group_by_group(release: Release, axes: tuple[Axis, ...], by: tuple[str, ...]) -> list[Release]:
    """The release of a question along one column, group by group."""
    place = next(at for at, axis in enumerate(axes) if axis.column not in by)
    shape = [axis.value_bins if at == place else axis.bins.count for at, axis in enumerate(axes)]
    values = np.moveaxis(release.values.reshape(shape), place, -1).reshape(-1, shape[place])
    exact = np.moveaxis(release.exact.reshape(shape), place, -1).reshape(-1, shape[place])
    return [replace(release, values=line, exact=known) for line, known in zip(values, exact, strict=True)]


def put_together(
    lines: Sequence[Reading], axes: tuple[Axis, ...], by: tuple[str, ...], labels: tuple[tuple[str, ...], ...]
) -> Reading:
    """The readings of groups as one, in the order of all axes again."""
    place = next(at for at, axis in enumerate(axes) if axis.column not in by)
    groups = [axis.bins.count for axis in axes if axis.column in by]

    def whole(parts: list[Any]) -> Any:
        if parts[0] is None:
            return None
        return np.moveaxis(np.stack(parts).reshape(*groups, -1), -1, place).ravel()

    columns = zip(*((line.values, line.low, line.high, line.exact) for line in lines), strict=True)
    return Reading(labels, *(whole(list(parts)) for parts in columns))


def counted_reading(release: Release, labels: tuple[tuple[str, ...], ...]) -> Reading:
    """Each count by itself: cutting below zero keeps the promise of that count."""
    values, margins = release.values, release.margins
    tidy = np.where(release.exact, values, tidy_counts(values, None))
    if margins is None:
        return Reading(labels, tidy, None, None, release.exact)
    low, high = tidy_counts(values - margins, None), tidy_counts(values + margins, None)
    return Reading(labels, tidy, low, high, release.exact)


def increasing(release: Release, labels: tuple[tuple[str, ...], ...]) -> Reading:
    """A curve: pulled to the nearest increasing one, which never increases its largest error."""
    most = float(release.values[-1]) if release.exact[-1] else None
    values = np.where(release.exact, release.values, tidy_cumulative(release.values, most))
    margins = release.margins
    if margins is None:
        return Reading(labels, values, None, None, release.exact)
    low, high = (tidy_counts(values + sign * margins, most) for sign in (-1, 1))
    return Reading(labels, values, low, high, release.exact)


def picked(release: Release, axis: Axis, chosen: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Reading:
    """The chosen bins; what was chosen by noisy counts is not exact, even where its own count is."""
    every = counted_reading(release, (axis.labels(),))
    labels = (tuple(every.labels[0][index] for index in chosen),)
    low, high = (None if line is None else line[chosen] for line in (every.low, every.high))
    return Reading(labels, every.values[chosen], low, high, every.exact[chosen] & every.exact.all())
