"""Synthetic tables over HTTP, by the client, and on the command line."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import blowfishdb as bf
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.entrypoints.demo import serving
from tests.entrypoints.commands import ROWS as PEOPLE
from tests.entrypoints.commands import Shell, people
from tests.entrypoints.server import ROWS, Running, ok, running

API = "/api/v1/datasets/salaries"
ASKED = {"columns": ["age", {"name": "salary", "bins": 10}, "region"], "epsilon": "2"}
QUESTION = {"kind": "synthetic", "columns": ASKED["columns"]}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("synthesis"), budget="100") as found:
        yield found


@pytest.fixture(scope="module")
def number(here: Running) -> int:
    priced = here.analyst.post(f"{API}/synthetic/quotes", json={"question": QUESTION, "epsilon": "2"})
    assert priced.status_code == 422 and "count()" in priced.json()["fixes"][0]
    made = ok(here.analyst.post(f"{API}/synthetic", json=ASKED, headers={"Idempotency-Key": "one"}))
    again = ok(here.analyst.post(f"{API}/synthetic", json=ASKED, headers={"Idempotency-Key": "one"}))
    assert again == made and made["receipt"]["epsilon"] == "2" and made["receipt"]["sql"] == ""
    assert made["columns"] == ["salary", "age", "region"] and made["total"] == ROWS
    return int(made["id"])


def test_a_quote_is_free_and_says_what_is_measured(here: Running, number: int) -> None:
    body = {"question": {**QUESTION, "target": "salary"}, "epsilon": "3"}
    quote = ok(here.analyst.post(f"{API}/synthetic/quotes", json=body))
    assert quote["epsilon"] == "3" and quote["rows"] == ROWS and quote["way"] == "in rounds"
    assert [table["column"] for table in quote["tables"]] == ["salary", "age", "region"]
    other = here.analyst.post(f"{API}/synthetic/quotes", json={"question": "count()", "epsilon": "1"})
    assert other.status_code == 422


def test_rows_come_as_marked_files(here: Running, number: int) -> None:
    there = f"/api/v1/synthetic/{number}"
    got = here.auditor.get(f"{there}/rows.csv?rows=500")
    frame = pd.read_csv(io.StringIO(got.text))
    assert len(frame) == 500 and list(frame.columns) == ["salary", "age", "region"]
    assert "salaries-synthetic-" in got.headers["Content-Disposition"]
    assert "marks" in got.headers["Link"]
    parquet = pq.read_table(io.BytesIO(here.analyst.get(f"{there}/rows.parquet").content))
    assert parquet.num_rows == ROWS and parquet.schema.metadata[b"blowfishdb.synthetic"] == b"true"
    marks = ok(here.analyst.get(f"{there}/marks?rows=10"))
    assert marks["rows"] == "10" and marks["epsilon"] == "2"
    twice = [here.analyst.get(f"{there}/rows.csv?rows=100&seed=5").text for _ in range(2)]
    assert twice[0] == twice[1] != here.analyst.get(f"{there}/rows.csv?rows=100&seed=6").text
    assert here.analyst.get(f"{there}/rows.csv?rows=100000000").status_code == 422
    assert here.nobody.get(f"{there}/rows.csv").status_code == 401
    assert here.analyst.get("/api/v1/synthetic/999999/report").status_code == 404


def test_the_report_and_the_model_are_public_to_who_may_ask(here: Running, number: int) -> None:
    report = ok(here.analyst.get(f"/api/v1/synthetic/{number}/report"))
    assert len(report["pairs"]) == 3 and all(table["margin"] > 0 for table in report["tables"])
    table = ok(here.analyst.get(f"/api/v1/synthetic/{number}"))
    assert table["receipt"]["sql"] == "" and table["total"] == ROWS
    listed = ok(here.analyst.get("/api/v1/answers"))["answers"]
    assert [one["kind"] for one in listed if one["id"] == number] == ["synthetic"]
    assert here.analyst.get(f"/api/v1/answers/{number}.csv").status_code == 200
    assert here.analyst.get(f"/api/v1/answers/{number}.svg").status_code == 200


def test_a_job_tells_how_far_it_is(here: Running, number: int) -> None:
    body = {"columns": ["age", "region"], "epsilon": "2"}
    begun = here.analyst.post(f"{API}/synthetic", json=body, headers={"Prefer": "respond-async"})
    assert begun.status_code == 202
    job = ok(here.analyst.get(begun.headers["Location"]))
    assert job["state"] == "done" and job["result"]["columns"] == ["age", "region"]
    assert here.auditor.get(begun.headers["Location"]).status_code in (403, 404)


def test_from_answers_is_free(here: Running, number: int) -> None:
    for text in ("histogram(age, width=10)", "histogram(age(width=20), region)"):
        ok(here.analyst.post(f"{API}/answers", json={"question": text, "epsilon": "0.5"}))
    before = ok(here.analyst.get(f"{API}/budget"))["spent"]
    made = ok(here.analyst.post(f"{API}/synthetic", json={"from_answers": True}))
    assert made["receipt"]["epsilon"] == "0" and made["columns"] == ["age", "region"]
    assert ok(here.analyst.get(f"{API}/budget"))["spent"] == before
    assert here.analyst.post(f"{API}/synthetic", json={"from_answers": True, "epsilon": 1}).status_code == 422


def test_an_auditor_sees_one_charge(here: Running, number: int) -> None:
    events = ok(here.auditor.get("/api/v1/events?limit=1000"))["events"]
    of_it = [one for one in events if one["charge"] == number]
    assert [one["kind"] for one in of_it] == ["reserved", "reading", "settled"]
    assert of_it[0]["amount"] == "2"
    assert here.workspace.verify() == []


def test_the_client_draws_rows_where_it_is(here: Running, number: int) -> None:
    token, _ = Tokens(here.workspace.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))
    columns: list[Any] = ["age", ("salary", {"bins": 10}), "region"]
    with serving(here.app) as address, bf.connect(address, token=token) as remote:
        wanted = remote["salaries"].synthesize(epsilon="2", columns=columns)
        assert wanted.quote().quote.owned
        table = wanted.ask()
        assert table.number == number and len(table.sample(10_000).to_pandas()) == 10_000
        local = here.workspace.synthetic(number)
        pd.testing.assert_frame_equal(table.to_pandas(), local.to_pandas())


# --- pages ------------------------------------------------------------------------------------------------


def fields(page: str, marked: str) -> dict[str, Any]:
    """What the form of a page that has a certain mark would send."""
    form = next(part for part in re.findall(r"<form.*?</form>", page, re.S) if marked in part)
    sent: dict[str, Any] = {}
    for name, value in re.findall(r'name="([^"]+)" value="([^"]*)"', form):
        sent.setdefault(name, []).append(value)
    return sent


def is_whole(page: str) -> bool:
    """Whether nothing went wrong on the way: pages are sent piece by piece."""
    return page.rstrip().endswith("</html>")


def test_pages_count_quote_make_and_show(tmp_path: Path) -> None:
    page = "/datasets/salaries/synthetic"
    with running(tmp_path, budget="3") as found:
        analyst = found.browser("analyst")
        first = analyst.get(f"{page}?column=age&column=region&epsilon=2").text
        assert is_whole(first)
        assert "Count the rows" in first and "Spend 2" not in first
        counted = analyst.post(f"{page}/count", data=fields(first, "Count the rows"))
        assert counted.status_code == 200 and "Spend 2 and make it" in counted.text
        assert "No answer is out yet" in counted.text
        begun = analyst.post(f"{page}/job", data=fields(counted.text, "Spend 2"))
        job = ok(analyst.get(begun.headers["Location"]))
        assert job["state"] == "done"
        made = analyst.post(page, data=fields(counted.text, "Spend 2"))  # the same form again: the same table
        assert made.url.path.endswith(f"/synthetic/{job['result']['id']}")
        for words in ("none is a person", "What it is worth", "rows.parquet", "Other rows, for nothing"):
            assert words in made.text, words
        assert is_whole(made.text) and "Compare with the true rows" not in made.text
        theirs = found.browser("curator").get(made.url.path).text
        assert is_whole(theirs) and "Compare with the true rows" in theirs
        assert str(found.workspace.budget("salaries").spent) == "2"
        log = analyst.get(f"/answers/{job['result']['id']}")
        assert log.url.path == made.url.path
        short = analyst.get(f"{page}?column=age&epsilon=20").text
        assert "The budget does not reach" in short
        wrong = analyst.get(f"{page}?column=nothing&epsilon=1").text
        assert "There is no column" in wrong
        ok(found.analyst.post(f"{API}/answers", json={"question": "histogram(age)", "epsilon": "0.5"}))
        free = analyst.get(page).text
        assert "Make it for nothing" in free
        got = analyst.post(page, data=fields(free, "Make it for nothing"))
        assert "at no cost" in got.text


# --- the command line ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return people(tmp_path_factory.mktemp("shell"))


def test_quote_pay_write_report_and_draw_again(shell: Shell, tmp_path: Path) -> None:
    asked = ("synthesize", "people", "--epsilon", "2", "--columns", "age,region")
    quote = shell.must(*asked, "--quote", "--json").json
    assert quote["epsilon"] == "2" and quote["rows"] == PEOPLE
    out = tmp_path / "rows.csv"
    refused = shell(*asked, "--out", str(out), "--yes")
    assert refused.code != 0 and not out.exists() and "--max-cost 2\n" in refused.err
    assert shell(*asked, "--yes", "--max-cost", "1").code != 0
    paid = (*asked, "--out", str(out), "--yes", "--max-cost", "2")
    done = shell.must(*paid, "--report", "--json").json
    assert done["rows"] == PEOPLE and len(done["written"]) == 2 and done["report"]["pairs"]
    assert len(pd.read_csv(out)) == PEOPLE
    assert json.loads((tmp_path / "rows.csv.synthetic.json").read_text())["synthetic"] == "true"
    more, number = tmp_path / "more.parquet", str(done["id"])
    again = shell.must("synthesize", "people", "--again", number, "--rows", "500", "--out", str(more))
    assert "none is a person's" in again.out and pq.read_table(more).num_rows == 500
    assert "Other rows for nothing" not in again.out
    for seed, same in (("1", True), ("2", False)):
        other = tmp_path / f"{seed}.parquet"
        shell.must(
            "synthesize", "people", "--again", number, "--rows", "500", "--seed", seed, "--out", str(other)
        )
        assert pq.read_table(other).equals(pq.read_table(more)) is same
    assert "--again ID" in shell("synthesize", "people", "--epsilon", "1", "--seed", "2").err
    assert shell("synthesize", "people", "--epsilon", "1", "--out", str(tmp_path / "x.txt")).code != 0


def test_for_nothing_from_answers(shell: Shell) -> None:
    shell.must("ask", "people", "histogram(age, width=10)", "--epsilon", "0.5", "--yes", "--max-cost", "1")
    done = shell.must("synthesize", "people", "--from-answers")
    assert "at no cost" in done.out
