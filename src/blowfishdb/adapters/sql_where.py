"""Predicates in SQL, on the cells of columns: equal to ``Predicate.on_cells``.

A predicate speaks of encoded values, so a clamped salary of a million satisfies ``salary <= 200_000``. SQL's
own three-valued logic does the rest: the cell of missing values is turned back into NULL first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import final

from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.sql_values import SqlExpr
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.errors import InvalidPredicate
from blowfishdb.core.predicate import Atom
from blowfishdb.core.predicates import And, Everything, IsMissing, Not, Or, Predicate


@final
@dataclass(frozen=True, eq=False)
class CellColumn:
    """A column of cells: how it is declared, and the expression that holds it."""

    attribute: Attribute
    cell: exp.Column

    def kept(self) -> SqlExpr | None:
        """The row was not dropped; None where no row can be."""
        return exp.GTE(this=self.cell.copy(), expression=sql.whole(0)) if self.attribute.may_drop else None


def condition(predicate: Predicate, columns: Mapping[str, CellColumn]) -> SqlExpr | None:
    """``predicate`` as a condition on cells; None if it holds everywhere."""
    return None if isinstance(predicate, Everything) else _truth(predicate, columns)


def _truth(predicate: Predicate, columns: Mapping[str, CellColumn]) -> SqlExpr:
    if isinstance(predicate, (And, Or)):
        node = exp.And if isinstance(predicate, And) else exp.Or
        parts = [sql.paren(_truth(part, columns)) for part in predicate.parts]
        return reduce(lambda left, right: node(this=left, expression=right), parts)
    if isinstance(predicate, Not):
        return exp.Not(this=sql.paren(_truth(predicate.part, columns)))
    if isinstance(predicate, Everything):
        return exp.true()
    if isinstance(predicate, IsMissing):
        return _is_missing(columns[predicate.column])
    if isinstance(predicate, Atom):
        return _holds(predicate, columns[predicate.column])
    raise InvalidPredicate(f"A {type(predicate).__name__} cannot be asked of a database.")


def _is_missing(column: CellColumn) -> SqlExpr:
    if not column.attribute.has_missing_cell:
        return exp.false()
    return exp.EQ(this=column.cell.copy(), expression=sql.whole(column.attribute.value_count))


def _holds(atom: Atom, column: CellColumn) -> SqlExpr:
    spans = atom.cells(column.attribute) or [(-2, -1)]  # nothing: false of a value, unknown of a missing one
    parts = [_within(column, first, stop) for first, stop in spans]
    return reduce(lambda left, right: exp.Or(this=left, expression=right), parts)


def _within(column: CellColumn, first: int, stop: int) -> SqlExpr:
    cell: SqlExpr = column.cell.copy()
    if column.attribute.has_missing_cell:
        cell = exp.Nullif(this=cell, expression=sql.whole(column.attribute.value_count))
    if stop == first + 1:
        return exp.EQ(this=cell, expression=sql.whole(first))
    return exp.Between(this=cell, low=sql.whole(first), high=sql.whole(stop - 1))
