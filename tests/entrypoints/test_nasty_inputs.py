"""Every field of every body gets what nobody should send: a refusal in words, and nothing in the books."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.entrypoints.server import Running, TestClient, ok, running

HERE = "/api/v1/datasets/salaries"
NASTY = (
    "NaN",
    "1e308",
    "9" * 4_000,
    '"1e400"',
    '"1e999999999"',
    '"\\ud800"',
    '"a\\u0000b"',
    '"\u0661"',
    f'"{"x" * 300}"',
    "[[]]",
    '{"kind": ["x"]}',
    "[" * 140 + "]" * 140,
)
"""JSON as it travels."""
FORM = {
    "kind": "histogram",
    "columns": [{"name": "salary", "width": 50_000}],
    "where": {"op": ">=", "column": "age", "value": 30},
}
ASKED = {"question": FORM, "error": 50, "confidence": 0.95, "each": False, "mechanism": "best"}
DIALECT = {"delimiter": ",", "quote": '"', "encoding": "utf-8", "header": True, "decimal": "."}
COLUMNS = {
    "a": {"kind": "integer", "lo": 0, "hi": 9, "step": 1, "missing": "none", "outside": "clamp"},
    "b": {"kind": "real", "lo": 0, "hi": 1, "grid": 0.1},
    "c": {"kind": "category", "values": ["a", "b"], "ordered": False},
    "d": {"kind": "date", "lo": "2020-01-01", "hi": "2021-01-01", "unit": "day"},
}
NEW = {
    "name": "new",
    "source": "nowhere.csv",
    "table": "t",
    "domain": COLUMNS,
    "person": "p",
    "rows_per_person": 3,
    "row_key": "k",
    "public": ["c"],
    "rows_vary": False,
    "kind": "copy",
    "dialect": DIALECT,
}
DRAFT = {
    "columns": {
        "salary": {"hide_within": 1_000},
        "age": {"groups_of": 10},
        "region": {"groups": {"one": ["north", "south"], "two": ["east", "west"]}},
    },
    "known": {"marginals": [{"columns": ["region"]}]},
}
BODIES: list[tuple[str, str, dict[str, Any]]] = [
    ("POST", "/api/v1/tokens", {"label": "l", "days": 1.5}),
    ("POST", "/api/v1/users", {"user": "someone", "role": "analyst", "password": "four random words here"}),
    ("PATCH", "/api/v1/users/analyst", {"role": "analyst", "password": "four random words here"}),
    ("PATCH", "/api/v1/users/analyst/wire", {"error": "1%", "daily_cap": "1", "reset": True}),
    ("POST", "/api/v1/session", {"user": "analyst", "password": "words that are wrong"}),
    ("POST", "/api/v1/datasets", NEW),
    ("POST", "/api/v1/datasets/proposal", {"source": "nowhere.csv", "rare": 10, "dialect": DIALECT}),
    ("POST", f"{HERE}/refresh", {"dialect": DIALECT}),
    ("PATCH", f"{HERE}/schema", {"columns": {"age": COLUMNS["b"]}}),
    ("PUT", f"{HERE}/policy", DRAFT),
    ("PUT", f"{HERE}/policy", {"graph": {"kind": "threshold", "size": 100_000, "theta": 10}}),
    ("POST", f"{HERE}/policy/past", DRAFT),
    ("POST", f"{HERE}/policy/withdraw", {"version": 77}),
    ("PUT", f"{HERE}/budget", {"total": "5"}),
    ("PUT", f"{HERE}/grants/analyst", {"epsilon": "0.5"}),
    ("POST", f"{HERE}/quotes", ASKED),
    ("POST", f"{HERE}/explain", ASKED),
    ("POST", f"{HERE}/answers", {**ASKED, "max_cost": "0.000000001"}),
    ("POST", f"{HERE}/tradeoff", {**ASKED, "column": "salary", "thresholds": [100], "at_epsilon": "0.1"}),
    ("POST", f"{HERE}/preview", {**ASKED, "stand_in": True}),
    ("POST", "/api/v1/plans", {"questions": [{"dataset": "salaries", **ASKED}]}),
    ("POST", "/api/v1/batches", {"questions": [{"dataset": "salaries", **ASKED}], "max_cost": "0.000000001"}),
    ("POST", "/api/v1/compare", {"a": 1, "b": 2}),
]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("nasty"), rows=100, budget="50") as found:
        asked = {"question": "cumulative(salary, bins=20)", "epsilon": "0.5"}
        ok(found.analyst.post(f"{HERE}/answers", json=asked))  # so that there is a past
        yield found


def places(body: object, path: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Everywhere in a body where something else could stand."""
    yield path
    inner = body.items() if isinstance(body, dict) else enumerate(body) if isinstance(body, list) else ()
    for name, value in inner:
        yield from places(value, (*path, name))


def instead(body: Any, path: tuple[object, ...], raw: str) -> str:
    """A body as JSON, with ``raw`` at one place."""
    if not path:
        return raw
    if isinstance(body, dict):
        said = (f"{json.dumps(name)}: {_at(name, value, path, raw)}" for name, value in body.items())
        return "{" + ", ".join(said) + "}"
    return "[" + ", ".join(_at(name, value, path, raw) for name, value in enumerate(body)) + "]"


def _at(name: object, value: Any, path: tuple[object, ...], raw: str) -> str:
    return instead(value, path[1:], raw) if name == path[0] else json.dumps(value)


def test_what_is_said_in_full_is_understood(here: Running) -> None:
    """Otherwise nothing nasty would be looked at."""
    for method, path, body in BODIES:
        if body.items() >= ASKED.items() or body is DRAFT:
            assert here.curator.request(method, path, json=body).status_code in (200, 402), path


@pytest.mark.parametrize(
    "each", [3, pytest.param(len(NASTY), marks=pytest.mark.thorough)], ids="{} of them".format
)
@pytest.mark.parametrize(
    ("method", "path", "body"), BODIES, ids=lambda part: part if isinstance(part, str) else ""
)
def test_no_field_brings_the_server_down(
    here: Running, method: str, path: str, body: dict[str, Any], each: int
) -> None:
    curator = TestClient(here.app, headers=here.curator.headers, raise_server_exceptions=False)
    turns = itertools.cycle(NASTY)
    for place in places(body):
        for raw in itertools.islice(turns, each):
            before = here.workspace.head()
            sent = instead(body, place, raw).encode("utf-8", "surrogatepass")
            response = curator.request(
                method, path, content=sent, headers={"Content-Type": "application/json"}
            )
            assert response.status_code < 500, (place, raw[:40], response.text)
            if response.status_code >= 400:
                assert response.headers["Content-Type"] == "application/problem+json"
                said = response.json()
                assert said["charged"] is False and len(said["detail"]) < 1_000, (place, raw[:40], said)
                assert here.workspace.head() == before, (place, raw[:40], said)
    assert here.workspace.verify() == []
