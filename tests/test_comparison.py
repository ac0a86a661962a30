"""Comparisons: intervals that hold, sentences that say what they say, and what cannot be compared."""

from __future__ import annotations

import json

import numpy as np
import pytest

from blowfishdb.core.errors import InvalidInput
from blowfishdb.messages.answers import compare
from blowfishdb.noise import seeded
from tests.made_up import bins, hill, made_up


def test_the_interval_is_the_sum_of_both() -> None:
    first, second = made_up(bins(3), [500, 600, 700], alpha=50), made_up(bins(3), [450, 600, 200], alpha=100)
    found = compare(first, second)
    assert found.difference.tolist() == [50, 0, 500]
    assert found.low.tolist() == [-100, -150, 350] and found.high.tolist() == [200, 150, 650]
    assert found.alpha == 150 and found.beta == 0.1 and found.simultaneous
    assert found.differs.tolist() == [False, False, True]
    assert found.sentence == "1 of 3 bars differs by more than the noise allows."
    assert "90 of 100" in found.promise and "everywhere" in found.promise


def test_sentences() -> None:
    same = compare(made_up(bins(4), hill(4)), made_up(bins(4), hill(4)))
    assert same.sentence == "No bar differs by more than the noise allows."
    far = compare(made_up(bins(4), [900] * 4), made_up(bins(4), [100] * 4))
    assert far.sentence == "4 of 4 bars differ by more than the noise allows."
    one = compare(made_up((("mean",),), [9.0], kind="mean"), made_up((("mean",),), [500.0], kind="mean"))
    assert one.sentence == "They differ by more than the noise allows."


def test_one_answer_at_each_place_makes_it_each_place() -> None:
    each = made_up(bins(4), hill(4), simultaneous=False)
    assert not compare(made_up(bins(4), hill(4)), each).simultaneous
    assert "at each place" in compare(each, each).promise


def test_exact_answers_have_no_noise_to_allow_for() -> None:
    found = compare(made_up(bins(2), [5, 6], exact=True), made_up(bins(2), [5, 7], exact=True))
    assert found.differs.tolist() == [False, True] and found.alpha == 0


def test_plain_form_is_json() -> None:
    said = json.loads(
        json.dumps(compare(made_up(bins(4), hill(4)), made_up(bins(4), hill(4), number=38)).to_plain())
    )
    assert (said["a"], said["b"]) == (41, 38) and said["labels"] == [list(bins(4)[0])]
    assert said["differs"] == [False] * 4 and said["sentence"] and said["promise"]


@pytest.mark.parametrize(
    ("other", "says"),
    [
        (made_up(bins(4), hill(4), axes=("age",)), "columns: salary, and age"),
        (made_up(bins(4), hill(4), kind="cumulative"), "forms of question: histogram, and cumulative"),
        (made_up(bins(5), hill(5), number=7), "answer 41 has 4 bins from '0–9,999', answer 7 has 5 bins"),
        (made_up(bins(4, 5_000), hill(4), number=0), "one has 4 bins from '0–4,999'"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_what_differs(other: object, says: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        compare(made_up(bins(4), hill(4)), other)  # type: ignore[arg-type]
    assert says in refusal.value.message and refusal.value.fixes


def test_answers_without_confidence_say_nothing_together() -> None:
    with pytest.raises(InvalidInput, match="says nothing"):
        compare(made_up(bins(2), [1, 2], beta=0.5), made_up(bins(2), [1, 2], beta=0.5))


def test_coverage_also_for_two_answers_from_one_release() -> None:
    """The worst case for independence: the very same noise, once as it is and once negated."""
    noise, truth, runs = seeded(7), np.array([400.0, 900.0]), 2_000
    draws = noise.discrete_laplace(20, size=(runs, 2)).astype(float)
    alpha = float(np.quantile(np.abs(draws).max(axis=1), 0.95))
    misses = 0
    for draw in draws:
        first = made_up(bins(2), truth + draw, alpha=alpha)
        second = made_up(bins(2), truth - draw, alpha=alpha)
        misses += bool(compare(first, second).differs.any())
    assert misses <= 0.1 * runs
    assert misses > 0  # a narrower interval would fail
