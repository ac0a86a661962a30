"""The policy tree: every move into the next block pays exactly ε on every transcript, no move pays more."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import NoGuarantee, NotProven, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Banded, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Ranges, Rectangles
from blowfishdb.mechanisms.adaptive import policy_tree
from blowfishdb.mechanisms.adaptive.policy_tree import Blocks, PolicyTree, chained
from blowfishdb.mechanisms.optimized import Optimized
from tests.mechanisms.transcripts import heavy_tailed, pair_costs, recorded, replayed, worst_log_ratio

SIZES = [3, 4, 5, 17, 30, 60, 100]


def edges_of(size, theta):
    u, v = np.triu_indices(size, 1)
    near = v - u <= theta
    return u[near], v[near]


def audited(monkeypatch, workload, theta, x, epsilon, seed):
    """(worst loss, losses across borders) in nano-ε, over all edges of one transcript, replayed as well."""
    size = workload.size
    plan = PolicyTree().plan(workload, Threshold(size, theta))
    cells, transcript = recorded(policy_tree, monkeypatch, plan, x, epsilon, seed)
    u, v = edges_of(size, theta)
    occupied = np.flatnonzero(x[u] > 0)
    if occupied.size:
        neighbour, edge = x.copy(), occupied[seed % occupied.size]
        neighbour[u[edge]] -= 1
        neighbour[v[edge]] += 1
        again = replayed(policy_tree, monkeypatch, plan, neighbour, epsilon, transcript)
        assert np.array_equal(cells, again)
    costs = pair_costs(transcript, size)[u, v]
    return int(costs.max()), costs[u // plan.block != v // plan.block]


@pytest.mark.parametrize("kind", [Histogram, Cumulative])
def test_all_edges_of_750_transcripts(kind, monkeypatch):
    stream = np.random.default_rng(9)
    for seed in range(750):
        size = int(stream.choice(SIZES))
        theta = int(stream.integers(2, size))
        epsilon = Epsilon.from_nano(int(10 ** stream.uniform(4, 10)))
        x = heavy_tailed(stream, size, 16 / float(epsilon))
        worst, across = audited(monkeypatch, kind(size), theta, x, epsilon, seed)
        assert worst <= epsilon.nano
        assert {Fraction(int(cost), NANO) for cost in np.unique(across)} <= {epsilon.fraction}
        assert across.size or theta >= size - 1


@pytest.mark.parametrize("theta", [2, 16, 100, 700])
@pytest.mark.parametrize("kind", [Histogram, Cumulative])
def test_all_edges_of_a_longer_line(kind, theta, monkeypatch):
    x = heavy_tailed(np.random.default_rng(theta), 1000, 300)
    worst, across = audited(monkeypatch, kind(1000), theta, x, Epsilon("0.1"), theta)
    assert worst == Epsilon("0.1").nano
    assert set(across) == {Epsilon("0.1").nano}


def test_neighbouring_blocks_that_each_take_half_fail_the_audit(monkeypatch):
    honest = Blocks._budgets

    def generous(self, counts, epsilon, look):
        return np.where(honest(self, counts, epsilon, look) > 0, epsilon // 2, 0)

    monkeypatch.setattr(Blocks, "_budgets", generous)
    x, epsilon = np.full(60, 10**4), Epsilon("0.1")
    worst, _ = audited(monkeypatch, Cumulative(60), 6, x, epsilon, seed=1)
    assert worst > epsilon.nano


@pytest.mark.parametrize("kind", [Histogram, Cumulative])
def test_any_two_values_hidden_is_one_block_at_half(kind, monkeypatch):
    for size in (1, 2, 3, 17, 100):
        plan, epsilon = PolicyTree().plan(kind(size), Full(size)), Epsilon.from_nano(123_456_789)
        x = heavy_tailed(np.random.default_rng(size), size, 100)
        cells, transcript = recorded(policy_tree, monkeypatch, plan, x, epsilon, seed=1)
        if size > 1:
            costs = pair_costs(transcript, size)[np.triu_indices(size, 1)]
            assert costs.max() <= epsilon.nano
            assert kind is Cumulative or set(costs) == {2 * (epsilon.nano // 2)}
        assert cells.sum() == pytest.approx(x.sum())


def outcomes(x, epsilon, runs, seed):
    plan, source = PolicyTree().plan(Cumulative(6), Threshold(6, 2)), noise.seeded(seed)
    found = []
    for _ in range(runs):
        answers = plan.release(x, epsilon=epsilon, noise=source)
        found.append(tuple(answers[[1, 3]] > x.sum() / 2))
    return found


def test_the_law_of_the_answers_changes_by_at_most_e_to_the_epsilon():
    here, there = np.array([0, 2, 0, 0, 0, 1]), np.array([0, 1, 0, 1, 0, 1])
    honest = worst_log_ratio(outcomes(here, 1, 500, 1), outcomes(there, 1, 500, 2))
    assert honest <= 1
    overspent = worst_log_ratio(outcomes(here, 6, 500, 3), outcomes(there, 6, 500, 4))
    assert overspent > 1


@pytest.mark.parametrize("kind", [Histogram, Cumulative])
@pytest.mark.parametrize(("size", "theta"), [(300, 7), (300, 100), (50, 49), (7, 2)])
def test_estimates_keep_the_total_are_never_negative_and_true_without_noise(kind, size, theta):
    plan = PolicyTree().plan(kind(size), Threshold(size, theta))
    x = np.random.default_rng(4).integers(0, 40, size)
    rough = plan.estimate(x, epsilon=Epsilon("0.05"), noise=noise.seeded(1))
    assert rough.sum() == pytest.approx(x.sum())
    assert (rough >= 0).all()
    exact = plan.estimate(x, epsilon=Epsilon("9000"), noise=noise.seeded(1))
    assert exact == pytest.approx(x, abs=1e-3)


def test_borders_are_the_least_squares_fit_where_that_is_monotone():
    stream, blocks, total = np.random.default_rng(6), 8, 800.0
    answers = np.append(np.arange(blocks) * 100 + stream.normal(0, 5, blocks), 0)
    precision, trust = np.pad(stream.uniform(1, 2, blocks - 1), 1), stream.uniform(0, 3, blocks)
    sums = 100 + stream.normal(0, 5, blocks)
    rows = np.eye(blocks + 1)
    steps = np.diff(rows, axis=0)
    matrix = np.concatenate((rows * np.sqrt(precision)[:, None], steps * np.sqrt(trust)[:, None]))
    right = np.concatenate((answers * np.sqrt(precision), sums * np.sqrt(trust)))
    free = np.linalg.lstsq(matrix[:, 1:-1], right - matrix[:, -1] * total, rcond=None)[0]
    assert chained(answers, precision, sums, trust, total) == pytest.approx(np.array([0, *free, total]))


def test_borders_never_go_back():
    stream = np.random.default_rng(7)
    for _ in range(50):
        blocks = int(stream.integers(2, 30))
        answers, precision = stream.normal(50, 40, blocks + 1), np.ones(blocks + 1)
        trust = np.where(stream.random(blocks) < 0.5, 0.0, 2.0)
        places = chained(answers, precision, stream.normal(0, 20, blocks), trust, 60.0)
        assert (np.diff(places) >= 0).all()
        assert (places[0], places[-1]) == (0, 60)


def test_ranges_on_sparse_data_beat_the_best_plan_that_does_not_look():
    size, stream = 2048, np.random.default_rng(12)
    x = np.zeros(size, np.int64)
    x[stream.choice(size, 40, replace=False)] = stream.pareto(0.8, 40) * 100
    ends = np.sort(stream.integers(0, size, (500, 2)), axis=1)
    ranges, graph = Ranges(size, ends[:, 0], ends[:, 1]), Threshold(size, 16)
    ours, theirs = (
        np.mean(
            [
                np.abs(plan.release(x, epsilon=0.1, noise=noise.seeded(seed)) - ranges.answer(x)).mean()
                for seed in range(5)
            ]
        )
        for plan in (PolicyTree().plan(ranges, graph), Optimized().plan(ranges, graph))
    )
    assert ours < 0.5 * theirs


@pytest.mark.parametrize(
    "graph",
    [Grid((12,), 3), Banded([2, 3, 3, 5, 5, 6, 8, 9, 10, 11, 11, 11]), Partitioned([0] * 5 + [1] * 7)],
)
def test_other_policies_of_known_reach_are_covered(graph, monkeypatch):
    plan, epsilon = PolicyTree().plan(AllRanges(12), graph), Epsilon("0.7")
    x = heavy_tailed(np.random.default_rng(1), 12, 30)
    _, transcript = recorded(policy_tree, monkeypatch, plan, x, epsilon, seed=3)
    edges = graph.edges()
    assert pair_costs(transcript, 12)[edges[:, 0], edges[:, 1]].max() <= epsilon.nano
    assert "exactly ε" in plan.explain()


@pytest.mark.parametrize(
    ("workload", "graph", "advice"),
    [
        (Cumulative(9), Threshold(9, 1), "Ordered"),
        (Cumulative(9), AddRemove(9), "AdaptiveTree"),
        (Cumulative(9), Threshold(9, 3).hide_presence(), "Hierarchical"),
        (Cumulative(6), Explicit(6, [(0, 3), (1, 5)]), "AdaptiveTree"),
        (Rectangles((3, 4), [[0, 0]], [[1, 1]]), Full(12), "AdaptiveTree"),
    ],
)
def test_refusals_say_what_to_use(workload, graph, advice):
    with pytest.raises(NotProven, match=advice):
        PolicyTree().plan(workload, graph)


def test_edges_of_its_use():
    with pytest.raises(SizeMismatch):
        PolicyTree().plan(Cumulative(5), Threshold(6, 2))
    with pytest.raises(NoGuarantee):
        PolicyTree().plan(Cumulative(5), Threshold(5, 2)).epsilon_for(alpha=1, beta=0.1)


@pytest.mark.parametrize("workload", [Histogram(2), Cumulative(2)])
def test_where_nothing_is_hidden_blocks_are_single_cells(workload):
    plan = PolicyTree().plan(workload, Partitioned(np.array([0, 1])))
    assert plan.free and plan.block == 1 and "blocks of 1 cells" in plan.explain()
    assert plan.release(np.array([3, 4]), epsilon=1, noise=noise.seeded(1)).shape == (2,)
