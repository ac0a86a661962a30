"""Refinement: less noise in place of noise that is out, so that both together lose what the new one does.

Noise of scale b₁ is noise of scale b₂ ≤ b₁ with more added: DLap(b₁) = DLap(b₂) + W, where W is 0 with some
probability and else DLap(b₁) again (Koufogiannis, Han and Pappas 2016). So a release with noise b₁ could have
been made from one with noise b₂ by adding W, and whoever sees both has learnt what the second tells alone.
The order is turned round here: the first noise n is out, and the second is drawn given it.

With s = 1/b, x = s₂ − s₁ and y = s₁ + s₂, the second noise given n ≥ 0 (n < 0 is the mirror image) falls off

    at the rate y   below 0,   at the rate x   between 0 and n,   at the rate y   beyond n,

and it is n itself with the rest. All of it is geometric variables, ⌊b·E⌋ for exponential E, which are exact.
Two coins are made of them as well: E mod t is independent of ⌊E/t⌋, so that

    P(E mod (x+y) ≥ y) = e^{−y}·(1 − e^{−x})/(1 − e^{−x−y}),    P(E mod y < x) = (1 − e^{−x})/(1 − e^{−y}).

Every sample takes five variables, whatever its value. The long form is docs/proofs/refinement.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.errors import InvalidScale, SizeMismatch
from blowfishdb.core.noise import LARGEST_SCALE, Noise


def refined(
    old: NDArray[np.int64], scales: Sequence[Fraction], finer: Sequence[Fraction], noise: Noise
) -> NDArray[np.int64]:
    """Noise of the ``finer`` scales, given noise of ``scales`` that is out; equal scales keep the noise.

    ``old`` must itself be discrete Laplace noise of ``scales``, and must not have been refined before.
    """
    if not len(old) == len(scales) == len(finer):
        raise SizeMismatch("Noise is refined with one old and one new scale each.")
    if not all(0 < fine <= coarse for coarse, fine in zip(scales, finer, strict=True)):
        raise InvalidScale("Refined noise has a positive scale, and none above that of before.")
    new, changed = old.copy(), np.flatnonzero([f < c for c, f in zip(scales, finer, strict=True)])
    if changed.size:
        rates = [_Rates(1 / scales[i], 1 / finer[i]) for i in changed.tolist()]
        new[changed] = _given(old[changed], rates, noise)
    return new


def can_refine(coarse: Fraction, fine: Fraction) -> bool:
    """Whether the variables fit 64-bit words: not where the ratio of the scales is a very long fraction."""
    if not 0 < fine <= coarse:
        return False
    if fine == coarse:
        return True
    rates = _Rates(1 / coarse, 1 / fine)
    lengths: tuple[Fraction | int, ...] = (1 / rates.x, *rates.below[:2], *rates.beyond[:2])
    return all(length <= LARGEST_SCALE for length in lengths)


class _Rates:
    """x = s₂ − s₁ and y = s₁ + s₂ of one sample, with its two coins.

    A coin (b, d, c) counts steps of 1/b: E mod t is below a bound of c steps iff ⌊b·E⌋ mod d < c, d steps
    being t.
    """

    def __init__(self, old: Fraction, new: Fraction) -> None:
        self.x, self.y = new - old, new + old
        self.below = _steps(self.x + self.y, self.y)
        self.beyond = _steps(self.y, self.x)


def _steps(period: Fraction, bound: Fraction) -> tuple[Fraction, int, int]:
    ratio = bound / period
    return ratio.denominator / period, ratio.denominator, ratio.numerator


def _given(old: NDArray[np.int64], rates: Sequence[_Rates], noise: Noise) -> NDArray[np.int64]:
    """The new noise given the old."""
    magnitude, sign = np.abs(old), np.where(old < 0, -1, 1)
    other_side = ~_within([rate.below for rate in rates], noise)
    between = noise.geometric([1 / rate.x for rate in rates])
    tail = noise.geometric([1 / rate.y for rate in rates])
    further = noise.geometric([1 / rate.y for rate in rates]) > 0
    beyond = further & _within([rate.beyond for rate in rates], noise)
    inside = np.where(between < magnitude, between, np.where(beyond, magnitude + 1 + tail, magnitude))
    new: NDArray[np.int64] = sign * np.where(other_side, -1 - tail, inside)
    return new


def _within(coins: Sequence[tuple[Fraction, int, int]], noise: Noise) -> NDArray[np.bool_]:
    """Whether E mod t is below its bound, for one E each."""
    steps = noise.geometric([scale for scale, _, _ in coins])
    within: NDArray[np.bool_] = steps % [period for _, period, _ in coins] < [bound for _, _, bound in coins]
    return within
