"""One question, one aggregate statement: from a ``CellQuery`` to SQL and back to counts.

The statement has two layers that mirror the core: the inner one encodes each row's values into cells
(``Attribute.encode``), the outer one groups cells into bins (``Bins.assign``). A filter is in the bins: they
are cut where it tells values apart, and those outside are counted too. Only counts leave the database.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol, final

import numpy as np
from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.bins import Grouping, group
from blowfishdb.adapters.sql.encode import Encoded, encode
from blowfishdb.adapters.sql.engines import Engine, SqlColumn, ValueMap
from blowfishdb.adapters.sql.source import Source
from blowfishdb.adapters.sql.values import SqlExpr
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.attribute import Attribute
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis, CellQuery, Domain
from blowfishdb.core.errors import SizeMismatch, TooLarge
from blowfishdb.core.questions.aggregate_problem import SumQuery

MOST_BOXES = 10**8
"""Counts are returned as one dense array."""
_MOST_KEPT = 10**4  # boxes of a statement that is kept for the next question about them

CELLS = "cells"
_ROWS = f"{sql.RESERVED}rows"


class Aggregate(Protocol):
    """A statement that a backend can run: whole numbers, one row per group, and how to fold them."""

    @property
    def text(self) -> str:
        """The SQL, for the database and for the log; it contains declarations, never data."""

    @property
    def maps(self) -> tuple[ValueMap, ...]:
        """The small tables that the backend provides under their names beside the statement."""

    def fold(self, columns: Sequence[IntArray]) -> IntArray:
        """The columns of the result as one array."""

    def fold_rows(self, rows: Iterable[Iterable[Any]]) -> IntArray:
        """The same, of rows as drivers return them."""


@final
@dataclass(frozen=True, eq=False)
class Statement:
    """A SELECT that returns the place on every axis (c0, c1 …) and the count (n) of each group that occurs.

    ``maps`` are the small tables that the backend provides under their names beside the statement; of so many
    powers of a column as ``sums`` says, the sums (t1, t2) follow the count.
    """

    select: exp.Select
    groupings: tuple[Grouping, ...]
    maps: tuple[ValueMap, ...]
    shape: tuple[int, ...]
    engine: Engine
    sums: int = 0

    @cached_property
    def text(self) -> str:
        """The SQL, for the database and for the log; it contains declarations, never data."""
        return self.select.sql(dialect=self.engine.writer or self.engine.dialect)

    def fold(self, columns: Sequence[IntArray]) -> IntArray:
        """The columns of the result as counts of all boxes, row-major; with sums, a row for each box."""
        groups, measures = columns[: len(self.shape)], columns[len(self.shape) :]
        places = flat_places(self.groupings, self.shape, groups, len(measures[0]))
        boxes = np.zeros((math.prod(self.shape), 1 + self.sums), dtype=np.int64)
        np.add.at(boxes, places, np.column_stack(measures))
        return boxes if self.sums else boxes[:, 0]

    def fold_rows(self, rows: Iterable[Iterable[Any]]) -> IntArray:
        """The same, of rows as drivers return them."""
        return self.fold(as_columns(rows, len(self.shape) + 1 + self.sums))


@final
@dataclass(frozen=True, eq=False)
class KindsStatement:
    """The same of more boxes than can be listed: a line for each that holds rows, with its places and its
    count. Which boxes hold rows is in the answer, so it is asked only of columns that nothing hides."""

    boxes: Statement

    @property
    def text(self) -> str:
        """The SQL, for the database and for the log; it contains declarations, never data."""
        return self.boxes.text

    @property
    def maps(self) -> tuple[ValueMap, ...]:
        """The small tables that the backend provides under their names beside the statement."""
        return self.boxes.maps

    def fold(self, columns: Sequence[IntArray]) -> IntArray:
        """A line for each group: its place on every axis, and how many rows it has."""
        places = [
            column if grouping.bins is None else grouping.bins[column]
            for grouping, column in zip(self.boxes.groupings, columns, strict=False)
        ]
        return np.column_stack((*places, columns[-1])).astype(np.int64)

    def fold_rows(self, rows: Iterable[Iterable[Any]]) -> IntArray:
        """The same, of rows as drivers return them."""
        return self.fold(as_columns(rows, len(self.boxes.shape) + 1))


def flat_places(
    groupings: Sequence[Grouping], shape: Sequence[int], groups: Sequence[IntArray], rows: int
) -> IntArray:
    """The box of every row of a result, row-major, from its groups along each axis."""
    flat = np.zeros(rows, dtype=np.int64)
    for grouping, count, column in zip(groupings, shape, groups, strict=True):
        flat = flat * count + (column if grouping.bins is None else grouping.bins[column])
    return flat


def as_columns(rows: Iterable[Iterable[Any]], width: int) -> list[IntArray]:
    """Rows as drivers return them, as columns of whole numbers."""
    table = np.array([tuple(map(int, row)) for row in rows], dtype=np.int64).reshape(-1, width)
    return [table[:, index] for index in range(width)]


def cell_statement(
    query: CellQuery, source: Source, domain: Domain, types: Mapping[str, SqlColumn], engine: Engine
) -> Statement:
    """The statement that counts ``query`` over ``source``, whose columns have ``types``.

    Small ones are kept: it depends on declarations alone, and writing it takes longer than asking it.
    """
    check_boxes(query.count)
    if query.count > _MOST_KEPT:
        return _statement(query, source, domain, types, engine)
    axes = tuple((axis.column, axis.attribute, axis.bins) for axis in query.axes)
    return _kept(axes, source, domain, tuple(types.items()), engine)


@lru_cache(maxsize=64)
def _kept(
    axes: tuple[tuple[str, Attribute, Bins], ...],
    source: Source,
    domain: Domain,
    types: tuple[tuple[str, SqlColumn], ...],
    engine: Engine,
) -> Statement:
    query = CellQuery(tuple(Axis(*axis) for axis in axes))
    return _statement(query, source, domain, dict(types), engine)


def kinds_statement(
    query: CellQuery, source: Source, domain: Domain, types: Mapping[str, SqlColumn], engine: Engine
) -> KindsStatement:
    """The statement that lists which boxes of ``query`` hold rows, and how many."""
    return KindsStatement(_statement(query, source, domain, types, engine))


def sum_statement(
    query: SumQuery, source: Source, domain: Domain, types: Mapping[str, SqlColumn], engine: Engine
) -> Statement:
    """The statement that counts the boxes of ``query`` and adds up the cells of its columns in each."""
    check_boxes(query.cells.count)
    return _statement(query.cells, source, domain, types, engine, query.summed)


def _statement(
    query: CellQuery,
    source: Source,
    domain: Domain,
    types: Mapping[str, SqlColumn],
    engine: Engine,
    summed: tuple[tuple[str, int], ...] = (),
) -> Statement:
    cells = Cells.of(mentioned(query, domain), types)
    groupings = group(query.axes, [cells.place(axis.column) for axis in query.axes])
    named = [alias(grouping.expression, f"c{i}") for i, grouping in enumerate(groupings)]
    wanted = [(column, power) for column, powers in summed for power in range(1, powers + 1)]
    sums = [
        alias(_power_sum(cells.place(column), power), f"t{number}")
        for number, (column, power) in enumerate(wanted, start=1)
    ]
    select = exp.Select(expressions=[*named, alias(exp.Count(this=exp.Star()), "n"), *sums])
    select = joined(select.from_(cells.relation(), copy=False), groupings, "")
    select = select.where(*cells.kept(), copy=False)
    if groupings:
        select = select.group_by(*(grouping.expression.copy() for grouping in groupings), copy=False)
    maps = (*cells.maps, *maps_of(groupings))
    done = finished(select, source.rows(types, engine), maps, engine)
    kept = maps if engine.registers_maps else ()
    return Statement(done, tuple(groupings), kept, query.shape, engine, len(wanted))


def _power_sum(place: exp.Column, power: int) -> SqlExpr:
    cell = sql.cast(place, "BIGINT")
    each = cell if power == 1 else exp.Mul(this=cell, expression=cell.copy())
    return sql.cast(exp.Sum(this=each), "BIGINT")


def check_boxes(count: int) -> None:
    """Refuse more counts than are returned at once."""
    if count > MOST_BOXES:
        raise TooLarge(
            f"{count:,} counts are more than {MOST_BOXES:,}.", fixes=("wider bins", "fewer columns")
        )


@final
@dataclass(frozen=True, eq=False)
class Cells:
    """The inner layer of a statement: the cells k0, k1 … of some columns for every row of the source."""

    attributes: dict[str, Attribute]
    parts: tuple[Encoded, ...]

    @classmethod
    def of(cls, attributes: dict[str, Attribute], types: Mapping[str, SqlColumn]) -> Cells:
        """The cells of columns as they are declared."""
        named = enumerate(attributes.items())
        encoded = (encode(types[name], each, f"{sql.RESERVED}v{i}") for i, (name, each) in named)
        return cls(attributes, tuple(encoded))

    def place(self, name: str) -> exp.Column:
        """The cell of a column."""
        return sql.column(f"k{list(self.attributes).index(name)}", CELLS)

    def kept(self) -> list[SqlExpr]:
        """Conditions that leave out rows which a declaration drops."""
        return [
            exp.GTE(this=self.place(name), expression=sql.whole(0))
            for name, attribute in self.attributes.items()
            if attribute.may_drop
        ]

    def relation(self) -> exp.Subquery:
        """What stands behind FROM."""
        return exp.Subquery(this=_encoding(list(self.parts)), alias=table_alias(CELLS))

    @property
    def maps(self) -> list[ValueMap]:
        """The small tables that it joins."""
        return maps_of(self.parts)


def finished(select: exp.Select, rows: exp.Expr, maps: tuple[ValueMap, ...], engine: Engine) -> exp.Select:
    """In the way of the database; only then come the curator's own words, and the long lists."""
    adapted = select.transform(engine.adapt, copy=False)
    assert isinstance(adapted, exp.Select)
    next(table for table in adapted.find_all(exp.Table) if table.name == _ROWS).replace(rows)
    if maps and not engine.registers_maps:
        listed = [exp.CTE(this=engine.inlined(each, engine.literal), alias=_header(each)) for each in maps]
        adapted.set("with_", exp.With(expressions=listed))
    return adapted


def _header(table: ValueMap) -> exp.TableAlias:
    header = table_alias(table.name)
    header.set("columns", [exp.to_identifier(name, quoted=True) for name in table.columns])
    return header


def mentioned(query: CellQuery, domain: Domain) -> dict[str, Attribute]:
    """Every column of a question with its declaration."""
    return declared_alike(query.axes, domain)


def declared_alike(axes: Iterable[Axis], domain: Domain) -> dict[str, Attribute]:
    """The columns of ``axes`` with their declarations, which must be those of the dataset."""
    attributes = {axis.column: axis.attribute for axis in axes}
    for name, attribute in attributes.items():
        if domain[name] != attribute:
            raise SizeMismatch(f"'{name}' is declared differently in the dataset.")
    return attributes


def _encoding(encoded: list[Encoded]) -> exp.Select:
    cells = [alias(part.cell, f"k{i}") for i, part in enumerate(encoded)] or [alias(sql.whole(0), "k0")]
    rows = exp.Table(this=exp.to_identifier(_ROWS))
    return joined(exp.Select(expressions=cells).from_(rows, copy=False), encoded, "left")


def joined(select: exp.Select, parts: Sequence[Encoded | Grouping], kind: str) -> exp.Select:
    """With the small tables that the parts look up."""
    for part in parts:
        if part.map is not None:
            table = exp.Table(this=exp.to_identifier(part.map.name, quoted=True))
            select = select.join(table, on=part.on, join_type=kind, copy=False)
    return select


def maps_of(parts: Iterable[Encoded | Grouping]) -> list[ValueMap]:
    """The small tables that the parts look up."""
    return [part.map for part in parts if part.map is not None]


def alias(value: SqlExpr, name: str) -> exp.Alias:
    """``value AS name``, quoted."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def table_alias(name: str) -> exp.TableAlias:
    """A name behind FROM, quoted."""
    return exp.TableAlias(this=exp.to_identifier(name, quoted=True))
