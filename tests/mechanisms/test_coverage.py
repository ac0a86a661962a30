"""(α, β) as promised: 10,000 runs of every mechanism on every family of policies, at fractional α too."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import NotProven
from blowfishdb.mechanisms import CATALOGUE, Plan
from blowfishdb.noise import seeded

RUNS = 10_000
LINE = workloads.Cumulative(12)
PLANE = workloads.Product(workloads.Cumulative(4), workloads.Cumulative(3))
POLICIES = {
    "full": (LINE, graphs.Full(12)),
    "θ": (LINE, graphs.Threshold(12, 3)),
    "line": (LINE, graphs.Threshold(12, 1)),
    "partition": (LINE, graphs.Partitioned([0] * 5 + [1] * 7)),
    "grid": (PLANE, graphs.Grid((4, 3), 2)),
    "product": (PLANE, graphs.Product(graphs.Threshold(4, 1), graphs.Full(3))),
}


def noise_of(plan: Plan, epsilon: Epsilon) -> np.ndarray:
    """RUNS noise vectors of a plan, drawn by the sampler that releases use."""
    drawn = np.zeros((RUNS, len(plan.scales)), dtype=np.int64)
    stream = seeded(2024)
    for index, scale in enumerate(plan.scales.distinct):
        rows = np.flatnonzero(plan.scales.which == index)
        if scale and rows.size:
            drawn[:, rows] = stream.discrete_laplace(scale / epsilon.fraction, (RUNS, rows.size))
    return drawn


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> tuple[workloads.Workload, graphs.PolicyGraph]:
    return POLICIES[request.param]


@pytest.fixture(params=CATALOGUE, ids=lambda m: repr(m)[:40])
def plan(request: pytest.FixtureRequest, policy: tuple[workloads.Workload, graphs.PolicyGraph]) -> Plan:
    """Of every mechanism under every policy for which it is proven."""
    try:
        return request.param.plan(*policy)
    except NotProven as refusal:
        pytest.skip(str(refusal))


def test_failures_stay_within_beta(plan: Plan) -> None:
    for alpha, beta, simultaneous in ((25.7, 0.05, True), (9, 0.1, True), (25.7, 0.05, False)):
        epsilon = plan.epsilon_for(alpha=alpha, beta=beta, simultaneous=simultaneous)
        misses = np.abs(plan.spread(noise_of(plan, epsilon))) > alpha + 1e-9
        rate = misses.any(axis=1).mean() if simultaneous else misses.mean(axis=0).max()
        assert rate <= beta + 4 * np.sqrt(beta * (1 - beta) / RUNS)
        assert rate >= beta / 8, "the promise is far too cautious: accuracy is being given away"


def test_what_is_published_is_whole_numbers(plan: Plan) -> None:
    """No output is finer than the grid of the noise, so no low bits can betray a value."""
    seen = plan.observe(np.arange(12) * 7, epsilon="0.3", noise=seeded(1))
    assert np.issubdtype(seen.measured.dtype, np.integer)
    assert seen.totals is None or np.issubdtype(seen.totals.dtype, np.integer)
