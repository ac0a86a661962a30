"""Clusters in SQL: sizes and sums of every database are those of numpy, with the same nearest centroid."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing

import numpy as np
import pytest
import sqlglot
from benchmarks.points import Points
from sqlglot import exp

from blowfishdb import noise
from blowfishdb.adapters.backends import open_backend
from blowfishdb.adapters.backends.base import Backend
from blowfishdb.adapters.sql.source import Source, Unit
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.domain.attributes import Category, Integer, Real
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import Cancelled, InvalidWorkload, SizeMismatch, UnknownColumn
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.clusters import FINE, Centroids, ClusterProblem, project_clusters
from blowfishdb.mechanisms.kmeans import RoundClusters
from tests.adapters.places import Columns, DuckFile, Place

DOMAIN = Domain.of(
    {
        "age": Integer(0, 99),
        "pay": Real(0, 50, "0.5", outside="drop", missing="drop"),
        "town": Category(["Ulm", "Bonn", "Trier"], missing="value"),
    }
)
POLICY = Policy.differential_privacy(DOMAIN)


def people(rows: int = 500) -> Columns:
    rng = random.Random(8)
    return {
        "age": ("INTEGER", rng.choices(range(-4, 110), k=rows)),
        "pay": ("DOUBLE", rng.choices([None, *(value / 4 for value in range(-20, 230))], k=rows)),
        "town": ("VARCHAR", rng.choices([None, "Ulm", "Bonn", "Trier"], k=rows)),
    }


def in_memory(
    problem: ClusterProblem, columns: Mapping[str, Sequence[object]], where: Predicate | None = None
) -> Points:
    """The rows that count, by the core and without a database."""
    condition = Everything() if where is None else where
    names = {axis.column for axis in problem.query.axes} | condition.columns()
    cells = {name: DOMAIN[name].encode(columns[name]) for name in names}
    rows = len(next(iter(columns.values())))
    counted = np.broadcast_to(condition.on_cells(DOMAIN, cells), (rows,))
    counted = np.logical_and.reduce([counted, *(each >= 0 for each in cells.values())])
    table = np.column_stack([cells[axis.column] for axis in problem.query.axes])
    return Points(problem.space, table[counted])


def some_centroids(problem: ClusterProblem, count: int, seed: int) -> Centroids:
    stream = np.random.default_rng(seed)
    fine = [stream.integers(0, FINE * int(last) + 1, count) for last in problem.space.last]
    return Centroids(problem.space, np.column_stack(fine))


def same(backend: Backend, problem: ClusterProblem, rows: Points, centroids: Centroids) -> None:
    found = backend.prepare_clusters(problem.query).totals(centroids).reveal()
    assert found.tolist() == rows.totals(centroids).reveal().tolist()


@pytest.mark.parametrize(
    "where",
    [None, col("town") == "Ulm", (col("age") >= 30) & (col("town") != "Bonn"), col("pay") < 20],
    ids=["all", "town", "mixed", "pay"],
)
def test_sizes_and_sums_are_those_of_numpy(database: Place, where: Predicate | None) -> None:
    columns = people()
    values = {name: list(each) for name, (_, each) in columns.items()}
    with closing(database.make(columns, DOMAIN)) as backend:
        for even in (True,) if database.slow else (True, False):
            problem = project_clusters(("age", "pay"), POLICY, where, even=even)
            rows = in_memory(problem, values, where)
            for count in (3,) if database.slow else (1, 2, 5):
                same(backend, problem, rows, some_centroids(problem, count, count))
            bins = (Bins.width(100, 7), Bins.width(101, 30))
            counts = backend.prepare_clusters(problem.query).counts(bins).reveal()
            assert counts.tolist() == rows.counts(bins).reveal().tolist()


def test_ties_go_to_the_first_centroid_everywhere(database: Place) -> None:
    columns: Columns = {"x": ("INTEGER", list(range(11))), "y": ("INTEGER", [3] * 11)}
    domain = Domain(x=Integer(0, 10), y=Integer(0, 10))
    problem = project_clusters(("x", "y"), Policy.differential_privacy(domain))
    with closing(database.make(columns, domain)) as backend:
        for order in ([[2, 3], [8, 3], [2, 3]], [[8, 3], [2, 3], [8, 3]]):
            centroids = Centroids(problem.space, FINE * np.array(order))
            table = backend.prepare_clusters(problem.query).totals(centroids).reveal()
            assert table[:, 0].tolist() == [
                6,
                5,
                0,
            ]  # cell 5 is as near to both, and a third is nowhere first
            points = Points(problem.space, np.column_stack((np.arange(11), np.full(11, 3))))
            assert table.tolist() == points.totals(centroids).reveal().tolist()


def test_an_empty_table_and_large_columns(database: Place) -> None:
    domain = Domain(x=Integer(0, 3_000_000), y=Integer(0, 2_000_000))
    problem = project_clusters(("x", "y"), Policy.differential_privacy(domain))
    centroids = some_centroids(problem, 4, 1)
    stream = np.random.default_rng(3)
    table = np.column_stack((stream.integers(0, 3_000_001, 50), stream.integers(0, 2_000_001, 50)))
    columns: Columns = {name: ("BIGINT", table[:, i].tolist()) for i, name in enumerate("xy")}
    with closing(database.make(columns, domain)) as backend:
        same(backend, problem, Points(problem.space, table), centroids)
        nobody = project_clusters(("x", "y"), Policy.differential_privacy(domain), col("x") < 0)
        assert not backend.prepare_clusters(nobody.query).totals(centroids).reveal().any()


def test_rows_per_person_and_views_count_as_they_do_for_counts(tmp_path) -> None:  # type: ignore[no-untyped-def]
    stream = np.random.default_rng(4)
    person, key = stream.integers(0, 9, 60), np.arange(60)
    columns: Columns = {
        "person": ("INTEGER", person.tolist()),
        "key": ("INTEGER", key.tolist()),
        "raw": ("INTEGER", stream.integers(0, 20, 60).tolist()),
    }
    domain = Domain(v=Integer(0, 19))
    DuckFile(tmp_path).make(columns, Domain(raw=Integer(0, 19))).close()
    view = 'SELECT person, "key", raw AS v FROM people'
    source = Source.of_view(view, unit=Unit("person", 2, "key", "salt"))
    with closing(open_backend(tmp_path / "people.duckdb", domain, source=source)) as backend:
        problem = project_clusters(("v",), Policy.differential_privacy(domain))
        prepared = backend.prepare_clusters(problem.query)
        counts = prepared.counts((Bins.width(20, 1),)).reveal()
        table = prepared.totals(some_centroids(problem, 3, 2)).reveal()
        assert counts.sum() == table[:, 0].sum() == np.minimum(np.bincount(person), 2).sum()
        assert table[:, 1].sum() == (counts * np.arange(20)).sum()


def test_one_statement_per_round_and_no_value_of_a_row(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with closing(DuckFile(tmp_path).make(people(), DOMAIN)) as backend:
        problem = project_clusters(("age", "pay"), POLICY, col("town") == "Ulm")
        prepared = backend.prepare_clusters(problem.query)
        text = prepared.sql(some_centroids(problem, 4, 3))
        (parsed,) = sqlglot.parse(text, dialect="duckdb")
        assert isinstance(parsed, exp.Select)
        outer = [each.this for each in parsed.expressions]
        assert all(
            isinstance(each, exp.Column | exp.Count | exp.Cast | exp.IntDiv | exp.Case) for each in outer
        )
        asked: list[int] = []
        plan = RoundClusters(problem.space, problem.graph, 3, 4)
        found = plan.release(
            prepared, epsilon=1, noise=noise.seeded(1), progress=lambda done, _: asked.append(done)
        )
        assert asked == [1, 2, 3, 4]
        units = problem.in_units(found.centroids)
        assert ((units >= [0, 0]) & (units <= [99, 50])).all()


def test_the_same_clusters_from_a_database_as_from_memory(tmp_path) -> None:  # type: ignore[no-untyped-def]
    columns = people()
    values = {name: list(each) for name, (_, each) in columns.items()}
    with closing(DuckFile(tmp_path).make(columns, DOMAIN)) as backend:
        problem = project_clusters(("age", "pay"), POLICY)
        plan = RoundClusters(problem.space, problem.graph, 3, 4)
        prepared = backend.prepare_clusters(problem.query)
        runs = [
            plan.release(rows, epsilon=2, noise=noise.seeded(5)).centroids
            for rows in (prepared, in_memory(problem, values))
        ]
    assert np.array_equal(runs[0], runs[1])


def test_what_cannot_be_clustered_is_refused_before_a_row_is_read(tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InvalidWorkload, match="columns of numbers"):
        project_clusters(("town",), POLICY)
    with pytest.raises(UnknownColumn):
        project_clusters(("nowhere",), POLICY)
    with pytest.raises(InvalidWorkload, match="different columns"):
        project_clusters(("age", "age"), POLICY)
    missing = Domain(age=Integer(0, 9, missing="value"))
    with pytest.raises(InvalidWorkload, match="missing"):
        project_clusters(("age",), Policy.differential_privacy(missing))
    with closing(DuckFile(tmp_path).make(people(), DOMAIN)) as backend:
        problem = project_clusters(("age",), POLICY)
        prepared = backend.prepare_clusters(problem.query)
        other = project_clusters(("pay",), POLICY)
        with pytest.raises(SizeMismatch):
            prepared.totals(some_centroids(other, 2, 1))
        elsewhere = Domain(age=Integer(0, 50))
        with pytest.raises(SizeMismatch):
            backend.prepare_clusters(project_clusters(("age",), Policy.differential_privacy(elsewhere)).query)
        cancel = Cancellation()
        cancel.cancel()
        with pytest.raises(Cancelled):
            prepared.until(cancel).totals(some_centroids(problem, 2, 1))
