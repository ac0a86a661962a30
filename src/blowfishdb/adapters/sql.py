"""One question, one aggregate statement: from a ``CellQuery`` to SQL and back to counts.

The statement has two layers that mirror the core: the inner one encodes each row's values into cells
(``Attribute.encode``), the outer one groups cells into bins (``Bins.assign``). A filter is in the bins: they
are cut where it tells values apart, and those outside are counted too. Only counts leave the database.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np
from sqlglot import exp

from blowfishdb.adapters import sql_values as sql
from blowfishdb.adapters.sql_bins import Grouping, group
from blowfishdb.adapters.sql_encode import Encoded, encode
from blowfishdb.adapters.sql_engine import Engine, SqlColumn, ValueMap
from blowfishdb.adapters.sql_source import Source
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.attribute import Attribute
from blowfishdb.core.domain import Domain
from blowfishdb.core.errors import SizeMismatch, TooLarge
from blowfishdb.core.projection import CellQuery

MOST_BOXES = 10**8
"""Counts are returned as one dense array."""

_CELLS = "cells"
_ROWS = f"{sql.RESERVED}rows"


@final
@dataclass(frozen=True, eq=False)
class Statement:
    """A SELECT that returns the place on every axis (c0, c1 …) and the count (n) of each group that occurs.

    ``maps`` are the small tables that the backend provides under their names beside the statement.
    """

    select: exp.Select
    groupings: tuple[Grouping, ...]
    maps: tuple[ValueMap, ...]
    shape: tuple[int, ...]
    engine: Engine

    @cached_property
    def text(self) -> str:
        """The SQL, for the database and for the log; it contains declarations, never data."""
        return self.select.sql(dialect=self.engine.dialect)

    def fold(self, groups: list[IntArray], counts: IntArray) -> IntArray:
        """The rows of the result as counts of all boxes, row-major."""
        flat = np.zeros(len(counts), dtype=np.int64)
        for grouping, count, column in zip(self.groupings, self.shape, groups, strict=True):
            bins = column if grouping.bins is None else grouping.bins[column]
            flat = flat * count + bins
        boxes = np.zeros(math.prod(self.shape), dtype=np.int64)
        np.add.at(boxes, flat, counts)
        return boxes

    def fold_rows(self, rows: Iterable[Iterable[Any]]) -> IntArray:
        """The same, of rows as drivers return them."""
        width = len(self.shape) + 1
        table = np.array([tuple(map(int, row)) for row in rows], dtype=np.int64).reshape(-1, width)
        return self.fold([table[:, axis] for axis in range(width - 1)], table[:, -1])


def cell_statement(
    query: CellQuery, source: Source, domain: Domain, types: Mapping[str, SqlColumn], engine: Engine
) -> Statement:
    """The statement that counts ``query`` over ``source``, whose columns have ``types``."""
    if query.count > MOST_BOXES:
        raise TooLarge(
            f"{query.count:,} counts are more than {MOST_BOXES:,}.", fixes=("wider bins", "fewer columns")
        )
    attributes = mentioned(query, domain)
    encoded = [
        encode(types[name], each, f"{sql.RESERVED}v{i}") for i, (name, each) in enumerate(attributes.items())
    ]
    places = [sql.column(f"k{i}", _CELLS) for i in range(len(encoded))]
    groupings = group(query.axes, places)
    kept = [
        exp.GTE(this=place.copy(), expression=sql.whole(0))
        for place, attribute in zip(places, attributes.values(), strict=True)
        if attribute.may_drop
    ]

    named = [_named(grouping.expression, f"c{i}") for i, grouping in enumerate(groupings)]
    select = exp.Select(expressions=[*named, _named(exp.Count(this=exp.Star()), "n")])
    cells = exp.Subquery(this=_encoding(encoded), alias=_alias(_CELLS))
    select = _joined(select.from_(cells, copy=False), groupings, "")
    select = select.where(*kept, copy=False)
    if groupings:
        select = select.group_by(*(grouping.expression.copy() for grouping in groupings), copy=False)
    maps = (*_maps(encoded), *_maps(groupings))
    finished = _finished(select, source.rows(types, engine), maps, engine)
    return Statement(finished, tuple(groupings), maps if engine.registers_maps else (), query.shape, engine)


def _finished(select: exp.Select, rows: exp.Expr, maps: tuple[ValueMap, ...], engine: Engine) -> exp.Select:
    """In the way of the database; only then come the curator's own words, and the long lists."""
    adapted = select.transform(engine.adapt, copy=False)
    assert isinstance(adapted, exp.Select)
    next(table for table in adapted.find_all(exp.Table) if table.name == _ROWS).replace(rows)
    if maps and not engine.registers_maps:
        listed = [exp.CTE(this=engine.inlined(each, engine.literal), alias=_header(each)) for each in maps]
        adapted.set("with_", exp.With(expressions=listed))
    return adapted


def _header(table: ValueMap) -> exp.TableAlias:
    alias = _alias(table.name)
    alias.set("columns", [exp.to_identifier(name, quoted=True) for name in table.columns])
    return alias


def mentioned(query: CellQuery, domain: Domain) -> dict[str, Attribute]:
    """Every column of a question with its declaration."""
    attributes = {axis.column: axis.attribute for axis in query.axes}
    for name, attribute in attributes.items():
        if domain[name] != attribute:
            raise SizeMismatch(f"'{name}' is declared differently in the dataset.")
    return attributes


def _encoding(encoded: list[Encoded]) -> exp.Select:
    cells = [_named(part.cell, f"k{i}") for i, part in enumerate(encoded)] or [_named(sql.whole(0), "k0")]
    rows = exp.Table(this=exp.to_identifier(_ROWS))
    return _joined(exp.Select(expressions=cells).from_(rows, copy=False), encoded, "left")


def _joined(select: exp.Select, parts: list[Encoded] | list[Grouping], kind: str) -> exp.Select:
    for part in parts:
        if part.map is not None:
            table = exp.Table(this=exp.to_identifier(part.map.name, quoted=True))
            select = select.join(table, on=part.on, join_type=kind, copy=False)
    return select


def _maps(parts: list[Encoded] | list[Grouping]) -> list[ValueMap]:
    return [part.map for part in parts if part.map is not None]


def _named(value: sql.SqlExpr, name: str) -> exp.Alias:
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _alias(name: str) -> exp.TableAlias:
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))
