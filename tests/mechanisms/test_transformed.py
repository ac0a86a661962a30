"""Edge coordinates: trees exactly, other graphs at the price of a visible stretch, everything certified."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.errors import NotProven, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Banded, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Matrix
from blowfishdb.mechanisms import Laplace
from blowfishdb.mechanisms.check import check_mechanism
from blowfishdb.mechanisms.hierarchical import Hierarchical, Privelet
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.ordered import Ordered
from blowfishdb.mechanisms.transformed import EdgeQuestions, SpanningForest, Transformed
from tests.mechanisms.runs import draws

TREES = [
    Threshold(9, 1),
    Explicit(9, [(0, 4), (1, 4), (2, 4), (4, 5), (5, 6), (6, 8), (6, 7), (3, 5)]),
    Explicit(9, [(0, 8), (1, 8), (2, 3)]),
    Partitioned([0, 0, 1, 2, 2, 3, 4, 4, 1]),
    Banded([1, 2, 2, 4, 4, 5, 7, 8, 8]),
    AddRemove(9),
]
OTHERS = [
    (Threshold(9, 3), 3),
    (Full(9), 2),
    (Banded([2, 3, 3, 3, 6, 6, 6, 8, 8]), 3),
    (Threshold(9, 2).hide_presence(), 2),
    (Grid((3, 3), 1), 5),
    (Explicit(9, [(i, (i + 1) % 9) for i in range(9)]), 8),
]
INNER = [Laplace(on="cells"), Hierarchical(2), Privelet(), Optimized()]


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("graph", TREES)
def test_trees_cost_epsilon_and_nothing_more(graph, inner):
    x = np.random.default_rng(0).integers(0, 9, 9)
    for workload in (Cumulative(9), Histogram(9), AllRanges(9)):
        plan = Transformed(inner).plan(workload, graph)
        assert plan.stretch == 1
        np.testing.assert_allclose(plan.decode(plan.measure(x), x), workload.answer(x), atol=1e-9)
        for epsilon in (Fraction(1), Fraction(333_333_333, 10**9)):
            assert plan.certificate(epsilon=epsilon).worst_loss(graph) == epsilon


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize(("graph", "stretch"), OTHERS)
def test_other_graphs_need_consent_and_pay_the_stretch(graph, stretch, inner):
    with pytest.raises(NotProven, match="cycles"):
        Transformed(inner).plan(Cumulative(9), graph)
    plan = Transformed(inner, spanning=True).plan(Cumulative(9), graph)
    tree = Transformed(inner, spanning=True).plan(Cumulative(9), Threshold(9, 1))
    assert plan.stretch == stretch
    assert tree.stretch == 1
    assert plan.scales.distinct == tuple(stretch * c for c in plan.inner.scales.distinct)
    assert 0 < plan.certificate(epsilon="0.7").worst_loss(graph) <= Fraction(7, 10)
    x = np.random.default_rng(1).integers(0, 9, 9)
    np.testing.assert_allclose(plan.decode(plan.measure(x), x), np.cumsum(x), atol=1e-9)


def test_a_smaller_stretch_would_not_be_private():
    graph = Threshold(9, 3)
    plan = Transformed(Laplace(on="cells"), spanning=True).plan(Cumulative(9), graph)
    certificate = plan.certificate(epsilon=1)
    less = type(certificate)(
        certificate.released,
        certificate.mixing,
        [scale * Fraction(9, 10) for scale in certificate.scales],
        certificate.witness,
    )
    assert less.worst_loss(graph) > 1


@pytest.mark.parametrize("inner", [Laplace(on="workload"), Laplace(on="cells")])
def test_laplace_on_the_edges_of_a_line_is_the_ordered_mechanism(inner):
    k = 12
    graph, workload = Threshold(k, 1), Cumulative(k)
    transformed, ordered = Transformed(inner).plan(workload, graph), Ordered().plan(workload, graph)
    x = np.random.default_rng(2).integers(0, 9, k)
    for epsilon in ("0.3", "1.7"):
        released = [p.release(x, epsilon=epsilon, noise=noise.seeded(5)) for p in (transformed, ordered)]
        np.testing.assert_array_equal(*released)
        errors = [p.squared_errors(epsilon=epsilon) for p in (transformed, ordered)]
        np.testing.assert_allclose(*errors, rtol=1e-12)
    left, right = transformed.rows(epsilon=1), ordered.rows(epsilon=1)
    np.testing.assert_array_equal(left[0].toarray(), right[0].toarray())
    assert left[1] == right[1]


def test_ranges_on_a_line_too():
    k = 9
    transformed = Transformed(Laplace(on="cells")).plan(AllRanges(k), Threshold(k, 1))
    ordered = Ordered().plan(AllRanges(k), Threshold(k, 1))
    np.testing.assert_allclose(
        transformed.squared_errors(epsilon="0.4"), ordered.squared_errors(epsilon="0.4"), rtol=1e-12
    )


@pytest.mark.parametrize("graph", TREES + [graph for graph, _ in OTHERS])
def test_edge_coordinates(graph):
    """A move along a tree edge changes one coordinate by one; cells and coordinates determine each other."""
    forest = SpanningForest.spanning(graph)
    count = graph.size - graph.absent
    x = np.random.default_rng(3).integers(0, 9, count)
    y = forest.subtree_sums(x)
    np.testing.assert_array_equal(forest.subtrees(count) @ x, y)
    roots = np.setdiff1d(np.arange(count), forest.children)
    inner = np.setdiff1d(np.arange(count), roots)
    np.testing.assert_array_equal(forest.cells(y, count)[inner], x[inner])
    for child in forest.children.tolist():
        move = np.zeros(count, dtype=np.int64)
        for vertex, sign in ((child, 1), (int(forest.parent[child]), -1)):
            if vertex < count:
                move[vertex] += sign
        change = forest.subtree_sums(move)
        assert np.abs(change).sum() == 1
        assert change[forest.coordinate[child]] == 1
        assert graph.has_edge(child, int(forest.parent[child]))
    longest = max(sum(map(len, forest.path(u, v))) for u, v in graph.edges().tolist())
    assert forest.stretch(graph) == longest


def test_questions_over_edges_are_the_product():
    rng = np.random.default_rng(4)
    forest = SpanningForest.spanning(TREES[1])
    workload = Matrix(rng.integers(-3, 4, (4, 9)))
    questions = EdgeQuestions(workload, forest)
    product = workload.matrix() @ forest.incidence.toarray()
    np.testing.assert_array_equal(questions.sparse().toarray(), product)
    y, z = rng.integers(0, 9, (2, 8)), rng.integers(0, 9, (2, 4))
    np.testing.assert_array_equal(questions.answer(y), y @ product.T)
    np.testing.assert_array_equal(questions.transpose(z), z @ product)


def test_errors_match_releases():
    runs, epsilon = 20_000, "0.6"
    plan = Transformed(Hierarchical(2)).plan(Histogram(9), TREES[1])
    errors = plan.spread(draws(plan, epsilon, runs, seed=7))
    spread = (errors**2).std(axis=0) / np.sqrt(runs)
    assert (np.abs((errors**2).mean(axis=0) - plan.squared_errors(epsilon=epsilon)) <= 5 * spread).all()


def test_an_optimized_strategy_for_the_edges_of_a_star_halves_the_error():
    star = Explicit(64, [(leaf, 63) for leaf in range(63)])
    optimized, plain = (Transformed(inner).plan(Cumulative(64), star) for inner in (Optimized(), Laplace()))
    assert optimized.squared_error(epsilon=1) < 0.55 * plain.squared_error(epsilon=1)
    assert optimized.certificate(epsilon=1).worst_loss(star) == 1


def test_ranges_of_edges_make_up_the_questions():
    forest = SpanningForest.spanning(TREES[1])
    for seed in range(20):
        questions = EdgeQuestions(Matrix(np.random.default_rng(seed).integers(-1, 2, (3, 9))), forest)
        runs = questions.runs().matrix().astype(float)
        made = np.linalg.lstsq(runs.T, questions.sparse().toarray().T, rcond=None)[0]
        np.testing.assert_allclose(runs.T @ made, questions.sparse().toarray().T, atol=1e-9)
        assert len(np.unique(runs, axis=0)) == len(runs)
    constant = EdgeQuestions(Matrix(np.ones((1, 9), dtype=int)), forest)
    np.testing.assert_array_equal(constant.runs().matrix(), np.ones((1, 8)))


def test_component_totals_are_exact():
    graph = Partitioned([0, 0, 1, 1, 2])
    plan = Transformed(Laplace(on="cells")).plan(Cumulative(5), graph)
    x = np.array([3, 1, 4, 1, 5])
    released = plan.release(x, epsilon="0.01", noise=noise.seeded(0))
    np.testing.assert_array_equal(plan.exact, [False, True, False, True, True])
    np.testing.assert_array_equal(released[plan.exact], np.cumsum(x)[plan.exact])


def test_nothing_hidden_is_exact():
    assert Transformed(Hierarchical()).plan(Cumulative(4), Explicit(4, ())).exact.all()


def test_sizes_must_agree():
    with pytest.raises(SizeMismatch):
        Transformed(Laplace()).plan(Cumulative(4), Full(5))


@pytest.mark.parametrize(
    "mechanism", [Transformed(Laplace(on="cells")), Transformed(Hierarchical(), spanning=True)]
)
def test_keeps_the_contract(mechanism):
    checked = check_mechanism(mechanism)
    assert {"line, prefixes", "tree, histogram", "add or remove, signed questions"} <= set(checked.planned)
