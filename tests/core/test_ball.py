"""L_p thresholds on grids: edges by definition, projections by definition."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core import graphs
from blowfishdb.core.errors import InvalidGraph, InvalidThreshold
from blowfishdb.core.policy import codec
from tests.core import oracle
from tests.core.known_counts import most_change

SHAPES = [(5,), (4, 3), (3, 3, 2), (1, 4)]


def by_distance(shape: tuple[int, ...], theta: Fraction, p: float) -> np.ndarray:
    places = list(itertools.product(*map(range, shape)))

    def near(u: int, v: int) -> bool:
        gaps = [abs(a - b) for a, b in zip(places[u], places[v], strict=True)]
        if p == math.inf:
            return max(gaps) <= theta
        return sum(Fraction(gap) ** int(p) for gap in gaps) <= theta ** int(p)

    return oracle.by_definition(len(places), near)


@pytest.mark.parametrize("p", [1, 2, 3, math.inf])
@pytest.mark.parametrize("theta", ["1/2", "1", "3/2", "2", "9/4", "50"])
@pytest.mark.parametrize("shape", SHAPES)
def test_edges_by_definition(shape: tuple[int, ...], theta: str, p: float) -> None:
    graph = graphs.Within(shape, theta, p)
    table = by_distance(shape, Fraction(theta), p)
    assert (oracle.adjacency(graph) == table).all() and graph.edge_count == table.sum() // 2
    u, v = np.triu_indices(graph.size, 1)
    assert (graph.adjacent(u, v) == table[u, v]).all()
    assert (graph.components().count == 1) == (theta != "1/2" or graph.size == 1)
    assert (oracle.adjacency(codec.graph(json.loads(json.dumps(codec.plain(graph))))) == table).all()


@pytest.mark.parametrize("seed", range(25))
def test_projection_and_sensitivity(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = SHAPES[seed % 3]
    theta = Fraction(int(rng.integers(1, 8)), int(rng.integers(1, 4)))
    graph, table = graphs.Ball(shape, theta, 2), by_distance(shape, theta, 2)
    factors = [oracle.random_bins(rng, n) for n in shape]
    bins = factors[0] if len(factors) == 1 else bf.Bins.product(*factors)
    projected = oracle.adjacency(graph.project(bins))
    assert (projected == oracle.brute_force_projection(table, bins.assignment())).all()
    workload = oracle.line_workload(rng, graph.size)
    assert bf.sensitivity(workload, graph) == oracle.brute_force_sensitivity(workload, table)
    u, v = rng.integers(0, graph.size, 2)
    assert graph.distance(int(u), int(v)) == graphs.Explicit(
        graph.size, np.argwhere(np.triu(table))
    ).distance(int(u), int(v))


@pytest.mark.parametrize("reading", ["literal", "edge"])
@pytest.mark.parametrize("sides", [{0: (0, 0)}, {1: (1, 2)}, {0: (1, 1), 1: (0, 1)}])
def test_known_ranges_over_bare_cells(sides: dict[int, tuple[int, int]], reading: str) -> None:
    """Columns are the axes of the box; never below brute force over [B14] Def. 4.1, and met for cells."""
    graph, known = graphs.Ball((2, 3), "3/2"), bf.Constraints(ranges=[sides], reading=reading)
    places = np.array(list(itertools.product(range(2), range(3))))
    inside = np.all([(places[:, a] >= low) & (places[:, a] <= high) for a, (low, high) in sides.items()], 0)
    for workload in (bf.workloads.Histogram(6), bf.workloads.Ranges(6, [0, 1, 2], [3, 1, 5])):
        truth = most_change(
            oracle.dense(workload), oracle.adjacency(graph), inside[None].astype(int), 3, reading
        )
        bound = bf.sensitivity(workload, graph, known)
        assert truth <= bound
        assert workload.one_per_cell <= (truth == bound)


def test_mistakes_are_refused() -> None:
    for theta in (0, "-1", "far", None):
        with pytest.raises(InvalidThreshold):
            graphs.Within((3, 3), theta, 2)  # type: ignore[arg-type]
    for p in (0, 1.5, 99):
        with pytest.raises(InvalidGraph):
            graphs.Within((3, 3), 1, p)
