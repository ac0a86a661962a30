"""A reference for counts: encode, filter and bin in the core, row by row, without a database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from blowfishdb.adapters.backends import Backend
from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.domain import Axis, Domain
from blowfishdb.core.domain.predicates import Everything, Predicate
from blowfishdb.core.policy.policy import Policy
from blowfishdb.core.questions.aggregate_problem import SumQuery
from blowfishdb.core.questions.kinds import Histogram, Question
from blowfishdb.core.questions.projection import CellQuery, Projected, project
from blowfishdb.core.workloads import Selected

EVERYTHING = Everything()


def query(domain: Domain, /, **bins: object) -> CellQuery:
    """A question with ``name=bins`` or ``name=keyword arguments of Attribute.bins``."""
    axes = [
        Axis(name, domain[name], domain[name].bins(**given) if isinstance(given, dict) else given)
        for name, given in bins.items()
    ]
    return CellQuery(tuple(axes))


def cut(domain: Domain, where: Predicate, /, **bins: object) -> CellQuery:
    """What the database is asked for a filter: boxes that lie inside of it or outside."""
    return _projected(query(domain, **bins), domain, where).cells


def counts(backend: Backend, asked: CellQuery) -> list[int]:
    """What the database counts."""
    return [int(n) for n in backend.prepare(asked).count().reveal()]


def sums(backend: Backend, asked: CellQuery, column: str) -> list[list[int]]:
    """What the database counts and adds up in every box: rows, cells of a column, and their squares."""
    return backend.prepare_sums(SumQuery(asked, column, 2)).count().reveal().tolist()


def expected_sums(
    asked: CellQuery, domain: Domain, columns: Mapping[str, Sequence[object]], column: str
) -> list[list[int]]:
    """The same in the core, row by row."""
    cells = domain.encode(columns)
    kept = np.all([cells[axis.column] >= 0 for axis in asked.axes], axis=0)
    places = tuple(axis.bins.assign(cells[axis.column][kept]) for axis in asked.axes)
    box, values = np.ravel_multi_index(places, asked.shape), cells[column][kept]
    table = np.zeros((asked.count, 3), dtype=np.int64)
    np.add.at(table, box, np.stack([np.ones_like(values), values, values**2], axis=1))
    return table.tolist()


def filtered(backend: Backend, asked: CellQuery, domain: Domain, where: Predicate) -> list[int]:
    """The counts of the rows that satisfy ``where``, from the boxes that the service would ask for."""
    problem = _projected(asked, domain, where)
    assert isinstance(problem.workload, Selected)
    boxes = np.array(counts(backend, problem.cells))
    inside = problem.workload.labels >= 0
    labels = problem.workload.labels[inside]
    return [int(n) for n in np.bincount(labels, boxes[inside], minlength=asked.count)]


def _projected(asked: CellQuery, domain: Domain, where: Predicate) -> Projected:
    problem = project(Question(Histogram(), asked.axes, where), Policy.differential_privacy(domain))
    assert problem.axes == asked.axes, "columns in the order of the domain, please"
    return problem


def expected(
    asked: CellQuery,
    domain: Domain,
    columns: Mapping[str, Sequence[object]],
    where: Predicate = EVERYTHING,
) -> list[int]:
    """What the database should count, of the rows that satisfy ``where``."""
    rows = len(next(iter(columns.values())))
    names = {axis.column for axis in asked.axes} | where.columns()
    cells = {name: domain[name].encode(columns[name]) for name in names}
    matched: IntArray = np.broadcast_to(where.on_cells(domain, cells), (rows,))
    matched = np.logical_and.reduce([matched, *(each >= 0 for each in cells.values())])
    flat = np.zeros(rows, dtype=np.int64)
    for axis in asked.axes:
        kept = np.where(cells[axis.column] < 0, 0, cells[axis.column])
        flat = flat * axis.bins.count + axis.bins.assign(kept)
    return [int(n) for n in np.bincount(flat[matched], minlength=asked.count)]
