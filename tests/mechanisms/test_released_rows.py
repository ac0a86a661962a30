"""Which exact totals are in the answers of a plan, and which of them the answers show: by linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import BlowfishError
from blowfishdb.core.graphs import AddRemove, Explicit, Full, Partitioned, PolicyGraph, Product, Threshold
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Ranges, Selected, ValueSum, Workload
from blowfishdb.core.workloads import Product as Boxes
from blowfishdb.mechanisms import CATALOGUE, Mechanism
from blowfishdb.mechanisms.losses import ReleasedRows, measured_rows
from blowfishdb.mechanisms.plan import Plan

CELLS = 6


class Silence:
    """No noise, so that arithmetic can be seen."""

    def discrete_laplace(self, scale: Fraction, count: int) -> NDArray[np.int64]:
        return np.zeros(count, dtype=np.int64)


GRAPHS: dict[str, PolicyGraph] = {
    "full": Full(CELLS),
    "line": Threshold(CELLS, 1),
    "wide": Threshold(CELLS, 2),
    "halves": Partitioned(Bins.width(CELLS, 3)),
    "mixed": Explicit(CELLS, [(0, 2), (2, 4), (1, 3)]),
    "parts": Explicit(CELLS, [(0, 1), (2, 3), (3, 4)]),
    "nothing": Explicit(CELLS, ()),
    "hidden": AddRemove(CELLS),
    "present": Threshold(CELLS, 1).hide_presence(),
    "boxes": Product(Full(2), Threshold(3, 1)),
    "columns": Product(Explicit(2, ()), Threshold(3, 1), joint=False),
}
WORKLOADS: dict[str, Workload] = {
    "histogram": Histogram(CELLS),
    "cumulative": Cumulative(CELLS),
    "ranges": AllRanges(CELLS),
    "some": Ranges(CELLS, [0, 1, 3], [2, 3, 5]),
    "inner": Ranges(CELLS, [1, 2], [3, 4]),
    "sum": ValueSum(CELLS, 2, 3),
    "filtered": Selected(Histogram(3), np.array([0, -1, 1, -1, 2, -1])),
    "grid": Boxes(Histogram(2), Histogram(3)),
    "margin": Boxes(Histogram(2), Ranges(3, [0], [2])),
    "everybody": Ranges(CELLS, [0], [5]),
    "nobody": Selected(Ranges(2, [0], [0]), np.array([-1, 1, 1, 1, -1, -1])),
}


def plans(mechanism: Mechanism, graph: str) -> Iterator[Plan]:
    """Every workload that the mechanism answers under a graph from rows with noise of their own."""
    for workload in WORKLOADS.values():
        try:
            plan = mechanism.plan(workload, GRAPHS[graph])
            measured_rows(plan, Epsilon(1))
        except (BlowfishError, NotImplementedError):
            continue
        yield plan


def noise_in(plan: Plan) -> NDArray[np.float64]:
    """T: how much of every noise variable that is drawn is in every answer; of exact ones none is."""
    if plan.free:
        return np.zeros((plan.workload.count, 0))
    mixed = np.asarray(plan.spread(np.eye(len(plan.scales))), dtype=np.float64).T
    return np.asarray(mixed[:, plan.scales.floats() > 0])


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("mechanism", CATALOGUE)
def test_an_exact_total_counts_wherever_it_is_in_the_answers(mechanism: Mechanism, graph: str) -> None:
    """A record moves: the noise that hides it in stored rows hides it in the answers, or a row is used."""
    for plan in plans(mechanism, graph):
        check_used(plan)


def check_used(plan: Plan) -> None:
    rows = ReleasedRows(plan, Epsilon(1))
    noisy, used = rows.noisy[0].toarray(), rows.used.toarray()
    mixed = noise_in(plan)
    asked = plan.workload.sparse().toarray() / plan.workload.denominator
    cells = [*np.eye(CELLS, dtype=np.int64), np.zeros(CELLS, dtype=np.int64)]
    for u in cells:
        for v in cells:
            hidden = np.allclose(mixed @ (noisy @ (u - v)), asked @ (u - v), atol=1e-7)
            assert hidden == (not (used @ (u - v)).any())


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("mechanism", CATALOGUE)
def test_a_total_is_kept_if_it_can_be_read_off_the_answers(mechanism: Mechanism, graph: str) -> None:
    for plan in plans(mechanism, graph):
        check_shown(plan)


def check_shown(plan: Plan) -> None:
    rows = ReleasedRows(plan, Epsilon(1))
    counts = np.arange(CELLS) * 3 + 1
    seen = plan.observe(counts, epsilon=1, noise=Silence())  # type: ignore[arg-type]
    shown, values = rows.shown(seen)
    assert (shown.toarray() @ counts == values).all()
    assert (rows.noisy[0].toarray() @ counts == rows.noisy_values(seen)).all()
    if plan.free:  # measured without noise, so nothing of it may be seen but the answers
        assert not np.any(seen.measured) and not rows.noisy_values(seen).size
    mixed = noise_in(plan)
    asked = plan.workload.sparse().toarray() / plan.workload.denominator
    left, strength, _ = np.linalg.svd(mixed, full_matrices=True)
    silent = left[:, (np.append(strength, np.zeros(len(left)))[: len(left)] < 1e-9)]  # wᵀT = 0
    readable = silent.T @ asked
    for row in shown.toarray():
        found = np.linalg.lstsq(readable.T, row.astype(float), rcond=None)[0] @ readable
        assert np.allclose(found, row, atol=1e-7)
    exact = np.flatnonzero(plan.exact)
    if exact.size:  # whatever is shown as exact follows from what is kept
        wanted, kept = asked[exact], shown.toarray().astype(float)
        assert np.allclose(np.linalg.lstsq(kept.T, wanted.T, rcond=None)[0].T @ kept, wanted, atol=1e-7)


def test_enough_is_looked_at() -> None:
    looked = [plan for mechanism in CATALOGUE for graph in GRAPHS for plan in plans(mechanism, graph)]
    assert len(looked) > 500
    rows = [ReleasedRows(plan, Epsilon(1)) for plan in looked]
    assert sum(bool(one.used.shape[0]) for one in rows) > 150
    assert sum(not one.used.shape[0] for one in rows) > 150
