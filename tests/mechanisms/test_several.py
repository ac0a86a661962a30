"""Plans under several promises: brute force over every edge of small graphs, and what nested ones come to."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import blowfishdb as bf
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.graphs.union import union
from blowfishdb.core.workloads import Workload
from blowfishdb.mechanisms import Best, Laplace, Ordered
from blowfishdb.mechanisms.best import Choice
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.mechanisms.several import SeveralPromises, lost_per_epsilon
from tests.core.test_union import SIZE, lines

QUICK = Best((Laplace(on="workload"), Laplace(on="cells"), Ordered()))
ACCURACY = Accuracy(20, 0.05)


def axes(size: int) -> tuple[Axis, ...]:
    attribute = bf.Integer(0, size - 1)
    return (Axis("value", attribute, attribute.bins()),)


def several(workload: Workload, graphs: list[PolicyGraph], left: list[str]) -> SeveralPromises:
    return SeveralPromises(workload, tuple(graphs), tuple(map(Epsilon, left)), axes(workload.size))


def brute(plan: Plan, epsilon: Epsilon, graph: PolicyGraph) -> Fraction | float:
    """The largest loss over the edges, by what two databases differ in; endless where noise is missing."""
    size, worst = plan.workload.size, Fraction(0)
    scales = plan.scales.fractions(epsilon)
    for edge in graph.edges():
        sides = []
        for end in edge:
            counts = np.arange(3, 3 + size)
            if end < size:
                counts[end] += 1
            sides.append(counts)
        noise = np.asarray(plan.measure(sides[0]))
        if (np.asarray(plan.decode(noise, sides[0])) != np.asarray(plan.decode(noise, sides[1]))).any():
            return math.inf
        change = np.asarray(plan.measure(sides[0])) - np.asarray(plan.measure(sides[1]))
        changed = np.flatnonzero(change)
        if changed.size and (plan.free or not all(scales[row] for row in changed)):
            return math.inf
        total = sum((Fraction(abs(int(change[row]))) / scales[row] for row in changed), Fraction(0))
        worst = max(worst, total)
    return worst


def workloads() -> st.SearchStrategy[Workload]:
    some = [bf.workloads.Histogram(SIZE), bf.workloads.Cumulative(SIZE), bf.workloads.AllRanges(SIZE)]
    return st.sampled_from([*some, bf.workloads.Ranges(SIZE, [0, 2], [1, 5])])


@st.composite
def hiding(draw: st.DrawFn) -> PolicyGraph:
    graph = draw(lines())
    return graph.hide_presence() if draw(st.sampled_from((False, False, True))) else graph


LEFT = st.sampled_from(["0.1", "0.5", "1", "1", "8"])


@st.composite
def promised(draw: st.DrawFn) -> SeveralPromises:
    graphs = draw(st.lists(hiding(), min_size=2, max_size=3))
    left = draw(st.lists(LEFT, min_size=len(graphs), max_size=len(graphs)))
    return several(draw(workloads()), graphs, left)


def check(choice: Choice, promises: SeveralPromises) -> None:
    """What is charged under each promise is what two neighbours are told apart by, rounded up."""
    assert isinstance(choice.plan, Plan)
    epsilon = choice.epsilon or Epsilon(1)
    for graph, charged in zip(promises.graphs, choice.losses, strict=True):
        lost = brute(choice.plan, epsilon, graph)
        assert lost <= charged.fraction
        assert charged.fraction <= lost + Fraction(2, 10**9)


SLOW = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@SLOW
@given(promises=promised())
def test_every_promise_is_charged_what_its_neighbours_lose(promises: SeveralPromises) -> None:
    check(promises.for_accuracy(QUICK, ACCURACY), promises)


@SLOW
@given(promises=promised(), epsilon=st.sampled_from(["0.3", "0.7", "2"]))
def test_an_epsilon_that_is_stated_holds_under_every_promise(promises: SeveralPromises, epsilon: str) -> None:
    choice = promises.for_epsilon(QUICK, Epsilon(epsilon))
    check(choice, promises)
    assert max(choice.losses) <= Epsilon(epsilon)
    assert not choice.epsilon or max(choice.losses) >= Epsilon(epsilon) - Epsilon("0.000000010")


@SLOW
@given(promises=promised())
def test_no_plan_for_one_promise_or_for_all_takes_a_smaller_share(promises: SeveralPromises) -> None:
    def share(losses: tuple[Epsilon, ...]) -> float:
        return max(float(loss) / float(left) for loss, left in zip(losses, promises.left, strict=True))

    taken = share(promises.for_accuracy(QUICK, ACCURACY).losses)
    for graph in (*promises.graphs, union(promises.graphs)):
        other = QUICK.for_accuracy(promises.workload, graph, ACCURACY)
        assert isinstance(other.plan, Plan)
        each = lost_per_epsilon(other.plan, promises.graphs, promises.axes)
        if not any(map(math.isinf, each)):
            losses = tuple(Epsilon.at_least(Fraction(loss) * other.epsilon.fraction) for loss in each)
            assert taken <= share(losses) * (1 + 1e-6) + 1e-8


@SLOW
@given(promises=promised(), epsilon=st.sampled_from(["0.1", "0.5", "3"]))
def test_an_edge_may_lose_what_the_least_promise_that_hides_it_has_left(
    promises: SeveralPromises, epsilon: str
) -> None:
    """THEORY §13, B1: K_ω, the weighted graph."""
    (plan, *_) = QUICK.plans(promises.workload, union(promises.graphs))
    edges = [(graph, left.fraction, u, v) for graph, left in _each(promises) for u, v in graph.edges()]
    losses = [brute(plan, Epsilon(epsilon), graph) for graph in promises.graphs]
    fits = all(loss <= left.fraction for loss, (_, left) in zip(losses, _each(promises), strict=True))
    by_edge = all(
        brute(plan, Epsilon(epsilon), bf.graphs.Explicit(graph.size, [(u, v)])) <= left
        for graph, left, u, v in edges
    )
    assert fits == by_edge


def _each(promises: SeveralPromises) -> list[tuple[PolicyGraph, Epsilon]]:
    return list(zip(promises.graphs, promises.left, strict=True))


@SLOW
@given(graph=hiding(), other=hiding(), workload=workloads(), left=st.lists(LEFT, min_size=2, max_size=2))
def test_a_policy_that_hides_less_and_has_more_left_changes_nothing(
    graph: PolicyGraph, other: PolicyGraph, workload: Workload, left: list[str]
) -> None:
    """THEORY §13, B2: the plan costs the promise that hides more what the best plan for it costs, or less."""
    wide, (least, most) = union([graph, other]), sorted(left, key=float)
    choice = several(workload, [graph, wide], [most, least]).for_accuracy(QUICK, ACCURACY)
    alone = QUICK.for_accuracy(workload, wide, ACCURACY)
    assert choice.losses[0] <= choice.losses[1] <= alone.epsilon


# --- numbers of THEORY §13 ------------------------------------------------------------------------


@pytest.mark.parametrize(("bins", "price"), [(25, 0.365648), (20, 0.327134)])
def test_kept_full_and_neighbours_today(bins: int, price: float) -> None:
    line, full = bf.graphs.Threshold(bins, 1), bf.graphs.Full(bins)
    promises = several(bf.workloads.Cumulative(bins), [line, full], ["0.765", "0.765"])
    choice = promises.for_accuracy(Best(), Accuracy(50, 0.05))
    assert choice.losses[0] == choice.losses[1] == choice.epsilon
    assert 0.98 * price <= float(choice.epsilon) <= price
    (ordered,) = Best((Ordered(),)).plans(promises.workload, line)
    assert lost_per_epsilon(ordered, promises.graphs, promises.axes) == (1, bins - 1)


@pytest.mark.parametrize(("room", "own", "between"), [(4, 2376, 1398), (8, 1165, 1165)])
def test_a_plan_between_two_promises_is_better_where_the_earlier_one_has_more(
    room: int, own: float, between: float
) -> None:
    """64 prefixes, hidden within 4 today and altogether before, with ``room`` times as much left."""
    workload = bf.workloads.Cumulative(64)
    today, before = bf.graphs.Threshold(64, 4), bf.graphs.Full(64)
    promises = several(workload, [today, before], ["1", str(room)])

    def error(graphs: tuple[PolicyGraph, ...]) -> float:
        plans = itertools.chain.from_iterable(Best().plans(workload, graph) for graph in graphs)
        shares = ((plan, lost_per_epsilon(plan, promises.graphs, promises.axes)) for plan in plans)
        return min(plan.unit_error * max(float(a), float(b) / room) ** 2 for plan, (a, b) in shares)

    thresholds = tuple(bf.graphs.Threshold(64, theta) for theta in (8, 16, 32))
    assert error((today, before)) <= own * 1.01
    assert error((today, before, *thresholds)) <= between * 1.01
    choice = promises.for_accuracy(Best(), Accuracy(100, 0.05))
    share = max(float(choice.losses[0]), float(choice.losses[1]) / room)
    for graph in (today, before):
        alone = Best().for_accuracy(workload, graph, Accuracy(100, 0.05))
        each = lost_per_epsilon(alone.plan, promises.graphs, promises.axes)
        assert share <= float(alone.epsilon) * max(float(each[0]), float(each[1]) / room) + 1e-8
