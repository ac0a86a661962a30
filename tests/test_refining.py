"""Asking again more closely, in a workspace: what is paid, what is kept, and what must never happen."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.errors import AlreadyRefined, QueryFailed
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.workspace.embedded import Workspace

ROWS = 2_000
DOMAIN = bf.Domain(age=bf.Integer(0, 99), pay=bf.Integer(0, 9_999))


@pytest.fixture
def ws(tmp_path: Path) -> Iterator[Workspace]:
    lines = (f"{i * 7 % 100},{i * 131 % 10_000}" for i in range(ROWS))
    (tmp_path / "people.csv").write_text("age,pay\n" + "\n".join(lines) + "\n")
    with bf.open(tmp_path / "work.blowfish") as workspace:
        workspace.add_dataset("people", tmp_path / "people.csv", domain=DOMAIN)
        workspace.set_budget("people", bf.Epsilon(9))
        workspace["people"].publish(bf.Policy.differential_privacy(DOMAIN))
        yield workspace


def bars(ws: Workspace, alpha: float) -> bf.Asking:
    return ws["people"]["age"].histogram(bins=20).accurate_to(alpha).using("laplace")


CONTINUOUS = 0.1193
"""What ±100 costs with continuous noise; whole numbers are a little cheaper, and so are all the others."""


@pytest.mark.parametrize(("closer", "difference", "scratch"), [(80, 0.0298, 0.1492), (50, 0.1193, 0.2387)])
def test_only_the_difference_is_paid(ws: Workspace, closer: float, difference: float, scratch: float) -> None:
    first = bars(ws, 100).ask()
    assert 0.97 * CONTINUOUS < float(first.receipt.epsilon) < CONTINUOUS
    quote = bars(ws, closer).quote()
    assert 0.97 * difference < float(quote.epsilon) < difference
    assert quote.sharpens is not None
    assert (quote.sharpens.number, quote.sharpens.alpha) == (first.number, 100)
    assert 0.97 * scratch < float(quote.sharpens.instead) < scratch
    assert (
        f"±100 is already answered (no. {first.number}); ±{closer} costs ε {quote.epsilon:.3g} more"
        in str(quote)
    )
    second = bars(ws, closer).ask()
    assert second.receipt.cost == quote.epsilon
    assert ws.budget("people").spent == first.receipt.epsilon + second.receipt.epsilon
    assert second.alpha == closer
    assert not ws.audit().problems


def test_what_was_paid_before_is_no_dividend_of_the_policy(ws: Workspace) -> None:
    """Everything is hidden here: plain differential privacy would cost as much from scratch."""
    bars(ws, 100).ask()
    quote = ws["people"]["age"].histogram(bins=20).accurate_to(50).quote()
    assert quote.sharpens is not None
    assert quote.dividend == pytest.approx(1, abs=0.01)
    assert not quote.alternatives, "±100 is answered already, and not cheaper"


def test_a_chain_costs_what_its_last_link_does(ws: Workspace) -> None:
    scratch = bars(ws, 10).quote().epsilon
    for alpha in (200, 100, 50, 20, 10):
        bars(ws, alpha).ask()
    assert ws.budget("people").spent == scratch
    assert ws["people"].past(ws["people"].policy).epsilon == scratch


def test_another_kind_of_question_over_the_same_rows_is_refined_as_well(ws: Workspace) -> None:
    """Bars that stand out are told by the same noisy bars."""
    bars(ws, 100).ask()
    above = ws["people"]["age"].above(50, bins=20).accurate_to(30).using("laplace").quote()
    assert above.sharpens is not None
    assert "for the histogram of age" in above.sharpening


def test_what_was_paid_under_a_policy_that_is_kept_counts_there_too(ws: Workspace) -> None:
    people = ws["people"]
    bars(ws, 100).ask()
    looser = bf.Policy.by_column(DOMAIN, {"age": bf.graphs.Threshold(100, 5)})
    people.publish(looser, confirm=True)
    before = ws["people"].kept[0].remaining
    quote = bars(ws, 50).quote()
    ws["people"]["age"].histogram(bins=20).accurate_to(50).using("laplace").ask()
    after = ws["people"].kept[0].remaining
    (under,) = quote.promises
    assert before - after == under.epsilon
    assert not ws.audit().problems


def test_an_answer_is_made_more_accurate_once(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever comes second finds it done, whatever was quoted, and pays for something else."""
    first = bars(ws, 100).ask()
    stale = ws._service.owned.refinable("people", 1, bars_axes(ws))
    assert [release.number for release in stale] == [first.number]
    bars(ws, 50).ask()
    assert first.number not in ws._service.ledger.refined([]) | {0}
    assert ws._service.ledger.refined([first.number]) == {first.number}
    calls = []

    def once_stale(self: object, *about: object) -> list[object]:
        calls.append(about)
        return list(stale) if len(calls) == 1 else []

    monkeypatch.setattr(type(ws._service.owned), "refinable", once_stale)
    answer = bars(ws, 40).ask()
    assert len(calls) == 2, "it was planned anew"
    assert float(answer.receipt.cost) == pytest.approx(0.2387 * 50 / 40, rel=0.02), "from scratch"
    assert not ws.audit().problems


def bars_axes(ws: Workspace) -> tuple[object, ...]:
    task = ws._service.plan(bars(ws, 100).request())
    return task.problem.cells.axes  # type: ignore[no-any-return, attr-defined]


def test_the_ledger_itself_refuses_a_second_refinement(ws: Workspace) -> None:
    first = bars(ws, 100).ask()
    ledger = ws._service.ledger

    def reserve(question: str) -> object:
        return ledger.reserve(
            "people", "ana", bf.Epsilon("0.1"), question, {"mechanism": "x"}, refines=first.number
        )

    charge = reserve("one")
    with pytest.raises(AlreadyRefined, match="made more accurate meanwhile"):
        reserve("two")
    ledger.void(charge)  # type: ignore[arg-type]
    reserve("three")
    assert not ws.audit().problems


def test_two_at_the_same_time_pay_together_what_the_rules_allow(ws: Workspace) -> None:
    """One refines the first answer; the other refines the refined one, or begins anew."""
    first = bars(ws, 100).ask()
    answers: list[bf.Answer] = []
    threads = [
        threading.Thread(target=lambda alpha=alpha: answers.append(bars(ws, alpha).ask()))
        for alpha in (60, 50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 2
    refined = [c for c in ws._service.ledger.charges("people") if c.refines == first.number]
    assert len(refined) <= 1
    assert not ws.audit().problems


def test_a_refinement_that_is_lost_is_not_made_again(ws: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    bars(ws, 100).ask()
    scratch = 2 * float(ws.budget("people").spent)
    with monkeypatch.context() as patched:

        def gone(*args: object, **more: object) -> object:
            raise QueryFailed("The database went away.", fixes=("ask again",))

        patched.setattr(Plan, "refine", gone)
        with pytest.raises(QueryFailed):
            bars(ws, 50).ask()
    again = bars(ws, 50).quote()
    assert again.sharpens is None
    assert float(again.epsilon) == pytest.approx(scratch, rel=0.02)
    assert not ws.audit().problems


def test_other_rows_are_not_refined(ws: Workspace, tmp_path: Path) -> None:
    bars(ws, 100).ask()
    ws["people"].refresh()
    assert bars(ws, 50).quote().sharpens is None


def test_a_table_that_is_not_ours_is_not_refined(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "rows.sqlite") as rows:
        rows.execute("CREATE TABLE people (age INTEGER, pay INTEGER)")
        rows.executemany("INSERT INTO people VALUES (?, ?)", [(i % 100, i) for i in range(500)])
    with bf.open(tmp_path / "work.blowfish") as ws:
        ws.add_dataset("people", tmp_path / "rows.sqlite", domain=DOMAIN, table="people")
        ws.set_budget("people", bf.Epsilon(9))
        ws["people"].publish(bf.Policy.differential_privacy(DOMAIN))
        bars(ws, 100).ask()
        assert bars(ws, 50).quote().sharpens is None


def test_the_refined_release_takes_the_place_of_the_first(ws: Workspace) -> None:
    """Both together are not two measurements: what follows from them is known as well as from the second."""
    bars(ws, 100).ask()
    bars(ws, 50).ask()
    half = ws["people"]["age"].ranges([(0, 49)])
    task = ws._service.plan(half.accurate_to(1_000).request())
    from_stored = ws._service.owned.best("people", 1, task.problem, Accuracy(1_000, 0.05))
    assert from_stored is not None
    assert len(from_stored.combination.releases) == 1


def test_a_free_answer_is_never_worse_than_one_that_is_owned(ws: Workspace) -> None:
    question = ws["people"]["age"].histogram(bins=20)
    fine = question.accurate_to(40).ask()
    for alpha in (41, 200, 1_000):
        quote = question.accurate_to(alpha).quote()
        assert quote.owned
        assert quote.alpha == 40
        assert "within 40 people" in quote.promise
        answer = question.accurate_to(alpha).ask()
        assert answer.number == fine.number
        assert (answer.alpha, answer.receipt.cost) == (40, bf.Epsilon(0))


@pytest.mark.parametrize("less", [{"confidence": 0.8}, {"each": True}])
def test_what_was_bought_for_less_is_not_given_for_more(ws: Workspace, less: dict[str, Any]) -> None:
    """Each bar by itself is less than all of them at once, and so is a smaller confidence."""
    question = ws["people"]["age"].histogram(bins=20)
    bought = question.accurate_to(50, **less).ask()
    assert question.accurate_to(60, **less).ask().number == bought.number
    assert not question.accurate_to(50).quote().owned
    assert question.accurate_to(50).quote().sharpens is not None


def test_what_is_free_is_said_before_anything_is_bought(ws: Workspace) -> None:
    bars(ws, 20).ask()
    quote = ws["people"]["age"].histogram(bins=10).accurate_to(10).quote()
    assert quote.free_now is not None
    assert quote.free_now > 10
    assert f"Free now: ±{quote.free_now:,.4g}." in str(quote)
    free = ws["people"]["age"].histogram(bins=10).accurate_to(np.ceil(quote.free_now)).ask()
    assert not free.receipt.cost


READ_OFF = {
    "top": lambda ds, alpha: ds["age"].top(3, bins=20).accurate_to(2 * alpha),
    "above": lambda ds, alpha: ds["age"].above(50, bins=20).accurate_to(alpha),
    "median": lambda ds, alpha: ds["age"].median(bins=20).accurate_to(alpha),
    "quartiles": lambda ds, alpha: ds["age"].quantiles([0.25, 0.75], bins=20).accurate_to(alpha),
}


@pytest.mark.parametrize("kind", READ_OFF)
def test_what_is_read_from_the_same_counts_is_free(ws: Workspace, kind: str) -> None:
    people, asked = ws["people"], READ_OFF[kind]
    counts = (
        people["age"].histogram(bins=20) if kind in ("top", "above") else people["age"].cumulative(bins=20)
    )
    bought = counts.accurate_to(40).ask()
    closer = asked(people, 39).quote()
    assert not closer.owned
    assert closer.free_now == asked(people, 40).terms.accuracy.alpha
    quote = asked(people, 40).quote()
    assert quote.owned
    assert f"read off answer {bought.number}" in quote.explanation
    answer = asked(people, 60).ask()
    assert not answer.receipt.cost
    assert answer.alpha == asked(people, 40).terms.accuracy.alpha
    assert (answer.raw == bought.raw).all()
    assert ws.budget("people").spent == bought.receipt.epsilon


@pytest.mark.parametrize("kind", ["top", "above", "ranges"])
def test_it_is_free_where_the_noise_is_shared_by_edges(ws: Workspace, kind: str) -> None:
    """Then no rows are stored that others could be combined from; what is promised of the counts is known."""
    people, spread = (
        ws["people"],
        bf.Policy.by_column(DOMAIN, {"age": bf.graphs.Threshold(100, 5)}, hide_presence=True),
    )
    people.publish(spread)
    bars = people["age"].histogram(bins=20)
    coarse = [bars.accurate_to(alpha).using("edge-noise").ask() for alpha in (90, 80, 70, 60, 50)]
    bought = bars.accurate_to(40).using("edge-noise").ask()
    tenths = people["age"].ranges([(first, first + 4) for first in range(0, 100, 5)])
    asked = tenths.accurate_to(40) if kind == "ranges" else READ_OFF[kind](people, 40)
    quote = asked.quote()
    assert quote.owned
    assert f"answer {bought.number}" in quote.explanation or kind == "ranges"
    answer = asked.ask()
    assert not answer.receipt.cost
    assert (answer.raw == bought.raw).all()
    paid = sum((each.receipt.cost for each in (*coarse, bought)), bf.Epsilon(0))
    assert ws.budget("people").spent == people.past(spread).epsilon == paid
    assert not ws.audit().problems


def test_what_is_picked_by_exact_counts_is_exact_however_it_was_asked(ws: Workspace) -> None:
    """The stored answer is given to whoever asks more closely, and says no larger error than that."""
    people = ws["people"]
    people.publish(bf.Policy.by_column(DOMAIN, {"age": bf.graphs.Explicit(100, [])}))
    first = people["age"].top(3, bins=20).accurate_to(30).ask()
    assert first.alpha == 0 and not first.receipt.cost
    people.publish(bf.Policy.differential_privacy(DOMAIN), confirm=True)
    again = people["age"].top(3, bins=20).accurate_to(15)
    assert again.quote().alpha == 0
    assert again.ask().alpha == 0


def test_a_promise_in_one_direction_is_none_in_both(ws: Workspace) -> None:
    """The fullest bins need less than every bin: what was bought for them is not given for all bars."""
    people = ws["people"]
    people["age"].above(50, bins=20).accurate_to(40).ask()
    assert not people["age"].histogram(bins=20).accurate_to(40).quote().owned
    assert people["age"].histogram(bins=20).accurate_to(60).quote().owned


def test_what_is_read_off_keeps_its_promise(ws: Workspace) -> None:
    """How often a quartile is out of its interval that is read off a curve within ±60 at 80 %."""
    people, ages = ws["people"], np.sort(np.arange(ROWS) * 7 % 100)
    true = np.quantile(ages, [0.25, 0.5, 0.75], method="inverted_cdf")
    people.budget.set(1_000)
    wrong, rounds = 0, 15
    for _ in range(rounds):
        people["age"].cumulative(bins=20).accurate_to(60, confidence=0.8).ask()
        read = people["age"].quantiles([0.25, 0.5, 0.75], bins=20).accurate_to(60, confidence=0.8).ask()
        assert not read.receipt.cost
        assert read.low is not None
        assert read.high is not None
        wrong += bool(((true < read.low) | (true > read.high)).any())
        people.refresh()
    assert wrong <= 9  # at 20 % more than 9 of 15 come about once in 9,000 runs
