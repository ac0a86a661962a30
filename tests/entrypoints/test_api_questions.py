"""Quotes, explanations and answers over HTTP: what they say, what they charge, and what stops them."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import InvalidInput, NotFound
from blowfishdb.entrypoints.server.once import RunningQuestions
from blowfishdb.entrypoints.server.server import QuoteIds, Server
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.server import DOMAIN, QUESTION, SETTINGS, Running, make_workspace, running

QUOTES, ANSWERS = "/api/v1/datasets/salaries/quotes", "/api/v1/datasets/salaries/answers"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as found:
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """For what changes nothing."""
    with running(tmp_path_factory.mktemp("shared")) as found:
        yield found


def spent(here: Running) -> bf.Epsilon:
    return here.workspace.budget("salaries").spent


def hide_within(here: Running, distance: int) -> None:
    salary = DOMAIN["salary"]
    graph = bf.graphs.Threshold(salary.size, salary.threshold(distance))
    here.workspace["salaries"].publish(bf.Policy.by_column(DOMAIN, {"salary": graph}), confirm=True)


# --- quotes ---------------------------------------------------------------------------------------


def test_a_quote_is_free_and_says_what_it_costs(shared: Running) -> None:
    quote = shared.analyst.post(QUOTES, json=QUESTION).json()
    assert quote["alpha"] == 50 and quote["beta"] == pytest.approx(0.05)
    assert quote["nano_epsilon"] == bf.Epsilon(quote["epsilon"]).nano > 0
    assert quote["quote_id"] and datetime.fromisoformat(quote["expires"]) > datetime.now(UTC)
    assert not spent(shared)


@pytest.mark.parametrize(
    "body",
    [
        {"question": {"kind": "cumulative", "columns": [{"name": "salary", "bins": 20}]}, "error": 50},
        {"sql": "SELECT COUNT(*) FROM salaries WHERE age >= 30 WITH ERROR 50 CONFIDENCE 0.95"},
        {"sql": "SELECT COUNT(*) FROM salaries WHERE age >= 30", "error": 50},
        {"question": {"kind": "histogram", "columns": ["region"], "where": "age >= 30"}, "epsilon": "0.1"},
        {"question": "histogram(region) where age >= 30", "error": 20, "each": True, "mechanism": "laplace"},
        {"question": "mean(salary)", "error": 500},
    ],
)
def test_a_question_has_several_forms(shared: Running, body: dict[str, Any]) -> None:
    counted = shared.analyst.post(ANSWERS, json={"question": "count()", "epsilon": "1"})
    assert counted.status_code == 200  # a mean has a price once the number of rows is on record
    response = shared.analyst.post(QUOTES, json=body)
    assert response.status_code == 200, response.text


def test_text_object_and_sql_forms_of_one_question_cost_the_same(shared: Running) -> None:
    bodies = (
        {"question": "histogram(region) where age >= 30", "error": 20},
        {"question": {"kind": "histogram", "columns": ["region"], "where": "age >= 30"}, "error": 20},
        {"sql": "SELECT region, COUNT(*) FROM salaries WHERE age >= 30 GROUP BY region", "error": 20},
    )
    costs = {shared.analyst.post(QUOTES, json=body).json()["epsilon"] for body in bodies}
    assert len(costs) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"question": "count()"},
        {"question": "count()", "sql": "SELECT COUNT(*) FROM salaries", "error": 5},
        {"question": "count()", "error": 5, "epsilon": "0.1"},
        {"question": "count()", "error": 0},
        {"question": "count()", "error": 5, "confidence": 1},
        {"question": "histogram(nobody)", "error": 5},
        {"question": {"kind": "histogram", "columns": 7}, "error": 5},
        {"question": {"kind": "histogram", "columns": ["region"], "where": {"op": []}}, "error": 5},
        {"question": "count()", "errors": 5},
        {"sql": "EXPLAIN SELECT COUNT(*) FROM salaries", "error": 5},
        {"sql": "SELECT COUNT(*) FROM salaries WITH ERROR 50", "error": 5},
        {"sql": "DROP TABLE salaries", "error": 5},
        {"question": "histogram(salary)", "error": 5, "mechanism": "magic"},
    ],
)
def test_what_cannot_be_asked_is_refused(shared: Running, body: dict[str, Any]) -> None:
    for path in (QUOTES, ANSWERS):
        refused = shared.analyst.post(path, json=body)
        assert refused.status_code == 422, refused.text
        problem = refused.json()
        assert problem["detail"] and problem["charged"] is False and "Traceback" not in refused.text
    assert not spent(shared)


def test_explain_takes_a_question_or_an_explain_statement(shared: Running) -> None:
    said = shared.analyst.post("/api/v1/datasets/salaries/explain", json=QUESTION).json()
    assert said["answers"] == 20 and said["hidden_pairs"] == 19 and said["epsilon"]
    sql = {"sql": "EXPLAIN SELECT COUNT(*) FROM salaries WHERE age >= 30 WITH ERROR 5"}
    assert shared.analyst.post("/api/v1/datasets/salaries/explain", json=sql).json()["mechanism"]


def test_an_auditor_reads_but_does_not_ask(shared: Running) -> None:
    for path in (QUOTES, ANSWERS):
        assert shared.auditor.post(path, json=QUESTION).status_code == 403
        assert shared.nobody.post(path, json=QUESTION).status_code == 401
    assert shared.analyst.post("/api/v1/datasets/nothing/quotes", json=QUESTION).status_code == 404


# --- taking up a quote ----------------------------------------------------------------------------


def test_a_quote_is_taken_up_at_its_price(here: Running) -> None:
    quote = here.analyst.post(QUOTES, json=QUESTION).json()
    answer = here.analyst.post(ANSWERS, json={"quote_id": quote["quote_id"]}).json()
    assert answer["receipt"]["cost"] == quote["epsilon"] == str(spent(here))
    assert answer["budget"]["spent"] == quote["epsilon"] and answer["id"] == int(answer["receipt"]["charge"])
    assert len(answer["values"]) == 20 and answer["receipt"]["sql"] == ""
    again = here.analyst.post(ANSWERS, json={"quote_id": quote["quote_id"]}).json()
    assert again["receipt"]["cost"] == "0" and again["values"] == answer["values"]


def test_a_quote_is_for_one_user_one_dataset_and_one_hour(shared: Running) -> None:
    quote_id = shared.analyst.post(QUOTES, json=QUESTION).json()["quote_id"]
    assert shared.curator.post(ANSWERS, json={"quote_id": quote_id}).status_code == 422
    ends = (f"{quote_id[:-8]}AAAAAAAA", f"AAAA{quote_id[4:]}", f"{quote_id[:40]}AAAA{quote_id[44:]}")
    for wrong in (*ends, quote_id[:-8], "", ".", "é.é", "a.b.c"):
        refused = shared.analyst.post(ANSWERS, json={"quote_id": wrong})
        assert refused.status_code == 422 and refused.json()["charged"] is False
    late = QuoteIds(shared.workspace.store, lambda: datetime.now(UTC) + timedelta(minutes=61))
    with pytest.raises(InvalidInput, match="hour old"):
        late.open(quote_id, user="analyst", dataset="salaries")
    with pytest.raises(InvalidInput, match="not a quote"):
        QuoteIds(shared.workspace.store).open(quote_id, user="analyst", dataset="other")
    assert not spent(shared)


def test_every_worker_signs_with_the_same_key(shared: Running) -> None:
    quote_id = shared.analyst.post(QUOTES, json=QUESTION).json()["quote_id"]
    with Workspace(shared.folder / "server.blowfish", user="server") as worker:
        opened = QuoteIds(worker.store).open(quote_id, user="analyst", dataset="salaries")
    assert opened.asked == {key: value for key, value in QUESTION.items() if key != "confidence"}


def test_a_quote_cannot_be_changed_on_the_way(shared: Running) -> None:
    quote_id = shared.analyst.post(QUOTES, json=QUESTION).json()["quote_id"]
    refused = shared.analyst.post(ANSWERS, json={"quote_id": quote_id, "error": 1})
    assert refused.status_code == 422 and not spent(shared)


def test_a_changed_policy_gives_a_new_quote_instead_of_an_answer(here: Running) -> None:
    quote = here.analyst.post(QUOTES, json=QUESTION).json()
    hide_within(here, 20_000)
    changed = here.analyst.post(
        ANSWERS, json={"quote_id": quote["quote_id"]}, headers={"Idempotency-Key": "k"}
    )
    problem = changed.json()
    assert changed.status_code == 409 and problem["type"].endswith(":policy-changed") and not spent(here)
    assert problem["quote"]["nano_epsilon"] > quote["nano_epsilon"]
    new = {"quote_id": problem["quote"]["quote_id"]}
    accepted = here.analyst.post(ANSWERS, json=new, headers={"Idempotency-Key": "k"})
    assert accepted.status_code == 200 and str(spent(here)) == problem["quote"]["epsilon"]


def test_nothing_costs_more_than_was_allowed(shared: Running) -> None:
    quote = shared.analyst.post(QUOTES, json=QUESTION).json()
    less = str(bf.Epsilon.from_nano(quote["nano_epsilon"] - 1))
    for body in ({"quote_id": quote["quote_id"], "max_cost": less}, {**QUESTION, "max_cost": less}):
        refused = shared.analyst.post(ANSWERS, json=body)
        assert refused.status_code == 402 and refused.json()["type"].endswith(":max-cost-exceeded")
    assert not spent(shared)


def test_what_the_budget_does_not_hold_is_refused_before_the_data_is_read(here: Running) -> None:
    here.workspace["salaries"].budget.set("0.001")
    before = here.workspace.events()
    refused = here.analyst.post(ANSWERS, json=QUESTION)
    problem = refused.json()
    assert refused.status_code == 402 and problem["fixes"] and problem["charged"] is False
    assert problem["left"] == "0.001" and bf.Epsilon(problem["needed"]) > bf.Epsilon("0.001")
    assert here.workspace.events() == before  # no statement is sent without a mark in the ledger before it


# --- once -----------------------------------------------------------------------------------------


def test_the_same_key_gets_the_same_response_and_is_charged_once(here: Running) -> None:
    headers = {"Idempotency-Key": "monday-1"}
    first = here.analyst.post(ANSWERS, json=QUESTION, headers=headers)
    paid = spent(here)
    second = here.analyst.post(ANSWERS, json=QUESTION, headers=headers)
    assert second.content == first.content and second.headers["Idempotent-Replayed"] == "true"
    assert "Idempotent-Replayed" not in first.headers and spent(here) == paid
    other = here.analyst.post(ANSWERS, json={**QUESTION, "error": 60}, headers=headers)
    assert other.status_code == 409 and other.json()["type"].endswith(":key-reused")


def test_a_refusal_leaves_the_key_free(here: Running) -> None:
    headers = {"Idempotency-Key": "tuesday"}
    body = {**QUESTION, "max_cost": "0.000000001"}
    assert here.analyst.post(ANSWERS, json=body, headers=headers).status_code == 402
    assert here.analyst.post(ANSWERS, json=QUESTION, headers=headers).status_code == 200


def test_a_failure_before_the_charge_leaves_the_key_free(here: Running) -> None:
    headers = {"Idempotency-Key": "wednesday"}
    (here.folder / "salaries.duckdb").rename(here.folder / "gone")
    failed = here.analyst.post(ANSWERS, json=QUESTION, headers=headers)
    assert failed.status_code == 502 and failed.json()["charged"] is False and not spent(here)
    (here.folder / "gone").rename(here.folder / "salaries.duckdb")
    assert here.analyst.post(ANSWERS, json=QUESTION, headers=headers).status_code == 200


# --- giving up ------------------------------------------------------------------------------------


def test_a_running_question_is_cancelled_from_another_worker(tmp_path: Path) -> None:
    place = make_workspace(tmp_path)
    link = tmp_path / "the-same.blowfish"  # another name, so that nothing in this process joins the two
    link.symlink_to(place)
    with closing(Server.open(place, SETTINGS)) as one, closing(Server.open(link, SETTINGS)) as other:
        asking, stopping = RunningQuestions(one), RunningQuestions(other)
        with asking.running("analyst", "key") as cancel:
            with pytest.raises(NotFound):
                stopping.stop("curator", "key")  # somebody else's question
            stopping.stop("analyst", "key")
            patience = time.monotonic() + 30
            while not cancel.requested and time.monotonic() < patience:
                time.sleep(0.05)
            assert cancel.requested
        with pytest.raises(NotFound):
            stopping.stop("analyst", "key")  # it is over
        with asking.running("analyst", "key") as fresh:
            assert not fresh.requested


def test_cancelling_over_http_ends_the_question(here: Running) -> None:
    """The database counts for minutes; whoever waits is told that it was cancelled and charged."""
    file = here.folder / "slow.duckdb"
    with duckdb.connect(str(file)) as made:
        made.execute("""CREATE VIEW slow AS SELECT 1 AS salary, 1 AS age, 'north' AS region
            FROM range(4000), range(400000) AS many(i) WHERE sqrt(i) >= 0""")
    domain = bf.Domain(  # that says what a missing value counts as, so that nobody has to look for one
        salary=bf.Integer(0, 9, missing="clamp"),
        age=bf.Integer(0, 9, missing="clamp"),
        region=bf.Category(("north", "south"), missing="clamp"),
    )
    here.workspace.add_dataset("slow", file, domain=domain, table="slow", rows_vary=False)
    here.workspace["slow"].budget.set("5")
    headers = {"Idempotency-Key": "long"}
    found: list[Any] = []

    def ask() -> None:
        body = {"question": "histogram(region)", "error": 50}
        found.append(here.analyst.post("/api/v1/datasets/slow/answers", json=body, headers=headers))

    thread = threading.Thread(target=ask)
    thread.start()
    patience = time.monotonic() + 30
    while not here.workspace.budget("slow").held and time.monotonic() < patience:
        time.sleep(0.05)
    assert here.curator.delete("/api/v1/answers/running/long").status_code == 404  # not theirs
    assert here.analyst.delete("/api/v1/answers/running/long").status_code == 202
    thread.join(60)
    assert found and found[0].status_code == 502 and found[0].json()["charged"] is True
    again = here.analyst.post(
        "/api/v1/datasets/slow/answers", json={"question": "histogram(region)", "error": 50}, headers=headers
    )
    assert again.content == found[0].content  # the outcome of that key, without asking anew
    assert here.analyst.delete("/api/v1/answers/running/long").status_code == 404


def test_a_question_is_tried_on_made_up_rows(shared: Running) -> None:
    asked = {**QUESTION, "rows": 200, "seed": 3}
    before = len(shared.workspace.events("salaries"))
    first, second = (shared.analyst.post("/api/v1/datasets/salaries/made-up", json=asked) for _ in range(2))
    assert first.status_code == 200 and first.json()["receipt"]["question"].startswith("made-up rows: ")
    assert first.json()["labels"] == second.json()["labels"] and first.json()["raw"] != second.json()["raw"]
    assert first.json()["receipt"]["epsilon"] == shared.analyst.post(QUOTES, json=QUESTION).json()["epsilon"]
    assert (
        shared.analyst.post("/api/v1/datasets/salaries/made-up", json={**asked, "rows": 0}).status_code == 422
    )
    assert len(shared.workspace.events("salaries")) == before and not spent(shared)


def test_what_several_questions_cost_as_one(shared: Running) -> None:
    one, other = ({"dataset": "salaries", "question": q, "error": 50} for q in PLANNED)
    plan = shared.analyst.post("/api/v1/plans", json={"questions": [one, other]}).json()
    prices = [
        shared.analyst.post(QUOTES, json={k: v for k, v in each.items() if k != "dataset"}).json()
        for each in (one, other)
    ]
    assert bf.Epsilon(plan["alone"]) == sum((bf.Epsilon(price["epsilon"]) for price in prices), bf.Epsilon(0))
    assert bf.Epsilon(plan["epsilon"]) < bf.Epsilon(plan["alone"]) and not spent(shared)


PLANNED = ("histogram(salary, bins=10)", "cumulative(salary, bins=10)")
