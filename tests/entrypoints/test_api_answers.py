"""Stored answers over HTTP: lists, exports, comparisons, the curator's experiments, and who sees what."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blowfishdb as bf
from blowfishdb.adapters.tokens import Role
from blowfishdb.core.policy import codec
from tests.entrypoints.server import DOMAIN, QUESTION, Running, client_of, running

API = "/api/v1"
HISTOGRAM = {"question": "histogram(region)", "error": 40}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Three answers: two of the analyst, one of the curator."""
    with running(tmp_path_factory.mktemp("answers")) as found:
        for client, body in ((found.analyst, QUESTION), (found.curator, HISTOGRAM), (found.analyst, NARROW)):
            assert client.post(f"{API}/datasets/salaries/answers", json=body).status_code == 200
        yield found


NARROW = {**QUESTION, "error": 30}


def ids(here: Running) -> list[int]:
    return [answer["id"] for answer in here.analyst.get(f"{API}/answers").json()["answers"]]


# --- lists ----------------------------------------------------------------------------------------


def test_answers_are_listed_page_by_page_in_both_orders(here: Running) -> None:
    everything = ids(here)
    assert len(everything) == 3 and everything == sorted(everything)
    first = here.analyst.get(f"{API}/answers", params={"limit": 2}).json()
    second = here.analyst.get(f"{API}/answers", params={"limit": 2, "after": first["next"]}).json()
    assert [a["id"] for a in first["answers"] + second["answers"]] == everything and second["next"] is None
    newest = here.analyst.get(f"{API}/answers", params={"limit": 2, "newest": True}).json()
    rest = here.analyst.get(f"{API}/answers", params={"newest": True, "after": newest["next"]}).json()
    assert [a["id"] for a in newest["answers"] + rest["answers"]] == everything[::-1]
    assert here.analyst.get(f"{API}/answers", params={"dataset": "salaries"}).json()["answers"]
    assert here.analyst.get(f"{API}/answers", params={"dataset": "other"}).status_code == 404
    assert here.analyst.get(f"{API}/answers", params={"limit": 0}).status_code == 422


def test_analysts_do_not_see_others_names_nor_the_sql(here: Running) -> None:
    mine, theirs, _ = ids(here)
    for role, own, other in (
        ("analyst", "analyst", None),
        ("curator", "analyst", "curator"),
        ("auditor", "analyst", "curator"),
    ):
        client = here.as_role(role)
        receipts = [client.get(f"{API}/answers/{number}").json()["receipt"] for number in (mine, theirs)]
        assert [receipt["user"] for receipt in receipts] == [own, other]
        assert all(bool(receipt["sql"]) is (role != "analyst") for receipt in receipts)
        listed = client.get(f"{API}/answers").json()["answers"]
        assert [line["user"] for line in listed[:2]] == [own, other]


def test_a_stored_answer_of_somebody_else_is_free_and_nameless(here: Running) -> None:
    left = here.workspace.budget("salaries").spent
    answer = here.analyst.post(f"{API}/datasets/salaries/answers", json=HISTOGRAM).json()
    assert answer["receipt"]["cost"] == "0" and answer["receipt"]["user"] is None
    assert here.workspace.budget("salaries").spent == left


def test_an_answer_that_is_not_there_is_not_found(here: Running) -> None:
    for path in ("999999", "999999.csv"):
        missing = here.analyst.get(f"{API}/answers/{path}")
        assert missing.status_code == 404 and missing.json()["type"].endswith(":not-found")
    assert here.analyst.get(f"{API}/answers/{ids(here)[0]}.exe").status_code == 422
    assert here.nobody.get(f"{API}/answers").status_code == 401


# --- exports --------------------------------------------------------------------------------------


def test_every_export_holds_the_answer(here: Running) -> None:
    number = ids(here)[0]
    answer = here.analyst.get(f"{API}/answers/{number}").json()
    files = {
        form: here.analyst.get(f"{API}/answers/{number}.{form}")
        for form in ("csv", "json", "arrow", "parquet", "svg", "png", "html")
    }
    for form, file in files.items():
        assert file.status_code == 200, form
        assert f'filename="salaries-{number}.{form}"' in file.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO(files["csv"].content.decode("utf-8-sig"))))
    assert [float(row["value"]) for row in rows] == answer["values"]
    assert pa.ipc.open_file(files["arrow"].content).read_all()["low"].to_pylist() == answer["low"]
    assert pq.read_table(io.BytesIO(files["parquet"].content))["high"].to_pylist() == answer["high"]
    assert files["json"].json()["values"] == answer["values"] and files["json"].json()["receipt"]["sql"] == ""
    assert files["svg"].text.startswith("<svg") and files["png"].content.startswith(b"\x89PNG")
    assert "<script" not in files["html"].text and "<svg" in files["html"].text
    assert "sandbox" in files["html"].headers["Content-Security-Policy"]


# --- comparisons ----------------------------------------------------------------------------------


def test_two_answers_are_compared(here: Running) -> None:
    first, other, second = ids(here)
    done = here.analyst.post(f"{API}/compare", json={"a": first, "b": second}).json()
    assert done["alpha"] == 80 and done["beta"] == pytest.approx(0.1) and len(done["difference"]) == 20
    apart = sum(abs(each) > done["alpha"] for each in done["difference"])  # by chance, now and then
    assert done["sentence"].startswith(f"{apart} of 20 bars" if apart else "No bar")
    refused = here.analyst.post(f"{API}/compare", json={"a": first, "b": other})
    assert refused.status_code == 422 and "salary" in refused.json()["detail"]
    assert here.analyst.post(f"{API}/compare", json={"a": first, "b": 999_999}).status_code == 404


# --- the curator's experiments --------------------------------------------------------------------


def test_a_tradeoff_by_distance_and_by_policy(here: Running) -> None:
    path = f"{API}/datasets/salaries/tradeoff"
    by_distance = here.curator.post(path, json={**QUESTION, "thresholds": [1_000, 5_000, 50_000]}).json()
    assert [point["theta"] for point in by_distance["points"]] == [1_000, 5_000, 50_000]
    assert by_distance["points"][0]["nano_epsilon"] < by_distance["points"][2]["nano_epsilon"]
    full = codec.plain(bf.Policy.differential_privacy(DOMAIN).graph)
    by_policy = here.curator.post(path, json={**QUESTION, "policies": {"everything": full}}).json()
    assert by_policy["points"][0]["policy"] == "everything"
    for body in (
        QUESTION,
        {**QUESTION, "policies": {"x": {"kind": "full"}}},
        {**QUESTION, "policies": {"x": {}}},
    ):
        assert here.curator.post(path, json=body).status_code == 422
    assert here.analyst.post(path, json={**QUESTION, "thresholds": [1_000]}).status_code == 403


def test_a_tradeoff_as_a_job(here: Running) -> None:
    path, headers = f"{API}/datasets/salaries/tradeoff", {"Prefer": "respond-async"}
    started = here.curator.post(path, json={**QUESTION, "thresholds": [1_000, 5_000]}, headers=headers)
    assert started.status_code == 202 and started.json()["state"] == "running"
    job = _finished(here, started.headers["Location"])
    assert (job["state"], job["done"], job["of"]) == ("done", 2, 2) and len(job["result"]["points"]) == 2
    failing = {**QUESTION, "thresholds": [-5]}
    failed = here.curator.post(path, json=failing, headers=headers)
    job = _finished(here, failed.headers["Location"])
    assert job["state"] == "failed" and job["problem"]["status"] == 422
    assert here.analyst.get(started.headers["Location"]).status_code == 403
    server = here.app.state.server
    server.accounts.add("second", Role.CURATOR, "another long password")
    token = server.tokens.issue("second", purpose="api", lifetime=server.settings.token_lifetime)[0]
    assert client_of(here.app, token).get(started.headers["Location"]).status_code == 404  # not theirs


def _finished(here: Running, place: str) -> dict[str, Any]:
    patience = time.monotonic() + 60
    while True:
        job: dict[str, Any] = here.curator.get(place).json()
        if job["state"] != "running" or time.monotonic() > patience:
            return job
        time.sleep(0.05)


def test_a_preview_is_for_the_curator_and_leaves_a_trace(here: Running) -> None:
    path = f"{API}/datasets/salaries/preview"
    assert here.analyst.post(path, json=HISTOGRAM).status_code == 403
    assert here.auditor.post(path, json=HISTOGRAM).status_code == 403
    spent, events = here.workspace.budget("salaries").spent, len(here.workspace.events())
    shown = here.curator.post(path, json=HISTOGRAM).json()
    assert shown["truth"]["values"] == [750.0] * 4 and "TRUE DATA" in shown["watermark"]
    assert here.workspace.budget("salaries").spent == spent and len(here.workspace.events()) == events + 1
    graph = codec.plain(bf.Policy.differential_privacy(DOMAIN).graph)
    made_up = here.curator.post(path, json={**HISTOGRAM, "stand_in": True, "policy": graph}).json()
    assert made_up["watermark"] == "made-up data" and made_up["truth"]["values"] != [750.0] * 4
    assert len(here.workspace.events()) == events + 1
