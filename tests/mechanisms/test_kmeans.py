"""k-means: every hidden move loses at most ε on every transcript, and an attacker gains no more than that."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from benchmarks.points import Points

from blowfishdb import noise
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import InvalidEpsilon, InvalidWorkload, NoGuarantee, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Explicit, Full, Grid, Partitioned, Product, Threshold
from blowfishdb.core.questions.clusters import FINE, Centroids, PointSpace
from blowfishdb.core.secret import Secret
from blowfishdb.mechanisms.kmeans import HistogramClusters, KMeans, Round, RoundClusters
from blowfishdb.mechanisms.kmeans import rounds as in_rounds
from blowfishdb.mechanisms.kmeans.clustering import (
    lloyd,
    not_negative,
    objective,
    spread_out,
    weighted_clusters,
)
from blowfishdb.mechanisms.kmeans.crossing import RoundChange, round_facts
from blowfishdb.mechanisms.kmeans.rounds import measured
from blowfishdb.mechanisms.plan import DataDependentPlan

LINE = PointSpace.cells(10)
CUT = Centroids(LINE, FINE * np.array([[2], [7]]))


class Watched:
    """Rows in memory, and the centroids that were asked about."""

    def __init__(self, space, cells):
        self.space, self.rows, self.asked = space, Points(space, cells), []

    def totals(self, centroids):
        self.asked.append(centroids)
        return self.rows.totals(centroids)

    def counts(self, bins):
        return self.rows.counts(bins)


class Noted:
    """Noise, with the scales that it was drawn at."""

    def __init__(self, seed):
        self.inner, self.scales = noise.seeded(seed), []

    def discrete_laplace(self, scale, size=None):
        self.scales.append((Fraction(scale), size))
        return self.inner.discrete_laplace(scale, size)


def losses(plan, cells, epsilon, seed):
    """What every edge loses on one transcript, exactly: Σ |change| / scale over all rounds.

    The centroids of a round follow from the noisy totals before it, so they are the same on a neighbour
    that gave the same noisy totals.
    """
    rows, drawn = Watched(plan.space, cells), Noted(seed)
    found = plan.release(rows, epsilon=epsilon, noise=drawn)
    scales, lost = iter(drawn.scales), {edge: Fraction(0) for edge in map(tuple, plan.graph.edges().tolist())}
    points = np.stack(np.unravel_index(np.arange(plan.space.size), plan.space.shape), axis=1)
    for centroids, charged in zip(rows.asked, found.rounds, strict=True):
        anchors = round_facts(centroids, plan.graph).anchors
        of_size = next(scales)[0] if charged.sizes else None
        of_sums = [next(scales)[0] for _ in plan.space.shape] if charged.sums else None
        labels = centroids.assign(points)
        tables = np.zeros((plan.graph.size, len(centroids), 1 + plan.space.axes), dtype=np.int64)
        every = np.arange(len(points))
        tables[every, labels, 0] = 1
        tables[every, labels, 1:] = points - anchors[labels]
        for edge in lost:
            change = np.abs(tables[edge[0]] - tables[edge[1]]).sum(axis=0)
            assert of_size is not None or change[0] == 0
            assert of_sums is not None or not change[1:].any()
            lost[edge] += change[0] / of_size if of_size else 0
            lost[edge] += sum(int(c) / s for c, s in zip(change[1:], of_sums, strict=True)) if of_sums else 0
    assert next(scales, None) is None
    return lost, found


POLICIES = [
    lambda shape: Full(math.prod(shape)),
    lambda shape: Grid(shape, 1),
    lambda shape: Grid(shape, 3),
    lambda shape: Product(*map(Full, shape), joint=False) if len(shape) > 1 else Full(shape[0]),
    lambda shape: Product(*(Threshold(n, 2) for n in shape)) if len(shape) > 1 else Threshold(shape[0], 2),
    lambda shape: Partitioned(np.arange(math.prod(shape)) // 3),
    lambda shape: AddRemove(math.prod(shape)),
    lambda shape: Grid(shape, 2).hide_presence(),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("weights", [(1, 1), (1, 3)])
def test_all_edges_of_transcripts(policy, weights):
    stream = np.random.default_rng(5)
    space = PointSpace((7, 4), weights)
    for seed in range(6):
        epsilon = Epsilon.from_nano(int(10 ** stream.uniform(6, 10)))
        plan = RoundClusters(
            space, policy(space.shape), int(stream.integers(1, 4)), int(stream.integers(1, 5))
        )
        cells = np.column_stack((stream.integers(0, 7, 60), stream.integers(0, 4, 60)))
        lost, found = losses(plan, cells, epsilon, seed)
        assert max(lost.values()) <= epsilon.fraction
        assert found.spent <= epsilon


def test_one_round_costs_exactly_epsilon_and_not_a_billionth_more():
    plan = RoundClusters(LINE, Threshold(10, 1), 2, 1)
    lost, found = losses(plan, np.arange(10)[:, None], Epsilon("0.7"), 1)
    assert max(lost.values()) == Fraction(7, 10)
    assert found.spent == Epsilon("0.7")


def test_the_published_calibration_fails_the_same_audit(monkeypatch):
    honest = in_rounds.round_facts

    def published(centroids, graph):
        facts = honest(centroids, graph)
        return replace(facts, change=RoundChange(2, 2 * graph.theta, exact=True))

    monkeypatch.setattr(in_rounds, "round_facts", published)
    plan = RoundClusters(LINE, Threshold(10, 1), 2, 1)
    lost, _ = losses(plan, np.arange(10)[:, None], Epsilon(1), 1)
    assert max(lost.values()) > Fraction(11, 10)


# --- an attack ----------------------------------------------------------------------------------


def guesses(facts, charged, runs=30_000):
    """How often an attacker says "it is at 5" when the record is at 5, and when it is at 4.

    The sums from zero of everyone else are known: 3 rows at 1 and 3 rows at 8. Moving the record from 4 to 5
    takes 4 from the first sum and gives 5 to the second.
    """
    everyone, stream, said = [[1]] * 3 + [[8]] * 3, noise.seeded(11), []
    for place in (5, 4):
        table = Points(LINE, [*everyone, [place]]).totals(CUT).reveal()
        many = np.repeat(table[None], runs, axis=0).reshape(2 * runs, 2)
        wide = replace(facts, anchors=np.zeros((2 * runs, 1), dtype=np.int64))
        _, sums = measured(many, wide, charged, LINE, stream)
        first, second = sums.reshape(runs, 2).T
        said.append(float(((first <= 3) & (second >= 24 + 5)).mean()))
    return said


def paid(sums_change):
    """A round that spends ε = 1 on the sums alone."""
    return Round(Epsilon(0), Epsilon(1), 0, sums_change)


def test_an_attacker_wins_against_the_published_calibration_and_not_against_ours():
    facts = replace(round_facts(CUT, Threshold(10, 1)), anchors=np.zeros((2, 1), dtype=np.int64))
    there, elsewhere = guesses(facts, paid(2 * 1))  # Lemma 6.1: 2θ
    assert there > 3 * math.e * elsewhere
    there, elsewhere = guesses(facts, paid(9))
    assert there <= 1.1 * math.e * elsewhere
    assert there > 1.5 * elsewhere  # the attack does something: more than e would be too much


# --- accounting ---------------------------------------------------------------------------------


@pytest.mark.parametrize("iterations", [1, 3, 7])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "0.123456789"])
def test_rounds_add_up_to_exactly_epsilon(iterations, epsilon):
    cells = np.random.default_rng(1).integers(0, 10, (100, 1))
    plan = RoundClusters(LINE, Full(10), 3, iterations)
    found = plan.release(Points(LINE, cells), epsilon=epsilon, noise=noise.seeded(2))
    charged = sum((each.sizes + each.sums for each in found.rounds), Epsilon(0))
    assert charged == found.spent == Epsilon(epsilon)
    assert len(found.rounds) == iterations == plan.steps
    assert not found.exact


def test_exact_sizes_leave_their_share_to_the_sums():
    plan = RoundClusters(LINE, Partitioned(Bins.width(10, 5)), 2, 1)
    found = plan.release(Points(LINE, [[1], [8], [9]]), epsilon=1, noise=noise.seeded(2))
    (only,) = found.rounds
    assert (only.sizes, only.sums, only.size_change) == (Epsilon(0), Epsilon(1), 0)
    assert sorted(found.sizes) == [1, 2]


@pytest.mark.parametrize("graph", [Explicit(100, ()), Partitioned(np.arange(100))])
def test_exact_where_no_hidden_move_changes_anything(graph):
    space = PointSpace.cells(100)
    cells = np.concatenate((np.arange(5, 15), np.arange(60, 90)))[:, None]
    plan = KMeans(2, iterations=20).plan(space, graph, epsilon=1)
    found = plan.release(Points(space, cells), epsilon=1, noise=noise.seeded(1))
    assert plan.free and found.exact and found.spent == Epsilon(0)
    assert sorted(found.centroids.ravel()) == pytest.approx([9.5, 74.5])
    assert sorted(found.sizes) == [10, 30]
    assert all(each == Round(Epsilon(0), Epsilon(0), 0, 0) for each in found.rounds)


def test_no_draw_without_a_charge():
    drawn = Noted(1)
    RoundClusters(LINE, Explicit(10, ()), 2, 3).release(Points(LINE, [[1]]), epsilon=1, noise=drawn)
    assert drawn.scales == []


# --- the histogram ------------------------------------------------------------------------------


def blobs(seed=0, rows=30_000, side=64, axes=2):
    stream = np.random.default_rng(seed)
    centres = np.array([[0.2] * axes, [0.8] * axes, [0.2] + [0.8] * (axes - 1)]) * side
    cells = centres[stream.integers(0, 3, rows)] + stream.normal(0, side / 25, (rows, axes))
    return np.clip(np.rint(cells), 0, side - 1).astype(np.int64), centres


def gap(found, centres):
    return max(np.abs(found.centroids - centre).sum(axis=1).min() for centre in centres)


@pytest.mark.parametrize("method", ["rounds", "histogram"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_clusters_that_are_far_apart_are_found(method, axes):
    cells, centres = blobs(axes=axes)
    centres = centres[: 2 if axes == 1 else 3]
    space = PointSpace.cells(*(64,) * axes)
    for graph in (Full(space.size), Full(space.size).hide_presence()):
        plan = KMeans(3, method=method).plan(space, graph, epsilon=2, rows=len(cells))
        found = plan.release(Points(space, cells), epsilon=2, noise=noise.seeded(3))
        assert gap(found, centres) < 8
        assert found.sizes.sum() == pytest.approx(len(cells), rel=0.05)
        assert found.spent == Epsilon(2)


def test_all_of_epsilon_goes_to_one_histogram():
    cells, _ = blobs(rows=500)
    space, asked = PointSpace.cells(64, 64), []

    class Counting(Watched):
        def counts(self, bins):
            asked.append(tuple(each.count for each in bins))
            return super().counts(bins)

    plan = KMeans(3, method="histogram").plan(space, Full(space.size), epsilon=1, rows=500)
    rows = Counting(space, cells)
    found = plan.release(rows, epsilon=1, noise=noise.seeded(1))
    assert isinstance(plan, HistogramClusters) and isinstance(plan.inner, DataDependentPlan)
    assert asked == [plan.shape] and rows.asked == []
    assert [each.sizes for each in found.rounds] == [Epsilon(1)]


def test_parts_of_a_policy_are_exact_and_free():
    cells, centres = blobs(rows=2000)
    space = PointSpace.cells(64, 64)
    graph = Product(Partitioned(Bins.width(64, 4)), Partitioned(Bins.width(64, 4)))
    plan = KMeans(3, method="histogram").plan(space, graph, epsilon="0.01", rows=2000)
    found = plan.release(Points(space, cells), epsilon="0.01", noise=noise.seeded(1))
    assert plan.free and found.spent == Epsilon(0)
    assert found.sizes.sum() == 2000
    assert gap(found, centres) < 3
    assert not found.exact  # the counts are, the places inside the boxes are not


def test_more_columns_than_two_have_noise_on_every_box():
    plan = KMeans(4, method="histogram").plan(
        PointSpace.cells(256, 256, 256), Full(256**3), epsilon=1, rows=10**5
    )
    assert isinstance(plan, HistogramClusters)
    assert not isinstance(plan.inner, DataDependentPlan)
    assert math.prod(plan.shape) <= 2**16
    fewer = KMeans(4, method="histogram").plan(
        PointSpace.cells(256, 256, 256), Full(256**3), epsilon="0.01", rows=1000
    )
    assert math.prod(fewer.shape) < math.prod(plan.shape)


def test_counts_become_not_negative_and_keep_their_total():
    stream = np.random.default_rng(2)
    for _ in range(20):
        answers = stream.normal(0.5, 3, 40)
        tidy = not_negative(answers)
        assert (tidy >= 0).all()
        assert tidy.sum() == pytest.approx(max(0.0, answers.sum()))
        if answers.sum() > 0:  # the nearest such point: what is kept is shifted by one amount
            kept = tidy > 0
            assert np.ptp((answers - tidy)[kept]) < 1e-9
            assert (answers[~kept] <= (answers - tidy)[kept].max() + 1e-9).all()


# --- which of the two ---------------------------------------------------------------------------


def test_the_rule_sees_no_data_and_takes_the_smaller_excess():
    space = PointSpace.cells(64, 64)
    for graph in (Full(4096), Grid((64, 64), 5), Product(Full(64), Full(64), joint=False)):
        plans = [
            KMeans(4, method=m).plan(space, graph, epsilon=1, rows=5000) for m in ("rounds", "histogram")
        ]
        chosen = KMeans(4).plan(space, graph, epsilon=1, rows=5000)
        least = min(plans, key=lambda plan: plan.expected_excess(epsilon=1, rows=5000))
        assert type(chosen) is type(least)
        assert chosen.expected_excess(epsilon=1, rows=5000) == least.expected_excess(epsilon=1, rows=5000)
    assert isinstance(KMeans(4).plan(space, Full(4096), epsilon=1, rows=5000), HistogramClusters)


def test_rounds_win_where_moves_are_short_and_never_cross():
    space = PointSpace.cells(*(50,) * 4)
    graph = Product(*(Partitioned(Bins.width(50, 25)) for _ in range(4)), joint=False)
    assert isinstance(KMeans(1).plan(space, graph, epsilon=1, rows=1000), RoundClusters)


@pytest.mark.parametrize("width", [8, 16, 32])
def test_the_choice_under_a_partition_is_about_as_near_as_the_best_way(width):
    """The first borders may be those of the parts, so that rounds look free and are not."""
    stream, space = np.random.default_rng(3), PointSpace.cells(64, 64)
    towns = np.array([[8, 50], [14, 40], [50, 10], [30, 28]])[stream.integers(0, 4, 20_000)]
    cells = np.clip(towns + stream.normal(0, 3, towns.shape), 0, 63).astype(np.int64)
    graph = Product(*(Partitioned(Bins.width(64, width)) for _ in range(2)))

    def value(method):
        plan = KMeans(4, method=method).plan(space, graph, epsilon=1, rows=20_000)
        found = plan.release(Points(space, cells), epsilon=1, noise=noise.seeded(1))
        return objective(cells.astype(float), np.ones(20_000), found.centroids)

    assert value(None) <= 1.1 * min(value("rounds"), value("histogram"))


def test_parts_of_unequal_lengths_are_counted_exactly_where_they_are_many():
    space, bins = PointSpace.cells(64), Bins.edges(64, [0, 3, 7, 12, 20, 21, 30, 39, 50, 58])
    plan = KMeans(2).plan(space, Partitioned(bins), epsilon="0.01", rows=200)
    assert isinstance(plan, HistogramClusters)
    assert plan.free and plan.shape == (10,)


def test_the_choice_follows_what_happens_on_average():
    """Where the rule says histogram, the histogram is in fact nearer to the best clusters."""
    cells, _ = blobs(seed=4, rows=5000)
    space, values = PointSpace.cells(64, 64), None
    best = objective(
        cells.astype(float), np.ones(5000), lloyd(cells.astype(float), np.ones(5000), blobs()[1])
    )
    values = {}
    for method in ("rounds", "histogram"):
        plan, drawn = (
            KMeans(3, method=method).plan(space, Full(4096), epsilon="0.5", rows=5000),
            noise.seeded(6),
        )
        runs = [plan.release(Points(space, cells), epsilon="0.5", noise=drawn).centroids for _ in range(10)]
        values[method] = np.mean([objective(cells.astype(float), np.ones(5000), run) / best for run in runs])
    assert values["histogram"] < values["rounds"]
    assert values["histogram"] < 1.1


# --- the rest -----------------------------------------------------------------------------------


def test_the_start_is_public_and_spread_out():
    space = PointSpace.cells(100, 50)
    start = spread_out(space, 6)
    assert np.array_equal(start, spread_out(PointSpace.cells(100, 50), 6))
    apart = np.abs(start[:, None] - start[None]).sum(axis=2) + 1000 * np.eye(6)
    assert apart.min() > 20
    assert ((start >= 0) & (start <= space.last)).all()


def test_weighted_clusters_need_some_weight():
    start = np.array([[1.0], [2.0]])
    assert np.array_equal(weighted_clusters(np.array([[5.0]]), np.zeros(1), start), start)
    found = weighted_clusters(np.array([[0.0], [10.0], [11.0]]), np.array([4.0, 1.0, 1.0]), start)
    assert sorted(found.ravel()) == [0.0, 10.5]


def test_progress_is_told_after_every_round():
    told = []
    plan = RoundClusters(LINE, Full(10), 2, 4)
    plan.release(
        Points(LINE, [[1]]), epsilon=1, noise=noise.seeded(1), progress=lambda *step: told.append(step)
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]
    told.clear()
    one = KMeans(2, method="histogram").plan(LINE, Full(10), epsilon=1)
    one.release(
        Points(LINE, [[1]]), epsilon=1, noise=noise.seeded(1), progress=lambda *step: told.append(step)
    )
    assert told == [(1, 1)] and one.steps == 1


def test_plans_explain_themselves_and_promise_nothing():
    for method, word in (("rounds", "rounds"), ("histogram", "histogram")):
        plan = KMeans(2, method=method).plan(LINE, Threshold(10, 2), epsilon=1)
        assert word in plan.explain() and word in plan.name
        with pytest.raises(NoGuarantee):
            plan.epsilon_for(alpha=1, beta=0.05)
    assert "exact" in KMeans(2).plan(LINE, Explicit(10, ()), epsilon=1).explain()


def test_what_makes_no_sense_is_refused():
    for make in (
        lambda: KMeans(0),
        lambda: KMeans(65),
        lambda: KMeans(2, iterations=0),
        lambda: KMeans(2, iterations=1000),
        lambda: KMeans(2, method="magic"),
        lambda: KMeans(2.5),
    ):
        with pytest.raises(InvalidWorkload):
            make()
    with pytest.raises(SizeMismatch):
        KMeans(2).plan(LINE, Full(9), epsilon=1)
    with pytest.raises(InvalidEpsilon):
        KMeans(2).plan(LINE, Full(10), epsilon=0)
    with pytest.raises(InvalidEpsilon):
        plan = RoundClusters(LINE, Full(10), 2, 5)
        plan.release(Points(LINE, [[1]]), epsilon=Epsilon.from_nano(19), noise=noise.seeded(1))


def test_the_port_gives_secrets():
    rows = Points(LINE, [[1], [8]])
    assert isinstance(rows.totals(CUT), Secret) and isinstance(rows.counts((Bins.width(10, 5),)), Secret)


def test_a_cluster_that_may_be_empty_goes_beside_a_large_one():
    centroids = Centroids(LINE, FINE * np.array([[1], [4], [7]]))
    facts, cells = round_facts(centroids, Full(10)), centroids.cells
    sizes, empty = np.array([0, 3, 40]), np.array([True, False, False])
    placed = in_rounds.split_largest(cells, sizes, facts, empty)
    assert placed[1:].tolist() == cells[1:].tolist()
    assert facts.low[2] <= placed[0, 0] <= facts.high[2] and placed[0, 0] != cells[2, 0]
    nobody = in_rounds.split_largest(cells, sizes, facts, np.ones(3, dtype=bool))
    assert nobody.tolist() == cells.tolist()
