"""What pages say when there is nothing, too much, or something broken; and the demo starting over."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.entrypoints import demo
from blowfishdb.entrypoints.demo_data import SAMPLES, checkins, salaries
from blowfishdb.entrypoints.server.access import PageReader
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import CHEAP, PASSWORD, ROLES, SETTINGS, TestClient, client_of, running


def csrf_of(client: TestClient, path: str = "/datasets") -> str:
    """What a form on this page would send."""
    found = re.search(r'name="csrf" value="([0-9a-f]{128})"', client.get(path).text)
    assert found is not None
    return found[1]


@contextmanager
def empty_workspace(folder: Path) -> Iterator[dict[str, TestClient]]:
    """A server with users and without data; someone of each role who signed in."""
    place = folder / "empty.blowfish"
    with Workspace(place, user="curator") as workspace:
        for name, role in ROLES.items():
            Accounts(workspace.store, hasher=CHEAP).add(name, role, PASSWORD)
    app = create_app(place, settings=SETTINGS, hasher=CHEAP)
    clients = {role: client_of(app) for role in ROLES}
    for role, client in clients.items():
        client.post("/signin", data={"user": role, "password": PASSWORD})
    try:
        yield clients
    finally:
        app.state.server.workspace.close()


def test_where_there_is_no_data_everyone_is_told_what_they_can_do(tmp_path: Path) -> None:
    with empty_workspace(tmp_path) as clients:
        curator = clients["curator"].get("/datasets").text
        assert "No data yet" in curator
        assert "Try the salary demo" in curator
        assert 'href="/import"' in curator
        analyst = clients["analyst"].get("/datasets").text
        assert "A curator imports data" in analyst
        assert "Try the salary demo" not in analyst


def make_samples(folder: Path) -> None:
    """The demonstration's files, with few people."""
    for sample, rows in zip(SAMPLES, (salaries, checkins), strict=True):
        replace(sample, rows=partial(rows, people=500)).make(folder)


def test_the_salary_demo_comes_with_a_click(tmp_path: Path) -> None:
    make_samples(tmp_path)  # what is there already is not made again
    with empty_workspace(tmp_path) as clients:
        curator = clients["curator"]
        done = curator.post("/datasets/salary-demo", data={"csrf": csrf_of(curator)})
        assert done.status_code == 200
        assert done.url.path == "/datasets/salaries"
        again = curator.post("/datasets/salary-demo", data={"csrf": csrf_of(curator)})
        assert again.status_code == 422
        refused = clients["analyst"].post("/datasets/salary-demo", data={"csrf": csrf_of(clients["analyst"])})
        assert refused.status_code == 403


def test_a_budget_that_is_used_up_is_said_with_what_remains_possible(tmp_path: Path) -> None:
    with running(tmp_path) as here:
        here.workspace["salaries"].question("histogram(region)").accurate_to(50).ask()
        here.workspace["salaries"].budget.set(here.workspace["salaries"].budget.status.spent)
        page = here.browser("analyst").get("/datasets/salaries").text
        assert "Nothing is left to spend." in page
        assert "exhausted" in page
        assert "raise the budget" in here.browser("curator").get("/datasets/salaries").text


def test_too_many_requests_get_a_page_that_says_when(tmp_path: Path) -> None:
    slow = replace(SETTINGS, requests_per_second=0.01, burst=2)
    with running(tmp_path, settings=slow) as here:
        pages = [here.nobody.get("/signin") for _ in range(3)]
        assert [page.status_code for page in pages] == [200, 200, 429]
        assert int(pages[-1].headers["Retry-After"]) > 0
        assert "A little slower, please" in pages[-1].text


def test_what_nobody_foresaw_gets_a_page_without_its_words(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path) as here:

        def broken(_: PageReader) -> None:
            raise ZeroDivisionError("salary 98765 of someone")

        here.app.get("/broken")(broken)
        with caplog.at_level(logging.ERROR, logger="blowfishdb.server"):
            page = here.browser("analyst").get("/broken")
        assert page.status_code == 500
        assert "Something went wrong" in page.text
        assert page.headers["X-Request-ID"] in page.text
        assert "98765" not in page.text + caplog.text
        assert "ZeroDivisionError" in caplog.text


def test_names_are_shown_as_they_are(tmp_path: Path) -> None:
    with running(tmp_path) as here:
        page = here.browser("analyst").get("/datasets/<script>alert(1)</script>")
        assert page.status_code == 404
        assert "<script>alert" not in page.text


def test_the_demonstration_starts_over_and_everyone_keeps_their_role(tmp_path: Path) -> None:
    make_samples(tmp_path)
    place = tmp_path / demo.WORKSPACE
    demo.declare(place, tmp_path)
    app = create_app(place, settings=replace(SETTINGS, demo=True), hasher=CHEAP, reset=demo.start_over)
    try:
        workspace: Workspace = app.state.server.workspace
        workspace["salaries"].question("histogram(region)").accurate_to(50).ask()
        client = TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000))
        client.cookies.set("blowfishdb", _secret(workspace, "analyst"))
        done = client.post("/demo/reset", data={"csrf": csrf_of(client)})
        assert done.status_code == 200
        assert "starts over" in done.text
        fresh: Workspace = app.state.server.workspace
        assert fresh.answers() == []
        assert fresh.datasets() == ["checkins", "salaries"]
        assert float(fresh.budget("salaries").spent) == 0
        assert client.get("/api/v1/me").json()["role"] == "analyst"
        assert "blowfishdb_epsilon" in client.get("/metrics", headers={"Cookie": ""}).text
    finally:
        app.state.server.workspace.close()


def test_only_the_demonstration_starts_over(tmp_path: Path) -> None:
    with running(tmp_path) as here:
        browser = here.browser("curator")
        assert browser.post("/demo/reset", data={"csrf": csrf_of(browser)}).status_code == 404
        assert "salaries" in here.workspace
        assert "Start over" not in browser.get("/datasets").text
        assert browser.post("/switch", data={"csrf": csrf_of(browser), "role": "auditor"}).status_code == 404


def _secret(workspace: Workspace, role: str) -> str:
    from datetime import timedelta

    return Tokens(workspace.store).issue(role, purpose="session", lifetime=timedelta(hours=1))[0]
