"""How far apart in one policy graph two values are that another joins: against breadth-first search."""

from __future__ import annotations

import math

import numpy as np
import pytest

from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.graphs import (
    Apart,
    Apex,
    Cone,
    Explicit,
    Full,
    Grid,
    Partitioned,
    PolicyGraph,
    Product,
    Threshold,
)
from blowfishdb.core.graphs.inclusion import stretch


def searched(old: PolicyGraph, new: PolicyGraph) -> float:
    """The definition, pair by pair."""
    pairs = new.edges().tolist()
    if new.size > old.size:
        return math.inf
    return max((float(old.distance(u, v)) for u, v in pairs), default=0.0)


def lines(size: int) -> list[PolicyGraph]:
    thirds = Bins.width(size, max(1, size // 3))
    steps = [(i, i + 1) for i in range(size - 1) if i % 3]
    return [
        Full(size),
        *(Threshold(size, theta) for theta in (1, 2, 3, size)),
        Partitioned(thirds),
        Partitioned(Bins.labels(np.arange(size) % 2)),
        Explicit(size, steps),
        Explicit(size, ()),
    ]


@pytest.mark.parametrize("size", [2, 7])
def test_one_column(size: int) -> None:
    for old in lines(size):
        for new in lines(size):
            assert stretch(old, new) == searched(old, new), (old.describe(), new.describe())


def test_public_missing_values_stay_apart() -> None:
    values = [base for base in lines(6) if base.size == 6]
    for old in map(Apart, values):
        for new in [*map(Apart, values), *(Cone(base, Apex.MISSING) for base in values), *lines(7)]:
            assert stretch(old, new) == searched(old, new), (old.describe(), new.describe())
    for old in [*(Cone(base, Apex.MISSING) for base in values), *lines(7)]:
        for new in map(Apart, values):
            assert stretch(old, new) >= searched(old, new), (old.describe(), new.describe())


@pytest.mark.parametrize("old_joint", [True, False])
@pytest.mark.parametrize("new_joint", [True, False])
def test_two_columns(old_joint: bool, new_joint: bool) -> None:
    for a, b in zip(lines(4), lines(3)[::-1], strict=True):
        for c, d in zip(lines(4)[::-1], lines(3), strict=True):
            old, new = Product(a, b, joint=old_joint), Product(c, d, joint=new_joint)
            assert stretch(old, new) == searched(old, new), (old.describe(), new.describe())


@pytest.mark.parametrize("old", [Grid((4, 3), 1), Grid((4, 3), 2)])
def test_grids(old: Grid) -> None:
    product = Product(Threshold(4, 2), Full(3), joint=True)
    others = [Grid((4, 3), 3), product, Product(Threshold(4, 2), Full(3), joint=False), Full(12)]
    for new in others:
        assert stretch(old, new) == searched(old, new), new.describe()
    for theta in (1, 2, 3):
        assert stretch(product, Grid((4, 3), theta)) >= searched(product, Grid((4, 3), theta))


def test_presence() -> None:
    """⊥ joins every value, so two steps suffice; where it was not hidden nothing makes up for it."""
    for graph in lines(5):
        hidden = graph.hide_presence()
        for other in lines(5):
            assert stretch(hidden, other) == searched(hidden, other)
            assert stretch(hidden, other.hide_presence()) == searched(hidden, other.hide_presence())
            assert stretch(graph, other.hide_presence()) == math.inf


def test_the_closed_forms_of_long_lines() -> None:
    """REUSE §3: ⌈min(θ′, k−1)/θ⌉, joint by the largest, Cartesian by the sum."""
    long = 10**8
    assert stretch(Threshold(long, 1_000), Threshold(long, 10_000)) == 10
    assert stretch(Threshold(long, 3), Full(long)) == math.ceil((long - 1) / 3)
    old = [Threshold(long, 10), Threshold(long, 7)]
    new = Product(Threshold(long, 95), Threshold(long, 22), joint=True)
    assert stretch(Product(*old, joint=True), new) == 10
    assert stretch(Product(*old, joint=False), new) == 14


def test_beyond_what_is_searched_it_is_a_bound() -> None:
    ring = Explicit(4_000, [(i, (i + 1) % 4_000) for i in range(4_000)])
    assert 2_000 <= stretch(ring, Full(4_000)) < math.inf
    assert stretch(Explicit(4_000, [(0, 1)]), Threshold(4_000, 1)) == math.inf
