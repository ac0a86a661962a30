"""DAWA: the worked examples of its paper, exact optima, an audit, and the fast forms against dense ones."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import (
    InvalidEpsilon,
    InvalidInput,
    InvalidWorkload,
    NoGuarantee,
    SizeMismatch,
    TooLarge,
)
from blowfishdb.core.graphs import AddRemove, Explicit, Full, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Matrix, Product, Ranges, Rectangles
from blowfishdb.mechanisms.dawa import Dawa, stages, steps
from blowfishdb.mechanisms.dawa.measuring import (
    DenseCoverage,
    RangeCoverage,
    cost,
    coverage,
    greedy_scaling,
    integer_weights,
    noisy_sums,
    over_buckets,
    tree_least_squares,
)
from blowfishdb.mechanisms.dawa.partition import (
    Candidates,
    Penalty,
    Ranked,
    deviations,
    expand,
    least_cost,
    private_partition,
    resolution,
    row_order,
    sensitivity,
)

EXAMPLE = np.array([2, 3, 8, 1, 0, 2, 0, 4, 2, 4])
PAPER = np.array([0, 2, 3, 7])


def exact_deviation(x, start, stop):
    part = [Fraction(int(value)) for value in x[start:stop]]
    mean = sum(part) / len(part)
    return sum(abs(value - mean) for value in part)


def noise_free_costs(x, candidates, penalty):
    costs = np.zeros((len(candidates.lengths), candidates.size), dtype=np.int64)
    for row, length in zip(costs, candidates.lengths, strict=True):
        starts = candidates.size - length + 1
        row[:starts] = deviations(Ranked(x), length, candidates.units) + penalty * candidates.units
    return costs


def total_cost(x, buckets, penalty):
    stops = np.append(buckets[1:], x.size)
    return sum(exact_deviation(x, a, b) + penalty for a, b in zip(buckets, stops, strict=True))


# --- the worked examples ------------------------------------------------------------------------


def test_deviations_of_the_paper():
    units = resolution(range(1, 11))
    assert units == 1260
    found = [
        Fraction(int(deviations(Ranked(EXAMPLE), b - a, units)[a]), units)
        for a, b in ((0, 2), (2, 3), (3, 7), (7, 10))
    ]
    assert found == [1, 0, 3, Fraction(8, 3)]
    assert Fraction(int(deviations(Ranked(EXAMPLE), 10, units)[0]), units) == Fraction(86, 5)
    assert total_cost(EXAMPLE, PAPER, 1) == Fraction(32, 3)
    assert total_cost(EXAMPLE, PAPER, 10) == Fraction(140, 3)
    assert total_cost(EXAMPLE, np.array([0]), 1) == Fraction(91, 5)


@pytest.mark.parametrize(
    ("kind", "penalty", "least"),
    [
        (Candidates.all, 1, Fraction(10)),
        (Candidates.all, 2, Fraction(44, 3)),
        (Candidates.all, 10, Fraction(136, 5)),
        (Candidates.powers_of_two, 10, Fraction(37)),
    ],
)
def test_the_optima_of_the_paper(kind, penalty, least):
    candidates = kind(10)
    buckets = least_cost(noise_free_costs(EXAMPLE, candidates, penalty), candidates.lengths)
    assert total_cost(EXAMPLE, buckets, penalty) == least
    if penalty == 2:
        np.testing.assert_array_equal(buckets, PAPER)


def test_expansion_and_query_of_the_paper():
    spread = expand(PAPER, np.array([6.3, 7.1, 3.6, 8.4]), None, 10)
    np.testing.assert_allclose(spread, [3.15, 3.15, 7.1, 0.9, 0.9, 0.9, 0.9, 2.8, 2.8, 2.8])
    np.testing.assert_allclose(over_buckets(Ranges(10, [1], [5]), None, PAPER), [[0.5, 1, 0.75, 0]])


@pytest.mark.parametrize("buckets", [3, 40], ids=["fewer buckets", "fewer questions"])
def test_questions_over_buckets_are_those_over_evenly_spread_cells(buckets):
    stream = np.random.default_rng(buckets)
    order, lows = stream.permutation(64), stream.integers(0, 4, (20, 2))
    questions = Rectangles((8, 8), lows, lows + stream.integers(0, 4, (20, 2)))
    cuts = np.sort(np.append(0, stream.choice(np.arange(1, 64), buckets - 1, replace=False)))
    lengths = np.diff(cuts, append=64)
    spread = np.zeros((buckets, 64))
    spread[np.repeat(np.arange(buckets), lengths), order] = np.repeat(1 / lengths, lengths)
    expected = questions.sparse() @ spread.T
    np.testing.assert_allclose(over_buckets(questions, order, cuts), expected)


# --- stage one ----------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [2, 3, 7, 33, 64, 100])
def test_deviations_are_exact(length):
    stream = np.random.default_rng(length)
    x = stream.integers(0, 12, 130)
    units = 256
    expected = [math.floor(units * exact_deviation(x, s, s + length)) for s in range(x.size - length + 1)]
    np.testing.assert_array_equal(deviations(Ranked(x), length, units), expected)


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_sensitivity_is_attained_and_never_exceeded(length):
    units, worst = 1260, 0
    for cells in itertools.product(range(3), repeat=length):
        x = np.array(cells)
        for cell in range(length):
            more = x.copy()
            more[cell] += 1
            change = deviations(Ranked(more), length, units)[0] - deviations(Ranked(x), length, units)[0]
            worst = max(worst, abs(int(change)))
    assert worst == sensitivity(length, units) == 2 * units * (length - 1) // length


@pytest.mark.parametrize("kind", [Candidates.all, Candidates.powers_of_two])
def test_partition_is_the_brute_force_optimum(kind):
    stream = np.random.default_rng(5)
    for size in (1, 2, 5, 8, 9):
        candidates = kind(size)
        x = stream.integers(0, 9, size)
        costs = noise_free_costs(x, candidates, 1) + stream.integers(0, 3, (len(candidates.lengths), size))
        index = {length: i for i, length in enumerate(candidates.lengths)}
        least = None
        for cuts in itertools.product((0, 1), repeat=size - 1):
            starts = np.flatnonzero((1, *cuts))
            lengths = np.diff(starts, append=size).tolist()
            if all(length in index for length in lengths):
                total = sum(int(costs[index[n], s]) for n, s in zip(lengths, starts, strict=True))
                key = (total, lengths[::-1])
                least = key if least is None else min(least, key)
        found = least_cost(costs, candidates.lengths)
        assert np.diff(found, append=size).tolist()[::-1] == least[1]


def test_counts_too_large_for_exact_sums_are_refused():
    with pytest.raises(TooLarge):
        deviations(Ranked(np.full(4, 2**58)), 2, 256)


class Recorded:
    """A stand-in for noise that adds nothing and remembers what was asked for."""

    def __init__(self):
        self.asked = []

    def discrete_laplace(self, scale, size):
        self.asked.append((scale, size))
        return np.zeros(size, dtype=np.int64)


def test_every_candidate_gets_the_noise_of_the_proof():
    recorded = Recorded()
    first, second = Fraction(1, 4), Fraction(3, 4)
    candidates = Candidates.powers_of_two(200)
    private_partition(np.arange(200), candidates, Penalty(Fraction(1), Fraction(0)), first, second, recorded)
    expected = []
    for length in (1, 2, 4, 8, 16, 32, 64, 128):
        own = Fraction(2 * (length - 1), length) + Fraction(2 * 127, 128)
        expected.append((own * 64 / first, 201 - length))
    assert candidates.units == 64
    assert recorded.asked == expected


# --- stage two ----------------------------------------------------------------------------------


def tree_rows(buckets, fanout=2):
    """Every node of the tree as a row, leaves first, and the nodes of each level."""
    rows, levels, level = [], [], np.eye(buckets)
    while True:
        levels.append(range(len(rows), len(rows) + len(level)))
        rows += list(level)
        if len(level) == 1:
            return np.array(rows), levels
        level = np.add.reduceat(level, np.arange(0, len(level), fanout), axis=0)


def dense_objective(questions, scales, buckets, fanout, level, node, share):
    """[D14] eq. 9 for one node, with dense matrices."""
    rows, levels = tree_rows(buckets, fanout)
    depth = len(levels) - 1
    inside = np.flatnonzero(rows[levels[level][node]])
    below = [r for lower in levels[:level] for r in lower if rows[r][inside].any()]
    matrix = np.vstack(
        [rows[below][:, inside] * ((1 - share) * scales[below])[:, None], share * np.ones(inside.size)]
    )
    decay = fanout ** (-(depth - level) / 2)
    own = questions[:, inside].T @ questions[:, inside]
    child = np.zeros_like(own)
    for lower in levels[level - 1]:
        part = np.flatnonzero(rows[lower][inside])
        child[np.ix_(part, part)] = own[np.ix_(part, part)]
    return float(np.trace((decay * own + (1 - decay) * child) @ np.linalg.inv(matrix.T @ matrix)))


@pytest.mark.parametrize(("buckets", "fanout"), [(2, 2), (5, 2), (7, 2), (7, 3), (9, 4)])
def test_greedy_scaling_is_the_one_of_the_paper(buckets, fanout):
    stream = np.random.default_rng(buckets)
    size = 3 * buckets
    starts = np.sort(stream.choice(np.arange(1, size), buckets - 1, replace=False))
    cuts = np.append(0, starts)
    ends = np.sort(stream.integers(0, size, (30, 2)), axis=1)
    questions = over_buckets(Ranges(size, ends[:, 0], ends[:, 1]), None, cuts)
    found = greedy_scaling(RangeCoverage(cuts, size, ends[:, 0], ends[:, 1] + 1), buckets, fanout)
    rows, levels = tree_rows(buckets, fanout)
    scales = np.zeros(len(rows))
    scales[list(levels[0])] = 1.0
    for level in range(1, len(levels)):
        for node, row in enumerate(levels[level]):
            shares = np.linspace(0, 0.98, 197)
            values = [
                dense_objective(questions, scales, buckets, fanout, level, node, share) for share in shares
            ]
            best = float(shares[int(np.argmin(values))])
            inside = [r for lower in levels[:level] for r in lower if (rows[r] * rows[row]).any()]
            scales[inside] *= 1 - best
            scales[row] = best
    np.testing.assert_allclose(np.concatenate(found), scales, atol=0.01)
    paths = rows.T @ np.concatenate(found)
    np.testing.assert_allclose(paths, 1.0)


@pytest.mark.parametrize("fanout", [2, 3, 5, 16])
def test_ranges_and_dense_questions_scale_alike(fanout):
    stream = np.random.default_rng(8)
    cuts = np.array([0, 3, 4, 9, 17, 18, 30])
    ends = np.sort(stream.integers(0, 40, (25, 2)), axis=1)
    workload = Ranges(40, ends[:, 0], ends[:, 1])
    quick = greedy_scaling(coverage(workload, None, cuts), cuts.size, fanout)
    dense = greedy_scaling(DenseCoverage(over_buckets(workload, None, cuts)), cuts.size, fanout)
    for one, other in zip(quick, dense, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_many_buckets_between_two_cuts_are_measured_as_if_they_were_asked_for():
    """A crowd of single cells beside long empty stretches, where most of the cuts fall."""
    crowd, step, stretches = 8_192, 10_000, 256
    buckets = np.concatenate((np.arange(crowd), crowd + step * np.arange(stretches)))
    asked = coverage(AllRanges(crowd + step * stretches), None, buckets)
    weights = integer_weights(greedy_scaling(asked, buckets.size))
    nobody = np.zeros(buckets.size, dtype=np.int64)
    noisy = tree_least_squares(noisy_sums(nobody, weights, Fraction(1), noise.seeded(1)), weights)
    assert math.sqrt(np.mean(np.cumsum(noisy) ** 2)) < 30


def test_a_histogram_spends_everything_on_the_buckets():
    scales = greedy_scaling(coverage(Histogram(16), None, np.arange(16)), 16)
    np.testing.assert_array_equal(scales[0], 1.0)


@pytest.mark.parametrize("fanout", [2, 3, 8])
@pytest.mark.parametrize("buckets", [1, 2, 6, 13])
def test_two_passes_are_dense_least_squares(buckets, fanout):
    stream = np.random.default_rng(buckets)
    rows, levels = tree_rows(buckets, fanout)
    weights = [stream.integers(1 if i == 0 else 0, 9, len(level)) for i, level in enumerate(levels)]
    measured = [stream.normal(size=len(level)) for level in levels]
    root = np.concatenate(weights).astype(float)
    expected = np.linalg.lstsq(rows * root[:, None], np.concatenate(measured) * root, rcond=None)[0]
    np.testing.assert_allclose(tree_least_squares(measured, weights, fanout), expected, atol=1e-9)
    assert cost(weights, fanout) == (rows.T @ np.concatenate(weights)).max()


@pytest.mark.parametrize("fanout", [2, 3, 16])
def test_the_tree_spends_its_budget_exactly(fanout):
    """Σ |row|/scale over the nodes above the most expensive bucket is ε₂, and no bucket loses more."""
    scales = greedy_scaling(coverage(Cumulative(9), None, np.arange(9)), 9, fanout)
    weights = integer_weights(scales)
    asked = {}

    class Asked:
        def discrete_laplace(self, given):
            asked["scales"] = given
            return np.zeros(len(given), dtype=np.int64)

    second = Fraction(3, 40)
    sums = noisy_sums(np.arange(9), weights, second, Asked(), fanout)
    rows, _ = tree_rows(9, fanout)
    np.testing.assert_array_equal(np.concatenate(sums), rows @ np.arange(9))
    measured = rows[np.concatenate(weights) > 0].astype(int)
    losses = [
        sum(Fraction(int(r[b])) / s for r, s in zip(measured, asked["scales"], strict=True)) for b in range(9)
    ]
    assert max(losses) == second


# --- the whole ----------------------------------------------------------------------------------


def test_the_budget_is_divided_without_a_rest():
    first, second = stages(Epsilon("0.1"), 0.25, 1)
    assert (first, second) == (Fraction(1, 40), Fraction(3, 40))
    assert sum(stages(Epsilon("0.000000007"), 0.3, 2)) * 2 == Fraction(7, 10**9)
    with pytest.raises(InvalidEpsilon):
        stages(Epsilon("0.000000001"), 0.5, 1)


def test_policies_other_than_add_remove_pay_twice():
    assert steps(AddRemove(5)) == 1
    assert steps(Full(5)) == steps(Threshold(5, 1)) == steps(Threshold(5, 1).hide_presence()) == 2
    assert "doubled" in Dawa().plan(Histogram(5), Full(5)).explain()
    assert "doubled" not in Dawa().plan(Histogram(5), AddRemove(5)).explain()


@pytest.mark.parametrize(
    "workload",
    [
        Histogram(300),
        Cumulative(300),
        AllRanges(300),
        Matrix(np.arange(600).reshape(2, 300) % 7),
        Rectangles((15, 20), [[0, 0], [3, 4]], [[14, 19], [9, 9]]),
        Product(Histogram(10), Cumulative(6), Histogram(5)),
        Histogram(1),
    ],
)
def test_with_a_large_budget_even_data_is_answered_exactly(workload):
    x = np.repeat([4, 40], [workload.size // 2, workload.size - workload.size // 2])
    plan = Dawa().plan(workload, AddRemove(workload.size))
    answers = plan.release(x, epsilon=10**4, noise=noise.seeded(1))
    np.testing.assert_allclose(answers, workload.answer(x).astype(float), rtol=0.01, atol=0.2)


def test_piecewise_data_gains_over_noise_on_every_cell():
    x = np.repeat([0, 50, 3, 120], 128)
    plan = Dawa().plan(Histogram(512), AddRemove(512))
    seeded = noise.seeded(4)
    errors = [((plan.release(x, epsilon=0.1, noise=seeded) - x) ** 2).mean() for _ in range(10)]
    assert np.mean(errors) < 0.7 * 200  # 2/ε² on every cell


def test_grids_are_cut_along_a_curve():
    order = row_order(Rectangles((8, 8), [[0, 0]], [[7, 7]]))
    steps_taken = np.abs(np.diff(np.stack(np.unravel_index(order, (8, 8))), axis=1)).sum(axis=0)
    np.testing.assert_array_equal(steps_taken, 1)
    assert row_order(Histogram(64)) is None
    cube = row_order(Product(Histogram(4), Histogram(3), Histogram(5)))
    np.testing.assert_array_equal(np.sort(cube), np.arange(60))
    np.testing.assert_array_equal(cube[:4], [0, 1, 5, 6])


def test_histograms_choose_buckets_with_half_of_epsilon_and_sums_with_a_quarter():
    """A public rule about the questions; what was typed is taken as it is."""
    cells = [Histogram(64), Product(Histogram(8), Histogram(8))]
    for workload, split in [*((w, 0.5) for w in cells), (AllRanges(64), 0.25), (Cumulative(64), 0.25)]:
        assert Dawa().plan(workload, AddRemove(64)).split == split
        assert Dawa(split=0.3).plan(workload, AddRemove(64)).split == 0.3
    assert Dawa().plan(Histogram(64), AddRemove(64)).explain().startswith("50% of the budget")


@pytest.mark.parametrize(("candidates", "lengths"), [("all", 300), ("powers of two", 9), (None, 9)])
@pytest.mark.parametrize("fanout", [2, 7])
def test_candidates_and_fan_out_are_what_was_asked_for(candidates, lengths, fanout):
    x = np.repeat([4, 40, 11], 100)
    plan = Dawa(candidates=candidates, fanout=fanout).plan(AllRanges(300), AddRemove(300))
    assert len(plan.candidates.lengths) == lengths
    answers = plan.release(x, epsilon=10**4, noise=noise.seeded(1))
    np.testing.assert_allclose(answers, AllRanges(300).answer(x), rtol=0.01, atol=0.2)


def test_half_of_epsilon_on_buckets_is_closer_for_histograms():
    x = np.repeat([0, 50, 3, 120, 7, 90], [60, 90, 200, 70, 30, 62])
    errors = {
        split: np.mean(
            [
                (
                    Dawa(split=split)
                    .plan(Histogram(512), AddRemove(512))
                    .release(x, epsilon="0.05", noise=noise.seeded(seed))
                    - x
                )
                ** 2
                for seed in range(20)
            ]
        )
        for split in (None, 0.25)
    }
    assert errors[None] < 0.9 * errors[0.25]


def test_refusals():
    with pytest.raises(InvalidInput, match="powers of two"):
        Dawa(candidates="some")
    with pytest.raises(InvalidWorkload, match="two children"):
        Dawa(fanout=1)
    with pytest.raises(TooLarge, match="powers of two"):
        Dawa(candidates="all").plan(Histogram(3_000), AddRemove(3_000))
    with pytest.raises(SizeMismatch):
        Dawa().plan(Histogram(4), AddRemove(5))
    with pytest.raises(InvalidEpsilon):
        Dawa(split=1.0)
    with pytest.raises(NoGuarantee):
        Dawa().plan(Histogram(4), AddRemove(4)).alpha_for(epsilon=1, beta=0.05)
    exact = Dawa().plan(Histogram(4), Explicit(4, ())).release([1, 2, 3, 4], epsilon=1, noise=noise.seeded(0))
    np.testing.assert_array_equal(exact, [1, 2, 3, 4])
