"""Aggregates of different rows in one statement: groups beside each other, with intervals that hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import blowfishdb as bf
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.errors import (
    InvalidInput,
    InvalidQuestion,
    InvalidWorkload,
    NoGuarantee,
    TooLarge,
    UnsupportedSql,
)
from blowfishdb.core.questions.aggregates import Measure
from blowfishdb.core.questions.form import QuestionForm
from blowfishdb.core.questions.numbers import ReleasedTable
from blowfishdb.language.beside import OfSome, beside
from blowfishdb.language.short import question_text
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

DOMAIN = bf.Domain(
    sex=bf.Category(["F", "M"]),
    town=bf.Category(["york", "bath", "leeds"], missing="value"),
    age=bf.Integer(18, 79),
    pay=bf.Integer(0, 999),
    bonus=bf.Integer(0, 99, missing="value"),
    hired=bf.Date("2019-06-01", "2021-05-31"),
)


def table(rows: int = 1_500) -> pd.DataFrame:
    rng = np.random.default_rng(12)
    bonus = pd.array(rng.integers(0, 100, rows), dtype="Int64")
    bonus[rng.random(rows) < 0.3] = pd.NA
    return pd.DataFrame(
        {
            "sex": rng.choice(["F", "M"], rows, p=[0.2, 0.8]),
            "town": rng.choice(["york", "bath", None], rows, p=[0.6, 0.3, 0.1]),
            "age": rng.integers(18, 80, rows),
            "pay": rng.integers(0, 1_000, rows),
            "bonus": bonus,
            "hired": np.datetime64("2019-06-01") + rng.integers(0, 731, rows),
        }
    )


ROWS = table()


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        yield workspace


@pytest.fixture
def people(ws: Workspace) -> Dataset:
    dataset = ws.add_dataset("people", ROWS, domain=DOMAIN)
    dataset.budget.set(10**6)
    return dataset


WOMEN, YOUNG, NORTH = ROWS.sex == "F", ROWS.age < 30, ROWS.town.isin(["york", "leeds"])
PAY = ROWS.pay
STATEMENTS = {
    "AVG(pay) FILTER (WHERE sex = 'F') - AVG(pay) FILTER (WHERE sex = 'M')": (
        PAY[WOMEN].mean() - PAY[~WOMEN].mean(),
        30,
    ),
    "AVG(CASE WHEN age < 30 THEN pay END) / AVG(pay)": (PAY[YOUNG].mean() / PAY.mean(), 0.1),
    "SUM(pay) FILTER (WHERE town IN ('york', 'leeds')) / COUNT(*)": (PAY[NORTH].sum() / len(ROWS), 20),
    "AVG(pay) FILTER (WHERE sex = 'F' AND age < 30) - AVG(pay)": (
        PAY[WOMEN & YOUNG].mean() - PAY.mean(),
        200,
    ),
    "100.0 * SUM(CASE WHEN sex = 'F' THEN pay ELSE 0 END) / SUM(pay)": (
        100 * PAY[WOMEN].sum() / PAY.sum(),
        2,
    ),
}
"""What is asked, what it is, and how wide an interval may be at an ε of 4."""


@pytest.mark.parametrize("asked", STATEMENTS)
def test_intervals_hold_and_say_something(ws: Workspace, people: Dataset, asked: str) -> None:
    truth, widest = STATEMENTS[asked]
    missed, runs = 0, 60
    for run in range(runs):
        ws._service = replace(ws._service, noise=bf.noise.seeded(run))
        told = people.sql(f"SELECT {asked} AS x FROM people WITH EPSILON 4.0{run:03}").ask()
        assert told.measures == ("x",) and told.low is not None and told.high is not None
        assert not told.exact.any() and told.low[0] <= told.values[0] <= told.high[0]
        missed += not told.low[0] - 1e-9 <= truth <= told.high[0] + 1e-9
        assert told.high[0] - told.low[0] < widest
    assert missed <= 8  # 3 are expected at most


def test_a_database_would_say_the_same_of_every_group(people: Dataset) -> None:
    typed = (
        "SELECT sex, AVG(pay) FILTER (WHERE age < 30) AS young, AVG(pay) AS everybody, COUNT(bonus) AS b, "
        "SUM(bonus) FILTER (WHERE age >= 60) AS old, COUNT(*) FILTER (WHERE age < 30) AS n FROM people "
        "GROUP BY sex HAVING COUNT(*) > 10 ORDER BY young - everybody DESC"
    )
    told = people.sql(typed).spend(3_000).ask()
    rows = {}
    for sex, part in ROWS.groupby("sex"):
        young = part[part.age < 30]
        old = float(part.bonus[part.age >= 60].sum())
        rows[sex] = [young.pay.mean(), part.pay.mean(), part.bonus.count(), old, len(young)]
    order = sorted(rows, key=lambda sex: rows[sex][1] - rows[sex][0])
    assert list(told.labels[0]) == order
    assert told.values == pytest.approx(np.concatenate([rows[sex] for sex in order]), rel=1e-3)


def test_it_is_one_release_of_groups_that_is_stored_whole(people: Dataset) -> None:
    whole = people.by("sex").mean("pay").spend(2).ask()
    gap = "SELECT AVG(pay) FILTER (WHERE sex = 'F') - AVG(pay) FILTER (WHERE sex = 'M') AS gap FROM people"
    told = people.sql(gap).spend(2).ask(max_cost=0)
    assert told.receipt.cost == Epsilon(0) and told.number == whole.number
    assert told.values[0] == pytest.approx(whole.values[0] - whole.values[1])
    assert whole.low is not None and whole.high is not None and told.low is not None
    assert told.low[0] == pytest.approx(whole.low[0] - whole.high[1])
    assert told.promise == "In 95 of 100 runs every true value lies in its noise interval."
    assert people.gateway.answer(whole.number).labels == (("F", "M"),)


def test_groups_stand_beside_each_other(people: Dataset) -> None:
    asked = people.by("town", "sex").aggregate(("mean", "pay"), "count").spend(3)
    whole = asked.ask().to_pandas()
    told = asked.across("sex").order_by("town desc nulls first").ask()
    assert told.receipt.cost == Epsilon(0) and told.axes == ("town", "measure")
    assert told.labels[0] == ("missing", "york", "leeds", "bath")
    assert told.labels[1] == ("F: mean of pay", "F: rows", "M: mean of pay", "M: rows")
    for town, values in zip(told.labels[0], told.values.reshape(-1, 4), strict=True):
        assert np.array_equal(values, whole[whole.town == town].value.to_numpy(), equal_nan=True)
    turned = asked.across("sex", "town").ask()
    assert turned.labels[0][2:4] == ("F, bath: mean of pay", "F, bath: rows") and turned.axes == ("measure",)
    medians = people.by("sex").median("pay").spend(3)
    apart = medians.across("sex").show(gap="median(pay)['F'] - median(pay)['M']").ask()
    both = medians.ask().values
    assert apart.values[0] == pytest.approx(both[0] - both[1]) and apart.low is not None
    assert (
        people["sex"].histogram().spend(1).across("sex").show(more="count()[2] - count()[1]").ask().values[0]
        > 0
    )


def test_the_same_is_typed_in_every_way(people: Dataset) -> None:
    sql = people.sql(
        "SELECT town, AVG(pay) FILTER (WHERE sex = 'F') - AVG(pay) FILTER (WHERE sex = 'M') AS gap "
        "FROM people GROUP BY town ORDER BY gap DESC LIMIT 2"
    )
    short = people.question(
        "mean(pay) by town, sex across sex show mean(pay)['F'] - mean(pay)['M'] as gap "
        "order by gap desc limit 2"
    )
    chain = (
        people.by("town", "sex")
        .mean("pay")
        .across("sex")
        .show(gap="mean(pay)[1] - mean(pay)[2]")
        .order_by("gap desc")
        .limit(2)
    )
    assert sql.form == short.form == chain.form
    assert QuestionForm.from_plain(json.loads(json.dumps(sql.form.to_plain()))) == sql.form
    assert sql.form.to_plain()["arrangement"]["across"] == ["sex"]


def test_medians_of_different_rows_are_those_of_their_groups(people: Dataset) -> None:
    asked = (
        "SELECT MEDIAN(pay) FILTER (WHERE sex = 'F') AS f, "
        "QUANTILE_CONT(pay, 0.9) FILTER (WHERE sex = 'M') AS m, "
        "MEDIAN(pay) FILTER (WHERE sex = 'F') - MEDIAN(CASE WHEN sex = 'M' THEN pay END) AS gap FROM people"
    )
    told = people.sql(asked).spend(300).ask()
    women, men = PAY[WOMEN], PAY[~WOMEN]
    truth = [women.median(), men.quantile(0.9), women.median() - men.median()]
    assert told.low is not None and told.high is not None
    assert (told.low <= truth).all() and (truth <= told.high).all()
    only = people.sql("SELECT MEDIAN(pay) FILTER (WHERE sex = 'F') AS f FROM people WHERE age > 30")
    assert only.form == people.sql("SELECT MEDIAN(pay) AS f FROM people WHERE age > 30 AND sex = 'F'").form
    for other in ("MEDIAN(pay)", "COUNT(*)", "MEDIAN(pay) FILTER (WHERE age > 30)"):
        with pytest.raises(UnsupportedSql) as refused:
            people.sql(f"SELECT MEDIAN(pay) FILTER (WHERE sex = 'F') AS f, {other} AS n FROM people")
        assert len(refused.value.fixes) == 2
        for fix in refused.value.fixes:
            people.sql(fix).spend(1).quote()


def test_what_is_written_is_read_again(people: Dataset) -> None:
    for typed in (
        "mean(pay), count() by town, sex where age > 30 across sex show mean(pay)[2] - mean(pay)[1] as gap",
        "counts(age < 30 as young, pay > 9 as rich) by sex across sex show young[1] / rich[2] as x",
        "median(pay) by sex across sex show median(pay)[1] as x",
        "histogram(sex, town) across town, sex having count()[3] > 5",
    ):
        if "having" in typed:
            with pytest.raises(InvalidWorkload):
                people.question(typed)
            continue
        form = people.question(typed).form
        assert (
            question_text(form).replace('"', "") == typed
            and people.question(question_text(form)).form == form
        )
    table = people.question(
        "histogram(sex, town) across town having count()[1] > 5 order by count()['bath'] desc"
    )
    assert question_text(table.form).endswith("across town having count()[1] > 5 order by count()[2] desc")


def test_a_column_may_be_called_across(ws: Workspace) -> None:
    domain = bf.Domain(across=bf.Integer(0, 9), sex=bf.Category(["F", "M"]))
    dataset = ws.add_dataset("words", pd.DataFrame({"across": [1, 2], "sex": ["F", "M"]}), domain=domain)
    for typed in (
        "histogram(across) where across > 3",
        "mean(across) by sex where sex = 'F' and across in (1, 2)",
    ):
        assert dataset.question(typed).form.arrangement.across == ()
    assert dataset.question("mean(across) by sex across sex").form.arrangement.across == ("sex",)
    assert dataset.question("histogram(sex, across) across across").form.arrangement.across == ("across",)


def test_what_has_no_groups_beside_each_other_is_refused(people: Dataset) -> None:
    asked = people.by("town", "sex").mean("pay")
    for wrong in (
        lambda: people["pay"].cumulative(bins=4).across("pay"),
        lambda: people["sex"].histogram().across("sex").limit(1),
        lambda: people["sex"].histogram().across("sex").order_by("count()[1]"),
    ):
        with pytest.raises(InvalidWorkload):
            wrong()
    for wrong in (
        lambda: asked.across("age"),
        lambda: asked.across("sex", "sex"),
        lambda: asked.across("sex").order_by("sex"),
        lambda: QuestionForm.from_plain(
            {"kind": "histogram", "columns": ["sex"], "arrangement": {"across": "sex"}}
        ),
    ):
        with pytest.raises(InvalidInput):
            wrong()
    with pytest.raises(InvalidInput, match="there are 2"):
        people["sex"].histogram().across("sex")._arranged(
            QuestionForm.from_plain(
                {
                    "kind": "histogram",
                    "columns": ["sex"],
                    "arrangement": {"across": ["sex"], "show": [{"name": "x", "number": {"told": 2}}]},
                }
            ).arrangement
        )
    with pytest.raises(TooLarge):
        people["age", "pay"].histogram().across("age", "pay")
    for typed in ("mean(pay)", "mean(pay)[3]", "mean(pay)['X']", "mean(pay)['F', 'M']"):
        with pytest.raises(InvalidQuestion):
            asked.across("sex").show(x=typed)
    with pytest.raises(NoGuarantee):
        asked.across("sex").show(x="mean(pay)[1] - mean(pay)[2]").accurate_to(5, each=True).quote()


# --- by brute force -------------------------------------------------------------------------------------

AGES, PAYS = st.integers(18, 79), st.integers(0, 999)
ATOMS = st.one_of(
    st.sampled_from([bf.col("sex") == "F", bf.col("sex") != "F", bf.col("town").isin(["york", "leeds"])]),
    st.sampled_from([bf.col("town") != "york", bf.col("town").is_missing(), bf.col("bonus") > 40]),
    st.builds(lambda age: bf.col("age") >= age, AGES),
    st.builds(lambda low, more: bf.col("age").between(low, low + more), AGES, st.integers(0, 30)),
    st.builds(lambda pay: bf.col("pay") < pay, PAYS),
)
CONDITIONS = st.one_of(
    st.just(Everything()),
    ATOMS,
    st.builds(lambda one, other: one & other, ATOMS, ATOMS),
    st.builds(lambda one, other: one | ~other, ATOMS, ATOMS),
)
MEASURES = st.sampled_from(
    [
        Measure("count"),
        Measure("count", "bonus"),
        Measure("sum", "pay"),
        Measure("mean", "pay"),
        Measure("mean", "bonus"),
    ]
)
SOME = table(60)


def aggregate(rows: pd.DataFrame, measure: Measure) -> float:
    if measure.column is None:
        return float(len(rows))
    values = rows[measure.column].dropna().astype(float)
    told = {"count": len(values), "sum": values.sum(), "mean": values.mean() if len(values) else math.nan}
    return float(told[measure.of])


def rows_where(condition: Predicate) -> pd.DataFrame:
    plain = SOME.astype(object).where(SOME.notna(), None)
    held = [condition.matches(dict(row), DOMAIN) for row in plain.to_dict("records")]
    return SOME[np.array(held, dtype=bool)]


@given(st.lists(st.builds(OfSome, MEASURES, CONDITIONS), min_size=1, max_size=4))
def test_numbers_are_those_of_the_rows(asked: list[OfSome]) -> None:
    """From the exact aggregates of every group follow those of the rows of every condition."""
    laid = beside(asked, DOMAIN)
    if laid is None:
        return
    axes = [(column.name, column.axis(DOMAIN).bins) for column in laid.columns]
    shape = tuple(bins.count for _, bins in axes)
    cells = {
        name: DOMAIN[name].encode([None if pd.isna(value) else value for value in SOME[name]])
        for name, _ in axes
    }
    group = np.ravel_multi_index([bins.assign(cells[name]) for name, bins in axes], shape)
    exact = [[aggregate(SOME[group == at], each) for each in laid.measures] for at in range(math.prod(shape))]
    told = np.nan_to_num(np.array(exact, dtype=float).reshape(1, -1), nan=0.0)
    table = ReleasedTable(told, told, told, np.ones(told.shape, dtype=np.bool_))
    for each, number in zip(asked, laid.numbers, strict=True):
        wanted, found = aggregate(rows_where(each.holds), each.measure), float(number.of(table)[0])
        if not math.isnan(wanted):
            assert found == pytest.approx(wanted, rel=1e-9, abs=1e-9), (each, laid)
