"""Predicates: writing them, SQL's three-valued logic, cells, and the coarsest cuts."""

from __future__ import annotations

import itertools
import math
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.conditions import Between, Comparison, IsIn, IsMissing, Op, col
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import And, Everything, Not, Or, Predicate
from blowfishdb.core.errors import InvalidPredicate, InvalidValue, ReversedBounds, UnknownColumn

# --- random domains, rows and predicates ----------------------------------------------------------

missing_choices = st.sampled_from(["none", "clamp", "drop", "value", "public"])
outside_choices = st.sampled_from(["clamp", "drop"])


@st.composite
def attributes(draw):
    choices = {"missing": draw(missing_choices), "outside": draw(outside_choices)}
    kind = draw(st.sampled_from(["integer", "real", "category", "date", "moment", "boolean"]))
    if kind == "integer":
        lo = draw(st.integers(-30, 30))
        return Integer(lo, lo + draw(st.integers(0, 40)), draw(st.integers(1, 12)), **choices)
    if kind == "real":
        lo = Fraction(draw(st.integers(-30, 30)), 10)
        return Real(lo, lo + Fraction(draw(st.integers(0, 30)), 10), 0.1, **choices)
    if kind == "category":
        values = draw(st.permutations(["a", "b", "c", "d"]))
        return Category(values, draw(st.booleans()), **choices)
    if kind == "boolean":
        return Boolean(**choices)
    lo = draw(st.dates(date(2000, 1, 1), date(2000, 2, 1)))
    hi = draw(st.dates(lo, date(2000, 3, 1)))
    units = ["day", "week"] if kind == "date" else ["minute", "hour"]
    return Date(lo, hi, draw(st.sampled_from(units)), **choices)


def domains(most: int = 3):
    columns = st.lists(attributes(), min_size=1, max_size=most)
    return columns.map(lambda found: Domain.of(dict(zip("xyz", found, strict=False))))


def raw_values(attribute):
    """In the domain, outside it, and missing."""
    if isinstance(attribute, Integer):
        values = st.one_of(st.integers(attribute.lo - 5, attribute.hi + 5), st.integers(), st.floats())
    elif isinstance(attribute, Real):
        values = st.one_of(st.floats(), st.floats(-7, 7), st.decimals(-7, 7, places=3))
    elif isinstance(attribute, Category):
        values = st.sampled_from(["a", "b", "c", "d", "unheard of"])
    elif isinstance(attribute, Boolean):
        values = st.sampled_from([True, False, 0, 1, 2])
    else:
        values = st.one_of(
            st.dates(date(1999, 12, 25), date(2000, 3, 10)),
            st.datetimes(datetime(1999, 12, 25), datetime(2000, 3, 10)),
        )
    return st.one_of(st.none(), values)


@st.composite
def atoms(draw, domain):
    """A condition that begins and ends with cells."""
    name = draw(st.sampled_from(domain.names))
    attribute, column = domain[name], col(name)
    first = draw(st.integers(0, attribute.value_count - 1))
    last = draw(st.integers(first, attribute.value_count - 1))
    lower, upper = attribute.lower(first), attribute.upper(last)
    single = attribute.ticks_per_cell == 1
    forms = ["missing"] if attribute.has_missing_cell else []
    if attribute.ordered:
        forms += [">=", "<", "<=", ">", "between"]
    if single:
        forms += ["==", "!=", "in"]
    form = draw(st.sampled_from(forms))
    if form == "missing":
        return column.is_missing()
    if form == "between":
        return column.between(lower, upper)
    if form == "in":
        cells = draw(st.lists(st.integers(0, attribute.value_count - 1), min_size=1, max_size=4))
        return column.isin([attribute.lower(cell) for cell in cells])
    return Comparison(name, Op(form), upper if form in ("<=", ">") else lower)


def predicates(domain):
    leaves = st.one_of(atoms(domain), atoms(domain), st.just(Everything()))
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1]),
            st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1]),
            parts.map(lambda part: ~part),
        ),
        max_leaves=6,
    )


def kleene(predicate: Predicate, row, domain) -> bool | None:
    """SQL's logic written a second time, with None for unknown."""
    if isinstance(predicate, Not):
        value = kleene(predicate.part, row, domain)
        return None if value is None else not value
    if isinstance(predicate, (And, Or)):
        values = [kleene(part, row, domain) for part in predicate.parts]
        decisive = isinstance(predicate, Or)
        return decisive if decisive in values else None if None in values else not decisive
    if isinstance(predicate, Everything):
        return True
    if isinstance(predicate, IsMissing):
        return row[predicate.column] is None
    if row[predicate.column] is None:
        return None
    return predicate.matches(row, domain)


# --- properties -----------------------------------------------------------------------------------


@settings(max_examples=120)
@given(st.data())
def test_rows_and_cells_agree(data: st.DataObject) -> None:
    domain = data.draw(domains())
    row = {name: data.draw(raw_values(domain[name])) for name in domain}
    predicate = data.draw(predicates(domain))
    cells = {name: int(column[0]) for name, column in domain.encode({n: [v] for n, v in row.items()}).items()}
    found = bool(predicate.on_cells(domain, cells))
    if -1 in cells.values():
        assert not found
        return
    for end in ("lower", "upper"):
        clamped = {
            name: None if cell == domain[name].value_count else getattr(domain[name], end)(cell)
            for name, cell in cells.items()
        }
        assert predicate.matches(clamped, domain) == found
        assert (kleene(predicate, clamped, domain) is True) == found


@settings(max_examples=80)
@given(st.data())
def test_cuts_are_the_coarsest_on_which_every_atom_is_constant(data: st.DataObject) -> None:
    domain = data.draw(domains(1))
    predicate = data.draw(predicates(domain))
    cuts = predicate.cuts(domain)
    assert set(cuts) == predicate.columns()
    if not cuts:
        return
    attribute, bins = domain["x"], cuts["x"]
    assert bins.size == attribute.size
    assert bins.contiguous
    firsts, lasts = bins.first(np.arange(bins.count)), bins.last(np.arange(bins.count))
    signatures = []
    for first, last in zip(firsts, lasts, strict=True):
        cells = np.arange(first, last + 1) if last - first < 100 else np.array([first, first + 7, last])
        kinds = [
            (atom.on_cells(domain, {"x": cells}), (~atom).on_cells(domain, {"x": cells}))
            for atom in predicate.atoms()
        ]
        assert all(len(set(array.tolist())) == 1 for pair in kinds for array in pair)
        lost = attribute.has_missing_cell and first == attribute.value_count
        signatures.append((lost, *((bool(yes[0]), bool(no[0])) for yes, no in kinds)))
    assert all(one != two for one, two in itertools.pairwise(signatures))


@settings(max_examples=40)
@given(st.data())
def test_cells_broadcast(data: st.DataObject) -> None:
    domain = data.draw(domains())
    predicate = data.draw(predicates(domain))
    lists = {
        name: np.array(data.draw(st.lists(st.integers(-1, domain[name].size - 1), min_size=1, max_size=3)))
        for name in domain
    }
    grid = dict(zip(lists, np.ix_(*lists.values()), strict=True))
    held = predicate.on_cells(domain, grid)
    assert held.dtype == np.bool_
    assert held.shape == tuple(column.size for column in lists.values())
    for place in np.ndindex(held.shape):
        one = {name: column[i] for (name, column), i in zip(lists.items(), place, strict=True)}
        assert predicate.on_cells(domain, one) == held[place]


@settings(max_examples=50)
@given(st.data())
def test_trees_are_values(data: st.DataObject) -> None:
    domain = data.draw(domains())
    predicate = data.draw(predicates(domain))
    assert pickle.loads(pickle.dumps(predicate)) == predicate
    assert hash(pickle.loads(pickle.dumps(predicate))) == hash(predicate)
    assert predicate.columns() <= set(domain)
    assert str(predicate)
    predicate.check(domain)
    for use in (bool, lambda p: p and p, lambda p: not p):
        with pytest.raises(InvalidPredicate, match="use & instead of and"):
            use(predicate)


constants = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.dates(),
    st.datetimes(),
    st.decimals(),
    st.fractions(),
    st.just([1]),
    st.just(b"x"),
)


def is_finite(value) -> bool:
    return value.is_finite() if isinstance(value, Decimal) else math.isfinite(value)


@given(constants, constants, st.sampled_from(list(Op)))
def test_constants_are_checked_when_written(one: object, two: object, op: Op) -> None:
    plain = (bool, int, float, str, date, Decimal, Fraction)
    allowed = [isinstance(v, plain) and (isinstance(v, (str, date)) or is_finite(v)) for v in (one, two)]
    for make, fine in (
        (lambda: Comparison("x", op, one), allowed[0]),
        (lambda: IsIn("x", (one, two)), all(allowed)),
    ):
        if fine:
            assert hash(make()) == hash(make())
        else:
            with pytest.raises(InvalidPredicate):
                make()
    try:
        between = Between("x", one, two)  # type: ignore[arg-type]
    except (InvalidPredicate, ReversedBounds):
        return
    assert all(allowed)
    assert between.matches({"x": None}) is False


kinds = Domain(
    i=Integer(0, 99, 10),
    r=Real(0, 1, 0.1),
    c=Category(["p", "q"]),
    d=Date("2024-01-01", "2024-12-31"),
    b=Boolean(),
)


@given(constants, st.sampled_from(list(Op)), st.sampled_from(kinds.names))
def test_any_condition_fits_its_column_or_is_refused(value: object, op: Op, name: str) -> None:
    try:
        predicate = Comparison(name, op, value)  # type: ignore[arg-type]
        predicate.check(kinds)
    except InvalidPredicate:
        with pytest.raises(InvalidPredicate):
            Comparison(name, op, value).on_cells(kinds, {name: [0]})  # type: ignore[arg-type]
        return
    assert predicate.cuts(kinds)[name].count <= 3


# --- writing --------------------------------------------------------------------------------------


def test_columns_write_conditions() -> None:
    age = col("age")
    assert (age >= 30) == Comparison("age", Op.GE, 30)
    assert (age > 30) == Comparison("age", Op.GT, 30)
    assert (age <= 30) == Comparison("age", Op.LE, 30)
    assert (age < 30) == Comparison("age", Op.LT, 30)
    assert (age == 30) == Comparison("age", Op.EQ, 30)
    assert (age != 30) == Comparison("age", Op.NE, 30)
    assert (age >= 30) == (30 <= age)  # noqa: SIM300 - the mirrored form is what is tested
    assert age.between(1, 2) == Between("age", 1, 2)
    assert age.isin([2, 1, 2]) == IsIn("age", (2, 1))
    assert age.is_missing() == IsMissing("age")
    assert Comparison("age", Op.GE, np.int64(30)) == (age >= 30)
    assert repr(age) == "col('age')"
    assert hash(age) == hash(col("age"))


def test_combinations_are_flat() -> None:
    a, b, c = col("a") > 1, col("b") > 1, col("c") > 1
    assert a & b & c == And((a, b, c))
    assert a | (b | c) == Or((a, b, c))
    assert ~(a & b) == Not(And((a, b)))
    assert (a & b | ~c).columns() == {"a", "b", "c"}
    assert Everything().columns() == frozenset()


def test_predicates_are_readable() -> None:
    text = str((col("age") >= 30) & ~col("sex").isin(["F"]))
    assert text == "age >= 30 and not (sex in ('F'))"
    a, b, c = col("a") == "x", col("b").between(1, Fraction(5, 2)), col("c").is_missing()
    assert str((a | b) & c) == "(a == 'x' or b between 1 and 2.5) and c is missing"
    assert str(a | (b & c)) == "a == 'x' or (b between 1 and 2.5 and c is missing)"
    assert str(col("d") < date(2024, 1, 1)) == "d < '2024-01-01'"
    assert str(Everything()) == "everything"


def test_slips_in_writing_are_refused() -> None:
    age = col("age")
    slips = (
        lambda: 10 <= age <= 30,
        lambda: (age >= 30) & 3,
        lambda: 3 | (age >= 30),
        lambda: (age >= 30) & age,
        lambda: age & (age >= 30),
        lambda: ~age,
        lambda: bool(age),
        lambda: age in [1, 2],
        lambda: age == None,  # noqa: E711
        lambda: age >= Decimal("NaN"),
        lambda: age.isin([math.nan]),
        lambda: age >= math.inf,
        lambda: age >= np.datetime64("NaT"),
        lambda: age == col("other"),
        lambda: age.isin("abc"),
        lambda: age.isin(3),
        lambda: age.isin([]),
        lambda: age.isin([1, None]),
        lambda: age >= datetime(2024, 1, 1, tzinfo=UTC),
        lambda: age.between(1, "x"),
        lambda: col(""),
        lambda: col(3),
        lambda: Comparison("age", ">=", 3),
        lambda: And(()),
        lambda: Or([age > 1]),
        lambda: Not(3),
    )
    for slip in slips:
        with pytest.raises(InvalidPredicate):
            slip()
    for lo, hi in ((2, 1), (0.3, Fraction(1, 10)), (date(2024, 2, 1), datetime(2024, 1, 31, 5))):
        with pytest.raises(ReversedBounds):
            age.between(lo, hi)
    afternoon = age.between(datetime(2024, 1, 1, 14), date(2024, 1, 1))  # a date is its whole day
    assert afternoon.matches({"age": datetime(2024, 1, 1, 15)})


# --- rows -----------------------------------------------------------------------------------------


def test_missing_values_are_neither_true_nor_false() -> None:
    old, lost, row = col("age") >= 30, col("age").is_missing(), {"age": None, "sex": "F"}
    assert not old.matches(row)
    assert not (~old).matches(row)
    assert not (old | ~old).matches(row)
    assert (old | (col("sex") == "F")).matches(row)
    assert not (old & (col("sex") == "F")).matches(row)
    assert (~(old & (col("sex") == "M"))).matches(row)  # unknown and false is false
    assert lost.matches(row)
    assert not (~lost).matches(row)
    assert lost.matches({"age": math.nan})
    assert (~old).matches({"age": 29})
    with pytest.raises(UnknownColumn):
        old.matches({"sex": "F"})


def test_raw_values_compare_by_their_decimals_and_days() -> None:
    assert (col("x") == 0.1).matches({"x": Fraction(1, 10)})
    assert (col("x") == Decimal("0.1")).matches({"x": np.float64(0.1)})
    assert (col("x") < 0.3).matches({"x": -math.inf})
    assert (col("d") <= date(2024, 1, 31)).matches({"d": datetime(2024, 1, 31, 14)})
    assert (col("d") == "2024-01-31").matches({"d": date(2024, 1, 31)})
    assert (col("d") >= datetime(2024, 1, 31)).matches({"d": date(2024, 1, 31)})
    assert not (col("d") >= datetime(2024, 1, 31, 1)).matches({"d": date(2024, 1, 31)})
    assert (col("flag") == True).matches({"flag": 1})  # noqa: E712
    for wrong, value in ((col("x") >= 1, "a"), (col("x") >= "a", 1), (col("x") > date(2024, 1, 1), 5)):
        with pytest.raises(InvalidPredicate):
            wrong.matches({"x": value})


def test_only_a_domain_knows_the_order_of_texts() -> None:
    domain = Domain(grade=Category(["low", "mid", "high"], ordered=True), d=Date("2024-01-01", "2024-02-01"))
    good = col("grade") >= "mid"
    assert good.matches({"grade": "high"}, domain)
    assert not good.matches({"grade": "low"}, domain)
    assert not (col("grade") == "low").matches({"grade": "unheard of"}, domain)
    with pytest.raises(InvalidPredicate, match="domain"):
        good.matches({"grade": "high"})
    assert (col("grade") != "mid").matches({"grade": "high"})
    assert (col("d") > "2024-01-09").matches({"d": "2024-01-10T00:00:00"}, domain)


# --- cells ----------------------------------------------------------------------------------------


def test_dropped_rows_never_match() -> None:
    domain = Domain(age=Integer(0, 9, outside="drop", missing="value"), sex=Category(["F", "M"]))
    cells = {"age": np.array([-1, 3, 10, 3]), "sex": np.array([0, 0, 0, -1])}
    assert Everything().on_cells(domain, cells).tolist() == [False, True, True, False]
    assert (~col("age").is_missing()).on_cells(domain, cells).tolist() == [False, True, False, False]
    assert col("age").is_missing().on_cells(domain, cells).tolist() == [False, False, True, False]
    assert (col("age") >= 0).on_cells(domain, cells).tolist() == [False, True, False, False]
    either = (col("age") >= 0) | (col("sex") == "F")
    assert either.on_cells(domain, cells).tolist() == [False, True, True, False]
    assert bool(Everything().on_cells(domain, {}))


@pytest.mark.parametrize("rule", ["none", "drop", "clamp"])
def test_missingness_without_a_cell_is_refused(rule: str) -> None:
    domain = Domain(age=Integer(0, 9, missing=rule))
    for asked in (
        col("age").is_missing(),
        ~col("age").is_missing(),
        (col("age") > 3) | ~col("age").is_missing(),
    ):
        for use in (asked.check, asked.cuts, lambda d, p=asked: p.on_cells(d, {"age": np.arange(10)})):
            with pytest.raises(InvalidPredicate, match="cannot be told here"):
                use(domain)


def test_conditions_that_cut_through_cells_are_refused() -> None:
    domain = Domain(
        age=Integer(0, 95, 10),
        when=Date("2024-01-01", "2024-01-02", "hour"),
        week=Date("2024-01-01", "2024-01-31", "week"),
    )
    for wrong, near in (
        (col("age") >= 35, "starts with 30 or 40"),
        (col("age") > 30, "starts with 30 or 40"),
        (col("age") <= 35, "ends with 29 or 39"),
        (col("age") < 5, "ends with 9"),
        (col("age") >= 92, "starts with 90"),
        (col("age") == 35, "starts with 30 or 40"),
        (col("age").between(30, 41), "ends with 39 or 49"),
        (col("when") <= "2024-01-01T05:00", "04:59:59 or 2024-01-01 05:59:59"),
        (col("week") >= "2024-01-03", "2024-01-01 or 2024-01-08"),
    ):
        for use in (lambda p: p.check(domain), lambda p: p.cuts(domain), lambda p: p.on_cells(domain, {})):
            with pytest.raises(InvalidPredicate, match=near):
                use(wrong)
    fine = (
        (col("age") >= 30, [0, 3]),
        (col("age") > 29, [0, 3]),
        (col("age") >= 29.5, [0, 3]),
        (col("age").between(30, 95), [0, 3]),
        (col("age").isin(range(30, 40)), [0, 3, 4]),
        (col("age") >= 500, [0]),
        (col("age") >= -500, [0]),
        (col("when") <= "2024-01-01", [0, 24]),
        (col("when") == date(2024, 1, 2), [0, 24]),
        (col("when") < datetime(2024, 1, 1, 5), [0, 5]),
        (col("week") >= datetime(2024, 1, 8), [0, 1]),
    )
    for predicate, starts in fine:
        bins = predicate.cuts(domain)[next(iter(predicate.columns()))]
        assert bins.first(np.arange(bins.count)).tolist() == starts


def test_conditions_that_do_not_fit_are_refused() -> None:
    domain = Domain(
        age=Integer(0, 9),
        x=Real(0, 1, 0.1),
        sex=Category(["F", "M"]),
        flag=Boolean(),
        d=Date("2024-01-01", "2024-01-02"),
        grade=Category(["low", "high"], ordered=True),
    )
    for wrong in (
        col("age") >= "x",
        col("age") >= True,
        col("age") == 3.5,
        col("age") == 10,
        col("age").isin([1, 77]),
        col("x") == 0.25,
        col("x") >= date(2024, 1, 1),
        col("sex") >= "F",
        col("sex").between("F", "M"),
        col("sex") == "X",
        col("sex") == 1,
        col("flag") == "yes",
        col("flag") == 2,
        col("d") >= 5,
        col("d") >= "soon",
        col("d") >= datetime(2024, 1, 1, 12),
        col("grade") > "mid",
    ):
        with pytest.raises(InvalidPredicate):
            wrong.check(domain)
        with pytest.raises(InvalidPredicate):
            (Everything() | ~wrong).check(domain)
    with pytest.raises(ReversedBounds):
        col("grade").between("high", "low").check(domain)
    with pytest.raises(UnknownColumn, match="Try: 'grade'"):
        (col("grad") == "low").check(domain)
    with pytest.raises(UnknownColumn):
        (col("age") > 3).on_cells(domain, {"x": [1]})
    for cells in ([10], [-2], [0.5], ["a"]):
        with pytest.raises(InvalidValue):
            (col("age") > 3).on_cells(domain, {"age": cells})


def test_real_conditions_compare_grid_points() -> None:
    domain = Domain(x=Real(0, 1, 0.1))
    cells = np.arange(11)
    assert (col("x") >= 0.3).on_cells(domain, {"x": cells}).sum() == 8
    assert (col("x") >= 0.25).on_cells(domain, {"x": cells}).sum() == 8
    assert (col("x") > 0.3).on_cells(domain, {"x": cells}).sum() == 7
    assert (col("x") <= 0.1 + 0.2).on_cells(domain, {"x": cells}).sum() == 4
    assert (col("x").isin([0.1, 0.2, 0.7])).cuts(domain)["x"].assignment().tolist() == [
        0,
        1,
        1,
        2,
        2,
        2,
        2,
        3,
        4,
        4,
        4,
    ]


def test_cuts_of_many_cells_cost_nothing() -> None:
    domain = Domain(x=Integer(0, 10**18, missing="value"), c=Category(list("abcdef")))
    bins = ((col("x") >= 10**9) & col("x").between(5, 10**17) & col("c").isin(["b", "c", "e"])).cuts(domain)
    assert bins["x"].first(np.arange(5)).tolist() == [0, 5, 10**9, 10**17 + 1, 10**18 + 1]
    assert bins["c"].assignment().tolist() == [0, 1, 1, 2, 3, 4]
