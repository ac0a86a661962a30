"""docs/api.md names every route of the API and none that does not exist, and its examples work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from fastapi.routing import iter_route_contexts

from tests.entrypoints.server import SETTINGS, Running, client_of, running

TEXT = (Path(__file__).parent.parent / "docs" / "api.md").read_text(encoding="utf-8")
LINE = re.compile(
    r"^\| `(?P<method>[A-Z]+) (?P<path>\S+)`(?P<place>[^|]*)\| (?P<who>[^|]*) \| (?P<what>[^|]+) "
    r"\| (?P<example>.*)\|$",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Documented:
    """One line of a table."""

    method: str
    path: str
    who: str
    example: str

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


def documented() -> list[Documented]:
    found = []
    for line in LINE.finditer(TEXT):
        prefix = "" if line["place"].strip() else "/api/v1"
        example = line["example"].strip().strip("`")
        found.append(Documented(line["method"], prefix + line["path"], line["who"], example))
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("api"), settings=replace(SETTINGS, demo=True), budget="20") as found:
        yield found


def test_every_route_is_documented_and_no_other(server: Running) -> None:
    routes = {
        f"{method} {found.path.replace(':int', '')}"
        for found in iter_route_contexts(server.app.routes)
        for method in found.original_route.methods
        if found.path.startswith(("/api/", "/metrics"))
    }
    named = [line.name for line in documented()]
    assert len(named) == len(set(named)) and set(named) == routes


def test_every_example_works(server: Running) -> None:
    """In the order of the document, with tokens, users and answers that its own examples made."""
    number = server.analyst.post(
        "/api/v1/datasets/salaries/answers", json={"question": "histogram(age, width=20)", "error": 90}
    ).json()["id"]
    with (server.folder / "salaries.duckdb").open("rb") as rows:
        assert rows.read(1)
    known = {"dataset": "salaries", "user": "ana", "number": str(number), "form": "csv", "key": "nothing"}
    for line in documented():
        if line.path.endswith("{token_id}"):
            known["token_id"] = server.analyst.get("/api/v1/tokens").json()["tokens"][0]["id"]
        if "grants/" in line.path:
            known["user"] = "analyst"
        if line.path.endswith("/schema") and line.method == "PATCH":
            known["dataset"] = "people"  # about which nothing has been asked
        if line.path.endswith("{dataset}") and line.method == "DELETE":
            known["dataset"] = "people"  # which no later line speaks of
        if line.path.endswith("/requests/{id}"):
            known["id"] = server.analyst.get("/api/v1/requests").json()["requests"][-1]["id"]
        status, body = send(server, line, known)
        expected = 404 if "running" in line.path else 400
        assert status <= expected and (status == 404) == (expected == 404), f"{line.name}: {status} {body}"
        if line.path.endswith(("/tradeoff", "/synthetic")):
            known["job"] = body["id"]
        if line.path.endswith("/card"):
            known["card"] = body["id"]
        if line.name == "POST /api/v1/dashboards":
            known["id"] = body["id"]
        if line.path.endswith("synthetic/jobs/{job}"):
            known["number"] = str(body["result"]["id"])  # type: ignore[index]
        known["dataset"] = "salaries"


def send(server: Running, line: Documented, known: dict[str, str]) -> tuple[int, dict[str, str]]:
    """The example of a line, sent by the first of those who may."""
    role = {"anyone": "nobody", "everyone": "analyst"}.get(line.who, line.who.partition(",")[0])
    client = client_of(server.app) if role == "nobody" else server.as_role(role)
    if line.path.endswith("/session/demo"):
        client = client_of(server.app, address="127.0.0.1")
        client.base_url = "http://127.0.0.1"  # type: ignore[assignment]
    path = line.path.format(**known)
    example = line.example.replace("data/salaries.duckdb", str(server.folder / "salaries.duckdb"))
    example = example.replace('{"a": 1, "b": 1}', f'{{"a": {known["number"]}, "b": {known["number"]}}}')
    example = example.replace('"answers": [1]', f'"answers": [{known["number"]}]')
    headers = {"Prefer": "respond-async"} if path.endswith(("/tradeoff", "/synthetic")) else {}
    if example.startswith("?"):
        path, example = path + example, ""
    response = client.request(
        line.method, path, json=json.loads(example) if example else None, headers=headers
    )
    kind = response.headers.get("content-type", "")
    return response.status_code, response.json() if "json" in kind and response.content else {}


def test_every_line_was_read() -> None:
    assert len(documented()) == len(re.findall(r"^\| `[A-Z]+ ", TEXT, flags=re.MULTILINE))
