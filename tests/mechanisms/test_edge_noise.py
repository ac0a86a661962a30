"""Edge noise: exact loss over every edge, exact errors, and the closed forms of grids."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core.errors import NotProven, SizeMismatch, TooLarge
from blowfishdb.core.graphs import (
    AddRemove,
    Banded,
    Explicit,
    Full,
    Grid,
    Partitioned,
    PolicyGraph,
    Product,
    Threshold,
)
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Marginals, Matrix, Ranges, Rectangles
from blowfishdb.core.workloads import Product as W
from blowfishdb.mechanisms.edge_noise import EdgeNoise, GraphNoise
from blowfishdb.mechanisms.optimized.lattice import LatticeNoise
from tests.mechanisms.exactness import (
    check_errors,
    check_observed,
    check_only_certified,
    check_private,
    check_simulated,
)

ANY_GRAPHS = [
    Full(6),
    Threshold(9, 3),
    Partitioned([0, 0, 1, 1, 1, 2, 0]),
    Banded([2, 2, 3, 5, 5, 5]),
    Explicit(7, [(0, 3), (3, 5), (1, 2), (5, 0)]),
    Grid((3, 4), 2),
    Product(Threshold(3, 1), Full(3)),
    Full(5).hide_presence(),
    AddRemove(5),
]
GRIDS = [
    Product(Threshold(4, 1), Threshold(5, 1), joint=False),
    Product(Threshold(4, 2), Threshold(5, 1), joint=False),
    Product(Threshold(4, 1), Threshold(5, 1)),
    Product(Threshold(4, 2), Threshold(5, 3)),
    Product(Threshold(3, 1), Threshold(4, 1), Threshold(2, 1)),
    Product(Full(4), Threshold(4, 2)),
    Grid((4, 5), 1),
    Grid((4, 5), 2),
    Grid((4, 4), 5),
    Grid((3, 4, 2), 2),
    Grid((4, 3), 3, (2, 1)),
    Grid((1, 6), 2),
    Threshold(8, 3),
]


def describe(graph: PolicyGraph) -> str:
    return f"{type(graph).__name__}-{graph.describe()}"


@pytest.mark.parametrize("graph", ANY_GRAPHS, ids=describe)
def test_the_policys_own_edges_cost_exactly_epsilon(graph):
    cells = graph.size - graph.absent
    plan = EdgeNoise(on="policy").plan(AllRanges(cells), graph)
    check_private(plan, graph)
    check_errors(plan)
    check_observed(plan)
    check_only_certified(plan)


@pytest.mark.parametrize("on", ["grid", "king"])
@pytest.mark.parametrize("graph", GRIDS, ids=describe)
def test_steps_on_a_grid_are_private_and_tight(graph, on):
    shape = getattr(graph, "shape", (graph.size,))
    plan = EdgeNoise(on=on).plan(W(*(AllRanges(n) for n in shape)), graph)
    assert isinstance(plan, LatticeNoise)
    check_private(plan, graph)
    check_errors(plan)
    check_observed(plan)
    check_only_certified(plan)


@pytest.mark.parametrize(
    "workload",
    [
        W(Histogram(4), Cumulative(5)),
        W(Ranges(4, [0, 1], [3, 2]), Matrix([[1, 0.5, 0, 0, -2]])),
        Marginals((4, 5), [(0,), (1,), (0, 1), ()]),
        Rectangles((4, 5), [[0, 0], [1, 2], [0, 1]], [[3, 4], [2, 2], [0, 4]]),
        Histogram(20),
    ],
    ids=lambda w: w.describe(),
)
def test_every_separable_workload_has_exact_errors(workload):
    for graph in (GRIDS[1], GRIDS[3]):
        for on in ("policy", "grid", "king"):
            check_errors(EdgeNoise(on=on).plan(workload, graph))


def test_real_valued_questions_on_any_graph():
    plan = EdgeNoise().plan(Matrix(np.arange(12).reshape(2, 6) / 3), Full(6).hide_presence())
    check_errors(plan)
    check_private(plan, plan.graph)


@pytest.mark.parametrize("graph", [GRIDS[3], ANY_GRAPHS[2], ANY_GRAPHS[7]], ids=describe)
def test_releases_err_as_promised(graph):
    check_simulated(EdgeNoise().plan(Cumulative(graph.size - graph.absent), graph))


def test_closed_forms_of_the_table():
    k1, k2, theta = 6, 9, 3
    grams = [Cumulative(k1).gram(), Cumulative(k2).gram()]
    t1, t2 = (np.trace(m) for m in grams)
    a1, a2 = (2 * np.trace(m) - m[0, 0] - m[-1, -1] for m in grams)
    o1, o2 = (np.diagonal(m, 1).sum() for m in grams)
    e1, e2 = 2 * theta**2 * (a1 - 2 * o1) * t2, 2 * theta**2 * (a2 - 2 * o2) * t1
    workload = W(Cumulative(k1), Cumulative(k2))
    factors = (Threshold(k1, theta), Threshold(k2, theta))
    joint, cartesian, l1 = Product(*factors), Product(*factors, joint=False), Grid((k1, k2), theta)
    king = 2 * theta**2 * ((a1 - 2 * o1) * t2 + t1 * (a2 - 2 * o2) + a1 * a2 - 4 * o1 * o2)
    for on, graph, expected in (
        ("grid", cartesian, e1 + e2),
        ("grid", l1, e1 + e2),
        ("grid", joint, (e1 ** (1 / 3) + e2 ** (1 / 3)) ** 3),
        ("king", joint, king),
    ):
        assert EdgeNoise(on=on).plan(workload, graph).unit_error == pytest.approx(expected, rel=1e-5)
    unequal = Threshold(k1, 4), Threshold(k2, 1)
    e1, e2 = 2 * 16 * (a1 - 2 * o1) * t2, 2 * (a2 - 2 * o2) * t1
    for joint, expected in ((False, e1 + e2), (True, (e1 ** (1 / 3) + e2 ** (1 / 3)) ** 3)):
        plan = EdgeNoise(on="grid").plan(workload, Product(*unequal, joint=joint))
        assert plan.unit_error == pytest.approx(expected, rel=1e-5)


def test_a_rectangle_errs_by_twice_its_border():
    workload = Rectangles((6, 6), [[1, 2]], [[3, 3]])
    plan = EdgeNoise(on="grid").plan(workload, Grid((6, 6), 1))
    assert plan.unit_error == 2 * 2 * (3 + 2)


def test_component_totals_are_exact():
    graph = Partitioned([0, 0, 1, 1, 1, 2])
    plan = EdgeNoise().plan(
        Matrix([[1, 1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0], [0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]]), graph
    )
    assert plan.exact.tolist() == [True, True, True, False]


def test_the_cheapest_carrier_is_chosen():
    square = W(AllRanges(6), AllRanges(6))
    joint = Product(Threshold(6, 1), Threshold(6, 1))
    chosen = EdgeNoise().plan(square, joint).unit_error
    assert chosen == min(EdgeNoise(on=on).plan(square, joint).unit_error for on in ("policy", "grid", "king"))


def test_refusals():
    with pytest.raises(SizeMismatch):
        EdgeNoise().plan(Histogram(3), Full(4))
    with pytest.raises(NotProven):
        EdgeNoise(on="grid").plan(Histogram(4), Explicit(4, [(0, 1)]))
    with pytest.raises(TooLarge):
        len(EdgeNoise(on="policy").plan(Cumulative(5_000), Full(5_000)).scales)
    large = EdgeNoise().plan(W(AllRanges(256), AllRanges(256)), Grid((256, 256), 1))
    with pytest.raises(TooLarge):
        large.squared_errors(epsilon=1)
    assert large.squared_error(epsilon=1) > 0


def test_without_edges_everything_is_exact():
    plan = EdgeNoise().plan(Cumulative(4), Explicit(4, ()))
    assert plan.exact.all()
    assert plan.certificate(epsilon=1).worst_loss(plan.graph) == Fraction(0)


def test_a_large_grid_is_planned_without_listing_its_questions():
    plan = EdgeNoise().plan(
        W(AllRanges(1024), AllRanges(1024)), Product(Threshold(1024, 1), Threshold(1024, 1))
    )
    assert plan.unit_error > 0
    small = EdgeNoise().plan(W(Cumulative(256), Cumulative(256)), Grid((256, 256), 2))
    noise = np.ones(len(small.scales), dtype=np.int64)
    assert small.decode(noise, np.ones(256 * 256, dtype=np.int64)).shape == (256 * 256,)


def test_explanations_are_sentences():
    for plan in (
        EdgeNoise(on="policy").plan(Cumulative(4), Full(4)),
        EdgeNoise(on="grid").plan(W(Cumulative(4), Cumulative(4)), Grid((4, 4), 1)),
        EdgeNoise(on="king").plan(W(Cumulative(4), Cumulative(4)), Grid((4, 4), 1)),
    ):
        assert plan.explain().endswith(".")
        assert isinstance(plan, GraphNoise | LatticeNoise)
