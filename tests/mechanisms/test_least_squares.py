"""Least squares: exact costs against brute force, sparse algebra against dense, what is read of the data."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from blowfishdb import noise
from blowfishdb.core.errors import InvalidScale, InvalidWorkload, NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import AddRemove, Banded, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Matrix, Ranges
from blowfishdb.mechanisms.hierarchical import Hierarchical, LeastSquaresPlan, Privelet
from blowfishdb.mechanisms.linear import cuts
from blowfishdb.mechanisms.linear.cuts import CutLeastSquares
from blowfishdb.mechanisms.linear.estimators import DenseLeastSquares
from blowfishdb.mechanisms.linear.strategy import Contrasts, SparseRows, tree_nodes
from tests.seeds import seeds


def brute_force_cost(strategy, graph):
    """max over edges of Σ_r w_r·|a_ru − a_rv|, in Python integers."""
    rows = [[int(entry) for entry in row] for row in strategy.sparse().toarray()]
    weights = [int(w) for w in strategy.weights]
    column = [[row[u] if u < strategy.size else 0 for row in rows] for u in range(graph.size)]
    return max(
        (
            sum(w * abs(a - b) for w, a, b in zip(weights, column[u], column[v], strict=True))
            for u, v in graph.edges().tolist()
        ),
        default=0,
    )


def random_graph(rng, k):
    reach = np.maximum.accumulate(np.minimum(np.arange(k) + rng.integers(0, 4, k), k - 1))
    labels = np.unique(rng.integers(0, 3, k), return_inverse=True)[1]
    return [
        Full(k),
        Threshold(k, int(rng.integers(1, k + 2))),
        Banded(reach),
        Partitioned(np.sort(labels)),
        Partitioned(labels),
        Grid((k,), 2),
        Explicit(k, [(u, v) for u in range(k) for v in range(u + 1, k) if rng.random() < 0.3]),
        AddRemove(k),
        Threshold(k, 2).hide_presence(),
    ][rng.integers(9)]


def random_contrasts(rng, k, weight=1):
    """A few random contrasts, and all cells, so that everything is determined."""
    ends = np.sort(rng.integers(0, k + 1, size=(int(rng.integers(0, 8)), 4)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]]
    cells = np.arange(k)
    starts, stops = np.append(ends[:, 0], cells), np.append(ends[:, 1], cells + 1)
    minus = np.append(ends[:, 2], cells), np.append(ends[:, 3], cells)
    return Contrasts(k, starts, stops, weight * rng.integers(1, 9, starts.size), minus=minus)


@seeds(150)
def test_costs_are_exact(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, 12))
    strategy = random_contrasts(rng, k, weight=2**59 if seed % 5 == 0 else 1)
    graph = random_graph(rng, k)
    expected = brute_force_cost(strategy, graph)
    assert strategy.cost(graph) == expected
    assert SparseRows(strategy.sparse(), strategy.weights).cost(graph) == expected


@pytest.mark.parametrize("seed", range(60))
def test_sparse_algebra_agrees_with_dense(seed, monkeypatch):
    rng = np.random.default_rng(1000 + seed)
    k = int(rng.integers(2, 14))
    strategy, graph = random_contrasts(rng, k), random_graph(rng, k)
    x = rng.integers(0, 20, k)
    for workload in (Histogram(k), Cumulative(k), AllRanges(k), Matrix(rng.integers(-2, 3, (3, k)))):
        plan = LeastSquaresPlan(workload, graph, strategy)
        dense = LeastSquaresPlan(workload, graph, SparseRows(strategy.sparse(), strategy.weights))
        assert isinstance(dense.estimator, DenseLeastSquares)
        assert len(plan.strategy) == len(dense.strategy)
        noisy = plan.measure(x) + rng.integers(-5, 6, len(plan.scales))
        np.testing.assert_allclose(plan.decode(noisy, x), dense.decode(noisy, x), atol=1e-9)
        batch = rng.normal(size=(2, 3, len(plan.scales)))
        np.testing.assert_allclose(plan.spread(batch), dense.spread(batch), atol=1e-9)
        assert plan.spread(batch).shape == (2, 3, workload.count)
        for variances in (plan.scales.floats() ** 2, rng.random(len(plan.scales)) * 9):
            expected = dense.variances(variances)
            np.testing.assert_allclose(plan.variances(variances), expected, rtol=1e-9, atol=1e-9)
            with monkeypatch.context() as patch:  # as on a long line: no matrix of all cells is formed
                patch.setattr(cuts, "DENSE_CELLS", -1)
                np.testing.assert_allclose(plan.variances(variances), expected, rtol=1e-9, atol=1e-10)
            total = plan.estimator.total_variance(workload, variances)
            np.testing.assert_allclose(total, expected.sum(), rtol=1e-9, atol=1e-8)


def test_variances_of_uneven_noise_are_exact_to_rounding(monkeypatch):
    """An imaginary step differentiates a rational function without loss."""
    k = 40
    plan = Hierarchical(3).plan(Cumulative(k), Threshold(k, 5))
    variances = np.random.default_rng(0).random(len(plan.scales)) ** 4 * 100
    dense = LeastSquaresPlan(
        plan.workload, plan.graph, SparseRows(plan.strategy.sparse(), plan.strategy.weights)
    )
    monkeypatch.setattr(cuts, "DENSE_CELLS", -1)
    np.testing.assert_allclose(plan.variances(variances), dense.variances(variances), rtol=1e-11)


@pytest.mark.parametrize("kind", [Contrasts, SparseRows])
def test_nothing_but_invariant_totals_is_read_of_the_data(kind):
    rng = np.random.default_rng(5)
    k = 9
    x, other = rng.integers(1, 9, k), rng.integers(1, 9, k)
    for graph in (Full(k), Partitioned([0, 0, 0, 1, 1, 2, 2, 2, 2]), AddRemove(k), Full(k).hide_presence()):
        rows = Hierarchical(2).plan(Cumulative(k), graph).strategy
        rows = rows if kind is Contrasts else SparseRows(rows.sparse(), rows.weights)
        plan = LeastSquaresPlan(Cumulative(k), graph, rows)
        noisy = plan.measure(x) + rng.integers(-5, 6, len(plan.scales))
        if graph.absent:
            np.testing.assert_array_equal(plan.decode(noisy, x), plan.decode(noisy, other))
            continue
        totals = graph.components().assignment()
        moved = np.zeros_like(x)
        np.add.at(moved, graph.components().first(totals), x)  # the same totals, otherwise nothing in common
        np.testing.assert_allclose(plan.decode(noisy, x), plan.decode(noisy, moved), atol=1e-12)
        assert not np.allclose(plan.decode(noisy, x), plan.decode(noisy, other))


def test_exact_answers_are_exact_and_the_rest_is_unbiased():
    graph = Partitioned([0, 0, 1, 1, 1, 2, 3, 3])
    workload = Ranges(8, [0, 0, 2, 5, 1, 0], [1, 4, 4, 7, 3, 7])
    plan = Hierarchical(2).plan(workload, graph)
    np.testing.assert_array_equal(plan.exact, [True, True, True, True, False, True])
    x = np.array([3, 1, 4, 1, 5, 9, 2, 6])
    released = plan.release(x, epsilon="0.1", noise=noise.seeded(1))
    np.testing.assert_array_equal(released[plan.exact], workload.answer(x)[plan.exact])
    np.testing.assert_allclose(plan.decode(plan.measure(x), x), workload.answer(x))


@pytest.mark.parametrize("epsilon", ["1.7", "0.05"])
def test_errors_match_releases(epsilon):
    k = 9
    plan = Hierarchical(3).plan(AllRanges(k), Threshold(k, 4))
    x, seeded, runs = np.arange(k), noise.seeded(3), 1_500
    errors = np.array(
        [plan.release(x, epsilon=epsilon, noise=seeded) - plan.workload.answer(x) for _ in range(runs)]
    )
    promised = plan.squared_errors(epsilon=epsilon)
    spread = (errors**2).std(axis=0) / np.sqrt(runs)
    assert (np.abs((errors**2).mean(axis=0) - promised) <= 5 * spread + 1e-9).all()


def test_rows_that_leave_an_answer_open_are_refused():
    halves = Contrasts(4, [0, 2], [2, 4], [1, 1])
    for rows in (halves, SparseRows(halves.sparse(), halves.weights)):
        plan = LeastSquaresPlan(Histogram(4), Full(4), rows)
        with pytest.raises(NotProven, match="do not determine"):
            plan.squared_errors(epsilon=1)


def test_large_problems_without_structure_are_refused():
    k = 2_001
    cells = csr_array((np.ones(k, dtype=np.int64), (np.arange(k), np.arange(k))), shape=(k, k))
    with pytest.raises(TooLarge):
        LeastSquaresPlan(Histogram(k), Full(k), SparseRows(cells, np.ones(k, dtype=np.int64)))


def test_strategies_check_themselves():
    with pytest.raises(InvalidScale):
        Contrasts(3, [0], [2], [0])
    with pytest.raises(SizeMismatch):
        Contrasts(3, [0], [2], [1, 1])
    with pytest.raises(InvalidWorkload):
        Contrasts(3, [0], [4], [1])
    with pytest.raises(InvalidWorkload, match="overlap"):
        Contrasts(3, [0], [2], [1], minus=([1], [3]))
    with pytest.raises(InvalidWorkload, match="whole"):
        SparseRows(csr_array(np.array([[0.5, 1.0]])), [1])
    with pytest.raises(SizeMismatch):
        LeastSquaresPlan(Histogram(3), Full(4), Contrasts(3, [0], [2], [1]))
    with pytest.raises(SizeMismatch):
        Contrasts(3, [0], [2, 3], [1])


@pytest.mark.parametrize("seed", range(20))
def test_scales_spend_exactly_epsilon(seed):
    """With K exact, some edge loses ε and none more; nine tenths of the noise would be too little."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 10))
    strategy, graph = random_contrasts(rng, k), random_graph(rng, k)
    plan = LeastSquaresPlan(Cumulative(k), graph, strategy)
    for epsilon in (Fraction(1), Fraction(333_333_333, 10**9)):
        certificate = plan.certificate(epsilon=epsilon)
        assert certificate.worst_loss(graph) == (epsilon if graph.edge_count else 0)
        if graph.edge_count:
            rows, scales = plan.rows(epsilon=epsilon)
            mutant = type(certificate).of_rows(rows, [scale * Fraction(9, 10) for scale in scales])
            assert mutant.worst_loss(graph) > epsilon


def test_trees_have_the_least_height():
    for size in range(1, 70):
        for fanout in (2, 3, 5, 16):
            starts, stops = tree_nodes(np.array([0]), np.array([size]), fanout)
            depth = np.zeros(size, dtype=int)
            for start, stop in zip(starts, stops, strict=True):
                depth[start:stop] += 1
            height = 0
            while fanout**height < size:
                height += 1
            assert depth.max(initial=0) == height
            assert len(set(zip(starts.tolist(), stops.tolist(), strict=True))) == starts.size


def test_a_hundred_thousand_cells():
    k = 10**5
    for mechanism in (Hierarchical(16), Privelet()):
        plan = mechanism.plan(Cumulative(k), Full(k))
        assert isinstance(plan.estimator, CutLeastSquares)
        x = np.random.default_rng(0).integers(0, 5, k)
        answers = plan.release(x, epsilon=1, noise=noise.seeded(0))
        error = np.abs(answers - np.cumsum(x)).max()
        assert answers[-1] == x.sum()
        assert error < 8 * np.sqrt(plan.squared_errors(epsilon=1).max())
