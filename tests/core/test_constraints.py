"""Sensitivity under constraints: never below brute force over Def. 4.1, and equal to it where theory says
so.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import blowfishdb as bf
from blowfishdb.core import graphs, workloads
from blowfishdb.core.constraints import Constraints, Marginal, Reading
from blowfishdb.core.constraints.bound import longest_exchange, shifts
from blowfishdb.core.constraints.constraint_graph import (
    constraint_graph,
    lifts,
    longest_cycle,
    longest_path,
    lowers,
)
from blowfishdb.core.constraints.known_cells import KnownCells
from blowfishdb.core.constraints.under_policy import known_cells
from blowfishdb.core.errors import InvalidInput, NotProven, SizeMismatch
from tests.core import oracle
from tests.core.known_counts import most_change, neighbours
from tests.seeds import seeds


def rows_of(known: KnownCells, graph: graphs.PolicyGraph) -> np.ndarray:
    """The known counts as 0/1 rows over the vertices of a graph, from the labels alone."""
    rows = [
        [int(label == row) for label in known.labels[item]]
        for item, count in enumerate(known.rows)
        for row in range(count)
    ]
    return np.array([row + [0] * (graph.size - known.size) for row in rows])


def by_force(
    workload: workloads.Workload, graph: graphs.PolicyGraph, known: KnownCells, people: int
) -> Fraction:
    table, counts = oracle.adjacency(graph), rows_of(known, graph)
    return most_change(oracle.dense(workload), table, counts, people, known.reading.value)


def histogram(graph: graphs.PolicyGraph, constraints: Constraints) -> object:
    return bf.sensitivity(bf.workloads.Histogram(graph.size - graph.absent), graph, constraints)


def both(
    graph: graphs.PolicyGraph, constraints: Constraints, people: int, *firsts: tuple[int, ...]
) -> tuple[object, object]:
    """Our bound for the histogram, and the truth for this many people (or from the given databases)."""
    workload = bf.workloads.Histogram(graph.size - graph.absent)
    known = known_cells(constraints, graph)
    truth = most_change(
        oracle.dense(workload),
        oracle.adjacency(graph),
        rows_of(known, graph),
        people,
        known.reading.value,
        frozenset(firsts) or None,
    )
    return histogram(graph, constraints), truth


# --- the table of THEORY §2.3 -----------------------------------------------------------------------


def attributes(*sizes: int) -> graphs.Product:
    return graphs.Product(*map(graphs.Full, sizes), joint=False)


def line(size: int, theta: int = 1) -> graphs.Threshold:
    return graphs.Threshold(size, theta)


def test_one_table_under_attribute_secrets_is_not_what_the_paper_says() -> None:
    assert both(attributes(3, 2), Constraints(marginals=[0]), 3) == (
        6,
        4,
    )  # [B14] Thm 8.5 claims 6 as equality


def test_two_tables_under_attribute_secrets_exceed_the_paper() -> None:
    tables = Constraints(marginals=[0, 1])
    assert both(attributes(2, 2, 2), tables, 3) == (8, 6)
    assert both(attributes(2, 2, 2), tables, 4, (2, 6, 1, 4)) == (8, 8)  # Thm 8.5 claims 4
    edge = Constraints(marginals=[0, 1], reading="edge")
    assert both(attributes(2, 2, 2), edge, 3) == (4, 4)


def test_ranges_side_by_side() -> None:
    tiling = [(0, 1), (2, 3), (4, 5)]
    assert both(line(6), Constraints(ranges=tiling), 3) == (6, 6)  # Thm 8.6 claims 8
    assert both(line(6), Constraints(ranges=tiling, reading="edge"), 3) == (4, 2)


def test_ranges_far_from_each_other_exceed_the_paper() -> None:
    assert both(line(8), Constraints(ranges=[(0, 1), (3, 4), (6, 7)]), 4, (6, 0, 2, 3)) == (
        8,
        8,
    )  # Thm 8.6 claims 4


def test_corollary_8_3_is_wrong() -> None:
    assert both(graphs.Full(4), Constraints(counts=[{0, 1}]), 2) == (4, 4)  # it claims 2


def test_overlapping_counts_exceed_the_bound_for_disjoint_ones() -> None:
    overlapping = Constraints(ranges=[((0, 0), (0, 1), (0, 1)), ((0, 1), (0, 0), (0, 1))])
    assert both(graphs.Product(*(graphs.Full(2),) * 3), overlapping, 4, (5, 0, 6, 3)) == (
        8,
        8,
    )  # 2(|Q| + 1) = 6


def test_prefixes_move_by_whole_classes() -> None:
    graph, known = line(7), Constraints(ranges=[(0, 2)])
    workload = bf.workloads.Cumulative(7)
    assert bf.sensitivity(workload, graph) == 1
    assert bf.sensitivity(workload, graph, known) == 5
    assert by_force(workload, graph, known_cells(known, graph), 2) == 5


def test_a_total_that_no_longer_is_exact() -> None:
    """G = {01}, {23}, Q = {{0, 2}}: the total of {0, 1} changes between neighbours."""
    graph = graphs.Partitioned([0, 0, 1, 1])
    table, counts = oracle.adjacency(graph), np.array([[1, 0, 1, 0]])
    assert ((0, 1), (1, 2)) in set(neighbours(table, counts, 2))
    total = bf.workloads.Matrix([[1, 1, 0, 0]])
    assert bf.sensitivity(total, graph) == 0
    assert bf.sensitivity(total, graph, Constraints(counts=[{0, 2}])) >= 1


# --- Examples 8.1 to 8.3 ----------------------------------------------------------------------------

RECORDS = graphs.Full(12)  # A1 × A2 × A3 with 2, 2 and 3 values
TABLE = Constraints(counts=[set(range(3 * i, 3 * i + 3)) for i in range(4)])


def test_example_8_1_lift_lower_and_sparse() -> None:
    known = known_cells(TABLE, RECORDS)
    assert known.counts is not None
    u, v = known.classes[[0]], known.classes[[10]]  # (a1, b1, c1) to (a2, b2, c2)
    assert lifts(known.counts, u, v).ravel().tolist() == [False, False, False, True]
    assert lowers(known.counts, u, v).ravel().tolist() == [True, False, False, False]
    same = known.classes[[3]], known.classes[[4]]  # (a1, b2, c1) to (a1, b2, c2)
    assert not lifts(known.counts, *same).any() and not lowers(known.counts, *same).any()


def test_example_8_2_the_constraint_graph() -> None:
    found = constraint_graph(known_cells(TABLE, RECORDS), RECORDS)
    assert found is not None and found.size == 4
    assert found.successors[found.source] == {found.sink}
    assert (found.alpha.found, found.alpha.exact) == (4, True)
    assert (found.xi.found, found.xi.exact) == (1, True)


def test_example_8_3_the_histogram() -> None:
    assert histogram(RECORDS, TABLE) == 8
    product = graphs.Product(graphs.Full(2), graphs.Full(2), graphs.Full(3))
    assert histogram(product, Constraints(marginals=[(0, 1)])) == 8
    smaller = graphs.Product(graphs.Full(2), graphs.Full(2), graphs.Full(2))
    assert both(smaller, Constraints(marginals=[(0, 1)]), 4, (0, 2, 4, 6)) == (8, 8)


def test_a_table_of_everything_leaves_nothing_to_hide() -> None:
    """Equality in Theorem 8.4 needs a remaining domain of two values; without one, all is determined."""
    assert histogram(graphs.Full(6), Constraints(marginals=[0])) == 0


def test_counts_that_are_not_sparse_have_no_constraint_graph() -> None:
    graph = graphs.Full(3)
    assert constraint_graph(known_cells(Constraints(counts=[{0, 1}, {0}]), graph), graph) is None
    assert histogram(graph, Constraints(counts=[{0, 1}, {0}])) == 0  # nested: every class is known


# --- pair sums, [B14] §3.2 --------------------------------------------------------------------------


def pair_sums(k: int) -> Constraints:
    return Constraints(counts=[{i, i + 1} for i in range(k - 1)])


@pytest.mark.parametrize("k", [3, 4, 5])
def test_pair_sums_by_force(k: int) -> None:
    truth = [both(graphs.Full(k), pair_sums(k), people)[1] for people in (1, 2, 3)]
    assert max(truth) == histogram(graphs.Full(k), pair_sums(k)) == (k if k % 2 == 0 else 0)  # type: ignore[type-var]


@pytest.mark.parametrize("k", [6, 17, 64, 101])
def test_pair_sums_of_any_length(k: int) -> None:
    assert histogram(graphs.Full(k), pair_sums(k)) == (k if k % 2 == 0 else 0)
    assert bf.sensitivity(bf.workloads.Cumulative(k), graphs.Full(k), pair_sums(k)) == (k // 2 * (1 - k % 2))


def test_a_free_direction_with_larger_steps() -> None:
    """c₀ + c₁ + c₂ = a, c₀ + c₁ + c₃ = b, c₀ + c₂ + c₃ = c leave (2, −1, −1, −1) without a total."""
    known = Constraints(counts=[{0, 1, 2}, {0, 1, 3}, {0, 2, 3}])
    graph = graphs.Full(5)
    assert histogram(graph, known) == 6
    assert both(graph, known, 3) == (6, 6)


# --- many small cases -------------------------------------------------------------------------------


def random_known(rng: np.random.Generator, size: int) -> Constraints:
    kind = rng.integers(0, 4)
    reading = ["literal", "edge"][int(rng.integers(0, 2))]
    if kind == 0:  # disjoint
        labels = rng.integers(-1, 3, size)
        sets = [np.flatnonzero(labels == label).tolist() for label in range(3) if (labels == label).any()]
        return Constraints(counts=sets or [[0]], reading=reading)
    if kind == 1:  # a table
        labels = oracle.random_partition(rng, size)
        return Constraints(marginals=[Marginal((0,), (bf.Bins.labels(labels),))], reading=reading)
    if kind == 2:  # ranges, nested, apart or crossing
        ends = np.sort(rng.integers(0, size, (int(rng.integers(1, 4)), 2)), axis=1).tolist()
        return Constraints(ranges=[tuple(end) for end in ends], reading=reading)
    sets = [np.flatnonzero(rng.random(size) < 0.5).tolist() or [0] for _ in range(rng.integers(1, 4))]
    return Constraints(counts=sets, reading=reading)


@seeds(240)
def test_never_below_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, people = [(3, 4), (4, 3), (5, 3), (4, 3)][seed % 4]
    graph, table = oracle.line_graph(rng, size)
    if seed % 5 == 0:
        graph, table = oracle.with_presence((graph, table))
        people = 3
    constraints = random_known(rng, size)
    workload = oracle.line_workload(rng, size) if seed % 3 else bf.workloads.Histogram(size)
    known = known_cells(constraints, graph)
    truth = most_change(oracle.dense(workload), table, rows_of(known, graph), people, known.reading.value)
    assert truth <= bf.sensitivity(workload, graph, constraints)


def test_the_comparison_with_brute_force_can_fail() -> None:
    """Without constraints the sensitivity is too small for some of these cases, and the check sees it."""
    graph, known = graphs.Full(4), Constraints(counts=[{0, 1}])
    assert by_force(bf.workloads.Histogram(4), graph, known_cells(known, graph), 2) > bf.sensitivity(
        bf.workloads.Histogram(4), graph
    )


@pytest.mark.parametrize("seed", range(20))
def test_exact_for_histograms_under_the_full_policy(seed: int) -> None:
    """One record leaves and one enters each class with two cells or more, if there are enough people."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    labels = oracle.random_partition(rng, size)
    known = Constraints(marginals=[Marginal((0,), (bf.Bins.labels(labels),))])
    classes = int((np.bincount(labels) >= 2).sum())
    expected = max(2 * classes, 0) if len(set(labels)) > 1 else 2
    people = min(4, len(set(labels.tolist())))
    bound, truth = both(graphs.Full(size), known, people)
    assert bound == expected == truth


def test_neighbours_are_not_symmetric() -> None:
    """So every ordered pair is looked at."""
    rng = np.random.default_rng(5)
    for _ in range(40):
        _, table = oracle.line_graph(rng, 4)
        counts = rng.integers(0, 2, (2, 4))
        pairs = {(tuple(sorted(zip(a, b, strict=True)))) for a, b in neighbours(table, counts, 3)}
        if any(tuple(sorted((b, a) for a, b in pair)) not in pairs for pair in pairs):
            return
    raise AssertionError("all forty cases were symmetric")


# --- searches ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_longest_cycles_and_paths_by_enumeration(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 7))
    table = rng.random((n, n)) < rng.random()
    np.fill_diagonal(table, False)
    successors = [set(np.flatnonzero(row).tolist()) for row in table]
    cycle = path = 0
    for count in range(2, n + 1):
        for order in itertools.permutations(range(n), count):
            joined = all(b in successors[a] for a, b in itertools.pairwise(order))
            if joined and order[0] in successors[order[-1]]:
                cycle = max(cycle, count)
            if joined and order[0] == 0 and order[-1] == 1:
                path = max(path, count - 1)
    found, walked = longest_cycle(successors), longest_path(successors, 0, 1)
    assert (found.found, found.at_most) == (cycle, cycle)
    assert (walked.found, walked.at_most) == (path, path)
    rushed, hurried = longest_cycle(successors, work=3), longest_path(successors, 0, 1, work=3)
    assert rushed.found <= cycle <= rushed.at_most <= n
    assert hurried.found <= path <= hurried.at_most <= n - 1


def test_large_complete_graphs_need_no_search() -> None:
    n = 500
    everything = [set(range(n)) - {i} for i in range(n)]
    assert longest_cycle(everything, work=1).found == n


@pytest.mark.parametrize("seed", range(25))
def test_longest_exchanges_by_enumeration(seed: int) -> None:
    """All multisets of up to seven moves that shift nothing in total and have no such part."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 2, (2, 4)).astype(bool)
    moved = shifts(counts, None)
    assert moved is not None
    if not len(moved):
        return
    longest = 1
    for length in range(2, 7):
        for chosen in itertools.combinations_with_replacement(range(len(moved)), length):
            if moved[list(chosen)].sum(axis=0).any():
                continue
            parts = (c for size in range(1, length) for c in itertools.combinations(chosen, size))
            if all(moved[list(part)].sum(axis=0).any() for part in parts):
                longest = length
    assert longest_exchange(moved) == longest
    assert longest_exchange(moved, work=1) in (None, longest)


# --- refusals ---------------------------------------------------------------------------------------


def test_several_large_tables_are_refused_and_say_why() -> None:
    graph = graphs.Product(*(graphs.Full(10),) * 3)
    with pytest.raises(NotProven, match="overlap") as refused:
        histogram(graph, Constraints(marginals=[0, 1]))
    assert any("one table" in fix for fix in refused.value.fixes)
    assert not any("edge" in fix for fix in refused.value.fixes)  # not sparse under the joint policy either


def test_the_edge_reading_is_offered_only_where_it_helps() -> None:
    graph = attributes(9, 9, 2)
    with pytest.raises(NotProven) as refused:
        histogram(graph, Constraints(marginals=[0, 1]))
    assert any("edge" in fix for fix in refused.value.fixes)
    assert histogram(graph, Constraints(marginals=[0, 1], reading="edge")) == 18


def test_where_no_edge_touches_what_is_known_nothing_changes() -> None:
    graph = graphs.Partitioned([0, 0, 1, 1, 2, 2])
    known = Constraints(counts=[{0, 1, 2, 3}, {2, 3, 4, 5}, {0, 1, 4, 5}])
    assert histogram(graph, known) == 2 == histogram(graph, Constraints())
    assert histogram(graphs.Explicit(4, ()), Constraints(counts=[{0, 1}])) == 0


# --- what is declared -------------------------------------------------------------------------------


def test_short_forms_mean_the_long_ones() -> None:
    age = bf.col("age") >= 30
    short = Constraints(counts=[age, (age, 5)], marginals=["sex", ("sex", "age")], ranges=[{"age": (3, 4)}])
    assert short.counts[1].answer == 5 and short.counts[0].answer is None
    assert short.marginals[1].columns == ("sex", "age") and short.columns == {"age", "sex"}
    assert short.ranges[0].sides == (("age", 3, 4),) and short.reading is Reading.LITERAL
    assert not Constraints() and short and short == Constraints(short.counts, short.marginals, short.ranges)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Constraints(reading="loose"),
        lambda: Constraints(counts=[(bf.col("a") == 1, -1)]),
        lambda: Constraints(counts=["a"]),
        lambda: Constraints(counts=[[]]),
        lambda: Constraints(marginals=[()]),
        lambda: Constraints(marginals=[("a", "a")]),
        lambda: Constraints(marginals="sex"),
        lambda: Constraints(ranges=[(3, 1)]),
        lambda: Constraints(ranges=[{}]),
        lambda: Constraints(counts=bf.col("a") == 1),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        wrong()  # type: ignore[operator]


def test_bare_cells_and_columns_are_not_mixed_up() -> None:
    workload, graph = bf.workloads.Histogram(3), graphs.Full(3)
    with pytest.raises(InvalidInput, match="domain"):
        bf.sensitivity(workload, graph, Constraints(counts=[bf.col("a") == 1]))
    with pytest.raises(InvalidInput, match="does not exist"):
        bf.sensitivity(workload, graph, Constraints(counts=[{3}]))
    with pytest.raises(InvalidInput, match="numbered"):
        bf.sensitivity(workload, graph, Constraints(marginals=["a"]))
    domain = bf.Domain(a=bf.Integer(0, 2))
    assert bf.sensitivity(workload, graph, Constraints(counts=[bf.col("a") >= 1]), domain=domain) == 2
    with pytest.raises(SizeMismatch):
        bf.sensitivity(bf.workloads.Histogram(4), graph, Constraints(counts=[{1}]))
    with pytest.raises(InvalidInput, match="list of cells"):
        bf.Policy(domain, graph, Constraints(counts=[{1}]))
