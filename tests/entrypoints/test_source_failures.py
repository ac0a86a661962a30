"""Rows that make the engine fail: the curator learns why, everyone else reads one and the same sentence."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pytest

import blowfishdb as bf
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import (
    CHEAP,
    PASSWORD,
    SETTINGS,
    TestClient,
    client_of,
    make_workspace,
    timedelta,
)

ANSWERS = "/api/v1/datasets/people/answers"
ASKED = {"question": "histogram(age, bins=4)", "epsilon": "0.01"}
FAILING = {
    "a value that is no number": "SELECT CAST(name AS INTEGER) AS age FROM rows",
    "a number out of range": "SELECT CAST(CAST(n * 100 AS TINYINT) AS INTEGER) AS age FROM rows",
    "words of its own": "SELECT CASE WHEN n > 3 THEN error(name)::INT ELSE 3 END AS age FROM rows",
    "a root of a negative": "SELECT CAST(sqrt(-n) AS INTEGER) AS age FROM rows",
    "a table that is gone": None,
}
SECRET = "Blaubart-4711"


@contextmanager
def failing(
    folder: Path, view: str | None, *, presence: bool = True
) -> Iterator[Callable[[str], TestClient]]:
    """A server over a table that became a view which cannot be read; clients by role.

    Of a policy that does not hide ``presence``, the number of rows is out already.
    """
    place = make_workspace(folder, rows=10)
    file = folder / "people.duckdb"
    with duckdb.connect(str(file)) as connection:
        connection.execute(f"CREATE TABLE rows AS SELECT '{SECRET}' AS name, i AS n FROM range(10) t(i)")
        connection.execute("CREATE TABLE people AS SELECT 1::INTEGER AS age FROM range(10)")
    with Workspace(place, user="curator") as workspace:
        domain = bf.Domain(age=bf.Integer(0, 7))
        dataset = workspace.add_dataset("people", file, domain=domain, table="people")
        if presence:  # else no view is read at all
            dataset.publish(bf.Policy(domain, bf.graphs.Full(8).hide_presence()))
        else:
            dataset.count().spend(1).ask()
        workspace.set_budget("people", bf.Epsilon(5))
    with duckdb.connect(str(file)) as connection:
        connection.execute("DROP TABLE people")
        if view is not None:
            connection.execute(f"CREATE VIEW people AS {view}")
    app = create_app(place, settings=SETTINGS, hasher=CHEAP)
    tokens = Tokens(app.state.server.workspace.store)
    try:
        yield lambda role: client_of(app, tokens.issue(role, purpose="api", lifetime=timedelta(hours=1))[0])
    finally:
        app.state.server.workspace.close()


def told(folder: Path, view: str | None) -> tuple[bytes, list[tuple[str, str]], str, str]:
    """What an analyst and the log are told, and what the curator is."""
    lines = io.StringIO()
    handler = logging.StreamHandler(lines)
    logger = logging.getLogger("blowfishdb.server")
    logger.addHandler(handler)
    try:
        with failing(folder, view) as client:
            headers = {"X-Request-ID": "the-same"}
            answer = client("analyst").post(ANSWERS, json=ASKED, headers=headers)
            curator = client("curator").post(ANSWERS, json={**ASKED, "epsilon": "0.02"})
    finally:
        logger.removeHandler(handler)
    logged = [json.loads(line) for line in lines.getvalue().splitlines()]
    kept = [{key: line[key] for key in line if key not in ("time", "ms", "id")} for line in logged]
    return answer.content, sorted(answer.headers.items()), json.dumps(kept[:1]), curator.json()["detail"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, ...]]:
    return {reason: told(tmp_path_factory.mktemp("failing"), view) for reason, view in FAILING.items()}


def test_an_analyst_reads_the_same_bytes_whatever_failed(outcomes: dict[str, tuple[Any, ...]]) -> None:
    reading = [outcomes[reason][:3] for reason, view in FAILING.items() if view is not None]
    assert all(each == reading[0] for each in reading)
    body, headers, log = reading[0]
    said = json.loads(body)
    assert said["status"] == 502 and said["type"].endswith(":query-failed") and said["charged"] is True
    assert said["detail"] == "The data could not be reached. What it cost stays charged."
    assert SECRET not in f"{body!r}{headers}{log}" and "people.duckdb" not in f"{body!r}{headers}{log}"
    gone = json.loads(outcomes["a table that is gone"][0])
    assert gone["detail"] == "The data could not be reached. Nothing was charged."
    assert (gone["status"], gone["type"]) == (502, "urn:blowfishdb:problem:source-error")


def test_the_curator_is_told_more_but_no_value(outcomes: dict[str, tuple[Any, ...]]) -> None:
    reasons = {reason: found[3] for reason, found in outcomes.items()}
    assert len(set(reasons.values())) >= 3
    assert not any(SECRET in reason for reason in reasons.values())


def test_pages_say_the_same(tmp_path: Path) -> None:
    pages = []
    for number, view in enumerate(view for view in FAILING.values() if view is not None):
        folder = tmp_path / str(number)
        folder.mkdir()
        with failing(folder, view) as client:
            browser = client("analyst")
            del browser.headers["Authorization"]
            browser.post("/signin", data={"user": "analyst", "password": PASSWORD})
            draft = browser.get("/datasets/people/ask?kind=histogram&column=age&terms=epsilon&epsilon=0.01")
            fields = dict(re.findall(r'name="([a-z_]+)" value="([^"]*)"', draft.text))
            headers = {"X-Request-ID": "the-same"}
            page = browser.post("/datasets/people/ask", data=fields, headers=headers)
            chance = r'name="(csrf|quote_id|key)" value="[^"]*|20\d\d-[^<"]*'
            assert "could not be reached" in page.text
            pages.append(re.sub(chance, "", page.text))
    assert all(page == pages[0] for page in pages) and SECRET not in pages[0]


def test_a_job_says_the_same(tmp_path: Path) -> None:
    job, later = {"epsilon": "0.5"}, {"Prefer": "respond-async"}
    with failing(tmp_path, None, presence=False) as client:
        made = {role: client(role) for role in ("analyst", "curator")}
        begun = {
            role: each.post("/api/v1/datasets/people/synthetic", json=job, headers=later)
            for role, each in made.items()
        }
        assert [each.status_code for each in begun.values()] == [202, 202]
        told = {role: made[role].get(each.headers["Location"]).json() for role, each in begun.items()}
    problems = {role: each["problem"] for role, each in told.items()}
    assert problems["analyst"]["detail"] == "The data could not be reached. Nothing was charged."
    assert "people" not in json.dumps(problems["analyst"])
    assert "people" in problems["curator"]["detail"]
