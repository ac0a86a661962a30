"""Waiting and giving up: bounded queues, prices nobody waits for, and an end although a source hangs."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

import blowfishdb as bf
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.store.values import State
from blowfishdb.adapters.tokens import Role, Tokens
from blowfishdb.core.cancellation import Cancellation
from blowfishdb.core.errors import Cancelled, InvalidInput, QueryFailed
from blowfishdb.entrypoints.server.server import Settings
from blowfishdb.entrypoints.server.waiting import Underway, Waiting, given_up
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.test_serve import serving

Call = Callable[..., Awaitable[list[dict[str, Any]]]]


def play(scene: Coroutine[Any, Any, None]) -> None:
    """A scene in a thread of its own: in this one a browser of other tests may be at work, in a loop."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, scene).result()


def calling(app: Any) -> Call:
    """Calls an ASGI app; ``leaving`` is when the caller goes away."""

    async def call(method: str, path: str, leaving: asyncio.Event | None = None) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []
        told = False

        async def receive() -> dict[str, Any]:
            nonlocal told
            if not told:
                told = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await (leaving or asyncio.Event()).wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "headers": [], "query_string": b""}
        await app(scope, receive, send)
        return sent

    return call


async def _ok(send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_what_is_too_much_is_refused_at_once_and_says_when_to_try_again() -> None:
    async def scene() -> None:
        go_on = asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] != "/api/v1/health":
                await go_on.wait()
            await _ok(send)

        call = calling(Waiting(slow, most=2, questions=1))
        first = [asyncio.create_task(call("GET", "/datasets")) for _ in range(2)]
        await asyncio.sleep(0)
        start, body = await call("GET", "/datasets")
        assert start["status"] == 503 and (b"retry-after", b"1") in start["headers"]
        assert b"Nothing was charged" in body["body"]
        assert (await call("GET", "/api/v1/health"))[0]["status"] == 200
        go_on.set()
        assert [(await each)[0]["status"] for each in first] == [200, 200]
        assert (await call("GET", "/datasets"))[0]["status"] == 200

    play(scene())


def test_questions_wait_for_each_other_and_prices_do_not_wait_for_them() -> None:
    async def scene() -> None:
        go_on, begun = asyncio.Event(), []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            begun.append(scope["path"])
            if scope["path"].endswith("/answers"):
                await go_on.wait()
            await _ok(send)

        call = calling(Waiting(app, most=10, questions=1))
        asked = [asyncio.create_task(call("POST", f"/{n}/answers")) for n in range(2)]
        await asyncio.sleep(0)
        assert (await call("POST", "/quotes"))[0]["status"] == 200
        assert begun == ["/0/answers", "/quotes"]
        go_on.set()
        assert [(await each)[0]["status"] for each in asked] == [200, 200]
        assert begun[-1] == "/1/answers"

    play(scene())


def test_a_price_is_given_up_when_whoever_asked_has_gone() -> None:
    async def scene() -> None:
        leaving, seen = asyncio.Event(), []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            cancel = given_up(scope)
            assert cancel is not None and not cancel.requested
            leaving.set()
            await receive() if scope["method"] == "GET" else None
            while not cancel.requested:
                await asyncio.sleep(0)
            seen.append(await receive())

        call = calling(Waiting(app, most=10, questions=1))
        await call("GET", "/datasets/salaries/ask", leaving)
        assert seen == [{"type": "http.disconnect"}]

    play(scene())


def test_a_price_that_was_given_up_is_not_computed(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "t.duckdb")) as made:
        made.execute("CREATE TABLE t AS SELECT range AS age FROM range(90)")
    with Workspace(tmp_path / "w.blowfish", user="ana") as workspace:
        workspace.add_dataset("t", tmp_path / "t.duckdb", domain=bf.Domain(age=bf.Integer(0, 99)), table="t")
        asking, cancel = workspace["t"]["age"].histogram(bins=5).accurate_to(20), Cancellation()
        before = workspace.events()
        alone, whole = asking.quote(more=False), asking.quote(cancel=cancel)
        assert alone.epsilon == whole.epsilon and alone.plain_epsilon is None
        assert (alone.alternatives, alone.fits, alone.dividend) == ((), (), None)
        assert whole.plain_epsilon is not None and whole.alternatives
        cancel.cancel()
        with pytest.raises(Cancelled):
            asking.quote(cancel=cancel)
        assert workspace.events() == before


def test_questions_under_way_are_given_up_and_so_are_those_that_come_late() -> None:
    underway = Underway()
    with underway.question() as first:
        assert not underway.wait(0)
        underway.stop()
        assert first.requested
        with underway.question() as late:
            assert late.requested
    assert underway.wait(0)


@pytest.mark.parametrize(
    "name", ["statement_seconds", "requests_at_once", "questions_at_once", "ending_seconds"]
)
def test_limits_are_positive(name: str) -> None:
    assert getattr(Settings(**{name: 3}), name) == 3
    with pytest.raises(InvalidInput, match=name):
        Settings(**{name: 0})


def test_a_statement_that_takes_too_long_is_interrupted_and_stays_charged(tmp_path: Path) -> None:
    rows, ages = tmp_path / "rows.duckdb", bf.Domain(age=bf.Integer(0, 99))
    with duckdb.connect(str(rows)) as made:
        made.execute("CREATE VIEW rows AS SELECT 5 AS age")
    with Workspace(tmp_path / "w.blowfish", user="ana") as workspace:
        workspace.add_dataset("rows", rows, domain=ages, table="rows", rows_vary=False)
    with duckdb.connect(str(rows)) as made:  # from now on nobody lives to see its end
        made.execute(
            "CREATE OR REPLACE VIEW rows AS SELECT CAST(a.range % 100 AS INTEGER) AS age "
            "FROM range(1000000) a "
            "CROSS JOIN range(1000000) b WHERE hash(a.range, b.range) = 0"
        )
    with Workspace(tmp_path / "w.blowfish", user="ana", statement_seconds=0.2) as workspace:
        with pytest.raises(QueryFailed, match=r"longer than 0\.2 seconds"):
            workspace["rows"]["age"].histogram(bins=5).spend("0.5").ask()
        assert str(workspace.budget("rows").spent) == "0.5"
        assert workspace.events("rows")[-1].kind == State.LOST.value


HANGING = """
from blowfishdb.adapters.backends.duckdb import DuckDB

DuckDB._run = lambda self, statement, brake: open({fifo!r}).read()
"""
"""Rows that never come, whatever is done to stop the statement."""


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.thorough), 2])
def test_a_server_ends_although_a_source_hangs_and_the_charge_stays(tmp_path: Path, workers: int) -> None:
    place, fifo = tmp_path / "w.blowfish", tmp_path / "fifo"
    os.mkfifo(fifo)  # whoever opens it waits for somebody who writes
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as made:
        made.execute("CREATE TABLE rows AS SELECT 5 AS age")
    with Workspace(place, user="curator") as workspace:
        ages = bf.Domain(age=bf.Integer(0, 99))
        workspace.add_dataset("rows", tmp_path / "rows.duckdb", domain=ages, table="rows")
        Accounts(workspace.store).add("curator", Role.CURATOR, None)
        token = Tokens(workspace.store).issue("curator", purpose="api", lifetime=timedelta(hours=1))[0]
    http = httpx.Client(headers={"Authorization": f"Bearer {token}"}, timeout=60)
    program, ended = HANGING.format(fifo=str(fifo)), []
    log = tmp_path / "log.jsonl"
    with serving(place, workers, token, log, ending_seconds=1, first=program) as (process, url):

        def ask() -> None:
            asked = {"question": "histogram(age, bins=5)", "epsilon": "0.5"}
            try:
                ended.append(http.post(f"{url}/api/v1/datasets/rows/answers", json=asked).text)
            except httpx.TransportError as error:
                ended.append(str(error))

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        while http.get(f"{url}/api/v1/datasets/rows/budget").json()["held"] == "0":
            assert asking.is_alive(), ended
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
    with Workspace(place, user="auditor") as workspace:
        budget = workspace.budget("rows")
        assert str(budget.spent + budget.held) == "0.5"
        assert workspace.verify() == []
