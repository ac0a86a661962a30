"""SELECT statements: what each one asks, and for each refusal the reason and a statement that works."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.attributes import Boolean, Category, Integer
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import (
    BlowfishError,
    InvalidAlpha,
    InvalidBins,
    InvalidEpsilon,
    InvalidInput,
    InvalidQuestion,
    InvalidWorkload,
    Refused,
    UnknownColumn,
    UnknownDataset,
    UnsupportedSql,
)
from blowfishdb.core.questions.form import ColumnForm, QuestionForm
from blowfishdb.language.condition import condition, condition_text
from blowfishdb.language.extensions import split_extensions
from blowfishdb.language.select import SqlQuestion, parse_select
from blowfishdb.language.short import parse_question, question_text
from blowfishdb.language.text import LONGEST
from tests.adapters.typed import SALARIES, alike, conditions

DOCUMENT = Path(__file__).parents[2] / "docs" / "questions.md"


def ask(typed: str) -> SqlQuestion:
    return parse_select(typed, SALARIES, dataset="salaries")


# --- what each statement asks -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "short"),
    [
        ("SELECT COUNT(*) FROM salaries", "count()"),
        ('select count(1) as n from "SALARIES" s', "count()"),
        (
            "SELECT COUNT(*) FROM salaries s WHERE s.age > 30 AND salaries.region = 'north';",
            "count() where age > 30 and region = 'north'",
        ),
        ("SELECT SUM(salary) FROM salaries", "sum(salary)"),
        ("SELECT AVG(Salary) FROM salaries", "mean(salary)"),
        ("SELECT MEDIAN(salary) FROM salaries", "median(salary)"),
        ("SELECT MEDIAN(BIN(salary, 1000)) FROM salaries", "median(salary, width=1000)"),
        (
            "SELECT region, AVG(salary), SUM(rate), COUNT(*) FROM salaries GROUP BY region",
            "mean(salary), sum(rate), count() by region",
        ),
        ("SELECT AVG(salary), AVG(rate) FROM salaries", "mean(salary), mean(rate)"),
        (
            "SELECT region, SUM(salary) / SUM(rate) AS each FROM salaries GROUP BY region ORDER BY each",
            "sum(salary), sum(rate) by region show sum(salary) / sum(rate) as each "
            "order by sum(salary) / sum(rate)",
        ),
        ("SELECT SUM(1) FROM salaries", "count()"),
        (
            "SELECT TOP 3 region, COUNT(*) AS n FROM salaries GROUP BY region ORDER BY n DESC",
            "top(region, 3)",
        ),
        ("SELECT SUM(employed::int) FROM salaries", "count() where employed"),
        (
            "SELECT AVG((rate > 5)::int) AS s FROM salaries",
            'counts(rate > 5, 1 = 1 as rows) show "rate > 5" / rows as s',
        ),
        ("SELECT COALESCE(SUM(salary), 0) FROM salaries", "sum(salary)"),
        ("SELECT SUM(COALESCE(age, 0)) FROM salaries", "sum(age)"),
        (
            "SELECT AVG(COALESCE(age, 0)) AS a FROM salaries",
            "sum(age), count() show sum(age) / count() as a",
        ),
        ("SELECT AVG(rate)::numeric(10, 2) AS r FROM salaries", "mean(rate) show round(mean(rate), 2) as r"),
        ("SELECT CAST(AVG(rate) AS INTEGER) AS r FROM salaries", "mean(rate) show round(mean(rate), 0) as r"),
        (
            "SELECT COUNT(*) FROM salaries WHERE region = ANY(ARRAY['north'])",
            "count() where region in ('north')",
        ),
        (
            "SELECT COUNT(*) FROM salaries WHERE day >= TO_DATE('2024-02-01', 'YYYY-MM-DD') "
            "AND day < DATE '2024-02-01' + INTERVAL '1 month'",
            "count() where day >= DATE '2024-02-01' and day < DATE '2024-03-01'",
        ),
        (
            "SELECT YEAR(day) AS y, MONTH(day) AS m, COUNT(*) FROM salaries GROUP BY y, m ORDER BY y, m",
            "histogram(day, edges=[" + ", ".join(f"2024-{m:02}-01" for m in range(1, 13)) + "])",
        ),
        (
            "SELECT BIN(rate, 1), SUM(COUNT(*)) OVER (ORDER BY BIN(rate, 1)) FROM salaries GROUP BY 1",
            "cumulative(rate, width=1)",
        ),
        ("SELECT UPPER(region) AS r, COUNT(*) FROM salaries GROUP BY r", "histogram(region)"),
        (
            "SELECT level >= 'mid' AS much, COUNT(*) FROM salaries GROUP BY much ORDER BY much",
            "histogram(level, groups={'false': ['low'], 'true': ['mid', 'high']}) order by level",
        ),
        ("SELECT SUM(salary * 12) AS y FROM salaries", "sum(salary) show sum(salary) * 12 as y"),
        (
            "SELECT AVG(CASE WHEN age < 30 THEN rate END) FROM salaries WHERE employed",
            "mean(rate) where employed and age < 30",
        ),
        (
            "SELECT region, SUM(CASE WHEN employed THEN salary ELSE 0 END) FROM salaries GROUP BY region",
            "sum(salary) by region where employed",
        ),
        (
            "SELECT level, AVG(rate) FILTER (WHERE age > 3) FROM salaries GROUP BY 1",
            "mean(rate) by level where age > 3",
        ),
        ("SELECT region, COUNT(*) FROM salaries GROUP BY ALL", "histogram(region)"),
        (
            "SELECT level, COUNT(*) * 100.0 / (SELECT COUNT(*) FROM salaries WHERE employed) AS s "
            "FROM salaries WHERE employed GROUP BY level HAVING COUNT(*) > 3",
            "histogram(level) where employed show count() * 100 / total(count()) as s having count() > 3",
        ),
        (
            "SELECT COUNT(*) * 1.0 / (SELECT COUNT(*) FROM salaries) AS s FROM salaries WHERE rate > 5",
            'counts(rate > 5, 1 = 1 as rows) show "rate > 5" * 1 / rows as s',
        ),
        (
            "WITH t AS (SELECT region, AVG(rate) AS r FROM salaries GROUP BY region) "
            "SELECT region, ROUND(r, 1) AS near FROM t ORDER BY near DESC",
            "mean(rate) by region show round(mean(rate), 1) as near order by round(mean(rate), 1) desc",
        ),
        (
            "SELECT x.region, s / x.count AS m FROM (SELECT region, SUM(salary) AS s, COUNT(*) FROM salaries "
            "GROUP BY region) x WHERE x.count > 3",
            "sum(salary), count() by region show sum(salary) / count() as m having count() > 3",
        ),
        ("SELECT COALESCE(salary, 0) AS s, COUNT(*) FROM salaries GROUP BY s", "histogram(salary)"),
        (
            "SELECT * FROM (SELECT region, AVG(rate) AS m FROM salaries GROUP BY region) q "
            "ORDER BY m DESC LIMIT 2",
            "mean(rate) by region order by mean(rate) desc limit 2",
        ),
        (
            "WITH t AS (SELECT region AS r, COUNT(*) AS n FROM salaries GROUP BY 1) "
            "SELECT r, n FROM t WHERE n >= 50",
            "histogram(region) having count() >= 50",
        ),
        ("SELECT COUNT(*) FROM salaries WHERE employed IS TRUE", "count() where employed = true"),
        (
            "SELECT COUNT(*) FROM salaries WHERE YEAR(day) = 2024 AND MONTH(day) = 2",
            "count() where day between DATE '2024-01-01' and DATE '2024-12-31' "
            "and day between DATE '2024-02-01' and DATE '2024-02-29'",
        ),
        (
            "SELECT COUNT(*) FROM salaries WHERE DATE_TRUNC('month', day) = DATE '2024-03-01'",
            "count() where day between DATE '2024-03-01' and DATE '2024-03-31'",
        ),
        (
            "SELECT DATE_PART('month', day) AS m, COUNT(*) FROM salaries GROUP BY m",
            "histogram(day, edges=[" + ", ".join(f"2024-{m:02}-01" for m in range(1, 13)) + "])",
        ),
        (
            "SELECT IF(level = 'low', 'few', 'many') AS l, COUNT(*) FROM salaries GROUP BY l",
            "histogram(level, groups={'few': ['low'], 'many': ['mid', 'high']})",
        ),
        ("SELECT QUANTILE(salary, 0.9) FROM salaries", "quantiles(salary, 0.9)"),
        ("SELECT region, MEDIAN(salary) FROM salaries GROUP BY region", "median(salary) by region"),
        (
            "SELECT BIN(age, 5), QUANTILE(rate, 0.9) FROM salaries WHERE age > 3 GROUP BY 1",
            "quantiles(rate, 0.9) by age(width=5) where age > 3",
        ),
        (
            "SELECT region, MEDIAN(rate) AS m, QUANTILE(rate, .9) FROM salaries GROUP BY 1 ORDER BY m DESC "
            "LIMIT 2",
            "quantiles(rate, 0.5, 0.9) by region order by median(rate) desc limit 2",
        ),
        (
            "SELECT QUANTILE(rate, 0.75) - QUANTILE(rate, 0.25) AS iqr FROM salaries",
            "quantiles(rate, 0.75, 0.25) show quantile(rate, 0.75) - quantile(rate, 0.25) as iqr",
        ),
        ("SELECT ROUND(MEDIAN(rate), 1) AS m FROM salaries", "median(rate) show round(median(rate), 1) as m"),
        (
            "SELECT region, level, COUNT(*) FROM salaries GROUP BY ROLLUP (region, level)",
            "marginals(region, level, [region, level], [region], [])",
        ),
        (
            "SELECT region, level, COUNT(*) FROM salaries GROUP BY region, level WITH ROLLUP",
            "marginals(region, level, [region, level], [region], [])",
        ),
        (
            "SELECT region, level, COUNT(*) FROM salaries GROUP BY region, CUBE (level) ORDER BY region",
            "marginals(region, level, [region, level], [region]) order by region",
        ),
        (
            "SELECT region, COUNT(*) AS n FROM salaries GROUP BY ROLLUP (region) HAVING n > 9 "
            "ORDER BY region DESC NULLS FIRST, n LIMIT 3",
            "marginals(region, [region], []) having count() > 9 "
            "order by region desc nulls first, count() limit 3",
        ),
        (
            "SELECT region, AVG(salary) AS m FROM salaries GROUP BY 1 ORDER BY m NULLS FIRST, 1 NULLS LAST",
            "mean(salary) by region order by mean(salary) nulls first, region",
        ),
        (
            "SELECT MONTH(day) AS m, COUNT(*) FROM salaries WHERE employed GROUP BY m ORDER BY m",
            "histogram(day, edges=["
            + ", ".join(f"2024-{m:02}-01" for m in range(1, 13))
            + "]) where employed",
        ),
        (
            "SELECT SUM(salary) AS s, COUNT(*) FILTER (WHERE age > 3) AS n, COUNT(*) FROM salaries "
            "WHERE age > 1",
            "sum(salary), count() by age(edges=[0, 4]) where age > 1 across age "
            "show sum(salary)[1] + (sum(salary)[2] + sum(salary)[3]) as s, count()[2] as n, "
            'count()[1] + (count()[2] + count()[3]) as "COUNT(*)"',
        ),
        (
            "SELECT AVG(CASE WHEN employed THEN rate END) AS a, AVG(CASE WHEN age < 30 THEN rate END) AS b "
            "FROM salaries",
            "sum(rate), count() by employed, age(edges=[0, 30]) across employed, age "
            "show (sum(rate)[4] + (sum(rate)[5] + sum(rate)[6])) / (count()[4] + (count()[5] + count()[6])) "
            "as a, (sum(rate)[1] + sum(rate)[4]) / (count()[1] + count()[4]) as b",
        ),
        (
            "SELECT region, MEDIAN(rate) FILTER (WHERE employed) - MEDIAN(rate) FILTER (WHERE NOT employed) "
            "AS g FROM salaries GROUP BY region ORDER BY g",
            "median(rate) by region, employed across employed "
            "show median(rate)['true'] - median(rate)['false'] as g order by g",
        ),
        (
            "SELECT MEDIAN(rate) FILTER (WHERE employed) AS m, QUANTILE(rate, 0.9) FILTER (WHERE employed) "
            "AS q FROM salaries WHERE age > 3",
            "quantiles(rate, 0.5, 0.9) where age > 3 and employed",
        ),
        (
            "SELECT DAYNAME(day) AS d, AVG(age) FROM salaries GROUP BY d",
            "mean(age) by day(part=weekday)",
        ),
        (
            "SELECT region, level, COUNT(*) FROM salaries GROUP BY GROUPING SETS ((region), (level))",
            "marginals(region, level, 1)",
        ),
        ("SELECT QUANTILE(salary, [0.25, 0.75]) FROM salaries", "quantiles(salary, 0.25, 0.75)"),
        ("SELECT QUANTILE_CONT(salary, .9) FROM salaries", "quantiles(salary, 0.9)"),
        ("SELECT APPROX_QUANTILE(salary, 0.9) FROM salaries", "quantiles(salary, 0.9)"),
        ("SELECT PERCENTILE_CONT(salary, 0.9) FROM salaries", "quantiles(salary, 0.9)"),
        (
            "SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY salary) FROM salaries",
            "quantiles(salary, 0.9)",
        ),
        ("SELECT region, COUNT(*) FROM salaries GROUP BY region", "histogram(region)"),
        ("SELECT COUNT(*) FROM salaries GROUP BY region", "histogram(region)"),
        ("SELECT BIN(age, 5), COUNT(*) FROM salaries GROUP BY BIN(age, 5)", "histogram(age, width=5)"),
        ("SELECT BIN(age, 5) AS b, COUNT(*) FROM salaries GROUP BY b", "histogram(age, width=5)"),
        ("SELECT bin(age, 5), COUNT(*) FROM salaries GROUP BY 1 ORDER BY 1", "histogram(age, width=5)"),
        ("SELECT COUNT(*), BIN(age, 5) b FROM salaries GROUP BY 2 ORDER BY b", "histogram(age, width=5)"),
        (
            "SELECT BIN(age, 5), region, COUNT(*) FROM salaries GROUP BY 1, 2",
            "histogram(age(width=5), region)",
        ),
        (
            "SELECT region, COUNT(*) FROM salaries GROUP BY region ORDER BY COUNT(*) DESC LIMIT 3",
            "top(region, 3)",
        ),
        ("SELECT region, COUNT(*) n FROM salaries GROUP BY 1 ORDER BY n DESC LIMIT 3", "top(region, 3)"),
        ("SELECT region, COUNT(*) FROM salaries GROUP BY 1 ORDER BY 2 DESC LIMIT 3", "top(region, 3)"),
        ("SELECT region FROM salaries GROUP BY region ORDER BY COUNT(*) DESC LIMIT 3", "top(region, 3)"),
        (
            "SELECT BIN(age, 5), COUNT(*) FROM salaries GROUP BY 1 HAVING COUNT(*) > 5000",
            "above(age, 5000, width=5)",
        ),
        ("SELECT region, COUNT(*) n FROM salaries GROUP BY 1 HAVING 0.5 < n", "above(region, 0.5)"),
        ('SELECT "hours per week", COUNT(*) FROM salaries GROUP BY 1', 'histogram("hours per week")'),
        ("SELECT region, COUNT(*) FROM salaries GROUP BY region LIMIT 3", "histogram(region) limit 3"),
        (
            "SELECT region, COUNT(*) FROM salaries GROUP BY 1 ORDER BY COUNT(*) DESC",
            "histogram(region) order by count() desc",
        ),
        ("SELECT region, COUNT(*) FROM salaries GROUP BY 1 ORDER BY 1", "histogram(region) order by region"),
        ("SELECT age, COUNT(*) FROM salaries GROUP BY 1 ORDER BY 1 DESC", "histogram(age) order by age desc"),
        (
            "SELECT region, COUNT(*) n FROM salaries GROUP BY 1 ORDER BY n DESC, 1 LIMIT 2 OFFSET 1",
            "histogram(region) order by count() desc, region limit 2 offset 1",
        ),
        (
            "SELECT region, COUNT(*) FROM salaries GROUP BY 1 ORDER BY 2 DESC FETCH FIRST 3 ROWS ONLY",
            "top(region, 3)",
        ),
        (
            "SELECT region, COUNT(*) FROM salaries GROUP BY 1 HAVING COUNT(*) >= 500",
            "histogram(region) having count() >= 500",
        ),
        (
            "SELECT age, region, COUNT(*) FROM salaries WHERE age > 3 GROUP BY 1, 2 HAVING COUNT(*) > 5",
            "histogram(age, region) where age > 3 having count() > 5",
        ),
        (
            "SELECT region, AVG(salary) FROM salaries GROUP BY region HAVING AVG(salary) > 5",
            "mean(salary) by region having mean(salary) > 5",
        ),
        (
            "SELECT region, AVG(salary), COUNT(*) FROM salaries GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
            "mean(salary), count() by region order by mean(salary) desc limit 3",
        ),
        ("SELECT COUNT(*) FROM salaries LIMIT 5", "count()"),
        (
            "SELECT age / 30, COUNT(*) FROM salaries GROUP BY age / 30",
            "histogram(age, edges=[0, 30, 60, 90])",
        ),
        (
            "SELECT (age / 30) * 30 AS d, AVG(salary) FROM salaries GROUP BY d",
            "mean(salary) by age(edges=[0, 30, 60, 90])",
        ),
        (
            "SELECT COUNT(*) FILTER (WHERE age < 30) AS young, "
            "SUM(CASE WHEN salary > 9 THEN 1 ELSE 0 END) rich FROM salaries",
            "counts(age < 30 as young, salary > 9 as rich)",
        ),
        (
            "SELECT region, COUNT(*) AS n, COUNT(CASE WHEN age < 30 THEN 1 END), COUNT_IF(employed) "
            "FROM salaries WHERE salary > 9 GROUP BY region HAVING n > 5",
            "counts(1 = 1 as n, age < 30, employed) by region where salary > 9 having n > 5",
        ),
        ("SELECT AVG(age) FROM salaries ORDER BY 1", "mean(age)"),
    ],
)
def test_what_is_asked(typed: str, short: str) -> None:
    found, form = ask(typed), parse_question(short, SALARIES)
    listed = {column.name for column in form.listed}
    empty = not all(each.all() for name, each in form.possible(SALARIES).items() if name in listed)
    arrangement = replace(form.arrangement, possible=empty)
    assert found == SqlQuestion(replace(form, arrangement=arrangement), None, None, False)


def test_bins_can_be_lengths_of_time() -> None:
    week = QuestionForm("histogram", (ColumnForm("day", width=timedelta(days=7)),))
    for width in ("INTERVAL '7' DAY", "INTERVAL '7 days'", "INTERVAL '1' WEEK"):
        assert ask(f"SELECT BIN(day, {width}), COUNT(*) FROM salaries GROUP BY 1").form == week
    assert question_text(ask("SELECT COUNT(*) FROM salaries GROUP BY BIN(day, 7)").form) == (
        "histogram(day, width=7)"
    )


def test_any_dataset_can_be_named() -> None:
    domain = Domain.of({"select": Integer(0, 9)})
    for name in ("Salaries 2024", "select", 'a "b"', "Gehälter", "order"):
        quoted = '"' + name.replace('"', '""') + '"'
        assert parse_select(f"SELECT COUNT(*) FROM {quoted}", domain, dataset=name).form.kind == "count"
        with pytest.raises(UnsupportedSql) as refused:
            parse_select(f'SELECT MIN("select") FROM {quoted}', domain, dataset=name)
        assert parse_select(refused.value.fixes[0], domain, dataset=name).form.kind == "quantiles"


@given(conditions)
def test_the_condition_is_the_same_as_elsewhere(predicate):
    found = ask(f"SELECT COUNT(*) FROM salaries WHERE {condition_text(predicate)}")
    assert alike(found.form.where) == alike(predicate)


# --- EXPLAIN, WITH ERROR, WITH EPSILON --------------------------------------------------------------


@pytest.mark.parametrize(
    ("tail", "accuracy", "epsilon"),
    [
        ("", None, None),
        (" WITH ERROR 50 CONFIDENCE 0.95", Accuracy(50, 0.05), None),
        (" with error 50;", Accuracy(50, 0.05), None),
        (" WITH ERROR 12.5 CONFIDENCE .99 ON ALL", Accuracy(12.5, 0.01), None),
        (" WITH ERROR 50 CONFIDENCE 95% EACH ; ;", Accuracy(50, 0.05, simultaneous=False), None),
        (" WITH ERROR 50 ON EACH", Accuracy(50, 0.05, simultaneous=False), None),
        (" WITH EPSILON 0.1", None, Epsilon("0.1")),
    ],
)
@pytest.mark.parametrize("head", ["", "EXPLAIN ", "explain\n"])
def test_extensions(head: str, tail: str, accuracy: Accuracy | None, epsilon: Epsilon | None) -> None:
    found = ask(f"{head}SELECT COUNT(*) FROM salaries WHERE age > 30{tail}")
    count = QuestionForm("count", (), col("age") > 30)
    assert found == SqlQuestion(count, accuracy, epsilon, bool(head))


@pytest.mark.parametrize(
    ("tail", "error"),
    [
        (" WITH ERROR", InvalidQuestion),
        (" WITH ERROR -5", InvalidQuestion),
        (" WITH ERROR 0", InvalidAlpha),
        (" WITH ERROR 50 CONFIDENCE 95", InvalidQuestion),
        (" WITH ERROR 50 CONFIDENCE", InvalidQuestion),
        (" WITH ERROR 50 ON", InvalidQuestion),
        (" WITH ERROR 50 ON SOME", InvalidQuestion),
        (" WITH ERROR 50 WHERE age > 3", InvalidQuestion),
        (" WITH ERROR 50 WITH ERROR 40", InvalidQuestion),
        (" WITH ERROR 50 WITH EPSILON 1", InvalidQuestion),
        (" WITH ERROR 1e999", InvalidQuestion),
        (" WITH EPSILON 0", InvalidEpsilon),
        (" WITH EPSILON 'x'", InvalidQuestion),
        (" WITH EPSILON 1 WITH EPSILON 1", InvalidQuestion),
        (" WITH CARE", InvalidQuestion),
    ],
)
def test_extensions_that_say_nothing(tail: str, error: type[BlowfishError]) -> None:
    with pytest.raises(error):
        ask("SELECT COUNT(*) FROM salaries" + tail)


def test_a_text_is_not_an_extension() -> None:
    typed = "SELECT COUNT(*) FROM t WHERE a = ' WITH ERROR 50' -- WITH ERROR 50"
    assert split_extensions(typed).accuracy is None
    assert split_extensions("WITH error AS (SELECT 1) SELECT 2").accuracy is None


# --- refusals ---------------------------------------------------------------------------------------

REFUSED = [
    ("SELECT COUNT(DISTINCT region) FROM {d}", "distinct", "above(region, 0)"),
    ("SELECT COUNT(DISTINCT salary) FROM {d}", "distinct", "above(salary, 0, width=10000)"),
    ("SELECT MIN(salary) FROM {d}", "single persons", "quantiles(salary, 0.01)"),
    (
        "SELECT MAX(salary) FROM {d} WHERE age > 30",
        "single persons",
        "quantiles(salary, 0.99) where age > 30",
    ),
    ("SELECT MAX(region) FROM {d}", "single persons", "histogram(region)"),
    ("SELECT VAR_POP(age) FROM {d}", "divides by one row less", "variance(age)"),
    ("SELECT STDDEV_POP(rate) FROM {d} WHERE age > 3", "STDDEV is answered", "stddev(rate) where age > 3"),
    ("SELECT STDDEV(salary * 2) FROM {d}", "not answered", "histogram(salary, width=10000)"),
    ("SELECT MODE(region) FROM {d}", "fullest group", "top(region, 1)"),
    ("SELECT STRING_AGG(region, ',') FROM {d}", "not answered", "histogram(region)"),
    ("SELECT ARRAY_AGG(age) FROM {d}", "not answered", "histogram(age, width=10)"),
    ("SELECT SUM(DISTINCT age) FROM {d}", "not answered", "histogram(age, width=10)"),
    ("SELECT SUM(salary + rate) FROM {d}", "not answered", "histogram(salary, width=10000)"),
    ("SELECT SUM(BIN(age, 5)) FROM {d}", "not answered", "histogram(age, width=10)"),
    ("SELECT UPPER(region) FROM {d}", "would show the rows", "histogram(region)"),
    ("SELECT FLOOR(AVG(age)) FROM {d}", "nothing is calculated", "mean(age)"),
    ("SELECT APPROX_DISTINCT(region) FROM {d}", "distinct", "above(region, 0)"),
    (
        "SELECT level, COUNT(DISTINCT region) FROM {d} GROUP BY level",
        "distinct",
        "histogram(level, region) having count() > 0",
    ),
    (
        "SELECT MAX(salary) - MIN(salary) FROM {d} WHERE employed",
        "single persons",
        "quantiles(salary, 0.99, 0.01) where employed show quantile(salary, 0.99) - quantile(salary, 0.01) "
        'as "QUANTILE(salary, 0.99) - QUANTILE(salary, 0.01)"',
    ),
    (
        "SELECT AVG(salary / 12) FROM {d}",
        "not answered",
        'mean(salary) show mean(salary) / 12 as "AVG(salary / 12.0)"',
    ),
    (
        "SELECT region || level AS k, COUNT(*) FROM {d} GROUP BY k",
        "computed from one column",
        "histogram(region, level)",
    ),
    (
        "SELECT DATE_PART('hour', seen), COUNT(*) FROM {d} GROUP BY 1",
        "many pieces of the calendar",
        "histogram(seen, edges=[" + ", ".join(f"2024-{m:02}-01T00:00:00" for m in range(1, 13)) + "])",
    ),
    (
        "SELECT region, RANK() OVER (ORDER BY COUNT(*) DESC) FROM {d} GROUP BY region",
        "Window",
        "histogram(region) order by count() desc",
    ),
    (
        "SELECT MIN(salary), MAX(salary), AVG(rate), COUNT(*) FROM {d} WHERE employed",
        "single persons",
        "quantiles(salary, 0.01, 0.99) where employed",
    ),
    (
        "SELECT region, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS s FROM {d} GROUP BY region "
        "HAVING COUNT(*) > 3",
        "HAVING leaves",
        "histogram(region) show count() * 100 / total(count()) as s",
    ),
    (
        "WITH t AS (SELECT level, AVG(rate) AS r FROM {d} GROUP BY level) SELECT MAX(r) FROM t",
        "names a subquery",
        "mean(rate) by level",
    ),
    ("SELECT COUNT(*) FROM {d} WHERE rate > (SELECT AVG(rate) FROM {d})", "subqueries", "mean(rate)"),
    (
        "SELECT level, COUNT(*), SUM(COUNT(*)) OVER (ORDER BY level) FROM {d} WHERE employed GROUP BY level",
        "Window",
        "histogram(level) where employed",
    ),
    ("SELECT 1 FROM {d}", "nothing is calculated", "count()"),
    (
        "SELECT STDDEV(CASE WHEN employed THEN rate END), STDDEV(rate) FROM {d}",
        "same rows",
        "stddev(rate) where employed",
    ),
    (
        "SELECT MEDIAN(rate) FILTER (WHERE age < 30), MEDIAN(rate) FROM {d} WHERE employed",
        "do not overlap",
        "median(rate) where employed and age < 30",
    ),
    (
        "SELECT region, AVG(rate), MIN(rate) FROM {d} GROUP BY region",
        "single persons",
        "quantiles(rate, 0.01) by region",
    ),
    (
        "SELECT AVG(n) FROM (SELECT region, COUNT(*) AS n FROM {d} GROUP BY 1) t",
        "subqueries",
        "histogram(region)",
    ),
    (
        "SELECT SUM(salary), COUNT(*) FILTER (WHERE age > 3 AND rate > 5 AND employed AND region = 'north' "
        "AND level = 'low' AND salary > 9 AND day > '2024-02-01') FROM {d} WHERE age > 1",
        "not both at once",
        "sum(salary) where age > 1",
    ),
    ("SELECT * FROM {d}", "never shown", "count()"),
    ("SELECT {d}.* FROM {d}", "never shown", "count()"),
    ("SELECT COUNT(* EXCEPT (age)) FROM {d}", r"COUNT\(\*\)", "count()"),
    ("SELECT salary FROM {d}", "would show the rows", "histogram(salary, width=10000)"),
    ("SELECT BIN(age, 5) FROM {d}", "would show the rows", "histogram(age, width=5)"),
    ("SELECT region, COUNT(*) FROM {d}", "needs GROUP BY", "histogram(region)"),
    ("SELECT region FROM {d} GROUP BY region", "which of them occur|which occur", "histogram(region)"),
    ("SELECT DISTINCT region FROM {d} WHERE age > 3", "DISTINCT", "above(region, 0) where age > 3"),
    ("SELECT COUNT(*) FROM {d} JOIN other ON a = b", "join", "count()"),
    ("SELECT COUNT(*) FROM {d}, other", "join", "count()"),
    ("SELECT COUNT(*) FROM {d} CROSS JOIN LATERAL (SELECT 1)", "one dataset", "count()"),
    ("SELECT COUNT(*) FROM (SELECT * FROM {d} LIMIT 5)", "subqueries", "count()"),
    ("SELECT COUNT(*) FROM {d} WHERE age IN (SELECT 1)", "subqueries", "count()"),
    ("SELECT (SELECT 1), COUNT(*) FROM {d}", "subqueries", "count()"),
    ("WITH x AS (SELECT DISTINCT age FROM {d}) SELECT COUNT(*) FROM x", "WITH", "count()"),
    ("SELECT COUNT(*) FROM {d} UNION SELECT COUNT(*) FROM {d}", "UNION", "count()"),
    ("(SELECT COUNT(*) FROM {d})", "one SELECT", "count()"),
    ("SELECT SUM(salary) OVER (ORDER BY age) FROM {d}", "Window", "histogram(salary, width=10000)"),
    ("SELECT ROW_NUMBER() OVER () FROM {d}", "Window", "histogram(salary, width=10000)"),
    ("SELECT COUNT(*) FROM {d} QUALIFY 1 = 1", "QUALIFY", "histogram(salary, width=10000)"),
    ("SELECT COUNT(*) INTO x FROM {d}", "INTO", "count()"),
    ("SELECT COUNT(*) FROM {d} FOR UPDATE", "LOCKS", "count()"),
    ("SELECT COUNT(*) FROM {d} TABLESAMPLE (10 PERCENT)", "nothing else", "count()"),
    ("SELECT MEDIAN(age), AVG(age) FROM {d}", "One question at a time", "median(age)"),
    ("SELECT QUANTILE(age, [0.1, 0.2]), COUNT(*) FROM {d}", "One question", "quantiles(age, 0.1, 0.2)"),
    (
        "SELECT region, MEDIAN(salary), COUNT(*) FROM {d} WHERE age > 3 GROUP BY region",
        "One question at a time",
        "median(salary) by region where age > 3",
    ),
    (
        "SELECT region, MEDIAN(salary), MEDIAN(rate) FROM {d} GROUP BY 1",
        "One quest",
        "median(salary) by region",
    ),
    ("SELECT QUANTILE(rate, [0.1, 0.2]) / 2 FROM {d}", "several numbers", "quantiles(rate, 0.1, 0.2)"),
    ("SELECT region, COUNT(*) FROM {d} GROUP BY 1 HAVING 2 > 500", "HAVING", "above(region, 100)"),
    ("SELECT region, COUNT(*) FROM {d} GROUP BY 1 HAVING region = 'north'", "HAVING", "above(region, 100)"),
    (
        "SELECT region, COUNT(*) FROM {d} GROUP BY 1 HAVING COUNT(*)",
        "HAVING",
        "above(region, 100)",
    ),
    (
        "SELECT region, COUNT(*) FROM {d} GROUP BY 1 ORDER BY age",
        "ordered by what they are of",
        "histogram(region) order by region",
    ),
    (
        "SELECT region, COUNT(*) FROM {d} GROUP BY 1 LIMIT 10 PERCENT",
        "whole numbers",
        "histogram(region) limit 3",
    ),
    ("SELECT ROUND(COUNT(*)) * COUNT(age) FROM {d}", "rounded last", "count(), count(age)"),
    ("SELECT age, region, COUNT(*) FROM {d} GROUP BY age", "not grouped", "histogram(age, region)"),
    ("SELECT BIN(age, 5), COUNT(*) FROM {d} GROUP BY age", "not grouped", "histogram(age, width=5)"),
    (
        "SELECT BIN(day, INTERVAL '7' DAY), COUNT(*) FROM {d} GROUP BY day",
        "not grouped",
        "histogram(day, width=1 week)",
    ),
    ("SELECT SUM(age) FROM {d} GROUP BY ROLLUP (region)", "nothing else", "sum(age) by region"),
    (
        "SELECT region, SUM(age) FROM {d} GROUP BY region WITH ROLLUP OFFSET 1",
        "nothing else",
        "sum(age) by region offset 1",
    ),
    (
        "SELECT region, AVG(salary) FROM {d} WHERE age > 3 GROUP BY ROLLUP (region)",
        "asked for apart",
        "mean(salary) by region where age > 3",
    ),
    (
        "SELECT region, level, COUNT(age) FROM {d} GROUP BY GROUPING SETS ((region, level), (region), ())",
        "asked for apart",
        "count(age) by region, level",
    ),
    (
        "SELECT region, level, SUM(salary) FROM {d} GROUP BY CUBE (region, level)",
        "asked for apart",
        "sum(salary) by region, level",
    ),
    (
        "SELECT region, COUNT(*) FROM {d} WHERE age > 3 GROUP BY 1 "
        "UNION ALL SELECT level, COUNT(*) FROM {d} GROUP BY 1",
        "One SELECT at a time",
        "histogram(region) where age > 3",
    ),
    ("SELECT MIN(age) FROM {d} UNION ALL SELECT AVG(age) FROM {d}", "One SELECT", "mean(age)"),
    ("SELECT COUNT(*) FROM {d} LIMIT 0", "no LIMIT", "count()"),
    ("SELECT AVG(age) FROM {d} LIMIT 5 OFFSET 1", "no OFFSET", "mean(age)"),
    ("SELECT COUNT(*) FROM {d} HAVING COUNT(*) > 5", "no HAVING", "count()"),
    ("SELECT other.age, COUNT(*) FROM {d} GROUP BY 1", "not a column of", "count()"),
    (
        "SELECT PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY age DESC) FROM {d}",
        "nothing is calculated|not answered",
        "histogram(age, width=10)",
    ),
    ("DELETE FROM {d}", "begins with SELECT", "count()"),
    ("INSERT INTO {d} VALUES (1)", "begins with SELECT", "count()"),
    ("DROP TABLE {d}", "begins with SELECT", "count()"),
    ("EXPLAIN ANALYZE SELECT COUNT(*) FROM {d}", "begins with SELECT", "count()"),
]


@pytest.mark.parametrize(("typed", "says", "short"), REFUSED)
def test_each_refusal_says_why_and_what_can_be_asked(typed: str, says: str, short: str) -> None:
    with pytest.raises(UnsupportedSql, match=says) as refused:
        ask(typed.format(d="salaries"))
    forms = [ask(fix).form for fix in refused.value.fixes]  # every suggestion is a statement that works
    assert alike(forms[0]) == alike(parse_question(short, SALARIES))


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("", InvalidQuestion),
        ("   ;", InvalidQuestion),
        ("EXPLAIN", InvalidQuestion),
        ("SELECT", InvalidQuestion),
        ("SELECT FROM salaries", InvalidQuestion),
        ("SELECT COUNT(*)", InvalidQuestion),
        ("SELECT COUNT(*) FROM salaries WHERE", InvalidQuestion),
        ("SELECT COUNT(*) FROM salaries; SELECT 1", InvalidQuestion),
        ("SELECT COUNT(*) FROM other", UnknownDataset),
        ("SELECT COUNT(*) FROM db.salaries", UnknownDataset),
        ("SELECT COUNT(*) FROM read_csv('x')", InvalidQuestion),
        ("SELECT region, COUNT(*) FROM salaries GROUP BY 7", InvalidQuestion),
        ("SELECT BIN(age), COUNT(*) FROM salaries GROUP BY 1", InvalidQuestion),
        ("SELECT BIN(age, 'x'), COUNT(*) FROM salaries GROUP BY 1", InvalidQuestion),
        ("SELECT BIN(age, 0.5), COUNT(*) FROM salaries GROUP BY 1", InvalidBins),
        ("SELECT BIN(region, 2), COUNT(*) FROM salaries GROUP BY 1", InvalidBins),
        ("SELECT MEDIAN(region) FROM salaries", InvalidWorkload),
        ("SELECT AVG(day) FROM salaries", InvalidWorkload),
        ("SELECT QUANTILE(age, 1.5) FROM salaries", InvalidWorkload),
        ("SELECT region, COUNT(*) FROM salaries GROUP BY 1 ORDER BY 2 DESC LIMIT 0", InvalidWorkload),
        ("SELECT age, COUNT(*) FROM salaries GROUP BY age, BIN(age, 5)", InvalidWorkload),
    ],
)
def test_slips_come_with_a_statement_that_works(typed: str, error: type[BlowfishError]) -> None:
    with pytest.raises(error) as refused:
        ask(typed)
    assert refused.value.fixes
    for fix in refused.value.fixes:
        ask(fix)


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("SELECT ages, COUNT(*) FROM salaries GROUP BY 1", UnknownColumn),
        ("SELECT SUM(ages) FROM salaries", UnknownColumn),
        ("SELECT QUANTILE(age, 'x') FROM salaries", InvalidQuestion),
        ("SELECT BIN(day, INTERVAL 'x' DAY), COUNT(*) FROM salaries GROUP BY 1", InvalidQuestion),
        ("SELECT COUNT(*) FROM salaries" + " " * LONGEST, InvalidQuestion),
        ("SELECT " + "(" * 5000, InvalidQuestion),
        ("SELECT COUNT(*) FROM salaries WHERE region = 'north", InvalidQuestion),
    ],
)
def test_other_slips(typed: str, error: type[BlowfishError]) -> None:
    with pytest.raises(error):
        ask(typed)


@pytest.mark.parametrize(
    ("typed", "instead"),
    [
        (
            "SELECT COUNT(*) FROM {d} WHERE region GLOB 'n*'",
            "SELECT COUNT(*) FROM {d} WHERE region IN ('north')",
        ),
        (
            "SELECT region, AVG(age) FROM {d} WHERE rate > 2 AND NOT region = 'North' GROUP BY region",
            "SELECT region, AVG(age) FROM {d} WHERE rate > 2 AND NOT region IN ('north') GROUP BY region",
        ),
        (
            "SELECT COUNT(*) FILTER (WHERE level = 'Low'), COUNT(*) FROM {d} WHERE age > 3",
            "SELECT COUNT(*) FILTER(WHERE level IN ('low')), COUNT(*) FROM {d} WHERE age > 3",
        ),
        (
            "SELECT regoin, COUNT(*) FROM {d} WHERE ago > 30 GROUP BY regoin",
            "SELECT region, COUNT(*) FROM {d} WHERE age > 30 GROUP BY region",
        ),
    ],
)
def test_a_condition_that_is_refused_gets_a_statement(typed: str, instead: str) -> None:
    with pytest.raises(BlowfishError) as refused:
        ask(typed.format(d="salaries"))
    assert refused.value.fixes == (instead.format(d="salaries"),)
    ask(instead.format(d="salaries"))


def test_suggestions_fit_small_and_odd_columns() -> None:
    domain = Domain.of({"order": Category(["a", "b"]), "flag": Boolean(), "few": Integer(0, 9)})
    for name, kind in (('"order"', "histogram"), ("flag", "histogram"), ("few", "quantiles")):
        with pytest.raises(UnsupportedSql) as refused:
            parse_select(f"SELECT MIN({name}) FROM t", domain, dataset="t")
        assert parse_select(refused.value.fixes[0], domain, dataset="t").form.kind == kind


WORDS = (
    "SELECT FROM salaries WHERE GROUP BY HAVING ORDER LIMIT OFFSET DESC COUNT(*) COUNT SUM AVG MEDIAN "
    "QUANTILE BIN ( ) ( ) , * + - = > < age salary region day BIN(age,5) 1 2 0.5 'north' AS n AND NOT IN IS "
    "NULL WITH ERROR EPSILON CONFIDENCE EACH ON ALL EXPLAIN UNION JOIN OVER DISTINCT ; . [ ] INTERVAL DAY "
    "WITHIN PERCENTILE_CONT CASE WHEN THEN END FETCH TOP QUALIFY FOR UPDATE INTO LATERAL PIVOT VALUES CUBE "
    "ROLLUP USING SAMPLE IF"
)
pieces = st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join)


@given(
    st.text()
    | pieces
    | pieces.map(lambda tail: "SELECT COUNT(*) FROM salaries " + tail)
    | pieces.map(lambda some: f"SELECT {some} FROM salaries GROUP BY region")
)
def test_any_text_is_a_question_or_is_refused(typed):
    try:
        found = ask(typed)
    except (InvalidInput, Refused) as error:
        assert error.message
    else:
        found.form.check(SALARIES)


# --- the document -----------------------------------------------------------------------------------


def examples(heading: str) -> list[str]:
    """The code of the first cell of every table row, and of every code block, under one heading."""
    text = DOCUMENT.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    cells = re.findall(r"^\| `(.+?)` \|", text, flags=re.MULTILINE)
    blocks = re.findall(r"^```(?:sql|text)\n(.*?)```", text, flags=re.MULTILINE | re.DOTALL)
    return [cell.replace("\\|", "|") for cell in cells] + [b.strip() for b in blocks]


@pytest.mark.parametrize("typed", examples("The short form"))
def test_the_short_forms_of_the_document(typed: str) -> None:
    form = parse_question(typed, SALARIES)
    assert alike(parse_question(question_text(form), SALARIES)) == alike(form)


@pytest.mark.parametrize("typed", examples("Conditions"))
def test_the_conditions_of_the_document(typed: str) -> None:
    condition(typed, SALARIES)


@pytest.mark.parametrize("typed", examples("SQL"))
def test_the_statements_of_the_document(typed: str) -> None:
    ask(typed)


def beside() -> list[tuple[str, str]]:
    text = DOCUMENT.read_text().split("\n## SQL\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(.+?)` \| `(.+?)` \|", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("typed", "short"), beside())
def test_the_statements_of_the_document_say_what_stands_beside_them(typed: str, short: str) -> None:
    assert alike(ask(typed).form) == alike(parse_question(short, SALARIES))


def refusals() -> list[tuple[str, str]]:
    text = DOCUMENT.read_text().split("\n## What SQL does not answer\n")[1].split("\n## ")[0]
    return re.findall(r"^\| `(.+?)` \| .+? \| `(.+?)` \|", text, flags=re.MULTILINE)


@pytest.mark.parametrize(("typed", "instead"), refusals())
def test_the_refusals_of_the_document(typed: str, instead: str) -> None:
    with pytest.raises(UnsupportedSql) as refused:
        ask(typed)
    assert instead == refused.value.fixes[0]


def test_the_document_has_every_kind_and_every_extension() -> None:
    kinds = {parse_question(typed, SALARIES).kind for typed in examples("The short form")}
    assert kinds == {parse_question(short, SALARIES).kind for _, _, short in REFUSED} | {
        "cumulative",
        "ranges",
        "clusters",
        "counts",
        "marginals",
        "partition",
    }
    asked = [ask(typed) for typed in examples("SQL")]
    assert any(a.explain for a in asked) and any(a.accuracy for a in asked) and any(a.epsilon for a in asked)
    assert len(refusals()) > 10 and len(examples("Conditions")) > 5


def test_what_is_missing_is_called_as_the_statement_says() -> None:
    known = Domain.of({"place": Category(["here", "there"], missing="value")})
    typed = "SELECT COALESCE(place, '{}') AS p, COUNT(*) FROM t GROUP BY p"
    found = parse_select(typed.format("nowhere"), known, dataset="t")
    assert found.form == parse_question("histogram(place)", known)
    assert found.columns[0].values == ("here", "there", "nowhere")
    with pytest.raises(UnsupportedSql, match="computed from one column"):
        parse_select(typed.format("here"), known, dataset="t")  # two groups would be one


def test_two_unnamed_columns_of_one_name_stay_apart() -> None:
    with pytest.raises(UnsupportedSql, match="subqueries"):
        ask("SELECT count FROM (SELECT region, COUNT(*), COUNT(age) FROM salaries GROUP BY region) x")


FLAT = {
    "SELECT COUNT(*) FROM (SELECT age, region FROM {d} WHERE age > 30) t WHERE t.region = 'north'": (
        "SELECT COUNT(*) FROM {d} WHERE age > 30 AND region = 'north'"
    ),
    "WITH t AS (SELECT age FROM {d} WHERE age > 30) SELECT COUNT(*) FROM t": (
        "SELECT COUNT(*) FROM {d} WHERE age > 30"
    ),
    "WITH a AS (SELECT age AS years, region FROM {d}), b AS (SELECT years FROM a WHERE region = 'north') "
    "SELECT BIN(years, 10), COUNT(*) FROM b WHERE b.years > 20 GROUP BY 1": (
        "SELECT BIN(age, 10), COUNT(*) FROM {d} WHERE region = 'north' AND age > 20 GROUP BY BIN(age, 10)"
    ),
    "SELECT where_, COUNT(*) FROM (SELECT region AS where_ FROM {d}) x GROUP BY where_": (
        "SELECT region, COUNT(*) FROM {d} GROUP BY region"
    ),
    "SELECT COUNT(*) FROM (SELECT * FROM {d} WHERE age < 30 OR age > 60) x WHERE age > 20": (
        "SELECT COUNT(*) FROM {d} WHERE (age < 30 OR age > 60) AND age > 20"
    ),
    "SELECT COUNT(*) FROM main.{d}": "SELECT COUNT(*) FROM {d}",
    "SELECT COUNT(*) FILTER (WHERE age < 30) FROM {d} WHERE region = 'north'": (
        "SELECT COUNT(*) FROM {d} WHERE region = 'north' AND (age < 30)"
    ),
    "SELECT SUM(CASE WHEN age < 30 THEN 1 ELSE 0 END) AS n FROM {d}": (
        "SELECT COUNT(*) FROM {d} WHERE age < 30"
    ),
    "SELECT region, COUNT(CASE WHEN age < 30 THEN 'x' END) FROM {d} GROUP BY region": (
        "SELECT region, COUNT(*) FROM {d} WHERE age < 30 GROUP BY region"
    ),
}


@pytest.mark.parametrize("sql", FLAT)
def test_a_subquery_that_only_chooses_is_none(sql: str) -> None:
    assert ask(sql.format(d="salaries")).form == ask(FLAT[sql].format(d="salaries")).form
