"""Backup, restore, delete: whole and verified, or not at all; nothing is overwritten, no charge forgotten."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.store.backup import backup, delete, restore
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.values import State
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, WorkspaceError
from tests.postgres import Server


@pytest.fixture
def ledger(ledger: Ledger) -> Ledger:
    """One in which something was spent."""
    spend(ledger)
    return ledger


def spend(ledger: Ledger, amount: str = "0.1", question: str = "q") -> None:
    charge = ledger.reserve("people", "ana", Epsilon(amount), question, {})
    ledger.settle(ledger.mark_reading(charge), "[1]")


def files(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_there_and_back(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    spend(ledger, question="it's")
    saved, back = tmp_path / "saved 100%.blowfish", tmp_path / "back?.db"
    copy = backup(ledger.store, saved)
    assert (copy.path, copy.events) == (saved, 7) and copy.until is not None
    spend(ledger, question="after the backup")
    restored = restore(saved, back)
    assert (restored.path, restored.events, restored.until) == (back, 7, copy.until)
    again = Ledger.open(back)
    assert again.charges() == ledger.charges()[:2] and again.verify() == []
    again.close()
    assert {"saved 100%.blowfish", "back?.db"} == {
        f for f in files(tmp_path) if not f.startswith("workspace")
    }


def test_a_backup_is_consistent_while_others_write(ledger: Ledger, tmp_path: Path) -> None:
    ledger.set_budget("people", Epsilon(1000), "carla")
    ended = threading.Event()

    def write() -> None:
        number = 0
        while not ended.is_set():
            spend(ledger, "0.001", str(number))
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        copies = [backup(ledger.store, tmp_path / f"{number}.bak") for number in range(6)]
    finally:
        ended.set()
        writer.join()
    assert sorted(copy.events for copy in copies) == [copy.events for copy in copies]
    assert copies[-1].events > copies[0].events  # the writer was not kept waiting


def test_what_was_under_way_at_the_backup_is_spent_after_a_restore(ledger: Ledger, tmp_path: Path) -> None:
    reserved = ledger.reserve("people", "ana", Epsilon("0.2"), "q2", {})
    reading = ledger.mark_reading(ledger.reserve("people", "ana", Epsilon("0.3"), "q3", {}))
    backup(ledger.store, tmp_path / "saved")
    ledger.settle(ledger.mark_reading(reserved), "[2]")  # released, and the copy does not know
    restore(tmp_path / "saved", tmp_path / "back")
    again = Ledger.open(tmp_path / "back")
    assert [again.charge(c.id).state for c in (reserved, reading)] == [State.LOST, State.LOST]
    assert again.budget("people").spent == Epsilon("0.6") and not again.budget("people").held
    assert again.verify() == []
    again.close()


def test_nothing_is_overwritten(ledger: Ledger, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("precious")
    backup(ledger.store, tmp_path / "saved")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "half-wal").write_text("of a workspace that was moved")
    for place in ("taken", "dangling", "half"):
        for act in (
            lambda place=place: backup(ledger.store, tmp_path / place),
            lambda place=place: restore(tmp_path / "saved", tmp_path / place),
        ):
            with pytest.raises(WorkspaceError, match=r"already.*nothing is overwritten.*another path"):
                act()
    assert taken.read_text() == "precious" and not (tmp_path / "half").exists()
    with pytest.raises(WorkspaceError, match="no folder"):
        backup(ledger.store, tmp_path / "no" / "folder")


def test_a_damaged_backup_is_not_restored(ledger: Ledger, tmp_path: Path) -> None:
    saved = tmp_path / "saved"
    backup(ledger.store, saved)
    with sqlite3.connect(saved) as connection:
        connection.execute("UPDATE budgets SET spent = 0")
    with pytest.raises(WorkspaceError, match=r"do not add up.*another backup"):
        restore(saved, tmp_path / "back")
    content = bytearray(saved.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    saved.write_bytes(bytes(content))
    with pytest.raises(WorkspaceError, match="Try"):
        restore(saved, tmp_path / "back")
    saved.write_bytes(b"")
    with pytest.raises(WorkspaceError, match="not a workspace"):
        restore(saved, tmp_path / "back")
    with pytest.raises(WorkspaceError, match="no file"):
        restore(tmp_path / "nowhere", tmp_path / "back")
    assert not [name for name in files(tmp_path) if name.startswith("back")]


def test_deleting(ledger: Ledger, path: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match=r"open elsewhere.*not deleted.*close it"):
        delete(path)
    assert ledger.verify() == [] and ledger.answer("q") is not None
    ledger.close()
    delete(path)
    assert files(tmp_path) == set()
    with pytest.raises(WorkspaceError, match="no file"):
        delete(path)


def test_a_workspace_whose_process_was_killed_is_deleted_with_its_journal(path: Path, tmp_path: Path) -> None:
    script = f"""
        import os
        from blowfishdb.adapters.store.ledger import Ledger
        from blowfishdb.core.budget import Epsilon
        Ledger.open({str(path)!r}).set_budget("people", Epsilon(1), "carla")
        os._exit(0)  # nothing is closed
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=60)
    assert {path.name, path.name + "-wal"} <= files(tmp_path)
    delete(path)
    assert files(tmp_path) == set()


def test_only_workspaces_are_deleted(tmp_path: Path) -> None:
    foreign, text = tmp_path / "foreign.db", tmp_path / "text"
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE songs (title TEXT)")
    text.write_text("dear diary" * 1000)
    for place, words in ((foreign, "not a workspace"), (text, "not a workspace"), (tmp_path, "no file")):
        with pytest.raises(WorkspaceError, match=words):
            delete(place)
    assert files(tmp_path) == {"foreign.db", "text"}


def test_a_workspace_in_postgresql_has_its_own_tools(postgres: Server, tmp_path: Path) -> None:
    address = postgres.new_workspace()
    store = Store.open(address)
    for act, words in (
        (lambda: backup(store, tmp_path / "saved"), "pg_dump"),
        (lambda: restore(tmp_path / "saved", address), "pg_restore"),
        (lambda: delete(address), "dropdb"),
    ):
        with pytest.raises(InvalidInput, match=words):
            act()
    store.close()
    assert files(tmp_path) == set()


def test_a_restored_workspace_lets_nobody_in_by_an_old_token(tmp_path: Path) -> None:
    with closing(Ledger.open(tmp_path / "w.blowfish")) as ledger:
        Accounts(ledger.store).add("ana", Role.ANALYST, None)
        text, _ = Tokens(ledger.store).issue("ana", purpose="api", lifetime=timedelta(days=1))
        assert Tokens(ledger.store).who(text) is not None
        backup(ledger.store, tmp_path / "copy.blowfish")
    restore(tmp_path / "copy.blowfish", tmp_path / "again.blowfish")
    with closing(Ledger.open(tmp_path / "again.blowfish")) as ledger:
        assert Accounts(ledger.store).find("ana") is not None
        assert Tokens(ledger.store).who(text) is None
