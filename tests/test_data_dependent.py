"""Questions by ε to mechanisms whose error depends on the data: no promise, and no interval anywhere."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blowfishdb as bf
from blowfishdb.core.accuracy import NO_PROMISE
from blowfishdb.core.budget import Epsilon
from blowfishdb.mechanisms import DATA_DEPENDENT, NAMED
from blowfishdb.messages.answers import Answer, compare
from blowfishdb.messages.quotes import Quote
from blowfishdb.service.curator import preview
from blowfishdb.show.charts import (
    answer_chart,
    comparison_chart,
    preview_chart,
)
from blowfishdb.show.exports import FORMATS, export
from blowfishdb.show.tables import answer_table, comparison_table
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

DOMAIN = bf.Domain(salary=bf.Integer(0, 99_999), age=bf.Integer(18, 97))
RANDOM = np.random.default_rng(8)
SALARIES = RANDOM.gamma(4, 12_000, size=5_000).clip(0, 99_999).astype(int)
AGES = RANDOM.integers(18, 98, size=5_000)
ROWS = pa.table({"salary": SALARIES, "age": AGES})
EPSILON = "0.5"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace(tmp_path_factory.mktemp("adaptive") / "test.blowfish", user="ana") as made:
        yield made


@pytest.fixture(scope="module")
def people(workspace: Workspace) -> Dataset:
    """Salaries are hidden within 20,000: four bins of 5,000."""
    dataset = workspace.add_dataset("people", ROWS, domain=DOMAIN)
    dataset.publish(bf.Policy.by_column(DOMAIN, {"salary": bf.graphs.Threshold(100_000, 20_000)}))
    dataset.budget.set(1_000)
    return dataset


@pytest.fixture(scope="module")
def bars(people: Dataset) -> Answer:
    return adaptive(people["salary"].histogram(width=5_000), "0.7").ask()


@pytest.fixture(scope="module")
def promised(people: Dataset) -> Answer:
    return people["salary"].histogram(width=5_000).accurate_to(40).ask()


def truth(width: int = 5_000) -> np.ndarray:
    return np.bincount(SALARIES // width, minlength=100_000 // width)


def adaptive(asking: Asking, epsilon: str = EPSILON) -> Asking:
    return asking.spend(epsilon).using("adaptive")


def assert_unpromised(answer: Answer) -> None:
    assert answer.low is None and answer.high is None and answer.band is None
    assert answer.alpha is None and answer.beta is None and not answer.simultaneous
    assert np.isfinite(answer.values).all() and "no error promised" in repr(answer)


class TestAnswers:
    @pytest.mark.parametrize("name", DATA_DEPENDENT)
    def test_every_mechanism_is_close_at_a_large_epsilon(self, people: Dataset, name: str) -> None:
        answer = people["salary"].histogram(width=5_000).spend(20).using(name).ask()
        assert_unpromised(answer)
        assert np.abs(answer.values - truth()).max() < 40
        assert answer.receipt.epsilon == answer.receipt.cost == Epsilon(20)

    def test_a_curve_increases_and_ends_at_the_public_total(self, people: Dataset) -> None:
        answer = adaptive(people["salary"].cumulative(width=1_000)).ask()
        assert_unpromised(answer)
        assert (np.diff(answer.values) >= 0).all() and answer.values[-1] == len(SALARIES)
        assert answer.exact.tolist() == [False] * 99 + [True]
        assert np.abs(answer.values - truth(1_000).cumsum()).max() < 400

    def test_top_above_and_quantiles_are_read_from_it(self, people: Dataset) -> None:
        salary = people["salary"]
        top = adaptive(salary.top(3, width=5_000), "20").ask()
        fullest = np.sort(truth())[::-1][:3]
        assert np.abs(top.values - fullest).max() < 20
        above = adaptive(salary.above(300, width=5_000), "20").ask()
        assert len(above.values) == (truth() > 300).sum()
        middle = adaptive(salary.quantiles([0.25, 0.5], width=1_000), "20").ask()
        expected = np.quantile(SALARIES, [0.25, 0.5])
        assert np.abs(middle.values - expected).max() <= 2_000
        for answer in (top, above, middle):
            assert_unpromised(answer)

    def test_ranges_filters_and_two_columns(self, people: Dataset) -> None:
        ranges = adaptive(people["salary"].ranges([(0, 29_999), (30_000, 49_999)]), "20").ask()
        expected = [(SALARIES < 30_000).sum(), ((SALARIES >= 30_000) & (SALARIES < 50_000)).sum()]
        assert np.abs(ranges.values - expected).max() < 20
        old = adaptive(people.where(bf.col("age") >= 60)["salary"].histogram(width=20_000), "20").ask()
        assert np.abs(old.values - np.bincount(SALARIES[AGES >= 60] // 20_000, minlength=5)).max() < 40
        plane = adaptive(people["salary", "age"].histogram(bins=4), "20").ask()
        assert_unpromised(plane)
        assert len(plane.values) == 16 and abs(plane.values.sum() - len(SALARIES)) < 1

    def test_one_number_is_measured_by_itself_and_promised(self, people: Dataset) -> None:
        for asking in (people["salary"].sum(), people["salary"].ranges([(0, 29_999)])):
            promised = adaptive(asking).quote()
            assert promised.alpha == asking.spend(EPSILON).quote().alpha and promised.beta == 0.05
        assert_unpromised(people["salary"].sum().spend(EPSILON).using("policy-tree").ask())

    def test_what_the_policy_does_not_hide_is_exact_and_free(self, people: Dataset) -> None:
        for name in DATA_DEPENDENT:
            answer = people.count().spend(EPSILON).using(name).ask()
            assert answer.values.tolist() == [5_000] and answer.alpha == 0 and not answer.receipt.epsilon

    def test_an_answer_travels(self, people: Dataset) -> None:
        answer = adaptive(people["salary"].histogram(width=5_000)).ask()
        plain = json.loads(json.dumps(answer.to_plain(), allow_nan=False))
        assert plain["low"] is plain["high"] is plain["alpha"] is plain["beta"] is None
        assert Answer.from_plain(plain).to_plain() == answer.to_plain()


class TestPrices:
    def test_the_quote_says_that_nothing_is_promised(self, people: Dataset) -> None:
        quote = adaptive(people["salary"].cumulative(width=2_000)).quote()
        assert quote.alpha is None and quote.beta is None and quote.epsilon == Epsilon(EPSILON)
        assert NO_PROMISE in str(quote) and "±" not in str(quote)
        assert NO_PROMISE in quote._repr_html_() and "public rule" in quote.explanation
        assert Quote.from_plain(json.loads(json.dumps(quote.to_plain(), allow_nan=False))) == quote

    def test_an_accuracy_is_refused_with_what_to_do(self, people: Dataset) -> None:
        before = people.gateway.budget("people").spent
        for name in DATA_DEPENDENT:
            asking = people["salary"].histogram(bins=7).accurate_to(50).using(name)
            for act in (asking.quote, asking.ask):
                with pytest.raises(bf.errors.NoGuarantee, match="depends on the data") as refused:
                    act()
                assert refused.value.fixes[0] == "state an ε instead of an error"
        assert people.gateway.budget("people").spent == before

    def test_what_is_not_proven_names_what_is(self, workspace: Workspace) -> None:
        hidden = workspace.add_dataset("presence", ROWS, domain=DOMAIN, same_rows=True)
        graph = {"salary": bf.graphs.Threshold(100_000, 20_000)}
        hidden.publish(bf.Policy.by_column(DOMAIN, graph, hide_presence=True))
        asking = hidden["salary"].cumulative(width=5_000).spend(EPSILON)
        for name in ("adaptive-tree", "policy-tree", "ordered-denoised"):
            with pytest.raises(bf.errors.NotProven) as refused:
                asking.using(name).ask()
            assert "adaptive" in refused.value.fixes[0]
        assert asking.using("adaptive").quote().alpha == asking.quote().alpha
        assert asking.using("dawa").quote().alpha is None
        assert not hidden.gateway.budget("presence").spent

    def test_unknown_names_are_answered_with_all_names(self, people: Dataset) -> None:
        with pytest.raises(bf.errors.InvalidInput) as refused:
            people["salary"].histogram(bins=3).spend(1).using("magic").quote()
        assert refused.value.fixes == (*NAMED, *DATA_DEPENDENT)

    def test_without_a_mechanism_the_best_keeps_its_promise(self, people: Dataset) -> None:
        assert people["salary"].histogram(width=5_000).spend(EPSILON).quote().alpha is not None

    def test_the_explanation_has_the_rule(self, people: Dataset) -> None:
        found = people.explain(adaptive(people["salary"].cumulative(width=2_000)))
        assert found.mechanism == "Policy tree" and "Taken by a public rule" in str(found)

    def test_rows_per_person_divide_epsilon(self, workspace: Workspace) -> None:
        people = {"person": np.arange(5_000) // 5, "visit": np.arange(5_000)}
        plenty = pa.table({**people, "salary": SALARIES, "age": AGES})
        dataset = workspace.add_dataset(
            "visits", plenty, domain=DOMAIN, person="person", rows_per_person=5, row_key="visit"
        )
        asking = adaptive(dataset["salary"].cumulative(width=5_000), "1")
        planned = workspace._service.plan(asking.request())
        assert planned.cost == Epsilon(1) and planned.choice.epsilon == Epsilon("0.2")
        assert planned.promise is None and asking.ask().receipt.epsilon == Epsilon(1)


class TestTheLedger:
    def test_asking_again_returns_the_stored_answer(self, people: Dataset) -> None:
        asking = adaptive(people["salary"].cumulative(width=4_000))
        first, before = asking.ask(), people.gateway.budget("people").spent
        assert asking.quote().owned
        again = asking.ask()
        assert (again.values == first.values).all() and not again.receipt.cost
        assert people.gateway.budget("people").spent == before
        other = asking.using("adaptive-tree").ask()
        assert other.number != first.number and other.receipt.cost == Epsilon(EPSILON)

    def test_nothing_is_offered_or_combined_from_it(self, people: Dataset) -> None:
        people.refresh(ROWS)
        fine = people["salary"].histogram(width=2_500)
        adaptive(fine, "5").ask()
        assert not fine.accurate_to(1_000).quote().owned
        fine.spend(5).ask()  # the same with rows of its own is offered, so the test can fail
        assert fine.accurate_to(1_000).quote().owned

    def test_a_batch_may_hold_one(self, people: Dataset) -> None:
        people.refresh(ROWS)
        curve = adaptive(people["salary"].cumulative(width=10_000))
        bars = people["salary"].histogram(width=10_000).accurate_to(60)
        first, second = people.gateway.batch(curve, bars).ask()
        assert first.alpha is None and second.alpha == 60 and second.receipt.epsilon

    def test_the_books_are_in_order(self, people: Dataset, workspace: Workspace) -> None:
        assert workspace.verify() == []


class TestReading:
    def test_a_comparison_claims_nothing(self, bars: Answer, promised: Answer) -> None:
        found = compare(bars, promised)
        assert found.low is None and found.beta is None and found.alpha is None and not found.differs.any()
        assert found.sentence == "How much of the difference is noise is not known."
        assert found.promise.startswith("Only one") and compare(bars, bars).promise.startswith("Neither")
        plain = json.loads(json.dumps(found.to_plain(), allow_nan=False))
        assert plain["low"] is None and plain["difference"] == found.difference.tolist()
        assert '"field": "low"' not in json.dumps(comparison_chart(found).to_dict())
        assert "noise interval" not in comparison_table(found).columns

    def test_charts_have_no_whiskers(self, bars: Answer, promised: Answer) -> None:
        drawn = {name: json.dumps(answer_chart(a).to_dict()) for name, a in (("no", bars), ("yes", promised))}
        assert '"field": "low"' in drawn["yes"] and '"low"' not in drawn["no"]
        assert NO_PROMISE.split(":")[0] in drawn["no"]
        assert "noise interval" not in answer_table(bars).columns

    def test_every_picture_of_an_answer_can_be_drawn(self, bars: Answer) -> None:
        grid = replace(bars, labels=(bars.labels[0][:4], bars.labels[0][:5]), axes=("a", "b"))
        long = replace(
            bars,
            labels=(tuple(map(str, range(4_000))),),
            values=np.arange(4_000.0),
            raw=np.arange(4_000.0),
            exact=np.zeros(4_000, dtype=np.bool_),
        )
        kinds = [replace(bars, kind=kind) for kind in ("cumulative", "top", "quantiles", "sum")]
        for answer in (grid, long, *kinds):
            assert '"low"' not in json.dumps(answer_chart(answer, raw=True).to_dict())

    @pytest.mark.parametrize("form", FORMATS)
    def test_every_export_works(self, bars: Answer, form: str) -> None:
        body = export(bars, form).body
        assert len(body) > 100 and b"NaN" not in body

    def test_tables_leave_the_interval_out(self, bars: Answer) -> None:
        rows = list(csv.DictReader(io.StringIO(export(bars, "csv").body.decode("utf-8-sig"))))
        assert list(rows[0]) == ["salary", "value", "exact", "note"]
        table = pq.read_table(io.BytesIO(export(bars, "parquet").body))
        assert table.column_names == ["salary", "value", "exact"]
        assert table.schema.metadata[b"blowfishdb.accuracy"].decode() == NO_PROMISE
        assert b"blowfishdb.alpha" not in table.schema.metadata
        assert NO_PROMISE in export(bars, "html").body.decode()

    def test_a_notebook_says_so(self, bars: Answer) -> None:
        shown = bars._repr_html_()
        assert NO_PROMISE in shown and "noise interval" not in shown and "None" not in shown


class TestTheCurator:
    def test_a_preview_shows_one_draw(self, people: Dataset, workspace: Workspace) -> None:
        asking = adaptive(people["salary"].histogram(width=5_000))
        found = preview(workspace._service, asking.request(), stand_in=True)
        assert_unpromised(found.noisy)
        assert "rule" not in {
            layer["mark"]["type"]
            for panel in preview_chart(found).to_dict()["vconcat"][0]["hconcat"]
            for layer in panel["layer"]
        }
        json.dumps(found.to_plain(), allow_nan=False)

    def test_a_trade_off_has_nothing_to_compare(self, people: Dataset) -> None:
        asking = adaptive(people["salary"].histogram(width=5_000))
        with pytest.raises(bf.errors.NoGuarantee, match="promises none") as refused:
            people.tradeoff(asking, column="salary", thresholds=[1_000, 10_000])
        assert refused.value.fixes


def test_a_stored_answer_from_before_is_read(tmp_path: Path) -> None:
    with Workspace(tmp_path / "w.blowfish", user="ana") as made:
        dataset = made.add_dataset("people", ROWS, domain=DOMAIN)
        answer = dataset["salary"].histogram(bins=4).accurate_to(60).ask()
        assert answer.band is not None and answer.grain == 60
        assert Answer.from_plain(answer.to_plain()).low.tolist() == answer.low.tolist()
