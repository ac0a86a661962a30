"""Numbers that are computed from released ones: what a database computes, and the exact ends of intervals."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from blowfishdb.core.errors import BlowfishError, InvalidInput, InvalidWorkload
from blowfishdb.core.questions.numbers import (
    Computed,
    Constant,
    Number,
    ReleasedTable,
    Rounded,
    Told,
    Total,
    number_from_plain,
)

COUNT, SUM, ALL = Told(0), Told(1), Total(0)
leaves = st.sampled_from([Told(0), Told(1), Total(0), Total(1)]) | st.integers(-4, 4).map(
    lambda n: Constant(Fraction(n))
)
trees = st.recursive(
    leaves,
    lambda inner: st.tuples(st.sampled_from("+-*/"), inner, inner).map(lambda parts: Computed(*parts)),
    max_leaves=5,
)
ends = st.tuples(st.integers(-4, 9), st.integers(0, 5))
tables = st.lists(st.tuples(ends, ends), min_size=1, max_size=2)


def table(intervals: list[tuple[tuple[int, int], ...]]) -> ReleasedTable:
    low = np.array([[first for first, _ in row] for row in intervals], dtype=float)
    wide = np.array([[width for _, width in row] for row in intervals], dtype=float)
    return ReleasedTable(low + wide / 2, low, low + wide, wide == 0)


def by_hand(number: Number, truth: np.ndarray, group: int) -> Fraction | None:
    """The number for exact truths; None where something is divided by zero."""
    match number:
        case Told(index):
            return Fraction(int(truth[group, index]))
        case Total(index):
            return Fraction(int(truth[:, index].sum()))
        case Constant(value):
            return value
        case Computed(sign, left, right):
            one, other = by_hand(left, truth, group), by_hand(right, truth, group)
            if one is None or other is None or (sign == "/" and not other):
                return None
            return {"+": one + other, "-": one - other, "*": one * other, "/": one / (other or 1)}[sign]
    raise AssertionError


def quotient(number: Number):
    try:
        return number.quotient()
    except InvalidWorkload:
        assume(False)


@given(trees, tables)
def test_ends_are_those_of_every_table_that_the_intervals_allow(number, intervals):
    told = table(intervals)
    low, high = quotient(number).interval(told)
    corners = [(first, first + width) for row in intervals for first, width in row]
    truths = [np.array(each).reshape(-1, 2) for each in itertools.product(*corners)]
    for group in range(len(intervals)):
        values = [by_hand(number, truth, group) for truth in truths]
        if math.isnan(low[group]) or math.isnan(high[group]):
            continue
        assert None not in values
        assert low[group] == pytest.approx(float(min(values)), abs=1e-6) and low[group] <= min(values) + 1e-12
        assert (
            high[group] == pytest.approx(float(max(values)), abs=1e-6) and high[group] >= max(values) - 1e-12
        )


@given(trees, tables)
def test_nothing_is_left_unsaid_while_what_is_divided_by_is_above_zero(number, intervals):
    told, form = table(intervals), quotient(number)
    low, high = form.interval(told)
    below = Computed("+", Constant(Fraction(0)), _Linear(form.below))
    least, _ = below.quotient().interval(told)
    assert (np.isnan(low) == ~(least > 0)).all() and (np.isnan(high) == np.isnan(low)).all()


class _Linear(Number):
    def __init__(self, part) -> None:
        self.part = part

    def quotient(self):
        return type(COUNT.quotient())(self.part)

    def to_plain(self):
        raise AssertionError

    def words(self, names):
        raise AssertionError


def test_a_share_of_the_total_lies_between_the_exact_ends() -> None:
    share = Computed("/", Computed("*", Constant(Fraction(100)), COUNT), ALL)
    told = table([((90, 20), (0, 0)), ((40, 20), (0, 0)), ((0, 10), (0, 0))])
    low, high = share.quotient().interval(told)
    assert low == pytest.approx([100 * 90 / (90 + 60 + 10), 100 * 40 / (40 + 110 + 10), 0])
    assert high == pytest.approx(
        [100 * 110 / (110 + 40 + 0), 100 * 60 / (60 + 90 + 0), 100 * 10 / (10 + 130)]
    )
    assert share.of(told) == pytest.approx([100 * 100 / 155, 100 * 50 / 155, 100 * 5 / 155])


def test_what_may_be_divided_by_nothing_is_not_told() -> None:
    mean = Computed("/", SUM, COUNT)
    low, high = mean.quotient().interval(table([((0, 4), (10, 2)), ((1, 1), (10, 2))]))
    assert math.isnan(low[0]) and math.isnan(high[0])
    assert (low[1], high[1]) == (pytest.approx(5), pytest.approx(12))
    assert math.isnan(mean.of(table([((-3, 0), (10, 2))]))[0])


@given(st.floats(-1e6, 1e6), st.integers(-3, 3))
def test_rounding_is_that_of_databases_and_keeps_what_lies_between(value, digits):
    told = ReleasedTable(
        np.array([[value]]), np.array([[value - 2]]), np.array([[value + 3]]), np.array([[False]])
    )
    rounded = Rounded(Told(0), digits)
    low, high = rounded.quotient().interval(told)
    assert low[0] <= rounded.of(told)[0] <= high[0]
    assert abs(rounded.of(told)[0] - value) <= 0.5 * 10.0**-digits * (1 + 1e-9)
    halves = ReleasedTable(*(np.array([[0.5], [-1.5], [2.5]]),) * 3, np.ones((3, 1), dtype=np.bool_))
    assert Rounded(Told(0)).of(halves).tolist() == [1, -2, 3]


products = st.builds(Computed, st.sampled_from(["+", "-", "*", "/"]), trees, trees)


@given(products, tables)
def test_what_is_no_quotient_lies_between_what_its_parts_allow(number, intervals):
    """Every table that the intervals allow has it inside, and what is told is inside, too."""
    told = table(intervals)
    try:
        (low, high), value = number.interval(told), number.of(told)
    except InvalidWorkload:
        assume(False)
    corners = [(first, first + width) for row in intervals for first, width in row]
    for corner in itertools.islice(itertools.product(*corners), 64):
        truth = np.array(corner).reshape(-1, 2)
        for group in np.flatnonzero(~np.isnan(low)):
            exact = by_hand(number, truth, group)
            assert exact is not None and low[group] - 1e-9 <= exact <= high[group] + 1e-9
    said = ~np.isnan(value)
    assert (low[said] <= value[said] + 1e-9).all() and (value[said] <= high[said] + 1e-9).all()
    assert Rounded(number, 1).interval(told)[0] == pytest.approx(np.round(low, 1), abs=0.1001, nan_ok=True)


def test_a_product_and_a_difference_of_means_have_the_ends_of_their_corners() -> None:
    told = table([((2, 2), (-1, 3)), ((4, 0), (10, 10))])
    low, high = Computed("*", COUNT, SUM).interval(told)
    assert low == pytest.approx([-4, 40]) and high == pytest.approx([8, 80])
    mean = Computed("/", SUM, COUNT)
    gap = Computed("-", mean, Computed("/", Total(1), ALL))
    low, high = gap.interval(told)
    assert high[1] == pytest.approx(20 / 4 - (-1 + 10) / (4 + 4)) and gap.told == {0, 1}
    assert Rounded(gap).interval(told)[1][1] == round(high[1]) and not gap.exact(told).any()


@given(trees)
def test_plain_data_says_the_same(number):
    assert number_from_plain(json.loads(json.dumps(number.to_plain()))) == number
    rounded = Rounded(number, 2)
    assert number_from_plain(rounded.to_plain()) == rounded


@pytest.mark.parametrize(
    "number",
    [
        Computed("*", COUNT, SUM),
        Computed("+", Computed("/", SUM, COUNT), COUNT),
        Computed("/", COUNT, Constant(Fraction(0))),
        Computed("*", Rounded(COUNT), Constant(Fraction(2))),
        Rounded(Rounded(COUNT)),
    ],
)
def test_what_is_no_quotient_of_sums_is_refused(number: Number) -> None:
    with pytest.raises(InvalidWorkload):
        number.quotient()


@pytest.mark.parametrize(
    "stored", [None, True, {}, {"told": "x"}, {"told": 0, "more": 1}, "x", "1/0", {"sign": "^"}]
)
def test_what_is_no_number_is_refused(stored: object) -> None:
    with pytest.raises(BlowfishError):
        number_from_plain(stored)
    deep: object = 1
    for _ in range(100):
        deep = {"sign": "+", "left": deep, "right": 1}
    with pytest.raises(InvalidInput, match="deeply"):
        number_from_plain(deep)


def test_exact_numbers_make_exact_ones() -> None:
    told = table([((1, 0), (5, 2)), ((2, 0), (3, 0))])
    assert Computed("/", COUNT, ALL).quotient().exact(told).tolist() == [True, True]
    assert Computed("/", SUM, COUNT).quotient().exact(told).tolist() == [False, True]
    assert Computed("/", SUM, Total(1)).quotient().exact(told).tolist() == [False, False]
