"""Three workspaces that hold, between them, every kind of thing that a workspace can hold.

``plain``: every kind of answer. ``promised``: policies that changed, promises that are kept, people with
passwords, tokens and grants, an answer under a key, one that was lost, a dataset that ended. ``copied``: a
file with several rows for a person and with missing values, read twice.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import pyarrow as pa

import blowfishdb as bf
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.workspace.embedded import Workspace
from tests.adapters.workspaces import HandClock
from tests.earlier.asked import Asked
from tests.earlier.facts import facts_of
from tests.earlier.packing import WORKSPACE
from tests.entrypoints.server import CHEAP, PASSWORD

_FOLDER_NAME: Final = "BLOWFISHDB_SOURCE_EARLIER"
ROWS: Final = 240
TOWNS: Final = ("Aa", "Bergen", "Cork")


@contextmanager
def opened(folder: Path, user: str = "ana") -> Iterator[Workspace]:
    """The workspace in a folder; the databases that it reads are in that folder too."""
    with patch.dict(os.environ, {_FOLDER_NAME: str(folder)}), bf.open(folder / WORKSPACE, user) as workspace:
        yield workspace


def _ask(workspace: Workspace, asked: list[Asked]) -> list[Asked]:
    for each in asked:
        each.of(workspace).ask(key=each.key)
    return asked


# --- plain ------------------------------------------------------------------------------------

PLAIN: Final = bf.Domain(
    age=bf.Integer(0, 99),
    pay=bf.Integer(0, 999),
    town=bf.Category(TOWNS),
    grade=bf.Category(("low", "middle", "high"), ordered=True),
    height=bf.Real(1, 2, "0.05"),
    joined=bf.Date("2024-01-01", "2024-03-31"),
    member=bf.Boolean(),
)
PLAIN_ASKED: Final = [
    Asked("people", "histogram(age, bins=5)", error=40),
    Asked("people", "histogram(pay, bins=10)", error=45.5, confidence=0.9, each=True),
    Asked("people", "histogram(town, grade)", error=60),
    Asked("people", "histogram(joined, bins=3) where member = true", epsilon="0.5"),
    Asked("people", "histogram(height, bins=4)", epsilon="0.4", mechanism="edge-noise"),
    Asked("people", "cumulative(pay, bins=10)", error=30),
    Asked("people", "ranges(age, 0..19, 20..64)", error=30),
    Asked("people", "median(pay)", error=30),
    Asked("people", "quantiles(age, 0.1, 0.9)", epsilon="0.3"),
    Asked("people", "count()", epsilon="0.1"),
    Asked("people", "count() where age >= 30 and town in ('Aa', 'Cork')", error=25),
    Asked("people", "sum(pay)", error=9_000),
    Asked("people", "mean(age)", error=5),
    Asked("people", "top(town, 2)", error=50),
    Asked("people", "above(grade, 20)", error=50),
    Asked("people", "clusters(age, k=2)", epsilon="1", mechanism="kmeans-histogram"),
    Asked("people", "clusters(age, pay, k=2, iterations=2)", epsilon="1", mechanism="kmeans-rounds"),
    Asked("people", "histogram(pay, bins=20)", epsilon="1", mechanism="adaptive"),
    Asked("people", "histogram(age, bins=20)", epsilon="0.6", mechanism="dawa"),
    Asked("people", "cumulative(pay, bins=20)", epsilon="0.6", mechanism="ordered-denoised"),
    Asked("people", "histogram(age, bins=1)", error=150),
]
TOGETHER: Final = [
    Asked("people", "histogram(joined, bins=6)", epsilon="0.3"),
    Asked("people", "histogram(joined, bins=2)", error=200),
]


def _plain_rows() -> pa.Table:
    numbers = range(ROWS)
    return pa.table(
        {
            "age": [number * 37 % 100 for number in numbers],
            "pay": [number * 113 % 1000 for number in numbers],
            "town": [TOWNS[number % 5 % 3] for number in numbers],
            "grade": [("low", "middle", "high")[number % 7 % 3] for number in numbers],
            "height": [1 + number % 20 / 20 for number in numbers],
            "joined": [f"2024-0{1 + number % 3}-{1 + number % 28:02d}" for number in numbers],
            "member": [number % 3 == 0 for number in numbers],
        }
    )


def write_plain(workspace: Workspace, _: Path) -> list[Asked]:
    """Every kind of answer about rows from memory, and two that were asked together."""
    people = workspace.add_dataset("people", _plain_rows(), domain=PLAIN)
    pay = bf.graphs.Threshold(1_000, 100)
    people.publish(bf.Policy.by_column(PLAIN, {"pay": pay, "age": bf.graphs.Threshold(100, 10)}))
    people.budget.set(100)
    asked = _ask(workspace, PLAIN_ASKED)
    workspace.batch(*(each.of(workspace) for each in TOGETHER)).ask()
    return [*asked, *TOGETHER]


# --- promised ---------------------------------------------------------------------------------

TOKEN_FILE: Final = "token.txt"


class Stopped(Exception):
    """Somebody pulled the plug."""


def _database(folder: Path) -> str:
    with closing(sqlite3.connect(folder / "pay.db")) as connection:
        connection.execute("CREATE TABLE pay (age INTEGER, pay INTEGER)")
        rows = [(number * 37 % 50, number * 113 % 200) for number in range(ROWS)]
        connection.executemany("INSERT INTO pay VALUES (?, ?)", rows)
        connection.commit()
    return f"sqlite:///${{{_FOLDER_NAME}}}/pay.db"


def write_promised(workspace: Workspace, folder: Path) -> list[Asked]:
    """Policies that changed over rows in a database, people who may come in, and what went wrong."""
    domain = bf.Domain(age=bf.Integer(0, 49), pay=bf.Integer(0, 199))
    address = _database(folder)
    curator = workspace.as_user("curator")
    pay = curator.add_dataset("pay", address, domain=domain, table="pay", public=["age"])
    pay.budget.set(20)
    pay.publish(pay.hiding_within("pay", 50))
    asked = _ask(workspace, [Asked("pay", "histogram(pay, bins=4)", epsilon="0.5")])
    pay.publish(pay.hiding_within("pay", 20), confirm=True)
    asked += _ask(workspace, [Asked("pay", "cumulative(pay, bins=10)", error=40)])
    pay.publish(pay.hiding_within("pay", 10), confirm=True)
    pay.withdraw(pay.kept[-1].version)
    pay.budget.grant("ana", "8")
    pay.budget.grant("ben", "2")
    asked += _ask(workspace, [Asked("pay", "median(pay)", error=50, key="once", user="ben")])
    asked += _lost(workspace, Asked("pay", "clusters(pay, k=2)", epsilon="0.25", mechanism="kmeans-rounds"))
    curator.save_draft("pay", pay.hiding_within("pay", 5))
    asked += _known(curator)
    asked += _tightened(curator)
    live = curator.add_dataset("now", address, domain=domain, table="pay", kind="live", same_rows=True)
    live.publish(bf.Policy.differential_privacy(domain))
    asked += _ask(workspace, [Asked("now", "histogram(age, bins=2)", epsilon="0.2")])
    gone = curator.add_dataset("gone", _plain_rows(), domain=PLAIN, same_rows=True)
    gone["age"].histogram(bins=2).spend("0.1").ask()
    gone.delete()
    _let_in(workspace, folder)
    return asked


def _lost(workspace: Workspace, asked: Asked) -> list[Asked]:
    """Charged, and stopped while its rows were being read."""

    def stop(_done: int, _of: int) -> None:
        raise Stopped

    try:
        asked.of(workspace).ask(progress=stop)
    except Stopped:
        return [asked]
    raise AssertionError("nothing was lost")


def _known(curator: Workspace) -> list[Asked]:
    """Rows of which everyone knows something."""
    domain = bf.Domain(a=bf.Integer(0, 2), b=bf.Integer(0, 1))
    rows = pa.table({"a": [number % 3 for number in range(60)], "b": [number % 2 for number in range(60)]})
    known = curator.add_dataset("known", rows, domain=domain)
    known.budget.set(5)
    knowing = bf.Constraints(marginals=["b"], counts=[(bf.col("a") == 0, 20)])
    known.publish(known.policy.knowing(knowing))
    return _ask(
        curator,
        [
            Asked("known", "histogram(b)", epsilon="0.1", user="curator"),
            Asked("known", "histogram(a)", epsilon="0.5", user="curator"),
        ],
    )


def _tightened(curator: Workspace) -> list[Asked]:
    """A policy that hides more than the one before: what answers lost under it counts from the start."""
    tight = curator.add_dataset("tight", _plain_rows(), domain=PLAIN.project("pay", "town"))
    tight.budget.set(20)
    tight.publish(tight.hiding_within("pay", 5))
    asked = Asked("tight", "cumulative(pay, bins=10)", epsilon="0.5", mechanism="laplace", user="curator")
    asked.of(curator).ask()
    tight.publish(tight.hiding_within("pay", 300), confirm=True)
    return [asked]


def _let_in(workspace: Workspace, folder: Path) -> None:
    clock = HandClock()
    accounts, tokens = Accounts(workspace.store, clock, hasher=CHEAP), Tokens(workspace.store, clock)
    for name, role in (("curator", Role.CURATOR), ("ana", Role.ANALYST), ("eve", Role.AUDITOR)):
        accounts.add(name, role, PASSWORD)
    accounts.add("ben", Role.ANALYST, None)
    accounts.revoke("eve")
    text, _ = tokens.issue("ana", purpose="api", lifetime=timedelta(days=1), label="laptop")
    _, ended = tokens.issue("ben", purpose="api", lifetime=timedelta(days=1), label="old")
    tokens.revoke_token(ended.id)
    (folder / TOKEN_FILE).write_text(text)


# --- copied -----------------------------------------------------------------------------------

VISITS: Final = bf.Domain(
    age=bf.Integer(0, 99, missing="value"),
    ward=bf.Category(("east", "west"), missing="public"),
    cost=bf.Real(0, 50, "0.5", missing="drop", outside="drop"),
    day=bf.Date("2024-01-01", "2024-01-31", missing="clamp"),
)


def _visits(file: Path, rows: int) -> Path:
    """As a spreadsheet may write it: semicolons, decimal commas, and gaps."""
    lines = ["visit;patient;age;ward;cost;day"]
    for number in range(rows):
        age = "" if number % 7 == 0 else str(number * 29 % 105)
        ward = ("east", "west", "")[number % 3]
        cost = "" if number % 11 == 0 else f"{number % 110 / 2:.1f}".replace(".", ",")
        day = "" if number % 13 == 0 else f"2024-01-{1 + number % 31:02d}"
        lines.append(f"{number};p{number // 3};{age};{ward};{cost};{day}")
    file.write_text("\n".join(lines) + "\n")
    return file


def write_copied(workspace: Workspace, folder: Path) -> list[Asked]:
    """A file of visits, at most two of each patient, read again with more rows; and once more by itself."""
    file = _visits(folder / "visits.csv", ROWS)
    unit: dict[str, Any] = {"person": "patient", "rows_per_person": 2, "row_key": "visit"}
    visits = workspace.add_dataset("visits", file, domain=VISITS, **unit)
    visits.publish(visits.hiding_within("age", 5))
    visits.budget.set(50)
    asked = _ask(
        workspace,
        [
            Asked("visits", "histogram(age, bins=5)", error=90),
            Asked("visits", "histogram(ward)", error=90),
            Asked("visits", "sum(cost)", epsilon="1"),
        ],
    )
    _visits(file, ROWS + 30)
    visits.refresh()
    asked += _ask(
        workspace,
        [
            Asked("visits", "histogram(age, bins=4)", error=90),
            Asked("visits", "median(age)", error=90),
            Asked("visits", "count() where age is null", error=60),
            Asked("visits", "cumulative(day, bins=4) where ward = 'east'", epsilon="0.7"),
            Asked("visits", "sum(age)", epsilon="0.4"),
        ],
    )
    hidden = workspace.add_dataset("hidden", file, domain=VISITS.project("age", "ward"), same_rows=True)
    graph = bf.graphs.Threshold(hidden.schema["age"].value_count, 5)
    hidden.publish(bf.Policy.by_column(hidden.schema, {"age": graph}, hide_presence=True))
    hidden.budget.set(5)
    asked += _ask(
        workspace, [Asked("hidden", "count()", epsilon="0.5"), Asked("hidden", "histogram(ward)", error=40)]
    )
    file.unlink()
    return asked


WRITTEN: Final[dict[str, Callable[[Workspace, Path], list[Asked]]]] = {
    "plain": write_plain,
    "promised": write_promised,
    "copied": write_copied,
}


def write(name: str, folder: Path) -> dict[str, Any]:
    """Write a workspace into an empty folder, and say what is in it."""
    with opened(folder) as workspace:
        asked = WRITTEN[name](workspace, folder)
        return facts_of(workspace, asked)
