"""Best: it takes the cheapest proven plan, remembers it, and says what else it looked at."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import NotProven
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.edge_noise import EdgeNoise
from blowfishdb.mechanisms.hierarchical import Hierarchical
from blowfishdb.mechanisms.laplace import Laplace, LaplaceOnWorkload
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.ordered import Ordered, OrderedHierarchical
from blowfishdb.mechanisms.transformed import Transformed

EVERYTHING = (
    Laplace("workload"),
    Laplace("cells"),
    Optimized(),
    EdgeNoise(),
    OrderedHierarchical(),
    Hierarchical(),
)


def line_workloads(k):
    yield workloads.Histogram(k)
    yield workloads.Cumulative(k)
    yield workloads.AllRanges(k)
    yield workloads.Ranges(k, np.arange(k // 2), np.arange(k // 2) + k // 2)


@pytest.mark.parametrize("k", [6, 20, 70])
@pytest.mark.parametrize("theta", [1, 2, 5, None, "hidden", "parts"])
def test_nothing_that_was_left_out_would_have_been_better(k, theta):
    """Candidates are dismissed by public facts; planning them all must not find a smaller error."""
    match theta:
        case None:
            graph = graphs.Full(k)
        case "hidden":
            graph = graphs.Threshold(k, 2).hide_presence()
        case "parts":
            graph = graphs.Partitioned(Bins.width(k, 4))
        case _:
            graph = graphs.Threshold(k, theta)
    for workload in line_workloads(k):
        best = Best().plan(workload, graph).unit_error
        for mechanism in EVERYTHING:
            try:
                other = mechanism.plan(workload, graph).unit_error
            except NotProven:
                continue
            assert best <= other * (1 + 1e-6), (mechanism, workload)


def test_the_choice_meets_the_accuracy_at_the_least_price():
    workload, graph, accuracy = workloads.Cumulative(30), graphs.Threshold(30, 3), Accuracy(40, 0.05)
    choice = Best().for_accuracy(workload, graph, accuracy)
    assert choice.plan in choice.considered and len(choice.considered) >= 2
    for plan in choice.considered:
        assert choice.epsilon <= plan.epsilon_at(accuracy)


def test_it_explains_itself():
    choice = Best().for_accuracy(workloads.Cumulative(30), graphs.Threshold(30, 3), Accuracy(40, 0.05))
    text = choice.explain()
    assert text.startswith(choice.plan.name) and "Standard error of the others" in text
    alone = Best((Laplace(),)).for_epsilon(workloads.Histogram(4), graphs.Full(4), Epsilon(1))
    assert "others" not in alone.explain()


def test_plans_are_remembered_by_content():
    first = Best().plan(workloads.Ranges(40, [1, 2], [5, 9]), graphs.Threshold(40, 3))
    again = Best().plan(workloads.Ranges(40, [1, 2], [5, 9]), graphs.Threshold(40, 3))
    assert first is again


def test_many_questions_are_never_listed():
    plan = Best().plan(workloads.AllRanges(10**5), graphs.Full(10**5))
    assert plan.squared_error(epsilon=1) > 0


def test_hopeless_noise_on_the_questions_is_not_even_planned():
    """Its exact sensitivity alone would need every edge."""
    k = 1_000
    workload = workloads.Ranges(k, np.arange(k // 2), np.arange(k // 2) + k // 2)
    considered = Best().plans(workload, graphs.Full(k))
    assert not any(isinstance(plan, LaplaceOnWorkload) for plan in considered)


def test_free_answers_cost_nothing():
    choice = Best().for_epsilon(workloads.Histogram(3), graphs.Partitioned([0, 1, 2]), Epsilon(1))
    assert choice.epsilon == Epsilon(0)


@pytest.mark.parametrize("graph", [graphs.Full(2), graphs.Threshold(3, 1), graphs.Full(3).hide_presence()])
@pytest.mark.parametrize("simultaneous", [True, False])
def test_a_condition_that_nobody_satisfies_is_free(graph, simultaneous):
    size = graph.size - graph.absent
    nobody = workloads.Selected(workloads.Histogram(2), np.full(size, -1))
    for planner in (Best(), Best((Ordered(),)) if not graph.absent else Best()):
        choice = planner.for_accuracy(nobody, graph, Accuracy(8.5, 0.1, simultaneous))
        assert choice.plan.free and not choice.epsilon
        assert not planner.for_epsilon(nobody, graph, Epsilon(1)).epsilon


def test_without_candidates_it_refuses():
    with pytest.raises(NotProven):
        Best(()).plan(workloads.Histogram(2), graphs.Full(2))
    with pytest.raises(NotProven, match="come and go"):
        Best((Optimized(),)).plan(workloads.Matrix([[1, 0, 2, 1]]), graphs.AddRemove(4))


def test_on_a_tree_its_edges_are_measured():
    """A star of 64 cells, prefixes: squared error 58 by edge noise, 37 by ranges of edges."""
    star = graphs.Explicit(64, [(0, leaf) for leaf in range(1, 64)])
    before = Best(tuple(each for each in Best().candidates if not isinstance(each, Transformed)))
    for workload, at_most in ((workloads.Cumulative(64), 0.65), (workloads.Histogram(64), 1)):
        now, then = (best.plan(workload, star).squared_error(epsilon=1) for best in (Best(), before))
        assert now <= at_most * then
        prices = [best.for_accuracy(workload, star, Accuracy(50, 0.05)).epsilon for best in (Best(), before)]
        assert prices[0] <= prices[1]


@pytest.mark.parametrize(
    "graph",
    [
        graphs.Threshold(64, 1),
        graphs.Full(64),
        graphs.AddRemove(64),
        graphs.Explicit(64, ()),
        graphs.Explicit(4, [(0, 1), (1, 2), (2, 0)]),
        graphs.Explicit(600, [(0, leaf) for leaf in range(1, 600)]),
    ],
)
def test_elsewhere_edges_are_not_tried(graph, monkeypatch):
    tried = []
    monkeypatch.setattr(Transformed, "plan", lambda self, workload, graph: tried.append(graph))
    Best().plan(workloads.Histogram(graph.counted.size), graph)
    assert not tried


@pytest.mark.parametrize("joint", [True, False])
def test_where_values_are_dropped_boxes_are_cheaper_and_nothing_is_dearer(joint):
    """A record that leaves makes one more neighbour of every cell: what was chosen before is still there."""
    base = graphs.Product(graphs.Threshold(12, 1), graphs.Full(3), joint=joint)
    graph, asked = graphs.Cone(base, graphs.Apex.OUTSIDE), Accuracy(30, 0.05)
    before = Best(tuple(each for each in Best().candidates if not isinstance(each, Optimized)))
    curves = workloads.Product(workloads.Cumulative(12), workloads.Histogram(3))
    for workload, at_most in ((curves, 0.99), (workloads.Histogram(36), 1)):
        now, then = (best.for_accuracy(workload, graph, asked).epsilon for best in (Best(), before))
        assert float(now) <= at_most * float(then)
