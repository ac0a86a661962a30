"""Refined noise has the law that it must have given the old, and both together lose what the new one does."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from blowfishdb.core.errors import InvalidScale, SizeMismatch
from blowfishdb.core.refinement import can_refine, refined
from blowfishdb.noise import seeded

PAIRS = [(Fraction(3), Fraction(3, 2)), (Fraction(20), Fraction(16)), (Fraction(5, 2), Fraction(1, 3))]


def law(scale: Fraction, z: int) -> float:
    q = math.exp(-1 / scale)
    return (1 - q) / (1 + q) * q ** abs(z)


def added(coarse: Fraction, fine: Fraction, w: int) -> float:
    """The law of W, with DLap(coarse) = DLap(fine) + W."""
    q1, q2 = math.exp(-1 / coarse), math.exp(-1 / fine)
    none = q2 / q1 * ((1 - q1) / (1 - q2)) ** 2
    return none * (w == 0) + (1 - none) * law(coarse, w)


def given(coarse: Fraction, fine: Fraction, old: int, new: int) -> float:
    return law(fine, new) * added(coarse, fine, old - new) / law(coarse, old)


@pytest.mark.parametrize(("coarse", "fine"), PAIRS)
def test_more_noise_on_the_finer_is_the_coarser(coarse: Fraction, fine: Fraction) -> None:
    reach = range(-600, 601)
    for n in (0, 1, -4):
        total = sum(law(fine, z) * added(coarse, fine, n - z) for z in reach)
        assert total == pytest.approx(law(coarse, n), rel=1e-9)


@pytest.mark.parametrize(("coarse", "fine"), PAIRS)
@pytest.mark.parametrize("old", [0, 3, -5, 40])
def test_given_the_old_noise_the_new_has_its_law(coarse: Fraction, fine: Fraction, old: int) -> None:
    count = 40_000
    drawn = refined(np.full(count, old), [coarse] * count, [fine] * count, seeded(abs(old)))
    seen = Counter(drawn.tolist())
    likely = [z for z in range(-200, 201) if given(coarse, fine, old, z) * count >= 5]
    expected = [given(coarse, fine, old, z) * count for z in likely]
    observed = [seen[z] for z in likely]
    rest = count - sum(expected)
    if rest >= 5:
        expected.append(rest)
        observed.append(count - sum(observed))
    else:
        expected[0] += rest
        observed[0] += count - sum(observed)
    assert chisquare(observed, expected).pvalue > 1e-4


def test_a_wrong_law_is_noticed() -> None:
    """What the test above would say of fresh noise, which does not know of the old."""
    count, (coarse, fine), old = 40_000, PAIRS[0], 3
    seen = Counter(seeded(1).discrete_laplace(fine, count).tolist())
    likely = [z for z in range(-60, 61) if given(coarse, fine, old, z) * count >= 5]
    expected = np.array([given(coarse, fine, old, z) for z in likely])
    observed = np.array([seen[z] for z in likely])
    assert chisquare(observed, expected / expected.sum() * observed.sum()).pvalue < 1e-9


@pytest.mark.parametrize(("coarse", "fine"), PAIRS)
def test_both_releases_together_lose_what_the_finer_does(coarse: Fraction, fine: Fraction) -> None:
    """The exact log-ratio of (first, second) when the true count moves by one, over all that can be seen."""
    reach = range(-30, 31)

    def both(true: int, first: int, second: int) -> float:
        return law(coarse, first - true) * given(coarse, fine, first - true, second - true)

    ratios = [abs(math.log(both(0, a, b) / both(1, a, b))) for a in reach for b in reach]
    assert max(ratios) == pytest.approx(float(1 / fine), rel=1e-9)


def test_refined_noise_is_marginally_that_of_its_scale() -> None:
    coarse, fine, count = Fraction(7), Fraction(3), 40_000
    old = seeded(5).discrete_laplace(coarse, count)
    new = refined(old, [coarse] * count, [fine] * count, seeded(6))
    likely = [z for z in range(-40, 41) if law(fine, z) * count >= 5]
    observed, expected = np.bincount(new + 1000, minlength=2001), [law(fine, z) * count for z in likely]
    counts = [int(observed[z + 1000]) for z in likely]
    expected.append(count - sum(expected))
    counts.append(count - sum(counts))
    assert chisquare(counts, expected).pvalue > 1e-4
    assert np.mean(np.abs(new) <= np.abs(old)) > 0.6  # the same noise made smaller, not other noise


def test_each_sample_has_scales_of_its_own_and_equal_scales_keep_the_noise() -> None:
    old = np.array([4, -9, 0, 2])
    coarse = [Fraction(5), Fraction(5), Fraction(1, 7), Fraction(10**6)]
    fine = [Fraction(5), Fraction(1, 1000), Fraction(1, 7), Fraction(10**6)]
    new = refined(old, coarse, fine, seeded(3))
    assert new[[0, 2, 3]].tolist() == [4, 0, 2]
    assert new[1] == 0  # noise of scale 1/1000 is zero but for e^-1000
    assert old.tolist() == [4, -9, 0, 2]


def test_noise_never_grows_and_ratios_that_are_too_long_are_not_offered() -> None:
    with pytest.raises(InvalidScale, match="none above"):
        refined(np.zeros(1, dtype=np.int64), [Fraction(1)], [Fraction(2)], seeded(0))
    with pytest.raises(SizeMismatch):
        refined(np.zeros(2, dtype=np.int64), [Fraction(1)], [Fraction(1)], seeded(0))
    assert can_refine(Fraction(10), Fraction(3))
    assert can_refine(Fraction(2), Fraction(2))
    assert not can_refine(Fraction(2), Fraction(3))
    assert not can_refine(Fraction(10**18 + 9), Fraction(10**18 + 7))
