"""One round of clustering, one aggregate statement: sizes and sums of the clusters around public centroids.

Over the layer that encodes each row's values into cells there are two more: the score of every centroid, a
linear expression in whole numbers, and the first centroid with the least score. A filter is in groups, as for
counts: rows are grouped by its boxes, too, and only boxes inside of it are added up. Only sums leave the
database.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, final

import numpy as np
from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.bins import Grouping, group
from blowfishdb.adapters.sql.engines import Engine, SqlColumn, ValueMap
from blowfishdb.adapters.sql.source import Source
from blowfishdb.adapters.sql.statement import (
    CELLS,
    Cells,
    alias,
    as_columns,
    check_boxes,
    declared_alike,
    finished,
    flat_places,
    joined,
    maps_of,
    table_alias,
)
from blowfishdb.adapters.sql.values import SqlExpr
from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.domain.bins import Bins
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.core.questions.clusters import Centroids, ClusterQuery

_LABEL = "label"
_ALL_ROWS = 2**63 - 1


@final
@dataclass(frozen=True, eq=False)
class SelectedStatement:
    """A SELECT that returns, for each group that occurs, its places (c0, c1 …) and its measures.

    The first places are those of the answer, of ``shape``; the others are boxes of a filter, which count
    where they are ``inside``.
    """

    select: exp.Select
    groupings: tuple[Grouping, ...]
    shape: tuple[int, ...]
    boxes: tuple[int, ...]
    inside: BoolArray
    measures: int
    maps: tuple[ValueMap, ...]
    engine: Engine

    @cached_property
    def text(self) -> str:
        """The SQL, for the database and for the log; it contains declarations and centroids, never data."""
        return self.select.sql(dialect=self.engine.dialect)

    def fold(self, columns: Sequence[IntArray]) -> IntArray:
        """The measures of every place of the answer (a row each), of rows inside of the filter."""
        asked, groups = len(self.shape), len(self.groupings)
        values = np.column_stack(columns[groups:])
        place = flat_places(self.groupings[:asked], self.shape, columns[:asked], len(values))
        box = flat_places(self.groupings[asked:], self.boxes, columns[asked:groups], len(values))
        counted = self.inside[box]
        table = np.zeros((math.prod(self.shape), self.measures), dtype=np.int64)
        np.add.at(table, place[counted], values[counted])
        return table

    def fold_rows(self, rows: Iterable[Iterable[Any]]) -> IntArray:
        """The same, of rows as drivers return them."""
        return self.fold(as_columns(rows, len(self.groupings) + self.measures))


@final
@dataclass(frozen=True, eq=False)
class ClusterSql:
    """The statements about the points of ``query`` in ``source``, whose columns have ``types``."""

    query: ClusterQuery
    source: Source
    domain: Domain
    types: Mapping[str, SqlColumn]
    engine: Engine

    def totals(self, centroids: Centroids) -> SelectedStatement:
        """The number of rows and the sums of their cells for every centroid."""
        if centroids.space.shape != tuple(axis.bins.count for axis in self.query.axes):
            raise SizeMismatch("The centroids are not about the cells of these columns.")
        names = [axis.column for axis in self.query.axes]
        layer = _labelled(self._cells, names, centroids, self.engine)
        label = Grouping(sql.column(_LABEL, CELLS), len(centroids))
        sums = [sql.cast(exp.Sum(this=self._cells.place(name)), "BIGINT") for name in names]
        return self._statement(layer, (label,), (len(centroids),), sums, self._filter_groups())

    def counts(self, bins: tuple[Bins, ...]) -> SelectedStatement:
        """The number of rows in every box of ``bins``."""
        pairs = zip(self.query.axes, bins, strict=True)
        axes = tuple(Axis(axis.column, axis.attribute, each) for axis, each in pairs)
        shape = tuple(each.count for each in bins)
        both = group(
            (*axes, *self.query.boxes.axes), [self._cells.place(a.column) for a in (*axes, *self._filter)]
        )
        asked, rest = tuple(both[: len(axes)]), tuple(both[len(axes) :])
        return self._statement(_kept(self._cells, self.engine), asked, shape, [], rest)

    @cached_property
    def _cells(self) -> Cells:
        return Cells.of(declared_alike(self.query.columns, self.domain), self.types)

    @property
    def _filter(self) -> tuple[Axis, ...]:
        return self.query.boxes.axes

    def _filter_groups(self) -> tuple[Grouping, ...]:
        return tuple(group(self._filter, [self._cells.place(axis.column) for axis in self._filter]))

    def _statement(
        self,
        layer: exp.Subquery,
        asked: tuple[Grouping, ...],
        shape: tuple[int, ...],
        sums: list[SqlExpr],
        boxes: tuple[Grouping, ...],
    ) -> SelectedStatement:
        check_boxes(math.prod(shape) * self.query.boxes.count)
        groupings = (*asked, *boxes)
        places = [alias(each.expression, f"c{i}") for i, each in enumerate(groupings)]
        measures = [alias(exp.Count(this=exp.Star()), "n"), *(alias(s, f"t{i}") for i, s in enumerate(sums))]
        select = exp.Select(expressions=[*places, *measures]).from_(layer, copy=False)
        select = joined(select, groupings, "")
        select = select.group_by(*(each.expression.copy() for each in groupings), copy=False)
        maps = (*self._cells.maps, *maps_of(groupings))
        return SelectedStatement(
            finished(select, self.source.rows(self.types, self.engine), maps, self.engine),
            groupings,
            shape,
            self.query.boxes.shape,
            self.query.inside,
            1 + len(sums),
            maps if self.engine.registers_maps else (),
            self.engine,
        )


def _kept(cells: Cells, engine: Engine, *more: exp.Alias) -> exp.Subquery:
    """The cells of rows that are not dropped, and perhaps more, under the same name."""
    named = [
        alias(sql.cast(cells.place(name), "BIGINT"), cells.place(name).name) for name in cells.attributes
    ]
    encoded = cells.relation()
    inner = _computed_once(encoded.this, engine) if more else encoded
    select = exp.Select(expressions=[*named, *more]).from_(inner, copy=False)
    return exp.Subquery(this=select.where(*cells.kept(), copy=False), alias=table_alias(CELLS))


def _computed_once(select: exp.Select, engine: Engine) -> exp.Subquery:
    """A layer whose expressions are computed once for every row, however often they are used above it."""
    stored = select.limit(_ALL_ROWS, copy=False) if engine.repeats else select
    return exp.Subquery(this=stored, alias=table_alias(CELLS))


def _labelled(cells: Cells, names: Sequence[str], centroids: Centroids, engine: Engine) -> exp.Subquery:
    """The cells of every row with the number of its centroid."""
    places = [sql.cast(cells.place(name), "BIGINT") for name in names]
    scores = [
        alias(_score(places, slopes.tolist(), int(offset)), f"r{i}")
        for i, (slopes, offset) in enumerate(zip(centroids.slopes, centroids.offsets, strict=True))
    ]
    scored = _computed_once(_kept(cells, engine, *scores).this, engine)
    columns = [alias(cells.place(name), cells.place(name).name) for name in cells.attributes]
    label = alias(_first_least(len(centroids)), _LABEL)
    return _computed_once(exp.Select(expressions=[*columns, label]).from_(scored, copy=False), engine)


def _score(places: Sequence[SqlExpr], slopes: Sequence[int], offset: int) -> SqlExpr:
    terms = [
        exp.Mul(this=place.copy(), expression=sql.whole(slope))
        for place, slope in zip(places, slopes, strict=True)
        if slope
    ]
    return reduce(lambda left, right: exp.Add(this=left, expression=right), [sql.whole(offset), *terms])


def _first_least(count: int) -> SqlExpr:
    """The number of the first among the least of r0, r1 …: each is compared with those behind it."""

    def least(index: int) -> SqlExpr:
        own = sql.column(f"r{index}", CELLS)
        tests: list[SqlExpr] = [
            exp.LTE(this=own.copy(), expression=sql.column(f"r{other}", CELLS))
            for other in range(index + 1, count)
        ]
        return reduce(lambda left, right: exp.And(this=left, expression=right), tests)

    last = sql.whole(count - 1)
    if count == 1:
        return last
    return sql.choose(*((least(i), sql.whole(i)) for i in range(count - 1)), otherwise=last)
