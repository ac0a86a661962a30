"""A workspace that earlier code wrote is opened, believed, asked again for nothing, and asked anew."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import blowfishdb as bf
from blowfishdb.adapters.accounts import Accounts
from blowfishdb.adapters.tokens import Tokens
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.questions.form import KINDS
from blowfishdb.mechanisms import CLUSTERING
from blowfishdb.workspace.embedded import Workspace
from tests.adapters.workspaces import HandClock
from tests.earlier.asked import Asked
from tests.earlier.facts import answer_facts, dataset_facts, price_of
from tests.earlier.packing import WORKSPACE, files, unpack
from tests.earlier.writing import PLAIN_ASKED, TOKEN_FILE, WRITTEN, opened, write
from tests.entrypoints.server import CHEAP, PASSWORD

LARGEST = 100_000
NEW = {
    "plain": [Asked("people", "histogram(age, bins=7)", error=41), Asked("people", "median(age)", error=33)],
    "promised": [
        Asked("pay", "histogram(pay, bins=5)", error=15),
        Asked("known", "histogram(a, b)", epsilon="0.1", user="curator"),
        Asked("now", "histogram(pay, bins=2)", epsilon="0.1"),
        Asked("tight", "histogram(town)", epsilon="0.1"),
    ],
    "copied": [
        Asked("visits", "histogram(age, bins=3)", error=70),
        Asked("visits", "sum(cost)", epsilon="0.2"),
        Asked("hidden", "count() where ward is null", epsilon="0.1"),
    ],
}
"""What nobody has asked before."""


@dataclass(frozen=True)
class Earlier:
    """A workspace that was put back, and what was written beside it."""

    name: str
    folder: Path
    facts: dict[str, Any]


@pytest.fixture(scope="module", params=WRITTEN)
def earlier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Earlier:
    folder = tmp_path_factory.mktemp(request.param)
    return Earlier(request.param, folder, unpack(request.param, folder))


@pytest.fixture
def workspace(earlier: Earlier) -> Iterator[Workspace]:
    with opened(earlier.folder) as found:
        yield found


def test_its_books_and_its_copies_are_as_they_were_left(earlier: Earlier, workspace: Workspace) -> None:
    assert not workspace.audit(since=earlier.facts["head"]).problems
    assert workspace.check_rows() == []
    kinds = [event.kind for event in workspace.events()]
    assert kinds[: len(earlier.facts["events"])] == earlier.facts["events"]


def test_its_datasets_promise_and_have_spent_the_same(earlier: Earlier, workspace: Workspace) -> None:
    assert workspace.datasets() == list(earlier.facts["datasets"])
    for name, facts in earlier.facts["datasets"].items():
        assert json.loads(json.dumps(dataset_facts(workspace, name))) == facts, name


def test_its_answers_have_the_same_numbers(earlier: Earlier, workspace: Workspace) -> None:
    answers = workspace.answers()
    assert [answer.number for answer in answers] == [facts["number"] for facts in earlier.facts["answers"]]
    for answer, facts in zip(answers, earlier.facts["answers"], strict=True):
        now = json.loads(json.dumps(answer_facts(answer)))
        promised = [Epsilon(under["epsilon"]) for under in facts["receipt"].get("promised", ())]
        largest = max([Epsilon(facts["receipt"]["cost"]), *promised])
        assert Epsilon(now["receipt"].pop("debit")) == largest  # which was told by its parts alone
        assert now["receipt"].pop("nano_debit", largest.nano) == largest.nano
        later = now["receipt"].keys() - facts["receipt"].keys()
        assert not any(now["receipt"].pop(name) for name in later), "said of an answer that did not say it"
        assert now == facts, facts["receipt"]["question"]


LOOKED_UP = {("histogram(age, bins=5)", 90)}
"""Whose price came from draws for this accuracy alone, and is a little lower since it is looked up."""


def test_what_was_asked_is_free_again(earlier: Earlier, workspace: Workspace) -> None:
    before = {name: workspace.budget(name) for name in workspace.datasets()}
    for facts in earlier.facts["again"]:
        terms = dict(facts)
        said = {name: terms.pop(name) for name in ("price", "stored")}
        now = price_of(workspace, Asked(**terms))
        assert now["stored"] == said["stored"], terms
        price, before_it = float(now["price"]), float(said["price"])
        if (terms["question"], terms.get("error")) in LOOKED_UP:
            assert 0.97 * before_it < price < before_it, terms
        else:
            assert price == pytest.approx(before_it, rel=1e-6), terms
    assert {name: workspace.budget(name) for name in workspace.datasets()} == before


def test_something_new_is_answered_and_charged(earlier: Earlier, tmp_path: Path) -> None:
    unpack(earlier.name, tmp_path)
    with opened(tmp_path) as workspace:
        asked = {each.dataset for each in NEW[earlier.name]}
        assert asked == set(workspace.datasets())
        for each in NEW[earlier.name]:
            before, asking = workspace.budget(each.dataset).spent, each.of(workspace)
            cost = asking.quote().epsilon
            answer = asking.ask(max_cost=cost)
            assert cost > bf.Epsilon(0) and answer.receipt.cost == cost, each
            assert workspace.budget(each.dataset).spent == before + cost
            assert answer_facts(workspace.answer(answer.number)) == answer_facts(answer)
        assert not workspace.audit(since=earlier.facts["head"]).problems


def test_whoever_could_come_in_still_can(tmp_path: Path) -> None:
    unpack("promised", tmp_path)
    with opened(tmp_path) as workspace:
        clock = HandClock()
        accounts, tokens = Accounts(workspace.store, clock, hasher=CHEAP), Tokens(workspace.store, clock)
        assert {user.user: user.active for user in accounts.list()} == {
            "ana": True,
            "ben": True,
            "curator": True,
            "eve": False,
        }
        assert accounts.check_password("curator", PASSWORD).role.value == "curator"
        found = tokens.who((tmp_path / TOKEN_FILE).read_text(), purpose="api")
        assert found is not None and found.user == "ana"
        assert [(each.label, each.active) for each in tokens.tokens("ben")] == [("old", False)]


def test_a_key_still_belongs_to_its_question(tmp_path: Path) -> None:
    unpack("promised", tmp_path)
    with opened(tmp_path) as workspace, pytest.raises(bf.errors.KeyReused):
        Asked("pay", "sum(pay)", epsilon="0.1", user="ben").of(workspace).ask(key="once")


def test_what_is_deleted_stays_deleted(tmp_path: Path) -> None:
    unpack("promised", tmp_path)
    with opened(tmp_path) as workspace, pytest.raises(bf.errors.UnknownDataset, match="deleted"):
        _ = workspace["gone"]


# --- what is kept -----------------------------------------------------------------------------


LATER = {"aggregates", "counts", "marginals", "partition"}
"""Kinds that the code which wrote these workspaces did not know."""


def test_every_kind_is_kept() -> None:
    kinds = {each.question.partition("(")[0].replace("median", "quantiles") for each in PLAIN_ASKED}
    assert kinds == set(KINDS) - LATER
    assert {each.mechanism for each in PLAIN_ASKED} >= set(CLUSTERING)
    kept = {facts["kind"] for facts in _facts("plain")["answers"]}
    assert kept == set(KINDS) - LATER


def test_promises_losses_and_the_past_are_kept() -> None:
    facts = _facts("promised")
    assert "lost" in facts["events"] and "withdrawn" in facts["events"]
    assert facts["datasets"]["pay"]["kept"] and facts["datasets"]["pay"]["grants"]
    assert float(facts["datasets"]["tight"]["budget"][3]) > 0


def test_they_are_small() -> None:
    assert [file.name for file in files() if file.stat().st_size >= LARGEST] == []


@pytest.mark.parametrize("name", WRITTEN)
def test_they_can_be_written_anew(name: str, tmp_path: Path) -> None:
    """With the code that there is now, and with the same questions."""
    facts = write(name, tmp_path)
    assert (tmp_path / WORKSPACE).is_file()
    assert [each["question"] for each in facts["again"]] == [
        each["question"] for each in _facts(name)["again"]
    ]


def _facts(name: str) -> dict[str, Any]:
    file = next(file for file in files() if file.name == f"{name}.json")
    facts: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return facts
