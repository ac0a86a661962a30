"""Whatever a refusal suggests can be asked: every statement and every question in it has a price."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.core.errors import BlowfishError
from blowfishdb.workspace.asking import Asking
from blowfishdb.workspace.datasets import Dataset
from blowfishdb.workspace.embedded import Workspace
from tests.adapters.test_sql_question import REFUSED
from tests.adapters.typed import SALARIES

COLUMNS = bf.Domain.of({**dict(SALARIES.columns), "salary": bf.Integer(0, 200_000, step=1_000)})
"""What is suggested for every single dollar is the same, and takes twenty times as long to price."""
SLIPS = [
    "SELECT",
    "SELECT COUNT(*)",
    "SELECT COUNT(*) FROM other",
    "SELECT COUNT(*) FROM salaries; SELECT 1",
    "SELECT region, COUNT(*) FROM salaries GROUP BY 7",
    "SELECT BIN(age), COUNT(*) FROM salaries GROUP BY 1",
    "SELECT BIN(age, 0.5), COUNT(*) FROM salaries GROUP BY 1",
    "SELECT BIN(region, 2), COUNT(*) FROM salaries GROUP BY 1",
    "SELECT MEDIAN(region) FROM salaries",
    "SELECT AVG(day) FROM salaries",
    "SELECT QUANTILE(age, 1.5) FROM salaries",
    "SELECT region, AVG(age), MIN(rate) FROM salaries GROUP BY region",
    "SELECT region, MEDIAN(age), COUNT(*) FROM salaries WHERE age >= 30 GROUP BY region",
    "SELECT region, MEDIAN(age), MEDIAN(rate) FROM salaries GROUP BY region",
    "SELECT AVG(age), MEDIAN(age) FROM salaries WHERE region = 'north'",
    "SELECT STDDEV(age) FILTER (WHERE region = 'north'), STDDEV(age) FROM salaries",
    "SELECT AVG(age) FROM salaries WHERE region = 'north' LIMIT 0",
    "SELECT COUNT(*) FROM salaries WHERE age > salary",
    "SELECT COUNT(*) FROM salaries WHERE age = NULL",
]
SHORT = [
    "",
    "nothing(age)",
    "histogram()",
    "histogram(age, widths=3)",
    "histogram(age, region, width=5)",
    "histogram(age, width=0.5)",
    "cumulative(region)",
    "ranges(age)",
    "ranges(age, 5)",
    "ranges(age, rate, 5..9)",
    "ranges(age, rate, (5..9))",
    "marginals(age, region)",
    "marginals(age, region, 3)",
    "median(age) by age",
    "cumulative(region) by age",
    "quantiles(age)",
    "quantiles(region, 0.5)",
    "median(age, 3)",
    "mean()",
    "sum(region)",
    "top(region)",
    "top(region, 'many')",
    "above(region)",
    "clusters(age)",
    "clusters(region, k=2)",
    "count(,)",
    "histogram(age) when age > 3",
    "count() where age + salary > 3",
    "count() where region > 'north'",
]


@pytest.fixture(scope="module", params=["public number of rows", "hidden number of rows"])
def salaries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dataset]:
    rows = pd.DataFrame({name: [attribute.at(0)] for name, attribute in COLUMNS.columns})
    rows = rows.map(lambda value: float(value) if isinstance(value, Fraction) else value)
    with Workspace(tmp_path_factory.mktemp("suggested") / "test.blowfish", user="ana") as workspace:
        dataset = workspace.add_dataset("salaries", rows, domain=COLUMNS)
        if request.param.startswith("hidden"):
            dataset.publish(bf.Policy(COLUMNS, dataset.policy.graph.hide_presence()))
        yield dataset


def suggested(refusal: BlowfishError, salaries: Dataset) -> list[Asking]:
    """Every suggestion that is a question, read again; conditions as conditions of a count."""
    return [
        salaries.sql(fix) if fix.startswith("SELECT ") else salaries.question(fix)
        for fix in refusal.fixes
        if fix.startswith("SELECT ") or (fix.partition("(")[0].isidentifier() and ")" in fix)
    ]


def priced(asking: Asking, salaries: Dataset) -> None:
    try:
        asking.spend(1).quote()
    except bf.errors.NotCounted:  # public and free to count; nobody has done so
        assert asking.form.kind in ("mean", "sum") and not asking.counting().quote().epsilon


@pytest.mark.parametrize("typed", [*(typed.format(d="salaries") for typed, _, _ in REFUSED), *SLIPS])
def test_statements_that_are_suggested_have_a_price(salaries: Dataset, typed: str) -> None:
    try:
        asking = salaries.sql(typed).spend(1)
    except BlowfishError as refusal:
        assert refusal.fixes, typed
        for suggestion in suggested(refusal, salaries):
            priced(suggestion, salaries)
        return
    with pytest.raises(BlowfishError) as later:  # read, but refused under the policy
        asking.quote()
    for suggestion in suggested(later.value, salaries):
        priced(suggestion, salaries)


@pytest.mark.parametrize("typed", SHORT)
def test_questions_that_are_suggested_have_a_price(salaries: Dataset, typed: str) -> None:
    with pytest.raises(BlowfishError) as refused:
        salaries.question(typed)
    for suggestion in suggested(refused.value, salaries):
        priced(suggestion, salaries)


def test_a_mean_without_the_size_of_its_groups_is_refused_with_one(salaries: Dataset) -> None:
    with pytest.raises(BlowfishError) as refused:
        salaries.sql("SELECT region, AVG(age) FROM salaries GROUP BY region WITH ERROR 5").quote()
    sized, *others = refused.value.fixes
    assert sized == "mean(age) by region for groups of 1000"
    assert salaries.question(sized).accurate_to(5).quote().epsilon
    assert any("FOR GROUPS OF 1000" in fix for fix in others)
    assert (
        salaries.sql("SELECT region, AVG(age) FROM salaries GROUP BY region WITH ERROR 5 FOR GROUPS OF 1000")
        .quote()
        .epsilon
    )


def test_a_spread_of_some_rows_is_suggested_as_it_is_answered(salaries: Dataset) -> None:
    with pytest.raises(BlowfishError) as refused:
        salaries.sql("SELECT STDDEV(age) FILTER (WHERE region = 'north'), STDDEV(age) FROM salaries")
    assert refused.value.fixes == ("SELECT STDDEV(age) FROM salaries WHERE region = 'north'",)
