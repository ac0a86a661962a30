"""Mechanisms that look at the data, on the edges of a policy: what every hidden move costs, edge by edge."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import InvalidEpsilon, NoGuarantee, NotProven
from blowfishdb.core.graphs import Banded, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram
from blowfishdb.mechanisms import (
    Adaptive,
    AdaptiveTree,
    Best,
    Dawa,
    DawaTransformed,
    Laplace,
    MatchingTransformed,
    OrderedDenoised,
    PolicyTree,
)
from blowfishdb.mechanisms import dawa as dawa_module
from blowfishdb.mechanisms.adaptive import tree as adaptive_tree
from blowfishdb.mechanisms.dawa.partition import Candidates
from blowfishdb.mechanisms.transformed import Transformed, TransformedEstimate
from tests.mechanisms.partition_laws import Calibration, log_ratios
from tests.mechanisms.transcripts import heavy_tailed, recorded, replayed

FORESTS = [
    Threshold(9, 1),
    Explicit(9, [(0, 4), (1, 4), (2, 4), (4, 5), (5, 6), (6, 8), (6, 7), (3, 5)]),
    Explicit(9, [(0, 8), (1, 8), (2, 3)]),
    Partitioned([0, 0, 1, 2, 2, 3, 4, 4, 1]),
]
CYCLIC = [Threshold(9, 3), Full(9), Banded([2, 3, 3, 3, 6, 6, 6, 8, 8]), Grid((3, 3), 1)]
HIDDEN = [Threshold(9, 1).hide_presence(), Explicit(9, [(0, 4)]).hide_presence()]
INNER = [Dawa(), AdaptiveTree(), DawaTransformed(), MatchingTransformed()]


def moved(x, u, v):
    """``x`` after one record went from v to u; a vertex beyond the cells counts nobody."""
    after = x.copy()
    for vertex, sign in ((u, 1), (v, -1)):
        if vertex < after.size:
            after[vertex] += sign
    return after


@pytest.mark.parametrize("graph", FORESTS + CYCLIC + HIDDEN, ids=lambda graph: graph.describe())
def test_what_a_run_asked_costs_at_most_epsilon_on_every_edge(graph, monkeypatch):
    """The rates of the questions times how much a move changes them; the neighbour is asked the same."""
    plan = Transformed(AdaptiveTree(), spanning=True).plan(Cumulative(9), graph)
    stream, worst = np.random.default_rng(4), Fraction(0)
    for seed in range(3):
        epsilon = Epsilon.from_nano(int(10 ** stream.uniform(7, 9.5)))
        x = heavy_tailed(stream, 9, 8 / float(epsilon)) + 1
        cells, transcript = recorded(adaptive_tree, monkeypatch, plan, x, epsilon, seed)
        for u, v in graph.edges().tolist():
            change = plan.forest.subtree_sums(moved(x, u, v)) - plan.forest.subtree_sums(x)
            below = np.concatenate(([0], np.cumsum(change)))
            loss = sum(
                int((np.abs(below[asked.stops] - below[asked.starts]) * asked.rates).sum())
                for asked in transcript
            )
            worst = max(worst, Fraction(loss, NANO) / epsilon.fraction)
            again = replayed(adaptive_tree, monkeypatch, plan, moved(x, u, v), epsilon, transcript)
            np.testing.assert_array_equal(again, cells)
    assert Fraction(1, 4) < worst <= 1
    assert worst > Fraction(99, 100) or plan.stretch > 1


@pytest.mark.parametrize(
    ("graph", "stretch"),
    [
        (Threshold(4, 1), 1),
        (Explicit(4, [(0, 1), (1, 2), (1, 3)]), 1),
        (Explicit(4, [(i, (i + 1) % 4) for i in range(4)]), 3),
        (Full(4), 2),
    ],
    ids=lambda part: part if isinstance(part, int) else part.describe(),
)
def test_the_law_of_dawas_buckets_over_all_edges(graph, stretch):
    """Exactly, for every database of at most two records a cell: ε₁ divided by the stretch costs ε₁."""
    epsilon, candidates = Fraction(4), Candidates.all(3)
    plan = Transformed(Dawa(), spanning=True).plan(Histogram(4), graph)
    assert plan.stretch == stretch

    def worst(share):
        scales = tuple((length, candidates.scale(length, share)) for length in candidates.lengths)
        calibration = Calibration(scales, candidates.units, candidates.units)
        losses = []
        for x in itertools.product(range(3), repeat=4):
            for u, v in graph.edges().tolist():
                for here, there in ((u, v), (v, u)):
                    if x[there]:
                        sums = [
                            tuple(plan.forest.subtree_sums(np.array(counts)).tolist())
                            for counts in (x, moved(np.array(x), here, there))
                        ]
                        losses.append(max(log_ratios(*sums, calibration).values()))
        return max(losses)

    assert worst(epsilon / stretch) <= epsilon + Fraction(1, 10**5)
    assert worst(4 * epsilon) > epsilon  # the audit can fail


@pytest.mark.parametrize("graph", [Threshold(9, 1), Full(9)])
def test_the_inner_mechanism_gets_subtree_sums_and_its_share_of_epsilon(graph, monkeypatch):
    seen = {}
    partition = dawa_module.private_partition

    def watched(x, candidates, penalty, first, second, source):
        seen.update(x=x, spent=first + second)
        return partition(x, candidates, penalty, first, second, source)

    monkeypatch.setattr(dawa_module, "private_partition", watched)
    plan, x = Transformed(Dawa(), spanning=True).plan(Histogram(9), graph), np.arange(9)
    plan.release(x, epsilon="0.7", noise=noise.seeded(1))
    np.testing.assert_array_equal(seen["x"], plan.forest.subtree_sums(x))
    assert seen["spent"] == Fraction(7, 10) / plan.stretch


@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("graph", FORESTS + CYCLIC + HIDDEN, ids=lambda graph: graph.describe())
def test_with_a_large_budget_answers_are_true_and_public_totals_always(graph, inner):
    x = np.random.default_rng(2).integers(0, 50, 9)
    for workload in (Cumulative(9), Histogram(9), AllRanges(9)):
        plan = Transformed(inner, spanning=True).plan(workload, graph)
        assert isinstance(plan, TransformedEstimate)
        assert plan.name == f"Transformed: {plan.inner.name}"
        close = plan.release(x, epsilon=10**5, noise=noise.seeded(3))
        np.testing.assert_allclose(close, workload.answer(x), atol=0.01)
        seen = plan.observe(x, epsilon="0.01", noise=noise.seeded(3)).answers
        np.testing.assert_array_equal(seen[plan.exact], workload.answer(x)[plan.exact])
    components = graph.components().assignment()
    if not graph.absent:
        cells = plan.estimate(x, epsilon=Epsilon("0.01"), noise=noise.seeded(3))
        np.testing.assert_allclose(np.bincount(components, cells), np.bincount(components, x), atol=1e-6)


def test_no_accuracy_is_promised_and_a_cycle_needs_consent():
    plan = Transformed(Dawa()).plan(Cumulative(9), Threshold(9, 1))
    with pytest.raises(NoGuarantee):
        plan.epsilon_for(alpha=5, beta=0.05)
    with pytest.raises(NotProven, match="cycles"):
        Transformed(Dawa()).plan(Cumulative(9), Threshold(9, 2))
    assert "below one edge" in plan.explain()
    spanning = Transformed(Dawa(), spanning=True).plan(Cumulative(9), Threshold(9, 2))
    assert "up to 3 edges" in spanning.explain()


def test_an_epsilon_that_cannot_be_divided_is_refused():
    plan = Transformed(Dawa(), spanning=True).plan(Cumulative(9), Threshold(9, 3))
    with pytest.raises(InvalidEpsilon, match="3 steps"):
        plan.release(np.arange(9), epsilon="0.000000002", noise=noise.seeded(1))


@pytest.mark.parametrize("inner", [OrderedDenoised(), PolicyTree()])
def test_what_needs_a_public_total_is_refused_when_planning_and_works_by_itself(inner):
    workload, graph = Cumulative(9), Threshold(9, 2)
    with pytest.raises(NotProven, match="no public total") as refusal:
        Transformed(inner, spanning=True).plan(workload, graph)
    name = type(inner).__name__
    assert f"use {name}() by itself" in str(refusal.value)
    answers = inner.plan(workload, graph).release(np.arange(9), epsilon=100, noise=noise.seeded(1))
    np.testing.assert_allclose(answers, np.cumsum(np.arange(9)), atol=1)


def test_a_choice_that_may_fall_on_either_kind_works_for_both():
    kinds = [
        Transformed(Adaptive()).plan(workload, Threshold(9, 1)) for workload in (Histogram(9), AllRanges(9))
    ]
    answers = [plan.release(np.arange(9), epsilon=10**5, noise=noise.seeded(1)) for plan in kinds]
    np.testing.assert_allclose(answers[0], np.arange(9), atol=0.01)
    np.testing.assert_allclose(answers[1], AllRanges(9).answer(np.arange(9)), atol=0.01)


def test_the_cheapest_promise_is_not_one_without_a_promise():
    best = Best((Transformed(Dawa()), Laplace(on="cells")))
    assert best.plan(Cumulative(9), Threshold(9, 1)).name == "Laplace on the cells"
