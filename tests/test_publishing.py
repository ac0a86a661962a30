"""Policies that change after answers were given: what they cost, what stays promised, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

import blowfishdb as bf
from blowfishdb.adapters.store.releases import reindex
from blowfishdb.adapters.store.tables import charges
from blowfishdb.core.errors import BudgetExhausted, InvalidInput, PolicyConflict
from blowfishdb.workspace.embedded import Workspace

SALARIES = bf.Domain(salary=bf.Integer(0, 199))


def within(theta: int) -> bf.Policy:
    return bf.Policy.by_column(SALARIES, {"salary": bf.graphs.Threshold(200, theta)})


def groups(width: int) -> bf.Policy:
    return bf.Policy.by_column(SALARIES, {"salary": bf.graphs.Partitioned(bf.Bins.width(200, width))})


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    place = tmp_path / "rows.duckdb"
    with duckdb.connect(str(place)) as rows:
        rows.execute("CREATE TABLE salaries AS SELECT (i * 7) % 200 AS salary FROM range(1000) t(i)")
    with bf.open(tmp_path / "work.blowfish") as ws:
        ws.add_dataset("salaries", place, domain=SALARIES, table="salaries")
        ws.set_budget("salaries", bf.Epsilon(10))
        yield ws


def ask(ws: Workspace, kind: str, epsilon: str, bins: int = 200) -> bf.Answer:
    columns = ws["salaries"]["salary"]
    question = columns.cumulative(bins=bins) if kind == "cumulative" else columns.histogram(bins=bins)
    return question.spend(epsilon).using("laplace").ask()


def test_nothing_asked_nothing_promised(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(within(10)).publish(within(1)).publish(groups(20))
    assert salaries.kept == []
    assert ws.budget("salaries").carried == bf.Epsilon(0)
    assert ws.verify() == []


def test_a_stricter_policy_is_first_charged_for_the_past(ws: Workspace) -> None:
    """REUSE §3: hidden within 1, a cumulative and a plain histogram at ε .2 each; now within 10: 2.2."""
    salaries = ws["salaries"].publish(within(1))
    ask(ws, "cumulative", "0.2")
    ask(ws, "histogram", "0.2")
    past = salaries.past(within(10))
    assert float(past.epsilon or 0) == pytest.approx(2.2, abs=1e-6)
    assert "at most 90 % sure" in past.sentence
    with pytest.raises(PolicyConflict, match="at most 90 % sure"):
        salaries.publish(within(10))
    salaries.publish(within(10), confirm=True)
    budget = ws.budget("salaries")
    assert float(budget.carried) == pytest.approx(1.8, abs=1e-6)
    assert float(budget.remaining) == pytest.approx(7.8, abs=1e-6)
    assert salaries.kept == []
    assert ws.verify() == []
    with pytest.raises(BudgetExhausted):
        ask(ws, "histogram", "7.9")
    ask(ws, "histogram", "7.7")
    assert ws.verify() == []


def test_what_was_told_exactly_cannot_be_hidden_again(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(groups(100))
    salaries["salary"].histogram(width=100).spend("0.1").ask()  # the groups' totals are public
    ask(ws, "histogram", "0.1")
    past = salaries.past(within(5))
    assert past.epsilon is None
    assert "may be certain" in past.sentence
    salaries.publish(within(5), confirm=True, withdraw=True)
    assert ws.budget("salaries").carried == bf.Epsilon(0)
    event = next(e for e in reversed(ws.events("salaries")) if e.kind == "policy")
    assert event.facts["past"]["epsilon"] is None
    assert ws.verify() == []


# --- what counts as the past --------------------------------------------------------------------------------


def test_what_was_told_for_nothing_counts_too(ws: Workspace) -> None:
    """Exact answers are free, and they lose everything under a policy that hides what they told."""
    salaries = ws["salaries"].publish(groups(100))
    assert salaries["salary"].histogram(width=100).spend("0.1").ask().exact.all()
    assert not ws.budget("salaries").spent
    with pytest.raises(PolicyConflict, match="may be certain"):
        salaries.publish(within(5))
    salaries.publish(within(5), confirm=True)
    assert "may be certain" in " ".join(salaries.guarantee().past)
    salaries.publish(groups(50))  # nothing was lost under any of these two
    assert salaries.kept == []


def test_how_many_rows_there_are_may_be_told_under_any_policy_that_says_so(ws: Workspace) -> None:
    salaries = ws["salaries"]
    assert salaries["salary"].count().spend("0.1").ask().exact.all()
    known = bf.Constraints(counts=[bf.col("salary") < 100])
    salaries.publish(within(5)).publish(within(5).knowing(known)).publish(groups(10))
    with pytest.raises(PolicyConflict):
        salaries.publish(everything_hidden())


def test_losses_about_other_rows_add_up(ws: Workspace) -> None:
    """Someone who was among the low salaries is among the high ones after a refresh: told apart twice."""
    salaries = ws["salaries"].publish(within(1))
    low, high = ([(0, k) for k in range(*ends)] for ends in ((0, 50), (150, 199)))
    salaries["salary"].ranges(low).spend("0.1").using("laplace").ask()
    salaries.refresh()
    salaries["salary"].ranges(high).spend("0.1").using("laplace").ask()
    assert salaries.past(within(10)).epsilon == bf.Epsilon(2)
    salaries.publish(within(10), confirm=True)
    assert ws.budget("salaries").remaining == bf.Epsilon(8)
    salaries["salary"].ranges(low).spend("0.1").using("laplace").ask()  # the same rows as the second
    assert salaries.past(within(1)).epsilon == bf.Epsilon("0.2")


def test_a_question_under_way_keeps_the_promise_that_it_was_asked_under(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(within(10))
    version = ws.facts("salaries").policy_version
    detail = {"mechanism": "Laplace", "alone": "1", "policy_version": version, "snapshot": 1}
    charge = ws._ledger.reserve("salaries", ws.user, bf.Epsilon(1), "under way", detail, reading=True)
    with pytest.raises(PolicyConflict):
        salaries.publish(within(1))
    with pytest.raises(PolicyConflict, match="is being answered"):
        salaries.publish(within(1), confirm=True, withdraw=True)
    salaries.publish(within(1), confirm=True)
    (kept,) = salaries.kept
    assert (kept.version, kept.remaining) == (version, bf.Epsilon(9))
    ws._ledger.lose(charge, "killed")
    assert salaries.past(within(10)).epsilon == bf.Epsilon(1)  # what it told may have been seen
    assert salaries.past(within(20)).epsilon == bf.Epsilon(2)
    assert [again.remaining for again in salaries.kept] == [kept.remaining]
    assert ws.verify() == []


def test_a_promise_is_not_withdrawn_under_a_question(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(within(10))
    ask(ws, "histogram", "0.1")
    salaries.publish(within(1), confirm=True)
    (kept,) = salaries.kept
    version = ws.facts("salaries").policy_version
    detail = {"mechanism": "Laplace", "alone": "1", "policy_version": version, "snapshot": 1}
    losses = {kept.version: bf.Epsilon(2)}
    charge = ws._ledger.reserve(
        "salaries", ws.user, bf.Epsilon(1), "under way", detail, reading=True, losses=losses
    )
    (held,) = salaries.kept
    assert held.remaining == kept.remaining - bf.Epsilon(2)
    with pytest.raises(BudgetExhausted, match="still promised"):  # both at once would be too much
        whole = {kept.version: kept.remaining}
        ws._ledger.reserve("salaries", ws.user, bf.Epsilon(1), "another", detail, losses=whole)
    with pytest.raises(PolicyConflict, match="is being answered"):
        salaries.withdraw(kept.version)
    ws._ledger.lose(charge, "killed")
    salaries.withdraw(kept.version)
    assert salaries.kept == []
    assert ws.verify() == []


def dear_past(ws: Workspace) -> None:
    """An answer at ε .4 that lost 20 between values within 50 of each other."""
    ws["salaries"].publish(within(1))
    ask(ws, "cumulative", "0.4")


@pytest.mark.parametrize("first", ["budget", "policy"])
def test_the_past_counts_whatever_the_budget_was(ws: Workspace, first: str) -> None:
    dear_past(ws)
    if first == "budget":
        ws.set_budget("salaries", bf.Epsilon(30))
    ws["salaries"].publish(within(50), confirm=True)
    if first == "policy":
        assert ws.budget("salaries").remaining == bf.Epsilon(0)
        assert "nothing more is answered" in " ".join(ws["salaries"].guarantee().past)
        with pytest.raises(BudgetExhausted):
            ask(ws, "histogram", "0.1")
        ws.set_budget("salaries", bf.Epsilon(15))  # still not enough
        assert ws.budget("salaries").remaining == bf.Epsilon(0)
        ws.set_budget("salaries", bf.Epsilon(30))
    budget = ws.budget("salaries")
    assert float(budget.carried) == pytest.approx(19.6, abs=1e-6)
    assert float(budget.remaining) == pytest.approx(10, abs=1e-6)
    with pytest.raises(InvalidInput, match="cannot become"):
        ws.set_budget("salaries", bf.Epsilon(19))
    ask(ws, "histogram", "9.9")
    assert ws.verify() == []


def test_a_kept_promise_whose_past_is_above_its_total_has_nothing_left(ws: Workspace) -> None:
    dear_past(ws)
    ws["salaries"].publish(within(50), confirm=True).publish(within(1), confirm=True)
    (kept,) = ws["salaries"].kept
    assert kept.remaining == bf.Epsilon(0)
    assert ws.budget("salaries").remaining == bf.Epsilon("9.6")
    with pytest.raises(BudgetExhausted, match="still promised"):
        ask(ws, "histogram", "0.1")
    assert ws["salaries"]["salary"].count().spend("0.1").ask().exact.all()  # it tells nothing that is hidden
    assert ws.verify() == []


def test_an_older_workspace_gets_its_past_back(ws: Workspace, tmp_path: Path) -> None:
    from sqlalchemy import text

    from blowfishdb.adapters.store.tables import budgets, charges, events, grids, meta, releases

    dear_past(ws)
    ws["salaries"].publish(within(50), confirm=True)
    with ws.store.writing() as connection:  # as format 4 had it
        releases.drop(connection)
        grids.drop(connection)
        refined = {index for index in charges.indexes if index.name == "charges_by_refined"}
        for index in (*events.indexes, *refined):
            index.drop(connection)
        connection.execute(text("ALTER TABLE charges DROP COLUMN refines"))
        connection.execute(budgets.update().values(carried=0))
        connection.execute(meta.update().where(meta.c.name == "schema").values(value="4"))
    with bf.open(tmp_path / "work.blowfish") as again:
        assert float(again.budget("salaries").carried) == pytest.approx(19.6, abs=1e-6)
        assert again.verify() == []


def test_a_grant_does_not_reach_beyond_the_past(ws: Workspace) -> None:
    dear_past(ws)
    ws["salaries"].publish(within(50), confirm=True)
    ws.grant("salaries", "ada", bf.Epsilon(5))
    assert ws.as_user("ada").left("salaries") == bf.Epsilon(0)
    with pytest.raises(BudgetExhausted):
        ask(ws.as_user("ada"), "histogram", "0.1")


def test_a_promise_that_ends_with_a_policy_leaves_an_event(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(within(10))
    version = ws.facts("salaries").policy_version
    ask(ws, "histogram", "0.1")
    salaries.publish(within(1), confirm=True, withdraw=True)
    (withdrawn,) = [event for event in ws.events("salaries") if event.kind == "withdrawn"]
    assert withdrawn.facts["version"] == version
    assert ws.verify() == []
    told = salaries.guarantee().history
    today = withdrawn.at.date().isoformat()
    assert told[0] == f"{today}: All answers together may cost at most ε 1."
    assert f"{today}: The promise of version {version} of the policy was withdrawn." in told
    assert told[-1].startswith(f"{today}: Version {version + 1} of the policy was published.")
    assert "Counting all answers so far" in told[-1]
    salaries.publish(within(20), confirm=True, withdraw=True)  # hides more: nothing ends
    assert sum(event.kind == "withdrawn" for event in ws.events("salaries")) == 1


# --- what is kept of an answer ------------------------------------------------------------------------------


def everything_hidden() -> bf.Policy:
    return bf.Policy(SALARIES, bf.graphs.Full(200).hide_presence())


def test_totals_that_nobody_was_shown_are_not_known(ws: Workspace) -> None:
    """A noisy histogram leaves the totals of its groups public, but it does not tell them."""
    salaries = ws["salaries"].publish(groups(5))
    ask(ws, "histogram", "0.1")
    past = salaries.past(everything_hidden())
    assert past.epsilon == bf.Epsilon("0.1")  # independent noise on every cell: no total is in it
    salaries.publish(everything_hidden(), confirm=True)
    for question in (salaries["salary"].histogram(width=5), salaries["salary"].count()):
        quote = question.accurate_to(20).quote()
        assert quote.epsilon > bf.Epsilon(0)
        answer = question.accurate_to(20).ask()
        assert not answer.exact.any()
        assert answer.receipt.cost == quote.epsilon
    assert ws.verify() == []


def test_a_sum_that_was_told_exactly_is_not_a_histogram(ws: Workspace) -> None:
    nothing = bf.Policy.by_column(SALARIES, {"salary": bf.graphs.Explicit(200, ())})
    salaries = ws["salaries"].publish(nothing)
    total = salaries["salary"].sum().accurate_to(1).ask()
    assert total.exact.all()
    salaries.publish(everything_hidden(), confirm=True)
    assert salaries["salary"].histogram(width=50).accurate_to(100).quote().epsilon > bf.Epsilon(0)
    assert not salaries["salary"].histogram(width=50).accurate_to(100).ask().exact.any()
    assert salaries["salary"].sum().accurate_to(2).ask().values == pytest.approx(total.values)  # it was told
    assert salaries["salary"].sum().accurate_to(2).ask().receipt.cost == bf.Epsilon(0)


def test_a_total_that_was_shown_stays_known(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(groups(100))
    halves = salaries["salary"].histogram(width=100).accurate_to(1).ask()
    assert halves.exact.all()
    assert salaries.past(everything_hidden()).epsilon is None
    salaries.publish(everything_hidden(), confirm=True)
    count = salaries["salary"].count().accurate_to(10).ask()
    assert count.receipt.cost == bf.Epsilon(0)
    assert count.values[0] == halves.values.sum()


def test_what_an_older_version_stored_is_not_taken_for_known(ws: Workspace) -> None:
    """Public totals were once stored with every answer; they count as lost, and answer nothing."""
    salaries = ws["salaries"].publish(groups(5))
    answer = ask(ws, "histogram", "0.1")
    with ws.store.writing() as connection:
        body = json.loads(connection.execute(charges.select()).one().answer)
        release = body["release"]
        assert release.pop("used")["kind"] == "intervals"
        release["rows"] = {
            "kind": "intervals",
            "starts": [*range(200), *range(0, 200, 5)],
            "stops": [*range(1, 201), *range(5, 201, 5)],
        }
        release["scales"].append("0")
        release["which"] = [0] * 200 + [1] * 40
        release["values"] += [25] * 40
        connection.execute(charges.update().values(answer=json.dumps(body)))
    assert salaries.past(everything_hidden()).epsilon is None
    salaries.publish(everything_hidden(), confirm=True)
    assert salaries["salary"].count().accurate_to(20).quote().epsilon > bf.Epsilon(0)
    again = salaries["salary"].histogram(width=5).accurate_to(2000).ask()  # the noisy cells are still known
    assert again.receipt.cost == bf.Epsilon(0)
    assert again.raw == pytest.approx(answer.raw.reshape(40, 5).sum(axis=1), abs=1e-6)


def test_nothing_follows_from_rows_that_an_older_version_kept_without_noise(
    ws: Workspace, tmp_path: Path
) -> None:
    """Of answers that were exact it kept what they were computed from, as if it had noise."""
    ws["salaries"].publish(everything_hidden())
    ask(ws, "histogram", "0.1")
    coarser = ws["salaries"]["salary"].histogram(width=5).accurate_to(2000)
    assert coarser.quote().owned
    with ws.store.writing() as connection:
        body = json.loads(connection.execute(charges.select()).one().answer)
        body["answer"]["exact"], body["bound"]["margin"] = [True] * 200, 0
        connection.execute(charges.update().values(answer=json.dumps(body)))
        reindex(connection)
    with bf.open(tmp_path / "work.blowfish") as again:
        coarser = again["salaries"]["salary"].histogram(width=5).accurate_to(2000)
        assert not coarser.quote().owned


def test_a_looser_policy_leaves_the_stricter_promise_standing(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(within(10))
    ask(ws, "cumulative", "1")
    version = ws.facts("salaries").policy_version
    salaries.publish(within(1), confirm=True)
    (kept,) = salaries.kept
    assert kept.version == version
    assert kept.remaining == bf.Epsilon(9)
    answer = ask(ws, "cumulative", "0.5")  # no promise loses more: a tenth of it under that of today
    (kept,) = salaries.kept
    assert kept.remaining == bf.Epsilon("8.5")
    assert float(answer.receipt.cost) == pytest.approx(0.05, abs=1e-6)
    spent = ws.budget("salaries").spent
    with pytest.raises(BudgetExhausted, match=f"version {version}.*still promised") as refused:
        ask(ws, "cumulative", "8.6")
    assert any("withdraw" in fix for fix in refused.value.fixes)
    assert ws.budget("salaries").spent == spent
    salaries.withdraw(version)
    assert salaries.kept == []
    ask(ws, "cumulative", "0.6")
    assert ws.verify() == []


def test_what_a_looser_policy_makes_exact_has_noise_while_the_stricter_one_stands(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(within(10))
    ask(ws, "histogram", "0.1")
    salaries.publish(groups(100), confirm=True)
    totals, (before,) = salaries["salary"].histogram(width=100), salaries.kept
    noisy = totals.spend("0.1").ask()
    assert not noisy.exact.any() and not noisy.receipt.cost
    assert salaries.kept[0].remaining == before.remaining - bf.Epsilon("0.1")
    assert ws.verify() == []
    salaries.withdraw(before.version)
    assert totals.spend("0.2").ask().exact.all()


def test_a_promise_can_be_withdrawn_at_once_and_only_once(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(within(10))
    ask(ws, "histogram", "0.1")
    salaries.publish(within(1), confirm=True, withdraw=True)
    assert salaries.kept == []
    with pytest.raises(InvalidInput, match="not an earlier promise"):
        salaries.withdraw(2)


def test_stored_answers_cost_nothing_under_any_promise(ws: Workspace) -> None:
    salaries = ws["salaries"].publish(within(10))
    first = salaries["salary"].cumulative(bins=200).accurate_to(100).ask()
    salaries.publish(within(1), confirm=True)
    left = salaries.kept[0].remaining
    again = salaries["salary"].cumulative(bins=20).accurate_to(400).ask()
    assert again.receipt.cost == bf.Epsilon(0) < first.receipt.cost
    assert salaries.kept[0].remaining == left
    assert ws.verify() == []


def test_tampering_with_a_promise_is_found(ws: Workspace) -> None:
    from blowfishdb.adapters.store.tables import losses, promises

    salaries = ws["salaries"].publish(within(10))
    ask(ws, "histogram", "0.1")
    salaries.publish(within(1), confirm=True)
    ask(ws, "cumulative", "0.1")
    assert ws.verify() == []
    for table, change in ((losses, {"amount": 1}), (promises, {"spent": 0})):
        with ws.store.writing() as connection:
            connection.execute(table.update().values(change))
        assert any("promise" in problem for problem in ws.verify())


# --- baskets: what questions lose together -----------------------------------------------------------------


def basket(ws: Workspace, *ranges: tuple[int, int]) -> list[bf.Answer]:
    columns = ws["salaries"]["salary"]
    cells = [columns.ranges([(cell, cell) for cell in range(*each)]) for each in ranges]
    return ws.batch(*(question.spend("0.2").using("laplace") for question in cells)).ask()


def test_groups_that_no_edge_joins_cost_as_much_as_the_dearest(ws: Workspace) -> None:
    """[B14] Thm 4.2: disjoint components in parallel; one after the other they would cost .4."""
    ws["salaries"].publish(groups(100))
    basket(ws, (10, 20), (130, 140))
    assert ws.budget("salaries").spent == bf.Epsilon("0.2")
    assert float(ws["salaries"].past(groups(100)).epsilon or 0) == pytest.approx(0.2, abs=1e-6)
    assert ws.verify() == []


def test_distant_cells_of_a_line_cost_as_much_as_the_dearest(ws: Workspace) -> None:
    """REUSE §2: cells 0–9 and 30–39, θ = 2, .2 each: .2. The same cells twice add up."""
    ws["salaries"].publish(within(2))
    basket(ws, (0, 10), (30, 40))
    assert ws.budget("salaries").spent == bf.Epsilon("0.2")
    first, second = basket(ws, (60, 70), (70, 80))
    assert ws.budget("salaries").spent == bf.Epsilon("0.4")
    assert first.receipt.cost + second.receipt.cost == bf.Epsilon("0.2")
    basket(ws, (100, 110), (100, 111))
    assert ws.budget("salaries").spent == bf.Epsilon("0.8")
    assert ws.verify() == []


def test_what_a_basket_lost_is_not_forgotten(ws: Workspace) -> None:
    """Each answer lost what it loses alone, whatever it was charged in the basket."""
    ws["salaries"].publish(within(2))
    basket(ws, (0, 10), (30, 40))
    charges = [event for event in ws.events("salaries") if event.kind == "settled"]
    assert sorted(event.amount for event in charges) == [bf.Epsilon(0), bf.Epsilon("0.2")]
    past = ws["salaries"].past(bf.Policy.differential_privacy(SALARIES))
    assert past.epsilon == bf.Epsilon("0.2")  # cell 5 or cell 35: a tenth from each answer
    assert ws["salaries"].past(within(40)).epsilon == bf.Epsilon("0.2")
    ask(ws, "histogram", "0.2")
    assert ws["salaries"].past(within(2)).epsilon == bf.Epsilon("0.4")
