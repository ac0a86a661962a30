"""Releases as plans make them can be stored, and give back what the plan itself would answer."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from blowfishdb.core import graphs
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Ranges, Workload
from blowfishdb.mechanisms import Hierarchical, Laplace, Mechanism, Optimized, OrderedHierarchical, Privelet
from blowfishdb.mechanisms.reuse import StoredRelease, combine
from tests.core.test_reuse import axis


class Silence:
    """No noise, so that arithmetic can be seen."""

    def discrete_laplace(self, scale: Fraction, count: int) -> NDArray[np.int64]:
        return np.zeros(count, dtype=np.int64)


@pytest.mark.parametrize(
    "mechanism", [Laplace(), Hierarchical(), OrderedHierarchical(), Optimized(), Privelet()]
)
@pytest.mark.parametrize("workload", [Histogram(16), Cumulative(16), AllRanges(16)])
@pytest.mark.parametrize("graph", [graphs.Full(16), graphs.Threshold(16, 2)])
def test_a_stored_release_answers_its_own_question(
    mechanism: Mechanism, workload: Workload, graph: graphs.PolicyGraph
) -> None:
    counts = np.arange(16) * 3
    plan = mechanism.plan(workload, graph)
    rows, scales = plan.rows(epsilon=1)
    seen = plan.observe(counts, epsilon=1, noise=Silence())  # type: ignore[arg-type]
    noisy = plan.scales.floats() > 0
    stored = [StoredRelease.of([axis(16, 1)], rows, scales, np.asarray(seen.measured)[noisy], 1)]
    if seen.totals is not None:
        stored.append(StoredRelease.of([axis(16, 1)], Ranges(16, [0], [15]), 0, seen.totals, 2))
    found = combine(stored, [axis(16, 1)], workload)
    assert found is not None
    assert found.determined.all()
    assert found.values() == pytest.approx(workload.answer(counts), abs=1e-7)
    assert (found.variances <= plan.squared_errors(epsilon=1) * (1 + 1e-9) + 1e-9).all()
