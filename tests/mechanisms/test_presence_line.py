"""Hats and a noisy total where presence is hidden: exact loss, exact errors, and the golden numbers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import AddRemove, Banded, Full, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Matrix, Ranges
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.optimized.line_presence import HatsAndTotal, PresenceLine, design_with_total
from blowfishdb.mechanisms.optimized.line_strategy import Shape
from blowfishdb.noise import seeded

BASES = [
    Full(13),
    Threshold(13, 1),
    Threshold(13, 4),
    Partitioned(Bins.edges(13, [0, 5, 6])),
    Banded([3, 3, 3, 5, 5, 5, 8, 8, 8, 12, 12, 12, 12]),
    AddRemove(13).counted,
]
WORKLOADS = [Histogram(13), Cumulative(13), AllRanges(13), Ranges(13, [0, 2, 5, 0], [12, 4, 12, 6])]


def reach_of(base):
    return base.right_ends() - np.arange(base.size)


def plan_of(workload, base):
    return Optimized().plan(workload, base.hide_presence())


# --- privacy ------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.describe())
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: type(workload).__name__)
def test_the_worst_edge_loses_exactly_what_is_charged(workload, base):
    plan = plan_of(workload, base)
    assert isinstance(plan, PresenceLine)
    certificate = plan.certificate(epsilon="0.7")
    assert certificate.worst_loss(plan.graph) == Fraction(7, 10)
    assert not plan.exact.any() and not plan.free


def test_random_strategies_lose_exactly_what_is_charged():
    rng = np.random.default_rng(5)
    for _ in range(60):
        base = BASES[rng.integers(len(BASES))]
        hats = [(1,), (1, 2), (1, 5), (1, 3, 9), (1, 13)][rng.integers(5)]
        weights = tuple(int(w) for w in rng.integers(1, 40, size=len(hats)))
        strategy = HatsAndTotal(Shape(13, hats), reach_of(base), weights, int(rng.integers(0, 60)))
        plan = PresenceLine(Cumulative(13), base.hide_presence(), strategy)
        assert plan.certificate(epsilon=1).worst_loss(plan.graph) == 1


@pytest.mark.parametrize("forgotten", ["the column", "the moves"])
def test_a_sensitivity_that_forgets_one_kind_of_edge_is_found_out(forgotten):
    weights = (3, 1) if forgotten == "the column" else (9, 1)
    base = Threshold(13, 1) if forgotten == "the column" else Full(13)
    strategy = HatsAndTotal(Shape(13, (1, 5)), reach_of(base), weights, 0)
    cheaper = strategy.column if forgotten == "the moves" else strategy.sensitivity - 1
    strategy.__dict__["sensitivity"] = cheaper
    plan = PresenceLine(Cumulative(13), base.hide_presence(), strategy)
    assert plan.certificate(epsilon=1).worst_loss(plan.graph) > 1


# --- errors -------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.describe())
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: type(workload).__name__)
def test_errors_are_those_of_the_best_unbiased_decoder(workload, base):
    plan = plan_of(workload, base)
    rows, asked = plan.strategy.rows().toarray().astype(float), workload.matrix()
    asked = np.asarray(asked.toarray() if hasattr(asked, "toarray") else asked, dtype=float)
    decoder = plan.spread(np.eye(len(plan.scales))).T
    assert np.allclose(decoder @ rows, asked, atol=1e-9)  # unbiased, whatever the data
    unit = 2.0 * plan.scales.floats() ** 2
    best = asked @ np.linalg.inv((rows.T / unit) @ rows) @ asked.T
    assert np.allclose(plan.variances(unit), np.diag(best))
    other = unit * np.random.default_rng(1).uniform(0.5, 2.0, size=unit.size)
    assert np.allclose(plan.variances(other), decoder**2 @ other)
    for of_noise in (unit, other):
        assert plan.total_variance(of_noise) == pytest.approx(plan.variances(of_noise).sum())
        assert plan.largest_variance(of_noise) >= plan.variances(of_noise).max() * (1 - 1e-12)


def test_a_release_measures_its_rows_and_reads_nothing_else():
    plan = plan_of(Cumulative(13), Threshold(13, 4))
    x = np.arange(13)
    assert np.array_equal(plan.measure(x), plan.strategy.rows() @ x)
    assert np.allclose(plan.decode(plan.measure(x), np.zeros(13, dtype=np.int64)), np.cumsum(x))
    answers = np.array([plan.release(x, epsilon="2", noise=seeded(number)) for number in range(2_000)])
    errors = (answers - np.cumsum(x)) ** 2
    standard = errors.std(axis=0) / np.sqrt(len(errors))
    assert (np.abs(errors.mean(axis=0) - plan.squared_errors(epsilon="2")) < 5 * standard).all()


def test_many_ranges_are_never_listed():
    plan = plan_of(AllRanges(2_000), Threshold(2_000, 10))
    assert plan.epsilon_for(alpha=500, beta=0.05).nano > 0
    few = plan_of(AllRanges(40), Threshold(40, 3))
    noise = np.random.default_rng(2).normal(size=(50, len(few.scales)))
    assert np.allclose(few.largest_errors(noise), np.abs(few.spread(noise)).max(axis=-1))


# --- what it gains ------------------------------------------------------------------------------

GOLDEN = {
    (64, 1): (2_000, 71_088),
    (64, 4): (2_356, 108_946),
    (64, 16): (4_006, 183_040),
    (64, 63): (4_793, 183_040),
    (256, 1): (15_660, 2.234e6),
    (256, 4): (16_160, 2.640e6),
    (256, 16): (22_330, 4.653e6),
    (256, 64): (37_240, 6.405e6),
    (256, 255): (38_010, 6.429e6),
}
"""Total squared error at ε = 1 of prefixes and of all ranges."""


@pytest.mark.parametrize(("k", "theta"), GOLDEN)
def test_golden_numbers(k, theta):
    base = Threshold(k, theta)
    for workload, error in zip((Cumulative(k), AllRanges(k)), GOLDEN[k, theta], strict=True):
        assert plan_of(workload, base).unit_error <= error * 1.0005


def test_the_choice_takes_it_where_it_is_better():
    graph = Threshold(64, 4).hide_presence()
    assert isinstance(Best().plan(Cumulative(64), graph), PresenceLine)
    others = Best(tuple(m for m in Best().candidates if not isinstance(m, Optimized)))
    assert (
        Best().plan(Cumulative(64), graph).unit_error < 0.45 * others.plan(Cumulative(64), graph).unit_error
    )


@pytest.mark.parametrize("k", [2, 3, 5, 8, 20, 50])
def test_no_choice_is_worse_for_it(k):
    """Trees and noise on the cells are not even planned where it is proven: they never win."""
    others = Best(tuple(m for m in Best().candidates if not isinstance(m, Optimized)))
    graphs = [AddRemove(k), *(Threshold(k, theta).hide_presence() for theta in (1, 2, 4, k - 1) if theta < k)]
    for graph in graphs:
        for workload in (Histogram(k), Cumulative(k), AllRanges(k)):
            without = others.plan(workload, graph).unit_error
            assert Best().plan(workload, graph).unit_error <= without * (1 + 1e-6)


def test_long_lines_are_planned_with_few_tries():
    strategy = design_with_total(Cumulative(50_000), np.minimum(500, 49_999 - np.arange(50_000)))
    plan = PresenceLine(Cumulative(50_000), Threshold(50_000, 500).hide_presence(), strategy)
    longer = replace(strategy, hats=(1,), shape=Shape(50_000, (1,)), total=1)
    cells = PresenceLine(plan.workload, plan.graph, longer)
    assert plan.unit_error < cells.unit_error / 20


def test_refused_where_no_proof_covers_it():
    with pytest.raises(NotProven, match="records come and go"):
        Optimized().plan(Histogram(1), AddRemove(1))
    with pytest.raises(NotProven, match="records come and go"):
        Optimized().plan(Matrix(np.eye(6, dtype=int)[::-1]), Full(6).hide_presence())
