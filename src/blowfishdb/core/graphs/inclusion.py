"""Whether one policy graph hides everything that another one does.

Exact for every answer it gives: closed forms where the kinds allow, otherwise edge by edge up to a limit.
Beyond the limit the answer is None, which means that it is not known.

Stretch: how far apart two values that one policy hides can be in the graph of another.

An answer given at ε under a graph G costs a pair (u, v) at most ε·d_G(u, v), whether or not it is an edge. So
what earlier answers lost under a new graph G\' is at most ε times the largest d_G over the edges of G\'.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from blowfishdb.core.arrays import IntArray, ceil_div
from blowfishdb.core.domain.bins import LIMIT
from blowfishdb.core.graphs.base import PolicyGraph
from blowfishdb.core.graphs.general import Explicit
from blowfishdb.core.graphs.line import Full, Threshold, ends_within
from blowfishdb.core.graphs.product import Grid, Product
from blowfishdb.core.policy.protection import all_distances, extent

Answer = bool | None
_MOST_EDGES = 4 * 10**6


def includes(outer: PolicyGraph, inner: PolicyGraph) -> Answer:
    """Whether every edge of ``inner`` is an edge of ``outer``; None if that cannot be told.

    Both are about the same values; one of them may have a vertex ⊥ more than the other.
    """
    if inner.absent or outer.absent:
        return outer.absent and includes(outer.counted, inner.counted)
    if outer.complete or inner.edgeless or outer == inner:
        return True
    if isinstance(inner, Explicit):
        return bool(outer.adjacent(inner.pairs[:, 0], inner.pairs[:, 1]).all())
    if inner.complete and outer.axes:
        inner = Product(*(Full(size) for size in outer.axes))
    for rule in (_last_cells, _lines, _partitions, _grids, _products, _counts):
        answer = rule(outer, inner)
        if answer is not None:
            return answer
    return _edge_by_edge(outer, inner)


def _last_cells(outer: PolicyGraph, inner: PolicyGraph) -> Answer:
    """Missing values: the last vertex is joined to all others, or to none."""
    wide, narrow = outer.without_last(), inner.without_last()
    if narrow is None and inner.line_reach is not None:  # its last cell is joined to the one before
        narrow = Threshold(inner.size - 1, inner.line_reach), True
    if wide is None or narrow is None:
        return None
    return False if narrow[1] and not wide[1] else includes(wide[0], narrow[0])


# --- one line of values -------------------------------------------------------------------------


def _reach(graph: PolicyGraph) -> IntArray | int | None:
    """How far each cell reaches to its right, or how far all of them do; None if edges are no intervals."""
    if graph.line_reach is not None:
        return graph.line_reach
    return graph.right_ends() if graph.size <= LIMIT else None


def _lines(outer: PolicyGraph, inner: PolicyGraph) -> Answer:
    far, near = _reach(outer), _reach(inner)
    if far is None or near is None:
        return None
    if isinstance(far, int) and isinstance(near, int):
        return near <= far
    ends = [ends_within(outer.size, r) if isinstance(r, int) else r for r in (far, near)]
    return bool((ends[1] <= ends[0]).all())


def _partitions(outer: PolicyGraph, inner: PolicyGraph) -> Answer:
    """Parts inside parts; parts inside intervals, by their ends; intervals inside parts, by neighbours."""
    if outer.size > LIMIT:
        return None
    wide, narrow = outer.cliques, inner.cliques
    if wide is not None and narrow is not None:
        pairs = narrow.assignment() * wide.count + wide.assignment()
        return bool(np.unique(pairs).size == narrow.count)
    if narrow is not None and _reach(outer) is not None:
        every = np.arange(narrow.count)
        first, last = narrow.first(every), narrow.last(every)
        return bool(((first == last) | outer.adjacent(first, last)).all())
    if wide is not None and _reach(inner) is not None:
        here = np.arange(inner.size - 1)
        return bool((outer.adjacent(here, here + 1) | ~inner.adjacent(here, here + 1)).all())
    return None


# --- several columns ----------------------------------------------------------------------------


def _grids(outer: PolicyGraph, inner: PolicyGraph) -> Answer:
    if inner.axes != outer.axes:
        return None
    if isinstance(inner, Grid) and isinstance(outer, Grid):
        if {*inner.widths, *outer.widths} != {1}:
            return None
        return min(inner.theta, sum(n - 1 for n in inner.shape)) <= outer.theta
    if isinstance(inner, Grid) and outer.factors:
        axes = (Threshold(n, max(1, inner.axis_reach(axis))) for axis, n in enumerate(inner.shape))
        diagonal = inner.theta > 1 and sum(n > 1 for n in inner.shape) > 1
        if diagonal and not outer.joint:
            return False
        return _all(includes(f, line) for f, line in zip(outer.factors, axes, strict=True))
    if inner.factors and isinstance(outer, Grid):
        lengths = [int(outer.cost(axis, longest_edge(f))) for axis, f in enumerate(inner.factors)]
        return (sum(lengths) if inner.joint else max(lengths)) <= outer.theta
    return None


def longest_edge(graph: PolicyGraph) -> int:
    """The largest index distance of an edge."""
    split = graph.without_last()
    if split is not None:
        return graph.size - 1 if split[1] else longest_edge(split[0])
    if graph.span is not None:
        return graph.span
    return max((int(np.ptp(block, axis=1).max()) for block in graph.edge_blocks()), default=0)


def _products(outer: PolicyGraph, inner: PolicyGraph) -> Answer:
    """Factor by factor; a factor over several columns is compared with the product of theirs."""
    if not (inner.factors and outer.factors):
        return None
    blocks = shared_blocks(outer, inner)
    if blocks == [(outer, inner)]:
        return None
    if inner.joint and not outer.joint and sum(not block.edgeless for _, block in blocks) > 1:
        return False
    return _all(includes(wide, narrow) for wide, narrow in blocks)


def shared_blocks(outer: PolicyGraph, inner: PolicyGraph) -> list[tuple[PolicyGraph, PolicyGraph]]:
    """The factors of both, in the smallest groups that are about the same columns."""
    left = [factor for factor in outer.factors if factor.size > 1]
    right = [factor for factor in inner.factors if factor.size > 1]
    blocks: list[tuple[PolicyGraph, PolicyGraph]] = []
    while left and right:
        wide, narrow = [left.pop(0)], [right.pop(0)]
        while _size(wide) != _size(narrow):
            if _size(wide) < _size(narrow):
                wide.append(left.pop(0))
            else:
                narrow.append(right.pop(0))
        blocks.append((_product(wide, outer.joint), _product(narrow, inner.joint)))
    return blocks


def _size(factors: list[PolicyGraph]) -> int:
    return math.prod(factor.size for factor in factors)


def _product(factors: list[PolicyGraph], joint: bool) -> PolicyGraph:
    return factors[0] if len(factors) == 1 else Product(*factors, joint=joint)


def _all(answers: Iterable[Answer]) -> Answer:
    each = list(answers)
    return False if False in each else None if None in each else True


def _counts(outer: PolicyGraph, inner: PolicyGraph) -> Answer:
    """More edges never fit into fewer; all edges fit only where all are."""
    if not (_countable(outer) and _countable(inner)):
        return None
    if inner.edge_count > outer.edge_count:
        return False
    return True if inner.complete else None


def _countable(graph: PolicyGraph) -> bool:
    """Whether counting the edges is quick; for grids it takes as many steps as a vertex has neighbours."""
    split = graph.without_last()
    if split is not None:
        return _countable(split[0]) if not graph.complete else True
    if isinstance(graph, Grid):
        return math.prod(graph.axis_reach(axis) + 1 for axis in range(len(graph.shape))) <= 10**5
    return all(_countable(factor) for factor in graph.factors)


def _edge_by_edge(outer: PolicyGraph, inner: PolicyGraph) -> Answer:
    if not _countable(inner) or inner.edge_count > _MOST_EDGES:
        return None
    return all(bool(outer.adjacent(block[:, 0], block[:, 1]).all()) for block in inner.edge_blocks())


_MOST_CELLS = 1_500
_MOST_STRETCHED = 10**7


def stretch(old: PolicyGraph, new: PolicyGraph) -> float:
    """At least the largest distance in ``old`` of two values that ``new`` joins; ∞ if no path does.

    Exact for lines, partitions, products of them, and small graphs; otherwise an upper bound. Both are about
    the same values; one of them may have a vertex ⊥ more than the other.
    """
    if new.absent:
        return max(1.0, stretch(old, new.counted)) if old.absent else math.inf
    if new.edgeless:
        return 0.0
    if includes(old, new):
        return 1.0
    for rule in (_by_the_last_cell, _on_a_line, _on_a_grid, _factor_by_factor, _pair_by_pair):
        distance = rule(old, new)
        if distance is not None:
            return distance
    farthest, split = extent(old)
    return math.inf if split else float(farthest)


def _by_the_last_cell(old: PolicyGraph, new: PolicyGraph) -> float | None:
    """Over a vertex that is joined to all, any two are two steps apart; one joined to none leads nowhere."""
    before, after = old.without_last(), new.without_last()
    if before is None:
        return None
    if before[1]:
        return 2.0
    return stretch(before[0], after[0]) if after is not None and not after[1] else None


def _on_a_line(old: PolicyGraph, new: PolicyGraph) -> float | None:
    if old.cliques is not None:
        return math.inf  # it does not include the new one
    if old.line_reach is None:
        return None
    longest = old.size - 1 if new.span is None else new.span
    return float(ceil_div(longest, old.line_reach))


def _on_a_grid(old: PolicyGraph, new: PolicyGraph) -> float | None:
    """Steps of length θ in an L1 metric: a move of length L takes ⌈L/θ⌉ where cells have width one."""
    if not (isinstance(old, Grid) and set(old.widths) == {1}):
        return None
    if isinstance(new, Grid) and new.shape == old.shape and set(new.widths) == {1}:
        longest = min(new.theta, sum(n - 1 for n in new.shape))
    elif new.factors and new.axes == old.shape:
        lengths = [0 if factor.edgeless else longest_edge(factor) for factor in new.factors]
        longest = sum(lengths) if new.joint else max(lengths)
    else:
        longest = sum(n - 1 for n in old.shape)
    return float(ceil_div(longest, old.theta))


def _factor_by_factor(old: PolicyGraph, new: PolicyGraph) -> float | None:
    """A joint step moves all columns at once, a Cartesian one only one of them."""
    if not old.factors:
        return None
    if new.complete:
        new = Product(*(Full(size) for size in old.axes))
    if isinstance(new, Grid) and new.shape == old.axes:
        axes = enumerate(new.shape)
        new = Product(*(Threshold(n, max(1, new.axis_reach(axis))) if n > 1 else Full(1) for axis, n in axes))
    if not new.factors:
        return None
    blocks = shared_blocks(old, new)
    if blocks == [(old, new)]:
        return None
    each = [stretch(before, after) for before, after in blocks]
    return sum(each) if new.joint and not old.joint else max(each)


def _pair_by_pair(old: PolicyGraph, new: PolicyGraph) -> float | None:
    if old.size > _MOST_CELLS or new.edge_count > _MOST_STRETCHED:
        return None
    apart = all_distances(old)
    return max(float(np.max(apart[block[:, 0], block[:, 1]])) for block in new.edge_blocks())
