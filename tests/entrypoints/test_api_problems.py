"""Refusals: the right status, what to try, whether it was charged, and nothing that must not be told."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Iterator

import pytest

from blowfishdb.core import errors
from blowfishdb.entrypoints.server.access import Anyone
from blowfishdb.entrypoints.server.problems import STATUS, kebab, problem_of, status_of
from tests.entrypoints.server import PASSWORD, Running, running


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("problems")) as found:
        yield found


def raised() -> Iterator[type[errors.BlowfishError]]:
    for _, found in inspect.getmembers(errors, inspect.isclass):
        if issubclass(found, errors.BlowfishError) and found is not errors.BlowfishError:
            yield found


def made(kind: type[errors.BlowfishError]) -> errors.BlowfishError:
    if kind is errors.TooManyAttempts:
        return errors.TooManyAttempts("Too often.", wait=9)
    return kind("It did not work.", fixes=("something else",))


@pytest.mark.parametrize("kind", list(raised()), ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_and_the_shape_of_a_problem(kind: type[errors.BlowfishError]) -> None:
    error = made(kind)
    response = problem_of(error, shown_places=True, reference="r").response()
    body = json.loads(bytes(response.body))
    assert response.media_type == "application/problem+json"
    assert set(body) >= {"type", "title", "status", "detail", "charged", "fixes"}
    assert body["status"] == response.status_code == status_of(error)
    assert body["charged"] is error.charged
    if kind is errors.SecretLeak:
        assert response.status_code == 500 and "It did not work" not in body["detail"]
    else:
        assert 400 <= response.status_code < 504 and response.status_code != 500
        assert body["type"] == f"urn:blowfishdb:problem:{kebab(kind.__name__)}"


def test_the_table_decides_by_its_first_fit() -> None:
    expected = {
        errors.UnknownColumn: 422,
        errors.UnknownDataset: 404,
        errors.NotFound: 404,
        errors.KeyReused: 409,
        errors.BudgetExhausted: 402,
        errors.MaxCostExceeded: 402,
        errors.NotAllowed: 403,
        errors.NotSignedIn: 401,
        errors.PolicyConflict: 409,
        errors.NotProven: 422,
        errors.NoGuarantee: 422,
        errors.Infeasible: 422,
        errors.UnsupportedSql: 422,
        errors.AnswerInProgress: 409,
        errors.TooManyAttempts: 429,
        errors.SourceMissing: 503,
        errors.SourceCorrupt: 502,
        errors.QueryFailed: 502,
        errors.WorkspaceError: 503,
    }
    assert {kind: status_of(made(kind)) for kind in expected} == expected
    kinds = [kind for kind, _ in STATUS]
    for place, kind in enumerate(kinds):
        assert not any(issubclass(kind, earlier) for earlier in kinds[:place]), f"{kind} is never reached"


def test_a_refused_budget_says_what_is_needed_and_left(here: Running) -> None:
    refused = here.analyst.post(
        "/api/v1/datasets/salaries/answers", json={"question": "histogram(age, bins=4)", "epsilon": "7"}
    )
    body = refused.json()
    assert refused.status_code == 402 and body["type"].endswith("budget-exhausted")
    assert (body["needed"], body["left"], body["charged"]) == ("7", "5", False) and body["fixes"]


def test_where_rows_are_is_told_to_curators_only() -> None:
    error = errors.QueryFailed("The file '/vault/people.duckdb' went away.", fixes=("look at /vault",))
    hidden = problem_of(error, shown_places=False, reference="abc").body
    assert "vault" not in json.dumps(hidden) and hidden["charged"] is True and hidden["reference"] == "abc"
    assert "stays charged" in hidden["detail"]
    assert "vault" in json.dumps(problem_of(error, shown_places=True).body)


def test_validation_says_where_and_never_what_was_sent(here: Running) -> None:
    refused = here.nobody.post("/api/v1/session", json={"user": "analyst", "password": [PASSWORD]})
    body = refused.json()
    assert refused.status_code == 422 and body["type"].endswith("invalid-input")
    assert any(fix.startswith("password") for fix in body["fixes"]) and PASSWORD not in refused.text
    extra = here.analyst.post("/api/v1/tokens", json={"labl": "x"}).json()
    assert any(fix.startswith("labl") for fix in extra["fixes"])


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"label": NaN}', b"[" * 5000]
)
def test_broken_bodies_are_problems(here: Running, content: bytes) -> None:
    refused = here.analyst.post(
        "/api/v1/tokens", content=content, headers={"Content-Type": "application/json"}
    )
    assert 400 <= refused.status_code < 500
    assert refused.headers["Content-Type"] == "application/problem+json"


def test_unknown_routes_and_methods_are_problems(here: Running) -> None:
    missing = here.nobody.get("/api/v1/nothing")
    assert missing.status_code == 404 and missing.json()["type"] == "urn:blowfishdb:problem:not-found"
    wrong = here.nobody.put("/api/v1/health")
    assert wrong.status_code == 405 and wrong.json()["type"].endswith("method-not-allowed")
    assert wrong.headers["Allow"] == "GET"


def test_what_nobody_foresaw_is_a_500_with_a_reference_and_no_details(
    here: Running, caplog: pytest.LogCaptureFixture
) -> None:
    class Charged(RuntimeError):
        charged = True

    def fails(kind: str, _: Anyone) -> None:
        raise (Charged if kind == "charged" else RuntimeError)("salary 48,213 of row 7")

    here.app.get("/api/fails/{kind}")(fails)
    caplog.set_level(logging.INFO, logger="blowfishdb.server")
    failed = here.curator.get("/api/fails/plain")
    body = failed.json()
    assert failed.status_code == 500 and body["type"].endswith("unexpected") and body["charged"] is False
    assert body["reference"] == failed.headers["X-Request-ID"]
    assert failed.headers["X-Content-Type-Options"] == "nosniff"
    assert here.curator.get("/api/fails/charged").json()["charged"] is True
    line = json.loads(caplog.records[0].message)
    assert line["id"] == body["reference"] and line["problem"] == "RuntimeError"
    assert any(step.startswith("fails:") for step in line["passed"])
    assert "48,213" not in failed.text + caplog.text


def test_the_same_error_reads_the_same_to_a_program_and_a_person(here: Running) -> None:
    body = here.analyst.get("/api/v1/datasets/salary").json()
    assert (
        body["detail"] == "There is no dataset 'salary' in this workspace." and "salaries" in body["fixes"][0]
    )
    public = here.nobody.get("/api/v1/datasets/salary/guarantee")
    assert public.status_code == 404 and "salaries" not in public.text
