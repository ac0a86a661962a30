"""Filtered questions over the rows inside: exact losses over every edge of the whole policy, and prices."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Selected, Workload
from blowfishdb.mechanisms.filtered import Filtered, FilteredPlan
from blowfishdb.mechanisms.plan import Plan

SALARY, SEX = 9, 2


def _policies() -> dict[str, PolicyGraph]:
    domain = bf.Domain(salary=bf.Integer(0, SALARY - 1), sex=bf.Integer(0, SEX - 1))
    near = {"salary": bf.graphs.Threshold(SALARY, 2)}
    parts = {"salary": bf.graphs.Partitioned(np.arange(SALARY) // 3), "sex": bf.graphs.Explicit(2, ())}
    policies = {
        "everything": bf.Policy.differential_privacy(domain),
        "near": bf.Policy.by_column(domain, near),
        "one at a time": bf.Policy.by_column(domain, near, joint=False),
        "near, presence hidden": bf.Policy.by_column(domain, near, hide_presence=True),
        "parts, sex public": bf.Policy.by_column(domain, parts),
    }
    return {name: policy.graph for name, policy in policies.items()}


POLICIES = _policies()
WORKLOADS: dict[str, Workload] = {
    "cumulative": bf.workloads.Cumulative(SALARY),
    "histogram": bf.workloads.Histogram(SALARY),
    "ranges": bf.workloads.AllRanges(SALARY),
}


def women(workload: Workload) -> Selected:
    cells = np.arange(SALARY * SEX)
    return Selected(workload, np.where(cells % SEX == 0, cells // SEX, -1))


def rich(workload: Workload) -> Selected:
    """A condition on the column itself: the four upper cells, both sexes."""
    cells = np.arange(SALARY * SEX)
    inner = type(workload)(4)  # type: ignore[call-arg]
    return Selected(inner, np.where(cells // SEX >= 5, cells // SEX - 5, -1))


CASES = [(name, kind, condition) for name in POLICIES for kind in WORKLOADS for condition in (women, rich)]


def plan_of(policy: str, kind: str, condition: object) -> tuple[Plan, PolicyGraph]:
    graph = POLICIES[policy]
    return Filtered().plan(condition(WORKLOADS[kind]), graph), graph  # type: ignore[operator]


@pytest.mark.parametrize(("policy", "kind", "condition"), CASES)
def test_no_edge_of_the_whole_policy_loses_more(policy: str, kind: str, condition: object) -> None:
    plan, graph = plan_of(policy, kind, condition)
    assert plan.certificate(epsilon=1).worst_loss(graph) <= Fraction(1)


@pytest.mark.parametrize(("policy", "kind", "condition"), CASES)
def test_what_comes_out_is_the_truth_and_its_noise(policy: str, kind: str, condition: object) -> None:
    plan, _ = plan_of(policy, kind, condition)
    draws = np.random.Generator(np.random.Philox(7))
    x = draws.integers(0, 30, plan.workload.size)
    noise = draws.integers(-9, 10, len(plan.scales))
    answers = plan.decode(plan.measure(x) + noise, x)
    assert np.allclose(answers - plan.workload.answer(x), plan.spread(noise))
    rows, _ = plan.rows(epsilon=1)
    assert np.array_equal(rows @ x, np.asarray(plan.measure(x))[plan.scales.floats() > 0])


def test_best_takes_it_where_it_is_cheaper() -> None:
    """A curve of women: beside everything that can be done with the cells of both sexes."""
    cells, domain = 25, bf.Domain(salary=bf.Integer(0, 24), sex=bf.Integer(0, 1))
    graph = bf.Policy.by_column(domain, {"salary": bf.graphs.Threshold(cells, 1)}).graph
    labels = np.where(np.arange(2 * cells) % 2 == 0, np.arange(2 * cells) // 2, -1)
    workload, asked = Selected(bf.workloads.Cumulative(cells), labels), Accuracy(100, 0.05)
    best = bf.mechanisms.Best()
    others = bf.mechanisms.Best(tuple(each for each in best.candidates if not isinstance(each, Filtered)))
    with_it, without = (one.for_accuracy(workload, graph, asked) for one in (best, others))
    assert isinstance(with_it.plan, FilteredPlan)
    assert float(with_it.epsilon) < 0.65 * float(without.epsilon)


def test_questions_without_a_condition_are_not_meant() -> None:
    with pytest.raises(NotProven, match="with a condition"):
        Filtered().plan(bf.workloads.Histogram(4), bf.graphs.Full(4))
