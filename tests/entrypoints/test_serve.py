"""The real server in processes of its own: several workers, one workspace, and an orderly end."""

from __future__ import annotations

import html
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import duckdb
import httpx
import pytest

import blowfishdb as bf
from blowfishdb.adapters.store.values import State
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.errors import InvalidInput, WorkspaceError
from blowfishdb.entrypoints.serve import serve
from blowfishdb.entrypoints.server.app import warm_up
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import make_workspace

PROGRAM = """
import sys
from blowfishdb.entrypoints.server.server import Settings
from blowfishdb.entrypoints.server.app import warm_up
from blowfishdb.entrypoints.serve import serve

if __name__ == "__main__":
    settings = Settings(warm_up=False, ending_seconds=float(sys.argv[4]))
    serve(sys.argv[1], port=int(sys.argv[2]), workers=int(sys.argv[3]), settings=settings)
"""
SLOW = """
SELECT CAST(a.range * 7 + b.range AS BIGINT) % 100 AS age
FROM range(15000) a CROSS JOIN range(15000) b WHERE hash(a.range, b.range) % 100000 = 0
"""
"""A view whose rows take a while to find: they cannot be known without looking at 200 million pairs."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("served")
    place = make_workspace(folder)
    with Workspace(place, user="curator") as workspace:
        with duckdb.connect(str(folder / "slow.duckdb")) as made:
            made.execute(f"CREATE VIEW slow AS {SLOW}")
        domain = bf.Domain(age=bf.Integer(0, 99))
        workspace.add_dataset("slow", folder / "slow.duckdb", domain=domain, table="slow", rows_vary=False)
    return place


@pytest.fixture(scope="module")
def token(place: Path) -> str:
    with Workspace(place, user="curator") as workspace:
        return Tokens(workspace.store).issue("curator", purpose="api", lifetime=timedelta(hours=1))[0]


@contextmanager
def serving(
    place: Path, workers: int, token: str, log: Path, *, ending_seconds: float = 60, first: str = ""
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server in a process of its own, once it answers; ``first`` is run before it starts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    program = log.with_suffix(".py")
    program.write_text(first + PROGRAM)
    command = [sys.executable, str(program), str(place), str(port), str(workers), str(ending_seconds)]
    with log.open("wb") as lines:
        process = subprocess.Popen(
            command, stderr=lines, env={**os.environ, "PYTHONWARNINGS": "error,ignore::ResourceWarning"}
        )
    url = f"http://127.0.0.1:{port}"
    try:
        _wait_until_it_answers(process, url, log)
        yield process, url
    finally:
        if process.poll() is None:
            process.terminate()
        process.wait(timeout=60)


def _wait_until_it_answers(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"{url}/api/v1/health").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())


def test_two_workers_share_one_workspace_and_one_set_of_numbers(
    place: Path, token: str, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    headers = {"Authorization": f"Bearer {token}"}
    asked = {"question": "histogram(region)", "epsilon": "0.125"}
    with serving(place, 2, token, log) as (process, url):
        answers = [
            httpx.post(f"{url}/api/v1/datasets/salaries/answers", json=asked, headers=headers, timeout=60)
            for _ in range(8)  # each on a connection of its own, so that both workers get some
        ]
        assert {answer.status_code for answer in answers} == {200}
        assert len({json.dumps(answer.json()["values"]) for answer in answers}) == 1  # one answer, paid once
        page = httpx.get(f"{url}/answers/{answers[0].json()['id']}", headers=headers, timeout=60).text
        address = html.unescape(re.search(r'<img src="(/pictures[^"]*)"', page)[1])  # type: ignore[index]
        pictures = [httpx.get(url + address, headers=headers, timeout=60) for _ in range(8)]
        assert {picture.status_code for picture in pictures} == {200}  # whichever worker made the page
        budget = httpx.get(f"{url}/api/v1/datasets/salaries/budget", headers=headers).json()
        assert budget["spent"] == "0.125" and budget["held"] == "0"
        numbers = httpx.get(f"{url}/metrics", headers=headers).text
        counted = [line for line in numbers.splitlines() if line.startswith("blowfishdb_requests_total")]
        asked_line = next(line for line in counted if "answers" in line)
        assert asked_line.endswith(" 8.0") and 'status="200"' in asked_line
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) in (0, -signal.SIGTERM)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum(line.get("route") == "/api/v1/datasets/{dataset}/answers" for line in lines) == 8
    assert token not in log.read_text()
    with Workspace(place, user="auditor") as workspace:
        assert workspace.verify() == []


def test_a_question_under_way_is_answered_and_settled_before_the_server_ends(
    place: Path, token: str, tmp_path: Path
) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    asked = {"question": "histogram(age, bins=10)", "epsilon": "0.5"}
    got: list[httpx.Response] = []
    with serving(place, 1, token, tmp_path / "log.jsonl") as (process, url):

        def ask() -> None:
            address = f"{url}/api/v1/datasets/slow/answers"
            got.append(httpx.post(address, json=asked, headers=headers, timeout=120))

        asking = threading.Thread(target=ask)
        asking.start()
        while httpx.get(f"{url}/api/v1/datasets/slow/budget", headers=headers).json()["held"] == "0":
            assert asking.is_alive(), got and got[0].text
            time.sleep(0.02)
        process.send_signal(signal.SIGTERM)  # the charge is made, and the rows are being read
        asking.join(timeout=120)
        process.wait(timeout=120)
    assert [response.status_code for response in got] == [200]
    with Workspace(place, user="auditor") as workspace:
        budget = workspace.budget("slow")
        assert (str(budget.spent), str(budget.held)) == ("0.5", "0")
        assert workspace.verify() == []
        assert workspace.events("slow")[-1].kind == State.SETTLED.value
        stored = workspace.answer(got[0].json()["id"])
        assert list(stored.values) == got[0].json()["values"]


def test_warming_up_runs_through() -> None:
    thread = warm_up()  # an error inside is an unhandled exception of a thread, and fails the test
    thread.join(timeout=120)
    assert not thread.is_alive()


def test_what_cannot_be_served_is_told_before_anything_starts(tmp_path: Path) -> None:
    broken = tmp_path / "broken.blowfish"
    broken.write_bytes(b"no workspace" * 500)
    with pytest.raises(WorkspaceError):
        serve(broken)
    with pytest.raises(InvalidInput):
        serve(tmp_path / "new.blowfish", workers=0)


@pytest.mark.parametrize("begun", ["GET /api/v1/health?", "GET /api/v1/health HTTP/1.1\r\nX-Long: "])
def test_a_head_that_never_ends_is_refused(place: Path, token: str, tmp_path: Path, begun: str) -> None:
    with serving(place, 1, token, tmp_path / "log.jsonl") as (_, url):
        port = int(url.rpartition(":")[2])
        sent = 0
        with socket.create_connection(("127.0.0.1", port), timeout=30) as stream:
            stream.sendall(begun.encode())
            try:
                while sent < 50_000_000:
                    stream.sendall(b"a" * 65_536)
                    sent += 65_536
            except OSError:
                pass  # it does not listen any more
        assert sent < 10_000_000  # what the system keeps for a reader is some megabytes
        long = {"X-Long": "a" * 60_000, "Authorization": f"Bearer {token}"}
        assert httpx.get(f"{url}/api/v1/health", headers=long).status_code == 200
