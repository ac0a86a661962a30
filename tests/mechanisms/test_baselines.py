"""The baselines' one contract: what each of them asks costs no cell more than ε, on every transcript."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from benchmarks.baselines import (
    HB,
    AdaptiveGrid,
    Ahp,
    DpCube,
    Efpa,
    GreedyH,
    HBGrid,
    HybridTree,
    Identity,
    Mwem,
    Php,
    Privelet,
    QuadTree,
    StructureFirst,
    Uniform,
    UniformGrid,
)
from benchmarks.baselines.asking import Asking, Ballot, Noisy, divided
from benchmarks.baselines.nested import Level, boxes, least_squares
from benchmarks.baselines.plan import Baseline
from benchmarks.baselines.trees import hb_fanout

from blowfishdb import noise
from blowfishdb.core.budget import NANO, Epsilon
from blowfishdb.core.errors import InvalidEpsilon, InvalidWorkload, NoGuarantee, NotProven, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Apex, Cone, Explicit, Full, Threshold
from blowfishdb.core.workloads import Cumulative, Histogram, Ranges, Rectangles, ValueSum
from blowfishdb.mechanisms.dawa.partition import Ranked, prefix_deviations
from tests.mechanisms.exactness import check_private, check_simulated
from tests.mechanisms.transcripts import heavy_tailed

pytestmark = pytest.mark.thorough  # what is compared with is not in the product

BOTH = [Uniform(), GreedyH(), Mwem(rounds=3), Php(), Ahp(), DpCube()]
LINE = [*BOTH, Efpa(), StructureFirst(places=40)]
GRID = [*BOTH, HBGrid(), QuadTree(), UniformGrid(), AdaptiveGrid(), HybridTree(switch=2)]
CHOOSING = [Mwem(rounds=2), Php(), Efpa()]


def line(size):
    ends = np.sort(np.random.default_rng(size).integers(0, size, (30, 2)), axis=1)
    return Ranges(size, ends[:, 0], ends[:, 1])


def rectangles(*shape):
    corners = np.random.default_rng(3).integers(0, shape, (30, 2, 2))
    return Rectangles(shape, corners.min(1), corners.max(1))


PROBLEMS = [(baseline, line(size)) for baseline in LINE for size in (1, 2, 37, 300)]
PROBLEMS += [(baseline, rectangles(*shape)) for baseline in GRID for shape in ((2, 3), (16, 16), (30, 11))]


class Recorded(Asking):
    """Real answers, with notes of what was asked, of what, and of the true scores."""

    def __init__(self, counts, source):
        self.counts_of_cells, self.inner, self.notes = counts, Noisy(counts, source), []

    def counts(self, labels, rates):
        answers = self.inner.counts(labels, rates)
        self.notes.append(("counts", labels, rates, answers))
        return answers

    def sums(self, rows, rate):
        answers = self.inner.sums(rows, rate)
        self.notes.append(("sums", rows, rate, answers))
        return answers

    def choose(self, ballots, rate):
        chosen = self.inner.choose(ballots, rate)
        scores = [ballot.scores(self.counts_of_cells[ballot.cells]) for ballot in ballots]
        self.notes.append(("choose", ballots, rate, chosen, scores))
        return chosen

    def spent(self):
        """What every cell paid: the rates of all questions that looked at it."""
        paid = np.zeros(self.counts_of_cells.size, dtype=np.int64)
        for kind, *note in self.notes:
            if kind == "counts":
                labels, rates, _ = note
                paid += np.where(labels >= 0, rates[np.maximum(labels, 0)], 0)
            elif kind == "sums":
                rows, rate, _ = note
                norms = np.abs(rows).sum(axis=0)
                paid += -(-norms * rate // norms.max())
            else:
                ballots, rate, _, _ = note
                cells = np.concatenate([ballot.cells for ballot in ballots]) if ballots else np.zeros(0, int)
                assert np.unique(cells).size == cells.size  # disjoint, so that each pays once
                paid[cells] += rate
        return paid


class Replayed(Asking):
    """The noted answers, given to a run on a neighbour; it must ask the same, and no score may move far."""

    def __init__(self, counts, notes):
        self.counts_of_cells, self.left = counts, list(reversed(notes))

    def counts(self, labels, rates):
        kind, noted, at, answers = self.left.pop()
        assert kind == "counts"
        assert np.array_equal(labels, noted)
        assert np.array_equal(rates, at)
        return answers

    def sums(self, rows, rate):
        kind, noted, at, answers = self.left.pop()
        assert kind == "sums"
        assert np.array_equal(rows, noted)
        assert rate == at
        return answers

    def choose(self, ballots, rate):
        kind, noted, at, chosen, scores = self.left.pop()
        assert kind == "choose"
        assert rate == at
        for ballot, other, before in zip(ballots, noted, scores, strict=True):
            assert np.array_equal(ballot.cells, other.cells)
            assert ballot.sensitivity == other.sensitivity
            after = ballot.scores(self.counts_of_cells[ballot.cells])
            assert np.abs(after - before).max() <= ballot.sensitivity
        return chosen


def name(part):
    return part.describe()[:40] if hasattr(part, "describe") else str(part)


@pytest.mark.parametrize(("baseline", "workload"), PROBLEMS, ids=name)
def test_no_cell_pays_more_than_epsilon_and_a_neighbour_is_asked_the_same(baseline, workload):
    plan, stream = baseline.plan(workload, AddRemove(workload.size)), np.random.default_rng(workload.size)
    for seed in range(4):
        epsilon = Epsilon.from_nano(int(10 ** stream.uniform(7, 10)) + seed)
        x = heavy_tailed(stream, workload.size, 8 / float(epsilon)) % 10**6
        run = Recorded(x, noise.seeded(seed))
        cells = plan.estimate_through(run, None, epsilon=epsilon)
        assert cells.shape == x.shape
        assert np.isfinite(cells).all()
        paid = run.spent()
        assert paid.max() <= epsilon.nano
        assert paid.min() > 0
        for _ in range(3):
            neighbour = x.copy()
            neighbour[stream.integers(workload.size)] += 1
            replay = Replayed(neighbour, run.notes)
            again = plan.estimate_through(replay, None, epsilon=epsilon)
            assert not replay.left
            assert np.array_equal(cells, again)


@pytest.mark.parametrize(
    "baseline", [GreedyH(), QuadTree(), HBGrid(), UniformGrid(), AdaptiveGrid()], ids=name
)
def test_nothing_of_the_budget_is_left_over(baseline):
    plan, epsilon = baseline.plan(rectangles(16, 16), AddRemove(256)), Epsilon("0.1")
    run = Recorded(np.full(256, 30), noise.seeded(1))
    plan.estimate_through(run, None, epsilon=epsilon)
    slack = epsilon.nano // 1000 if isinstance(baseline, GreedyH) else 0  # weights are rounded down
    assert run.spent().min() >= epsilon.nano - slack


def test_an_overspent_run_fails_the_audit():
    class Generous(Baseline):
        title, axes = "Generous", (1,)

        def reconstruct(self, problem, asking, budget):
            labels = np.arange(problem.size)
            return asking.counts(labels, np.full(problem.size, budget + 1)).astype(float)

        def describe(self):
            return "Too much"

    run = Recorded(np.zeros(5, np.int64), noise.seeded(0))
    Generous().plan(Histogram(5), AddRemove(5)).estimate_through(run, None, epsilon=Epsilon("1"))
    assert run.spent().max() == NANO + 1


def test_a_score_that_moves_too_far_fails_the_audit():
    ballot = Ballot(np.arange(3), lambda counts: 2 * counts, sensitivity=1)
    run = Recorded(np.array([1, 2, 3]), noise.seeded(0))
    run.choose([ballot], NANO)
    with pytest.raises(AssertionError):
        Replayed(np.array([2, 2, 3]), run.notes).choose([ballot], NANO)


def win_probabilities(scores, scale):
    """The exact chance of every option when each score gets discrete Laplace noise, ties to the first."""
    reach = np.arange(-int(60 * scale), int(60 * scale) + 1)
    q = np.exp(-1 / scale)
    law = (1 - q) / (1 + q) * q ** np.abs(reach)
    wins = []
    for i, own in enumerate(scores):
        chance = law.copy()
        for j, other in enumerate(scores):
            if j != i:
                bound = own + reach - other - (j < i)
                below = np.where(bound < 0, q ** (-bound) / (1 + q), 1 - q ** (bound + 1) / (1 + q))
                chance *= below
        wins.append(chance.sum())
    assert sum(wins) == pytest.approx(1)
    return np.array(wins)


def first_ballot(baseline, x):
    run = Recorded(x, noise.seeded(0))
    plan = baseline.plan(Ranges(x.size, [0, 1, 0], [0, 1, x.size - 1]), Full(x.size))
    plan.estimate_through(run, 4, epsilon=Epsilon("2"))
    return next((note[1][0], note[4][0]) for note in run.notes if note[0] == "choose")


@pytest.mark.parametrize("baseline", CHOOSING, ids=name)
def test_choices_on_all_small_inputs_change_by_at_most_e_to_the_epsilon(baseline):
    worst = {1: 0.0, 4: 0.0}
    for cells in itertools.product(range(3), repeat=3):
        ballot, scores = first_ballot(baseline, np.array(cells))
        for cell in range(3):
            more = np.array(cells)
            more[cell] += 1
            after = ballot.scores(more[ballot.cells])
            for factor, most in worst.items():  # the noise of the proof at ε = 1, and a fourth of it
                scale = 2 * ballot.sensitivity / factor
                here, there = win_probabilities(scores, scale), win_probabilities(after, scale)
                worst[factor] = max(most, np.abs(np.log(here / there)).max())
    assert 0.1 < worst[1] <= 1
    assert worst[4] > 1


@pytest.mark.parametrize("baseline", [*CHOOSING, StructureFirst(places=40)], ids=name)
def test_scores_of_huge_counts_move_no_further(baseline):
    x = np.random.default_rng(8).integers(2**29, 2**45, 300)
    plan = baseline.plan(line(300), AddRemove(300))
    run = Recorded(x, noise.seeded(3))
    plan.estimate_through(run, None, epsilon=Epsilon("0.5"))
    for cell in range(0, 300, 50):
        neighbour = x.copy()
        neighbour[cell] += 1
        plan.estimate_through(Replayed(neighbour, run.notes), None, epsilon=Epsilon("0.5"))


def test_choices_follow_the_scores_and_ties_go_to_the_first():
    asking = Noisy(np.array([0, 5, 9]), noise.seeded(2))
    by_count = Ballot(np.arange(3), lambda counts: counts, sensitivity=1)
    assert asking.choose([by_count], 1000 * NANO) == [2]
    same = Ballot(np.arange(3), np.zeros_like, sensitivity=1)
    assert asking.choose([same], 10**6 * NANO) == [0]
    ballots = [Ballot(np.array([cell]), lambda counts: np.append(counts, 4), cell + 1) for cell in range(3)]
    assert asking.choose(ballots, 1000 * NANO) == [1, 0, 0]
    assert asking.choose([], NANO) == []


def test_choices_are_as_random_as_the_noise_says():
    """Two options one apart: the chance that the difference of two noises exceeds it, by their exact law."""
    rate, scale, runs = NANO, 2.0, 4000
    asking = Noisy(np.array([0, 1]), noise.seeded(5))
    ballots = [Ballot(np.arange(2), lambda counts: counts, sensitivity=1)] * runs
    grid = np.arange(-80, 81)
    q = np.exp(-1 / scale)
    law = (1 - q) / (1 + q) * q ** np.abs(grid)
    wins = sum(law[i] * law[grid <= grid[i] + 0].sum() for i in range(grid.size))  # 1 + Z₁ > Z₀ iff Z₀ ≤ Z₁
    seen = np.mean(asking.choose(ballots, rate))
    assert abs(seen - wins) < 3 * np.sqrt(wins * (1 - wins) / runs)


@pytest.mark.parametrize(
    ("baseline", "workload"),
    [(b, rectangles(8, 8)) for b in (*GRID[4:], GreedyH())]
    + [(b, line(48)) for b in (Php(), GreedyH(), Ahp(), DpCube(), StructureFirst())]
    + [(Efpa(), line(47))],
    ids=name,
)
def test_without_noise_to_speak_of_the_cells_are_true(baseline, workload):
    steps = 6 if isinstance(baseline, Php) else workload.size  # P-HP sees no more than halvings show
    x = np.repeat(np.random.default_rng(1).integers(0, 90, steps), workload.size // steps)
    plan = baseline.plan(workload, AddRemove(workload.size))
    cells = plan.estimate(x, epsilon=Epsilon(10**5), noise=noise.seeded(1))
    np.testing.assert_allclose(cells, x, atol=1e-2 if isinstance(baseline, Efpa) else 1e-6)


def test_uniform_and_mwem_recover_what_they_can():
    x = np.array([4, 4, 10, 0, 0, 2])
    uniform = Uniform().plan(Histogram(6), AddRemove(6))
    np.testing.assert_allclose(uniform.estimate(x, epsilon=Epsilon(10**4), noise=noise.seeded(1)), 20 / 6)
    plan = Mwem(rounds=12).plan(Cumulative(6), AddRemove(6))
    answers = plan.release(x, epsilon=10**4, noise=noise.seeded(1))
    np.testing.assert_allclose(answers, np.cumsum(x), atol=0.5)


@pytest.mark.parametrize("baseline", [HBGrid(), QuadTree()], ids=name)
def test_trees_err_as_dense_least_squares_says(baseline):
    """Data-independent trees: the variance of every cell from their own transcript, written as a matrix."""
    plan, epsilon = baseline.plan(rectangles(6, 8), AddRemove(48)), Epsilon("0.5")
    run = Recorded(np.full(48, 20), noise.seeded(0))
    plan.estimate_through(run, None, epsilon=epsilon)
    rows = np.concatenate(
        [np.equal.outer(np.arange(rates.size), labels) for _, labels, rates, _ in run.notes]
    )
    scales = np.concatenate([NANO / rates for _, _, rates, _ in run.notes])
    variances = 0.5 / np.sinh(0.5 / scales) ** 2
    expected = np.linalg.inv(rows.T @ (rows / variances[:, None])).trace()
    source, runs = noise.seeded(4), 300
    errors = [
        ((plan.estimate(np.full(48, 20), epsilon=epsilon, noise=source) - 20) ** 2).sum() for _ in range(runs)
    ]
    assert abs(np.mean(errors) - expected) < 3 * np.std(errors) / np.sqrt(runs)


@pytest.mark.parametrize("mechanism", [Identity(), Privelet(), HB()], ids=name)
@pytest.mark.parametrize("graph", [AddRemove(20), Full(20), Threshold(20, 3)], ids=name)
def test_data_independent_plans_are_private_and_err_as_they_say(mechanism, graph):
    plan = mechanism.plan(line(20), graph)
    check_private(plan, graph, tight=False)
    check_simulated(plan, runs=300)


def test_least_squares_on_nested_partitions_is_the_dense_one():
    stream = np.random.default_rng(9)
    levels = [
        Level(boxes((4, 6), parts), stream.integers(0, 90, count), stream.integers(1, 9, count) * NANO // 9)
        for parts, count in ((1, 1), (2, 4), (4, 16))
    ]
    rows = np.concatenate([np.equal.outer(np.arange(level.rates.size), level.labels) for level in levels])
    weights = np.concatenate([2 * np.sinh(level.rates / NANO / 2) ** 2 for level in levels])
    answers = np.concatenate([level.answers for level in levels])
    groups = np.equal.outer(np.arange(16), levels[2].labels).T / np.bincount(levels[2].labels)  # even inside
    dense = np.linalg.lstsq((rows @ groups) * np.sqrt(weights)[:, None], answers * np.sqrt(weights))[0]
    np.testing.assert_allclose(least_squares(levels, None), groups @ dense)
    assert least_squares(levels, 77).sum() == pytest.approx(77)


@pytest.mark.parametrize("length", [1, 2, 3, 20, 33, 150])
def test_prefix_deviations_are_exact(length):
    x = np.random.default_rng(length).integers(0, 12, length)
    expected = []
    for stop in range(1, length + 1):
        part, total = x[:stop].tolist(), int(x[:stop].sum())
        expected.append(16 * sum(abs(value * stop - total) for value in part) // stop)
    np.testing.assert_array_equal(prefix_deviations(Ranked(x), 16), expected)


def test_the_fan_out_of_hb():
    assert [hb_fanout(n) for n in (2, 256, 4096)] == [2, 16, 16]
    assert HB().plan(Histogram(4096), AddRemove(4096)).name == "Hierarchical, fan-out 16"


@pytest.mark.parametrize("baseline", [*LINE, *GRID], ids=name)
@pytest.mark.parametrize("graph", [Full(36), Threshold(36, 2), Cone(Full(36), Apex.PRESENCE)], ids=name)
def test_where_records_move_every_cell_pays_half(baseline, graph):
    workload = rectangles(6, 6) if 2 in baseline.axes else line(36)
    plan = baseline.plan(workload, graph)
    assert "ε/2" in plan.explain()
    assert ("total is public" in plan.explain()) == (not graph.absent)
    x = np.random.default_rng(4).integers(0, 50, 36)
    run = Recorded(x, noise.seeded(1))
    total = None if graph.absent else int(x.sum())
    cells = plan.estimate_through(run, total, epsilon=Epsilon("2"))
    assert run.spent().max(initial=0) <= NANO
    if total is not None and not isinstance(baseline, (GreedyH, Php, Ahp, DpCube, Efpa)):
        assert cells.sum() == pytest.approx(total)
    assert "pays at most ε," in baseline.plan(workload, AddRemove(36)).explain()


def test_a_policy_that_hides_nothing_gets_the_truth():
    x = np.arange(4)
    plan = Php().plan(Histogram(4), Explicit(4, []))
    np.testing.assert_array_equal(plan.estimate(x, epsilon=Epsilon("0.1"), noise=noise.seeded(1)), x)
    assert "hides nothing" in plan.explain()


def test_budgets_are_divided_without_remainder():
    for budget in (7, 100, 12_345_678_901):
        assert sum(divided(budget, [1, 2.5, 0.3])) == budget
    with pytest.raises(InvalidEpsilon):
        divided(3, [1.0] * 4)


def test_refusals():
    cube = Rectangles((3, 3, 3), [[0, 0, 0]], [[2, 2, 2]])
    for baseline in (Php(), QuadTree(), UniformGrid(), AdaptiveGrid(), HBGrid(), HybridTree(), DpCube()):
        with pytest.raises(NotProven, match="question has 3"):
            baseline.plan(cube, AddRemove(27))
    for baseline in (QuadTree(), UniformGrid(), AdaptiveGrid(), HBGrid(), HybridTree()):
        with pytest.raises(NotProven, match="for 2 ordered attributes"):
            baseline.plan(Histogram(9), AddRemove(9))
    with pytest.raises(NotProven, match="once or not at all"):
        Mwem().plan(ValueSum(9), AddRemove(9))
    with pytest.raises(SizeMismatch):
        Uniform().plan(Histogram(9), AddRemove(8))
    with pytest.raises(NoGuarantee):
        Uniform().plan(Histogram(9), AddRemove(9)).epsilon_for(alpha=1, beta=0.1)
    for baseline in (Efpa(), StructureFirst()):
        with pytest.raises(NotProven, match="for 1 ordered attribute,"):
            baseline.plan(rectangles(3, 3), AddRemove(9))
    for wrong in (
        lambda: Mwem(rounds=0),
        lambda: QuadTree(height=0),
        lambda: HybridTree(switch=0),
        lambda: Efpa(most=0),
        lambda: StructureFirst(places=0),
    ):
        with pytest.raises(InvalidWorkload):
            wrong()
    with pytest.raises(InvalidEpsilon):
        Php(split=1.0)
    with pytest.raises(InvalidEpsilon):
        Mwem(rounds=90).plan(Histogram(9), AddRemove(9)).release(
            np.zeros(9, int), epsilon="0.0000001", noise=noise.seeded(1)
        )
    with pytest.raises(InvalidEpsilon, match="least weight"):
        GreedyH().plan(Ranges(4096, [0], [4095]), AddRemove(4096)).release(
            np.zeros(4096, int), epsilon="0.0000001", noise=noise.seeded(1)
        )
