"""What the world can do to the files: nothing is overspent, nothing is lost, and every message helps."""

from __future__ import annotations

import os
import random
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest
from sqlalchemy import event

import blowfishdb as bf
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.adapters.store import database
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import State
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import (
    AnswerInProgress,
    BlowfishError,
    QueryFailed,
    SourceCorrupt,
    SourceError,
    SourceMissing,
    WorkspaceError,
)
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace
from tests.engine.people import DOMAIN, PRICE, make_workspace, question
from tests.engine.stages import just_before

ROWS = 20_011
NAME = "Zebedee"  # a value in every row, which no message may hold


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        columns = f"(i * 7919 % 1000)::INT AS age, (i % 100)::INT AS floor, '{NAME}' || i AS name"
        connection.execute(f"CREATE TABLE people AS SELECT {columns} FROM range({ROWS}) t(i)")
    return path


@pytest.fixture
def place(data: Path, tmp_path: Path) -> Path:
    make_workspace(tmp_path / "w.blowfish", data, "1")
    return tmp_path / "w.blowfish"


@pytest.fixture
def people(place: Path) -> Iterator[Dataset]:
    with Workspace(place, user="ana") as workspace:
        yield workspace["people"]


def check_words(error: BlowfishError) -> None:
    """What to try, and nothing of the data, not even in what a traceback shows."""
    assert "Try: " in str(error), str(error)
    shown = "".join(traceback.format_exception(error))
    for secret in (NAME, str(ROWS), f"{ROWS:,}"):
        assert secret not in shown


def fails(people: Dataset, number: int, kind: type[BlowfishError], words: str, *, charged: bool) -> None:
    with pytest.raises(kind, match=words) as caught:
        question(people, number).ask()
    check_words(caught.value)
    assert caught.value.charged is charged


def check_spent(people: Dataset, answers: int, *, held: int = 0) -> None:
    status = people.budget.status
    assert (status.spent.nano, status.held.nano) == (answers * PRICE.nano, held * PRICE.nano)
    assert people.gateway.verify() == []


def scramble(path: Path, start: int = 4096, stop: int | None = None) -> None:
    content = bytearray(path.read_bytes())
    stop = len(content) if stop is None else stop
    content[start:stop] = random.Random(start).randbytes(stop - start)
    with path.open("r+b") as file:  # in place: whoever has it open sees it
        file.write(content)


# --- the data -----------------------------------------------------------------------------------


class TestTheDataBeforeTheQuery:
    """Whatever is wrong already costs nothing, and after a repair the same question is answered."""

    def test_removed(self, people: Dataset, data: Path) -> None:
        aside = data.rename(data.with_suffix(".aside"))
        fails(people, 1, SourceMissing, r"no file.*check the path", charged=False)
        check_spent(people, 0)
        aside.rename(data)
        question(people, 1).ask()
        check_spent(people, 1)

    def test_damaged(self, people: Dataset, data: Path) -> None:
        whole = data.read_bytes()
        scramble(data, 0)
        fails(people, 1, SourceCorrupt, r"not a DuckDB database|damaged", charged=False)
        data.write_bytes(whole[: len(whole) // 2])
        fails(people, 1, SourceError, r"damaged|cannot read", charged=False)
        data.write_bytes(whole)
        question(people, 1).ask()
        check_spent(people, 1)

    def test_locked(self, people: Dataset, data: Path) -> None:
        code = "import duckdb, sys\nwith duckdb.connect(sys.argv[1]): print('open', flush=True); input()"
        command = [sys.executable, "-c", code, str(data)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdin is not None and writer.stdout is not None
            assert writer.stdout.readline() == "open\n"
            fails(people, 1, SourceError, r"open for writing elsewhere.*close it there", charged=False)
            writer.communicate("\n")
        question(people, 1).ask()
        check_spent(people, 1)

    def test_a_table_that_changed(self, people: Dataset, data: Path) -> None:
        with duckdb.connect(str(data)) as connection:
            connection.execute("ALTER TABLE people RENAME COLUMN age TO years")
        fails(people, 1, bf.errors.UnknownColumn, r"no column 'age'.*years", charged=False)
        check_spent(people, 0)


class TestTheDataDuringTheQuery:
    """Once the reading mark is made the charge stands, and the error says so."""

    def test_damaged(self, people: Dataset, data: Path) -> None:
        whole = data.read_bytes()
        with just_before(Prepared, "count", lambda: scramble(data, 12_288)):
            fails(people, 1, QueryFailed, r"could not answer.*ask the curator to check", charged=True)
        check_spent(people, 1)
        (charge,) = people.gateway._ledger.charges()
        assert (charge.state, charge.reason) == (State.LOST, "QueryFailed")
        data.write_bytes(whole)
        people.gateway.close()
        with Workspace(people.gateway.store.name, user="ana") as again:
            question(again["people"], 1).ask()
            check_spent(again["people"], 2)

    def test_removed(self, tmp_path: Path) -> None:
        rows = tmp_path / "people.csv"
        content = "age,floor,name\n" + "".join(f"{i % 1000},{i % 100},{NAME}\n" for i in range(3_000))
        rows.write_text(content)
        with Workspace(tmp_path / "csv.blowfish", user="ana") as workspace:
            people = workspace.add_dataset("people", rows, domain=DOMAIN)
            with just_before(Prepared, "count", rows.unlink):  # answers come from a copy
                question(people, 1).ask()
            (copy,) = tmp_path.glob("csv.blowfish.copies/*/people.parquet")
            with just_before(Prepared, "count", copy.unlink):
                fails(people, 2, QueryFailed, r"could not answer.*ask the curator", charged=True)
            check_spent(people, 2)
            fails(people, 3, SourceError, r"no longer there|cannot read", charged=False)
            rows.write_text(content)
            people.refresh()
            question(people, 3).ask()
            check_spent(people, 3)


def test_the_data_removed_after_the_query(people: Dataset, data: Path) -> None:
    first = question(people, 1).ask()
    people.gateway.close()
    data.unlink()
    with Workspace(people.gateway.store.name, user="ana") as again:
        stored = question(again["people"], 1).ask()
        assert (stored.raw == first.raw).all() and not stored.receipt.cost
        fails(again["people"], 2, SourceMissing, "no file", charged=False)
        check_spent(again["people"], 1)


# --- the disk of the ledger ---------------------------------------------------------------------


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file of this process can grow beyond ``size``, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_that_fills_up_at_any_write(people: Dataset, place: Path) -> None:
    """The journal may grow by a little more each time, so that every step of ``ask`` fails once."""
    journal = place.with_name(place.name + "-wal")
    ledger = people.gateway._ledger
    while not journal.exists() or journal.stat().st_size < 100_000:
        people.budget.set("2")
    outcomes: list[str] = []
    for number in range(1, 60):
        before = people.budget.status.spent
        try:
            with largest_file(journal.stat().st_size + 8_192 * (number - 1)):
                question(people, number).ask()
        except WorkspaceError as error:
            check_words(error)
            assert "disk" in str(error)
            left = [charge.state for charge in ledger.charges() if charge.state.held]
            lost = people.budget.status.spent > before
            assert error.charged == (lost or State.READING in left)
            outcomes.append("lost" if lost else left[0].value if left else "nothing")
            Ledger(people.gateway.store).recover()
        else:
            outcomes.append("answer")
        assert people.gateway.verify() == []
        assert not question(people, number).ask().receipt.cost or outcomes[-1] != "answer"
        if outcomes[-3:] == ["answer"] * 3:
            break
    assert {"nothing", "reading", "answer"} <= set(outcomes), outcomes


def test_a_ledger_that_may_not_grow(people: Dataset) -> None:
    """SQLite's own limit: the answer is too long to be stored, so it is not given out."""
    full: list[bool] = []

    def limit(connection) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar() if full else 2**30
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    event.listen(people.gateway.store._engine, "begin", limit)
    with just_before(Ledger, "settle", lambda: full.append(True)), pytest.raises(WorkspaceError) as caught:
        people["age"].histogram(width=1).spend(PRICE).ask()
    assert "disk is full" in str(caught.value) and caught.value.charged
    check_words(caught.value)
    full.clear()
    Ledger(people.gateway.store).recover()
    check_spent(people, 1)
    people["age"].histogram(width=1).spend(PRICE).ask()
    check_spent(people, 2)


def pages_without_rows(path: Path) -> int:
    """An empty table has one page, and so has each of its indexes."""
    with closing(sqlite3.connect(path)) as connection:
        roots = connection.execute("SELECT tbl_name FROM sqlite_master WHERE rootpage > 0").fetchall()
        return sum(
            connection.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() is None for (name,) in roots
        )


def test_a_damaged_page_gives_no_answer_away(place: Path, tmp_path: Path) -> None:
    """Every page in turn: either the ledger is refused, or what it holds is still known to the audit."""
    with Workspace(place, user="ana") as workspace:
        for number in range(1, 4):
            question(workspace["people"], number).ask()
    pages, found = place.stat().st_size // 4096, 0
    for page in range(pages):
        broken = tmp_path / f"{page}.blowfish"
        shutil.copy(place, broken)
        scramble(broken, page * 4096 + (100 if page == 0 else 0), (page + 1) * 4096)
        try:
            with Workspace(broken, user="ana") as workspace:
                problems = workspace.verify()
                answer = question(workspace["people"], 5).ask()
                assert not problems and answer.receipt.cost == PRICE  # a page that holds nothing
                check_spent(workspace["people"], 4)
        except BlowfishError as error:
            found += 1
            check_words(error)
            assert not error.charged
    assert found >= pages - pages_without_rows(place) - 2


# --- the file of the ledger ---------------------------------------------------------------------


def test_locked_before_and_during(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0.05)
    writer = sqlite3.connect(place, isolation_level=None)
    with Workspace(place, user="ana") as workspace:
        people = workspace["people"]
        writer.execute("BEGIN IMMEDIATE")
        assert question(people, 1).quote().epsilon == PRICE  # looking needs no turn
        fails(people, 1, WorkspaceError, r"busy.*try again", charged=False)
        writer.execute("ROLLBACK")
        check_spent(people, 0)
        with just_before(Prepared, "count", lambda: writer.execute("BEGIN IMMEDIATE")):
            fails(people, 1, WorkspaceError, r"busy.*try again", charged=True)
        writer.execute("ROLLBACK")
        check_spent(people, 0, held=1)
        fails(people, 1, AnswerInProgress, r"being answered.*Nothing was charged", charged=False)
        Ledger(workspace.store).recover()
        check_spent(people, 1)
        question(people, 1).ask()
        check_spent(people, 2)
    writer.close()


@pytest.mark.parametrize("step", ["reserve_all", "settle"])
def test_removed_or_replaced_while_open(people: Dataset, place: Path, step: str) -> None:
    """SQLite would go on writing a file that nobody can open again."""
    aside = place.with_name("aside.blowfish")
    with just_before(Ledger, step, lambda: place.rename(aside)):
        fails(people, 1, WorkspaceError, r"removed or replaced.*put it back", charged=step == "settle")
    people.gateway.close()
    shutil.move(aside, place)
    with Workspace(place, user="ana") as again:
        again._ledger.recover()
        check_spent(again["people"], 1 if step == "settle" else 0)
        question(again["people"], 1).ask()


@contextmanager
def unprivileged() -> Iterator[None]:
    """Permissions mean nothing to root, so root becomes nobody for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_a_folder_that_may_not_be_written(place: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    try:
        kept = folder / "kept.blowfish"
        shutil.copy(place, kept)
        kept.chmod(0o444)
        folder.chmod(0o555)
        with unprivileged():
            for path in (folder / "new.blowfish", kept):
                with pytest.raises(WorkspaceError, match=r"(opened|written).*permissions") as caught:
                    Workspace(path, user="ana")
                check_words(caught.value)
        assert kept.read_bytes() == place.read_bytes() and [*folder.iterdir()] == [kept]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


# --- the clock ----------------------------------------------------------------------------------


def test_a_clock_that_goes_back(people: Dataset) -> None:
    now = [datetime(2030, 1, 1, tzinfo=UTC)]
    ledger = people.gateway._ledger
    ledger._clock = lambda: now[0]
    question(people, 1).ask()
    abandoned = Ledger(people.gateway.store, clock=lambda: now[0])
    charge = abandoned.mark_reading(abandoned.reserve("people", "ben", PRICE, "q", {}))
    now[0] -= timedelta(days=400)
    question(people, 2).ask()
    assert not question(people, 1).ask().receipt.cost
    assert [c.id for c in ledger.recover(timedelta(minutes=15))] == [charge.id]
    check_spent(people, 3)
    assert people.budget.status.remaining == Epsilon(1) - Epsilon("0.03")


def test_an_abandoned_question_is_not_blocked_by_a_clock_that_was_set_back(people: Dataset) -> None:
    now = [datetime(2030, 1, 1, tzinfo=UTC)]
    dead, alive = (Ledger(people.gateway.store, clock=lambda: now[0]) for _ in range(2))
    dead.reserve("people", "ana", PRICE, "q", {}, once=True)
    with pytest.raises(AnswerInProgress):
        alive.reserve("people", "ana", PRICE, "q", {}, once=True)
    now[0] -= timedelta(days=1)
    alive.reserve("people", "ana", PRICE, "q", {}, once=True)
    check_spent(people, 0, held=2)
