"""DawaTransformed: the budget of both stages, the policy between buckets, and what it gains."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidEpsilon, NoGuarantee, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Histogram, Product, Ranges
from blowfishdb.mechanisms import dawa
from blowfishdb.mechanisms.dawa import DawaTransformed, released_in_buckets

POLICIES = [Threshold(64, 1), Threshold(64, 5), Full(64), AddRemove(64), Partitioned(np.arange(64) // 16)]


@pytest.mark.parametrize("graph", POLICIES)
@pytest.mark.parametrize("workload", [Histogram(64), Ranges(64, [0, 5, 30], [63, 9, 40])])
def test_with_a_large_budget_even_data_is_answered_exactly(graph, workload):
    x = np.repeat([7, 90], 32)
    plan = DawaTransformed().plan(workload, graph)
    answers = plan.release(x, epsilon=10**4, noise=noise.seeded(2))
    np.testing.assert_allclose(answers, workload.answer(x), rtol=0.01, atol=0.1)


def test_a_grid_and_its_policy_follow_the_curve():
    x = np.zeros((8, 8), dtype=np.int64)
    x[:, 4:] = 50
    workload = Product(Histogram(8), Histogram(8))
    answers = (
        DawaTransformed()
        .plan(workload, Grid((8, 8), 1))
        .release(x.ravel(), epsilon=10**4, noise=noise.seeded(2))
    )
    np.testing.assert_allclose(answers, x.ravel(), atol=0.1)


@pytest.mark.parametrize(("graph", "times"), [(Threshold(300, 1), 2), (AddRemove(300), 1)])
def test_both_stages_together_spend_epsilon(graph, times, monkeypatch):
    spent = {}
    partition, released = dawa.private_partition, dawa.released_in_buckets

    def watched_partition(x, candidates, penalty, first, second, source):
        spent["first"] = first
        return partition(x, candidates, penalty, first, second, source)

    def watched_release(*given, epsilon, noise):
        spent["second"] = epsilon.fraction
        return released(*given, epsilon=epsilon, noise=noise)

    monkeypatch.setattr(dawa, "private_partition", watched_partition)
    monkeypatch.setattr(dawa, "released_in_buckets", watched_release)
    plan = DawaTransformed(split=0.3).plan(Histogram(300), graph)
    plan.release(np.arange(300), epsilon="0.7", noise=noise.seeded(1))
    assert spent == {"first": Fraction(21, 100) / times, "second": Fraction(49, 100)}
    assert ("twice" in plan.explain()) == (times == 2)


def test_a_move_inside_a_bucket_costs_nothing():
    """Buckets of two on a line of four: one hidden pair is left, with the noise of an ordered prefix."""
    x, labels, seeded = np.array([5, 6, 7, 8]), np.array([0, 0, 1, 1]), noise.seeded(3)
    found = np.array(
        [
            released_in_buckets(
                Histogram(4), Threshold(4, 1), x, labels, epsilon=Epsilon("0.5"), noise=seeded
            )
            for _ in range(1_500)
        ]
    )
    np.testing.assert_array_equal(found[:, 0], found[:, 1])
    np.testing.assert_allclose(found.sum(axis=1), x.sum())
    q = np.exp(-0.5)
    assert np.var(2 * found[:, 0]) == pytest.approx(2 * q / (1 - q) ** 2, rel=0.2)


def test_buckets_need_not_be_intervals():
    x, labels = np.array([3, 9, 3, 9, 3]), np.array([0, 1, 0, 1, 0])
    found = released_in_buckets(
        Histogram(5), Threshold(5, 1), x, labels, epsilon=Epsilon(10**4), noise=noise.seeded(0)
    )
    np.testing.assert_allclose(found, x, atol=0.01)


@pytest.mark.parametrize("graph", [Threshold(6, 1), Full(6), Partitioned([0, 1, 0, 1, 2, 2])])
@pytest.mark.parametrize("workload", [Histogram(6), Ranges(6, [0], [5])])
def test_counts_are_not_negative_and_public_totals_hold(graph, workload):
    x, labels = np.array([0, 9, 0, 1, 0, 4]), np.array([0, 1, 0, 2, 3, 3])
    component = graph.components().assignment()
    for seed in range(10):
        cells = released_in_buckets(
            workload, graph, x, labels, epsilon=Epsilon("0.2"), noise=noise.seeded(seed)
        )
        assert cells.min() >= 0
        np.testing.assert_allclose(np.bincount(component, cells), np.bincount(component, x), atol=1e-9)


def test_where_records_come_and_go_counts_stay_unbiased():
    """The total is not public there, so nothing can be moved between buckets: negative counts are left."""
    found = [
        released_in_buckets(
            Histogram(2),
            AddRemove(2),
            np.zeros(2, int),
            np.arange(2),
            epsilon=Epsilon(1),
            noise=noise.seeded(s),
        )
        for s in range(20)
    ]
    assert np.min(found) < 0


def test_even_data_gains_over_noise_on_every_prefix():
    x = np.repeat([0, 300, 20, 90], 128)
    plan = DawaTransformed().plan(Histogram(512), Threshold(512, 1))
    seeded = noise.seeded(4)
    errors = [((plan.release(x, epsilon=0.1, noise=seeded) - x) ** 2).mean() for _ in range(8)]
    assert np.mean(errors) < 0.6 * 400  # 4/ε² on every cell


def test_refusals():
    with pytest.raises(SizeMismatch):
        DawaTransformed().plan(Histogram(4), Threshold(5, 1))
    with pytest.raises(InvalidEpsilon):
        DawaTransformed(split=0.0)
    with pytest.raises(NoGuarantee):
        DawaTransformed().plan(AllRanges(4), Threshold(4, 1)).epsilon_for(alpha=1, beta=0.05)
    nothing = DawaTransformed().plan(Histogram(3), Explicit(3, ()))
    np.testing.assert_array_equal(nothing.release([1, 2, 3], epsilon=1, noise=noise.seeded(0)), [1, 2, 3])
    assert "hides nothing" in nothing.explain()
