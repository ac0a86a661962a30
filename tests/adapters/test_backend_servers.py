"""Servers and addresses: nothing is written, nothing runs forever, and no failure tells anything."""

from __future__ import annotations

import hashlib
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from sqlalchemy.exc import DBAPIError

from blowfishdb.adapters.backends import Backend, open_backend
from blowfishdb.adapters.backends.duckdb import DuckDB
from blowfishdb.adapters.backends.sqlalchemy import SqlDatabase
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.attributes import Boolean, Category, Integer
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import (
    InvalidAttribute,
    InvalidInput,
    QueryFailed,
    SourceCorrupt,
    SourceError,
    SourceMissing,
    UnknownColumn,
)
from tests.adapters.counting import counts, query
from tests.adapters.places import DIGITS, ROWS, Place, PostgresSchema, SqliteFile, endless
from tests.postgres import Server

NUMBER = Domain(v=Integer(0, 9))
EACH = query(NUMBER, v={})
TEN = {"v": ("INTEGER", list(range(10)))}
CHANGES = (
    "DELETE FROM people",
    "INSERT INTO people VALUES (1)",
    "DROP TABLE people",
    "CREATE TABLE u (v INT)",
)


@pytest.fixture
def schema(postgres: Server) -> Iterator[PostgresSchema]:
    yield PostgresSchema(postgres)


# --- nothing is written -----------------------------------------------------------------------


def _cannot_write(backend: Backend) -> None:
    assert isinstance(backend, SqlDatabase)
    for change in CHANGES:
        with pytest.raises(DBAPIError), backend._transaction() as connection:
            connection.exec_driver_sql(change)
    assert counts(backend, EACH) == [1] * 10


def test_sqlite_is_read_only(tmp_path: Path) -> None:
    place = SqliteFile(tmp_path)
    with closing(place.make(TEN, NUMBER)) as backend:
        before = hashlib.sha256(place.path.read_bytes()).hexdigest()
        _cannot_write(backend)
    assert hashlib.sha256(place.path.read_bytes()).hexdigest() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == [place.path.name]


def test_postgres_is_read_only(schema: PostgresSchema) -> None:
    with closing(schema.make(TEN, NUMBER)) as backend:
        _cannot_write(backend)
        for way in ("SET TRANSACTION READ WRITE", "SELECT set_config('transaction_read_only', 'off', false)"):
            with pytest.raises(DBAPIError), backend._transaction() as connection:  # type: ignore[attr-defined]
                connection.exec_driver_sql("SELECT v FROM people")
                connection.exec_driver_sql(way)


# --- nothing runs forever ---------------------------------------------------------------------


def test_a_statement_that_takes_too_long_is_interrupted(database: Place) -> None:
    with closing(database.make(DIGITS, NUMBER, endless(database.dialect), timeout=1.0)) as backend:
        with pytest.raises(QueryFailed, match=r"longer than 1 seconds") as caught:
            backend.prepare(EACH).count()
        assert caught.value.charged
        backend.source, backend.timeout = Source.of_table("people"), 600.0  # type: ignore[attr-defined]
        assert counts(backend, EACH) == [ROWS // 10] * 10  # the connection is still good


# --- what fails says nothing ------------------------------------------------------------------


def _silent(error: BaseException | None, *secrets: str) -> None:
    while error is not None:
        assert not any(secret in f"{error!s}{error!r}{error.__dict__}" for secret in secrets)
        assert error.__cause__ is None
        error = error.__context__


def test_a_failure_says_nothing_about_the_data(schema: PostgresSchema) -> None:
    schema.make({"word": ("VARCHAR", ["hunter2"])}, NUMBER).close()
    with schema.server.connect(schema.schema) as admin:
        admin.execute("CREATE VIEW failing AS SELECT CAST(word AS INTEGER) AS v FROM people")
    backend = open_backend(schema.server.url(schema.schema), NUMBER, source=Source.of_table("failing"))
    with closing(backend), pytest.raises(QueryFailed, match="could not answer") as caught:
        backend.prepare(EACH).count()
    _silent(caught.value, "hunter2")


def test_a_lost_connection(schema: PostgresSchema) -> None:
    with closing(schema.make(TEN, NUMBER)) as backend:
        stop = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'blowfishdb'"
        with schema.server.connect() as admin:
            admin.execute(stop)
        backend.prepare(EACH)  # an idle connection that was lost is replaced
        assert counts(backend, EACH) == [1] * 10

        with schema.server.connect(schema.schema) as admin:
            admin.execute("CREATE VIEW slow AS SELECT v FROM people WHERE pg_sleep(20) IS NOT NULL")
        slow = Source.of_table("slow")
        with closing(SqlDatabase(schema.server.url(schema.schema), NUMBER, slow)) as waiting:

            def cut() -> None:
                time.sleep(0.5)
                with schema.server.connect() as admin:
                    admin.execute(stop)

            thread = threading.Thread(target=cut)
            thread.start()
            with pytest.raises(QueryFailed, match="connection to the database was lost") as caught:
                waiting.prepare(EACH).count()
            thread.join()
        assert caught.value.charged
        _silent(caught.value, "pw@", "pg_sleep", "terminat")


# --- what is missing --------------------------------------------------------------------------


def test_tables_of_postgres(schema: PostgresSchema) -> None:
    url = schema.server.url(schema.schema)
    with pytest.raises(SourceMissing, match=r"no single table.*none"):
        open_backend(url, NUMBER)
    schema.make(TEN, NUMBER).close()
    with schema.server.connect(schema.schema) as admin:
        admin.execute("CREATE VIEW other AS SELECT v FROM people")
    with pytest.raises(SourceMissing, match=r"'other', 'people'.*Try: name the table"):
        open_backend(url, NUMBER)
    with pytest.raises(SourceMissing, match=r"the table 'nobody'.*'people'"):
        open_backend(url, NUMBER, source=Source.of_table("nobody"))
    with pytest.raises(SourceMissing, match="the view"):
        open_backend(url, NUMBER, source=Source.of_view("SELECT v FROM nobody", "postgres"))
    with closing(
        open_backend(schema.server.url(), NUMBER, source=Source.of_table("people", schema.schema))
    ) as found:
        assert counts(found, EACH) == [1] * 10
    with closing(open_backend(url, NUMBER, source=Source.of_table("other"))) as found:
        assert counts(found, EACH) == [1] * 10


def test_a_table_that_may_not_be_read(schema: PostgresSchema) -> None:
    schema.make(TEN, NUMBER).close()
    with schema.server.connect(schema.schema) as admin:
        admin.execute(
            f"CREATE ROLE {schema.schema} LOGIN; GRANT USAGE ON SCHEMA {schema.schema} TO {schema.schema}"
        )
    url = schema.server.url(schema.schema).replace("tester:pw", schema.schema)
    with pytest.raises(SourceError, match="SELECT"):
        open_backend(url, NUMBER, source=Source.of_table("people"))


def test_enums_and_collations_of_postgres(schema: PostgresSchema) -> None:
    with schema.server.connect(schema.schema) as admin:
        admin.execute("""
            CREATE COLLATION careless (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
            CREATE TYPE mood AS ENUM ('glad', 'sad');
            CREATE TABLE people (mood mood, name TEXT COLLATE careless, code CHAR(4));
            INSERT INTO people VALUES ('glad', 'Ann', 'ab'), ('sad', 'ann', 'AB'), (NULL, 'ANN', 'abcd')""")
    domain = Domain(
        mood=Category(["sad", "glad"]), name=Category(["ann", "Ann"]), code=Category(["ab", "abcd"])
    )
    with closing(open_backend(schema.server.url(schema.schema), domain)) as backend:
        backend.check()
        for name in domain:
            assert counts(backend, query(domain, **{name: {}})) == [1, 1]


def test_texts_without_upper_and_lower_case(schema: PostgresSchema) -> None:
    """The reason is told, and both ways out of it lead somewhere."""
    with schema.server.connect(schema.schema) as admin:
        if not admin.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'citext'").fetchall():
            pytest.skip("this PostgreSQL comes without citext")
        admin.execute("""
            CREATE EXTENSION IF NOT EXISTS citext SCHEMA public;
            CREATE TABLE people (name public.citext);
            INSERT INTO people VALUES ('Ann'), ('ann'), ('Bo')""")
    url, domain = schema.server.url(schema.schema), Domain(name=Category(["ann", "bo"]))
    with (
        closing(open_backend(url, domain, source=Source.of_table("people"))) as backend,
        pytest.raises(
            InvalidAttribute, match=r"upper and lower case.*TYPE text.*CREATE VIEW.*rows_vary=False"
        ),
    ):
        backend.check()
    with schema.server.connect(schema.schema) as admin:
        admin.execute("CREATE VIEW lower_case AS SELECT lower(name::text) AS name FROM people")
    with closing(open_backend(url, domain, source=Source.of_table("lower_case"))) as backend:
        backend.check()
        assert counts(backend, query(domain, name={})) == [2, 1]
    with schema.server.connect(schema.schema) as admin:
        admin.execute("DROP VIEW lower_case; ALTER TABLE people ALTER COLUMN name TYPE text")
    with closing(open_backend(url, domain, source=Source.of_table("people"))) as backend:
        backend.check()


def test_tables_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.executescript(
            "CREATE TABLE a (v INT); CREATE TABLE b (v TEXT COLLATE NOCASE); INSERT INTO a VALUES (3)"
        )
        made.execute("INSERT INTO b VALUES ('x'), ('X')")
    with pytest.raises(SourceMissing, match=r"'a', 'b'.*Try: name the table"):
        open_backend(path, NUMBER)
    with pytest.raises(SourceMissing, match=r"the table 'c'"):
        open_backend(path, NUMBER, source=Source.of_table("c"))
    with closing(open_backend(path, NUMBER, source=Source.of_table("a"))) as backend:
        assert isinstance(backend, SqlDatabase)
        assert counts(backend, EACH)[3] == 1
        with pytest.raises(UnknownColumn):
            backend.prepare(query(Domain(w=Integer(0, 1)), w={}))
    letters = Domain(v=Category(["x"]))
    with closing(open_backend(path, letters, source=Source.of_table("b"))) as backend:
        assert counts(backend, query(letters, v={})) == [1]
    view = Source.of_view("SELECT v + 1 AS v FROM a", "sqlite")
    with closing(open_backend(f"sqlite:///{path}", NUMBER, source=view)) as backend:
        assert counts(backend, EACH)[4] == 1


def test_files_that_are_no_sqlite_database(tmp_path: Path) -> None:
    with pytest.raises(SourceMissing, match="no file"):
        open_backend(f"sqlite:///{tmp_path}/nowhere.db", NUMBER)
    assert not (tmp_path / "nowhere.db").exists()
    with pytest.raises(SourceMissing, match="needs a file"):
        open_backend("sqlite://", NUMBER)
    (tmp_path / "bad.db").write_bytes(b"garbage, and more garbage " * 1000)
    with pytest.raises(SourceCorrupt):
        open_backend(f"sqlite:///{tmp_path}/bad.db", NUMBER)


# --- choosing a database ----------------------------------------------------------------------


def test_missing_drivers_are_named() -> None:
    script = """
import sys
for name in ("psycopg", "pymysql", "trino", "pyspark"): sys.modules[name] = None
from blowfishdb.adapters.backends import open_backend
from blowfishdb import Domain, Integer
from blowfishdb.core.errors import SourceError
for address, extra in (("postgresql://h/d", "postgres"), ("mysql://h/d", "mysql"), ("trino://u@h/c", "trino"),
                       ("spark-local://", "spark")):
    try: open_backend(address, Domain(v=Integer(0, 1)))
    except SourceError as error: assert f"pip install 'blowfishdb[{extra}]'" in str(error), error
    else: raise AssertionError(address)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", script], check=True)


def test_opening_does_not_import_what_it_does_not_need(tmp_path: Path) -> None:
    script = """
import sys
from blowfishdb.adapters.backends import open_backend
assert not {"pyspark", "psycopg", "pymysql", "trino", "pandas", "polars"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_paths_and_addresses(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "a.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT range AS v FROM range(10)")
    for place in (tmp_path / "a.duckdb", f"{tmp_path}/a.duckdb", f"duckdb:///{tmp_path}/a.duckdb"):
        with closing(open_backend(place, NUMBER, timeout=5)) as backend:
            assert isinstance(backend, DuckDB)
            assert counts(backend, EACH) == [1] * 10
    with pytest.raises(InvalidInput, match="not a place"):
        open_backend(3, NUMBER)
    with pytest.raises(InvalidInput, match="Spark"):
        open_backend("spark://", NUMBER)


# --- tables in memory -------------------------------------------------------------------------


def test_tables_in_memory() -> None:
    import pandas as pd
    import polars as pl

    frame = pd.DataFrame(
        {
            "v": pd.array([1, None, 3], dtype="Int64"),
            "c": pd.Categorical(["a", None, "b"]),
            "t": pd.to_datetime(["2020-01-01 23:59:59.999999999", None, "2020-01-02"], format="ISO8601"),
            "b": [True, None, False],
        },
        index=[7, 8, 9],
    )
    domain = Domain(
        v=Integer(0, 3, missing="value"),
        c=Category(["a", "b"], missing="value"),
        t=Date("2020-01-01", "2020-01-02", missing="value"),
        b=Boolean(missing="value"),
    )
    lazy = pl.DataFrame({"v": [1, None, 3], "c": ["a", None, "b"], "b": [True, None, False]}).lazy()
    for table, names in ((frame, tuple(domain)), (lazy, ("v", "c", "b"))):
        with closing(open_backend(table, domain.project(*names))) as backend:
            backend.check()
            assert list(backend.columns()) == list(names)
            for name in names:
                assert [n for n in counts(backend, query(domain, **{name: {}})) if n] == [1, 1, 1]
    frame.loc[7, "v"] = 2  # the copy does not change
    assert "memory" in repr(backend)


def test_tables_in_memory_that_cannot_be_read() -> None:
    import pandas as pd

    with pytest.raises(SourceCorrupt, match="mixes") as caught:
        open_backend(pd.DataFrame({"v": [1, "hunter2", b"x"]}), NUMBER)
    _silent(caught.value, "hunter2")
    twice = pd.DataFrame([[1, 2]], columns=["v", "V"])
    with pytest.raises(SourceCorrupt, match="same name"):
        open_backend(twice, NUMBER)


@pytest.mark.parametrize("to", ["Int64", "String"])
def test_a_type_that_arrow_does_not_have(to: str) -> None:
    import polars as pl

    frame = pl.DataFrame({"w": [1, 2, 3], "v": pl.Series([3, 4, 4], dtype=pl.Int128)})
    with pytest.raises(
        SourceCorrupt, match=r"The column 'v' .* holds Int128, .* cast 'v' to .*Int64.*String"
    ):
        open_backend(frame, NUMBER)
    with closing(open_backend(frame.with_columns(pl.col("v").cast(getattr(pl, to))), NUMBER)) as backend:
        assert counts(backend, EACH) == [0, 0, 0, 1, 2, 0, 0, 0, 0, 0]
