"""Line strategies: privacy by brute force, algebra against dense linear algebra, and the promised error."""

from __future__ import annotations

import inspect
from itertools import pairwise

import numpy as np
import pytest

from blowfishdb.core.errors import (
    EmptyDomain,
    InvalidInput,
    InvalidScale,
    InvalidThreshold,
    InvalidWorkload,
    SizeMismatch,
    TooLarge,
)
from blowfishdb.mechanisms.linear import cuts as factor
from blowfishdb.mechanisms.optimized.line_design import design
from blowfishdb.mechanisms.optimized.line_solver import LineSolver
from blowfishdb.mechanisms.optimized.line_strategy import (
    Family,
    LineStrategy,
    LineWorkload,
    Ramp,
    Shape,
    sensitivity,
)
from tests.core.oracle import line_bound

PREFIX, RANGES, IDENTITY = LineWorkload.prefix(), LineWorkload.all_ranges(), LineWorkload.identity()
FAMILIES = [PREFIX, RANGES, IDENTITY]


def brute_force_sensitivity(rows, weights, theta):
    """Σ_r w_r·|a_ru − a_rv| over every edge, in Python integers."""
    columns = [[int(v) for v in column] for column in rows.toarray().T]
    weights = [int(w) for w in weights]
    return max(
        (
            sum(w * abs(a - b) for w, a, b in zip(weights, columns[u], columns[v], strict=True))
            for u in range(len(columns))
            for v in range(u + 1, min(len(columns), u + theta + 1))
        ),
        default=0,
    )


def random_shape(rng):
    cells = int(rng.integers(1, 61))
    if rng.random() < 0.1:
        return Shape(cells, (), Ramp(1, 1))
    hats = [(1,), (1, 2), (1, 3), (1, 7), (1, 4, 12), (1, 2, 4, 8)][rng.integers(6)]
    if rng.random() < 0.3:
        return Shape(cells, hats)
    blocks = int(rng.integers(1, 6))
    return Shape(cells, hats, Ramp(hats[-1] * blocks, hats[-1] * int(rng.integers(1, blocks + 1))))


def dense_covariance(strategy, variances):
    """The covariance of p_0 … p_k, the public ends included as zeros."""
    rows = strategy.prefix_rows().toarray()
    covariance = np.zeros((strategy.k + 1, strategy.k + 1))
    covariance[1:-1, 1:-1] = np.linalg.inv((rows.T / variances) @ rows)
    return covariance


def total_error(strategy, workload):
    return LineSolver(strategy, strategy.variances()).total_variance(workload)


# --- privacy ----------------------------------------------------------------------------------


def test_sensitivity_of_random_strategies_is_exact():
    rng = np.random.default_rng(0)
    for _ in range(150):
        shape = random_shape(rng)
        weights = tuple(int(w) for w in rng.integers(1, 10 ** int(rng.integers(1, 7)), shape.groups))
        strategy = LineStrategy(shape, int(rng.integers(1, 61)), weights)
        assert strategy.sensitivity == brute_force_sensitivity(
            strategy.rows(), strategy.weights, strategy.theta
        )


def test_sensitivity_of_designed_strategies_is_exact():
    rng = np.random.default_rng(1)
    for _ in range(60):
        k, theta = int(rng.integers(1, 61)), int(rng.integers(1, 61))
        strategy = design(k, theta, FAMILIES[rng.integers(3)])
        assert (strategy.k, strategy.theta) == (k, theta)
        assert isinstance(strategy.sensitivity, int)
        assert strategy.sensitivity == brute_force_sensitivity(strategy.rows(), strategy.weights, theta)


def test_sensitivity_beyond_64_bits_is_exact():
    shape, small = Shape(20, (1, 3), Ramp(6, 3)), (5, 7, 11)
    huge = tuple(w * 2**70 for w in small)
    assert sensitivity(shape, 6, huge) == 2**70 * sensitivity(shape, 6, small)


def test_sensitivity_of_the_parts():
    assert sensitivity(Shape(50, (1,)), 1, (1,)) == 2
    assert sensitivity(Shape(50, (1, 5)), 50, (0, 1)) == 10
    assert sensitivity(Shape(50, (), Ramp(1, 1)), 7, (1,)) == 7
    assert sensitivity(Shape(1, (1,)), 3, (1,)) == 0


# --- rows and decoding ------------------------------------------------------------------------


def test_rows_answers_and_offsets_agree():
    rng = np.random.default_rng(2)
    for _ in range(80):
        shape = random_shape(rng)
        strategy = LineStrategy(shape, 5, tuple(range(1, shape.groups + 1)))
        x = rng.integers(0, 1000, shape.cells)
        answers = strategy.rows() @ x
        assert strategy.rows().dtype == np.int64
        assert np.array_equal(strategy.answers(x), answers)
        through_cuts = strategy.prefix_rows() @ np.cumsum(x)[:-1] + strategy.offsets() * x.sum()
        assert np.array_equal(through_cuts, answers)
        assert len(strategy.weights) == len(answers) == strategy.rows().shape[0]


def random_strategies(rng):
    """Strategies of random shape, and a variance for each of their rows."""
    for _ in range(60):
        shape = random_shape(rng)
        if shape.cuts:
            strategy = LineStrategy(shape, 5, (1,) * shape.groups)
            yield strategy, rng.uniform(0.1, 10.0, len(strategy.weights))


def test_decoding_is_weighted_least_squares():
    rng = np.random.default_rng(3)
    for strategy, variances in random_strategies(rng):
        totals = rng.integers(0, 100, 4)
        noisy = rng.normal(size=(4, len(variances))) * 30
        scale = 1 / np.sqrt(variances)
        rows = strategy.prefix_rows().toarray() * scale[:, None]
        right = (noisy - totals[:, None] * strategy.offsets()) * scale
        expected = np.linalg.lstsq(rows, right.T)[0].T
        solver = LineSolver(strategy, variances)
        assert np.allclose(solver.decode(noisy, totals), expected, atol=1e-7)
        assert np.allclose(solver.decode(noisy[0], totals[0]), expected[0], atol=1e-7)


def test_noiseless_answers_decode_to_the_data():
    rng = np.random.default_rng(4)
    for k, theta in ((300, 20), (5000, 5000), (5000, 64)):
        x = rng.integers(0, 50, k)
        strategy = design(k, theta, PREFIX)
        solver = LineSolver(strategy, strategy.variances())
        assert np.allclose(solver.decode(strategy.answers(x), x.sum()), np.cumsum(x)[:-1], atol=1e-6)


def test_variances_equal_the_dense_formula():
    for strategy, variances in random_strategies(np.random.default_rng(5)):
        covariance = dense_covariance(strategy, variances)
        solver = LineSolver(strategy, variances)
        i, j = np.triu_indices(strategy.shape.cells + 1, 1)
        every = covariance[i, i] + covariance[j, j] - 2 * covariance[i, j]
        assert np.allclose(solver.range_variances(i, j - 1), every, atol=1e-9)
        assert np.allclose(solver.prefix_variances(), np.diag(covariance)[1:-1])
        assert np.allclose(solver.cell_variances(), every[j == i + 1], atol=1e-9)
        assert solver.total_variance(RANGES) == pytest.approx(every.sum())
        assert solver.total_variance(PREFIX) == pytest.approx(np.trace(covariance))
        assert solver.total_variance(IDENTITY) == pytest.approx(every[j == i + 1].sum())
        listed = LineWorkload.listed(i, j - 1, np.arange(len(i)))
        assert solver.total_variance(listed) == pytest.approx(np.arange(len(i)) @ every)


def test_the_loops_need_no_compiler(monkeypatch):
    strategy = design(40, 8, RANGES)
    compiled = LineSolver(strategy, strategy.variances())
    expected = compiled.total_variance(RANGES)
    for loop in ("_symbolic", "_numeric", "_solve", "_differences"):
        monkeypatch.setattr(factor, loop, inspect.unwrap(getattr(factor, loop)))
    interpreted = LineSolver(strategy, strategy.variances())
    assert interpreted.total_variance(RANGES) == pytest.approx(expected)


def test_simulated_noise_has_the_promised_variance():
    rng = np.random.default_rng(6)
    strategy = design(100, 10, RANGES)
    solver = LineSolver(strategy, strategy.variances())
    noise = rng.laplace(size=(4000, len(strategy.weights))) * np.sqrt(strategy.variances() / 2)
    errors = solver.decode(noise, 0)
    assert (errors**2).mean(axis=0).sum() == pytest.approx(solver.total_variance(PREFIX), rel=0.03)


# --- error ------------------------------------------------------------------------------------


def gram(workload, k):
    i = np.arange(k)
    match workload.family:
        case Family.PREFIX:
            return (k - np.maximum.outer(i, i)).astype(float)
        case Family.ALL_RANGES:
            return ((np.minimum.outer(i, i) + 1) * (k - np.maximum.outer(i, i))).astype(float)
        case _:
            return np.eye(k)


@pytest.mark.parametrize(
    ("theta", "workload", "target"),
    [
        (1, PREFIX, 1.0001),
        (1, RANGES, 1.004),
        (1, IDENTITY, 1.24),
        (4, PREFIX, 3.85),
        (4, RANGES, 3.87),
        (16, PREFIX, 4.98),
        (16, RANGES, 5.07),
        (64, PREFIX, 7.66),
        (64, RANGES, 7.48),
        (255, PREFIX, 7.52),
        (255, RANGES, 6.77),
        (4, IDENTITY, 2.14),
        (64, IDENTITY, 2.01),
    ],
)
def test_ratio_to_the_bound_on_256_cells(theta, workload, target):
    strategy = design(256, theta, workload)
    assert total_error(strategy, workload) / line_bound(gram(workload, 256), theta) <= target


@pytest.mark.parametrize("k", [2, 3, 64, 1000])
def test_theta_one_is_the_ordered_mechanism(k):
    strategy = design(k, 1, PREFIX)
    assert total_error(strategy, PREFIX) == pytest.approx(2 * (k - 1))
    assert strategy.sensitivity == strategy.group_weights[0]
    assert total_error(design(k, 1, RANGES), RANGES) == pytest.approx(2 * k * (k - 1))


def ordered_hierarchical_errors(k, theta, fanout, workload):
    """Ordered hierarchical, corrected (roots and s_k not released), with least squares, over nine splits."""
    block = min(theta, k)
    boundaries = list(range(block, k, block))
    nodes, levels = [], 0

    def split(lo, hi, depth):
        nonlocal levels
        levels = max(levels, depth)
        parts = min(fanout, hi - lo)
        cuts = [lo + (hi - lo) * i // parts for i in range(parts + 1)]
        for a, b in pairwise(cuts):
            nodes.append((a, b))
            if b - a > 1:
                split(a, b, depth + 1)

    for lo in (0, *boundaries):
        split(lo, min(lo + block, k), 1)
    tree = np.zeros((len(nodes), k + 1))
    for row, (a, b) in enumerate(nodes):
        tree[row, b] += 1
        tree[row, a] -= 1
    ordered = np.zeros((len(boundaries), k + 1))
    ordered[np.arange(len(boundaries)), boundaries] = 1
    for share in np.linspace(0.1, 0.9, 9) if boundaries else [0.0]:
        rows = np.vstack((tree * (1 - share) / (2 * levels), ordered * share))[:, 1:-1]
        profile = np.hstack((np.zeros((len(rows), 1)), np.cumsum(rows, axis=1)))
        moves = range(1, min(theta, k - 1) + 1)
        cost = max(np.abs(profile[:, d:] - profile[:, :-d]).sum(axis=0).max() for d in moves)
        covariance = np.linalg.inv(rows.T @ rows) * cost**2
        match workload.family:
            case Family.PREFIX:
                yield 2 * np.trace(covariance)
            case _:
                yield 2 * ((k + 1) * np.trace(covariance) - covariance.sum())


@pytest.mark.parametrize("k", [5, 17, 64, 100])
@pytest.mark.parametrize("workload", [PREFIX, RANGES], ids=["prefix", "ranges"])
def test_never_worse_than_the_classics(k, workload):
    for theta in (1, 2, 3, 4, 7, 16, 30, k):
        ours = total_error(design(k, theta, workload), workload)
        cells = LineStrategy(Shape(k, (1,)), theta, (1,))
        assert ours <= total_error(cells, workload) * (1 + 1e-6)
        if theta > 1:
            for fanout in (2, 4, 8, 16):
                for classic in ordered_hierarchical_errors(k, theta, fanout, workload):
                    assert ours <= classic * (1 + 1e-6), (k, theta, fanout)


@pytest.mark.parametrize("theta", [1, 2, 8, 40])
def test_identity_is_never_worse_than_laplace(theta):
    cells = LineStrategy(Shape(40, (1,)), theta, (1,))
    assert total_error(design(40, theta, IDENTITY), IDENTITY) <= total_error(cells, IDENTITY) * (1 + 1e-6)


def test_listed_ranges_shape_the_strategy():
    starts = np.arange(0, 950, 10)
    short, long = (
        LineWorkload.listed(starts, starts + 1),
        LineWorkload.listed(np.zeros(950, int), np.arange(950)),
    )
    for_short, for_long = design(1000, 200, short), design(1000, 200, long)
    assert total_error(for_short, short) < 0.8 * total_error(for_long, short)
    assert total_error(for_long, long) < 0.8 * total_error(for_short, long)
    far = LineWorkload.listed(np.array([0, 5000, 19_000]), np.array([15_000, 5003, 19_999]))
    assert design(20_000, 16, far).shape.ramp is not None


def test_a_short_line_tunes_a_long_one():
    """The strategy tuned on a few blocks is as good, per prefix, on the whole line."""
    short, long = (total_error(design(k, 16, PREFIX), PREFIX) / (k - 1) for k in (2000, 20_000))
    assert long == pytest.approx(short, rel=0.01)


@pytest.mark.parametrize("theta", [4, 1000, 100_000])
def test_a_hundred_thousand_cells_have_a_strategy(theta):
    assert design(100_000, theta, PREFIX).sensitivity > 0


# --- what is refused --------------------------------------------------------------------------


def test_values_describe_themselves():
    strategy = design(256, 64, PREFIX)
    assert strategy.groups[0].startswith("cells: ")
    assert "ramps over" in strategy.groups[-1]
    assert design(9, 1, PREFIX).groups == ("prefixes, one every 1 cells: 100.0%",)


def test_small_lines():
    one = design(1, 3, PREFIX)
    assert one.sensitivity == 0
    assert one.rows().shape == (0, 1)
    assert len(one.answers(np.array([7]))) == 0
    solver = LineSolver(one, one.variances())
    assert solver.decode(np.zeros((2, 0)), 7).shape == (2, 0)
    assert solver.total_variance(RANGES) == solver.total_variance(IDENTITY) == 0.0
    assert total_error(design(2, 9, IDENTITY), IDENTITY) == pytest.approx(4.0)


def test_refusals():
    with pytest.raises(EmptyDomain):
        design(0, 1, PREFIX)
    with pytest.raises(InvalidThreshold):
        design(4, 0, PREFIX)
    with pytest.raises(InvalidWorkload):
        design(4, 1, LineWorkload.listed([0], [4]))
    with pytest.raises(TooLarge):
        design(5000, 1, PREFIX).rows(limit=1000)
    for hats, ramp in (((2,), None), ((1, 3, 4), None), ((), None), ((), Ramp(2, 2)), ((1, 4), Ramp(8, 2))):
        with pytest.raises(InvalidWorkload):
            Shape(9, hats, ramp)
    with pytest.raises(InvalidWorkload):
        Ramp(2, 3)
    with pytest.raises(InvalidWorkload):
        Shape(0, (1,))
    for starts, ends, weights in (([0], [1, 2], None), ([], [], None), ([2], [1], None), ([0], [1], [-1.0])):
        with pytest.raises(InvalidWorkload):
            LineWorkload.listed(starts, ends, weights)
    with pytest.raises(SizeMismatch):
        LineStrategy(Shape(4, (1,)), 1, (1, 1))
    with pytest.raises(InvalidScale):
        LineStrategy(Shape(4, (1,)), 1, (0,))
    with pytest.raises(InvalidThreshold):
        LineStrategy(Shape(4, (1,)), 0, (1,))
    strategy = design(4, 2, PREFIX)
    with pytest.raises(SizeMismatch):
        strategy.answers(np.zeros(3, dtype=np.int64))
    with pytest.raises(SizeMismatch):
        LineSolver(strategy, [1.0])
    with pytest.raises(InvalidScale):
        LineSolver(strategy, np.zeros(len(strategy.weights)))
    solver = LineSolver(strategy, strategy.variances())
    with pytest.raises(SizeMismatch):
        solver.decode([1.0], 3)
    with pytest.raises(InvalidInput):
        solver.range_variances([0], [4])
    with pytest.raises(SizeMismatch):
        solver.range_variances([0, 1], [1])
