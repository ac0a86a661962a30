"""What was read of a workspace is read again as soon as anybody has changed anything, and not before."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Connection, select

from blowfishdb.adapters.store.catalogue import Catalogue
from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.adapters.store.tables import budgets
from blowfishdb.core.budget import Epsilon
from tests.adapters.spending import reserve, spend

SET = """
import sys
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.budget import Epsilon
ledger = Ledger.open(sys.argv[1])
ledger.set_budget("people", Epsilon(3), "curator")
ledger.close()
"""


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "workspace.db")
    return str(request.getfixturevalue("postgres").new_workspace())


@pytest.fixture
def ledger(place: str) -> Iterator[Ledger]:
    with closing(Ledger.open(place)) as opened:
        opened.set_budget("people", Epsilon(1), "curator")
        yield opened


def test_what_another_process_changes_is_seen_at_once(ledger: Ledger, place: str) -> None:
    assert ledger.budget("people").total == Epsilon(1)
    assert ledger.left("people", "ana") == Epsilon(1)
    subprocess.run([sys.executable, "-c", SET, place], check=True)
    assert ledger.budget("people").total == Epsilon(3)
    assert ledger.left("people", "ana") == Epsilon(3)


def test_it_says_what_it_has_in_memory_as_it_is_now(ledger: Ledger, place: str) -> None:
    store, left = ledger.store, ("left", "people", "ana")
    assert not store.remembers(left)
    ledger.left("people", "ana")
    assert store.remembers(left) == store.sqlite  # elsewhere nothing tells whether it was changed
    assert not store.remembers(("left", "people", "ben"))
    subprocess.run([sys.executable, "-c", SET, place], check=True)
    assert not store.remembers(left)


def test_what_it_changes_itself_is_seen_at_once(ledger: Ledger) -> None:
    for total in (2, 3, 4):
        ledger.set_budget("people", Epsilon(total), "curator")
        assert ledger.budget("people").total == Epsilon(total)
    ledger.grant("people", "ana", Epsilon(1))
    assert [grant.user for grant in ledger.grants("people")] == ["ana"]
    ledger.grant("people", "ben", Epsilon(1))
    assert [grant.user for grant in ledger.grants("people")] == ["ana", "ben"]


def test_versions_and_names_are_the_newest(ledger: Ledger) -> None:
    catalogue = Catalogue(ledger.store)
    for version in (1, 2):
        assert catalogue.put("dataset", "people", "{}") == version
        assert catalogue.versions("people") == {"dataset": version}
    catalogue.put("dataset", "visits", "{}")
    assert catalogue.names("dataset") == ["people", "visits"]


def test_an_edit_beside_the_books_is_seen_too(tmp_path: Path) -> None:
    with closing(Ledger.open(tmp_path / "workspace.db")) as ledger:
        ledger.set_budget("people", Epsilon(1), "curator")
        assert ledger.budget("people").total == Epsilon(1)
        with closing(sqlite3.connect(tmp_path / "workspace.db")) as connection:
            connection.execute("UPDATE budgets SET total = 7")
            connection.commit()
        assert ledger.budget("people").total == Epsilon.from_nano(7)


def test_nothing_is_read_again_while_nothing_changes(tmp_path: Path) -> None:
    asked = []

    def read(connection: Connection) -> int:
        asked.append(1)
        return len(connection.execute(select(budgets)).all())

    with closing(Store.open(tmp_path / "workspace.db")) as store:
        assert [store.recalled("budgets", read) for _ in range(3)] == [0, 0, 0]
        assert len(asked) == 1
        Ledger(store).set_budget("people", Epsilon(1), "curator")
        assert [store.recalled("budgets", read) for _ in range(3)] == [1, 1, 1]
        assert len(asked) == 2


def test_a_value_that_comes_back_can_be_changed_by_whoever_gets_it(ledger: Ledger) -> None:
    catalogue = Catalogue(ledger.store)
    catalogue.put("dataset", "people", "{}")
    catalogue.names("dataset").append("nothing")
    assert catalogue.names("dataset") == ["people"]


def test_within_one_look_others_are_not_seen_until_something_is_written(ledger: Ledger, place: str) -> None:
    store = ledger.store
    with store.at_one_look():
        before = ledger.budget("people").total
        subprocess.run([sys.executable, "-c", SET, place], check=True)
        seen = ledger.budget("people").total
        assert seen == (before if store.sqlite else Epsilon(3))  # elsewhere everything is read anew
        with store.at_one_look():
            assert ledger.budget("people").total == seen
        ledger.set_budget("pets", Epsilon(1), "curator")
        assert ledger.budget("people").total == Epsilon(3)
    with pytest.raises(ZeroDivisionError), store.at_one_look():
        1 / 0  # noqa: B018
    ledger.set_budget("people", Epsilon(4), "curator")
    assert ledger.budget("people").total == Epsilon(4)


def test_a_question_that_others_have_answered_is_known(ledger: Ledger, place: str) -> None:
    assert ledger.answer("q") is None and ledger.answer("p") is None
    with closing(Ledger.open(place)) as other:
        spend(other, "0.1", question="q")
        assert other.answer("q") is not None and other.answer("p") is None
    found = ledger.answer("q")
    assert found is not None and found.answer == "[1]" and ledger.answer("p") is None
    waiting = ledger.mark_reading(reserve(ledger, "0.1", "p"))
    assert ledger.answer("p") is None  # under way is not answered
    ledger.settle(waiting, "[2]")
    assert ledger.answer("p") is not None and ledger.answer("q") is not None
    with closing(Ledger.open(place)) as late:
        assert late.answer("p") is not None and late.answer("r") is None
