"""One question, one aggregate statement: from a ``CellQuery`` to SQL and back to counts.

The statement has three layers that mirror the core: the inner one encodes each row's values into cells
(``Attribute.encode``), the condition is evaluated on cells (``Predicate.on_cells``), and cells are grouped into
bins (``Bins.assign``). Only counts leave the database.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.sql_bins import Grouping, group
from blowfishdb.adapters.sql_encode import Encoded, ValueMap, encode
from blowfishdb.adapters.sql_source import Source
from blowfishdb.adapters.sql_values import SqlColumn
from blowfishdb.adapters.sql_where import CellColumn, condition
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import SizeMismatch, TooLarge
from blowfishdb.core.projection import CellQuery

MOST_BOXES = 10**8
"""Counts are returned as one dense array."""

_CELLS = "cells"


@final
@dataclass(frozen=True, eq=False)
class Statement:
    """A SELECT that returns one row (group of each axis …, count) per group that occurs."""

    select: exp.Select
    groupings: tuple[Grouping, ...]
    maps: tuple[ValueMap, ...]
    shape: tuple[int, ...]

    def text(self, dialect: str) -> str:
        """The SQL, for the database and for the log; it contains declarations, never data."""
        return self.select.sql(dialect=dialect)

    def fold(self, groups: list[IntArray], counts: IntArray) -> IntArray:
        """The rows of the result as counts of all boxes, row-major."""
        flat = np.zeros(len(counts), dtype=np.int64)
        for grouping, count, column in zip(self.groupings, self.shape, groups, strict=True):
            bins = column if grouping.bins is None else grouping.bins[column]
            flat = flat * count + bins
        boxes = np.zeros(int(np.prod(self.shape, dtype=np.int64)), dtype=np.int64)
        np.add.at(boxes, flat, counts)
        return boxes


def cell_statement(
    query: CellQuery, source: Source, domain: Domain, types: Mapping[str, SqlColumn]
) -> Statement:
    """The statement that counts ``query`` over ``source``.

    ``domain`` declares the columns that only the condition mentions; ``types`` are the columns of the source.
    """
    if query.count > MOST_BOXES:
        raise TooLarge(
            f"{query.count:,} boxes are more than {MOST_BOXES:,}.", fixes=("wider bins", "fewer columns")
        )
    attributes = mentioned(query, domain)
    names = list(attributes)
    encoded = [encode(types[name], attributes[name], f"v{i}") for i, name in enumerate(names)]
    cells = {name: sql.column(f"k{i}", _CELLS) for i, name in enumerate(names)}
    columns = {name: CellColumn(attributes[name], cells[name]) for name in names}
    groupings = group(query.axes, [cells[axis.column] for axis in query.axes], first_map=0)

    select = exp.select(*(exp.alias_(g.expression, f"c{i}", quoted=True) for i, g in enumerate(groupings)))
    select = select.select(exp.alias_(exp.Count(this=exp.Star()), "n", quoted=True))
    select = select.from_(_encoding(source, encoded).subquery(exp.to_identifier(_CELLS, quoted=True)))
    for grouping in groupings:
        if grouping.map is not None:
            select = select.join(_map_table(grouping.map), on=grouping.on)
    tests = [column.kept() for column in columns.values()] + [condition(query.where, columns)]
    for test in tests:
        if test is not None:
            select = select.where(test)
    if groupings:
        select = select.group_by(*(g.expression.copy() for g in groupings))
    maps = [part.map for part in (*encoded, *groupings) if part.map is not None]
    return Statement(select, tuple(groupings), tuple(maps), query.shape)


def mentioned(query: CellQuery, domain: Domain) -> dict[str, Attribute]:
    """Every column of a question with its declaration, those of the axes first."""
    for axis in query.axes:
        if axis.column in domain and domain[axis.column] != axis.attribute:
            raise SizeMismatch(f"'{axis.column}' is declared differently in the dataset.")
    attributes = {axis.column: axis.attribute for axis in query.axes}
    return attributes | {
        name: domain[name] for name in sorted(query.where.columns()) if name not in attributes
    }


def _encoding(source: Source, encoded: list[Encoded]) -> exp.Select:
    cells = [exp.alias_(part.cell, f"k{i}", quoted=True) for i, part in enumerate(encoded)]
    select = exp.select(*cells or [exp.alias_(sql.whole(0), "k", quoted=True)]).from_(source.relation())
    for part in encoded:
        if part.map is not None:
            select = select.join(_map_table(part.map), on=part.on, join_type="left")
    return select


def _map_table(value_map: ValueMap) -> exp.Table:
    return (
        exp.to_table(value_map.name)
        if False
        else exp.Table(this=exp.to_identifier(value_map.name, quoted=True))
    )
