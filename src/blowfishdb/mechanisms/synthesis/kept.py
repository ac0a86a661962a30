"""Kept rows: columns that no promise hides stay as they are, and the hidden ones are drawn given them.

No hidden move changes a value of a kept column, so what all rows have in these columns together is the same
for all neighbours: reading it tells nothing hidden. The model is then one of the hidden columns given each
kind of row, p(h | row) ∝ exp Σ_m φ_m(h, row), and only tables with a hidden column are measured.

Kept rows are real rows of real people. That is no question of privacy losses; the curator decides it.
"""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from blowfishdb.core.arrays import FloatArray, IntArray
from blowfishdb.core.errors import SizeMismatch
from blowfishdb.mechanisms.synthesis.junction_tree import Group, JunctionTree
from blowfishdb.mechanisms.synthesis.model import Counted, Model
from blowfishdb.mechanisms.synthesis.tables import Layout

_WIDTHS: Final[dict[int, str]] = {4: "<i4", 8: "<i8"}
"""In what numbers are packed, by their bytes."""


@final
@dataclass(frozen=True, eq=False)
class KeptRows:
    """What rows have in the kept ``columns`` of a layout: each combination once, and how many have it."""

    columns: Group
    cells: IntArray
    """A line for each combination, with the cell of every column; in their own order, so that none of the
    order of the data is left."""
    counts: IntArray

    def __post_init__(self) -> None:
        if self.cells.shape != (self.counts.size, len(self.columns)):
            raise SizeMismatch("Every combination has a value of each kept column, and a number of rows.")

    @classmethod
    def of(cls, columns: Group, lines: IntArray) -> KeptRows:
        """From lines of cells and counts, in any order."""
        cells, which = np.unique(lines[:, :-1], axis=0, return_inverse=True)
        counts = np.bincount(which.ravel(), weights=lines[:, -1], minlength=len(cells)).astype(np.int64)
        some = counts > 0
        return cls(columns, cells[some], counts[some])

    @property
    def total(self) -> int:
        """How many rows there are."""
        return int(self.counts.sum())

    def picked(self, rows: int, stream: np.random.Generator) -> IntArray:
        """Which combination each of so many rows has: every row of the data once, if they are as many."""
        if rows == self.total:
            return np.repeat(np.arange(self.counts.size), self.counts)
        reach = np.cumsum(self.counts) / max(1, self.total)
        at = (np.arange(rows) + stream.random()) / max(1, rows)
        return np.minimum(np.searchsorted(reach, at, side="right"), self.counts.size - 1)

    def to_plain(self) -> dict[str, Any]:
        """JSON-ready data."""
        lines = np.column_stack((self.cells, self.counts))
        size = 4 if lines.max(initial=0) <= np.iinfo(np.int32).max else 8
        packed = base64.b64encode(
            zlib.compress(np.ascontiguousarray(lines.T.astype(_WIDTHS[size])).tobytes(), 6)
        )
        plain = {"columns": list(self.columns), "kinds": len(lines), "packed": packed.decode("ascii")}
        return plain if size == 4 else {**plain, "bytes": size}

    @classmethod
    def from_plain(cls, stored: Mapping[str, Any]) -> KeptRows:
        """From its plain form."""
        width = _WIDTHS[stored.get("bytes", 4)]
        flat = np.frombuffer(zlib.decompress(base64.b64decode(stored["packed"])), dtype=width)
        lines = flat.reshape(len(stored["columns"]) + 1, stored["kinds"]).T.astype(np.int64)
        return cls(tuple(stored["columns"]), lines[:, :-1], lines[:, -1])


@final
@dataclass(frozen=True, eq=False)
class GivenRows:
    """The model of hidden columns given kept rows; columns are those of the layout."""

    layout: Layout
    kept: KeptRows
    total: int
    counted: tuple[Counted, ...] = ()
    inner: Model | None = None
    """Over the hidden columns and, as the last one, the kind of row."""
    _inside: dict[int, tuple[Counted, Counted]] = field(default_factory=dict)

    @cached_property
    def hidden(self) -> Group:
        """The columns that are drawn."""
        return tuple(at for at in range(len(self.layout.axes)) if at not in self.kept.columns)

    @cached_property
    def _bins(self) -> IntArray:
        """The bins of every combination."""
        own = [
            self.layout.axes[column].bins.assign(self.kept.cells[:, at])
            for at, column in enumerate(self.kept.columns)
        ]
        return np.column_stack(own)

    @cached_property
    def _kinds(self) -> tuple[IntArray, IntArray]:
        """Rows whose bins are the same are one kind: their bins, and the kind of every combination."""
        kinds, which = np.unique(self._bins, axis=0, return_inverse=True)
        return kinds, which.ravel()

    @cached_property
    def model(self) -> Model:
        """The model given each kind of row, before anything was counted if nothing was."""
        if self.inner is not None:
            return self.inner
        kinds, which = self._kinds
        held = np.bincount(which, weights=self.kept.counts, minlength=len(kinds))
        sizes = (*(self.layout.sizes[column] for column in self.hidden), len(kinds))
        return Model.uniform(sizes, self.total, held / held.sum())

    @property
    def weights(self) -> tuple[FloatArray, ...]:
        """One for each row that was counted."""
        return self.model.weights

    def tree_over(self, groups: Sequence[Group]) -> JunctionTree:
        """The tree that tables of these columns would need."""
        return JunctionTree.over(self.model.sizes, [self._numbered(group) for group in groups])

    def _numbered(self, group: Group) -> Group:
        """The columns of a table as the model numbers them: the hidden ones, and the kind of row."""
        inside = tuple(self.hidden.index(column) for column in group if column in self.hidden)
        return (*inside, len(self.hidden))

    def fitted(self, counted: Sequence[Counted], *, steps: int | None = None) -> GivenRows:
        """The model of these counts, from the weights that it has."""
        inner = self.model.fitted([self._within(each) for each in counted], steps=steps)
        return replace(self, counted=tuple(counted), inner=inner)

    def weighted(self, counted: Sequence[Counted], weights: Sequence[FloatArray]) -> GivenRows:
        """The model that was fitted before."""
        inside = tuple(self._within(each) for each in counted)
        inner = replace(self.model, counted=inside, weights=tuple(weights))
        return replace(self, counted=tuple(counted), inner=inner)

    def _within(self, each: Counted) -> Counted:
        """Counts over cells of the layout as counts over hidden cells and kinds of rows."""
        if id(each) not in self._inside:
            group, shape = self._numbered(each.columns), self.layout.shape(each.columns)
            own = tuple(self.model.sizes[column] for column in group)
            at = np.unravel_index(np.arange(math.prod(own)), own)
            kinds, values = self._kinds[0], []
            for column in each.columns:
                if column in self.hidden:
                    values.append(at[group.index(self.hidden.index(column))])
                else:
                    values.append(kinds[at[-1], self.kept.columns.index(column)])
            places = np.ravel_multi_index(tuple(values), shape)
            inside = replace(each, columns=group, places=np.asarray(places), breadth=len(each.columns))
            self._inside[id(each)] = (each, inside)  # kept with what it is of, so that the name stays its own
        return self._inside[id(each)][1]

    def marginal(self, group: Group) -> FloatArray:
        """The share of rows in every cell of some columns, of which one or more are hidden."""
        inside = self._numbered(group)
        table = self.model.marginal(inside)
        flat = np.moveaxis(table, -1, 0).reshape(table.shape[-1], -1)
        public = tuple(column for column in group if column not in self.hidden)
        if public:
            kinds = self._kinds[0][:, [self.kept.columns.index(column) for column in public]]
            place = np.ravel_multi_index(tuple(kinds.T), self.layout.shape(public))
            summed = np.zeros((math.prod(self.layout.shape(public)), flat.shape[1]))
            np.add.at(summed, place, flat)
        else:
            summed = flat.sum(axis=0, keepdims=True)
        drawn = tuple(column for column in group if column in self.hidden)
        shaped = summed.reshape((*self.layout.shape(public), *self.layout.shape(drawn)))
        order = (*public, *drawn)
        return np.asarray(shaped.transpose([order.index(column) for column in group]))

    def relates(self, first: int, second: int) -> bool:
        """Whether two columns, not both kept, go together by what was counted."""
        drawn = [column for column in (first, second) if column in self.hidden]
        if len(drawn) == 2:
            return self.model.tree.together(*(self.hidden.index(column) for column in drawn))
        kept = set(self.kept.columns)
        return any(drawn[0] in each.columns and kept & set(each.columns) for each in self.counted)

    def between(self, first: int, second: int) -> Group:
        """Kept columns given which two others are independent: none where one of the two is kept."""
        return self.kept.columns if {first, second} <= set(self.hidden) else ()

    def drawn(self, rows: int, stream: np.random.Generator) -> IntArray:
        """So many rows in bins, in random order."""
        return self.drawn_rows(rows, stream)[0]

    def drawn_rows(self, rows: int, stream: np.random.Generator) -> tuple[IntArray, IntArray]:
        """The same, and the cells of the kept columns of each row."""
        which = self.kept.picked(rows, stream)
        inside = np.zeros((rows, len(self.model.sizes)), dtype=np.int64)
        inside[:, -1] = self._kinds[1][which]
        self.model.fill(inside, (len(self.hidden),), stream)
        table = np.zeros((rows, len(self.layout.axes)), dtype=np.int64)
        table[:, list(self.kept.columns)] = self._bins[which]
        table[:, list(self.hidden)] = inside[:, :-1]
        order = stream.permutation(rows)
        return table[order], self.kept.cells[which[order]]

    def plain_weights(self) -> GivenRows:
        """The same with weights as they are stored."""
        return replace(self, inner=self.model.plain_weights())
