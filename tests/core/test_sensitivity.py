"""Exact sensitivity: every number of the table, brute force on thousands of pairs, and speed by structure."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core import graphs, workloads
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import SizeMismatch, TooLarge
from blowfishdb.core.sensitivity import _as_much_as_can_be, sensitivity
from tests.core import oracle
from tests.seeds import seeds

FULL = 10**6


def line(size: int, theta: int) -> graphs.PolicyGraph:
    return graphs.Full(size) if theta == FULL else graphs.Threshold(size, theta)


@seeds(1200)
def test_equals_brute_force_on_lines(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 10))
    case = oracle.line_graph(rng, size)
    graph, table = oracle.with_presence(case) if rng.random() < 0.2 else case
    workload = oracle.line_workload(rng, size)
    assert sensitivity(workload, graph) == oracle.brute_force_sensitivity(workload, table)


@seeds(1200)
def test_equals_brute_force_on_boxes(seed: int) -> None:
    rng = np.random.default_rng(10_000 + seed)
    shape = oracle.random_shape(rng)
    case = oracle.boxes_graph(rng, shape)
    graph, table = oracle.with_presence(case) if rng.random() < 0.2 else case
    workload = oracle.boxes_workload(rng, shape)
    assert sensitivity(workload, graph) == oracle.brute_force_sensitivity(workload, table)


def test_what_no_move_can_exceed_is_the_largest_where_one_reaches_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule for graphs with many edges, held against all edges of small ones."""
    monkeypatch.setattr("blowfishdb.core.sensitivity._MANY_EDGES", 1)
    reached = 0
    for seed in range(800):
        rng = np.random.default_rng(20_000 + seed)
        shape = oracle.random_shape(rng)
        graph, table = oracle.boxes_graph(rng, shape) if seed % 2 else oracle.line_graph(rng, np.prod(shape))
        workload = (
            workloads.Selected(workloads.Histogram(5), rng.integers(-1, 5, size=int(np.prod(shape))))
            if seed % 3
            else oracle.boxes_workload(rng, shape)
        )
        largest = _as_much_as_can_be(workload, graph)
        reached += largest is not None
        assert largest in (None, scaled_brute_force(workload, table))
    assert reached > 200


def scaled_brute_force(workload: workloads.Workload, table: np.ndarray) -> int:
    return int(oracle.brute_force_sensitivity(workload, table) * workload.denominator)


class TestTheTable:
    """The values that the theory gives."""

    def test_histogram_is_two_and_zero_without_an_edge(self) -> None:
        assert sensitivity(workloads.Histogram(9), graphs.Threshold(9, 2)) == 2
        assert sensitivity(workloads.Histogram(9), graphs.Explicit(9, [])) == 0

    @pytest.mark.parametrize(("theta", "expected"), [(1, 1), (4, 4), (16, 16), (63, 63), (200, 63)])
    def test_cumulative_is_theta_up_to_the_line(self, theta: int, expected: int) -> None:
        assert sensitivity(workloads.Cumulative(64), graphs.Threshold(64, theta)) == expected

    def test_cumulative_under_a_partition_is_the_largest_span_of_a_part(self) -> None:
        labels = [0, 1, 0, 1, 1, 2, 2, 0, 3, 3]
        assert sensitivity(workloads.Cumulative(10), graphs.Partitioned(labels)) == 7

    @pytest.mark.parametrize(("theta", "expected"), [(1, 64), (4, 244), (16, 784), (FULL, 1056)])
    def test_all_ranges_on_64_cells(self, theta: int, expected: int) -> None:
        assert sensitivity(workloads.AllRanges(64), line(64, theta)) == expected

    @pytest.mark.parametrize(("width", "expected"), [(4, 0), (8, 0), (2, 2), (3, 2)])
    def test_partition_histogram_is_free_on_its_own_or_coarser_parts(self, width: int, expected: int) -> None:
        policy = graphs.Partitioned(Bins.width(16, 4))
        bins = Bins.width(16, width)
        assert sensitivity(workloads.Histogram(bins.count), policy.project(bins)) == expected

    @pytest.mark.parametrize("theta", [1, 3, 9, 50])
    def test_a_linear_sum_moves_by_the_largest_weight_times_theta(self, theta: int) -> None:
        """[B14] forgot the absolute value: negative weights count too."""
        weights = np.arange(0, 10) * -7
        assert sensitivity(workloads.Matrix(weights), graphs.Threshold(10, theta)) == 7 * min(theta, 9)

    @pytest.mark.parametrize(("ways", "full", "attribute"), [(1, 6, 2), (2, 6, 4)])
    def test_marginals_of_three_attributes(self, ways: int, full: int, attribute: int) -> None:
        subsets = {1: [(0,), (1,), (2,)], 2: [(0, 1), (0, 2), (1, 2)]}[ways]
        workload = workloads.Marginals((3, 4, 2), subsets)
        factors = [graphs.Full(3), graphs.Full(4), graphs.Full(2)]
        assert sensitivity(workload, graphs.Full(24)) == full
        assert sensitivity(workload, graphs.Product(*factors)) == full
        assert sensitivity(workload, graphs.Product(*factors, joint=False)) == attribute

    @pytest.mark.parametrize(("theta", "prefix", "margins"), [(1, 6, 2), (2, 12, 4), (3, 18, 4), (10, 35, 4)])
    def test_the_six_by_six_grid(self, theta: int, prefix: int, margins: int) -> None:
        grid = graphs.Grid((6, 6), theta)
        cumulative = workloads.Product(workloads.Cumulative(6), workloads.Cumulative(6))
        assert sensitivity(cumulative, grid) == prefix
        assert sensitivity(workloads.Marginals((6, 6), [(0,), (1,)]), grid) == margins

    def test_hidden_presence_raises_cumulative_to_k_and_ranges_to_the_widest_column(self) -> None:
        hidden = graphs.Threshold(64, 1).hide_presence()
        assert sensitivity(workloads.Cumulative(64), hidden) == 64
        assert sensitivity(workloads.AllRanges(64), hidden) == max(i * (65 - i) for i in range(1, 65))

    def test_the_projection_example_of_the_blowfishdb_paper(self) -> None:
        """[BDB] Example 2: W* = [[1,0],[1,1]], G* a single edge, sensitivity 1."""
        bins = Bins.width(200_000, 100_000)
        policy = graphs.Threshold(200_000, 1_000).project(bins)
        workload = workloads.Cumulative(bins.count)
        assert workload.matrix().tolist() == [[1, 0], [1, 1]]
        assert policy.edges().tolist() == [[0, 1]]
        assert sensitivity(workload, policy) == 1

    def test_a_filtered_sum_is_not_bounded_by_theta(self) -> None:
        """SUM(salary) WHERE region = 0 under Threshold(10, 1) × Full(2) moves by 9, not by 1."""
        policy = graphs.Product(graphs.Threshold(10, 1), graphs.Full(2))
        filtered = workloads.Product(workloads.Matrix(np.arange(10)), workloads.Matrix([1, 0]))
        unfiltered = workloads.Product(workloads.Matrix(np.arange(10)), workloads.Matrix([1, 1]))
        assert sensitivity(filtered, policy) == 9
        assert sensitivity(unfiltered, policy) == 1


class TestFiltersOnALine:
    """REUSE §5, k = 100, θ = 1: unqueried cells stay, left and right of the range apart."""

    def test_the_table(self) -> None:
        line100 = graphs.Threshold(100, 1)
        cells = workloads.Ranges(100, [40, 50, 60], [40, 50, 60])
        assert sensitivity(workloads.Histogram(100), line100) == 2
        assert sensitivity(workloads.Ranges(100, [40], [40]), line100) == 1
        assert sensitivity(cells, line100) == 1
        assert sensitivity(workloads.Ranges(100, [40], [59]), line100) == 1
        inside = workloads.Ranges(100, np.full(20, 40), np.arange(40, 60))
        assert sensitivity(inside, line100) == 20
        prefixes = workloads.Ranges(100, np.zeros(21, dtype=int), np.arange(39, 60))
        assert sensitivity(prefixes, line100) == 1


class TestStructureMakesItInstant:
    def test_cumulative_on_a_hundred_million_cells(self) -> None:
        assert sensitivity(workloads.Cumulative(10**8), graphs.Threshold(10**8, 10**5)) == 10**5

    def test_all_ranges_on_a_million_cells(self) -> None:
        assert sensitivity(workloads.AllRanges(10**6), graphs.Threshold(10**6, 7)) == 7 * (10**6 - 6)

    def test_few_ranges_on_a_billion_cells(self) -> None:
        policy = graphs.Threshold(10**9, 10**6)
        workload = workloads.Ranges(10**9, [0, 5 * 10**8], [10**8, 6 * 10**8])
        assert sensitivity(workload, policy) == 1

    def test_a_record_of_eight_attributes(self) -> None:
        policy = graphs.Product(*(graphs.Threshold(10**3, 10) for _ in range(8)))
        workload = workloads.Marginals((10**3,) * 8, [(0,), (3,)])
        assert sensitivity(workload, policy) == 4

    def test_the_cells_of_any_product(self) -> None:
        policy = graphs.Product(*(graphs.Full(8) for _ in range(5)))
        assert sensitivity(workloads.Histogram(8**5), policy) == 2
        assert sensitivity(workloads.Histogram(8**5), policy.hide_presence()) == 2

    def test_two_dimensional_cumulative_on_large_grids(self) -> None:
        workload = workloads.Product(workloads.Cumulative(1024), workloads.Cumulative(1024))
        policy = graphs.Product(graphs.Threshold(1024, 4), graphs.Threshold(1024, 4))
        assert sensitivity(workload, policy) == 1024**2 - 1020**2
        assert sensitivity(workload, graphs.Grid((1024, 1024), 2)) == 2 * 1024

    def test_beyond_every_structure_it_refuses_rather_than_guesses(self) -> None:
        workload = workloads.Rectangles((300, 300), np.stack([np.arange(300)] * 2, 1), np.full((300, 2), 299))
        with pytest.raises(TooLarge):
            sensitivity(workload, graphs.Full(90_000))


def test_rationals_are_exact() -> None:
    workload = workloads.Matrix(np.array([[Fraction(1, 3), Fraction(1, 7), 0]], dtype=object))
    assert sensitivity(workload, graphs.Full(3)) == Fraction(1, 3)
    assert sensitivity(workload, graphs.Threshold(3, 1)) == Fraction(4, 21)


def test_entries_beyond_64_bits_do_not_overflow() -> None:
    workload = workloads.Matrix(np.array([[2**62, -(2**62), 0], [2**62, 0, 1]], dtype=object))
    assert sensitivity(workload, graphs.Full(3)) == 2**63 + 2**62


def test_sizes_must_agree() -> None:
    with pytest.raises(SizeMismatch, match="4 cells"):
        sensitivity(workloads.Histogram(4), graphs.Full(5))
