"""Composition rules against exact losses of linear releases; where a condition fails, so does the rule's
number.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core import graphs
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.composition import (
    critical_pairs,
    over_people,
    over_regions,
    pair_loss,
    projected,
    sequential,
    worst_pair,
)
from blowfishdb.core.constraints import Constraints
from blowfishdb.core.constraints.over_cells import known_cells
from blowfishdb.core.errors import InvalidInput, NotProven, SizeMismatch, TooLarge
from tests.core import oracle
from tests.core.known_counts import neighbours

EPS = Epsilon("0.3")
TWO = Epsilon("0.2")


def loss(table: np.ndarray, *releases: tuple[np.ndarray, Fraction]) -> Fraction:
    """max over edges of Σ_r |a_r(e_u − e_v)| / b: what Laplace releases really lose together."""
    pairs = np.argwhere(np.triu(table))
    return max(
        (
            sum((abs(rows[:, u] - rows[:, v]).sum() / scale for rows, scale in releases), Fraction(0))
            for u, v in pairs
        ),
        default=Fraction(0),
    )


def release(rows: np.ndarray, table: np.ndarray, epsilon: Epsilon) -> tuple[np.ndarray, Fraction]:
    """Rows with the scale that makes them exactly ε-private on their own."""
    exact = rows.astype(object)
    return exact, loss(table, (exact, Fraction(1))) / epsilon.fraction or Fraction(1)


def test_losses_add_up_and_can_reach_the_sum() -> None:
    table = oracle.adjacency(graphs.Full(4))
    one = release(np.eye(4, dtype=np.int64), table, EPS)
    two = release(np.eye(4, dtype=np.int64), table, TWO)
    assert loss(table, one, two) == sequential([EPS, TWO]).fraction == Fraction(1, 2)
    assert sequential([]) == Epsilon(0)


@pytest.mark.parametrize("seed", range(20))
def test_different_projections_of_one_policy_add_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, table = oracle.line_graph(rng, 6)
    spent, releases = [], []
    for epsilon in (EPS, TWO):
        bins = oracle.random_bins(rng, 6)
        small = oracle.adjacency(graph.project(bins))
        workload = oracle.dense(oracle.line_workload(rng, bins.count))
        rows, scale = release(workload, small, epsilon)
        spent.append((epsilon, bins))
        releases.append((rows[:, bins.assignment()], scale))
    assert loss(table, *releases) <= projected(spent, graph).fraction == Fraction(1, 2)
    with pytest.raises(SizeMismatch):
        projected([(EPS, bf.Bins.width(5, 1))], graph)


def test_regions_cost_the_dearest_only_when_no_edge_joins_them() -> None:
    """Histograms of cells 0–9 and 30–39 under θ = 2; then COUNT(<50) and COUNT(≥50), which do not compose."""
    line = graphs.Threshold(100, 2)
    table = oracle.adjacency(line)
    first, second = np.eye(100, dtype=np.int64)[:10], np.eye(100, dtype=np.int64)[30:40]
    together = loss(table, release(first, table, TWO), release(second, table, TWO))
    assert over_regions([TWO, TWO], [range(10), range(30, 40)], line).fraction == together == TWO.fraction
    low, high = (
        (np.arange(100) < 50)[None, :].astype(np.int64),
        (np.arange(100) >= 50)[None, :].astype(np.int64),
    )
    assert loss(table, release(low, table, TWO), release(high, table, TWO)) == 2 * TWO.fraction
    with pytest.raises(NotProven, match="regions"):
        over_regions([TWO, TWO], [range(50), range(50, 100)], line)
    with pytest.raises(NotProven, match="share"):
        over_regions([TWO, TWO], [range(50), range(40, 45)], line)


@pytest.mark.parametrize("seed", range(30))
def test_components_cost_the_dearest(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph, table = oracle.line_graph(rng, 7)
    parts = graph.components()
    side = rng.integers(0, 2, parts.count)[parts.assignment()]
    regions = [np.flatnonzero(side == at) for at in (0, 1)]
    rows = rng.integers(-2, 3, (2, 7))
    releases = [release(rows * (side == at), table, EPS) for at in (0, 1)]
    assert loss(table, *releases) <= over_regions([EPS, EPS], regions, graph).fraction


def test_regions_under_known_counts_need_no_critical_pair() -> None:
    """G = {01}, {23}, Q = {{0, 2}}: a record of the other component has to move, and both answers change."""
    graph = graphs.Partitioned([0, 0, 1, 1])
    tied = known_cells(Constraints(counts=[{0, 2}]), graph)
    assert len(critical_pairs(tied, graph)) == 1
    both = [
        (first, second)
        for first, second in neighbours(oracle.adjacency(graph), np.array([[1, 0, 1, 0]]), 2)
        if all(
            (np.bincount(first, minlength=4) != np.bincount(second, minlength=4))[part].any()
            for part in ([0, 1], [2, 3])
        )
    ]
    assert both  # what the refusal is about
    with pytest.raises(NotProven, match="known count"):
        over_regions([EPS, TWO], [[0, 1], [2, 3]], graph, critical=critical_pairs(tied, graph))
    free = known_cells(Constraints(counts=[{0, 1}]), graph)
    assert not len(critical_pairs(free, graph))
    assert over_regions([EPS, TWO], [[0, 1], [2, 3]], graph, critical=critical_pairs(free, graph)) == EPS


def test_people_cost_the_dearest_unless_counts_tie_them() -> None:
    """[B14] Thm 4.2 and 4.3: known numbers of men and women let two people of different groups swap."""
    assert over_people([EPS, TWO], [[1, 2], [3]]) == EPS
    with pytest.raises(NotProven, match="two of these groups"):
        over_people([EPS, TWO], [[1, 2], [2]])
    with pytest.raises(InvalidInput):
        over_people([EPS], [[1], [2]])
    graph = graphs.Full(2)
    known = known_cells(Constraints(counts=[{0}]), graph)
    swaps = set(neighbours(oracle.adjacency(graph), np.array([[1, 0]]), 2))
    assert ((0, 1), (1, 0)) in swaps  # both groups change at once
    with pytest.raises(NotProven, match="known count"):
        over_people([EPS, TWO], [[1], [2]], critical=critical_pairs(known, graph))


def test_critical_pairs_with_hidden_presence() -> None:
    hidden = graphs.Explicit(3, ()).hide_presence()
    known = known_cells(Constraints(counts=[{0, 1}]), hidden)
    assert (
        len(critical_pairs(known, hidden)) == 1
    )  # in or out of the counted cells; cell 2 and ⊥ are one class


def test_a_policy_that_changes_costs_by_distance() -> None:
    """REUSE §3: θ = 1 twice at 0.2, then θ = 10: by distance 4."""
    line = graphs.Threshold(50, 1)
    spent = [(TWO, line), (TWO, line)]
    assert pair_loss(spent, 3, 13) == 4
    worst = worst_pair(spent, graphs.Threshold(50, 10))
    assert worst is not None and worst.loss == 4 and abs(worst.u - worst.v) == 10 and worst.words == "4"
    apart = worst_pair([(TWO, graphs.Partitioned([0, 0, 1, 1]))], graphs.Full(4))
    assert apart is not None and apart.loss is None and "without limit" in apart.words
    assert worst_pair(spent, graphs.Explicit(50, ())) is None
    assert pair_loss([(Epsilon(0), graphs.Explicit(2, ()))], 0, 1) is None  # what is free is exact
    with pytest.raises(TooLarge):
        worst_pair(spent, graphs.Full(1_000))
