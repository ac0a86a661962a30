"""Combining stored releases: against dense least squares, without a look at any value."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import null_space
from scipy.sparse import csr_array

from blowfishdb.core.domain.attributes import Category, Integer
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis
from blowfishdb.core.errors import InvalidInput, InvalidScale, SizeMismatch
from blowfishdb.core.workloads import (
    AllRanges,
    Cumulative,
    Histogram,
    Matrix,
    Product,
    Ranges,
    Rectangles,
    ValueSum,
    Workload,
)
from blowfishdb.mechanisms.linear.estimators import per_release
from blowfishdb.mechanisms.reuse import Partition, StoredRelease, combine
from blowfishdb.mechanisms.reuse.combination import MOST_DENSE, BoxEstimator
from blowfishdb.mechanisms.reuse.line import LineEstimator

Floats = NDArray[np.float64]
VARIANCE_8 = Fraction(1 / (2 * math.asinh(0.25)))


def axis(size: int, bins: Bins | int, column: str = "a", **declared: str) -> Axis:
    divided = Bins.width(size, bins) if isinstance(bins, int) else bins
    return Axis(column, Integer(0, size - 1, **declared), divided)  # type: ignore[arg-type]


def release(
    axes: list[Axis], rows: Workload | csr_array, scale: object, number: int = 1, values: object = None
) -> StoredRelease:
    count = rows.count if isinstance(rows, Workload) else rows.shape[0]
    kept = np.arange(count) if values is None else values
    return StoredRelease.of(axes, rows, scale, kept, number)  # type: ignore[arg-type]


def public(count: int = 1_000, number: int = 9) -> StoredRelease:
    return StoredRelease.of([], Histogram(1), 0, [count], number)


# --- golden numbers ----------------------------------------------------------------------------------------


def test_bins_of_ten_and_of_twenty_five() -> None:
    """REUSE §1: [0,50) → 5.7143; [20,25), in neither release, → 13.6571; [20,22) → not determined."""
    stored = [
        release([axis(100, 10)], Histogram(10), VARIANCE_8),
        release([axis(100, 25)], Histogram(4), VARIANCE_8, 2),
        public(),
    ]
    found = combine(stored, [axis(100, 1)], Ranges(100, [0, 20, 20, 0], [49, 24, 21, 99]))
    assert found is not None
    assert found.determined.tolist() == [True, True, False, True]
    assert found.variances[:2] == pytest.approx([5.7143, 13.6571], abs=5e-5)
    assert math.isinf(found.variances[2])
    assert found.variances[3] == 0
    assert found.exact.tolist() == [False, False, False, True]
    assert found.values()[3] == 1_000
    assert np.isnan(found.values()[2])


# --- against a dense reference ------------------------------------------------------------------------------


def reference(
    rows: Floats, variances: Floats, question: Floats, values: Floats
) -> tuple[float, float] | None:
    """Least variance t with t·A = w by the definition: a particular solution and the null space of Aᵀ."""
    weights = np.linalg.lstsq(rows.T, question, rcond=1e-12)[0]
    if np.abs(weights @ rows - question).max() > 1e-8:
        return None
    _, sizes, right = np.linalg.svd(rows.T)
    rank = int((sizes > 1e-10).sum())
    null = right[rank:].T
    if null.shape[1]:
        root = np.sqrt(variances)[:, None]
        weights = weights - null @ np.linalg.lstsq(root * null, root[:, 0] * weights, rcond=1e-12)[0]
    return float(weights**2 @ variances), float(weights @ values)


def agree(stored: list[StoredRelease], axes: list[Axis], workload: Workload) -> None:
    found = combine(stored, axes, workload)
    assert found is not None
    partition = Partition.common([*(r.axes for r in stored), tuple(axes)])
    assert partition is not None
    written = [partition.matrix(r.rows, r.axes) for r in stored]
    rows = np.concatenate([m.toarray() for m in written if m is not None]).astype(float)
    variances = np.concatenate([r.variances for r in stored])
    truth = np.random.default_rng(5).integers(0, 50, partition.count)
    values = rows @ truth + np.where(variances > 0, np.arange(len(rows)) % 7, 0)
    begins = np.cumsum([0, *(r.rows.count for r in stored)])
    kept = [
        StoredRelease(r.axes, r.rows, r.distinct, r.which, values[a:b].astype(np.int64), r.number)
        for r, a, b in zip(stored, begins, begins[1:], strict=False)
    ]
    filled = combine(kept, axes, workload)
    asked = partition.matrix(found.questions, tuple(axes))
    assert filled is not None
    assert asked is not None
    for index, question in enumerate(asked.toarray().astype(float) / workload.denominator):
        expected = reference(rows, variances, question, values)
        assert found.determined[index] == (expected is not None)
        if expected is not None:
            assert found.variances[index] == pytest.approx(expected[0], rel=1e-6, abs=1e-7)
            assert found.estimator.parts[:, index].sum() == pytest.approx(expected[0], rel=1e-6, abs=1e-7)
            if expected[0] < 1e-9:
                assert filled.values()[index] == pytest.approx(question @ truth, abs=1e-6)
            assert filled.values()[index] == pytest.approx(expected[1], rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_lines_agree_with_the_definition(seed: int) -> None:
    random = np.random.default_rng(seed)
    size, stored = 12, []
    for number in range(3):
        cuts = np.unique(np.append(0, random.integers(0, size, 4)))
        bins = Bins.edges(size, cuts)
        kinds: list[Workload] = [Histogram(bins.count), Cumulative(bins.count), AllRanges(bins.count)]
        rows = kinds[random.integers(3)]
        scales = [Fraction(int(s), 2) for s in random.integers(0 if number else 1, 5, rows.count)]
        stored.append(release([axis(size, bins)], rows, scales, number))
    if seed % 2:
        stored.append(public())
    agree(stored, [axis(size, 1)], AllRanges(size))


@pytest.mark.parametrize("seed", range(8))
def test_boxes_agree_with_the_definition(seed: int) -> None:
    """Two columns, different bins, marginals, exact totals, and rows that are no intervals at all."""
    random = np.random.default_rng(seed)
    a, b = [axis(6, w, "a") for w in (1, 2, 3)], [axis(4, w, "b") for w in (1, 2)]
    first, second = a[random.integers(3)], b[random.integers(2)]
    boxes = first.bins.count * second.bins.count
    any_rows = csr_array(random.integers(-1, 3, size=(5, boxes)))
    stored = [
        release([first, second], Histogram(boxes), 3),
        release([a[1]], Cumulative(3), [0, 2, 2], 2),
        release([second, first], any_rows, Fraction(7, 3), 3),
        *([public()] if seed % 2 else []),
    ]
    agree(
        stored,
        [a[0], b[0]],
        Rectangles((6, 4), [[0, 0], [2, 0], [1, 1], [0, 0]], [[1, 3], [5, 1], [1, 1], [5, 3]]),
    )
    agree(stored, [a[1], b[1]], Product(Histogram(3), Cumulative(2)))
    agree(stored, [a[0]], ValueSum(6, 3, 2))
    agree(stored, [b[1]], Matrix([[0.5, 0.25]]))


def test_labels_of_categories_refine_each_other() -> None:
    colours = Category(["red", "green", "blue", "grey", "black"], outside="clamp", missing="clamp")
    halves, others = Bins.labels([0, 1, 0, 1, 1]), Bins.labels([1, 0, 0, 1, 1])
    stored = [
        release([Axis("c", colours, halves)], Histogram(2), 2),
        release([Axis("c", colours, others)], Histogram(2), 3, 2),
    ]
    agree(stored, [Axis("c", colours, Bins.width(5, 1))], AllRanges(5))
    agree(stored, [Axis("c", colours, halves)], Histogram(2))


def test_rows_that_a_column_drops_are_counted_by_releases_on_other_columns() -> None:
    """A table of a and b says nothing about rows whose b was dropped; a histogram of a counts them."""
    a, b = axis(3, 1, "a"), axis(2, 1, "b", outside="drop")
    table = release([a, b], Histogram(6), 2)
    alone = combine([table], [a], Histogram(3))
    assert alone is not None
    assert not alone.determined.any()
    kept = combine([release([a, axis(2, 1, "b")], Histogram(6), 2)], [a], Histogram(3))
    assert kept is not None
    assert kept.determined.all()
    agree([table, release([a], Histogram(3), 2, 2)], [b], Histogram(2))


@pytest.mark.parametrize("side", [50, 20])
def test_tables_too_large_for_dense_algebra_are_solved_sparsely(side: int) -> None:
    a, b = axis(side, 1, "a"), axis(side, 1, "b")
    rows = Histogram(side * side)
    stored = [release([a, b], rows, 5), release([a, b], rows, 7, 2), public(), public(number=10)]
    asked = Rectangles((side, side), [[0, 0], [3, 4], [0, 0]], [[9, 9], [3, 4], [side - 1, side - 1]])
    found = combine(stored, [a, b], asked)
    assert found is not None
    assert isinstance(found.estimator, BoxEstimator)
    harmonic = 1 / (1 / stored[0].variances[0] + 1 / stored[1].variances[0])
    cells = side * side
    expected = [harmonic * n * (1 - n / cells) for n in (100, 1, cells)]
    assert found.variances == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert found.values()[2] == pytest.approx(1_000)
    assert (found.estimator.rows.shape[1] > MOST_DENSE) == (side == 50)


# --- nothing depends on values -----------------------------------------------------------------------------


def test_values_change_no_variance_weight_or_name() -> None:
    random = np.random.default_rng(3)
    names, sums = set(), []
    for _ in range(3):
        noise = [random.integers(-(10**9), 10**9, size) for size in (10, 4)]
        stored = [
            release([axis(100, 10)], Histogram(10), 3, 1, noise[0]),
            release([axis(100, 25)], Cumulative(4), [2, 3, 4, 0], 2, noise[1]),
        ]
        found = combine(stored, [axis(100, 5)], Histogram(20))
        assert found is not None
        every = np.arange(found.count)
        names.add((found.fingerprint, found.variances.tobytes(), found.estimator.weights(every).tobytes()))
        sums.append(found.values())
    assert len(names) == 1
    assert not np.array_equal(sums[0], sums[1], equal_nan=True)


# --- size ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [Histogram, Cumulative])
@pytest.mark.parametrize("asked", [Histogram, Cumulative])
def test_two_large_releases_are_combined_exactly(
    rows: type[Histogram] | type[Cumulative], asked: type[Histogram] | type[Cumulative]
) -> None:
    size = 10**6
    stored = [
        release([axis(size, 100)], rows(10_000), 30),
        release([axis(size, 98)], Histogram(10_205), 40, 2),
        public(),
    ]
    found = combine(stored, [axis(size, 100)], asked(10_000))
    assert found is not None
    assert found.determined.all()
    assert np.isfinite(found.variances).all()
    assert np.isfinite(found.values()).all()
    assert isinstance(found.estimator, LineEstimator)
    some = np.array([0, 17, 5_000, 9_999])
    direct = found.estimator.weights(some) ** 2 @ found.estimator.noise.variances
    assert found.variances[some] == pytest.approx(direct, rel=1e-6, abs=1e-6)
    assert found.estimator.parts[:, some].sum(axis=0) == pytest.approx(direct, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("asked", [Histogram, Cumulative])
def test_trees_are_combined_as_paths_are(asked: type[Histogram] | type[Cumulative]) -> None:
    widths = 4 ** np.arange(7)
    starts = np.concatenate([np.arange(0, 10_000, width) for width in widths])
    ends = np.concatenate([np.minimum(np.arange(0, 10_000, w) + w, 10_000) - 1 for w in widths])
    rows = Ranges(10_000, starts, ends)
    stored = [
        release([axis(10_000, 1)], rows, [2 + i % 5 for i in range(rows.count)]),
        release([axis(10_000, 7)], Histogram(1_429), 4, 2),
    ]
    found = combine(stored, [axis(10_000, 1)], asked(10_000))
    assert found is not None
    assert found.determined.all()
    assert np.isfinite(found.variances).all()
    some = np.array([0, 4_096, 9_998])
    weights = found.estimator.weights(some)
    assert found.variances[some] == pytest.approx(weights**2 @ found.estimator.noise.variances, rel=1e-8)
    assert found.estimator.parts[:, some] == pytest.approx(
        per_release(weights, found.estimator.noise), rel=1e-8
    )


def graphs_of_every_shape() -> dict[str, list[StoredRelease]]:
    """Paths, rings, a tree, a dense graph, a forest with merged cuts: all over the cuts of 120 cells."""
    random = np.random.default_rng(4)
    starts, stops = np.sort(random.integers(0, 120, size=(2, 2_000)), axis=0)
    few = np.sort(random.integers(0, 120, size=(2, 60)), axis=0)
    cells = axis(120, 1)
    tree = Ranges(120, [i for w in (4, 20, 60) for i in range(0, 120, w)],
                  [i + w - 1 for w in (4, 20, 60) for i in range(0, 120, w)])  # fmt: skip
    return {
        "path": [release([cells], Histogram(120), 3)],
        "star": [release([cells], Cumulative(120), 5), public()],
        "rings": [release([axis(120, 8)], Histogram(15), 3), release([axis(120, 9)], Histogram(14), 7, 2)],
        "tree": [
            release([cells], tree, [1 + i % 5 for i in range(38)]),
            release([cells], Histogram(120), 2),
        ],
        "dense": [release([cells], Ranges(120, starts, stops), 3)],
        "forest": [release([cells], Ranges(120, *few), [i % 4 for i in range(60)]), public()],
    }


@pytest.mark.parametrize("asked", [Histogram(120), Cumulative(120), AllRanges(120)], ids=["H", "C", "R"])
@pytest.mark.parametrize("shape", graphs_of_every_shape())
def test_the_shared_factor_agrees_with_dense_algebra(shape: str, asked: Workload) -> None:
    combination = combine(graphs_of_every_shape()[shape], [axis(120, 1)], asked)
    assert combination is not None
    line = combination.estimator
    assert isinstance(line, LineEstimator)
    weights, determined = best_weights(line)
    assert np.array_equal(line.determined, determined)
    assert np.isinf(line.variances[~determined]).all() and np.isinf(line.parts[:, ~determined]).all()
    variances = weights**2 @ line.noise.variances
    assert line.variances[determined] == pytest.approx(variances[determined], rel=1e-8, abs=1e-8)
    parts = per_release(weights, line.noise)
    assert line.parts[:, determined] == pytest.approx(parts[:, determined], rel=1e-8, abs=1e-8)
    some = np.flatnonzero(determined)[::37]
    assert line.weights(some) == pytest.approx(weights[some], rel=1e-8, abs=1e-9)
    noise = np.random.default_rng(7).normal(size=(3, line.noise.scales.size)) * (line.noise.scales > 0)
    assert line.apply(noise)[:, some] == pytest.approx(noise @ weights[some].T, rel=1e-8, abs=1e-8)


def best_weights(line: LineEstimator) -> tuple[Floats, NDArray[np.bool_]]:
    """The weights of noisy rows in the best linear unbiased answers by their definition, and which follow.

    Over what exact rows leave open, W·(V^−½·A)⁺·V^−½ has the least variance of all T with T·A = W.
    """
    cuts = np.eye(line.rows.size + 1)
    rows, asked = (
        cuts[intervals.stops] - cuts[intervals.starts] for intervals in (line.rows, line.questions)
    )
    noisy = line.noise.noisy
    open_ = null_space(rows[~noisy]) if (~noisy).any() else cuts
    measured, wanted = rows[noisy] @ open_, asked @ open_
    deviations = np.sqrt(line.noise.variances[noisy])
    weights = np.zeros((line.count, noisy.size))
    weights[:, noisy] = wanted @ np.linalg.pinv(measured / deviations[:, None]) / deviations
    return weights, np.abs(wanted - weights[:, noisy] @ measured).max(axis=1) < 1e-8


def test_a_pattern_that_fills_in_is_solved_as_well() -> None:
    starts, stops = np.sort(np.random.default_rng(4).integers(0, 1_500, size=(2, 6_000)), axis=0)
    stored = release([axis(1_500, 1)], Ranges(1_500, starts, stops), 3)
    found = combine([stored], [axis(1_500, 1)], Ranges(1_500, [3, 700], [9, 700]))
    assert found is not None
    weights = found.estimator.weights(np.arange(2))
    assert found.variances == pytest.approx(weights**2 @ stored.variances, rel=1e-8)


def test_releases_on_other_columns_are_left_aside_when_there_are_too_many_boxes() -> None:
    a, b = axis(2_000, 1, "a"), axis(2_000, 1, "b")
    stored = [release([a], Histogram(2_000), 2), release([b], Histogram(2_000), 2, 2), public()]
    found = combine(stored, [a], Histogram(2_000))
    assert found is not None
    assert [r.number for r in found.releases] == [1, 9]
    assert combine([], [a], Histogram(2_000)) is None
    assert combine(stored[1:2], [a], Histogram(2_000)) is None


# --- plain data --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (Histogram(10), "identity"),
        (Cumulative(10), "prefixes"),
        (Ranges(10, [0, 3], [4, 3]), "intervals"),
        (csr_array(np.eye(10, dtype=np.int64)), "identity"),
        (csr_array(np.tri(10, dtype=np.int64)), "prefixes"),
        (csr_array(np.arange(20).reshape(2, 10)), "sparse"),
        (csr_array(np.zeros((1, 10), dtype=np.int64)), "intervals"),
    ],
)
@pytest.mark.parametrize("mixed", [False, True])
def test_plain_form_and_back(rows: Workload | csr_array, kind: str, mixed: bool) -> None:
    count = rows.count if isinstance(rows, Workload) else rows.shape[0]
    scales = [Fraction(i % 3, 7) for i in range(count)] if mixed else Fraction(1, 3)
    one = release([axis(100, 10)], rows, scales, 4)
    text = json.dumps(one.to_plain())
    two = StoredRelease.from_plain(json.loads(text))
    assert json.loads(text)["rows"]["kind"] == kind
    assert two.to_plain() == one.to_plain()
    assert two.fingerprint == one.fingerprint
    assert (two.rows, two.distinct, two.number) == (one.rows, one.distinct, 4)
    assert np.array_equal(two.values, one.values)
    assert np.array_equal(two.variances, one.variances)


def test_what_is_stored_is_checked() -> None:
    a = axis(100, 10)
    with pytest.raises(SizeMismatch):
        release([a], Histogram(9), 2)
    with pytest.raises(SizeMismatch):
        StoredRelease.of([a], Histogram(10), 2, [1, 2], 1)
    with pytest.raises(InvalidScale):
        release([a], Histogram(10), -1)
    with pytest.raises(InvalidInput):
        release([a, a], Histogram(100), 1)
    with pytest.raises(InvalidInput):
        StoredRelease.of([a], csr_array(np.full((1, 10), 0.5)), 1, [1], 1)
    with pytest.raises(InvalidInput):
        StoredRelease.from_plain({**release([a], Histogram(10), 2).to_plain(), "rows": {"kind": "?"}})
    with pytest.raises(SizeMismatch):
        combine([release([a], Histogram(10), 2)], [a], Histogram(9))
    with pytest.raises(SizeMismatch):
        combine([release([a], Histogram(10), 2)], [axis(50, 1)], Histogram(50))


def test_exact_rows_can_be_had_alone() -> None:
    mixed = release([axis(100, 10)], Cumulative(10), [2] * 9 + [0], 4)
    part = mixed.exact_part()
    assert part is not None
    assert part.rows.count == 1
    assert part.values.tolist() == [9]
    assert release([axis(100, 10)], Histogram(10), 2).exact_part() is None


def test_what_carries_no_noise_is_a_whole_number() -> None:
    """Totals that are known exactly come out of least squares as they went in, without dust."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 1_000, 40)
    totals = counts.reshape(8, 5).sum(axis=1)
    noisy = (csr_array(rng.integers(0, 2, (60, 40))), csr_array(rng.integers(0, 2, (30, 40))))
    stored = [
        release([axis(40, 5)], Histogram(8), 0, 1, totals),
        *(
            release([axis(40, 1)], rows, 7, number, rows @ counts + rng.integers(-9, 10, rows.shape[0]))
            for number, rows in enumerate(noisy, start=2)
        ),
    ]
    for asked, true in ((Histogram(8), totals), (Cumulative(8), totals.cumsum())):
        found = combine(stored, [axis(40, 5)], asked)
        assert found is not None and found.exact.all()
        assert found.values().tolist() == true.tolist()
