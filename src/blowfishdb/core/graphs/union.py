"""Union: one graph that hides everything which several policies hide, and graphs between these.

All are over the same cells. Some may have a vertex for "not counted" that others lack; the union then has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from blowfishdb.core.arrays import IntArray
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.graphs.base import PolicyGraph
from blowfishdb.core.graphs.general import Apex, Cone, Explicit
from blowfishdb.core.graphs.inclusion import includes
from blowfishdb.core.graphs.line import Banded, Full, Threshold, ends_within
from blowfishdb.core.graphs.product import Product

_MOST_EDGES = 200_000
"""Up to these a union that has no shape is written out."""
_LONGEST = 2_000
"""Cells of a line up to which graphs between two policies are worth planning for."""
_SHORT = 300
"""Cells up to which all of them are; beyond, every other one."""


def union(graphs: Sequence[PolicyGraph]) -> PolicyGraph:
    """A graph with every edge of each of them, and where its edges can be written down with no other.

    Where they cannot, it is a cover: the product of the unions, column by column, or all pairs.
    """
    return next(_unions(graphs))


def covers(graphs: Sequence[PolicyGraph]) -> tuple[PolicyGraph, ...]:
    """The union, and graphs around it of a shape that more mechanisms know."""
    around = _unions(graphs)
    return tuple(dict.fromkeys((next(around), *around)))


def _unions(graphs: Sequence[PolicyGraph]) -> Iterator[PolicyGraph]:
    """From the smallest to the largest."""
    if any(graph.absent for graph in graphs):
        for inner in _unions([graph.counted for graph in graphs]):
            yield Cone(inner, Apex.PRESENCE)
        return
    widest = next((one for one in graphs if all(includes(one, other) for other in graphs)), None)
    if widest is not None:
        yield widest
        return
    ends = _ends(graphs)
    if ends is not None:
        yield _line(np.maximum.reduce(ends))
        yield Threshold(graphs[0].size, max(1, *(graph.reach or 0 for graph in graphs)))
        return
    if sum(graph.edge_count for graph in graphs) <= _MOST_EDGES:
        yield Explicit(graphs[0].size, np.concatenate([graph.edges() for graph in graphs]))
    product = _by_factors(graphs)
    if product is not None:
        yield product
    yield Full(graphs[0].size)


def between(graphs: Sequence[PolicyGraph]) -> tuple[PolicyGraph, ...]:
    """Graphs that hide more than some of these policies and less than their union; on a line only.

    Thresholds in powers of two (of four on longer lines), and each policy with neighbouring cells joined: one
    in several parts has exact totals, which another one may hide.
    """
    counted = [graph.counted for graph in graphs]
    ends, size = _ends(counted), counted[0].size
    if ends is None or size > _LONGEST:
        return ()
    reaches = sorted(int((end - np.arange(size)).max(initial=0)) for end in ends)
    powers = range(0, reaches[-1].bit_length(), 1 if size <= _SHORT else 2)
    steps = [2**power for power in powers if reaches[0] < 2**power < reaches[-1]]
    joined = np.minimum(np.arange(size) + 1, size - 1)
    lines = [Threshold(size, step) for step in steps]
    linked = [_line(np.maximum(end, joined)) for end in ends if (end < joined).any()]
    hidden = any(graph.absent for graph in graphs)
    return tuple(Cone(graph, Apex.PRESENCE) if hidden else graph for graph in (*linked, *lines))


def _ends(graphs: Sequence[PolicyGraph]) -> list[IntArray] | None:
    """How far every cell reaches to its right in each of them; None where edges are no intervals."""
    if graphs[0].size > LIMIT:
        return None
    ends = [graph.right_ends() for graph in graphs]
    known = [end for end in ends if end is not None]
    return known if len(known) == len(ends) else None


def _line(ends: IntArray) -> PolicyGraph:
    """Intervals to the right; by a shorter name where all of them are equally long."""
    size = int(ends.size)
    reach = int((ends - np.arange(size)).max(initial=0))
    if reach and np.array_equal(ends, ends_within(size, reach)):
        return Full(size) if reach == size - 1 else Threshold(size, reach)
    return Banded(ends)


def _by_factors(graphs: Sequence[PolicyGraph]) -> PolicyGraph | None:
    """Every column at the union of what is hidden there; None where they are not about the same columns.

    A record that moves along an edge of one of them moves in each column along an edge or not at all.
    """
    shapes = {tuple(factor.size for factor in graph.factors) for graph in graphs}
    if len(shapes) != 1 or not graphs[0].factors:
        return None
    columns = zip(*(graph.factors for graph in graphs), strict=True)
    return Product(*(union(column) for column in columns), joint=any(graph.joint for graph in graphs))
