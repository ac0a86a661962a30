"""The chain of events: it tells everything in order, and whatever is changed in the books is found."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.errors import InvalidInput, UnknownDataset, WorkspaceError
from tests.adapters.spending import reserve, spend

# --- notes and events -------------------------------------------------------------------------

FACTS = {"old": 1, "new": 2, "words": "ages within 5 years", "spent": "0.1", "confirmed": True}


def test_notes_are_events_that_cost_nothing(ledger: Ledger) -> None:
    spend(ledger, "0.1")
    before = (ledger.budget("people"), ledger.grants("people"), ledger.charges())
    ledger.note("people", "carla", "policy", FACTS)
    assert (ledger.budget("people"), ledger.grants("people"), ledger.charges()) == before
    spend(ledger, "0.2")
    note = ledger.events("people")[4]
    assert (note.kind, note.analyst, note.charge, note.amount) == ("policy", "carla", None, Epsilon(0))
    assert note.facts == FACTS
    assert ledger.verify() == []


def test_what_cannot_be_a_note(ledger: Ledger) -> None:
    before = ledger.events()
    with pytest.raises(InvalidInput, match="kind 'budget'"):
        ledger.note("people", "carla", "budget", FACTS)
    with pytest.raises(InvalidInput, match="needs facts"):
        ledger.note("people", "carla", "policy", {})
    with pytest.raises(InvalidInput, match="facts of a note must be JSON"):
        ledger.note("people", "carla", "policy", {"spent": object()})
    with pytest.raises(InvalidInput, match="user"):
        ledger.note("people", "", "policy", FACTS)
    with pytest.raises(UnknownDataset, match="ghosts"):
        ledger.note("ghosts", "carla", "policy", FACTS)
    assert ledger.events() == before


def test_events_tell_everything_in_order(ledger: Ledger, path: Path) -> None:
    ledger.set_budget("others", Epsilon(2), "carla")
    ledger.grant("people", "ana", Epsilon("0.9"), by="carla")
    charge = spend(ledger, "0.1", answer="[1]")
    told = ledger.events()
    assert [(e.seq, e.kind, e.dataset, e.analyst, str(e.amount)) for e in told] == [
        (1, "budget", "people", "carla", "1"),
        (2, "budget", "others", "carla", "2"),
        (3, "grant", "people", "ana", "0.9"),
        (4, "reserved", "people", "ana", "0.1"),
        (5, "reading", "people", "ana", "0.1"),
        (6, "settled", "people", "ana", "0.1"),
    ]
    assert [e.charge for e in told] == [None, None, None, charge.id, charge.id, charge.id]
    assert told[2].facts == {"by": "carla"} and told[3].facts["question"] == "q"
    assert told[5].at == charge.changed_at
    assert [e.seq for e in ledger.events("others")] == [2]
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT hash FROM heads").fetchone() == (told[-1].hash,)
        connection.execute("UPDATE events SET body = 'x' WHERE seq = 3")
    with pytest.raises(WorkspaceError, match=r"Event 3 cannot be read.*verify"):
        ledger.events()


# --- verify -----------------------------------------------------------------------------------


def _columns() -> list[tuple[str, str]]:
    from blowfishdb.adapters.store.tables import accounts, budgets, charges, events, heads

    tables = (events, charges, budgets, accounts, heads)
    return [(table.name, column.name) for table in tables for column in table.columns if column.name != "id"]


@pytest.mark.parametrize(("table", "column"), _columns())
def test_any_changed_value_is_found(ledger: Ledger, path: Path, table: str, column: str) -> None:
    ledger.grant("people", "ana", Epsilon("0.9"))
    ledger.note("people", "carla", "policy", FACTS)
    spend(ledger, "0.1", "q1")
    ledger.lose(ledger.mark_reading(reserve(ledger, "0.1", "q2")), "QueryFailed")
    assert ledger.verify() == []
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        key = {"events": "seq", "charges": "id"}.get(table, "rowid")
        rows = connection.execute(f'SELECT {key}, "{column}" FROM {table}').fetchall()
    for number, old in rows:
        new = old + 1000 if isinstance(old, int) else f"{old}x" if old is not None else "5"
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE {key} = ?', (new, number))
        assert ledger.verify() != [], (table, column, number)
        changed = new if (key, column) in (("seq", "seq"),) else number
        with sqlite3.connect(path) as connection:
            connection.execute("PRAGMA ignore_check_constraints = ON")
            connection.execute(f'UPDATE {table} SET "{column}" = ? WHERE {key} = ?', (old, changed))
        assert ledger.verify() == [], (table, column, number)


@pytest.mark.parametrize("table", ["events", "charges", "budgets", "accounts", "heads"])
def test_any_removed_row_is_found(ledger: Ledger, path: Path, table: str) -> None:
    spend(ledger, "0.1", "q1")
    ledger.note("people", "carla", "policy", FACTS)
    spend(ledger, "0.1", "q2")
    with sqlite3.connect(path) as connection:
        rows = connection.execute(f"SELECT rowid, * FROM {table}").fetchall()
    for row in rows:
        with sqlite3.connect(path) as connection:
            connection.execute(f"DELETE FROM {table} WHERE rowid = ?", (row[0],))
        assert ledger.verify() != [], row
        with sqlite3.connect(path) as connection:
            places = ", ".join("?" for _ in row[1:])
            connection.execute(f"INSERT INTO {table} VALUES ({places})", row[1:])
        assert ledger.verify() == []


def forge(path: Path, seq: int, **changes: object) -> None:
    """Change an event, or add one, and seal it and all that follow as if nothing had happened."""
    from blowfishdb.adapters.store.chain import ChainedEvent

    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT * FROM events ORDER BY seq").fetchall()
        names = [column[1] for column in connection.execute("PRAGMA table_info(events)")]
        known = [dict(zip(names, row, strict=True)) for row in rows]
        if seq > len(known):
            known.append({**known[0], "seq": seq})
        known[seq - 1].update(changes)
        connection.execute("DELETE FROM events")
        previous = "0" * 64
        for row in known:
            row["previous"] = previous
            link = ChainedEvent(**{name: row[name] for name in names if name not in ("previous", "hash")})
            row["hash"] = previous = link.seal(previous)
            connection.execute(
                f"INSERT INTO events VALUES ({', '.join('?' for _ in names)})", [row[n] for n in names]
            )
        connection.execute("UPDATE heads SET seq = ?, hash = ?", (len(known), previous))


def test_an_added_event_that_follows_the_chain_is_still_found(ledger: Ledger, path: Path) -> None:
    """Even a budget that was raised by a well-made event disagrees with the books."""
    forge(path, 2, kind="budget", analyst="eve", amount=10**12)
    assert ledger.verify() == ["The budget of 'people' is not what its events add up to."]


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"amount": 5}, "Event 2 is a note that is not only a note."),
        ({"charge": 1}, "Event 2 is a note that is not only a note."),
        ({"body": "{}"}, "Event 2 is a note that is not only a note."),
        ({"body": "words"}, "Event 2 cannot be understood."),
        ({"kind": "polity"}, "Event 2 cannot be understood."),
        ({"dataset": "ghosts"}, "The budget of 'ghosts' is not what its events add up to."),
    ],
)
def test_a_forged_note_is_found_even_if_the_chain_holds(
    ledger: Ledger, path: Path, changes: dict[str, object], problem: str
) -> None:
    ledger.note("people", "carla", "policy", FACTS)
    spend(ledger, "0.1")
    forge(path, 2, analyst="carla")
    assert ledger.verify() == []
    forge(path, 2, **changes)
    assert ledger.verify() == [problem]
