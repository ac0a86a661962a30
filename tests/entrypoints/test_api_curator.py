"""A curator's work over HTTP: import, schema, policy, budget, users, books; and who sees what of it."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pytest

from blowfishdb.core.policy import codec
from tests.entrypoints.server import DOMAIN, Running, client_of, make_data, ok, running

DATASETS = "/api/v1/datasets"
SALARIES = f"{DATASETS}/salaries"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as found:
        yield found


# --- datasets -------------------------------------------------------------------------------------


def test_from_a_file_to_the_first_answer(here: Running, tmp_path: Path) -> None:
    visits = tmp_path / "visits.csv"
    with duckdb.connect() as connection:
        connection.execute(
            f"COPY (SELECT i AS person_id, 20 + i % 50 AS age FROM range(500) t(i)) TO '{visits}' (HEADER)"
        )
    proposed = ok(here.curator.post(f"{DATASETS}/proposal", json={"source": str(visits)}))
    columns = {column["name"]: column for column in proposed["columns"]}
    assert columns["age"]["attribute"]["kind"] == "integer" and columns["person_id"]["looks_like_id"]
    declared = {"name": "visits", "source": str(visits), "domain": {"age": columns["age"]["attribute"]}}
    made = here.curator.post(DATASETS, json=declared)
    assert ok(made, 201)["policy"]["kind"] == "full" and made.headers["Location"] == f"{DATASETS}/visits"
    assert "Hide" in made.json()["policy_in_words"][0] and made.json()["columns_in_words"][0].startswith(
        "age: "
    )
    assert here.curator.post(DATASETS, json=declared).status_code == 409  # the name is taken
    answer = here.analyst.post(f"{DATASETS}/visits/answers", json={"question": "count()", "epsilon": "0.1"})
    assert ok(answer)["values"] == [500.0]


def test_everyone_sees_the_datasets_and_nobody_but_curators_where_they_are(here: Running) -> None:
    for client in (here.analyst, here.auditor, here.curator):
        listed = client.get(DATASETS)
        (only,) = ok(listed)["datasets"]
        assert only == {
            "name": "salaries",
            "columns": ["salary", "age", "region"],
            "policy_version": 2,
            "snapshot": 1,
            "budget": "5",
            "left": "5",
            "title": "salaries",
            "standing": "open",
        }
        shown = client.get(SALARIES)
        assert codec.domain(ok(shown)["domain"]) == DOMAIN
        assert str(here.folder) not in listed.text + shown.text


def test_a_lost_source_is_explained_to_curators_and_hidden_from_analysts(
    here: Running, tmp_path: Path
) -> None:
    folder = tmp_path / "other"
    folder.mkdir()
    data = make_data(folder, rows=10)
    plain = codec.plain(DOMAIN)
    ok(here.curator.post(DATASETS, json={"name": "gone", "source": str(data), "domain": plain}), 201)
    ok(here.curator.post(f"{DATASETS}/gone/refresh"))
    data.unlink()
    asked = {"question": "histogram(age, bins=4)", "epsilon": "0.1"}
    seen = here.analyst.post(f"{DATASETS}/gone/answers", json=asked)
    assert seen.status_code in (502, 503) and str(folder) not in seen.text
    assert "reference" in seen.json()
    told = here.curator.post(f"{DATASETS}/gone/answers", json=asked)
    assert told.status_code in (502, 503) and str(data) in told.text


def test_the_schema_can_change_until_something_was_asked(here: Running) -> None:
    narrower = {"columns": {"age": {"kind": "integer", "lo": 20, "hi": 60, "step": 5}}}
    changed = ok(here.curator.patch(f"{SALARIES}/schema", json=narrower))
    assert changed["domain"]["age"]["step"] == 5 and list(changed["domain"]) == ["salary", "age", "region"]
    assert ok(here.analyst.get(f"{SALARIES}/schema")) == changed
    assert ok(here.analyst.get(SALARIES))["policy_in_words"] == ["Hide everything in a person's record."]
    unknown = here.curator.patch(f"{SALARIES}/schema", json={"columns": {"height": {"kind": "boolean"}}})
    assert 400 <= unknown.status_code < 504 and unknown.status_code != 500
    for wrong in (
        {"kind": "integer"},
        {"kind": "integer", "lo": 0, "hi": 9, "x": 1},
        {"kind": "real", "lo": []},
    ):
        refused = here.curator.patch(f"{SALARIES}/schema", json={"columns": {"age": wrong}})
        assert refused.status_code == 422 and refused.json()["fixes"]
    ok(here.analyst.post(f"{SALARIES}/answers", json={"question": "histogram(region)", "epsilon": "0.1"}))
    late = here.curator.patch(f"{SALARIES}/schema", json=narrower)
    assert late.status_code == 409 and late.json()["type"].endswith("policy-conflict")


def test_a_refresh_starts_a_snapshot_and_gives_nothing_back(here: Running) -> None:
    asked = {"question": "histogram(region)", "epsilon": "0.5"}
    ok(here.analyst.post(f"{SALARIES}/answers", json=asked))
    assert ok(here.curator.post(f"{SALARIES}/refresh"))["snapshot"] == 2
    assert ok(here.analyst.get(f"{SALARIES}/budget"))["spent"] == "0.5"
    ok(here.analyst.post(f"{SALARIES}/answers", json=asked))
    assert ok(here.analyst.get(f"{SALARIES}/budget"))["spent"] == "1"


# --- policies -------------------------------------------------------------------------------------


def test_a_draft_is_kept_explained_and_published(here: Running) -> None:
    before = ok(here.curator.get(f"{SALARIES}/policy"))
    assert before["version"] == 2 and before["draft"] is None and "within 1,000" in before["sentences"][0]
    wider = {"columns": {"salary": {"hide_within": 10_000}}}
    change = ok(here.curator.put(f"{SALARIES}/policy", json=wider))
    assert change["tightens"] is True and change["loosens"] is False and change["same"] is False
    assert ok(here.curator.get(f"{SALARIES}/policy/diff")) == change
    shown = ok(here.curator.get(f"{SALARIES}/policy"))
    assert shown["version"] == 2 and "within 10,000" in shown["draft"]["sentences"][0]
    assert ok(here.analyst.get(f"{SALARIES}/policy"))["draft"] is None  # what is not published is not shown
    published = ok(here.curator.post(f"{SALARIES}/policy/publish", json={}))
    assert published["version"] == 3 and published["draft"] is None
    assert ok(here.analyst.get(f"{SALARIES}/policy"))["graph"] == shown["draft"]["graph"]


def test_all_forms_of_a_policy_say_the_same(here: Running) -> None:
    published = ok(here.curator.get(f"{SALARIES}/policy"))
    for form in (
        {"graph": published["graph"]},
        {"yaml": published["yaml"]},
        {"columns": {"salary": {"hide_within": "1000"}}},
    ):
        assert ok(here.curator.put(f"{SALARIES}/policy", json=form))["same"] is True
    one_by_one = {"columns": {"salary": {"hide_within": 1000}}, "joint": False, "hide_presence": True}
    ok(here.curator.put(f"{SALARIES}/policy", json=one_by_one))
    said = " ".join(ok(here.curator.get(f"{SALARIES}/policy"))["draft"]["sentences"])
    assert "one by one" in said and "whether someone is in the data" in said


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"yaml": "columns: ["},
        {"yaml": "dataset: other\n"},
        {"graph": {"kind": "threshold", "size": 3, "theta": 1}},
        {"graph": {"kind": "threshold"}},
        {"graph": {"kind": "no-such"}},
        {"graph": {"kind": "full", "size": "many"}},
        {"graph": {"kind": "explicit", "size": 4, "edges": "x"}},
        {"columns": {"height": {"everything": True}}},
        {"columns": {"salary": {}}},
        {"columns": {"salary": {"hide_within": -5}}},
        {"columns": {"salary": {"hide_within": 5, "nothing": True}}},
        {"columns": {"region": {"hide_within": 5}}},
        {"columns": {"region": {"groups": [["north", "nowhere"]]}}},
        {"columns": {}, "yaml": ""},
    ],
    ids=str,
)
def test_what_is_no_policy_is_refused_and_not_kept(here: Running, body: dict[str, Any]) -> None:
    refused = here.curator.put(f"{SALARIES}/policy", json=body)
    assert refused.status_code == 422, refused.text
    assert ok(here.curator.get(f"{SALARIES}/policy"))["draft"] is None


def test_after_answers_publishing_needs_a_confirmation_and_is_on_record(here: Running) -> None:
    ok(here.analyst.post(f"{SALARIES}/answers", json={"question": "histogram(region)", "epsilon": "0.1"}))
    ok(here.curator.put(f"{SALARIES}/policy", json={"columns": {"salary": {"hide_within": 500}}}))
    refused = here.curator.post(f"{SALARIES}/policy/publish", json={"confirm": False})
    assert refused.status_code == 409 and refused.json()["charged"] is False
    assert ok(here.curator.post(f"{SALARIES}/policy/publish", json={"confirm": True}))["version"] == 3
    events = ok(here.auditor.get("/api/v1/audit?dataset=salaries"))["events"]
    assert events[-1]["kind"] == "policy" and events[-1]["facts"]["confirmed"] is True
    assert events[-1]["analyst"] == "curator"


def test_the_guarantee_is_public_and_protection_fades_with_distance(here: Running) -> None:
    promised = ok(here.nobody.get(f"{SALARIES}/guarantee"))
    assert promised["budget"] == "5" and promised["rows_per_person"] == 1
    assert promised == ok(here.curator.get(f"{SALARIES}/guarantee"))
    ok(here.curator.put(f"{SALARIES}/budget", json={"total": "1"}))
    near = ok(here.analyst.get(f"{SALARIES}/protection?column=salary&u=40000&v=41000"))
    far = ok(here.analyst.get(f"{SALARIES}/protection?column=salary&u=40000&v=45000"))
    assert near["probe"]["certainty"] == pytest.approx(0.731, abs=1e-3) and near["probe"]["distance"] == 1
    assert far["probe"]["certainty"] == pytest.approx(0.9933, abs=1e-4)
    steps = [step["certainty"] for step in near["curve"]]
    assert steps == sorted(steps) and ok(here.analyst.get(f"{SALARIES}/protection"))["probe"] is None
    for wrong in ("column=height", "column=salary&u=1", "column=salary&u=abc&v=2", "column=salary&u=-1&v=2"):
        assert here.analyst.get(f"{SALARIES}/protection?{wrong}").status_code == 422


# --- budgets --------------------------------------------------------------------------------------


def test_budgets_and_grants_are_exact(here: Running) -> None:
    shown = ok(here.curator.put(f"{SALARIES}/budget", json={"total": "0.3"}))
    assert (shown["total"], shown["nano_total"], shown["left"]) == ("0.3", 300_000_000, "0.3")
    given = ok(here.curator.put(f"{SALARIES}/grants/analyst", json={"epsilon": "0.2"}))
    assert given["grants"] == [
        {
            "user": "analyst",
            "granted": "0.2",
            "nano_granted": 200_000_000,
            "spent": "0",
            "nano_spent": 0,
            "held": "0",
            "nano_held": 0,
        }
    ]
    assert ok(here.analyst.get(f"{SALARIES}/budget"))["left"] == "0.2"
    assert ok(here.curator.get(DATASETS))["datasets"][0]["left"] == "0"  # there are grants, and none for them
    too_much = here.curator.put(f"{SALARIES}/grants/curator", json={"epsilon": "0.2"})
    assert too_much.status_code == 402 and too_much.json()["left"] == "0.1"
    assert here.curator.put(f"{SALARIES}/grants/stranger", json={"epsilon": "0.1"}).status_code == 404
    less = here.curator.put(f"{SALARIES}/budget", json={"total": "0.1"})
    assert less.status_code == 422 and "0.2" in less.json()["fixes"][0]
    for wrong in ("-1", "many", "NaN", "1e999", "1e-400000", ""):
        assert here.curator.put(f"{SALARIES}/budget", json={"total": wrong}).status_code == 422
    assert here.curator.put(f"{DATASETS}/none/budget", json={"total": "1"}).status_code == 404
    assert ok(here.auditor.get(f"{SALARIES}/grants")) == ok(here.curator.get(f"{SALARIES}/grants"))


# --- users and books ------------------------------------------------------------------------------


def test_users_are_let_in_changed_and_let_go(here: Running) -> None:
    new = {"user": "newcomer", "role": "analyst", "password": "a long enough password"}
    made = here.curator.post("/api/v1/users", json=new)
    assert ok(made, 201)["active"] is True and "password" not in made.text
    assert here.curator.post("/api/v1/users", json=new).status_code == 422
    client = client_of(here.app)
    ok(client.post("/api/v1/session", json={"user": "newcomer", "password": new["password"]}))
    ok(here.curator.patch("/api/v1/users/newcomer", json={"password": "another long password"}))
    assert client.get("/api/v1/me").status_code == 401  # signed out
    assert here.curator.patch("/api/v1/users/newcomer", json={"password": "short"}).status_code == 422
    assert here.curator.patch("/api/v1/users/newcomer", json={}).status_code == 422
    assert here.curator.patch("/api/v1/users/stranger", json={"role": "analyst"}).status_code == 404
    assert here.curator.delete("/api/v1/users/newcomer").status_code == 204
    listed = {user["user"]: user for user in ok(here.curator.get("/api/v1/users"))["users"]}
    assert listed["newcomer"]["active"] is False and listed["analyst"]["active"] is True


def test_curators_cannot_lock_themselves_out(here: Running) -> None:
    assert here.curator.delete("/api/v1/users/curator").status_code == 403
    assert here.curator.patch("/api/v1/users/curator", json={"role": "analyst"}).status_code == 403
    assert ok(here.curator.get("/api/v1/me"))["role"] == "curator"


def test_the_books_are_shown_in_order_and_verified(here: Running) -> None:
    ok(here.analyst.post(f"{SALARIES}/answers", json={"question": "histogram(region)", "epsilon": "0.25"}))
    books = ok(here.auditor.get("/api/v1/audit"))
    assert books["verified"] is True and books["problems"] == []
    numbers = [event["seq"] for event in books["events"]]
    assert numbers == list(range(1, len(numbers) + 1))
    settled = [event for event in books["events"] if event["kind"] == "settled"]
    assert settled[0]["analyst"] == "analyst" and settled[0]["nano_amount"] == 250_000_000
    tail = ok(here.auditor.get(f"/api/v1/audit?after={numbers[1]}&limit=1"))["events"]
    assert [event["seq"] for event in tail] == [numbers[2]]
    assert here.auditor.get("/api/v1/audit?dataset=none").status_code == 404


def test_every_route_is_documented_on_a_page_that_needs_nothing_from_outside(here: Running) -> None:
    described = ok(here.nobody.get("/api/openapi.json"))
    page = here.nobody.get("/api/docs").text

    class Reader(HTMLParser):
        headings = 0

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            named = dict(attrs)
            self.headings += tag == "h1"
            assert (
                tag != "script" and "style" not in named and not any(name.startswith("on") for name in named)
            )
            if tag in ("link", "img"):
                assert (named.get("href") or named.get("src") or "").startswith(("/api/", "data:,"))

    reader = Reader()
    reader.feed(page)
    assert reader.headings == 1
    for path, methods in described["paths"].items():
        assert path in page
        for operation in methods.values():
            assert operation["summary"] and operation["description"] and operation["tags"]
            assert operation["responses"]["422"]["content"].keys() == {"application/problem+json"}
    names = [
        operation["operationId"] for methods in described["paths"].values() for operation in methods.values()
    ]
    assert len(names) == len(set(names))
    css = here.nobody.get("/api/docs.css")
    assert css.headers["Content-Type"].startswith("text/css") and "prefers-color-scheme: dark" in css.text
    assert "url(" not in css.text
