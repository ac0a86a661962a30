"""Plans on grids: exact loss over every edge, exact errors, and how near they come to the bound."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs import (
    AddRemove,
    Apex,
    Cone,
    Explicit,
    Full,
    Grid,
    Partitioned,
    PolicyGraph,
    Product,
    Threshold,
)
from blowfishdb.core.lower_bound import grid_bound
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Marginals, Matrix, Ranges, Rectangles
from blowfishdb.core.workloads import Product as W
from blowfishdb.mechanisms.optimized import GridProblem, design
from blowfishdb.mechanisms.optimized.boxes_questions import SeparablePlan
from blowfishdb.mechanisms.optimized.boxes_tensor import TensorBoxes
from blowfishdb.mechanisms.optimized.boxes_tree import Chain, fine_chain
from blowfishdb.mechanisms.optimized.flux import Flux
from blowfishdb.mechanisms.optimized.lattice import LatticeNoise
from blowfishdb.mechanisms.optimized.over_edges import BoxesOverEdges
from blowfishdb.mechanisms.plan import EarlierRelease
from blowfishdb.noise import seeded
from tests.mechanisms.exactness import (
    check_errors,
    check_observed,
    check_only_certified,
    check_private,
    check_simulated,
)


def joint(*factors: tuple[int, int]) -> Product:
    return Product(*(Threshold(n, theta) for n, theta in factors))


def cartesian(*factors: tuple[int, int]) -> Product:
    return Product(*(Threshold(n, theta) for n, theta in factors), joint=False)


POLICIES = [
    Full(24),
    Product(Full(6), Full(4), joint=False),
    joint((6, 1), (4, 1)),
    joint((6, 2), (4, 2)),
    joint((6, 3), (4, 2)),
    cartesian((6, 1), (4, 1)),
    cartesian((6, 3), (4, 2)),
    Grid((6, 4), 1),
    Grid((6, 4), 2),
    Grid((6, 4), 4),
    Grid((6, 4), 3, (2, 1)),
    Product(Threshold(6, 2), Full(4)),
]
WORKLOADS = [
    W(Cumulative(6), Cumulative(4)),
    W(AllRanges(6), AllRanges(4)),
    Histogram(24),
    W(Histogram(6), Cumulative(4)),
    Marginals((6, 4), [(0,), (1,), (0, 1)]),
    Rectangles((6, 4), [[0, 0], [1, 2], [0, 1]], [[5, 3], [2, 2], [3, 3]]),
    W(Ranges(6, [0, 2, 2], [3, 4, 5]), Matrix([[1, 0.5, 0, -2], [0, 0, 1, 1]])),
]


def describe(value: object) -> str:
    return f"{type(value).__name__}-{value.describe()}"  # type: ignore[attr-defined]


def problem(workload, graph: PolicyGraph) -> GridProblem:
    found = GridProblem.of(workload, graph)
    assert found is not None
    return found


@pytest.mark.parametrize("graph", POLICIES, ids=describe)
def test_every_plan_is_private_tight_and_exact(graph):
    kinds = set()
    for plan in problem(WORKLOADS[POLICIES.index(graph) % 2], graph).plans():
        kinds.add(type(plan))
        check_private(plan, graph)
        check_errors(plan)
        check_observed(plan)
        if not isinstance(plan, TensorBoxes):
            check_only_certified(plan)
    assert {LatticeNoise, TensorBoxes, Flux} <= kinds


@pytest.mark.parametrize(
    "graph", [joint((6, 3), (4, 2)), cartesian((6, 3), (7, 2)), Grid((6, 4), 3)], ids=describe
)
def test_flux_between_blocks(graph):
    """Blocks are private under every policy; where axes move together, others are just better."""
    given = problem(W(Cumulative(graph.shape[0]), Cumulative(graph.shape[1])), graph)
    chains = [Chain(6, (1, 3, 6)), fine_chain(graph.shape[1])]
    plan = Flux.tuned(given.workload, graph, given.questions, given.moves, chains, blocks=(1, 1))
    assert plan.transports[0].groups == 2
    check_private(plan, graph)
    check_errors(plan)
    check_only_certified(plan)


def test_numbers_that_would_overflow_are_refused():
    graph = joint((1024, 1), (1024, 1), (8, 1))
    given = problem(W(Cumulative(1024), Cumulative(1024), Cumulative(8)), graph)
    chains = [fine_chain(n, levels=4) for n in graph.shape]
    large = [Chain(chain.cells, (1, chain.widths[-1])) for chain in chains]
    assert Flux.tuned(given.workload, graph, given.questions, given.moves, large) is None


@pytest.mark.parametrize("workload", WORKLOADS[2:], ids=describe)
def test_every_workload_has_exact_errors(workload):
    for graph in (joint((6, 2), (4, 2)), cartesian((6, 3), (4, 2))):
        plans = list(problem(workload, graph).plans())
        for plan in plans:
            check_errors(plan)
        assert design(workload, graph).unit_error == pytest.approx(min(plan.unit_error for plan in plans))
        flat = isinstance(workload, Histogram | Marginals)
        assert flat or BoxesOverEdges in {type(plan) for plan in plans}


@pytest.mark.parametrize(
    "graph",
    [
        joint((5, 2), (7, 3)),
        cartesian((5, 1), (11, 1)),
        joint((3, 1), (4, 1), (3, 2)),
        Grid((4, 3, 2), 2),
        Full(35),
    ],
    ids=describe,
)
def test_axes_of_any_length_and_three_of_them(graph):
    shape = getattr(graph, "shape", (5, 7))
    for plan in problem(W(*(Cumulative(n) for n in shape)), graph).plans():
        check_private(plan, graph, tight=plan.name != "Boxes over edges")
        check_errors(plan)


def test_an_axis_with_one_cell_changes_nothing():
    graph = joint((1, 1), (6, 1), (4, 1))
    for plan in problem(W(Cumulative(1), Cumulative(6), Cumulative(4)), graph).plans():
        check_private(plan, graph)
        check_errors(plan)


@pytest.mark.parametrize("cls", [TensorBoxes, Flux, BoxesOverEdges, LatticeNoise])
def test_releases_err_as_promised(cls):
    graph = joint((6, 2), (4, 2))
    plan = next(p for p in problem(W(Cumulative(6), Cumulative(4)), graph).plans() if type(p) is cls)
    check_simulated(plan, runs=500)


def test_the_grand_total_is_exact():
    workload = Rectangles((6, 4), [[0, 0], [1, 1]], [[5, 3], [2, 2]])
    for plan in problem(workload, joint((6, 2), (4, 2))).plans():
        assert plan.exact.tolist() == [True, False], plan.name


def test_tensor_boxes_decode_by_least_squares():
    graph = Full(24)
    plan = next(p for p in problem(WORKLOADS[0], graph).plans() if isinstance(p, TensorBoxes))
    rows, scales = plan.rows(epsilon=1)
    weights = np.array([1 / float(scale) for scale in scales])
    a = np.vstack((rows.toarray() * weights[:, None], 1e7 * np.ones(24)))  # the public total, all but exact
    best = 2 * (np.linalg.pinv(a)[:, :-1] ** 2).sum(axis=1)
    histogram = TensorBoxes(Histogram(24), graph, *_as_histogram(plan))
    np.testing.assert_allclose(histogram.variances(2 * plan.scales.floats() ** 2), best, rtol=1e-6)


def _as_histogram(plan: TensorBoxes):
    from blowfishdb.mechanisms.optimized.boxes_questions import Questions

    questions = Questions.of(Histogram(plan.workload.size), plan.moves.shape)
    return questions, plan.moves, plan.tree, plan.weights


def test_boxes_over_edges_decode_at_least_as_well_as_boxes_alone():
    graph = joint((16, 2), (16, 2))
    plan = next(
        p for p in problem(W(Cumulative(16), Cumulative(16)), graph).plans() if isinstance(p, BoxesOverEdges)
    )
    blocks = plan.scales.floats()[-1]
    silent = np.where(plan.scales.floats() == blocks, 0.0, 2 * plan.scales.floats() ** 2)
    assert plan.total_variance(silent) < plan.unit_error


def test_marginals_use_supersets_where_they_help():
    pairs = [(i, j) for i in range(5) for j in range(i)]
    factors = [Full(8)] * 5
    for graph, most in ((Product(*factors), 410_000), (Product(*factors, joint=False), 67_500)):
        plan = design(Marginals((8,) * 5, pairs), graph)
        assert plan.unit_error <= most


@pytest.mark.parametrize("subsets", [[()], [(0,)], [(), (1,)]])
def test_questions_that_need_little(subsets):
    graph = joint((6, 2), (4, 2))
    for plan in problem(Marginals((6, 4), subsets), graph).plans():
        check_private(plan, graph)
        check_errors(plan)
        assert plan.exact[0] == (subsets[0] == ())


def test_marginals_are_private_and_exact():
    graph = Product(Full(3), Full(2), Full(4))
    for policy in (graph, Product(*graph.factors, joint=False)):
        for plan in problem(Marginals((3, 2, 4), [(0, 1), (2,), ()]), policy).plans():
            check_private(plan, policy)
            check_errors(plan)


TARGETS = [
    (Full(256**2), 60, 45),
    (cartesian((256, 1), (256, 1)), 7.6, 6.6),
    (joint((256, 1), (256, 1)), 17, 15.2),
    (joint((256, 4), (256, 4)), 50, 38),
    (cartesian((256, 4), (256, 4)), 38, 34),
    (Product(Threshold(256, 4), Full(256)), 65, 45),
    (Grid((256, 256), 2), 16.8, 15),
]


@pytest.mark.parametrize(("graph", "prefix", "ranges"), TARGETS, ids=[describe(row[0]) for row in TARGETS])
def test_distance_to_the_bound_at_256(graph, prefix, ranges):
    for factor, most in ((Cumulative(256), prefix), (AllRanges(256), ranges)):
        workload = W(factor, factor)
        plan = design(workload, graph)
        assert plan.unit_error / grid_bound(workload, graph) <= most


def test_large_grids_are_planned_and_never_listed():
    workload = W(AllRanges(1024), AllRanges(1024))
    for graph in (Full(1024**2), joint((1024, 4), (1024, 4))):
        plan = design(workload, graph)
        with pytest.raises(TooLarge):
            plan.squared_errors(epsilon=1)
        assert plan.squared_error(epsilon=1) > 0


@pytest.mark.parametrize("graph", [TARGETS[0][0], TARGETS[2][0], TARGETS[3][0]], ids=describe)
def test_a_large_grid_is_decoded(graph):
    plan = design(W(Cumulative(256), Cumulative(256)), graph)
    noise = np.ones(len(plan.scales), dtype=np.int64)
    x = np.ones(256**2, dtype=np.int64)
    assert np.isfinite(plan.decode(noise, x)).all()


def test_where_nothing_applies():
    assert design(Cumulative(8), Threshold(8, 1)) is None
    assert design(W(Cumulative(4), Cumulative(4)), Explicit(16, [(0, 1)])) is None
    assert design(Matrix(np.eye(16)), Grid((4, 4), 1)) is None
    assert design(Matrix(np.eye(16)), Full(16).hide_presence()) is None
    assert design(Histogram(16), AddRemove(16)) is None


COMING_AND_GOING = [
    *POLICIES,
    Explicit(24, ()),
    Product(Threshold(6, 2), Explicit(4, ())),
    Product(Threshold(6, 2), Explicit(4, ()), joint=False),
]


@pytest.mark.parametrize("base", COMING_AND_GOING, ids=describe)
def test_boxes_where_records_come_and_go(base):
    """The exact loss on every edge, those to the vertex that is counted nowhere among them."""
    for apex in (Apex.OUTSIDE, Apex.PRESENCE):
        graph = Cone(base, apex)
        for workload in WORKLOADS[:5]:
            if not (base.axes or workload.axes):
                continue
            plans = list(problem(workload, graph).plans())
            assert {type(plan) for plan in plans} == {TensorBoxes}
            for plan in plans:
                check_private(plan, graph)
                check_errors(plan)
                check_observed(plan)
                assert not plan.exact.any()


@pytest.mark.parametrize(
    "base",
    [
        Product(Partitioned([0, 0, 0, 1, 1, 1]), Full(4)),
        Product(Cone(Threshold(5, 1), Apex.MISSING), Threshold(4, 1), joint=False),
        Explicit(24, [(0, 1), (3, 22)]),
        Threshold(24, 3),
    ],
    ids=describe,
)
def test_boxes_under_policies_that_have_no_form_of_their_own(base):
    """They are planned for a policy around it, so no edge loses more, and some may lose less."""
    graph = Cone(base, Apex.OUTSIDE)
    for plan in problem(WORKLOADS[0], graph).plans():
        check_private(plan, graph, tight=False)
        check_errors(plan)


def test_where_moves_cost_more_the_total_takes_the_rest():
    """Two counts of a level change where a record moves, one where it appears."""
    plan = design(W(Cumulative(6), Cumulative(4)), Cone(Full(24), Apex.OUTSIDE))
    others = int(plan.weights.sum() - plan.weights.flat[-1])
    assert plan.cost == 2 * others and plan.weights.flat[-1] == others


def test_what_is_left_out_hardly_costs_more():
    """Values that are not declared leave: a curve of every group errs as if they did not."""
    workload, base = W(Cumulative(50), Histogram(4)), Product(Threshold(50, 1), Full(4))
    errors = [design(workload, graph).unit_error for graph in (base, Cone(base, Apex.OUTSIDE))]
    assert errors[1] <= 1.05 * errors[0]


def test_boxes_are_refined_like_all_independent_noise():
    graph = Cone(Product(Full(6), Full(4)), Apex.OUTSIDE)
    plan = TensorBoxes.tuned(*astuple_of(problem(WORKLOADS[0], graph)), [fine_chain(6), fine_chain(4)])
    assert plan.refinable
    x = np.random.default_rng(9).integers(0, 50, 24)
    noise = seeded(4)
    earlier = plan.observe(x, epsilon="0.5", noise=noise)
    rows, _ = plan.rows(epsilon="0.5")
    known = EarlierRelease(rows, np.asarray(earlier.measured, dtype=np.int64), Epsilon("0.5"))
    finer = plan.refine(x, known, epsilon=50, noise=noise)
    assert np.abs(finer.answers - plan.workload.answer(x)).max() < 5


def astuple_of(given: GridProblem) -> tuple:
    return given.workload, given.graph, given.questions, given.moves


def test_explanations_are_sentences():
    hidden = problem(WORKLOADS[0], POLICIES[3].hide_presence()).plans()
    for plan in (*problem(WORKLOADS[0], POLICIES[3]).plans(), *hidden):
        assert isinstance(plan, SeparablePlan)
        assert plan.explain().endswith(".")
