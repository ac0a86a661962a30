"""What no edge of a policy changes, and may therefore be released exactly."""

from __future__ import annotations

import numpy as np

from blowfishdb.core.arrays import BoolArray
from blowfishdb.core.bins import LIMIT, Bins
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import AllRanges, Cumulative, Histogram, Workload
from blowfishdb.core.workloads.base import Numbers


def invariant_components(graph: PolicyGraph) -> Bins | None:
    """The components whose totals are public; None where a record may come and go."""
    return None if graph.absent else graph.components()


def component_sums(x: Numbers, components: Bins) -> Numbers:
    """Σ of ``x`` over every component, along the last axis."""
    if components.count == 1:
        return np.asarray(x.sum(axis=-1, keepdims=True))
    labels = components.assignment()
    sums = np.zeros((*x.shape[:-1], components.count), dtype=x.dtype)
    np.add.at(np.moveaxis(sums, -1, 0), labels, np.moveaxis(x, -1, 0))
    return sums


def unchanging_rows(workload: Workload, graph: PolicyGraph) -> BoolArray:
    """The questions that are constant on every component: no edge changes them.

    With a vertex that counts nowhere, every cell is one edge away from zero, so only a question
    that counts nothing is unchanging.
    """
    if graph.absent:
        lowest, highest = _row_extremes(workload)
        return np.asarray((lowest == 0) & (highest == 0))
    components = graph.components()
    if components.count == 1:
        return _constant_rows(workload)
    if isinstance(workload, Histogram):
        alone = np.bincount(components.assignment()) == 1
        return np.asarray(alone[components.assignment()])
    return _constant_on_parts(workload, components)


def _constant_rows(workload: Workload) -> BoolArray:
    lowest, highest = _row_extremes(workload)
    return np.asarray(lowest == highest)


def _row_extremes(workload: Workload) -> tuple[Numbers, Numbers]:
    """The smallest and the largest entry of every row."""
    if workload.binary:
        if isinstance(workload, Histogram | Cumulative | AllRanges) or workload.size <= LIMIT:
            ones = workload.answer(np.ones(workload.size, dtype=np.int64))
            return (ones == workload.size).astype(np.int64), (ones > 0).astype(np.int64)
        raise TooLarge(f"The questions span {workload.size:,} cells, above the limit of {LIMIT:,}.")
    rows = workload.sparse().toarray()
    return rows.min(axis=1), rows.max(axis=1)


def _constant_on_parts(workload: Workload, components: Bins) -> BoolArray:
    """Compare every cell's column with that of the first cell of its component."""
    columns = workload.sparse().tocsc()
    first = components.first(components.assignment())
    difference = (columns - columns[:, first]).tocsr()
    difference.eliminate_zeros()
    return np.asarray(np.diff(difference.indptr) == 0)
