"""A stored release is known again as that of a plan, and made with less noise for the difference."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.bins import EqualBins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import NotProven
from blowfishdb.mechanisms import plan as plans
from blowfishdb.mechanisms.plan import Plan
from blowfishdb.mechanisms.refining import can_reach, earlier_release
from blowfishdb.mechanisms.reuse import StoredRelease
from blowfishdb.noise import seeded
from blowfishdb.service.reuse import stored_release

CELLS = 12
X = np.arange(CELLS) * 3 % 7
AXES = (Axis("a", Integer(0, CELLS - 1), EqualBins(CELLS, 1)),)
FIRST, SECOND = Epsilon("0.25"), Epsilon("0.6")


def _plans() -> dict[str, Plan]:
    graphs, workloads, mechanisms = bf.graphs, bf.workloads, bf.mechanisms
    full, line = graphs.Full(CELLS), graphs.Threshold(CELLS, 3)
    return {
        "histogram": mechanisms.Laplace(on="workload").plan(workloads.Histogram(CELLS), full),
        "cells": mechanisms.Laplace(on="cells").plan(workloads.AllRanges(CELLS), line),
        "ordered": mechanisms.Ordered().plan(workloads.Cumulative(CELLS), graphs.Threshold(CELLS, 1)),
        "tree": mechanisms.Hierarchical().plan(workloads.AllRanges(CELLS), full),
        "ordered tree": mechanisms.OrderedHierarchical().plan(workloads.AllRanges(CELLS), line),
        "optimized": mechanisms.Optimized().plan(workloads.AllRanges(CELLS), line),
        "partition": mechanisms.Best().plan(
            workloads.Histogram(CELLS), graphs.Partitioned(np.arange(CELLS) // 4)
        ),
    }


PLANS = _plans()


@pytest.mark.parametrize("name", PLANS)
def test_a_release_is_known_again(name: str) -> None:
    plan = PLANS[name]
    seen = plan.observe(X, epsilon=FIRST, noise=seeded(1))
    stored = StoredRelease.from_plain(stored_release(plan, seen, FIRST, AXES))
    earlier = earlier_release(plan, stored)
    assert earlier is not None
    assert earlier.epsilon == FIRST
    assert can_reach(plan, earlier, SECOND)
    assert not can_reach(plan, earlier, FIRST)
    other = PLANS["ordered" if name != "ordered" else "histogram"]
    assert earlier_release(other, stored) is None


@pytest.mark.parametrize("name", PLANS)
def test_the_noise_that_is_refined_is_that_of_the_release(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing less than all of it: what remains after taking it away is the truth."""
    plan, given = PLANS[name], {}

    def gone(
        old: np.ndarray, coarse: list[Fraction], fine: list[Fraction], noise: bf.noise.Noise
    ) -> np.ndarray:
        given.update(old=old, ratios={c / f for c, f in zip(coarse, fine, strict=True)})
        return np.zeros_like(old)

    seen = plan.observe(X, epsilon=FIRST, noise=seeded(2))
    stored = StoredRelease.from_plain(stored_release(plan, seen, FIRST, AXES))
    earlier = earlier_release(plan, stored)
    assert earlier is not None
    monkeypatch.setattr(plans, "refined", gone)
    again = plan.refine(X, earlier, epsilon=SECOND, noise=seeded(3))
    assert np.allclose(again.answers, plan.workload.answer(X))
    drawn = plan.scales.draw(seeded(2), FIRST)
    assert given["old"].tolist() == drawn[plan.scales.floats() > 0].tolist()
    assert given["ratios"] == {SECOND.fraction / FIRST.fraction}


@pytest.mark.parametrize("name", ["histogram", "optimized"])
def test_a_refined_release_is_as_accurate_as_a_new_one(name: str) -> None:
    plan, squares, count = PLANS[name], np.zeros(PLANS[name].workload.count), 600
    noise, true = seeded(4), PLANS[name].workload.answer(X)
    for _ in range(count):
        seen = plan.observe(X, epsilon=FIRST, noise=noise)
        stored = StoredRelease.from_plain(stored_release(plan, seen, FIRST, AXES))
        earlier = earlier_release(plan, stored)
        assert earlier is not None
        squares += (plan.refine(X, earlier, epsilon=SECOND, noise=noise).answers - true) ** 2
    expected = plan.squared_error(epsilon=SECOND)
    assert squares.mean() / count == pytest.approx(expected, rel=0.12)


def test_what_shows_sums_of_noise_is_not_refined() -> None:
    plan = bf.mechanisms.EdgeNoise().plan(bf.workloads.Histogram(4), bf.graphs.Full(4))
    assert not plan.refinable
    earlier = plans.EarlierRelease(np.eye(4, dtype=np.int64), np.zeros(4, dtype=np.int64), FIRST)
    with pytest.raises(NotProven, match="sums of several noise variables"):
        plan.refine(np.zeros(4, dtype=np.int64), earlier, epsilon=SECOND, noise=seeded(0))
