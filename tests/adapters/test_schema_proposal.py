"""Proposals to the curator: fitting types, round limits outside the data, and no way here for an analyst."""

from __future__ import annotations

import ast
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blowfishdb.adapters.backends import open_backend
from blowfishdb.adapters.backends.duckdb import has_dialect
from blowfishdb.adapters.proposal import WARNING, Proposal, ProposedColumn, guesses, propose
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.errors import EmptyDomain, InvalidInput, SourceError, SourceMissing, UnknownColumn
from blowfishdb.core.policy import codec
from tests.adapters.conftest import _QUICK_START as QUICK_START
from tests.adapters.places import taken
from tests.postgres import Server

PACKAGE = Path(__file__).parents[2] / "src" / "blowfishdb"
ROWS = 200
COLUMNS = {
    "person": ("VARCHAR", [f"P{k:05d}" for k in range(ROWS)]),
    "visit_id": ("INTEGER", [k % 50 for k in range(ROWS)]),
    "age": ("INTEGER", [17 + k * 5 % 77 for k in range(ROWS)]),
    "salary": ("BIGINT", [12_345 + k // 2 * 8_600 for k in range(ROWS)]),
    "score": ("DOUBLE", [k % 60 / 4 - 3 for k in range(ROWS)]),
    "price": ("DECIMAL(10,2)", [f"{k % 90}.{k % 100:02d}" for k in range(ROWS)]),
    "region": ("VARCHAR", ["north", "south", "o'east", None] * (ROWS // 4)),
    "zip": ("VARCHAR", [f"0{2100 + k % 9}" for k in range(ROWS)]),
    "word": ("VARCHAR", [f"word {k % 150}" for k in range(ROWS)]),
    "born": ("DATE", [date(1950, 3, 9) + timedelta(days=97 * k) for k in range(ROWS)]),
    "seen": ("TIMESTAMP", [datetime(2024, 5, 2, 8) + timedelta(hours=k % 300) for k in range(ROWS)]),
    "smokes": ("BOOLEAN", [True, False, None, True] * (ROWS // 4)),
    "empty": ("INTEGER", [None] * ROWS),
}
EXPECTED = {
    "visit_id": Integer(0, 50),
    "age": Integer(10, 100),
    "salary": Integer(0, 900_000),
    "score": Real(-4, 12, "0.01"),
    "price": Real(0, 90, "0.01"),
    "region": Category(["north", "o'east", "south"], missing="value"),
    "zip": Category([f"0{2100 + k}" for k in range(9)], missing="none"),
    "born": Date("1950-01-01", "2003-12-31"),
    "seen": Date("2024-05-01", "2024-05-31", "hour"),
    "smokes": Boolean(missing="value"),
}
IDENTIFIERS = {"person", "visit_id"}


def filled() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    declared = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
    lists = ", ".join(f"UNNEST(CAST(? AS {kind}[]))" for kind, _ in COLUMNS.values())
    connection.execute(f"CREATE TABLE people ({declared})")
    connection.execute(f"INSERT INTO people SELECT {lists}", [list(v) for _, v in COLUMNS.values()])
    return connection


def duckdb_file(folder: Path) -> str:
    with filled() as made:
        made.execute(f"ATTACH '{folder}/people.duckdb' AS f; CREATE TABLE f.people AS FROM people")
    return str(folder / "people.duckdb")


def copied(ending: str) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        with filled() as made:
            made.execute(f"COPY people TO '{folder}/people.{ending}'")
        return f"{folder}/people.{ending}"

    return make


def spark_folder(folder: Path) -> str:
    (folder / "people").mkdir()
    shutil.move(copied("parquet")(folder), folder / "people" / "part-0.parquet")
    return f"spark-local://{folder}/people"


def sqlite_file(folder: Path) -> str:
    path = folder / "people.sqlite"
    with filled() as made, closing(sqlite3.connect(path)) as file, file:
        declared = ", ".join(f'"{name}" {kind}' for name, (kind, _) in COLUMNS.items())
        file.execute(f"CREATE TABLE people ({declared})")
        kept = (int, float, str, type(None))
        rows = [
            tuple(v if isinstance(v, kept) else float(v) if hasattr(v, "quantize") else str(v) for v in row)
            for row in made.execute("FROM people").fetchall()
        ]
        file.executemany(f"INSERT INTO people VALUES ({', '.join('?' * len(COLUMNS))})", rows)
    return str(path)


def postgres_schema(server: Server) -> str:
    schema = server.new_schema()
    declared = ", ".join(
        f'"{name}" {kind.replace("DOUBLE", "DOUBLE PRECISION")}' for name, (kind, _) in COLUMNS.items()
    )
    with filled() as made, server.connect(schema) as admin:
        admin.execute(f"CREATE TABLE people ({declared})")  # type: ignore[arg-type]
        places = ", ".join(["%s"] * len(COLUMNS))
        with admin.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO people VALUES ({places})", made.execute("FROM people").fetchall()
            )  # type: ignore[arg-type]
    return server.url(schema)


PLACES: dict[str, Callable[[Path], object]] = {
    "duckdb": duckdb_file,
    "csv": copied("csv"),
    "parquet": copied("parquet"),
    "spark": spark_folder,
    "sqlite": sqlite_file,
    "sqlite address": lambda folder: f"sqlite:///{sqlite_file(folder)}",
    "memory": lambda _: filled().sql("FROM people").to_arrow_table(),
}


@pytest.fixture(params=[*PLACES, "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: Path) -> object:
    if request.param == "postgres":
        return postgres_schema(request.getfixturevalue("postgres"))
    return PLACES[request.param](tmp_path)


def by_name(proposal: Proposal) -> dict[str, ProposedColumn]:
    return {column.name: column for column in proposal.columns}


# --- what is proposed -------------------------------------------------------------------------


def test_the_same_proposal_everywhere_and_it_can_be_counted(location: object) -> None:
    proposal = propose(location)
    found = by_name(proposal)
    assert list(found) == list(COLUMNS)
    assert {n: c.attribute for n, c in found.items() if c.attribute is not None} == EXPECTED
    assert {n for n, c in found.items() if c.looks_like_id} == IDENTIFIERS
    assert "more than 100 different texts" in found["word"].note
    assert "no values" in found["empty"].note
    assert "person of each row" in found["person"].note and proposal.person == "person"
    assert "missing" in found["region"].note and "missing" not in found["age"].note
    assert "confirm" in found["age"].note and all(column.proposed for column in proposal.columns)
    domain = proposal.domain()
    assert set(domain.names) == EXPECTED.keys() - IDENTIFIERS
    if isinstance(location, str):  # the same files, without starting Spark
        location = location.removeprefix("spark-local://")
        location = str(taken(Path(location))) if has_dialect(location) else location
    with closing(open_backend(location, domain)) as backend:
        backend.check()


def test_a_table_or_a_view(location: object) -> None:
    assert propose(location, table="data" if hasattr(location, "schema") else "people").columns
    with pytest.raises(InvalidInput, match="not from both"):
        propose(location, table="people", view="SELECT age FROM people")
    if "spark" in str(location)[:5] or hasattr(location, "schema"):
        return
    view = 'SELECT age AS years, region AS "from" FROM people WHERE region IS NOT NULL'
    proposal = propose(location, view=view)
    assert {c.name: c.attribute for c in proposal.columns} == {
        "years": EXPECTED["age"],
        "from": replace(EXPECTED["region"], missing="none"),
    }
    assert (proposal.table, proposal.view) == (None, view)
    with pytest.raises(SourceMissing):
        propose(location, table="nowhere")


def test_texts_of_a_csv_file_are_what_nearly_all_of_them_are(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    lines = ["whole,real,mixed,day,moment,flag,blank,code,email"]
    for k in range(100):
        mixed = "n/a" if k % 25 == 0 else str(k % 10)
        lines.append(
            f"{k % 7},{k % 5}.5,{mixed},2024-01-{k % 28 + 1:02d},2024-01-01 {k % 24:02d}:00:00,"
            f"{'true' if k % 2 else 'false'},,{'x' if k % 10 else '3'},user{k}@example.org"
        )
    path.write_text("\n".join(lines))
    found = by_name(propose(str(path)))
    assert {name: column.attribute for name, column in found.items()} == {
        "whole": Integer(0, 6),
        "real": Real("0.5", "4.5", "0.1"),
        "mixed": Integer(0, 9, missing="value"),
        "day": Date("2024-01-01", "2024-01-31"),
        "moment": Date("2024-01-01", "2024-01-31", "minute"),
        "flag": Boolean(),
        "blank": None,
        "code": Category(["3", "x"], missing="none"),
        "email": None,
    }
    assert "cannot be read as this type" in found["mixed"].note
    assert found["email"].looks_like_id and not found["code"].looks_like_id


def test_rare_texts_are_not_proposed_by_name(tmp_path: Path) -> None:
    path = tmp_path / "people.csv"
    towns = ["north"] * 30 + ["south"] * 12 + ["Hermit's Rock"] * 2 + ["x"] * 9
    path.write_text("\n".join(["town", *towns]))
    (town,) = propose(str(path)).columns
    assert town.attribute == Category(["north", "south", "other"], missing="none", outside="clamp")
    assert town.rare == ("Hermit's Rock", "x")
    assert "Hermit" not in repr(town) + town.note and "fewer than 10 rows" in town.note
    (named,) = propose(str(path), rare=3).columns
    assert named.attribute == Category(["north", "south", "x", "other"], missing="none", outside="clamp")
    (every,) = propose(str(path), rare=1).columns
    assert every.attribute == Category(["Hermit's Rock", "north", "south", "x"], missing="none")
    assert every.to_plain()["rare"] == [] and town.to_plain()["rare"] == ["Hermit's Rock", "x"]


def test_numbers_and_days_without_end(tmp_path: Path) -> None:
    path = tmp_path / "odd.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("""CREATE TABLE t AS SELECT * FROM (VALUES
            ('NaN'::DOUBLE, 'infinity'::DATE, 170141183460469231731687303715884105727::HUGEINT, 5, 1e12),
            ('inf'::DOUBLE, '2000-01-01'::DATE, 0::HUGEINT, 5, -3e-7),
            (0.3::DOUBLE, '5877641-06-23 (BC)'::DATE, 1::HUGEINT, 5, 0)) AS v(d, day, huge, same, far)""")
    found = by_name(propose(str(path)))
    assert found["d"].attribute == Real("0.3", "0.4", "0.1", missing="value")
    assert found["day"].attribute == Date(date.min, date.max)
    assert found["huge"].attribute is None and "convert it in a view" in found["huge"].note
    assert found["same"].attribute == Integer(5, 6)
    assert isinstance(found["far"].attribute, Real)
    assert not any(column.looks_like_id for column in found.values())


def test_columns_that_cannot_be_declared(tmp_path: Path) -> None:
    path = tmp_path / "odd.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("""CREATE TABLE t AS SELECT uuid() AS u, [range] AS l, now() AS "at", range AS "userId"
            FROM range(3)""")
    found = by_name(propose(str(path)))
    assert [column.attribute for column in found.values()] == [None, None, None, Integer(0, 2)]
    assert [name for name, column in found.items() if column.looks_like_id] == ["u", "userId"]
    with pytest.raises(EmptyDomain, match="No column was confirmed"):
        propose(str(path)).domain()


def test_a_column_that_fails_does_not_spoil_the_others(tmp_path: Path) -> None:
    path = tmp_path / "odd.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE t AS SELECT range AS v, 'hunter2' AS word FROM range(30)")
        made.execute("CREATE VIEW failing AS SELECT v % 5 AS v, CAST(word AS INTEGER) AS bad FROM t")
    found = by_name(propose(str(path), table="failing"))
    assert found["v"].attribute == Integer(0, 4)
    assert found["bad"].attribute is None and "could not be read" in found["bad"].note
    assert "hunter2" not in repr(found)


def test_values_of_each_type_in_one_column_of_sqlite(tmp_path: Path) -> None:
    path = tmp_path / "any.sqlite"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE t (loose, day DATE, flag BOOLEAN, note TEXT, odd DATE, n NUMERIC)")
        rows = [(k % 3, f"2020-02-{k + 1:02d}", k % 2, "12", k, k / 8) for k in range(20)]
        made.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", rows)
    found = by_name(propose(str(path)))
    assert {name: column.attribute for name, column in found.items()} == {
        "loose": Integer(0, 2),
        "day": Date("2020-02-01", "2020-02-29", "hour"),
        "flag": Boolean(),
        "note": Category(["12"], missing="none"),  # SQLite does not count texts as numbers
        "odd": None,
        "n": Real(0, "2.5", "0.001"),
    }


@pytest.mark.thorough
def test_other_sources_of_spark_have_types_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyspark", reason="no Spark: pip install 'blowfishdb[spark]'")
    if shutil.which("java") is None:
        pytest.skip("no Java, which Spark needs: install a Java runtime of version 17")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", QUICK_START)
    found = by_name(propose(spark_folder(tmp_path), view="SELECT age, visit_id, smokes FROM people"))
    assert [column.attribute for column in found.values()] == [None, None, Boolean()]
    assert "type its limits yourself" in found["age"].note and found["visit_id"].looks_like_id


# --- what becomes of it -----------------------------------------------------------------------


@pytest.fixture
def proposal(tmp_path: Path) -> Proposal:
    return propose(copied("parquet")(tmp_path))


def test_the_curator_confirms(proposal: Proposal) -> None:
    confirmed = {"region": Category(["north", "south"]), "age": Integer(0, 120), "word": Category(["a"])}
    domain = proposal.domain(confirmed)
    assert domain.names == ("age", "region", "word")  # the order of the source, and nothing else
    assert domain["age"] == Integer(0, 120)
    with pytest.raises(UnknownColumn, match="no column 'aeg'"):
        proposal.domain({"aeg": Integer(0, 1)})
    with pytest.raises(EmptyDomain):
        proposal.domain({})


def test_as_plain_data(proposal: Proposal) -> None:
    stored = json.loads(json.dumps(proposal.to_plain()))
    assert stored["proposed"] is True and stored["warning"] == WARNING and stored["person"] == "person"
    assert "confirm" in WARNING and "extreme" in WARNING
    back = {c["name"]: codec.attribute(c["attribute"]) for c in stored["columns"] if c["attribute"]}
    assert back == EXPECTED
    assert all(column["proposed"] for column in stored["columns"])
    assert next(c for c in stored["columns"] if c["name"] == "age")["words"].startswith(
        "whole numbers from 10"
    )


def test_nothing_from_the_data_is_shown_by_accident(proposal: Proposal) -> None:
    shown = repr(proposal) + " ".join(column.note for column in proposal.columns)
    assert not any(value in shown for value in ("north", "o'east", "900000", "1950", "02100"))


def test_failures_say_nothing_about_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BLOWFISHDB_SOURCE_PASSWORD", "correct-horse")
    for place in (
        "postgresql://u:correct-horse@127.0.0.1:1/db",
        "postgresql://u:${BLOWFISHDB_SOURCE_PASSWORD}@127.0.0.1:1/db",
    ):
        with pytest.raises(SourceError) as caught:
            propose(place)
        assert "correct-horse" not in f"{caught.value}{caught.value.__cause__}{caught.value.__context__}"
    with pytest.raises(SourceMissing):
        propose(str(tmp_path / "nowhere.csv"))


def test_nothing_is_written(tmp_path: Path) -> None:
    for make in (duckdb_file, sqlite_file, copied("csv")):
        path = Path(make(tmp_path))
        before = path.read_bytes(), sorted(tmp_path.iterdir())
        propose(str(path))
        assert (path.read_bytes(), sorted(tmp_path.iterdir())) == before


# --- no way here for an analyst ---------------------------------------------------------------

CURATORS_ONLY = ("proposal", "proposal.guesses", "proposal.looks", "proposal.rows", "proposal.tables")
THEIR_FILES = {f"adapters/proposal/{name}.py" for name in ("__init__", "guesses", "looks", "rows", "tables")}
MAY_LEAD_HERE = {"workspace/embedded.py", "workspace/datasets.py", "service/sources.py", *THEIR_FILES}


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            modules |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return modules


def test_only_the_curators_code_imports_it() -> None:
    secret = {f"blowfishdb.adapters.{name}" for name in CURATORS_ONLY}
    files = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
    leading = {name for name, path in files.items() if imported(path) & secret}
    assert files.keys() >= THEIR_FILES
    assert not {name for name in leading - MAY_LEAD_HERE if not name.startswith("entrypoints/")}


def test_it_is_not_loaded_where_questions_are_answered() -> None:
    script = (
        "import sys, blowfishdb.service.service, blowfishdb.messages.questions\n"
        "import blowfishdb.adapters.backends\n"
        f"assert not any(name.endswith({CURATORS_ONLY!r}) for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


# --- friendly limits --------------------------------------------------------------------------


@given(st.integers(-(10**15), 10**15), st.integers(-(10**15), 10**15))
def test_whole_limits_are_outside_and_round(one: int, other: int) -> None:
    low, high = min(one, other), max(one, other)
    made = guesses.friendly_integers(low, high)
    assert made.lo <= low <= high <= made.hi and made.lo < made.hi
    assert made.hi - made.lo <= max(Fraction(3, 2) * (high - low) + 2, 1 + Fraction(abs(high), 2))
    assert made.size <= 3_000_010
    assert made.step == 1 or (high - low or abs(high)) > 2_000_000


@given(st.decimals(-(10**9), 10**9, places=4), st.decimals(-(10**9), 10**9, places=4), st.integers(0, 20))
def test_real_limits_are_outside_and_on_the_grid(one: object, other: object, places: int) -> None:
    low, high = sorted((Fraction(str(one)), Fraction(str(other))))
    made = guesses.friendly_reals(low, high, places)
    assert made.lo <= low <= high <= made.hi and made.lo < made.hi
    assert made.lo % made.grid == made.hi % made.grid == 0


@given(st.dates(), st.dates())
def test_days_are_in_whole_months(one: date, other: date) -> None:
    first, last = min(one, other), max(one, other)
    for make in (guesses.friendly_days, guesses.friendly_dates):
        made = make(first, last)
        low, high = (v.date() if isinstance(v, datetime) else v for v in (made.lo, made.hi))
        assert low <= first <= last <= high and low.day == 1
        assert high == date.max or (high + timedelta(days=1)).day == 1
