"""What a SELECT selects: its columns in order, by name, and which group or number of the answer each one is.

A database returns values of the expression by which rows are grouped: ``FLOOR(age / 10) * 10`` is 20 for
those from 20 to 29, ``DATE_TRUNC('month', day)`` the first of the month, ``BIN(age, 10)`` where a bin begins.
They follow from the declaration, bin by bin; no row is looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time
from fractions import Fraction
from typing import Any, Final, Literal, final

from sqlglot import exp

from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.domain.domain import Domain
from blowfishdb.core.questions.form import ColumnForm
from blowfishdb.language.text import number_from

Shown = Literal["whole", "large", "number", "text", "date", "moment", "truth", "count", "numbers"]
"""What values are: whole numbers (of 4 bytes, or large), numbers, texts, …; ``numbers`` is a list of them."""
_SMALL: Final = 2**31
_NAMES: Final[dict[type[exp.Expr], str]] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.Variance: "variance",
    exp.Median: "median",
    exp.Quantile: "quantile",
    exp.Round: "round",
    exp.Case: "case",
    exp.Floor: "floor",
    exp.Extract: "extract",
    exp.DateTrunc: "date_trunc",
    exp.TimestampTrunc: "date_trunc",
    exp.WidthBucket: "width_bucket",
    exp.WithinGroup: "percentile_cont",
}


@final
@dataclass(frozen=True)
class Selected:
    """A column of the result: a group (by its place among the columns of the form) or a number."""

    name: str
    shown: Shown
    group: int | None = None
    number: int | None = None
    values: tuple[Any, ...] = ()
    """Of a group: what it is called in each bin; None for missing values."""
    count: int = 1
    """Of numbers: how many stand in one list."""


def output_name(item: exp.Expr) -> str:
    """What a database calls a column of the result."""
    if isinstance(item, exp.Alias):
        alias = item.args["alias"]
        quoted = isinstance(alias, exp.Identifier) and bool(alias.args.get("quoted"))
        return item.alias if quoted else item.alias.lower()
    if isinstance(item, exp.Column):
        return item.name
    if isinstance(item, exp.Cast):
        inner = output_name(item.this)
        return item.to.sql("postgres").lower() if inner == "?column?" else inner
    if isinstance(item, exp.Filter | exp.Window | exp.Paren | exp.Bracket):
        return output_name(item.this)
    if isinstance(item, exp.Anonymous):
        return str(item.this).lower()
    if isinstance(item, exp.Subquery) and isinstance(item.this, exp.Select) and item.this.expressions:
        return output_name(item.this.expressions[0])
    if isinstance(item, exp.Func) and not isinstance(item, exp.Connector):
        return _NAMES.get(type(item), item.sql_name().lower())
    return "?column?"


def group_column(item: exp.Expr, place: int, column: ColumnForm, domain: Domain) -> Selected:
    """A column of the result by which rows are grouped."""
    node, attribute, axis = item.unalias(), domain[column.name], column.axis(domain)
    name = output_name(item)
    count = axis.value_bins
    if column.groups is not None:
        return _group(name, "text", place, [*column.groups][:count], axis.bins.count)
    if isinstance(node, exp.Case):
        return _group(name, "text", place, list(axis.labels())[:count], axis.bins.count)
    firsts = [int(axis.bins.first(bin_)) for bin_ in range(count)]
    if not isinstance(attribute, Integer | Real | Date):
        kind: Shown = "truth" if isinstance(attribute, Boolean) else "text"
        texts = [attribute.lower(first) for first in firsts]
        return _group(name, kind, place, texts, axis.bins.count)
    if not column.cut and attribute.ticks_per_cell > 1:
        return _group(name, "text", place, list(axis.labels())[:count], axis.bins.count)
    starts = [attribute.lower(first) for first in firsts]
    value = None if isinstance(node, exp.Column | exp.Anonymous) else _value(node)
    if value is None:
        kind = declared(attribute)
        return _group(name, kind, place, [_plain(start) for start in starts], axis.bins.count)
    told = [value(start) for start in starts]
    return _group(name, _kind(told), place, told, axis.bins.count)


def _group(name: str, kind: Shown, place: int, values: list[Any], bins: int) -> Selected:
    return Selected(name, kind, place, None, (*values, *[None] * (bins - len(values))))


def number_column(item: exp.Expr, place: int, several: int, *, counts: bool) -> Selected:
    """A number of the result, released or computed from what is; or a list of ``several``."""
    name = output_name(item)
    if several > 1:
        return Selected(name, "numbers", None, place, count=several)
    return Selected(name, "count" if counts else "number", None, place)


def declared(attribute: Attribute) -> Shown:
    """What the values of a column are."""
    match attribute:
        case Integer():
            return "whole" if attribute.lo >= -_SMALL and attribute.hi < _SMALL else "large"
        case Real():
            return "number"
        case Date():
            return "date" if attribute.by_day else "moment"
        case Boolean():
            return "truth"
    return "text"


def _plain(value: Any) -> Any:
    return float(value) if isinstance(value, Fraction) else value


def _kind(values: list[Any]) -> Shown:
    if values and isinstance(values[0], datetime):
        return "moment"
    whole = all(isinstance(value, int) and -_SMALL <= value < _SMALL for value in values)
    return "whole" if whole else "number"


_STARTS: Final[dict[str, Callable[[date], date]]] = {
    "DAY": lambda day: day,
    "MONTH": lambda day: day.replace(day=1),
    "QUARTER": lambda day: day.replace(month=3 * ((day.month - 1) // 3) + 1, day=1),
    "YEAR": lambda day: day.replace(month=1, day=1),
    "WEEK": lambda day: date.fromordinal(day.toordinal() - day.weekday()),
}


def _value(node: exp.Expr) -> Callable[[Any], Any] | None:
    """The expression as a function of the column; None where it is not computed from it."""
    match node:
        case exp.DateTrunc() | exp.TimestampTrunc():
            begins = _STARTS.get(str(node.args["unit"].name).upper())
            return None if begins is None else lambda day: datetime.combine(begins(day), time())
        case exp.Year():
            return lambda day: day.year
        case exp.Extract():
            unit = node.this.name.lower()
            return lambda day: getattr(day, unit)
        case exp.WidthBucket():
            ends = [Fraction(str(number_from(node.args[n].this))) for n in ("min_value", "max_value")]
            count = int(number_from(node.args["num_buckets"].this))
            return lambda value: _bucket(Fraction(str(value)), ends[0], ends[1], count)
    return lambda value: _tidy(_computed(node, Fraction(str(value))))


def _bucket(value: Fraction, low: Fraction, high: Fraction, count: int) -> int:
    return min(max(math.floor((value - low) * count / (high - low)) + 1, 0), count + 1)


def _tidy(value: Fraction) -> int | float:
    return int(value) if value.denominator == 1 else float(value)


def _computed(node: Any, value: Fraction) -> Fraction:
    """Arithmetic on one column, as PostgreSQL does it: whole numbers are divided without a rest."""
    match node:
        case exp.Column():
            return value
        case exp.Literal():
            return Fraction(str(number_from(node.this)))
        case exp.Paren():
            return _computed(node.this, value)
        case exp.Floor():
            inner = node.this
            if isinstance(inner, exp.Div):
                return Fraction(_computed(inner.this, value) // _computed(inner.expression, value))
            return Fraction(math.floor(_computed(inner, value)))
        case exp.Div() | exp.IntDiv():
            return Fraction(_computed(node.this, value) // _computed(node.expression, value))
        case exp.Mul():
            return _computed(node.this, value) * _computed(node.expression, value)
        case exp.Mod():
            return _computed(node.this, value) % _computed(node.expression, value)
        case exp.Sub():
            return _computed(node.this, value) - _computed(node.expression, value)
    raise AssertionError(node)
