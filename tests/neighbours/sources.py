"""Where the rows of a small world are put: a file or a table, written as people write them."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

from blowfishdb.core.domain.tables import Child, Lookup, Tables
from blowfishdb.core.domain.tables import People as Unit
from tests.neighbours.columns import Column, Junk
from tests.neighbours.rows import People, Rows

TABLE = "people"
FILTERED = f"SELECT * FROM {TABLE} WHERE a IS NOT NULL"
"""A view whose rows come and go with the values of a declared column."""


@dataclass(frozen=True)
class Place:
    """What kind of source it is; ``texts``: every column is one of texts; ``collation`` of its texts."""

    kind: str
    texts: bool = False
    collation: str = ""
    view: str = ""
    public: bool = False
    """Whether the column by which a view leaves out rows is said to be public."""
    filler: int = 0
    """So many rows more, all alike, in front of the others."""
    tables: bool = False
    """Whether rows are those of a table of visits, whose people are in another, and what the first column
    holds is looked up in a third. Not everybody is in the table of people, and of nothing there is a code
    that leads nowhere."""

    @property
    def holds_texts(self) -> bool:
        """Whether a number can be a text."""
        return self.texts or self.kind in ("csv", "sqlite")


@dataclass(frozen=True)
class Located:
    """A source as it is given to ``add_dataset``."""

    location: Any
    table: str | None


_TYPES = {
    "integer": "INTEGER",
    "wide": "BIGINT",
    "real": "DOUBLE PRECISION",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "category": "VARCHAR",
    "ordered": "VARCHAR",
}


def write(folder: Path, place: Place, columns: tuple[Column, ...], rows: Rows) -> Located:
    """Put the rows into ``folder``."""
    if place.tables:
        return _several(folder, columns, rows)
    if place.kind == "csv":
        return _csv(folder, place, columns, rows)
    if place.kind == "sqlite":
        return _sqlite(folder, place, columns, rows)
    if place.kind == "parquet":
        return _parquet(folder, place, columns, rows)
    return _duckdb(folder, place, columns, rows)


def header(columns: tuple[Column, ...]) -> list[str]:
    """The names of all columns of a table, declared or not."""
    return ["row_key", *(column.name for column in columns), "note", "person"]


def _lines(rows: Rows) -> Iterator[list[Any]]:
    for row in rows:
        yield [row.key, *row.held, row.note, row.person]


def _types(place: Place, columns: tuple[Column, ...]) -> list[str]:
    def of(column: Column) -> str:
        plain = "VARCHAR" if place.texts else _TYPES[column.kind]
        return f"{plain} COLLATE {place.collation}" if place.collation and plain == "VARCHAR" else plain

    return ["INTEGER", *map(of, columns), "VARCHAR", "INTEGER"]


def _text(held: Any) -> Any:
    if isinstance(held, Junk):
        return held.text
    if isinstance(held, bool):
        return "true" if held else "false"
    return held.isoformat() if isinstance(held, date) else held


def _csv(folder: Path, place: Place, columns: tuple[Column, ...], rows: Rows) -> Located:
    """The first declared column comes first, as in most files; the last one makes no two files alike."""
    path = folder / f"{TABLE}.csv"
    order = [*range(1, 1 + len(columns)), 0, len(columns) + 1, len(columns) + 2]
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow([*(header(columns)[at] for at in order), "world"])
        filler = [*(_text(column.value(0)) for column in columns), 0, "", 0]
        out.writerows([[*filler[: len(columns)], 1000 + n, "", 1000 + n, ""] for n in range(place.filler)])
        for line in _lines(rows):
            out.writerow([*("" if line[at] is None else _text(line[at]) for at in order), folder.name])
    return Located(path, None)


def _create(place: Place, columns: tuple[Column, ...]) -> str:
    declared = ", ".join(
        f"{name} {kind}" for name, kind in zip(header(columns), _types(place, columns), strict=True)
    )
    return f"CREATE TABLE {TABLE} ({declared})"


def _sqlite(folder: Path, place: Place, columns: tuple[Column, ...], rows: Rows) -> Located:
    path = folder / "data.sqlite"
    marks = ", ".join("?" * len(header(columns)))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(_create(place, columns))
        lines = [[_stored(held) for held in line] for line in _lines(rows)]
        connection.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", lines)
        connection.commit()
    return Located(path, TABLE)


def full_names(columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """The columns as they are called where there are several tables: the first is looked up."""
    names = (f"{'visits' if at else 'codes'}.{column.name}" for at, column in enumerate(columns))
    return tuple(replace(column, name=name) for column, name in zip(columns, names, strict=True))


def keyed_tables(people: People | None) -> Tables:
    """How they belong together, as ``add_dataset`` is told."""
    whose = people or People(1, keyed=True)
    key = "row_key" if whose.keyed else None
    return Tables(
        people=Unit("id"),
        visits=Child("people", by="person", key=key, rows_per_person=whose.rows),
        codes=Lookup("visits", by="code", key="code"),
    )


def _several(folder: Path, columns: tuple[Column, ...], rows: Rows) -> Located:
    path, first, *rest = folder / "data.sqlite", *columns
    known = [raw for raw, _ in first.raws(texts=True) if raw is not None]
    own = [column.name.partition(".")[2] for column in rest]
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE people (id INTEGER)")
        persons = sorted({row.person for row in rows} - {2, 90})
        connection.executemany("INSERT INTO people VALUES (?)", [(person,) for person in persons])
        held = f"{first.name.partition('.')[2]} {_TYPES[first.kind]}"
        connection.execute(f"CREATE TABLE codes (code INTEGER, {held})")
        codes = [(at, _stored(held)) for at, held in enumerate(known)]
        connection.executemany("INSERT INTO codes VALUES (?, ?)", codes)
        declared = "".join(f", {name} {_TYPES[each.kind]}" for name, each in zip(own, rest, strict=True))
        connection.execute(f"CREATE TABLE visits (row_key INTEGER, person INTEGER, code INTEGER{declared})")
        lines = [
            [row.key, row.person, _code(known, row.held[0]), *map(_stored, row.held[1:])] for row in rows
        ]
        marks = ", ".join("?" * (3 + len(rest)))
        connection.executemany(f"INSERT INTO visits VALUES ({marks})", lines)
        connection.commit()
    return Located(path, None)


def _code(known: list[Any], held: Any) -> int:
    """Of nothing there is a code, too; it leads nowhere."""
    same = (at for at, raw in enumerate(known) if raw == held and type(raw) is type(held))
    return next(same, -1)


def _stored(held: Any) -> Any:
    """SQLite has no booleans and no dates."""
    return int(held) if isinstance(held, bool) else _text(held)


def _literal(place: Place, held: Any) -> str:
    if held is None:
        return "NULL"
    if isinstance(held, str | Junk | date) or place.texts:
        return "'" + str(_text(held)).replace("'", "''") + "'"
    return str(held).lower() if isinstance(held, bool) else repr(held)


def insert(place: Place, columns: tuple[Column, ...], rows: Rows) -> str:
    """One statement for all rows."""
    numbers = (0, len(columns) + 2)
    plain = Place(place.kind)
    lines = [
        ", ".join(_literal(plain if at in numbers else place, held) for at, held in enumerate(line))
        for line in _lines(rows)
    ]
    return f"INSERT INTO {TABLE} VALUES {', '.join(f'({line})' for line in lines)}"


def create(place: Place, columns: tuple[Column, ...]) -> str:
    """The table, for databases of a server."""
    return _create(place, columns)


@cache
def _writer() -> duckdb.DuckDBPyConnection:
    """One DuckDB writes all databases: to start another takes ten times as long as to write one."""
    return duckdb.connect(config={"threads": 1})


@contextmanager
def _writing(
    place: Place, columns: tuple[Column, ...], rows: Rows, database: str
) -> Iterator[duckdb.DuckDBPyConnection]:
    """The rows in a database of their own, which is complete when it is let go."""
    writer = _writer()
    writer.execute(f"ATTACH '{database}' AS world")
    try:
        writer.execute("USE world")
        writer.execute(_create(place, columns))
        writer.execute(insert(place, columns, rows))
        yield writer
    finally:
        writer.execute("USE memory")
        writer.execute("DETACH world")


def _duckdb(folder: Path, place: Place, columns: tuple[Column, ...], rows: Rows) -> Located:
    path = folder / "data.duckdb"
    with _writing(place, columns, rows, str(path)):
        return Located(path, TABLE)


def _parquet(folder: Path, place: Place, columns: tuple[Column, ...], rows: Rows) -> Located:
    path = folder / f"{TABLE}.parquet"
    with _writing(place, columns, rows, ":memory:") as writer:
        writer.execute(f"COPY (SELECT *, '{folder.name}' AS world FROM {TABLE}) TO '{path}'")
    return Located(path, None)


def unit(people: People | None) -> dict[str, Any]:
    """Whose rows they are, as ``add_dataset`` is told."""
    if people is None:
        return {}
    told: dict[str, Any] = {"person": "person", "rows_per_person": people.rows}
    if people.keyed:
        told["row_key"] = "row_key"
    return {**told, **({people.told: "a"} if people.told else {})}
