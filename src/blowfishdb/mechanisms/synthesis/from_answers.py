"""A synthesis from what is out already: stored releases in place of tables that are measured. Loses nothing.

Raw whole numbers and exact scales of releases that none replaced; a row may count any boxes, also of bins
that other releases cut finer. Columns that no release speaks of are left out: nothing is known of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.sparse import csr_array

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.bins import Bins, common_bins
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.mechanisms.reuse.stored import StoredRelease, chosen, rows_of
from blowfishdb.mechanisms.synthesis.junction_tree import Group, JunctionTree
from blowfishdb.mechanisms.synthesis.model import Model
from blowfishdb.mechanisms.synthesis.rounds import MOST_TREE, Synthesis
from blowfishdb.mechanisms.synthesis.tables import Layout, Table

_MOST_BINS: Final = 200
_MOST_CELLS: Final = 20_000


@final
@dataclass(frozen=True, eq=False)
class Collected:
    """Releases that fit together, and the bins that all of them have in common."""

    layout: Layout
    releases: tuple[StoredRelease, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Which they are."""
        return tuple(release.number for release in self.releases)

    @classmethod
    def of(cls, releases: Iterable[StoredRelease], domain: Domain, columns: Sequence[str] = ()) -> Collected:
        """Those about declared columns, the newest first; one that would cut bins too finely is left out."""
        cuts: dict[str, Bins] = {}
        kept: list[StoredRelease] = []
        for release in sorted(releases, key=lambda one: -one.number):
            finer = _refined(cuts, release, domain, columns)
            if finer is not None:
                cuts, kept = finer, [*kept, release]
        axes = tuple(Axis(name, domain[name], cuts[name]) for name in domain.names if name in cuts)
        return cls(Layout(axes), tuple(reversed(kept)))

    def synthesis(self, total: int) -> Synthesis:
        """The model of these releases; those for which it has no room are kept beside it."""
        tables = [table for release in self.releases for table in self._tables(release)]
        used = self._fitting(tables)
        counted = [tables[at].counted(self.layout) for at in used]
        model = Model.uniform(self.layout.sizes, total).fitted(counted)
        return Synthesis(self.layout, total, tuple(tables), (), tuple(used), model)

    def _fitting(self, tables: Sequence[Table]) -> list[int]:
        """Tables of one column first, then the least noisy, while the model has room."""
        used: list[int] = []
        groups: list[Group] = []
        order = sorted(range(len(tables)), key=lambda at: (len(tables[at].columns) > 1, tables[at].scale, at))
        for at in order:
            wider = [*groups, tables[at].columns]
            if JunctionTree.over(self.layout.sizes, wider).cells <= MOST_TREE:
                used, groups = [*used, at], wider
        return sorted(used)

    def _tables(self, release: StoredRelease) -> list[Table]:
        """A release over the common bins: one table for each scale of its noise."""
        names = [axis.column for axis in self.layout.axes]
        columns = tuple(sorted(names.index(axis.column) for axis in release.axes))
        place = self._places(release, columns)
        spread = csr_array(
            (np.ones(place.size, dtype=np.int64), (place, np.arange(place.size))),
            shape=(release.rows.size, place.size),
        )
        tables = []
        for at, scale in enumerate(release.distinct):
            some = np.flatnonzero(release.which == at)
            if some.size:
                rows = rows_of(csr_array(chosen(release.rows, some).sparse() @ spread))
                tables.append(Table(columns, rows, scale, release.values[some]))
        return tables

    def _places(self, release: StoredRelease, columns: Group) -> IntArray:
        """For every common box of these columns, the box of the release that it lies in."""
        shape = tuple(self.layout.bins[column] for column in columns)
        at = np.unravel_index(np.arange(math.prod(shape)), shape)
        members = {
            self.layout.axes[column].column: self.layout.axes[column].bins.first(index)
            for column, index in zip(columns, at, strict=True)
        }
        own = tuple(axis.bins.count for axis in release.axes)
        boxes = tuple(axis.bins.assign(members[axis.column]) for axis in release.axes)
        return np.asarray(np.ravel_multi_index(boxes, own), dtype=np.int64)


def _refined(
    cuts: Mapping[str, Bins], release: StoredRelease, domain: Domain, columns: Sequence[str]
) -> dict[str, Bins] | None:
    """The bins with those of one release more; None where it does not fit."""
    if not release.rows.count or all(axis.bins.count == 1 for axis in release.axes):
        return None
    finer = dict(cuts)
    for axis in release.axes:
        declared = axis.column in domain and domain[axis.column] == axis.attribute
        if not declared or (columns and axis.column not in columns):
            return None
        finer[axis.column] = common_bins(finer.get(axis.column), axis.bins, axis.attribute.size)
        if finer[axis.column].count > _MOST_BINS:
            return None
    together = math.prod(finer[axis.column].count for axis in release.axes)
    return finer if together <= _MOST_CELLS else None
