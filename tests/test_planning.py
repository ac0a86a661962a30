"""What is computed before a row is read: prices, advice, explanations, trade-offs; and the curator's view."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import blowfishdb as bf
from blowfishdb.adapters.backends.base import Prepared
from blowfishdb.core.budget import Epsilon
from blowfishdb.mechanisms import DATA_DEPENDENT, NAMED
from blowfishdb.messages.answers import Answer
from blowfishdb.messages.questions import Terms
from blowfishdb.messages.quotes import Quote, Tradeoff
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

PACKAGE = Path(__file__).parent.parent / "src" / "blowfishdb"
DOMAIN = bf.Domain(salary=bf.Integer(0, 99_999), region=bf.Category(["north", "south"]))
SALARIES = np.random.default_rng(8).gamma(4, 12_000, size=5_000).clip(0, 99_999).astype(int)
ROWS = pa.table({"salary": SALARIES, "region": ["north", "south"] * 2_500})


@pytest.fixture
def people(tmp_path: Path) -> Iterator[Dataset]:
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("people", ROWS, domain=DOMAIN)
        dataset.publish(bf.Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(100_000, 1_000)}))
        yield dataset


@pytest.fixture
def untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prepared, "count", lambda *_: pytest.fail("the data was touched"))


class TestAdvice:
    def test_a_quote_names_something_cheaper(self, people: Dataset, untouched: None) -> None:
        asking = people["salary"].cumulative(bins=20)
        quote = asking.accurate_to(50).quote()
        (alternative,) = quote.alternatives
        assert alternative.alpha == 100
        assert alternative.epsilon == asking.accurate_to(100).quote().epsilon < quote.epsilon

    def test_what_is_free_or_priced_by_epsilon_has_no_alternative(self, people: Dataset) -> None:
        assert people.count().accurate_to(5).quote().alternatives == ()
        assert people["salary"].histogram(bins=5).spend("0.1").quote().alternatives == ()

    def test_a_refusal_says_what_fits_and_it_does(self, people: Dataset) -> None:
        people.budget.set("0.3")
        asking = people["salary"].cumulative(bins=100)
        with pytest.raises(bf.errors.BudgetExhausted) as refused:
            asking.accurate_to(20).ask()
        error, bins = refused.value.fixes[0], refused.value.fixes[1]
        assert error.startswith("±") and bins.endswith(" bins") and not refused.value.charged
        assert asking.accurate_to(float(error[1:].replace(",", ""))).quote().epsilon <= Epsilon("0.3")
        coarser = people["salary"].cumulative(bins=int(bins.split()[0])).accurate_to(20)
        assert coarser.quote().epsilon <= Epsilon("0.3")

    def test_a_refusal_by_epsilon(self, people: Dataset) -> None:
        people.budget.set("0.05")
        with pytest.raises(bf.errors.BudgetExhausted) as refused:
            people["salary"].histogram(bins=5).spend("0.1").ask()
        assert refused.value.fixes[0] == "epsilon 0.05"

    def test_a_grant_limits_what_a_quote_calls_left(self, people: Dataset) -> None:
        people.budget.grant("ana", "0.3")
        quote = people["salary"].cumulative(bins=20).accurate_to(50).quote()
        assert quote.remaining == Epsilon("0.3") == people.gateway.left("people")


class TestExplanation:
    def test_the_steps_are_named(self, people: Dataset, untouched: None) -> None:
        found = people.explain(people["salary"].cumulative(bins=20).accurate_to(50))
        assert found.cells == (20,) and found.answers == 20 and found.columns == ("salary",)
        assert found.sensitivity == "1" and found.hidden_pairs == 19
        assert found.mechanism in str(found) and "pairs of boxes" in str(found)
        assert json.loads(json.dumps(found.to_plain()))["epsilon"] == found.epsilon

    @pytest.mark.parametrize("presence", [False, True])
    def test_the_witness_reaches_the_sensitivity(self, people: Dataset, presence: bool) -> None:
        graph = bf.graphs.Threshold(100_000, 25_000)
        people.publish(bf.Policy.by_column(DOMAIN, {"salary": graph}, hide_presence=presence))
        asking = people["salary"].cumulative(bins=10).accurate_to(50)
        found = people.explain(asking)
        assert found.witness is not None
        labels = [f"{10_000 * i:,}–{10_000 * i + 9_999:,}".replace("0–9,999", "0–9,999") for i in range(10)]
        places = [labels.index(w) if w in labels else None for w in found.witness]
        if presence:  # leaving the data from the lowest bin changes all ten answers
            assert found.sensitivity == "10" and "in the data" in found.witness and 0 in places
        else:
            assert found.sensitivity == "3" and abs(places[0] - places[1]) == 3


class TestTradeoff:
    def test_cost_grows_with_protection_and_free_gains_are_marked(
        self, people: Dataset, untouched: None
    ) -> None:
        asking = people["salary"].cumulative(bins=20).accurate_to(50)
        steps: list[tuple[int, int]] = []
        found = people.tradeoff(
            asking,
            thresholds=[1_000, 5_000, 10_000, 50_000],
            progress=lambda done, of: steps.append((done, of)),
        )
        costs = [point.epsilon for point in found.points]
        assert costs == sorted(costs) and costs[-1] > costs[0]
        assert costs[0] == asking.quote().epsilon
        assert found.free_gain == (0, 1) and "within 5000" in found.sentence
        assert [point.theta for point in found.points] == [1_000, 5_000, 10_000, 50_000]
        assert steps == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]
        errors = [point.alpha for point in found.points]
        assert errors == sorted(errors) and errors[0] <= 50.5
        assert Tradeoff.from_plain(json.loads(json.dumps(found.to_plain()))) == found

    def test_any_policies_and_a_fixed_price(self, people: Dataset) -> None:
        plain, line = bf.Policy.differential_privacy(DOMAIN), people.policy
        found = people.tradeoff(people["salary"].cumulative(bins=20).spend("0.2"), [line, plain])
        assert found.fixed_epsilon == Epsilon("0.2") and found.asked_alpha is None
        assert found.points[0].alpha < found.points[1].alpha
        assert found.points[0].epsilon == found.points[1].epsilon == Epsilon("0.2")

    def test_no_policy(self, people: Dataset) -> None:
        with pytest.raises(bf.errors.InvalidInput, match="at least one"):
            people.tradeoff(people["salary"].sum().accurate_to(1_000), [])


class TestPreview:
    def test_the_curator_sees_both_and_nothing_is_charged(self, people: Dataset) -> None:
        asking = people["salary"].histogram(bins=10).accurate_to(50)
        seen = people.preview(asking)
        truth = np.bincount(SALARIES // 10_000, minlength=10)
        assert seen.truth.values.tolist() == truth.tolist() and not seen.stand_in
        assert np.abs(seen.noisy.raw - truth).max() <= 200 and (seen.noisy.raw != truth).any()
        assert not people.budget.status.spent and people.gateway.answers() == []
        assert [event.kind for event in people.gateway.events("people")][-1] == "preview"
        assert people.gateway.verify() == [] and "TRUE DATA" in seen.to_plain()["watermark"]

    def test_a_draft_policy_and_made_up_rows(self, people: Dataset) -> None:
        asking = people["salary"].cumulative(bins=10).accurate_to(50)
        drafted = people.preview(asking, policy=bf.Policy.differential_privacy(DOMAIN), stand_in=True)
        assert drafted.stand_in and drafted.truth.values[-1] == pytest.approx(10_000, abs=10)
        assert drafted.noisy.receipt.epsilon > asking.quote().epsilon
        assert "preview" not in [event.kind for event in people.gateway.events()]

    def test_only_the_curators_views_see_true_answers(self) -> None:
        importing = [
            path.name
            for path in PACKAGE.rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom) and node.module == "blowfishdb.mechanisms.curator_view"
        ]
        assert sorted(importing) == ["curator.py", "synthesis_view.py"]


class TestTerms:
    def test_they_travel(self) -> None:
        for terms in (
            Terms().accurate_to(7.5, confidence=0.99, each=True),
            Terms().spending("0.1"),
            replace(Terms().accurate_to(3), mechanism="laplace"),
        ):
            assert Terms.from_plain(json.loads(json.dumps(terms.to_plain()))) == terms

    @pytest.mark.parametrize(
        "said",
        [{"error": 5, "epsilon": 1}, {"error": 5, "confidence": "x"}, {"error": -1}, {"epsilon": "no"}],
    )
    def test_what_makes_no_sense_is_refused(self, said: dict[str, object]) -> None:
        with pytest.raises(bf.errors.InvalidInput):
            Terms.from_plain(said)

    def test_a_quote_travels(self, people: Dataset) -> None:
        quote = people["salary"].cumulative(bins=20).accurate_to(50).quote()
        assert Quote.from_plain(json.loads(json.dumps(quote.to_plain()))) == quote

    def test_a_mechanism_can_be_asked_for(self, people: Dataset) -> None:
        asking = people["salary"].cumulative(bins=20).accurate_to(50)
        cheapest = asking.quote()
        hierarchical = asking.using("hierarchical")
        assert hierarchical.quote().epsilon > cheapest.epsilon
        assert hierarchical.ask().receipt.mechanism != cheapest.mechanism
        with pytest.raises(bf.errors.InvalidInput, match="no mechanism 'magic'") as refused:
            asking.using("magic").quote()
        assert refused.value.fixes == (*NAMED, *DATA_DEPENDENT)


class TestBatch:
    def test_what_follows_from_the_others_is_free_and_closer(self, people: Dataset) -> None:
        fine = people["salary"].histogram(bins=20).accurate_to(30)
        total = people["salary"].ranges([(0, 49_999)]).accurate_to(20)
        together = people.gateway.batch(total, fine)
        quotes = together.quotes()
        assert quotes.alone == total.quote().epsilon + fine.quote().epsilon
        assert together.quote() == quotes.epsilon == fine.quote().epsilon < quotes.alone
        half, bars = together.ask(max_cost=quotes.epsilon)
        assert isinstance(half, Answer) and half.interval == "planned" and not half.receipt.cost
        assert people.budget.status.spent == bars.receipt.epsilon == quotes.epsilon
        assert half.values[0] == pytest.approx(bars.raw[:10].sum(), abs=1e-3)

    def test_a_question_chosen_afterwards_is_known_less_closely(self, people: Dataset) -> None:
        people["salary"].histogram(bins=20).accurate_to(30).ask()
        later = people["salary"].ranges([(0, 49_999)])
        assert not later.accurate_to(20).quote().owned  # the same arithmetic, but chosen after looking
        assert later.accurate_to(400).ask().interval == "any"

    def test_too_dear_as_a_whole_is_refused_before_anything_is_asked(self, people: Dataset) -> None:
        fine = people["salary"].histogram(bins=20).accurate_to(30)
        regions = people["region"].histogram().accurate_to(10)
        with pytest.raises(bf.errors.MaxCostExceeded):
            people.gateway.batch(fine, regions).ask(max_cost=fine.quote().epsilon)
        people.budget.set(fine.quote().epsilon)
        with pytest.raises(bf.errors.BudgetExhausted, match="may need"):
            people.gateway.batch(fine, regions).ask()
        assert not people.budget.status.spent and people.gateway.answers() == []
        with pytest.raises(bf.errors.InvalidInput):
            people.gateway.batch()


class TestPolicies:
    def test_a_change_after_spending_needs_a_word_and_is_on_record(self, people: Dataset) -> None:
        people["salary"].cumulative(bins=20).accurate_to(50).ask()
        plain = bf.Policy.differential_privacy(DOMAIN)
        with pytest.raises(bf.errors.PolicyConflict, match="already given") as refused:
            people.publish(plain)
        assert "confirm=True" in str(refused.value)
        assert people.gateway.facts("people").policy_version == 2
        people.publish(plain, confirm=True)
        assert people.gateway.facts("people").policy_version == 3
        event = people.gateway.events("people")[-1]
        assert event.kind == "policy" and event.facts["confirmed"] and event.facts["difference"]
        assert event.facts["spent_before"] == str(people.budget.status.spent)
        assert people.gateway.verify() == []

    def test_drafts_are_kept_and_bind_nobody(self, people: Dataset) -> None:
        plain = bf.Policy.differential_privacy(DOMAIN)
        before = people["salary"].cumulative(bins=20).accurate_to(50).quote()
        people.gateway.save_draft("people", plain)
        assert people.gateway.draft("people").graph == plain.graph
        assert people["salary"].cumulative(bins=20).accurate_to(50).quote() == before
        with pytest.raises(bf.errors.PolicyConflict):
            people.gateway.save_draft("people", bf.Policy.differential_privacy(bf.Domain(x=bf.Boolean())))

    def test_one_column_changes_and_the_others_stay(self, people: Dataset) -> None:
        wider = people.hiding_within("salary", 50_000)
        assert wider.graph.has_edge(0, 2 * 50_000) and not wider.graph.has_edge(0, 2 * 50_001)
        both = wider.graph.has_edge(0, 1)  # only the region differs
        assert both and wider.domain == DOMAIN

    def test_declaring_anew_before_the_first_question(self, people: Dataset) -> None:
        people.declare(salary=bf.Integer(0, 149_999))
        assert people.schema["salary"].size == 150_000 and people.schema["region"].size == 2
        assert isinstance(people.policy.graph, bf.graphs.Full)
        people["salary"].histogram(bins=3).accurate_to(100).ask()
        with pytest.raises(bf.errors.PolicyConflict, match="already asked"):
            people.declare(salary=bf.Integer(0, 9))

    def test_the_guarantee_is_in_words(self, people: Dataset) -> None:
        assert "73 %" in str(people.guarantee())


def test_one_workspace_in_several_names(people: Dataset) -> None:
    bo = people.gateway.as_user("bo")
    answer = bo["people"]["salary"].histogram(bins=4).accurate_to(100).ask()
    assert answer.receipt.user == "bo" and people.gateway.user == "ana"
    assert people.gateway.answer(answer.number).values.tolist() == answer.values.tolist()
    with pytest.raises(bf.errors.InvalidInput, match="no answer number"):
        people.gateway.answer(10_000)


def test_backup_restore_and_delete(people: Dataset, tmp_path: Path) -> None:
    answer = people["salary"].histogram(bins=4).accurate_to(100).ask()
    people.gateway.backup(tmp_path / "copy.blowfish")
    bf.restore(tmp_path / "copy.blowfish", tmp_path / "again.blowfish")
    with bf.open(tmp_path / "again.blowfish") as again:
        assert again.answer(answer.number).values.tolist() == answer.values.tolist()
    bf.delete(tmp_path / "again.blowfish")
    assert not (tmp_path / "again.blowfish").exists()


class TestWhatIsCombined:
    """Combining releases must never take longer than a quote may: too fine a meeting of boxes is left out."""

    @pytest.fixture
    def people(self, tmp_path: Path) -> Iterator[Dataset]:
        domain = bf.Domain(salary=bf.Integer(0, 99_999), age=bf.Integer(0, 99))
        rows = pa.table({"salary": SALARIES, "age": SALARIES % 100})
        with Workspace(tmp_path / "combined.blowfish", user="ana") as workspace:
            dataset = workspace.add_dataset("people", rows, domain=domain)
            dataset.budget.set(100)
            yield dataset

    def combined(self, people: Dataset, question: str) -> list[int]:
        service = people.gateway._service
        axes = service.plan(people.question(question).accurate_to(500).request()).problem.cells.axes
        owned = service.owned
        return list(owned._choice(owned._index("people").snapshots[1], question, axes).numbers)

    def test_a_fine_release_on_another_column_is_left_out(self, people: Dataset) -> None:
        fine = people["salary"].histogram(bins=5_000).accurate_to(50).ask().number
        coarse = people["salary"].histogram(bins=50).accurate_to(20).ask().number
        assert self.combined(people, "histogram(salary, bins=25)") == [fine, coarse]
        assert self.combined(people, "histogram(age)") == []
        assert self.combined(people, "histogram(salary, bins=10) where age >= 50") == [coarse]

    def test_releases_on_more_columns_serve_where_there_are_none_on_its_own(self, people: Dataset) -> None:
        both = people.question("histogram(salary(bins=10), age(bins=5))").accurate_to(50).ask().number
        assert self.combined(people, "histogram(age, bins=5)") == [both]
        alone = people["age"].histogram(bins=5).accurate_to(9).ask().number
        assert self.combined(people, "histogram(age, bins=5)") == [alone]
