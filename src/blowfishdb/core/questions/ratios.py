"""Ratios of noisy sums: means and variances with intervals that hold for every table
(docs/proofs/aggregates.md).

A mean is p = U/D of two sums, and U − p·D is zero at the true p. So with noise it is pure noise, of a known
law for every p, and the p at which it is no larger than that law allows cover the truth. The interval is cut
down from [0, 1] step by step, and holds after every one of them; what stays [0, 1] says nothing.

The laws of neighbouring p share a piece of [0, 1], with the largest weight that each noise variable has in
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Final

import numpy as np

from blowfishdb.core.arrays import FloatArray
from blowfishdb.core.laplace_sums import unit_quantile

Ends = tuple[FloatArray, FloatArray]
"""The lower and the upper end of every interval."""

_PIECES: Final = 256
_STEPS: Final = 12
_TURNS: Final = 12
_THIRDS: Final = 60


@lru_cache(maxsize=256)
def _quantiles(at_zero: tuple[float, ...], at_one: tuple[float, ...], beta: float) -> FloatArray:
    """At least the (1−β)-quantile of unit noise on every piece of [0, 1]; weights are linear in p."""
    ends = np.linspace(0.0, 1.0, _PIECES + 1)[:, None]
    weights = np.abs((1 - ends) * np.array(at_zero) + ends * np.array(at_one))
    largest = np.maximum(weights[:-1], weights[1:])  # of |linear| on a piece, at one of its ends
    return np.array([unit_quantile(each, beta) for each in largest])


def share_ends(
    above: FloatArray, whole: FloatArray, at_zero: FloatArray, at_one: FloatArray, scale: float, beta: float
) -> Ends:
    """Where p with ``above`` = p·``whole`` lies, in [0, 1]: each interval misses the truth with probability
    β.

    The noise of above − p·whole has weights that run from ``at_zero`` to ``at_one``, and one scale.
    """
    laws = _quantiles(tuple(at_zero.tolist()), tuple(at_one.tolist()), beta)
    discrete = max(float(np.abs(at_zero).sum()), float(np.abs(at_one).sum()))
    low, high = np.zeros(above.size), np.ones(above.size)
    for place in np.flatnonzero(whole > 0):
        low[place], high[place] = _cut(float(above[place]), float(whole[place]), laws, scale, discrete)
    return low, high


def _cut(above: float, whole: float, laws: FloatArray, scale: float, discrete: float) -> tuple[float, float]:
    low, high = 0.0, 1.0
    widest = scale * float(laws.max()) + discrete
    for _ in range(_STEPS):
        first, last = min(int(low * _PIECES), _PIECES - 1), min(int(high * _PIECES), _PIECES - 1)
        off = scale * float(laws[first : last + 1].max()) + discrete
        cut = max(low, (above - off) / whole), min(high, (above + off) / whole)
        if cut[0] > cut[1]:  # the noise is larger than allowed: with probability β at most
            middle = min(max(above / whole, 0.0), 1.0)
            return max(0.0, middle - widest / whole), min(1.0, middle + widest / whole)
        if cut == (low, high):
            break
        low, high = cut
    return low, high


# --- variances, in squares of grid steps ----------------------------------------------------------------


def spread_by_squares(rows: FloatArray, width: int, off: float) -> tuple[float, float, float]:
    """Of N rows, which is exact, and squares from both ends, each within ±``off``: an estimate and its ends.

    Along the straight line from the true squares to those that are ``off`` more, the variance rises as long
    as the mean lies between the ends, and it falls to those that are ``off`` less.
    """
    count, low_squares, high_squares = map(float, rows)
    most = width**2 / 4
    if count < 2:
        return math.nan, 0.0, 2 * most
    grown = count / (count - 1)

    def variance(more: float) -> float:
        both = (low_squares + high_squares + 2 * more) / 2 - count * width**2 / 4
        mean = (low_squares - high_squares) / (2 * width * count)
        return float(min(max(both / count - mean**2, 0.0), most))

    if abs(low_squares - high_squares) > width**2 * count:
        return math.nan, 0.0, most * grown
    return variance(0.0) * grown, variance(-off) * grown, variance(off) * grown


def spread_by_corners(rows: FloatArray, width: int, off: float) -> tuple[float, float, float]:
    """Of the three sums of degree two, each within ±``off``: an estimate of the variance and its ends.

    The variance is quasi-concave in the sums and falls in the middle one: its least is at a corner of the box
    with that one high, its most with that one low.
    """
    most = width**2 / 4
    low, high = (np.maximum(rows + side * off, 0.0).tolist() for side in (-1, 1))
    fewest = sum(low) / width**2

    def variance(first: float, middle: float, last: float) -> float:
        total = first + middle + last
        mean = (last + middle / 2) / total if total > 0 else 0.0
        return (last / total - mean**2) * width**2 if total > 0 else 0.0

    corners = [(first, last) for first in (low[0], high[0]) for last in (low[2], high[2])]
    least = min(variance(first, high[1], last) for first, last in corners)
    first, last = (low[0] + high[0]) / 2, (low[2] + high[2]) / 2
    for _ in range(_TURNS):
        first = _peak(partial(variance, middle=low[1], last=last), low[0], high[0])
        last = _peak(partial(variance, first, low[1]), low[2], high[2])
    largest = max(variance(one, low[1], other) for one, other in (*corners, (first, last)))
    least, largest = (min(max(end, 0.0), most) for end in (least, largest))
    grown = fewest / (fewest - 1) if fewest >= 2 else 2.0
    if least == 0.0 and largest * (1 + 1e-9) >= most:
        return math.nan, 0.0, most * grown
    total = float(rows.sum()) / width**2
    estimate = variance(*np.maximum(rows, 0.0).tolist()) * (total / (total - 1) if total > 2 else 1.0)
    return min(max(estimate, least), largest * grown), least, largest * grown


def _peak(of: Callable[[float], float], low: float, high: float) -> float:
    """Where a quasi-concave function of one number is largest, by thirds."""
    for _ in range(_THIRDS):
        third = (high - low) / 3
        if of(low + third) < of(high - third):
            low += third
        else:
            high -= third
    return (low + high) / 2
