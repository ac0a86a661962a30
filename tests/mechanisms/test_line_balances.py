"""Balances: what lies up to each cell beyond a share of all rows, from one release, at its exact loss."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import InvalidWorkload
from blowfishdb.core.graphs import AddRemove, Apex, Banded, Cone, Full, Partitioned, Threshold
from blowfishdb.core.workloads import Balances, Cumulative, Selected
from blowfishdb.mechanisms.best import Best
from blowfishdb.mechanisms.filtered import FilteredPlan, plan_for_a_part
from blowfishdb.mechanisms.optimized import Optimized
from blowfishdb.mechanisms.optimized.line_balances import BalancesPlan
from blowfishdb.mechanisms.optimized.line_presence import beside_parts
from blowfishdb.noise import seeded
from tests.core.workload_contract import check_workload

MIDDLE, TWO = (Fraction(1, 2),), (Fraction(1, 4), Fraction(9, 10))
BASES = [
    Full(13),
    Threshold(13, 1),
    Threshold(13, 4),
    Partitioned(Bins.edges(13, [0, 5, 6])),
    Banded([3, 3, 3, 5, 5, 5, 8, 8, 8, 12, 12, 12, 12]),
    AddRemove(13).counted,
]


def plan_of(shares, base):
    return Optimized().plan(Balances(13, shares), base.hide_presence())


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("shares", [MIDDLE, TWO])
def test_they_are_the_matrix_that_they_stand_for(size, shares):
    curve = np.tril(np.ones((size, size), dtype=int)).astype(object)
    check_workload(
        Balances(size, shares), np.vstack([curve - q for q in shares]), np.random.default_rng(size)
    )


@pytest.mark.parametrize("shares", [(), (Fraction(0),), (Fraction(1),), (0.5,)])
def test_shares_lie_between_the_ends(shares):
    with pytest.raises(InvalidWorkload, match="between 0 and 1"):
        Balances(5, shares)


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.describe())
@pytest.mark.parametrize("shares", [MIDDLE, TWO])
def test_the_worst_edge_loses_exactly_what_is_charged(shares, base):
    plan = plan_of(shares, base)
    assert isinstance(plan, BalancesPlan)
    assert plan.certificate(epsilon="0.7").worst_loss(plan.graph) == Fraction(7, 10)
    assert not plan.exact.any() and not plan.free


@pytest.mark.parametrize("base", BASES, ids=lambda base: base.describe())
@pytest.mark.parametrize("shares", [MIDDLE, TWO])
def test_errors_are_those_of_the_best_unbiased_decoder(shares, base):
    plan = plan_of(shares, base)
    rows = plan.rows(epsilon=1)[0].toarray().astype(float)
    asked = np.asarray(plan.workload.matrix(), dtype=float)
    decoder = plan.spread(np.eye(len(plan.scales))).T
    assert np.allclose(decoder @ rows, asked, atol=1e-9)  # unbiased, whatever the data
    unit = 2.0 * plan.scales.floats() ** 2
    best = asked @ np.linalg.inv((rows.T / unit) @ rows) @ asked.T
    assert np.allclose(plan.variances(unit), np.diag(best))
    other = unit * np.random.default_rng(1).uniform(0.5, 2.0, size=unit.size)
    assert np.allclose(plan.variances(other), decoder**2 @ other)


def test_a_release_reads_nothing_but_its_rows():
    plan, x = plan_of(TWO, Threshold(13, 4)), np.arange(13)
    truth = plan.workload.answer(x)
    assert np.allclose(plan.decode(plan.measure(x), np.zeros(13, dtype=np.int64)), truth)
    answers = np.array([plan.release(x, epsilon="2", noise=seeded(number)) for number in range(2_000)])
    errors = (answers - truth) ** 2
    standard = errors.std(axis=0) / np.sqrt(len(errors))
    assert (np.abs(errors.mean(axis=0) - plan.squared_errors(epsilon="2")) < 5 * standard).all()


@pytest.mark.parametrize(("base", "most"), [(Threshold(50, 1), 0.155), (Full(50), 0.287)])
def test_golden_prices(base, most):
    """Of ±100 on all 50 cells; the whole curve costs .184 and .286."""
    choice = Best().for_accuracy(Balances(50, MIDDLE), base.hide_presence(), Accuracy(100, 0.05))
    assert float(choice.epsilon) < most


def test_where_the_number_of_rows_is_public_they_are_a_curve():
    for base in (Full(30), Threshold(30, 3)):
        curve, balances = (Best().plan(one, base) for one in (Cumulative(30), Balances(30, MIDDLE)))
        assert balances.unit_error == pytest.approx(curve.unit_error, rel=0.01)


# --- beside other parts of the rows -----------------------------------------------------------------


def parts(size, asked):
    """Two questions about the two halves of the rows, over boxes that tell the halves apart."""
    graph, cells = Cone(Full(2 * size), Apex.OUTSIDE), np.arange(size)
    none = np.full(size, -1)
    labels = np.concatenate((cells, none)), np.concatenate((none, cells))
    return [(Selected(asked, each), graph) for each in labels]


@pytest.mark.parametrize("asked", [Cumulative(9), Balances(9, MIDDLE)], ids=["curve", "balances"])
def test_a_plan_for_a_part_loses_half_where_rows_pass_to_another(asked):
    """Exactly ε inside, and on every edge no more than that, also of both parts together."""
    plans = [plan_for_a_part(*one) for one in parts(9, asked)]
    losses = []
    for plan in plans:
        assert isinstance(plan, FilteredPlan)
        certificate = plan.certificate(epsilon=1)
        assert certificate.worst_loss(plan.graph) == 1
        losses.append(certificate)
    across = [[each.loss(u, 9 + v) for each in losses] for u in range(9) for v in range(9)]
    assert max(map(sum, across)) <= 1
    alone = [Best().plan(*one).certificate(epsilon=1) for one in parts(9, asked)]
    assert max(sum(each.loss(u, 9 + v) for each in alone) for u in range(9) for v in range(9)) > 1


@pytest.mark.parametrize("base", BASES[:3], ids=lambda base: base.describe())
def test_a_plan_beside_parts_loses_less_by_moves(base):
    """And is charged for whatever it loses: its column counts in full once the weights are chosen."""
    graph = base.hide_presence()
    plan, usual = beside_parts(Cumulative(13), graph), Optimized().plan(Cumulative(13), graph)
    assert plan is not None
    certificates = [one.certificate(epsilon=1) for one in (plan, usual)]
    assert certificates[0].worst_loss(graph) == 1
    inside, before = (max(one.loss(u, v) for u, v in base.edges().tolist()) for one in certificates)
    assert inside <= before


def test_there_is_none_where_the_number_of_rows_is_public():
    assert beside_parts(Cumulative(9), Full(9)) is None
    assert plan_for_a_part(Cumulative(9), Full(9).hide_presence()) is None
