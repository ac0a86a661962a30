"""Real drivers, in text and in binary: what is written for PostgreSQL runs unchanged but for its address."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest

from blowfishdb.core.errors import InvalidInput
from blowfishdb.entrypoints.pgwire import types
from tests.pgwire.door import Opened, awaited, opened

OLDER = "SELECT region, COUNT(*) AS n FROM salaries WHERE age >= {} GROUP BY region WITH ERROR 50"
REGIONS = ["north", "south", "east", "west"]
JDBC = Path("/usr/share/java/postgresql.jar")
ODBC = next(Path("/usr/lib").glob("*/odbc/psqlodbcw.so"), None)
NODE = Path(os.environ.get("BLOWFISHDB_NODE_MODULES", Path(__file__).parents[2] / ".venv" / "node_modules"))


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(tmp_path_factory.mktemp("drivers")) as made:
        with made.connect() as connection:  # paid once, by the first one
            connection.execute("SET blowfishdb.max_cost = '0.5'")
            connection.execute(OLDER.format(30))
        yield made


def counts(there: Opened) -> list[tuple[Any, ...]]:
    with there.connect() as connection:
        return connection.execute(OLDER.format(30)).fetchall()


def test_psycopg_in_text_and_in_binary(there: Opened) -> None:
    asked = OLDER.format("%s")
    with there.connect() as connection:
        as_text = connection.execute(asked, (30,)).fetchall()
        with connection.cursor(binary=True) as cursor:
            in_binary = cursor.execute(asked, (30,)).fetchall()
            row = cursor.execute("SELECT 1, 'a', 1.5::float8, true, NULL, DATE '2024-02-29'").fetchone()
        assert [region for region, _ in as_text] == REGIONS
        assert all(isinstance(count, int) for _, count in as_text)
        assert in_binary == as_text == counts(there)
        assert row is not None and row[:5] == (1, "a", 1.5, True, None)
        with pytest.raises(psycopg.errors.InsufficientPrivilege) as refused:
            connection.execute("SELECT * FROM salaries")
        assert refused.value.diag.message_hint == "Try: SELECT COUNT(*) FROM salaries"
        with pytest.raises(psycopg.errors.ConfigurationLimitExceeded):
            connection.execute(asked, (31,))
        connection.execute("SET blowfishdb.max_cost = '1'")
        among = "SELECT COUNT(*) FROM salaries WHERE region = ANY(%s) AND age = ANY(%s) WITH ERROR 50"
        told = connection.execute(among, (["north", "south"], [30, 31])).fetchone()
        assert told is not None and told[0] >= 0


def test_psycopg_intervals_and_notices(there: Opened) -> None:
    with there.connect() as connection:
        said: list[str] = []
        connection.add_notice_handler(lambda diagnostic: said.append(str(diagnostic.message_detail)))
        connection.execute("SET blowfishdb.intervals = on")
        cursor = connection.execute(OLDER.format(30))
        assert [column.name for column in cursor.description or ()] == [
            "region",
            "n",
            "n_low",
            "n_high",
            "as_of",
        ]
        for _, count, low, high, as_of in cursor.fetchall():
            assert low <= count + 0.5 and count - 0.5 <= high and isinstance(as_of, datetime)
        assert len(said) == 1 and said[0].startswith("This cost nothing (receipt ")
        connection.execute("SET client_min_messages = error")
        connection.execute(OLDER.format(30))
        assert len(said) == 1


def test_psycopg_pipelines_and_transactions(there: Opened) -> None:
    with there.connect() as connection, connection.pipeline():
        first, second = connection.execute(OLDER.format("%s"), (30,)), connection.execute("SELECT 2")
        assert len(first.fetchall()) == 4 and second.fetchone() == (2,)
    with there.connect(autocommit=False) as connection:
        connection.execute("SELECT 1")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT salary FROM salaries")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute(OLDER.format(30))
        connection.rollback()
        with pytest.raises(psycopg.errors.InsufficientPrivilege), connection.transaction():
            connection.execute("SELECT age FROM salaries")
        assert connection.execute("SELECT 2").fetchone() == (2,)


def test_psycopg_async(there: Opened) -> None:
    async def asked() -> list[Any]:
        connection = await psycopg.AsyncConnection.connect(there.url(), autocommit=True)
        async with connection:
            return await (await connection.execute(OLDER.format("%s"), (30,))).fetchall()

    assert awaited(asked()) == counts(there)


def test_asyncpg(there: Opened) -> None:
    asyncpg = pytest.importorskip("asyncpg")

    async def asked() -> list[Any]:
        connection = await asyncpg.connect(there.url())
        try:
            async with connection.transaction():
                rows = await connection.fetch(OLDER.format("$1"), 30)
            assert await connection.fetchval("SELECT $1::int", 5) == 5
            await connection.execute("SET blowfishdb.max_cost = '1'")
            among = "SELECT COUNT(*) FROM salaries WHERE region = ANY($1) AND age <> ALL($2) WITH ERROR 50"
            listed = among.replace("ANY($1)", "ANY(ARRAY['north', 'south'])").replace("$2", "ARRAY[30, 31]")
            assert await connection.fetch(among, ["north", "south"], [30, 31]) == (
                await connection.fetch(listed)
            )
            with pytest.raises(asyncpg.PostgresError, match="list of values"):
                await connection.fetch(among, [["north"], ["south"]], [30])
            of_years = "SELECT COUNT(*) FROM salaries WHERE LENGTH(region) = $1 WITH ERROR 50"
            assert await connection.fetch(of_years, 4) == await connection.fetch(of_years.replace("$1", "4"))
            found = await connection.fetch("SELECT relname FROM pg_class WHERE relname = $1", "salaries")
            assert [record["relname"] for record in found] == ["salaries"]
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.fetch("SELECT * FROM salaries")
            return [tuple(record) for record in rows]
        finally:
            await connection.close()

    assert awaited(asked()) == counts(there)


def test_sqlalchemy_and_pandas(there: Opened) -> None:
    """Tables are reflected, questions are built from them, and frames are read."""
    import pandas as pd
    import sqlalchemy as sa

    engine = sa.create_engine(there.url(scheme="postgresql+psycopg"))
    looking = sa.inspect(engine)
    assert looking.get_schema_names() == ["information_schema", "public", "salaries"]
    assert looking.get_view_names("salaries") == looking.get_view_names() == ["salaries"]
    assert looking.get_table_names() == looking.get_table_names("salaries") == []
    assert looking.has_table("salaries") and looking.has_table("salaries", schema="salaries")
    assert "rows are counted" in looking.get_view_definition("salaries", schema="salaries")
    assert not looking.has_table("nowhere")
    named = [(column["name"], str(column["type"])) for column in looking.get_columns("salaries")]
    assert named == [("salary", "INTEGER"), ("age", "INTEGER"), ("region", "TEXT")]
    assert looking.get_pk_constraint("salaries")["constrained_columns"] == []
    assert looking.get_foreign_keys("salaries") == looking.get_indexes("salaries") == []
    tables = sa.MetaData()
    tables.reflect(engine, views=True)
    salaries = tables.tables["salaries"]
    with_schema = sa.Table("salaries", tables, schema="salaries", autoload_with=engine)
    with engine.connect() as connection:
        connection.execute(sa.text("SET blowfishdb.error = '50'"))
        by_region = sa.select(salaries.c.region, sa.func.count().label("n")).where(salaries.c.age >= 30)
        rows = connection.execute(by_region.group_by(salaries.c.region)).fetchall()
        assert [tuple(row) for row in rows] == counts(there)
        again = sa.select(with_schema.c.region, sa.func.count().label("n")).where(with_schema.c.age >= 30)
        assert connection.execute(again.group_by(with_schema.c.region)).fetchall() == rows
        frame = pd.read_sql(OLDER.format(30).removesuffix(" WITH ERROR 50"), connection)
        assert list(frame.columns) == ["region", "n"] and frame["n"].tolist() == [n for _, n in rows]
        assert connection.execute(sa.select(sa.func.count()).select_from(salaries)).scalar() == 3_000
    engine.dispose()


JAVA = """
import java.sql.*;
import java.util.Properties;

public class Client {
    public static void main(String[] said) throws Exception {
        Properties who = new Properties();
        who.setProperty("user", said[1]);
        who.setProperty("password", said[2]);
        try (Connection there = DriverManager.getConnection(said[0], who)) {
            DatabaseMetaData about = there.getMetaData();
            try (ResultSet rows = about.getSchemas()) {
                while (rows.next()) System.out.println("schema " + rows.getString("TABLE_SCHEM"));
            }
            try (ResultSet rows = about.getTables(null, null, "%", new String[] {"TABLE", "VIEW"})) {
                while (rows.next())
                    System.out.println(rows.getString("TABLE_TYPE") + " " + rows.getString("TABLE_SCHEM")
                        + " " + rows.getString("TABLE_NAME"));
            }
            try (ResultSet rows = about.getColumns(null, "salaries", "salaries", "%")) {
                while (rows.next())
                    System.out.println("column " + rows.getString(4) + " " + rows.getInt("DATA_TYPE"));
            }
            try (ResultSet rows = about.getImportedKeys(null, "salaries", "salaries")) { rows.next(); }
            try (PreparedStatement asked = there.prepareStatement(said[3])) {
                for (int time = 0; time < 7; time++) {  // from the fifth on in binary
                    asked.setInt(1, 30);
                    try (ResultSet rows = asked.executeQuery()) {
                        while (rows.next())
                            if (time == 6) System.out.println(rows.getString(1) + " " + rows.getLong("n"));
                    }
                }
            }
            there.setAutoCommit(false);
            try (PreparedStatement asked = there.prepareStatement(said[3])) {
                asked.setFetchSize(2);
                asked.setInt(1, 30);
                int fetched = 0;
                try (ResultSet rows = asked.executeQuery()) { while (rows.next()) fetched++; }
                System.out.println("fetched " + fetched);
            }
            there.commit();
        }
    }
}
"""


@pytest.mark.skipif(
    shutil.which("java") is None or not JDBC.exists(),
    reason="no JDBC: apt-get install libpostgresql-jdbc-java",
)
def test_jdbc(there: Opened, tmp_path: Path) -> None:
    program = tmp_path / "Client.java"
    program.write_text(JAVA)
    address = f"jdbc:postgresql://127.0.0.1:{there.port}/blowfishdb"
    arguments = [address, "analyst", there.passwords["analyst"], OLDER.format("?")]
    said = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", str(JDBC), str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert said.stdout.splitlines() == [
        "schema information_schema",
        "schema pg_catalog",
        "schema public",
        "schema salaries",
        "VIEW salaries salaries",
        "column salary 4",
        "column age 4",
        "column region 12",
        *(f"{region} {count}" for region, count in counts(there)),
        "fetched 4",
    ], said.stderr


@pytest.mark.skipif(ODBC is None, reason="no ODBC: apt-get install odbc-postgresql unixodbc")
def test_odbc(there: Opened) -> None:
    pyodbc = pytest.importorskip("pyodbc")
    connection = pyodbc.connect(
        f"Driver={ODBC};Server=127.0.0.1;Port={there.port};Database=blowfishdb;Uid=analyst;"
        f"Pwd={there.passwords['analyst']}",
        autocommit=True,
    )
    cursor = connection.cursor()
    listed = [(row.table_schem, row.table_name) for row in cursor.tables(tableType="VIEW")]
    assert listed == [("salaries", "salaries")]
    assert [row.column_name for row in cursor.columns(table="salaries", schema="salaries")] == [
        "salary",
        "age",
        "region",
    ]
    assert [tuple(row) for row in cursor.execute(OLDER.format("?"), 30).fetchall()] == counts(there)
    connection.close()


SCRIPT = """
const { Client } = require(process.argv[1] + '/pg')
const client = new Client({ connectionString: process.argv[2] })
const main = async () => {
  await client.connect()
  const asked = await client.query({ name: 'older', text: process.argv[3], values: [30] })
  console.log(JSON.stringify(asked.rows))
  await client.query('SELECT * FROM salaries').catch((error) => console.log(JSON.stringify(error.code)))
  await client.end()
}
main()
"""


@pytest.mark.skipif(
    shutil.which("node") is None or not (NODE / "pg").exists(), reason="no node-postgres: make clients"
)
def test_node(there: Opened) -> None:
    said = subprocess.run(
        ["node", "-e", SCRIPT, str(NODE), there.url(), OLDER.format("$1")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    rows, code = map(json.loads, said.stdout.splitlines())
    assert [(row["region"], int(row["n"])) for row in rows] == counts(there), said.stderr
    assert code == "42501"


def test_lists_are_read_as_postgresql_writes_them() -> None:
    texts, numbers = types.ARRAYS[types.TEXT.oid], types.ARRAYS[types.INT4.oid]
    assert texts.parse('{north,"New \\"York\\"",NULL}') == ["north", 'New "York"', None]
    assert numbers.parse("{1, 2}") == [1, 2] and numbers.parse("{}") == []
    assert numbers.read(numbers.binary([1, None, 3])) == [1, None, 3]
    assert texts.read(texts.binary([])) == []
    for typed in ("{{a},{b}}", "a", '{"a}', "{,}", "{" + '"\\' * 10_000 + "}"):
        with pytest.raises(InvalidInput):
            texts.parse(typed)
    for sent in (b"", b"\0\0\0\1" + b"\0" * 8 + b"\x7f\xff\xff\xff" + b"\0" * 4 + b"\xff" * 40):
        with pytest.raises(InvalidInput):
            texts.read(sent)
