"""What releases lost under a policy that they were not made for: golden numbers and brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.constraints import Constraints
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.graphs import Full, Partitioned, PolicyGraph, Threshold
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.workloads import Cumulative, Histogram, Workload
from blowfishdb.mechanisms import Laplace
from blowfishdb.mechanisms.losses import ByDistance, ByRows, Kernel, Tightest
from blowfishdb.mechanisms.reuse.stored import rows_of
from blowfishdb.mechanisms.total_loss import total_loss

SALARY = Domain(salary=Integer(0, 199))


def line(theta: int) -> Policy:
    return Policy.by_column(SALARY, {"salary": Threshold(200, theta)})


def released(policy: Policy, workload: Workload, epsilon: str) -> ByRows:
    plan = Laplace(on="workload").plan(workload, policy.graph)
    rows, scales = plan.rows(epsilon=Epsilon(epsilon))
    axis = Axis("salary", SALARY["salary"], Bins.width(200, 1))
    return ByRows((axis,), rows_of(rows), tuple(scales), np.arange(len(scales)))


def test_salaries_were_hidden_within_one_and_now_within_ten() -> None:
    """REUSE §3: by the kernel 2.2, by distances 4.0."""
    old, new = line(1), line(10)
    kernels = [released(old, workload, "0.2") for workload in (Cumulative(200), Histogram(200))]
    assert float(total_loss(kernels, new).loss) == pytest.approx(2.2, abs=1e-6)
    assert total_loss([ByDistance(old, Epsilon("0.2"))] * 2, new).loss == 4
    assert float(total_loss(kernels, old).loss) == pytest.approx(0.4, abs=1e-6)
    assert total_loss(kernels, old).loss >= Fraction("0.4")


def test_an_exact_answer_loses_everything_between_what_it_tells_apart() -> None:
    halves = Bins.width(200, 100)
    axis = Axis("salary", SALARY["salary"], halves)
    kernel = ByRows((axis,), rows_of(Histogram(2)), (Fraction(0),), np.zeros(2, dtype=np.int64))
    inside = Policy.by_column(SALARY, {"salary": Partitioned(halves)})
    assert kernel.worst(inside) == 0
    assert math.isinf(float(kernel.worst(line(1))))
    assert math.isinf(float(ByDistance(inside, Epsilon("0.1")).worst(line(1))))


def test_how_many_rows_there_are_is_told_where_they_come_and_go_beside_known_counts() -> None:
    known = Constraints(counts=[col("salary") < 100])
    for outside, presence in (("clamp", False), ("clamp", True), ("drop", False)):
        domain = Domain(salary=Integer(0, 199, outside=outside))
        policy = Policy.by_column(domain, {"salary": Threshold(200, 1)}, hide_presence=presence)
        axis = Axis("salary", domain["salary"], Bins.width(200, 200))
        everyone = ByRows((axis,), rows_of(Histogram(1)), (Fraction(0),), np.zeros(1, dtype=np.int64))
        told = presence or outside == "drop"
        assert everyone.worst(policy.knowing(known)) == (math.inf if told else 0)


def test_a_column_that_is_declared_otherwise_cannot_be_compared() -> None:
    other = Policy.differential_privacy(Domain(salary=Integer(0, 99)))
    assert math.isinf(float(released(line(1), Histogram(200), "0.1").worst(other)))
    assert math.isinf(float(ByDistance(line(1), Epsilon("0.1")).worst(other)))


def test_rows_of_one_person_add_up() -> None:
    one = released(line(1), Histogram(200), "0.1")
    three = ByRows(one.axes, one.rows, one.scales, one.which, rows_per_person=3)
    assert three.worst(line(5)) == 3 * one.worst(line(5))


def test_of_two_views_the_closer_one_counts() -> None:
    rows, steps = released(line(1), Histogram(200), "0.2"), ByDistance(line(1), Epsilon("0.2"))
    both = Tightest((rows, steps))
    assert both.worst(line(10)) == rows.worst(line(10)) < steps.worst(line(10))
    assert both.worst(line(1)) == steps.worst(line(1)) <= rows.worst(line(1))


# --- against the definition ---------------------------------------------------------------------------------

PLACES = Domain(a=Integer(0, 3), b=Integer(0, 2))
GRAPHS: tuple[tuple[PolicyGraph, PolicyGraph], ...] = (
    (Threshold(4, 1), Threshold(3, 1)),
    (Full(4), Threshold(3, 2)),
    (Partitioned(Bins.width(4, 2)), Full(3)),
)


def random_kernel(rng: np.random.Generator, columns: str) -> tuple[ByRows, np.ndarray]:
    """A release on some columns, and its loss between all pairs of records."""
    sizes = {"a": 4, "b": 3}
    axes = tuple(Axis(name, PLACES[name], Bins.width(sizes[name], 1)) for name in columns)
    boxes = math.prod(sizes[name] for name in columns)
    matrix = rng.integers(-1, 2, (5, boxes))
    scales = tuple(Fraction(int(n), 7) for n in rng.integers(1, 50, 5))
    kernel = ByRows(axes, rows_of(csr_array(matrix)), scales, np.arange(5))
    records = np.array([[a, b] for a in range(4) for b in range(3)])
    box = {"ab": np.arange(12), "a": records[:, 0], "b": records[:, 1]}[columns]
    seen = matrix[:, box] / np.array([float(scale) for scale in scales])[:, None]
    return kernel, np.abs(seen[:, :, None] - seen[:, None, :]).sum(axis=0)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("graphs", GRAPHS, ids=["lines", "full", "parts"])
def test_against_all_edges(joint: bool, graphs: tuple[PolicyGraph, PolicyGraph]) -> None:
    rng = np.random.default_rng(3)
    policy = Policy.by_column(PLACES, dict(zip("ab", graphs, strict=True)), joint=joint)
    edges = policy.graph.edges()
    for _ in range(6):
        made = [random_kernel(rng, columns) for columns in ("ab", "a", "b")]
        kernels: list[Kernel] = [kernel for kernel, _ in made]
        for kernel, losses in made:
            true = losses[edges[:, 0], edges[:, 1]].max()
            assert float(kernel.worst(policy)) == pytest.approx(true, abs=1e-9)
        true = sum(losses for _, losses in made)[edges[:, 0], edges[:, 1]].max()
        assert float(total_loss(kernels, policy).loss) == pytest.approx(true, abs=1e-9)
        within = [Tightest((kernel,)) for kernel in kernels]
        assert total_loss(within, policy).loss == total_loss(kernels, policy).loss


def test_answers_about_groups_that_no_edge_joins_cost_as_much_as_the_dearest() -> None:
    """[B14] Thm 4.2 over components; the distant cells of REUSE §2: .2 each, .2 together."""
    halves = Policy.by_column(SALARY, {"salary": Partitioned(Bins.width(200, 100))})
    axis = Axis("salary", SALARY["salary"], Bins.width(200, 1))
    for policy, first, second in ((halves, (0, 100), (100, 200)), (line(2), (0, 10), (30, 40))):
        kernels = []
        for start, stop in (first, second):
            rows = np.eye(200, dtype=np.int64)[start:stop]
            scale = (Fraction(10),)
            which = np.zeros(stop - start, dtype=np.int64)
            kernels.append(ByRows((axis,), rows_of(csr_array(rows)), scale, which))
        each = [kernel.worst(policy) for kernel in kernels]
        assert [float(loss) for loss in each] == pytest.approx([0.2, 0.2])
        assert total_loss(kernels, policy).loss == each[0]
    near = [kernels[0], kernels[0]]
    assert total_loss(near, line(2)).loss == 2 * each[0]


def test_what_is_not_counted_is_a_vertex_too() -> None:
    policy = Policy.by_column(SALARY, {"salary": Threshold(200, 1)}, hide_presence=True)
    kernels = [released(line(1), Histogram(200), "0.2")] * 2
    assert float(total_loss(kernels, policy).loss) == pytest.approx(0.4, abs=1e-6)
    assert float(kernels[0].worst(policy)) == pytest.approx(0.2, abs=1e-6)
