"""The comparison with others is fair: the same notion of neighbours, and no number that favours us."""

from __future__ import annotations

from fractions import Fraction

import pytest
from benchmarks import peers

import blowfishdb as bf
from blowfishdb.core.accuracy import Accuracy
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.questions.kinds import Top


def test_a_translation_is_that_of_apex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "ALPHA", 10)
    assert peers.apex(2, 10) == pytest.approx(1.055069, abs=1e-6)


def test_plain_counts_gain_nothing_over_anyone() -> None:
    rows = {(row["question"], row["neighbours"]): row for row in peers.accuracy(6)}
    assert len(rows) == 6
    for notion in ("add/remove", "replace"):
        row = rows["histogram", notion]
        assert 0.99 < row["APEx ÷ ours"] < 1.2 and 0.99 < row["OpenDP ÷ ours"] < 1.2
    assert rows["cumulative", "replace"]["APEx ÷ ours"] > 1.5


@pytest.mark.parametrize("bins", [6, 100])
@pytest.mark.parametrize("alpha", [50, 326])
def test_the_fullest_bins_cost_no_more_than_at_the_peer(bins: int, alpha: int) -> None:
    """Each bin can fail on one side only; whole numbers are a little cheaper still."""
    axis = Axis("a", bf.Integer(0, bins - 1), bf.Bins.width(bins, 1))
    needed = Top(3).requirement(Accuracy(alpha, peers.BETA), (axis,))
    plan = bf.mechanisms.Best().plan(bf.workloads.Histogram(bins), bf.graphs.AddRemove(bins))
    theirs = peers.apex_top(bins, alpha)
    assert 0.95 * theirs < float(plan.epsilon_at(needed)) < theirs


def test_each_notion_is_what_it_says() -> None:
    counts = bf.workloads.Histogram(6)
    changes = {name: bf.sensitivity(counts, graph) for name, graph in peers.policies(6).items()}
    assert changes == {"add/remove": 1, "replace": 2, "within 1,000": Fraction(2)}


def test_who_is_missing_is_told_and_not_fatal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "opendp_sampler", lambda scale: None)
    assert [row["who"] for row in peers.noise(1_000, 1)] == ["BlowfishDB", "OpenDP"]
    rows = list(peers.latency(1_000, 10, 1))
    assert "pip install opendp" in rows[0]["times the GROUP BY"]
    assert rows[-1]["who"] == "BlowfishDB" and rows[-1]["times the GROUP BY"] > 0
