"""Sums of kernels lose what the kernels lose: compared with the kernels one by one, and with every pair.

The oracle is the sum as it was before there were sums: the largest loss of every release added up, or, where
edges can be listed, the largest sum over one edge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from blowfishdb.core.budget import Epsilon
from blowfishdb.core.domain.attributes import Integer
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.errors import InvalidInput, SizeMismatch
from blowfishdb.core.graphs import Explicit, Full, Partitioned, PolicyGraph, Product, Threshold
from blowfishdb.core.policy.policy import Policy
from blowfishdb.mechanisms.losses import ByDistance, ByRows, Kernel, Loss, Tightest
from blowfishdb.mechanisms.reuse import Intervals, Sparse
from blowfishdb.mechanisms.summed import added, known_rows, proportions, summed
from blowfishdb.mechanisms.total_loss import moves_at_once, pairwise_loss, total_loss

CELLS = 6
GRAPHS: list[PolicyGraph] = [
    Threshold(CELLS, 1),
    Threshold(CELLS, 2),
    Full(CELLS),
    Partitioned([0, 0, 0, 1, 1, 1]),
    Explicit(CELLS, ()),
]


def domain(*, drops: bool) -> Domain:
    return Domain(a=Integer(0, CELLS - 1, outside="drop" if drops else "clamp"), b=Integer(0, CELLS - 1))


def one_by_one(kernels: Sequence[Kernel], policy: Policy) -> tuple[Loss, bool]:
    """The loss as it was computed before kernels were summed up, and whether every edge was listed."""
    worst: list[Loss] = []
    listed = True
    for _, moving in moves_at_once(policy):
        apart = added(kernel.worst(moving) for kernel in kernels)
        rows = [known for kernel in kernels if (known := known_rows(kernel)) is not None]
        together = pairwise_loss(rows, moving) if len(rows) > 1 else None
        others = [kernel.worst(moving) for kernel in kernels if known_rows(kernel) is None]
        listed = listed and (together is not None or len(kernels) == 1)
        worst.append(apart if together is None else min(apart, added([together, *others])))
    return max(worst), listed


@st.composite
def axes(draw: st.DrawFn, declared: Domain) -> tuple[Axis, ...]:
    columns = draw(st.sampled_from([("a",), ("b",), ("a", "b")]))  # boxes are in the order of the domain
    starts = st.sets(st.integers(1, CELLS - 1), max_size=2)
    bins = [Bins.edges(CELLS, [0, *sorted(draw(starts))]) for _ in columns]
    if draw(st.integers(0, 4)) == 0:
        bins[0] = Bins.labels([0, 1, 0, 1, 2, 2])
    return tuple(Axis(name, declared[name], each) for name, each in zip(columns, bins, strict=True))


@st.composite
def shapes(draw: st.DrawFn, declared: Domain, people: int) -> ByRows:
    on = draw(axes(declared))
    boxes = math.prod(axis.bins.count for axis in on)
    count = draw(st.integers(1, 3))
    if draw(st.booleans()):
        ends = [sorted(draw(st.tuples(st.integers(0, boxes), st.integers(0, boxes)))) for _ in range(count)]
        rows: Intervals | Sparse = Intervals(boxes, *np.array(ends, dtype=np.int64).T)
    else:
        entries = draw(st.lists(st.integers(-2, 2), min_size=boxes * count, max_size=boxes * count))
        rows = Sparse.of(csr_array(np.array(entries, dtype=np.int64).reshape(count, boxes)))
    which = np.array([draw(st.integers(0, 1)) for _ in range(count)])
    return ByRows(on, rows, (Fraction(1), Fraction(1)), which, people)


@st.composite
def histories(draw: st.DrawFn) -> tuple[tuple[Kernel, ...], Policy]:
    declared = domain(drops=draw(st.booleans()))
    people = draw(st.integers(1, 3))
    first, second = (draw(st.sampled_from(GRAPHS)) for _ in range(2))
    graph: PolicyGraph = Product(first, second, joint=draw(st.booleans()))
    policy = Policy(declared, graph.hide_presence() if draw(st.integers(0, 3)) == 0 else graph)
    scale = st.sampled_from([Fraction(1), Fraction(2), Fraction(7, 3), Fraction(5), Fraction(10**9, 7)])
    kernels: list[Kernel] = []
    for shape in draw(st.lists(shapes(declared, people), min_size=1, max_size=3)):
        zero = draw(st.integers(0, 5)) == 0
        for _ in range(draw(st.integers(1, 3))):
            scales = (draw(scale), Fraction(0) if zero else draw(scale))
            kernels.append(replace(shape, scales=scales))
    if draw(st.integers(0, 3)) == 0:
        kernels.append(ByDistance(policy, Epsilon("0.5")))
    return tuple(draw(st.permutations(kernels))), policy


@settings(max_examples=150, deadline=None)
@given(histories())
def test_sums_lose_what_their_kernels_lose(history: tuple[tuple[Kernel, ...], Policy]) -> None:
    kernels, policy = history
    before, listed = one_by_one(kernels, policy)
    now = total_loss(kernels, policy).loss
    assert now == before if listed else now <= before
    if all(isinstance(kernel, ByRows) for kernel in kernels):
        assert now >= added([max(kernel.worst(policy) for kernel in kernels)])


def rows(scale: Fraction, cuts: Sequence[int] = (0, 2, 4), column: str = "a") -> ByRows:
    declared = domain(drops=False)
    bins = Bins.edges(CELLS, list(cuts))
    each = np.arange(bins.count)
    on = (Axis(column, declared[column], bins),)
    return ByRows(on, Intervals(bins.count, each, each + 1), (scale,), np.zeros(bins.count, dtype=np.int64))


def test_a_release_that_is_taken_out_leaves_the_rest() -> None:
    """1/b adds up, so what is left after one is taken out is what the others lose."""
    shape = rows(Fraction(3))
    policy = Policy(domain(drops=False), Product(Full(CELLS), Full(CELLS)))
    scales = [Fraction(3), Fraction(10, 7), Fraction(8)]
    [everything] = summed([replace(shape, scales=(scale,)) for scale in scales])
    total = known_rows(everything)
    assert total is not None
    [rest] = summed([replace(shape, scales=(scale,)) for scale in scales[:2]])
    left = replace(total, scales=(1 / (1 / total.scales[0] - 1 / scales[2]),))
    assert left.worst(policy) == rest.worst(policy)


def test_columns_in_another_order_are_the_same_release() -> None:
    """A policy numbers boxes in the order of the domain, and a release may have been stored in another."""
    declared, bins = domain(drops=False), (Bins.edges(CELLS, [0, 1, 3]), Bins.edges(CELLS, [0, 4]))
    a, b = (Axis(name, declared[name], each) for name, each in zip("ab", bins, strict=True))
    counts = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 1, 0, 2, 0], [0, 0, 0, 1, 1, -1]])
    turned = counts.reshape(3, 3, 2).transpose(0, 2, 1).reshape(3, 6)
    scales, which = (Fraction(1), Fraction(3)), np.array([0, 1, 1])
    there = ByRows((a, b), Sparse.of(csr_array(counts)), scales, which)
    back = ByRows((b, a), Sparse.of(csr_array(turned)), scales, which)
    for first, second in itertools.permutations(GRAPHS, 2):
        policy = Policy(declared, Product(first, second))
        assert there.worst(policy) == back.worst(policy)
        assert total_loss([there, back], policy).loss == 2 * there.worst(policy)
    different = Policy(declared, Product(Threshold(CELLS, 1), Explicit(CELLS, ())))
    assert replace(back, axes=(a, b), rows=Sparse.of(csr_array(turned))).worst(different) != back.worst(
        different
    )


def test_a_release_that_is_no_table_of_its_axes_is_refused() -> None:
    shape = rows(Fraction(1))
    for wrong in ({"axes": shape.axes * 2}, {"axes": ()}, {"which": shape.which[1:]}):
        with pytest.raises((InvalidInput, SizeMismatch)):
            replace(shape, **wrong)


def test_sums_that_leave_64_bits_are_not_cut_short() -> None:
    """Thousands of answers with little noise that have no common unit."""
    fine = rows(Fraction(1), range(CELLS))
    scales = [Fraction(1, 10**6) + Fraction(1, 10**12 + number) for number in range(1, 60)]
    each = [replace(fine, scales=(scale,)) for scale in scales]
    policy = Policy(domain(drops=False), Product(Full(CELLS), Full(CELLS)))
    lost = 2 * sum(1 / scale for scale in scales)
    assert lost <= total_loss(each, policy).loss <= lost * (1 + Fraction(1, 10**9))


def test_thousands_of_answers_are_a_few_sums() -> None:
    fine, coarse, other = rows(Fraction(1), range(CELLS)), rows(Fraction(1)), rows(Fraction(1), column="b")
    kernels = [
        replace(shape, scales=(Fraction(1000, 1 + number),))
        for number in range(500)
        for shape in (fine, coarse, other)
    ]
    assert len(summed(kernels)) == 2
    policy = Policy(domain(drops=False), Product(Threshold(CELLS, 1), Threshold(CELLS, 1)))
    each = Fraction(sum(range(1, 501)), 1000)
    assert total_loss(kernels, policy).loss == 2 * each + 2 * each + 2 * each


def test_bounds_by_distance_add_up_by_policy_and_beside_rows() -> None:
    declared = domain(drops=False)
    strict = Policy(declared, Product(Full(CELLS), Full(CELLS)))
    loose = Policy(declared, Product(Threshold(CELLS, 1), Full(CELLS)))
    shape = rows(Fraction(10))
    known = [Tightest((replace(shape), ByDistance(loose, Epsilon("0.2")))) for _ in range(3)]
    unknown = [ByDistance(loose, Epsilon("0.1")), ByDistance(strict, Epsilon("0.3"))]
    assert len(summed([*known, *unknown])) == 3
    assert total_loss([*known, *unknown], loose).loss == Fraction(6, 10) + Fraction(1, 10) + Fraction(3, 10)


@pytest.mark.parametrize(("scales", "alike"), [((2, 4), True), ((2, 3), False)])
def test_what_is_proportional(scales: tuple[int, int], alike: bool) -> None:
    shape = replace(rows(Fraction(1)), which=np.array([0, 1, 1]), scales=(Fraction(1), Fraction(2)))
    other = replace(shape, scales=(Fraction(scales[0]), Fraction(scales[1])))
    assert (proportions(shape) == proportions(other)) is alike
    declared = Policy(domain(drops=False), Product(Full(CELLS), Full(CELLS)))
    first, second = (
        Tightest((kernel, ByDistance(declared, Epsilon(epsilon))))
        for kernel, epsilon in ((shape, "0.4"), (other, "0.2"))
    )
    assert (proportions(first) == proportions(second)) is alike
    assert proportions(first) != proportions(Tightest((other, ByDistance(declared, Epsilon("0.3")))))
    assert proportions(first) != proportions(other)
