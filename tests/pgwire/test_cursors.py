"""Statements that are prepared in SQL, cursors that are declared, and what transactions undo of them."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.entrypoints.pgwire.cursors import fetched_by, moved
from blowfishdb.entrypoints.pgwire.statements import split
from tests.pgwire import fuzz
from tests.pgwire.door import Opened, awaited, opened
from tests.pgwire.test_drivers import JDBC, ODBC

OLDER = "SELECT region, COUNT(*) AS n FROM salaries WHERE age >= {} GROUP BY region WITH ERROR 50"
ELDEST = "SELECT COUNT(*) AS n FROM salaries WHERE age >= {} WITH ERROR 50"


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    with opened(tmp_path_factory.mktemp("cursors")) as made:
        with made.connect() as connection:
            connection.execute("SET blowfishdb.max_cost = '0.5'")
            connection.execute(OLDER.format(30))
        yield made


@pytest.fixture
def line(there: Opened) -> Iterator[psycopg.Connection[Any]]:
    with there.connect() as connection:
        yield connection


def counts(there: Opened) -> list[tuple[Any, ...]]:
    with there.connect() as connection:
        return connection.execute(OLDER.format(30)).fetchall()


def code(line: psycopg.Connection[Any], statement: str) -> str:
    with pytest.raises(psycopg.Error) as error:
        line.execute(statement)
    return str(error.value.sqlstate)


# --- PREPARE and EXECUTE ------------------------------------------------------------------------------


def test_statements_are_prepared_and_executed_in_sql(there: Opened, line: psycopg.Connection[Any]) -> None:
    assert line.execute(f"PREPARE older (int) AS {OLDER.format('$1')}").statusmessage == "PREPARE"
    assert line.execute("EXECUTE older (30)").fetchall() == counts(there)
    assert line.execute("EXECUTE older ('30')").statusmessage == "SELECT 4"
    line.execute(f"PREPARE untyped AS {OLDER.format('$1')}")
    assert line.execute("execute untyped (30)").fetchall() == counts(there)
    line.execute("""PREPARE "Both" (text, double precision) AS SELECT $1::text, $2::float8 AS half""")
    assert line.execute("""EXECUTE "Both" ('it''s', -0.5)""").fetchone() == ("it's", -0.5)
    assert line.execute("""EXECUTE "Both" (NULL, '1'::float8)""").fetchone() == (None, 1.0)
    said = line.execute("EXPLAIN EXECUTE older (30)").fetchall()
    assert any("answered already" in row for (row,) in said)
    assert code(line, "EXECUTE both ('a', 1)") == "26000"  # another name
    assert code(line, "EXECUTE older") == code(line, "EXECUTE older (1, 2)") == "42601"
    assert code(line, "EXECUTE older (30 OR 1 = 1)") == code(line, "EXECUTE older (pg_sleep(9))") == "0A000"
    assert code(line, "EXECUTE older ('many')") == "22023"
    assert code(line, f"PREPARE older AS {OLDER.format('$1')}") == "42P05"
    assert code(line, "PREPARE rows AS SELECT * FROM salaries") == "42501"
    assert code(line, "PREPARE writing AS DELETE FROM salaries") == "42501"
    assert code(line, "PREPARE odd (nonsense) AS SELECT 1") == "42704"
    assert code(line, "PREPARE again AS EXECUTE again") == code(line, "PREPARE") == "42601"
    assert line.execute("DEALLOCATE older").statusmessage == "DEALLOCATE"
    assert code(line, "EXECUTE older (30)") == code(line, "DEALLOCATE PREPARE older") == "26000"
    assert line.execute("DEALLOCATE ALL").statusmessage == "DEALLOCATE ALL"
    assert code(line, "EXECUTE untyped (30)") == "26000"


def test_what_messages_prepare_is_executed_in_sql_and_the_other_way_round(there: Opened) -> None:
    pg = pytest.importorskip("asyncpg")

    async def asked() -> None:
        connection = await pg.connect(there.url())
        prepared = await connection.prepare(OLDER.format("$1::int"), name="mine")
        assert len(await prepared.fetch(30)) == 4
        assert [tuple(row) for row in await connection.fetch("EXECUTE mine (30)")] == counts(there)
        await connection.execute("DEALLOCATE mine")
        with pytest.raises(pg.InvalidSQLStatementNameError):
            await prepared.fetch(30)
        await connection.close()

    awaited(asked())


def test_preparing_and_declaring_spend_nothing_and_a_rollback_gives_nothing_back(
    there: Opened, line: psycopg.Connection[Any]
) -> None:
    before = there.spent()
    line.execute("SET blowfishdb.max_cost = '1'")
    line.execute(f"PREPARE eldest AS {ELDEST.format('$1')}")
    line.execute("BEGIN")
    line.execute(f"DECLARE c CURSOR FOR {ELDEST.format(61)}")
    assert there.spent() == before
    first = line.execute("FETCH c").fetchall()
    paid = there.spent()
    assert len(first) == 1 and paid != before
    assert line.execute("EXECUTE eldest (61)").fetchall() == first  # the same question
    line.execute("ROLLBACK")
    assert there.spent() == paid
    line.execute("SET blowfishdb.max_cost = '0.001'")
    assert code(line, "EXECUTE eldest (62)") == "53400"
    line.execute(f"DECLARE held CURSOR WITH HOLD FOR {ELDEST.format(62)}")
    assert code(line, "FETCH held") == code(line, "MOVE held") == "53400"
    assert there.spent() == paid


# --- cursors ------------------------------------------------------------------------------------------


def test_a_cursor_goes_on_and_back(there: Opened, line: psycopg.Connection[Any]) -> None:
    all_rows = counts(there)
    line.execute("BEGIN")
    assert line.execute(f"DECLARE c CURSOR FOR {OLDER.format(30)}").statusmessage == "DECLARE CURSOR"
    assert line.execute("FETCH 2 FROM c").fetchall() == all_rows[:2]
    assert line.execute("FETCH PRIOR c").fetchall() == all_rows[:1]
    assert line.execute("MOVE FORWARD 2 IN c").statusmessage == "MOVE 2"
    assert line.execute("FETCH ALL IN c").fetchall() == all_rows[3:]
    done = line.execute("FETCH NEXT FROM c")
    assert done.fetchall() == [] and done.statusmessage == "FETCH 0"
    assert line.execute("FETCH BACKWARD ALL FROM c").fetchall() == all_rows[::-1]
    assert line.execute("FETCH ABSOLUTE -1 FROM c").fetchall() == all_rows[-1:]
    assert line.execute("FETCH FIRST c").fetchall() == all_rows[:1]
    assert line.execute("CLOSE c").statusmessage == "CLOSE CURSOR"
    assert code(line, "FETCH c") == "34000"
    assert code(line, "SELECT 1") == "25P02"
    line.execute("ROLLBACK")
    assert code(line, f"DECLARE c CURSOR FOR {OLDER.format(30)}") == "25P01"
    assert code(line, "DECLARE c CURSOR WITH HOLD FOR SELECT salary FROM salaries") == "42501"
    assert code(line, "DECLARE c CURSOR FOR DELETE FROM salaries") == "42501"
    line.execute(f"DECLARE c NO SCROLL CURSOR WITH HOLD FOR {OLDER.format(30)}")
    line.execute("FETCH c")
    assert code(line, "FETCH PRIOR c") == "55000"
    assert line.execute("FETCH c").fetchall() == all_rows[1:2]
    line.execute("CLOSE ALL")
    assert code(line, "CLOSE c") == "34000"


@given(
    st.sampled_from(["", "NEXT", "PRIOR", "FIRST", "LAST", "ALL", "FORWARD", "BACKWARD", "FORWARD ALL"])
    | st.builds("{} {}".format, st.sampled_from(["", "ABSOLUTE", "RELATIVE", "FORWARD"]), st.integers(-9, 9)),
    st.integers(0, 6),
    st.integers(0, 6),
)
def test_the_place_of_a_cursor_stays_among_its_rows(direction: str, at: int, total: int) -> None:
    (statement,) = split(f"FETCH {direction} FROM c")
    rows, place = moved(fetched_by(statement), min(at, total + 1), total)
    assert 0 <= place <= total + 1 and all(1 <= row <= total for row in rows)
    if rows:
        assert place in (rows[-1], total + 1 if rows.step > 0 else 0)


def test_places_are_those_of_postgresql(line: psycopg.Connection[Any]) -> None:
    """The same walks in a cursor of a real PostgreSQL."""
    from tests import postgres

    walks = (
        "FETCH 0", "FETCH 2", "FETCH 0", "FETCH BACKWARD 1", "MOVE 1", "FETCH ALL", "FETCH PRIOR",
        "FETCH RELATIVE -2", "FETCH RELATIVE 0", "FETCH ABSOLUTE 3", "FETCH FORWARD 9", "FETCH BACKWARD 3",
        "FETCH ABSOLUTE 0", "FETCH NEXT", "FETCH LAST", "MOVE BACKWARD ALL", "FETCH FORWARD -1",
        "FETCH ABSOLUTE 99", "FETCH ABSOLUTE -4", "MOVE 4", "FETCH FIRST", "FETCH BACKWARD ALL", "FETCH -2",
    )  # fmt: skip
    with postgres.running() as real, psycopg.connect(real.url(), autocommit=True) as other:
        told: list[list[Any]] = [[], []]
        for connection, said in zip((line, other), told, strict=True):
            connection.execute("BEGIN")
            connection.execute("DECLARE c SCROLL CURSOR FOR VALUES (1), (2), (3), (4), (5)")
            for walk in walks:
                cursor = connection.execute(f"{walk} FROM c".encode())
                rows = cursor.fetchall() if walk.startswith("FETCH") else None
                said.append((walk, rows, cursor.statusmessage))
            connection.execute("COMMIT")
    assert told[0] == told[1]


def test_what_ends_a_cursor(there: Opened, line: psycopg.Connection[Any]) -> None:
    line.execute("BEGIN")
    line.execute("DECLARE short CURSOR FOR SELECT 1")
    line.execute("DECLARE long CURSOR WITH HOLD FOR VALUES (1), (2)")
    line.execute("SAVEPOINT s")
    line.execute("DECLARE late CURSOR WITH HOLD FOR SELECT 1")
    line.execute("ROLLBACK TO SAVEPOINT s")
    line.execute("SAVEPOINT t")
    assert code(line, "FETCH late") == "34000"
    line.execute("ROLLBACK TO t")
    assert line.execute("FETCH long").fetchall() == [(1,)]
    line.execute("COMMIT")
    assert code(line, "FETCH short") == "34000"
    assert line.execute("FETCH long").fetchall() == [(2,)]
    line.execute("BEGIN")
    line.execute("DECLARE gone CURSOR WITH HOLD FOR SELECT 1")
    line.execute("ROLLBACK")
    assert code(line, "FETCH gone") == "34000"
    assert line.execute("FETCH PRIOR long").fetchall() == [(1,)]
    assert line.execute("DISCARD ALL").statusmessage == "DISCARD ALL"
    assert code(line, "FETCH long") == "34000"
    line.execute("BEGIN")
    assert code(line, "DISCARD ALL") == "25001"
    line.execute("ROLLBACK")


def test_server_side_cursors_of_psycopg(there: Opened) -> None:
    with there.connect(autocommit=False) as connection:
        with connection.cursor("parts") as cursor:
            cursor.itersize = 3
            cursor.execute(OLDER.format("%s"), (30,))
            assert [column.name for column in cursor.description or ()] == ["region", "n"]
            assert connection.execute("SELECT 7").fetchone() == (7,)  # another one meanwhile
            assert list(cursor) == counts(there)
            cursor.scroll(0, mode="absolute")
            assert cursor.fetchmany(2) == counts(there)[:2]
        with connection.cursor("in binary", binary=True) as cursor:
            assert cursor.execute(OLDER.format(30)).fetchall() == counts(there)
    with there.connect() as connection, connection.cursor("held", withhold=True) as cursor:
        assert cursor.execute(OLDER.format("%s"), (30,)).fetchall() == counts(there)
    with there.connect(autocommit=False) as connection:
        connection.execute(f"DECLARE c BINARY CURSOR FOR {ELDEST.format(61)}")
        assert len(connection.pgconn.exec_(b"FETCH c").get_value(0, 0) or b"") == 8


def test_sqlalchemy_streams_results(there: Opened) -> None:
    import sqlalchemy as sa

    engine = sa.create_engine(there.url(scheme="postgresql+psycopg"))
    with engine.connect().execution_options(stream_results=True, max_row_buffer=2) as connection:
        streamed = connection.execute(sa.text(OLDER.format(":age")), {"age": 30})
        assert [tuple(row) for row in streamed] == counts(there)
    engine.dispose()


def test_asyncpg_cursors_pools_and_columns_that_change(there: Opened) -> None:
    pg = pytest.importorskip("asyncpg")

    async def asked() -> None:
        async with pg.create_pool(there.url(), min_size=1, max_size=1) as pool:
            async with pool.acquire() as connection, connection.transaction():
                cursor = await connection.cursor(OLDER.format("$1"), 30)
                first = await cursor.fetch(3)
                assert await connection.fetchval("SELECT 7") == 7  # a portal outlives other statements
                await connection.execute("SELECT 7")
                assert [tuple(row) for row in first + await cursor.fetch(3)] == counts(there)
            async with pool.acquire() as connection:  # the pool has reset it
                assert len((await connection.fetch(OLDER.format(30)))[0]) == 2
                await connection.execute("SET blowfishdb.intervals = on")
                assert len((await connection.fetch(OLDER.format(30)))[0]) == 5

    awaited(asked())


@pytest.mark.skipif(ODBC is None, reason="no ODBC: apt-get install odbc-postgresql unixodbc")
def test_odbc_that_declares_and_fetches(there: Opened) -> None:
    pyodbc = pytest.importorskip("pyodbc")
    for autocommit in (True, False):
        connection = pyodbc.connect(
            f"Driver={ODBC};Server=127.0.0.1;Port={there.port};Database=blowfishdb;Uid=analyst;"
            f"Pwd={there.passwords['analyst']};UseDeclareFetch=1;Fetch=2",
            autocommit=autocommit,
        )
        cursor = connection.cursor()
        assert [tuple(row) for row in cursor.execute(OLDER.format(30))] == counts(there)
        assert [tuple(row) for row in cursor.execute(OLDER.format("?"), 30)] == counts(there)
        connection.close()


JAVA = """
import java.sql.*;
import java.util.Properties;

public class Parts {
    public static void main(String[] said) throws Exception {
        Properties who = new Properties();
        who.setProperty("user", said[1]);
        who.setProperty("password", said[2]);
        try (Connection there = DriverManager.getConnection(said[0], who)) {
            there.setAutoCommit(false);
            try (Statement asked = there.createStatement(); Statement other = there.createStatement()) {
                asked.setFetchSize(1);
                try (ResultSet rows = asked.executeQuery(said[3])) {
                    while (rows.next()) {
                        try (ResultSet one = other.executeQuery("SELECT 7")) { one.next(); }
                        System.out.println(rows.getString(1) + " " + rows.getLong("n"));
                    }
                }
            }
            Savepoint here = there.setSavepoint("here");
            try (Statement asked = there.createStatement()) {
                asked.execute("SET LOCAL blowfishdb.intervals = on");
                there.rollback(here);
                try (ResultSet rows = asked.executeQuery(said[3])) {
                    System.out.println(rows.getMetaData().getColumnCount());
                }
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
def test_jdbc_fetches_in_parts_between_other_statements(there: Opened, tmp_path: Path) -> None:
    program = tmp_path / "Parts.java"
    program.write_text(JAVA)
    arguments = [f"jdbc:postgresql://127.0.0.1:{there.port}/blowfishdb", "analyst"]
    arguments += [there.passwords["analyst"], OLDER.format(30)]
    said = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-cp", str(JDBC), str(program), *arguments],
        env=os.environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    wanted = [*(f"{region} {count}" for region, count in counts(there)), "2"]
    assert said.stdout.splitlines() == wanted, said.stderr


# --- settings and transactions ------------------------------------------------------------------------


def shown(line: psycopg.Connection[Any], name: str = "blowfishdb.error") -> str:
    (value,) = line.execute(f"SHOW {name}").fetchone()  # type: ignore[misc]
    return str(value)


def test_settings_belong_to_their_transaction(line: psycopg.Connection[Any]) -> None:
    line.execute("SET blowfishdb.error = '10'")
    line.execute("BEGIN")
    line.execute("SET LOCAL blowfishdb.error = '20'")
    line.execute("SET LOCAL application_name = 'meanwhile'")
    assert shown(line) == "20" and line.info.parameter_status("application_name") == "meanwhile"
    line.execute("COMMIT")
    assert shown(line) == "10" and line.info.parameter_status("application_name") == ""
    line.execute("BEGIN")
    line.execute("SET blowfishdb.error = '30'")
    line.execute("SAVEPOINT s")
    line.execute("SET blowfishdb.error = '40'")
    line.execute("SAVEPOINT t")
    line.execute("SELECT set_config('blowfishdb.error', '50', true)")
    assert shown(line) == "50"
    line.execute("RELEASE t")
    assert shown(line) == "50"
    line.execute("ROLLBACK TO s")
    assert shown(line) == "30"
    line.execute("COMMIT")
    assert shown(line) == "30"
    line.execute("BEGIN")
    line.execute("SET blowfishdb.error = '60'")
    line.execute("RESET ALL")
    line.execute("ROLLBACK AND CHAIN")
    assert shown(line) == "30" and line.info.transaction_status.name == "INTRANS"
    line.execute("SET blowfishdb.error = '70'")
    assert code(line, "SELECT * FROM salaries") == "42501"
    line.execute("COMMIT")  # which is a rollback, as the block has failed
    assert shown(line) == "30"
    assert code(line, "SET blowfishdb.error = '80'; SELECT * FROM salaries") == "42501"
    assert shown(line) == "30"  # a message is a transaction by itself
    line.execute("SET LOCAL blowfishdb.error = '90'")
    assert shown(line) == "30"


def test_a_reset_goes_back_to_how_the_connection_began(there: Opened) -> None:
    with there.connect(options="-c blowfishdb.error=7", application_name="mine") as connection:
        connection.execute("SET blowfishdb.error = '8'")
        connection.execute("SET application_name = 'yours'")
        connection.execute("DISCARD ALL")
        assert shown(connection) == "7"
        assert connection.info.parameter_status("application_name") == "mine"
        connection.execute("RESET ROLE")
        assert code(connection, "SET statement_timeout = 'long'") == "22023"
        assert connection.execute("SELECT 1").fetchone() == (1,)


def test_several_statements_of_one_message_are_a_transaction(there: Opened) -> None:
    """Sent as psqlODBC does: declared and fetched at once."""
    with fuzz.enter(there) as line:
        sent = f"DECLARE c CURSOR FOR {OLDER.format(30)}; FETCH 2 IN c; CLOSE c; SET LOCAL x.y = 'z'"
        line.sendall(fuzz.message(b"Q", sent.encode() + b"\0"))
        letters = b""
        while not letters.endswith(b"Z"):
            letters += fuzz.read(line)[0]
        assert letters.replace(b"N", b"") == b"CTDDCCCZ"


def test_a_message_inside_a_transaction_leaves_named_portals(there: Opened) -> None:
    with fuzz.enter(there) as line:
        line.sendall(fuzz.message(b"Q", b"BEGIN\0") + fuzz.parse("a", "VALUES (1), (2)"))
        line.sendall(
            fuzz.bind("p", "a") + fuzz.bind("", "a") + fuzz.message(b"E", b"p\0\0\0\0\1") + fuzz.SYNC
        )
        line.sendall(fuzz.message(b"Q", b"SELECT 3\0") + fuzz.message(b"E", b"p\0\0\0\0\0"))
        line.sendall(fuzz.message(b"E", b"\0\0\0\0\0") + fuzz.SYNC)
        told, ready = [], 0
        while ready < 4:
            letter, _ = fuzz.read(line)
            told.append(letter)
            ready += letter == b"Z"
        assert b"".join(told) == b"CZ122DsZTDCZDCEZ"  # the portal without a name is gone
