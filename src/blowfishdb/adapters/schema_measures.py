"""Measures of columns: how many values there are, how far they reach, and what they can be read as.

Everything is asked with the expressions that later count, so a proposal never reads a value differently from
an answer. Many columns are measured by one statement, because a file may be long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from itertools import islice
from typing import Any, Final, final

from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.curator_rows import Rows
from blowfishdb.adapters.sql_engine import Kind, SqlColumn
from blowfishdb.adapters.sql_values import SqlExpr
from blowfishdb.core.errors import SourceError

DATES: Final = (Kind.DATE, Kind.MOMENT, Kind.FINE_MOMENT)
NUMBERS: Final = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.NUMBER)
_TOGETHER: Final = 16  # columns in one statement
_LARGEST: Final = 300  # powers of ten beyond which a float is taken for infinite


@final
@dataclass(frozen=True)
class Extent:
    """How many values can be read in one way, and the least and the greatest of them."""

    count: int
    low: Any
    high: Any


@final
@dataclass(frozen=True, repr=False)
class Measured:
    """A column in numbers; an extent is None where the database has no such reading."""

    rows: int
    present: int
    different: int
    numbers: Extent | None
    fractions: int
    """Numbers that are not whole."""
    codes: int
    """Texts that begin with a zero and are not a number below one."""
    days: Extent | None
    timed: int
    """Texts that are longer than a date."""
    truths: int
    """Texts that are a truth value."""


def measure(rows: Rows, columns: Iterable[SqlColumn]) -> dict[str, Measured]:
    """Every column that could be read, by name."""
    found: dict[str, Measured] = {}
    for part in _parts(column for column in columns if column.kind is not Kind.OTHER):
        try:
            found |= _measured(rows, part)
        except SourceError:  # one of them cannot be read: each for itself
            for column in part:
                try:
                    found |= _measured(rows, [column])
                except SourceError:
                    continue
    return found


def _parts(columns: Iterator[SqlColumn]) -> Iterator[list[SqlColumn]]:
    while part := list(islice(columns, _TOGETHER)):
        yield part


def _measured(rows: Rows, columns: list[SqlColumn]) -> dict[str, Measured]:
    asked = [(column.name, name, value) for column in columns for name, value in _aggregates(column).items()]
    (answers,) = rows.select(*(value for _, _, value in asked))
    found: dict[str, dict[str, Any]] = {column.name: {} for column in columns}
    for (column, name, _), answer in zip(asked, answers, strict=True):
        found[column][name] = answer
    return {column: _measures(values) for column, values in found.items()}


def _measures(values: Mapping[str, Any]) -> Measured:
    def count(name: str) -> int:
        return int(values.get(name, 0))

    def extent(name: str) -> Extent | None:
        if name not in values:
            return None
        return Extent(count(name), values[f"{name} low"], values[f"{name} high"])

    return Measured(
        rows=count("rows"),
        present=count("present"),
        different=count("different"),
        numbers=extent("numbers"),
        fractions=count("fractions"),
        codes=count("codes"),
        days=extent("days"),
        timed=count("timed"),
        truths=count("truths"),
    )


# --- what is asked ----------------------------------------------------------------------------


def _aggregates(column: SqlColumn) -> dict[str, SqlExpr]:
    asked: dict[str, SqlExpr] = {
        "rows": exp.Count(this=exp.Star()),
        "present": exp.Count(this=column.ref),
        "different": exp.Count(this=exp.Distinct(expressions=[column.ref])),
    }
    if column.kind is Kind.BOOLEAN:
        return asked
    number = None if column.kind in DATES else as_number(column)
    day = None if column.kind in NUMBERS else _as_day(column)
    if number is not None:
        broken = exp.NEQ(this=number.copy(), expression=exp.Round(this=number.copy()))
        asked |= {**_extent("numbers", number), "fractions": _how_many(broken)}
    if day is not None:
        asked |= _extent("days", day)
    return asked if column.kind in (*DATES, *NUMBERS) else asked | _of_texts(column)


def _of_texts(column: SqlColumn) -> dict[str, SqlExpr]:
    text, truth = column.engine.text(column), column.engine.boolean(column)
    zero, below_one = (exp.Like(this=text.copy(), expression=sql.string(sign)) for sign in ("0_%", "0.%"))
    long = exp.GT(this=exp.Length(this=text.copy()), expression=sql.whole(10))
    asked = {
        "codes": _how_many(exp.and_(zero, exp.Not(this=below_one), copy=False)),
        "timed": _how_many(long),
    }
    return asked if truth is None else asked | {"truths": exp.Count(this=truth)}


def as_number(column: SqlColumn) -> SqlExpr | None:
    """The number that a value is, NULL for one that is none or not finite; None: there is no such reading."""
    if column.kind is Kind.INTEGER:
        return column.ref
    value = column.engine.decimal(column) if column.kind is Kind.DECIMAL else column.engine.number(column)
    if value is None or (column.kind is Kind.DECIMAL and not column.engine.free_decimals):
        return value
    ends = (sql.double(f"-1e{_LARGEST}"), sql.double(f"1e{_LARGEST}"))
    inside = exp.Between(this=value, low=ends[0], high=ends[1])
    return sql.choose((inside, value.copy()), otherwise=exp.Null())


def _as_day(column: SqlColumn) -> SqlExpr | None:
    """The day of a value, moved into the years that Python knows; NULL for one that is none."""
    found = column.engine.to_date(column)
    if found is None:
        return None
    ends = (column.engine.day_literal(date.min), column.engine.day_literal(date.max))
    return sql.choose((found.missing, exp.Null()), otherwise=sql.clamp(found.value, *ends))


def _extent(name: str, value: SqlExpr) -> dict[str, SqlExpr]:
    return {
        name: exp.Count(this=value.copy()),
        f"{name} low": exp.Min(this=value.copy()),
        f"{name} high": exp.Max(this=value.copy()),
    }


def _how_many(condition: SqlExpr) -> SqlExpr:
    return exp.Count(this=sql.choose((condition, sql.whole(1)), otherwise=exp.Null()))
