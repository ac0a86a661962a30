"""A glance at a column for its curator: first values as the source has them, and how many rows are where.

Only what lets a curator import data may import this, as with the rest of the folder. A glance that fails is
left out: a proposal does not depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sqlglot import exp

from blowfishdb.adapters.proposal.guesses import as_number
from blowfishdb.adapters.proposal.rows import Rows
from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.encode import encode
from blowfishdb.adapters.sql.engines import ColumnKind, SqlColumn
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.attributes import Boolean, Category, Integer, Real
from blowfishdb.core.domain.dates import Date
from blowfishdb.core.errors import BlowfishError

_ROWS: Final = 3
_LONGEST: Final = 24
_PARTS: Final = 12
_MOST_VALUES: Final = 24


def first_values(rows: Rows, columns: Iterable[SqlColumn]) -> dict[str, tuple[str, ...]]:
    """What the first rows have in each column, as text."""
    shown = [column for column in columns if column.kind is not ColumnKind.OTHER]
    try:
        first = rows.select(*(column.ref for column in shown), most=_ROWS) if shown else []
    except BlowfishError:
        return {}
    return {column.name: tuple(_text(row[i]) for row in first) for i, column in enumerate(shown)}


def _text(value: object) -> str:
    if value is None:
        return "–"
    text = "".join(sign if sign.isprintable() else " " for sign in str(value))
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def counted_shape(rows: Rows, column: SqlColumn, attribute: Attribute) -> tuple[int, ...]:
    """Rows in each of a few equal parts of a column of numbers or days, or with each value of a list."""
    try:
        if isinstance(attribute, Integer | Real):
            return _parts(rows, column, attribute)
        if isinstance(attribute, Category) and attribute.value_count <= _MOST_VALUES:
            return _values(rows, column, attribute)
        if isinstance(attribute, Date | Boolean):
            return _cells(rows, column, attribute)
    except BlowfishError:
        return ()
    return ()


def _parts(rows: Rows, column: SqlColumn, attribute: Integer | Real) -> tuple[int, ...]:
    number, low, high = as_number(column), float(attribute.lo), float(attribute.hi)
    if number is None or not high > low:
        return ()
    above = exp.Sub(this=number, expression=sql.double(repr(low)))
    part = exp.Floor(this=exp.Mul(this=exp.paren(above), expression=sql.double(repr(_PARTS / (high - low)))))
    found = {int(each): count for each, count in rows.counts(part, most=10 * _PARTS) if each is not None}
    counts = [0] * _PARTS
    for each, count in found.items():
        counts[min(max(each, 0), _PARTS - 1)] += count
    return tuple(counts)


def _cells(rows: Rows, column: SqlColumn, attribute: Date | Boolean) -> tuple[int, ...]:
    """By the cells that answers count, several together where there are many."""
    size, cell = attribute.value_count, encode(column, attribute, "unused").cell
    parts = min(size, _PARTS)
    share = exp.Mul(this=exp.paren(cell), expression=sql.double(repr(parts / size)))
    found = {int(each): count for each, count in rows.counts(exp.Floor(this=share), most=10 * _PARTS)}
    return tuple(found.get(part, 0) for part in range(parts))


def _values(rows: Rows, column: SqlColumn, attribute: Category) -> tuple[int, ...]:
    found = {str(each): count for each, count in rows.counts(column.ref, most=10 * _MOST_VALUES)}
    return tuple(found.get(str(value), 0) for value in attribute.values)
