"""Building a question touches nothing, and a quote writes nothing: not a row, not an entry in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from sqlalchemy import event

import blowfishdb as bf
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

DOMAIN = bf.Domain(age=bf.Integer(0, 99), region=bf.Category(["north", "south"]))
ROWS = pd.DataFrame({"age": [20, 30, 40, 50], "region": ["north", "south", "north", "north"]})


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Dataset]:
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("people", ROWS, domain=DOMAIN)
        dataset.budget.set(100)
        yield dataset


@contextmanager
def statements(people: Dataset) -> Iterator[list[str]]:
    """Every statement that reaches the store."""
    engine, seen = people.gateway.store._engine, []  # type: ignore[attr-defined]

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        seen.extend([] if statement == "BEGIN" else [statement])

    event.listen(engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(engine, "before_cursor_execute", note)


BUILT: dict[str, Callable[[Dataset], Asking]] = {
    "histogram": lambda d: d["age"].histogram(bins=4),
    "mean": lambda d: d["age"].mean(),
    "mean, filtered": lambda d: d.where(bf.col("region") == "north")["age"].mean(),
    "mean, short": lambda d: d.question("mean(age)"),
    "mean, SQL": lambda d: d.sql("SELECT AVG(age) FROM people WITH ERROR 1"),
    "median": lambda d: d["age"].median(),
    "clusters": lambda d: d["age"].clusters(2),
}


@pytest.mark.parametrize("name", BUILT)
def test_building_a_question_only_looks_up_what_its_columns_are(people: Dataset, name: str) -> None:
    with statements(people) as looked:
        BUILT["histogram"](people)
    with statements(people) as seen:
        BUILT[name](people)
    assert len(seen) <= 2 * len(looked) and all(s.startswith("SELECT") for s in seen), seen
    assert people.gateway.answers() == []


@pytest.mark.parametrize("name", BUILT)
def test_a_quote_writes_nothing_and_reads_no_row(
    people: Dataset, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    touched = "blowfishdb.service.sources.open_backend"
    monkeypatch.setattr(touched, lambda *_, **__: pytest.fail("the data was touched"))
    before = people.gateway.events("people")
    with statements(people) as seen:
        try:
            BUILT[name](people).spend(1).quote()
        except bf.errors.NotProven:
            assert "mean" in name
    assert all(s.startswith("SELECT") for s in seen), seen
    assert people.gateway.events("people") == before and people.gateway.answers() == []


class TestPlainPrice:
    """What plain differential privacy would cost is a comparison, and refuses nothing."""

    def test_what_is_bought_by_epsilon_has_one_too(self, people: Dataset) -> None:
        people.publish(bf.Policy.by_column(DOMAIN, {"age": bf.graphs.Threshold(100, 2)}))
        spent = people["age"].sum().spend(1).quote()
        asked = people["age"].sum().accurate_to(spent.alpha).quote()
        assert spent.plain_epsilon == asked.plain_epsilon > spent.epsilon >= asked.epsilon

    def test_a_question_that_has_a_price_is_quoted_though_plainly_it_has_none(self, tmp_path: Path) -> None:
        domain = bf.Domain(pay=bf.Integer(0, 4_999_999))
        with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
            dataset = workspace.add_dataset("pays", pd.DataFrame({"pay": [1, 2, 3]}), domain=domain)
            dataset.publish(bf.Policy(domain, bf.graphs.Threshold(5_000_000, 1)))
            quote = dataset["pay"].sum().accurate_to(3).quote()
            assert quote.epsilon < bf.Epsilon(2)
            assert "more than ε" in quote._repr_html_()


class TestMeans:
    def test_a_quote_needs_the_number_of_rows_on_record_and_an_ask_puts_it_there(
        self, people: Dataset
    ) -> None:
        mean = people["age"].mean().accurate_to(30)
        with pytest.raises(bf.errors.NotCounted, match="number of rows") as refused:
            mean.quote()
        assert "count()" in refused.value.fixes[0]
        answer = mean.ask()
        assert answer.kind == "mean" and answer.alpha == 30
        assert [stored.kind for stored in people.gateway.answers()] == ["count", "mean"]
        assert people["age"].mean().accurate_to(20).quote().epsilon > bf.Epsilon(0)

    @pytest.mark.parametrize(
        "terms", [lambda q: q.spend(1), lambda q: q.spend("0.3"), lambda q: q.accurate_to(5)]
    )
    def test_any_count_of_all_rows_will_do(self, people: Dataset, terms: Callable[[Asking], Asking]) -> None:
        assert terms(people.count()).ask().values.tolist() == [4]
        assert people["age"].mean().accurate_to(30).quote().alpha == 30

    def test_a_number_of_rows_that_is_hidden_is_never_used(self, people: Dataset) -> None:
        filtered = people.where(bf.col("region") == "north")["age"].mean().spend(1)
        assert filtered.quote().kind == "aggregates"
        assert people.gateway.answers() == []
        people.publish(bf.Policy(DOMAIN, people.policy.graph.hide_presence()))
        answer = people["age"].mean().spend(1).ask()
        assert answer.kind == "aggregates" and answer.receipt.epsilon == bf.Epsilon(1)
        assert len(people.gateway.answers()) == 1  # nobody counted the rows by themselves

    def test_means_in_a_batch(self, people: Dataset) -> None:
        batch = people.gateway.batch(people["age"].mean().spend(1), people["age"].sum().spend(2))
        assert [answer.kind for answer in batch.ask()] == ["mean", "sum"]
