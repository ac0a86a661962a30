"""The lower bound: closed forms, known values, and the inequality itself on random strategies."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb.core.errors import InvalidGraph, InvalidWorkload, SizeMismatch, TooLarge
from blowfishdb.core.lower_bound import (
    bound,
    line_bound,
    line_edges,
    ordered_identity_bound,
    ordered_prefix_bound,
    ordered_ranges_bound,
)


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
    k, edges = 6, line_edges(6, 2)
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
    assert bound(np.ones((4, 4)), line_edges(4, 3)) == pytest.approx(0.0, abs=1e-6)
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
    with pytest.raises(InvalidGraph):
        line_edges(4, 0)
    with pytest.raises(TooLarge):
        bound(np.zeros((1025, 1025)), [(0, 1)])
