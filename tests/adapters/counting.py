"""A reference for counts: encode, filter and bin in the core, row by row, without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.axis import Axis
from blowfishdb.core.domain import Domain
from blowfishdb.core.predicates import Everything, Predicate
from blowfishdb.core.projection import CellQuery

EVERYTHING = Everything()


def query(domain: Domain, where: Predicate = EVERYTHING, /, **bins: object) -> CellQuery:
    """A question with ``name=bins`` or ``name=keyword arguments of Attribute.bins``."""
    axes = [
        Axis(name, domain[name], domain[name].bins(**given) if isinstance(given, dict) else given)
        for name, given in bins.items()
    ]
    return CellQuery(tuple(axes), where)


def expected(asked: CellQuery, domain: Domain, columns: Mapping[str, Sequence[object]]) -> IntArray:
    """What the database should count."""
    names = {axis.column for axis in asked.axes} | asked.where.columns()
    rows = len(next(iter(columns.values())))
    cells = {name: domain[name].encode(columns[name]) for name in names}
    matched = np.broadcast_to(asked.where.on_cells(domain, cells), (rows,))
    flat = np.zeros(rows, dtype=np.int64)
    for axis in asked.axes:
        kept = np.where(cells[axis.column] < 0, 0, cells[axis.column])
        flat = flat * axis.bins.count + axis.bins.assign(kept)
    return np.bincount(flat[matched], minlength=asked.count)
