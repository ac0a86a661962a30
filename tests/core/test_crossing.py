"""What one hidden move changes in the sizes and sums of clusters: by brute force over edges, and beyond."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from benchmarks.points import Points

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.errors import InvalidWorkload, SizeMismatch, TooLarge
from blowfishdb.core.graphs import (
    AddRemove,
    Apex,
    Banded,
    Cone,
    Explicit,
    Full,
    Grid,
    Partitioned,
    PolicyGraph,
    Product,
    Threshold,
)
from blowfishdb.core.questions.clusters import FINE, Centroids, PointSpace
from blowfishdb.mechanisms.kmeans import crossing
from blowfishdb.mechanisms.kmeans.crossing import moves_inside, round_change, round_facts
from blowfishdb.mechanisms.kmeans.crossing_bound import (
    Reach,
    bounded_change,
    bounded_extents,
    largest_nearby,
    nearby_work,
    reaches,
)


def cells_of(space: PointSpace) -> IntArray:
    return np.stack(np.unravel_index(np.arange(space.size), space.shape), axis=1).astype(np.int64)


def brute_force(centroids: Centroids, anchors: IntArray, graph: PolicyGraph) -> tuple[int, int]:
    """Two databases of one record each, for every edge: by definition, from rows and not from cells."""
    space, points = centroids.space, cells_of(centroids.space)
    most = [0, 0]
    tables = []
    for row in points:
        table = Points(space, row[None]).totals(centroids).reveal()
        tables.append(np.column_stack((table[:, :1], table[:, 1:] - table[:, :1] * anchors)))
    tables.append(np.zeros_like(tables[0]))  # a record that is not counted
    for u, v in graph.edges().tolist():
        change = np.abs(tables[u] - tables[v])
        most = [
            max(most[0], int(change[:, 0].sum())),
            max(most[1], int((change[:, 1:] @ space.lengths).sum())),
        ]
    return most[0], most[1]


def policies(shape: tuple[int, ...], stream: np.random.Generator) -> Iterator[PolicyGraph]:
    size = int(np.prod(shape))
    parts = np.unique(stream.integers(0, 3, size), return_inverse=True)[1]
    halves = [Bins.width(n, 2) for n in shape]
    reach = np.maximum.accumulate(np.minimum(np.arange(size) + stream.integers(0, 3, size), size - 1))
    for theta in (1, 2, 3, 99):
        yield Grid(shape, theta)
    yield Grid(shape, 3, (2,) * len(shape))
    for joint in (True, False):
        yield Product(*(Full(n) for n in shape), joint=joint)
        yield Product(*(Threshold(n, 2) for n in shape), joint=joint)
        yield Product(*(Partitioned(each) for each in halves), joint=joint)
    yield Full(size)
    yield Partitioned(parts)
    yield Partitioned(halves[0] if len(halves) == 1 else Bins.product(*halves))
    yield Explicit(size, [(0, size - 1), (0, 1)])
    yield Explicit(size, ())
    yield Banded(reach)
    yield AddRemove(size)
    yield Full(size).hide_presence()
    yield Cone(Grid(shape, 2), Apex.OUTSIDE)


def random_case(stream: np.random.Generator) -> Centroids:
    axes = int(stream.integers(1, 4))
    shape = tuple(int(n) for n in stream.integers(2, (12, 6, 4)[axes - 1], axes))
    space = PointSpace(shape, tuple(int(w) for w in stream.integers(1, 4, axes)))
    count = int(stream.integers(1, 5))
    return Centroids(space, np.column_stack([stream.integers(0, FINE * (n - 1) + 1, count) for n in shape]))


@pytest.mark.parametrize("seed", range(12))
def test_every_policy_agrees_with_brute_force(seed: int) -> None:
    stream = np.random.default_rng(seed)
    centroids = random_case(stream)
    for graph in policies(centroids.space.shape, stream):
        facts = round_facts(centroids, graph)
        assert facts.change.exact
        found = (facts.change.sizes, facts.change.sums)
        assert found == brute_force(centroids, facts.anchors, graph), graph.describe()


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_never_below_and_rarely_far_above(seed: int) -> None:
    stream = np.random.default_rng(100 + seed)
    centroids = random_case(stream)
    for graph in policies(centroids.space.shape, stream):
        facts, (base, leaves) = round_facts(centroids, graph), moves_inside(graph)
        sizes, sums = bounded_change(centroids, facts.anchors, base, leaves=leaves)
        assert sizes >= facts.change.sizes
        assert sums >= facts.change.sums, graph.describe()


@pytest.mark.parametrize(("theta", "sums"), [(1, 9), (2, 10), (3, 11)])
def test_lemma_6_1_is_false(theta: int, sums: int) -> None:
    """Ten values cut at 5, sums from zero: the lemma says 2θ."""
    centroids = Centroids(PointSpace.cells(10), FINE * np.array([[2], [7]]))
    assert centroids.labels().tolist() == [0] * 5 + [1] * 5
    change = round_change(centroids, np.zeros((2, 1), dtype=np.int64), Threshold(10, theta))
    assert (change.sizes, change.sums) == (2, sums)
    assert change.sums > 2 * theta


def test_anchors_make_sums_smaller() -> None:
    centroids = Centroids(PointSpace.cells(100), FINE * np.array([[20], [80]]))
    far = round_change(centroids, np.zeros((2, 1), dtype=np.int64), Full(100)).sums
    facts = round_facts(centroids, Full(100))
    assert far in (49 + 99, 50 + 99)
    assert facts.change.sums <= 52
    assert facts.anchors.ravel().tolist() in ([25, 75], [25, 76])


def test_a_policy_without_crossings_leaves_sizes_exact() -> None:
    centroids = Centroids(PointSpace.cells(10), FINE * np.array([[2], [7]]))
    inside = round_facts(centroids, Partitioned(Bins.width(10, 5))).change
    assert (inside.sizes, inside.sums) == (0, 4)
    nothing = round_facts(centroids, Partitioned(Bins.width(10, 1))).change
    assert (nothing.sizes, nothing.sums) == (0, 0)
    across = round_facts(centroids, Partitioned(Bins.edges(10, [0, 4, 7]))).change
    assert across.sizes == 2


def test_a_large_box_gets_a_bound_close_to_what_its_cells_say(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = np.random.default_rng(1)
    shape = (40, 30, 20)
    fine = np.column_stack([stream.integers(0, FINE * (n - 1) + 1, 4) for n in shape])
    centroids = Centroids(PointSpace.cells(*shape), fine)
    for graph in (Full(24_000), Grid(shape, 5), Grid(shape, 20), Product(*map(Full, shape), joint=False)):
        exact = round_facts(centroids, graph)
        with monkeypatch.context() as patched:
            patched.setattr(crossing, "MOST_CELLS", 10)
            bound = round_facts(centroids, graph)
            again = round_change(centroids, exact.anchors, graph)
        assert exact.change.exact and not bound.change.exact
        assert exact.change.sums <= again.sums <= exact.change.sums + 3
        assert (np.abs(exact.low - bound.low) < 2).all() and (np.abs(exact.high - bound.high) < 2).all()


def test_too_many_programs_are_refused() -> None:
    space = PointSpace.cells(*(1000,) * 7)
    centroids = Centroids(space, FINE * np.arange(64)[:, None] * np.ones((1, 7), dtype=np.int64))
    with pytest.raises(TooLarge):
        round_change(centroids, centroids.fine // FINE, Full(space.size))


def test_reaches_cover_every_edge() -> None:
    stream = np.random.default_rng(3)
    for shape in ((7,), (4, 5), (3, 3, 4)):
        points = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape), axis=1)
        for graph in policies(shape, stream):
            base = moves_inside(graph)[0]
            covers = reaches(base, shape)
            for u, v in base.edges().tolist():
                move = np.abs(points[u] - points[v])
                assert any(_within(move, cover) for cover in covers), base.describe()


def _within(move: IntArray, cover: Reach) -> bool:
    return bool((move <= cover.box).all()) and (cover.total is None or int(move.sum()) <= cover.total)


def test_extents_of_polytopes_hold_their_cells() -> None:
    stream = np.random.default_rng(9)
    for _ in range(5):
        centroids = random_case(stream)
        low, high = bounded_extents(centroids)
        points = cells_of(centroids.space)
        labels = centroids.assign(points)
        for point, label in zip(points, labels, strict=True):
            assert (low[label] - 1e-6 <= point).all() and (point <= high[label] + 1e-6).all()


def test_neighbourhoods_are_those_of_the_edges() -> None:
    stream = np.random.default_rng(6)
    for shape in ((9,), (5, 4), (3, 4, 3)):
        for graph in policies(shape, stream):
            values = stream.integers(-1, 50, graph.size)
            expected = values.copy()
            for u, v in graph.edges().tolist():
                expected[u], expected[v] = max(expected[u], values[v]), max(expected[v], values[u])
            assert largest_nearby(values, graph).tolist() == expected.tolist(), graph.describe()
            assert nearby_work(graph) >= 0


def test_labels_are_the_nearest_centroids_and_ties_the_first() -> None:
    space = PointSpace((6, 5), (2, 3))
    centroids = Centroids(space, FINE * np.array([[1, 1], [3, 1], [1, 3], [1, 1]]))
    points = cells_of(space)
    exact = [
        min(
            range(4),
            key=lambda i: (
                sum((w * (FINE * x - c)) ** 2 for w, x, c in zip((2, 3), p, centroids.fine[i], strict=True)),
                i,
            ),
        )
        for p in points.tolist()
    ]
    assert centroids.assign(points).tolist() == exact == centroids.labels().ravel().tolist()
    assert 3 not in exact


def test_what_is_no_space_and_no_centroid_is_refused() -> None:
    space = PointSpace.cells(4, 4)
    for make in (
        lambda: PointSpace((), ()),
        lambda: PointSpace((3,), (1, 1)),
        lambda: PointSpace((0,), (1,)),
        lambda: PointSpace((3,), (0,)),
        lambda: PointSpace.cells(2**40),
        lambda: Centroids(space, np.array([[0, FINE * 3 + 1]])),
        lambda: Centroids(space, np.array([[-1, 0]])),
        lambda: Centroids(space, np.zeros((0, 2), dtype=np.int64)),
        lambda: Points(space, [[0, 4]]),
        lambda: Points(space, [[0]]),
    ):
        with pytest.raises((InvalidWorkload, SizeMismatch, TooLarge)):
            make()
    with pytest.raises(SizeMismatch):
        round_facts(Centroids(space, np.array([[0, 0]])), Full(15))


def test_weights_make_columns_count_alike() -> None:
    assert PointSpace.even(100, 10, 33).weights == (1, 10, 3)
    assert PointSpace.cells(5, 6).weights == (1, 1)
    assert list(itertools.chain(PointSpace.even(7).weights)) == [1]
