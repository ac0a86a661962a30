"""Projection and policy: the small problem is the big one, cell by cell and from rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.attributes import Category, Integer
from blowfishdb.core.bins import Bins
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import InvalidWorkload, SizeMismatch, UnknownColumn
from blowfishdb.core.policy import Policy
from blowfishdb.core.projection import Axis, Question, Shape, project
from blowfishdb.core.sensitivity import sensitivity

DOMAIN = Domain(
    age=Integer(0, 5), salary=Integer(0, 7), region=Category(["n", "s"], outside="clamp", missing="clamp")
)


def axis(domain: Domain, name: str, **bins: object) -> Axis:
    return Axis(name, domain[name], domain[name].bins(**bins))  # type: ignore[arg-type]


def random_policy(rng: np.random.Generator) -> Policy:
    chosen: dict[str, graphs.PolicyGraph] = {}
    if rng.random() < 0.7:
        chosen["salary"] = graphs.Threshold(8, int(rng.integers(1, 9)))
    if rng.random() < 0.5:
        chosen["age"] = graphs.Partitioned([0, 0, 1, 1, 2, 2])
    return Policy.by_column(
        DOMAIN, chosen, joint=bool(rng.random() < 0.5), hide_presence=bool(rng.random() < 0.3)
    )


@pytest.mark.parametrize("seed", range(80))
def test_a_question_costs_what_its_rows_cost(seed: int) -> None:
    """From rows, not cells: move one record along every edge of the whole policy and count the change."""
    rng = np.random.default_rng(seed)
    policy = random_policy(rng)
    names = [["salary"], ["age"], ["age", "salary"], ["salary", "region"]][rng.integers(0, 4)]
    shape = Shape.HISTOGRAM if "region" in names or rng.random() < 0.5 else Shape.CUMULATIVE
    widths = {"age": int(rng.integers(1, 4)), "salary": int(rng.integers(1, 5)), "region": 1}
    axes = tuple(
        axis(DOMAIN, name, **({"width": widths[name]} if name != "region" else {})) for name in names
    )
    problem = project(Question(shape, axes), policy)

    def answers(cell: int | None) -> np.ndarray:
        counts = np.zeros([a.bins.count for a in axes], dtype=np.int64)
        if cell is not None:
            record = dict(zip(DOMAIN.names, np.unravel_index(cell, DOMAIN.shape), strict=True))
            counts[tuple(int(a.bins.assign(record[a.column])) for a in axes)] = 1
        if shape is Shape.CUMULATIVE:
            for dimension in range(counts.ndim):
                counts = counts.cumsum(axis=dimension)
        return counts

    worst = 0
    one = [answers(cell) for cell in range(DOMAIN.size)] + [answers(None)]
    for u, v in policy.graph.edges():
        worst = max(worst, int(np.abs(one[u] - one[v]).sum()))
    assert sensitivity(problem.workload, problem.graph) == worst


def test_axes_follow_the_order_of_the_domain() -> None:
    question = Question(Shape.HISTOGRAM, (axis(DOMAIN, "salary"), axis(DOMAIN, "age")))
    problem = project(question, Policy.differential_privacy(DOMAIN))
    assert [a.column for a in problem.cells.axes] == ["age", "salary"]
    assert problem.cells.shape == (6, 8) and problem.cells.count == problem.workload.size == 48


def test_dropping_makes_outside_adjacent_to_every_value() -> None:
    domain = Domain(salary=Integer(0, 99, outside="drop"))
    policy = Policy(domain, graphs.Threshold(100, 1))
    problem = project(Question(Shape.CUMULATIVE, (axis(domain, "salary"),)), policy)
    assert problem.graph.absent and sensitivity(problem.workload, problem.graph) == 100
    clamped = Domain(salary=Integer(0, 99))
    kept = project(
        Question(Shape.CUMULATIVE, (axis(clamped, "salary"),)), Policy(clamped, graphs.Threshold(100, 1))
    )
    assert sensitivity(kept.workload, kept.graph) == 1


def test_missing_values_have_a_bar_but_no_place_on_the_line() -> None:
    domain = Domain(salary=Integer(0, 9, missing="value"))
    policy = Policy.by_column(domain, {"salary": graphs.Threshold(10, 1)})
    bins = axis(domain, "salary", width=5)
    histogram = project(Question(Shape.HISTOGRAM, (bins,)), policy)
    cumulative = project(Question(Shape.CUMULATIVE, (bins,)), policy)
    assert len(histogram.workload) == 3 and len(cumulative.workload) == 2
    assert sensitivity(cumulative.workload, cumulative.graph) == 2  # from missing to the lowest bin
    assert bins.labels() == ["0–4", "5–9", "missing"]


def test_a_huge_domain_projects_at_no_cost() -> None:
    attributes = {f"a{i}": Integer(0, 10**6 - 1) for i in range(8)}
    domain = Domain(**attributes)
    policy = Policy.by_column(domain, {"a3": graphs.Threshold(10**6, 100)})
    problem = project(Question(Shape.CUMULATIVE, (axis(domain, "a3", count=20),)), policy)
    assert problem.graph == graphs.Threshold(20, 1)
    assert isinstance(problem.workload, workloads.Cumulative)


class TestBadInput:
    def test_a_graph_of_another_size(self) -> None:
        with pytest.raises(SizeMismatch, match="by_column"):
            Policy(DOMAIN, graphs.Full(5))
        with pytest.raises(SizeMismatch, match="'salary'"):
            Policy.by_column(DOMAIN, {"salary": graphs.Full(5)})

    def test_an_unknown_column(self) -> None:
        with pytest.raises(UnknownColumn, match="salary"):
            Policy.by_column(DOMAIN, {"salery": graphs.Full(8)})

    def test_questions_about_nothing_twice_or_without_order(self) -> None:
        region = axis(DOMAIN, "region")
        for axes, shape in (
            ((), Shape.HISTOGRAM),
            ((region, region), Shape.HISTOGRAM),
            ((region,), Shape.CUMULATIVE),
        ):
            with pytest.raises(InvalidWorkload):
                Question(shape, axes)

    def test_bins_of_another_column(self) -> None:
        with pytest.raises(SizeMismatch, match="'age'"):
            Axis("age", DOMAIN["age"], Bins.width(8, 2))

    def test_a_column_declared_differently(self) -> None:
        other = Domain(age=Integer(0, 99))
        with pytest.raises(SizeMismatch, match="differently"):
            project(Question(Shape.HISTOGRAM, (axis(other, "age"),)), Policy.differential_privacy(DOMAIN))


def test_hidden_presence_survives_projection() -> None:
    policy = Policy.by_column(DOMAIN, {"salary": graphs.Threshold(8, 1)}, hide_presence=True)
    problem = project(Question(Shape.CUMULATIVE, (axis(DOMAIN, "salary"),)), policy)
    assert policy.hides_presence and problem.graph.absent
    assert sensitivity(problem.workload, problem.graph) == 8


def test_every_pair_of_names_projects_consistently() -> None:
    policy = Policy.by_column(DOMAIN, {"salary": graphs.Threshold(8, 2)})
    for names in itertools.combinations(DOMAIN.names, 2):
        question = Question(Shape.HISTOGRAM, tuple(axis(DOMAIN, name) for name in names))
        problem = project(question, policy)
        assert problem.graph.size == problem.cells.count
