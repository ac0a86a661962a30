"""Statements as people and their tools write them are answered, and rightly: each beside DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.pgwire.results import rows_of
from blowfishdb.language.select import parse_select
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace
from tests.statements import BESIDE, ORDINARY, TOOLS

COLUMNS = bf.Domain(
    age=bf.Integer(18, 89),
    salary=bf.Integer(0, 199_999),
    hours=bf.Integer(0, 79),
    rate=bf.Real(0, 10, 0.1),
    region=bf.Category(["north", "south", "east", "west"]),
    level=bf.Category(["low", "mid", "high"], ordered=True),
    department=bf.Category(["sales", "engineering", "support", "hr"]),
    hired=bf.Date("2015-01-01", "2024-12-31"),
    employed=bf.Boolean(),
    bonus=bf.Integer(0, 20_000, missing="value"),
)
ELSEWHERE = ("TO_DATE", "TO_TIMESTAMP", "to_char", "SELECT TOP", "WIDTH_BUCKET", "SYMMETRIC")
"""What DuckDB does not read."""
OTHERWISE = ("age / 10", "level >= 'mid'")
"""What DuckDB does in another way, as documented: it keeps what is left, and orders by the alphabet."""
TIES = "ORDER BY COUNT(*) DESC LIMIT 10"
LARGEST = 300


def table() -> pd.DataFrame:
    random, rows = np.random.default_rng(3), 900
    days = random.integers(0, 3650, rows)
    paid = random.random(rows) < 0.7
    return pd.DataFrame(
        {
            "age": random.integers(18, 90, rows),
            "salary": np.minimum(random.gamma(3, 20_000, rows).astype(int), 199_999),
            "hours": random.integers(0, 60, rows),
            "rate": random.integers(0, 101, rows) / 10,
            "region": random.choice(["north", "south", "east", "west"], rows, p=[0.4, 0.3, 0.2, 0.1]),
            "level": random.choice(["low", "mid", "high"], rows, p=[0.5, 0.3, 0.2]),
            "department": random.choice(["sales", "engineering", "support", "hr"], rows),
            "hired": [date(2015, 1, 1) + timedelta(days=int(day)) for day in days],
            "employed": random.random(rows) < 0.7,
            "bonus": pd.array(np.where(paid, random.integers(0, 20_001, rows), -1), dtype="Int64"),
        }
    ).assign(bonus=lambda known: known["bonus"].mask(known["bonus"] < 0))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Dataset, duckdb.DuckDBPyConnection]]:
    rows = table()
    beside = duckdb.connect()
    beside.register("raw", rows)
    beside.execute("CREATE TABLE people AS SELECT * REPLACE (CAST(hired AS DATE) AS hired) FROM raw")
    beside.execute("CREATE SCHEMA public")
    beside.execute("CREATE VIEW public.people AS SELECT * FROM main.people")
    with Workspace(tmp_path_factory.mktemp("statements") / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("people", rows, domain=COLUMNS)
        dataset.budget.set(10**6)
        dataset["age"].count().spend(1).ask()
        yield dataset, beside


@cache
def answered(typed: str) -> bool:
    try:
        parse_select(typed, COLUMNS, dataset="people")
    except BlowfishError as refusal:
        assert refusal.fixes, typed
        return False
    return True


def test_most_ordinary_statements_are_answered() -> None:
    assert sum(map(answered, ORDINARY)) >= 97
    assert len(ORDINARY) == 107


def test_most_statements_of_tools_are_answered() -> None:
    assert sum(map(answered, TOOLS)) >= 130
    assert len(TOOLS) == 161


def test_all_of_rows_beside_each_other_are_answered() -> None:
    assert all(map(answered, BESIDE))


@pytest.mark.parametrize("typed", [typed for typed in (*ORDINARY, *TOOLS) if not answered(typed)])
def test_every_refusal_suggests_what_is_answered(typed: str) -> None:
    with pytest.raises(BlowfishError) as refused:
        parse_select(typed, COLUMNS, dataset="people")
    for fix in refused.value.fixes:
        if fix.startswith("SELECT "):
            assert answered(fix), fix
        elif not fix.startswith(("ask ", "leave ")):
            assert answered(f"SELECT COUNT(*) FROM people WHERE {fix}"), fix


def key(value: Any) -> Any:
    if isinstance(value, datetime) and value.time() == time():
        return value.date()
    return value if isinstance(value, bool | str | date) or value is None else float(value)


def check(people: tuple[Dataset, duckdb.DuckDBPyConnection], typed: str) -> None:
    """Every number is as near to the truth as noise of that size can be, and every group is there."""
    dataset, beside = people
    question = parse_select(typed, COLUMNS, dataset="people")
    answer = dataset.sql(typed).spend(LARGEST).ask()
    rows = rows_of(answer, question.columns, question.form, COLUMNS, intervals=True)
    groups = [at for at, column in enumerate(question.columns) if column.group is not None]
    true = {tuple(key(row[at]) for at in groups): row for row in beside.execute(typed).fetchall()}
    told: dict[tuple[Any, ...], None] = {}
    for row in rows:
        cells, at = [], 0
        for column in question.columns:
            wide = 1 if column.group is not None else 3
            cells.append(row[at : at + wide])
            at += wide
        named = tuple(key(cells[at][0]) for at in groups)
        told[named] = None
        for place, column in enumerate(question.columns):
            if column.group is not None or (named not in true and column.shown != "count"):
                continue
            fact = true[named][place] if named in true else 0
            if TIES in typed or fact is None:
                continue
            values, lows, highs, facts = (
                each if column.shown == "numbers" else [each] for each in (*cells[place], fact)
            )
            for value, low, high, exact in zip(values, lows, highs, facts, strict=True):
                ends = (value, value) if low is None else (low, high)
                off = 4 * (ends[1] - ends[0]) + 1e-6 * max(1.0, abs(float(exact)))
                assert abs(float(exact) - sum(ends) / 2) <= off, (typed, named, value, low, high, exact)
    assert TIES in typed or set(true) <= set(told), typed
    order = question.form.arrangement.order
    if "ORDER BY" in typed and order and all(isinstance(each.by, str) for each in order):
        assert [named for named in told if named in true] == list(true), typed


CHECKED = [
    typed
    for typed in (*ORDINARY, *TOOLS, *BESIDE)
    if answered(typed) and not any(part in typed for part in (*ELSEWHERE, *OTHERWISE))
]


@pytest.mark.parametrize("typed", CHECKED[::4])
def test_statements_are_answered_as_a_database_would(
    people: tuple[Dataset, duckdb.DuckDBPyConnection], typed: str
) -> None:
    check(people, typed)


@pytest.mark.thorough
@pytest.mark.parametrize("typed", CHECKED)
def test_all_statements_are_answered_as_a_database_would(
    people: tuple[Dataset, duckdb.DuckDBPyConnection], typed: str
) -> None:
    check(people, typed)


KEPT_APART = bf.Domain(kind=bf.Category(["x", "y"], missing="value"), town=bf.Category(["bath", "york"]))


@pytest.mark.parametrize(
    "rest",
    ["WHERE CONCAT(kind, 'a') = 'xa'", "WHERE NOT CONCAT('a', kind) LIKE 'ay'", "GROUP BY CONCAT(kind, 'a')"],
)
def test_databases_do_not_agree_on_what_is_joined_to_a_missing_value(rest: str) -> None:
    asked = f"SELECT COUNT(*) FROM people {rest}"
    with pytest.raises(BlowfishError):
        parse_select(asked, KEPT_APART, dataset="people")
    parse_select(asked.replace("kind", "town"), KEPT_APART, dataset="people")
