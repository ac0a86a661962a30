"""Optimized on a line: exact privacy over all edges, exact error, what is public, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import NotProven, SizeMismatch, TooLarge
from blowfishdb.core.lower_bound import lower_bound
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.optimized.line import OptimizedLine
from blowfishdb.mechanisms.optimized.line_design import pieces
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.noise import seeded
from tests.mechanisms.exactness import check_errors, check_private, transfer

GRAPHS = {
    "full": graphs.Full(9),
    "line": graphs.Threshold(9, 1),
    "threshold": graphs.Threshold(14, 4),
    "beyond": graphs.Threshold(5, 30),
    "one part": graphs.Partitioned([0] * 6),
    "parts": graphs.Partitioned([0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 3]),
    "banded": graphs.Banded([2, 2, 4, 6, 6, 8, 8, 8, 8]),
    "banded with a gap": graphs.Banded([1, 3, 4, 4, 4, 6, 7, 8, 8]),
    "unequal bins": graphs.Threshold(40, 9).project(Bins.edges(40, [0, 1, 2, 10, 12, 30, 31, 39])),
}


def asked(size):
    starts = [0, 0, size // 4, size - 1]
    ends = [size // 2, size - 1, size - 1, size - 1]
    return {
        "histogram": workloads.Histogram(size),
        "cumulative": workloads.Cumulative(size),
        "all ranges": workloads.AllRanges(size),
        "ranges": workloads.Ranges(size, starts, ends),
    }


CASES = [
    pytest.param(graph, workload, id=f"{name}-{what}")
    for name, graph in GRAPHS.items()
    for what, workload in asked(graph.size).items()
]


@pytest.mark.parametrize(("graph", "workload"), CASES)
class TestEveryPlan:
    def test_the_worst_edge_loses_exactly_epsilon(self, graph, workload):
        check_private(Optimized().plan(workload, graph), graph)

    def test_errors_and_decoding_are_exact(self, graph, workload):
        plan = Optimized().plan(workload, graph)
        check_errors(plan)
        assert plan.exact.tolist() == Plan.exact.func(plan).tolist()
        assert plan.total_squared_error(epsilon=2) == pytest.approx(plan.squared_errors(epsilon=2).sum())

    def test_shortcuts_agree_with_the_long_way(self, graph, workload):
        plan = Optimized().plan(workload, graph)
        noise = np.random.default_rng(0).laplace(size=(4, len(plan.scales)))
        np.testing.assert_allclose(plan.largest_errors(noise), np.abs(plan.spread(noise)).max(axis=-1))
        worst = plan.variances(2 * plan.scales.floats() ** 2).max()
        assert plan.largest_deviation**2 == pytest.approx(worst)
        assert (
            plan.largest_variance(np.ones(len(plan.scales))) >= (transfer(plan) ** 2).sum(axis=1).max() - 1e-9
        )


@pytest.mark.parametrize("name", ["full", "threshold", "parts"])
def test_releases_err_as_promised(name):
    """The mean squared error of releases is within four standard errors of the promise; coarse noise."""
    graph, runs = GRAPHS[name], 300
    x = np.random.default_rng(7).integers(0, 50, graph.size)
    for workload in asked(graph.size).values():
        plan, noise, truth = Optimized().plan(workload, graph), seeded(3), workload.answer(x)
        released = np.stack([plan.release(x, epsilon=4, noise=noise) for _ in range(runs)])
        totals = ((released - truth) ** 2).mean(axis=1)
        promised = plan.squared_error(epsilon=4)
        assert abs(totals.mean() - promised) < 4 * totals.std() / np.sqrt(runs)


@pytest.mark.parametrize("name", ["parts", "banded with a gap"])
def test_totals_of_components_come_out_exactly(name):
    graph = GRAPHS[name]
    plan = Optimized().plan(workloads.Cumulative(graph.size), graph)
    x = np.arange(3, 3 + graph.size)
    released = plan.release(x, epsilon="0.01", noise=seeded(1))
    assert plan.exact.any()
    assert released[plan.exact].tolist() == np.cumsum(x)[plan.exact].tolist()


@pytest.mark.parametrize("parts", [3, 200])
def test_stretches_of_one_size_share_a_strategy(parts):
    graph = graphs.Partitioned(Bins.width(6 * parts, 6))
    for workload in (workloads.Cumulative(6 * parts), workloads.Histogram(6 * parts)):
        assert len(pieces(workload, graph)) == 1
    ranges = workloads.Ranges(6 * parts, [1, 8], [3, 14])
    assert len(pieces(ranges, graph)) == (parts if parts < 64 else 1)
    plan = Optimized().plan(ranges, graph)
    x = np.arange(6 * parts)
    assert plan.decode(plan.measure(x), x) == pytest.approx(ranges.answer(x))


def test_under_theta_one_answers_are_whole_and_priced_in_closed_form():
    plan = Optimized().plan(workloads.Cumulative(50), graphs.Threshold(50, 1))
    assert plan.one_to_one
    released = plan.release(np.arange(50), epsilon=1, noise=seeded(2))
    assert (released == np.round(released)).all()


def test_nothing_is_hidden_nothing_is_paid():
    plan = Optimized().plan(workloads.Cumulative(3), graphs.Partitioned([0, 1, 2]))
    assert plan.free and plan.epsilon_for(alpha=1, beta=0.05) == Epsilon(0)
    assert plan.release([4, 5, 6], epsilon=1, noise=seeded(1)).tolist() == [4, 9, 15]
    assert "exact and free" in plan.explain()


@pytest.mark.parametrize(
    ("theta", "workload", "most"),
    [
        (4, "cumulative", 4.0),
        (16, "cumulative", 5.1),
        (64, "cumulative", 7.8),
        (16, "all ranges", 5.2),
        (64, "all ranges", 7.6),
    ],
)
def test_how_close_to_the_bound_at_256_cells(theta, workload, most):
    graph, questions = graphs.Threshold(256, theta), asked(256)[workload]
    assert Optimized().plan(questions, graph).unit_error <= most * lower_bound(questions, graph)


def test_many_cells_without_listing_questions():
    k = 200_000
    plan = Optimized().plan(workloads.AllRanges(k), graphs.Full(k))
    assert 0 < plan.unit_error / workloads.AllRanges(k).count < k / 50  # noise on the cells: 4k/3
    assert plan.largest_errors(np.zeros((1, len(plan.scales)))).tolist() == [0.0]
    for listing in (
        lambda: plan.squared_errors(epsilon=1),
        lambda: plan.exact,
        lambda: plan.release(np.zeros(k, dtype=int), epsilon=1, noise=seeded(1)),
    ):
        with pytest.raises(TooLarge, match="too many to list"):
            listing()


def test_long_rows_are_not_written_out():
    plan = Optimized().plan(workloads.Cumulative(200_000), graphs.Threshold(200_000, 10))
    with pytest.raises(TooLarge):
        plan.rows(epsilon=1)


@pytest.mark.parametrize(
    ("workload", "graph", "message"),
    [
        (workloads.Matrix([[1, 0, 2, 1]]), graphs.Full(4).hide_presence(), "come and go"),
        (workloads.Matrix([[1, 0, 2, 1]]), graphs.AddRemove(4), "come and go"),
        (workloads.Cumulative(4), graphs.Partitioned([0, 1, 0, 1]), "contiguous"),
        (workloads.Cumulative(4), graphs.Explicit(4, [(0, 3)]), "contiguous"),
        (workloads.Matrix(np.eye(4, dtype=int)), graphs.Full(4), "ranges"),
    ],
)
def test_what_is_not_proven_is_refused(workload, graph, message):
    with pytest.raises(NotProven, match=message):
        Optimized().plan(workload, graph)


def test_sizes_must_agree():
    with pytest.raises(SizeMismatch):
        Optimized().plan(workloads.Cumulative(4), graphs.Full(5))


def test_grids_are_left_to_boxes():
    shape = (6, 5)
    graph = graphs.Product(graphs.Threshold(6, 1), graphs.Threshold(5, 1))
    workload = workloads.Product(workloads.Cumulative(6), workloads.Cumulative(5))
    plan = Optimized().plan(workload, graph)
    assert not isinstance(plan, OptimizedLine)
    x = np.arange(np.prod(shape))
    assert plan.decode(plan.measure(x), x) == pytest.approx(workload.answer(x))
    check_private(plan, graph, tight=False)


def test_it_says_what_it_measures():
    text = Optimized().plan(workloads.Cumulative(200), graphs.Threshold(200, 20)).explain()
    assert "ramps over" in text and "public total" in text
