"""Kinds of questions: what they need and how they read noisy counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blowfishdb.core.accuracy import Accuracy, independent_epsilon
from blowfishdb.core.domain.attributes import Category, Integer, Real
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import InvalidInput, InvalidWorkload
from blowfishdb.core.questions.kinds import (
    Above,
    Cumulative,
    Histogram,
    Kind,
    Quantiles,
    Question,
    Ranges,
    Sum,
    Top,
)
from blowfishdb.core.questions.partitions import Partition
from blowfishdb.core.questions.readings import Release
from blowfishdb.noise import seeded

AGE = Integer(0, 99)
TEN = Axis("age", AGE, AGE.bins(width=10))
CELLS = Axis("age", AGE, AGE.bins())


def release(
    values: list[float], alpha: float, exact: list[bool] | None = None, simultaneous: bool = True
) -> Release:
    return Release(
        np.array(values, dtype=float), np.array(exact or [False] * len(values)), alpha, simultaneous
    )


class TestReading:
    def test_bins_that_noise_has_picked_are_not_exact(self) -> None:
        counts, known = [5.0, 1.0, 9.0] + [0.0] * 7, [True] * 10
        assert Top(1).read(release(counts, 4, known), (TEN,)).exact.all()
        for kind in (Top(1), Above(8)):
            assert not kind.read(release(counts, 4, [False, *known[1:]]), (TEN,)).exact.any()

    def test_a_histogram_is_never_negative_and_keeps_its_intervals(self) -> None:
        reading = Histogram().read(release([-3, 5, 20] + [0] * 7, 4), (TEN,))
        assert reading.values[:3].tolist() == [0, 5, 20]
        assert reading.low[:3].tolist() == [0, 1, 16] and reading.high[:3].tolist() == [1, 9, 24]
        assert reading.labels[0][:2] == ("0–9", "10–19")

    def test_a_curve_increases_and_stays_below_the_public_total(self) -> None:
        noisy = [4, 2, 9, 8, 30, 29, 41, 40, 52, 50]
        reading = Cumulative().read(release(noisy, 3, [False] * 9 + [True]), (TEN,))
        assert (np.diff(reading.values) >= 0).all() and reading.values[-1] == 50
        assert reading.high.max() == 50 and reading.low[-1] == 50

    def test_tidying_a_curve_never_increases_its_largest_error(self) -> None:
        rng = np.random.default_rng(1)
        for _ in range(200):
            truth = np.sort(rng.integers(0, 40, size=10)).astype(float)
            noise = rng.integers(-6, 7, size=10)
            noise[-1] = 0
            exact = [False] * 9 + [True]
            alpha = float(np.abs(noise).max())
            reading = Cumulative().read(release(list(truth + noise), alpha, exact), (TEN,))
            assert np.abs(reading.values - truth).max() <= alpha + 1e-9
            assert ((reading.low <= truth + 1e-9) & (truth <= reading.high + 1e-9)).all()

    def test_quantiles_invert_the_band(self) -> None:
        truth = np.arange(1, 101) * 10.0  # ten people of each age
        reading = Quantiles((0.25, 0.5, 1.0)).read(release(list(truth), 35, [False] * 99 + [True]), (CELLS,))
        assert reading.values.tolist() == [24, 49, 99]
        assert reading.low.tolist() == [21, 46, 96] and reading.high.tolist() == [28, 53, 99]

    def test_quantile_intervals_hold_the_true_quantile(self) -> None:
        rng = np.random.default_rng(3)
        counts = rng.integers(0, 20, size=100)
        truth = counts.cumsum().astype(float)
        true_median = float(np.searchsorted(truth, 0.5 * truth[-1]))
        for _ in range(200):
            noise = rng.integers(-9, 10, size=100)
            noise[-1] = 0
            reading = Quantiles((0.5,)).read(release(list(truth + noise), 9, [False] * 99 + [True]), (CELLS,))
            assert reading.low[0] <= true_median <= reading.high[0]

    def test_sums_and_means_are_in_the_units_of_the_column(self) -> None:
        price = Real("0.5", "99.5", "0.25")
        axis = Axis("price", price, price.bins())
        workload = Sum().workload((axis,))
        assert workload.answer(np.eye(price.size, dtype=int)[3]).tolist() == [5]  # 1.25 in quarters
        reading = Sum().read(release([400], 8), (axis,))
        assert (reading.values[0], reading.low[0], reading.high[0]) == (100, 98, 102)
        assert Sum().requirement(Accuracy(2, 0.05), (axis,)).alpha == 8
        mean = Sum(rows=50, mean=True)
        assert mean.read(release([400], 8), (axis,)).values[0] == 2
        assert mean.promised(mean.requirement(Accuracy(3, 0.05), (axis,)).alpha, (axis,)) == pytest.approx(3)

    def test_the_top_is_right_up_to_alpha(self) -> None:
        rng = np.random.default_rng(5)
        for _ in range(300):
            truth = rng.integers(0, 60, size=10)
            alpha = 8
            noisy = truth + rng.integers(-alpha // 2, alpha // 2 + 1, size=10)
            chosen = set(Top(3).read(release(list(noisy), alpha / 2), (TEN,)).labels[0])
            third = np.sort(truth)[-3]
            names = TEN.labels()
            assert all(names[i] in chosen for i in range(10) if truth[i] > third + alpha)
            assert all(truth[i] >= third - alpha for i in range(10) if names[i] in chosen)

    def test_a_bin_of_the_top_can_fail_on_one_side_only(self) -> None:
        """Noise that is unbounded on the side that does not count, with ties at the last place."""
        rng, alpha, names = np.random.default_rng(7), 6, TEN.labels()
        for _ in range(2_000):
            count = int(rng.integers(1, 10))
            truth = rng.integers(0, int(rng.integers(2, 40)), size=10)
            # the bins above the last place, and some at it
            inside = np.argsort(-truth, kind="stable")[:count]
            upper = np.where(np.isin(np.arange(10), inside), 1_000, alpha // 2)
            lower = np.where(np.isin(np.arange(10), inside), -alpha // 2, -1_000)
            noisy = truth + rng.choice([lower, upper, np.zeros(10, dtype=int)], axis=0)
            noisy = np.where(rng.random(10) < 0.5, truth + lower, noisy)
            chosen = set(Top(count).read(release(list(noisy), alpha / 2), (TEN,)).labels[0])
            last = np.sort(truth)[-count]
            assert all(names[i] in chosen for i in range(10) if truth[i] > last + alpha)
            assert all(truth[i] >= last - alpha for i in range(10) if names[i] in chosen)
        assert Top(3).requirement(Accuracy(6, 0.05), (TEN,)).one_sided

    def test_the_price_of_a_top_keeps_its_promise(self) -> None:
        """Data on which every bin can fail: one far below, one far above, the rest at the edge of ±α."""
        truth, alpha, beta = np.array([60] * 5 + [60 - 9] * 5), 8, 0.2
        needed = Top(5).requirement(Accuracy(alpha, beta), (TEN,))
        epsilon = independent_epsilon(np.full(10, 2.0), needed)
        assert epsilon < independent_epsilon(np.full(10, 2.0), replace(needed, one_sided=False))
        noise = seeded(3).discrete_laplace(2 / epsilon.fraction, (20_000, 10))
        fails = ((truth + noise)[:, 5:].max(axis=1) >= (truth + noise)[:, :5].min(axis=1)).mean()
        assert 0.02 < fails <= beta

    def test_above_is_right_up_to_alpha(self) -> None:
        truth = np.array([10, 19, 20, 21, 30, 40, 0, 5, 25, 15])
        noise = np.array([5, 5, -5, 5, -5, -5, 5, 5, -5, 5])
        chosen = Above(20).read(release(list(truth + noise), 5), (TEN,)).labels[0]
        names = TEN.labels()
        assert all(names[i] in chosen for i in range(10) if truth[i] > 25)
        assert all(truth[i] >= 15 for i in range(10) if names[i] in chosen)
        assert Above(20).requirement(Accuracy(5, 0.05), (TEN,)).one_sided

    @pytest.mark.parametrize(
        "kind", [Top(3), Above(20), Quantiles((0.5,)), Partition(3)], ids=lambda kind: kind.name
    )
    def test_what_is_picked_by_noisy_counts_needs_all_of_them(self, kind: Kind) -> None:
        """Which of them matter is not known beforehand, so that each is close by itself is not enough."""
        assert kind.requirement(Accuracy(5, 0.05, simultaneous=False), (TEN,)).simultaneous

    def test_ranges_read_as_their_bounds(self) -> None:
        kind = Ranges(((0, 9), (20, 49)))
        workload = kind.workload((TEN,))
        assert workload.answer(np.arange(10)).tolist() == [0, 9]
        assert kind.read(release([1, 2], 1), (TEN,)).labels == (("0–9", "20–49"),)


class TestBadInput:
    @pytest.mark.parametrize(
        "build",
        [
            lambda: Question(Histogram(), ()),
            lambda: Question(Histogram(), (TEN, TEN)),
            lambda: Question(Cumulative(), (Axis("sex", Category(["f", "m"]), Category(["f", "m"]).bins()),)),
            lambda: Question(Sum(), (TEN, Axis("other", AGE, AGE.bins()))),
            lambda: Quantiles(()),
            lambda: Quantiles((1.5,)),
            lambda: Top(0),
            lambda: Top(2.5),
            lambda: Above(float("nan")),
            lambda: Above(True),
            lambda: Sum(rows=0, mean=True),
            lambda: Ranges(()).workload((TEN,)),
            lambda: Ranges(((5, 9),)).workload((TEN,)),
            lambda: Ranges(((0, 300),)).workload((TEN,)),
        ],
    )
    def test_each_mistake_is_explained(self, build) -> None:
        with pytest.raises(InvalidInput) as caught:
            build()
        assert str(caught.value)

    def test_words(self) -> None:
        with pytest.raises(InvalidWorkload, match="one column"):
            Question(Top(1), (TEN, Axis("other", AGE, AGE.bins())))


@pytest.mark.parametrize(
    "kind",
    [
        Histogram(),
        Cumulative(),
        Ranges(((0, 9),)),
        Quantiles((0.5,)),
        Sum(),
        Sum(rows=3, mean=True),
        Top(2),
        Above(7),
    ],
)
def test_every_kind_has_a_name_and_an_identity(kind: Kind) -> None:
    assert kind.identity()[0] == kind.name
