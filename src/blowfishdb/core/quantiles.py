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
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.axis import Axis
from blowfishdb.core.bins import Bins
from blowfishdb.core.column_policies import values_graph
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.graphs import Threshold
from blowfishdb.core.policy import Policy
from blowfishdb.core.values import Value

_FEWEST_BINS = 20  # a distance of half the column would otherwise leave two values to choose from
_FIRST = 0.5  # below every whole rank: the smallest value is that of the first row, whatever the share of it


def usual_bins(policy: Policy, column: str) -> Bins:
    """The bins of a question for quantiles that names none: as wide as the distance that is hidden.

    Finer bins cost more, wider ones say less. A rule of declaration and policy alone; each value by itself
    where no distance is hidden.
    """
    attribute = policy.domain[column]
    graph, _ = values_graph(policy, column)
    cells = graph.theta if isinstance(graph, Threshold) else 1
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
    place = float(np.clip((rank - below) / rows, 0, 1)) if rows > 0 else 0.5
    return in_units(attribute.at(min(first + int(place * (stop - first)), stop - 1)))
