"""A workspace as an older version wrote it: what docs/upgrading.md says of it is what happens."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.store import database, migrations
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.budget import Epsilon
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.commands import Shell
from tests.entrypoints.server import CHEAP, PASSWORD, SETTINGS, client_of, ok

FORMAT = 3
WRITTEN = Path(__file__).parent / "adapters" / "fixtures" / "format_3.sql"
"""A dump of it: a CSV file twice, answers, a kept promise, a past above its budget, accounts, a token."""
TOKEN = "bf_0i9ZCUizIIhcO9_5WDHukHNYYAVok8v2CM8OdAalcXY"
ROWS = "age,sex\n" + "\n".join(f"{n % 10},{'fm'[n % 2]}" for n in range(40)) + "\n"
Made = Callable[[str], str]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    """The file that it was declared with."""
    path = tmp_path / "people.csv"
    path.write_text(ROWS)
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The workspace, in a file of its own and in PostgreSQL."""
    file = in_a_file(rows, tmp_path)
    if request.param == "sqlite":
        return file
    (tmp_path / "copies").mkdir()
    monkeypatch.setenv("BLOWFISHDB_COPIES", str(tmp_path / "copies"))
    address = str(request.getfixturevalue("postgres").new_workspace())
    engine, _ = database._engine(address)
    with closing(sqlite3.connect(file)) as old, engine.begin() as new:
        old.row_factory = sqlite3.Row
        migrations.upgrade(new, 0, FORMAT)
        for table in inspect(new).get_sorted_table_and_fkc_names():
            for row in old.execute(f"SELECT * FROM {table[0]}") if table[0] else ():
                values = ", ".join(f":{name}" for name in row.keys())  # noqa: SIM118 (not a dict)
                new.execute(text(f"INSERT INTO {table[0]} VALUES ({values})"), dict(row))
    engine.dispose()
    return address


def in_a_file(rows: Path, folder: Path) -> str:
    place = folder / "old.blowfish"
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript(WRITTEN.read_text().replace("ROWS.csv", str(rows)))
    return str(place)


def test_nothing_is_lost_and_the_past_is_put_back(place: str) -> None:
    with Workspace(place, user="carla") as workspace:
        assert workspace.datasets() == ["others", "people"]
        people, others = workspace.budget("people"), workspace.budget("others")
        assert (people.total, people.spent) == (Epsilon(20), Epsilon("0.9"))
        assert [(kept.version, kept.remaining) for kept in workspace.kept("people")] == [(1, Epsilon("15.9"))]
        assert [answer.number for answer in workspace.answers("people")] == [5, 8, 13]
        assert (others.spent, others.carried, others.remaining) == (
            Epsilon("0.9"),
            Epsilon("7.2"),
            Epsilon(0),
        )
        workspace.set_budget("others", Epsilon(30))
        assert workspace.budget("others").remaining == Epsilon("21.9")
        assert workspace.verify() == []


def test_everything_is_sealed_from_then_on(place: str) -> None:
    with Workspace(place, user="carla") as workspace:
        audited = workspace.audit()
        assert audited.problems == () and audited.since is not None
        assert audited.checked["accounts with their roles and passwords"] == 3
        assert audited.checked["versions of declarations and policies"] == 7
        assert [event.kind for event in workspace.events()].count("covered") == 1
        assert Tokens(workspace.store).who(TOKEN).user == "ana"  # type: ignore[union-attr]
        assert Accounts(workspace.store, hasher=CHEAP).check_password("otto", PASSWORD).user == "otto"
    with Workspace(place) as workspace:
        assert [event.kind for event in workspace.events()].count("covered") == 1


def test_a_file_is_read_once_more_and_a_quote_knows_it(
    place: str, rows: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Answers from the file as it was read before say nothing of the copy: they are not offered for it."""
    with Workspace(place, user="carla") as workspace, caplog.at_level(logging.WARNING):
        ages = workspace["people"]["age"].histogram().spend("0.5")
        quoted = ages.quote()
        assert "read once more" not in caplog.text
        first, second = ages.ask(), ages.ask()
        assert quoted.epsilon == first.receipt.cost == Epsilon("0.5") and second.receipt.cost == Epsilon(0)
        assert first.receipt.snapshot == second.receipt.snapshot == 2
        rows.unlink()
        assert workspace["people"].count().spend("0.1").ask().values.tolist() == [40]
        assert caplog.text.count("'people' was read once more") == 1
        assert workspace.verify() == []


def test_on_the_command_line_and_behind_a_server(rows: Path, tmp_path: Path) -> None:
    place = in_a_file(rows, tmp_path)
    said = " ".join(Shell(Path(place)).must("audit").out.split())
    assert "The ledger verifies" in said and "when the workspace was upgraded" in said
    app = create_app(place, settings=SETTINGS, hasher=CHEAP)
    with client_of(app, TOKEN) as ana:
        asked = {"question": "histogram(sex)", "epsilon": "0.25"}
        quoted = ok(ana.post("/api/v1/datasets/people/quotes", json=asked))
        answered = ok(ana.post("/api/v1/datasets/people/answers", json={"quote_id": quoted["quote_id"]}))
        assert quoted["epsilon"] == answered["receipt"]["cost"] == "0.25"
    assert json.loads(Shell(Path(place)).must("audit", "--json").out)["verified"] is True
