"""Questions that are settled on together, in a workspace: what they are charged, and what they lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.adapters.store.ledger import Ledger
from blowfishdb.core.errors import BudgetExhausted, MaxCostExceeded, SourceError
from blowfishdb.workspace.embedded import Workspace
from tests.engine.stages import just_before

Opened = Callable[[bf.Domain, bf.Policy, str], Workspace]


@pytest.fixture
def opened(tmp_path: Path) -> Opened:
    """A workspace over a few rows, under a policy and with a budget."""

    def open_with(domain: bf.Domain, policy: bf.Policy, budget: str) -> Workspace:
        place = tmp_path / "rows.duckdb"
        with duckdb.connect(str(place)) as rows:
            rows.execute("CREATE TABLE t AS SELECT i % 7 AS a, i % 3 AS b, i % 5 AS c FROM range(60) t(i)")
        ws = bf.open(tmp_path / "work.blowfish")
        ws.add_dataset("t", place, domain=domain, table="t")
        ws.set_budget("t", bf.Epsilon(budget))
        ws["t"].publish(policy)
        return ws

    return open_with


def test_a_row_that_one_column_drops_still_counts_in_another(opened: Opened) -> None:
    domain = bf.Domain(a=bf.Integer(0, 4, outside="drop"), b=bf.Integer(0, 2, outside="drop"))
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(5, 1)})
    with opened(domain, policy, "10") as ws:
        a, b = ws["t"]["a"].cumulative(), ws["t"]["b"].histogram()
        ws.batch(*(question.spend("0.5").using("laplace") for question in (a, b))).ask()
        assert ws.budget("t").spent == bf.Epsilon(1)
        assert ws["t"].past(policy).epsilon == bf.Epsilon(1)


def test_a_column_that_only_a_condition_names_drops_rows_too(opened: Opened) -> None:
    domain = bf.Domain(
        a=bf.Integer(0, 4, outside="drop"), b=bf.Integer(0, 2, outside="drop"), c=bf.Integer(0, 4)
    )
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Explicit(5, ()), "c": bf.graphs.Explicit(5, ())})
    with opened(domain, policy, "10") as ws:
        some = ws["t"].where(bf.col("a") >= 2)["c"].histogram()  # neither a nor c moves, but rows are dropped
        b = ws["t"]["b"].histogram()
        ws.batch(*(question.spend("1").using("laplace") for question in (some, b))).ask()
        assert ws.budget("t").spent == bf.Epsilon(2)


def test_nothing_is_cheaper_in_a_batch_than_it_can_be(opened: Opened) -> None:
    """Without a single edge, a dropped row still comes and goes: refused alone, refused in a batch."""
    domain = bf.Domain(a=bf.Integer(0, 4, outside="drop"), b=bf.Integer(0, 2, outside="drop"))
    policy = bf.Policy.by_column(domain, {name: bf.graphs.Explicit(domain[name].size, ()) for name in "ab"})
    with opened(domain, policy, "1") as ws:
        question = ws["t"]["a"].histogram().spend("50")
        with pytest.raises(BudgetExhausted):
            question.ask()
        with pytest.raises(BudgetExhausted):
            ws.batch(question).ask()
        assert not ws.budget("t").spent


def test_a_plan_costs_no_more_than_asking_one_after_the_other(opened: Opened) -> None:
    """A release that only others could use is not made in place of a cheaper one that none can."""
    domain = bf.Domain(a=bf.Integer(0, 199_999))
    policy = bf.Policy.differential_privacy(domain)
    starts = [0, 13_600, 24_400, 31_200, 37_600, 44_000, 51_200, 60_000, 72_800, 94_400]
    tenths = list(zip(starts, [start - 1 for start in (*starts[1:], 200_000)], strict=True))
    halves = [(94_400, 147_199), (147_200, 199_999)]
    with opened(domain, policy, "10") as ws:
        a = ws["t"]["a"]
        questions = (
            a.ranges(tenths).accurate_to(100),
            a.ranges(halves).accurate_to(100),
            a.histogram(edges=starts).accurate_to(200),
        )
        planned = ws.plan(*questions).quote()
        assert planned <= sum((question.ask().receipt.cost for question in questions), bf.Epsilon(0))


def test_rows_that_may_change_in_between_share_no_cost(opened: Opened) -> None:
    """Someone may be at one end of a line in the first answer and at the other end in the second."""
    domain = bf.Domain(a=bf.Integer(0, 6))
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(7, 1)})
    with opened(domain, policy, "10") as ws:
        ws.add_dataset("now", ws["t"].source.location, domain=domain, table="t", kind="live", same_rows=True)
        ws["now"].publish(policy)
        for name, lost in (("t", "0.5"), ("now", "1")):
            ends = ([(0, 0), (0, 1)], [(0, 4), (0, 5)])
            questions = [ws[name]["a"].ranges(bounds).spend("0.5").using("laplace") for bounds in ends]
            ws.batch(*questions).ask()
            assert ws.budget(name).spent == bf.Epsilon(lost) == ws[name].past(policy).epsilon


LINE = bf.Domain(a=bf.Integer(0, 6), b=bf.Integer(0, 2), c=bf.Integer(0, 4))
NEIGHBOURS = bf.Policy.by_column(LINE, {"a": bf.graphs.Threshold(7, 1)})


def test_questions_that_share_a_column_share_a_release(opened: Opened) -> None:
    with opened(LINE, NEIGHBOURS, "10") as ws:
        a = ws["t"]["a"]
        bars, curve = a.histogram().accurate_to(8), a.cumulative().accurate_to(8)
        alone = bars.quote().epsilon + curve.quote().epsilon
        both = ws.plan(bars, curve)
        quotes = both.quotes()
        assert quotes.alone == alone and quotes.epsilon == both.quote() < alone
        assert f"instead of ε {alone:.3g} one by one" in str(quotes)
        assert sorted(bool(part.epsilon) for part in quotes.parts) == [False, True]
        assert not ws.budget("t").spent and ws.answers() == []  # so far it was for nothing
        shown = both.ask(max_cost=quotes.epsilon)
        assert ws.budget("t").spent == quotes.epsilon == ws["t"].past(NEIGHBOURS).epsilon
        assert [answer.kind for answer in shown] == ["histogram", "cumulative"]
        assert (np.abs(np.cumsum(shown[0].raw) - shown[1].raw) < 1e-6).all()  # they agree, to the last digit
        assert [answer.receipt.cost for answer in both.ask(max_cost=0)] == [bf.Epsilon(0)] * 2
        assert ws.verify() == []


@pytest.mark.thorough
def test_planned_answers_keep_their_promise(opened: Opened) -> None:
    """How often a bar or a point of the curve is out of its interval, each bought together, 60 times."""
    truth = np.bincount(np.arange(60) % 7)
    with opened(LINE, NEIGHBOURS, "1000") as ws:
        a, missed = ws["t"]["a"], 0
        for run in range(60):
            alpha, confidence = 8 + run / 1000, 0.8
            asked = (q.accurate_to(alpha, confidence=confidence) for q in (a.histogram(), a.cumulative()))
            for answer, true in zip(ws.plan(*asked).ask(), (truth, np.cumsum(truth)), strict=True):
                assert answer.alpha is not None and answer.alpha <= alpha
                assert answer.low is not None and answer.high is not None
                missed += bool(((true < answer.low) | (true > answer.high)).any())
            ws["t"].refresh()
        assert missed <= 120 * 0.2 + 3 * np.sqrt(120 * 0.16)


def test_a_plan_is_charged_as_a_whole_or_not_at_all(opened: Opened) -> None:
    """Between the price and the charge the budget shrinks: nothing of it is charged."""
    with opened(LINE, NEIGHBOURS, "10") as ws:
        t = ws["t"]
        several = ws.plan(t["a"].histogram().accurate_to(8), t["b"].histogram().accurate_to(8))
        dearest = max(part.epsilon for part in several.quotes().parts)
        shrinks = just_before(Ledger, "reserve_all", lambda: ws.set_budget("t", dearest))
        with shrinks, pytest.raises(BudgetExhausted):
            several.ask()
        assert not ws.budget("t").spent and not ws.budget("t").held and ws.answers() == []


def test_what_was_not_read_when_a_plan_fails_is_given_back(opened: Opened) -> None:
    with opened(LINE, NEIGHBOURS, "10") as ws:
        t, calls = ws["t"], list[int]()
        count = Prepared.count

        def fails_once(self: Prepared, cancel: object) -> object:
            calls.append(1)
            if len(calls) == 2:
                raise SourceError("The database has gone away.")
            return count(self, cancel)  # type: ignore[arg-type]

        questions = [t[name].histogram().spend("0.5").using("laplace") for name in "abc"]
        with pytest.MonkeyPatch.context() as patch, pytest.raises(SourceError) as refused:
            patch.setattr(Prepared, "count", fails_once)
            ws.plan(*questions).ask()
        assert refused.value.charged
        states = [charge.state.value for charge in ws._ledger.charges("t")]
        assert states == ["settled", "lost", "void"]
        assert ws.budget("t").spent == bf.Epsilon(1) and not ws.budget("t").held
        assert ws.verify() == []


def test_beside_an_earlier_promise_the_most_is_quoted_and_limited(opened: Opened) -> None:
    """What is free under the policy of today loses under the earlier one, and is charged with the rest."""
    domain = bf.Domain(a=bf.Integer(0, 6), b=bf.Integer(0, 2))
    near = {"a": bf.graphs.Threshold(7, 1), "b": bf.graphs.Explicit(3, ())}
    with opened(domain, bf.Policy.differential_privacy(domain), "2") as ws:
        ws["t"]["a"].histogram().spend("0.1").ask()
        ws["t"].publish(bf.Policy.by_column(domain, near), confirm=True)
        both = ws.plan(ws["t"]["a"].cumulative().spend("0.3"), ws["t"]["b"].histogram().spend("0.2"))
        quotes = both.quotes()
        assert quotes.epsilon < quotes.most <= bf.Epsilon("0.5")
        assert "Under earlier promises that are kept it costs up to ε 0." in quotes.sentence
        with pytest.raises(MaxCostExceeded):
            both.ask(max_cost=quotes.epsilon)
        before = ws["t"].kept[0].remaining
        both.ask(max_cost=quotes.most)
        assert before - ws["t"].kept[0].remaining == quotes.most
        assert ws.verify() == []


def test_a_histogram_in_groups_is_suggested_for_several_conditions(opened: Opened) -> None:
    """And all of them cost what is said once it is planned with them; without a gain nothing is said."""
    domain = bf.Domain(a=bf.Integer(0, 6), b=bf.Integer(0, 2), c=bf.Integer(0, 4))
    near = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(7, 1), "c": bf.graphs.Threshold(5, 1)})
    with opened(domain, near, "10") as ws:
        pairs = ([0, 1], [1, 2], [0, 2])  # of parts that overlap each loses wherever a row of both moves
        parts = [ws["t"].where(bf.col("b").isin(pair))["a"].histogram().accurate_to(9) for pair in pairs]
        quotes = ws.plan(*parts).quotes()
        assert quotes.wider is not None and quotes.wider.words in str(quotes)
        grouped = ws["t"].question(quotes.wider.question).accurate_to(quotes.wider.alpha)
        more = ws.plan(*parts, grouped)
        assert more.quotes().most == quotes.wider.epsilon < quotes.most
        assert more.quotes().wider is None
        assert [answer.alpha <= 9 for answer in more.ask()] == [True] * 4
        assert ws.plan(*parts[:1], ws["t"]["c"].histogram().accurate_to(9)).quotes().wider is None


@pytest.mark.parametrize("form", ["cumulative", "median"])
def test_curves_of_parts_cost_together_what_one_question_in_groups_would(opened: Opened, form: str) -> None:
    """Who passes from one part to the other loses half in each, so nothing needs to be suggested."""
    domain = bf.Domain(a=bf.Integer(0, 49), b=bf.Integer(0, 1))
    policy = bf.Policy.differential_privacy(domain)
    with opened(domain, policy, "10") as ws:
        first, second = (ws["t"].where(bf.col("b") == value)["a"] for value in range(2))
        parts = getattr(first, form)().accurate_to(40), second.cumulative().accurate_to(40)
        alone = sum((part.quote().epsilon for part in parts), bf.Epsilon(0))
        grouped = ws["t"].by("b").cumulative("a").accurate_to(40).quote()
        quotes = ws.plan(*parts).quotes()
        assert quotes.wider is None
        assert quotes.most <= grouped.epsilon and quotes.most.fraction < 0.7 * alone.fraction
        answers = ws.plan(*parts).ask(max_cost=quotes.most)
        assert all(answer.alpha is not None and answer.alpha <= 40 for answer in answers)
        assert ws["t"].past(policy).epsilon == ws.budget("t").spent == quotes.most
        assert ws.verify() == []


@pytest.mark.parametrize("presence", [False, True])
def test_ranges_that_overlap_are_asked_as_one(opened: Opened, presence: bool) -> None:
    """Also where the best noise is that of edges, of which no rows can be stored."""
    domain = bf.Domain(a=bf.Integer(0, 99))
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(100, 2)}, hide_presence=presence)
    with opened(domain, policy, "10") as ws:
        a = ws["t"]["a"]
        questions = (
            a.histogram(bins=5).accurate_to(20),
            a.ranges([(80, 89), (90, 99)]).accurate_to(20),
            a.histogram(bins=5).accurate_to(40),
            a.above(3, bins=5).accurate_to(40),
        )
        alone = sum((question.quote().epsilon for question in questions[:2]), bf.Epsilon(0))
        plan = ws.plan(*questions)
        quoted = plan.quote()
        assert quoted.fraction < 0.8 * alone.fraction
        bars, halves, *others = plan.ask(max_cost=quoted)
        assert sum(answer.receipt.cost > bf.Epsilon(0) for answer in (bars, halves, *others)) == 1
        assert bars.raw[4] == pytest.approx(halves.raw.sum())  # read from the same counts
        assert (others[0].raw == bars.raw).all() and (others[1].raw == bars.raw).all()
        assert ws["t"].past(policy).epsilon == ws.budget("t").spent == quoted
        assert a.ranges([(80, 89), (90, 99)]).accurate_to(25).quote().epsilon == bf.Epsilon(0)
        assert ws.verify() == []


@pytest.mark.parametrize("presence", [False, True])
def test_answers_that_were_asked_as_one_keep_their_promise(opened: Opened, presence: bool) -> None:
    """How often a bar or a range is out of its interval, 60 times over."""
    domain = bf.Domain(a=bf.Integer(0, 9))
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(10, 1)}, hide_presence=presence)
    values = np.bincount(np.arange(60) % 7, minlength=10)
    truths = values.reshape(5, 2).sum(axis=1), values[6:8]
    with opened(domain, policy, "1000") as ws:
        a, missed = ws["t"]["a"], 0
        for run in range(60):
            terms = {"alpha": 8 + run / 1000, "confidence": 0.8}
            asked = a.histogram(bins=5).accurate_to(**terms), a.ranges([(6, 6), (7, 7)]).accurate_to(**terms)
            answers = ws.plan(*asked).ask()
            assert sum(bool(answer.receipt.cost) for answer in answers) == 1
            for answer, true in zip(answers, truths, strict=True):
                assert answer.low is not None and answer.high is not None
                missed += bool(((true < answer.low) | (true > answer.high)).any())
            ws["t"].refresh()
        assert missed <= 120 * 0.2 + 3 * np.sqrt(120 * 0.16)


def test_parts_that_state_an_epsilon_are_planned_and_none_in_groups_is_suggested(opened: Opened) -> None:
    """There is no error that one in groups could keep."""
    domain = bf.Domain(a=bf.Integer(0, 6), b=bf.Integer(0, 2))
    near = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(7, 1)})
    with opened(domain, near, "10") as ws:
        parts = [ws["t"].where(bf.col("b") == value)["a"].histogram().spend(1) for value in range(2)]
        quotes = ws.plan(*parts).quotes()
        assert quotes.wider is None and quotes.most.fraction > 0


def test_what_has_too_many_boxes_is_not_suggested(opened: Opened) -> None:
    domain = bf.Domain(a=bf.Integer(0, 299), b=bf.Integer(0, 2))
    near = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(300, 1)})
    with opened(domain, near, "10") as ws:
        some = [ws["t"].where(bf.col("b") == value)["a"].histogram().accurate_to(99) for value in range(3)]
        assert ws.plan(*some).quotes().wider is None


def test_two_parts_of_the_rows_lose_together_what_one_of_them_does(opened: Opened) -> None:
    """With noise on every count a row that goes from one part to the other loses half of ε in each."""
    domain = bf.Domain(a=bf.Integer(0, 6), b=bf.Integer(0, 2), c=bf.Integer(0, 4))
    near = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(7, 1)})
    with opened(domain, near, "10") as ws:
        rows = (ws["t"].where(bf.col("c") < 2), ws["t"].where(bf.col("c") >= 2))
        parts = [some["a"].histogram().accurate_to(40) for some in rows]
        counts = parts[0].using("laplace").quote().epsilon
        plan = ws.plan(*parts, ws["t"]["a"].histogram().accurate_to(90))
        assert plan.quote() <= counts  # each of them alone costs about as much
        assert all(part.quote().epsilon.fraction > 0.8 * counts.fraction for part in parts)
        answers = plan.ask()
        assert all(answer.alpha <= most for answer, most in zip(answers, (40, 40, 90), strict=True))
        assert ws["t"].past(near).epsilon <= ws.budget("t").spent <= counts
        assert ws.verify() == []


@pytest.mark.parametrize("alphas", [(30, 10, 20), (10, 10, 30), (10, 30, 10)])
def test_what_is_read_from_the_closest_counts_is_not_made(opened: Opened, alphas: tuple[int, ...]) -> None:
    """Noise that edges share is in no release that others follow from, and need not be."""
    domain = bf.Domain(a=bf.Integer(0, 6), b=bf.Integer(0, 2))
    policy = bf.Policy.by_column(domain, {"a": bf.graphs.Threshold(7, 1)}, hide_presence=True)
    with opened(domain, policy, "10") as ws:
        asked = [ws["t"]["a"].histogram().accurate_to(alpha) for alpha in alphas]
        asked.append(ws["t"]["a"].above(3).accurate_to(max(alphas)))
        closest = ws["t"]["a"].histogram().accurate_to(min(alphas)).quote()
        assert closest.mechanism == "Edge noise"
        plan = ws.plan(*asked)
        quotes = plan.quotes()
        assert quotes.epsilon == closest.epsilon
        assert sum(part.how == "follows from the others" for part in quotes.parts) == len(asked) - 1
        answers = plan.ask()
        assert ws.budget("t").spent == closest.epsilon
        made = next(answer for answer in answers if answer.receipt.cost)
        for answer, question in zip(answers, asked, strict=True):
            assert answer.alpha <= question.terms.accuracy.alpha
            assert (answer.raw == made.raw).all()
        assert ws.verify() == []


def test_what_follows_from_others_is_read_like_what_is_made(opened: Opened) -> None:
    """The bars follow from the curve, and coarser ones from the bars: neither has a release."""
    with opened(LINE, NEIGHBOURS, "10") as ws:
        bars, curve = ws["t"]["a"].histogram(), ws["t"]["a"].cumulative().accurate_to(8)
        asked = (bars.accurate_to(8), curve, bars.accurate_to(12), bars.accurate_to(8, confidence=0.9))
        before = ws.plan(*asked[:2]).quote()
        plan = ws.plan(*asked)
        assert plan.quote() <= before
        answers = plan.ask(max_cost=before)
        assert ws.budget("t").spent <= before
        assert [answer.alpha <= most for answer, most in zip(answers, (8, 8, 12, 8), strict=True)] == [
            True
        ] * 4
        assert ws.verify() == []


def test_what_is_free_stays_free_whatever_is_made_beside_it(opened: Opened) -> None:
    """One more release to choose among makes intervals wider: who was told a price before pays no more."""
    domain = bf.Domain(a=bf.Integer(0, 2, missing="drop"))
    with opened(domain, bf.Policy.differential_privacy(domain), "10") as ws:
        a = ws["t"]["a"]
        a.top(1).accurate_to(8.5, confidence=0.9).ask()
        free = a.histogram(width=2).accurate_to(8.5, confidence=0.9)
        several, before = ws.batch(a.histogram().spend("0.3"), free), ws.budget("t").spent
        assert not free.quote().most and several.quote() == bf.Epsilon("0.3")
        several.ask()
        assert ws.budget("t").spent - before == bf.Epsilon("0.3")


def test_an_answer_that_was_out_before_is_not_planned_with_what_is_asked_beside_it(opened: Opened) -> None:
    """Whoever has seen it may ask because of it, again beside it or not."""
    domain = bf.Domain(a=bf.Integer(0, 6))
    with opened(domain, bf.Policy.differential_privacy(domain), "10") as ws:
        seen = ws["t"]["a"].histogram().accurate_to(8)
        seen.ask()
        first, last = (ws["t"]["a"].ranges([ends]).accurate_to(30) for ends in ((0, 2), (4, 6)))
        alone, (_, beside) = first.ask(), ws.batch(seen, last).ask()
        assert alone.receipt.cost == beside.receipt.cost == bf.Epsilon(0)
        assert beside.alpha == pytest.approx(alone.alpha)
