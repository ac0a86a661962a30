"""DAWA's first stage, audited exactly: every neighbouring pair of a list, every partition, both policies."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.mechanisms.dawa.partition import Candidates, Penalty, Ranked, deviations, private_partition
from tests.mechanisms.partition_laws import Calibration, log_ratios, partition_law

EPSILON = Fraction(4)
CANDIDATES = {3: Candidates.all(3), 4: Candidates.powers_of_two(4)}


def proven(size, epsilon):
    """The scales that the code draws with, in units, and a penalty of one record."""
    candidates = CANDIDATES[size]
    scales = tuple((length, candidates.scale(length, epsilon)) for length in candidates.lengths)
    return Calibration(scales, candidates.units, candidates.units)


def published(size, epsilon):
    """As the code behind the paper: (2 + Δ_b)/2 on the whole deviation, none on cells, clipped at zero."""
    candidates = CANDIDATES[size]
    scales = tuple(
        (length, (1 + Fraction(length - 1, length)) * candidates.units / epsilon)
        for length in candidates.lengths[1:]
    )
    return Calibration(((1, Fraction(0)), *scales), candidates.units, candidates.units, clipped=True)


def more(x, cell, by=1):
    return tuple(count + by * (i == cell) for i, count in enumerate(x))


def add_remove(size):
    """Every database with at most two records a cell, beside the same with one record more."""
    return [(x, more(x, cell)) for x in itertools.product(range(3), repeat=size) for cell in range(size)]


def moves(size, edges):
    """Every database with at most two records a cell, beside the same after one record moved."""
    found = []
    for x in itertools.product(range(3), repeat=size):
        for u, v in edges:
            found += [(x, more(more(x, a, -1), b)) for a, b in ((u, v), (v, u)) if x[a] > 0]
    return found


def worst(pairs, calibration):
    return [max(log_ratios(x, y, calibration).values()) for x, y in pairs]


@pytest.mark.parametrize("size", [3, 4])
def test_the_exact_law_is_that_of_the_code(size):
    x, calibration, runs = (0, 2, 1, 0)[:size], proven(size, EPSILON), 2_000
    law = partition_law(x, calibration)
    assert sum(law.values()) == pytest.approx(1, abs=1e-7)
    seen, source = dict.fromkeys(law, 0), noise.seeded(3)
    for _ in range(runs):
        buckets = private_partition(
            np.array(x), CANDIDATES[size], Penalty(Fraction(1), Fraction(0)), EPSILON, Fraction(1), source
        )
        seen[tuple(np.diff(buckets, append=size).tolist())] += 1
    for buckets, probability in law.items():
        deviation = (probability * (1 - probability) / runs) ** 0.5
        assert abs(seen[buckets] / runs - probability) < 4.5 * deviation


@pytest.mark.parametrize("size", [3, 4])
def test_every_pair_under_add_remove(size):
    losses = worst(add_remove(size), proven(size, EPSILON))
    assert 0.3 * EPSILON < max(losses) <= EPSILON + Fraction(1, 10**5)


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize("policy", ["line", "replace-one"])
def test_every_pair_under_policies_that_pay_twice(size, policy):
    """A move is one record less and one more: at ε₁/2 each it costs at most ε₁, and without that more."""
    all_pairs = list(itertools.combinations(range(size), 2))
    edges = [(u, v) for u, v in all_pairs if policy == "replace-one" or v == u + 1]
    neighbours = moves(size, edges)
    assert max(worst(neighbours, proven(size, EPSILON / 2))) <= EPSILON + Fraction(1, 10**5)


@pytest.mark.parametrize("size", [3, 4])
def test_the_published_calibration_fails_on_many_pairs(size):
    losses = worst(add_remove(size), published(size, EPSILON))
    assert sum(loss > EPSILON + 0.01 for loss in losses) > 1


def test_a_third_of_the_noise_fails_the_same_audit():
    assert max(worst(add_remove(3), proven(3, 3 * EPSILON))) > EPSILON


# --- every interval of four cells, which is what the mechanism takes there: a million runs each -----

RUNS = 10**6
PARTITIONS = sorted(
    (p for k in range(1, 5) for p in itertools.product(range(1, 5), repeat=k) if sum(p) == 4),
    key=lambda lengths: lengths[::-1],  # of equally cheap ones the shortest last bucket wins
)


def sampled_losses(x, y, calibration, seed):
    """ln P(B | x)/P(B | y) for every partition B of either, each less four standard errors."""
    counts = np.array([_winners(cells, calibration, seed + i) for i, cells in enumerate((x, y))], dtype=float)
    seen = (counts > 100).all(axis=0)
    here, there = counts[:, seen]
    return np.abs(np.log(here / there)) - 4 * np.sqrt(1 / here + 1 / there)


def _winners(x, calibration, seed):
    source, scales = noise.seeded(seed), dict(calibration.scales)
    costs = {}
    for length in range(1, 5):
        for start, deviation in enumerate(deviations(Ranked(np.array(x)), length, calibration.units)):
            drawn = source.discrete_laplace(scales[length], RUNS) if scales[length] else 0
            noisy = deviation + drawn
            costs[length, start] = (
                np.maximum(noisy, 0) if calibration.clipped else noisy
            ) + calibration.penalty
    totals = [
        sum(costs[length, sum(lengths[:i])] for i, length in enumerate(lengths))
        + np.zeros(RUNS, dtype=np.int64)
        for lengths in PARTITIONS
    ]
    return np.bincount(np.argmin(totals, axis=0), minlength=len(PARTITIONS))


FOUR = Candidates.all(4)
ALL = tuple((length, FOUR.scale(length, EPSILON)) for length in FOUR.lengths)


@pytest.mark.thorough
def test_all_intervals_of_four_cells():
    """At most ε₁, and more than half of it on one pair: an audit that could find half the noise."""
    calibration = Calibration(ALL, FOUR.units, FOUR.units)
    pairs = [((0, 0, 0, 0), (0, 1, 0, 0)), ((0, 2, 1, 0), (0, 2, 2, 0))]
    losses = [sampled_losses(x, y, calibration, 5).max() for x, y in pairs]
    assert EPSILON / 2 < max(losses) <= EPSILON
