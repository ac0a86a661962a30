"""Quantiles of rows whose number is hidden, through the whole stack: ranks, prices, what is out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

DICE = np.random.default_rng(7)
HOURS = DICE.gamma(4, 6, size=2_000).clip(0, 99).astype(int)
NORTH = DICE.random(2_000) < 0.4
ROWS = pd.DataFrame({"hours": HOURS, "north": NORTH})
DOMAIN = bf.Domain(hours=bf.Integer(0, 99), north=bf.Boolean())
SHARES = [0.25, 0.5, 0.9]
HIDDEN = {
    "everything": bf.Policy.differential_privacy(DOMAIN),
    "near": bf.Policy.by_column(DOMAIN, {"hours": bf.graphs.Threshold(100, 5)}),
    "near, and presence": bf.Policy.by_column(
        DOMAIN, {"hours": bf.graphs.Threshold(100, 5)}, hide_presence=True
    ),
}


@pytest.fixture(params=HIDDEN)
def people(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Dataset]:
    with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("people", ROWS, domain=DOMAIN)
        dataset.publish(HIDDEN[request.param])
        dataset.budget.set(10**6)
        yield dataset


def some(people: Dataset) -> Dataset:
    return people.where(bf.col("north").isin([True]))


def test_intervals_hold_the_values_and_ranks_are_as_close_as_asked(people: Dataset) -> None:
    """At β = ½: an interval too narrow by a bin, or a rank that ignores the noise of N, misses far more."""
    values = np.sort(HOURS[NORTH])
    truth = np.quantile(values, SHARES, method="inverted_cdf")
    asked, runs, missed = some(people)["hours"].quantiles(SHARES, bins=20), 16, 0
    for _ in range(runs):
        answer = asked.accurate_to(60, confidence=0.5).ask()
        assert answer.low is not None and answer.high is not None
        before = np.array([np.sum(values < 5 * (value // 5)) for value in answer.values])
        upto = np.array([np.sum(values < 5 * (value // 5) + 5) for value in answer.values])
        ranks = np.array(SHARES) * values.size
        close = (before - ranks <= 60).all() and (ranks - upto <= 60).all()
        missed += not (close and ((answer.low <= truth) & (truth <= answer.high)).all())
        assert (answer.low <= answer.values).all() and (answer.values <= answer.high).all()
        people.refresh(ROWS)
    assert missed <= runs / 2 + 3 * np.sqrt(runs) / 2


def test_they_cost_less_than_the_curve_and_exactly_what_is_lost(people: Dataset) -> None:
    median, curve = some(people)["hours"].median(bins=50), some(people)["hours"].cumulative(bins=50)
    price = median.accurate_to(100).quote().epsilon
    assert price.fraction < 1.01 * curve.accurate_to(100).quote().epsilon.fraction
    if people.policy.describe() != HIDDEN["everything"].describe():
        assert price.fraction < 0.95 * curve.accurate_to(100).quote().epsilon.fraction
    answer = median.accurate_to(100).ask()
    assert answer.receipt.cost == price == people.past(people.policy).epsilon


def test_a_curve_that_is_out_tells_them(people: Dataset) -> None:
    some(people)["hours"].cumulative(bins=20).accurate_to(50).ask()
    assert some(people)["hours"].quantiles(SHARES, bins=20).accurate_to(50).quote().owned
    assert some(people)["hours"].median(bins=20).accurate_to(60).ask().receipt.cost == bf.Epsilon(0)


def test_what_is_out_is_out_and_what_is_closer_costs_the_difference(people: Dataset) -> None:
    median = some(people)["hours"].median(bins=40)
    first = median.accurate_to(80).ask()
    assert median.accurate_to(80).quote().owned and median.accurate_to(90).quote().owned
    again = median.accurate_to(80).ask()
    assert again.values.tolist() == first.values.tolist() and again.receipt.cost == bf.Epsilon(0)
    closer = median.accurate_to(40).quote()
    assert closer.sharpens is not None and closer.epsilon < closer.sharpens.instead
    assert median.accurate_to(40).ask().receipt.cost == closer.epsilon
    assert people.past(people.policy).epsilon <= people.gateway.budget("people").spent


def test_a_plan_uses_the_curve_that_it_makes(people: Dataset) -> None:
    hours = some(people)["hours"]
    both = hours.cumulative(bins=20).accurate_to(50), hours.median(bins=20).accurate_to(50)
    workspace = people.gateway
    plan = workspace.plan(*both)
    assert plan.quote() <= sum((one.ask().receipt.cost for one in both), bf.Epsilon(0))


def test_where_the_number_of_rows_is_public_nothing_is_different(people: Dataset) -> None:
    median = people["hours"].median(bins=20).accurate_to(50)
    if people.policy.hides_presence:
        assert median.ask().receipt.cost.fraction > 0
        return
    people["hours"].cumulative(bins=20).accurate_to(50).ask()
    assert median.ask().receipt.cost == bf.Epsilon(0)
