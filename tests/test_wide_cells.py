"""Sums and means over cells of several values, from rows: what is promised holds for the values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import blowfishdb as bf
from blowfishdb.core.questions.projection import project
from blowfishdb.service.identity import _parts
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

LOW, HIGH, STEP = 5, 103, 10  # ten cells of 5–14, 15–24, …, the last one short
NOISELESS = 20_000
RUNS = 24


@pytest.fixture(scope="module")
def ws(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return bf.open(tmp_path_factory.mktemp("wide") / "w.blowfish")


def declared(ws: Workspace, name: str, pays: list[int | None], **said: str) -> Dataset:
    towns = [("north", "south")[k % 2] for k in range(len(pays))]
    domain = bf.Domain(
        pay=bf.Integer(LOW, HIGH, step=STEP, **said),  # type: ignore[arg-type]
        town=bf.Category(["north", "south"], missing="clamp", outside="clamp"),
        age=bf.Integer(0, 9),
    )
    table = pa.table({"pay": pays, "town": towns, "age": [k % 10 for k in range(len(pays))]})
    dataset = ws.add_dataset(name, table, domain=domain, same_rows=True)
    dataset.budget.set(10**8)
    hidden = {"pay": bf.graphs.Threshold(10, 2), "age": bf.graphs.Threshold(10, 1)}
    dataset.publish(bf.Policy.by_column(dataset.schema, hidden))
    return dataset


def meant(pays: list[int | None]) -> list[int]:
    return [min(max(pay, LOW), HIGH) for pay in pays if pay is not None]


WORLDS: dict[str, list[int | None]] = {
    "all at the lower ends": [LOW + STEP * (k % 10) for k in range(60)],
    "all at the upper ends": [min(LOW + STEP * (k % 10) + STEP - 1, HIGH) for k in range(60)],
    "anywhere": [int(v) for v in np.random.default_rng(7).integers(LOW, HIGH + 1, 60)],
    "outside": [-50, 900, LOW, HIGH, 40, 41] * 10,
}


@pytest.fixture(scope="module", params=WORLDS)
def people(request: pytest.FixtureRequest, ws: Workspace) -> Dataset:
    return declared(ws, request.param, WORLDS[request.param])


class TestCoverage:
    def test_without_noise_the_interval_is_that_of_the_cells(self, people: Dataset) -> None:
        pays = meant(WORLDS[people.name])
        total = people["pay"].sum().spend(NOISELESS).ask()
        assert total.alpha == len(pays) * (STEP - 1) / 2
        assert total.low[0] <= sum(pays) <= total.high[0] == total.low[0] + len(pays) * (STEP - 1)
        mean = people["pay"].mean().spend(NOISELESS).ask()
        assert mean.alpha == (STEP - 1) / 2
        assert mean.low[0] <= np.mean(pays) <= mean.high[0] == pytest.approx(mean.low[0] + STEP - 1)

    def test_the_ends_are_reached(self, ws: Workspace) -> None:
        """Nothing narrower would hold: the same counts belong to both of these."""
        lowest = [LOW + STEP * (k % 9) for k in range(45)]
        for name, off, end in (("lows", 0, "low"), ("highs", STEP - 1, "high")):
            dataset = declared(ws, name, [pay + off for pay in lowest])
            answer = dataset["pay"].sum().spend(NOISELESS).ask()
            assert getattr(answer, end)[0] == sum(lowest) + 45 * off

    @pytest.mark.parametrize("kind", ["sum", "mean"])
    def test_the_promise_holds_for_the_values(self, people: Dataset, kind: str) -> None:
        """At β = ½ and errors that are not whole; an interval of the noise alone would hardly ever hold."""
        pays, rows = meant(WORLDS[people.name]), len(WORLDS[people.name])
        truth, unit = (sum(pays), 1.0) if kind == "sum" else (sum(pays) / rows, 1 / rows)
        off = (STEP - 1) / 2 * rows * unit
        missed = 0
        for run in range(RUNS):
            question = getattr(people["pay"], kind)().using("laplace")
            alpha = off + (23.5 + run / 64) * unit
            answer = question.accurate_to(alpha, confidence=0.5).ask()
            assert answer.alpha == alpha and not answer.exact[0]
            assert answer.high[0] - answer.low[0] == pytest.approx(2 * alpha)
            missed += not answer.low[0] <= truth <= answer.high[0]
        assert missed <= RUNS / 2 + 4 * RUNS**0.5 / 2, missed

    def test_rows_without_a_value_are_no_rows_of_it(self, ws: Workspace) -> None:
        pays = [None if k % 3 == 0 else 17 + k for k in range(60)]
        dataset = declared(ws, "missing", pays, missing="public")
        answer = dataset["pay"].sum().spend(NOISELESS).ask()
        assert answer.alpha == 40 * (STEP - 1) / 2
        assert answer.low[0] <= sum(meant(pays)) <= answer.high[0]

    def test_no_rows(self, ws: Workspace) -> None:
        dataset = declared(ws, "one town", [30] * 3)
        dataset.publish(dataset.policy.with_column("town", bf.graphs.Explicit(2, [])), confirm=True)
        nobody = dataset.where((bf.col("town") == "north") & (bf.col("town") == "south"))
        answer = nobody["pay"].sum().spend(1).ask()
        assert (answer.values[0], answer.alpha) == (0, 0)


class TestWords:
    def test_a_quote_and_an_answer_say_how_values_count(self, people: Dataset) -> None:
        people.count().spend(1).ask()
        for question in (people["pay"].sum().spend(2), people["pay"].mean().spend(2)):
            quote, answer = question.quote(), question.ask()
            assert quote.alpha == answer.alpha
            said = "pay: a value counts as the middle of its cell of 10, so it may be 4.5 off; "
            said += f"the error of the {quote.kind} includes that."
            assert quote.notes[0] == answer.notes[0] == said
            assert quote.promise == answer.promise

    def test_what_counts_cannot_tell_is_refused_with_what_they_can(self, ws: Workspace) -> None:
        people = declared(ws, "sixty", [30, 31, 99] * 20)
        people.count().spend(1).ask()
        with pytest.raises(bf.errors.Infeasible, match="may be 270 off without any noise") as refused:
            people["pay"].sum().accurate_to(270).quote()
        assert refused.value.fixes[0] == "allow an error of more than 270"
        assert people["pay"].sum().accurate_to(271).quote().epsilon > bf.Epsilon(0)
        with pytest.raises(bf.errors.Infeasible, match=r"may be 4\.5 off"):
            people["pay"].mean().accurate_to(4.5).quote()
        assert people["pay"].mean().accurate_to(4.6).quote().alpha == 4.6

    def test_advice_fits(self, ws: Workspace) -> None:
        dataset = declared(ws, "poor", [30, 31, 99] * 20)
        dataset.budget.set("0.2")
        dataset.count().spend(1).ask()
        quote = dataset["pay"].sum().accurate_to(280).quote()
        assert quote.affordable == 0 and quote.fits[0].error is not None and quote.fits[0].error > 280
        assert dataset["pay"].sum().accurate_to(quote.fits[0].error).quote().affordable == 1

    def test_free_counts_are_not_called_exact(self, ws: Workspace) -> None:
        dataset = declared(ws, "open", [30, 31, 99] * 20)
        dataset.publish(dataset.policy.with_column("pay", bf.graphs.Explicit(10, [])), confirm=True)
        dataset.count().spend(1).ask()
        for question, off in ((dataset["pay"].sum().spend(1), 270), (dataset["pay"].mean().spend(1), 4.5)):
            quote, answer = question.quote(), question.ask()
            assert not quote.epsilon and not quote.exact and not answer.exact.any()
            assert quote.alpha == answer.alpha == off
            assert quote.promise == answer.promise and f"within {off}" in quote.promise
        assert dataset["age"].sum().spend(1).ask().kind == "sum"


def test_an_answer_from_lower_ends_is_not_given_again(ws: Workspace) -> None:
    """Older versions stored means that took the lower end of each cell, under the name without a mark."""
    dataset = declared(ws, "older", [30, 31, 99] * 20)
    dataset.count().spend(1).ask()

    def name(column: str) -> str:
        service, request = ws._service, dataset[column].mean().spend(1).request()
        resolved, record = service.resolved(request), service.datasets("older")
        return str(_parts(resolved, project(resolved.counts, record.policy))["kind"])

    assert (name("pay"), name("age")) == ("['mean', 60, 'middles of cells']", "['mean', 60]")


class TestRows:
    def test_a_quote_needs_their_number_on_record_and_an_ask_puts_it_there(self, ws: Workspace) -> None:
        dataset = declared(ws, "uncounted", [30, 31, 99] * 20)
        with pytest.raises(bf.errors.NotCounted, match="A sum over cells of several values") as refused:
            dataset["pay"].sum().spend(1).quote()
        assert refused.value.fixes == ("ask for count() first: it is exact and free",)
        assert dataset["pay"].sum().spend(1).ask().kind == "sum"
        assert dataset["pay"].sum().spend(2).quote().epsilon == bf.Epsilon(2)

    def test_the_count_that_is_named_is_the_one_that_is_needed(self, ws: Workspace) -> None:
        dataset = declared(ws, "named", [30, None, 99] * 20, missing="public")
        dataset.publish(dataset.policy.with_column("town", bf.graphs.Explicit(2, [])), confirm=True)
        north = dataset.where(bf.col("town") == "north")
        for question in (north["pay"].sum().spend(1), north["pay"].mean().spend(1)):
            with pytest.raises(bf.errors.NotCounted) as refused:
                question.quote()
            (fix,) = refused.value.fixes
            assert fix == "ask for count(pay) where town = 'north' first: it is exact and free"
        dataset.question("count(pay) where town = 'north'").spend(1).ask()
        for question in (north["pay"].sum().spend(1), north["pay"].mean().spend(1)):
            assert question.quote().epsilon == bf.Epsilon(1)

    def test_a_number_that_is_hidden_is_never_used(self, people: Dataset) -> None:
        north = people.where(bf.col("town") == "north")
        for question in (
            north["pay"].sum().spend(1),
            people.where(bf.col("pay") >= 15)["pay"].sum().spend(1),
        ):
            assert question.quote().kind == "aggregates"  # it is measured with the sum, and has its price
            assert question.ask().receipt.epsilon == bf.Epsilon(1)
            with pytest.raises(bf.errors.NoGuarantee, match="inside their cells"):
                replace(question, terms=question.terms.accurate_to(500)).quote()
        people.count().spend(1).ask()
        assert people["pay"].sum().spend(1).quote().epsilon == bf.Epsilon(1)

    def test_the_mean_of_a_group_is_no_closer_than_its_cells(self, people: Dataset) -> None:
        mean = people.by("town").mean("pay", group_size=10)
        with pytest.raises(bf.errors.Infeasible, match="without any noise") as refused:
            mean.accurate_to(1).quote()
        assert refused.value.fixes[0].startswith("allow an error of more than")
        with pytest.raises(bf.errors.Infeasible, match="No noise") as close:
            mean.accurate_to(float(refused.value.fixes[0].split()[-1]) + 0.1).quote()
        again = people.question(close.value.fixes[0])
        assert again.accurate_to(float(refused.value.fixes[0].split()[-1]) + 0.1).quote().epsilon

    @pytest.mark.parametrize("rule", [{"missing": "value"}, {"missing": "drop"}, {"outside": "drop"}])
    def test_nor_where_rows_come_and_go(self, ws: Workspace, rule: dict[str, str]) -> None:
        dataset = declared(ws, f"hidden {rule}", [30, 31, 99] * 20, **rule)
        answer = dataset["pay"].sum().spend(10**5).ask()
        values = [30, 31, 99] * 20
        assert answer.kind == "aggregates" and answer.low is not None and answer.high is not None
        assert answer.low[0] <= sum(values) <= answer.high[0]
