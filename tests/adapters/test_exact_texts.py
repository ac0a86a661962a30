"""Texts are compared byte by byte, whatever a database makes of case, accents and blanks at the end.

A value that met two listed ones would count twice, and one that is taken for another could step over an edge
of the policy that is not there. Two people whose ids differ only in case are two people.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

from blowfishdb.adapters.backends import Backend, open_backend
from blowfishdb.adapters.sql.encode import encode
from blowfishdb.adapters.sql.engines import Engine, SqlColumn
from blowfishdb.adapters.sql.source import Source, Unit
from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidAttribute, InvalidInput
from tests.adapters.counting import counts, expected, filtered, query
from tests.adapters.places import PostgresSchema

WORDS = ["ann", "Ann", "ANN", "ann ", "ánn", "a\u0301nn", "straße", "STRASSE", "i", "İ", "ı", "I", ""]
FEW = WORDS
MANY = [*WORDS, *(f"{word}{i}" for i in range(5) for word in ("x", "X"))]
ROWS = [*MANY, "Ann", "aNN", "ann  ", None]


def duckdb_file(folder: Path) -> str:
    path = folder / "odd.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE people (name TEXT COLLATE NOCASE.NOACCENT, v INT)")
        made.executemany("INSERT INTO people VALUES (?, 1)", [[name] for name in ROWS])
    return str(path)


def sqlite_file(folder: Path) -> str:
    path = folder / "odd.db"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE people (name TEXT COLLATE NOCASE, v INT)")
        made.executemany("INSERT INTO people VALUES (?, 1)", [[name] for name in ROWS])
    return f"sqlite:///{path}"


def postgres_table(schema: PostgresSchema) -> str:
    with schema.server.connect(schema.schema) as admin:
        admin.execute("""
            CREATE COLLATION careless (provider = icu, locale = 'und-u-ks-level1', deterministic = false);
            CREATE TABLE people (name TEXT COLLATE careless, v INT)""")
        with admin.cursor() as cursor:
            cursor.executemany("INSERT INTO people VALUES (%s, 1)", [(name,) for name in ROWS])
    return schema.server.url(schema.schema)


@pytest.fixture(params=["duckdb", "sqlite", "postgres"])
def odd(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A table whose database takes different texts for equal."""
    if request.param == "postgres":
        return postgres_table(PostgresSchema(request.getfixturevalue("postgres")))
    return duckdb_file(tmp_path) if request.param == "duckdb" else sqlite_file(tmp_path)


@pytest.mark.parametrize("listed", [FEW, MANY], ids=["few", "many"])
@pytest.mark.parametrize("outside", ["clamp", "drop"])
def test_each_row_counts_once_under_its_own_text(odd: str, listed: list[str], outside: str) -> None:
    domain = Domain(name=Category(listed, outside=outside), v=Integer(0, 1))  # type: ignore[arg-type]
    columns = {"name": ROWS, "v": [1] * len(ROWS)}
    with closing(open_backend(odd, domain)) as backend:
        asked = query(domain, name={})
        assert counts(backend, asked) == expected(asked, domain, columns)
        chosen = col("name").isin(["ann", "ánn"])
        alone = query(domain, v={})
        assert filtered(backend, alone, domain, chosen) == expected(alone, domain, columns, chosen)


def people(backend: Backend, domain: Domain) -> int:
    return sum(counts(backend, query(domain, v={})))


@pytest.mark.parametrize("rows", [1, 2])
def test_ids_that_differ_in_case_are_different_people(odd: str, rows: int) -> None:
    domain = Domain(v=Integer(0, 1))
    twice = {"Ann"}
    kept = [name for name in ROWS if name is not None and (rows == 2 or name not in twice)]
    source = Source.of_table("people", unit=Unit("name", rows))
    with closing(open_backend(odd, domain, source=source)) as backend:
        assert people(backend, domain) == len(kept)


def test_keys_that_are_not_unique_leave_out_rows_and_never_add_one(tmp_path: Path) -> None:
    """Rows with equal keys count together or not at all: the order of rows in a file decides nothing."""
    domain, path = Domain(v=Integer(0, 9)), tmp_path / "keys.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute(
            "CREATE TABLE people AS SELECT * FROM (VALUES (1, 7, 1), (1, 7, 2), (2, 1, 3)) t(p, k, v)"
        )
    for rows, left in ((1, [3]), (2, [1, 2, 3])):
        source = Source.of_table("people", unit=Unit("p", rows, "k"))
        with closing(open_backend(path, domain, source=source)) as backend:
            found = counts(backend, query(domain, v={}))
            assert found == [int(cell in left) for cell in range(10)]


def test_a_database_whose_comparisons_are_not_known_lists_no_texts() -> None:
    unknown = Engine("Somebase", "oracle")
    column = SqlColumn("name", "VARCHAR(20)", unknown)
    with pytest.raises(InvalidAttribute, match="byte by byte"):
        encode(column, Category(["a", "b"]), "map")
    unit = Unit("name", 1)
    with pytest.raises(InvalidInput, match="byte by byte"):
        unit.check({"name": column})
