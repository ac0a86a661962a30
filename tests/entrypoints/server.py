"""A small workspace behind the real app, and one client for each role."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
from fastapi import FastAPI
from pwdlib import PasswordHash
from pwdlib.hashers.argon2 import Argon2Hasher

import blowfishdb as bf
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.entrypoints.server.server import Settings
from blowfishdb.workspace.embedded import Workspace

with warnings.catch_warnings():
    # Starlette asks for another HTTP library; ours is httpx, which it drives just as well.
    warnings.simplefilter("ignore")
    from fastapi.testclient import TestClient

ROWS = 3_000
PASSWORD = "four random words here"
ROLES = {role.value: role for role in Role}
"""One user for each role, called by the name of the role."""
SETTINGS = Settings(warm_up=False, requests_per_second=10_000, burst=100_000)
CHEAP = PasswordHash((Argon2Hasher(time_cost=1, memory_cost=8, parallelism=1),))
"""Real argon2id, at the least cost there is."""

DOMAIN = bf.Domain(
    salary=bf.Integer(0, 99_999),
    age=bf.Integer(18, 97),
    region=bf.Category(("north", "south", "east", "west")),
)
QUESTION = {"question": "cumulative(salary, bins=20)", "error": 50, "confidence": 0.95}


def make_data(folder: Path, rows: int = ROWS) -> Path:
    """A DuckDB file with the table ``salaries``."""
    path = folder / "salaries.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(
            "CREATE TABLE salaries AS SELECT (i * 7919 % 100000)::INT AS salary, "
            "(18 + i * 31 % 80)::INT AS age, "
            f"['north', 'south', 'east', 'west'][1 + (i % 4)::INT] AS region FROM range({rows}) t(i)"
        )
    return path


def make_workspace(folder: Path, *, rows: int = ROWS, budget: str = "5") -> Path:
    """A workspace with the dataset ``salaries``, salaries hidden within $1,000, and one user per role."""
    place = folder / "server.blowfish"
    with Workspace(place, user="curator") as workspace:
        salaries = workspace.add_dataset("salaries", make_data(folder, rows), domain=DOMAIN, table="salaries")
        salary = DOMAIN["salary"]
        graph = bf.graphs.Threshold(salary.size, salary.threshold(1_000))
        salaries.publish(bf.Policy.by_column(DOMAIN, {"salary": graph}))
        salaries.budget.set(budget)
        accounts = Accounts(workspace.store, hasher=CHEAP)
        for name, role in ROLES.items():
            accounts.add(name, role, PASSWORD)
    return place


@dataclass(frozen=True)
class Running:
    """The app and a client for everyone: by token for the three roles, and for nobody."""

    app: FastAPI
    workspace: Workspace
    curator: TestClient
    analyst: TestClient
    auditor: TestClient
    nobody: TestClient
    folder: Path

    def as_role(self, role: str) -> TestClient:
        """The client of ``curator``, ``analyst``, ``auditor`` or ``nobody``."""
        return {
            "curator": self.curator,
            "analyst": self.analyst,
            "auditor": self.auditor,
            "nobody": self.nobody,
        }[role]

    def browser(self, role: str) -> TestClient:
        """Someone who signed in with a password: the cookie and the CSRF header are set."""
        client = client_of(self.app)
        done = client.post("/api/v1/session", json={"user": role, "password": PASSWORD})
        assert done.status_code == 200, done.text
        client.headers["X-CSRF-Token"] = done.json()["csrf"]
        return client


def ok(response: Any, status: int = 200) -> Any:
    """What a response says, if it is the one that was expected."""
    assert response.status_code == status, response.text
    return response.json()


def client_of(app: FastAPI, token: str | None = None, address: str = "192.0.2.7") -> TestClient:
    """A client from ``address``, signed in by ``token``."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return TestClient(app, headers=headers, client=(address, 50_000))


@contextmanager
def running(
    folder: Path, *, settings: Settings = SETTINGS, rows: int = ROWS, budget: str = "5"
) -> Iterator[Running]:
    """A fresh workspace in ``folder`` behind the app."""
    app = create_app(make_workspace(folder, rows=rows, budget=budget), settings=settings, hasher=CHEAP)
    workspace: Workspace = app.state.server.workspace
    tokens = Tokens(workspace.store)
    clients = {
        role: client_of(app, tokens.issue(role, purpose="api", lifetime=timedelta(hours=1))[0])
        for role in ROLES
    }
    nobody = client_of(app)
    try:
        yield Running(
            app, workspace, clients["curator"], clients["analyst"], clients["auditor"], nobody, folder
        )
    finally:
        workspace.close()
