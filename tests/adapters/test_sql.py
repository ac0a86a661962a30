"""Statements count exactly what the core would count, on every type, rule and kind of bins."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from contextlib import closing
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import cycle, product
from pathlib import Path
from typing import Any, get_args

import duckdb
import numpy as np
import pytest

from blowfishdb.adapters.backends.duckdb import DuckDB
from blowfishdb.adapters.sql.source import Source
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.conditions import IsMissing, col
from blowfishdb.core.domain.dates import Date, Unit
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.domain.predicates import Predicate
from blowfishdb.core.errors import InvalidAttribute, InvalidInput, TooLarge
from blowfishdb.core.questions.projection import CellQuery
from tests.adapters.counting import counts, expected, filtered, query

RULES: list[dict[str, Any]] = [
    {"missing": missing, "outside": outside}
    for outside in ("drop", "clamp")
    for missing in ("value", "clamp", "drop", "none", "public")
]


class Database:
    """A DuckDB file that is filled once and then opened read-only, as a user's would be."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def fill(self, sql_type: str, values: Sequence[object], name: str = "v") -> None:
        self.fill_all({name: (sql_type, values)})

    def fill_all(self, columns: dict[str, tuple[str, Sequence[object]]], table: str = "t") -> None:
        def quoted(name: str) -> str:
            return '"' + name.replace('"', '""') + '"'

        with duckdb.connect(str(self.path)) as connection:
            declared = ", ".join(f"{quoted(name)} {sql_type}" for name, (sql_type, _) in columns.items())
            connection.execute(f"CREATE OR REPLACE TABLE {quoted(table)} ({declared})")
            lists = ", ".join(f"UNNEST(CAST(? AS {sql_type}[]))" for sql_type, _ in columns.values())
            values = [list(values) for _, values in columns.values()]
            connection.execute(f"INSERT INTO {quoted(table)} SELECT {lists}", values)

    def run(self, statement: str) -> None:
        with duckdb.connect(str(self.path)) as connection:
            connection.execute(statement)

    def stored(self) -> list[object]:
        """The values as the database returns them; texts that are numbers as numbers."""
        with duckdb.connect(str(self.path), read_only=True) as connection:
            text = connection.execute("DESCRIBE t").fetchall()[0][1] == "VARCHAR"
            rows = connection.execute(f"SELECT {'TRY_CAST(v AS DOUBLE)' if text else 'v'} FROM t").fetchall()
        return [row[0] for row in rows]

    def counts(self, asked: CellQuery, domain: Domain, source: Source | None = None) -> list[int]:
        with closing(DuckDB(self.path, domain, source)) as backend:
            return counts(backend, asked)

    def agrees(self, values: Sequence[object], *asked: Attribute | tuple[Attribute, Bins]) -> None:
        """Every declaration of the one column ``v`` gives the counts of the core."""
        pairs = [each if isinstance(each, tuple) else (each, each.bins()) for each in asked]
        domain = Domain.of({f"v{i}": attribute for i, (attribute, _) in enumerate(pairs)})
        view = Source.of_view(f"SELECT {', '.join(f'v AS v{i}' for i in range(len(pairs)))} FROM t")
        with closing(DuckDB(self.path, domain, view)) as backend:
            backend.check()
            for name, (attribute, bins) in zip(domain, pairs, strict=True):
                question = CellQuery((Axis(name, attribute, bins),))
                found = counts(backend, question)
                assert found == expected(question, domain, {name: values}), attribute


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(tmp_path / "data.duckdb")


# --- one column of every type -----------------------------------------------------------------


@pytest.mark.parametrize("sql_type", ["TINYINT", "INTEGER", "BIGINT", "UBIGINT", "HUGEINT"])
def test_whole_numbers(database: Database, sql_type: str) -> None:
    low = 0 if sql_type.startswith("U") else -20
    values = [None, *range(low, 40), 100, 127] * 2
    if sql_type in ("UBIGINT", "HUGEINT"):
        values += [2**64 - 1, 2**63]
    if sql_type == "HUGEINT":
        values += [-(2**127) + 1, 2**127 - 1]
    database.fill(sql_type, values)
    bounds = ((-7, 30), (-7, 30, 5), (3, 3), (-(2**30), 2**30, 2**20))
    database.agrees(values, *(Integer(*b, **rule) for b in bounds for rule in RULES))


@pytest.mark.parametrize("sql_type", ["FLOAT", "DOUBLE", "DECIMAL(9,3)", "DECIMAL(38,10)", "VARCHAR"])
def test_fractions_in_a_column_of_whole_numbers(database: Database, sql_type: str) -> None:
    values: list[object] = [
        None,
        -3.25,
        -0.5,
        -0.001,
        0.0,
        0.999,
        1.0,
        7.5,
        9.999,
        10.0,
        10.5,
        11.0,
        5000.125,
    ]
    if "DECIMAL" in sql_type:
        values = [None if v is None else Decimal(str(v)) for v in values]
    else:
        values += [math.nan, math.inf, -math.inf, 1e38]
    database.fill(sql_type, values)
    bounds = ((0, 10), (-2, 7, 3))
    database.agrees(database.stored(), *(Integer(*b, **rule) for b in bounds for rule in RULES))


@pytest.mark.parametrize("sql_type", ["DOUBLE", "FLOAT", "VARCHAR"])
def test_floats_on_a_grid_are_rounded_as_the_decimals_they_print_as(
    database: Database, sql_type: str
) -> None:
    rng = random.Random(7)
    halves = [k / 100 for k in range(-55, 325)]  # every half point of a grid of 0.1, and its neighbours
    near = [math.nextafter(v, d) for v in halves for d in (-math.inf, math.inf)]
    values = [*halves, *near, *(rng.uniform(-1, 4) for _ in range(300)), 0.1 + 0.2, 5e-324, -5e-324, -0.0]
    values += [None, math.nan, math.inf, -math.inf, 1e38, -1e38]
    database.fill(sql_type, values)
    grids = ((0, 3, "0.1"), ("-0.3", "0.3", "0.02"), (0, "2.25", "0.25"), ("0.005", "3.005", "0.01"))
    database.agrees(database.stored(), *(Real(*grid, **rule) for grid in grids for rule in RULES[:3]))


def test_float_grids_at_many_magnitudes(database: Database) -> None:
    rng = random.Random(11)
    for scale in (-3, 0, 2, 5, 8, 11):
        grid = Fraction(10) ** -scale * rng.choice((1, 2, 5, 25))
        lo = -300 * grid
        halves = [float(lo + (k + Fraction(1, 2)) * grid) for k in range(-3, 1004)]
        values = [*halves, *(math.nextafter(v, d) for v in halves[::7] for d in (-math.inf, math.inf))]
        values += [rng.uniform(float(lo), float(lo + 1000 * grid)) for _ in range(200)]
        database.fill("DOUBLE", values)
        database.agrees(values, Real(lo, lo + 1000 * grid, grid, outside="drop"))


@pytest.mark.parametrize("sql_type", ["DECIMAL(4,1)", "DECIMAL(18,3)", "DECIMAL(38,10)", "BIGINT"])
def test_decimals_on_a_grid(database: Database, sql_type: str) -> None:
    values: list[object] = [
        None,
        *(Decimal(k) / 10 for k in range(-60, 200)),
        Decimal("999.9"),
        Decimal("-999.9"),
    ]
    if sql_type == "BIGINT":
        values = [None, *range(-20, 40), 10**18, -(10**18)]
    if sql_type.endswith(("3)", "10)")):
        values += [
            Decimal("0.049"),
            Decimal("0.050"),
            Decimal("0.051"),
            Decimal("1.449"),
            Decimal("123456.789"),
        ]
    if sql_type.endswith("10)"):
        values += [Decimal("0.0499999999"), Decimal("9" * 28), -Decimal("9" * 28)]
    database.fill(sql_type, values)
    grids = ((0, 3, "0.1"), ("-2.5", 10, "0.5"), ("0.25", "10.25", 2))
    database.agrees(database.stored(), *(Real(*grid, **rule) for grid in grids for rule in RULES))


@pytest.mark.parametrize("sql_type", ["BOOLEAN", "TINYINT", "DOUBLE", "DECIMAL(5,1)"])
def test_booleans(database: Database, sql_type: str) -> None:
    values: list[object] = [True, False, None, True]
    if sql_type != "BOOLEAN":
        values = [0, 1, 1, None, -1, 2, 5, -3]
    if sql_type in ("DOUBLE", "DECIMAL(5,1)"):
        values += [0.5, -0.5, 1.5]
    if sql_type == "DOUBLE":
        values += [math.nan, math.inf]
    database.fill(sql_type, values)
    database.agrees(database.stored(), *(Boolean(**rule) for rule in RULES))


@pytest.mark.parametrize("sql_type", ["DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "VARCHAR"])
def test_dates(database: Database, sql_type: str) -> None:
    start = datetime(2023, 12, 30, 22, 59, 58)
    steps = [timedelta(seconds=k) for k in range(0, 200_000, 4_999)]
    moments = [start + step + timedelta(microseconds=999_999) for step in steps]
    moments += [
        datetime(1, 1, 1),
        datetime(1969, 12, 31, 23, 59, 59, 500_000),
        datetime(9999, 12, 31, 23, 59, 59),
    ]
    moments += [datetime(2023, 12, 31), datetime(2024, 1, 1, 23, 59, 59), datetime(2024, 1, 2)]
    if sql_type in ("TIMESTAMP_S", "TIMESTAMP_MS"):  # DuckDB rounds when it stores; the test is about reading
        moments = [moment.replace(microsecond=0) for moment in moments]
    values: list[object] = [None, *(moment.date() if sql_type == "DATE" else moment for moment in moments)]
    database.fill(sql_type, [None if value is None else str(value) for value in values])
    bounds = (("2023-12-31", "2024-01-01"), (datetime(2023, 12, 31, 1), datetime(2024, 1, 1, 12, 0, 7)))
    declared = [Date(*b, unit, **rule) for b in bounds for unit in get_args(Unit) for rule in RULES[:4]]
    database.agrees(values, *((each, each.bins(30 if each.value_count > 50 else None)) for each in declared))


def test_nanoseconds_and_infinities_of_time(database: Database) -> None:
    database.run("""CREATE TABLE t AS SELECT CAST(x AS TIMESTAMP_NS) AS v FROM (VALUES
        ('2024-01-01 23:59:59.999999999'), ('1969-12-31 23:59:59.9999999'), ('2024-01-02 00:00:00'),
        ('infinity'), ('-infinity'), (NULL)) AS made(x)""")
    day = Date("1969-12-31", "2024-01-03", "day", missing="drop", outside="drop")
    asked = query(Domain(v=day), v=day.bins(edges=["1969-12-31", "1970-01-01", "2024-01-01", "2024-01-02"]))
    assert database.counts(asked, Domain(v=day)) == [1, 0, 1, 1]
    database.run("CREATE OR REPLACE TABLE t AS SELECT CAST(v AS TIMESTAMP) AS v FROM t WHERE NOT isfinite(v)")
    clamped = Date("2000-01-01", "2000-01-02", "hour")
    asked = query(Domain(v=clamped), v={"count": 2})
    assert database.counts(asked, Domain(v=clamped)) == [1, 1]
    database.run("CREATE OR REPLACE TABLE t AS SELECT CAST('5881580-07-10' AS DATE) AS v")
    assert database.counts(asked, Domain(v=clamped)) == [0, 1]


NASTY = [
    "plain", "o'brien", '"; DROP TABLE t; --', "'; DROP TABLE t; --", "\\", "\\'", "%s", "?", ":x", "$1",
    "{}", "naïve", "日本", "😀", "tab\there", "new\nline", "", " ", "NULL", "null", "x" * 300, "/* c */",
    "--", "a\x00b", "Plain",
]  # fmt: skip


@pytest.mark.parametrize("sql_type", ["VARCHAR", "ENUM"])
def test_categories(database: Database, sql_type: str) -> None:
    values = random.Random(3).choices([*NASTY, None], k=400)
    if sql_type == "ENUM":
        names = ", ".join("'" + name.replace("'", "''") + "'" for name in NASTY)
        sql_type = f"ENUM({names})"
    database.fill(sql_type, values)
    lists = (NASTY[:5], NASTY[:-2])
    database.agrees(values, *(Category(listed, **rule) for listed in lists for rule in RULES))


@pytest.mark.parametrize("sql_type", ["INTEGER", "HUGEINT", "DOUBLE", "DECIMAL(12,0)"])
def test_categories_of_whole_numbers(database: Database, sql_type: str) -> None:
    values: list[object] = [None, *range(-3, 60)] * 2
    if sql_type == "DOUBLE":
        values += [math.nan, 1.5, math.inf, 7.0]
    database.fill(sql_type, values)
    lists = ([3, 1, 7], [*range(50, 0, -2)])
    database.agrees(database.stored(), *(Category(listed, **rule) for listed in lists for rule in RULES))


def test_texts_that_are_numbers(database: Database) -> None:
    database.fill("VARCHAR", ["1", " 2 ", "2.5", "x", "1e300", "NaN", None, ""])
    domain = Domain(v=Category([1, 2], missing="value", outside="drop"))
    assert database.counts(query(domain, v={}), domain) == [1, 1, 4]  # x, NaN, NULL and '' are missing
    domain = Domain(v=Integer(0, 3, missing="value"))
    assert database.counts(query(domain, v={}), domain) == [0, 1, 2, 1, 4]
    domain = Domain(v=Boolean(missing="value"))
    assert database.counts(query(domain, v={}), domain)[1] >= 1


# --- bins -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [30, 5_000, 10**6, 10**12])
def test_unequal_bins(database: Database, size: int) -> None:
    rng = np.random.default_rng(size)
    values = [int(v) for v in rng.integers(0, size + 9, 500)] + [
        int(v) for v in np.exp(rng.uniform(0, 13, 300))
    ]
    database.fill("BIGINT", [*values, None])
    asked: list[tuple[Attribute, Bins]] = []
    for attribute, bins in product(
        (Integer(5, 4 + size), Integer(5, 4 + size, missing="value")), (1, 2, 16, 17, 200)
    ):
        crowded = np.exp(np.linspace(0, math.log(size - 1), bins)).astype(np.int64)
        spread = rng.integers(1, size, bins - 1)
        for starts in (crowded, spread, spread // 3 * 3):
            cut = np.unique(np.concatenate([[0], starts, [size] if attribute.has_missing_cell else []]))
            asked.append((attribute, Bins.edges(attribute.size, cut.astype(np.int64))))
    database.agrees([*values, None], *asked)


@pytest.mark.parametrize("size", [12, 900, 60_000])
def test_labelled_bins(database: Database, size: int) -> None:
    rng = np.random.default_rng(size)
    labels = np.repeat(rng.integers(0, 7, size // 3), 3)
    labels[:7] = np.arange(7)
    attribute = Integer(0, size - 1, missing="value")
    values = [int(v) for v in rng.integers(-3, size + 5, 800)] + [None]
    database.fill("INTEGER", values)
    database.agrees(values, (attribute, Bins.labels(np.append(labels, 7))))


def test_groups_of_categories(database: Database) -> None:
    values = [f"c{k}" for k in range(40)]
    attribute = Category(values, missing="value")
    groups = {"even": values[::2], "odd": values[1::2]}
    rows = [*values, *values[:7], None, "other"]
    database.fill("VARCHAR", rows)
    database.agrees(rows, (attribute, attribute.bins(groups=groups)))


def test_two_and_three_axes(database: Database) -> None:
    rng = random.Random(5)
    rows = 2_000
    columns: dict[str, tuple[str, list[object]]] = {
        "age": ("INTEGER", [rng.choice([None, *range(-5, 130)]) for _ in range(rows)]),
        "pay": ("DOUBLE", [rng.choice([None, math.nan, rng.uniform(-1e4, 3e5)]) for _ in range(rows)]),
        "town": ("VARCHAR", [rng.choice([None, "a", "b", "c", "zz"]) for _ in range(rows)]),
    }
    database.fill_all(columns)
    domain = Domain(
        age=Integer(0, 120, missing="value"),
        pay=Real(0, 200_000, "0.01", outside="drop"),
        town=Category(["a", "b", "c"], missing="value"),
    )
    data = {name: values for name, (_, values) in columns.items()}
    pay_edges = Bins.edges(
        domain["pay"].size, np.unique(np.append(0, np.random.default_rng(1).integers(1, 2e7, 40)))
    )
    for asked in (
        query(domain, age={"width": 10}, pay=pay_edges),
        query(domain, pay=pay_edges, town={}),
        query(domain, town={}, age={"edges": [0, 18, 65]}, pay={"count": 7}),
        query(domain),
    ):
        assert database.counts(asked, domain) == expected(asked, domain, data)


def test_too_many_boxes_are_refused(database: Database) -> None:
    database.fill("BIGINT", [1])
    domain = Domain(v=Integer(0, 10**9))
    with pytest.raises(TooLarge):
        database.counts(query(domain, v={}), domain)


# --- conditions -------------------------------------------------------------------------------

PREDICATES: list[Predicate] = [
    col("n") >= 30,
    ~(col("n") >= 30),
    col("n") > 1000,
    ~(col("n") > 1000),
    col("n") != 7,
    col("n").between(-50, 20) | col("n").isin([33, 35, 36]),
    col("c") == "b",
    ~col("c").isin(["a", "o'x"]),
    col("c") > "a",
    col("n").is_missing(),
    ~col("n").is_missing() & ~(col("b") == True),  # noqa: E712
    (col("n") >= 10) | col("c").is_missing() | ~(col("r") < 1),
    ~((col("n") >= 10) & (col("c") == "a")),
    col("r") >= 0.5,
    col("d") >= "2024-01-05",
    (col("d") < "2024-01-03") & ~(col("r").between(0.2, 0.8) & (col("n") < 40)),
    ~~(col("c") == "a") & (col("b") == False),  # noqa: E712
]


def askable(domain: Domain) -> list[Predicate]:
    """Who has no value can be asked only where missing values have a cell."""
    lost = [atom for where in PREDICATES for atom in where.atoms() if isinstance(atom, IsMissing)]
    assert lost
    return [
        where
        for where in PREDICATES
        if all(domain[a.column].has_missing_cell for a in where.atoms() if isinstance(a, IsMissing))
    ]


@pytest.mark.parametrize("rules", RULES, ids=lambda rule: "-".join(rule.values()))
def test_conditions_are_about_encoded_values(database: Database, rules: dict[str, Any]) -> None:
    rng = random.Random(9)
    rows = 600

    def column(*choices: object) -> list[object]:
        return rng.choices([None, *choices], k=rows)

    columns: dict[str, tuple[str, list[object]]] = {
        "n": ("INTEGER", column(*range(-60, 80))),
        "c": ("VARCHAR", column("a", "o'x", "b", "unlisted")),
        "r": ("DOUBLE", column(math.nan, 0.05, 0.15, 0.449, 0.45, 0.5, 0.55, 0.8, 0.85, 7.0, -7.0)),
        "d": ("DATE", column(*(date(2024, 1, 1) + timedelta(days=k) for k in range(-3, 12)))),
        "b": ("BOOLEAN", column(True, False)),
    }
    database.fill_all(columns)
    domain = Domain(
        n=Integer(-50, 50, **rules),
        c=Category(["a", "o'x", "b"], ordered=True, **rules),
        r=Real(0, 2, "0.1", **rules),
        d=Date("2024-01-01", "2024-01-08", **rules),
        b=Boolean(**rules),
    )
    data = {name: values for name, (_, values) in columns.items()}
    with closing(DuckDB(database.path, domain)) as backend:
        for where, bins in zip(
            askable(domain), cycle(({"d": {}}, {"n": {"count": 4}, "c": {}}, {"b": {}})), strict=False
        ):
            asked = query(domain, **bins)
            found = filtered(backend, asked, domain, where)
            assert found == expected(asked, domain, data, where), str(where)


# --- names, views, refusals -------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "select",
        "we ird",
        'qu"ote',
        "semi;colon",
        "--",
        "日本語",
        "😀",
        "k0",
        "cells",
        "src",
        "n",
        "c0",
        "m0",
        "v1",
        "a.b",
        "'",
        "*",
    ],
)
def test_any_column_and_table_name(database: Database, name: str) -> None:
    domain = Domain.of({name: Integer(0, 3), "other": Category([str(k) for k in range(20)])})
    data = {name: [0, 1, 1, 3], "other": ["1", "2", "2", None]}
    database.fill_all({name: ("INTEGER", data[name]), "other": ("VARCHAR", data["other"])}, table=name)
    axes = (
        Axis(name, domain[name], domain[name].bins()),
        Axis("other", domain["other"], domain["other"].bins()),
    )
    asked = CellQuery(axes)
    assert database.counts(asked, domain, Source.of_table(name)) == expected(asked, domain, data)


@pytest.mark.parametrize("view", [False, True])
def test_names_of_the_maps_are_reserved(view: bool) -> None:
    with pytest.raises(InvalidInput, match="reserved"):
        _ = Source.of_view("SELECT * FROM __Blowfish_v0") if view else Source.of_table("__blowfish_m3")


def test_a_view_may_select_convert_and_join(database: Database) -> None:
    database.run("CREATE TABLE people AS SELECT range AS id, range % 3 AS town FROM range(9)")
    database.run("CREATE TABLE towns AS SELECT range AS id, 'town ' || range AS name FROM range(3)")
    domain = Domain(name=Category(["town 0", "town 1", "town 2"]))
    view = Source.of_view("SELECT t.name FROM people AS p JOIN towns AS t ON p.town = t.id WHERE p.id > 0")
    assert database.counts(query(domain, name={}), domain, view) == [2, 3, 3]


@pytest.mark.parametrize(
    "view",
    [
        "SELECT COUNT(*) AS v FROM t", "SELECT v FROM t GROUP BY v", "SELECT DISTINCT v FROM t",
        "SELECT v FROM t LIMIT 5", "SELECT ROW_NUMBER() OVER () AS v FROM t", "SELECT random() AS v FROM t",
        "SELECT v FROM t EXCEPT SELECT v FROM u",
        "SELECT v FROM t UNION SELECT v FROM u", "SELECT a.v FROM t AS a, t AS b",
        "SELECT v FROM t USING SAMPLE 10", "SELECT v FROM t AS a JOIN (SELECT v FROM T) AS b USING (v)",
        "DROP TABLE t", "SELECT 1; SELECT 2", "INSERT INTO t VALUES (1)", "not sql at all (", "",
        "SELECT (SELECT MAX(v) FROM u) AS v FROM t", "WITH x AS (DELETE FROM t RETURNING v) SELECT v FROM x",
    ],
)  # fmt: skip
def test_a_view_that_mixes_people_is_refused(view: str) -> None:
    with pytest.raises(InvalidInput):
        Source.of_view(view)


@pytest.mark.parametrize(
    ("sql_type", "attribute"),
    [
        ("DATE", Integer(0, 9)), ("BOOLEAN", Real(0, 1, 1)), ("INTEGER", Date("2024-01-01", "2024-01-02")),
        ("INTEGER", Category(["a"])), ("DATE", Boolean()), ("TIMESTAMPTZ", Date("2024-01-01", "2024-01-02")),
        ("DATE", Category([1])), ("DECIMAL(5,2)", Category([1])), ("BLOB", Integer(0, 9)),
        ("INTEGER[]", Integer(0, 9)), ("UHUGEINT", Integer(0, 9)), ("JSON", Category(["a"])),
        ("DOUBLE", Real(0, 1, "1/3")), ("DOUBLE", Real(0, 1, "1e-16")), ("DOUBLE", Integer(0, 2**60, 2**50)),
        ("BIGINT", Integer(0, 2**80, 2**60)),
    ],
)  # fmt: skip
def test_a_declaration_that_does_not_fit_the_type_is_refused(
    database: Database, sql_type: str, attribute: Attribute
) -> None:
    database.run(f"CREATE TABLE t (v {sql_type})")
    with pytest.raises(InvalidAttribute):
        database.counts(query(Domain(v=attribute), v={"count": 1}), Domain(v=attribute))
