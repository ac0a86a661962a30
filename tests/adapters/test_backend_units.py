"""Rows per person: at most m of each, chosen by key and before any filter, the same ones everywhere."""

from __future__ import annotations

import hashlib
import random
from contextlib import closing
from pathlib import Path

import pytest

from blowfishdb.adapters.backends import open_backend
from blowfishdb.adapters.sql.source import Source, Unit
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import InvalidInput, UnknownColumn
from tests.adapters.counting import counts, expected, filtered, query
from tests.adapters.places import (
    Columns,
    DuckFile,
    MariaDatabase,
    Place,
    PostgresSchema,
    SparkFolder,
    SqliteFile,
)

DOMAIN = Domain(v=Integer(0, 19), w=Integer(0, 9))
Rows = list[tuple[int | None, object, int, int]]


def visits(*, text_keys: bool = False) -> Rows:
    """Person, key, value, value; some without a person, some persons with many rows."""
    rng = random.Random(5)
    people = [rng.choice([None, *range(12), *([3] * 9)]) for _ in range(200)]
    keys = rng.sample(range(10**6), 200)
    return [
        (person, f"k-{key}-ü" if text_keys else key, rng.randrange(20), rng.randrange(10))
        for person, key in zip(people, keys, strict=True)
    ]


def table(rows: Rows, key_type: str = "BIGINT") -> Columns:
    names = (("person", "INTEGER"), ("key", key_type), ("v", "INTEGER"), ("w", "INTEGER"))
    return {name: (sql_type, [row[i] for row in rows]) for i, (name, sql_type) in enumerate(names)}


def kept(rows: Rows, unit: Unit) -> Rows:
    """The rows that count, one person after the other."""
    chosen: Rows = []
    for person in {row[0] for row in rows} - {None}:
        own = [row for row in rows if row[0] == person]
        if unit.key is None:
            chosen += own if len(own) <= unit.rows else []
            continue
        own.sort(key=lambda row: hashlib.md5(f"{unit.salt}:{row[1]}".encode()).hexdigest())
        chosen += own[: unit.rows]
    return chosen


UNITS = [
    Unit("person", 1, "key", "s1"),
    Unit("person", 3, "key", "another salt"),
    Unit("person", 10, None),
    Unit("person", 1000, "key"),
]


@pytest.mark.parametrize("key_type", ["BIGINT", "VARCHAR"])
def test_the_same_rows_count_everywhere(database: Place, key_type: str) -> None:
    rows = visits(text_keys=key_type == "VARCHAR")
    columns = table(rows, key_type)
    database.make(columns, DOMAIN).close()
    for unit in UNITS[1:2] if database.slow else UNITS:
        chosen = {name: [row[i] for row in kept(rows, unit)] for i, name in ((2, "v"), (3, "w"))}
        source = Source.of_table("people", unit=unit)
        with closing(open_backend(_address(database), DOMAIN, source=source)) as backend:
            backend.check()
            asked, where = query(DOMAIN, v={}), col("w") >= 5
            assert filtered(backend, asked, DOMAIN, where) == expected(asked, DOMAIN, chosen, where)
            assert sum(counts(backend, query(DOMAIN, w={}))) == len(chosen["v"])


def _address(place: Place) -> str:
    if isinstance(place, PostgresSchema):
        return place.server.url(place.schema)
    if isinstance(place, MariaDatabase):
        return place.server.url(place.database)
    assert isinstance(place, (DuckFile, SqliteFile, SparkFolder))
    return f"spark-local://{place.path}" if isinstance(place, SparkFolder) else str(place.path)


def test_values_never_decide_which_rows_count(tmp_path: Path) -> None:
    """The same keys stay when every value changes; ordered by value, other rows would be kept."""
    rows = visits()
    unit = UNITS[0]
    found = []
    for name, changed in (("a", rows), ("b", [(p, k, 19 - v, w) for p, k, v, w in rows])):
        (tmp_path / name).mkdir()
        with closing(
            SqliteFile(tmp_path / name).make(table(changed), DOMAIN, Source.of_table("people", unit=unit))
        ) as b:
            found.append(counts(b, query(DOMAIN, v={})))
    assert found[0] == found[1][::-1]
    assert sum(found[0]) == len({row[0] for row in rows} - {None})


def test_a_row_without_a_key_never_counts(database: Place) -> None:
    if database.slow:
        pytest.skip("the statement is the same")
    rows: Rows = [(1, None, 3, 0), (1, None, 4, 0), (1, 7, 5, 0), (2, None, 6, 0)]
    source = Source.of_table("people", unit=Unit("person", 2, "key"))
    with closing(database.make(table(rows), DOMAIN, source)) as backend:
        assert counts(backend, query(DOMAIN, v={})) == [int(cell == 5) for cell in range(20)]


def test_units_are_checked(tmp_path: Path) -> None:
    for wrong in (
        {"person": ""}, {"rows": 0}, {"rows": True}, {"rows": 1.5}, {"key": ""}, {"key": "person"},
        {"salt": "o'brien"}, {"salt": "\\"}, {"salt": "ü"},
    ):  # fmt: skip
        with pytest.raises(InvalidInput):
            Unit(**({"person": "person", "rows": 1, "key": None} | wrong))  # type: ignore[arg-type]
    place = SqliteFile(tmp_path)
    place.make(table(visits()), DOMAIN).close()
    columns = {
        "person": ("INTEGER", [1]),
        "v": ("INTEGER", [1]),
        "w": ("INTEGER", [1]),
        "day": ("DATE", [None]),
    }
    wrong_units = (
        (Unit("who", 1), UnknownColumn, "'who' for the person"),
        (Unit("person", 1, "day"), InvalidInput, "only whole numbers and texts"),
    )
    for unit, error, words in wrong_units:
        (tmp_path / unit.person).mkdir()
        made = SqliteFile(tmp_path / unit.person).make(columns, DOMAIN, Source.of_table("people", unit=unit))
        with closing(made), pytest.raises(error, match=words):
            made.check()
