"""Trees and wavelets: exact costs under every policy, exact errors, the fan-out that the error asks for."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core.errors import InvalidWorkload, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Banded, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram
from blowfishdb.mechanisms.hierarchical import Hierarchical, Privelet, fanout_for, height_for
from blowfishdb.mechanisms.plan import Certificate
from tests.mechanisms.runs import draws

POLICIES = [
    Full(13),
    Threshold(13, 4),
    Banded([2, 2, 5, 5, 5, 8, 8, 9, 9, 11, 12, 12, 12]),
    Partitioned([0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2, 2]),
    Partitioned([0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
    Explicit(13, [(0, 12), (3, 4), (7, 8)]),
    AddRemove(13),
    Full(13).hide_presence(),
]


@pytest.mark.parametrize("mechanism", [Hierarchical(2), Hierarchical(4), Hierarchical(), Privelet()])
@pytest.mark.parametrize("graph", POLICIES)
def test_private_under_every_policy(mechanism, graph):
    plan = mechanism.plan(AllRanges(13), graph)
    for epsilon in (Fraction(1), Fraction(718_281_827, 10**9)):
        assert plan.certificate(epsilon=epsilon).worst_loss(graph) == epsilon
        rows, scales = plan.rows(epsilon=epsilon)
        mutant = Certificate.of_rows(rows, [scale * Fraction(9, 10) for scale in scales])
        assert mutant.worst_loss(graph) > epsilon


@pytest.mark.parametrize("k", [2, 3, 8, 13, 64, 100])
def test_costs_under_the_full_policy(k):
    for fanout in (2, 3, 16):
        height = height_for(k, fanout)
        cost = Hierarchical(fanout).plan(Cumulative(k), Full(k)).cost
        assert cost == 2 * height if fanout**height == k else height < cost <= 2 * height
        assert Hierarchical(fanout).plan(Cumulative(k), AddRemove(k)).cost == height + 1
    levels = math.ceil(math.log2(k))
    assert Privelet().plan(Cumulative(k), Full(k)).cost <= 2 * levels
    assert Privelet().plan(Cumulative(k), AddRemove(k)).cost == 1 + levels  # the paper's ρ = 1 + log₂ k


def test_wavelets_are_the_published_ones():
    """On a power of two: rows ±1 over halves, one noise scale, orthogonal, and the variance that follows."""
    k = 16
    plan = Privelet().plan(Histogram(k), Full(k))
    rows = plan.strategy.sparse().toarray()
    assert rows.shape == (k - 1, k)
    assert not (np.triu(rows @ rows.T, 1)).any()
    assert set(np.unique(rows)) == {-1, 0, 1}
    assert plan.scales.distinct == (Fraction(8),)
    nodes = np.array([2, 4, 8, 16])  # a cell is ±1/|node| of every coefficient above it
    expected = 2 * 8**2 * (1 / nodes**2).sum()
    np.testing.assert_allclose(plan.variances(2.0 * plan.scales.floats() ** 2), expected, rtol=1e-12)


def test_no_root_when_n_is_public_and_a_root_when_it_is_not():
    assert (0, 9) not in _intervals(Hierarchical(3).plan(Cumulative(9), Full(9)))
    assert (0, 9) in _intervals(Hierarchical(3).plan(Cumulative(9), Full(9).hide_presence()))
    assert Hierarchical(3).plan(Cumulative(9), Full(9)).exact[-1]
    assert not Hierarchical(3).plan(Cumulative(9), Full(9).hide_presence()).exact.any()


def _intervals(plan):
    return set(zip(plan.strategy.starts.tolist(), plan.strategy.stops.tolist(), strict=True))


def test_the_error_chooses_the_fan_out():
    for workload in (Cumulative(256), AllRanges(256), Histogram(256)):
        best = Hierarchical().plan(workload, Full(256)).unit_error
        for height in range(1, 9):
            given = Hierarchical(fanout_for(256, height)).plan(workload, Full(256))
            assert best <= given.unit_error * (1 + 1e-9)


def test_the_tuned_tree_has_the_known_error():
    """8.27 and 8.47 times the lower bound at k = 256 (fan-out 16)."""
    from tests.core.oracle import line_bound

    for workload, ratio in ((Cumulative(256), 8.47), (AllRanges(256), 8.27)):
        plan = Hierarchical().plan(workload, Full(256))
        assert plan.unit_error / line_bound(workload.gram(), 255, steps=15) == pytest.approx(ratio, rel=0.02)


def test_ten_thousand_cells_are_estimated_exactly_without_noise():
    k = 10_000
    cells = np.arange(k, dtype=np.int64) % 7
    for workload in (Cumulative(k), AllRanges(k)):
        plan = Hierarchical().plan(workload, Full(k))
        assert plan.cost > 0
    assert plan.estimator.estimate(plan.measure(cells), cells) == pytest.approx(cells, abs=1e-6)


@pytest.mark.parametrize("mechanism", [Hierarchical(4), Privelet()])
def test_coverage_at_a_fractional_alpha(mechanism):
    k, alpha, beta, runs = 12, 25.7, 0.05, 10_000
    plan = mechanism.plan(AllRanges(k), Full(k))
    epsilon = plan.epsilon_for(alpha=alpha, beta=beta)
    drawn = draws(plan, epsilon, runs, seed=2)
    failed = (np.abs(plan.spread(drawn)) > alpha).any(axis=1).mean()
    assert beta / 2 <= failed <= beta + 4 * np.sqrt(beta * (1 - beta) / runs)


def test_inputs_are_checked():
    with pytest.raises(InvalidWorkload):
        Hierarchical(1)
    with pytest.raises(SizeMismatch):
        Hierarchical(2).plan(Cumulative(3), Full(4))
    assert Hierarchical().plan(Cumulative(1), Full(1)).exact.all()
    assert Privelet().plan(Histogram(4), Explicit(4, ())).exact.all()


def test_grids_are_answered_too():
    plan = Hierarchical(3).plan(Histogram(9), Grid((3, 3), 1))
    assert plan.certificate(epsilon=1).worst_loss(plan.graph) == 1
