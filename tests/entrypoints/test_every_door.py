"""What analysts ask, at every door: one question, one answer and one charge, in whatever words it comes.

Asked and paid in Python; then the short form, SQL, REST in all three forms, the client, the pages and a
PostgreSQL client each get that answer, and nothing is charged any more.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from urllib.parse import urlencode

import psycopg
import pyarrow as pa
import pytest

import blowfishdb as bf
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.errors import BlowfishError
from blowfishdb.entrypoints.demo import serving
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.gateway import Gateway
from tests.entrypoints.server import Running, ok, running
from tests.pgwire.door import door_of

OLD, RICH = bf.col("age") >= 60, bf.col("salary") > 50_000
MONTHS = [f"{2022 + month // 12}-{month % 12 + 1:02}-01" for month in range(6, 30)]


@dataclass(frozen=True)
class Line:
    """One question in Python, in short and, where SQL has words for it, as a SELECT."""

    python: Callable[[Dataset], Asking]
    short: str
    sql: str | None = None
    of: str = "salaries"
    """The dataset that is asked."""

    @property
    def sized(self) -> bool:
        """Whether it says for how large groups its error holds."""
        return "for groups of" in self.short


LINES = {
    "several aggregates": Line(
        lambda ds: ds.by("region").aggregate(("mean", "salary"), ("sum", "salary"), "count"),
        "mean(salary), sum(salary), count() by region",
        "SELECT region, AVG(salary), SUM(salary), COUNT(*) FROM salaries GROUP BY region",
    ),
    "several columns": Line(
        lambda ds: ds.by("region").aggregate(("mean", "salary"), ("mean", "age")),
        "mean(salary), mean(age) by region",
        "SELECT region, AVG(salary), AVG(age) FROM salaries GROUP BY region",
    ),
    "a spread of some rows in bins": Line(
        lambda ds: ds.where(RICH).by("age", width=20).std("salary"),
        "stddev(salary) by age(width=20) where salary > 50000",
        "SELECT BIN(age, 20), STDDEV(salary) FROM salaries WHERE salary > 50000 GROUP BY 1",
    ),
    "a mean of large groups": Line(
        lambda ds: ds.by("region").mean("age", group_size=500),
        "mean(age) by region for groups of 500",
        "SELECT region, AVG(age) FROM salaries GROUP BY region WITH ERROR 4 FOR GROUPS OF 500",
    ),
    "counts of values": Line(
        lambda ds: ds.by("region").count("age"),
        "count(age) by region",
        "SELECT region, COUNT(age) FROM salaries GROUP BY region",
    ),
    "instead of extremes": Line(
        lambda ds: ds["salary"].quantiles([0.01, 0.99]),
        "quantiles(salary, 0.01, 0.99)",
        "SELECT QUANTILE(salary, 0.01), QUANTILE(salary, 0.99) FROM salaries",
    ),
    "medians of groups": Line(
        lambda ds: ds.by("region").median("age"),
        "median(age) by region",
        "SELECT region, MEDIAN(age) FROM salaries GROUP BY region",
    ),
    "a list of conditions": Line(
        lambda ds: ds.by("region").counts({"old": OLD, "rich": RICH}),
        "counts(age >= 60 as old, salary > 50000 as rich) by region",
        "SELECT region, COUNT(*) FILTER (WHERE age >= 60) AS old, "
        "SUM(CASE WHEN salary > 50000 THEN 1 ELSE 0 END) AS rich FROM salaries GROUP BY region",
    ),
    "rectangles": Line(
        lambda ds: ds["age", "salary"].ranges([((20, 39), (0, 49_999)), ((30, 59), (0, 9_999))]),
        "ranges(age, salary, (20..39, 0..49999), (30..59, 0..9999))",
    ),
    "prefixes in groups": Line(
        lambda ds: ds.by("region").cumulative("age", bins=4),
        "cumulative(age, bins=4) by region",
        "SELECT region, BIN(age, 20), SUM(COUNT(*)) OVER (PARTITION BY region ORDER BY BIN(age, 20)) "
        "FROM salaries GROUP BY 1, 2",
    ),
    "prefixes": Line(
        lambda ds: ds["age"].cumulative(width=10),
        "cumulative(age, width=10)",
        "SELECT BIN(age, 10), SUM(COUNT(*)) OVER (ORDER BY BIN(age, 10)) FROM salaries GROUP BY 1",
    ),
    "marginals": Line(
        lambda ds: ds["age", "salary"].marginals(1, bins=4),
        "marginals(age(bins=4), salary(bins=4), 1)",
        "SELECT BIN(age, 20), BIN(salary, 25000), COUNT(*) FROM salaries "
        "GROUP BY GROUPING SETS ((BIN(age, 20)), (BIN(salary, 25000)))",
    ),
    "subtotals": Line(
        lambda ds: ds.question("marginals(region, age(width=20), [region, age], [region], [])").order_by(
            "region", "age desc"
        ),
        "marginals(region, age(width=20), [region, age], [region], []) order by region, age desc",
        "SELECT region, BIN(age, 20), COUNT(*) FROM salaries GROUP BY ROLLUP (region, BIN(age, 20)) "
        "ORDER BY region, BIN(age, 20) DESC",
    ),
    "the fullest": Line(
        lambda ds: ds["age"].top(3, width=10),
        "top(age, 3, width=10)",
        "SELECT BIN(age, 10), COUNT(*) FROM salaries GROUP BY 1 ORDER BY 2 DESC LIMIT 3",
    ),
    "an iceberg": Line(
        lambda ds: ds["age"].above(300, width=10),
        "above(age, 300, width=10)",
        "SELECT BIN(age, 10), COUNT(*) AS n FROM salaries GROUP BY 1 HAVING n > 300",
    ),
    "an order": Line(
        lambda ds: (
            ds.by("region")
            .aggregate(("mean", "age"), "count")
            .having("count() > 10")
            .order_by("mean(age) desc nulls first", "region")
            .limit(2)
        ),
        "mean(age), count() by region having count() > 10 "
        "order by mean(age) desc nulls first, region limit 2",
        "SELECT region, AVG(age) AS a, COUNT(*) FROM salaries GROUP BY region HAVING COUNT(*) > 10 "
        "ORDER BY a DESC NULLS FIRST, region LIMIT 2",
    ),
    "shares": Line(
        lambda ds: ds["region"].histogram().show(share="count() * 100 / total(count())"),
        "histogram(region) show count() * 100 / total(count()) as share",
        "SELECT region, COUNT(*) * 100 / SUM(COUNT(*)) OVER () AS share FROM salaries GROUP BY region",
    ),
    "a group that is computed": Line(
        lambda ds: ds["age"].histogram(edges=[18, 30, 60]),
        "histogram(age, edges=[18, 30, 60])",
        "SELECT CASE WHEN age < 30 THEN 'young' WHEN age < 60 THEN 'middle' ELSE 'old' END AS g, COUNT(*) "
        "FROM salaries GROUP BY g",
    ),
    "declared values that match": Line(
        lambda ds: ds.where(bf.col("region").isin(["north", "south"])).count(),
        "count() where region in ('north', 'south')",
        "SELECT COUNT(*) FROM salaries WHERE region LIKE '%th'",
    ),
    "parts": Line(
        lambda ds: ds["age", "salary"].partition(4, bins=6), "partition(age(bins=6), salary(bins=6), 4)"
    ),
    "clusters": Line(lambda ds: ds["age", "salary"].clusters(3), "clusters(age, salary, k=3, iterations=5)"),
    "a width in days": Line(
        lambda ds: ds["day"].histogram(width="30 days"),
        "histogram(day, width=30 days)",
        "SELECT BIN(day, INTERVAL '30' DAY), COUNT(*) FROM staff GROUP BY 1",
        of="staff",
    ),
    "a difference and a ratio": Line(
        lambda ds: (
            ds.by("sex")
            .aggregate(("sum", "pay"), "count")
            .show(mean="round(sum(pay) / count(), 1)", more="count() - 100")
        ),
        "sum(pay), count() by sex show round(sum(pay) / count(), 1) as mean, count() - 100 as more",
        "SELECT sex, ROUND(SUM(pay) / COUNT(*), 1) AS mean, COUNT(*) - 100 AS more FROM staff GROUP BY sex",
        of="staff",
    ),
    "medians of different rows": Line(
        lambda ds: ds.by("sex").median("pay").across("sex").show(gap="median(pay)['F'] - median(pay)['M']"),
        "median(pay) by sex across sex show median(pay)[1] - median(pay)[2] as gap",
        "SELECT MEDIAN(pay) FILTER (WHERE sex = 'F') - MEDIAN(CASE WHEN sex = 'M' THEN pay END) AS gap "
        "FROM staff",
        of="staff",
    ),
    "those without a value first": Line(
        lambda ds: ds["town"].histogram().order_by("town desc nulls first"),
        "histogram(town) order by town desc nulls first",
        "SELECT town, COUNT(*) FROM staff GROUP BY town ORDER BY town DESC NULLS FIRST",
        of="staff",
    ),
    "months of several years": Line(
        lambda ds: ds.by("day", part="month").mean("pay"),
        "mean(pay) by day(part=month)",
        "SELECT EXTRACT(MONTH FROM day) AS m, AVG(pay) FROM staff GROUP BY m ORDER BY m",
        of="staff",
    ),
    "each month": Line(
        lambda ds: ds["day"].histogram(edges=MONTHS),
        f"histogram(day, edges=[{', '.join(MONTHS)}])",
        "SELECT to_char(day, 'YYYY-MM') AS ym, COUNT(*) FROM staff GROUP BY ym ORDER BY ym",
        of="staff",
    ),
    "aggregates of different rows": Line(
        lambda ds: ds.by("town", "sex").mean("pay").across("sex").show(gap="mean(pay)['F'] - mean(pay)['M']"),
        "mean(pay) by town, sex across sex show mean(pay)[1] - mean(pay)[2] as gap",
        "SELECT town, AVG(pay) FILTER (WHERE sex = 'F') - AVG(CASE WHEN sex = 'M' THEN pay END) AS gap "
        "FROM staff GROUP BY town",
        of="staff",
    ),
    "what some rows have of all": Line(
        lambda ds: (
            ds.by("sex")
            .aggregate(("sum", "pay"), "count")
            .across("sex")
            .show(x="sum(pay)['F'] / (count()[1] + count()[2])")
        ),
        "sum(pay), count() by sex across sex show sum(pay)['F'] / (count()[1] + count()[2]) as x",
        "SELECT SUM(pay) FILTER (WHERE sex = 'F') / COUNT(*) AS x FROM staff",
        of="staff",
    ),
    "a cross table": Line(
        lambda ds: ds["town", "sex"].histogram().across("sex"), "histogram(town, sex) across sex", of="staff"
    ),
}


STAFF = bf.Domain(
    sex=bf.Category(["F", "M"]),
    town=bf.Category(["york", "bath"], missing="value"),
    pay=bf.Integer(0, 999),
    day=bf.Date("2022-07-01", "2024-06-30"),
)


def staff() -> pa.Table:
    """Rows of two years, every tenth without a town."""
    rows = range(1_500)
    return pa.table(
        {
            "sex": ["F" if row % 3 else "M" for row in rows],
            "town": [None if row % 10 == 0 else ("york", "bath")[row % 2] for row in rows],
            "pay": [row * 7 % 1_000 for row in rows],
            "day": [date(2022, 7, 1) + timedelta(days=row * 11 % 731) for row in rows],
        }
    )


@dataclass(frozen=True)
class Doors:
    """One server with everything open, and a client of it."""

    web: Running
    client: Gateway
    line: psycopg.Connection[tuple[object, ...]]


@pytest.fixture(scope="module")
def doors(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    with running(tmp_path_factory.mktemp("doors"), budget="1000") as web, door_of(web) as wire:
        web.workspace["salaries"].count().spend(1).ask()
        web.workspace.add_dataset("staff", staff(), domain=STAFF).budget.set(1_000)
        web.workspace["staff"].count().spend(1).ask()
        token = Tokens(web.workspace.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))[0]
        with (
            serving(web.app) as address,
            bf.connect(address, token=token) as client,
            wire.connect() as line,
        ):
            line.execute("SET blowfishdb.epsilon = '0.5'")
            yield Doors(web, client, line)


def on(asking: Asking, line: Line) -> Asking:
    """On the terms of the table: an ε, or an error where groups have a size."""
    return asking.accurate_to(4) if line.sized else asking.spend("0.5")


@pytest.mark.parametrize("name", LINES)
def test_a_question_is_one_answer_at_every_door(doors: Doors, name: str) -> None:
    line = LINES[name]
    dataset, api = doors.web.workspace[line.of], f"/api/v1/datasets/{line.of}"
    answer = on(line.python(dataset), line).ask()
    spent = dataset.budget.status.spent

    typed = [dataset.question(line.short), *([dataset.sql(line.sql)] if line.sql else [])]
    far = line.python(doors.client[line.of])
    for asking in (*typed, far):
        again = on(asking, line).ask(max_cost=0)
        assert again.number == answer.number and again.values.tolist() == answer.values.tolist()

    terms = {"error": 4} if line.sized else {"epsilon": "0.5"}
    bodies: list[dict[str, object]] = [
        {"question": line.short},
        {"question": line.python(dataset).form.to_plain()},
    ]
    for body in (*bodies, *([{"sql": line.sql}] if line.sql and not line.sized else [])):
        said = ok(doors.web.analyst.post(f"{api}/answers", json={**body, **terms, "max_cost": "0"}))
        assert said["id"] == answer.number and said["promise"] == answer.promise

    browser, stored = doors.web.browser("analyst"), doors.web.workspace.answer(answer.number)
    assert html.escape(stored.promise) in browser.get(f"/answers/{answer.number}").text
    if line.sql:
        asked = urlencode({"mode": "sql", "sql": line.sql, "by": "epsilon", "epsilon": "0.5"})
        assert "Already answered" in browser.get(f"/datasets/{line.of}/ask?{asked}").text
        assert doors.line.execute(line.sql).fetchall()
    assert dataset.budget.status.spent == spent


TRIED = ("several aggregates", "clusters", "parts", "months of several years", "aggregates of different rows")


@pytest.mark.parametrize("name", TRIED)
def test_made_up_rows_are_the_same_at_every_door(doors: Doors, name: str) -> None:
    """Asked for nothing, marked wherever they are shown, and with no trace in the books."""
    line = LINES[name]
    dataset, api = doors.web.workspace[line.of], f"/api/v1/datasets/{line.of}"
    spent, last = dataset.budget.status.spent, len(doors.web.workspace.answers())
    here = line.python(dataset.made_up()).spend("0.5").ask()
    assert here.made_up
    typed = [dataset.made_up().question(line.short), *([dataset.made_up().sql(line.sql)] if line.sql else [])]
    for asking in (*typed, line.python(doors.client[line.of].made_up())):
        again = asking.spend("0.5").ask()
        assert again.made_up and again.axes == here.axes and len(again.values) == len(here.values)
    for body in ({"question": line.short}, *([{"sql": line.sql}] if line.sql else [])):
        said = ok(doors.web.analyst.post(f"{api}/made-up", json={**body, "epsilon": "0.5"}))
        assert said["receipt"]["question"] == here.receipt.question and said["promise"] == here.promise
    if line.sql:
        asked = urlencode({"mode": "sql", "sql": line.sql, "by": "epsilon", "epsilon": "0.5"})
        page = doors.web.browser("analyst").get(f"/datasets/{line.of}/made-up?{asked}").text
        assert html.escape(here.promise) in page and "made-up rows" in page.lower()
    assert dataset.budget.status.spent == spent and len(doors.web.workspace.answers()) == last


REFUSED = {
    "SELECT MIN(pay) FROM staff": "single persons; pay is declared from 0 to 999",
    "SELECT sex, MAX(pay) FROM staff GROUP BY sex": "single persons; pay is declared from 0 to 999",
    "SELECT COUNT(DISTINCT town) FROM staff": "distinct values are not counted",
    "SELECT sex, COUNT(DISTINCT town) FROM staff GROUP BY sex": "distinct values are not counted",
    "SELECT * FROM staff": "Rows are never shown",
    "SELECT COUNT(*) FROM staff UNION ALL SELECT COUNT(*) FROM staff": "One SELECT at a time",
    "SELECT MEDIAN(pay), MEDIAN(pay) FILTER (WHERE sex = 'F') FROM staff": "do not overlap",
}


@pytest.mark.parametrize("typed", REFUSED)
def test_a_refusal_says_why_at_every_door_and_what_is_answered(doors: Doors, typed: str) -> None:
    reason, dataset = REFUSED[typed], doors.web.workspace["staff"]
    spent = dataset.budget.status.spent
    with pytest.raises(BlowfishError, match=re.escape(reason)) as here:
        dataset.sql(typed)
    assert here.value.fixes
    for fix in here.value.fixes:
        dataset.sql(fix).spend("0.5").quote()
    with pytest.raises(BlowfishError, match=re.escape(reason)) as far:
        doors.client["staff"].sql(typed)
    assert far.value.fixes == here.value.fixes
    sent = {"sql": typed, "epsilon": "0.5"}
    said = doors.web.analyst.post("/api/v1/datasets/staff/quotes", json=sent)
    assert said.status_code == 422 and reason in said.text and said.json()["fixes"] == list(here.value.fixes)
    asked = urlencode({"mode": "sql", "sql": typed, "by": "epsilon", "epsilon": "0.5"})
    page = doors.web.browser("analyst").get(f"/datasets/staff/ask?{asked}").text
    assert html.escape(reason) in page and html.escape(here.value.fixes[0]) in page
    if "*" not in typed.split()[1]:
        with pytest.raises(psycopg.Error, match=re.escape(reason)) as wired:
            doors.line.execute(typed)
        assert here.value.fixes[0] in str(wired.value.diag.message_hint)
    assert dataset.budget.status.spent == spent
