"""Formats of the workspace: made whole, upgraded in one transaction, refused when they are newer."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from blowfishdb.adapters.store import database, migrations
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.tables import SCHEMA_VERSION, metadata
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import WorkspaceError

NEXT, LAST = SCHEMA_VERSION + 1, SCHEMA_VERSION + 2
SECOND = """
import sqlalchemy as sa
from alembic import op

revision = "NEXT"
down_revision = "NOW"


def upgrade() -> None:
    with op.batch_alter_table("budgets") as table:  # SQLite copies the table that others refer to
        table.add_column(sa.Column("note", sa.Text))
        table.alter_column("total", type_=sa.BigInteger, nullable=False)
"""
THIRD = SECOND.replace('"NEXT"', f'"{LAST}"').replace('"NOW"', f'"{NEXT}"').replace('"note"', '"remark"')
SECOND = SECOND.replace('"NEXT"', f'"{NEXT}"').replace('"NOW"', f'"{SCHEMA_VERSION}"')
BROKEN = THIRD.replace("def upgrade() -> None:", "def upgrade() -> None:\n    op.execute('SELECT nothing')")


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "workspace.db")
    return str(request.getfixturevalue("postgres").new_workspace())


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """This package as it may be one day: two formats later."""
    versions = tmp_path / "migrations" / "versions"
    versions.mkdir(parents=True)
    for script in (migrations.FOLDER / "versions").glob("r*.py"):
        (versions / script.name).write_text(script.read_text())
    (versions / "next_note.py").write_text(SECOND)
    (versions / "next_remark.py").write_text(THIRD)
    with monkeypatch.context() as patch:
        patch.setattr(migrations, "FOLDER", versions.parent)
        patch.setattr(database, "SCHEMA_VERSION", LAST)
        yield versions


def fill(place: str) -> list[object]:
    ledger = Ledger.open(place)
    ledger.set_budget("people", Epsilon(1), "carla")
    ledger.grant("people", "ana", Epsilon("0.5"))
    charge = ledger.reserve("people", "ana", Epsilon("0.1"), "q", {})
    ledger.settle(ledger.mark_reading(charge), "[1]")
    content = [ledger.charges(), ledger.grants("people"), ledger.budget("people")]
    ledger.close()
    return content


def content(place: str) -> list[object]:
    ledger = Ledger.open(place)
    try:
        assert ledger.verify() == []
        return [ledger.charges(), ledger.grants("people"), ledger.budget("people")]
    finally:
        ledger.close()


def columns(place: str, table: str) -> set[str]:
    opened = Store.open(place)
    try:
        with opened.reading() as connection:
            return {column["name"] for column in inspect(connection).get_columns(table)}
    finally:
        opened.close()


@pytest.fixture
def older(place: str) -> tuple[str, list[object]]:
    return place, fill(place)


def test_the_scripts_and_the_tables_agree(place: str) -> None:
    """Whoever changes store_schema writes a script, and the other way round."""
    address = place if "://" in place else f"sqlite:///{place}"
    engine = create_engine(address)
    with engine.begin() as connection:
        migrations.upgrade(connection, 0, SCHEMA_VERSION)
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    engine.dispose()


def test_an_older_workspace_is_upgraded_and_loses_nothing(
    older: tuple[str, list[object]], newer: Path
) -> None:
    place, before = older
    assert content(place) == before
    assert {"note", "remark"} <= columns(place, "budgets")
    with pytest.raises(WorkspaceError):  # constraints and references survived the copying of the table
        opened = Store.open(place)
        try:
            with opened.writing() as connection:
                connection.execute(text("UPDATE budgets SET spent = total + 1"))
        finally:
            opened.close()
    assert content(place) == before


def test_an_upgrade_that_fails_changes_nothing(older: tuple[str, list[object]], newer: Path) -> None:
    place, before = older
    (newer / "next_remark.py").write_text(BROKEN)
    with pytest.raises(WorkspaceError):
        Store.open(place)
    (newer / "next_remark.py").write_text(THIRD)
    assert content(place) == before


def test_many_upgrade_at_once(older: tuple[str, list[object]], newer: Path) -> None:
    place, before = older
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(content, [place] * 4)) == [before] * 4


def test_many_make_one_at_once(place: str) -> None:
    with ThreadPoolExecutor(6) as pool:
        for opened in pool.map(lambda _: Ledger.open(place), range(6)):
            opened.close()
    fill(place)
    content(place)


def test_a_newer_workspace_is_refused_and_left_alone(place: str, request: pytest.FixtureRequest) -> None:
    fill(place)
    opened = Store.open(place)
    for said, words in (
        ("99", rf"newer version.*format 99.*reads up to {SCHEMA_VERSION}.*upgrade"),
        ("x", "format"),
        ("0", "format"),
    ):
        with opened.writing() as connection:
            connection.execute(text("UPDATE blowfish_meta SET value = :said"), {"said": said})
        with pytest.raises(WorkspaceError, match=words):
            Store.open(place)
    with opened.writing() as connection:
        connection.execute(text(f"UPDATE blowfish_meta SET value = '{SCHEMA_VERSION}'"))
    opened.close()
    content(place)


def test_a_gap_between_scripts_is_found(older: tuple[str, list[object]], newer: Path) -> None:
    (newer / "next_remark.py").write_text(THIRD.replace(f'"{NEXT}"', f'"{SCHEMA_VERSION}"'))
    with pytest.raises(Exception, match=r"does not follow|multiple|overlap"):
        Store.open(older[0])


def test_an_up_to_date_workspace_opens_without_alembic_and_without_the_turn_to_write(tmp_path: Path) -> None:
    path = tmp_path / "workspace.db"
    fill(str(path))
    with sqlite3.connect(path) as writer:
        writer.execute("BEGIN IMMEDIATE")
        code = (
            "import sys\nfrom blowfishdb.adapters.store.database import Store\n"
            f"Store.open({str(path)!r}).close()\nassert 'alembic' not in sys.modules"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=30)
