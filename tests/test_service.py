"""One question through all seven steps, on a real DuckDB file and a real ledger."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.secret import Secret
from blowfishdb.messages.answers import Answer
from blowfishdb.service.identity import identities
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

SALARIES = np.random.default_rng(4).gamma(4, 12_000, size=20_000).clip(0, 99_999).astype(int)
DOMAIN = bf.Domain(salary=bf.Integer(0, 99_999), region=bf.Category(["north", "south"]))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE people (salary INTEGER, region VARCHAR)")
        rows = [(int(s), "north" if i % 3 else "south") for i, s in enumerate(SALARIES)]
        connection.executemany("INSERT INTO people VALUES (?, ?)", rows[:1000])
        connection.execute(
            "INSERT INTO people SELECT unnest(?::INTEGER[]), unnest(?::VARCHAR[])",
            [[r[0] for r in rows[1000:]], [r[1] for r in rows[1000:]]],
        )
    return path


@pytest.fixture
def people(tmp_path: Path, data: Path):
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("people", data, domain=DOMAIN, table="people")
        dataset.publish(bf.Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(100_000, 1_000)}))
        yield dataset


def truth(width: int) -> np.ndarray:
    return np.bincount(SALARIES // width, minlength=100_000 // width)


def cumulative(people: Dataset, **accuracy: float):
    return people["salary"].cumulative(width=10_000).accurate_to(accuracy.get("alpha", 50))


class TestAsking:
    def test_an_answer_is_close_and_its_interval_holds_the_truth(self, people: Dataset) -> None:
        answer = cumulative(people).ask()
        expected = truth(10_000).cumsum()
        assert (np.abs(answer.raw - expected) <= 200).all()  # four times α: one run in 10⁹ or so
        assert answer.exact.tolist() == [False] * 9 + [True]
        assert answer.values[-1] == answer.low[-1] == answer.high[-1] == len(SALARIES)
        assert (np.diff(answer.values) >= 0).all() and (answer.low >= 0).all()
        assert (answer.high <= len(SALARIES)).all()
        assert answer.labels[0][:2] == ("≤ 9,999", "≤ 19,999")

    def test_the_quote_is_the_charge(self, people: Dataset) -> None:
        asking = cumulative(people)
        quote = asking.quote()
        assert not quote.owned and quote.dividend > 1.5 and quote.affordable >= 1
        before = people.budget.remaining
        answer = asking.ask()
        assert answer.receipt.epsilon == answer.receipt.cost == quote.epsilon
        assert before - people.budget.remaining == quote.epsilon

    def test_quotes_are_free_and_touch_no_data(
        self, people: Dataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        touched = "blowfishdb.service.sources.open_backend"
        monkeypatch.setattr(touched, lambda *_, **__: pytest.fail("the data was touched"))
        before = people.budget.status
        for alpha in (10, 20, 50):
            cumulative(people, alpha=alpha).quote()
        assert people.budget.status == before
        with pytest.raises(pytest.fail.Exception, match="touched"):
            cumulative(people).ask()

    def test_the_same_question_again_is_the_stored_answer_at_no_cost(self, people: Dataset) -> None:
        first = cumulative(people).ask()
        spent = people.budget.status.spent
        assert cumulative(people).quote().owned
        again = cumulative(people).ask()
        assert (again.raw == first.raw).all() and not again.receipt.cost
        assert people.budget.status.spent == spent
        surer = people["salary"].cumulative(width=10_000).accurate_to(50, confidence=0.99).ask()
        assert surer.receipt.epsilon
        assert people.budget.status.spent == spent + surer.receipt.epsilon

    def test_a_whole_error_is_the_same_however_it_is_typed(self, people: Dataset) -> None:
        first = cumulative(people, alpha=50).ask()
        for alpha in (50.0, np.float64(50), np.int64(50), Fraction(50)):
            again = cumulative(people, alpha=alpha)
            assert again.quote().owned and again.ask().number == first.number

    def test_what_is_stored_under_an_earlier_name_is_free(
        self, people: Dataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """An error of 50 was once another one than 50.0."""
        with monkeypatch.context() as patch:
            patch.setattr("blowfishdb.service.service.identity", lambda *asked: list(identities(*asked))[1])
            first = cumulative(people, alpha=50).ask()
        again = cumulative(people, alpha=50)
        assert again.quote().owned and again.ask().number == first.number

    def test_a_reopened_workspace_remembers_everything(self, people: Dataset) -> None:
        first = cumulative(people).ask()
        path = people.gateway.store.name
        people.gateway.close()
        with bf.open(path) as workspace:
            assert workspace.datasets() == ["people"]
            again = cumulative(workspace["people"]).ask()
            assert (again.raw == first.raw).all() and not again.receipt.cost
            assert len(workspace.answers()) == 1 and workspace.verify() == []

    def test_spending_epsilon_states_the_accuracy_it_buys(self, people: Dataset) -> None:
        asking = people["salary"].histogram(bins=5).spend("0.25")
        quote, answer = asking.quote(), asking.ask()
        assert quote.epsilon == answer.receipt.epsilon == Epsilon("0.25")
        assert answer.alpha == quote.alpha > 0

    def test_a_category_has_its_names(self, people: Dataset) -> None:
        answer = people["region"].histogram().accurate_to(40).ask()
        assert answer.labels == (("north", "south"),)
        assert (np.abs(answer.raw - [13_333, 6_667]) <= 200).all()

    def test_what_no_edge_changes_is_exact_and_free(self, people: Dataset) -> None:
        parts = bf.graphs.Partitioned(bf.Bins.width(100_000, 50_000))
        people.publish(bf.Policy.by_column(DOMAIN, {"salary": parts}))
        answer = people["salary"].histogram(width=50_000).accurate_to(1).ask()
        assert answer.exact.all() and not answer.receipt.epsilon
        assert answer.values.tolist() == truth(50_000).tolist()

    def test_a_question_about_nobody_tells_nothing(self, people: Dataset) -> None:
        """Its answer is exact, and the counts that it is made of are kept nowhere."""
        both = bf.col("region").isin(["north"]), bf.col("region").isin(["south"])
        for mechanism in ("best", "laplace-cells"):
            asked = people.where(both[0]).where(both[1])["region"].histogram().accurate_to(5)
            nobody = asked.using(mechanism).ask()
            assert nobody.exact.all() and not nobody.values.any() and not nobody.receipt.cost
        everybody = people["salary"].ranges([(0, 99_999)]).using("laplace-cells").spend(1).ask()
        assert everybody.exact.all() and not everybody.receipt.cost
        for column in ("region", "salary"):
            assert not people[column].histogram().accurate_to(19_000).quote().owned

    def test_answers_survive_storage(self, people: Dataset) -> None:
        answer = cumulative(people).ask()
        again = Answer.from_plain(json.loads(json.dumps(answer.to_plain())))
        assert (
            again.receipt == answer.receipt
            and (again.low == answer.low).all()
            and again.labels == answer.labels
        )

    def test_the_chart_says_what_the_answer_says(self, people: Dataset) -> None:
        for asking in (cumulative(people), people["region"].histogram().accurate_to(40)):
            spec = asking.ask().plot().to_dict()
            assert "95 of 100" in str(spec["title"]) and spec["description"]


class TestNothingIsChargedOrLost:
    def test_max_cost(self, people: Dataset) -> None:
        with pytest.raises(bf.errors.MaxCostExceeded, match="Nothing was charged"):
            cumulative(people).ask(max_cost="0.01")
        assert not people.budget.status.spent

    def test_an_exhausted_budget_refuses_before_reading(self, people: Dataset, monkeypatch) -> None:
        people.budget.set("0.1")
        with pytest.raises(bf.errors.BudgetExhausted, match="left"):
            cumulative(people).ask()
        assert not people.budget.status.spent and not people.budget.status.held

    def test_a_failing_database_keeps_the_charge_and_says_so(self, people: Dataset, monkeypatch) -> None:
        monkeypatch.setattr(
            Prepared,
            "count",
            lambda *_: (_ for _ in ()).throw(bf.errors.QueryFailed("The database left.")),
        )
        cost = cumulative(people).quote().epsilon
        with pytest.raises(bf.errors.QueryFailed) as failure:
            cumulative(people).ask()
        assert failure.value.charged
        assert people.budget.status.spent == cost
        assert people.gateway.verify() == []

    def test_a_ledger_that_cannot_settle_keeps_the_charge_and_says_so(
        self, people: Dataset, monkeypatch
    ) -> None:
        cost = cumulative(people).quote().epsilon

        def fail(*_: object, **__: object) -> None:
            raise bf.errors.WorkspaceError("The disk is full.")

        monkeypatch.setattr(type(people.gateway._ledger), "settle", fail)
        with pytest.raises(bf.errors.WorkspaceError) as failure:
            cumulative(people).ask()
        assert failure.value.charged and people.budget.status.spent == cost
        assert people.gateway.verify() == []

    def test_a_ledger_that_cannot_reserve_keeps_nothing(self, people: Dataset, monkeypatch) -> None:
        def fail(*_: object, **__: object) -> None:
            raise bf.errors.WorkspaceError("The disk is full.")

        monkeypatch.setattr("blowfishdb.adapters.store.charges.book", fail)
        with pytest.raises(bf.errors.WorkspaceError):
            cumulative(people).ask()
        assert not people.budget.status.spent and not people.budget.status.held

    def test_the_same_question_at_once_is_paid_once(self, people: Dataset) -> None:
        from concurrent.futures import ThreadPoolExecutor

        cost = cumulative(people).quote().epsilon

        def ask(_: int) -> str:
            try:
                return str(cumulative(people).ask().raw.tolist())
            except bf.errors.AnswerInProgress as refusal:
                assert not refusal.charged
                return "in progress"

        with ThreadPoolExecutor(8) as pool:
            outcomes = set(pool.map(ask, range(16)))
        assert len(outcomes - {"in progress"}) == 1
        assert people.budget.status.spent == cost and not people.budget.status.held

    def test_filters_with_the_same_meaning_are_the_same_question(self, people: Dataset) -> None:
        one = people.where(bf.col("salary") > 29_999)["region"].histogram().accurate_to(80).ask()
        other = people.where(~(bf.col("salary") < 30_000))["region"].histogram().accurate_to(80).ask()
        assert (one.raw == other.raw).all() and not other.receipt.cost

    def test_the_release_sees_a_secret(self, people: Dataset) -> None:
        record = people.gateway._records["people"]
        from blowfishdb.core.questions.projection import project

        question = cumulative(people).request().question
        counts = people.gateway._rows.backend(record).prepare(project(question, record.policy).cells).count()
        assert isinstance(counts, Secret) and "5" not in repr(counts)

    def test_noise_is_secure_and_fresh(self, people: Dataset) -> None:
        releases = {
            tuple(people["salary"].cumulative(width=10_000).accurate_to(50, confidence=c).ask().raw)
            for c in (0.95, 0.951, 0.952)
        }
        assert len(releases) == 3


class TestBadInput:
    """Each mistake has its own error and a message that says what to try."""

    @pytest.mark.parametrize(
        ("mistake", "error", "words"),
        [
            (lambda p: p["salery"], bf.errors.UnknownColumn, "salary"),
            (lambda p: p.gateway["poeple"], bf.errors.UnknownDataset, "people"),
            (lambda p: p["salary"].cumulative(width=10_000).quote(), bf.errors.InvalidInput, "accurate_to"),
            (lambda p: cumulative(p, alpha=0), bf.errors.InvalidAlpha, "positive"),
            (lambda p: cumulative(p, alpha=float("nan")), bf.errors.InvalidAlpha, "positive"),
            (lambda p: p["region"].histogram().accurate_to(5, confidence=1), bf.errors.InvalidBeta, "0 and"),
            (lambda p: p["region"].histogram().accurate_to(5, confidence=0), bf.errors.InvalidBeta, "0 and"),
            (lambda p: p["salary"].histogram(bins=5).spend(0), bf.errors.InvalidEpsilon, "at least"),
            (lambda p: p["salary"].histogram(edges=[10, 20]), bf.errors.InvalidBins, "cover|first"),
            (lambda p: p["salary"].histogram(bins=0), bf.errors.InvalidBins, "at least one"),
            (lambda p: p["region"].cumulative(), bf.errors.InvalidWorkload, "have an order"),
            (lambda p: p.publish(bf.Policy.differential_privacy(bf.Domain(a=bf.Integer(0, 1)))),
             bf.errors.PolicyConflict, "other columns"),
            (lambda p: p.budget.set(-1), bf.errors.InvalidEpsilon, "negative"),
            (lambda p: bf.Integer(5, 2), bf.errors.ReversedBounds, "above|swap"),
            (lambda p: bf.Domain(), bf.errors.EmptyDomain, "column"),
            (lambda p: bf.graphs.Threshold(10, 0), bf.errors.InvalidThreshold, "at least one"),
            (lambda p: bf.Real(0, float("inf"), 1), bf.errors.NotFinite, "finite"),
        ],
    )  # fmt: skip
    def test_each_mistake(self, people: Dataset, mistake, error: type, words: str) -> None:
        with pytest.raises(error, match=words) as caught:
            mistake(people)
        assert not caught.value.charged and not people.budget.status.spent
        assert people.gateway.verify() == []

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with Workspace(tmp_path / "w.blowfish") as workspace:
            with pytest.raises(bf.errors.SourceMissing, match="nowhere"):
                workspace.add_dataset("x", tmp_path / "nowhere.duckdb", domain=DOMAIN)
            assert workspace.datasets() == []

    def test_a_corrupt_database(self, tmp_path: Path) -> None:
        broken = tmp_path / "broken.duckdb"
        broken.write_bytes(b"not a database" * 1000)
        with Workspace(tmp_path / "w.blowfish") as workspace:
            with pytest.raises(bf.errors.SourceCorrupt):
                workspace.add_dataset("x", broken, domain=DOMAIN)
            assert workspace.datasets() == []

    def test_a_column_that_the_table_does_not_have(self, tmp_path: Path, data: Path) -> None:
        shoes = bf.Domain(shoe=bf.Integer(0, 50))
        with (
            Workspace(tmp_path / "w.blowfish") as workspace,
            pytest.raises(bf.errors.UnknownColumn, match="shoe"),
        ):
            workspace.add_dataset("x", data, domain=shoes, table="people")

    def test_a_corrupt_workspace(self, tmp_path: Path) -> None:
        broken = tmp_path / "w.blowfish"
        broken.write_bytes(b"no ledger here" * 1000)
        with pytest.raises(bf.errors.WorkspaceError):
            bf.open(broken)

    def test_a_dataset_twice_or_without_a_name(self, people: Dataset, data: Path) -> None:
        for name in ("people", "", "  "):
            with pytest.raises(bf.errors.InvalidInput):
                people.gateway.add_dataset(name, data, domain=DOMAIN, table="people")


@pytest.mark.parametrize("alpha", [7.5, pytest.param(20, marks=pytest.mark.thorough)])
def test_the_promise_holds_through_the_whole_stack(people: Dataset, alpha: float) -> None:
    """200 answers from the database, each of its own snapshot: failures stay near 10 %."""
    people.budget.set(10_000)
    expected = truth(10_000).cumsum()
    misses = 0
    for _ in range(200):
        answer = people.refresh()["salary"].cumulative(width=10_000).accurate_to(alpha, confidence=0.9).ask()
        inside = (answer.low <= expected) & (expected <= answer.high)
        assert inside.all() == (np.abs(answer.values - expected) <= alpha + 1e-9).all()
        misses += not inside.all()
    assert misses <= 20 + 4 * np.sqrt(200 * 0.1 * 0.9)


class TestNeverPayingTwice:
    def test_coarser_bins_a_range_and_a_lower_accuracy_follow_for_free(self, people: Dataset) -> None:
        first = people["salary"].cumulative(width=5_000).accurate_to(20).ask()
        spent = people.budget.status.spent
        counts = truth(5_000)
        coarser = people["salary"].cumulative(width=25_000).accurate_to(100)
        assert coarser.quote().owned and coarser.quote().epsilon == Epsilon(0)
        answer = coarser.ask()
        assert answer.receipt.mechanism == "From stored answers" and not answer.receipt.cost
        assert np.abs(answer.values - counts.cumsum()[4::5]).max() <= 100
        assert answer.alpha <= 100
        assert answer.raw == pytest.approx(first.raw[4::5], abs=1e-3)
        inside = people["salary"].ranges([(25_000, 49_999)]).accurate_to(200).ask()
        assert abs(inside.values[0] - counts[5:10].sum()) <= 200 and not inside.receipt.cost
        assert people.budget.status.spent == spent and people.gateway.verify() == []

    def test_what_does_not_follow_is_paid_for(self, people: Dataset) -> None:
        people["salary"].cumulative(width=5_000).accurate_to(20).ask()
        for asking in (
            people["salary"].cumulative(width=2_500).accurate_to(100),  # finer
            people["salary"].cumulative(width=25_000).accurate_to(2),  # more accurate
            people["region"].histogram().accurate_to(100),  # another column
        ):
            assert not asking.quote().owned and asking.quote().epsilon

    def test_quotes_do_not_depend_on_stored_noise(self, people: Dataset, data: Path, tmp_path: Path) -> None:
        quotes = set()
        for run in range(3):
            with Workspace(tmp_path / f"{run}.blowfish", user="ana") as workspace:
                other = workspace.add_dataset("people", data, domain=DOMAIN, table="people")
                other["salary"].histogram(width=10_000).accurate_to(100).ask()
                for alpha in (150, 300, 600):
                    quote = other["salary"].cumulative(width=10_000).accurate_to(alpha).quote()
                    quotes.add((alpha, quote.owned, quote.epsilon))
        assert len(quotes) == 3

    def test_an_old_snapshot_is_not_combined(self, people: Dataset) -> None:
        people["salary"].cumulative(width=5_000).accurate_to(20).ask()
        people.refresh()
        assert not people["salary"].cumulative(width=25_000).accurate_to(100).quote().owned


class TestWhereRowsComeFrom:
    DOMAIN = bf.Domain(value=bf.Integer(0, 9))

    @pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
    def test_tables_in_memory_are_copied_and_stay(self, tmp_path: Path, library: str) -> None:
        import pandas as pd
        import polars as pl
        import pyarrow as pa

        make = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[library]
        with bf.open(tmp_path / "w.blowfish") as workspace:
            workspace.add_dataset("t", make({"value": [1, 2, 2, 9] * 50}), domain=self.DOMAIN)
        with bf.open(tmp_path / "w.blowfish") as again:
            answer = again["t"].count().spend(1).ask()
            assert answer.exact.all() and answer.values.tolist() == [200]

    def test_csv_sqlite_and_a_view(self, tmp_path: Path) -> None:
        import sqlite3

        (tmp_path / "rows.csv").write_text("value\n" + "\n".join(["3"] * 40))
        with sqlite3.connect(tmp_path / "rows.sqlite") as connection:
            connection.execute("CREATE TABLE a (id INTEGER, value INTEGER)")
            connection.executemany("INSERT INTO a VALUES (?, ?)", [(i, 4) for i in range(30)])
        connection.close()
        with bf.open(tmp_path / "w.blowfish") as workspace:
            csv = workspace.add_dataset("csv", tmp_path / "rows.csv", domain=self.DOMAIN)
            lite = workspace.add_dataset("lite", tmp_path / "rows.sqlite", domain=self.DOMAIN, table="a")
            select = "SELECT value FROM a WHERE id < 10"
            view = workspace.add_dataset(
                "view",
                tmp_path / "rows.sqlite",
                domain=self.DOMAIN,
                view=select,
                public=["id"],
                same_rows=True,
            )
            for dataset, rows in ((csv, 40), (lite, 30), (view, 10)):
                assert dataset.count().spend(1).ask().values.tolist() == [rows]

    def test_rows_per_person_are_limited_and_paid_for(self, tmp_path: Path) -> None:
        rows = [(1, v, 5) for v in range(8)] + [(2, 8, 5), (2, 9, 5), (3, 10, 5)]
        with duckdb.connect(str(tmp_path / "v.duckdb")) as connection:
            connection.execute("CREATE TABLE visits (id INTEGER, visit INTEGER, value INTEGER)")
            connection.executemany("INSERT INTO visits VALUES (?, ?, ?)", rows)
        with bf.open(tmp_path / "w.blowfish") as workspace:
            people = workspace.add_dataset(
                "people",
                tmp_path / "v.duckdb",
                domain=self.DOMAIN,
                table="visits",
                person="id",
                rows_per_person=3,
                row_key="visit",
            )
            each = workspace.add_dataset(
                "rows", tmp_path / "v.duckdb", domain=self.DOMAIN, table="visits", same_rows=True
            )
            assert people.count().spend(1).ask().values.tolist() == [6]
            assert each.count().spend(1).ask().values.tolist() == [11]
            three, one = (d["value"].histogram().accurate_to(20).quote().epsilon for d in (people, each))
            assert three == one * 3
            bought = people["value"].histogram().spend("0.3").ask()
            assert bought.receipt.epsilon == Epsilon("0.3")
            assert bought.alpha == each["value"].histogram().spend("0.1").ask().alpha

    def test_rows_per_person_without_a_person(self, people: Dataset, data: Path) -> None:
        with pytest.raises(bf.errors.InvalidInput, match="whose row"):
            people.gateway.add_dataset("x", data, domain=DOMAIN, table="people", rows_per_person=2)


class TestLivingWithADataset:
    def test_a_refresh_makes_a_new_snapshot_and_restores_nothing(self, people: Dataset) -> None:
        first = cumulative(people).ask()
        spent = people.budget.status.spent
        people.refresh()
        assert not cumulative(people).quote().owned and people.budget.status.spent == spent
        second = cumulative(people).ask()
        assert (second.receipt.snapshot, first.receipt.snapshot) == (2, 1)
        assert people.budget.status.spent == spent + second.receipt.epsilon

    def test_grants_limit_each_analyst(self, people: Dataset) -> None:
        people.budget.grant("ana", "0.2")
        people.budget.grant("ben", "0.5")
        with pytest.raises(bf.errors.BudgetExhausted):
            people["region"].histogram().spend("0.3").ask()
        people["region"].histogram().spend("0.2").ask()
        with pytest.raises(bf.errors.BudgetExhausted, match=r"0\.3"):
            people.budget.grant("cleo", "0.9")

    def test_answers_become_tables(self, people: Dataset) -> None:
        answer = cumulative(people).ask()
        table = answer.to_arrow()
        assert table.column_names == ["salary", "value", "low", "high", "exact"] and table.num_rows == 10
        assert answer.to_pandas().shape == (10, 5) and answer.to_polars().shape == (10, 5)
        two = people["salary", "region"]
        assert two.names == ("salary", "region")
        quantiles = people["salary"].median(width=10_000).accurate_to(100).ask()
        assert quantiles.to_arrow().column_names[0] == "salary"


class TestEveryKindOfQuestion:
    def test_ranges(self, people: Dataset) -> None:
        answer = people["salary"].ranges([(0, 19_999), (40_000, 59_999)]).accurate_to(60).ask()
        expected = [(SALARIES <= 19_999).sum(), ((SALARIES >= 40_000) & (SALARIES <= 59_999)).sum()]
        assert (np.abs(answer.raw - expected) <= 300).all()

    def test_median_and_quantiles(self, people: Dataset) -> None:
        answer = people["salary"].quantiles([0.25, 0.5], width=1_000).accurate_to(100).ask()
        assert (answer.low <= answer.values).all() and (answer.values <= answer.high).all()
        assert np.abs(answer.values - np.quantile(SALARIES, [0.25, 0.5])).max() < 2_000
        assert people["salary"].median(width=10_000).accurate_to(100).ask().labels == (("50 %",),)

    def test_sum_and_mean(self, people: Dataset) -> None:
        total = people["salary"].sum().accurate_to(1_000_000).ask()
        assert abs(total.values[0] - SALARIES.sum()) < 5_000_000
        mean = people["salary"].mean().accurate_to(25).ask()
        assert abs(mean.values[0] - SALARIES.mean()) < 125 and mean.alpha == 25

    def test_top_and_above(self, people: Dataset) -> None:
        counts = truth(10_000)
        top = people["salary"].top(2, width=10_000).accurate_to(200).ask()
        best = [f"{10_000 * i:,}–{10_000 * i + 9_999:,}" for i in np.argsort(-counts)[:2]]
        assert set(top.labels[0]) == set(best)
        above = people["salary"].above(1_000, width=10_000).accurate_to(200).ask()
        clear = [i for i in range(10) if counts[i] > 2_000]
        assert {f"{10_000 * i:,}–{10_000 * i + 9_999:,}" for i in clear} <= set(above.labels[0])

    def test_counts_are_exact_unless_filtered(self, people: Dataset) -> None:
        everyone = people.count().spend("0.1").ask()
        assert everyone.exact.all() and everyone.values[0] == len(SALARIES) and not everyone.receipt.epsilon
        north = people.where(bf.col("region") == "north").count().spend("0.1").ask()
        assert not north.exact.any() and abs(north.values[0] - 13_333) < 200

    def test_filters_cost_what_they_must(self, people: Dataset) -> None:
        """A hidden region lets a person come and go, so a filtered curve loses the policy's dividend."""
        plain = cumulative(people).quote().epsilon
        filtered = (
            people.where(bf.col("region") == "north")["salary"].cumulative(width=10_000).accurate_to(50)
        )
        assert filtered.quote().epsilon > plain
        answer = filtered.ask()
        north = np.array([i % 3 != 0 for i in range(len(SALARIES))])
        expected = np.bincount(SALARIES[north] // 10_000, minlength=10).cumsum()
        assert (np.abs(answer.raw - expected) <= 250).all()

    def test_a_mean_of_filtered_rows_has_a_price_and_an_interval(self, people: Dataset) -> None:
        mean = people.where(bf.col("region") == "north")["salary"].mean()
        assert mean.spend(1).quote().epsilon == bf.Epsilon(1)
        with pytest.raises(bf.errors.NoGuarantee, match="how many rows") as refused:
            mean.accurate_to(500).quote()
        again = people.question(refused.value.fixes[0])
        assert again.form.group_size == 1_000 and again.accurate_to(500).quote().epsilon


def test_a_file_of_rows_is_one_table_and_needs_no_name(tmp_path: Path) -> None:
    (tmp_path / "visits.csv").write_text("who,place\nana,0\nana,1\nbo,1\n")
    with Workspace(tmp_path / "w.blowfish") as workspace:
        domain = bf.Domain(place=bf.Integer(0, 1))
        visits = workspace.add_dataset(
            "visits", tmp_path / "visits.csv", domain=domain, person="who", rows_per_person=2
        )
        assert visits.gateway.facts("visits").rows_per_person == 2
        assert visits.count().spend(1).ask().values.tolist() == [3]
