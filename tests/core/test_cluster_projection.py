"""From a question for clusters to points: no two neighbouring tables differ by more than is said."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from benchmarks.points import Points

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.constraints.declared import Constraints
from blowfishdb.core.domain.attributes import Category, Integer, Real
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import NotProven
from blowfishdb.core.graphs import Cone, Explicit, Full, Partitioned, PolicyGraph, Product, Threshold
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.clusters import FINE, Centroids, ClusterProblem, project_clusters
from blowfishdb.mechanisms.kmeans.crossing import round_facts

DOMAIN = Domain(
    x=Integer(0, 6), town=Category(["a", "b", "c"], missing="clamp", outside="clamp"), y=Integer(0, 2)
)
FILTERS: list[Predicate | None] = [
    None,
    col("town") == "a",
    col("x") >= 4,
    (col("x") < 5) & (col("town") != "b"),
]


def policies() -> list[PolicyGraph]:
    return [
        Product(Threshold(7, 1), Full(3), Full(3)),
        Product(Threshold(7, 2), Full(3), Explicit(3, ()), joint=False),
        Product(Full(7), Explicit(3, ()), Threshold(3, 1)),
        Product(Partitioned([0, 0, 1, 1, 1, 2, 2]), Threshold(3, 1), Full(3), joint=False),
        Product(Threshold(7, 1), Threshold(3, 1), Threshold(3, 1)).hide_presence(),
    ]


def table_of(
    problem: ClusterProblem, centroids: Centroids, row: tuple[int, ...], where: Predicate | None
) -> IntArray:
    """Sizes and sums of a table with one row, which may not satisfy the filter."""
    cells = {name: np.array([cell]) for name, cell in zip(DOMAIN.names, row, strict=True)}
    condition = Everything() if where is None else where
    if not np.broadcast_to(condition.on_cells(DOMAIN, cells), (1,))[0]:
        return np.zeros((len(centroids), 1 + problem.space.axes), dtype=np.int64)
    point = [int(cells[axis.column][0]) for axis in problem.query.axes]
    return Points(problem.space, [point]).totals(centroids).reveal()


@pytest.mark.parametrize("where", FILTERS, ids=str)
@pytest.mark.parametrize("columns", [("x",), ("x", "y")])
@pytest.mark.parametrize("number", range(5))
def test_no_move_of_a_row_changes_more_than_is_said(
    where: Predicate | None, columns: tuple[str, ...], number: int
) -> None:
    graph = policies()[number]
    problem = project_clusters(columns, Policy(DOMAIN, graph), where)
    fine = FINE * problem.space.last * np.array([[0.2], [0.75]])
    centroids = Centroids(problem.space, fine.astype(np.int64))
    facts = round_facts(centroids, problem.graph)
    rows = list(itertools.product(range(7), range(3), range(3)))
    tables = [table_of(problem, centroids, row, where) for row in rows]
    tables.append(np.zeros_like(tables[0]))
    sizes = sums = 0
    for u, v in graph.edges().tolist():
        change = tables[u] - tables[v]
        moved = change[:, 1:] - change[:, :1] * facts.anchors
        sizes = max(sizes, int(np.abs(change[:, 0]).sum()))
        sums = max(sums, int((np.abs(moved) @ problem.space.lengths).sum()))
    assert sizes <= facts.change.sizes and sums <= facts.change.sums
    if where is None:
        assert (sizes, sums) == (facts.change.sizes, facts.change.sums)


def test_a_filter_that_no_hidden_move_crosses_adds_nothing() -> None:
    policy = Policy(DOMAIN, policies()[2])
    assert not isinstance(project_clusters(("x",), policy, col("town") == "a").graph, Cone)
    assert isinstance(project_clusters(("x",), policy, col("x") >= 4).graph, Cone)
    assert isinstance(project_clusters(("x",), Policy(DOMAIN, policies()[0]), col("town") == "a").graph, Cone)
    dropping = Domain(x=Integer(0, 6, outside="drop"))
    assert project_clusters(("x",), Policy.differential_privacy(dropping)).graph.absent


def test_columns_are_in_the_order_of_the_domain_and_read_in_their_own_units() -> None:
    domain = Domain(pay=Real(10, 20, "0.5"), age=Integer(0, 99, step=5))
    problem = project_clusters(("age", "pay"), Policy.differential_privacy(domain))
    assert [axis.column for axis in problem.query.axes] == ["pay", "age"]
    assert problem.space.shape == (21, 20) and problem.space.weights == (1, 1)
    assert problem.in_units(np.array([[0.0, 0.0], [2.5, 1.0]])).tolist() == [[10.0, 2.0], [11.25, 7.0]]


def test_what_the_world_knows_is_not_proven_for_clusters() -> None:
    known = Policy.differential_privacy(DOMAIN).knowing(Constraints(marginals=["town"]))
    with pytest.raises(NotProven):
        project_clusters(("x",), known)
