"""Matching: the brute-force optimum, the noise of the proof, an audit, and buckets after several rounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.accuracy import pmf
from blowfishdb.core.errors import InvalidEpsilon, InvalidInput, NotProven, TooLarge
from blowfishdb.core.graphs import AddRemove, Explicit, Full, Threshold
from blowfishdb.core.workloads import Histogram
from blowfishdb.mechanisms.dawa import matching
from blowfishdb.mechanisms.dawa.matching import MatchingTransformed, Pairing, matched


def partners(count):
    """Every way to pair some of ``count`` things."""
    if count == 0:
        yield ()
        return
    free = list(range(count))

    def extend(left, chosen):
        if not left:
            yield tuple(chosen)
            return
        head, *rest = left
        yield from extend(rest, chosen)
        for other in rest:
            yield from extend([r for r in rest if r != other], [*chosen, (head, other)])

    yield from extend(free, [])


def costs_of_all(singles, pairs, ties):
    """Every matching with its cost and the sum of its tie-breakers, cheapest first."""
    ends = [tuple(pair) for pair in np.transpose(np.triu_indices(len(singles), 1)).tolist()]
    cost, tie = (dict(zip(ends, numbers.tolist(), strict=True)) for numbers in (pairs, ties))
    found = []
    for chosen in partners(len(singles)):
        alone = set(range(len(singles))) - {end for pair in chosen for end in pair}
        total = sum(cost[pair] for pair in chosen) + sum(int(singles[i]) for i in alone)
        found.append((total, sum(tie[pair] for pair in chosen), chosen))
    return sorted(found)


@pytest.mark.parametrize("count", [2, 3, 6, 9, 10])
def test_the_matching_is_the_brute_force_optimum(count):
    stream = np.random.default_rng(count)
    for _ in range(3):
        singles = stream.integers(-20, 60, count)
        pairs = stream.integers(-20, 120, math.comb(count, 2))
        ties = stream.integers(1, 2**60, pairs.size, endpoint=True)
        pairing = Pairing.of(singles, pairs, ties)
        assert pairing.best() == set(costs_of_all(singles, pairs, ties)[0][2])
        assert pairing.only(pairing.best())


@pytest.mark.parametrize("count", [2, 4, 5, 7])
def test_only_one_best_matching_is_told_from_several(count):
    """Few different costs and tie-breakers, so that about half of the cases have several best matchings."""
    stream, seen = np.random.default_rng(count), set()
    for _ in range(60):
        singles, pairs = stream.integers(2, 5, count), stream.integers(0, 4, math.comb(count, 2))
        ties = stream.integers(1, 4, pairs.size)
        ranked = [found[:2] for found in costs_of_all(singles, pairs, ties)]
        pairing = Pairing.of(singles, pairs, ties)
        alone = ranked[0] != ranked[1]
        assert pairing.only(pairing.best()) == alone
        seen.add(alone)
    assert seen == {True, False} or count == 2


def test_a_pair_that_saves_nothing_is_not_joined():
    pairing = Pairing.of(np.ones(4, int), np.full(6, 2), np.ones(6, int))
    assert pairing.best() == set()
    assert pairing.only(set())


def test_the_largest_weights_that_are_allowed_are_matched_exactly():
    """2,048 buckets would be slow: only the shift and the factor of the second matching grow with them."""
    stream = np.random.default_rng(0)
    saved = 2**41 + stream.integers(0, 2, 15)
    ties = 2**60 - stream.integers(0, 1000, 15)
    small, large = (Pairing.of(np.full(6, 2**40), 2**41 - saved // scale, ties) for scale in (2**30, 1))
    grown = Pairing(2048, large.ends, [weight << 8 for weight in large.weights])
    assert max(grown.weights) * 1025 * 4 < 2**127
    assert grown.only(grown.best())
    assert len(small.best()) == len(grown.best()) == 3


class TiedAtFirst:
    """No noise; equal tie-breakers for the first draws, then different ones."""

    def __init__(self, equal):
        self.left, self.draws, self._bits = equal, 0, noise.seeded(5).bits
        self.bits = self

    def discrete_laplace(self, scale, size):
        self.draws += 1
        return np.zeros(size, dtype=np.int64)

    def words(self, count):
        self.left -= 1
        return np.full(count, 2**63, dtype=np.uint64) if self.left >= 0 else self._bits.words(count)


@pytest.mark.parametrize("tied", [0, 1, 3])
def test_where_several_are_best_everything_is_drawn_again(tied):
    source = TiedAtFirst(tied)
    labels = matched(np.full(12, 7), np.arange(12), 2, Fraction(1), Fraction(1, 8), source)
    np.testing.assert_array_equal(np.bincount(labels), np.full(6, 2))
    assert source.draws == 2 * (tied + 1)  # single cells and pairs, each time


class Recorded:
    """Adds nothing, remembers the scales that were asked for."""

    def __init__(self):
        self.asked = []
        self.bits = noise.seeded(0).bits

    def discrete_laplace(self, scale, size):
        self.asked.append((scale, size))
        return np.zeros(size, dtype=np.int64)


def test_first_round_noise_is_two_per_pair_and_one_per_cell():
    recorded, first = Recorded(), Fraction(1, 4)
    labels = matched(np.array([5, 90, 6, 91]), np.arange(4), 2, first, Fraction(3, 4), recorded)
    calibrated = first - Fraction(1, 2**38)  # drawing again costs at most 2^−38
    assert recorded.asked == [(1 / calibrated, 4), (2 / calibrated, 6)]
    np.testing.assert_array_equal(labels, [0, 1, 0, 1])


def test_later_rounds_use_the_sensitivity_of_what_is_joined():
    recorded, first = Recorded(), Fraction(1)
    labels = matched(
        np.array([5, 5, 5, 50, 5]), np.array([0, 0, 1, 2, 3]), 4, first, Fraction(1, 3), recorded
    )
    top = Fraction(3, 2)
    changes = {1: Fraction(0), 2: Fraction(1), 3: Fraction(4, 3)}
    calibrated = first - Fraction(1, 2**38)
    expected = [(6 * (top + changes[n]) / calibrated, size) for n, size in ((1, 3), (2, 1), (2, 3), (3, 3))]
    assert recorded.asked == expected
    assert labels[0] == labels[1]


# --- exact audit on three cells -----------------------------------------------------------------

REACH, EPSILON = 7, Fraction(4)  # e^−28 is left beyond


@cache
def choice_law(costs_of_pairs, single, pair, of_single=0):
    """P of all alone, and of each of the three pairs; noise of scales ``single`` and ``pair``.

    Given the noisy costs of the single cells, what the pairs save is independent. A pair that saves nothing
    is never joined; of pairs that save equally much the tie-breakers choose each as often.
    """
    grid = np.arange(-REACH, REACH + 1)
    costs = np.stack(np.meshgrid(grid, grid, grid, indexing="ij")).reshape(3, -1)
    weight = np.prod(pmf(costs, single), axis=0)
    certain = [
        costs[i] + costs[j] + 2 * of_single - cost
        for (i, j), cost in zip(PAIRS_OF_THREE, costs_of_pairs, strict=True)
    ]
    found = np.zeros(4)
    found[0] = weight @ np.prod([at_most(-s, pair) for s in certain], axis=0)
    for value in range(1, 6 * REACH):
        equal = [pmf(value - s, pair) for s in certain]
        below = [at_most(value - 1 - s, pair) for s in certain]
        for one in range(3):
            two, three = (one + 1) % 3, (one + 2) % 3
            wins = below[two] * below[three] + equal[two] * equal[three] / 3
            wins += (equal[two] * below[three] + below[two] * equal[three]) / 2
            found[one + 1] += weight @ (equal[one] * wins)
    return found


PAIRS_OF_THREE = ((0, 1), (0, 2), (1, 2))


def apart(x, penalty=0):
    """What every pair costs without noise."""
    return tuple(abs(x[i] - x[j]) + penalty for i, j in PAIRS_OF_THREE)


def at_most(m, scale):
    """P(Z ≤ m) of discrete Laplace noise."""
    q = math.exp(-1 / scale)
    return np.where(m >= 0, 1 - q ** np.maximum(m + 1, 0) / (1 + q), q ** np.maximum(-m, 0) / (1 + q))


def audited(factor):
    """The largest exact log-ratio over all neighbours with at most two records a cell, and all matchings."""
    single, pair = float(factor / EPSILON), float(2 * factor / EPSILON)
    worst = []
    for x in itertools.product(range(3), repeat=3):
        for cell in range(3):
            more = tuple(count + (i == cell) for i, count in enumerate(x))
            here, there = (choice_law(apart(y), single, pair) for y in (x, more))
            worst.append(float(np.abs(np.log(here / there)).max()))
    return worst


def test_audit_of_every_neighbouring_pair():
    assert 0.3 * EPSILON < max(audited(1)) <= EPSILON + Fraction(1, 10**6)
    assert sum(loss > EPSILON for loss in audited(Fraction(1, 2))) > 1


def test_the_audited_law_is_that_of_the_code():
    x, runs, second = (0, 2, 1), 2_000, Fraction(3, 2)
    of_single, of_pair = (round(Fraction(3, 2) / second + 2 * scale / EPSILON) for scale in (1, 2))
    law = choice_law(apart(x, of_pair), float(1 / EPSILON), float(2 / EPSILON), of_single)
    assert law.sum() == pytest.approx(1, abs=1e-9)
    seen, source = np.zeros(4), noise.seeded(1)
    for _ in range(runs):
        labels = matched(np.array(x), np.arange(3), 2, EPSILON, second, source).tolist()
        joined = [pair for pair in PAIRS_OF_THREE if labels[pair[0]] == labels[pair[1]]]
        seen[PAIRS_OF_THREE.index(joined[0]) + 1 if joined else 0] += 1
    assert (np.abs(seen / runs - law) < 4.5 * np.sqrt(law * (1 - law) / runs) + 1e-9).all()


def test_progress_is_reported():
    seen = []
    plan = MatchingTransformed(rounds=2, progress=lambda done, of: seen.append((done, of))).plan(
        Histogram(8), Full(8)
    )
    plan.release(np.arange(8), epsilon=1, noise=noise.seeded(1))
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("graph", [Threshold(40, 1), Full(40), AddRemove(40)])
@pytest.mark.parametrize("rounds", [1, 3])
def test_with_a_large_budget_like_cells_are_answered_exactly(graph, rounds):
    x = np.tile([3, 700, 40, 5000], 10)
    plan = MatchingTransformed(rounds=rounds).plan(Histogram(40), graph)
    answers = plan.release(x, epsilon=10**5, noise=noise.seeded(1))
    np.testing.assert_allclose(answers, x, atol=0.01)


def test_rounds_make_larger_buckets(monkeypatch):
    seen, x = [], np.tile([10, 2000], 32)
    released = matching.released_in_buckets

    def watched(workload, graph, counts, labels, *, epsilon, noise):
        seen.append(np.bincount(labels).max())
        return released(workload, graph, counts, labels, epsilon=epsilon, noise=noise)

    monkeypatch.setattr(matching, "released_in_buckets", watched)
    for rounds in (1, 2, 3):
        plan = MatchingTransformed(rounds=rounds).plan(Histogram(64), Threshold(64, 1))
        plan.release(x, epsilon=1, noise=noise.seeded(5))
    assert seen[0] == 2
    assert 2 < seen[1] <= 4
    assert 4 < seen[2] <= 8


def test_refusals(monkeypatch):
    with pytest.raises(TooLarge):
        MatchingTransformed().plan(Histogram(4096), Full(4096))
    with pytest.raises(InvalidInput):
        MatchingTransformed(rounds=0)
    plan = MatchingTransformed().plan(Histogram(4), Full(4))
    with pytest.raises(InvalidEpsilon, match="too small"):
        plan.release([1, 2, 3, 4], epsilon="0.000000003", noise=noise.seeded(0))
    with pytest.raises(TooLarge):
        plan.release([1, 2, 3, 2**50], epsilon=1, noise=noise.seeded(0))
    exact = MatchingTransformed().plan(Histogram(2), Explicit(2, ()))
    np.testing.assert_array_equal(exact.release([4, 5], epsilon=1, noise=noise.seeded(0)), [4, 5])
    monkeypatch.setitem(__import__("sys").modules, "rustworkx", None)
    with pytest.raises(NotProven, match="rustworkx"):
        MatchingTransformed().plan(Histogram(4), Full(4))


def test_it_says_what_it_pays():
    assert "twice" in MatchingTransformed().plan(Histogram(4), Full(4)).explain()
    assert "twice" not in MatchingTransformed().plan(Histogram(4), AddRemove(4)).explain()


def test_brute_force_lists_every_matching():
    assert sum(1 for _ in partners(6)) == sum(
        math.comb(6, 2 * pairs) * math.prod(range(1, 2 * pairs, 2)) for pairs in range(4)
    )
    assert len({frozenset(pairs) for pairs in itertools.chain(partners(5))}) == 26
