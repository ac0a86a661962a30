"""Matching: the brute-force optimum, the noise of the proof, an audit, and buckets after several rounds."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.errors import InvalidInput, NotProven, TooLarge
from blowfishdb.core.graphs import AddRemove, Explicit, Full, Threshold
from blowfishdb.core.workloads import Histogram
from blowfishdb.mechanisms import matching
from blowfishdb.mechanisms.matching import MatchingTransformed, least_pairs, matched


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


def brute_force(singles, table):
    def total(pairs):
        paired = {end for pair in pairs for end in pair}
        return sum(table[pair] for pair in pairs) + sum(s for i, s in enumerate(singles) if i not in paired)

    return min(map(total, partners(len(singles))))


@pytest.mark.parametrize("count", [2, 3, 6, 9, 10])
def test_the_matching_is_the_brute_force_optimum(count):
    stream = np.random.default_rng(count)
    for _ in range(4):
        singles = stream.integers(-20, 60, count)
        one, two = np.triu_indices(count, 1)
        pairs = stream.integers(-20, 120, one.size)
        table = {(int(i), int(j)): int(c) for i, j, c in zip(one, two, pairs, strict=True)}
        partner = least_pairs(singles, pairs, noise.seeded(1))
        np.testing.assert_array_equal(partner[partner], np.arange(count))
        found = sum(
            int(singles[i]) if partner[i] == i else table[i, int(partner[i])]
            for i in range(count)
            if partner[i] >= i
        )
        assert found == brute_force(singles.tolist(), table)


def test_ties_follow_one_fixed_order():
    """Where all costs are equal, nobody is paired; of equal ones the same pairs win, whatever the costs."""
    np.testing.assert_array_equal(least_pairs(np.ones(4, int), np.full(6, 2), noise.seeded(1)), np.arange(4))
    for shift in (0, 5, 1000):
        singles = np.full(4, 10 + shift)
        partner = least_pairs(singles, np.full(6, 2 * shift + 3), noise.seeded(shift))
        np.testing.assert_array_equal(partner, [3, 2, 1, 0])  # 2²+2³ < 2¹+2⁴ < 2⁰+2⁵


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
    assert recorded.asked == [(1 / first, 4), (2 / first, 6)]
    np.testing.assert_array_equal(labels, [0, 1, 0, 1])


def test_later_rounds_use_the_sensitivity_of_what_is_joined():
    recorded, first = Recorded(), Fraction(1)
    labels = matched(
        np.array([5, 5, 5, 50, 5]), np.array([0, 0, 1, 2, 3]), 4, first, Fraction(1, 3), recorded
    )
    top = Fraction(3, 2)
    changes = {1: Fraction(0), 2: Fraction(1), 3: Fraction(4, 3)}
    expected = [(6 * (top + changes[n]), size) for n, size in ((1, 3), (2, 1), (2, 3), (3, 3))]
    assert recorded.asked == expected
    assert labels[0] == labels[1]


def choices(x, first, runs, scale, seed):
    """How often three cells are left alone or paired, by a vectorised copy of the optimisation."""
    stream = np.random.default_rng(seed)

    def drawn(size):
        one, two = (np.floor(size * stream.exponential(size=runs)) for _ in range(2))
        return one - two

    singles = [drawn(scale / first) for _ in x]
    ends = [(0, 1), (0, 2), (1, 2)]
    pairs = [abs(x[i] - x[j]) + drawn(2 * scale / first) for i, j in ends]
    totals = [sum(singles)] + [
        pair + singles[({0, 1, 2} - set(two)).pop()] - 1 for pair, two in zip(pairs, ends, strict=True)
    ]
    return np.bincount(np.argmin(totals, axis=0), minlength=4) / runs


def audited(scale):
    worst, runs = 0.0, 500_000
    for x in ((0, 0, 1), (0, 1, 3)):
        for cell in (0, 2):
            more = list(x)
            more[cell] += 1
            here, there = choices(x, 1.0, runs, scale, 1), choices(more, 1.0, runs, scale, 2)
            margin = 4 * np.sqrt((1 / here + 1 / there) / runs)
            worst = max(worst, float((np.abs(np.log(here / there)) - margin).max()))
    return worst


def test_audit():
    assert audited(1.0) <= 1
    assert audited(0.25) > 1


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
