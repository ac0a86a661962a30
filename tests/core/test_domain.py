"""Attributes and domains: what the constructors accept, exact encoding, bins and thresholds."""

from __future__ import annotations

import copy
import math
import pickle
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from blowfishdb.core.domain.attribute import MOST_CELLS, Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.bins import LIMIT, EqualBins
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.errors import (
    EmptyDomain,
    InvalidAttribute,
    InvalidBins,
    InvalidThreshold,
    InvalidValue,
    NotFinite,
    ReversedBounds,
    SizeMismatch,
    TooLarge,
    UnknownColumn,
)

missing_choices = st.sampled_from(["none", "clamp", "drop", "value", "public"])
outside_choices = st.sampled_from(["clamp", "drop"])
anything = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.dates(), st.just([1])
)


@st.composite
def integer_attributes(draw):
    lo = draw(st.one_of(st.integers(-50, 50), st.integers(-(10**30), 10**30)))
    hi = lo + draw(st.integers(0, 60))
    step = draw(st.integers(1, 70))
    return Integer(lo, hi, step, missing=draw(missing_choices), outside=draw(outside_choices))


@st.composite
def real_attributes(draw):
    lo = Fraction(draw(st.integers(-(10**6), 10**6)), 10 ** draw(st.integers(0, 4)))
    grid = draw(st.sampled_from(["0.1", "0.25", "1/3", "7", "1e-9", "1e12"]))
    hi = lo + draw(st.integers(0, 60)) * Fraction(grid)
    return Real(lo, hi, grid, missing=draw(missing_choices), outside=draw(outside_choices))


@st.composite
def category_attributes(draw):
    kind = draw(st.sampled_from([st.text(max_size=3), st.integers(-(2**70), 2**70)]))
    values = draw(st.lists(kind, min_size=1, max_size=8, unique=True))
    return Category(values, draw(st.booleans()), missing=draw(missing_choices), outside=draw(outside_choices))


@st.composite
def date_attributes(draw):
    unit = draw(st.sampled_from(["second", "minute", "hour", "day", "week"]))
    moments = st.one_of(st.dates(), st.datetimes().map(lambda m: m.replace(microsecond=0)))
    lo = draw(moments)
    start = lo if isinstance(lo, datetime) else datetime.combine(lo, datetime.min.time())
    most = timedelta(**{f"{unit}s": 60})
    hi = start + draw(st.timedeltas(timedelta(0), min(most, datetime.max - start)))
    if draw(st.booleans()):
        hi = hi.date()
    return Date(lo, hi, unit, missing=draw(missing_choices), outside=draw(outside_choices))


booleans = st.builds(Boolean, missing=missing_choices, outside=outside_choices)
attributes = st.one_of(
    integer_attributes(), real_attributes(), category_attributes(), date_attributes(), booleans
)


# --- what holds for every attribute ---------------------------------------------------------------


@given(attributes, st.data())
def test_cells_and_values_go_back_and_forth(attribute: Attribute, data: st.DataObject) -> None:
    cell = data.draw(st.integers(0, attribute.value_count - 1))
    lower, upper = attribute.lower(cell), attribute.upper(cell)
    assert attribute.cell(lower) == attribute.cell(upper) == cell
    assert attribute.encode([lower, upper]).tolist() == [cell, cell]
    assert attribute.encode(np.array([lower, upper], dtype=object)).dtype == np.int64
    assert lower == upper or lower < upper
    if attribute.ordered and cell:
        assert attribute.encode([attribute.upper(cell - 1)]).tolist() == [cell - 1]
    assert attribute.label(cell)


@given(attributes)
def test_missing_values_follow_the_choice(attribute: Attribute) -> None:
    lowest = attribute.value_count - 1 if isinstance(attribute, Category) else 0
    own = attribute.value_count
    cells = {"none": lowest, "clamp": lowest, "drop": -1, "value": own, "public": own}
    cell = cells[attribute.missing]
    nulls = [None, math.nan, np.nan, Decimal("NaN"), Decimal("sNaN"), np.datetime64("NaT")]
    assert attribute.encode(nulls).tolist() == [cell] * len(nulls)
    assert attribute.size == attribute.value_count + attribute.has_missing_cell
    assert attribute.has_missing_cell == (attribute.missing in ("value", "public"))
    assert attribute.may_drop == ("drop" in (attribute.missing, attribute.outside))
    if attribute.has_missing_cell:
        assert attribute.label(attribute.value_count) == "missing"
        assert attribute.cell(None) == attribute.value_count
        with pytest.raises(InvalidValue):
            attribute.lower(attribute.value_count)
    else:
        with pytest.raises(InvalidValue):
            attribute.cell(None)


@given(attributes)
def test_every_attribute_is_a_frozen_value(attribute: Attribute) -> None:
    assert copy.copy(attribute) == pickle.loads(pickle.dumps(attribute)) == attribute
    assert hash(copy.deepcopy(attribute)) == hash(attribute)
    assert not hasattr(attribute, "__dict__")
    with pytest.raises(AttributeError):
        attribute.missing = "drop"  # type: ignore[misc]


@given(attributes, st.data())
def test_cells_that_do_not_exist_are_refused(attribute: Attribute, data: st.DataObject) -> None:
    cell = data.draw(st.one_of(st.integers(max_value=-1), st.integers(attribute.size)))
    for ask in (attribute.lower, attribute.upper, attribute.label):
        with pytest.raises(InvalidValue):
            ask(cell)
        with pytest.raises(InvalidValue):
            ask(0.5)  # type: ignore[arg-type]


@given(attributes, st.lists(anything, max_size=4))
def test_any_column_is_encoded_or_refused(attribute: Attribute, values: list[object]) -> None:
    try:
        cells = attribute.encode(values)
    except InvalidValue:
        return
    assert cells.shape == (len(values),)
    assert ((cells >= (-1 if attribute.may_drop else 0)) & (cells < attribute.size)).all()


@given(attributes, anything)
def test_cell_is_strict_where_encode_is_lenient(attribute: Attribute, value: object) -> None:
    try:
        cell = attribute.cell(value)
    except InvalidValue:
        return
    assert attribute.encode([value]).tolist() == [cell]


@given(attributes, st.integers(1, 100))
def test_bins_by_count_and_by_default(attribute: Attribute, count: int) -> None:
    assert attribute.bins() == EqualBins(attribute.size, 1)
    width = -(-attribute.value_count // count)
    if width > 1 and not attribute.ordered:
        with pytest.raises(InvalidBins, match="groups"):
            attribute.bins(count=count)
        return
    bins = attribute.bins(count=count)
    assert bins.size == attribute.size
    expected = np.arange(attribute.value_count) // width
    if attribute.has_missing_cell:
        expected = np.append(expected, expected.max() + 1)
    assert bins.assignment().tolist() == expected.tolist()


@given(attributes, st.data())
def test_bins_by_edges(attribute: Attribute, data: st.DataObject) -> None:
    assume(attribute.ordered)
    more = data.draw(st.sets(st.integers(0, attribute.value_count - 1), max_size=5))
    starts = sorted({0, *more})
    bins = attribute.bins(edges=[attribute.lower(start) for start in starts])
    lost = [attribute.value_count] if attribute.has_missing_cell else []
    assert bins.first(np.arange(bins.count)).tolist() == starts + lost
    with pytest.raises(InvalidBins):
        attribute.bins(edges=[])
    with pytest.raises(InvalidBins):
        attribute.bins(edges=[attribute.lower(0), attribute.lower(0)])


@given(attributes, st.randoms(use_true_random=False))
def test_groups_partition_the_values(attribute: Attribute, random) -> None:
    cells = list(range(attribute.value_count))
    random.shuffle(cells)
    half = cells[: len(cells) // 2]
    parts = {"a": half, "b": cells[len(half) :]} if half else {"b": cells}
    groups = {name: [attribute.lower(cell) for cell in part] for name, part in parts.items()}
    bins = attribute.bins(groups=groups)
    assert bins.count == len(groups) + attribute.has_missing_cell
    for index, part in enumerate(parts.values()):
        assert bins.assign(np.array(part)).tolist() == [index] * len(part)


@given(attributes, st.fractions(max_value=100), st.booleans())
def test_a_threshold_covers_every_pair_that_is_that_close(attribute, distance, as_text) -> None:
    if not attribute.ordered or distance <= 0:
        with pytest.raises(InvalidThreshold):
            attribute.threshold(distance)
        return
    cells = attribute.threshold(str(distance) if as_text else distance)
    assert cells == math.ceil(attribute.in_cells(distance)) >= 1


@pytest.mark.parametrize("wrong", [0, -1, math.nan, math.inf, "far", None, True, [1], date(2024, 1, 1)])
@pytest.mark.parametrize(
    "attribute", [Integer(0, 9), Real(0, 1, 0.1), Date("2024-01-01", "2024-02-01"), Boolean()]
)
def test_distances_must_be_positive_numbers(attribute: Attribute, wrong: object) -> None:
    with pytest.raises(InvalidThreshold):
        attribute.threshold(wrong)
    if wrong is not None:
        with pytest.raises(InvalidBins):
            attribute.bins(width=wrong)


@pytest.mark.parametrize(
    "make",
    [
        lambda **choices: Integer(0, 1, **choices),
        lambda **choices: Real(0, 1, 1, **choices),
        lambda **choices: Category(["a"], **choices),
        lambda **choices: Date("2024-01-01", "2024-01-02", **choices),
        Boolean,
    ],
)
def test_choices_are_checked_and_have_defaults(make) -> None:
    attribute = make()
    usual = ("drop", "drop") if isinstance(attribute, Category) else ("none", "clamp")
    assert (attribute.missing, attribute.outside) == usual
    for choices in ({"missing": "ignore"}, {"outside": "value"}, {"missing": None}, {"outside": 1}):
        with pytest.raises(InvalidAttribute, match="must be one of"):
            make(**choices)


# --- whole numbers --------------------------------------------------------------------------------


def test_integer_cells_of_ten() -> None:
    age = Integer(0, 25, 10)
    assert age.size == 3
    assert [age.label(cell) for cell in range(3)] == ["0–9", "10–19", "20–25"]
    assert (age.lower(2), age.upper(2)) == (20, 25)
    assert Integer(0, 20, 10).label(2) == "20"
    assert age.encode([-5, 0, 9, 10, 25, 26, 99]).tolist() == [0, 0, 0, 1, 2, 2, 2]
    dropping = Integer(0, 25, 10, outside="drop")
    assert dropping.encode([-5, 0, 25, 26, 29, math.inf]).tolist() == [-1, 0, 2, -1, -1, -1]
    assert age.describe() == (
        "whole numbers from 0 to 25 in cells of 10; other values count as the nearest end; "
        "none is missing (one that turns up counts as 0)"
    )


def test_answers_are_told_what_a_declaration_folds() -> None:
    def folded(attribute: Attribute) -> str | None:
        return attribute.folded("x")

    assert folded(Integer(0, 25_000)) == "x: values outside 0–25,000 count as the nearest end."
    assert folded(Integer(1990, 2030, missing="clamp")) == (
        "x: values outside 1990–2030 count as the nearest end; missing values count as 1990."
    )
    assert folded(Real(0, 1, "0.1", missing="drop", outside="drop")) == (
        "x: values are rounded to steps of 0.1; rows with a value outside 0–1 are left out; "
        "rows without a value are left out."
    )
    assert folded(Category(["a", "other"], missing="public")) == (
        "x: rows with a value that is not listed are left out."
    )
    assert folded(Category(["a", "other"], missing="clamp", outside="clamp")) == (
        "x: values that are not listed count as other; missing values count as other."
    )
    assert folded(Date("2024-01-01", "2024-01-02", missing="value")) == (
        "x: values outside 2024-01-01–2024-01-02 count as the nearest end."
    )


@given(integer_attributes(), st.lists(st.one_of(st.integers(), st.integers(-60, 60), st.floats(width=32))))
def test_integer_encoding_is_floor_division(attribute: Integer, values: list[float]) -> None:
    near = [v if isinstance(v, float) else v + attribute.lo * (abs(v) <= 60) for v in values]

    def expected(value: float) -> int:
        if math.isnan(value):
            return attribute.encode([None]).tolist()[0]
        below, above = value < attribute.lo, math.isinf(value) or math.floor(value) > attribute.hi
        if below or above:
            end = 0 if below else attribute.value_count - 1
            return end if attribute.outside == "clamp" else -1
        return (math.floor(value) - attribute.lo) // attribute.step

    assert attribute.encode(near).tolist() == [expected(value) for value in near]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8", "u8", "f2", "f4", "f8"])
def test_integer_arrays_of_every_kind_agree_with_python(dtype: str) -> None:
    info = np.iinfo(dtype) if dtype[0] in "iu" else None
    values = [0, 1, 7, 100] + ([int(info.min), int(info.max)] if info else [-3.5, 2.25, math.inf, math.nan])
    array = np.array(values, dtype=dtype)
    for lo, hi in ((0, 50), (-(2**40), 2**40), (-(2**63), 2**63), (10**25, 10**25 + 5), (-5, -1)):
        for outside in ("clamp", "drop"):
            attribute = Integer(lo, hi, max(1, (hi - lo) // 9), outside=outside)
            assert attribute.encode(array).tolist() == attribute.encode(array.tolist()).tolist()


def test_huge_integers_do_not_wrap() -> None:
    far = Integer(10**30, 10**30 + 9, outside="drop")
    assert far.encode([10**30, 10**30 + 9, 0, 2**64 + 10**30]).tolist() == [0, 9, -1, -1]
    assert Integer(-(10**30), 10**30, 10**20).size == 2 * 10**10 + 1
    assert Integer(0, MOST_CELLS - 1).size == MOST_CELLS
    with pytest.raises(InvalidAttribute, match="too many"):
        Integer(0, MOST_CELLS)


@given(anything, anything, anything)
def test_integer_takes_whole_numbers_only(lo: object, hi: object, step: object) -> None:
    whole = all(isinstance(v, int) and not isinstance(v, bool) for v in (lo, hi, step))
    if whole and lo <= hi and step >= 1 and (hi - lo) // step < MOST_CELLS:
        assert Integer(lo, hi, step).value_count == (hi - lo) // step + 1
        return
    with pytest.raises((InvalidAttribute, NotFinite, ReversedBounds)):
        Integer(lo, hi, step)  # type: ignore[arg-type]


def test_integer_refusals_say_why() -> None:
    with pytest.raises(ReversedBounds, match="above"):
        Integer(5, 4)
    with pytest.raises(NotFinite):
        Integer(0, math.inf)  # type: ignore[arg-type]
    with pytest.raises(NotFinite):
        Integer(math.nan, 3)  # type: ignore[arg-type]
    with pytest.raises(InvalidAttribute, match="at least 1"):
        Integer(0, 9, 0)
    with pytest.raises(InvalidValue):
        Integer(0, 9).encode(["3"])
    for wrong in (10, -1, 3.5, "3", True, date(2024, 1, 1)):
        with pytest.raises(InvalidValue):
            Integer(0, 9).cell(wrong)
    assert Integer(np.int64(0), np.int64(9)) == Integer(0, 9)
    assert isinstance(Integer(np.int64(0), 9).lower(0), int)


def test_integer_thresholds_and_widths() -> None:
    salary = Integer(0, 199_999, 1000)
    assert salary.threshold(1000) == 1
    assert salary.threshold(1001) == 2
    assert salary.threshold(0.5) == 1
    assert salary.bins(width=10_000).count == 20
    with pytest.raises(InvalidBins, match="1000 or 2000"):
        salary.bins(width=1500)
    with pytest.raises(InvalidBins, match="width 1000"):
        salary.bins(width=10)
    with pytest.raises(InvalidBins, match="20000 or 21000"):
        salary.bins(edges=[0, 20_500])


def test_edges_in_data_units() -> None:
    age = Integer(0, 25, 10)
    assert age.bins(edges=[0, 20]).assignment().tolist() == [0, 0, 1]
    assert age.bins(edges=[0, 20, 30]).assignment().tolist() == [0, 0, 1]  # 30 is lo + size·step
    assert age.bins(edges=np.array([0, 10])).assignment().tolist() == [0, 1, 1]
    for wrong in ([10, 20], [0, 20, 26], [0, 40], [-10, 0], [0, 20, 10], ["0"], 5, "05", [0, math.inf]):
        with pytest.raises(InvalidBins):
            age.bins(edges=wrong)  # type: ignore[arg-type]


def test_bins_are_given_in_one_way() -> None:
    with pytest.raises(InvalidBins, match="one of"):
        Integer(0, 9).bins(count=2, width=5)
    for count in (0, -1, 2.5, True):
        with pytest.raises(InvalidBins):
            Integer(0, 9).bins(count=count)  # type: ignore[arg-type]


def test_bins_of_many_cells_cost_nothing() -> None:
    wide = Integer(0, 10**15 - 1, missing="value")
    assert wide.bins(count=20).count == 21
    assert wide.bins().count == 10**15 + 1
    assert (
        wide.bins(width=10**3).count == 10**12 + 1
    )  # divides evenly: the missing cell is the short last bin
    assert wide.bins(count=7).last(np.array([6, 7])).tolist() == [10**15 - 1, 10**15]
    with pytest.raises(TooLarge):
        wide.bins(width=7)
    with pytest.raises(TooLarge):
        Integer(0, LIMIT).bins(groups={"all": [0]})


# --- numbers on a grid ----------------------------------------------------------------------------


def test_real_is_exact_in_decimals() -> None:
    tenths = Real(0, 0.3, 0.1, outside="drop")
    assert (tenths.lo, tenths.hi, tenths.grid) == (0, Fraction(3, 10), Fraction(1, 10))
    values = [0.1 + 0.2, 0.15, 0.25, 0.05, 0.049, 0.3499, 0.35, -0.05, -0.06, math.inf, -math.inf]
    cells = [3, 2, 3, 1, 0, 3, -1, 0, -1, -1, -1]
    assert tenths.encode(values).tolist() == cells
    assert tenths.encode(np.array(values)).tolist() == cells
    assert [tenths.label(cell) for cell in range(4)] == ["0", "0.1", "0.2", "0.3"]
    assert Real(0, 1, "1/3").label(1) == "1/3"
    assert Real("-0.5", 0, "0.25").label(1) == "-0.25"
    assert Real(Decimal("0.1"), "0.3", Fraction(1, 10)).size == 3
    assert tenths.cell(0.2) == 2
    with pytest.raises(InvalidValue):
        tenths.cell(0.1 + 0.2)


@settings(max_examples=200)
@given(
    real_attributes(),
    st.lists(st.one_of(st.floats(), st.integers(-(2**63), 2**63 - 1)), max_size=20),
    st.lists(st.tuples(st.integers(-5, 65), st.sampled_from([0, 0.25, 0.5, 0.5 + 1e-12, 0.75])), max_size=20),
)
def test_real_arrays_agree_with_exact_arithmetic(attribute, anywhere, near) -> None:
    places = [float(attribute.lo + (tick + Fraction(rest)) * attribute.grid) for tick, rest in near]
    values = np.array([float(value) for value in anywhere] + places)
    assert attribute.encode(values).tolist() == attribute.encode(values.tolist()).tolist()


def test_absurd_exponents_cost_nothing() -> None:
    absurd = [
        Decimal("1e999999"),
        Decimal("-1e999999"),
        Decimal("1e-999999"),
        Decimal("-1e-999999"),
        Decimal("0e-999999"),
    ]
    assert Integer(-5, 5).encode(absurd).tolist() == [10, 0, 5, 4, 5]
    assert Real(-5, 5, 1).encode(absurd).tolist() == [10, 0, 5, 5, 5]


def test_real_far_from_zero_is_still_exact() -> None:
    attribute = Real(10**15, 10**15 + 1, "0.001", outside="drop")
    values = np.nextafter(1e15, 2e15) + np.arange(-3, 12) * 0.125
    assert attribute.encode(values).tolist() == attribute.encode(values.tolist()).tolist()
    assert Real("1e300", "1e300", 1).encode(np.array([1.0])).tolist() == [0]


@given(anything, anything, anything)
def test_real_takes_finite_numbers_only(lo: object, hi: object, grid: object) -> None:
    try:
        attribute = Real(lo, hi, grid)  # type: ignore[arg-type]
    except (InvalidAttribute, NotFinite, ReversedBounds):
        return
    assert attribute.at(attribute.ticks - 1) == attribute.hi


def test_real_refusals_say_why() -> None:
    with pytest.raises(ReversedBounds):
        Real(1, 0, 0.1)
    for wrong in (math.nan, math.inf, "nan", "-inf", Decimal("Infinity"), Decimal("NaN"), "1e999999999"):
        with pytest.raises(NotFinite):
            Real(0, wrong, 1)
    for wrong in ("x", None, True, "1/0", [1]):
        with pytest.raises(InvalidAttribute):
            Real(0, wrong, 1)  # type: ignore[arg-type]
    for grid in (0, -1):
        with pytest.raises(InvalidAttribute, match="positive"):
            Real(0, 1, grid)
    with pytest.raises(InvalidAttribute, match=r"0\.9 or 1\.2"):
        Real(0, 1, 0.3)
    with pytest.raises(InvalidAttribute, match="too many"):
        Real(0, 1, "1e-30")


def test_real_thresholds_and_widths() -> None:
    price = Real(0, 10, 0.1)
    assert price.threshold(0.3) == 3
    assert price.threshold("0.31") == 4
    assert price.bins(width=0.5).count == 21
    assert price.bins(edges=[0, 0.3, 10.1]).first([1]).tolist() == [3]
    with pytest.raises(InvalidBins, match=r"0\.2 or 0\.3"):
        price.bins(width=0.25)
    with pytest.raises(InvalidBins, match=r"0\.2 or 0\.3"):
        price.bins(edges=[0, 0.25])


# --- categories and booleans ----------------------------------------------------------------------


def test_categories_keep_the_listed_order() -> None:
    grade = Category(["low", "mid", "other"], ordered=True, missing="clamp", outside="clamp")
    assert grade.encode(["mid", "never heard of", None, "low"]).tolist() == [1, 2, 2, 0]
    assert Category(["a", "b"]).encode(["b", "c", None, 3]).tolist() == [1, -1, -1, -1]
    assert Category([5, 7]).encode(np.array([7.0, math.nan, 5.5])).tolist() == [1, -1, -1]
    assert Category(["a", "b"]).encode(np.array(["b", "x"])).tolist() == [1, -1]
    assert grade.threshold(2) == 2
    assert grade.bins(edges=["low", "other"]).assignment().tolist() == [0, 0, 1]
    assert Category(np.array(["x", "y"])).values == ("x", "y")
    assert Category(["a"]).describe().startswith("categories a; rows with other values are left out")


def test_groups_name_every_value_once() -> None:
    region = Category(["n", "e", "s", "w"], missing="value")
    bins = region.bins(groups={"cold": ["n", "e"], "warm": ["w", "s"]})
    assert bins.assignment().tolist() == [0, 0, 1, 1, 2]
    assert region.bins(groups={"a": ["n", "s"], "b": ("e", "w")}).assignment().tolist() == [0, 1, 0, 1, 2]
    wrong: tuple[object, ...] = (
        {"cold": ["n"]},
        {"cold": ["n", "e"], "warm": ["w", "s", "n"]},
        {"cold": ["n", "e", "s", "w"], "none": []},
        {"cold": ["n", "e", "s", "x"]},
        {"all": ["n", "e", "s", "w"], "lost": [None]},
        {"all": "nesw"},
        {"all": 3},
        ["n"],
        {},
    )
    for groups in wrong:
        with pytest.raises(InvalidBins):
            region.bins(groups=groups)  # type: ignore[arg-type]


def test_category_refusals_say_why() -> None:
    with pytest.raises(EmptyDomain):
        Category([])
    with pytest.raises(InvalidAttribute, match="'a' is listed twice"):
        Category(["a", "b", "a"])
    wrong: tuple[object, ...] = ("abc", 5, ["a", 1], [1.5], [True, False], [["a"]], [date(2024, 1, 1)])
    for values in wrong:
        with pytest.raises(InvalidAttribute):
            Category(values)  # type: ignore[arg-type]
    with pytest.raises(InvalidAttribute, match="missing='value'"):
        Category(["a", None])  # type: ignore[list-item]
    with pytest.raises(InvalidAttribute, match="ordered"):
        Category(["a"], "yes")  # type: ignore[arg-type]
    unordered = Category(["a", "b", "c"])
    with pytest.raises(InvalidThreshold, match="ordered=True"):
        unordered.threshold(1)
    with pytest.raises(InvalidBins, match="groups"):
        unordered.bins(edges=["a"])
    for wider in ({"count": 2}, {"width": 2}):
        with pytest.raises(InvalidBins, match="groups"):
            unordered.bins(**wider)
    assert unordered.bins(count=5).count == unordered.bins(width=1).count == 3
    with pytest.raises(InvalidValue, match="'z' is not one of"):
        unordered.cell("z")
    with pytest.raises(InvalidValue):
        unordered.encode([["a"]])


@given(st.lists(anything, max_size=4))
def test_categories_are_texts_or_whole_numbers(values: list[object]) -> None:
    kinds = {type(value) for value in values}
    if kinds in ({str}, {int}) and len(set(values)) == len(values):
        assert Category(values).size == len(values)  # type: ignore[arg-type]
        return
    with pytest.raises((InvalidAttribute, EmptyDomain)):
        Category(values)  # type: ignore[arg-type]


def test_booleans() -> None:
    assert Boolean().encode([True, False, None, 1, 0, np.True_, 1.0]).tolist() == [1, 0, 0, 1, 0, 1, 1]
    assert Boolean().encode(np.array([True, False])).tolist() == [1, 0]
    assert Boolean(outside="drop", missing="value").encode([2, None, -1, 0.5]).tolist() == [-1, 2, -1, -1]
    assert (Boolean().lower(0), Boolean().upper(1), Boolean().label(1)) == (False, True, "True")
    assert Boolean().bins(groups={"no": [False], "yes": [True]}).count == 2
    for wrong in ("yes", 2, date(2024, 1, 1)):
        with pytest.raises(InvalidValue):
            Boolean().cell(wrong)


# --- dates ----------------------------------------------------------------------------------------


def test_dates_by_day_and_week() -> None:
    day = Date("2024-01-01", date(2024, 12, 31))
    assert day.size == 366
    assert day.lower(59) == day.upper(59) == date(2024, 2, 29)
    values = ["2024-01-02", date(2024, 1, 2), datetime(2024, 1, 2, 23, 59), np.datetime64("2024-01-02T05")]
    assert day.encode(values).tolist() == [1, 1, 1, 1]
    assert day.encode(["1999-01-01", "2030-01-01"]).tolist() == [0, 365]
    week = Date(date(2024, 1, 1), "2024-01-31", "week", outside="drop")
    assert [week.label(cell) for cell in (0, 4)] == ["2024-01-01–2024-01-07", "2024-01-29–2024-01-31"]
    assert week.encode([date(2024, 1, 31), date(2024, 2, 1)]).tolist() == [4, -1]
    assert week.threshold(timedelta(days=8)) == 2
    assert week.threshold(np.timedelta64(8 * 86_400 * 10**9, "ns")) == 2
    assert week.threshold(1) == 1
    assert day.bins(width=timedelta(days=7)).count == day.bins(width="7 days").count == 53
    assert day.bins(width=" 2 Weeks").count == 27
    assert week.threshold("8 days") == 2
    for wrong in ("7 months", "many days", "days", "1e300 days"):
        with pytest.raises((InvalidValue, InvalidBins)):
            day.bins(width=wrong)
    assert day.bins(edges=["2024-01-01", "2024-07-01", "2025-01-01"]).count == 2
    with pytest.raises(InvalidBins, match="1 or 2"):
        day.bins(width=timedelta(hours=36))
    assert day.cell(datetime(2024, 1, 2)) == 1
    with pytest.raises(InvalidValue, match="finer"):
        day.cell(datetime(2024, 1, 2, 12))


def test_moments_by_hour() -> None:
    hour = Date("2024-01-01", "2024-01-02", "hour")
    assert hour.size == 48  # the upper bound is a date, and includes its whole day
    assert hour.lower(47) == datetime(2024, 1, 2, 23)
    assert hour.upper(0) == datetime(2024, 1, 1, 0, 59, 59)
    assert hour.encode([datetime(2024, 1, 1, 1, 59, 59, 999_999), "2024-01-02"]).tolist() == [1, 24]
    assert hour.label(0) == "2024-01-01 00:00:00–2024-01-01 00:59:59"
    assert hour.bins(edges=["2024-01-01", "2024-01-02"]).first([1]).tolist() == [24]
    for wrong in (date(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 5), "soon", 5):
        with pytest.raises(InvalidValue):
            hour.cell(wrong)
    assert Date(datetime(2024, 1, 1, 6), "2024-01-02", "day").size == 2  # days that begin at six
    assert Date("2024-01-01", datetime(2024, 1, 2, 5)).hi == date(2024, 1, 2)


@settings(max_examples=60)
@given(date_attributes(), st.lists(st.datetimes(), max_size=10), st.sampled_from(["D", "h", "s", "ms", "us"]))
def test_date_arrays_agree_with_python(attribute: Date, moments: list[datetime], unit: str) -> None:
    array = np.array([*moments, "NaT"], dtype=f"datetime64[{unit}]")
    values = [None if np.isnat(value) else value.astype("datetime64[us]").item() for value in array]
    assert attribute.encode(array).tolist() == attribute.encode(values).tolist()


def test_date_arrays_do_not_wrap() -> None:
    day = Date("2024-01-01", "2024-12-31", outside="drop")
    far = np.array([10**17, -(10**17), 54], dtype="datetime64[Y]")
    assert day.encode(far).tolist() == [-1, -1, 0]
    nanoseconds = np.array(["2024-01-02T00:00:00.000000001", "1969-12-31"], dtype="datetime64[ns]")
    assert day.encode(nanoseconds).tolist() == [1, -1]
    second = Date("1969-12-31", "1970-01-01", "second")
    assert second.encode(np.array([-1], dtype="datetime64[ns]")).tolist() == [86_399]  # floors, not truncates


def test_date_refusals_say_why() -> None:
    aware = datetime(2024, 1, 1, tzinfo=UTC)
    with pytest.raises(InvalidAttribute, match="time zone"):
        Date(aware, "2024-02-01")
    with pytest.raises(InvalidValue, match="time zone"):
        Date("2024-01-01", "2024-02-01").encode([aware])
    with pytest.raises(InvalidValue, match="time zone"):
        Date("2024-01-01", "2024-02-01").encode(["2024-01-01T00:00:00+02:00"])
    with pytest.raises(ReversedBounds):
        Date("2024-02-01", "2024-01-01")
    with pytest.raises(InvalidAttribute, match="second, minute"):
        Date("2024-01-01", "2024-02-01", "month")  # type: ignore[arg-type]
    with pytest.raises(InvalidAttribute, match="whole second"):
        Date(datetime(2024, 1, 1, 0, 0, 0, 1), "2024-02-01")
    for wrong in ("soon", 5, None, "2024-13-01", np.datetime64("NaT")):
        with pytest.raises(InvalidAttribute):
            Date(wrong, "2024-02-01")  # type: ignore[arg-type]


@given(anything, anything, anything)
def test_date_takes_dates_only(lo: object, hi: object, unit: object) -> None:
    with pytest.raises((InvalidAttribute, ReversedBounds)):
        Date(lo, hi, unit)  # type: ignore[arg-type]


def test_refused_data_is_never_quoted() -> None:
    secret = "secret-4711"
    for attribute in (Integer(0, 9), Real(0, 1, 1), Date("2024-01-01", "2024-01-02"), Boolean()):
        with pytest.raises(InvalidValue) as caught:
            attribute.encode([secret])
        assert secret not in str(caught.value)
        assert caught.value.__suppress_context__ or caught.value.__context__ is None


# --- columns of other libraries -------------------------------------------------------------------


def test_columns_of_pandas_polars_and_arrow() -> None:
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    age = Integer(0, 9, missing="value")
    big = 2**60 + 1  # would lose its last bit as a float
    wide = Integer(big, big + 5, missing="value")
    for column in (
        pd.Series([big, None, big + 5], dtype="Int64"),
        pl.Series([big, None, big + 5]),
        pa.array([big, None, big + 5]),
    ):
        assert wide.encode(column).tolist() == [0, 6, 5]
    assert age.encode(pd.Series([1, None, 99])).tolist() == [1, 10, 9]
    assert age.encode(pd.Series([1, 2])).tolist() == [1, 2]
    hour = Date("2024-01-01", "2024-01-01", "hour", missing="value")
    moments = [datetime(2024, 1, 1, 5, 30), None]
    for column in (
        pd.Series(moments),
        pl.Series(moments),
        pa.array(moments),
        [pd.Timestamp(moments[0]), pd.NaT],
    ):
        assert hour.encode(column).tolist() == [5, 24]
    assert Category(["a", "b"], missing="value").encode(pd.Series(["b", None])).tolist() == [1, 2]
    with pytest.raises(InvalidAttribute):
        Date(pd.NaT, "2024-01-01")


@pytest.mark.parametrize("wrong", ["abc", 5, None, np.zeros((2, 2)), np.array(5)])
def test_columns_have_one_dimension(wrong: object) -> None:
    with pytest.raises(InvalidValue):
        Integer(0, 9).encode(wrong)  # type: ignore[arg-type]


# --- domains --------------------------------------------------------------------------------------


@given(st.dictionaries(st.text(min_size=1).filter(str.strip), attributes, min_size=1, max_size=4))
def test_a_domain_is_an_ordered_frozen_mapping(columns: dict[str, Attribute]) -> None:
    domain = Domain.of(columns)
    assert domain.names == tuple(domain) == tuple(columns)
    assert domain.shape == tuple(attribute.size for attribute in columns.values())
    assert domain.size == math.prod(domain.shape)
    assert all(name in domain and domain[name] is columns[name] for name in columns)
    assert len(domain) == len(columns)
    assert domain == Domain.of(dict(columns)) == pickle.loads(pickle.dumps(domain))
    assert hash(domain) == hash(Domain.of(dict(columns)))
    first = domain.names[0]
    assert domain.project(first) == Domain.of({first: columns[first]})
    assert domain.project(*reversed(domain.names)).names == tuple(reversed(domain.names))
    assert (domain == domain.project(*reversed(domain.names))) == (len(domain) == 1)
    with pytest.raises(AttributeError):
        domain.columns = ()  # type: ignore[misc]


def test_domains_of_any_size() -> None:
    wide = Domain.of({f"c{i}": Integer(0, 10**12 - 1) for i in range(50)})
    assert wide.size == 10**600
    assert Domain(self=Boolean(), cls=Boolean()).names == ("self", "cls")
    assert repr(Domain(flag=Boolean())) == "Domain(flag=Boolean(missing='none', outside='clamp'))"
    assert Domain(a=Boolean(), b=Boolean()).describe().count("\n") == 1


def test_domain_encodes_tables() -> None:
    domain = Domain(age=Integer(0, 120), sex=Category(["F", "M"], missing="value"))
    cells = domain.encode({"sex": ["F", None], "age": [30, 500], "ignored": [1]})
    assert {name: column.tolist() for name, column in cells.items()} == {"age": [30, 120], "sex": [0, 2]}
    with pytest.raises(SizeMismatch):
        domain.encode({"sex": ["F"], "age": [1, 2]})
    with pytest.raises(UnknownColumn, match="the table has: Age"):
        domain.encode({"Age": [1]})


def test_domain_refusals_say_why() -> None:
    with pytest.raises(EmptyDomain):
        Domain()
    with pytest.raises(EmptyDomain):
        Domain.of({})
    domain = Domain(salary=Integer(0, 9), age=Integer(0, 9))
    with pytest.raises(EmptyDomain):
        domain.project()
    with pytest.raises(InvalidAttribute, match="only once"):
        domain.project("age", "age")
    with pytest.raises(UnknownColumn, match=r"'salery'; the domain declares: salary, age\. Try: 'salary'"):
        domain["salery"]
    with pytest.raises(UnknownColumn):
        domain.project("zzz")
    with pytest.raises(UnknownColumn):
        domain[3]  # type: ignore[index]
    assert "salery" not in domain
    for columns in ({3: Boolean()}, {"": Boolean()}, {"  ": Boolean()}, {"a": "integer"}, [("a", Boolean())]):
        with pytest.raises(InvalidAttribute):
            Domain.of(columns)  # type: ignore[arg-type]
