"""The lower bound: closed forms, known values, and the inequality itself on random strategies."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import InvalidGraph, InvalidWorkload, SizeMismatch, TooLarge
from blowfishdb.core.lower_bound import (
    bound,
    lower_bound,
    ordered_identity_bound,
    ordered_prefix_bound,
    ordered_ranges_bound,
)
from blowfishdb.mechanisms import Laplace
from tests.core.oracle import line_bound


def prefix_gram(k):
    i = np.arange(k)
    return (k - np.maximum.outer(i, i)).astype(float)


def ranges_gram(k):
    i = np.arange(k)
    return ((np.minimum.outer(i, i) + 1) * (k - np.maximum.outer(i, i))).astype(float)


@pytest.mark.parametrize("k", [2, 3, 7, 32])
def test_closed_forms_at_theta_one_are_the_svd_bound(k):
    assert ordered_prefix_bound(k) == pytest.approx(line_bound(prefix_gram(k), 1, steps=1))
    assert ordered_ranges_bound(k) == pytest.approx(line_bound(ranges_gram(k), 1, steps=1))
    assert ordered_identity_bound(k) == pytest.approx(line_bound(np.eye(k), 1, steps=1))


def test_one_cell_has_no_error():
    assert line_bound(np.eye(1), 1) == 0.0
    assert ordered_prefix_bound(1) == ordered_ranges_bound(1) == ordered_identity_bound(1) == 0.0


@pytest.mark.parametrize(
    ("theta", "gram", "value"),
    [
        (4, prefix_gram, 305.46),
        (16, prefix_gram, 563.32),
        (63, prefix_gram, 771.61),
        (4, ranges_gram, 18617.4),
        (63, ranges_gram, 35188.9),
    ],
)
def test_values_on_64_cells(theta, gram, value):
    assert line_bound(gram(64), theta) == pytest.approx(value, rel=1e-4)


def test_laplace_on_cells_is_twice_the_bound_under_the_full_policy():
    k = 32
    assert 8.0 * (k - 1) / line_bound(np.eye(k), k) == pytest.approx(2.0)


def test_ascent_never_falls_below_the_svd_bound_and_grows_with_the_policy():
    gram = ranges_gram(24)
    previous = 0.0
    for theta in (1, 2, 5, 23):
        tight = line_bound(gram, theta)
        assert tight >= line_bound(gram, theta, steps=1) - 1e-9
        assert tight >= previous * 0.999
        previous = tight


def test_no_linear_strategy_beats_it():
    rng = np.random.default_rng(1)
    k, edges = 6, graphs.Threshold(6, 2).edges()
    gram = ranges_gram(k)
    limit = bound(gram, edges)
    basis = np.linalg.svd(np.ones((1, k)))[2][1:]  # n is public: only differences matter
    for _ in range(200):
        rows = rng.laplace(size=(rng.integers(k, 3 * k), k)) * rng.integers(0, 2, size=k)
        rows = np.vstack((rows, 0.1 * np.eye(k)))
        sensitivity = max(np.abs(rows[:, u] - rows[:, v]).sum() for u, v in edges)
        covariance = np.linalg.inv(basis @ rows.T @ rows @ basis.T)
        error = 2 * sensitivity**2 * np.trace(basis @ gram @ basis.T @ covariance)
        assert error >= limit * (1 - 1e-9)


def test_general_graphs():
    # A star's centre-to-leaf moves: every leaf is a free coordinate, as for θ = 1 prefixes.
    star = np.array([(0, leaf) for leaf in range(1, 6)])
    gram = np.diag([0.0, 1, 1, 1, 1, 1])
    assert bound(gram, star) == pytest.approx(10.0)
    # Moves that the workload cannot see cost nothing.
    assert bound(np.ones((4, 4)), graphs.Full(4).edges()) == pytest.approx(0.0, abs=1e-6)
    assert bound(np.eye(4), np.zeros((0, 2), dtype=int)) == 0.0


def test_what_is_refused():
    with pytest.raises(SizeMismatch):
        bound(np.ones((2, 3)), [(0, 1)])
    with pytest.raises(InvalidWorkload):
        bound([[1.0, 2.0], [0.0, 1.0]], [(0, 1)])
    with pytest.raises(InvalidWorkload):
        bound([[1.0, 2.0], [2.0, 1.0]], [(0, 1)])
    with pytest.raises(InvalidGraph):
        bound(np.eye(2), [(0, 2)])
    with pytest.raises(TooLarge):
        bound(np.zeros((2001, 2001)), [(0, 1)])
    with pytest.raises(TooLarge, match="wider bins"):
        lower_bound(workloads.Ranges(10**6, [0], [5]), graphs.Partitioned(Bins.width(10**6, 10)))
    with pytest.raises(SizeMismatch):
        lower_bound(workloads.Histogram(4), graphs.Full(5))


# --- the public function ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("theta", "workload", "ratio"),
    [
        # THEORY §4: Laplace on the cells with the total corrected, over the bound
        (4, "prefix", 70),
        (16, "prefix", 36.7),
        (16, "ranges", 19.4),
        (64, "prefix", 23.1),
        (64, "ranges", 13.3),
        (255, "prefix", 18.0),
        (255, "ranges", 12.0),
    ],
)
def test_golden_ratios_at_256_cells(theta, workload, ratio):
    k = 256
    asked = {"prefix": workloads.Cumulative, "ranges": workloads.AllRanges}[workload](k)
    graph = graphs.Threshold(k, theta)
    cells = Laplace(on="cells").plan(asked, graph).unit_error
    assert cells / lower_bound(asked, graph) == pytest.approx(ratio, rel=0.02)


def test_the_unit_line_is_closed_at_any_size():
    k = 10**6
    line = graphs.Threshold(k, 1)
    assert lower_bound(workloads.Cumulative(k), line) == 2 * (k - 1)
    ordered = 2 * 256 * 255
    assert ordered / lower_bound(workloads.AllRanges(256), graphs.Threshold(256, 1)) == pytest.approx(
        1, abs=0.004
    )
    ratio = 4 * (k - 1) / lower_bound(workloads.Histogram(k), line)
    assert ratio == pytest.approx(np.pi**2 / 8, rel=1e-3)


def test_large_grids_need_no_large_matrices():
    side = 64
    graph = graphs.Product(graphs.Full(side), graphs.Full(side))
    cells = 8 * (side**2 - 1)
    assert cells / lower_bound(workloads.Histogram(side**2), graph) == pytest.approx(2, rel=0.01)


def test_components_add_up_and_their_totals_are_free():
    parts = graphs.Partitioned([0] * 5 + [1] * 3)
    together = lower_bound(workloads.Histogram(8), parts)
    apart = sum(lower_bound(workloads.Histogram(n), graphs.Full(n)) for n in (5, 3))
    assert together == pytest.approx(apart, rel=2e-3)
    assert lower_bound(workloads.Ranges(8, [0, 5], [4, 7]), parts) == pytest.approx(0, abs=1e-6)
    assert lower_bound(workloads.Histogram(3), graphs.Explicit(3, ())) == 0


def test_hidden_presence_leaves_nothing_public():
    # Adding or removing a record changes one cell by one: noise 1/ε on each is optimal.
    assert lower_bound(workloads.Histogram(6), graphs.AddRemove(6)) == pytest.approx(12, rel=2e-3)
    line = graphs.Threshold(6, 1)
    total = workloads.Ranges(6, [0], [5])
    assert lower_bound(total, line) == pytest.approx(0, abs=1e-9)
    assert lower_bound(total, line.hide_presence()) == pytest.approx(2, rel=2e-3)


def test_fractions_are_scaled():
    halves = workloads.Matrix(np.array([[Fraction(1, 2), 0, 0], [0, Fraction(1, 2), 0]], dtype=object))
    whole = workloads.Ranges(3, [0, 1], [0, 1])
    graph = graphs.Full(3)
    assert lower_bound(halves, graph) == pytest.approx(lower_bound(whole, graph) / 4)
