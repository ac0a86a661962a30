"""Quantiles: from a curve with its band to values with intervals that hold, and the bins they are read from.

The q-quantile of N rows is the smallest value v with F(v) ≥ q·N, where F(v) counts the rows up to v; for
q = 0 that is the smallest value that occurs. Let t be its bin, and let the band low ≤ F ≤ high hold at every
end of a bin, and with it N between the band's last ends.

- high(t) ≥ F(t) ≥ q·N ≥ q·low(last), so the first bin at which the upper edge reaches q·low(last) is t or one
  before it;
- for every i before t, low(i) ≤ F(i) < q·N ≤ q·high(last), so the first bin at which the lower edge reaches
  q·high(last) is t or one after it.

Inside its bin the quantile can lie anywhere, so the interval runs from the lowest value of the one bin to the
highest of the other. One promise about the whole band keeps all quantiles at once.

What is promised about an answer, in words: one sentence for each kind of question, said by every door.

What α counts depends on the kind. Of bars and numbers it is how far they may be from the truth; of quantiles
it is people in rank, and the values are promised by their intervals; of the fullest bins and of those above a
limit it is how far a bin may be out of place. ``Kind.promise`` says why each sentence holds.

Tidy answers: what people see instead of negative counts. Post-processing, so it costs nothing.

The unbiased release stays available; these forms keep the promise that was made for it: pulling a
cumulative answer to the nearest increasing one never increases its largest error, and neither does
cutting off what is certainly impossible (below zero, or above the public number of rows).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

import numpy as np
import scipy

from blowfishdb.core.accuracy import NO_PROMISE
from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.domain.values import Value
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.policy.columns import values_graph
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.workloads.base import Numbers

_FEWEST_BINS = 20  # a distance of half the column would otherwise leave two values to choose from
_FIRST = 0.5  # below every whole rank: the smallest value is that of the first row, whatever the share of it


def usual_bins(policy: Policy, column: str) -> Bins:
    """The bins of a question for quantiles that names none: as wide as the distance that is hidden.

    Finer bins cost more, wider ones say less. A rule of declaration and policy alone; each value by itself
    where no distance is hidden.
    """
    attribute = policy.domain[column]
    graph, _ = values_graph(policy, column)
    cells = 1 if graph.complete else graph.line_reach or 1
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
    attribute, bins = axis.attribute, axis.bins
    lowest = [in_units(attribute.lower(int(bins.first(index)))) for index in firsts]
    highest = [in_units(attribute.upper(int(bins.last(index)))) for index in lasts]
    return np.array(lowest), np.array(highest)


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


EXACT: Final = "Exact: the policy does not hide this."
"""What is said where nothing is noisy."""

_AROUND: Final = {"quantiles": " in rank", "top": " around the last place", "above": " around the limit"}
_SYNTHETIC: Final = (
    "In 95 of 100 runs each measured number lies in its noise interval. Nothing is promised of counts in "
    "synthetic rows."
)
_BARS: Final = ("histogram", "cumulative", "ranges")


def sentence(
    kind: str,
    alpha: float | None,
    beta: float | None,
    simultaneous: bool,
    group_size: int | None = None,
    *,
    columns: int = 1,
) -> str:
    """What α and β promise about an answer of this kind; of a mean, about groups of ``group_size`` rows.

    Counts along one column are bars, along several they are cells.
    """
    if kind == "synthetic":
        return _SYNTHETIC
    if kind == "aggregates" and beta is not None:
        return _aggregated(alpha, beta, "every" if simultaneous else "each", group_size)
    if alpha is None or beta is None:
        return NO_PROMISE
    every = "every" if simultaneous else "each"
    return f"In {often(beta)} {_kept(kind, error_text(alpha), every, place(columns))}."


def place(columns: int) -> str:
    """What a count along so many columns is called."""
    return "bar" if columns < 2 else "cell"


def _kept(kind: str, off: str, every: str, bar: str) -> str:
    match kind:
        case "count":
            return f"the number is within {off} people of the truth"
        case "counts":
            return f"{every} number is within {off} people of the truth"
        case "sum" | "mean":
            return f"the {kind} is within {off} of the truth"
        case "quantiles":
            return f"every quantile lies in its noise interval, with ranks off by at most {off} people"
        case "top":
            return (
                f"no bin is listed that is more than {off} people short of the last place, "
                f"and none is missed that is more than {off} above it"
            )
        case "above":
            return (
                f"no bin is listed that is more than {off} people below the limit, "
                f"and none is missed that is more than {off} above it"
            )
    return f"{every} {bar} is within {off} people of the truth"


def _aggregated(alpha: float | None, beta: float, every: str, group_size: int | None) -> str:
    inside = f"In {often(beta)} {every} true value lies in its noise interval."
    if alpha is None:
        return inside
    off = error_text(alpha)
    what = (
        f"{every} number"
        if group_size is None
        else f"the mean of {every} group of {group_size:,} or more rows"
    )
    return f"In {often(beta)} {what} is within {off} of the truth. {inside}"


def ranks_alone(alpha: float | None, beta: float) -> str:
    """Of quantiles that were answered before their intervals held for values."""
    off = error_text(alpha or 0.0)
    return f"In {often(beta)} the bin that ends with each value reaches its rank, give or take {off} people."


def brief(
    kind: str,
    alpha: float | None,
    beta: float | None,
    simultaneous: bool,
    places: int,
    group_size: int | None = None,
    *,
    columns: int = 1,
) -> str:
    """The same in a line of a table: ``±50 all bars, 95 %``, for an answer of so many values."""
    if kind in ("aggregates", "synthetic") and alpha is None and beta is not None:
        return f"noise intervals, {significant(100 * (1 - beta), 6)} %"
    if alpha is None or beta is None:
        return "not promised"
    where = {"quantiles": " in rank", "top": " around the last place", "above": " around the limit"}.get(
        kind, ""
    )
    if group_size is not None:
        where = f" in groups of {group_size:,} rows"
    if kind == "counts" and places > 1:
        where = " all numbers" if simultaneous else " each number"
    if kind in _BARS and places > 1:
        bar = place(columns)
        where = f" all {bar}s" if simultaneous else f" each {bar}"
    return f"±{error_text(alpha)}{where}, {significant(100 * (1 - beta), 6)} %"


def often(beta: float) -> str:
    """How many of 100 runs keep a promise that fails with probability beta."""
    return f"{significant(100 * (1 - beta), 6)} of 100 runs"


def error_text(alpha: float) -> str:
    """How far off: whole numbers as they are, others to three digits, rounded up so that it still holds."""
    if not alpha or not math.isfinite(alpha) or alpha == round(alpha):
        return significant(alpha, 6)
    unit = 10.0 ** (2 - math.floor(math.log10(abs(alpha))))
    up = math.ceil(round(alpha * unit, 9)) / unit
    return significant(up, 6)


def significant(value: float, digits: int = 3) -> str:
    """So many significant digits, thousands set apart, no trailing zeros and no exponent."""
    if value == 0 or not math.isfinite(value):
        return "0" if value == 0 else "–"
    places = digits - 1 - math.floor(math.log10(abs(value)))
    shown = f"{round(value, places):,.{max(0, places)}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown


def tidy_counts(raw: Numbers, most: float | None) -> FloatArray:
    """Counts, each cut to what is possible."""
    return np.clip(np.asarray(raw, dtype=np.float64), 0.0, most)


def tidy_cumulative(raw: Numbers, most: float | None) -> FloatArray:
    """The nearest increasing answer, cut to what is possible."""
    return tidy_counts(scipy.optimize.isotonic_regression(np.asarray(raw, dtype=np.float64)).x, most)
