"""What a SELECT selects: its columns in order, by name, and which group or number of the answer each one is.

A database returns values of the expression by which rows are grouped: ``FLOOR(age / 10) * 10`` is 20 for
those from 20 to 29, ``DATE_TRUNC('month', day)`` the first of the month, ``BIN(age, 10)`` where a bin begins.
They follow from the declaration, bin by bin; no row is looked at.
"""

from __future__ import annotations

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
from blowfishdb.language.condition import condition_of
from blowfishdb.language.expressions import value_of
from blowfishdb.language.grouping import (
    case_labels,
    is_computed,
    is_condition,
    missing_name,
    missing_truth,
    told_as_numbers,
)

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
    exp.CurrentVersion: "version",
    exp.ExplodingGenerateSeries: "generate_series",
    exp.Case: "case",
    exp.Floor: "floor",
    exp.Extract: "extract",
    exp.DateTrunc: "date_trunc",
    exp.TimestampTrunc: "date_trunc",
    exp.WidthBucket: "width_bucket",
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
    if isinstance(item, exp.WithinGroup):
        return output_name(item.this)
    if isinstance(item, exp.Func) and not isinstance(item, exp.Connector):
        return _NAMES.get(type(item), item.sql_name().lower())
    return "?column?"


def group_column(item: exp.Expr, place: int, column: ColumnForm, domain: Domain) -> Selected:
    """A column of the result by which rows are grouped."""
    node, attribute, axis = item.unalias(), domain[column.name], column.axis(domain)
    name, count = output_name(item), axis.value_bins
    starts = [attribute.lower(int(axis.bins.first(bin_))) for bin_ in range(count)]
    if isinstance(node, exp.Case):
        labels = case_labels(node, column, starts, domain)
        if told_as_numbers(node):
            numbers = [int(label) for label in labels]
            return _group(name, _kind(numbers), place, numbers, axis.bins.count)
        return _group(name, "text", place, labels, axis.bins.count)
    if is_condition(node):
        holds = condition_of(node, domain)
        told = [holds.matches({column.name: start}, domain) for start in starts]
        last = missing_truth(node, attribute, domain)
        return Selected(name, "truth", place, None, (*told, *[last] * (axis.bins.count - count)))
    unknown = missing_name(node, attribute)
    if unknown is not None:
        return _group(name, "text", place, [*starts, unknown], axis.bins.count)
    if is_computed(node):
        values = [value_of(node, start) for start in starts]
        if isinstance(node, exp.DateTrunc | exp.TimestampTrunc):
            values = [datetime.combine(value, time()) for value in values]
        return _group(name, _kind(values), place, list(map(_tidy, values)), axis.bins.count)
    if column.groups is not None:
        return _group(name, "text", place, [*column.groups][:count], axis.bins.count)
    if not isinstance(attribute, Integer | Real | Date):
        kind: Shown = "truth" if isinstance(attribute, Boolean) else "text"
        return _group(name, kind, place, starts, axis.bins.count)
    if not column.cut and attribute.ticks_per_cell > 1:
        return _group(name, "text", place, list(axis.labels())[:count], axis.bins.count)
    return _group(name, declared(attribute), place, list(map(_plain, starts)), axis.bins.count)


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
    if all(isinstance(value, str) for value in values):
        return "text"
    if all(isinstance(value, date) for value in values):
        return "moment" if isinstance(values[0], datetime) else "date"
    whole = all(value == int(value) and -_SMALL <= value < _SMALL for value in values)
    return "whole" if whole else "number"


def _tidy(value: Any) -> Any:
    if isinstance(value, Fraction):
        return int(value) if value.denominator == 1 else float(value)
    return value
