"""What a guarantee rests on outside the ledger is on record: whatever is changed there by hand is named."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import Table

import blowfishdb as bf
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.once import Idempotency
from blowfishdb.adapters.store.tables import catalogue, idempotency, tokens, users
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.core.policy.codec import digest
from blowfishdb.workspace.embedded import Workspace
from tests.adapters.workspaces import HandClock, make_format_1

DOMAIN = bf.Domain(age=bf.Integer(0, 9), sex=bf.Category(["f", "m"]))
QUICK = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
TABLES = (catalogue, users, tokens, idempotency)
NAMED = {
    "catalogue": r"Version \d of the (dataset|policy) of 'people'|Version x",
    "users": "The account '(ana|carla)'|The account",
    "tokens": "The token ",
    "idempotency": "A response kept for ",
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace with something of everything: a declaration, two policies, accounts, tokens, a response."""
    rows = tmp_path / "people.csv"
    rows.write_text("age,sex\n" + "\n".join(f"{n % 10},{'fm'[n % 2]}" for n in range(40)))
    place = tmp_path / "w.blowfish"
    with Workspace(place, user="carla") as workspace:
        people = workspace.add_dataset("people", rows, domain=DOMAIN)
        sex_public = bf.graphs.Product(bf.graphs.Full(10), bf.graphs.Partitioned([0, 1]))
        people.publish(bf.Policy(DOMAIN, sex_public), confirm=True)
        people["age"].histogram().spend("0.1").ask()
        accounts, issued = Accounts(workspace.store, hasher=QUICK), Tokens(workspace.store)
        for name, role in (("carla", Role.CURATOR), ("ana", Role.ANALYST)):
            accounts.add(name, role, "a long password", by="carla")
            issued.issue(name, purpose="api", lifetime=timedelta(days=1), label="script")
        issued.revoke_token(issued.tokens("ana")[0].id)
        issued.issue("ana", purpose="session", lifetime=timedelta(hours=1))
        Idempotency(workspace.store).keep("ana", "k", digest("asked"), json.dumps({"status": 200}))
        assert workspace.verify() == []
    return place


def problems(place: Path) -> list[str]:
    with Workspace(place) as workspace:
        return workspace.verify()


def edited(place: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(statement, values)


@pytest.mark.parametrize(
    ("table", "column"),
    [(table, column.name) for table in TABLES for column in table.columns],
    ids=lambda part: part if isinstance(part, str) else part.name,
)
def test_any_changed_value_is_named(place: Path, table: Table, column: str) -> None:
    with closing(sqlite3.connect(place)) as connection:
        rows = connection.execute(f'SELECT rowid, "{column}" FROM {table.name}').fetchall()
    assert rows
    for number, old in rows:
        new = old + 50 if isinstance(old, int) else f"{old}x" if old is not None else "2031-01-01"
        edited(place, f'UPDATE {table.name} SET "{column}" = ? WHERE rowid = ?', new, number)
        with closing(Store.open(place)) as store:
            found = Ledger(store).verify()
        assert any(_names(table.name, said) for said in found), (table.name, column, number, found)
        edited(place, f'UPDATE {table.name} SET "{column}" = ? WHERE rowid = ?', old, number)
    assert problems(place) == []


def _names(table: str, said: str) -> bool:
    return re.match(NAMED[table], said) is not None


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_any_removed_row_is_named(place: Path, table: Table) -> None:
    with closing(sqlite3.connect(place)) as connection:
        rows = connection.execute(f"SELECT rowid, * FROM {table.name}").fetchall()
    for row in rows:
        edited(place, f"DELETE FROM {table.name} WHERE rowid = ?", row[0])
        with closing(Store.open(place)) as store:
            found = Ledger(store).verify()
        assert any(said.endswith("is missing.") for said in found), found
        edited(place, f"INSERT INTO {table.name} VALUES ({', '.join('?' for _ in row[1:])})", *row[1:])
    assert problems(place) == []


def test_a_row_that_was_added_by_hand_is_named(place: Path) -> None:
    edited(place, "INSERT INTO users VALUES ('mallory', 'curator', NULL, '2026-01-01', NULL)")
    assert problems(place) == ["The account 'mallory' is not on record: no event speaks of it."]


def test_a_change_through_the_front_door_does_not_make_an_edit_good(place: Path) -> None:
    """Whoever makes himself a curator by hand and then gets a new password is still found."""
    edited(place, "UPDATE users SET role = 'curator' WHERE name = 'ana'")
    with closing(Store.open(place)) as store:
        Accounts(store, hasher=QUICK).set_password("ana", "another long password")
    found = problems(place)
    assert len(found) == 1 and "The account 'ana' was not as it had been left when event" in found[0]


def test_the_key_and_the_seals_are_looked_at_too(place: Path) -> None:
    edited(place, "UPDATE seals SET seal = ? WHERE place = 'key'", "ab" * 32)
    assert sum("was changed outside" in said for said in problems(place)) >= 8


def test_every_cached_seal_counts(place: Path) -> None:
    edited(place, "DELETE FROM seals WHERE place != 'key'")
    assert problems(place) == ["The seals are not those that the events speak of."]


def test_nothing_can_be_guessed_from_an_event(place: Path) -> None:
    """A role is one of three, and a digest of it would say which: a seal needs the key of the workspace."""
    with Workspace(place) as workspace:
        told = [event for event in workspace.events() if event.kind == "account"]
        salts = [event.salt for event in workspace.events()]
    assert all(len(entry["seal"]) == 64 for event in told for entry in event.sealed)
    assert len(set(salts)) == len(salts) and all(len(salt) == 32 for salt in salts)


def test_drafts_and_notes_between_processes_are_not_covered(place: Path) -> None:
    with Workspace(place) as workspace:
        before = len(workspace.events())
        workspace.save_draft("people", workspace.facts("people").policy)
        assert len(workspace.events()) == before and workspace.verify() == []


def test_old_responses_are_forgotten_on_record(place: Path) -> None:
    clock = HandClock()
    with closing(Store.open(place)) as store:
        requests = Idempotency(store, clock)
        clock.move(days=800)
        assert requests.once("ana", "other", digest("other")) is None
    assert problems(place) == []


def test_an_older_workspace_is_covered_from_its_upgrade_on(tmp_path: Path) -> None:
    place = str(tmp_path / "old.blowfish")
    make_format_1(place)
    edited(Path(place), "INSERT INTO catalogue VALUES ('dataset', 'people', 1, '{}', '2026-01-01')")
    with closing(Store.open(place)) as store:
        audited = Ledger(store).audit()
        assert audited.problems == () and audited.since is not None
        assert audited.checked["versions of declarations and policies"] == 1
        assert any("since" in said and "upgraded" in said for said in audited.sentences)
    edited(Path(place), "UPDATE catalogue SET body = '[]'")
    with closing(Store.open(place)) as store:
        assert Ledger(store).verify() == [
            "Version 1 of the dataset of 'people' was changed outside of BlowfishDB."
        ]


def test_only_one_module_writes_what_is_sealed() -> None:
    """Who wrote past the seals would make the audit fail for everybody."""
    direct = re.compile(r"\b(catalogue|users|tokens|seals)\.(insert|update|delete)\(")
    package = Path(bf.__file__).parent
    found = {
        path.name
        for path in package.rglob("*.py")
        if direct.search(path.read_text()) and path.parent.name != "versions"
    }
    assert found <= {"chain.py", "database.py"}
