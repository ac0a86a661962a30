"""Releases with very different noise: what is said of a free answer is never more than is true.

Variances are compared with exact rational arithmetic: the resistance between two cut points, from a Laplacian
of fractions.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from blowfishdb.core.workloads import Cumulative, Histogram, Ranges, Workload
from blowfishdb.mechanisms.reuse import StoredRelease, combine, rows_of
from blowfishdb.mechanisms.reuse.stored import Intervals
from tests.core.test_reuse import axis

SIZE = 12


def solved(matrix: list[list[Fraction]], right: list[Fraction]) -> list[Fraction]:
    """Gauss–Jordan on fractions."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for at in range(len(rows)):
        pivot = next(row for row in range(at, len(rows)) if rows[row][at])
        rows[at], rows[pivot] = rows[pivot], rows[at]
        rows[at] = [entry / rows[at][at] for entry in rows[at]]
        for other in range(len(rows)):
            if other != at and rows[other][at]:
                rows[other] = [a - rows[other][at] * b for a, b in zip(rows[other], rows[at], strict=True)]
    return [row[-1] for row in rows]


def resistance(edges: list[tuple[int, int, Fraction]], low: int, high: int) -> Fraction:
    """Between two cut points that are connected, with ``low`` grounded."""
    reached = {low}
    while more := {b for a, b, _ in edges if a in reached} | {a for a, b, _ in edges if b in reached}:
        if more <= reached:
            break
        reached |= more
    nodes = sorted(reached - {low})
    place = {node: at for at, node in enumerate(nodes)}
    matrix = [[Fraction(0)] * len(nodes) for _ in nodes]
    for first, second, conductance in edges:
        for end, other in ((first, second), (second, first)):
            if end in place:
                matrix[place[end]][place[end]] += conductance
                if other in place:
                    matrix[place[end]][place[other]] -= conductance
    return solved(matrix, [Fraction(node == high) for node in nodes])[place[high]]


def true_variances(releases: list[StoredRelease], asked: Workload) -> list[Fraction]:
    edges = []
    for release in releases:
        bins, rows = release.axes[0].bins, release.rows
        assert isinstance(rows, Intervals)
        cuts = [*bins.first(np.arange(bins.count)).tolist(), SIZE]
        for start, stop, noise in zip(rows.starts, rows.stops, release.variances, strict=True):
            edges.append((cuts[start], cuts[stop], 1 / Fraction(float(noise))))
    questions = rows_of(asked)
    assert isinstance(questions, Intervals)
    return [
        resistance(edges, int(low), int(high))
        for low, high in zip(questions.starts, questions.stops, strict=True)
    ]


def stored(width: int, scale: int, number: int, rows: Workload | None = None) -> StoredRelease:
    asked = rows or Histogram(-(-SIZE // width))
    return StoredRelease.of([axis(SIZE, width)], asked, scale, np.zeros(len(asked), dtype=np.int64), number)


@pytest.mark.parametrize("power", range(0, 13))
@pytest.mark.parametrize("coarse", [2, 3, 4])
def test_a_fine_release_with_much_noise_beside_a_coarse_one_with_little(power: int, coarse: int) -> None:
    releases = [stored(coarse, 3, 1), stored(1, 3 * 10**power, 2)]
    combination = combine(releases, [axis(SIZE, 1)], Histogram(SIZE))
    assert combination is not None and combination.determined.all()
    truth = np.array([float(value) for value in true_variances(releases, Histogram(SIZE))])
    assert (combination.variances >= truth * (1 - 1e-4)).all()
    assert combination.variances == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("power", range(0, 13))
def test_what_the_better_release_tells_is_as_accurate_as_it_alone(power: int) -> None:
    releases = [stored(3, 3, 1), stored(1, 3 * 10**power, 2)]
    combination = combine(releases, [axis(SIZE, 3)], Histogram(4))
    assert combination is not None
    truth = [float(value) for value in true_variances(releases, Ranges(SIZE, [0, 3, 6, 9], [2, 5, 8, 11]))]
    assert combination.variances == pytest.approx(truth, rel=1e-4)


@pytest.mark.parametrize("power", [6, 8, 10])
def test_a_chain_that_needs_both_never_says_less_than_is_true(power: int) -> None:
    """Half of the line with little noise, the other half with much: together they tell the whole."""
    left = stored(1, 2, 1, Ranges(SIZE, [0], [5]))
    right = stored(1, 2 * 10**power, 2, Ranges(SIZE, [6], [11]))
    combination = combine([left, right], [axis(SIZE, 1)], Ranges(SIZE, [0, 0], [11, 5]))
    assert combination is not None and combination.determined.all()
    truth = [float(value) for value in true_variances([left, right], Ranges(SIZE, [0, 0], [11, 5]))]
    assert (combination.variances >= np.array(truth) * (1 - 1e-6)).all()
    assert combination.variances[0] == pytest.approx(truth[0], rel=1e-4)


def any_rows(draws: np.random.Generator, boxes: int) -> Workload:
    kind = draws.integers(3)
    if kind < 2:
        return Histogram(boxes) if kind else Cumulative(boxes)
    ends = np.sort(draws.integers(0, boxes, size=(2, 3)), axis=0)
    return Ranges(boxes, *ends)


@pytest.mark.parametrize("seed", range(40))
def test_any_releases_whose_scales_are_far_apart(seed: int) -> None:
    draws = np.random.Generator(np.random.Philox(seed))
    widths = draws.choice([1, 2, 3, 4, 6], size=int(draws.integers(2, 4)))
    releases = [
        stored(int(width), 10 ** int(draws.choice([0, 3, 5, 8])), number, any_rows(draws, -(-SIZE // width)))
        for number, width in enumerate(widths, 1)
    ]
    asked = Histogram(SIZE) if draws.integers(2) else Cumulative(SIZE)
    combination, questions = combine(releases, [axis(SIZE, 1)], asked), rows_of(asked)
    assert combination is not None and isinstance(questions, Intervals)
    for at in np.flatnonzero(combination.determined)[:6].tolist():
        [truth] = true_variances(releases, Ranges(SIZE, questions.starts[[at]], questions.stops[[at]] - 1))
        assert combination.variances[at] >= float(truth) * (1 - 1e-6)
