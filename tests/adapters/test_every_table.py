"""Every table of a workspace is edited by hand: the audit names what was changed, added or removed.

The tables come from the schema, so that a new one cannot be forgotten. What may change unseen is listed with
the reason.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher
from sqlalchemy import Table

import blowfishdb as bf
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.once import Idempotency, Scratch
from blowfishdb.adapters.store.tables import metadata
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.policy.codec import digest
from blowfishdb.workspace.embedded import Workspace

DOMAIN = bf.Domain(age=bf.Integer(0, 9), sex=bf.Category(["f", "m"]))
QUICK = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
TABLES = {table.name: table for table in metadata.sorted_tables}
NO_TEXT = "no text"
"""Stands for a text of bytes that are none."""
Row = dict[str, Any]

NAMED = {
    "heads": "The end of the events",
    "budgets": r"The budget of ",
    "accounts": r"What '.*' spent on ",
    "charges": "Charge .+ (was changed|has no event|is missing)",
    "promises": r"The promise ",
    "losses": r"What charge .* costs under kept promises|The promise ",
    "events": "Event |The end of the events",
    "releases": r"The index (of release .* is not|speaks of a release )",
    "grids": "The boxes .* of the index are not",
    "seals": r"The seals are not those|The key under which|.* was changed outside of BlowfishDB",
    "catalogue": r"Version .* of the .* of ",
    "users": "The account ",
    "tokens": "The token ",
    "idempotency": "A response kept for ",
}
"""How the audit speaks of each table."""


@dataclass(frozen=True)
class Unseen:
    """Rows that may change without the audit's notice, and why."""

    rows: Callable[[Row], bool]
    why: str


UNSEEN = {
    "blowfish_meta": Unseen(
        lambda row: True, "The format is checked on opening; the identity only names the folder of copies."
    ),
    "login_attempts": Unseen(lambda row: True, "Waits after wrong passwords bear no guarantee."),
    "catalogue": Unseen(lambda row: row["kind"] == "draft", "A draft promises nothing yet."),
    "idempotency": Unseen(
        lambda row: row["body"] is None or str(row["key"]).startswith("\x1f"),
        "Requests under way and notes between processes; what was charged under a key is in the ledger.",
    ),
}


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy, to be edited."""
    return shutil.copy(made, tmp_path / made.name)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with something of everything."""
    folder = tmp_path_factory.mktemp("every-table")
    rows = folder / "people.csv"
    rows.write_text("age,sex\n" + "\n".join(f"{n % 10},{'fm'[n % 2]}" for n in range(40)))
    place = folder / "w.blowfish"
    with Workspace(place, user="carla") as workspace:
        people = workspace.add_dataset("people", rows, domain=DOMAIN)
        people.budget.set("5")
        people.budget.grant("ana", bf.Epsilon(2))
        people.budget.grant("carla", bf.Epsilon(2))
        people["age"].histogram().spend("0.1").ask()
        sex_public = bf.graphs.Product(bf.graphs.Full(10), bf.graphs.Partitioned([0, 1]))
        people.publish(bf.Policy(DOMAIN, sex_public), confirm=True)
        people["age"].histogram(width=5).spend("0.2").ask(key="mine")
        workspace.as_user("ana")["people"]["sex"].histogram().spend("0.3").ask()
        workspace.save_draft("people", workspace.facts("people").policy)
        accounts, issued = Accounts(workspace.store, hasher=QUICK), Tokens(workspace.store)
        for name, role in (("carla", Role.CURATOR), ("ana", Role.ANALYST)):
            accounts.add(name, role, "a long password", by="carla")
            issued.issue(name, purpose="api", lifetime=timedelta(days=1), label="script")
        issued.revoke_token(issued.tokens("ana")[0].id)
        with pytest.raises(BlowfishError):
            accounts.check_password("ana", "a wrong password", address="192.0.2.1")
        requests = Idempotency(workspace.store)
        for key in ("k", "l"):
            requests.keep("ana", key, digest(f"asked {key}"), json.dumps({"status": 200, "key": key}))
        requests.once("ana", "under way", digest("asked"))
        Scratch(workspace.store).put("ana", "note", "said")
        assert workspace.store.identity
        assert workspace.verify() == []
    return place


def rows_of(place: Path, table: Table) -> list[Row]:
    with closing(sqlite3.connect(place)) as connection:
        connection.row_factory = sqlite3.Row
        connection.text_factory = lambda said: said.decode(errors="replace")
        return [dict(row) for row in connection.execute(f"SELECT * FROM {table.name}")]


def rewritten(place: Path, table: Table, rows: list[Row]) -> bool:
    """Put other rows into a table; False if SQLite itself forbids them."""
    columns = [column.name for column in table.columns]
    names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" for _ in columns)
    with closing(sqlite3.connect(place)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute("PRAGMA synchronous = OFF")
        try:
            with connection:
                connection.execute(f"DELETE FROM {table.name}")
                connection.executemany(
                    f"INSERT INTO {table.name} ({names}) VALUES ({marks})",
                    [[row[name] for name in columns] for row in rows],
                )
                for name in columns:
                    no_text = f'UPDATE {table.name} SET "{name}" = CAST(x\'ff\' AS TEXT) WHERE "{name}" = ?'
                    connection.execute(no_text, [NO_TEXT])
        except sqlite3.IntegrityError:
            return False
    return True


def same(some: list[Row], others: list[Row]) -> bool:
    """SQLite may have read a new value as the old one."""
    return sorted(map(repr, some)) == sorted(map(repr, others))


def others(old: object) -> list[object]:
    """Values to put in the place of one."""
    if isinstance(old, int):
        return [old + 1, -1 - old, 1.5, "x", b"\xff", 2**63 - 1, None]
    if isinstance(old, str):
        return [f"{old}x", "", f" {old}", old.swapcase(), b"\xff\x00", None, NO_TEXT]
    return ["2031-01-01T00:00:00+00:00", "", 0, b""]


def edits(rows: list[Row], table: Table) -> Iterator[tuple[str, list[Row], list[Row]]]:
    """Ways to change a table: how, the rows as they would be, and those that were touched."""
    for at, row in enumerate(rows):
        yield f"without row {at}", rows[:at] + rows[at + 1 :], [row]
        for name in row:
            ways = others(row[name])
            for new in ways if at < 6 else [ways[at % len(ways)]]:
                changed = {**row, name: new}
                yield f"{name} = {new!r} in row {at}", [*rows[:at], changed, *rows[at + 1 :]], [row, changed]
                if table.columns[name].primary_key:
                    yield f"another row with {name} = {new!r}", [*rows, changed], [changed]
    for one, two in zip(range(len(rows)), range(1, len(rows)), strict=False):
        for name in rows[one]:
            first = {**rows[one], name: rows[two][name]}
            second = {**rows[two], name: rows[one][name]}
            rest = [row for at, row in enumerate(rows) if at not in (one, two)]
            yield f"{name} of {one} and {two} exchanged", [*rest, first, second], [rows[one], rows[two]]


def test_the_schema_has_every_table_of_the_file(place: Path) -> None:
    with closing(sqlite3.connect(place)) as connection:
        found = {
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        }
    assert found == TABLES.keys()
    assert NAMED.keys() == {name for name in TABLES if name not in UNSEEN or name in NAMED}
    assert all(rows_of(place, table) for table in TABLES.values())


@pytest.mark.parametrize("name", NAMED)
def test_whatever_is_done_by_hand_is_named(place: Path, name: str) -> None:
    table, unseen = TABLES[name], UNSEEN.get(name)
    before = rows_of(place, table)
    with closing(Ledger.open(place)) as ledger:
        for how, rows, touched in edits(before, table):
            if unseen and all(unseen.rows(row) for row in touched):
                continue
            if not rewritten(place, table, rows) or same(rows_of(place, table), before):
                continue
            found = ledger.verify()
            assert any(re.match(NAMED[name], said) for said in found), (how, found)
        assert rewritten(place, table, before) and ledger.verify() == []


@pytest.mark.parametrize("name", UNSEEN)
def test_what_may_change_unseen_bears_nothing(place: Path, name: str) -> None:
    """Without these rows the books are in order, and the same is promised and spent."""
    table, unseen = TABLES[name], UNSEEN[name]
    before = rows_of(place, table)
    kept = [row for row in before if not unseen.rows(row) or row.get("name") == "schema"]
    assert len(kept) < len(before)
    said = promised(place)
    assert rewritten(place, table, kept) and promised(place) == said


def promised(place: Path) -> list[object]:
    with Workspace(place, user="carla") as workspace:
        assert workspace.verify() == []
        return [
            workspace.guarantee("people"),
            workspace.budget("people"),
            [(kept.version, kept.total, kept.remaining) for kept in workspace.kept("people")],
            [answer.number for answer in workspace.answers()],
        ]
