"""DAWA's first stage, audited exactly: every neighbouring pair of a list, every partition, both policies."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.mechanisms.dawa.partition import Candidates, Penalty, private_partition
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
