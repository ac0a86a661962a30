"""What every backend promises, run on every backend; then what is particular to DuckDB.

A backend joins the contract with a class in ``places``; what a type means is in ``test_backend_types``, and
what is particular to a server in ``test_backend_servers``.
"""

from __future__ import annotations

import hashlib
import math
import random
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date, timedelta
from pathlib import Path

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from blowfishdb.adapters.backends.base import Backend
from blowfishdb.adapters.backends.duckdb import DuckDB
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import (
    InvalidAttribute,
    InvalidInput,
    QueryFailed,
    SecretLeak,
    SizeMismatch,
    SourceCorrupt,
    SourceError,
    SourceMissing,
    UnknownColumn,
)
from blowfishdb.core.questions.projection import CellQuery
from tests.adapters import places
from tests.adapters.counting import counts, cut, expected, expected_sums, filtered, query, sums
from tests.adapters.places import Columns, Place

DOMAIN = Domain.of(
    {
        "age": Integer(0, 120, missing="value"),
        "pay": Real(0, 200_000, "0.5", outside="drop"),
        "town": Category(["Ulm", "o'Hare", 'say "hi"', "日本", "a,b"], missing="value"),
        "since": Date("2020-01-01", "2020-12-31", "week", missing="drop"),
        "select": Boolean(),
        "code": Category(list(range(0, 60, 2)), outside="clamp", missing="clamp"),
    }
)


def people(rows: int = 400) -> Columns:
    rng = random.Random(1)
    first = date(2019, 12, 20)
    return {
        "age": ("INTEGER", rng.choices([None, *range(-3, 125)], k=rows)),
        "pay": (
            "DOUBLE",
            [rng.choice([None, math.nan, 0.25, rng.uniform(-9, 250_000)]) for _ in range(rows)],
        ),
        "town": ("VARCHAR", rng.choices([None, *DOMAIN["town"].values, "Bonn"], k=rows)),  # type: ignore[attr-defined]
        "since": ("DATE", rng.choices([None, *(first + timedelta(days=k) for k in range(400))], k=rows)),
        "select": ("BOOLEAN", rng.choices([None, True, False], k=rows)),
        "code": ("SMALLINT", rng.choices([None, *range(70)], k=rows)),
    }


@pytest.fixture
def backend(place: Place) -> Iterator[Backend]:
    made = place.make(people(), DOMAIN)
    yield made
    made.close()


def data() -> dict[str, Sequence[object]]:
    return {name: values for name, (_, values) in people().items()}


QUESTIONS = [
    query(DOMAIN),
    query(DOMAIN, age={"width": 10}),
    query(DOMAIN, age={"edges": [0, 18, 30, 67]}),
    query(DOMAIN, town={}),
    query(DOMAIN, since={"edges": ["2020-01-01", "2020-02-05"]}),
    query(DOMAIN, code={}),
    query(DOMAIN, age={"count": 3}, town={}, select={}),
]
SUMS = [
    ("age", query(DOMAIN, age={"count": 1})),
    ("age", query(DOMAIN, town={}, age={"width": 50})),
    ("pay", query(DOMAIN, pay={"count": 1}, select={})),
]
FILTERS = [
    ((col("age") >= 30) & ~(col("town") == "o'Hare"), query(DOMAIN, pay={"count": 9})),
    (~(col("pay") < 1000) | col("age").is_missing(), query(DOMAIN, select={})),
    ((col("since") >= "2020-05-06") & (col("select") == True), query(DOMAIN, age={"count": 1})),  # noqa: E712
]


# --- the contract -----------------------------------------------------------------------------


def test_counts_are_those_of_the_core(backend: Backend) -> None:
    backend.check()
    for asked in QUESTIONS:
        assert counts(backend, asked) == expected(asked, DOMAIN, data())


def test_filters_are_those_of_the_core(backend: Backend) -> None:
    for where, asked in FILTERS:
        assert filtered(backend, asked, DOMAIN, where) == expected(asked, DOMAIN, data(), where)


def test_sums_are_those_of_the_core(backend: Backend) -> None:
    for column, asked in SUMS:
        assert sums(backend, asked, column) == expected_sums(asked, DOMAIN, data(), column)


def test_counts_are_secret(backend: Backend) -> None:
    counted = backend.prepare(QUESTIONS[1]).count()
    assert repr(counted) == "Secret(…)"
    with pytest.raises(SecretLeak):
        list(counted)  # type: ignore[call-overload]


def test_what_is_prepared_is_counted_as_often_as_one_likes(backend: Backend) -> None:
    prepared = backend.prepare(QUESTIONS[2])
    assert prepared.sql is prepared.sql  # written once
    for _ in range(2):
        assert list(prepared.count().reveal()) == expected(QUESTIONS[2], DOMAIN, data())


def test_the_statement_is_one_select_of_counts(place: Place, backend: Backend) -> None:
    for asked in QUESTIONS:
        (parsed,) = sqlglot.parse(backend.prepare(asked).sql, dialect=place.dialect)
        assert isinstance(parsed, exp.Select)
        *groups, count = parsed.expressions
        assert isinstance(count.unalias(), exp.Count)
        assert len(groups) == len(asked.axes)
        assert len(parsed.args["group"].expressions if groups else []) == len(groups)


def test_columns_are_listed(backend: Backend) -> None:
    assert list(backend.columns()) == list(DOMAIN.names)
    assert all(backend.columns().values())


def test_threads_share_a_backend(place: Place, backend: Backend) -> None:
    questions = QUESTIONS[1:5] if place.slow else QUESTIONS * 4
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda asked: counts(backend, asked), questions))
    assert answers == [expected(asked, DOMAIN, data()) for asked in questions]


def test_closing(backend: Backend) -> None:
    prepared = backend.prepare(QUESTIONS[0])
    backend.close()
    backend.close()
    with pytest.raises(SourceError, match="closed"):
        backend.check()
    with pytest.raises(SourceError, match="closed"):
        backend.prepare(QUESTIONS[0])
    with pytest.raises(QueryFailed):
        prepared.count()


def test_a_declared_column_that_is_not_there(place: Place) -> None:
    domain = Domain.of({"age": Integer(0, 120), "salary": Integer(0, 9), "towns": Category(["Ulm"])})
    with closing(place.make(people(), domain)) as backend:
        with pytest.raises(UnknownColumn, match=r"'salary'.*it has: age, pay"):
            backend.check()
        with pytest.raises(UnknownColumn, match="Try: declare 'town'"):
            backend.prepare(query(domain, towns={}))
        with pytest.raises(UnknownColumn):
            backend.prepare(cut(domain, col("salary") == 3, age={}))
        backend.prepare(query(domain, age={}))


def test_questions_about_another_declaration_are_refused(place: Place) -> None:
    with closing(place.make(people(), DOMAIN)) as backend:
        with pytest.raises(SizeMismatch):
            backend.prepare(query(Domain(age=Integer(0, 50)), age={}))
        with pytest.raises(UnknownColumn):
            backend.prepare(query(Domain(height=Integer(0, 50)), height={}))


# --- DuckDB -----------------------------------------------------------------------------------

NUMBER = Domain(v=Integer(0, 9))
EACH = query(NUMBER, v={})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "numbers.duckdb"
    with duckdb.connect(str(made)) as connection:
        connection.execute("CREATE TABLE t AS SELECT range AS v FROM range(10)")
    return made


def _parquet(path: Path, rows: str) -> Path:
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({rows}) TO ? (FORMAT parquet)", [str(path)])
    return path


def test_nothing_is_written(path: Path) -> None:
    before = hashlib.sha256(path.read_bytes()).hexdigest()
    with closing(DuckDB(path, NUMBER)) as backend:
        backend.check()
        backend.prepare(EACH).count()
        for change in ("DELETE FROM t", "INSERT INTO t VALUES (1)", "DROP TABLE t", "CREATE TABLE u (v INT)"):
            with pytest.raises(duckdb.Error), backend._cursor() as cursor:
                cursor.execute(change)
    assert hashlib.sha256(path.read_bytes()).hexdigest() == before
    assert sorted(p.name for p in path.parent.iterdir()) == [path.name]


def test_several_processes_and_backends_read_one_file(path: Path) -> None:
    script = f"""
from blowfishdb.adapters.backends.duckdb import DuckDB
from blowfishdb import Domain, Integer
from blowfishdb.core.questions.projection import CellQuery
from blowfishdb.core.domain.domain import Axis
domain = Domain(v=Integer(0, 9))
backend = DuckDB({str(path)!r}, domain)
asked = CellQuery((Axis("v", domain["v"], domain["v"].bins()),))
assert list(backend.prepare(asked).count().reveal()) == [1] * 10
"""
    with closing(DuckDB(path, NUMBER)) as one, closing(DuckDB(path, NUMBER)) as two:
        subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)
        one.close()
        assert counts(two, EACH) == [1] * 10


def test_a_file_that_is_open_for_writing(path: Path) -> None:
    script = f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print(flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        with pytest.raises(SourceError, match="open for writing"):
            DuckDB(path, NUMBER)
    with duckdb.connect(str(path)), pytest.raises(SourceError, match="open already in this process"):
        DuckDB(path, NUMBER)


def test_files_that_are_missing_or_no_database(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no file"):
        DuckDB(tmp_path / "nowhere.duckdb", NUMBER)
    assert not (tmp_path / "nowhere.duckdb").exists()
    with pytest.raises(SourceMissing, match="no Parquet"):
        DuckDB(tmp_path, NUMBER)
    for name in ("bad.duckdb", "bad.db", "bad.parquet", "bad"):
        (tmp_path / name).write_bytes(b"garbage, and more garbage " * 1000)
        with pytest.raises(SourceCorrupt, match="not a"):
            DuckDB(tmp_path / name, NUMBER)


def test_a_truncated_database(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(SourceError):
        DuckDB(path, NUMBER).check()


def test_tables_that_are_missing_or_not_the_only_one(path: Path) -> None:
    with pytest.raises(SourceMissing, match=r"the table 'people'.*'t'"):
        DuckDB(path, NUMBER, Source.of_table("people"))
    with pytest.raises(SourceMissing, match="the view"):
        DuckDB(path, NUMBER, Source.of_view("SELECT * FROM people"))
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE SCHEMA other; CREATE TABLE other.u AS SELECT 3 AS v; CREATE TABLE s (v INT)"
        )
    with pytest.raises(SourceMissing, match=r"'s', 't'.*Try: name the table"):
        DuckDB(path, NUMBER)
    with closing(DuckDB(path, NUMBER, Source.of_table("u", "other"))) as backend:
        assert counts(backend, EACH)[3] == 1
    with pytest.raises(SourceMissing, match=r"other\.t"):
        DuckDB(path, NUMBER, Source.of_table("t", "other"))


def test_a_table_name_never_means_a_python_variable(path: Path) -> None:
    import pandas as pd

    people = pd.DataFrame({"v": [1, 2]})
    with pytest.raises(SourceMissing):
        DuckDB(path, NUMBER, Source.of_table("people"))
    for place in (path, _parquet(path.parent / "numbers.parquet", "SELECT 1 AS v")):
        backend = DuckDB(place, NUMBER)
        with closing(backend), backend._cursor() as cursor, pytest.raises(duckdb.CatalogException):
            cursor.execute("SELECT * FROM people")
    assert len(people) == 2


def test_a_statement_that_takes_too_long_is_interrupted(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE a AS SELECT range AS v FROM range(300_000)")
        connection.execute("CREATE TABLE b AS SELECT range AS w FROM range(300_000)")
        connection.execute("CREATE VIEW endless AS SELECT (a.v * b.w) % 10 AS v FROM a CROSS JOIN b")
    endless = Source.of_table("endless")
    with closing(DuckDB(path, NUMBER, endless, timeout=0.2)) as backend:
        backend.prepare(EACH)
        with pytest.raises(QueryFailed, match=r"longer than 0.2 seconds") as caught:
            backend.prepare(EACH).count()
        assert caught.value.charged
        backend.prepare(EACH)  # the connection is still good


def test_a_failure_says_nothing_about_the_data(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE s AS SELECT 'hunter2' AS word")
        connection.execute("CREATE VIEW failing AS SELECT CAST(word AS INTEGER) AS v FROM s")
    with closing(DuckDB(path, NUMBER, Source.of_table("failing"))) as backend:
        with pytest.raises(duckdb.Error, match="hunter2"), backend._cursor() as cursor:
            cursor.execute("SELECT CAST(word AS INTEGER) FROM s").fetchall()
        with pytest.raises(QueryFailed, match="ConversionException") as caught:
            backend.prepare(EACH).count()
    error: BaseException | None = caught.value
    assert error is not None and error.__context__ is None and error.__cause__ is None
    assert "hunter2" not in f"{error!s}{error!r}"


def test_a_changed_table_is_noticed_before_anything_is_charged(tmp_path: Path) -> None:
    path = _parquet(tmp_path / "numbers.parquet", "SELECT 1 AS v")
    with closing(DuckDB(path, NUMBER)) as backend:
        backend.prepare(EACH)
        _parquet(path, "SELECT 1 AS w")
        with pytest.raises((SourceError, UnknownColumn)):
            backend.prepare(EACH)
        path.unlink()
        with pytest.raises(SourceMissing):
            backend.prepare(EACH)


@pytest.mark.parametrize("name", ["a*b", "q?", "x[1]", "o'brien", 'say "hi"', "日本 😀", "a;--"])
def test_any_file_name(tmp_path: Path, name: str) -> None:
    _parquet(tmp_path / "x1.parquet", "SELECT 7 AS v")
    (tmp_path / f"{name}.csv").write_text("v\n1\n")
    path = places.taken(tmp_path / f"{name}.csv")
    assert path.name == f"{name}.parquet"
    with closing(DuckDB(path, NUMBER)) as backend:
        assert counts(backend, EACH) == [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    folder = tmp_path / name
    folder.mkdir()
    with duckdb.connect() as connection:
        connection.execute("COPY (SELECT 2 AS v) TO ?", [str(folder / "part.parquet")])
    with closing(DuckDB(folder, NUMBER)) as backend:
        assert counts(backend, EACH) == [0, 0, 1, 0, 0, 0, 0, 0, 0, 0]


def test_a_file_reaches_no_other_file(tmp_path: Path) -> None:
    _parquet(tmp_path / "open.parquet", "SELECT 1 AS v")
    _parquet(tmp_path / "closed.parquet", "SELECT 2 AS v")
    with pytest.raises(InvalidInput, match="anything but tables"):
        Source.of_view(f"SELECT v FROM read_parquet('{tmp_path}/closed.parquet')")
    other = Source.of_view(f"SELECT v FROM '{tmp_path}/closed.parquet'")
    with pytest.raises(SourceError):
        DuckDB(tmp_path / "open.parquet", NUMBER, other)
    same = Source.of_view("SELECT v FROM open")
    with closing(DuckDB(tmp_path / "open.parquet", NUMBER, same)) as backend:
        assert counts(backend, EACH)[1] == 1


def test_texts_that_are_no_numbers_are_missing_and_never_fail(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("v\n" + "1\n" * 30_000 + "oops\n\n" + "1e400\n-1e400\n2.9\n")
    domain = Domain(v=Integer(0, 9, missing="value"))
    with closing(DuckDB(places.taken(path), domain)) as backend:
        assert counts(backend, query(domain, v={})) == [1, 30_000, 1, 0, 0, 0, 0, 0, 0, 1, 2]


def test_an_empty_table(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("DELETE FROM t")
    with closing(DuckDB(path, NUMBER)) as backend:
        assert counts(backend, EACH) == [0] * 10
        assert counts(backend, CellQuery(())) == [0]


def test_nothing_is_answered_from_a_file_of_texts(tmp_path: Path) -> None:
    (tmp_path / "numbers.csv").write_text("v\n1\n")
    with pytest.raises(SourceError, match="read once, when it is declared"):
        DuckDB(tmp_path / "numbers.csv", NUMBER)


def test_a_type_that_does_not_fit_is_found_by_check(path: Path) -> None:
    domain = Domain(v=Date("2020-01-01", "2020-12-31"))
    with closing(DuckDB(path, domain)) as backend, pytest.raises(InvalidAttribute, match="'v' holds BIGINT"):
        backend.check()
