"""What a policy buys, in comparable units: ε for an accuracy, accuracy for an ε."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import blowfishdb as bf
from blowfishdb.messages.quotes import Quote
from blowfishdb.show.tables import dividend, quote_table
from blowfishdb.workspace.datasets import Dataset

SALARIES = bf.Domain(salary=bf.Integer(0, 199_999))


@pytest.fixture
def salaries(tmp_path: Path) -> Iterator[Dataset]:
    rows = pd.DataFrame({"salary": [number * 7919 % 200_000 for number in range(2_000)]})
    with bf.open(tmp_path / "work.blowfish") as ws:
        within = bf.Policy.by_column(SALARIES, {"salary": bf.graphs.Threshold(200_000, 1_000)})
        yield ws.add_dataset("salaries", rows, domain=SALARIES).publish(within)


def test_at_a_stated_epsilon_errors_are_compared(salaries: Dataset) -> None:
    quote = salaries["salary"].sum().spend("0.1").quote()
    assert quote.plain_alpha is not None and quote.alpha is not None
    assert quote.dividend == pytest.approx(quote.plain_alpha / quote.alpha)
    assert quote.dividend == pytest.approx(200, rel=0.01)
    words = "would be off by ±5,990,000 instead of ±30,000 at the same ε: a policy dividend of 200×"
    assert dividend(quote) == words
    assert ("plain DP", words) in quote_table(quote).rows
    assert Quote.from_plain(quote.to_plain()) == quote


def test_for_an_accuracy_prices_are(salaries: Dataset) -> None:
    quote = salaries["salary"].sum().accurate_to(30_000).quote()
    assert quote.plain_alpha is None and quote.plain_epsilon is not None
    assert quote.dividend == pytest.approx(200, rel=0.01)
    assert dividend(quote) == "would cost ε 20: a policy dividend of 200×"


def test_both_say_nothing_of_a_policy_that_buys_nothing(salaries: Dataset) -> None:
    salaries.publish(bf.Policy.differential_privacy(SALARIES))
    one, other = (
        salaries["salary"].sum().spend("0.1").quote(),
        salaries["salary"].sum().accurate_to(10**6).quote(),
    )
    assert one.dividend == pytest.approx(1) and other.dividend == pytest.approx(1)
    assert dividend(one) == "would be as far off: no policy dividend here"
    assert dividend(other) == "would cost the same: no policy dividend here"


def test_an_error_that_depends_on_the_data_is_not_compared(salaries: Dataset) -> None:
    quote = salaries["salary"].cumulative(bins=20).spend("0.1").using("adaptive").quote()
    assert quote.alpha is None and quote.plain_alpha is None
    assert "plain DP" not in dict(quote_table(quote).rows)
