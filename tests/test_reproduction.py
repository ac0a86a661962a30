"""Each figure of the papers has its command, its verdict and its table, and the page says what they say."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from benchmarks import reproduction, scale
from benchmarks.tables import FIGURES

ITEMS = [item for items in reproduction.PAPERS.values() for item in items]


def test_the_page_is_made_of_the_tables() -> None:
    assert reproduction.PAGE.read_text(encoding="utf-8") == reproduction.page()


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.what)
def test_each_has_what_it_names(item: reproduction.Item) -> None:
    assert item.verdict and item.how and not item.text.endswith(".")
    if item.command:
        assert find_spec(f"benchmarks.{item.command.split()[0]}") is not None
    if item.figure:
        assert (FIGURES / f"{item.figure}.csv").exists() and (FIGURES / f"{item.figure}.svg").exists()


def test_table_one_is_explained() -> None:
    """At a penalty of 2/ε, with two columns swapped, within one per cent of what is printed."""
    table = [row for row in reproduction.rows("dawa_buckets") if row["candidates"] == "all intervals"]
    ours = [int(row["penalty 20"]) for row in table]
    ours[0], ours[1] = ours[1], ours[0]
    printed = [int(row["printed"]) for row in table]
    assert all(abs(one - other) <= 0.01 * other for one, other in zip(ours, printed, strict=True))


def test_what_is_not_reached_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    reproduction.run(0, FIGURES)
    said = capsys.readouterr().out
    assert all(f"not reached: {command}" in said for command in reproduction.commands())


def test_a_line_before_one_lock_is_as_long_as_queueing_theory_says() -> None:
    """Pollaczek and Khinchine: the mean wait is ρ·s·(1 + c²)/(2(1 − ρ)), c² = 1/4."""
    for load in (0.5, 0.8):
        wait = scale.waiting(2.0, load, np.random.default_rng(1))
        assert wait.mean() == pytest.approx(load * 2.0 * 1.25 / (2 * (1 - load)), rel=0.06)
