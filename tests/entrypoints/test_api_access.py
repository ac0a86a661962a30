"""Coming in: cookies, tokens, forged requests, limits, headers, and what is written down about it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from blowfishdb.adapters.store.database import Store
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.errors import InvalidInput, TooManyAttempts
from blowfishdb.entrypoints.server.middleware import Rates
from blowfishdb.entrypoints.server.server import Settings
from tests.entrypoints.server import PASSWORD, SETTINGS, Running, client_of, ok, running

ME = "/api/v1/me"
SESSION = "/api/v1/session"
TOKENS = "/api/v1/tokens"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("access")) as found:
        yield found


# --- signing in -----------------------------------------------------------------------------------


def test_signing_in_and_out(here: Running) -> None:
    client = client_of(here.app)
    assert client.get(ME).status_code == 401
    done = client.post(SESSION, json={"user": "analyst", "password": PASSWORD})
    assert done.status_code == 200 and done.json()["role"] == "analyst"
    cookie = done.headers["Set-Cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and "Secure" not in cookie
    assert client.get(ME).json() == {**done.json(), "csrf": done.json()["csrf"]}
    text = client.cookies["blowfishdb"]
    assert client.delete(SESSION, headers={"X-CSRF-Token": done.json()["csrf"]}).status_code == 204
    client.cookies.set("blowfishdb", text)
    assert client.get(ME).status_code == 401  # the cookie is worth nothing any more, also to a thief


def test_behind_tls_the_cookie_is_secure_and_bound_to_the_host(tmp_path: Path) -> None:
    with running(tmp_path, settings=replace(SETTINGS, https=True)) as secure:
        done = secure.nobody.post(SESSION, json={"user": "curator", "password": PASSWORD})
        cookie = done.headers["Set-Cookie"]
        assert cookie.startswith("__Host-blowfishdb=") and "__Host-blowfishdb-browser=" in cookie
        assert cookie.count("Secure") == cookie.count("Path=/") == 2 and "Domain" not in cookie
        assert "max-age" in done.headers["Strict-Transport-Security"]
        theme = secure.nobody.post("/theme", data={"theme": "dark"}, follow_redirects=False)
        assert theme.headers["Set-Cookie"].endswith("; Secure")


def test_signing_in_again_ends_the_earlier_cookie(here: Running) -> None:
    browser = here.browser("analyst")
    first = browser.cookies["blowfishdb"]
    assert browser.post(SESSION, json={"user": "analyst", "password": PASSWORD}).status_code == 200
    assert Tokens(here.workspace.store).who(first) is None


def test_a_wrong_password_tells_nothing(here: Running) -> None:
    known = here.nobody.post(SESSION, json={"user": "auditor", "password": "not the password"})
    unknown = here.nobody.post(SESSION, json={"user": "nobody-at-all", "password": "not the password"})
    assert known.status_code == unknown.status_code == 401
    assert known.json() == unknown.json() and "not the password" not in known.text


def test_too_many_wrong_passwords_are_refused_also_with_the_right_one(tmp_path: Path) -> None:
    with running(tmp_path, settings=replace(SETTINGS, wrong_passwords=3)) as strict:
        for _ in range(3):
            wrong = strict.nobody.post(SESSION, json={"user": "curator", "password": "guess after guess"})
            assert wrong.status_code == 401
        refused = strict.nobody.post(SESSION, json={"user": "curator", "password": PASSWORD})
        assert refused.status_code == 429 and 20 < int(refused.headers["Retry-After"]) <= 30
        assert "signed in before" in refused.json()["detail"] and refused.json()["charged"] is False
        other = strict.nobody.post(SESSION, json={"user": "analyst", "password": PASSWORD})
        assert other.status_code == 200  # one mistaken person does not keep out those beside them
        elsewhere = client_of(strict.app, address="198.51.100.9")
        assert elsewhere.post(SESSION, json={"user": "curator", "password": PASSWORD}).status_code == 200


def test_a_browser_that_signed_in_before_does_not_wait_for_others(tmp_path: Path) -> None:
    with running(tmp_path, settings=replace(SETTINGS, wrong_passwords=3)) as strict:
        hers = client_of(strict.app)  # the same address as everybody's
        done = hers.post(SESSION, json={"user": "curator", "password": PASSWORD})
        assert "blowfishdb-browser=" in done.headers["Set-Cookie"]
        assert done.headers["Set-Cookie"].count("HttpOnly") == 2
        for _ in range(4):
            strict.nobody.post(SESSION, json={"user": "curator", "password": "guess after guess"})
        body = {"user": "curator", "password": PASSWORD}
        assert client_of(strict.app).post(SESSION, json=body).status_code == 429
        del hers.cookies["blowfishdb"]
        assert hers.get(ME).status_code == 401  # it lets nobody in by itself
        assert hers.post(SESSION, json=body).status_code == 200
        signed_in = hers.post("/signin", data={"user": "curator", "password": PASSWORD})
        assert signed_in.url.path == "/datasets"


def test_a_cookie_is_no_token_and_a_token_no_cookie(here: Running) -> None:
    cookie = here.browser("analyst").cookies["blowfishdb"]
    assert client_of(here.app, cookie).get(ME).status_code == 401
    token = here.analyst.headers["Authorization"].removeprefix("Bearer ")
    client = client_of(here.app)
    client.cookies.set("blowfishdb", token)
    assert client.get(ME).status_code == 401


def test_the_demonstration_lets_this_machine_choose_a_role(tmp_path: Path) -> None:
    with running(tmp_path, settings=replace(SETTINGS, demo=True)) as demo:
        near = client_of(demo.app, address="127.0.0.1")
        near.base_url = "http://127.0.0.1:8787"
        done = near.post("/api/v1/session/demo", json={"role": "auditor"})
        assert done.status_code == 200 and near.get(ME).json()["role"] == "auditor"
        assert near.get(ME).json()["demo"] is True
        far = demo.nobody.post("/api/v1/session/demo", json={"role": "curator"})
        assert far.status_code == 403
        passed_on = {"X-Forwarded-For": "203.0.113.8"}
        body = {"role": "curator"}
        assert near.post("/api/v1/session/demo", json=body, headers=passed_on).status_code == 403
        near.base_url = "http://rebound.example:8787"
        assert near.post("/api/v1/session/demo", json={"role": "curator"}).status_code == 403


def test_without_the_demonstration_there_is_no_such_route(here: Running) -> None:
    assert here.nobody.post("/api/v1/session/demo", json={"role": "curator"}).status_code in (404, 405)


# --- forged requests ------------------------------------------------------------------------------


def test_a_cookie_alone_changes_nothing(here: Running) -> None:
    browser = here.browser("curator")
    good = browser.headers.pop("X-CSRF-Token")
    for forged in ({}, {"X-CSRF-Token": "0" * 64}, {"X-CSRF-Token": "é"}):
        headers = {name: value.encode() for name, value in forged.items()}
        refused = browser.put("/api/v1/datasets/salaries/budget", json={"total": "4"}, headers=headers)
        assert refused.status_code == 403
    assert browser.get("/api/v1/datasets/salaries/budget").json()["total"] == "5"
    other = here.browser("analyst").headers["X-CSRF-Token"]
    refused = browser.put(
        "/api/v1/datasets/salaries/budget", json={"total": "4"}, headers={"X-CSRF-Token": other}
    )
    assert refused.status_code == 403
    done = browser.put(
        "/api/v1/datasets/salaries/budget", json={"total": "5"}, headers={"X-CSRF-Token": good}
    )
    assert done.status_code == 200


# --- tokens ---------------------------------------------------------------------------------------


def test_tokens_are_made_shown_once_and_ended(here: Running) -> None:
    made = here.analyst.post(TOKENS, json={"label": "notebook", "days": 2})
    assert made.status_code == 201
    body = made.json()
    expires = datetime.fromisoformat(body["expires"])
    assert timedelta(days=1) < expires - datetime.now(UTC) <= timedelta(days=2)
    mine = client_of(here.app, body["token"])
    assert mine.get(ME).json() == {"user": "analyst", "role": "analyst", "csrf": None, "demo": False}
    listed = here.analyst.get(TOKENS)
    assert body["id"] in [token["id"] for token in listed.json()["tokens"]]
    assert body["token"] not in listed.text
    assert here.curator.delete(f"{TOKENS}/{body['id']}").status_code == 404  # not theirs
    assert here.analyst.delete(f"{TOKENS}/{body['id']}").status_code == 204
    assert mine.get(ME).status_code == 401


def test_a_token_that_is_over_lets_nobody_in(here: Running) -> None:
    past = Tokens(here.workspace.store, clock=lambda: datetime.now(UTC) - timedelta(days=3))
    text, _ = past.issue("analyst", purpose="api", lifetime=timedelta(days=2))
    assert client_of(here.app, text).get(ME).status_code == 401


def test_a_wrong_token_is_refused_even_where_nobody_needs_one(here: Running) -> None:
    wrong = client_of(here.app, "bf_" + "x" * 43)
    assert wrong.get("/api/v1/datasets/salaries/guarantee").status_code == 401
    assert wrong.get(ME).headers["WWW-Authenticate"].startswith("Bearer")


def test_revoked_users_are_out_at_once(here: Running) -> None:
    assert here.curator.post("/api/v1/users", json={"user": "guest", "role": "analyst"}).status_code == 201
    text, _ = Tokens(here.workspace.store).issue("guest", purpose="api", lifetime=timedelta(hours=1))
    guest = client_of(here.app, text)
    assert guest.get(ME).status_code == 200
    changed = here.curator.patch("/api/v1/users/guest", json={"role": "auditor"})
    assert changed.json()["role"] == guest.get(ME).json()["role"] == "auditor"
    assert here.curator.delete("/api/v1/users/guest").status_code == 204
    assert guest.get(ME).status_code == 401


def test_what_another_process_revokes_is_refused_at_the_next_request(here: Running) -> None:
    text, token = Tokens(here.workspace.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))
    known = client_of(here.app, text)
    assert [known.get(ME).status_code for _ in range(3)] == [200, 200, 200]  # in memory from the second on
    with closing(Store.open(here.workspace.place)) as elsewhere:
        Tokens(elsewhere).revoke_token(token.id)
    assert known.get(ME).status_code == 401


def test_a_refused_change_changes_nothing_and_the_books_say_who_made_the_others(
    here: Running,
) -> None:
    ok(here.curator.post("/api/v1/users", json={"user": "visitor", "role": "analyst"}), 201)
    before = here.workspace.head()
    half = {"role": "auditor", "password": "short"}
    assert here.curator.patch("/api/v1/users/visitor", json=half).status_code == 422
    assert here.workspace.head() == before
    ok(here.curator.patch("/api/v1/users/visitor", json={**half, "password": PASSWORD}))
    assert here.curator.delete("/api/v1/users/visitor").status_code == 204
    told = [e for e in here.workspace.events() if e.kind == "account" and e.facts["account"] == "visitor"]
    assert len(told) == 4 and {event.analyst for event in told} == {"curator"}


# --- limits ---------------------------------------------------------------------------------------


def test_one_caller_cannot_send_without_end_and_others_do_not_suffer(tmp_path: Path) -> None:
    with running(tmp_path, settings=replace(SETTINGS, requests_per_second=0.01, burst=5)) as tight:
        codes = [tight.analyst.get(ME).status_code for _ in range(7)]
        assert codes == [200] * 5 + [429] * 2
        refused = tight.analyst.get(ME)
        assert 1 <= int(refused.headers["Retry-After"]) <= 100 and refused.json()["charged"] is False
        assert tight.curator.get(ME).status_code == 200
        assert [tight.nobody.get(ME).status_code for _ in range(6)] == [401] * 5 + [429]


def test_a_bucket_fills_up_again_and_no_further() -> None:
    now = [0.0]
    rates = Rates(per_second=2, burst=3, monotonic=lambda: now[0])
    for _ in range(3):
        rates.take("a")
    with pytest.raises(TooManyAttempts) as refused:
        rates.take("a")
    assert refused.value.wait == 1
    now[0] = 0.5
    rates.take("a")
    now[0] = 1_000
    for _ in range(3):
        rates.take("a")
    with pytest.raises(TooManyAttempts):
        rates.take("a")


def test_long_requests_are_refused_whether_announced_or_not(tmp_path: Path) -> None:
    with running(tmp_path, settings=replace(SETTINGS, longest_body=1_000)) as short:
        long = json.dumps({"label": "x" * 2_000}).encode()
        json_type = {"Content-Type": "application/json"}
        told = short.analyst.post(TOKENS, content=long, headers=json_type)
        untold = short.analyst.post(TOKENS, content=iter([long[:500], long[500:]]), headers=json_type)
        for refused in (told, untold):
            assert refused.status_code == 413, refused.text
            assert refused.json()["type"].endswith("too-large") and refused.headers["X-Content-Type-Options"]
        assert short.analyst.post(TOKENS, json={"label": "x" * 100}).status_code == 201


# --- headers, log, metrics ------------------------------------------------------------------------


def test_every_response_carries_the_headers(here: Running) -> None:
    for response in (
        here.nobody.get("/api/v1/health"),
        here.nobody.get(ME),
        here.nobody.get("/api/no/such/place"),
        here.nobody.patch("/api/v1/health"),
        here.nobody.get("/api/docs"),
        here.analyst.post(TOKENS, json={"nonsense": 1}),
    ):
        headers = response.headers
        page = headers["Content-Type"].startswith("text/html")
        assert headers["Content-Security-Policy"].startswith(
            "default-src 'self'" if page else "default-src 'none'"
        )
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Opener-Policy"] == "same-origin"
        assert "camera=()" in headers["Permissions-Policy"]
        assert headers["X-Request-ID"] and "Strict-Transport-Security" not in headers


def test_the_log_has_one_line_per_request_and_no_secrets(
    here: Running, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="blowfishdb.server")
    given = {"X-Request-ID": "my-request.1"}
    here.analyst.get("/api/v1/datasets/salaries/protection?column=salary&u=40123&v=41", headers=given)
    here.nobody.post(SESSION, json={"user": "auditor", "password": "a wrong one entirely"})
    here.nobody.get("/api/secret-place", headers={"X-Request-ID": "bad id\x7f"})
    lines = [json.loads(record.message) for record in caplog.records if record.name == "blowfishdb.server"]
    assert [line["route"] for line in lines] == [
        "/api/v1/datasets/{dataset}/protection",
        SESSION,
        "unmatched",
    ]
    assert [line["status"] for line in lines] == [200, 401, 404]
    assert lines[0]["id"] == "my-request.1" and lines[0]["user"] == "analyst" and lines[0]["ms"] >= 0
    assert lines[2]["id"] not in ("", "bad id\x7f") and lines[1]["user"] is None
    for secret in ("40123", "a wrong one", "secret-place", "bf_"):
        assert secret not in caplog.text


def test_metrics_count_routes_and_budgets_and_are_not_for_everyone(here: Running) -> None:
    here.nobody.get("/api/made-up/1")
    here.nobody.request("FROB", "/api/made-up/2")
    numbers = here.auditor.get("/metrics")
    assert numbers.headers["Content-Type"].startswith("text/plain")
    assert 'blowfishdb_epsilon{dataset="salaries",state="total"} 5.0' in numbers.text
    assert 'method="other",route="unmatched"' in numbers.text
    assert "made-up" not in numbers.text and 'route="/api/v1/me"' in numbers.text
    assert here.curator.get("/api/v1/metrics").status_code == 200
    near = client_of(here.app, address="127.0.0.1")
    near.base_url = "http://localhost"
    assert near.get("/metrics").status_code == 200
    assert here.nobody.get("/metrics").status_code == 401
    assert here.analyst.get("/metrics").status_code == 403


def test_settings_are_checked_and_survive_being_told_to_a_worker() -> None:
    changed = Settings(https=True, burst=7, demo=True)
    assert Settings.from_text(changed.to_text()) == changed
    for wrong in ({"burst": 0}, {"session_hours": float("nan")}, {"longest_body": -1}):
        with pytest.raises(InvalidInput):
            Settings(**wrong)


def test_the_description_of_the_interface_is_public_and_says_nothing_about_this_installation(
    here: Running, tmp_path: Path
) -> None:
    with running(tmp_path, rows=50, budget="1") as other:
        other.workspace.as_user("curator")["salaries"].budget.set("2")
        for path in ("/api/openapi.json", "/api/docs", "/api/docs.css"):
            answers = [client_of(each.app).get(path) for each in (here, other)]
            assert [answer.status_code for answer in answers] == [200, 200]
            assert answers[0].content == answers[1].content == here.curator.get(path).content
            assert str(tmp_path) not in answers[1].text
