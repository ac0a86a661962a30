"""What somebody types in the first hour: every refusal says what to type instead, and that works."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from blowfishdb.entrypoints.pgwire.statements import without_max_cost
from tests.pgwire.door import Opened, opened

OLDER = "SELECT COUNT(*) AS n FROM salaries WHERE age >= {}"
MEANS = "SELECT region, AVG(age) FROM salaries GROUP BY region"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(tmp_path_factory.mktemp("newcomer"), budget="20") as made:
        yield made


@pytest.fixture
def line(there: Opened) -> Iterator[psycopg.Connection[Any]]:
    with there.connect() as connection:
        connection.execute("SET blowfishdb.max_cost = '1'")
        yield connection


def hint(line: psycopg.Connection[Any], statement: str) -> list[str]:
    """What a refusal says to try, one after another."""
    with pytest.raises(psycopg.Error) as error:
        line.execute(statement)
    said = str(error.value.diag.message_hint)
    return said.removeprefix("Try: ").split("\n  or: ")


def plan(line: psycopg.Connection[Any], statement: str) -> list[str]:
    return [row for (row,) in line.execute(f"EXPLAIN {statement}").fetchall()]


def test_a_share_of_all_rows_holds_also_when_they_have_been_counted(line: psycopg.Connection[Any]) -> None:
    line.execute("SET blowfishdb.error = '1%'")
    assert line.execute(OLDER.format(40)).fetchone() is not None
    assert line.execute("SELECT COUNT(*) FROM salaries").fetchone() == (3000,)
    assert line.execute("SELECT COUNT(*) FROM salaries").fetchone() == (3000,)
    assert any("within 30 people" in row for row in plan(line, OLDER.format(41)))


@pytest.mark.parametrize(
    "behind",
    [
        "WITH ERROR 30 WITH MAX_COST 0.5",
        "WITH ERROR 30 MAX_COST 0.5",
        "WITH ERROR 30 CONFIDENCE 0.9 MAX_COST .5",
        "WITH MAX_COST 0.5 WITH ERROR 30",
        "WITH MAX_COST 0.5 ERROR 30",
    ],
)
def test_what_a_statement_may_cost_stands_anywhere_behind_it(there: Opened, behind: str) -> None:
    with there.connect() as line:
        assert line.execute(f"{OLDER.format(42)} {behind}").fetchone() is not None
        last = line.execute(f"{OLDER.format(42)} {behind};").fetchone()
        assert last is not None


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT max_cost FROM t WITH ERROR 1",
        "SELECT COUNT(*) FROM t WITH MAX_COST",
        "WITH error AS (SELECT 1) SELECT max_cost FROM error",
    ],
)
def test_a_column_of_that_name_is_left_alone(statement: str) -> None:
    assert without_max_cost(statement) == (statement, None)


def test_an_error_is_no_share(line: psycopg.Connection[Any]) -> None:
    assert hint(line, f"{OLDER.format(43)} WITH ERROR 1%") == ["WITH ERROR 50 CONFIDENCE 0.95"]


def test_means_of_groups_say_what_to_type(line: psycopg.Connection[Any]) -> None:
    line.execute("SET blowfishdb.error = '2'")
    for asked in (MEANS, f"EXPLAIN {MEANS}"):
        sized, other = hint(line, asked)
        assert sized == "the statement WITH ERROR 2 FOR GROUPS OF 1000"
        assert other.startswith("the statement WITH EPSILON 0.1")
    for said in (sized, other):
        line.execute(f"{MEANS} {said.removeprefix('the statement ').split(';')[0]}")


def test_what_is_no_share_says_what_to_type(line: psycopg.Connection[Any]) -> None:
    line.execute("SET blowfishdb.error = '1%'")
    spread, total = "SELECT STDDEV(salary) FROM salaries", "SELECT SUM(salary) FROM salaries"
    (said,) = hint(line, spread)
    assert hint(line, total) == ["the statement WITH ERROR and a number", said]
    for asked in (spread, total):
        assert line.execute(f"{asked} {said.removeprefix('the statement ')}").fetchone() is not None


def test_an_error_in_people_is_no_error_of_a_mean(line: psycopg.Connection[Any]) -> None:
    line.execute("SET blowfishdb.error = '100'")
    asked = "SELECT AVG(age) FROM salaries"
    assert hint(line, asked) == hint(line, MEANS)
    closer, share = hint(line, asked)
    assert line.execute(f"{asked} {closer.removeprefix('the statement ')}").fetchone() is not None
    line.execute(f"{share}")
    assert line.execute(asked).fetchone() is not None
    assert line.execute(f"{asked} WITH ERROR 100").fetchone() is not None


def test_an_epsilon_that_is_left_is_said_as_it_is_typed(tmp_path_factory: pytest.TempPathFactory) -> None:
    with opened(tmp_path_factory.mktemp("little"), budget="0.01") as small, small.connect() as line:
        line.execute("SET blowfishdb.max_cost = '1'")
        for behind in ("WITH EPSILON 0.5", "WITH ERROR 0.1 FOR GROUPS OF 1000"):
            left = hint(line, f"{MEANS} {behind}")[0]
            assert left == "the statement WITH EPSILON 0.01", left
        told = line.execute(f"{MEANS} {left.removeprefix('the statement ')}")
        assert len(told.fetchall()) == 4


def test_a_plan_says_what_allows_its_price_in_lines_that_can_be_read(there: Opened) -> None:
    asked = "SELECT age, COUNT(*) FROM salaries GROUP BY age WITH ERROR 60"
    with there.connect() as line:
        rows = plan(line, asked)
        assert max(map(len, rows)) <= 100
        limit = next(row for row in rows if row.startswith("Max cost"))
        assert limit.startswith("Max cost     not set, so nothing is spent; SET blowfishdb.max_cost = '")
        line.execute(limit[limit.index("SET ") : limit.index(";", limit.index("SET "))])
        assert not any("too little" in row or "not set" in row for row in plan(line, asked))
        line.execute("SET blowfishdb.max_cost = '0.001'")
        assert any("0.001, too little; SET blowfishdb.max_cost = '" in row for row in plan(line, asked))


@pytest.mark.parametrize(
    "typed", ["SHOW TABLES", "SHOW FULL COLUMNS FROM salaries", "DESCRIBE salaries", "USE db"]
)
def test_what_other_databases_say_is_told_how(line: psycopg.Connection[Any], typed: str) -> None:
    said = hint(line, typed)
    assert said[0].startswith("\\d, ") and "information_schema" in said[-1]
    assert line.execute(said[-1]).fetchall()


def test_what_cannot_be_read_says_where(line: psycopg.Connection[Any]) -> None:
    with pytest.raises(psycopg.errors.SyntaxError, match=r"goes wrong at '\)'"):
        line.execute("SELECT COUNT(*)) FROM salaries")


def test_a_view_says_what_is_hidden(line: psycopg.Connection[Any]) -> None:
    asked = "SELECT obj_description('salaries.salaries'::regclass, 'pg_class')"
    (said,) = line.execute(asked).fetchone()  # type: ignore[misc]
    assert said.startswith("Private: rows are counted, never shown. Hide ")


def test_a_quantile_is_called_as_in_postgresql(line: psycopg.Connection[Any]) -> None:
    asked = (
        "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age), MEDIAN(age) FROM salaries WITH EPSILON 0.1"
    )
    described = line.execute(asked).description
    assert described is not None
    assert [column.name for column in described] == ["percentile_cont", "median"]


def test_what_is_nearly_right_is_suggested_whole(line: psycopg.Connection[Any]) -> None:
    assert hint(line, "SELECT COUNT(*) FROM salarys") == [
        "SELECT COUNT(*) FROM salaries",
        "\\d, which lists them",
    ]
    assert hint(line, "SELECT COUNT(*) INTO x FROM salaries") == ["SELECT COUNT(*) FROM salaries"]
    assert hint(line, "SELECT COUNT(*) FROM salaries WHERE agee > 30 AND region = 'North'") == [
        "SELECT COUNT(*) FROM salaries WHERE age > 30 AND region IN ('north')"
    ]
    top = "SELECT TOP 2 region, COUNT(*) FROM salaries GROUP BY region ORDER BY 2 DESC WITH ERROR 50"
    assert len(line.execute(top).fetchall()) == 2
    with pytest.raises(psycopg.errors.SyntaxError):
        line.execute("SELECT")
