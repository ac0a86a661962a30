"""The sensitivity of one weighted count, against every edge."""

from __future__ import annotations

import numpy as np
import pytest

from blowfishdb.core.domain.bins import single_cells
from blowfishdb.core.graphs import Apart, Apex, Cone, PolicyGraph, Product, Threshold
from blowfishdb.core.sensitivity import one_answer, sensitivity
from blowfishdb.core.workloads import Histogram, Selected, ValueSum
from tests.core import oracle
from tests.seeds import seeds


def column(rng: np.random.Generator, size: int) -> PolicyGraph:
    """With a secret cell for missing values, a public one, or none."""
    kind = rng.integers(0, 4)
    if size > 1 and kind == 0:
        return Cone(oracle.line_graph(rng, size - 1)[0], Apex.MISSING)
    return oracle.apart_graph(rng, size)[0] if size > 1 and kind == 1 else oracle.line_graph(rng, size)[0]


def question(rng: np.random.Generator, shape: tuple[int, ...]) -> Selected:
    """A sum over one column, of the records that a condition on any of them selects."""
    places = np.unravel_index(np.arange(np.prod(shape)), shape)
    axis = int(rng.integers(0, len(shape)))
    values = ValueSum(
        shape[axis], int(rng.integers(-9, 10)), int(rng.integers(1, 4)), bool(rng.integers(0, 2))
    )
    by = places[int(rng.integers(0, len(shape)))]
    chosen = np.isin(by, rng.integers(0, max(shape), 3)) if rng.random() < 0.7 else rng.random(by.size) < 0.6
    return Selected(values, np.where(chosen, places[axis], -1))


@seeds(300)
def test_it_is_the_largest_change_over_the_edges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(1, 8, rng.integers(1, 4)).tolist())
    factors = [column(rng, size) for size in shape]
    graph = factors[0] if len(shape) == 1 else Product(*factors, joint=bool(rng.integers(0, 2)))
    workload = question(rng, shape)
    (weights,), edges = workload.matrix(), graph.edges()
    truth = int(np.abs(weights[edges[:, 0]] - weights[edges[:, 1]]).max(initial=0))
    found = one_answer(workload, graph)
    assert found in (truth, None)
    assert sensitivity(workload, graph) == truth
    absent = graph.hide_presence()
    assert sensitivity(workload, absent) == max(truth, int(np.abs(weights).max()))


def test_most_graphs_have_a_closed_form() -> None:
    found = []
    for seed in range(300):
        rng = np.random.default_rng(seed)
        shape = tuple(rng.integers(1, 8, 2).tolist())
        graph = Product(*(column(rng, size) for size in shape))
        found.append(one_answer(question(rng, shape), graph) is not None)
    assert sum(found) > 150


def test_sums_over_long_columns() -> None:
    """A threshold bounds a sum as long as no row comes or goes; a missing value may."""
    size = 200_000
    line, last = Threshold(size, 1_000), size - 1
    assert sensitivity(ValueSum(size + 1, 0, 1, missing=True), Apart(line)) == 1_000
    assert sensitivity(ValueSum(size + 1, 0, 1, missing=True), Cone(line, Apex.MISSING)) == last
    assert sensitivity(ValueSum(size + 1, -5, 1, missing=True), Apart(line).hide_presence()) == last - 5
    filtered = Selected(ValueSum(size), np.where(np.arange(2 * size) % 2, np.arange(2 * size) // 2, -1))
    assert sensitivity(filtered, Product(line, Threshold(2, 1))) == last
    assert sensitivity(filtered, Product(line, Threshold(2, 1), joint=False)) == last


def test_only_single_questions_are_meant() -> None:
    assert one_answer(Histogram(3), Threshold(3, 1)) is None


@pytest.mark.parametrize("theta", [2**31, 2**63 - 1, 2**63, 10**308])
def test_a_distance_beyond_the_column_hides_everything(theta: int) -> None:
    endless, everything = Threshold(5, theta), Threshold(5, 4)
    workload = Selected(ValueSum(5, 3, 2), np.arange(5))
    assert one_answer(workload, endless) == one_answer(workload, everything) == 8
    beside = [Product(line, Threshold(3, 1)) for line in (endless, everything)]
    filtered = Selected(ValueSum(5, 3, 2), np.repeat(np.arange(5), 3))
    assert one_answer(filtered, beside[0]) == one_answer(filtered, beside[1])
    public = [Apart(line).project(single_cells(6)) for line in (endless, everything)]
    assert public[0].edges().tolist() == public[1].edges().tolist()
