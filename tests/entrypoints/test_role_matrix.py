"""Every route against everyone: what nobody decided about, and what somebody decided wrongly, fails here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import iter_route_contexts

from blowfishdb.core.errors import NotAllowed
from blowfishdb.entrypoints.server.access import check_gates
from tests.entrypoints.server import QUESTION, Running, running

EVERYONE = frozenset({"nobody", "analyst", "curator", "auditor"})
SIGNED_IN = EVERYONE - {"nobody"}
CURATOR = frozenset({"curator"})
ASKERS = frozenset({"analyst", "curator"})
BOOK_READERS = frozenset({"curator", "auditor"})
HERE = "/datasets/{dataset}"

ALLOWED: dict[tuple[str, str], frozenset[str]] = {
    ("POST", "/api/v1/session"): EVERYONE,
    ("DELETE", "/api/v1/session"): EVERYONE,
    ("GET", "/api/v1/me"): SIGNED_IN,
    ("GET", "/api/v1/tokens"): SIGNED_IN,
    ("POST", "/api/v1/tokens"): SIGNED_IN,
    ("DELETE", "/api/v1/tokens/{token_id}"): SIGNED_IN,
    ("GET", "/api/v1/users"): CURATOR,
    ("POST", "/api/v1/users"): CURATOR,
    ("PATCH", "/api/v1/users/{user}"): CURATOR,
    ("DELETE", "/api/v1/users/{user}"): CURATOR,
    **{(method, "/api/v1/wire"): SIGNED_IN for method in ("GET", "POST", "PATCH", "DELETE")},
    **{(method, "/api/v1/users/{user}/wire"): CURATOR for method in ("GET", "POST", "PATCH", "DELETE")},
    ("GET", f"/api/v1{HERE}/wire"): SIGNED_IN,
    ("PATCH", f"/api/v1{HERE}/wire"): CURATOR,
    ("GET", "/api/v1/datasets"): SIGNED_IN,
    ("POST", "/api/v1/datasets"): CURATOR,
    ("POST", "/api/v1/datasets/proposal"): CURATOR,
    ("GET", f"/api/v1{HERE}"): SIGNED_IN,
    ("PATCH", f"/api/v1{HERE}"): CURATOR,
    ("GET", "/api/v1/promises"): EVERYONE,
    ("POST", f"/api/v1{HERE}/refresh"): CURATOR,
    ("DELETE", f"/api/v1{HERE}"): CURATOR,
    ("GET", f"/api/v1{HERE}/source"): CURATOR,
    ("GET", "/api/v1/copies"): CURATOR,
    ("GET", f"/api/v1{HERE}/schema"): SIGNED_IN,
    ("PATCH", f"/api/v1{HERE}/schema"): CURATOR,
    ("GET", f"/api/v1{HERE}/policy"): SIGNED_IN,
    ("PUT", f"/api/v1{HERE}/policy"): CURATOR,
    ("GET", f"/api/v1{HERE}/policy/diff"): CURATOR,
    ("POST", f"/api/v1{HERE}/policy/publish"): CURATOR,
    ("POST", f"/api/v1{HERE}/policy/check"): CURATOR,
    ("POST", f"/api/v1{HERE}/policy/past"): CURATOR,
    ("GET", f"/api/v1{HERE}/policy/promises"): SIGNED_IN,
    ("POST", f"/api/v1{HERE}/policy/withdraw"): CURATOR,
    ("GET", f"/api/v1{HERE}/guarantee"): EVERYONE,
    ("GET", f"/api/v1{HERE}/protection"): SIGNED_IN,
    ("GET", f"/api/v1{HERE}/budget"): SIGNED_IN,
    ("PUT", f"/api/v1{HERE}/budget"): CURATOR,
    ("GET", f"/api/v1{HERE}/grants"): BOOK_READERS,
    ("PUT", f"/api/v1{HERE}/grants/{{user}}"): CURATOR,
    ("POST", f"/api/v1{HERE}/quotes"): ASKERS,
    ("POST", f"/api/v1{HERE}/explain"): ASKERS,
    ("POST", f"/api/v1{HERE}/answers"): ASKERS,
    ("POST", f"/api/v1{HERE}/synthetic"): ASKERS,
    ("POST", f"/api/v1{HERE}/synthetic/quotes"): ASKERS,
    ("POST", f"/api/v1{HERE}/synthetic/{{number:int}}/comparison"): CURATOR,
    ("POST", f"/api/v1{HERE}/kept-rows"): CURATOR,
    ("GET", "/api/v1/synthetic/jobs/{job}"): ASKERS,
    ("GET", "/api/v1/synthetic/{number:int}"): SIGNED_IN,
    ("GET", "/api/v1/synthetic/{number:int}/report"): SIGNED_IN,
    ("GET", "/api/v1/synthetic/{number:int}/marks"): SIGNED_IN,
    ("GET", "/api/v1/synthetic/{number:int}/rows.{form}"): SIGNED_IN,
    ("GET", f"/api/v1{HERE}/spending"): BOOK_READERS,
    ("POST", f"/api/v1{HERE}/made-up"): ASKERS,
    ("POST", "/api/v1/plans"): ASKERS,
    ("POST", "/api/v1/batches"): ASKERS,
    ("DELETE", "/api/v1/answers/running/{key}"): ASKERS,
    ("GET", "/api/v1/answers"): SIGNED_IN,
    ("GET", "/api/v1/answers/{number:int}"): SIGNED_IN,
    ("GET", "/api/v1/answers/{number:int}.{form}"): SIGNED_IN,
    ("POST", "/api/v1/compare"): SIGNED_IN,
    ("PUT", "/api/v1/answers/{number:int}/label"): ASKERS,
    ("POST", "/api/v1/answers/{number:int}/card"): ASKERS,
    ("GET", "/api/v1/cards/{card}"): EVERYONE,
    ("DELETE", "/api/v1/cards/{card}"): ASKERS,
    ("GET", "/api/v1/cards/{card}/verify"): EVERYONE,
    ("PUT", f"/api/v1{HERE}/sharing"): CURATOR,
    ("POST", f"/api/v1{HERE}/requests"): ASKERS,
    ("GET", "/api/v1/requests"): SIGNED_IN,
    ("PUT", "/api/v1/requests/{id}"): CURATOR,
    ("POST", "/api/v1/dashboards"): ASKERS,
    ("GET", "/api/v1/dashboards/{id}"): SIGNED_IN,
    ("GET", "/api/v1/jobs/{job}"): CURATOR,
    ("POST", f"/api/v1{HERE}/tradeoff"): CURATOR,
    ("POST", f"/api/v1{HERE}/preview"): CURATOR,
    ("GET", "/api/v1/audit"): BOOK_READERS,
    ("GET", "/api/v1/events"): BOOK_READERS,
    ("GET", "/api/v1/head"): BOOK_READERS,
    ("GET", "/api/v1/health"): EVERYONE,
    ("GET", "/api/v1/attack"): EVERYONE,
    ("GET", "/api/v1/metrics"): BOOK_READERS,
    ("GET", "/metrics"): BOOK_READERS,
    ("GET", "/api/openapi.json"): EVERYONE,
    ("GET", "/api/docs"): EVERYONE,
    ("GET", "/api/docs.css"): EVERYONE,
}

OPEN_PAGES = frozenset(
    {
        ("GET", "/"),
        ("GET", "/help"),
        ("GET", "/help/{page}"),
        ("GET", "/signin"),
        ("POST", "/signin"),
        ("POST", "/signout"),
        ("POST", "/theme"),
        ("GET", "/static/{digest}/{name}"),
        ("GET", "/datasets/{dataset}/guarantee"),
        ("GET", "/attack"),
        ("GET", "/cards/{card}"),
        ("GET", "/cards/{card}.svg"),
        ("GET", "/cards/{card}/verify"),
    }
)
"""Pages that nobody has to sign in for; what they show says nothing about any dataset but its guarantee, and
of an answer what its card shows, where the curator allows cards."""

BODIES: dict[str, Any] = {
    "/api/v1/session": {"user": "analyst", "password": "four random words here"},
    "/api/v1/tokens": {"label": "matrix"},
    "/api/v1/users": {"user": "someone", "role": "analyst"},
    "/api/v1/users/{user}": {"role": "analyst"},
    "/api/v1/wire": {"error": "50"},
    "/api/v1/users/{user}/wire": {"error": "50"},
    f"/api/v1{HERE}/wire": {"error": "50"},
    "/api/v1/datasets": {"name": "other", "source": "nowhere.csv", "domain": {"a": {"kind": "boolean"}}},
    "/api/v1/datasets/proposal": {"source": "nowhere.csv"},
    f"/api/v1{HERE}": {"title": "Salaries"},
    f"/api/v1{HERE}/schema": {"columns": {"age": {"kind": "integer", "lo": 18, "hi": 97}}},
    f"/api/v1{HERE}/policy": {"columns": {"salary": {"hide_within": 1000}}},
    f"/api/v1{HERE}/policy/publish": {"confirm": True},
    f"/api/v1{HERE}/policy/past": {"columns": {}},
    f"/api/v1{HERE}/policy/withdraw": {"version": 77},
    f"/api/v1{HERE}/budget": {"total": "5"},
    f"/api/v1{HERE}/grants/{{user}}": {"epsilon": "0.5"},
    "/api/v1/compare": {"a": 1, "b": 2},
    "/api/v1/answers/{number:int}/label": {"name": "a name"},
    f"/api/v1{HERE}/sharing": {"cards": False},
    f"/api/v1{HERE}/requests": {"reason": "The report needs it."},
    "/api/v1/requests/{id}": {"state": "declined"},
    "/api/v1/dashboards": {"title": "a title", "answers": [1]},
}
PLACES = {
    "{dataset}": "salaries",
    "{user}": "analyst",
    "{token_id}": "0" * 32,
    "{number:int}": "1",
    "{form}": "csv",
    "{key}": "some-key",
    "{job}": "some-job",
    "{card}": "no-such-card",
    "{id}": "no-such-id",
}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("matrix")) as found:
        yield found


def filled(path: str) -> str:
    """A path with something in every place."""
    for place, value in PLACES.items():
        path = path.replace(place, value)
    return re.sub(r"{[^}]*}", "1", path)


def served(here: Running) -> set[tuple[str, str]]:
    """Every method and path that the app answers to."""
    contexts = iter_route_contexts(here.app.routes)
    return {(method, str(found.path)) for found in contexts for method in found.methods or ()}


def for_programs(path: str) -> bool:
    return path.startswith(("/api/", "/metrics"))


def test_every_route_is_listed_and_every_listed_route_is_there(here: Running) -> None:
    assert {(method, path) for method, path in served(here) if for_programs(path)} == set(ALLOWED)


def test_pages_are_for_those_who_signed_in_unless_they_are_listed(here: Running) -> None:
    here.nobody.cookies.clear()
    pages = {(method, path) for method, path in served(here) if not for_programs(path)}
    assert pages >= OPEN_PAGES
    for method, path in sorted(pages - OPEN_PAGES):
        response = here.nobody.request(method, filled(path), follow_redirects=False)
        assert response.status_code in (303, 401, 404), (method, path, response.status_code)
        assert response.headers.get("Location", "/signin").startswith("/signin")


@pytest.mark.parametrize("role", sorted(EVERYONE))
@pytest.mark.parametrize(("method", "path"), sorted(ALLOWED))
def test_who_may(here: Running, method: str, path: str, role: str) -> None:
    address = filled(path)
    if (method, path) == ("DELETE", "/api/v1/users/{user}"):
        address = address.replace("analyst", "somebody-else")  # the others still need theirs
    if (method, path) == ("DELETE", f"/api/v1{HERE}"):
        address = address.replace("salaries", "another")
    body = BODIES.get(path, QUESTION) if method in ("POST", "PUT", "PATCH") else None
    client = here.as_role(role)
    client.cookies.clear()  # signing in is one of the routes
    response = client.request(method, address, json=body)
    if role in ALLOWED[method, path]:
        assert response.status_code not in (401, 403)
        assert response.status_code < 500
    else:
        assert response.status_code == (401 if role == "nobody" else 403), response.text
        assert response.json()["charged"] is False
        assert response.headers["Content-Type"] == "application/problem+json"


def test_denied_before_anything_is_read_from_the_body(here: Running) -> None:
    here.nobody.cookies.clear()
    for role, status in (("nobody", 401), ("analyst", 403)):
        response = here.as_role(role).put("/api/v1/datasets/salaries/budget", json={"nonsense": 1})
        assert response.status_code == status


def test_a_route_without_a_gate_stops_the_server(here: Running) -> None:
    from fastapi import FastAPI

    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    check_gates(app)
    app.get("/open")(lambda: {})
    with pytest.raises(NotAllowed, match="/open"):
        check_gates(app)
