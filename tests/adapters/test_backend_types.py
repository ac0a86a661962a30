"""Every type of every database is counted as the core would count it, whatever the values and names are."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from contextlib import closing
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.conditions import col
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.errors import InvalidAttribute
from blowfishdb.core.questions.projection import CellQuery
from tests.adapters.counting import counts, expected, filtered, query
from tests.adapters.places import Columns, Place, PostgresSchema, SqliteFile, single
from tests.postgres import Server

RULES = [
    {"missing": "value", "outside": "drop"},
    {"missing": "clamp", "outside": "clamp"},
    {"missing": "drop", "outside": "drop"},
    {"missing": "drop", "outside": "clamp"},
]
Asked = Attribute | tuple[Attribute, Bins]


def agrees(place: Place, sql_type: str, values: Sequence[object], *asked: Asked) -> None:
    """Copies of one column, each declared in its own way, give the counts of the core."""
    chosen = asked[:: max(1, len(asked) // 3)] if place.slow else asked
    pairs = [each if isinstance(each, tuple) else (each, each.bins()) for each in chosen]
    domain = Domain.of({f"v{i}": attribute for i, (attribute, _) in enumerate(pairs)})
    with closing(place.make(dict.fromkeys(domain, (sql_type, values)), domain)) as backend:
        backend.check()
        for name, (attribute, bins) in zip(domain, pairs, strict=True):
            question = CellQuery((Axis(name, attribute, bins),))
            found = counts(backend, question)
            assert found == expected(question, domain, {name: values}), attribute


@pytest.mark.parametrize("sql_type", ["SMALLINT", "BIGINT"])
def test_whole_numbers(database: Place, sql_type: str) -> None:
    values = [None, *range(-20, 40), 100, 127] * 2 + (
        [2**62, -(2**63), 2**63 - 1] if "BIG" in sql_type else []
    )
    bounds = ((-7, 30), (-7, 30, 5), (3, 3), (-(2**30), 2**30, 2**20), (-(2**61), 2**61, 2**52))
    ways = [Integer(*b, **rule) for b in bounds for rule in RULES]  # type: ignore[arg-type]
    agrees(database, sql_type, values, *ways, *(Real("-2.5", 10, "0.5", **rule) for rule in RULES))  # type: ignore[arg-type]


@pytest.mark.parametrize("sql_type", ["DOUBLE", "FLOAT"])
def test_floats(database: Place, sql_type: str) -> None:
    rng = random.Random(7)
    halves = [k / 100 for k in range(-55, 325)]  # every half point of a grid of 0.1, and its neighbours
    values = [*halves, *(math.nextafter(v, d) for v in halves for d in (-math.inf, math.inf))]
    values += [*(rng.uniform(-1, 4) for _ in range(200)), 0.1 + 0.2, -0.0, 1e38, -1e38, math.inf, -math.inf]
    values += [math.nan] if sql_type == "FLOAT" else [math.nan, 5e-324, -5e-324, 1e300]
    kept = [single(v) for v in values] if sql_type == "FLOAT" else values
    if sql_type == "FLOAT":
        kept = [v for v in kept if v == 0 or abs(v) > 1e-30]
    grids = ((0, 3, "0.1"), ("-0.3", "0.3", "0.02"), (0, "2.25", "0.25"), ("0.005", "3.005", "0.01"))
    ways: list[Asked] = [Real(*grid, **rule) for grid in grids for rule in RULES[:2]]  # type: ignore[arg-type]
    ways += [Integer(0, 3, **rule) for rule in RULES]  # type: ignore[arg-type]
    ways += [Category([1, 3, 2], missing="value"), Boolean(missing="value", outside="drop"), Real(0, 4, 2)]
    agrees(database, sql_type, [*kept, None], *ways)


def test_floats_at_many_magnitudes(database: Place) -> None:
    rng = random.Random(11)
    attributes: dict[str, Attribute] = {}
    columns: dict[str, list[float]] = {}
    for scale in (-3, 2, 9, 11):
        grid = Fraction(10) ** -scale * rng.choice((1, 2, 5, 25))
        lo = -300 * grid
        halves = [float(lo + (k + Fraction(1, 2)) * grid) for k in range(-3, 1004)]
        columns[f"v{scale}"] = [
            *halves,
            *(math.nextafter(v, d) for v in halves for d in (-math.inf, math.inf)),
        ]
        attributes[f"v{scale}"] = Real(lo, lo + 1000 * grid, grid, outside="drop")
    domain = Domain.of(attributes)
    table: Columns = {name: ("DOUBLE", values) for name, values in columns.items()}
    with closing(database.make(table, domain)) as backend:
        for name in domain.names[-1:] if database.slow else domain:
            asked = query(domain, **{name: {}})
            assert counts(backend, asked) == expected(asked, domain, columns)


@pytest.mark.parametrize("sql_type", ["DECIMAL(9,3)", "DECIMAL(38,10)", "NUMERIC"])
def test_decimals(database: Place, sql_type: str) -> None:
    values: list[object] = [None, *(Decimal(k) / 10 for k in range(-60, 200)), Decimal("999.9")]
    values += [Decimal(text) for text in ("0.049", "0.050", "0.051", "1.449", "123456.789", "-99999.5")]
    if sql_type == "DECIMAL(38,10)" and database.dialect != "sqlite":
        values += [Decimal("0.0499999999"), Decimal("9" * 28), -Decimal("9" * 28)]
    if sql_type == "NUMERIC":
        if database.dialect != "postgres":
            pytest.skip("only PostgreSQL has decimals of any length")
        values += [
            Decimal("NaN"),
            Decimal("Infinity"),
            Decimal("-Infinity"),
            Decimal("1e-200"),
            Decimal(10) ** 90,
        ]
    grids = ((0, 3, "0.1"), ("-2.5", 10, "0.5"), ("0.25", "10.25", 2))
    ways = [Real(*grid, **rule) for grid in grids for rule in RULES]  # type: ignore[arg-type]
    agrees(database, sql_type, values, *ways, Integer(-3, 9, 2), Boolean(missing="value"))


def test_booleans(database: Place) -> None:
    agrees(database, "BOOLEAN", [True, False, None, True], *(Boolean(**rule) for rule in RULES))  # type: ignore[arg-type]


@pytest.mark.parametrize("sql_type", ["DATE", "TIMESTAMP"])
def test_dates(database: Place, sql_type: str) -> None:
    start = datetime(2023, 12, 30, 22, 59, 58)
    moments = [start + timedelta(seconds=k, microseconds=999_999) for k in range(0, 200_000, 4_999)]
    moments += [
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 500_000),
        datetime(9999, 12, 31, 23, 59, 59),
    ]
    moments += [
        datetime(2023, 12, 31),
        datetime(2024, 1, 1, 23, 59, 59),
        datetime(2024, 1, 2),
        datetime(2000, 2, 29),
    ]
    values: list[object] = [None, *(moment.date() if sql_type == "DATE" else moment for moment in moments)]
    bounds = (("2023-12-31", "2024-01-01"), (datetime(2023, 12, 31, 1), datetime(2024, 1, 1, 12, 0, 7)))
    ways = [
        Date(*b, unit, **rule) for unit in ("hour", "week", "second") for b in bounds for rule in RULES[:2]
    ]  # type: ignore[arg-type]
    agrees(
        database,
        sql_type,
        values,
        *((each, each.bins(30 if each.value_count > 50 else None)) for each in ways),
    )


def test_infinite_dates(postgres: Server) -> None:
    day, hour = Date("2020-01-01", "2020-01-02"), Date("2020-01-01", "2020-01-02", "hour", outside="drop")
    domain = Domain(d=day, t=day, u=hour, e=hour)
    made = PostgresSchema(postgres)
    values = ["infinity", "-infinity", "2020-01-02"]
    columns = {
        "d": ("DATE", values),
        "t": ("TIMESTAMP", values),
        "u": ("TIMESTAMP", values),
        "e": ("DATE", values),
    }
    with closing(made.make(columns, domain)) as backend:  # type: ignore[arg-type]
        for name, some in (("d", [1, 2]), ("t", [1, 2]), ("u", [1]), ("e", [1])):
            assert [n for n in counts(backend, query(domain, **{name: {}})) if n] == some


NASTY = [
    "plain", "o'brien", '"; DROP TABLE people; --', "'; DROP TABLE people; --", "\\", "\\'", "%s", "%(x)s",
    "?", ":x", "$1", "${x}", "{}", "naïve", "日本", "😀", "tab\there", "new\nline", "", " ", "a ", "a",
    "NULL", "null",
    "x" * 300, "/* c */", "--", "Plain", "$$x$$", "é", "e\u0301",
]  # fmt: skip


def test_texts(database: Place) -> None:
    values = random.Random(3).choices([*NASTY, None], k=400)
    lists = (NASTY[:5], NASTY[5:20], NASTY[:-2])
    agrees(database, "VARCHAR", values, *(Category(listed, **rule) for listed in lists for rule in RULES))  # type: ignore[arg-type]


NAMES = [
    "order",
    'say "hi"',
    "o'clock",
    "日本 😀",
    "a.b",
    "back`tick",
    "semi;--",
    "%s",
    ":x",
    "group",
    "c0",
    "n",
    "k0",
]


def test_any_name_of_a_column(database: Place) -> None:
    beyond = database.dialect == "mysql"  # whose names have no characters after the first 65,536
    names = [name for name in NAMES if max(name) < "\U00010000"] if beyond else NAMES
    domain = Domain.of({name: Integer(0, 3) for name in names})
    values = [0, 1, 1, 3]
    with closing(database.make(dict.fromkeys(names, ("INTEGER", values)), domain)) as backend:
        backend.check()
        for start in range(0, len(names), 3):
            asked = query(domain, **{name: {} for name in names[start : start + 3]})
            assert counts(backend, asked) == expected(asked, domain, dict.fromkeys(names, values))


@pytest.mark.parametrize("size", [5_000, 10**12])
def test_unequal_bins_and_groups(database: Place, size: int) -> None:
    rng = np.random.default_rng(size)
    values = [int(v) for v in rng.integers(0, size + 9, 500)]
    values += [int(v) for v in np.exp(rng.uniform(0, 13, 300))]
    asked: list[Asked] = []
    for attribute in (Integer(5, 4 + size), Integer(5, 4 + size, missing="value")):
        for bins in (200, 17, 2):
            crowded = np.exp(np.linspace(0, math.log(size - 1), bins)).astype(np.int64)
            for starts in (crowded, rng.integers(1, size, bins - 1)):
                cut = np.unique(np.concatenate([[0], starts, [size] if attribute.has_missing_cell else []]))
                asked.append((attribute, Bins.edges(attribute.size, cut.astype(np.int64))))
    agrees(database, "BIGINT", [*values, None], *asked)


def test_groups_of_categories_on_two_axes(database: Place) -> None:
    listed = [f"c{k}" for k in range(40)]
    town = Category(listed, missing="value")
    domain = Domain(town=town, age=Integer(0, 99, missing="value"))
    rng = random.Random(4)
    columns = {
        "town": ("VARCHAR", rng.choices([*listed, None, "other"], k=300)),
        "age": ("INTEGER", rng.choices([None, *range(-4, 120)], k=300)),
    }
    groups = town.bins(groups={"even": listed[::2], "odd": listed[1::2]})
    asked, where = query(domain, town=groups, age={"edges": [0, 18, 67]}), ~(col("age") == 7)
    with closing(database.make(columns, domain)) as backend:  # type: ignore[arg-type]
        found = filtered(backend, asked, domain, where)
    assert found == expected(asked, domain, {name: values for name, (_, values) in columns.items()}, where)


@pytest.mark.parametrize(
    ("sql_type", "attribute"),
    [
        ("VARCHAR", Integer(0, 9)), ("VARCHAR", Boolean()), ("VARCHAR", Date("2020-01-01", "2020-01-02")),
        ("TIMESTAMPTZ", Date("2020-01-01", "2020-01-02")), ("INTEGER", Category(["a"])), ("DATE", Boolean()),
        ("VARCHAR", Category(["a\x00b"])), ("VARCHAR", Category(["\ud800"])), ("UUID", Integer(0, 9)),
        ("TIMESTAMP", Integer(0, 9)),
    ],
)  # fmt: skip
def test_what_cannot_be_read_safely_is_refused(postgres: Server, sql_type: str, attribute: Attribute) -> None:
    domain = Domain(v=attribute)
    backend = PostgresSchema(postgres).make({"v": (sql_type, [])}, domain)
    with closing(backend), pytest.raises(InvalidAttribute):
        backend.check()


def test_a_value_of_another_type_than_its_column_is_missing_in_sqlite(tmp_path: Path) -> None:
    dates = [
        "2020-01-01",
        "2020-02-30",
        "2020-01-01 25:00:00",
        "now",
        "2020-01-02T03:04:05.678",
    ]
    dates += ["2451545", 2451545, "2020-01-02 03:04:05+01:00", "2020-1-2", b"2020-01-01", "", None]
    values = [1, "1", "x", 2.5, None, b"1", 1e300, -1, 0, 1, 1, 1]
    domain = Domain(
        i=Integer(0, 3, missing="value"),
        f=Real(0, 3, "0.5", missing="value"),
        any=Integer(0, 3, missing="value"),
        d=Date("2020-01-01", "2020-01-03", missing="value"),
        t=Date("2020-01-01", "2020-01-03", "hour", missing="value"),
    )
    columns = {"i": ("INTEGER", values), "f": ("REAL", values), "any": ("", values)}
    columns |= {"d": ("DATE", dates), "t": ("TEXT", dates)}
    with closing(SqliteFile(tmp_path).make(columns, domain)) as backend:  # type: ignore[arg-type]
        backend.check()
        found = {name: counts(backend, query(domain, **{name: {}})) for name in domain}
    # "1" becomes a number in a column that is declared as one, as SQLite has it
    assert found["i"] == [2, 5, 1, 1, 3]
    assert found["f"] == [2, 0, 5, 0, 0, 1, 1, 3]
    assert found["any"] == [2, 4, 1, 1, 4]
    assert found["d"] == [1, 1, 0, 10]
    assert [found["t"][0], found["t"][27], found["t"][-1]] == [1, 1, 10]


def test_an_empty_table(database: Place) -> None:
    domain = Domain(v=Integer(0, 9), since=Date(date(2020, 1, 1), date(2020, 1, 2)))
    with closing(database.make({"v": ("INTEGER", []), "since": ("DATE", [])}, domain)) as backend:
        assert counts(backend, query(domain, v={})) == [0] * 10
        assert counts(backend, CellQuery(())) == [0]
