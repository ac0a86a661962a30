"""Which rows a dataset has must not tell what is hidden: views, people's ids, rows in two datasets."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest

import blowfishdb as bf
from blowfishdb.adapters.proposal import propose
from blowfishdb.core.errors import BlowfishError, InvalidInput, PolicyConflict, SourceError
from blowfishdb.core.policy import codec
from blowfishdb.workspace.embedded import Workspace

DOMAIN = bf.Domain(age=bf.Integer(0, 99), region=bf.Category(["N", "S"]))
PEOPLE = [(1, 30, "N", 1), (2, 40, "N", 1), (3, 50, "S", 2), (4, 60, "S", 2)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "hr.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE people (id INT, age INT, region TEXT, town INT)")
        made.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", PEOPLE)
        made.execute("CREATE TABLE towns AS SELECT 1 AS town, 'Ulm' AS name UNION ALL SELECT 2, 'Bonn'")
        made.execute(
            "CREATE TABLE trips AS SELECT 1 AS id, 5 AS far UNION ALL SELECT 1, 6 UNION ALL SELECT 2, 7"
        )
        made.execute("CREATE VIEW old AS SELECT DISTINCT age, region FROM people WHERE age >= 40")
    return path


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with bf.open(tmp_path / "w.blowfish") as opened:
        assert isinstance(opened, Workspace)
        yield opened


def knows_n(dataset: bf.Dataset) -> bool:  # type: ignore[name-defined]
    return bool(dataset.count().spend("0.1").ask().exact.all())


# --- views that leave out rows ----------------------------------------------------------------


def test_a_view_that_leaves_out_rows_by_hidden_values_hides_how_many_there_are(
    workspace: Workspace, file: Path
) -> None:
    people = workspace.add_dataset(
        "old", file, domain=DOMAIN, view="SELECT age, region FROM people WHERE age >= 40"
    )
    assert people.policy.hides_presence and not knows_n(people)
    assert workspace.facts("old").rows_vary
    assert any("how many there are is hidden" in line for line in people.guarantee().about)
    with pytest.raises(PolicyConflict, match="presence"):
        people.publish(bf.Policy.differential_privacy(DOMAIN), confirm=True)
    with pytest.raises(PolicyConflict, match="presence"):
        workspace.save_draft("old", bf.Policy.by_column(DOMAIN, {}))
    people.publish(people.hiding_within("age", 5), confirm=True)
    assert people.policy.hides_presence and not knows_n(people)


def test_rows_may_be_left_out_by_what_no_policy_can_hide(workspace: Workspace, file: Path) -> None:
    view = "SELECT age, region AS part FROM people WHERE region = 'N'"
    domain = bf.Domain(age=bf.Integer(0, 99), part=bf.Category(["N", "S"]))
    north = workspace.add_dataset("north", file, domain=domain, view=view, public=["people.region"])
    assert not north.policy.hides_presence and knows_n(north)
    assert workspace.facts("north").public == ("part",)
    for hiding in (
        bf.Policy.differential_privacy(domain),
        bf.Policy.by_column(domain, {"age": bf.graphs.Threshold(100, 5)}),
        bf.Policy(domain, bf.graphs.Full(200).hide_presence()),
    ):
        with pytest.raises(PolicyConflict, match="'part' was declared public"):
            north.publish(hiding, confirm=True)
    north.publish(north.hiding_within("age", 5), confirm=True)
    events = [event.facts for event in workspace.events("north") if event.kind == "source"]
    assert events == [{"public": ["people.region"], "rows_vary": None, "same_rows_as": []}]


def test_a_new_name_does_not_make_a_hidden_column_public(workspace: Workspace, file: Path) -> None:
    """DuckDB takes a name in WHERE for one behind AS, where the table has no such column."""
    view = "SELECT age AS rank, region FROM people WHERE rank >= 40"
    domain = bf.Domain(rank=bf.Integer(0, 99), region=bf.Category(["N", "S"]))
    with pytest.raises(BlowfishError):
        workspace.add_dataset("ranks", file, domain=domain, view=view, public=["rank"])


def test_rows_are_fixed_only_if_no_condition_says_otherwise(workspace: Workspace, file: Path) -> None:
    with pytest.raises(InvalidInput, match="'age'"):
        workspace.add_dataset(
            "x", file, domain=DOMAIN, view="SELECT age, region FROM people WHERE age > 1", rows_vary=False
        )


def test_look_ups(workspace: Workspace, file: Path) -> None:
    domain = bf.Domain(age=bf.Integer(0, 99), name=bf.Category(["Ulm", "Bonn"]))
    left = "SELECT p.age, t.name FROM people p LEFT JOIN towns t ON p.town = t.town"
    assert not workspace.add_dataset("a", file, domain=domain, view=left).policy.hides_presence
    inner = left.replace("LEFT ", "")
    two = workspace.add_dataset("b", file, domain=domain, view=inner, same_rows=True)
    assert two.policy.hides_presence
    stated = workspace.add_dataset("c", file, domain=domain, view=inner, rows_vary=False, same_rows=True)
    assert knows_n(stated)
    with pytest.raises(InvalidInput, match="several rows"):
        workspace.add_dataset(
            "d",
            file,
            domain=bf.Domain(far=bf.Integer(0, 9)),
            view="SELECT t.far FROM people p LEFT JOIN trips t ON p.id = t.id",
            same_rows=True,
        )


def test_rows_of_people_are_chosen_before_rows_are_left_out(workspace: Workspace, file: Path) -> None:
    view = "SELECT p.id, t.far FROM people p JOIN trips t ON p.id = t.id WHERE t.far > 5"
    domain = bf.Domain(far=bf.Integer(0, 9))
    with pytest.raises(InvalidInput, match="before anything is left out"):
        workspace.add_dataset("x", file, domain=domain, view=view, person="id", rows_per_person=2)
    plain = view.partition(" WHERE")[0]
    made = workspace.add_dataset("x", file, domain=domain, view=plain, person="id", rows_per_person=2)
    assert not made.policy.hides_presence


@pytest.mark.parametrize(
    "view",
    [
        "SELECT UNNEST([age, age]) AS age, region FROM people",
        "SELECT age, region FROM people, range(age)",
        "SELECT CAST(region AS INT) AS age, region FROM people",
        "SELECT CASE WHEN age > 40 THEN error('x') ELSE age END AS age, region FROM people",
        "SELECT region, quantile_disc(age, 0.5) AS age FROM people",
        "SELECT a.age, a.region FROM people a JOIN main.people b ON a.town = b.town",
        "SELECT age, region FROM people WHERE region = 5",
        "SELECT age, region FROM people WHERE region IN (1, 2)",
        "SELECT age, region FROM people WHERE age = region",
        "SELECT p.age, p.region FROM people p JOIN towns t ON p.region = t.town",
        "SELECT age + age AS age, region FROM people",
        "SELECT age, region FROM people UNION ALL SELECT name AS age, name AS region FROM towns",
        "SELECT content AS region, 1 AS age FROM read_text('/etc/hostname')",
        "SELECT age, getenv('HOME') AS region FROM people",
        "SELECT age, current_setting('access_mode') AS region FROM people",
    ],
)
def test_what_may_fail_or_mix_rows_is_refused(workspace: Workspace, file: Path, view: str) -> None:
    with pytest.raises(BlowfishError):
        workspace.add_dataset("x", file, domain=DOMAIN, view=view)
    assert "x" not in workspace


def test_what_is_computed_never_fails(workspace: Workspace, file: Path) -> None:
    view = """SELECT TRY_CAST(age AS DOUBLE) * 2 - 1 AS age,
        CASE WHEN LOWER(region) LIKE 'n%' OR age IN (50, 51) THEN 'N' ELSE 'S' END AS region FROM people"""
    made = workspace.add_dataset("x", file, domain=DOMAIN, view=view)
    assert knows_n(made)


def test_functions_of_the_file_are_not_trusted(workspace: Workspace, file: Path) -> None:
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE MACRO lower(x) AS (SELECT max(age) FROM people)::TEXT")
        made.execute("CREATE MACRO twice(x) AS x + x")
    with pytest.raises(SourceError, match="names of DuckDB's own"):
        workspace.add_dataset("x", file, domain=DOMAIN, table="people")
    with duckdb.connect(str(file)) as made:
        made.execute("DROP MACRO lower")
    workspace.add_dataset("x", file, domain=DOMAIN, view="SELECT age, LOWER(region) AS region FROM people")


# --- views in the database --------------------------------------------------------------------


def sqlite_with_a_view(folder: Path) -> Path:
    path = folder / "hr.sqlite"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE people (id INT, age INT, region TEXT)")
        made.executemany("INSERT INTO people VALUES (?, ?, ?)", [row[:3] for row in PEOPLE])
        made.execute("CREATE VIEW old AS SELECT DISTINCT age, region FROM people WHERE age >= 40")
    return path


@pytest.mark.parametrize("kind", ["duckdb", "sqlite"])
def test_the_curator_is_asked_about_a_view_in_the_database(
    workspace: Workspace, file: Path, tmp_path: Path, kind: str
) -> None:
    place = file if kind == "duckdb" else sqlite_with_a_view(tmp_path)
    for how in ({"table": "old"}, {"view": "SELECT age, region FROM old"}):
        with pytest.raises(InvalidInput, match=r"'old' is a view in the database.*DISTINCT"):
            workspace.add_dataset("x", place, domain=DOMAIN, **how)  # type: ignore[arg-type]
    fixed = workspace.add_dataset("fixed", place, domain=DOMAIN, table="old", rows_vary=False)
    assert not fixed.policy.hides_presence
    varying = workspace.add_dataset("vary", place, domain=DOMAIN, table="old", rows_vary=True, same_rows=True)
    assert varying.policy.hides_presence and not knows_n(varying)
    with pytest.raises(PolicyConflict):
        varying.publish(bf.Policy.differential_privacy(DOMAIN))
    with pytest.raises(InvalidInput, match="before anything is left out"):
        workspace.add_dataset(
            "y", place, domain=bf.Domain(age=DOMAIN["age"]), table="old", person="region",
            rows_vary=True, same_rows=True,
        )  # fmt: skip


def test_a_table_that_becomes_a_view_is_asked_no_more(workspace: Workspace, tmp_path: Path) -> None:
    path = sqlite_with_a_view(tmp_path)
    made = workspace.add_dataset("people", path, domain=DOMAIN, table="people")
    workspace.refresh("people")
    with closing(sqlite3.connect(path)) as change, change:
        change.executescript(
            "ALTER TABLE people RENAME TO every; CREATE VIEW people AS SELECT * FROM every WHERE age > 40"
        )
    with pytest.raises(PolicyConflict, match="view in the database"):
        made.count().spend("0.1").ask()
    made.publish(bf.Policy(DOMAIN, bf.graphs.Full(200).hide_presence()), confirm=True)
    assert not knows_n(made)


def test_a_dataset_of_an_older_version_is_not_asked_until_its_policy_fits(
    workspace: Workspace, file: Path
) -> None:
    made = workspace.add_dataset(
        "x", file, domain=DOMAIN, view="SELECT age, region FROM people WHERE age > 1"
    )
    open_to_all = json.dumps(codec.plain(bf.Policy.differential_privacy(DOMAIN)))
    workspace._records._catalogue.put("policy", "x", open_to_all)
    with pytest.raises(PolicyConflict, match="hide presence"):
        made.count().spend("0.1").ask()
    with pytest.raises(PolicyConflict, match="hide presence"):
        made.count().spend("0.1").quote()
    made.publish(bf.Policy(DOMAIN, bf.graphs.Full(200).hide_presence()))
    assert not knows_n(made)


def test_a_view_of_an_older_version_that_is_refused_now_is_still_listed(
    workspace: Workspace, file: Path
) -> None:
    made = workspace.add_dataset("x", file, domain=DOMAIN, view="SELECT age, region FROM people")
    catalogue = workspace._records._catalogue
    stored = json.loads(catalogue.get("dataset", "x") or "")
    stored["source"] = {
        "table": None, "view": "SELECT DISTINCT age, region FROM people", "dialect": "duckdb", "unit": None
    }  # fmt: skip
    catalogue.put("dataset", "x", json.dumps(stored))
    assert workspace.datasets() == ["x"] and workspace.facts("x").rows_vary
    assert made.guarantee().paragraphs
    with pytest.raises(SourceError, match="no longer gives answers"):
        made.count().spend("0.1").ask()


# --- whose rows they are ----------------------------------------------------------------------


@pytest.mark.parametrize("how", [{"person": "age"}, {"person": "id", "row_key": "age"}])
def test_whose_row_it_is_cannot_be_hidden(workspace: Workspace, file: Path, how: dict[str, str]) -> None:
    for place in ({"table": "people"}, {"view": "SELECT id, age, age AS years, region FROM people"}):
        with pytest.raises(InvalidInput, match="'age' is declared"):
            workspace.add_dataset("x", file, domain=DOMAIN, **place, **how)  # type: ignore[arg-type]
    again = {name: "years" if column == "age" else column for name, column in how.items()}
    with pytest.raises(InvalidInput, match="'age' is declared"):
        workspace.add_dataset(
            "x", file, domain=DOMAIN, view="SELECT id, age, age AS years, region FROM people", **again
        )


@pytest.mark.parametrize("kind", ["duckdb", "sqlite", "postgres"])
def test_whose_row_it_is_is_not_computed_by_the_database(
    workspace: Workspace,
    tmp_path: Path,
    kind: str,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A change of a hidden age would make two people one, and the exact number of rows would tell."""
    domain = bf.Domain(age=DOMAIN["age"])
    table = "CREATE TABLE visits (id INT, age INT, who INT GENERATED ALWAYS AS (age / 10) {})"
    rows = "INSERT INTO visits (id, age) VALUES (1, 30), (2, 40)"
    place: str | Path = tmp_path / f"visits.{kind}"
    if kind == "duckdb":
        with duckdb.connect(str(place)) as made:
            made.execute(table.format(""))
            made.execute(rows)
    elif kind == "sqlite":
        with closing(sqlite3.connect(place)) as lite, lite:
            lite.execute(table.format("STORED"))
            lite.execute(rows)
    else:
        monkeypatch.setenv("BLOWFISHDB_SOURCE_PW", "pw")
        server = request.getfixturevalue("postgres")
        schema = server.new_schema()
        with server.connect(schema) as there:
            there.execute(table.format("STORED"))
            there.execute(rows)
        place = server.url(schema, password="${BLOWFISHDB_SOURCE_PW}")
    ways: list[dict[str, str]] = [{"person": "who"}, {"person": "id", "row_key": "who"}]
    for how in ways:
        with pytest.raises(InvalidInput, match="computes 'who' from other columns"):
            workspace.add_dataset("x", place, domain=domain, table="visits", **how)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="computes 'who' from other columns"):
        workspace.add_dataset("x", place, domain=domain, view="SELECT age, who AS p FROM visits", person="p")
    assert knows_n(workspace.add_dataset("x", place, domain=domain, table="visits", person="id"))


def test_what_is_computed_while_it_is_read_is_asked_about(workspace: Workspace, tmp_path: Path) -> None:
    """It can fail on some rows, as nothing does that is stored; so can what a module of SQLite makes up."""
    path = tmp_path / "rows.sqlite"
    with closing(sqlite3.connect(path)) as made, made:
        made.execute("CREATE TABLE people (id INT, age INT)")
        made.execute("INSERT INTO people VALUES (1, 30)")
        made.execute("ALTER TABLE people ADD COLUMN odd AS (json_extract('{', age))")
        made.execute("CREATE VIRTUAL TABLE notes USING fts5(age)")
    for table in ("people", "notes"):
        with pytest.raises(InvalidInput, match="computes values while they are read"):
            workspace.add_dataset("x", path, domain=bf.Domain(age=DOMAIN["age"]), table=table)


def test_whose_row_it_is_may_be_asked_about_if_no_policy_can_hide_it(
    workspace: Workspace, file: Path
) -> None:
    domain = bf.Domain(age=bf.Integer(0, 99), town=bf.Integer(0, 9))
    made = workspace.add_dataset(
        "x", file, domain=domain, table="people", person="town", rows_per_person=2, public=["town"]
    )
    assert knows_n(made) and workspace.facts("x").public == ("town",)
    with pytest.raises(PolicyConflict, match="'town' was declared public"):
        made.publish(bf.Policy.differential_privacy(domain))
    with pytest.raises(InvalidInput, match="'id' is declared"):
        workspace.add_dataset(
            "y", file, domain=bf.Domain(id=bf.Integer(0, 9)), table="people", person="id", same_rows=True
        )


def test_columns_declared_later_are_checked_too(workspace: Workspace, file: Path) -> None:
    made = workspace.add_dataset("x", file, domain=DOMAIN, table="people", person="id")
    with pytest.raises(InvalidInput, match="'id' is declared"):
        made.declare(id=bf.Integer(0, 9))


def test_a_row_key_tells_rows_apart(workspace: Workspace, file: Path) -> None:
    domain = bf.Domain(far=bf.Integer(0, 9))
    with duckdb.connect(str(file)) as made:
        made.execute("ALTER TABLE trips ADD COLUMN n INT")
        made.execute("UPDATE trips SET n = 1")
    with pytest.raises(InvalidInput, match="same 'n'"):
        workspace.add_dataset("x", file, domain=domain, table="trips", person="id", row_key="n")
    with duckdb.connect(str(file)) as made:
        made.execute("UPDATE trips SET n = far")
    assert workspace.add_dataset("x", file, domain=domain, table="trips", person="id", row_key="n")


# --- the same rows twice ----------------------------------------------------------------------


def test_the_same_rows_in_two_datasets_need_a_word(workspace: Workspace, file: Path, tmp_path: Path) -> None:
    first = workspace.add_dataset("one", file, domain=DOMAIN, table="people")
    link = tmp_path / "link.duckdb"
    link.symlink_to(file)
    again = (
        {"source": file, "table": "people"},
        {"source": link, "table": "PEOPLE"},
        {"source": f"duckdb:///{file}", "table": "people"},
        {"source": file, "view": "SELECT p.age, p.region FROM main.people p"},
    )
    for how in again:
        with pytest.raises(InvalidInput, match=r"already in 'one'.*same_rows=True"):
            workspace.add_dataset("two", domain=DOMAIN, **how)  # type: ignore[arg-type]
    workspace.add_dataset("gone", file, domain=bf.Domain(far=bf.Integer(0, 9)), table="trips").delete()
    with pytest.raises(InvalidInput, match=r"already in 'gone'.*unless it was deleted"):
        workspace.add_dataset("other", file, domain=bf.Domain(far=bf.Integer(0, 9)), table="trips")
    far = bf.Domain(far=bf.Integer(0, 9))
    workspace.add_dataset("other", file, domain=far, table="trips", same_rows=True)
    second = workspace.add_dataset("two", file, domain=DOMAIN, table="people", same_rows=True)
    second.budget.set("0.5")
    for dataset, other in ((first, "'two' (ε 0.5)"), (second, "'one' (ε 1)")):
        said = " ".join(dataset.guarantee().paragraphs)
        assert other in said and "ε 1.5 in all" in said and "'other'" not in said
    facts = [event.facts for event in workspace.events("two") if event.kind == "source"]
    assert facts == [{"public": [], "rows_vary": None, "same_rows_as": ["one"]}]
    assert not workspace.audit().problems


def test_no_message_advises_to_declare_rows_twice(workspace: Workspace, file: Path) -> None:
    made = workspace.add_dataset("one", file, domain=DOMAIN, table="people")
    made.count().spend("0.1").ask()
    with pytest.raises(PolicyConflict) as caught:
        made.declare(age=bf.Integer(0, 50))
    assert "another name" not in str(caught.value)


# --- tables in schemas, and files that are open ---------------------------------------------------


@pytest.mark.parametrize("written", ["clinic.people", '"clinic".people', 'clinic."people"'])
def test_a_table_may_be_in_a_schema(workspace: Workspace, file: Path, tmp_path: Path, written: str) -> None:
    """It is another table than that of the same name elsewhere, also when the workspace is opened again."""
    with duckdb.connect(str(file)) as made:
        made.execute("CREATE SCHEMA clinic")
        made.execute("CREATE TABLE clinic.people AS SELECT 77 AS age, 'N' AS region FROM range(5)")
    proposal = propose(file, table=written)
    assert proposal.table == "clinic.people"
    public = bf.Policy.by_column(
        DOMAIN, {name: bf.graphs.Explicit(DOMAIN[name].size, ()) for name in DOMAIN.names}
    )
    workspace.add_dataset("patients", file, domain=DOMAIN, table=written).publish(public, confirm=True)
    assert workspace["patients"].count().spend("0.1").ask().values.tolist() == [5]
    with pytest.raises(BlowfishError, match=r"the table 'clinic\.towns'"):
        workspace.add_dataset("towns", file, domain=DOMAIN, table="clinic.towns")
    workspace.close()
    with bf.open(tmp_path / "w.blowfish") as again:
        assert again["patients"]["age"].ranges([(77, 77)]).spend("0.1").ask().values.tolist() == [5]


def test_a_name_with_a_dot_stands_in_quotes(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "dotted.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("""CREATE TABLE "a.b" AS SELECT 1 AS age, 'N' AS region""")
    assert propose(path).table == '"a.b"'
    workspace.add_dataset("dotted", path, domain=DOMAIN, table='"a.b"')


def test_a_file_that_this_process_may_write_is_refused_in_words(workspace: Workspace, file: Path) -> None:
    refused = pytest.raises(SourceError, match=r"open already in this process.*read_only=True")
    with duckdb.connect(str(file)), refused:
        workspace.add_dataset("people", file, domain=DOMAIN, table="people")
    workspace.add_dataset("people", file, domain=DOMAIN, table="people")


def test_a_file_that_this_process_reads_is_asked_all_the_same(workspace: Workspace, file: Path) -> None:
    """What the other connection defines for itself is not seen, and nothing can be written or reached."""
    with duckdb.connect(str(file), read_only=True) as beside:
        beside.execute("CREATE TEMP TABLE people AS SELECT 1 AS age")
        people = workspace.add_dataset("people", file, domain=DOMAIN, table="people")
        people.budget.set(2_000)
        answer = people["age"].histogram().spend(500).ask()
        assert beside.execute("SELECT count(*) FROM people").fetchall() == [(1,)]
    alone = people["age"].histogram().spend(501).ask()
    assert alone.values.tolist() == answer.values.tolist() and answer.values.sum() > 1
