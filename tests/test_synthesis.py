"""Synthetic tables from end to end: quote, one charge, rows, report, files, refusals, the record."""

from __future__ import annotations

import doctest
import json
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import (
    BudgetExhausted,
    InvalidInput,
    InvalidWorkload,
    MaxCostExceeded,
    NoGuarantee,
    NotCounted,
    NotFound,
    NotProven,
)
from blowfishdb.messages.synthesis import SynthesisQuote
from blowfishdb.messages.synthetic_table import SyntheticTable
from blowfishdb.show.synthetic import write
from blowfishdb.workspace.embedded import Workspace

ROWS = 12_000
DOMAIN = bf.Domain(
    age=bf.Integer(18, 90),
    salary=bf.Integer(0, 199_999),
    region=bf.Category(["north", "south", "west"]),
    joined=bf.Date(date(2020, 1, 1), date(2020, 12, 31), "day"),
    share=bf.Real(0, 1, "0.01", missing="value"),
)


def people() -> pd.DataFrame:
    stream = np.random.default_rng(1)
    age = stream.integers(18, 91, ROWS)
    salary = np.clip(age * 1_000 + stream.normal(0, 8_000, ROWS), 0, 199_999).astype(int)
    region = np.where(salary > 60_000, "north", stream.choice(["south", "west"], ROWS))
    joined = [date(2020, 1 + int(m), 1) for m in stream.integers(0, 12, ROWS)]
    share = np.where(stream.random(ROWS) < 0.1, np.nan, np.round(stream.random(ROWS), 2))
    return pd.DataFrame({"age": age, "salary": salary, "region": region, "joined": joined, "share": share})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("synthesis")


@pytest.fixture(scope="module")
def ws(folder: Path) -> Iterator[Workspace]:
    with bf.open(folder / "w.blowfish", user="ada") as opened:
        dataset = opened.add_dataset("people", people(), domain=DOMAIN)
        dataset.publish(bf.Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(200_000, 10_000)}))
        dataset.budget.set(10)
        yield opened


@pytest.fixture(scope="module")
def table(ws: Workspace) -> SyntheticTable:
    wanted = ws["people"].synthesize(epsilon="1", columns=["age", "salary", "region"], target="salary")
    with pytest.raises(NotCounted) as refused:
        wanted.quote()
    assert "count()" in refused.value.fixes[0]
    told: list[tuple[int, int]] = []
    made = wanted.ask(max_cost=1, progress=lambda done, of: told.append((done, of)))
    assert told and all(done <= of for done, of in told)
    return made


def test_a_quote_says_what_is_measured(ws: Workspace, table: SyntheticTable) -> None:
    before = len(ws.events())
    quote = ws["people"].synthesize(epsilon="0.7", columns=["age", "salary", "region"]).quote()
    assert (quote.epsilon, quote.rows, quote.way) == (bf.Epsilon("0.7"), ROWS, "in rounds")
    by_name = {each.column: each for each in quote.tables}
    assert by_name["salary"].cumulative and not by_name["region"].cumulative
    assert all(each.margin > 0 and 0 < each.off < 0.1 for each in quote.tables)
    assert quote.pairs == 3 and quote.pair_margin and quote.seconds > 0
    mine = ws["people"].synthesize("1", columns=["age", "salary", "region"], target="salary").quote()
    first = next(one for one, told in zip(table.report().tables, table.tables, strict=True) if told.round)
    assert mine.pair_margin == pytest.approx(first.margin, abs=1)
    assert SynthesisQuote.from_plain(quote.to_plain()) == quote
    assert "Costs ε = 0.7" in str(quote)
    assert len(ws.events()) == before


def test_one_charge_however_many_rows(ws: Workspace, table: SyntheticTable) -> None:
    dataset = ws["people"]
    paid = [event for event in ws.events("people") if event.kind == "reserved" and event.amount]
    assert [event.charge for event in paid] == [table.number]
    spent = dataset.budget.status.spent
    assert table.receipt.epsilon == bf.Epsilon(1) and table.receipt.promised == ()
    more = table.sample(10_000)
    frame = more.to_pandas()
    assert len(frame) == 10_000 and not frame.equals(table.to_pandas()[:10_000])
    again = dataset.synthesize(epsilon="1", columns=["age", "salary", "region"], target="salary").ask()
    assert again.number == table.number and not again.receipt.cost
    pd.testing.assert_frame_equal(again.to_pandas(), table.to_pandas())
    assert dataset.budget.status.spent == spent and ws.verify() == []
    assert len([event for event in ws.events("people") if event.kind == "reserved" and event.amount]) == len(
        paid
    )


def test_rows_are_declared_values_that_go_together(table: SyntheticTable) -> None:
    frame, true = table.to_pandas(), people()
    assert list(frame.columns) == ["age", "salary", "region"] and len(frame) == ROWS
    assert frame.age.between(18, 90).all() and frame.salary.between(0, 199_999).all()
    assert set(frame.region.dropna()) <= {"north", "south", "west"}
    assert np.corrcoef(frame.age, frame.salary)[0, 1] > 0.6
    assert abs(frame.age.mean() - true.age.mean()) < 2
    assert list(table.to_polars().columns) == list(frame.columns)


def test_dates_missing_values_and_bins_of_ones_own(ws: Workspace) -> None:
    columns: list[Any] = [
        "joined",
        ("share", {"bins": 5}),
        ("region", {"groups": {"n": ["north"], "s": ["south", "west"]}}),
    ]
    made = ws["people"].synthesize(epsilon="0.5", columns=columns, rows=4_000).ask()
    frame = made.to_pandas()
    assert len(frame) == 4_000
    assert frame.share.isna().mean() == pytest.approx(0.1, abs=0.05)
    assert frame.joined.dropna().between(date(2020, 1, 1), date(2020, 12, 31)).all()
    assert frame.share.dropna().between(0, 1).all()
    shares = frame.region.value_counts(normalize=True)
    assert shares["south"] == pytest.approx(shares["west"], abs=0.05)  # alike inside a group


def test_the_report_is_about_released_numbers_alone(table: SyntheticTable) -> None:
    report = table.report()
    assert {one.columns for one in report.tables} >= {("age",), ("salary",), ("region",)}
    for one, measured in zip(report.tables, table.measured, strict=True):
        assert one.numbers == measured.values.size and one.margin == measured.margin > 0
        assert 0 <= one.off < 0.5 and "measured" in one.worst
    assert {pair.known for pair in report.pairs} <= {"measured", "modelled", "independent"}
    assert len(report.pairs) == 3 and "p-values" in str(report)
    assert type(report).from_plain(report.to_plain()) == report


def test_a_small_table_says_that_pairs_are_not_measured(ws: Workspace) -> None:
    wanted = ws["people"].synthesize(epsilon="0.1", columns=["age", "salary"])
    quote = wanted.quote()
    assert quote.way == "one by one" and "cannot tell pairs" in quote.quote.explanation
    report = wanted.ask().report()
    assert [pair.words for pair in report.pairs] == ["age and salary: never measured, assumed independent"]


def test_files_are_marked(table: SyntheticTable, folder: Path) -> None:
    wrote = {form: write(table, folder / f"rows.{form}") for form in ("csv", "parquet", "arrow")}
    assert [path.name for path in wrote["csv"]] == ["rows.csv", "rows.csv.synthetic.json"]
    marks = json.loads(wrote["csv"][1].read_text())
    assert marks["synthetic"] == "true" and marks["epsilon"] == "1" and marks["digest"] == table.digest
    assert "none is a person's" in marks["words"]
    frame = pd.read_csv(wrote["csv"][0])
    assert len(frame) == ROWS
    parquet = pq.read_table(wrote["parquet"][0])
    arrow = pyarrow.ipc.open_file(wrote["arrow"][0]).read_all()
    for read in (parquet, arrow):
        assert read.schema.metadata[b"blowfishdb.synthetic"] == b"true"
        assert read.num_rows == ROWS
    assert not [name for name in frame.columns if "id" in name]
    with pytest.raises(InvalidInput):
        write(table, folder / "rows.txt")


def test_it_travels_and_comes_back(table: SyntheticTable, ws: Workspace) -> None:
    back = SyntheticTable.from_plain(json.loads(json.dumps(table.to_plain())))
    pd.testing.assert_frame_equal(back.to_pandas(), table.to_pandas())
    answer = ws.answer(table.number)
    assert (
        answer.kind == "synthetic" and answer.listed and len(answer.columns()["value"]) == len(answer.values)
    )
    assert "measured number" in answer.promise and answer.brief == "noise intervals, 95 %"
    with pytest.raises(NotFound):
        ws.synthetic(10**6)
    count = next(one.number for one in ws.answers() if one.kind == "count")
    with pytest.raises(NotFound):
        ws.synthetic(count)


def test_what_it_lost_is_counted_under_other_policies(
    ws: Workspace, table: SyntheticTable, folder: Path
) -> None:
    with bf.open(folder / "other.blowfish", user="ada") as other:
        dataset = other.add_dataset("people", people(), domain=DOMAIN)
        policy = bf.Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(200_000, 10_000)})
        dataset.publish(policy)
        made = dataset.synthesize(epsilon="0.9", columns=["age", "salary"]).ask()
        assert dataset.past(policy).epsilon == made.receipt.epsilon == bf.Epsilon("0.9")
        wider = bf.Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(200_000, 20_000)})
        lost = dataset.past(wider).epsilon
        assert lost is not None and bf.Epsilon("0.9") < lost < bf.Epsilon("1.8")  # prefixes alone cost more
        hidden = bf.Policy(DOMAIN, policy.graph.hide_presence())
        assert dataset.past(hidden).epsilon is None  # how many rows there are was told


def test_refusals(ws: Workspace) -> None:
    dataset = ws["people"]
    with pytest.raises(InvalidInput):
        dataset.synthesize()
    with pytest.raises(InvalidInput):
        dataset.synthesize(epsilon=1, from_answers=True)
    with pytest.raises(InvalidInput):
        dataset.synthesize(epsilon=1, columns="age")
    with pytest.raises(InvalidWorkload):
        dataset.synthesize(epsilon=1, columns=["age"], target="salary")
    with pytest.raises(InvalidWorkload):
        dataset.where(bf.col("age") > 30).synthesize(epsilon=1)
    with pytest.raises(MaxCostExceeded):
        dataset.synthesize(epsilon="0.3", columns=["age"]).ask(max_cost="0.2")
    with pytest.raises(BudgetExhausted):
        dataset.synthesize(epsilon=100, columns=["age"]).ask()
    with pytest.raises(NoGuarantee):
        dataset.synthesize(epsilon=1, columns=["age"]).asking.accurate_to(50).quote()
    with pytest.raises(InvalidInput):
        dataset.synthesize(epsilon="0.1", columns=["age", "salary"]).ask().sample(10**7)


def test_hidden_presence_is_refused_before_anything_is_asked(folder: Path) -> None:
    with bf.open(folder / "hidden.blowfish", user="ada") as other:
        dataset = other.add_dataset("people", people()[["age"]], domain=bf.Domain(age=bf.Integer(18, 90)))
        dataset.publish(bf.Policy(dataset.schema, dataset.policy.graph.hide_presence()))
        with pytest.raises(NotProven):
            dataset.synthesize(epsilon=1).ask()
        assert not [event for event in other.events("people") if event.kind == "reserved"]


def test_the_document_runs(ws: Workspace, table: SyntheticTable) -> None:
    text = (Path(__file__).parent.parent / "docs" / "synthetic.md").read_text()
    block = re.search(r"```pycon\n(.*?)```", text, flags=re.DOTALL)
    assert block is not None
    ws["people"]["age"].histogram(width=10).spend("0.2").ask()
    names = {"people": ws["people"]}
    example = doctest.DocTestParser().get_doctest(block.group(1), names, "synthetic", None, 0)
    assert doctest.DocTestRunner().run(example).failed == 0


def test_from_answers_uses_what_is_out_and_nothing_else(ws: Workspace, folder: Path) -> None:
    with bf.open(folder / "answers.blowfish", user="ada") as other:
        dataset = other.add_dataset("people", people(), domain=DOMAIN)
        with pytest.raises(InvalidInput):
            dataset.synthesize(from_answers=True).ask()
        dataset["age", "salary"].histogram(bins=8).spend("0.5").ask()
        dataset["age"].histogram(width=5).spend("0.2").ask()
        spent = dataset.budget.status.spent
        quote = dataset.synthesize(from_answers=True).quote()
        assert not quote.epsilon and len(quote.answers) == 2
        made = dataset.synthesize(from_answers=True, rows=6_000).ask()
        assert made.columns == ("age", "salary") and not made.receipt.epsilon
        frame = made.to_pandas()
        assert len(frame) == 6_000 and np.corrcoef(frame.age, frame.salary)[0, 1] > 0.6
        assert dataset.budget.status.spent == spent and dataset.past(dataset.policy).epsilon == spent
        again = dataset.synthesize(from_answers=True).ask()
        assert again.number == made.number
        dataset["region"].histogram().spend("0.1").ask()
        wider = dataset.synthesize(from_answers=True).ask()
        assert wider.number != made.number and wider.columns == ("age", "salary", "region")
        known = {pair.columns: pair.known for pair in wider.report().pairs}
        assert known["age", "region"] == "independent" and known["age", "salary"] == "measured"
        assert other.verify() == []
