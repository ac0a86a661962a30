"""A question for clusters through all seven steps, on real DuckDB and SQLite files and a real ledger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import duckdb
import numpy as np
import pyarrow.parquet as pq
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends.base import PreparedClusters
from blowfishdb.core.constraints import Constraints
from blowfishdb.core.questions.clusters import Centroids
from blowfishdb.core.secret import Secret
from blowfishdb.messages.answers import Answer, compare
from blowfishdb.show.exports import export
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

TRUE = np.array([[20.0, 25.0], [70.0, 30.0], [50.0, 80.0]])
ROWS = 6_000
DOMAIN = bf.Domain(x=bf.Integer(0, 99), y=bf.Integer(0, 99), team=bf.Category(("a", "b", "c")))


def rows() -> list[tuple[int, int, str]]:
    """Three round heaps of equal size, a team each."""
    stream, which = np.random.default_rng(6), np.arange(ROWS) % 3
    points = np.clip(np.rint(stream.normal(TRUE[which], 4)), 0, 99).astype(int)
    return [(int(x), int(y), "abc"[team]) for (x, y), team in zip(points, which, strict=True)]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("points")
    duck, lite = folder / "points.duckdb", folder / "points.sqlite"
    columns = [list(column) for column in zip(*rows(), strict=True)]
    with duckdb.connect(str(duck)) as connection:
        connection.execute(
            "CREATE TABLE points AS SELECT unnest(?::INTEGER[]) AS x, unnest(?::INTEGER[]) AS y, "
            "unnest(?::VARCHAR[]) AS team",
            columns,
        )
    with sqlite3.connect(lite) as other:
        other.execute("CREATE TABLE points (x INTEGER, y INTEGER, team TEXT)")
        other.executemany("INSERT INTO points VALUES (?, ?, ?)", rows())
    other.close()
    return {"duckdb": duck, "sqlite": lite}


@pytest.fixture(params=["duckdb", "sqlite"])
def everywhere(request: pytest.FixtureRequest, files: dict[str, Path], tmp_path: Path) -> Iterator[Dataset]:
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("points", files[request.param], domain=DOMAIN, table="points")
        dataset.budget.set(100)
        yield dataset


@pytest.fixture
def points(files: dict[str, Path], tmp_path: Path) -> Iterator[Dataset]:
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("points", files["duckdb"], domain=DOMAIN, table="points")
        dataset.budget.set(100)
        yield dataset


def off(answer: Answer) -> float:
    """How far the farthest true middle is from the nearest centroid."""
    assert answer.places is not None
    apart = np.abs(TRUE[:, None, :] - answer.places.centroids[None, :, :]).sum(axis=2)
    return float(apart.min(axis=1).max())


def asked(points: Dataset, epsilon: str = "5", **more: int) -> Asking:
    return points["x", "y"].clusters(3, **more).spend(epsilon)


# --- answers --------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [None, "kmeans-rounds", "kmeans-histogram"])
def test_the_heaps_are_found(everywhere: Dataset, way: str | None) -> None:
    question = asked(everywhere).using(way)
    quote = question.quote()
    assert str(quote.epsilon) == "5" and quote.alpha is None and not quote.owned and not quote.alternatives
    told: list[tuple[int, int]] = []
    answer = question.ask(progress=lambda done, of: told.append((done, of)))
    assert off(answer) < 12 and abs(answer.values.sum() - ROWS) < 200
    assert answer.labels == (("cluster 1", "cluster 2", "cluster 3"),) and answer.axes == ("x", "y")
    assert answer.band is None and not answer.exact.any() and answer.kind == "clusters"
    rounds = answer.receipt.mechanism == "k-means in rounds"
    assert told == ([(n, 5) for n in range(1, 6)] if rounds else [(1, 1)])
    assert way is None or rounds == (way == "kmeans-rounds")
    assert everywhere.budget.status.spent == answer.receipt.epsilon == question.quote().plain_epsilon
    assert "GROUP BY" in answer.receipt.sql


def test_some_rows_only(everywhere: Dataset) -> None:
    one = everywhere.where(bf.col("team") == "b")["x", "y"].clusters(1).spend("5").ask()
    assert one.places is not None and np.abs(one.places.centroids[0] - TRUE[1]).max() < 6
    assert (
        abs(one.values[0] - ROWS / 3) < 200
        and one.receipt.question == "1 cluster of x and y where team == 'b'"
    )


def test_the_same_question_is_free_and_another_is_not(points: Dataset) -> None:
    first = asked(points).ask()
    again = points.question("clusters(Y, x, k=3, iterations=5)").spend("5")
    assert again.quote().owned and again.ask().number == first.number and not again.ask().receipt.cost
    assert again.ask().to_plain()["places"] == first.to_plain()["places"]
    others = [
        asked(points, "4"),
        asked(points, iterations=6),
        points["x", "y"].clusters(4).spend("5"),
        points["x"].clusters(3).spend("5"),
        points.where(bf.col("team") != "c")["x", "y"].clusters(3).spend("5"),
        asked(points).using("kmeans-rounds"),
    ]
    assert not any(other.quote().owned for other in others)


def test_what_the_policy_does_not_hide_is_exact_and_free(points: Dataset) -> None:
    nothing = bf.graphs.Explicit(100, ())
    points.publish(bf.Policy.by_column(DOMAIN, {"x": nothing, "y": nothing}))
    question = asked(points, "0.1")
    assert not question.quote().epsilon and question.quote().dividend is None
    answer = question.ask()
    assert answer.exact.all() and answer.values.sum() == ROWS and off(answer) < 1
    assert not points.budget.status.spent


def test_presence_may_be_hidden_too(points: Dataset) -> None:
    points.publish(bf.Policy(DOMAIN, bf.Policy.differential_privacy(DOMAIN).graph.hide_presence()))
    for way in ("kmeans-rounds", "kmeans-histogram"):
        answer = asked(points, "10").using(way).ask()
        assert off(answer) < 12 and not answer.exact.any()


def test_in_a_batch(points: Dataset) -> None:
    table = points["x", "y"].histogram(5).spend("1")
    batch = points.gateway.batch(asked(points, "2"), table)
    assert str(batch.quote()) == "3"
    clusters, histogram = batch.ask(max_cost="3")
    assert clusters.places is not None and histogram.places is None and len(histogram.values) == 25


# --- refusals -------------------------------------------------------------------------------------


def test_an_accuracy_is_refused_and_so_is_what_needs_one(points: Dataset) -> None:
    question = points["x", "y"].clusters(3)
    with pytest.raises(bf.errors.NoGuarantee, match="depends on the data") as refusal:
        question.accurate_to(5).quote()
    assert any("ε" in fix for fix in refusal.value.fixes)
    with pytest.raises(bf.errors.NoGuarantee, match="clusters"):
        points.tradeoff(question.spend(1), column="x", thresholds=[1, 5])
    with pytest.raises(bf.errors.NoGuarantee, match="clusters"):
        points.preview(question.spend(1))
    with pytest.raises(bf.errors.InvalidInput, match="'dawa'") as wrong:
        question.spend(1).using("dawa").ask()
    assert wrong.value.fixes == ("kmeans-rounds", "kmeans-histogram")
    with pytest.raises(bf.errors.InvalidInput, match="kmeans-rounds"):
        points["x"].histogram().spend(1).using("kmeans-rounds").quote()
    assert not points.budget.status.spent


def test_something_known_is_not_proven(points: Dataset) -> None:
    known = Constraints(counts=[bf.col("team") == "a"])
    points.publish(bf.Policy.differential_privacy(DOMAIN).knowing(known))
    with pytest.raises(bf.errors.NotProven, match="already known"):
        asked(points).quote()


def test_an_epsilon_that_cannot_be_divided_is_refused_before_it_is_charged(points: Dataset) -> None:
    with pytest.raises(bf.errors.InvalidEpsilon, match="divided"):
        asked(points, "0.000000005").using("kmeans-rounds").ask()
    assert not points.budget.status.spent and not points.budget.status.held


def test_what_does_not_fit_says_what_does(points: Dataset) -> None:
    points.budget.set(1)
    assert [fit.epsilon and str(fit.epsilon) for fit in asked(points).quote().fits] == ["1", None, None]
    with pytest.raises(bf.errors.BudgetExhausted) as refusal:
        asked(points).ask()
    assert "epsilon 1" in refusal.value.fixes and not refusal.value.charged
    with pytest.raises(bf.errors.MaxCostExceeded):
        asked(points, "0.5").ask(max_cost="0.4")


def test_an_explanation_names_the_way(points: Dataset) -> None:
    found = points.explain(asked(points).using("kmeans-rounds"))
    assert found.answers == 3 and found.cells == (100, 100) and found.epsilon == "5"
    assert "5 rounds" in str(found)


# --- charges --------------------------------------------------------------------------------------


def test_given_up_before_the_data_is_read_costs_nothing(points: Dataset) -> None:
    cancel = bf.Cancellation()
    cancel.cancel()
    with pytest.raises(bf.errors.Cancelled) as refusal:
        asked(points).ask(cancel=cancel)
    assert not refusal.value.charged and not points.budget.status.spent


def test_given_up_between_two_rounds_stays_charged(points: Dataset) -> None:
    cancel, told = bf.Cancellation(), []

    def stop(done: int, of: int) -> None:
        told.append(done)
        if done == 2:
            cancel.cancel()

    question = asked(points).using("kmeans-rounds")
    with pytest.raises(bf.errors.Cancelled) as refusal:
        question.ask(cancel=cancel, progress=stop)
    assert told == [1, 2] and refusal.value.charged
    assert str(points.budget.status.spent) == "5" and not points.budget.status.held
    assert not question.quote().owned


def test_the_whole_cost_is_reserved_before_the_first_statement(
    points: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, seen = PreparedClusters.totals, []

    def noted(self: PreparedClusters, centroids: Centroids) -> Secret[np.ndarray]:
        seen.append(str(points.budget.status.total - points.budget.status.remaining))
        return real(self, centroids)

    monkeypatch.setattr(PreparedClusters, "totals", noted)
    asked(points).using("kmeans-rounds").ask()
    assert seen == ["5"] * 5


def test_an_earlier_promise_loses_no_more_than_is_stated(points: Dataset) -> None:
    """Within 10 was hidden when something was answered, within 5 is now: clusters are made for the former."""
    for distance in (10, 5):
        line = bf.graphs.Threshold(100, distance)
        points.publish(bf.Policy.by_column(DOMAIN, {"x": line, "y": line}), confirm=True)
        points["x"].histogram().spend("0.01").ask()
    (before,) = points.gateway.kept("points")
    asked(points, "1").ask()
    (after,) = points.gateway.kept("points")
    assert str(before.remaining - after.remaining) == "1" and not points.gateway.verify()


def test_several_rows_of_a_person_share_the_cost(tmp_path: Path) -> None:
    table = tmp_path / "visits.csv"
    table.write_text("who,x\n" + "".join(f"{i // 2},{i % 100}\n" for i in range(400)))
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset(
            "visits", table, domain=bf.Domain(x=bf.Integer(0, 99)), person="who", rows_per_person=2
        )
        question = dataset["x"].clusters(2).spend("0.9").using("kmeans-rounds")
        assert str(question.quote().epsilon) == "0.9"
        answer = question.ask()
        assert str(dataset.budget.status.spent) == str(answer.receipt.epsilon) == "0.9"


# --- what is shown --------------------------------------------------------------------------------


def test_files_have_a_row_for_each_cluster(points: Dataset, tmp_path: Path) -> None:
    answer = asked(points).ask()
    assert list(answer.columns()) == ["cluster", "x", "y", "size", "exact"]
    assert answer.places is not None and answer.places.limits == ((0, 99), (0, 99))
    header, first, *rest = export(answer, "csv").body.decode("utf-8-sig").splitlines()
    assert header == "cluster,x,y,size,exact,note" and len(rest) == 2
    assert [float(part) for part in first.split(",")[1:3]] == answer.places.centroids[0].tolist()
    (tmp_path / "a.parquet").write_bytes(export(answer, "parquet").body)
    assert pq.read_table(tmp_path / "a.parquet").column_names == list(answer.columns())
    again = Answer.from_plain(json.loads(export(answer, "json").body))
    assert again.places is not None and (again.places.centroids == answer.places.centroids).all()
    assert b"cluster 3" in export(answer, "html").body and b"<svg" in export(answer, "svg").body
    html = answer._repr_html_()
    assert ">cluster</th>" in html and "cluster 3" in html


def test_columns_that_are_called_like_ours_keep_their_values(tmp_path: Path) -> None:
    domain = bf.Domain(size=bf.Integer(0, 9), cluster=bf.Integer(0, 9))
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        table = tmp_path / "odd.csv"
        table.write_text("size,cluster\n" + "1,2\n" * 50)
        dataset = workspace.add_dataset("odd", table, domain=domain)
        answer = dataset["size", "cluster"].clusters(1).spend(1).ask()
    assert list(answer.columns()) == ["cluster", "size (column)", "cluster (column)", "size", "exact"]


def test_clusters_are_not_compared(points: Dataset) -> None:
    with pytest.raises(bf.errors.InvalidInput, match="cannot be compared"):
        compare(asked(points).ask(), asked(points, "4").ask())
