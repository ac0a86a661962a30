"""Quotes of plans without a closed tail: (α, β) is kept, quotes are reproducible and quick."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import Infeasible
from blowfishdb.mechanisms import Laplace
from blowfishdb.mechanisms.optimized import Optimized

RANGES = workloads.Ranges(64, [0, 3, 10, 40, 17], [20, 60, 11, 63, 17])
WORKLOADS = {"prefix": workloads.Cumulative(64), "all ranges": workloads.AllRanges(64), "listed": RANGES}


def miss_rate(plan, epsilon, alpha, simultaneous, runs=10_000):
    """How often discrete noise at ``epsilon`` leaves ±α, on a stream that no quote has seen."""
    rng = np.random.default_rng(12345)
    scales = plan.scales.floats() / float(epsilon)
    misses, columns = 0, 0
    for _ in range(10):
        shape = (runs // 10, scales.size)
        noise = np.floor(rng.standard_exponential(shape) * scales) - np.floor(
            rng.standard_exponential(shape) * scales
        )
        if simultaneous:
            misses += int((plan.largest_errors(noise) > alpha).sum())
        else:
            columns = columns + (np.abs(plan.spread(noise)) > alpha).sum(axis=0)
    return misses / runs if simultaneous else float(np.max(columns)) / runs


@pytest.mark.parametrize("graph", [graphs.Threshold(64, 6), graphs.Full(64)], ids=["line", "full"])
@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
@pytest.mark.parametrize(("alpha", "beta"), [(100, 0.05), (30.5, 0.05), (9.7, 0.1), (60.3, 0.001)])
@pytest.mark.parametrize("simultaneous", [True, False], ids=["all", "each"])
def test_the_promised_accuracy_is_kept(graph, workload, alpha, beta, simultaneous):
    plan = Optimized().plan(workload, graph)
    epsilon = plan.epsilon_for(alpha=alpha, beta=beta, simultaneous=simultaneous)
    rate = miss_rate(plan, epsilon, alpha, simultaneous)
    columns = 1 if simultaneous else workload.count
    slack = (4 if columns == 1 else 5) * np.sqrt(beta * (1 - beta) / 10_000)
    assert rate <= beta + slack
    # … and not wastefully: less privacy loss would break the promise. Many answers, one at a time, with noise
    # as coarse as α have no certificate, only a bound.
    enough = 0.55 if alpha < 10 and not simultaneous and workload.count > 100 else 0.75
    assert miss_rate(plan, Epsilon.at_least(enough * float(epsilon)), alpha, simultaneous) > beta


@pytest.mark.parametrize("simultaneous", [True, False])
@pytest.mark.parametrize("beta", [0.05, 0.001])
def test_the_two_directions_agree(simultaneous, beta):
    plan = Optimized().plan(workloads.Cumulative(64), graphs.Threshold(64, 6))
    epsilon = plan.epsilon_for(alpha=50, beta=beta, simultaneous=simultaneous)
    alpha = plan.alpha_for(epsilon=epsilon, beta=beta, simultaneous=simultaneous)
    assert 45 < alpha < 52
    rate = miss_rate(plan, epsilon, alpha, simultaneous)
    assert rate <= beta + 5 * np.sqrt(beta / 10_000)


def test_a_tiny_beta_is_met_by_a_bound_on_tails():
    plan = Optimized().plan(workloads.Cumulative(64), graphs.Threshold(64, 6))
    quotes = [float(plan.epsilon_for(alpha=100, beta=beta)) for beta in (1e-3, 1e-5, 1e-9)]
    assert quotes[0] < quotes[1] < quotes[2] < 4 * quotes[0]


def test_a_quote_is_reproducible_and_grows_with_what_is_asked():
    def quote(alpha, beta):
        plan = Optimized().plan(workloads.AllRanges(40), graphs.Full(40))
        return plan.epsilon_for(alpha=alpha, beta=beta)

    assert quote(50, 0.05) == quote(50, 0.05)
    assert quote(50, 0.05) < quote(40, 0.05) < quote(40, 0.01)


def test_small_alpha_still_has_a_price():
    plan = Optimized().plan(workloads.Cumulative(12), graphs.Full(12))
    epsilon = plan.epsilon_for(alpha=0.5, beta=0.05)
    assert miss_rate(plan, epsilon, 0.5, simultaneous=True) <= 0.05 + 0.01
    with pytest.raises(Infeasible, match="larger error"):
        plan.epsilon_for(alpha=1e-7, beta=0.05)


def test_any_plan_can_be_simulated():
    plan = Laplace(on="cells").plan(workloads.Cumulative(16), graphs.Partitioned([0] * 9 + [1] * 7))
    epsilon = plan.epsilon_for(alpha=25.5, beta=0.05)
    assert miss_rate(plan, epsilon, 25.5, simultaneous=True) <= 0.05 + 0.009


@pytest.mark.parametrize(
    "workload", [workloads.Cumulative(10_000), workloads.AllRanges(10_000)], ids=["prefix", "ranges"]
)
def test_quotes_at_ten_thousand_bins(workload):
    """The benchmark plan_time.py has how long they take."""
    plan = Optimized().plan(workload, graphs.Threshold(10_000, 100))
    first = plan.epsilon_for(alpha=500, beta=0.05)
    assert first < plan.epsilon_for(alpha=400.5, beta=0.02)
