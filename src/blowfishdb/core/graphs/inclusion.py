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
from blowfishdb.core.graphs.general import Apart, Cone, Explicit, Partitioned
from blowfishdb.core.graphs.line import Full, Threshold, ends_within
from blowfishdb.core.graphs.product import Grid, Product
from blowfishdb.core.policy.protection import all_distances, extent

Known = bool | None
_MOST_EDGES = 4 * 10**6


def includes(outer: PolicyGraph, inner: PolicyGraph) -> Known:
    """Whether every edge of ``inner`` is an edge of ``outer``; None if that cannot be told.

    Both are about the same values; one of them may have a vertex ⊥ more than the other.
    """
    if inner.absent or outer.absent:
        return outer.absent and includes(outer.counted, inner.counted)
    if isinstance(outer, Full) or without_edges(inner) or outer == inner:
        return True
    if isinstance(inner, Explicit):
        return bool(outer.adjacent(inner.pairs[:, 0], inner.pairs[:, 1]).all())
    if isinstance(inner, Full) and isinstance(outer, Product | Grid):
        inner = Product(*(Full(size) for size in outer.shape))
    for rule in (_cones, _lines, _partitions, _grids, _products, _counts):
        known = rule(outer, inner)
        if known is not None:
            return known
    return _edge_by_edge(outer, inner)


def without_edges(graph: PolicyGraph) -> bool:
    if isinstance(graph, Product):
        return all(without_edges(factor) for factor in graph.factors)
    return graph.size == 1 or (not isinstance(graph, Grid) and graph.edge_count == 0)


def _cones(outer: PolicyGraph, inner: PolicyGraph) -> Known:
    """Missing values: the last vertex is joined to all others, or to none."""
    if isinstance(inner, Apart) and isinstance(outer, Apart | Cone):
        return includes(outer.base, inner.base)
    if isinstance(outer, Apart) and isinstance(inner, Cone | Full | Threshold):
        return False
    if not isinstance(outer, Cone):
        return None
    if isinstance(inner, Cone):
        return includes(outer.base, inner.base)
    if isinstance(inner, Full):
        return includes(outer.base, Full(inner.size - 1))
    if isinstance(inner, Threshold):
        return includes(outer.base, Threshold(inner.size - 1, inner.theta))
    return None


# --- one line of values -------------------------------------------------------------------------


def _reach(graph: PolicyGraph) -> IntArray | int | None:
    """How far each cell reaches to its right, or how far all of them do; None if edges are no intervals."""
    if isinstance(graph, Full | Threshold | Grid):
        return graph.reach
    return graph.right_ends() if graph.size <= LIMIT else None


def _lines(outer: PolicyGraph, inner: PolicyGraph) -> Known:
    far, near = _reach(outer), _reach(inner)
    if far is None or near is None:
        return None
    if isinstance(far, int) and isinstance(near, int):
        return near <= far
    ends = [ends_within(outer.size, r) if isinstance(r, int) else r for r in (far, near)]
    return bool((ends[1] <= ends[0]).all())


def _partitions(outer: PolicyGraph, inner: PolicyGraph) -> Known:
    """Parts inside parts; parts inside intervals, by their ends; intervals inside parts, by neighbours."""
    if outer.size > LIMIT:
        return None
    if isinstance(inner, Partitioned) and isinstance(outer, Partitioned):
        pairs = inner.parts.assignment() * outer.parts.count + outer.parts.assignment()
        return bool(np.unique(pairs).size == inner.parts.count)
    if isinstance(inner, Partitioned) and _reach(outer) is not None:
        every = np.arange(inner.parts.count)
        first, last = inner.parts.first(every), inner.parts.last(every)
        return bool(((first == last) | outer.adjacent(first, last)).all())
    if isinstance(outer, Partitioned) and _reach(inner) is not None:
        here = np.arange(inner.size - 1)
        return bool((outer.adjacent(here, here + 1) | ~inner.adjacent(here, here + 1)).all())
    return None


# --- several columns ----------------------------------------------------------------------------


def _grids(outer: PolicyGraph, inner: PolicyGraph) -> Known:
    if isinstance(inner, Grid) and isinstance(outer, Grid) and inner.shape == outer.shape:
        if {*inner.widths, *outer.widths} != {1}:
            return None
        return min(inner.theta, sum(n - 1 for n in inner.shape)) <= outer.theta
    if isinstance(inner, Grid) and isinstance(outer, Product) and inner.shape == outer.shape:
        axes = (Threshold(n, max(1, inner.axis_reach(axis))) for axis, n in enumerate(inner.shape))
        diagonal = inner.theta > 1 and sum(n > 1 for n in inner.shape) > 1
        if diagonal and not outer.joint:
            return False
        return _all(includes(f, line) for f, line in zip(outer.factors, axes, strict=True))
    if isinstance(inner, Product) and isinstance(outer, Grid) and inner.shape == outer.shape:
        lengths = [int(outer.cost(axis, longest_edge(f))) for axis, f in enumerate(inner.factors)]
        return (sum(lengths) if inner.joint else max(lengths)) <= outer.theta
    return None


def longest_edge(graph: PolicyGraph) -> int:
    """The largest index distance of an edge."""
    if isinstance(graph, Explicit):
        return int(np.diff(graph.pairs, axis=1).max(initial=0))
    if isinstance(graph, Cone):
        return graph.base.size
    if isinstance(graph, Apart):
        return longest_edge(graph.base)
    span = graph.span
    return (
        span
        if span is not None
        else max((int(np.ptp(b, axis=1).max()) for b in graph.edge_blocks()), default=0)
    )


def _products(outer: PolicyGraph, inner: PolicyGraph) -> Known:
    """Factor by factor; a factor over several columns is compared with the product of theirs."""
    if not (isinstance(inner, Product) and isinstance(outer, Product)):
        return None
    blocks = shared_blocks(outer, inner)
    if blocks == [(outer, inner)]:
        return None
    if inner.joint and not outer.joint and sum(not without_edges(block) for _, block in blocks) > 1:
        return False
    return _all(includes(wide, narrow) for wide, narrow in blocks)


def shared_blocks(outer: Product, inner: Product) -> list[tuple[PolicyGraph, PolicyGraph]]:
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


def _all(answers: Iterable[Known]) -> Known:
    found = list(answers)
    return False if False in found else None if None in found else True


def _counts(outer: PolicyGraph, inner: PolicyGraph) -> Known:
    """More edges never fit into fewer; all edges fit only where all are."""
    if not (_countable(outer) and _countable(inner)):
        return None
    if inner.edge_count > outer.edge_count:
        return False
    return True if isinstance(inner, Full) else None


def _countable(graph: PolicyGraph) -> bool:
    """Whether counting the edges is quick; for grids it takes as many steps as a vertex has neighbours."""
    if isinstance(graph, Product):
        return all(_countable(factor) for factor in graph.factors)
    if isinstance(graph, Apart | Cone):
        return _countable(graph.base)
    if isinstance(graph, Grid):
        return math.prod(graph.axis_reach(axis) + 1 for axis in range(len(graph.shape))) <= 10**5
    return True


def _edge_by_edge(outer: PolicyGraph, inner: PolicyGraph) -> Known:
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
    if isinstance(old, Cone):
        return _around(old, new)
    if without_edges(new):
        return 0.0
    if includes(old, new):
        return 1.0
    if isinstance(old, Apart) and isinstance(new, Apart):
        return stretch(old.base, new.base)
    for rule in (_on_a_line, _on_a_grid, _factor_by_factor, _pair_by_pair):
        found = rule(old, new)
        if found is not None:
            return found
    farthest, split = extent(old)
    return math.inf if split else float(farthest)


def _around(old: Cone, new: PolicyGraph) -> float:
    """Over the vertex that is joined to all, any two are at most two steps apart."""
    if without_edges(new):
        return 0.0
    return 1.0 if includes(old, new) else 2.0


def _on_a_line(old: PolicyGraph, new: PolicyGraph) -> float | None:
    if isinstance(old, Partitioned):
        return math.inf  # it does not include the new one
    if not isinstance(old, Threshold):
        return None
    if isinstance(new, Full | Threshold | Partitioned):
        return float(ceil_div(longest_edge(new), old.theta))
    return float(ceil_div(old.size - 1, old.theta))


def _on_a_grid(old: PolicyGraph, new: PolicyGraph) -> float | None:
    """Steps of length θ in an L1 metric: a move of length L takes ⌈L/θ⌉ where cells have width one."""
    if not (isinstance(old, Grid) and set(old.widths) == {1}):
        return None
    if isinstance(new, Grid) and new.shape == old.shape and set(new.widths) == {1}:
        longest = min(new.theta, sum(n - 1 for n in new.shape))
    elif isinstance(new, Product) and new.shape == old.shape:
        lengths = [0 if without_edges(factor) else longest_edge(factor) for factor in new.factors]
        longest = sum(lengths) if new.joint else max(lengths)
    else:
        longest = sum(n - 1 for n in old.shape)
    return float(ceil_div(longest, old.theta))


def _factor_by_factor(old: PolicyGraph, new: PolicyGraph) -> float | None:
    """A joint step moves all columns at once, a Cartesian one only one of them."""
    if not isinstance(old, Product):
        return None
    if isinstance(new, Full):
        new = Product(*(Full(size) for size in old.shape))
    if isinstance(new, Grid) and new.shape == old.shape:
        axes = enumerate(new.shape)
        new = Product(*(Threshold(n, max(1, new.axis_reach(axis))) if n > 1 else Full(1) for axis, n in axes))
    if not isinstance(new, Product):
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
