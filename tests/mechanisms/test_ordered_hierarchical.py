"""The ordered hierarchical mechanism: what was published overspends, what is implemented does not."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, NotProven, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Banded, Explicit, Full, Grid, Partitioned, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram
from blowfishdb.mechanisms import ordered
from blowfishdb.mechanisms.check import check_mechanism
from blowfishdb.mechanisms.hierarchical import Hierarchical, blocks
from blowfishdb.mechanisms.linear.strategy import Contrasts, tree_nodes
from blowfishdb.mechanisms.ordered import OrderedHierarchical, OrderedPlan
from blowfishdb.mechanisms.plan import Certificate
from tests.core.oracle import line_bound
from tests.mechanisms.runs import draws


def published(k, theta, fanout):
    """[B14] §7.2 as printed, with its split (15): rows, and the ε that each is said to cost, over ε.

    s_1 is the root of H_1 and all of H_1 gets 2h/ε; the other s_i get 1/ε_S and the other trees 2h/ε_H.
    """
    height = math.ceil(math.log(theta, fanout) - 1e-9)
    c1 = 4 * (k - theta) / (k + 1)
    c2 = 8 * (fanout - 1) * math.log(theta, fanout) ** 3 * k / (k + 1)
    ordered_share = c1 ** (1 / 3) / (c1 ** (1 / 3) + c2 ** (1 / 3))
    starts, stops = blocks(k, theta)
    first = tree_nodes(starts[:1], stops[:1], fanout)
    others = tree_nodes(starts[1:], stops[1:], fanout)
    groups = [
        (np.zeros_like(stops[1:]), stops[1:], Fraction(ordered_share)),
        (starts[:1], stops[:1], Fraction(1, 2 * height)),
        (*first, Fraction(1, 2 * height)),
        (*others, Fraction(1 - ordered_share) / (2 * height)),
    ]
    unit = 10**12
    weights = np.concatenate([np.full(len(a), int(share * unit)) for a, _, share in groups])
    rows = Contrasts(
        k, np.concatenate([g[0] for g in groups]), np.concatenate([g[1] for g in groups]), weights
    )
    return rows, unit


@pytest.mark.parametrize(
    ("k", "theta", "fanout", "overspent"), [(16, 4, 2, 1.118), (64, 16, 16, 1.387), (4357, 100, 16, 1.169)]
)
def test_the_published_budget_overspends(k, theta, fanout, overspent):
    rows, unit = published(k, theta, fanout)
    graph = Threshold(k, theta)
    assert rows.cost(graph) / unit == pytest.approx(overspent, abs=6e-4)
    scales = [Fraction(unit, int(weight)) for weight in rows.weights]  # at ε = 1
    certificate = Certificate.of_rows(rows.sparse(), scales)
    assert float(certificate.loss(theta - 1, theta)) == pytest.approx(
        overspent, abs=6e-4
    )  # the edge (θ, θ+1)
    if k <= 64:
        assert certificate.worst_loss(graph) == certificate.loss(theta - 1, theta) > 1


SHAPES = [
    (16, 4, 2),
    (64, 16, 16),
    (40, 7, 3),
    (23, 5, 2),
    (14, 7, 3),
    (13, 7, 2),
    (9, 8, 3),
    (9, 20, 2),
    (5, 2, 2),
]


@pytest.mark.parametrize(("k", "theta", "fanout"), SHAPES)
@pytest.mark.parametrize("split", [None, Fraction(1, 3)])
def test_every_edge_loses_at_most_epsilon(k, theta, fanout, split):
    graph = Threshold(k, theta)
    plan = OrderedHierarchical(fanout, split=split).plan(Cumulative(k), graph)
    for epsilon in (Fraction(1), Fraction(333_333_333, 10**9)):
        assert plan.certificate(epsilon=epsilon).worst_loss(graph) == epsilon
        rows, scales = plan.rows(epsilon=epsilon)
        mutant = Certificate.of_rows(rows, [scale * Fraction(9, 10) for scale in scales])
        assert mutant.worst_loss(graph) > epsilon


@pytest.mark.parametrize(
    ("k", "theta", "fanout"), [(16, 4, 2), (64, 16, 16), (40, 7, 3), (23, 5, 2), (14, 7, 3)]
)
def test_the_corrected_budget_is_the_papers_split(k, theta, fanout):
    """For k ≥ 2θ the scales are 1/ε_S and 2h/ε_H: the worst edge crosses one S node and 2h tree nodes."""
    plan = OrderedHierarchical(fanout, split=Fraction(1, 3)).plan(Cumulative(k), Threshold(k, theta))
    ordered = plan.strategy.starts == 0
    ordered &= np.isin(plan.strategy.stops, np.arange(theta, k, theta)) & (plan.strategy.stops >= theta)
    height = math.ceil(math.log(theta, fanout) - 1e-9)
    scales = plan.scales.fractions(Epsilon(1))
    assert {scales[r] for r in np.flatnonzero(ordered)} == {Fraction(3)}
    assert {scales[r] for r in np.flatnonzero(~ordered)} == {2 * height * Fraction(3, 2)}
    intervals = set(zip(plan.strategy.starts.tolist(), plan.strategy.stops.tolist(), strict=True))
    roots = {(start, start + theta) for start in range(theta, k, theta)}
    assert not intervals & roots  # the root of H_i, i > 1, is never measured; that of H_1 only as s_1
    assert (0, k) not in intervals  # and neither is n


def test_the_two_extremes():
    k = 27
    assert isinstance(OrderedHierarchical().plan(Cumulative(k), Threshold(k, 1)), OrderedPlan)
    for graph in (Full(k), Threshold(k, k), Threshold(k, k - 1)):
        plan = OrderedHierarchical(3).plan(Cumulative(k), graph)
        classical = Hierarchical(3).plan(Cumulative(k), Full(k))
        assert plan.unit_error == pytest.approx(classical.unit_error, rel=1e-12)


@pytest.mark.parametrize(
    ("theta", "workload", "tuned", "paper"),
    [
        (4, Cumulative(256), 4.20, 9.27),
        (16, Cumulative(256), 5.87, 14.7),
        (16, AllRanges(256), 5.83, 14.7),
        (64, Cumulative(256), 9.15, 31.6),
        (64, AllRanges(256), 8.70, 30.8),
        (255, Cumulative(256), 8.47, 25.4),
        (255, AllRanges(256), 8.27, 22.2),
    ],
)
def test_errors_relative_to_the_lower_bound(theta, workload, tuned, paper):
    graph = Threshold(256, theta)
    bound = line_bound(workload.gram(), theta, steps=15)
    plan = OrderedHierarchical().plan(workload, graph)
    assert plan.unit_error / bound == pytest.approx(tuned, rel=0.02)
    read_off = OrderedHierarchical(16, "paper").plan(workload, graph)
    assert read_off.unit_error / bound == pytest.approx(paper, rel=0.03)


@pytest.mark.parametrize("decoding", ["least squares", "paper"])
@pytest.mark.parametrize("epsilon", ["1.5", "0.1"])
def test_errors_match_releases(decoding, epsilon):
    k, runs = 11, 1_500
    plan = OrderedHierarchical(2, decoding).plan(AllRanges(k), Threshold(k, 4))
    x, seeded = np.arange(k), noise.seeded(4)
    errors = np.array(
        [plan.release(x, epsilon=epsilon, noise=seeded) - plan.workload.answer(x) for _ in range(runs)]
    )
    spread = (errors**2).std(axis=0) / np.sqrt(runs)
    assert (
        np.abs((errors**2).mean(axis=0) - plan.squared_errors(epsilon=epsilon)) <= 5 * spread + 1e-9
    ).all()


def test_least_squares_never_errs_more_than_the_papers_decoding():
    for theta in (2, 3, 5, 11):
        for fanout in (2, 3):
            ours, theirs = (
                OrderedHierarchical(fanout, decoding, Fraction(2, 5)).plan(
                    AllRanges(24), Threshold(24, theta)
                )
                for decoding in ("least squares", "paper")
            )
            continuous = 2.0 * ours.scales.floats() ** 2
            assert (ours.variances(continuous) <= theirs.variances(continuous) * (1 + 1e-9)).all()


@pytest.mark.parametrize("decoding", ["least squares", "paper"])
def test_coverage_at_a_fractional_alpha(decoding):
    k, alpha, beta, runs = 20, 31.7, 0.05, 10_000
    plan = OrderedHierarchical(2, decoding).plan(Cumulative(k), Threshold(k, 4))
    epsilon = plan.epsilon_for(alpha=alpha, beta=beta)
    drawn = draws(plan, epsilon, runs, seed=6)
    failed = (np.abs(plan.spread(drawn)) > alpha).any(axis=1).mean()
    assert beta / 2 <= failed <= beta + 4 * np.sqrt(beta * (1 - beta) / runs)


@pytest.mark.parametrize(
    "graph",
    [
        Banded([2, 2, 3, 5, 5, 6, 8, 8, 9, 9, 10, 11]),
        Banded([3, 3, 3, 3, 5, 5, 6, 8, 8, 11, 11, 11]),
        Partitioned([0, 0, 0, 1, 1, 1, 1, 2, 3, 3, 3, 3]),
        Grid((12,), 3),
    ],
)
def test_the_true_graph_decides_the_cost(graph):
    """Planned on the covering threshold, charged on the true edges: never more than ε, and never less."""
    for decoding in ("least squares", "paper"):
        plan = OrderedHierarchical(2, decoding, Fraction(1, 4)).plan(AllRanges(12), graph)
        assert plan.certificate(epsilon=1).worst_loss(graph) == 1
        covering = OrderedHierarchical(2, decoding, Fraction(1, 4)).plan(
            AllRanges(12), Threshold(12, graph.reach)
        )
        assert plan.unit_error <= covering.unit_error * (1 + 1e-9)
        x = np.arange(12)
        np.testing.assert_allclose(plan.decode(plan.measure(x), x), AllRanges(12).answer(x), atol=1e-9)


@pytest.mark.parametrize(
    "graph", [AddRemove(6), Full(6).hide_presence(), Grid((2, 3), 1), Explicit(6, [(0, 5)])]
)
def test_other_policies_are_refused(graph):
    with pytest.raises(NotProven, match="line"):
        OrderedHierarchical().plan(Cumulative(6), graph)


def test_inputs_are_checked():
    for bad in ({"fanout": 1}, {"split": 0}, {"split": 1.0}, {"split": math.nan}, {"decoding": "isotonic"}):
        with pytest.raises(InvalidInput):
            OrderedHierarchical(**bad)
    with pytest.raises(SizeMismatch):
        OrderedHierarchical().plan(Histogram(4), Full(5))


def test_the_decoding_of_the_paper_keeps_the_contract():
    checked = check_mechanism(OrderedHierarchical(2, "paper"))
    assert {"full, prefixes", "threshold, all ranges", "banded, ranges", "partition, ranges"} <= set(
        checked.planned
    )


@pytest.mark.parametrize(("k", "theta", "fanout"), [*SHAPES, (64, 9, 3), (100, 10, 4)])
@pytest.mark.parametrize("asked", [Cumulative, AllRanges, Histogram])
def test_the_papers_decoding_divides_epsilon_in_closed_form(k, theta, fanout, asked, monkeypatch):
    """[B14] (15) with exact coefficients: what a search finds, and a little better than it."""
    mechanism = OrderedHierarchical(fanout, "paper")
    plan = mechanism.plan(asked(k), Threshold(k, theta))
    with monkeypatch.context() as patch:
        patch.setattr(ordered._Nodes, "paper_split", lambda self, workload, graph: None)
        searched = mechanism.plan(asked(k), Threshold(k, theta))
    assert plan.unit_error == pytest.approx(searched.unit_error, rel=2e-3)
    assert plan.unit_error <= searched.unit_error * (1 + 1e-9)
    assert plan.certificate(epsilon=1).worst_loss(Threshold(k, theta)) <= 1


def test_the_closed_form_is_taken_where_two_blocks_fit():
    plan = OrderedHierarchical(3, "paper").plan(AllRanges(81), Threshold(81, 9))
    nodes = ordered._Nodes.of(Threshold(81, 9), 81, 9, 3)
    assert nodes.paper_split(AllRanges(81), Threshold(81, 9)) is not None
    tree, prefix = (Fraction(1, scale.numerator) * scale.denominator for scale in plan.scales.distinct)
    assert {prefix + 4 * tree, tree + 4 * prefix} & {Fraction(1)}  # K = w_S + 2h·w_H is spent


@pytest.mark.parametrize("decoding", ["paper", "least squares"])
def test_all_ranges_are_added_up_without_listing_them(decoding):
    plan = OrderedHierarchical(3, decoding).plan(AllRanges(40), Threshold(40, 7))
    of_noise = np.random.default_rng(1).random(len(plan.scales))
    assert plan.total_variance(of_noise) == pytest.approx(float(plan.variances(of_noise).sum()))


def test_a_long_line_is_planned_without_a_search():
    plan = OrderedHierarchical(decoding="paper").plan(AllRanges(2**14), Threshold(2**14, 100))
    assert plan.unit_error / AllRanges(2**14).count == pytest.approx(976, rel=0.05)
