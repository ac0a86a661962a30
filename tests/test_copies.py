"""Datasets over files, through the whole workspace: read once, frozen, refreshed, deleted."""

from __future__ import annotations

import json
import logging
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.adapters.backends.duckdb import DuckDB
from blowfishdb.adapters.store import catalogue
from blowfishdb.adapters.store.catalogue import Catalogue
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.errors import (
    InvalidInput,
    NameTaken,
    PolicyConflict,
    QueryFailed,
    SourceCorrupt,
    SourceError,
    UnknownDataset,
)
from blowfishdb.core.policy import codec
from blowfishdb.entrypoints.doctor import State, checks
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace
from tests.engine.stages import just_before
from tests.entrypoints.server import DOMAIN as SALARIES
from tests.entrypoints.server import Running, running
from tests.postgres import Server

DOMAIN = bf.Domain(v=bf.Integer(0, 9), t=bf.Category(("a", "b")))
WITH_MISSING = bf.Domain(v=bf.Integer(0, 9, missing="clamp"), t=bf.Category(("a", "b"), missing="drop"))
PLAIN = [f"{k % 10},{'ab'[k % 2]}" for k in range(30)]


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("v,t\n" + "".join(f"{row}\n" for row in rows))
    return path


def count(people: Dataset) -> int:
    return int(people.count().spend("0.01").ask().values[0])


def total(people: Dataset) -> int:
    """How many rows were read, all but exactly: every value of ``v`` is in some bin."""
    people.budget.set(500)
    return round(float(people["v"].histogram().spend(100).ask().raw.sum()))


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path / "w.blowfish", user="carla") as opened:
        yield opened


@pytest.fixture
def people(workspace: Workspace, tmp_path: Path) -> Dataset:
    return workspace.add_dataset("people", write(tmp_path / "people.csv", PLAIN), domain=DOMAIN)


def copies(workspace: Workspace) -> list[Path]:
    assert workspace.store.file is not None
    return sorted(workspace.store.file.with_name(f"{workspace.store.file.name}.copies").glob("*/*.parquet"))


# --- reading once -----------------------------------------------------------------------------

LONG = [f"{k % 10},a" for k in range(25_000)]
NEIGHBOURS = {
    "a value like a comment, in the first column": (PLAIN, ["#N/A,a", *PLAIN[1:]]),
    "a comma in quotes, late": (LONG, [*LONG[:-1], '9,"a, b"']),
    "a line break in quotes, late": (LONG, [*LONG[:-1], '9,"a\nb"']),
    "a null sign, late": (LONG, [*LONG[:-1], "9,\x00"]),
    "a missing value": (LONG, [*LONG[:-1], ","]),
}


@pytest.mark.parametrize("case", NEIGHBOURS)
def test_one_value_changes_no_exact_count_and_no_refusal(
    workspace: Workspace, tmp_path: Path, case: str
) -> None:
    for number, rows in enumerate(NEIGHBOURS[case]):
        path = write(tmp_path / f"rows{number}.csv", rows)
        found = workspace.add_dataset(f"rows {number}", path, domain=WITH_MISSING)
        assert count(found) == total(found) == len(rows)
        assert found["t"].histogram().spend(100).ask().raw.shape == (2,)


def test_a_value_that_cannot_be_read_is_found_before_anyone_asks(
    workspace: Workspace, tmp_path: Path
) -> None:
    """One text that is no UTF-8, in a hidden column, would make every question about it fail."""
    ends, letters = pa.array([0, 1, 2, 4], pa.int32()).buffers()[1], pa.py_buffer(b"ab\xff\xfe")
    table = pa.table({"v": [1, 2, 3], "t": pa.StringArray.from_buffers(3, ends, letters)})
    path = tmp_path / "rows.parquet"
    pq.write_table(table, path)
    ways: list[tuple[object, str | None]] = [(path, None), (path, "frozen"), (table, None)]
    for source, kind in ways:
        with pytest.raises(SourceCorrupt, match="column 't' that cannot be read"):
            workspace.add_dataset("rows", source, domain=DOMAIN, kind=kind)
    assert not copies(workspace)
    pq.write_table(table.slice(0, 2), path)
    found = workspace.add_dataset("rows", path, domain=DOMAIN)
    pq.write_table(table, path)
    with pytest.raises(SourceCorrupt, match="cannot be read"):
        found.refresh()
    assert count(found) == 2


def test_a_file_that_changes_changes_nothing_until_it_is_refreshed(people: Dataset, tmp_path: Path) -> None:
    assert count(people) == 30
    write(tmp_path / "people.csv", PLAIN[:15])
    assert total(people) == 30
    assert people.refresh().source.snapshot == 2 and count(people) == 15
    (tmp_path / "people.csv").unlink()
    assert total(people) == 15


def test_what_does_not_fit_leaves_the_copy_so_far(people: Dataset, tmp_path: Path) -> None:
    before = people.source
    for content, kind, told in (
        ("v,t\n1,a\n2\n", SourceCorrupt, "Line 3"),
        ("", SourceError, "empty"),
        ("w,t\n1,a\n", bf.errors.UnknownColumn, "no column 'v'"),
        ("v;t\n1;a\n", bf.errors.UnknownColumn, "no column 'v'"),  # the dialect is that of the first time
    ):
        (tmp_path / "people.csv").write_text(content)
        with pytest.raises(kind, match=told):
            people.refresh()
        assert people.source == before and count(people) == 30
    assert people.refresh(dialect={"delimiter": ";"}).source.snapshot == 2
    assert count(people) == 1 and len(copies(people.gateway)) == 1


def test_rows_that_become_those_of_another_dataset_need_a_word(
    workspace: Workspace, people: Dataset, tmp_path: Path
) -> None:
    path = write(tmp_path / "other.csv", PLAIN[:5])
    other = workspace.add_dataset("other", path, domain=DOMAIN)
    write(path, PLAIN)
    with pytest.raises(InvalidInput, match=r"already in 'people'.*same_rows"):
        other.refresh()
    assert count(other) == 5
    other.refresh(same_rows=True)
    assert count(other) == 30
    assert "'people' (ε 1)" in " ".join(other.guarantee().about)
    other.refresh()  # said once, and the same rows still


def test_the_source_says_how_it_was_read(people: Dataset, tmp_path: Path) -> None:
    source = people.source
    assert source.copy is not None and (source.copy.rows, source.kind) == (30, "copy")
    assert source.dialect is not None and source.dialect.delimiter == ","
    assert "apart by commas" in source.describe() and source.copy.sha256 in source.describe()
    assert people.gateway.facts("people").kind == "copy"
    held = people.gateway.copies()
    assert held.used == source.copy.bytes < held.quota
    for dialect, told in (({"comment": "#"}, "no 'comment'"), ({"delimiter": ";"}, "no column")):
        with pytest.raises(InvalidInput, match=told):
            people.gateway.add_dataset(
                "x", tmp_path / "people.csv", domain=DOMAIN, dialect=dialect, same_rows=True
            )
    with pytest.raises(InvalidInput, match="Only a file of texts"):
        people.gateway.add_dataset("x", pa.table({"v": [1]}), domain=DOMAIN, dialect={})


def test_tables_in_memory(workspace: Workspace) -> None:
    found = workspace.add_dataset("t", pa.table({"v": [1, 2], "t": ["a", "b"]}), domain=DOMAIN)
    assert count(found) == 2 and found.source.location == ""
    with pytest.raises(InvalidInput, match=r"Try: refresh\(table\)"):
        found.refresh()
    found.refresh(pa.table({"v": [1], "t": ["a"]}))
    assert count(found) == 1 and len(copies(workspace)) == 1


def test_a_copy_that_was_changed_answers_nothing(people: Dataset) -> None:
    (copy,) = copies(people.gateway)
    rows = pq.read_table(copy).slice(0, 10)
    copy.unlink()
    pq.write_table(rows, copy)
    with pytest.raises(SourceCorrupt, match="was changed"):
        people.count().spend("0.01").ask()
    assert not people.budget.status.spent


def test_kinds(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE p AS SELECT (range % 10)::INT AS v, 'a' AS t FROM range(50)")
    assert workspace.add_dataset("usual", path, domain=DOMAIN).source.kind == "frozen"
    live = workspace.add_dataset("live", path, domain=DOMAIN, kind="live", same_rows=True)
    for found, free in ((workspace["usual"], True), (live, False)):
        found.budget.set(20)
        found["v"].histogram().accurate_to(5).ask()
        assert found["v"].histogram(width=5).accurate_to(30).quote().owned is free
        assert found["v"].top(1).accurate_to(20).quote().owned is free  # from the same counts
        again = found["v"].histogram().accurate_to(5).quote()
        assert again.owned and ("as of" in again.explanation) is not free
    write(tmp_path / "people.csv", PLAIN)
    pq.write_table(pa.table({"v": [1], "t": ["a"]}), tmp_path / "one.parquet")
    assert (
        workspace.add_dataset("there", tmp_path / "one.parquet", domain=DOMAIN, kind="frozen").source.copy
        is None
    )
    for source, kind in ((path, "copy"), (tmp_path / "people.csv", "live"), (path, "frosty")):
        with pytest.raises(InvalidInput):
            workspace.add_dataset("x", source, domain=DOMAIN, kind=kind)


def test_a_password_is_not_kept(workspace: Workspace) -> None:
    for place in ("postgresql://u:hunter2@127.0.0.1:1/d", "mysql://u@127.0.0.1:1/d?password=hunter2"):
        with pytest.raises(InvalidInput, match="BLOWFISHDB_SOURCE_PASSWORD") as caught:
            workspace.add_dataset("x", place, domain=DOMAIN, table="t")
        assert "hunter2" not in str(caught.value)
    assert workspace.datasets() == []


def test_only_the_owner_can_read(people: Dataset, tmp_path: Path) -> None:
    count(people)
    people.gateway.backup(tmp_path / "copy.blowfish")
    made = [*tmp_path.glob("*.blowfish*"), *copies(people.gateway)]
    assert len(made) >= 5
    for place in made:
        assert stat.S_IMODE(place.stat().st_mode) & 0o077 == 0, place


# --- one step ---------------------------------------------------------------------------------


def test_a_crash_while_declaring_leaves_nothing(workspace: Workspace, tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", PLAIN)
    inner = catalogue.put
    for kind in ("dataset", "policy"):

        def killed(connection: object, what: str, *rest: str, kind: str = kind, **more: str) -> int:
            if what == kind:
                raise KeyboardInterrupt
            return inner(connection, what, *rest, **more)  # type: ignore[arg-type]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(catalogue, "put", killed)
            with pytest.raises(KeyboardInterrupt):
                workspace.add_dataset("people", path, domain=DOMAIN)
        assert workspace.datasets() == [] and copies(workspace) == [] and workspace.events() == []
    assert count(workspace.add_dataset("people", path, domain=DOMAIN)) == 30


def half_declared(place: Path, path: Path, name: str) -> None:
    """What a crash left in between, before a declaration was one transaction."""
    with Workspace(place, user="carla") as workspace:
        workspace._ledger.set_budget(name, bf.Epsilon(1), "carla")
        Catalogue(workspace.store).put("dataset", name, old_record(path))


def old_record(path: Path) -> str:
    """A declaration from before there were copies."""
    return json.dumps({"location": str(path), "source": None, "domain": codec.plain(DOMAIN), "snapshot": 1})


def test_half_a_dataset_of_an_older_version_can_be_used(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", PLAIN)
    half_declared(tmp_path / "w.blowfish", path, "people")
    with Workspace(tmp_path / "w.blowfish", user="carla") as workspace:
        workspace._ledger.set_budget("never", bf.Epsilon(3), "carla")
        assert workspace.datasets() == ["people"] and count(workspace["people"]) == 30
        assert workspace["people"].policy.describe() == bf.Policy.differential_privacy(DOMAIN).describe()
        workspace["people"].publish(workspace["people"].hiding_within("v", 2), confirm=True)
        never = workspace.add_dataset("never", path, domain=DOMAIN, same_rows=True)
        assert str(never.budget.status.total) == "1"
        assert workspace.verify() == []


def test_one_name_is_declared_once(tmp_path: Path) -> None:
    path = write(tmp_path / "people.csv", PLAIN)
    opened = [Workspace(tmp_path / "w.blowfish", user=f"carla {k}") for k in range(12)]

    def declare(workspace: Workspace) -> str:
        try:
            workspace.add_dataset("people", path, domain=DOMAIN)
        except NameTaken:
            return "taken"
        return "declared"

    with ThreadPoolExecutor(12) as pool:
        outcomes = sorted(pool.map(declare, opened))
    assert outcomes == ["declared", *["taken"] * 11]
    assert len(copies(opened[0])) == 1 and count(opened[5]["people"]) == 30
    for workspace in opened:
        workspace.close()


def test_one_name_is_declared_once_over_http(tmp_path: Path) -> None:
    with running(tmp_path) as here:
        body = {"name": "other", "source": str(tmp_path / "salaries.duckdb"), "domain": codec.plain(SALARIES)}
        body |= {"same_rows": True}

        def declare(_: int) -> int:
            return int(here.curator.post("/api/v1/datasets", json=body).status_code)

        with ThreadPoolExecutor(12) as pool:
            assert sorted(pool.map(declare, range(12))) == [201, *[409] * 11]


# --- several workers --------------------------------------------------------------------------


def test_a_worker_that_was_not_told_reads_the_rows_of_the_snapshot(people: Dataset, tmp_path: Path) -> None:
    with Workspace(tmp_path / "w.blowfish", user="ana") as other:
        assert count(other["people"]) == 30
        for number in range(5, 10):
            write(tmp_path / "people.csv", PLAIN[:number])
            people.refresh()
            answer = other["people"].count().spend("0.01").ask()
            assert answer.values.tolist() == [number] and answer.receipt.snapshot == number - 3


def test_columns_that_were_declared_anew_elsewhere(people: Dataset, tmp_path: Path) -> None:
    with Workspace(tmp_path / "w.blowfish", user="ana") as other:
        other._rows.backend(other._records["people"])
        people.gateway.redeclare("people", bf.Domain(v=bf.Integer(0, 19)))
        answer = other["people"]["v"].histogram().spend("0.5").ask()
        assert len(answer.raw) == 20


@pytest.mark.parametrize(
    ("owner", "step"),
    [(Ledger, "reserve_all"), (DuckDB, "_types")],
    ids=["before the charge", "before a look"],
)
def test_a_refresh_erases_the_copy(people: Dataset, tmp_path: Path, owner: type, step: str) -> None:
    question = people["v"].histogram().spend("0.1")
    with (
        Workspace(tmp_path / "w.blowfish", user="carla") as other,
        just_before(owner, step, other["people"].refresh),
    ):
        assert question.ask().receipt.snapshot == 2
    assert people.budget.status.spent == bf.Epsilon("0.1")


def test_a_refresh_before_a_batch_is_charged(people: Dataset, tmp_path: Path) -> None:
    people.budget.set(500)
    people["v"].mean().spend("0.1").ask()
    write(tmp_path / "people.csv", PLAIN[:7])
    with (
        Workspace(tmp_path / "w.blowfish", user="carla") as other,
        just_before(Ledger, "reserve_all", other["people"].refresh),
    ):
        questions = people["v"].histogram().spend("0.1"), people["v"].mean().spend(100)
        answers = people.gateway.batch(*questions).ask()
    assert [answer.receipt.snapshot for answer in answers] == [2, 2]
    assert answers[1].values.tolist() == pytest.approx([3], abs=0.5)  # over the seven rows there are now
    assert people.budget.status.spent == bf.Epsilon("100.2")


def test_a_refresh_in_the_middle_of_a_batch(people: Dataset, tmp_path: Path) -> None:
    """The whole batch is about the rows that it was settled on for: they share its cost and are read.

    In other rows someone may be at the other end: no cost is shared with those.
    """
    people.publish(bf.Policy.by_column(people.schema, {"v": bf.graphs.Threshold(10, 1)}))
    bounds = ([(0, k) for k in range(3)], [(0, k) for k in range(6, 9)])
    low, high = (people["v"].ranges(ends).spend("0.1").using("laplace") for ends in bounds)
    settle, calls = Ledger.settle, list[int]()
    with Workspace(tmp_path / "w.blowfish", user="carla") as other, pytest.MonkeyPatch.context() as patch:

        def settled(ledger: Ledger, *given: Any, **named: Any) -> None:
            settle(ledger, *given, **named)
            calls.append(1)
            if len(calls) == 1:
                other["people"].refresh()

        patch.setattr(Ledger, "settle", settled)
        before = people.gateway.batch(low, high).ask(max_cost="0.1")
        after = people.gateway.batch(low, high).ask(max_cost="0.1")
    assert [answer.receipt.snapshot for answer in (*before, *after)] == [1, 1, 2, 2]
    assert people.budget.status.spent == bf.Epsilon("0.2")


def test_other_columns_between_the_plan_and_the_charge(people: Dataset, tmp_path: Path) -> None:
    question = people["v"].histogram().spend("0.1")
    with Workspace(tmp_path / "w.blowfish", user="carla") as other:

        def act() -> None:
            other["people"].declare(v=bf.Integer(0, 20))

        with (
            just_before(Ledger, "reserve_all", act),
            pytest.raises(PolicyConflict, match="Nothing was charged"),
        ):
            question.ask()
    assert not people.budget.status.spent


def test_a_refresh_while_a_copy_is_read(people: Dataset, tmp_path: Path) -> None:
    with Workspace(tmp_path / "w.blowfish", user="carla") as other:

        def act() -> None:
            write(tmp_path / "people.csv", PLAIN[:3])
            other["people"].refresh()

        with just_before(Prepared, "count", act):
            assert total(people) == 30
    (answer,) = people.gateway.answers()
    assert answer.receipt.snapshot == 1 and total(people) == 3


def test_a_refresh_while_a_database_is_read(workspace: Workspace, tmp_path: Path) -> None:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE p AS SELECT (range % 10)::INT AS v, 'a' AS t FROM range(50)")
    found = workspace.add_dataset("people", path, domain=DOMAIN)
    with just_before(Prepared, "count", found.refresh), pytest.raises(QueryFailed, match="withheld"):
        found["v"].histogram().spend("0.1").ask()
    assert str(found.budget.status.spent) == "0.1" and workspace.verify() == []


# --- deleting ---------------------------------------------------------------------------------


def test_a_deleted_dataset_leaves_its_books_and_nothing_else(people: Dataset, tmp_path: Path) -> None:
    workspace = people.gateway
    answer = people["v"].histogram().spend("0.1").ask()
    question = people["v"].histogram(width=2).spend("0.1")
    words = people.delete()
    assert "erased" in words and "Backups" in words and "books stay" in words
    assert workspace.datasets() == [] and copies(workspace) == [] and (tmp_path / "people.csv").exists()
    assert workspace.answer(answer.number).raw.tolist() == answer.raw.tolist() and workspace.verify() == []
    for act in (question.ask, question.quote, people.refresh, people.delete, lambda: people.source):
        with pytest.raises(UnknownDataset, match="was deleted"):
            act()
    with pytest.raises(NameTaken, match="was deleted"):
        workspace.add_dataset("people", tmp_path / "people.csv", domain=DOMAIN)
    assert str(workspace.budget("people").spent) == "0.1"


def test_copies_that_a_question_held_are_erased_as_well(people: Dataset, tmp_path: Path) -> None:
    ledger = Ledger(people.gateway.store)  # type: ignore[attr-defined]
    charge = ledger.reserve("people", "carla", bf.Epsilon("0.1"), "held", {}, reading=True)
    people.refresh()
    assert len(copies(people.gateway)) == 2  # type: ignore[arg-type]
    ledger.lose(charge, "ended")
    people.delete()
    assert not copies(people.gateway)  # type: ignore[arg-type]


def test_a_question_under_way_keeps_a_dataset(people: Dataset, tmp_path: Path) -> None:
    with Workspace(tmp_path / "w.blowfish", user="carla") as other:

        def act() -> None:
            with pytest.raises(PolicyConflict, match="just being answered"):
                other["people"].delete()

        with just_before(Prepared, "count", act):
            people["v"].histogram().spend("0.1").ask()


# --- from before there were copies ------------------------------------------------------------


def old_workspace(place: Path, path: Path) -> None:
    half_declared(place, path, "people")
    with Workspace(place, user="carla") as workspace:
        Catalogue(workspace.store).put(
            "policy", "people", json.dumps(codec.plain(bf.Policy.differential_privacy(DOMAIN)))
        )


def test_an_old_workspace_reads_its_files_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "people.csv", PLAIN)
    old_workspace(tmp_path / "w.blowfish", path)
    with Workspace(tmp_path / "w.blowfish", user="ana") as workspace, caplog.at_level(logging.WARNING):
        people = workspace["people"]
        people["v"].histogram().spend("0.1").quote()
        assert copies(workspace) == [] and people.source.copy is None
        answer = people.count().spend("0.1").ask()
        assert answer.values.tolist() == [30] and answer.receipt.snapshot == 2
        assert people.source.copy is not None and people.source.dialect is not None
        assert "read once more" in caplog.text
        path.unlink()
        assert total(people) == 30


def test_an_old_workspace_with_a_table_that_was_in_memory(tmp_path: Path) -> None:
    place = tmp_path / "w.blowfish"
    kept = tmp_path / f"w-{codec.digest('people')[:12]}.parquet"
    pq.write_table(pa.table({"v": [1, 2], "t": ["a", "b"]}), kept)
    old_workspace(place, kept)
    with Workspace(place, user="ana") as workspace:
        answer = workspace["people"].count().spend("0.1").ask()
        assert answer.values.tolist() == [2] and answer.receipt.snapshot == 1
        assert not kept.exists() and workspace["people"].source.location == ""


def test_an_old_workspace_whose_file_does_not_fit(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "people.csv"
    old_workspace(tmp_path / "w.blowfish", path)
    told = set()
    with Workspace(tmp_path / "w.blowfish", user="ana") as workspace:
        people = workspace["people"]
        for content in (None, "", "v,t\n1,a\nhunter2\n", "x\n1\n"):
            if content is not None:
                path.write_text(content)
            with pytest.raises(SourceError) as caught:
                people.count().spend("0.1").ask()
            told.add(str(caught.value))
        assert len(told) == 1 and "hunter2" not in caplog.text and "Line 3" in caplog.text
        assert not people.budget.status.spent and copies(workspace) == []
        with pytest.raises(bf.errors.UnknownColumn):
            people.refresh()
        write(path, PLAIN)
        assert count(people.refresh()) == 30


@pytest.mark.parametrize("rows", [[], ["3,a"]], ids=["nobody", "one row"])
def test_an_old_workspace_does_not_tell_whether_somebody_is_there(tmp_path: Path, rows: list[str]) -> None:
    path = write(tmp_path / "people.csv", rows)
    half_declared(tmp_path / "w.blowfish", path, "people")
    hidden = bf.Policy(DOMAIN, bf.graphs.Full(DOMAIN.size).hide_presence())
    with Workspace(tmp_path / "w.blowfish", user="ana") as workspace:
        Catalogue(workspace.store).put("policy", "people", json.dumps(codec.plain(hidden)))
        people = workspace["people"]
        answer = people.count().spend("0.1").ask()
        assert not answer.exact.any() and str(answer.receipt.cost) == "0.1"
        assert people.source.copy is not None and people.source.copy.rows == len(rows)


def test_a_file_without_a_row_is_not_declared_and_not_refreshed(people: Dataset, tmp_path: Path) -> None:
    nothing = write(tmp_path / "nobody.csv", [])
    with pytest.raises(SourceError, match=r"Line 2 of .* is missing"):
        people.gateway.add_dataset("nobody", nothing, domain=DOMAIN)
    write(tmp_path / "people.csv", [])
    with pytest.raises(SourceError, match=r"Line 2 of .* is missing"):
        people.refresh()
    assert count(people) == 30


# --- elsewhere --------------------------------------------------------------------------------


def test_a_workspace_in_postgres(postgres: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = postgres.new_schema()
    address = postgres.url(schema).replace("postgresql://", "postgresql+psycopg://")
    path = write(tmp_path / "people.csv", PLAIN)
    monkeypatch.delenv("BLOWFISHDB_COPIES", raising=False)
    with Workspace(address, user="carla") as workspace:
        with pytest.raises(InvalidInput, match="BLOWFISHDB_COPIES"):
            workspace.add_dataset("people", path, domain=DOMAIN)
        assert workspace.copies().used == 0
    monkeypatch.setenv("BLOWFISHDB_COPIES", str(tmp_path / "copies"))
    with Workspace(address, user="carla") as workspace:
        assert count(workspace.add_dataset("people", path, domain=DOMAIN)) == 30
    with Workspace(address, user="ana") as workspace:
        assert total(workspace["people"]) == 30
        assert len(list((tmp_path / "copies").glob("*/*/people.parquet"))) == 1


# --- over HTTP --------------------------------------------------------------------------------


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as found:
        yield found


def test_over_http(here: Running, tmp_path: Path) -> None:
    path = tmp_path / "leute.csv"
    path.write_text("v;t\n" + "1,5;a\n" * 20)
    proposed = here.curator.post("/api/v1/datasets/proposal", json={"source": str(path)}).json()
    assert proposed["dialect"]["decimal"] == "," and "semicolons" in proposed["read_as"]
    body = {
        "name": "leute",
        "source": str(path),
        "domain": codec.plain(DOMAIN),
        "dialect": proposed["dialect"],
    }
    assert here.curator.post("/api/v1/datasets", json=body).json()["kind"] == "copy"
    source = here.curator.get("/api/v1/datasets/leute/source").json()
    assert source["copy"]["rows"] == 20 and source["dialect"] == proposed["dialect"]
    held = here.curator.get("/api/v1/copies").json()
    assert [each["dataset"] for each in held["sources"]] == ["leute", "salaries"]
    path.write_text("v;t\n1\n")
    refused = here.curator.post("/api/v1/datasets/leute/refresh", json={})
    assert refused.status_code == 422 and "Line 2" in refused.json()["detail"]
    asked = {"question": "count()", "epsilon": "0.1"}
    answer = here.analyst.post("/api/v1/datasets/leute/answers", json=asked).json()
    assert answer["values"] == [20] and answer["receipt"]["snapshot"] == 1
    path.write_text("v,t\n1,a\n")
    again = here.curator.post("/api/v1/datasets/leute/refresh", json={"dialect": {"delimiter": ","}})
    assert again.json()["snapshot"] == 2
    gone = here.curator.delete("/api/v1/datasets/leute")
    assert gone.status_code == 200 and "books stay" in gone.json()["words"]
    assert here.analyst.post("/api/v1/datasets/leute/answers", json=asked).status_code == 404
    assert here.curator.post("/api/v1/datasets", json=body).status_code == 409
    for page in ("/datasets", "/answers", "/api/v1/answers", "/api/v1/datasets", "/api/v1/audit"):
        assert here.curator.get(page).status_code == 200, page
    assert here.curator.get(f"/answers/{answer['id']}").status_code in (200, 404)
    assert here.curator.get(f"/api/v1/answers/{answer['id']}").status_code == 200


def test_the_doctor_mends_what_an_older_version_left(tmp_path: Path) -> None:
    place = tmp_path / "w.blowfish"
    half_declared(place, write(tmp_path / "people.csv", PLAIN), "people")
    with Workspace(place, user="carla") as workspace:
        assert len(workspace.check_rows()) == 2
        workspace["people"].refresh()
        (copy,) = copies(workspace)
        copy.chmod(0o644)
        place.chmod(0o644)
        assert len(workspace.check_rows()) == 3
        assert len(workspace.repair()) == 3
        assert workspace.check_rows() == [] and workspace.repair() == [] and workspace.verify() == []
        copy.unlink()
        assert "not there" in workspace.check_rows()[0]
    found = {check.name: check for check in checks(str(place), repair=True)}
    assert found["rows"].state is State.WARN and "not there" in found["rows"].found
