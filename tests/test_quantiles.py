"""Quantiles through the whole stack: what is shown holds for the value, and the bins follow a public rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.questions.kinds import Quantiles
from blowfishdb.core.questions.readings import Release
from blowfishdb.messages.answers import Answer
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace

DICE = np.random.default_rng(5)
SALARIES = DICE.gamma(4, 9_000, size=3_000).clip(0, 199_999).astype(int)
NORTH = DICE.random(3_000) < 0.4
SHARES = (0.0, 0.25, 0.5, 0.9, 1.0)


def domain(**rules: str) -> bf.Domain:
    return bf.Domain(salary=bf.Integer(0, 199_999, **rules), north=bf.Boolean())


@pytest.fixture(scope="module", params=["clamp", "value"])
def people(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    rows = pd.DataFrame({"salary": SALARIES, "north": NORTH})
    declared = domain(missing=request.param)
    with Workspace(tmp_path_factory.mktemp("quantiles") / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("people", rows, domain=declared)
        dataset.publish(bf.Policy.by_column(declared, {"salary": bf.graphs.Threshold(200_000, 1_000)}))
        dataset.budget.set(10**6)
        yield dataset


def true_quantiles(values: np.ndarray) -> np.ndarray:
    return np.quantile(values, SHARES, method="inverted_cdf")


def holds(answer: Answer, truth: np.ndarray) -> bool:
    assert answer.low is not None and answer.high is not None
    assert (answer.low <= answer.values).all() and (answer.values <= answer.high).all()
    return bool(((answer.low <= truth) & (truth <= answer.high)).all())


@pytest.mark.parametrize("where", [False, True], ids=["all rows", "some rows"])
@pytest.mark.parametrize("width", [10_000, None], ids=["wide bins", "usual bins"])
def test_the_intervals_hold_the_true_values(people: Dataset, width: int | None, where: bool) -> None:
    """At β = ½ an interval too narrow by a bin, or by the noise of the total, would fail much more often."""
    rows, values = (people, SALARIES)
    if where:
        rows, values = people.where(bf.col("north").isin([True])), SALARIES[NORTH]
    truth, runs = true_quantiles(values), 24
    asked = rows["salary"].quantiles(SHARES, width=width)
    answers = [
        asked.accurate_to(60 + run / 64, confidence=0.5).using("laplace-cells").ask() for run in range(runs)
    ]
    kept = sum(holds(answer, truth) for answer in answers)
    assert kept >= runs / 2 - 3 * np.sqrt(runs) / 2, kept
    assert all("lies in its noise interval" in answer.promise for answer in answers)


def test_an_interval_covers_its_bins(people: Dataset) -> None:
    answer = people["salary"].quantiles([0.25, 0.5], width=10_000).accurate_to(20).ask()
    assert answer.low is not None and answer.high is not None
    assert (answer.low % 10_000 == 0).all() and (answer.high % 10_000 == 9_999).all()
    assert not answer.exact.any()


def test_exact_counts_leave_a_quantile_somewhere_in_its_bin(people: Dataset) -> None:
    """Nothing hidden: the curve is exact, and the value is known to the bin alone."""
    axis = Axis("salary", domain()["salary"], Bins.width(200_000, 10_000))
    curve = np.cumsum(np.bincount(SALARIES // 10_000, minlength=20)).astype(float)
    reading = Quantiles(SHARES).read(Release(curve, np.ones(20, dtype=np.bool_), 0.0, True), (axis,))
    truth = true_quantiles(SALARIES)
    assert reading.low is not None and reading.high is not None and not reading.exact.any()
    assert (reading.low == truth // 10_000 * 10_000).all() and (reading.high == reading.low + 9_999).all()
    assert (np.abs(reading.values - truth)[1:-1] < 1_000).all()  # the ends lie anywhere in their bins


class TestPublicRule:
    @pytest.fixture
    def priced(self, tmp_path: Path) -> Iterator[Dataset]:
        alone = bf.Domain(salary=bf.Integer(0, 199_999))
        with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
            dataset = workspace.add_dataset("people", pd.DataFrame({"salary": SALARIES}), domain=alone)
            dataset.publish(bf.Policy(alone, bf.graphs.Threshold(200_000, 1_000)))
            yield dataset

    @pytest.mark.parametrize(
        ("width", "price"), [(10_000, 0.117), (1_000, 0.164), (200, 0.490), (None, 0.164)]
    )
    def test_golden_prices(self, priced: Dataset, width: int | None, price: float) -> None:
        assert float(priced["salary"].median(width=width).accurate_to(50).quote().epsilon) == pytest.approx(
            price, abs=5e-4
        )

    def test_without_bins_they_are_as_wide_as_the_hidden_distance(self, priced: Dataset) -> None:
        for asking in (
            priced["salary"].median(),
            priced.question("median(salary)"),
            priced.sql("SELECT MEDIAN(salary) FROM people"),
        ):
            assert "(200 bins)" in asking.accurate_to(50).quote().question
        answer = priced["salary"].median().accurate_to(50).ask()
        assert "(200 bins)" in answer.receipt.question
        again = priced["salary"].median(width=1_000).accurate_to(50)
        assert again.quote().owned  # the bins are part of the question, however they were named

    @pytest.mark.parametrize(
        ("values", "theta", "bins"),
        [
            (120, 1, 120),
            (120, 5, 24),
            (120, 6, 20),
            (120, 60, 20),
            (120, 119, 20),
            (101, 60, 21),
            (39, 9, 39),
        ],
    )
    def test_there_are_never_very_few(self, tmp_path: Path, values: int, theta: int, bins: int) -> None:
        alone = bf.Domain(age=bf.Integer(0, values - 1))
        with Workspace(tmp_path / "test.blowfish", user="ana") as workspace:
            dataset = workspace.add_dataset("people", pd.DataFrame({"age": [1, 2]}), domain=alone)
            dataset.publish(bf.Policy(alone, bf.graphs.Threshold(values, theta)))
            asking: Asking = dataset["age"].median().accurate_to(50)
            assert f"({bins} bins)" in asking.quote().question
