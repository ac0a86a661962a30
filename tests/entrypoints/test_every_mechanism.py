"""Every mechanism by its name through the server: a question and a policy for which it is proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import blowfishdb as bf
from blowfishdb.mechanisms import DATA_DEPENDENT, NAMED
from tests.entrypoints.server import DOMAIN, ROWS, Running, running

API = "/api/v1/datasets/salaries"


@dataclass(frozen=True)
class Case:
    """What to ask, how far salaries are hidden, and how the mechanism calls itself in the receipt."""

    question: str
    says: str
    within: int = 1_000


CASES = {
    "laplace": Case("histogram(salary, bins=20)", "Laplace on the questions"),
    "laplace-cells": Case("cumulative(salary, bins=20)", "Laplace on the cells"),
    "transformed": Case("cumulative(salary, bins=20)", "Transformed"),
    "ordered": Case("cumulative(salary, bins=20)", "Ordered"),
    "ordered-hierarchical": Case("cumulative(salary, bins=100)", "Ordered hierarchical", within=9_000),
    "hierarchical": Case("cumulative(salary, bins=20)", "Hierarchical"),
    "privelet": Case("cumulative(salary, bins=16)", "Privelet"),
    "edge-noise": Case("histogram(salary, bins=20)", "Edge noise"),
    "optimized": Case("cumulative(salary, bins=20)", "Optimized"),
    "best": Case("cumulative(salary, bins=20)", ""),
}
BY_EPSILON = {
    "adaptive": Case("cumulative(salary, bins=100)", "Policy tree", within=9_000),
    "adaptive-tree": Case("cumulative(salary, bins=100)", "Adaptive tree"),
    "policy-tree": Case("histogram(salary, bins=20)", "Policy tree", within=9_000),
    "ordered-denoised": Case("cumulative(salary, bins=20)", "Ordered, denoised"),
    "dawa": Case("histogram(salary, bins=20)", "DAWA"),
    "dawa-transformed": Case("cumulative(salary, bins=20)", "DAWA, transformed"),
    "matching-transformed": Case("histogram(salary, bins=20)", "Matching, transformed"),
}
"""Those whose error depends on the data, for questions that state an ε."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(tmp_path_factory.mktemp("mechanisms"), budget="1000") as found:
        yield found


def test_every_mechanism_has_a_case() -> None:
    assert set(CASES) == set(NAMED) and set(BY_EPSILON) == set(DATA_DEPENDENT)


@pytest.mark.parametrize("name", NAMED)
def test_every_mechanism_answers_through_the_server(here: Running, name: str) -> None:
    case = CASES[name]
    _hide_within(here, case.within)
    body = {"question": case.question, "error": 60, "confidence": 0.99, "mechanism": name}
    quote = here.analyst.post(f"{API}/quotes", json=body).json()
    done = here.analyst.post(f"{API}/answers", json={"quote_id": quote["quote_id"]})
    assert done.status_code == 200, done.text
    answer = done.json()
    said = answer["receipt"]["mechanism"]
    assert case.says.casefold() in said.casefold() and said == quote["mechanism"]
    assert answer["receipt"]["epsilon"] == quote["epsilon"] and quote["nano_epsilon"] > 0
    assert answer["alpha"] == 60 and answer["beta"] == pytest.approx(0.01)
    _check_intervals(answer, case)


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_every_data_dependent_mechanism_answers_through_the_server(here: Running, name: str) -> None:
    case = BY_EPSILON[name]
    _hide_within(here, case.within)
    body = {"question": case.question, "epsilon": "2", "mechanism": name}
    quote = here.analyst.post(f"{API}/quotes", json=body).json()
    assert quote["alpha"] is None and quote["beta"] is None and quote["epsilon"] == "2"
    done = here.analyst.post(f"{API}/answers", json={"quote_id": quote["quote_id"]})
    assert done.status_code == 200, done.text
    answer = done.json()
    assert answer["receipt"]["mechanism"] == quote["mechanism"] == case.says
    assert answer["receipt"]["epsilon"] == "2"
    assert [answer[name] for name in ("alpha", "beta", "low", "high")] == [None] * 4
    _check_values(answer, case)
    again = here.analyst.post(f"{API}/answers", json=body).json()
    assert again["values"] == answer["values"] and again["receipt"]["cost"] == "0"
    listed = here.analyst.get("/api/v1/answers").json()["answers"]
    assert [line["alpha"] for line in listed if line["id"] == answer["id"]] == [None]
    for form in ("csv", "parquet", "arrow", "svg", "html"):
        assert here.analyst.get(f"/api/v1/answers/{answer['id']}.{form}").status_code == 200


@pytest.mark.parametrize("name", DATA_DEPENDENT)
def test_an_accuracy_is_refused_and_nothing_is_charged(here: Running, name: str) -> None:
    body = {"question": "histogram(salary, bins=20)", "error": 60, "mechanism": name}
    for route in ("quotes", "answers"):
        refused = here.analyst.post(f"{API}/{route}", json=body)
        assert refused.status_code == 422 and refused.json()["type"].endswith(":no-guarantee")
        assert not refused.json()["charged"] and "ε" in refused.json()["fixes"][0]


def test_two_answers_without_a_promise_are_compared(here: Running) -> None:
    asked = ({"epsilon": "1", "mechanism": "adaptive"}, {"error": 90})
    a, b = (
        here.analyst.post(f"{API}/answers", json={"question": "histogram(age, bins=5)", **terms}).json()["id"]
        for terms in asked
    )
    found = here.analyst.post("/api/v1/compare", json={"a": a, "b": b}).json()
    assert found["low"] is found["high"] is found["alpha"] is found["beta"] is None
    assert not any(found["differs"]) and len(found["difference"]) == 5


def _check_intervals(answer: dict[str, Any], case: Case) -> None:
    """The rows are spread evenly, so the truth is known; a run in a hundred may miss it by more than ±60."""
    for value, low, high in zip(answer["values"], answer["low"], answer["high"], strict=True):
        assert low <= value <= high and high - low <= 120 + 1e-9
    _check_values(answer, case)


def _check_values(answer: dict[str, Any], case: Case) -> None:
    bins = len(answer["values"])
    truth = [ROWS / bins * (i + 1 if "cumulative" in case.question else 1) for i in range(bins)]
    misses = [abs(v - t) for v, t in zip(answer["values"], truth, strict=True)]
    assert max(misses) < 240  # far beyond the promise: only a wrong mechanism gets here


def test_a_mechanism_that_is_not_proven_here_is_refused(here: Running) -> None:
    plane = {"kind": "histogram", "columns": ["region", {"name": "salary", "bins": 10}]}
    body = {"question": plane, "error": 60, "mechanism": "ordered"}
    refused = here.analyst.post(f"{API}/answers", json=body)
    assert refused.status_code == 422 and refused.json()["type"].endswith(":not-proven")


def _hide_within(here: Running, distance: int) -> None:
    salary = DOMAIN["salary"]
    graph = bf.graphs.Threshold(salary.size, salary.threshold(distance))
    here.workspace["salaries"].publish(bf.Policy.by_column(DOMAIN, {"salary": graph}), confirm=True)
