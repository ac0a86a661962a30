"""The sensitivity of a single number: by how much one weighted count changes along the edges of a policy.

With one weight w_u per cell it is the largest |w_u − w_v| over the edges. On a line of values, where edges
are intervals, that is a sliding minimum and maximum; the other columns of a filter matter only through which
of their cells have different weights. So sums are exact for millions of cells, whatever the filter: a
distance threshold bounds a sum only while no row can come or go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.graphs import (
    Apart,
    Apex,
    Banded,
    Cone,
    Explicit,
    Full,
    Partitioned,
    PolicyGraph,
    Product,
    Threshold,
)
from blowfishdb.core.workloads.base import Numbers, Workload

_MOST_CELLS = 2 * 10**7
_MOST_WORK = 10**9
_SAFE = 2**61


def one_answer(workload: Workload, graph: PolicyGraph) -> int | None:
    """The exact sensitivity of a workload of one question; None where the graph is not made of lines."""
    single = workload.count == 1 and workload.denominator == 1 and not graph.absent
    if not single or workload.size > _MOST_CELLS or workload.largest_norm >= _SAFE:
        return None
    weights = np.asarray(workload.transpose(np.ones(1, dtype=np.int64)), dtype=np.int64)
    line = _line(graph)
    if line is not None:
        return line.spread(weights, weights)
    if not isinstance(graph, Product):
        return None
    return _product(weights, graph)


def _product(weights: IntArray, graph: Product) -> int | None:
    """The longest column as a line; the others as groups of cells with equal weights along it."""
    axis = int(np.argmax(graph.shape))
    line = _line(graph.factors[axis])
    others = [factor for place, factor in enumerate(graph.factors) if place != axis]
    if line is None or not others:
        return None
    rows = np.moveaxis(weights.reshape(graph.shape), axis, -1).reshape(-1, graph.shape[axis])
    kinds, groups = _alike(rows)
    beside = others[0] if len(others) == 1 else Product(*others, joint=graph.joint)
    if len(kinds) ** 2 * rows.shape[1] > _MOST_WORK:
        return None
    largest = max(line.spread(kind, kind) for kind in kinds)
    if len(kinds) == 1:
        return largest
    joined = beside.project(groups)
    for u, v in joined.edges():
        here, there = kinds[u], kinds[v]
        apart = line.spread(here, there) if graph.joint else 0
        largest = max(largest, apart, int(np.abs(here - there).max()))
    return largest


def _alike(rows: IntArray) -> tuple[list[IntArray], IntArray]:
    """The different rows, and which of them each one is."""
    seen: dict[bytes, int] = {}
    groups = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows], dtype=np.int64)
    return [rows[np.argmax(groups == kind)] for kind in range(len(seen))], groups


@final
@dataclass(frozen=True, eq=False)
class _Line:
    """Each cell is joined to the interval ``left … right`` around it; one more cell may follow."""

    left: IntArray
    right: IntArray
    last: bool
    """Whether there is one cell more, joined to every other."""

    def spread(self, here: Numbers, there: Numbers) -> int:
        """The largest |here_u − there_v| over edges (u, v), and over u = v."""
        size = self.left.size
        low, high = (_over(there[:size], self.left, self.right, pick) for pick in (np.minimum, np.maximum))
        own = here[:size]
        largest = max(int((own - low).max()), int((high - own).max()))
        if here.size == size:
            return largest
        largest = max(largest, abs(int(here[-1]) - int(there[-1])))
        if self.last:
            for single, others in ((here[-1], there[:size]), (there[-1], own)):
                largest = max(largest, int(np.abs(others - single).max()))
        return largest


def _line(graph: PolicyGraph) -> _Line | None:
    """The graph as intervals, where it is made of them."""
    if isinstance(graph, Cone) and graph.apex is Apex.MISSING:
        inner = _line(graph.base)
        plain = inner is not None and inner.left.size == graph.base.size
        return _Line(inner.left, inner.right, True) if inner is not None and plain else None
    if isinstance(graph, Apart):
        inner = _line(graph.base)
        plain = inner is not None and inner.left.size == graph.base.size
        return inner if plain else None
    cells = np.arange(graph.size, dtype=np.int64)
    if isinstance(graph, Explicit) and graph.edge_count == 0:
        return _Line(cells, cells, False)
    if isinstance(graph, Full | Threshold):
        reach = graph.size - 1 if isinstance(graph, Full) else graph.reach
        return _Line(np.maximum(cells - reach, 0), np.minimum(cells + reach, graph.size - 1), False)
    if isinstance(graph, Banded):
        return _Line(np.searchsorted(graph.right, cells).astype(np.int64), graph.right, False)
    if isinstance(graph, Partitioned) and graph.parts.contiguous:
        parts = graph.parts.assignment()
        return _Line(graph.parts.first(parts), graph.parts.last(parts), False)
    return None


def _over(values: Numbers, left: IntArray, right: IntArray, pick: np.ufunc) -> Numbers:
    """``pick`` over values[left … right] of each cell: two overlapping stretches of a power of two."""
    found = values.copy()
    level = np.frexp((right - left + 1).astype(np.float64))[1] - 1
    window, width = values, 1
    for power in range(int(level.max(initial=0)) + 1):
        chosen = np.flatnonzero(level == power)
        found[chosen] = pick(window[left[chosen]], window[right[chosen] - width + 1])
        if window.size <= width:
            break
        window, width = pick(window[:-width], window[width:]), 2 * width
    return found
