"""Intervals of free answers: coverage, for questions fixed beforehand and for ones chosen later."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array

from blowfishdb.core.accuracy import Accuracy, independent_alpha, pmf
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidBeta
from blowfishdb.core.laplace_sums import closed_half_width, continuous_quantile
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Matrix, Product, Ranges, Rectangles
from blowfishdb.mechanisms.linear.law import discrete, quantile
from blowfishdb.mechanisms.reuse import (
    Combination,
    Label,
    StoredRelease,
    cheapest,
    combine,
    margin,
)
from blowfishdb.mechanisms.reuse.selected import _Family, _of_family, ellipsoid_quantile
from tests.core.test_reuse import axis, public, release

Floats = NDArray[np.float64]


def certainly(found: Combination | None) -> Combination:
    assert found is not None
    return found


def alpha_needed(
    found: Combination, beta: float, label: Label = Label.ANY, *, among: int | None = None
) -> float:
    """The least α at which every answer is known to follow."""
    return float(margin(found, beta, label, among=among).max(initial=0.0))


def errors(found: Combination, draws: int, seed: int = 1) -> Floats:
    """The error of every answer, for fresh noise on every stored row."""
    noise = discrete(np.random.default_rng(seed), draws, found.estimator.noise.scales)
    return np.abs(found.estimator.apply(noise))


def at_least(share: float, draws: int) -> float:
    """What an interval of probability ``share`` shows in all but one run in 10⁴."""
    return share - 3.7 * math.sqrt(share * (1 - share) / draws)


# --- golden numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cells", "c", "r"), [(64, 5.15, 9.8), (256, 6.02, 17.8)])
def test_quantiles_of_laplace_cells(cells: int, c: float, r: float) -> None:
    """REUSE §1; the order statistics are conservative by a few per cent."""
    stored = release([axis(cells, 1)], Histogram(cells), 1_000)
    assert c <= _of_family(_Family((stored,)), 0.05)[0] <= 1.06 * c
    assert r <= ellipsoid_quantile(stored, 0.05) <= 1.02 * r


def test_one_cell_alone() -> None:
    found = certainly(combine([release([axis(64, 1)], Histogram(64), 1_000)], [axis(64, 1)], Histogram(64)))
    alone = margin(found, 0.05, Label.PLANNED, simultaneous=False) / np.sqrt(found.variances)
    assert alone == pytest.approx(2.12, abs=5e-3)


def test_closed_tails() -> None:
    found = continuous_quantile(np.array([1.0, 2.0]), 0.05)
    assert found is not None
    assert (4 * math.exp(-found / 2) - math.exp(-found)) / 3 == pytest.approx(0.05, rel=1e-6)
    nearly_equal = continuous_quantile(np.array([1.0, 1.05001]), 0.05)
    assert nearly_equal == pytest.approx(4.1130 * 1.025, rel=2e-3)
    assert continuous_quantile(np.array([1.0, 1.01]), 0.05) is None
    assert continuous_quantile(1.5 ** np.arange(9), 0.05) is None
    assert continuous_quantile(1.05001 ** np.arange(8), 1e-12) is None
    assert closed_half_width(np.array([0.0]), np.array([3.0]), 0.05) == 0
    one = closed_half_width(np.array([-0.5, 0.0]), np.array([3.0, 9.0]), 0.05)
    assert one == pytest.approx(0.5 * independent_alpha(np.array([3.0]), Epsilon(1), 0.05))


# --- planned ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("simultaneous", [True, False])
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(3), Fraction(40)])
def test_planned_intervals_cover_fixed_questions(scale: Fraction, simultaneous: bool) -> None:
    stored = [
        release([axis(100, 10)], Histogram(10), scale),
        release([axis(100, 25)], Histogram(4), 2 * scale, 2),
        public(),
    ]
    found = certainly(combine(stored, [axis(100, 5)], Ranges(20, [0, 4, 2, 5, 0], [9, 4, 17, 5, 19])))
    widths = margin(found, 0.05, Label.PLANNED, simultaneous=simultaneous)
    inside = errors(found, 20_000) <= widths + 1e-9
    held = inside.all(axis=1).mean() if simultaneous else inside.mean(axis=0).min()
    assert held >= at_least(0.95, 20_000)
    assert widths[-1] == pytest.approx(0, abs=1e-9)  # n is public
    wide = margin(found, 0.2, Label.PLANNED, simultaneous=simultaneous)
    assert (wide[:-1] < widths[:-1]).all() or scale < 1


def test_planned_intervals_from_closed_tails_cover_and_are_not_wasteful() -> None:
    stored = [release([axis(4, 2)], Histogram(2), 5), release([axis(4, 1)], Ranges(4, [2], [2]), 9, 2)]
    found = certainly(combine(stored, [axis(4, 1)], Ranges(4, [3], [3])))
    assert np.count_nonzero(found.estimator.weights(np.array([0]))) == 2
    width = margin(found, 0.05, Label.PLANNED)[0]
    held = (errors(found, 40_000)[:, 0] <= width).mean()
    assert at_least(0.95, 40_000) <= held <= 0.97


def test_closed_tails_allow_for_discrete_noise() -> None:
    """Exact convolutions: α always fails at most β, and without ‖t‖₁ it would fail more often somewhere."""
    values = np.arange(-400, 401)
    too_often = 0
    for first, second, share in [
        (a, b, t) for a in (1.0, 3.0) for b in (0.6, 1.7, 5.0) for t in (0.4, 0.7, 1.0)
    ]:
        weights, scales = np.array([1.0, share]), np.array([first, second])
        width = closed_half_width(weights, scales, 0.05)
        assert width is not None
        law = np.outer(np.asarray(pmf(values, first)), np.asarray(pmf(values, second)))
        error = np.abs(values[:, None] + share * values)
        assert law[error > width + 1e-9].sum() <= 0.05
        too_often += law[error > width - 1 - share + 1e-9].sum() > 0.05
    assert too_often > 0


def test_the_identical_question_keeps_its_exact_law() -> None:
    found = certainly(combine([release([axis(40, 1)], Histogram(40), 6)], [axis(40, 1)], Histogram(40)))
    expected = independent_alpha(np.full(40, 6.0), Epsilon(1), 0.05)
    assert alpha_needed(found, 0.05, Label.PLANNED) == expected


def test_failure_probabilities_too_small_to_simulate() -> None:
    stored = [release([axis(100, 10)], Histogram(10), 3), release([axis(100, 25)], Histogram(4), 3, 2)]
    found = certainly(combine(stored, [axis(100, 25)], Cumulative(4)))
    for label in Label:
        tiny, small = (alpha_needed(found, beta, label) for beta in (1e-9, 1e-3))
        assert small < tiny < 12 * small
    with pytest.raises(InvalidBeta):
        margin(found, 0.0)


# --- chosen after looking --------------------------------------------------------------------------------


def test_the_highest_bar() -> None:
    """Of 100 bars on empty data an analyst asks for the highest: only ``any`` survives that."""
    found = certainly(combine([release([axis(100, 1)], Histogram(100), 20)], [axis(100, 1)], Histogram(100)))
    highest = errors(found, 5_000).max(axis=1)
    after = margin(found, 0.05, Label.ANY, simultaneous=False)[0]
    before = margin(found, 0.05, Label.PLANNED, simultaneous=False)[0]
    assert (highest <= after).mean() >= at_least(0.95, 5_000)
    assert (highest <= before).mean() < 0.2  # each bar by itself would be right 95 times in 100
    assert after > 2 * before


@pytest.mark.parametrize("exact", [True, False])
def test_the_worst_range_of_whichever_release_and_of_both_together(exact: bool) -> None:
    stored = [
        release([axis(60, 3)], Histogram(20), 4),
        release([axis(60, 4)], Cumulative(15), 6, 2),
        *([public()] if exact else []),
    ]
    sources = [stored, [stored[0], *stored[2:]], [stored[1], *stored[2:]]]
    axes = [axis(60, 1)], [axis(60, 3)], [axis(60, 4)]
    held = np.ones(4_000, dtype=bool)
    noise = discrete(np.random.default_rng(8), 4_000, np.concatenate([r.scales for r in stored[:2]]))
    for used, on in zip(sources, axes, strict=True):
        found = certainly(combine(used, on, AllRanges(on[0].bins.count)))
        rows = [noise[:, :20]] * (stored[0] in used) + [noise[:, 20:]] * (stored[1] in used)
        wrong = found.estimator.apply(np.concatenate([*rows, *[np.zeros((4_000, 1))] * exact], axis=1))
        known = found.determined
        widths = margin(found, 0.05, among=2)
        held &= (np.abs(wrong[:, known]) <= widths[known] + 1e-9).all(axis=1)
    assert held.mean() >= at_least(0.95, 4_000)


def test_any_question_at_all() -> None:
    """The worst direction for the noise at hand: no family of questions holds it, only the ellipsoid does."""
    stored = release([axis(12, 1)], Histogram(12), 7)
    noise = discrete(np.random.default_rng(2), 2_000, stored.scales)
    held = 0
    found = certainly(combine([stored], [axis(12, 1)], Matrix(np.sign(noise[:1_000]).astype(np.int64))))
    widths = margin(found, 0.05)
    for draw in range(1_000):
        held += abs(float(np.sign(noise[draw]) @ noise[draw])) <= widths[draw] + 1e-6
    assert held / 1_000 >= at_least(0.95, 1_000)
    assert _of_family(_Family((stored,)), 0.05)[0] < ellipsoid_quantile(stored, 0.05)


def test_boxes_of_a_table() -> None:
    a, b = axis(6, 1, "a"), axis(5, 1, "b")
    stored = release([a, b], Histogram(30), 9)
    lows = [[i, j] for i in range(6) for j in range(5)]
    found = certainly(combine([stored], [a, b], Rectangles((6, 5), lows, [[5, 4]] * 30)))
    per_deviation = margin(found, 0.05) / np.sqrt(found.variances)
    assert per_deviation == pytest.approx(per_deviation[0])
    assert per_deviation[0] < ellipsoid_quantile(stored, 0.05)
    worst = (errors(found, 4_000) / np.sqrt(found.variances)).max(axis=1)
    assert (worst <= per_deviation[0]).mean() >= at_least(0.95, 4_000)
    crossed = certainly(combine([stored], [a, b], csr_array(np.arange(30)[None] % 2)))
    assert margin(crossed, 0.05)[0] > per_deviation[0] * math.sqrt(crossed.variances[0])


@pytest.mark.parametrize("rows", [Histogram(500), Cumulative(500)])
def test_lines_with_too_many_ranges_to_simulate(rows: Histogram | Cumulative) -> None:
    found = certainly(combine([release([axis(500, 1)], rows, 9)], [axis(500, 1)], Histogram(500)))
    widths = margin(found, 0.05)
    assert (errors(found, 400) <= widths).all(axis=1).mean() >= 0.95
    whole = certainly(combine(found.releases, [axis(500, 1)], Ranges(500, [1], [498])))
    ratio = margin(whole, 0.05)[0] / (
        widths[5] / math.sqrt(found.variances[5]) * math.sqrt(whole.variances[0])
    )
    assert ratio <= 1


# --- owned -----------------------------------------------------------------------------------------------


def test_owned_means_determined_and_accurate_enough() -> None:
    stored = [release([axis(100, 10)], Histogram(10), 5)]
    coarse = certainly(combine(stored, [axis(100, 20)], Histogram(5)))
    needed = alpha_needed(coarse, 0.05)
    assert alpha_needed(coarse, 0.05) <= needed
    assert not alpha_needed(coarse, 0.05) <= needed * 0.99
    assert alpha_needed(coarse, 0.05, Label.PLANNED) <= needed * 0.99
    assert not alpha_needed(coarse, 0.05, among=4) <= needed
    fine = certainly(combine(stored, [axis(100, 5)], Histogram(20)))
    assert math.isinf(alpha_needed(fine, 0.05))
    assert not alpha_needed(fine, 0.05) <= 10**9
    free = certainly(combine([public()], [axis(100, 100)], Histogram(1)))
    assert alpha_needed(free, 0.05) <= 0.001


def test_the_cheapest_source_is_chosen_by_scales() -> None:
    fine, coarse = release([axis(64, 1)], Histogram(64), 3), release([axis(64, 2)], Histogram(32), 30, 2)
    asked = Accuracy(100, 0.05)
    later = cheapest([fine, coarse, public()], [axis(64, 2)], Histogram(32), asked)
    assert later is not None
    assert later.meets(asked) == (later.alpha <= 100)
    assert later.alpha == later.margins.max()
    planned = cheapest([fine, coarse, public()], [axis(64, 2)], Histogram(32), asked, Label.PLANNED)
    assert planned is not None
    assert planned.alpha < later.alpha
    assert cheapest([coarse], [axis(64, 1)], Histogram(64), asked) is None
    assert cheapest([], [axis(64, 1)], Histogram(64), asked) is None


def test_sources_that_depend_on_the_question_have_no_short_intervals() -> None:
    a, b = axis(1_500, 1, "a"), axis(1_500, 1, "b")
    stored = [release([a], Histogram(1_500), 3), release([b], Histogram(1_500), 3, 2)]
    trimmed = certainly(combine(stored, [a], Histogram(1_500)))
    assert not trimmed.complete
    offered = cheapest(stored, [a], Histogram(1_500), Accuracy(100, 0.05))
    assert offered is not None
    assert offered.combination.complete
    assert 2 * offered.alpha < alpha_needed(trimmed, 0.05, among=2)


def test_exact_rows_on_other_columns_make_two_sources_of_one_release() -> None:
    a, b = axis(8, 1, "a"), axis(2, 1, "b")
    stored = [release([a], Histogram(8), 50), release([b], Histogram(2), 0, 2)]
    offered = cheapest(stored, [a], Histogram(8), Accuracy(100, 0.05))
    alone = cheapest(stored[:1], [a], Histogram(8), Accuracy(100, 0.05))
    assert offered is not None
    assert alone is not None
    together = certainly(combine(stored, [a], Histogram(8)))
    assert together.variances == pytest.approx(alone.combination.variances * 7 / 8)  # the total is known
    assert offered.alpha == pytest.approx(alpha_needed(offered.combination, 0.05, among=2))


def test_stored_values_change_no_decision() -> None:
    """REUSE §1: randomising all stored values changes no quote, weight or decision."""
    seen = set()
    for seed in range(3):
        values = np.random.default_rng(seed).integers(-(10**6), 10**6, 72)
        stored = [
            StoredRelease.of([axis(64, 1), axis(3, 3, "b")], Histogram(64), 3, values[:64], 1),
            StoredRelease.of([axis(64, 8)], Cumulative(8), [4] * 7 + [0], values[64:], 2),
        ]
        offers = [
            cheapest(stored, [axis(64, 8)], Histogram(8), Accuracy(50, 0.05, together), label)
            for label in Label
            for together in (True, False)
        ]
        seen.add(tuple((o.alpha, o.margins.tobytes(), o.combination.fingerprint) for o in offers if o))
    assert len(seen) == 1
    assert len(next(iter(seen))) == 4


def test_products_of_prefixes_are_boxes() -> None:
    a, b = axis(6, 1, "a"), axis(5, 1, "b")
    stored = release([a, b], Product(Histogram(6), Cumulative(5)), 9)
    found = certainly(combine([stored], [a, b], Product(Cumulative(6), Histogram(5))))
    assert found.determined.all()
    assert (margin(found, 0.05) < ellipsoid_quantile(stored, 0.005) * np.sqrt(found.variances)).all()


def test_order_statistics_see_their_limits() -> None:
    assert quantile(lambda noise: noise[:, 0], np.ones(3), 10**7, 1e-6, "x") is None
    one, two = (quantile(lambda noise: noise[:, 0], np.ones(3), 3, 0.05, key) for key in "xx")
    assert one is not None
    assert one == two
