"""What everyone knows travels with a policy, whichever way it is sent, edited, checked and shown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import blowfishdb as bf
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.constraints import Constraints, Marginal
from blowfishdb.core.errors import NotAllowed
from blowfishdb.core.policy import codec
from blowfishdb.core.policy.policy import Policy
from blowfishdb.entrypoints.demo import serving
from blowfishdb.messages.policies import DatasetInfo
from blowfishdb.workspace.embedded import Workspace
from tests.entrypoints.commands import Shell
from tests.entrypoints.server import DOMAIN, Running, running

REGIONS = (750, 750, 750, 750)
KNOWN = Constraints(
    counts=[(bf.col("age") >= 65, 1_200)],
    marginals=[Marginal(("region",), (), REGIONS)],
    ranges=[{"salary": (0, 49_999)}],
    reading="edge",
)
PLAIN = codec.plain(KNOWN)
POLICY = Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(100_000, 1_000)}).knowing(KNOWN)
HERE = "/api/v1/datasets/salaries"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    with running(tmp_path) as found:
        yield found


# --- Python -------------------------------------------------------------------------------------------


def test_facts_keep_what_is_known() -> None:
    facts = DatasetInfo("salaries", DOMAIN, POLICY, 1, 1, 1)
    again = DatasetInfo.from_plain(json.loads(json.dumps(facts.to_plain())))
    assert again.policy.constraints == KNOWN
    nothing = DatasetInfo("salaries", DOMAIN, POLICY.knowing(None), 1, 1, 1)
    assert DatasetInfo.from_plain(nothing.to_plain()).policy.constraints is None


# --- interface ----------------------------------------------------------------------------------------


def test_a_draft_keeps_what_is_known_until_something_else_is_said(server: Running) -> None:
    curator, graph = server.curator, codec.plain(POLICY.graph)
    put = curator.put(f"{HERE}/policy", json={"graph": graph, "known": PLAIN})
    assert put.status_code == 200, put.text
    assert curator.get(f"{HERE}/policy").json()["draft"]["known"] == PLAIN
    assert curator.get(f"{HERE}/policy").json()["known"] is None
    curator.put(f"{HERE}/policy", json={"columns": {"salary": {"hide_within": 5_000}}})
    assert curator.get(f"{HERE}/policy").json()["draft"]["known"] == PLAIN
    assert curator.post(f"{HERE}/policy/publish", json={}).status_code == 200
    for role in (server.analyst, curator):
        assert role.get(HERE).json()["known"] == PLAIN
        shown = role.get(f"{HERE}/policy").json()
        assert shown["known"] == PLAIN and shown["draft"] is None and "region" in shown["yaml"]
        assert any("Known to everyone" in sentence for sentence in shown["sentences"])
    curator.put(f"{HERE}/policy", json={"graph": graph, "known": {}})
    assert curator.get(f"{HERE}/policy").json()["draft"]["known"] is None


def test_known_goes_with_a_graph_or_columns_only(server: Running) -> None:
    both = server.curator.put(f"{HERE}/policy", json={"yaml": "hide: whole record", "known": PLAIN})
    assert both.status_code == 422 and "file says itself" in both.json()["detail"]
    wrong = {"marginals": [{"columns": ["nowhere"]}]}
    refused = server.curator.put(f"{HERE}/policy", json={"columns": {}, "known": wrong})
    assert refused.status_code == 422


def test_prices_and_previews_under_other_known_counts(server: Running) -> None:
    question = {"question": "histogram(age, bins=4)", "epsilon": "0.5"}
    graph = codec.plain(Policy.differential_privacy(DOMAIN).graph)
    known = {"marginals": [{"columns": ["region"]}]}
    policies = {"plain": graph, "known": {"graph": graph, "known": known}}
    points = server.curator.post(f"{HERE}/tradeoff", json={**question, "policies": policies}).json()["points"]
    assert points[1]["alpha"] > 3 * points[0]["alpha"]
    body = {**question, "policy": {"graph": graph, "known": known}, "stand_in": True}
    noisy = server.curator.post(f"{HERE}/preview", json=body).json()["noisy"]
    assert noisy["receipt"]["policy"].endswith("1 known table") and "tie" in noisy["receipt"]["known"]


def test_the_check_is_the_curators_and_on_record(server: Running) -> None:
    assert server.analyst.post(f"{HERE}/policy/check").status_code == 403
    assert server.curator.post(f"{HERE}/policy/check").json() == {
        "checked": 0,
        "wrong": [],
        "sentences": ["Nothing is declared with an answer, so there is nothing to check."],
    }
    server.curator.put(f"{HERE}/policy", json={"columns": {}, "known": PLAIN})
    found = server.curator.post(f"{HERE}/policy/check").json()
    older = sum(18 + i * 31 % 80 >= 65 for i in range(3_000))
    assert found["checked"] == 5
    assert found["wrong"] == [{"what": "age >= 65", "declared": 1_200, "true": older}]
    events = server.curator.get("/api/v1/audit", params={"dataset": "salaries"}).json()["events"]
    assert events[-1]["kind"] == "preview" and "declared counts" in events[-1]["facts"]["question"]
    assert str(older) not in json.dumps(events)


# --- client -------------------------------------------------------------------------------------------


def test_the_client_loses_nothing(server: Running) -> None:
    tokens = Tokens(server.workspace.store)
    curator, analyst = (
        tokens.issue(role, purpose="api", lifetime=timedelta(hours=1))[0] for role in ("curator", "analyst")
    )
    with serving(server.app) as address, bf.connect(address, token=curator) as remote:
        dataset = remote["salaries"]
        remote.save_draft("salaries", POLICY)
        assert remote.draft("salaries").constraints == KNOWN
        assert [wrong.declared for wrong in dataset.check_known().wrong] == [1_200]
        dataset.publish(POLICY, confirm=True)
        assert dataset.policy.constraints == KNOWN and remote.facts("salaries").policy.constraints == KNOWN
        full = Policy.differential_privacy(DOMAIN)
        tied = full.knowing(Constraints(marginals=["region"]))
        asking = dataset["age"].histogram(bins=4).spend("0.5")
        one, other = dataset.tradeoff(asking, [full, tied]).points
        assert other.policy.endswith("1 known table") and other.alpha > 3 * one.alpha
        shown = dataset.preview(asking, policy=tied, stand_in=True)
        assert shown.noisy.receipt.policy.endswith("1 known table")
        answer = dataset["region"].histogram().accurate_to(1).ask()
        assert answer.values.tolist() == list(REGIONS) and not answer.receipt.epsilon
        assert dataset.past(POLICY).epsilon == dataset.past(full).epsilon == bf.Epsilon(0)
        remote.save_draft("salaries", POLICY.knowing(None))
        assert remote.draft("salaries").constraints is None
        with bf.connect(address, token=analyst) as other_remote:
            with pytest.raises(NotAllowed):
                other_remote.check_known("salaries")
            assert other_remote.facts("salaries").policy.constraints == KNOWN


# --- command line ---------------------------------------------------------------------------------------


@pytest.fixture
def shell(server: Running) -> Shell:
    return Shell(server.folder / "server.blowfish", user="curator")


def test_known_counts_from_the_command_line(shell: Shell, tmp_path: Path) -> None:
    assert "Nothing is taken to be known" in shell.must("policy", "known", "salaries").out
    told = shell.must("policy", "known", "salaries", "--count", "age >= 65", "--answer", "1,200")
    assert "1. how many rows have age >= 65, namely 1,200" in told.out
    shell.must("policy", "known", "salaries", "--range", "salary=0..49,999")
    shell.must("policy", "known", "salaries", "--marginal", "region")
    shell.must("policy", "known", "salaries", "--reading", "edge")
    listed = shell.must("policy", "known", "salaries", "--json").json
    assert listed["known"]["reading"] == "edge" and len(listed["sentences"]) == 4
    shell.must("policy", "known", "salaries", "--remove", "1")
    assert not shell.must("policy", "known", "salaries", "--json").json["known"]["marginals"]
    file = tmp_path / "regions.csv"
    file.write_text("region,count\nnorth,750\nsouth,750\neast,750\nwest,749\n", encoding="utf-8")
    shell.must("policy", "known", "salaries", "--marginal", "region", "--csv", str(file))
    checked = shell.must("policy", "check", "salaries").out
    assert "does not satisfy 2 of 5" in checked and "'region' west: declared 749, counted 750" in checked
    shell.must("policy", "set", "salaries", "salary", "--hide-within", "5000")
    shell.must("policy", "set", "salaries", "--column-by-column")
    shell.must("policy", "set", "salaries", "--hide-all")
    assert len(shell.must("policy", "known", "salaries", "--json").json["known"]["counts"]) == 1
    assert "Known to everyone" in shell.must("policy", "show", "salaries", "--draft").out
    shell.must("policy", "publish", "salaries", "--yes")
    assert shell.must("policy", "show", "salaries", "--json").json["known"]["reading"] == "edge"
    assert "tables:" in shell.must("policy", "export", "salaries").out
    shell.must("policy", "known", "salaries", "--clear")
    assert shell.must("policy", "known", "salaries", "--json").json["known"] is None
    with Workspace(shell.workspace) as workspace:
        assert workspace.facts("salaries").policy.constraints is not None  # only the draft was cleared


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--count", "age >= 65", "--clear"), "one thing"),
        (("--marginal", "region", "--answer", "7"), "one thing"),
        (("--range", "age 30 to 39"), "two ends"),
        (("--count", "nowhere = 3"), "nowhere"),
        (("--marginal", "nowhere"), "nowhere"),
        (("--reading", "loosely"), "two ways"),
        (("--remove", "1"), "number 1"),
        (("--count", "age >= 65", "--answer", "many"), "whole number"),
    ],
)
def test_what_cannot_be_known(shell: Shell, arguments: tuple[str, ...], words: str) -> None:
    refused = shell("policy", "known", "salaries", *arguments)
    assert refused.code == 2 and words in refused.err
