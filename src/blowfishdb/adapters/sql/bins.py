"""Bins in SQL: how a column of cells is grouped, equal to ``Bins.assign``.

Equal bins are a division. Unequal bins are grouped at the widest equal width that respects every edge, and
merged here, as long as the groups stay few. Otherwise each cell is looked up in a map of bins: cells fall
into buckets of about a quarter of a bin, so the join is an equality with one or two candidates for each row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
from sqlglot import exp

from blowfishdb.adapters.sql import values as sql
from blowfishdb.adapters.sql.encode import CASES
from blowfishdb.adapters.sql.engines import ValueMap
from blowfishdb.adapters.sql.values import SqlExpr
from blowfishdb.core.arrays import IntArray, ceil_div
from blowfishdb.core.domain.bins import Bins, EdgeBins, EqualBins, LabelBins
from blowfishdb.core.domain.domain import Axis

FINE_GROUPS = 20_000
"""So many groups cost hardly more than a few, in the database and on the way here."""

_BUCKETS_PER_BIN = 4
_MOST_CANDIDATES = 12
_REGIONS = (1, 2, 4, 8)


@final
@dataclass(frozen=True, eq=False)
class Grouping:
    """What one axis is grouped by: ``expression`` numbers the groups, ``bins`` gives the bin of each."""

    expression: SqlExpr
    groups: int
    bins: IntArray | None = None
    map: ValueMap | None = None
    on: SqlExpr | None = None


def group(axes: Sequence[Axis], cells: Sequence[exp.Column]) -> list[Grouping]:
    """The groupings of all axes, fine ones as long as their product stays small."""
    runs = [_runs(axis.bins) for axis in axes]
    fine = [_fine_width(axis, run) for axis, run in zip(axes, runs, strict=True)]
    looked_up: set[int] = set()

    def groups(index: int) -> int:
        return axes[index].bins.count if index in looked_up else _fine_groups(axes[index], fine[index])

    everyone = range(len(axes))
    while math.prod(groups(i) for i in everyone) > FINE_GROUPS:
        gain, worst = max((groups(i) / axes[i].bins.count, i) for i in everyone)
        if gain <= 1:
            break
        looked_up.add(worst)
    return [
        _lookup(axes[i].bins.count, runs[i], cells[i], f"{sql.RESERVED}m{i}")
        if i in looked_up
        else _divide(axes[i], fine[i], cells[i])
        for i in everyone
    ]


@final
@dataclass(frozen=True, eq=False)
class _Runs:
    """Maximal intervals of cells with one bin: first cells, the cell behind each, and the bins."""

    starts: IntArray
    stops: IntArray
    bins: IntArray


def _runs(bins: Bins) -> _Runs | None:
    """None for equal bins, which need no list."""
    if isinstance(bins, EqualBins):
        return None
    if isinstance(bins, EdgeBins):
        starts, labels = bins.starts, np.arange(bins.count)
    else:
        table = bins.table if isinstance(bins, LabelBins) else bins.assignment()
        starts = np.flatnonzero(np.diff(table, prepend=-1)).astype(np.int64)
        labels = table[starts]
    return _Runs(starts, np.append(starts[1:], bins.size), labels)


def _fine_width(axis: Axis, runs: _Runs | None) -> int:
    if runs is None:
        assert isinstance(axis.bins, EqualBins)
        return min(axis.bins.cells, axis.bins.size)
    inner = runs.starts[runs.starts < axis.attribute.value_count]
    return math.gcd(*(int(start) for start in inner)) or axis.attribute.value_count


def _fine_groups(axis: Axis, width: int) -> int:
    if isinstance(axis.bins, EqualBins):
        return axis.bins.count
    return ceil_div(axis.attribute.value_count, width) + axis.attribute.has_missing_cell


def _divide(axis: Axis, width: int, cell: exp.Column) -> Grouping:
    expression, groups = sql.floor_div(cell.copy(), width), _fine_groups(axis, width)
    if isinstance(axis.bins, EqualBins):
        return Grouping(expression, groups)
    values = axis.attribute.value_count
    firsts = np.arange(groups, dtype=np.int64) * width
    if axis.attribute.has_missing_cell:
        firsts[-1] = values
        if values % width:
            missing = exp.EQ(this=cell.copy(), expression=sql.whole(values))
            expression = sql.choose((missing, sql.whole(groups - 1)), otherwise=expression)
    return Grouping(expression, groups, axis.bins.assign(firsts))


def _lookup(count: int, runs: _Runs | None, cell: exp.Column, name: str) -> Grouping:
    assert runs is not None
    if runs.starts.size <= CASES:
        cases = [
            (exp.LT(this=cell.copy(), expression=sql.whole(int(stop))), sql.whole(int(label)))
            for stop, label in zip(runs.stops[:-1], runs.bins[:-1], strict=True)
        ]
        return Grouping(sql.choose(*cases, otherwise=sql.whole(int(runs.bins[-1]))), count)
    buckets = next(made for made in map(partial(_buckets, runs), _REGIONS) if made.good)
    on = exp.and_(
        exp.EQ(this=buckets.of(cell), expression=sql.column("bucket", name)),
        exp.GTE(this=cell.copy(), expression=sql.column("start", name)),
        exp.LT(this=cell.copy(), expression=sql.column("stop", name)),
        copy=False,
    )
    return Grouping(sql.column("bin", name), count, map=ValueMap(name, buckets.rows(runs)), on=on)


@final
@dataclass(frozen=True, eq=False)
class _Buckets:
    """Cells in buckets of equal width within each region, and for every bucket the runs that reach into it.

    Edges may be crowded somewhere (a logarithmic axis); regions with as many runs each keep buckets small.
    """

    stops: tuple[int, ...]
    widths: tuple[int, ...]
    offsets: tuple[int, ...]
    bucket: IntArray
    run: IntArray

    @property
    def good(self) -> bool:
        """Few candidates even in the worst bucket; or nothing better to try."""
        return len(self.stops) == _REGIONS[-1] or int(np.bincount(self.bucket).max()) <= _MOST_CANDIDATES

    def of(self, cell: exp.Column) -> SqlExpr:
        """The bucket of a cell."""
        starts = (0, *self.stops[:-1])
        buckets = [
            sql.plus(sql.floor_div(sql.plus(cell.copy(), -start), width), offset)
            for start, width, offset in zip(starts, self.widths, self.offsets, strict=True)
        ]
        tests = [exp.LT(this=cell.copy(), expression=sql.whole(stop)) for stop in self.stops[:-1]]
        if not tests:
            return buckets[0]
        return sql.choose(*zip(tests, buckets[:-1], strict=True), otherwise=buckets[-1])

    def rows(self, runs: _Runs) -> dict[str, IntArray]:
        """The map: each bucket with the ends and the bin of a run."""
        return {
            "bucket": self.bucket,
            "start": runs.starts[self.run],
            "stop": runs.stops[self.run],
            "bin": runs.bins[self.run],
        }


def _buckets(runs: _Runs, regions: int) -> _Buckets:
    offset, stops, widths, offsets, buckets, members = 0, [], [], [], [], []
    for region in np.array_split(np.arange(runs.starts.size), regions):
        start, stop = int(runs.starts[region[0]]), int(runs.stops[region[-1]])
        width = max(1, (stop - start) // (_BUCKETS_PER_BIN * region.size))
        first = (runs.starts[region] - start) // width
        times = (runs.stops[region] - 1 - start) // width - first + 1
        nth = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
        members.append(np.repeat(region, times))
        buckets.append(np.repeat(first, times) + nth + offset)
        stops.append(stop)
        widths.append(width)
        offsets.append(offset)
        offset = int(buckets[-1][-1]) + 1
    return _Buckets(
        tuple(stops), tuple(widths), tuple(offsets), np.concatenate(buckets), np.concatenate(members)
    )
