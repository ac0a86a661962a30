"""The bound on grids: below the dense bound, below every plan, and the policy's moves read correctly."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.linalg import sqrtm

from blowfishdb.core.graphs import Explicit, Full, Grid, Partitioned, PolicyGraph, Product, Threshold
from blowfishdb.core.graphs.grid_moves import GridMoves, grid_shape
from blowfishdb.core.lower_bound import grid_bound
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Marginals
from blowfishdb.core.workloads import Product as W

GRAPHS = [
    Full(30),
    Product(Full(5), Full(6), joint=False),
    Product(Threshold(5, 1), Threshold(6, 1)),
    Product(Threshold(5, 2), Threshold(6, 3)),
    Product(Threshold(5, 2), Threshold(6, 3), joint=False),
    Product(Threshold(5, 2), Full(6)),
    Grid((5, 6), 1),
    Grid((5, 6), 3),
    Grid((5, 6), 30),
    Grid((5, 6), 4, (2, 3)),
    Grid((3, 2, 5), 2),
]


def describe(graph: PolicyGraph) -> str:
    return f"{type(graph).__name__}-{graph.describe()}"


@pytest.mark.parametrize("graph", GRAPHS, ids=describe)
def test_moves_describe_exactly_the_edges(graph):
    shape = getattr(graph, "shape", (5, 6))
    moves = GridMoves.of(graph, shape)
    places = np.stack(np.unravel_index(np.arange(graph.size), shape), axis=1)
    for u, v in itertools.combinations(range(graph.size), 2):
        gap = np.abs(places[u] - places[v])
        within = any((gap <= extreme).all() for extreme in moves.extremes)
        assert within == graph.has_edge(u, v)


def test_moves_of_other_policies_are_not_guessed():
    assert GridMoves.of(Explicit(6, [(0, 1)]), (2, 3)) is None
    assert GridMoves.of(Product(Partitioned([0, 0, 1]), Full(2)), (3, 2)) is None
    assert GridMoves.of(Full(6).hide_presence(), (2, 3)) is None
    assert GridMoves.of(Full(6), (2, 2)) is None
    assert GridMoves.of(Threshold(6, 2), (6,)).extremes == ((2,),)
    assert GridMoves.of(Full(1), (1,)).extremes == ()
    assert grid_shape(Histogram(6), Full(6)) == (6,)
    assert grid_shape(Marginals((2, 3), [(0,)]), Full(6)) == (2, 3)


def dense_bound(gram: np.ndarray, graph: PolicyGraph, rounds: int = 300) -> float:
    """max over edge weights of 2·(tr √(M^½ L M^½))², by the same ascent on all edges."""
    edges = graph.edges()
    differences = np.zeros((len(edges), graph.size))
    differences[np.arange(len(edges)), edges[:, 0]] = 1
    differences[np.arange(len(edges)), edges[:, 1]] = -1
    half = differences @ np.real(sqrtm(gram))
    weights = np.full(len(edges), 1 / len(edges))
    best = 0.0
    for _ in range(rounds):
        scaled = np.sqrt(weights)[:, None] * half
        values, vectors = np.linalg.eigh(scaled.T @ scaled)
        keep = values > 1e-12 * values.max()
        roots = np.sqrt(values[keep])
        best = max(best, 2 * roots.sum() ** 2)
        slopes = ((half @ vectors[:, keep]) ** 2 / roots).sum(axis=1)
        weights = weights * slopes / (weights @ slopes)
    return best


@pytest.mark.parametrize("graph", GRAPHS[:9], ids=describe)
@pytest.mark.parametrize("kind", [Cumulative, AllRanges, Histogram])
def test_below_the_dense_bound_but_not_far(graph, kind):
    workload = W(kind(5), kind(6))
    found = grid_bound(workload, graph)
    dense = dense_bound(workload.gram().astype(float), graph)
    assert 0.65 * dense < found <= dense * (1 + 1e-9)


def test_on_a_line_it_meets_the_ordered_mechanism():
    bound = grid_bound(AllRanges(256), Threshold(256, 1))
    assert 1.0 <= 2 * 256 * 255 / bound < 1.02


def test_figures_of_the_theory():
    for graph, prefix, ranges in (
        (Full(256**2), 542, 168),
        (Grid((256, 256), 1), 3840, 909),
        (Product(Threshold(256, 1), Threshold(256, 1)), 2140, 522),
        (Product(Threshold(256, 4), Threshold(256, 4)), 1060, 273),
        (Product(Threshold(256, 4), Full(256)), 638, 184),
    ):
        for factor, expected in ((Cumulative(256), prefix), (AllRanges(256), ranges)):
            gram = factor.gram().astype(float)
            cells = 8 * (np.trace(gram) ** 2 - gram.sum() ** 2 / 256**2)
            assert cells / grid_bound(W(factor, factor), graph) == pytest.approx(expected, rel=0.02)


def test_where_it_does_not_apply():
    assert grid_bound(Marginals((2, 3), [(0,)]), Full(6)) is None
    assert grid_bound(W(Cumulative(2), Cumulative(3)), Explicit(6, [(0, 1)])) is None
    assert grid_bound(Histogram(1), Full(1)) == 0
    assert grid_bound(Histogram(6), Grid((2, 3), 1)) > 0


def test_large_grids_need_no_large_matrices():
    assert grid_bound(W(Cumulative(512), Cumulative(512)), Grid((512, 512), 2)) > 0
