"""Groups that are computed from a column: the same ones as a database computes, and no others."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta

import duckdb
import numpy as np
import pytest

from blowfishdb.core.domain.attributes import Category, Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import UnsupportedSql
from blowfishdb.core.questions.form import ColumnForm
from blowfishdb.language.aggregates import key_text
from blowfishdb.language.select import parse_select

DOMAIN = Domain.of(
    {
        "age": Integer(18, 89),
        "debt": Integer(-25, 25),
        "rate": Real(0, 3, "0.25"),
        "day": Date("2023-11-05", "2024-03-20"),
        "name": Category(["north", "south", "east", "west"]),
        "gap": Integer(0, 9, missing="value"),
        "pay": Integer(0, 9_999),
    }
)
DAYS = [date(2023, 11, 5) + timedelta(days=k) for k in range(137)]
VALUES: dict[str, list[object]] = {
    "age": list(range(18, 90)),
    "debt": list(range(-25, 26)),
    "rate": [k / 4 for k in range(13)],
    "day": [f"DATE '{day}'" for day in DAYS],
    "pay": list(range(10_000)),
    "gap": [*range(10), "NULL"],
    "name": [f"'{name}'" for name in ("north", "south", "east", "west")],
}
GROUPS = {
    "FLOOR(age / 10)": "age",
    "FLOOR(age / 10) * 10": "age",
    "FLOOR(age / 7.5)": "age",
    "age - age % 10": "age",
    "age // 10": "age",
    "CASE WHEN pay < 3000 THEN 'low' WHEN pay < 7000 THEN 'mid' ELSE 'high' END": "pay",
    "CASE WHEN pay BETWEEN 0 AND 99 THEN 'few' ELSE 'more' END": "pay",
    "age - MOD(age, 20)": "age",
    "FLOOR(debt / 10)": "debt",
    "FLOOR(rate / 0.5) * 0.5": "rate",
    "date_trunc('month', day)": "day",
    "date_trunc('quarter', day)": "day",
    "date_trunc('week', day)": "day",
    "EXTRACT(year FROM day)": "day",
    "YEAR(day)": "day",
    "CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END": "age",
    "CASE WHEN age BETWEEN 30 AND 40 THEN 'in' ELSE 'out' END": "age",
    "CASE name WHEN 'north' THEN 'cold' WHEN 'south' THEN 'warm' ELSE 'mild' END": "name",
    "CASE WHEN name LIKE '%th' THEN 1 ELSE 0 END": "name",
    "age / 2.5": "age",
    "rate / 10": "rate",
    "EXTRACT(month FROM day)": "day",
    "EXTRACT(quarter FROM day)": "day",
    "EXTRACT(dow FROM day)": "day",
    "strftime(day, '%Y-%m')": "day",
    "CAST(date_trunc('month', day) AS DATE)": "day",
    "CAST(FLOOR(age / 10.0) AS INT) * 10": "age",
    "FLOOR((age / 5.0)) * 5.0": "age",
    "TRUNC(age / 10) * 10": "age",
    "ROUND(pay, -3)": "pay",
    "ROUND(age / 10.0)": "age",
    "CEIL(rate)": "rate",
    "ABS(debt)": "debt",
    "age % 3": "age",
    "100 - age": "age",
    "UPPER(name)": "name",
    "LEFT(name, 1)": "name",
    "LENGTH(name)": "name",
    "SUBSTRING(name, 2, 1)": "name",
    "CAST(age AS VARCHAR)": "age",
    "age >= 65": "age",
    "pay < 5000": "pay",
    "age % 2 = 0": "age",
    "name IN ('north', 'south')": "name",
    "gap > 3": "gap",
    "gap IS NULL": "gap",
}


def partition(sql: str, column: str) -> set[frozenset[int]]:
    """Which values are in one group, by their place, as DuckDB says."""
    listed = ", ".join(f"({place}, {value})" for place, value in enumerate(VALUES[column]))
    rows = duckdb.sql(f"SELECT place, {sql} FROM (VALUES {listed}) t(place, {column})").fetchall()
    groups = defaultdict(set)
    for place, group in rows:
        groups[group].add(place)
    return {frozenset(places) for places in groups.values()}


@pytest.mark.parametrize("sql", GROUPS)
def test_a_group_is_what_a_database_computes(sql: str) -> None:
    form = parse_select(f"SELECT {sql} AS g, COUNT(*) FROM t GROUP BY g", DOMAIN, dataset="t").form
    (asked,) = form.columns
    bins = asked.axis(DOMAIN).bins
    groups = {frozenset(int(cell) for cell in bins.members(number)) for number in range(bins.count)}
    assert groups == partition(sql, GROUPS[sql])
    again = parse_select(f"SELECT {key_text(asked)}, COUNT(*) FROM t GROUP BY 1", DOMAIN, dataset="t").form
    assert again.columns[0].axis(DOMAIN).bins.count == bins.count


LONG = Domain.of(
    {"day": Date("2019-02-03", "2023-04-05"), "seen": Date("2019-02-03", "2021-04-05", missing="value")}
)


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("EXTRACT(month FROM day)", "month"),
        ("MONTHNAME(day)", "month"),
        ("strftime(day, '%m')", "month"),
        ("strftime(day, '%b')", "month"),
        ("MONTH(seen)", "month"),
        ("QUARTER(day)", "quarter"),
        ("date_part('quarter', seen)", "quarter"),
        ("WEEK(day)", "week"),
        ("EXTRACT(week FROM seen)", "week"),
        ("DAYOFMONTH(day)", "day"),
        ("EXTRACT(dow FROM day)", "weekday"),
        ("ISODOW(seen)", "weekday"),
        ("DAYNAME(day)", "weekday"),
        ("strftime(day, '%A')", "weekday"),
    ],
)
def test_parts_of_several_years_are_those_of_a_database(sql: str, part: str) -> None:
    """The same groups, called the same, in the same order."""
    name = "seen" if "seen" in sql else "day"
    attribute = LONG[name]
    days = [attribute.at(tick) for tick in range(attribute.ticks)]
    listed = ", ".join(f"(DATE '{day}')" for day in days)
    rows = duckdb.sql(
        f"SELECT {sql} AS g, LIST({name}) FROM (VALUES {listed}) t({name}) GROUP BY 1 ORDER BY 1"
    )
    question = parse_select(f"SELECT {sql} AS g, COUNT(*) FROM t GROUP BY g ORDER BY g", LONG, dataset="t")
    (column,) = question.form.columns
    assert column == ColumnForm(name, part=part)
    axis, called = column.axis(LONG), question.columns[0].values
    order = np.argsort(question.form.places(LONG).get(name, np.arange(axis.value_bins))[: axis.value_bins])
    told = [(called[bin_], [days[cell] for cell in axis.bins.members(int(bin_))]) for bin_ in order]
    assert told == [(group, sorted(members)) for group, members in rows.fetchall()]
    again = parse_select(f"SELECT {key_text(column)}, COUNT(*) FROM t GROUP BY 1", LONG, dataset="t").form
    assert again.columns == (column,)


def test_buckets_of_equal_width() -> None:
    """As in PostgreSQL: one below, one above; DuckDB has no such function."""
    statement = "SELECT WIDTH_BUCKET(age, 20, 80, 6), COUNT(*) FROM t GROUP BY 1"
    form = parse_select(statement, DOMAIN, dataset="t").form
    assert form.columns[0].edges == (18, 20, 30, 40, 50, 60, 70, 80)


@pytest.mark.parametrize(
    "sql",
    [
        "debt / 10",  # towards zero in one database, downwards in another
        "CASE WHEN pay BETWEEN 100 AND 200 THEN 'in' ELSE 'out' END",  # many values, in two pieces
        "debt - debt % 10",
        "COALESCE(gap, 0) > 3",  # a missing value would be in the group of others
        "CEIL(age / 10)",  # what is left is kept in one database and dropped in another
        "age + pay",
        "COALESCE(name, 'none')",
        "FLOOR(age / debt)",
        "FLOOR(name / 2)",
        "CASE WHEN age < 30 THEN 'young' END",
        "CASE WHEN age < 30 THEN name ELSE 'old' END",
        "CASE WHEN gap < 3 THEN 'few' ELSE 'many' END",  # a missing value would be 'many'
    ],
)
def test_what_is_not_computed_is_refused_with_what_is(sql: str) -> None:
    with pytest.raises(UnsupportedSql) as refused:
        parse_select(f"SELECT {sql} AS g, COUNT(*) FROM t GROUP BY g", DOMAIN, dataset="t")
    assert parse_select(refused.value.fixes[0], DOMAIN, dataset="t").form.kind == "histogram"
