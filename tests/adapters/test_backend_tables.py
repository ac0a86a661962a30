"""Several tables: every row counts once, with the columns of what it belongs to, in each database alike."""

from __future__ import annotations

import hashlib
import random
import sqlite3
from collections import defaultdict
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from blowfishdb.adapters.backends import open_backend
from blowfishdb.adapters.copies import Patience
from blowfishdb.adapters.proposal import propose
from blowfishdb.adapters.proposal.tables import check_tables, led_nowhere
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.tables import Child, Lookup, People, Tables
from blowfishdb.core.errors import BlowfishError, InvalidInput, UnknownColumn
from tests.adapters.counting import counts, expected, filtered, query
from tests.adapters.places import (
    DuckFile,
    MariaDatabase,
    Place,
    PostgresSchema,
    SparkFolder,
    SqliteFile,
    fill,
    quoted,
)

TABLES = Tables(
    people=People("id"),
    orders=Child("people", by="person", key="number", rows_per_person=3),
    items=Child("orders", by="ordered", key="item", rows_per_person=4),
    visits=Child("people", by="who", rows_per_person=2, table="seen"),
    regions=Lookup("people", by="region", key="code"),
    countries=Lookup("regions", by="country", key="iso"),
    shops=Lookup("orders", by="shop", key="shop"),
)
"""A snowflake: two and three steps from a row to the people, and two from these to what is looked up."""
DOMAIN = Domain.of(
    {
        "people.age": Integer(0, 4, missing="value"),
        "orders.amount": Integer(0, 5, missing="value"),
        "items.price": Integer(0, 3),
        "visits.length": Integer(0, 3),
        "regions.name": Category(["north", "south"], missing="value"),
        "countries.size": Integer(0, 2, missing="public"),
        "shops.kind": Category(["big", "small"], missing="public"),
    }
)
Rows = list[dict[str, Any]]
World = dict[str, Rows]
_LEADS = {"people.region": "regions", "regions.country": "countries", "orders.shop": "shops"}


def world(seed: int = 3) -> World:
    """Rows of every table: keys that lead nowhere, people without rows, people with too many of them."""
    rng = random.Random(seed)
    orders = [
        {"number": key, "person": rng.choice([None, *range(14), 3, 3, 3]), "amount": rng.randrange(6),
         "shop": rng.choice(["a", "b", "x", None])}
        for key in rng.sample(range(10**5), 60)
    ]  # fmt: skip
    numbers = [row["number"] for row in orders]
    return {
        "people": [
            {"id": key, "age": rng.randrange(5), "region": rng.choice(["n", "s", "w", "?", None])}
            for key in range(10)
        ],
        "orders": orders,
        "items": [
            {"item": key, "ordered": rng.choice([*numbers, -1, None]), "price": rng.randrange(4)}
            for key in rng.sample(range(10**5), 120)
        ],
        "seen": [{"who": rng.choice([None, *range(12)]), "length": rng.randrange(4)} for _ in range(20)],
        "regions": [
            {"code": "n", "name": "north", "country": 1},
            {"code": "s", "name": "south", "country": 2},
            {"code": "w", "name": "north", "country": 7},
        ],
        "countries": [{"iso": 1, "size": 0}, {"iso": 2, "size": 2}],
        "shops": [{"shop": "a", "kind": "big"}, {"shop": "b", "kind": "small"}],
    }


def kept(rows: World, name: str, salt: str, tables: Tables = TABLES) -> dict[str, list[Any]]:
    """The rows of a table that count, each with the columns of what it belongs to; by definition."""
    own: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    declared = tables[name]
    for number, row in enumerate(rows[tables.stored_as(name)]):
        whole, person = _whole(rows, name, row, tables)
        key = number if declared.key is None else row[declared.key]
        if person is not None and key is not None:
            own[person].append({**whole, "key": key})
    counted: Rows = []
    for mine in own.values():
        most = tables.rows_per_person(name)
        if not isinstance(declared, Child) or declared.key is None:
            counted += mine if len(mine) <= most else []
            continue
        mine.sort(key=lambda row: hashlib.md5(f"{salt}:{row['key']}".encode()).hexdigest())
        counted += mine[:most]
    return {column: [row.get(column) for row in counted] for column in tables.columns(name, DOMAIN)}


def _whole(rows: World, name: str, row: dict[str, Any] | None, tables: Tables) -> tuple[dict[str, Any], Any]:
    """The columns of a row and of all that it belongs to, and whose it is."""
    declared, held = tables[name], dict[str, Any]()
    for column, value in (row or {}).items():
        held[f"{name}.{column}"] = value
        if (public := _LEADS.get(f"{name}.{column}")) is not None:
            led = tables[public]
            assert isinstance(led, Lookup)
            found = next(
                (each for each in rows[public] if each[led.key] == value and value is not None), None
            )
            held |= _whole(rows, public, found, tables)[0]
    if not isinstance(declared, Child) or row is None:
        return held, None if row is None or isinstance(declared, Child) else row.get(declared.key or "")
    above, leads = tables[declared.of], row[declared.by]
    found = next(
        (each for each in rows[tables.stored_as(declared.of)] if each[above.key or ""] == leads), None
    )
    more, person = _whole(rows, declared.of, found if leads is not None else None, tables)
    return held | more, leads if isinstance(above, People) else person


TYPES = {"code": "VARCHAR", "name": "VARCHAR", "region": "VARCHAR", "shop": "VARCHAR", "kind": "VARCHAR"}


def put(place: Place, rows: World) -> str:
    """All tables into a database; where it is."""
    filled = {
        table: {name: (TYPES.get(name, "INTEGER"), [row[name] for row in held]) for name in held[0]}
        for table, held in rows.items()
    }
    if isinstance(place, DuckFile):
        with duckdb.connect(str(place.path)) as connection:
            for table, columns in filled.items():
                fill(connection, columns, table)
        return str(place.path)
    if isinstance(place, SparkFolder):
        place.path = place.path.with_name("shop")  # a folder that is called like a table is that table
        place.path.mkdir()
        with duckdb.connect() as connection:
            for table, columns in filled.items():
                fill(connection, columns, table)
                connection.execute(f"COPY {quoted(table)} TO '{place.path}/{table}.parquet' (FORMAT parquet)")
        return f"spark-local://{place.path}"
    if isinstance(place, SqliteFile):
        with closing(sqlite3.connect(place.path)) as made, made:
            for table, columns in filled.items():
                declared = ", ".join(f"{name} {kind}" for name, (kind, _) in columns.items())
                made.execute(f"CREATE TABLE {table} ({declared})")
                marks = ", ".join("?" * len(columns))
                lines = list(zip(*(values for _, values in columns.values()), strict=True))
                made.executemany(f"INSERT INTO {table} VALUES ({marks})", lines)
        return f"sqlite:///{place.path}"
    assert isinstance(place, PostgresSchema | MariaDatabase)
    if isinstance(place, PostgresSchema):
        opened, url = place.server.connect(place.schema), place.server.url(place.schema)
    else:
        opened, url = place.server.connect(place.database), place.server.url(place.database)
    text = "TEXT" if isinstance(place, PostgresSchema) else "VARCHAR(20) COLLATE utf8mb4_bin"
    with opened as connection, connection.cursor() as cursor:
        for table, columns in filled.items():
            kinds = {name: text if kind == "VARCHAR" else kind for name, (kind, _) in columns.items()}
            cursor.execute(f"CREATE TABLE {table} ({', '.join(f'{n} {k}' for n, k in kinds.items())})")
            lines = list(zip(*(values for _, values in columns.values()), strict=True))
            cursor.executemany(f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(kinds))})", lines)
        connection.commit()
    return url


def test_the_same_rows_count_everywhere(database: Place) -> None:
    rows = world()
    location = put(database, rows)
    check_tables(location, TABLES)
    for name in ("items",) if database.slow else TABLES.asked:
        source = Source.of_tables(TABLES, name, DOMAIN, salt="s1")
        chosen, domain = kept(rows, name, "s1"), TABLES.domain(name, DOMAIN)
        with closing(open_backend(location, domain, source=source)) as backend:
            backend.check()
            assert not backend.views()
            for column in domain.names[:2] if database.slow else domain.names:
                asked, where = query(domain, **{column: {}}), col("people.age") >= 2
                assert counts(backend, asked) == expected(asked, domain, chosen)
                assert filtered(backend, asked, domain, where) == expected(asked, domain, chosen, where)


def test_rows_never_vanish_and_never_double(tmp_path: Path) -> None:
    """Every row with a person is counted, whatever its keys lead to, and however often that is there."""
    rows = world()
    rows["regions"] += [{"code": "n", "name": "south", "country": 1}]
    roomy = Tables.of(
        {**dict(TABLES.tables), "orders": Child("people", by="person", key="number", rows_per_person=99)}
    )
    location = put(SqliteFile(tmp_path), rows)
    with pytest.raises(InvalidInput, match="'code' occur twice in 'regions'"):
        check_tables(location, roomy)
    source = Source.of_tables(roomy, "orders", DOMAIN, salt="")
    domain = roomy.domain("orders", DOMAIN)
    with closing(open_backend(location, domain, source=source)) as backend:
        for column in domain.names:
            found = sum(counts(backend, query(domain, **{column: {}})))
            assert found == sum(row["person"] is not None for row in rows["orders"])
        names = counts(backend, query(domain, **{"regions.name": {}}))
    rows["regions"] = [row for row in rows["regions"] if row["code"] != "n"]
    where = kept(rows, "orders", "", roomy)
    assert names == expected(query(domain, **{"regions.name": {}}), domain, where), (
        "what is there twice says nothing"
    )


def test_people_who_are_there_twice_have_no_more_rows(tmp_path: Path) -> None:
    rows = world()
    rows["people"] += [{"id": key, "age": 4, "region": "n"} for key in range(5)]
    location = put(SqliteFile(tmp_path), rows)
    with pytest.raises(InvalidInput, match="'id' occur twice in 'people'"):
        check_tables(location, TABLES)
    for name in TABLES.asked:
        domain = TABLES.domain(name, DOMAIN)
        source = Source.of_tables(TABLES, name, DOMAIN, salt="")
        with closing(open_backend(location, domain, source=source)) as backend:
            total = sum(counts(backend, query(domain, **{domain.names[0]: {}})))
        people = {_whole(rows, name, row, TABLES)[1] for row in rows[TABLES.stored_as(name)]} - {None}
        assert total <= len(people) * TABLES.rows_per_person(name)


def test_what_keys_do_not_lead_to_is_proposed_as_missing(tmp_path: Path) -> None:
    rows = world()
    location = put(DuckFile(tmp_path), rows)
    assert led_nowhere(location, TABLES, Patience(60.0)) == {
        "people",
        "orders",
        "regions",
        "countries",
        "shops",
    }
    proposal = propose(location, tables=TABLES, rare=1)
    assert [column.name for column in proposal.columns] == [
        "people.age", "orders.amount", "items.price", "visits.length", "regions.name", "countries.size",
        "shops.kind",
    ]  # fmt: skip
    missing = [column.name for column in proposal.columns if column.some_missing]
    assert missing == ["people.age", "orders.amount", "regions.name", "countries.size", "shops.kind"]


def test_keys_are_checked(tmp_path: Path) -> None:
    location = put(DuckFile(tmp_path), world())
    wrong: dict[str, tuple[Tables, type[BlowfishError], str]] = {
        "no such key": (Tables(people=People("number")), UnknownColumn, "'number' in the table 'people'"),
        "types": (
            Tables(people=People("id"), regions=Lookup("people", by="id", key="code")),
            InvalidInput,
            "keys that meet are of one type",
        ),
    }
    for tables, error, words in wrong.values():
        domain = Domain.of({"people.age": DOMAIN["people.age"]})
        if "regions" in tables:
            domain = Domain.of({"regions.name": DOMAIN["regions.name"]})
        with pytest.raises(error, match=words):
            check_tables(location, tables)
            source = Source.of_tables(tables, "people", domain, salt="")
            with closing(open_backend(location, domain, source=source)) as backend:
                backend.check()
