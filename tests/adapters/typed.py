"""Domains, values, conditions and forms as people could type them, for the tests of every reader."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

from hypothesis import strategies as st

from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.conditions import Between, Comparison, IsIn, IsMissing, Op
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.domain.predicates import And, Everything, Not, Or
from blowfishdb.core.domain.values import exact
from blowfishdb.core.questions.aggregates import MEASURES, Measure
from blowfishdb.core.questions.form import KINDS, ColumnForm, QuestionForm

SALARIES = Domain.of(
    {
        "salary": Integer(0, 200_000),
        "age": Integer(0, 119, missing="value"),
        "region": Category(["north", "south", "east", "west"]),
        "level": Category(["low", "mid", "high"], ordered=True),
        "rate": Real(0, 10, 0.1),
        "day": Date("2024-01-01", "2024-12-31"),
        "seen": Date("2024-01-01 00:00:00", "2024-12-31 23:59:59", "second"),
        "employed": Boolean(),
        "hours per week": Integer(0, 99),
        'a "b" c': Integer(0, 9),
        "Größe": Integer(0, 250),
        "select": Integer(0, 9, missing="value"),
    }
)

names = st.sampled_from(SALARIES.names)
ops = st.sampled_from(list(Op))


def constants(name: str):
    """Values that the column can be compared with, in every type in which they can be typed."""
    attribute = SALARIES[name]
    if isinstance(attribute, Category):
        return st.sampled_from(attribute.values)
    if isinstance(attribute, Boolean):
        return st.booleans() | st.integers(0, 1)
    if name == "day":
        days = st.dates(date(2024, 1, 1), date(2024, 12, 31))
        return days | days.map(date.isoformat) | days.map(lambda d: datetime(d.year, d.month, d.day))
    if name == "seen":
        moments = st.datetimes(datetime(2024, 1, 1), datetime(2024, 12, 31)).map(
            lambda m: m.replace(microsecond=0)
        )
        return moments | moments.map(str) | st.dates(date(2024, 1, 1), date(2024, 12, 30))
    tenths = st.integers(0, attribute.ticks - 1).map(attribute.at)
    if isinstance(attribute, Real):
        return (
            tenths | tenths.map(float) | tenths.map(lambda f: Decimal(f.numerator) / Decimal(f.denominator))
        )
    return tenths


@st.composite
def atoms(draw):
    name = draw(names)
    kinds = ["comparison", "between", "in"]
    kind = draw(st.sampled_from([*kinds, "missing"] if SALARIES[name].has_missing_cell else kinds))
    if kind == "missing":
        return IsMissing(name)
    if kind == "in":
        return IsIn(name, tuple(draw(st.lists(constants(name), min_size=1, max_size=3))))
    ordered = SALARIES[name].ordered
    if kind == "between" and ordered:
        value = draw(constants(name))
        return Between(name, value, value)
    op = draw(ops if ordered else st.sampled_from([Op.EQ, Op.NE]))
    return Comparison(name, op, draw(constants(name)))


conditions = st.recursive(
    atoms() | st.just(Everything()),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts))),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts))),
        inner.map(Not),
    ),
    max_leaves=6,
)


def alike(value):
    """The same thing with every number as the fraction that it says: 0.1, Decimal and Fraction are alike."""
    if isinstance(value, IsIn):  # a value that was said twice is said once
        return "IsIn", value.column, tuple(dict.fromkeys(alike(item) for item in value.values))
    if isinstance(value, tuple | list):
        return tuple(alike(item) for item in value)
    if isinstance(value, dict):
        return tuple((alike(key), alike(item)) for key, item in value.items())
    if isinstance(value, bool | str | date | timedelta) or value is None:
        return type(value).__name__, str(value)
    number = exact(value) if isinstance(value, int | float | Decimal | Fraction) else None
    if number is not None:
        return "number", number
    fields = getattr(value, "__dataclass_fields__", None)
    if fields is None:
        return value
    return type(value).__name__, *(alike(getattr(value, name)) for name in fields)


@st.composite
def cuts(draw, name: str):
    """One way to cut a column into bins, or none."""
    attribute = SALARIES[name]
    choices: list[dict[str, object]] = [{}]
    if attribute.ordered:
        choices.append({"bins": draw(st.integers(1, 50))})
    if isinstance(attribute, Integer | Real):
        cells = draw(st.integers(1, attribute.value_count))
        choices.append({"width": Fraction(cells) / attribute.in_cells(1)})
        starts = draw(st.sets(st.integers(1, attribute.value_count - 1), max_size=4))
        choices.append({"edges": tuple(attribute.lower(cell) for cell in sorted({0, *starts}))})
    if isinstance(attribute, Date):
        choices.append({"width": timedelta(days=draw(st.integers(1, 100)))})
        choices.append({"edges": (attribute.at(0), attribute.at(attribute.ticks // 2))})
    if isinstance(attribute, Category):
        first, second = draw(st.text()), draw(st.text())
        if first != second:
            choices.append({"groups": {first: attribute.values[:1], second: attribute.values[1:]}})
    return draw(st.sampled_from(choices))


@st.composite
def forms(draw):
    """Questions that fit the columns of ``SALARIES``."""
    kind = draw(st.sampled_from(KINDS))
    numbers = [(name, a) for name, a in SALARIES.columns if isinstance(a, Integer | Real)]
    numeric = [name for name, attribute in numbers if not attribute.has_missing_cell]
    ordered = [name for name, a in SALARIES.columns if a.ordered]
    able = {"cumulative": ordered, "ranges": ordered, "quantiles": numeric, "sum": numeric, "mean": numeric}
    able["clusters"] = numeric
    able["partition"] = ordered
    able["aggregates"] = [name for name, a in SALARIES.columns if a.size <= 300]  # so many groups at most
    able["counts"] = [name for name, a in SALARIES.columns if a.size <= 20]
    able["marginals"] = able["aggregates"]
    several = {"histogram": 3, "cumulative": 2, "count": 2, "clusters": 3, "aggregates": 2}
    many = (several | {"ranges": 2, "marginals": 3, "partition": 2}).get(kind, 1)
    least = 0 if kind == "count" else 1
    chosen = draw(
        st.lists(st.sampled_from(able.get(kind, list(SALARIES))), min_size=least, max_size=many, unique=True)
    )
    uncut = kind in ("count", "sum", "mean", "ranges", "clusters", "partition")
    columns = tuple(ColumnForm(name, **({} if uncut else draw(cuts(name)))) for name in chosen)
    details: dict[str, object] = {}
    if kind == "ranges":
        ends = []
        for name in chosen:
            value = draw(constants(name).filter(lambda v, name=name: name != "seen" or type(v) is not date))
            ends.append((value, value))
        details["bounds"] = (ends[0] if len(ends) == 1 else tuple(ends),)
    if kind == "marginals":
        subsets = st.lists(st.sampled_from(chosen), unique=True).map(lambda names: tuple(sorted(names)))
        details["sets"] = tuple(draw(st.lists(subsets, min_size=1, max_size=4, unique=True)))
    if kind in ("cumulative", "ranges", "quantiles"):
        few = [name for name, a in SALARIES.columns if a.size <= 20 and name not in chosen]
        groups = draw(st.lists(st.sampled_from(few), max_size=2, unique=True))
        details["by"] = tuple(ColumnForm(name, **draw(cuts(name))) for name in groups)
    if kind == "quantiles":
        details["shares"] = tuple(draw(st.lists(st.floats(0, 1), min_size=1, max_size=3)))
    if kind == "top":
        details["count"] = draw(st.integers(1, 10**6))
    if kind == "partition":
        details["count"] = 2
    if kind == "above":
        details["limit"] = draw(st.integers(-10, 10**9) | st.floats(-1e9, 1e9))
    if kind == "clusters":
        details["k"] = draw(st.integers(1, 64))
        details["iterations"] = draw(st.none() | st.integers(1, 100))
    if kind == "aggregates":
        value = draw(st.sampled_from(numeric))
        told = st.sampled_from([Measure("count"), *(Measure(of, value) for of in MEASURES)])
        details["measures"] = tuple(draw(st.lists(told, min_size=1, max_size=3, unique=True)))
        if details["measures"] == (Measure("count"),):
            details["measures"] = (Measure("count"), Measure("mean", value))
    if kind == "counts":
        named = st.lists(st.tuples(st.text(min_size=1), conditions), min_size=1, max_size=3)
        details["conditions"] = tuple(dict(draw(named)).items())
    if kind in ("aggregates", "mean"):
        details["group_size"] = draw(st.none() | st.integers(1, 10**6))
    return QuestionForm(kind, columns, draw(st.just(Everything()) | conditions), **details)
