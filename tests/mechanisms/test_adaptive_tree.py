"""The adaptive tree: every cell pays exactly ε on every transcript, and the answers decide what is asked."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import InvalidEpsilon, NoGuarantee, NotProven, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Apex, Cone, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.graphs import Product as ProductGraph
from blowfishdb.core.workloads import (
    AllRanges,
    Cumulative,
    Histogram,
    Marginals,
    Product,
    Ranges,
    Rectangles,
    Selected,
)
from blowfishdb.mechanisms.adaptive import tree as adaptive_tree
from blowfishdb.mechanisms.adaptive.forest import Estimates, Forest, Nodes, Noisy, downwards
from blowfishdb.mechanisms.adaptive.tree import AdaptiveTree, PublicTree, descend, line_levels
from blowfishdb.mechanisms.hierarchical import Hierarchical
from tests.mechanisms.transcripts import (
    OffTranscript,
    Recorded,
    Replayed,
    heavy_tailed,
    recorded,
    replayed,
    spent,
    worst_log_ratio,
)

LINES = [1, 2, 3, 17, 100, 500, 4096]
SHAPES = [(1, 1), (1, 9), (2, 3), (17, 5), (64, 64), (256, 3), (100, 100)]


def box(shape):
    return Rectangles(shape, [[0, 0]], [[n - 1 for n in shape]])


PROBLEMS = [(Cumulative(n), AddRemove(n)) for n in LINES] + [
    (box(shape), AddRemove(shape[0] * shape[1])) for shape in SHAPES
]


@pytest.mark.parametrize(("workload", "graph"), PROBLEMS, ids=lambda part: part.describe())
def test_every_cell_pays_exactly_epsilon_and_a_neighbour_is_asked_the_same(workload, graph, monkeypatch):
    plan, stream = AdaptiveTree().plan(workload, graph), np.random.default_rng(workload.size)
    for seed in range(12):
        epsilon = Epsilon.from_nano(int(10 ** stream.uniform(5, 10)) + seed)
        x = heavy_tailed(stream, workload.size, 8 / float(epsilon))
        cells, transcript = recorded(adaptive_tree, monkeypatch, plan, x, epsilon, seed)
        paid = spent(transcript, workload.size)
        assert {Fraction(int(nano), NANO) for nano in np.unique(paid)} == {epsilon.fraction}
        neighbour = x.copy()
        neighbour[stream.integers(workload.size)] += 1
        again = replayed(adaptive_tree, monkeypatch, plan, neighbour, epsilon, transcript)
        assert np.array_equal(cells, again)
        assert cells.shape == x.shape
        assert (cells >= 0).all()


def test_runs_differ_in_what_they_ask(monkeypatch):
    """Otherwise the audit above would say nothing about adaptivity."""
    plan, stream = AdaptiveTree().plan(Cumulative(4096), AddRemove(4096)), np.random.default_rng(1)
    asked = set()
    for seed in range(5):
        x = heavy_tailed(stream, 4096, 80)
        _, transcript = recorded(adaptive_tree, monkeypatch, plan, x, Epsilon("0.1"), seed)
        asked.add(sum(exchange.starts.size for exchange in transcript))
    assert len(asked) > 1


def test_a_group_that_does_not_pay_less_fails_the_audit(monkeypatch):
    honest = Forest.add_groups

    def generous(self, runs, parents, item, big, left):
        return honest(self, runs, parents, item, big, left + 1)

    monkeypatch.setattr(Forest, "add_groups", generous)
    plan = AdaptiveTree().plan(Cumulative(4096), AddRemove(4096))
    _, transcript = recorded(
        adaptive_tree, monkeypatch, plan, np.zeros(4096, np.int64), Epsilon("0.1"), seed=1
    )
    assert spent(transcript, 4096).max() == Epsilon("0.1").nano + 1


def test_a_run_that_peeks_fails_the_audit(monkeypatch):
    plan = AdaptiveTree().plan(Cumulative(300), AddRemove(300))
    x = np.zeros(300, np.int64)
    _, transcript = recorded(adaptive_tree, monkeypatch, plan, x, Epsilon("1"), seed=1)
    other = AdaptiveTree().plan(Cumulative(301), AddRemove(301))
    with pytest.raises(OffTranscript):
        other.estimate_through(Replayed(transcript), None, epsilon=Epsilon("1"))


def outcomes(x, nano, runs, seed):
    """What leaves a tree of two levels over four cells: the questions, and which answers are above one."""
    tree = PublicTree(line_levels(4, 4, 2, 2), (1, 1), (1, 1))
    source, found = noise.seeded(seed), []
    for _ in range(runs):
        run = Recorded(Noisy(x, source))
        descend(tree, np.array([nano]), run)
        found.append(
            tuple(
                (*map(int, exchange.starts), *(int(y) > 1 for y in exchange.answers))
                for exchange in run.transcript
            )
        )
    return found


def test_the_law_of_a_transcript_changes_by_at_most_e_to_the_epsilon():
    here, there = np.array([2, 0, 1, 0]), np.array([2, 1, 1, 0])
    honest = worst_log_ratio(outcomes(here, NANO, 1500, 1), outcomes(there, NANO, 1500, 2))
    assert 0.2 < honest <= 1
    overspent = worst_log_ratio(outcomes(here, 4 * NANO, 1500, 3), outcomes(there, 4 * NANO, 1500, 4))
    assert overspent > 1


@pytest.mark.parametrize(
    ("workload", "graph"),
    [
        (AllRanges(40), Full(40)),
        (Histogram(200), Threshold(200, 3)),
        (Cumulative(9), Partitioned([0, 0, 0, 1, 1, 1, 2, 2, 2])),
        (box((9, 12)), ProductGraph(Full(9), Threshold(12, 2))),
        (Marginals((6, 7), [[0], [1]]), Grid((6, 7), 2)),
        (Product(Cumulative(5), Histogram(4)), Full(20)),
    ],
)
def test_where_records_move_every_cell_pays_half_and_the_total_is_exact(workload, graph, monkeypatch):
    plan, epsilon = AdaptiveTree().plan(workload, graph), Epsilon("0.3")
    assert "ε/2" in plan.explain()
    x = heavy_tailed(np.random.default_rng(5), workload.size, 50)
    cells, transcript = recorded(adaptive_tree, monkeypatch, plan, x, epsilon, seed=2)
    assert set(spent(transcript, workload.size)) == {epsilon.nano // 2}
    assert cells.sum() == pytest.approx(x.sum())


@pytest.mark.parametrize("workload", [Cumulative(300), box((20, 30)), Histogram(1), Ranges(7, [1], [3])])
def test_without_noise_to_speak_of_the_answers_are_true(workload):
    plan = AdaptiveTree().plan(workload, AddRemove(workload.size))
    x = np.random.default_rng(3).integers(0, 50, workload.size)
    answers = plan.release(x, epsilon=3000, noise=noise.seeded(1))
    assert answers == pytest.approx(workload.answer(x), abs=1e-6)


def test_ranges_on_sparse_data_beat_a_hierarchy():
    size, stream = 4096, np.random.default_rng(11)
    x = np.zeros(size, np.int64)
    x[stream.choice(size, 60, replace=False)] = stream.pareto(0.8, 60) * 100
    ends = np.sort(stream.integers(0, size, (500, 2)), axis=1)
    ranges = Ranges(size, ends[:, 0], ends[:, 1])
    ours, theirs = (
        np.mean(
            [
                np.abs(plan.release(x, epsilon=0.1, noise=noise.seeded(seed)) - ranges.answer(x)).mean()
                for seed in range(5)
            ]
        )
        for plan in (
            AdaptiveTree().plan(ranges, AddRemove(size)),
            Hierarchical(fanout=16).plan(ranges, AddRemove(size)),
        )
    )
    assert ours < 0.6 * theirs


def test_a_family_shares_out_its_total_at_the_nearest_point():
    """Against the conditions that the nearest point of a simplex satisfies, and nothing else does."""
    stream = np.random.default_rng(2)
    for _ in range(50):
        count = int(stream.integers(1, 12))
        estimates, spread = stream.normal(0, 20, count), stream.uniform(0.5, 4, count)
        total = float(stream.uniform(0.1, 60))
        ids = np.arange(count + 1)
        starts, stops = np.append(0, ids[:-1]), np.append(count, ids[1:])
        parent = np.append(-1, np.zeros(count, np.int64)).astype(np.int64)
        nodes = Nodes(starts, stops, parent, np.zeros(count + 1), np.zeros(count + 1))
        family = Estimates(nodes, np.append(0.0, estimates), np.append(np.inf, spread))
        cells = downwards(family, np.array([total]))
        assert cells.sum() == pytest.approx(total)
        levels = (estimates - cells) / spread
        inside = cells > 0
        assert np.ptp(levels[inside]) == pytest.approx(0, abs=1e-9)
        assert (levels[~inside] <= levels[inside].max() + 1e-9).all()


@pytest.mark.parametrize(
    ("workload", "graph"),
    [
        (Cumulative(5), Threshold(5, 2).hide_presence()),
        (Cumulative(5), Full(5).hide_presence()),
        (Cumulative(5), Cone(Explicit(5, ()), Apex.OUTSIDE)),
        (Marginals((3, 4, 5), [[0, 1], [2]]), AddRemove(60)),
    ],
)
def test_what_is_not_proven_or_not_made_for_it_is_refused(workload, graph):
    with pytest.raises(NotProven):
        AdaptiveTree().plan(workload, graph)


def test_edges_of_its_use():
    with pytest.raises(SizeMismatch):
        AdaptiveTree().plan(Cumulative(5), AddRemove(6))
    plan = AdaptiveTree().plan(Selected(Histogram(2), [0, -1, 1, 1]), AddRemove(4))
    assert plan.release([1, 2, 3, 4], epsilon=1, noise=noise.seeded(1)).shape == (2,)
    with pytest.raises(InvalidEpsilon, match="too small"):
        plan.release([1, 2, 3, 4], epsilon="0.00000005", noise=noise.seeded(1))
    with pytest.raises(NoGuarantee):
        plan.alpha_for(epsilon=1, beta=0.05)
