"""OrderedDenoised: private because its release is, never negative, better than it on structured data."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.errors import NoGuarantee, NotProven, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Banded, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import Cumulative, Histogram, Product, Ranges
from blowfishdb.mechanisms.adaptive.denoised import (
    OrderedDenoised,
    denoised_line,
    fit_segments,
    nearest_non_negative,
)
from blowfishdb.mechanisms.ordered import Ordered


def best_segmentation(series, penalty, degree):
    """The least Σ residuals + penalty·segments, by dynamic programming over all cuts."""
    best = [0.0]
    for stop in range(1, series.size + 1):
        options = []
        for start in range(stop):
            part = series[start:stop]
            places = np.vander(np.arange(part.size), min(degree + 1, part.size))
            residual = part - places @ np.linalg.lstsq(places, part, rcond=None)[0]
            options.append(best[start] + float(residual @ residual) + penalty)
        best.append(min(options))
    return best[-1]


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_merging_is_close_to_the_exact_optimum(linear, seed):
    stream = np.random.default_rng(seed)
    slopes = np.repeat(stream.integers(0, 12, 4), 15)
    truth = np.cumsum(slopes) if linear else 5.0 * slopes
    series = truth + stream.laplace(size=truth.size)
    penalty = 24 * 2.0
    found = fit_segments(series, penalty, linear=linear)
    reached = float(((series - found.fitted) ** 2).sum()) + penalty * found.starts.size
    exact = best_segmentation(series, penalty, 1 if linear else 0)
    assert exact - 1e-6 <= reached <= 1.35 * exact


def test_fits_are_least_squares_on_every_segment():
    series = np.random.default_rng(3).normal(size=60).cumsum() * 9
    found = fit_segments(series, 30.0, linear=True)
    assert 1 < found.starts.size < 60
    assert found.lengths.sum() == 60
    for start, length in zip(found.starts, found.lengths, strict=True):
        place = np.arange(length)
        line = np.polyval(np.polyfit(place, series[start : start + length], min(1, length - 1)), place)
        np.testing.assert_allclose(found.fitted[start : start + length], line, atol=1e-8)


def test_a_jump_between_two_levels_is_kept():
    series = np.repeat([0.0, 1e6], 20)
    np.testing.assert_allclose(fit_segments(series, 48.0, linear=True).fitted, series, atol=1e-6)
    assert fit_segments(np.zeros(0), 1.0, linear=True).starts.size == 0


def test_nearest_non_negative_is_the_projection():
    stream = np.random.default_rng(1)
    for _ in range(20):
        values = stream.normal(size=9) * 4 + 1
        found = nearest_non_negative(values)
        total = max(values.sum(), 0.0)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(total)
        if total > 0:  # the optimality of a projection on the simplex: equal residual wherever it is positive
            residual = values - found
            assert np.ptp(residual[found > 0]) < 1e-9
            assert (residual[found == 0] <= residual[found > 0].mean() + 1e-9).all()


LINES = [
    Threshold(9, 1),
    Banded([1, 2, 2, 4, 4, 5, 7, 7, 8]),
    Partitioned([0, 0, 1, 1, 2, 3, 3, 4, 4]),
    Threshold(9, 3),
    Full(9),
    Grid((3, 3), 1),
    Partitioned([0, 1, 0, 1, 2, 2, 0, 1, 2]),
]


@pytest.mark.parametrize("graph", LINES)
@pytest.mark.parametrize("epsilon", ["0.05", "3"])
def test_cells_are_not_negative_and_public_totals_hold(graph, epsilon):
    x = np.array([3, 0, 4, 1, 0, 9, 2, 6, 0])
    plan = OrderedDenoised().plan(Histogram(9), graph)
    labels = graph.components().assignment()
    for seed in range(5):
        cells = plan.release(x, epsilon=epsilon, noise=noise.seeded(seed))
        assert cells.min() >= -1e-9
        np.testing.assert_allclose(np.bincount(labels, cells), np.bincount(labels, x), atol=1e-6)


class Recorded:
    """Real noise, and the scales that it was asked for."""

    def __init__(self):
        self.asked, self._noise = [], noise.seeded(1)

    def discrete_laplace(self, scale, size=None):
        self.asked.append((scale, size))
        return self._noise.discrete_laplace(scale, size)


@pytest.mark.parametrize("graph", [Threshold(30, 1), Threshold(30, 4), Full(30)])
def test_a_release_draws_the_noise_of_its_inner_plan_once(graph):
    plan = OrderedDenoised().plan(Histogram(30), graph)
    denoised, alone = Recorded(), Recorded()
    plan.release(np.arange(30), epsilon="0.4", noise=denoised)
    plan.inner.release(np.arange(30), epsilon="0.4", noise=alone)
    assert denoised.asked == alone.asked != []


def test_the_estimate_is_a_function_of_the_release():
    """Neighbours whose noisy prefixes coincide get the same answers: nothing else of the data is used."""
    noisy = np.array([4.0, 2.0, 9.0, 11.0, 30.0, 29.0])
    np.testing.assert_array_equal(denoised_line(noisy, 40.0, 2.0), denoised_line(noisy.copy(), 40.0, 2.0))
    x = np.array([3, 0, 4, 1, 0, 9, 2])
    moved = x + np.array([1, -1, 0, 0, 0, 0, 0])
    plan = OrderedDenoised().plan(Histogram(7), Threshold(7, 1))

    class Shifted:
        def __init__(self, shift):
            self.shift = shift

        def discrete_laplace(self, scale, size):
            return np.array([5, -3, 2, 0, 1, -2][:size]) + np.eye(6, dtype=int)[0][:size] * self.shift

    here = plan.release(x, epsilon=1, noise=Shifted(1))
    there = plan.release(moved, epsilon=1, noise=Shifted(0))
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize(
    "x",
    [
        np.repeat([0, 40, 3, 200], 256),
        np.where(np.arange(1024) % 97 == 0, 500, 0),
        np.random.default_rng(0).lognormal(3, 1, 1024).astype(int),
    ],
    ids=["piecewise", "sparse", "lognormal"],
)
def test_it_beats_the_release_that_it_starts_from(x):
    graph, seeded = Threshold(1024, 1), noise.seeded(2)
    plan = OrderedDenoised().plan(Histogram(1024), graph)
    errors = [((plan.release(x, epsilon=0.1, noise=seeded) - x) ** 2).mean() for _ in range(5)]
    assert np.mean(errors) < 0.7 * Ordered().plan(Histogram(1024), graph).squared_error(epsilon=0.1)


def test_any_threshold_gains_on_structured_data():
    x, seeded = np.repeat([0, 400, 10], [400, 100, 524]), noise.seeded(2)
    plan = OrderedDenoised().plan(Histogram(1024), Threshold(1024, 8))
    errors = [((plan.release(x, epsilon=0.1, noise=seeded) - x) ** 2).mean() for _ in range(4)]
    assert np.mean(errors) < 0.2 * plan.inner.squared_error(epsilon=0.1)


def test_answers_are_those_of_the_cells():
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    for workload in (Cumulative(8), Ranges(8, [0, 2], [7, 5]), Product(Histogram(2), Histogram(4))):
        cells = OrderedDenoised().plan(Histogram(8), Threshold(8, 1))
        plan = OrderedDenoised().plan(workload, Threshold(8, 1))
        expected = workload.answer(cells.release(x, epsilon=1, noise=noise.seeded(3)))
        np.testing.assert_allclose(plan.release(x, epsilon=1, noise=noise.seeded(3)), expected)


def test_refusals():
    with pytest.raises(SizeMismatch):
        OrderedDenoised().plan(Histogram(4), Threshold(5, 1))
    with pytest.raises(NotProven):
        OrderedDenoised().plan(Histogram(4), AddRemove(4))
    plan = OrderedDenoised().plan(Histogram(4), Threshold(4, 1))
    with pytest.raises(NoGuarantee):
        plan.squared_error(epsilon=1)
    assert "whole budget" in plan.explain()
    exact = (
        OrderedDenoised()
        .plan(Histogram(3), Explicit(3, ()))
        .release([1, 2, 3], epsilon=1, noise=noise.seeded(0))
    )
    np.testing.assert_array_equal(exact, [1, 2, 3])
