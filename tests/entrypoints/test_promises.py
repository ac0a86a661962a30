"""A policy that is loosened after answers were given: over HTTP and in a shell."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.entrypoints.commands import people
from tests.entrypoints.server import Running, ok, running

SALARIES = "/api/v1/datasets/salaries"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as found:
        yield found


def loosened(distance: int) -> dict[str, Any]:
    return {"columns": {"salary": {"hide_within": distance}}}


def test_over_http(here: Running) -> None:
    version = ok(here.curator.get(f"{SALARIES}/policy"))["version"]
    ok(
        here.analyst.post(
            f"{SALARIES}/answers", json={"question": "histogram(salary, bins=10)", "epsilon": "0.1"}
        )
    )
    past = ok(here.curator.post(f"{SALARIES}/policy/past", json={"columns": {}}))
    assert past["epsilon"] is not None and "Counting all answers so far" in past["sentence"]
    assert here.analyst.post(f"{SALARIES}/policy/past", json={"columns": {}}).status_code == 403
    ok(here.curator.put(f"{SALARIES}/policy", json=loosened(1)))
    ok(here.curator.post(f"{SALARIES}/policy/publish", json={"confirm": True}))
    (kept,) = ok(here.analyst.get(f"{SALARIES}/policy/promises"))["promises"]
    assert kept["version"] == version and kept["total"] == "5" and kept["sentences"]
    asked = here.analyst.post(
        f"{SALARIES}/answers", json={"question": "cumulative(salary, width=100)", "epsilon": "4.95"}
    )
    assert asked.status_code == 402 and not asked.json()["charged"]
    priced = ok(
        here.analyst.post(
            f"{SALARIES}/quotes", json={"question": "cumulative(salary, width=100)", "epsilon": "4.95"}
        )
    )
    assert priced["affordable"] == 0 and priced["binding"]["version"] == version
    assert f"version {version}" in asked.json()["detail"].lower()
    assert here.analyst.post(f"{SALARIES}/policy/withdraw", json={"version": version}).status_code == 403
    assert here.curator.post(f"{SALARIES}/policy/withdraw", json={"version": 77}).status_code == 422
    assert ok(here.curator.post(f"{SALARIES}/policy/withdraw", json={"version": version}))["promises"] == []
    ok(
        here.analyst.post(
            f"{SALARIES}/answers", json={"question": "cumulative(salary, width=100)", "epsilon": "1"}
        )
    )
    said = ok(here.auditor.get("/api/v1/audit", params={"dataset": "salaries"}))
    assert said["verified"]
    assert {"promise", "withdrawn"} <= {event["kind"] for event in said["events"]}


def test_the_guarantee_speaks_of_it(here: Running) -> None:
    ok(
        here.analyst.post(
            f"{SALARIES}/answers", json={"question": "histogram(salary, bins=10)", "epsilon": "0.1"}
        )
    )
    ok(here.curator.put(f"{SALARIES}/policy", json=loosened(1)))
    ok(here.curator.post(f"{SALARIES}/policy/publish", json={"confirm": True}))
    assert "stays promised" in " ".join(ok(here.analyst.get(f"{SALARIES}/guarantee"))["history"])
    told = " ".join(ok(here.analyst.get(f"{SALARIES}/guarantee"))["past"])
    assert "still promised" in told
    assert "Counting all answers so far" in told


def test_in_a_shell(tmp_path: Path) -> None:
    shell = people(tmp_path)
    asked = ("ask", "people", "histogram(salary, bins=10)", "--epsilon", "0.1", "--yes", "--max-cost", "0.2")
    shell.must(*asked)
    version = shell.must("policy", "show", "people", "--json").json["version"]
    shell.must("policy", "set", "people", "salary", "--hide-within", "1")
    done = shell.must("policy", "publish", "people", "--yes")
    assert "Counting all answers so far" in done.err
    (kept,) = shell.must("policy", "promises", "people", "--json").json["promises"]
    assert kept["version"] == version
    assert f"Version {version}" in shell.must("policy", "promises", "people").out
    assert shell("policy", "withdraw", "people", "99", "--yes").code == 2
    assert "withdrawn" in shell.must("policy", "withdraw", "people", str(version), "--yes").out
    assert "Only the policy of today" in shell.must("policy", "promises", "people").out
    shell.must("policy", "set", "people", "salary", "--hide-within", "90000")
    shell.must("policy", "publish", "people", "--yes")
    shell.must("policy", "set", "people", "salary", "--hide-within", "1")
    shell.must("policy", "publish", "people", "--withdraw", "--yes")
    assert shell.must("policy", "promises", "people", "--json").json["promises"] == []


def test_what_binds_and_what_withdrawing_does_over_http(here: Running) -> None:
    """The price that a quote says withdrawing would make is the one that it makes."""
    asked = {"question": "cumulative(salary, width=100)", "error": 200}
    ok(
        here.analyst.post(
            f"{SALARIES}/answers", json={"question": "histogram(salary, bins=10)", "epsilon": "0.1"}
        )
    )
    plain = ok(here.analyst.post(f"{SALARIES}/quotes", json=asked))
    ok(here.curator.put(f"{SALARIES}/policy", json=loosened(1)))
    change = ok(here.curator.get(f"{SALARIES}/policy/diff"))
    assert change["kept"].endswith("prices do not fall until then.")
    ok(here.curator.post(f"{SALARIES}/policy/publish", json={"confirm": True}))
    priced = ok(here.analyst.post(f"{SALARIES}/quotes", json=asked))
    binding = priced["binding"]
    assert priced["most"] == plain["epsilon"] == binding["epsilon"]  # loosened alone nothing is cheaper
    assert float(binding["withdrawn"]["epsilon"]) < float(priced["most"]) / 2
    answer = ok(here.analyst.post(f"{SALARIES}/answers", json={"quote_id": priced["quote_id"]}))
    (paid,) = answer["receipt"]["promised"]
    assert (paid["version"], paid["epsilon"]) == (binding["version"], binding["epsilon"])
    ok(here.curator.post(f"{SALARIES}/policy/withdraw", json={"version": binding["version"]}))
    after = ok(here.analyst.post(f"{SALARIES}/quotes", json={**asked, "error": 190}))
    assert after["binding"] is None and float(after["epsilon"]) < float(priced["most"])


def test_what_binds_in_a_shell(tmp_path: Path) -> None:
    shell = people(tmp_path)
    shell.must("ask", "people", "histogram(salary, bins=10)", "--epsilon", "5", "--yes", "--max-cost", "5")
    shell.must("policy", "set", "people", "salary", "--hide-within", "1")
    told = shell.must("policy", "publish", "people", "--yes").err
    assert "prices do not fall until then. To withdraw it at once: --withdraw." in told
    quoted = shell.must("quote", "people", "cumulative(salary, bins=25)", "--error", "50").out
    assert "still promised: under it this answer costs" in " ".join(quoted.split())
    assert "If it were withdrawn: ±50 for ε" in " ".join(quoted.split())
    tradeoff = shell.must(
        "tradeoff", "people", "salary", "--query", "cumulative", "--bins", "25", "--error", "50",
        "--thresholds", "1,1000",
    ).out  # fmt: skip
    assert "These prices are for each policy alone." in " ".join(tradeoff.split())
