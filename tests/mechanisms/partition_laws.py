"""The exact law of DAWA's first stage on three and four cells, by convolving the laws of the noisy costs.

With the costs s of single cells, p of pairs, q of the whole: given s₀ and s₃, the left part L = min(s₀ + s₁,
p₀₁), the right part R, the middle s₀ + p₁₂ + s₃ and q are independent, and only s₀ + s₃ and L + R matter. On
three cells the right part is s₂ alone. Noise is cut off at sixteen times its scale or more.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import numpy as np
from scipy.signal import fftconvolve

from blowfishdb.core.accuracy import pmf
from blowfishdb.mechanisms.dawa.partition import Ranked, deviations

REACH = 64
ROUNDING = 1e-15  # what a convolution loses: a probability of zero counts as this much
GRID = np.arange(-REACH, REACH + 1)


@dataclass(frozen=True)
class Calibration:
    """Noise scales in units by length, 0 for none; whether noisy costs are cut off at zero."""

    scales: tuple[tuple[int, Fraction], ...]
    units: int
    penalty: int
    clipped: bool = False

    def law(self, x, length, start):
        """Of the noisy cost of one bucket, on the grid."""
        found = np.zeros(GRID.size)
        deviation = int(deviations(Ranked(np.asarray(x)), length, self.units)[start])
        scale = dict(self.scales)[length]
        if scale:
            values, masses = GRID + deviation, pmf(GRID, scale)
        else:
            values, masses = np.array([deviation]), np.ones(1)
        if self.clipped:
            values = np.maximum(values, 0)
        values = np.clip(values + self.penalty, -REACH, REACH)
        np.add.at(found, values + REACH, masses)
        return found


def at_least(law):
    """P(X ≥ t) on the grid of the law."""
    return np.cumsum(law[::-1])[::-1]


def shifted(law, by):
    """The law of X + by, one row for each of ``by``, on the same grid."""
    place = np.arange(law.size)[None, :] - np.asarray(by)[:, None]
    return np.where((place >= 0) & (place < law.size), law[np.clip(place, 0, law.size - 1)], 0.0)


def side(outer, inner, pair):
    """Joint laws of (outer, cost of this side): as two single cells, and as a pair, which loses ties."""
    apart = outer[:, None] * shifted(inner, GRID) * at_least(pair)[None, :]
    above = 1 - np.cumsum(shifted(inner, GRID), axis=1)
    together = outer[:, None] * pair[None, :] * np.clip(above, 0.0, 1.0)
    return apart, together


def partition_law(x, calibration):
    """P of every partition that the first stage may release, by the lengths of its buckets.

    Deviations do not change if all cells do, or if all are turned upside down.
    """
    low, high = min(x), max(x)
    return _partition_law(
        min(tuple(count - low for count in x), tuple(high - count for count in x)), calibration
    )


@cache
def _partition_law(x, calibration):
    singles = [calibration.law(x, 1, i) for i in range(len(x))]
    pairs = [calibration.law(x, 2, i) for i in range(len(x) - 1)]
    whole = np.pad(calibration.law(x, len(x), 0), REACH)
    left = dict(zip(((1, 1), (2,)), side(singles[0], singles[1], pairs[0]), strict=True))
    if len(x) == 4:
        right = dict(zip(((1, 1), (2,)), side(singles[3], singles[2], pairs[2]), strict=True))
    else:
        nothing = np.zeros(GRID.size)
        nothing[REACH] = 1.0
        right = {(1,): np.outer(nothing, singles[2])}
    return _compared(left, right, np.pad(pairs[1], REACH), whole, (1, 2, 1)[: len(x) - 1], len(x))


def _compared(left, right, middle, whole, around, size):
    """Both sides against a pair in the middle and against one bucket; the shorter last bucket wins ties."""
    middle = shifted(middle, np.arange(-2 * REACH, 2 * REACH + 1))  # a row for every s₀ + s₃
    found = {around: 0.0, (size,): 0.0}
    for one, here in left.items():
        for two, there in right.items():
            sums = fftconvolve(here, there)
            loses = two[-1] > around[-1]  # to the middle, if equally cheap
            beaten = at_least_rows(middle) - (middle if loses else 0.0)
            found[one + two] = float((sums * beaten * at_least(whole)).sum())
            wins = np.cumsum(middle * at_least(whole), axis=1)
            found[around] += float((sums * (wins if loses else before(wins))).sum())
            above = at_least_rows(middle) - middle
            found[size,] += float((sums * before(np.cumsum(whole * above, axis=1))).sum())
    return found


def at_least_rows(laws):
    return np.cumsum(laws[:, ::-1], axis=1)[:, ::-1]


def before(sums):
    """Cumulative sums without the last term."""
    return np.pad(sums, ((0, 0), (1, 0)))[:, :-1]


def log_ratios(x, y, calibration):
    """|ln P(B | x)/P(B | y)| for every partition B that either releases more than once in 10⁵ times."""
    here, there = partition_law(x, calibration), partition_law(y, calibration)
    return {
        buckets: abs(float(np.log(max(here[buckets], ROUNDING) / max(there[buckets], ROUNDING))))
        for buckets in here
        if max(here[buckets], there[buckets]) > 1e-5
    }
