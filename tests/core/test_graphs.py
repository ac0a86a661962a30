"""Policy graphs against their definitions, cell by cell."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from blowfishdb.core import graphs
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import (
    EmptyDomain,
    InvalidBins,
    InvalidGraph,
    InvalidInput,
    InvalidThreshold,
    InvalidValue,
    SizeMismatch,
    TooLarge,
)
from tests.core import oracle
from tests.core.graph_contract import check_graph
from tests.seeds import seeds


def random_case(seed: int) -> tuple[oracle.Case, tuple[int, ...], np.random.Generator]:
    rng = np.random.default_rng(seed)
    if seed % 5 == 4:
        shape: tuple[int, ...] = (int(rng.integers(2, 11)),)
        case = oracle.apart_graph(rng, shape[0])
    elif rng.random() < 0.5:
        shape = (int(rng.integers(1, 11)),)
        case = oracle.line_graph(rng, shape[0])
    else:
        shape = oracle.random_shape(rng)
        case = oracle.boxes_graph(rng, shape)
    return case, shape, rng


@seeds(300)
def test_every_fact_equals_its_definition(seed: int) -> None:
    case, _, rng = random_case(seed)
    graph, table = oracle.with_presence(case) if rng.random() < 0.25 else case
    check_graph(graph, table, rng)


@seeds(400)
def test_projection_equals_its_definition(seed: int) -> None:
    (graph, table), shape, rng = random_case(5_000 + seed)
    if len(shape) > 1 and rng.random() < 0.7:
        bins: Bins = Bins.product(*(oracle.random_bins(rng, n) for n in shape))
    else:
        bins = oracle.random_bins(rng, graph.size)
    projected = graph.project(bins)
    expected = oracle.brute_force_projection(table, bins.assignment())
    assert (oracle.adjacency(projected) == expected).all()
    again = oracle.random_bins(rng, projected.size)
    twice = oracle.brute_force_projection(expected, again.assignment())
    assert (oracle.adjacency(projected.project(again)) == twice).all()


@seeds(100)
def test_binned_grids_keep_true_distances(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shape = oracle.random_shape(rng)
    graph, table = oracle.l1_grid(rng, shape)
    bins = Bins.product(*(Bins.width(n, int(rng.integers(1, n + 1))) for n in shape))
    coarse = graph.project(bins)
    expected = oracle.brute_force_projection(table, bins.assignment())
    assert isinstance(coarse, graphs.Grid)
    distances = shortest_path(csr_array(expected), unweighted=True)
    for u in range(coarse.size):
        for v in range(coarse.size):
            assert coarse.distance(u, v) == distances[u, v]


@given(st.integers(2, 40), st.integers(1, 50), st.integers(1, 45))
def test_equal_bins_give_a_threshold_of_the_ceiling(size: int, theta: int, width: int) -> None:
    projected = graphs.Threshold(size, theta).project(Bins.width(size, width))
    assert projected == graphs.Threshold(math.ceil(size / width), math.ceil(theta / width))


class TestImplicitGraphsCostNothing:
    def test_a_billion_cells(self) -> None:
        graph = graphs.Threshold(10**9, 10**5)
        assert graph.edge_count == 10**5 * 10**9 - 10**5 * (10**5 + 1) // 2
        assert graph.project(Bins.width(10**9, 1000)) == graphs.Threshold(10**6, 100)
        assert graph.distance(0, 10**9 - 1) == 10**4
        assert len(graph.components()) == 1

    def test_a_record_of_ten_to_the_twelve_cells(self) -> None:
        graph = graphs.Product(*(graphs.Threshold(10**3, 5) for _ in range(4)))
        assert graph.size == 10**12
        assert graph.edge_count == ((10**3 + 2 * (5 * 10**3 - 15)) ** 4 - 10**12) // 2
        onto_one = Bins.product(Bins.width(10**3, 10), *(Bins.width(10**3, 10**3) for _ in range(3)))
        projected = graph.project(onto_one)
        assert projected.size == 100 and projected.edge_count == 99

    def test_public_missing_values_are_not_written_out(self) -> None:
        graph = graphs.Apart(graphs.Threshold(10**9, 10**5))
        assert graph.components().first([0, 1]).tolist() == [0, 10**9]
        bins = Bins.edges(10**9 + 1, [0, 10**8, 10**9])
        assert graph.project(bins) == graphs.Banded([1, 1, 2])
        assert graph.distance(3, 10**9) == math.inf
        with pytest.raises(InvalidGraph, match="whole records"):
            graphs.Apart(graphs.AddRemove(3))

    def test_listing_too_many_edges_is_refused(self) -> None:
        with pytest.raises(TooLarge, match="above the limit"):
            graphs.Full(10**6).edges()


class TestCompositionOfAttributes:
    def test_joint_full_is_differential_privacy_and_cartesian_is_not(self) -> None:
        joint = graphs.Product(graphs.Full(3), graphs.Full(4))
        cartesian = graphs.Product(graphs.Full(3), graphs.Full(4), joint=False)
        assert joint.edge_count == graphs.Full(12).edge_count == 66
        assert cartesian.edge_count == 30

    def test_presence_belongs_to_records(self) -> None:
        with pytest.raises(InvalidGraph, match="whole records"):
            graphs.Product(graphs.AddRemove(3), graphs.Full(2))


class TestHiddenPresence:
    def test_add_remove_has_only_the_edges_of_absence(self) -> None:
        assert graphs.AddRemove(3).edges().tolist() == [[0, 3], [1, 3], [2, 3]]

    def test_any_two_values_are_within_distance_two(self) -> None:
        hidden = graphs.Threshold(100, 1).hide_presence()
        assert hidden.distance(0, 99) == 2 and hidden.distance(0, 1) == 1

    def test_absence_is_never_merged_into_a_bin(self) -> None:
        hidden = graphs.Threshold(6, 1).hide_presence()
        projected = hidden.project(Bins.width(6, 2))
        assert projected.edges().tolist() == [[0, 1], [0, 3], [1, 2], [1, 3], [2, 3]]
        assert hidden.project([0, 0, 1, 1, 2, 2, 3]).edge_count == 5
        with pytest.raises(InvalidBins, match="not counted"):
            hidden.project([0, 0, 1, 1, 2, 2, 2])

    def test_a_missing_value_adjoins_every_value(self) -> None:
        graph = graphs.Cone(graphs.Threshold(5, 1), graphs.Apex.MISSING)
        assert graph.project([0, 0, 1, 1, 1, 2]).edges().tolist() == [[0, 1], [0, 2], [1, 2]]
        assert graph.project([0, 1, 2, 3, 3, 3]).edge_count == 5


class TestBadInput:
    @pytest.mark.parametrize("theta", [0, -1, 1.5, True, "3", math.nan])
    def test_thresholds(self, theta: object) -> None:
        with pytest.raises(InvalidThreshold):
            graphs.Threshold(5, theta)  # type: ignore[arg-type]
        with pytest.raises(InvalidThreshold):
            graphs.Grid((5, 5), theta)  # type: ignore[arg-type]

    @pytest.mark.parametrize("build", [graphs.Full, graphs.AddRemove, lambda n: graphs.Explicit(n, [])])
    def test_sizes(self, build: object) -> None:
        with pytest.raises(EmptyDomain):
            build(0)  # type: ignore[operator]
        with pytest.raises(InvalidGraph):
            build(2.5)  # type: ignore[operator]

    @pytest.mark.parametrize(
        "edges", [[(0, 0)], [(0, 5)], [(-1, 2)], [(0, 1, 2)], [(0.5, 1.0)], [("a", "b")]]
    )
    def test_edges(self, edges: list[tuple[int, ...]]) -> None:
        with pytest.raises(InvalidGraph):
            graphs.Explicit(5, edges)  # type: ignore[arg-type]

    @pytest.mark.parametrize("reach", [[0, 0, 2], [1, 2, 3], [2, 1, 2], [[0]], [0.5]])
    def test_reaches(self, reach: object) -> None:
        with pytest.raises(InvalidGraph):
            graphs.Banded(reach)  # type: ignore[arg-type]

    def test_an_empty_product_and_wrong_widths(self) -> None:
        with pytest.raises(InvalidGraph):
            graphs.Product()
        with pytest.raises(InvalidGraph):
            graphs.Grid((3, 3), 1, widths=(1,))
        with pytest.raises(InvalidInput):
            graphs.Grid((), 1)

    def test_vertices_and_bins_of_another_size(self) -> None:
        with pytest.raises(InvalidValue, match="no cell 5"):
            graphs.Full(5).has_edge(0, 5)
        with pytest.raises(SizeMismatch, match="4 cells"):
            graphs.Full(5).project([0, 0, 1, 1])

    @given(st.lists(st.integers(-2, 6), max_size=8), st.integers(-1, 6))
    def test_any_labels_build_a_partition_or_say_why_not(self, labels: list[int], size: int) -> None:
        try:
            graph = graphs.Partitioned(labels)
        except InvalidInput as error:
            assert str(error)
        else:
            assert graph.size == len(labels) and set(labels) == set(range(max(labels) + 1))


def test_huge_explicit_graphs_find_their_few_edges() -> None:
    graph = graphs.Explicit(10**12, [(0, 10**12 - 1), (5, 10**11)])
    assert graph.has_edge(10**12 - 1, 0) and not graph.has_edge(0, 5)
    assert graph.edge_count == 2
