"""Questions planned together: what a way loses, whether every question is met, and what it saves."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb import noise
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Cumulative, Histogram, Workload
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.losses import ReleasedRows
from blowfishdb.mechanisms.together import Losses, Together, Wanted, plan_together

SIZE = 20
COLUMN = bf.Integer(0, SIZE - 1)
LINE = (Axis("v", COLUMN, Bins.edges(SIZE, range(SIZE))),)
PRECISE = Accuracy(50, 0.05)


def wanted(workload: Workload, graph: PolicyGraph, needed: Accuracy = PRECISE) -> Wanted:
    choice = Best().for_accuracy(workload, graph, needed)
    stored = [
        plan for plan in (choice.plan, *choice.considered) if ReleasedRows(plan, Epsilon(1)).stored(LINE)
    ]
    return Wanted(LINE, workload, needed, stored[0], stored[0].epsilon_at(needed))


def by_every_edge(questions: Sequence[Wanted], graph: PolicyGraph) -> Losses:
    """The largest sum over edges, in exact arithmetic."""

    def losses(epsilons: Sequence[Epsilon]) -> float:
        made = [
            one.plan.certificate(epsilon=epsilon)
            for one, epsilon in zip(questions, epsilons, strict=True)
            if epsilon
        ]
        edges = [(int(u), int(v)) for u, v in graph.edges()]
        return float(max((sum((each.loss(u, v) for each in made), Fraction(0)) for u, v in edges), default=0))

    return losses


def both(graph: PolicyGraph) -> list[Wanted]:
    return [wanted(Histogram(SIZE), graph), wanted(Cumulative(SIZE), graph)]


@pytest.mark.parametrize(
    ("graph", "apart", "together"),
    [(bf.graphs.Threshold(SIZE, 1), 0.264, 0.147), (bf.graphs.Full(SIZE), 0.561, 0.326)],
    ids=["neighbours", "everything"],
)
def test_bars_and_their_curve_need_one_release(graph: PolicyGraph, apart: float, together: float) -> None:
    questions = both(graph)
    losses = by_every_edge(questions, graph)
    assert losses([one.epsilon for one in questions]) == pytest.approx(apart, rel=0.01)
    way = plan_together(questions, losses)
    assert way is not None
    assert way.loss == losses(way.epsilons) == pytest.approx(together, rel=0.02)
    assert sum(map(bool, way.epsilons)) == 1


def released(way: Together, questions: Sequence[Wanted], x: np.ndarray, seed: int) -> list[np.ndarray]:
    """What each question is answered in one run."""
    made = [
        ReleasedRows(one.plan, epsilon).stored(
            one.axes, one.plan.observe(x, epsilon=epsilon, noise=noise.seeded(seed + number))
        )
        for number, (one, epsilon) in enumerate(zip(questions, way.epsilons, strict=True))
        if epsilon
    ]
    offers = way.offers(questions, [release for release in made if release is not None])
    assert offers is not None
    return [offer.combination.values() for offer in offers]


def test_every_question_is_as_close_as_it_has_to_be() -> None:
    """How often any bar, or any point of the curve, is out of its interval, in 400 runs."""
    graph, x = bf.graphs.Threshold(SIZE, 1), np.arange(SIZE) * 7 % 40
    questions = both(graph)
    way = plan_together(questions, by_every_edge(questions, graph))
    assert way is not None
    truths = [x, np.cumsum(x)]
    missed = np.zeros(2)
    for run in range(400):
        answers = released(way, questions, x, 10 * run)
        missed += [np.abs(a - t).max() > PRECISE.alpha for a, t in zip(answers, truths, strict=True)]
    assert (missed <= 400 * 0.05 + 3 * np.sqrt(400 * 0.05)).all()
    assert missed[0] > 2  # and not by far too much noise less than allowed


def test_a_way_does_not_depend_on_what_comes_out() -> None:
    graph = bf.graphs.Threshold(SIZE, 1)
    questions = both(graph)
    way = plan_together(questions, by_every_edge(questions, graph))
    again = plan_together(both(graph), by_every_edge(questions, graph))
    assert way is not None and again is not None and way.epsilons == again.epsilons
    before = way.offers(questions, way.releases(questions))
    assert before is not None
    assert all(epsilon or offer.meets(PRECISE) for epsilon, offer in zip(way.epsilons, before, strict=True))


def test_what_shares_nothing_is_made_apart() -> None:
    """Two halves of a line, each by itself: no release tells anything of the other half."""
    graph = bf.graphs.Threshold(SIZE, 1)
    left, right = (bf.workloads.Ranges(SIZE, ends, ends + 1) for ends in (np.arange(8), np.arange(12, 19)))
    questions = [wanted(left, graph), wanted(right, graph)]
    assert plan_together(questions, by_every_edge(questions, graph)) is None


def test_more_than_can_be_searched_still_leaves_out_what_follows() -> None:
    graph = bf.graphs.Full(SIZE)
    loose = [wanted(Histogram(SIZE), graph, Accuracy(50 + 10 * step, 0.05)) for step in range(10)]
    way = plan_together(loose, by_every_edge(loose, graph))
    assert way is not None
    assert [bool(epsilon) for epsilon in way.epsilons] == [True] + [False] * 9
    assert way.epsilons[0] == loose[0].epsilon
