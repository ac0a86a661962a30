"""The automatic choice: a public rule, what it takes, and what the plans have in common."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb import noise
from blowfishdb.core.errors import NoGuarantee, SizeMismatch
from blowfishdb.core.graphs import AddRemove, Full, Grid, Partitioned, PolicyGraph, Product, Threshold
from blowfishdb.core.workloads import Cumulative, Histogram, Ranges, ValueSum, Workload
from blowfishdb.core.workloads import Product as ProductWorkload
from blowfishdb.mechanisms import DATA_DEPENDENT, NAMED, Best, DataDependentPlan
from blowfishdb.mechanisms.adaptive import Adaptive, AdaptivePlan
from blowfishdb.mechanisms.plan import Plan

CELLS = ProductWorkload(Histogram(4), Histogram(5))
CORNERS = ProductWorkload(Cumulative(4), Cumulative(5))
HALVES = Partitioned(np.repeat([0, 1], 10))
ONE_RANGE = Ranges(20, np.array([3]), np.array([9]))


@pytest.mark.parametrize(
    ("workload", "graph", "taken"),
    [
        (Histogram(20), Threshold(20, 1), "Ordered, denoised"),
        (Cumulative(20), Threshold(20, 1), "Ordered, denoised"),
        (Histogram(20), Threshold(20, 4), "Policy tree"),
        (Cumulative(20), Threshold(20, 4), "Policy tree"),
        (Histogram(20), Full(20), "Policy tree"),
        (Cumulative(20), Full(20), "Policy tree"),
        (Cumulative(20), AddRemove(20), "Adaptive tree"),
        (CORNERS, AddRemove(20), "Adaptive tree"),
        (CORNERS, Product(Full(4), Full(5)), "Adaptive tree"),
        (CELLS, Product(Full(4), Full(5)), "Ordered, denoised"),
        (CELLS, Grid((4, 5), 2), "Ordered, denoised"),
        (Histogram(20), HALVES, "Ordered, denoised"),
    ],
)
def test_what_is_taken_and_why(workload: Workload, graph: PolicyGraph, taken: str) -> None:
    plan = Adaptive().plan(workload, graph)
    assert isinstance(plan, AdaptivePlan) and plan.name == taken
    assert plan.explain().startswith("Taken by a public rule, since ")
    assert plan.inner.explain() in plan.explain()


@pytest.mark.parametrize(
    ("workload", "graph"),
    [
        (ValueSum(20, 0, 1), Threshold(20, 4)),
        (ONE_RANGE, Full(20)),
        (Cumulative(20), HALVES),
        (CORNERS, Grid((4, 5), 2)),
        (Histogram(20), AddRemove(20)),
        (Cumulative(20), Threshold(20, 4).hide_presence()),
    ],
)
def test_where_nothing_is_usually_closer_the_best_is_taken_with_its_promise(
    workload: Workload, graph: PolicyGraph
) -> None:
    plan = Adaptive().plan(workload, graph)
    assert isinstance(plan, Plan) and plan.name == Best().plan(workload, graph).name
    assert plan.alpha_for(epsilon=1, beta=0.05) > 0


def test_what_the_factor_two_is_for_is_said() -> None:
    assert "a move changes two" in Adaptive().plan(Cumulative(20), Full(20)).explain()
    assert "twice" in DATA_DEPENDENT["dawa-transformed"].plan(Histogram(20), Full(20)).explain()
    assert "doubled" in DATA_DEPENDENT["dawa"].plan(Histogram(20), Full(20)).explain()
    assert "doubled" not in DATA_DEPENDENT["dawa"].plan(Histogram(20), AddRemove(20)).explain()


def test_questions_and_policy_of_different_sizes_are_refused() -> None:
    with pytest.raises(SizeMismatch):
        Adaptive().plan(Histogram(20), Full(19))


def test_names_are_given_once() -> None:
    assert not set(NAMED) & set(DATA_DEPENDENT)
    assert {type(mechanism).__name__ for mechanism in DATA_DEPENDENT.values()} >= {
        *("Adaptive", "AdaptiveTree", "PolicyTree", "Dawa", "DawaTransformed", "OrderedDenoised")
    }


@pytest.mark.parametrize("name", DATA_DEPENDENT)
class TestEveryPlan:
    def plan(self, name: str, workload: Workload) -> DataDependentPlan:
        plan = DATA_DEPENDENT[name].plan(workload, Threshold(workload.size, 5))
        assert isinstance(plan, DataDependentPlan)
        return plan

    def test_promises_nothing(self, name: str) -> None:
        plan = self.plan(name, Cumulative(24))
        with pytest.raises(NoGuarantee):
            plan.alpha_for(epsilon=1, beta=0.05)
        with pytest.raises(NoGuarantee):
            plan.epsilon_for(alpha=10, beta=0.05)

    def test_gives_what_no_edge_changes_exactly_and_the_rest_with_noise(self, name: str) -> None:
        x = np.arange(24) * 7
        plan = self.plan(name, Cumulative(24))
        seen = plan.observe(x, epsilon="0.01", noise=noise.seeded(3))
        assert plan.exact.tolist() == [False] * 23 + [True] and not plan.free
        assert seen.answers[-1] == x.sum() and (np.abs(seen.answers[:-1] - np.cumsum(x)[:-1]) > 0.5).any()
        assert seen.measured.size == 0 and seen.totals is None

    def test_what_is_public_is_free(self, name: str) -> None:
        plan = DATA_DEPENDENT[name].plan(Histogram(1), Full(1))
        seen = plan.observe(np.array([41]), epsilon="0.01", noise=noise.seeded(3))
        assert plan.free and seen.answers.tolist() == [41]
