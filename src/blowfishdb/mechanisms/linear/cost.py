"""The exact cost of weighted intervals on a line policy: the largest total weight that one move crosses.

A record that moves from u to v changes exactly the intervals that hold one of the two, so

    cost(u, v) = norm(u) + norm(v) − 2·common(u, v)

with norm the weight of the intervals around a cell and common that of the intervals around both. Sweep u from
left to right and keep norm(v) − 2·common(u, v) for every v in a tree of maxima: an interval that begins at u
lowers all v before its end, and the best partner of u is a maximum over the cells that u may move to.
O((intervals + cells)·log cells) for every graph in which a cell reaches an interval of cells to its right.

What no edge of a policy changes, and may therefore be released exactly.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from blowfishdb.core.arrays import BoolArray, IntArray
from blowfishdb.core.domain.bins import LIMIT, Bins
from blowfishdb.core.errors import TooLarge
from blowfishdb.core.graphs import PolicyGraph
from blowfishdb.core.workloads import Workload
from blowfishdb.core.workloads.base import Numbers
from blowfishdb.mechanisms.compiled import compiled

_SAFE = 2**60


def interval_norms(size: int, starts: IntArray, stops: IntArray, weights: IntArray) -> NDArray[Any]:
    """The total weight of the intervals around every cell; Python integers where 64 bits could overflow."""
    fits = float(weights.sum(dtype=np.float64)) < _SAFE
    steps = np.zeros(size + 1, dtype=np.int64 if fits else object)
    np.add.at(steps, starts, weights.astype(steps.dtype))
    np.subtract.at(steps, stops, weights.astype(steps.dtype))
    return np.asarray(np.cumsum(steps)[:-1])


def largest_cost(right: IntArray, starts: IntArray, stops: IntArray, weights: IntArray) -> int:
    """max over u < v ≤ right[u] of the weight of the intervals [start, stop) that hold one of u and v."""
    size = int(right.size)
    norms = interval_norms(size, starts, stops, weights)
    order = np.argsort(starts, kind="stable")
    begins = np.searchsorted(starts[order], np.arange(size + 1)).astype(np.int64)
    largest = int(norms.max())
    fits = 4 * largest < _SAFE
    kind: Any = np.int64 if fits else object  # beyond 64 bits the same loop runs on Python integers
    kernel = _sweep if fits else inspect.unwrap(_sweep)
    leaves = 1 << max(0, (size - 1).bit_length())
    values = np.full(2 * leaves, -4 * largest, dtype=kind)  # no cell beyond the line is ever the best
    values[leaves : leaves + size] = norms
    level = leaves
    while level > 1:
        level //= 2
        pairs = values[2 * level : 4 * level].reshape(level, 2)
        values[level : 2 * level] = pairs.max(axis=1)
    own, added = values[leaves:].copy(), np.zeros(2 * leaves, dtype=kind)
    by_start = stops[order], weights[order].astype(kind)
    return int(kernel(right, begins, *by_start, own, values, added, leaves))


@compiled(at_once=False)
def _sweep(right, begins, stops, weights, norms, values, added, leaves):  # type: ignore[no-untyped-def]
    best = 0 * norms[0]
    for u in range(len(right)):
        for index in range(begins[u], begins[u + 1]):
            change = -2 * weights[index]
            node = leaves + stops[index] - 1
            values[node] += change
            while node > 1:
                if node & 1:
                    values[node - 1] += change
                    added[node - 1] += change
                node >>= 1
                values[node] = max(values[2 * node], values[2 * node + 1]) + added[node]
        if right[u] == u:
            continue
        low, high = leaves + u + 1, leaves + right[u]
        from_low, from_high = values[low], values[high]
        while low >> 1 != high >> 1:
            if not low & 1:
                from_low = max(from_low, values[low + 1])
            if high & 1:
                from_high = max(from_high, values[high - 1])
            low >>= 1
            high >>= 1
            from_low += added[low]
            from_high += added[high]
        partner = max(from_low, from_high)
        while low > 1:
            low >>= 1
            partner += added[low]
        best = max(best, norms[u] + partner)
    return best


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
    if workload.one_per_cell:
        alone = np.bincount(components.assignment()) == 1
        return np.asarray(alone[components.assignment()])
    return _constant_on_parts(workload, components)


def _constant_rows(workload: Workload) -> BoolArray:
    lowest, highest = _row_extremes(workload)
    return np.asarray(lowest == highest)


def _row_extremes(workload: Workload) -> tuple[Numbers, Numbers]:
    """The smallest and the largest entry of every row."""
    if workload.binary:
        implicit = workload.one_per_cell or workload.prefixes or workload.every_range
        if implicit or workload.size <= LIMIT:
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
