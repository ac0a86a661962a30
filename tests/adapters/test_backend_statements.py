"""The statements for MySQL and for Trino, which is not at hand, line by line as they were agreed on.

``python -m tests.adapters.test_backend_statements`` writes the files anew; read the difference first.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Self

import pytest
import sqlglot
from sqlglot import exp

from blowfishdb.adapters.backends import addresses, servers
from blowfishdb.adapters.backends.base import Declared, columns
from blowfishdb.adapters.sql.engines import Engine
from blowfishdb.adapters.sql.engines.mysql import MYSQL
from blowfishdb.adapters.sql.engines.postgres import POSTGRES
from blowfishdb.adapters.sql.engines.spark import SPARK
from blowfishdb.adapters.sql.engines.sqlite import SQLITE
from blowfishdb.adapters.sql.engines.trino import TRINO
from blowfishdb.adapters.sql.source import Source, Unit
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidAttribute
from tests.adapters.counting import cut, query

FOLDER = Path(__file__).parent / "fixtures"

DOMAIN = Domain.of(
    {
        "age": Integer(0, 120, 5, missing="value"),
        "pay": Real(0, 1000, "0.5", outside="drop"),
        "fee": Real(0, 10, "0.25"),
        "town": Category(["Ulm", "o'Hare", "\\"], missing="value"),
        "code": Category([f"c{k}" for k in range(17)]),
        "since": Date("2020-01-01", "2020-12-31", "week"),
        "seen": Date("2020-01-01", "2020-12-31", "hour"),
        "member": Boolean(),
    }
)
TYPES = {
    "mysql": {
        "age": "BIGINT UNSIGNED", "pay": "DOUBLE", "fee": "DECIMAL(65, 2)", "town": "TEXT", "code": "TEXT",
        "since": "DATE", "seen": "DATETIME", "member": "BIGINT", "id": "BIGINT", "row": "BIGINT",
    },
    "trino": {
        "age": "bigint", "pay": "double", "fee": "decimal(12,2)", "town": "varchar", "code": "varchar(9)",
        "since": "date", "seen": "timestamp(6)", "member": "boolean", "id": "bigint", "row": "varchar",
    },
}  # fmt: skip
ENGINES = {"mysql": MYSQL, "trino": TRINO}
QUESTIONS = {
    "filter": cut(DOMAIN, (col("age") >= 30) & ~(col("town") == "o'Hare"), pay={"count": 9}),
    "lookup": query(DOMAIN, code={}, member={}),
    "dates": cut(DOMAIN, (col("since") >= "2020-05-06"), seen={"count": 4}),
    "decimal": query(DOMAIN, fee={"edges": [0, 1, 5]}),
}
CASES = [(engine, name) for engine in ENGINES for name in QUESTIONS]


def _declared(engine: Engine, types: dict[str, str], unit: Unit | None = None) -> Declared:
    return Declared(DOMAIN, Source.of_table("people", unit=unit), engine, columns(types, engine))


def _text(engine: str, name: str) -> str:
    unit = Unit("id", 3, "row", "salt") if name == "lookup" else None
    statement = _declared(ENGINES[engine], TYPES[engine], unit).statement(QUESTIONS[name])
    return statement.select.sql(dialect=engine, pretty=True) + "\n"


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_statements_are_as_agreed(engine: str, name: str) -> None:
    assert _text(engine, name) == (FOLDER / f"{engine}_{name}.sql").read_text(encoding="utf-8")


@pytest.mark.parametrize(("engine", "name"), CASES)
def test_statements_are_one_select_in_the_words_of_the_database(engine: str, name: str) -> None:
    (parsed,) = sqlglot.parse(_text(engine, name), dialect=engine)
    assert isinstance(parsed, exp.Select)
    assert not list(parsed.find_all(exp.IntDiv if engine == "trino" else exp.Glob))


@pytest.mark.parametrize(
    ("engine", "sql_type", "attribute"),
    [
        (MYSQL, "TEXT", Integer(0, 9)),
        (MYSQL, "TIMESTAMP", Date("2020-01-01", "2020-01-02")),
        (MYSQL, "TEXT", Category(["a\x00"])),
        (TRINO, "timestamp(3) with time zone", Date("2020-01-01", "2020-01-02")),
        (TRINO, "array(bigint)", Integer(0, 9)),
        (SPARK, "timestamp", Date("2020-01-01", "2020-01-02")),
        (SPARK, "decimal(38,30)", Real(0, 10**9, 1)),
        (SQLITE, "TEXT", Integer(0, 9)),
        (SQLITE, "INTEGER", Date("2020-01-01", "2020-01-02")),
        (SQLITE, "REAL", Real(0, 1, "1e-16")),
        (POSTGRES, "bytea", Category(["a"])),
    ],
)
def test_what_cannot_be_read_safely_is_refused(engine: Engine, sql_type: str, attribute: object) -> None:
    domain = Domain.of({"v": attribute})  # type: ignore[dict-item]
    with pytest.raises(InvalidAttribute):
        Declared(domain, Source.of_table("t"), engine, columns({"v": sql_type}, engine)).check()


def test_what_every_server_is_told_first() -> None:
    assert "SET TRANSACTION READ ONLY" in servers.POSTGRES_SERVER.begin(2, False)
    assert "SET LOCAL statement_timeout = 2000" in servers.POSTGRES_SERVER.begin(2, False)
    for mariadb, limit in ((False, "max_execution_time = 2500"), (True, "max_statement_time = 2.500")):
        told = servers.MYSQL_SERVER.begin(2.5, mariadb)
        assert "SET SESSION TRANSACTION READ ONLY" in told
        assert f"SET SESSION {limit}" in told
    properties = servers.TRINO_SERVER.arguments(3)["session_properties"]
    assert properties["query_max_execution_time"] == "3000ms"


def test_how_mysql_and_trino_and_others_are_stopped() -> None:
    """None of them is at hand: what their drivers are told is written down."""
    said: list[str] = []

    class Driver:
        """A cursor and a connection at once, which remember what they were told."""

        def __enter__(self) -> Self:
            return self

        def __exit__(self, *_: object) -> None: ...

        def cursor(self) -> Driver:
            return self

        def thread_id(self) -> int:
            return 17

        def execute(self, statement: str) -> None:
            said.append(statement)

        def close(self) -> None:
            said.append("close")

    class Cancelling(Driver):
        def cancel(self) -> None:
            said.append("cancel")

    other = servers.server_of(addresses.parse_url("snowflake://u@account/db"))
    servers.MYSQL_SERVER.stop(servers.RunningStatement(Driver(), Driver(), Driver))
    assert said == ["KILL QUERY 17", "close"]
    for server, cursor, connection, told in (
        (servers.TRINO_SERVER, Cancelling(), Driver(), "cancel"),
        (other, Cancelling(), Driver(), "cancel"),
        (other, Driver(), Cancelling(), "cancel"),
        (other, Driver(), Driver(), "close"),
    ):
        said.clear()
        server.stop(servers.RunningStatement(cursor, connection, Driver))
        assert said == [told]


def test_types_of_mysql_and_trino() -> None:
    pymysql = pytest.importorskip("pymysql")
    codes = pymysql.constants.FIELD_TYPE
    told = [("a", codes.LONGLONG), ("b", codes.NEWDECIMAL), ("c", codes.TIMESTAMP), ("d", codes.VAR_STRING)]
    told += [("e", codes.TINY), ("f", codes.GEOMETRY)]
    description = [(name, code, None, 20, 20, 2, True) for name, code in told]
    assert servers.MYSQL_SERVER.describe is not None and servers.TRINO_SERVER.describe is not None
    found = servers.MYSQL_SERVER.describe(None, description)  # type: ignore[arg-type]
    assert found == {"a": "BIGINT UNSIGNED", "b": "DECIMAL(65, 2)", "c": "TIMESTAMP", "d": "TEXT"} | {
        "e": "BIGINT",
        "f": "type 255",
    }
    trino = servers.TRINO_SERVER.describe(None, [("a", "decimal(9,2)", None)])  # type: ignore[arg-type]
    assert trino == {"a": "decimal(9,2)"}


def test_a_database_that_only_sqlglot_knows() -> None:
    server = servers.server_of(addresses.parse_url("snowflake://user:pw@account/db"))
    types = {"age": "BIGINT", "pay": "DOUBLE", "town": "VARCHAR"}
    domain = Domain.of({name: DOMAIN[name] for name in ("age", "pay")})
    declared = Declared(domain, Source.of_table("people"), server.engine, columns(types, server.engine))
    declared.check()
    assert declared.statement(query(domain, age={})).text.startswith("SELECT")
    with pytest.raises(InvalidAttribute, match="byte by byte"):
        replace(declared, domain=Domain.of({name: DOMAIN[name] for name in types})).check()


def test_floats_of_sqlite_are_exact() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        for units, scale in ((1, 1), (123_456_789_012_345, 22), (-7, 3), (10**22, 0), (10**19, 0), (5, 20)):
            text = SQLITE.ratio(units, scale).sql(dialect="sqlite")
            assert connection.execute(f"SELECT {text}").fetchone() == (float(f"{units}e-{scale}"),)


if __name__ == "__main__":
    for _engine, _name in CASES:
        (FOLDER / f"{_engine}_{_name}.sql").write_text(_text(_engine, _name), encoding="utf-8")
