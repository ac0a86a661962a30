"""Sum rows: the whole-number sums of a group from which all its aggregates are read, and what hides them.

For means rows count at both ends: Σ(hi − v) and Σ(v − lo) cost the same wherever a value lies, and no other
two sums are better wherever the mean may be (docs/proofs/aggregates.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.questions.aggregates import (
    SPREADS,
    Measure,
)


@final
@dataclass(frozen=True)
class SumRows:
    """Sums over the rows of a group, each of a polynomial of v, the cells from the lowest value up.

    ``count`` and ``above`` are N and Σv as combinations of them. One hidden move changes all sums of all
    groups by at most ``change``; those that none changes are not ``noisy``.
    """

    name: str
    polynomials: tuple[tuple[int, int, int], ...]
    noisy: tuple[bool, ...]
    change: int
    count: tuple[float, ...] | None
    above: tuple[float, ...] | None = None
    weight: int = 1
    """By what a row that is only counted is multiplied, so that it changes no more than the others do."""
    inside: int = 0
    """By how much a move inside of a group changes all sums."""

    def sum_weights(self, first: float, step: float) -> FloatArray:
        """The sum of the values as a combination of these, where the lowest is ``first`` and a cell
        ``step``."""
        assert self.count is not None
        above = np.zeros(len(self.count)) if self.above is None else np.array(self.above)
        return first * np.array(self.count) + step * above

    @property
    def degree(self) -> int:
        """The highest power of v that is added up."""
        return max((power for each in self.polynomials for power in (1, 2) if each[power]), default=0)

    def appearing(self, width: int) -> int:
        """By how much a row that comes or goes changes the noisy sums, wherever its value lies."""
        added = np.abs(self.columns(np.array([0, width])))[np.array(self.noisy)]  # convex: most at an end
        return int(added.sum(axis=0).max(initial=0))

    def columns(self, places: IntArray) -> IntArray:
        """What one row with value v adds to each of the sums, for every v of ``places``."""
        powers = np.stack([np.ones_like(places), places, places**2])
        return np.array(self.polynomials, dtype=np.int64) @ powers


def sum_rows(
    measures: Iterable[Measure],
    width: int,
    crossing: int,
    reach: int,
    first: Fraction = Fraction(0),
    step: Fraction = Fraction(1),
    *,
    alone: bool = True,
) -> SumRows:
    """The sums that tell these aggregates best.

    ``width``: cells from the lowest value, ``first``, to the highest; ``crossing``: 2 if a hidden move takes
    rows from group to group, 1 if only in or out, 0 if neither; ``reach``: how many cells one goes inside a
    group; ``alone``: whether a sum can do without the number of rows.
    """
    asked = {each.of for each in measures}
    if asked == {"count"} or width == 0:
        return SumRows("counts", ((1, 0, 0),), (True,), crossing, (1.0,))
    if asked & set(SPREADS):
        return _squared_rows(width, crossing, reach)
    if not crossing:
        return SumRows(
            "sums", ((1, 0, 0), (0, 1, 0)), (False, True), reach, (1.0, 0.0), (0.0, 1.0), inside=reach
        )
    if crossing == 1 and 2 * reach**2 > width**2:
        rows = ((width, 0, 0), (-width, 2, 0))
        count, above = (1 / width, 0.0), (0.5, 0.5)
        best = SumRows("centred", rows, (True, True), 2 * width, count, above, 2 * width, 2 * reach)
    else:
        change, ends = max(2 * reach, crossing * width), ((width, -1, 0), (0, 1, 0))
        count, above = (1 / width,) * 2, (0.0, 1.0)
        best = SumRows("ends", ends, (True, True), change, count, above, width, 2 * reach)
    if asked != {"sum"} or not alone:
        return best
    unit = Fraction(math.gcd(first.numerator * step.denominator, step.numerator * first.denominator))
    unit /= first.denominator * step.denominator
    low, stride = int(first / unit), int(step / unit)
    change = max(crossing * max(abs(low), abs(low + stride * width)), reach * stride)
    total = SumRows("total", ((low, stride, 0),), (True,), change, None, inside=reach * stride)
    weights = best.sum_weights(float(first), float(step))
    return (
        total if change * float(unit) < best.change * float(np.hypot.reduce(weights)) * (1 - 1e-9) else best
    )


def _squared_rows(width: int, crossing: int, reach: int) -> SumRows:
    """Sums of squares, which tell everything else too."""
    squared = width**2
    if not crossing:
        rows = ((1, 0, 0), (0, 0, 1), (squared, -2 * width, 1))
        above = (width / 2, 0.5 / width, -0.5 / width)
        count, inside = (1.0, 0.0, 0.0), 2 * width * reach
        return SumRows("squares", rows, (False, True, True), inside, count, above, inside=inside)
    corners = ((squared, -2 * width, 1), (0, 2 * width, -2), (0, 0, 1))
    inside = 4 * width * reach - 2 * reach**2
    count, above = (1 / squared,) * 3, (0.0, 0.5 / width, 1 / width)
    return SumRows(
        "corners", corners, (True,) * 3, max(crossing * squared, inside), count, above, squared, inside
    )
