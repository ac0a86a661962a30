"""Plans that keep every promise, through the whole stack: prices, affordability, answers, words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.adapters.store.values import Charge, RequestKey
from blowfishdb.core.errors import AnswerLost, BudgetExhausted, MaxCostExceeded, PolicyConflict
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

SALARIES = bf.Domain(salary=bf.Integer(0, 199_999))


def within(distance: int) -> bf.Policy:
    return bf.Policy.by_column(SALARIES, {"salary": bf.graphs.Threshold(200_000, distance)})


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    place = tmp_path / "rows.duckdb"
    with duckdb.connect(str(place)) as rows:
        rows.execute("CREATE TABLE salaries AS SELECT (i * 7919) % 200000 AS salary FROM range(20000) t(i)")
    with bf.open(tmp_path / "work.blowfish") as ws:
        ws.add_dataset("salaries", place, domain=SALARIES, table="salaries")
        yield ws


@pytest.fixture
def loosened(ws: Workspace) -> Dataset:
    """Everything hidden with .765 left, then within 1,000 beside it."""
    salaries = ws["salaries"]
    salaries["salary"].histogram(bins=10).spend("0.235").ask()
    return salaries.publish(within(1_000), confirm=True)


def test_the_promise_that_hides_more_sets_the_price(ws: Workspace, loosened: Dataset) -> None:
    """THEORY §13, B4: at most .365648 for 25 bins, twice affordable, and .1217 once it is withdrawn."""
    question = loosened["salary"].cumulative(bins=25).accurate_to(50)
    quote = question.quote()
    assert 0.36 < float(quote.epsilon) <= 0.365648
    assert quote.most == quote.epsilon and quote.affordable == 2
    binding = quote.binding
    assert binding is not None and (binding.version, binding.epsilon) == (1, quote.epsilon)
    assert binding.share == pytest.approx(0.475, abs=0.01)
    assert binding.withdrawn is not None
    assert float(binding.withdrawn.epsilon) == pytest.approx(0.121732, abs=1e-6)
    assert "Version 1 of the policy is still promised" in str(quote)
    assert "If it were withdrawn: ±50 for ε 0.122." in str(quote)
    because = "Planned to hide every two values, because of earlier promises that are kept."
    assert because in quote.explanation and because in str(loosened.explain(question))
    answer = question.ask(max_cost=quote.most)
    assert answer.receipt.cost == quote.epsilon
    (paid,) = answer.receipt.promised
    assert (paid.version, paid.epsilon) == (1, quote.epsilon)
    assert loosened.kept[0].remaining == bf.Epsilon("0.765") - quote.epsilon
    finer = loosened["salary"].cumulative(bins=25).accurate_to(25)
    assert finer.quote().affordable == 0
    with pytest.raises(BudgetExhausted) as refused:
        finer.ask()
    assert "ask the curator to withdraw version 1 of the policy (±25 for ε 0.241)" in refused.value.fixes
    loosened.withdraw(1)
    after = loosened["salary"].cumulative(bins=25).accurate_to(50)
    assert (
        loosened["salary"].cumulative(edges=range(0, 200_000, 8_000)).accurate_to(40).quote().binding is None
    )
    assert after.quote().owned  # what is answered stays answered
    assert ws.verify() == []


def test_after_withdrawing_prices_fall(loosened: Dataset) -> None:
    loosened.withdraw(1)
    quote = loosened["salary"].cumulative(bins=25).accurate_to(50).quote()
    assert float(quote.epsilon) == pytest.approx(0.121732, abs=1e-6)
    assert quote.binding is None and quote.promises == ()


def test_publishing_less_says_that_prices_do_not_fall(ws: Workspace) -> None:
    salaries = ws["salaries"]
    assert salaries.propose(within(1_000)).kept == ""  # nobody relies on anything yet
    salaries["salary"].histogram(bins=10).spend("0.235").ask()
    stays = "Version 1 of the policy stays promised beside it, unless it is withdrawn"
    assert salaries.propose(within(1_000)).kept == f"{stays}: prices do not fall until then."
    with pytest.raises(PolicyConflict, match="prices do not fall until then"):
        salaries.publish(within(1_000))
    with pytest.raises(PolicyConflict) as refused:
        salaries.publish(within(1_000), withdraw=True)
    assert "prices" not in str(refused.value)


def test_a_limit_is_for_every_promise(ws: Workspace, loosened: Dataset) -> None:
    """What costs little today may cost more under an earlier promise; ``max_cost`` is about both."""
    ordered = loosened["salary"].cumulative(bins=5).spend("0.4").using("ordered")
    quote = ordered.quote()
    assert quote.epsilon < quote.most <= bf.Epsilon("0.4")
    with pytest.raises(MaxCostExceeded):
        ordered.ask(max_cost=quote.epsilon)
    assert ordered.ask(max_cost=quote.most).receipt.cost == quote.epsilon


def test_a_mean_has_noise_in_its_count_where_an_earlier_promise_hides_who_is_there(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(
        bf.Policy.by_column(SALARIES, {"salary": bf.graphs.Full(200_000)}, hide_presence=True)
    )
    salaries["salary"].histogram(bins=10).spend("0.1").ask()
    salaries.publish(within(1_000), confirm=True)
    quote = salaries.count().spend("0.1").quote()
    assert not quote.exact and quote.most == bf.Epsilon("0.1")
    assert not salaries.count().spend("0.1").ask().exact.any()
    with pytest.raises(bf.errors.NoGuarantee, match="how many rows"):
        salaries["salary"].mean().accurate_to(100).quote()
    sized = salaries["salary"].mean(group_size=1_000).accurate_to(1_000)
    assert sized.quote().kind == "aggregates" and sized.quote().most > bf.Epsilon(0)
    answer = salaries["salary"].mean().spend("0.1").ask()
    assert answer.kind == "aggregates" and not answer.exact.any()
    assert max(answer.receipt.epsilon, *(paid.epsilon for paid in answer.receipt.promised)) <= bf.Epsilon(
        "0.1"
    )
    assert salaries["salary"].mean().spend("0.1").ask().receipt.cost == bf.Epsilon(0)


@pytest.mark.parametrize("mechanism", ["adaptive", "policy-tree", "adaptive-tree"])
def test_what_depends_on_the_data_loses_no_more_than_is_stated(loosened: Dataset, mechanism: str) -> None:
    question = loosened["salary"].cumulative(bins=25).spend("0.2").using(mechanism)
    quote = question.quote()
    assert quote.most == bf.Epsilon("0.2")
    question.ask()
    assert loosened.kept[0].remaining == bf.Epsilon("0.565")


def test_clusters_lose_no_more_than_is_stated(loosened: Dataset) -> None:
    question = loosened["salary"].clusters(3).spend("0.2")
    assert question.quote().most == bf.Epsilon("0.2")
    question.ask()
    assert loosened.kept[0].remaining == bf.Epsilon("0.565")


def test_a_trade_off_tells_prices_of_now_from_those_after_withdrawing(ws: Workspace) -> None:
    salaries = ws["salaries"]
    question = salaries["salary"].cumulative(bins=25).accurate_to(50)
    thresholds = {"column": "salary", "thresholds": (1_000, 100_000)}
    before = salaries.tradeoff(question, **thresholds)  # type: ignore[arg-type]
    assert before.unless_withdrawn == "" and before.points[0].promised is None
    salaries["salary"].histogram(bins=10).spend("0.235").ask()
    after = salaries.tradeoff(question, **thresholds)  # type: ignore[arg-type]
    assert [point.epsilon for point in after.points] == [point.epsilon for point in before.points]
    full = 0.363320134
    assert [float(point.promised or 0) for point in after.points] == pytest.approx([full, full], rel=0.01)
    assert after.kept == (1,)
    assert "Until version 1 of the policy is withdrawn" in after.unless_withdrawn


def test_a_stated_epsilon_holds_under_every_promise_where_counts_are_known(tmp_path: Path) -> None:
    """There plans are made for the policy of today alone, so they make as much noise as the others need."""
    domain = bf.Domain(v=bf.Integer(0, 4))
    far, near = (bf.Policy.by_column(domain, {"v": bf.graphs.Threshold(5, theta)}) for theta in (4, 1))
    with duckdb.connect(str(tmp_path / "rows.duckdb")) as rows:
        rows.execute("CREATE TABLE t AS SELECT i % 5 AS v FROM range(60) t(i)")
    with bf.open(tmp_path / "w.blowfish") as ws:
        ds = ws.add_dataset("t", tmp_path / "rows.duckdb", domain=domain, table="t").publish(far)
        ws.set_budget("t", bf.Epsilon(9))
        ds["v"].histogram().spend("0.5").ask()
        ds.publish(near.knowing(bf.Constraints(counts=[bf.col("v") >= 3])), confirm=True)
        question = ds["v"].cumulative().spend(1)
        quote = question.quote()
        assert quote.promises and quote.most <= bf.Epsilon(1)
        assert quote.most > bf.Epsilon("0.99") > bf.Epsilon("0.8") > quote.epsilon
        before = ds.kept[0].remaining
        assert question.ask(max_cost=1).receipt.cost == quote.epsilon
        assert before - ds.kept[0].remaining == quote.most


def test_a_grant_pays_the_largest_loss(ws: Workspace, loosened: Dataset) -> None:
    """What was lost under the earlier promise, which is more than under the policy of today."""
    ws.grant("salaries", "ada", bf.Epsilon("0.25"))
    ada = ws.as_user("ada")
    question = ada["salaries"]["salary"].histogram(bins=20).using("ordered").spend("0.1")
    quote = question.quote()
    assert quote.epsilon < quote.most <= bf.Epsilon("0.1") and quote.granted == bf.Epsilon("0.25")
    assert quote.affordable == 2
    question.ask()
    (account,) = [grant for grant in ws.grants("salaries") if grant.user == "ada"]
    assert account.spent == quote.most and ada.left("salaries") == bf.Epsilon("0.25") - quote.most
    closer = ada["salaries"]["salary"].cumulative(bins=20).using("ordered").spend("0.2")
    assert closer.quote().affordable == 0
    with pytest.raises(BudgetExhausted, match=r"The grant of 'ada'") as refused:
        closer.ask()
    assert refused.value.fixes
    assert ws.verify() == []


def test_what_costs_nothing_today_and_was_lost_is_not_charged_again_under_its_key(
    ws: Workspace, loosened: Dataset
) -> None:
    """An earlier promise lost it all the same: one charge, and the same refusal every time."""
    ledger, key = ws._ledger, RequestKey("first", "a request")

    def asked() -> Charge:
        losses = {1: bf.Epsilon("0.2")}
        return ledger.reserve(
            "salaries", "ana", bf.Epsilon(0), "a question", {}, version=2, losses=losses, key=key
        )

    charge = asked()
    assert charge.debit == bf.Epsilon("0.2")
    ledger.mark_reading(charge)
    ledger.lose(charge, "killed")
    for _ in range(2):
        with pytest.raises(AnswerLost, match=r"charged 0\.2"):
            asked()
    assert loosened.kept[0].remaining == bf.Epsilon("0.765") - bf.Epsilon("0.2")


@pytest.mark.parametrize("presence", [False, True])
def test_what_became_known_is_not_told_exactly_where_it_was_promised(ws: Workspace, presence: bool) -> None:
    """How many have 2 or 3 is known since version 3, and hidden by version 2, which is still kept."""
    domain = bf.Domain(salary=bf.Integer(0, 3))
    few = ws.add_dataset("few", pd.DataFrame({"salary": [0, 1, 2, 2, 3]}), domain=domain)
    few.publish(bf.Policy.by_column(domain, {"salary": bf.graphs.Full(4)}))
    few["salary"].histogram().spend("0.5").ask()
    above = bf.Constraints(ranges=[({"salary": (2, 3)}, None)])
    line = {"salary": bf.graphs.Threshold(4, 1)}
    few.publish(bf.Policy.by_column(domain, line, hide_presence=presence).knowing(above), confirm=True)
    told = few["salary"].ranges([(2, 3)]).spend("0.1")
    assert told.quote().promises[0].epsilon is None
    with pytest.raises(PolicyConflict, match="tell apart exactly what version 2"):
        told.ask()
    few.withdraw(2)
    assert told.ask().exact.all() and told.quote().owned
    assert few.past(few.policy.knowing(None)).epsilon is None  # for whoever hides it again
