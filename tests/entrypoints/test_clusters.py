"""Clusters over HTTP, by the client, and on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

import blowfishdb as bf
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.accuracy import NO_PROMISE
from blowfishdb.entrypoints.demo import serving
from blowfishdb.mechanisms import CLUSTERING
from tests.entrypoints.commands import ROWS as PEOPLE
from tests.entrypoints.commands import Shell, people
from tests.entrypoints.server import ROWS, Running, ok, running

API = "/api/v1/datasets/salaries"
ASKED = {"question": "clusters(salary, age, k=4)", "epsilon": "0.5"}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("clusters"), budget="100") as found:
        yield found


# --- over HTTP ------------------------------------------------------------------------------------


def test_a_text_and_an_object_are_the_same_question(here: Running) -> None:
    quote = ok(here.analyst.post(f"{API}/quotes", json=ASKED))
    assert quote["epsilon"] == "0.5" and quote["alpha"] is None and not quote["owned"]
    answer = ok(here.analyst.post(f"{API}/answers", json={"quote_id": quote["quote_id"]}))
    assert answer["kind"] == "clusters" and len(answer["values"]) == 4 and answer["low"] is None
    assert answer["form"] == {
        "kind": "clusters",
        "columns": [{"name": "salary"}, {"name": "age"}],
        "k": 4,
        "iterations": 5,
    }
    centroids, limits = answer["places"]["centroids"], answer["places"]["limits"]
    assert limits == [[0, 99_999], [18, 97]] and len(centroids) == 4
    assert all(low <= at <= high for row in centroids for at, (low, high) in zip(row, limits, strict=True))
    assert abs(sum(answer["values"]) - ROWS) < 500 and answer["receipt"]["sql"] == ""
    question = {"kind": "clusters", "columns": ["age", "salary"], "k": 4}
    again = ok(here.analyst.post(f"{API}/quotes", json={"question": question, "epsilon": "0.5"}))
    assert again["owned"] and again["epsilon"] == "0"
    assert ok(here.analyst.get("/api/v1/answers"))["answers"][-1]["kind"] == "clusters"
    exported = here.analyst.get(f"/api/v1/answers/{answer['id']}.csv").text
    assert exported.lstrip("\ufeff").startswith("cluster,salary,age,size,exact,note\r\ncluster 1,")


@pytest.mark.parametrize("name", CLUSTERING)
def test_every_way_can_be_asked_for(here: Running, name: str) -> None:
    body = {**ASKED, "question": "clusters(age, k=3) where region = 'north'", "mechanism": name}
    answer = ok(here.analyst.post(f"{API}/answers", json=body))
    assert len(answer["values"]) == 3 and answer["receipt"]["epsilon"] == "0.5"
    explained = ok(here.analyst.post(f"{API}/explain", json=body))
    assert explained["answers"] == 3 and explained["mechanism"] == answer["receipt"]["mechanism"]


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"question": "clusters(age, k=3)", "error": 50}, 422, "depends on the data"),
        ({"question": "clusters(age)", "epsilon": "1"}, 422, "k="),
        ({"question": "clusters(age, k=3, k=4)", "epsilon": "1"}, 422, "given twice"),
        ({"question": "clusters(age, k=3, width=4)", "epsilon": "1"}, 422, "no 'width='"),
        ({"question": "clusters(region, k=3)", "epsilon": "1"}, 422, "columns of numbers"),
        (
            {"question": {"kind": "clusters", "columns": ["age"], "k": "x"}, "epsilon": "1"},
            422,
            "whole number",
        ),
        ({**ASKED, "mechanism": "dawa"}, 422, "kmeans-rounds"),
        ({**ASKED, "epsilon": "1000"}, 402, "1000"),
    ],
)
def test_a_refusal_charges_nothing(here: Running, body: dict[str, Any], status: int, words: str) -> None:
    spent = ok(here.curator.get(f"{API}/budget"))["spent"]
    refused = here.analyst.post(f"{API}/answers", json=body)
    assert refused.status_code == status and words in refused.text, refused.text
    assert not refused.json()["charged"] and ok(here.curator.get(f"{API}/budget"))["spent"] == spent


def test_two_are_not_compared(here: Running) -> None:
    ids = [ok(here.analyst.post(f"{API}/answers", json={**ASKED, "epsilon": e}))["id"] for e in ("1", "2")]
    refused = here.analyst.post("/api/v1/compare", json={"a": ids[0], "b": ids[1]})
    assert refused.status_code == 422 and "cannot be compared" in refused.json()["detail"]


def test_the_client_speaks_like_the_workspace(here: Running) -> None:
    token = Tokens(here.workspace.store).issue("analyst", purpose="api", lifetime=timedelta(hours=1))[0]
    with serving(here.app) as address, bf.connect(address, token=token) as server:
        salaries = server["salaries"].where(bf.col("age") >= 30)
        question = salaries["salary", "age"].clusters(2, iterations=3).spend("0.25")
        told: list[tuple[int, int]] = []
        answer = question.ask(progress=lambda done, of: told.append((done, of)))
        assert told == [(1, 1)] and question.quote().owned
        stored = here.workspace.answer(answer.number)
        assert answer.places is not None and stored.places is not None
        assert (answer.places.centroids == stored.places.centroids).all()
        assert list(answer.columns()) == ["cluster", "salary", "age", "size", "exact"]


# --- in a shell -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    return people(tmp_path_factory.mktemp("clusters"))


def test_on_the_command_line(shell: Shell) -> None:
    question = ("people", "clusters(salary, age, k=3)", "--epsilon", "0.2")
    assert NO_PROMISE in " ".join(shell.must("quote", *question).out.split())
    shown = shell.must("ask", *question, "--yes", "--max-cost", "0.2")
    lines = [line.split() for line in shown.out.splitlines() if re.match(r"cluster \d", line)]
    assert [line[1] for line in lines] == ["1", "2", "3"] and all(
        18 <= float(line[2]) <= 89 for line in lines
    )
    plain = shell.must("ask", *question, "--yes", "--max-cost", "0", "--json").json
    assert abs(sum(plain["values"]) - PEOPLE) < 1_000 and plain["receipt"]["cost"] == "0"
    number = plain["receipt"]["charge"]
    assert "cluster 3" in shell.must("show", number).out and "3 clusters" in shell.must("log").out
    refused = shell("ask", *question[:2], "--error", "50", "--yes", "--max-cost", "1")
    assert refused.code == 4 and "depends on the data" in " ".join(refused.err.split())
