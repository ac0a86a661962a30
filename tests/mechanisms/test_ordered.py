"""The ordered mechanism: one unit of noise per prefix, optimal on a line, refused elsewhere."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.errors import NotProven, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Banded, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Matrix, Ranges
from blowfishdb.mechanisms.ordered import Ordered
from blowfishdb.mechanisms.plan import Certificate
from tests.mechanisms.runs import draws

LINES = [
    Threshold(8, 1),
    Full(2),
    Grid((8,), 1),
    Banded([1, 2, 2, 4, 4, 5, 7, 7]),
    Partitioned([0, 0, 1, 1, 2, 3, 3, 4]),
    Explicit(8, [(0, 1), (1, 2), (5, 6)]),
    Explicit(8, ()),
    Threshold(1, 3),
]


@pytest.mark.parametrize("graph", LINES)
@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(333_333_333, 10**9)])
def test_an_edge_loses_epsilon_exactly(graph, epsilon):
    plan = Ordered().plan(Cumulative(graph.size), graph)
    certificate = plan.certificate(epsilon=epsilon)
    assert certificate.worst_loss(graph) == (epsilon if graph.edge_count else 0)
    rows, scales = plan.rows(epsilon=epsilon)
    if graph.edge_count:
        mutant = Certificate.of_rows(rows, [scale * Fraction(9, 10) for scale in scales])
        assert mutant.worst_loss(graph) == epsilon / Fraction(9, 10)


def test_errors_in_the_continuous_limit():
    k, epsilon = 256, Fraction(1, 1000)
    graph = Threshold(k, 1)
    prefixes = Ordered().plan(Cumulative(k), graph).squared_errors(epsilon=epsilon).sum()
    ranges = Ordered().plan(AllRanges(k), graph).squared_errors(epsilon=epsilon).sum()
    cells = Ordered().plan(Histogram(k), graph).squared_errors(epsilon=epsilon).sum()
    assert prefixes * float(epsilon) ** 2 == pytest.approx(2 * (k - 1), rel=1e-6)
    assert ranges * float(epsilon) ** 2 == pytest.approx(2 * k * (k - 1), rel=1e-6)
    assert cells * float(epsilon) ** 2 == pytest.approx(4 * (k - 1), rel=1e-6)


@pytest.mark.parametrize("epsilon", ["1.3", "0.2"])
def test_errors_match_releases(epsilon):
    k, runs = 6, 4_000
    workload = Matrix([[1, -1, 2, 0, 0, 3], [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
    plan = Ordered().plan(workload, Threshold(k, 1))
    x, seeded = np.arange(k) + 1, noise.seeded(1)
    errors = np.array(
        [plan.release(x, epsilon=epsilon, noise=seeded) - workload.answer(x) for _ in range(runs)]
    )
    spread = (errors**2).std(axis=0) / np.sqrt(runs)
    assert (np.abs((errors**2).mean(axis=0) - plan.squared_errors(epsilon=epsilon)) <= 5 * spread).all()
    assert not errors[:, 2].any()


def test_answers_are_whole_and_public_prefixes_exact():
    graph = Banded([1, 2, 2, 4, 4, 5, 7, 7])
    plan = Ordered().plan(Cumulative(8), graph)
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    released = plan.release(x, epsilon=1, noise=noise.seeded(0))
    assert released.dtype == np.int64
    ends = [2, 4, 5, 7]
    np.testing.assert_array_equal(released[ends], np.cumsum(x)[ends])
    np.testing.assert_array_equal(np.flatnonzero(plan.exact), ends)


@pytest.mark.parametrize("workload", [Cumulative(9), Ranges(9, [0, 3, 2], [4, 8, 2])])
def test_coverage_at_a_fractional_alpha(workload):
    """±α holds but for β: 10⁴ releases at the ε that was asked for it."""
    alpha, beta, runs = 5.7, 0.05, 10_000
    plan = Ordered().plan(workload, Threshold(9, 1))
    epsilon = plan.epsilon_for(alpha=alpha, beta=beta)
    failed = (np.abs(plan.spread(draws(plan, epsilon, runs, seed=8))) > alpha).any(axis=1).mean()
    assert failed <= beta + 4 * np.sqrt(beta * (1 - beta) / runs)
    assert failed >= beta / 4  # and it is not wasteful


@pytest.mark.parametrize(
    "graph",
    [
        Threshold(6, 2),
        Full(6),
        Grid((2, 3), 1),
        AddRemove(6),
        Threshold(6, 1).hide_presence(),
        Explicit(6, [(0, 2)]),
        Partitioned([0, 1, 0, 1, 2, 2]),
    ],
)
def test_other_policies_are_refused_with_advice(graph):
    with pytest.raises(NotProven) as refusal:
        Ordered().plan(Cumulative(6), graph)
    assert any("Hierarchical" in fix for fix in refusal.value.fixes)


def test_sizes_must_agree():
    with pytest.raises(SizeMismatch):
        Ordered().plan(Cumulative(5), Threshold(6, 1))
