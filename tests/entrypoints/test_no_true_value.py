"""What an analyst can fetch, byte by byte: none of it is a true value.

The true counts are numbers that nothing else has. The analyst calls every route there is, asks every kind of
question, takes every export, provokes refusals; then all bytes, all headers, the log and the metrics are
searched. The curator's preview does hold the true values, so the search can find them.
"""

from __future__ import annotations

import io
import itertools
import json
import logging
import re
import struct
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blowfishdb as bf
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.entrypoints.server.app import create_app
from blowfishdb.mechanisms import CLUSTERING, DATA_DEPENDENT
from blowfishdb.show.exports import FORMATS
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import CHEAP, PASSWORD, ROLES, SETTINGS, TestClient, client_of

API = "/api/v1"
COUNTS = {"north": 1_000_003, "south": 1_299_709, "east": 1_549_931, "west": 1_746_391}
"""Everyone in the k-th region earns between 10·k and 10·k + 9."""
DOMAIN = bf.Domain(region=bf.Category(tuple(COUNTS)), salary=bf.Integer(0, 39))
WIDE = {"error": 200_000}
"""So wide that noise of exactly zero is one chance in a hundred thousand."""
QUESTIONS = (
    "histogram(region)",
    "cumulative(salary, bins=4)",
    "ranges(salary, 0..9, 10..19)",
    "quantiles(salary, 0.25, 0.5)",
    "top(region, 2)",
    "above(region, 1200000)",
    "count() where salary >= 10",
    "histogram(region) where salary < 30",
)


def true_values() -> set[int]:
    """Every bin, every sum of neighbouring bins except the public total, and the sum of all salaries."""
    counts = list(COUNTS.values())
    parts = {sum(counts[i:j]) for i, j in itertools.combinations(range(5), 2)} - {sum(counts)}
    return parts | {sum(n * (10 * k) + 9 * (n // 2) for k, n in enumerate(counts))}


def patterns() -> list[bytes]:
    """A true value as text, as people write it, and as the bytes of a number."""
    found = []
    for value in true_values():
        found += [
            str(value).encode(),
            f"{value:,}".encode(),
            struct.pack("<d", value),
            struct.pack("<q", value),
        ]
    return found


def leaks(content: bytes) -> list[bytes]:
    return [pattern for pattern in patterns() if pattern in content]


def opened(form: str, content: bytes) -> bytes:
    """What a compressed export holds."""
    if form == "parquet":
        return repr(pq.read_table(io.BytesIO(content)).to_pydict()).encode()
    if form == "arrow":
        return repr(pa.ipc.open_file(content).read_all().to_pydict()).encode()
    return content


class Fetched:
    """An analyst who keeps every byte that comes back, whatever it answers."""

    def __init__(self, client: TestClient) -> None:
        self.client = client
        self.everything: list[tuple[str, bytes]] = []

    def __call__(self, method: str, path: str, **sent: Any) -> Any:
        response = self.client.request(method, path, **sent)
        head = repr(sorted(response.headers.items())).encode()
        self.everything.append((f"{method} {path}", head + b"\n" + response.content))
        return response


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """More than five million rows, one user for each role."""
    folder = tmp_path_factory.mktemp("distinctive")
    with duckdb.connect(str(folder / "people.duckdb")) as connection:
        parts = " UNION ALL ".join(
            f"SELECT '{name}' AS region, ({10 * k} + 9 * (i % 2))::TINYINT AS salary FROM range({count}) t(i)"
            for k, (name, count) in enumerate(COUNTS.items())
        )
        connection.execute(f"CREATE TABLE people AS {parts}")
    where = folder / "server.blowfish"
    with Workspace(where, user="curator") as workspace:
        people = workspace.add_dataset("people", folder / "people.duckdb", domain=DOMAIN, table="people")
        people.publish(bf.Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(40, 10)}))
        people.budget.set("0.01")
        accounts = Accounts(workspace.store, hasher=CHEAP)
        for name, role in ROLES.items():
            accounts.add(name, role, PASSWORD)
    return where


@pytest.fixture
def clients(place: Path) -> Iterator[tuple[TestClient, TestClient]]:
    """The analyst and the curator."""
    app = create_app(place, settings=SETTINGS, hasher=CHEAP)
    workspace: Workspace = app.state.server.workspace
    tokens = Tokens(workspace.store)
    try:
        yield tuple(
            client_of(app, tokens.issue(role, purpose="api", lifetime=timedelta(hours=1))[0])
            for role in ("analyst", "curator")
        )  # type: ignore[misc]
    finally:
        workspace.close()


def test_nothing_that_an_analyst_fetches_is_a_true_value(
    clients: tuple[TestClient, TestClient], caplog: pytest.LogCaptureFixture
) -> None:
    analyst, curator = clients
    caplog.set_level(logging.DEBUG)
    fetch = Fetched(analyst)
    answers = _ask_everything(fetch)
    drawn = [
        *answers[:3],
        answers[-3],
    ]  # bars, a curve, ranges and clusters: pictures take a while; after these come the same kinds again
    tables = [form for form in FORMATS if form not in ("svg", "png", "html")]
    for number, form in [
        *itertools.product(answers, tables),
        *itertools.product(drawn, ("svg", "png", "html")),
    ]:
        file = fetch("GET", f"{API}/answers/{number}.{form}")
        assert file.status_code == 200
        fetch.everything.append((f"inside {number}.{form}", opened(form, file.content)))
    _provoke_refusals(fetch)
    fetch("POST", f"{API}/compare", json={"a": answers[0], "b": answers[-1]})
    _call_every_route(fetch, answers[0])

    for what, content in fetch.everything:
        assert not leaks(content), what
        assert b"people.duckdb" not in content, what  # nor where the rows are
    assert not leaks(caplog.text.encode())
    numbers = curator.get("/metrics").content.splitlines()  # of which a moment has any digits
    assert not leaks(b"\n".join(line for line in numbers if b"_created" not in line))

    body = {"question": "histogram(region)", **WIDE}
    shown = curator.post(f"{API}/datasets/people/preview", json=body).content
    assert all(str(count).encode() in shown for count in COUNTS.values())  # so the search can find them
    assert leaks(shown)


def _ask_everything(fetch: Fetched) -> list[int]:
    found = []
    for question in QUESTIONS:
        body = {"question": question, **WIDE}
        quote = fetch("POST", f"{API}/datasets/people/quotes", json=body)
        assert quote.status_code == 200, quote.text
        fetch("POST", f"{API}/datasets/people/explain", json=body)
        headers = {"Idempotency-Key": f"key of {question}"}
        for _ in range(2):
            taken = {"quote_id": quote.json()["quote_id"]}
            answer = fetch("POST", f"{API}/datasets/people/answers", json=taken, headers=headers)
            assert answer.status_code == 200, answer.text
        found.append(answer.json()["id"])
    for name in DATA_DEPENDENT:
        body = {"question": "histogram(salary, bins=8)", "epsilon": "0.00001", "mechanism": name}
        answer = fetch("POST", f"{API}/datasets/people/answers", json=body)
        assert answer.status_code == 200, answer.text
        fetch("POST", f"{API}/datasets/people/explain", json=body)
        found.append(answer.json()["id"])
    for name, text in itertools.product(
        CLUSTERING, ("clusters(salary, k=4)", "clusters(salary, k=1) where salary < 20")
    ):
        body = {"question": text, "epsilon": "0.00001", "mechanism": name}
        answer = fetch("POST", f"{API}/datasets/people/answers", json=body)
        assert answer.status_code == 200, answer.text
        fetch("POST", f"{API}/datasets/people/explain", json=body)
        found.append(answer.json()["id"])
    for question, error in (("sum(salary)", 5_000_000), ("mean(salary)", 1)):
        answer = fetch("POST", f"{API}/datasets/people/answers", json={"question": question, "error": error})
        assert answer.status_code == 200, answer.text
        found.append(answer.json()["id"])
    return found


def _provoke_refusals(fetch: Fetched) -> None:
    path = f"{API}/datasets/people/answers"
    for body, status in (
        ({"question": "histogram(region)", "error": 1}, 402),
        ({"question": "histogram(region)", "epsilon": "1", "max_cost": "0.5"}, 402),
        ({"question": "histogram(nothing)", **WIDE}, 422),
        ({"question": "histogram(salary) where salary = 1000", **WIDE}, 422),
        ({"sql": "SELECT * FROM people", **WIDE}, 422),
        ({"sql": "SELECT MAX(salary) FROM people", **WIDE}, 422),
    ):
        refused = fetch("POST", path, json=body)
        assert refused.status_code == status, refused.text


def _call_every_route(fetch: Fetched, number: int) -> None:
    """Every route that is documented, allowed or not, with something in each place of its address."""
    filled = {
        "dataset": "people",
        "number": str(number),
        "form": "csv",
        "column": "salary",
        "user": "analyst",
    }
    paths: dict[str, dict[str, Any]] = fetch.client.app.openapi()["paths"]  # type: ignore[attr-defined]
    assert len(paths) > 25
    for path, methods in paths.items():
        address = re.sub(r"\{(\w+)(:\w+)?\}", lambda place: filled.get(place[1], "x"), path)
        for method in methods:
            if method.upper() == "DELETE" and "session" in path:
                continue
            for body in (None, {"question": "histogram(region)", **WIDE}, {}):
                sent = {} if body is None or method == "get" else {"json": body}
                params = {"column": "salary", "u": "3", "v": "17"} if "protection" in path else {}
                response = fetch(method.upper(), address, params=params, **sent)
                assert response.status_code < 500, (method, path, response.text)


def test_a_refusal_for_want_of_budget_sends_no_statement(
    clients: tuple[TestClient, TestClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By construction it cannot take longer for some rows than for others: it never gets to them."""
    from blowfishdb.adapters.backends import base as backend

    sent: list[object] = []
    real = backend.counted

    def noted(*arguments: Any) -> Any:
        sent.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(backend, "counted", noted)
    path = f"{API}/datasets/people/answers"
    assert clients[0].post(path, json={"question": "histogram(region)", "error": 1}).status_code == 402
    assert not sent
    asked = {"question": "histogram(region)", "error": 250_001}
    answered = clients[0].post(path, json={**asked, "mechanism": "laplace"})
    assert answered.status_code == 200 and len(sent) == 1


def test_the_search_finds_what_it_looks_for() -> None:
    assert leaks(json.dumps({"x": 1_299_709.0}).encode()) and leaks(b"1,549,931") and not leaks(b"1,549,932")
    assert leaks(struct.pack("<d", 1_000_003)) and not leaks(str(sum(COUNTS.values())).encode())
